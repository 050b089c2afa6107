"""Small tables: log loss beside that of guessing, on tables cut to 30, 60, 100 and 150 rows.

    python bench/small.py --data FOLDER [FOLDER ...]     (an hour; resumes where it was)
    python bench/small.py --summary                      (only print what is there)

Training rows are drawn by class, two of each first, as far as they go, and the others in
proportion; at most 2,000 other rows of the same classes are scored, under the shares of the classes
in training (``priors="empirical"``). Guessing answers these shares to every row. One line of JSON
per table, size and solver is appended to the store, by default results/small.jsonl.

The folders hold ``<name>.csv.gz`` files (class column ``target``) and ``schema.json``.
"""

import argparse
import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cocoloss import CoCoClassifier
from cocoloss.tables import FolderSource
from timing import RESULTS

SIZES, MOST_TEST = (30, 60, 100, 150), 2000
SOLVERS = {"kernels": "auto", "networks": "network"}
ALLOWED = 0.05  # how much worse than guessing a model may be


def drawn(
    y: NDArray[np.int64], n_rows: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return training rows and rows to score, of the same classes."""
    shuffled = np.random.default_rng([seed, n_rows]).permutation(len(y))
    place = np.empty(len(y))  # of each row among those of its class, as a share of them
    first = np.zeros(len(y), dtype=bool)
    counts = np.bincount(y)
    for c in np.argsort(-counts, kind="stable"):
        rows = shuffled[y[shuffled] == c]
        place[rows] = (np.arange(len(rows)) + 0.5) / len(rows)
        first[rows[:2]] = first.sum() + 2 <= n_rows
    order = np.lexsort([place, ~first])
    train = order[:n_rows]
    others = shuffled[~np.isin(shuffled, train) & np.isin(y[shuffled], y[train])]
    return train, others[:MOST_TEST]


def log_loss(p: NDArray[np.float64], classes: NDArray[np.int64], y: NDArray[np.int64]) -> float:
    """Return the mean of -log p of the true classes."""
    of_truth = p[np.arange(len(y)), np.searchsorted(classes, y)]
    return float(-np.log(np.maximum(of_truth, np.finfo(np.float64).tiny)).mean())


def run(
    folders: Sequence[Path],
    sizes: Sequence[int],
    solvers: Sequence[str],
    tables: Sequence[str],
    store: Path,
    seed: int,
) -> None:
    """Append what is not in the store yet; the smallest files come first."""
    done = set()
    if store.exists():
        lines = map(json.loads, store.read_text(encoding="utf-8").splitlines())
        done = {(line["table"], line["rows"], line["solver"]) for line in lines}
    files = sorted(
        (file for folder in folders for file in folder.glob("*.csv.gz")),
        key=lambda file: file.stat().st_size,
    )
    for file in files:
        name = file.name.removesuffix(".csv.gz")
        jobs = [(n, solver) for n in sizes for solver in solvers if (name, n, solver) not in done]
        if not jobs or (tables and name not in tables):
            continue
        table = FolderSource(file.parent).load(name)
        y = np.unique(table.y.to_numpy(str), return_inverse=True)[1]
        for n_rows, solver in jobs:
            train, test = drawn(y, n_rows, seed)
            if len(train) == n_rows and len(test):
                started = time.perf_counter()
                classifier = CoCoClassifier(
                    solver=SOLVERS[solver], priors="empirical", random_state=0
                ).fit(table.X.iloc[train], y[train])
                seconds = time.perf_counter() - started
                p = classifier.predict_proba(table.X.iloc[test])
                classes, counts = np.unique(y[train], return_counts=True)
                guess = np.broadcast_to(counts / n_rows, p.shape)
                line = {"table": name, "rows": n_rows, "solver": solver, "classes": len(classes)}
                line["guess"] = log_loss(guess, classes, y[test])
                line["log loss"] = log_loss(p, classes, y[test])
                line["accuracy"] = float((classes[p.argmax(axis=1)] == y[test]).mean())
                line["seconds"] = round(seconds, 2)
                with store.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(line) + "\n")


def summary(store: Path) -> None:
    """Print means, and what is worse than guessing."""
    rows = pd.read_json(store, lines=True)
    rows["excess"] = rows["log loss"] - rows["guess"]
    for (solver, n_rows), part in rows.groupby(["solver", "rows"]):
        worse = part[part["excess"] > ALLOWED].sort_values("excess", ascending=False)
        print(
            f"{solver}, {n_rows} rows, {len(part)} tables: log loss {part['log loss'].mean():.3f}, "
            f"guessing {part['guess'].mean():.3f}, accuracy {part['accuracy'].mean():.4f}, "
            f"{part['seconds'].median():.1f} s; worst {part['excess'].max():+.3f}; "
            f"{len(worse)} worse by more than {ALLOWED}"
        )
        named = (f"{line.table} {line.excess:+.2f}" for line in worse.itertuples())
        print("  " + ", ".join(named))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, nargs="+", default=[])
    parser.add_argument("--rows", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--solvers", nargs="+", default=list(SOLVERS), choices=list(SOLVERS))
    parser.add_argument("--tables", nargs="+", default=[])
    parser.add_argument("--store", type=Path, default=RESULTS / "small.jsonl")
    parser.add_argument("--seed", type=int, default=0, help="of the draw; name another store, too")
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if not given.summary:
        run(given.data, given.rows, given.solvers, given.tables, given.store, given.seed)
    summary(given.store)
