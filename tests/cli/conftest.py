import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from cocoloss.cli import main

N = 150


@pytest.fixture(scope="session")
def frame():
    rng = np.random.default_rng(0)
    kind = rng.choice(["ant", "bee", "cicada"], N)
    size = rng.normal(size=N) + 2 * (kind == "bee") - 2 * (kind == "ant")
    return pd.DataFrame(
        {
            "id": np.arange(10**15, 10**15 + N),
            "size": np.where(rng.random(N) < 0.1, np.nan, size.round(3)),
            "city": rng.choice(["Bern", "Köln", "Łódź"], N),
            "seen": pd.date_range("2024-01-01", periods=N).strftime("%Y-%m-%d"),
            "alive": rng.choice(["yes", "no"], N),
            "kind": kind,
        }
    )


@pytest.fixture(scope="session")
def table(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "insects.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def run():
    """Return what runs the command and gives its result; a traceback fails the test."""

    def invoke(*args, code=0):
        result = CliRunner().invoke(main, [str(arg) for arg in args])
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result

    return invoke


@pytest.fixture(scope="session")
def refused(run):
    """Return what runs a command that must fail, and gives its one line."""

    def invoke(*args, code=1):
        result = run(*args, code=code)
        lines = result.stderr.strip().splitlines()
        assert len(lines) == 1, result.stderr
        assert lines[0].startswith("error: ")
        return lines[0]

    return invoke


@pytest.fixture(scope="session")
def model(run, table, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "insects.coco"
    fast = ("--epochs", 15, "--members", 2)
    run("fit", table, "--target", "kind", "--drop", "id", "--out", path, *fast)
    return path
