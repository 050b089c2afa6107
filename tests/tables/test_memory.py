"""A long file in little memory."""

import subprocess
import sys
from pathlib import Path

import pytest

ROWS = 600_000
COLUMNS = 20

# The peak beyond that of the imports, in MB, of reading a file in chunks or whole.
SCRIPT = """
import re, sys
from pathlib import Path
from cocoloss.tables import iter_tables, read_table

def peak():  # not ru_maxrss, which a child inherits from its parent
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

way, path = sys.argv[1:]
before = peak()
n_rows = len(read_table(path)) if way == "whole" else sum(map(len, iter_tables(path, rows=20_000)))
print(n_rows, peak() - before)
"""


def measured(way, path):
    command = [sys.executable, "-c", SCRIPT, way, str(path)]
    result = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    n_rows, peak = result.stdout.split()
    assert int(n_rows) == ROWS
    return float(peak)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read there")
def test_chunks_take_the_memory_of_a_few_chunks(tmp_path):
    path = tmp_path / "long.csv"
    row = ",".join(f"0.{j}" for j in range(COLUMNS)) + "\n"
    header = ",".join(f"x{j}" for j in range(COLUMNS)) + "\n"
    with path.open("w") as file:
        file.write(header)
        for _ in range(ROWS // 10_000):
            file.write(row * 10_000)
    frame_size = ROWS * COLUMNS * 8 / 2**20  # 92 MB
    assert measured("whole", path) > frame_size  # the measure sees what there is to see
    assert measured("chunks", path) < frame_size / 2
