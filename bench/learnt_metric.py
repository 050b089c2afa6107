"""What the learnt metric knows: importances beside permutation importances, and columns of noise.

    python bench/learnt_metric.py --data FOLDER [FOLDER ...]   (a quarter of an hour; resumes)

Every table is cut to 1,000 training rows and as many others at most; two stratified splits. All
models and all scores count classes alike.

Importances: ``feature_importances_`` of the closed form and the gains of LightGBM, and of either
fitted model scikit-learn's permutation importances: the rise of the log loss, mean of five repeats,
of 500 rows that were not learnt from.

Noise: columns that say nothing are added, in turn standard normal and shuffled copies of columns
drawn from the table; few are the first of many. madelon is taken as it is.

Tables were chosen before anything was fitted: of the 21 in the two folders of classification tables
that have at least 1,500 rows, 8 to 40 columns and at most ten classes, in the order of their names
every second, ten in all. Noise is added to every third of these.

One line of JSON per table, number of added columns, split and model is appended to
results/learnt_metric.jsonl; what is there is not run again. Seconds are the processor's.
"""

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.inspection import permutation_importance
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.utils.class_weight import compute_sample_weight

from cocoloss import CoCoClassifier
from cocoloss.kernels.search import USUAL
from cocoloss.tables import FolderSource
from tables import piped
from timing import RESULTS

TABLES = (
    *("adult", "cardiotocography", "electricity", "hypothyroid", "kc1", "nursery", "pendigits"),
    *("Satellite", "segment", "steel-plates-fault"),
)
NOISY = TABLES[::3]
AS_IT_IS = "madelon"
ADDED = (0, 500, 100, 30, 200, 10)
SPLITS, MOST_ROWS = 2, 1000
SHUFFLED, REPEATS = 500, 5
STORE = RESULTS / "learnt_metric.jsonl"

Split = tuple[pd.DataFrame, NDArray[np.int64], pd.DataFrame, NDArray[np.int64]]


class WithoutMetric(CoCoClassifier):
    """The closed form with columns as they are scaled: no metric is learnt."""

    def fit(self, X: Any, y: Any) -> "WithoutMetric":
        """Fit without a round in which columns are weighed anew."""
        with patch("cocoloss.kernels.classes.USUAL", replace(USUAL, rounds=0)):
            super().fit(X, y)
        return self


KERNELS, PLAIN, TREES = "closed form", "closed form, no metric", "LightGBM"
MODELS: dict[str, Callable[[], Any]] = {
    KERNELS: lambda: CoCoClassifier(solver="kernel", random_state=0),
    PLAIN: lambda: WithoutMetric(solver="kernel", random_state=0),
    "networks": lambda: CoCoClassifier(solver="network", random_state=0),
    TREES: lambda: LGBMClassifier(
        class_weight="balanced", importance_type="gain", random_state=0, n_jobs=1, verbose=-1
    ),
    "random forest": piped(
        RandomForestClassifier, n_estimators=500, class_weight="balanced", random_state=0
    ),
}

WITH_IMPORTANCES = (KERNELS, TREES)


