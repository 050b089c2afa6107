"""The default CoCoClassifier beside scikit-learn's classifiers, over a folder of tables.

    python bench/tables.py --data FOLDER --most-rows 5000      (about an hour; resumes where it was)

The folder holds ``<name>.csv.gz`` files (class column ``target``) and ``schema.json`` (name ->
categorical columns). First three folds of a stratified ten-fold split, seed 0. Every model gets
the table through the same preprocessing, fitted on the training rows. One line of JSON per fold is
appended to the store; a fold that is there is not run again.
"""

import argparse
import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch  # noqa: F401 - so that no fit pays for the import
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from cocoloss import CoCoClassifier
from cocoloss.preprocessing import TablePreprocessor
from timing import RESULTS, show

FOLDS = 3


def piped(make: Callable[..., Any], **arguments: Any) -> Callable[[], Any]:
    """Put the same preprocessing before a classifier."""
    return lambda: make_pipeline(TablePreprocessor(), make(**arguments))


MODELS: dict[str, Callable[[], Any]] = {
    "coco": lambda: CoCoClassifier(random_state=0),
    "coco empirical": lambda: CoCoClassifier(random_state=0, priors="empirical"),
    "rf": piped(RandomForestClassifier, n_estimators=500, random_state=0),
    "rf-w": piped(
        RandomForestClassifier, n_estimators=500, random_state=0, class_weight="balanced"
    ),
    "hgb": piped(HistGradientBoostingClassifier, random_state=0),
    "hgb-w": piped(HistGradientBoostingClassifier, random_state=0, class_weight="balanced"),
    "svc": piped(SVC, C=10),
    "svc-w": piped(SVC, C=10, class_weight="balanced"),
    "mlp": piped(MLPClassifier, random_state=0),
}


def load(folder: Path, name: str, schema: dict[str, Any]) -> tuple[pd.DataFrame, np.ndarray]:
    """Read a table; categories stay categories, also those that are coded as integers."""
    categorical = schema[name]["categorical"]
    frame = pd.read_csv(
        folder / f"{name}.csv.gz",
        dtype=dict.fromkeys([*categorical, "target"], str),
        keep_default_na=False,
        na_values=[""],
    )
    target = np.unique(frame.pop("target").to_numpy(str), return_inverse=True)[1]
    return frame.astype(dict.fromkeys(categorical, "category")), target


def run_apart(model: str, X: pd.DataFrame, y: np.ndarray, fold: int) -> dict[str, Any]:
    """Run a fold in a process of its own, which shows what memory the fit took."""
    with get_context("fork").Pool(1) as pool:  # it has the table and the libraries already
        return pool.apply(run_fold, (model, X, y, fold))


def run_fold(model: str, X: pd.DataFrame, y: np.ndarray, fold: int) -> dict[str, Any]:
    """Fit on one fold and say how well it did, how long it took, and at what memory."""
    splits = StratifiedKFold(10, shuffle=True, random_state=0).split(X, y)
    train, test = next(split for i, split in enumerate(splits) if i == fold)
    classifier = MODELS[model]()
    before = peak_megabytes()
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLPClassifier says that it has not converged
        classifier.fit(X.iloc[train], y[train])
    seconds = time.perf_counter() - started
    megabytes = peak_megabytes() - before
    result = {
        "balanced accuracy": balanced_accuracy_score(y[test], classifier.predict(X.iloc[test])),
        "fit seconds": seconds,
        "fit megabytes": megabytes,
    }
    if hasattr(classifier, "predict_proba"):
        proba = classifier.predict_proba(X.iloc[test])
        result["log loss"] = log_loss(y[test], proba, labels=classifier.classes_)
    return result


def peak_megabytes() -> float:
    """Return the most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def summarise(store: Path) -> None:
    """Print the means over the tables that every model has finished."""
    frame = pd.DataFrame([json.loads(line) for line in store.read_text().splitlines()])
    per_table = frame.groupby(["table", "model"]).mean(numeric_only=True).reset_index()
    counts = frame.groupby(["table", "model"]).size().unstack()
    complete = counts.index[
        (counts.reindex(columns=list(frame.model.unique())) == FOLDS).all(axis=1)
    ]
    means = per_table[per_table.table.isin(complete)].groupby("model").mean(numeric_only=True)
    columns = ["balanced accuracy", "log loss", "fit seconds", "fit megabytes"]
    rows = [
        [name, *(f"{means.loc[name, c]:.4f}" for c in columns)]
        for name in MODELS
        if name in means.index
    ]
    show(f"means over {len(complete)} tables", ["model", *columns], rows)


def main() -> None:
    """Run what is missing, then print the means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--most-rows", type=int, default=5000)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--store", type=Path, default=RESULTS / "tables.jsonl")
    parser.add_argument("--summary", action="store_true", help="only print what is there")
    options = parser.parse_args()
    if options.summary:
        summarise(options.store)
        return
    if not (options.data / "schema.json").exists():
        sys.exit(f"{options.data} holds no schema.json; give a folder of tables with --data")
    schema = json.loads((options.data / "schema.json").read_text())
    sizes = {name: sum(entry["target_classes"].values()) for name, entry in schema.items()}
    names = sorted((n for n in schema if sizes[n] <= options.most_rows), key=sizes.__getitem__)
    options.store.parent.mkdir(exist_ok=True)
    options.store.touch()
    lines = [json.loads(line) for line in options.store.read_text().splitlines()]
    done = {(r["table"], r["model"], r["fold"]) for r in lines}
    for model in options.models.split(","):
        for number, name in enumerate(names):
            missing = [fold for fold in range(FOLDS) if (name, model, fold) not in done]
            if not missing:
                continue
            X, y = load(options.data, name, schema)
            for fold in missing:
                key = {"table": name, "model": model, "fold": fold}
                result = run_apart(model, X, y, fold)
                with options.store.open("a") as file:
                    file.write(json.dumps(key | result) + "\n")
            print(f"{model} {number + 1}/{len(names)} {name}: {result}", flush=True)
    summarise(options.store)


if __name__ == "__main__":
    main()
