"""``cocoloss bench`` in this process, with a small spec."""

from pathlib import Path

from click.testing import CliRunner

from cocoloss.cli.root import main

FAILED = 3  # exit status of a run with failures
SPEC = """
name = "tiny"
kind = "fake"
[data]
source = "sklearn"
datasets = ["iris", "wine"]
[folds]
outer = 3
[models]
names = ["good", "breaks"]
[options]
trials = 3
folder = "FOLDER"
"""


def write_spec(folder):
    Path("tiny.toml").write_text(SPEC.replace("FOLDER", str(folder)))


def bench(*arguments, code=0):
    result = CliRunner().invoke(main, ["bench", *map(str, arguments)])
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def refusal(*arguments):
    result = bench(*arguments, code=1)
    lines = result.stderr.strip().split("\n")
    assert lines[-1].startswith("error: ")
    assert len(lines) == 1
    return lines[0]
