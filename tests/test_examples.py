"""Every example runs, with small settings, and leaves what it promises."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name, *args, cwd):
    return subprocess.run(
        [sys.executable, str(EXAMPLES / name), *args],
        check=True,
        capture_output=True,
        text=True,
        cwd=cwd,
    ).stdout


def test_the_demo_prints_accuracy_and_collapse(tmp_path):
    printed = run("01_digits.py", "--epochs", "1", cwd=tmp_path)
    assert "balanced accuracy, test" in printed
    assert "NC2 distance from the simplex" in printed
    assert not list(tmp_path.iterdir())  # no surprise on disk


def test_the_picture_is_drawn(tmp_path):
    run("02_collapse.py", "--out", "picture.png", cwd=tmp_path)
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_the_learnt_kernel_serves_a_support_vector_machine(tmp_path):
    printed = run("03_kernel.py", cwd=tmp_path)
    for line in printed.splitlines()[1:]:
        assert float(line.split()[-3]) > 0.9  # by the learnt kernel
