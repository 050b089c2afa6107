"""Pages whose code needs more than one process; the rest runs through conftest.py."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.docs
def test_the_data_parallel_example_runs_as_printed(tmp_path):
    page = (ROOT / "docs" / "losses.md").read_text()
    (block,) = (
        b for b in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "init_process_group" in b
    )
    script = tmp_path / "train.py"
    script.write_text(block)
    result = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run"),
            *("--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", "2"),
            str(script),
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    # gloo's own threads abort the exit now and then, after the work is done.
    assert result.returncode == 0 or "SIGABRT" in result.stderr, result.stderr
    printed = set(re.findall(r"loss of the global batch ([\d.]+)", result.stdout))
    assert len(printed) == 1, result.stderr  # both ranks have the same loss
    assert result.stdout.count("loss of the global batch") == 2, result.stderr


def test_every_note_on_the_paper_is_in_the_list_of_decisions():
    page = (ROOT / "docs" / "decisions.md").read_text()
    package = ROOT / "src" / "cocoloss"
    marked = {
        path.relative_to(package if path.is_relative_to(package) else ROOT).as_posix()
        for path in (*package.rglob("*.py"), *(ROOT / "paper").glob("*.py"))
        if "NOTE[PAPER]" in path.read_text()
    }
    assert marked
    assert not {path for path in marked if f"`{path}`" not in page}
