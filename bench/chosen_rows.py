"""Does it pay to train on chosen rows? Medoids of ``reduce_rows`` beside random rows and all rows.

    python bench/chosen_rows.py --data FOLDER [FOLDER ...]    (ten minutes; resumes where it was)
    python bench/chosen_rows.py --summary                     (only print what is there)

Tables of up to 5,000 training rows, of which 500 are chosen. Kernels: all rows on 1,000 landmarks,
chosen rows by their weights, as many random rows. Networks at an equal number of steps: all rows
for 6 epochs, chosen and random rows for as many more epochs as they are fewer. CPU seconds include
the choosing. One line of JSON per table, split and way is appended to results/chosen_rows.jsonl.

The folders hold ``<name>.csv.gz`` files (class column ``target``) and ``schema.json``.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split

from cocoloss import CoCoClassifier, reduce_rows
from cocoloss.tables import FolderSource
from timing import RESULTS

TABLES = ("pendigits", "phoneme", "satimage", "electricity", "wall-robot-navigation")
MOST_ROWS, MOST_TEST, CHOSEN, EPOCHS, SPLITS = 5000, 4000, 500, 6, 1
STORE = RESULTS / "chosen_rows.jsonl"


def ways(X: Any, y: Any, seed: int) -> dict[str, Callable[[], Any]]:
    """Return what is fitted, each as a function that does all of it."""

    def fitted(rows: Any, weights: Any = None, **arguments: Any) -> Any:
        if arguments:
            more = max(1, round(len(y) / len(rows)))
            arguments |= {"max_iter": EPOCHS * more, "early_stopping": False, "batch_size": 64}
        else:
            arguments = {"solver": "kernel"}
        classifier = CoCoClassifier(random_state=seed, **arguments)
        return classifier.fit(X.iloc[rows], y[rows], sample_weight=weights)

    def chosen(**arguments: Any) -> Any:
        rows, weights, _ = reduce_rows(X, y, CHOSEN, random_state=seed)
        # Whole weights are numbers of copies, which would undo the choice in steps of networks.
        return fitted(rows, weights / weights.mean() + 1e-6, **arguments)

    def drawn(**arguments: Any) -> Any:
        rows = train_test_split(np.arange(len(y)), train_size=CHOSEN, stratify=y, random_state=seed)
        return fitted(rows[0], **arguments)

    everything = np.arange(len(y))
    networks: dict[str, Any] = {"solver": "network", "n_members": 3}
    return {
        "kernels, all rows": lambda: fitted(everything),
        "kernels, chosen rows": chosen,
        "kernels, random rows": drawn,
        "networks, all rows": lambda: fitted(everything, **networks),
        "networks, chosen rows": lambda: chosen(**networks),
        "networks, random rows": lambda: drawn(**networks),
    }


def run(folders: list[Path]) -> None:
    """Append what is not in the store yet."""
    done = set()
    if STORE.exists():
        lines = map(json.loads, STORE.read_text(encoding="utf-8").splitlines())
        done = {(line["table"], line["split"], line["way"]) for line in lines}
    homes = {
        name: folder
        for folder in folders
        for name in TABLES
        if (folder / f"{name}.csv.gz").exists()
    }
    for seed in range(SPLITS):
        for name, folder in homes.items():
            table = FolderSource(folder).load(name)
            y = table.y.to_numpy(str)
            train, test = train_test_split(
                np.arange(len(y)), test_size=0.25, stratify=y, random_state=seed
            )
            train, test = train[:MOST_ROWS], test[:MOST_TEST]
            for way, fit in ways(table.X.iloc[train], y[train], seed).items():
                if (name, seed, way) in done:
                    continue
                started = time.process_time()
                classifier = fit()
                seconds = time.process_time() - started
                score = balanced_accuracy_score(y[test], classifier.predict(table.X.iloc[test]))
                line = {"table": name, "split": seed, "way": way, "rows": len(train)}
                line |= {"balanced accuracy": score, "seconds": seconds}
                with STORE.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")


def summary() -> None:
    """Print means over splits, a line per way."""
    rows = pd.read_json(STORE, lines=True)
    for what in ("balanced accuracy", "seconds"):
        table = rows.pivot_table(index="way", columns="table", values=what, sort=False)
        print(what, table.assign(mean=table.mean(axis=1)).round(3).to_string(), sep="\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, nargs="+", default=[])
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if not given.summary:
        run(given.data)
    summary()
