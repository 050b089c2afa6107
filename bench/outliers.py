"""Outlier scores beside IsolationForest and LocalOutlierFactor: are odd rows found.

    python bench/outliers.py --data FOLDER                     (some minutes)

Ten tables of numbers, at most 1,000 rows to learn from and 1,000 others. These are compared with
what becomes of them: 20 standard deviations added to all columns or to one, all multiplied by ten,
and each column shuffled by itself, which leaves every value as it was and no combination. What is
printed is the area under the ROC curve: the share of pairs in which the odd row has the higher
score. scikit-learn's two get the table standardised.

The folder holds ``<name>.csv.gz`` files (class column ``target``) and ``schema.json``.
"""

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cocoloss import CoCoClassifier, CoCoRegressor
from cocoloss.tables import FolderSource

TABLES = (
    *("wdbc", "diabetes", "vehicle", "segment", "phoneme", "banknote-authentication", "ilpd"),
    *("wilt", "pendigits", "steel-plates-fault"),
)
MOST_ROWS = 1000
Rows = NDArray[np.float64]


Scorer = Callable[[Rows], Any]


def made_odd(X: Rows, deviation: Rows) -> dict[str, Rows]:
    """Return what becomes of rows, by the name of what is done to them."""
    rng = np.random.default_rng(0)
    one_column = np.eye(X.shape[1])[rng.integers(X.shape[1], size=len(X))]
    return {
        "+20 sd": X + 20 * deviation,
        "+20 sd, one column": X + 20 * deviation * one_column,
        "x10": 10 * X,
        "shuffled": rng.permuted(X, axis=0),
    }


def kernels(X: Rows, y: NDArray[np.int64]) -> Scorer:
    """Fit the default."""
    return CoCoClassifier(random_state=0).fit(X, y).outlier_score


def networks(X: Rows, y: NDArray[np.int64]) -> Scorer:
    """Fit networks as they come."""
    return CoCoClassifier(solver="network", random_state=0).fit(X, y).outlier_score


def numbers(X: Rows, y: NDArray[np.int64]) -> Scorer:
    """Fit the regressor to the positions of the classes."""
    return CoCoRegressor(random_state=0).fit(X, y.astype(float)).outlier_score


def forest(X: Rows, _: NDArray[np.int64]) -> Scorer:
    """Fit an isolation forest."""
    fitted = make_pipeline(StandardScaler(), IsolationForest(random_state=0)).fit(X)
    return lambda Z: -fitted.score_samples(Z)


def local(X: Rows, _: NDArray[np.int64]) -> Scorer:
    """Fit the local outlier factor."""
    fitted = make_pipeline(StandardScaler(), LocalOutlierFactor(novelty=True)).fit(X)
    return lambda Z: -fitted.score_samples(Z)


MODELS = {
    "kernels": kernels,
    "networks": networks,
    "numbers": numbers,
    "IsolationForest": forest,
    "LocalOutlierFactor": local,
}


def main(folder: Path, models: list[str], tables: list[str]) -> None:
    """Print a table for each way of being odd."""
    found = []
    for name in tables:
        table = FolderSource(folder).load(name)
        X = table.X.select_dtypes("number").to_numpy(np.float64)
        y = np.unique(table.y.to_numpy(str), return_inverse=True)[1]
        n_train = min(MOST_ROWS, len(y) // 2)
        train, test = train_test_split(
            np.arange(len(y)), train_size=n_train, stratify=y, random_state=0
        )
        usual = X[test[:MOST_ROWS]]
        strange = made_odd(usual, X[train].std(axis=0))
        truth = np.repeat([0, 1], len(usual))
        for model in models:
            score = MODELS[model](X[train], y[train])
            for odd, odd_rows in strange.items():
                area = roc_auc_score(truth, np.concatenate([score(usual), score(odd_rows)]))
                found.append({"odd": odd, "table": name, "model": model, "AUROC": area})
    rows = pd.DataFrame(found)
    for odd, of_odd in rows.groupby("odd", sort=False):
        part = of_odd.pivot(index="table", columns="model", values="AUROC")
        part = part.loc[tables, models]
        part.loc["mean"] = part.mean()
        print(f"\n{odd}\n{part.round(3).to_string()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    main(given.data, given.models, given.tables)
