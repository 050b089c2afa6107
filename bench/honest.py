"""Is what a fit says of itself true? ``quality_`` beside the same measures on rows kept apart.

    python bench/honest.py --data FOLDER [FOLDER ...] [--solver auto] [--rows 500]

Of each table so many rows are drawn to learn from, and at most 2,000 others are scored. Printed for
each measure: the mean of what the fit said and of what test rows have, and how often the two are
within two standard errors of their difference, which for errors that are right is 95 %.

The folders hold ``<name>.csv.gz`` files (class column ``target``) and ``schema.json``.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from cocoloss import CoCoClassifier
from cocoloss.metrics.quality import class_measures
from cocoloss.tables import FolderSource
from small import drawn


def main() -> None:
    """Fit, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", type=Path, required=True)
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rows = []
    for path in sorted(path for folder in given.data for path in folder.glob("*.csv.gz")):
        name = path.name.removesuffix(".csv.gz")
        table = FolderSource(path.parent).load(name)
        y = np.unique(table.y.to_numpy(str), return_inverse=True)[1]
        train, test = drawn(y, given.rows, given.seed)
        if len(train) < given.rows or len(test) < 100:
            continue
        classifier = CoCoClassifier(solver=given.solver, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said = classifier.fit(table.X.iloc[train], y[train]).quality_
            proba = classifier.predict_proba(table.X.iloc[test])
        place = np.searchsorted(classifier.classes_, y[test])
        found = class_measures(place, proba, np.ones(len(test)), classifier.class_prior_)
        for measure, (value, error, guess) in found.items():
            mine = said[measure]
            near = abs(mine.value - value) <= 2 * np.hypot(mine.error, error)
            rows.append((name, said.how, said.n_rows, measure, mine.value, value, near, guess))
        print(f"{name:30}{said}", flush=True)
    names = ("table", "how", "rows", "measure", "said", "found", "within", "guess")
    frame = pd.DataFrame(rows, columns=names)
    print(f"\n{frame['table'].nunique()} tables, {given.rows} rows, solver {given.solver}")
    print(frame.groupby("measure")[["said", "found", "within"]].mean().round(3).to_string())


if __name__ == "__main__":
    main()