def with_noise(X: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    """Return a table with n more columns, of which the first are those of a smaller n."""
    added = {}
    for k in range(n):
        generator = np.random.default_rng([seed, k])
        if k % 2:
            copied = X.iloc[:, generator.integers(X.shape[1])]
            added[f"noise {k}"] = copied.iloc[generator.permutation(len(X))].set_axis(X.index)
        else:
            added[f"noise {k}"] = pd.Series(generator.standard_normal(len(X)), X.index)
    return pd.concat([X, pd.DataFrame(added, index=X.index)], axis=1)


def split_of(source: FolderSource, name: str, n_added: int, seed: int) -> Split:
    """Return rows to learn from and others, each with classes."""
    table = source.load(name)
    y = np.unique(table.y.to_numpy(str), return_inverse=True)[1]
    n_test = min(MOST_ROWS, max(len(y) // 4, len(y) - MOST_ROWS))
    train, test = train_test_split(
        np.arange(len(y)),
        train_size=min(MOST_ROWS, len(y) - n_test),
        test_size=n_test,
        stratify=y,
        random_state=seed,
    )
    rows = table.X.iloc[np.r_[train, test]].reset_index(drop=True)
    rows = rows.set_axis([f"column {k}" for k in range(rows.shape[1])], axis=1)  # LightGBM: no ":"
    X = with_noise(rows, n_added, seed)
    return X[: len(train)], y[train], X[len(train) :], y[test]


def scored(model: Any, split: Split) -> dict[str, Any]:
    """Fit a model, and say how good it is, all classes alike, and how long it took."""
    X, y, X_test, y_test = split
    started = time.process_time()
    model.fit(X, y)
    fitted = time.process_time()
    proba = model.predict_proba(X_test)
    ended = time.process_time()
    alike = compute_sample_weight("balanced", y_test)
    said = np.asarray(model.classes_)[proba.argmax(axis=1)]
    return {
        "balanced accuracy": balanced_accuracy_score(y_test, said),
        "log loss": log_loss(y_test, proba, sample_weight=alike, labels=model.classes_),
        "fit seconds": round(fitted - started, 2),
        "predict seconds": round(ended - fitted, 2),
    }


def shares(model: Any) -> NDArray[np.float64]:
    """Return a fitted model's own importances of columns, which sum to one."""
    own = np.asarray(model.feature_importances_, dtype=float)
    return own / own.sum()


def by_shuffling(model: Any, split: Split) -> NDArray[np.float64]:
    """Return by how much the log loss rises when a column is shuffled."""
    X, y = split[2][:SHUFFLED], split[3][:SHUFFLED]
    return permutation_importance(
        model,
        X,
        y,
        scoring="neg_log_loss",
        n_repeats=REPEATS,
        random_state=0,
        sample_weight=compute_sample_weight("balanced", y),
    ).importances_mean


def run(source: FolderSource, name: str, n_added: int, seed: int, model_name: str) -> Any:
    """Return the line of a model on one split of a table with so many columns of noise."""
    split = split_of(source, name, n_added, seed)
    model = MODELS[model_name]()
    line = {"table": name, "added": n_added, "split": seed, "model": model_name}
    line |= {"columns": split[0].shape[1]} | scored(model, split)
    if n_added and hasattr(model, "feature_importances_"):
        line["share of noise"] = round(float(shares(model)[-n_added:].sum()), 6)
    if name in TABLES and not n_added and model_name in WITH_IMPORTANCES:
        line["own"] = shares(model).round(6).tolist()
        started = time.process_time()
        line["by shuffling"] = by_shuffling(model, split).round(6).tolist()
        line["shuffling seconds"] = round(time.process_time() - started, 2)
    return line


def cells() -> Iterator[tuple[str, int, int, str]]:
    """Yield table, added columns, split and model; the ends of the curves before what is between.

    So that there is something to see where there is no time for all.
    """
    for split, name, model in itertools.product(range(SPLITS), TABLES, WITH_IMPORTANCES):
        yield name, 0, split, model
    for split in range(SPLITS):
        for model in MODELS:
            yield AS_IT_IS, 0, split, model
        for n_added, name, model in itertools.product(ADDED, NOISY, MODELS):
            yield name, n_added, split, model


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="folders of tables")
    sources = [FolderSource(folder) for folder in parser.parse_args().data]
    where = {name: source for source in sources for name in source.names()}
    missing = [name for name in (*TABLES, AS_IT_IS) if name not in where]
    if missing:
        parser.error(f"no folder of --data has {', '.join(missing)}")
    warnings.simplefilter("ignore")
    done = set()
    if STORE.exists():
        lines = map(json.loads, STORE.read_text(encoding="utf-8").splitlines())
        done = {tuple(line[key] for key in ("table", "added", "split", "model")) for line in lines}
    for cell in dict.fromkeys(cells()):
        if cell not in done:
            line = json.dumps(run(where[cell[0]], *cell))
            with STORE.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


if __name__ == "__main__":
    main()
