"""The default classifier beside boosted trees, on tables of some thousand rows and more.

    python bench/large.py --data FOLDER [FOLDER ...] [--most-rows 20000] [--table NAME ...]
    python bench/large.py --summary                            (only print what is there)

Folders are those of bench/tables.py. Three quarters of a table, at most so many of its rows, are
learnt from, and at most 10,000 of the others predicted; one split, seed 0. Everybody counts classes
alike. LightGBM takes part if it is installed. One line of JSON per table and model is appended to
bench/results/large.jsonl; what is there is not run again.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split

from cocoloss import CoCoClassifier
from tables import load, piped
from timing import RESULTS, show

TABLES = (
    *("phoneme", "electricity", "jungle_chess_2pcs_raw_endgame_complete", "adult"),
    *("bank-marketing", "letter", "nursery", "mozilla4", "kropt"),
)
MOST_PREDICTED = 10_000
FEWEST_OF_A_CLASS = 4  # so that both parts have some
STORE = RESULTS / "large.jsonl"


def models() -> dict[str, Callable[[], Any]]:
    """Return who takes part."""
    found: dict[str, Callable[[], Any]] = {
        "CoCoClassifier()": lambda: CoCoClassifier(random_state=0),
        "six networks": lambda: CoCoClassifier(solver="network", random_state=0),
        "hgb-w": piped(HistGradientBoostingClassifier, random_state=0, class_weight="balanced"),
    }
    try:
        from lightgbm import LGBMClassifier  # noqa: PLC0415 - a guest
    except ImportError:
        return found
    quiet = {"random_state": 0, "class_weight": "balanced", "verbose": -1}
    return found | {"lightgbm-w": lambda: LGBMClassifier(**quiet)}


def parts(folders: list[Path], name: str, most_rows: int) -> list[Any]:
    """Return rows to learn from and rows to predict, each with classes."""
    folder = next(folder for folder in folders if (folder / f"{name}.csv.gz").exists())
    X, y = load(folder, name, json.loads((folder / "schema.json").read_text()))
    enough = np.bincount(y)[y] >= FEWEST_OF_A_CLASS
    X, y = X[enough], y[enough]
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.25, stratify=y, random_state=0
    )
    train = np.random.default_rng(0).permutation(len(y_train))[:most_rows]
    test = np.arange(len(y_test))[:MOST_PREDICTED]
    return [X_train.iloc[train], y_train[train], X_test.iloc[test], y_test[test]]


def summarise() -> None:
    """Print balanced accuracy and seconds, table by table."""
    lines = [json.loads(line) for line in STORE.read_text().splitlines()]
    frame = pd.DataFrame(lines).set_index(["table", "model"])
    for measure, digits in (("balanced accuracy", 4), ("fit seconds", 1)):
        grid = frame[measure].unstack().round(digits)
        grid.loc["mean"] = grid.mean()
        rows = [[name, *(f"{value:.{digits}f}" for value in row)] for name, row in grid.iterrows()]
        show(measure, ["table", *grid.columns], rows)


def main() -> None:
    """Run what is missing, and sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", default=[])
    parser.add_argument("--most-rows", type=int, default=20_000)
    parser.add_argument("--table", nargs="+", default=TABLES)
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    done = set()
    if STORE.exists():
        lines = map(json.loads, STORE.read_text().splitlines())
        done = {(line["table"], line["model"]) for line in lines}
    for name in () if options.summary else options.table:
        X, y, X_test, y_test = parts(options.data, name, options.most_rows)
        for model, make in models().items():
            if (name, model) in done:
                continue
            classifier, started = make(), time.perf_counter()
            classifier.fit(X, y)
            seconds = time.perf_counter() - started
            score = balanced_accuracy_score(y_test, classifier.predict(X_test))
            line = {"table": name, "model": model, "rows": len(y)}
            line |= {"balanced accuracy": score, "fit seconds": seconds}
            with STORE.open("a") as file:
                file.write(json.dumps(line) + "\n")
    summarise()


if __name__ == "__main__":
    main()
