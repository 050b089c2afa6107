"""Statistics and diagrams for 100 models on 1000 datasets, from the table to the files.

    python bench/comparisons.py            (about a minute)

The target is 10 s for all of one comparison: tests of 4950 pairs, groups, and the diagram as PNG,
SVG and TikZ. (Not called statistics.py: that would hide Python's own module of the name.)
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from cocoloss.report.cd_diagram import cd_diagram
from cocoloss.stats import compare
from timing import readable, save, show

MODELS, DATASETS, LIMIT, REPEATS = 100, 1000, 10.0, 3


def long_table() -> pd.DataFrame:
    """Return 100,000 rows of scores, of models that get better little by little."""
    rng = np.random.default_rng(0)
    difficulty = rng.normal(0, 0.1, (DATASETS, 1))
    scores = 0.7 + difficulty + rng.normal(np.linspace(0, 0.03, MODELS), 0.03, (DATASETS, MODELS))
    dataset, model = np.indices(scores.shape)
    return pd.DataFrame(
        {
            "dataset": [f"dataset {i}" for i in dataset.ravel()],
            "model": [f"model {j}" for j in model.ravel()],
            "score": scores.round(4).ravel(),
        }
    )


def measure(table: pd.DataFrame, test: str, folder: Path) -> dict[str, float]:
    """Return the seconds of each step."""
    clock = [time.perf_counter()]
    comparison = compare(table, test=test)
    clock.append(time.perf_counter())
    cd_diagram(comparison, folder / "diagram.png")
    clock.append(time.perf_counter())
    cd_diagram(comparison, folder / "diagram.svg")
    clock.append(time.perf_counter())
    cd_diagram(comparison, folder / "diagram.pdf")
    clock.append(time.perf_counter())
    steps = dict(zip(("compare", "PNG", "SVG", "PDF"), np.diff(clock).tolist(), strict=True))
    return {**steps, "all": clock[-1] - clock[0]}


def main() -> None:
    """Measure, print, and write results/comparisons.json."""
    table = long_table()
    seconds: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        for test in ("nemenyi", "wilcoxon"):
            runs = [measure(table, test, Path(name)) for _ in range(REPEATS)]
            # The first run counts too: nobody compares twice. Report the slowest.
            seconds[test] = max(runs, key=lambda run: run["all"])
    steps = list(seconds["nemenyi"])
    rows = [[test, *(readable(run[step]) for step in steps)] for test, run in seconds.items()]
    show(f"{MODELS} models, {DATASETS} datasets: slowest of {REPEATS}", ["test", *steps], rows)
    for test, run in seconds.items():
        verdict = "met" if run["all"] < LIMIT else "MISSED"
        print(f"{test}: {run['all']:.2f} s (less than {LIMIT:g}: {verdict})")
    print(f"written: {save('comparisons', {'seconds': seconds}).name}")


if __name__ == "__main__":
    main()
