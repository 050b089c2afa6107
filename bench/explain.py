"""``explain`` beside SHAP's KernelExplainer: do both rank columns alike, and what does each cost.

    pip install --no-deps --target GUESTS shap slicer numba llvmlite
    PYTHONPATH=GUESTS python bench/explain.py --data FOLDER     (some ten minutes)

Ten tables, at most 1,000 rows to learn from and ten others to explain: seven of classes, whose
largest probability is explained, and three of numbers. KernelExplainer gets 100 training rows as
its background, its own number of samples, and no penalty, which would leave columns out; categories
reach it as codes. What is printed is Spearman's correlation of the two contributions of a row, on
average over rows, and the seconds of the processor that each takes for all rows: give both one
thread (OMP_NUM_THREADS=1).

The folder holds folders, as in TABLES, of ``<name>.csv.gz`` files with a column ``target``.
"""

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import shap
from scipy.stats import spearmanr

from cocoloss import CoCoClassifier, CoCoRegressor

TABLES = (
    *("choosing/heart-statlog", "choosing/glass", "choosing/heart-c", "openml-cc18/credit-g"),
    *("openml-cc18/diabetes", "openml-cc18/vehicle", "openml-cc18/cmc", "regression/concrete"),
    *("regression/autompg", "regression/energy"),
)
MOST_ROWS = 1000
BACKGROUND = 100


class Codes:
    """A table as a matrix of numbers, in which categories are codes, and back."""

    def __init__(self, X: pd.DataFrame) -> None:
        self.names = X.columns
        text = X.select_dtypes(exclude="number")
        self.known = {name: text[name].astype("category").cat.categories for name in text}

    def matrix(self, X: pd.DataFrame) -> Any:
        """Return the codes."""
        coded = X.copy()
        for name, known in self.known.items():
            coded[name] = known.get_indexer(X[name])
        return coded.to_numpy(np.float64)

    def table(self, matrix: Any) -> pd.DataFrame:
        """Return the table of codes."""
        table = pd.DataFrame(matrix, columns=self.names)
        for name, known in self.known.items():
            table[name] = pd.Categorical.from_codes(table[name].astype(int), known).astype(object)
        return table


def measured(folder: Path, name: str, solver: str, n_rows: int, background: int) -> dict[str, Any]:
    """Return the agreement and the seconds of one table."""
    table = pd.read_csv(folder / f"{name}.csv.gz")
    order = np.random.default_rng(0).permutation(len(table))
    X, y = table.drop(columns="target"), table["target"]
    test, train = order[:n_rows], order[n_rows:][:MOST_ROWS]
    kind = CoCoRegressor if name.startswith("regression") else CoCoClassifier
    model = kind(solver=solver, random_state=0).fit(X.iloc[train], y.iloc[train])
    model.explain(X.iloc[test[:1]])  # libraries are loaded
    started = time.process_time()
    ours = model.explain(X.iloc[test], neighbours=0)
    seconds = time.process_time() - started

    codes = Codes(X)
    said = model.predict if kind is CoCoRegressor else model.predict_proba
    peer = shap.KernelExplainer(
        lambda matrix: said(codes.table(matrix)),
        shap.sample(codes.matrix(X.iloc[train]), background, random_state=0),
    )
    started = time.process_time()
    theirs = peer.shap_values(codes.matrix(X.iloc[test]), l1_reg=False, silent=True)
    their_seconds = time.process_time() - started
    if kind is CoCoClassifier:
        best = np.searchsorted(model.classes_, ours.of)
        theirs = theirs[np.arange(len(test)), :, best]
    rows = zip(ours.contributions.to_numpy(), theirs, strict=True)
    return {
        "table": name,
        "columns": X.shape[1],
        "Spearman": float(np.mean([spearmanr(a, b)[0] for a, b in rows])),
        "seconds": seconds,
        "KernelExplainer": their_seconds,
        "times faster": their_seconds / seconds,
    }


def main(folder: Path, solver: str, n_rows: int, background: int, tables: list[str]) -> None:
    """Print a line for each table, and their means."""
    found = []
    for name in tables:
        found.append(measured(folder, name, solver, n_rows, background))
        print({k: round(v, 3) if isinstance(v, float) else v for k, v in found[-1].items()})
    frame = pd.DataFrame(found).set_index("table")
    print(f"\n{frame.round(3).to_string()}")
    faster = np.exp(np.log(frame["times faster"]).mean())
    print(
        f"\nmean Spearman {frame['Spearman'].mean():.3f}, least {frame['Spearman'].min():.3f}; "
        f"{faster:.0f} times faster (geometric mean), at least {frame['times faster'].min():.0f}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--rows", type=int, default=10)
    parser.add_argument("--background", type=int, default=BACKGROUND)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    main(given.data, given.solver, given.rows, given.background, given.tables)
