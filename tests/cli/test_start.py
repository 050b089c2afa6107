"""The command is there at once, and heavy libraries come in only where they are needed."""

import subprocess
import sys
import time

import pytest

HEAVY = ("torch", "pandas", "sklearn", "numpy", "rich", "matplotlib", "optuna", "dask")


def modules_after(code):
    code += f"\nimport sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("args", [["--help"], ["fit", "--help"], ["predict", "--help"]])
def test_help_imports_nothing_heavy(args):
    code = f"import sys\nfrom cocoloss.cli import main\ntry: main({args})\nexcept SystemExit: pass"
    assert modules_after(code) == "[]"


def test_help_is_there_at_once():
    def seconds():
        started = time.perf_counter()
        command = [sys.executable, "-m", "cocoloss", "--help"]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - started

    assert min(seconds() for _ in range(5)) < 0.3


def test_predicting_needs_no_torch(model, table):
    args = ["predict", str(model), str(table)]
    code = f"import sys\nfrom cocoloss.cli import main\ntry: main({args})\nexcept SystemExit: pass"
    assert "torch" not in modules_after(code)
