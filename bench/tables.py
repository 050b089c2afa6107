"""The default CoCoClassifier beside scikit-learn's classifiers, over a folder of tables.

    python bench/tables.py --data FOLDER --most-rows 5000      (about an hour; resumes where it was)
    python bench/tables.py --summary                           (only print what is there)

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

import cocoloss
from cocoloss import CoCoClassifier
from cocoloss.benchmark.tasks import source_digest
from cocoloss.columns import TablePreprocessor
from timing import RESULTS, show

FOLDS = 3
DIGITS = {"balanced accuracy": 4, "log loss": 3, "fit seconds": 1}  # of what is printed
EXTREMES = 8  # largest leads and deficits that are printed


def piped(make: Callable[..., Any], **arguments: Any) -> Callable[[], Any]:
    """Put the same preprocessing before a classifier."""
    return lambda: make_pipeline(TablePreprocessor(), make(**arguments))


MODELS: dict[str, Callable[[], Any]] = {
    "coco": lambda: CoCoClassifier(solver="network", random_state=0),
    "coco empirical": lambda: CoCoClassifier(solver="network", random_state=0, priors="empirical"),
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
    """Print means and ranks over the tables that every model has finished, and coco's leads."""
    lines = store.read_text().splitlines() if store.exists() else []
    if not lines:
        sys.exit(f"{store} holds no results: there is nothing to sum up")
    frame = pd.DataFrame([json.loads(line) for line in lines])
    columns = [*DIGITS, "fit megabytes"]
    frame = frame.reindex(columns=["table", "model", *columns])  # SVMs alone have no log loss
    counts = frame.groupby(["table", "model"]).size().unstack()
    complete = counts.index[(counts == FOLDS).all(axis=1)]
    over_folds = frame[frame.table.isin(complete)].groupby(["table", "model"])
    measures = over_folds[columns].mean().unstack()  # columns: measure, model
    if measures.empty:
        sys.exit(f"{store}: no table is finished by all of {', '.join(counts.columns)}")
    models = [name for name in MODELS if name in counts.columns]
    scores = measures["balanced accuracy"].round(12)  # ties are ties in the last digit, too
    ranks = scores.rank(axis=1, ascending=False).mean()
    means = measures.mean().unstack().T
    show(
        f"means over {len(complete)} tables",
        ["model", "average rank", *DIGITS],
        [
            [model, f"{ranks[model]:.2f}"]
            + [f"{means.loc[model, name]:.{digits}f}" for name, digits in DIGITS.items()]
            for model in models
        ],
    )
    megabytes = measures["fit megabytes"]
    show(
        "memory of a fit, MB, beyond table and libraries",
        ["model", "median table", "largest table"],
        [[m, f"{megabytes[m].median():.0f}", f"{megabytes[m].max():.0f}"] for m in models],
    )
    peers = [name for name in models if not name.startswith("coco")]
    if "coco" in models and peers:
        show_leads(scores, peers)


def show_leads(scores: pd.DataFrame, peers: list[str]) -> None:
    """Print how coco does against each peer, and where it wins and loses most against the best."""
    over = scores[["coco"]].to_numpy() - scores[peers]  # tables x peers
    show(
        "coco against each peer",
        ["peer", "won", "tied", "lost", "mean lead in points", "median lead"],
        [
            [
                peer,
                *(str(which.sum()) for which in (lead > 0, lead == 0, lead < 0)),
                *(f"{100 * value:+.1f}" for value in (lead.mean(), lead.median())),
            ]
            for peer, lead in over.items()
        ],
    )
    leads = (scores["coco"] - scores[peers].max(axis=1)).sort_values(ascending=False)
    ends = leads if len(leads) <= 2 * EXTREMES else pd.concat([leads[:EXTREMES], leads[-EXTREMES:]])
    show(
        f"coco against the best peer: {(leads > 0).sum()} won, {(leads == 0).sum()} tied, "
        f"{(leads < 0).sum()} lost",
        ["table", "lead in points", "coco", "best peer", "is"],
        [
            [
                table,
                f"{100 * lead:+.1f}",
                f"{scores.loc[table, 'coco']:.4f}",
                f"{scores.loc[table, peers].max():.4f}",
                scores.loc[table, peers].idxmax(),
            ]
            for table, lead in ends.items()
        ],
    )


def main() -> None:
    """Run what is missing, then print the means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--most-rows", type=int, default=5000)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--store", type=Path, default=RESULTS / "tables.jsonl")
    parser.add_argument("--summary", action="store_true", help="only print what is there")
    options = parser.parse_args()
    if options.summary:
        summarise(options.store)
        return
    if options.data is None:
        sys.exit("give a folder of tables with --data, or --summary to print what is there")
    if not (options.data / "schema.json").exists():
        sys.exit(f"{options.data} holds no schema.json; give a folder of tables with --data")
    if unknown := set(options.models.split(",")) - set(MODELS):
        sys.exit(f"unknown models: {', '.join(sorted(unknown))}; there are {', '.join(MODELS)}")
    schema = json.loads((options.data / "schema.json").read_text())
    sizes = {name: sum(entry["target_classes"].values()) for name, entry in schema.items()}
    names = sorted((n for n in schema if sizes[n] <= options.most_rows), key=sizes.__getitem__)
    source = source_digest(Path(cocoloss.__file__).parent)
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
                    file.write(json.dumps(key | result | {"source": source}) + "\n")
            print(f"{model} {number + 1}/{len(names)} {name}: {result}", flush=True)
    summarise(options.store)


if __name__ == "__main__":
    main()
