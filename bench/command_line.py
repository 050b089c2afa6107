"""The command line beside what it stands on: start-up, and a million rows.

    python bench/command_line.py                 (about three minutes)

- ``cocoloss --help``, in seconds;
- ``cocoloss predict`` on one row, as a ratio to a Python that imports pandas and scikit-learn;
- ``cocoloss predict`` on a CSV of a million rows and 20 numbers, by one network (64, 64), as a
  ratio to reading it with pandas, with and without the time to start, and its peak memory.

Everything runs in processes of its own, interleaved; ratios are of medians.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from cocoloss import CoCoClassifier
from timing import RESULTS

COMMAND = [sys.executable, "-m", "cocoloss"]
IMPORTS = "import pandas, sklearn"


class Run(NamedTuple):
    """What a process took."""

    seconds: float
    peak: int  # bytes


def run(arguments: list[str]) -> Run:
    """Run a process and wait for it."""
    started = time.perf_counter()
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed")
    return Run(seconds, usage.ru_maxrss * 1024)


def interleaved(commands: dict[str, list[str]], rounds: int) -> dict[str, list[Run]]:
    """Run every command in turn, so many times."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, arguments in commands.items():
            runs[name].append(run(arguments))
    return runs


def median(runs: list[Run]) -> float:
    """Return the median of the seconds."""
    return statistics.median(r.seconds for r in runs)


def write_inputs(folder: Path, n_rows: int) -> None:
    """Write a model, one row, and many rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n_rows, 20)), columns=[f"x{j}" for j in range(20)])
    y = (X["x0"] + X["x1"] ** 2 > 0.5).to_numpy()
    model = CoCoClassifier((64, 64), n_members=1, max_iter=5, random_state=0)
    model.fit(X[:2000], y[:2000]).save(folder / "model.coco")
    X.to_csv(folder / "many.csv", index=False)
    X[:1].to_csv(folder / "one.csv", index=False)


def main() -> None:
    """Measure, print, and keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # In a process of its own: a child's peak memory begins at that of its parent.
        writer = get_context("spawn").Process(target=write_inputs, args=(folder, options.rows))
        writer.start()
        writer.join()
        model, one, many = (str(folder / f) for f in ("model.coco", "one.csv", "many.csv"))
        out = str(folder / "out.csv")
        starts = interleaved(
            {
                "help": [*COMMAND, "--help"],
                "imports": [sys.executable, "-c", IMPORTS],
                "pandas": [sys.executable, "-c", "import pandas"],
                "predict": [*COMMAND, "predict", model, one, "--out", out],
            },
            options.rounds * 2,
        )
        long = interleaved(
            {
                "pandas": [sys.executable, "-c", f"import pandas; pandas.read_csv({many!r})"],
                "predict": [*COMMAND, "predict", model, many, "--out", out],
            },
            options.rounds,
        )
    results = {
        "help_seconds": median(starts["help"]),
        "imports_seconds": median(starts["imports"]),
        "predict_one_row_seconds": median(starts["predict"]),
        "start_ratio": median(starts["predict"]) / median(starts["imports"]),
        "rows": options.rows,
        "read_csv_seconds": median(long["pandas"]),
        "predict_seconds": median(long["predict"]),
        "speed_of_reading": median(long["pandas"]) / median(long["predict"]),
        "speed_of_reading_once_started": (median(long["pandas"]) - median(starts["pandas"]))
        / (median(long["predict"]) - median(starts["predict"])),
        "peak_bytes": max(r.peak for r in long["predict"]),
    }
    for key, value in results.items():
        print(f"{key:30} {value:,.3f}" if isinstance(value, float) else f"{key:30} {value:,}")
    (RESULTS / "command_line.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
