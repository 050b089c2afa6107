"""A few models on one table, cross-validated side by side: like meets like."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils import _safe_indexing

from cocoloss._checks import check_integer, check_option
from cocoloss.benchmark.folds import Fold, stratified_folds
from cocoloss.benchmark.measures import balanced_accuracy, first_embedding, log_loss
from cocoloss.columns import TablePreprocessor
from cocoloss.estimators import (
    CoCoClassifier,
    CrossEntropyClassifier,
    DotRegressionClassifier,
    cross_validate_lockstep,
)
from cocoloss.exceptions import CoCoError
from cocoloss.metrics import dispersity, neural_collapse

PRIORS = ("uniform", "empirical")
Fitted = tuple[Any, NDArray[np.intp], float]  # a classifier, its test rows, seconds of its fit


def _forest(priors: str, seed: int) -> Any:
    forest = RandomForestClassifier(
        500, class_weight=_weights(priors), random_state=seed, n_jobs=-1
    )
    return make_pipeline(TablePreprocessor(), forest)


def _kernel_svm(priors: str, seed: int) -> Any:  # noqa: ARG001 - it draws nothing
    svm = SVC(C=10, class_weight=_weights(priors), decision_function_shape="ovr")
    return make_pipeline(TablePreprocessor(), svm)


def _weights(priors: str) -> str | None:
    """Return the class weights that ask a peer for what the priors ask of our models."""
    return "balanced" if priors == "uniform" else None


NETWORKS = {"coco": CoCoClassifier, "dr": DotRegressionClassifier, "ce": CrossEntropyClassifier}
PEERS: dict[str, Callable[[str, int], Any]] = {"rf": _forest, "ksvm": _kernel_svm}
NAMES = {
    "coco": "CoCo",
    "dr": "dot regression",
    "ce": "cross-entropy",
    "rf": "random forest",
    "ksvm": "kernel SVM",
}


@dataclass(frozen=True)
class Evaluation:
    """What cross-validation says of a model.

    Attributes
    ----------
    model : str
        Its short name, such as "coco".
    folds : dict of str to array of shape (n_folds,)
        Each measure on the test rows of each fold; NaN where a model has no such measure.
    seconds : float
        Mean time of a fit.
    """

    model: str
    folds: dict[str, NDArray[np.float64]]
    seconds: float

    def mean(self, measure: str) -> float:
        """Return the mean of a measure over the folds; NaN if no fold has it."""
        values = self.folds[measure]
        return float(np.nan if np.isnan(values).all() else np.nanmean(values))

    def spread(self, measure: str) -> float:
        """Return the standard deviation of a measure over the folds."""
        values = self.folds[measure]
        return float(np.nan if np.isnan(values).all() else np.nanstd(values))


MEASURES = ("balanced_accuracy", "accuracy", "log_loss", "dispersity", "nc1", "nc2", "nc4")


def evaluate_models(
    X: Any,
    y: Any,
    models: Sequence[str] = tuple(NAMES),
    *,
    n_folds: int = 10,
    priors: str = "uniform",
    seed: int = 0,
    network_options: dict[str, Any] | None = None,
    on_model: Callable[[str], object] | None = None,
) -> list[Evaluation]:
    """Cross-validate models on one table, all on the same folds.

    Networks train all folds in lockstep. With "uniform" priors the peers weigh the classes alike
    as well; with "empirical" ones nobody does.

    Parameters
    ----------
    X, y
        A table and its classes.
    models : sequence of str
        Of "coco", "dr", "ce", "rf" (500 trees) and "ksvm" (C = 10, scikit-learn's width).
    n_folds : int
        Stratified and shuffled.
    priors : {"uniform", "empirical"}
        Whether classes count alike or as often as they occur.
    seed : int
        Of folds and models.
    network_options : dict, optional
        Further arguments of the networks' classifiers.
    on_model : callable, optional
        Told the name of each model before its turn.

    Returns
    -------
    list of Evaluation
        In the order of ``models``.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> (coco,) = evaluate_models(X, y, ["coco"], n_folds=3, network_options={"max_iter": 20})
    >>> coco.mean("balanced_accuracy") > 0.9
    True
    """
    for model in models:
        check_option(model, "model", NAMES)
    check_option(priors, "priors", PRIORS)
    check_integer(n_folds, "n_folds", minimum=2)
    y = np.asarray(y)
    splits = _folds(y, n_folds, seed)
    evaluations = []
    for model in models:
        if on_model is not None:
            on_model(model)
        if model in NETWORKS:
            options: dict[str, Any] = {"priors": priors, "random_state": seed}
            options |= network_options or {}
            fitted = _fit_in_lockstep(NETWORKS[model](**options), X, y, splits)
        else:
            fitted = _fit_one_by_one(PEERS[model](priors, seed), X, y, splits)
        rows = [_measure(classifier, X, y, test) for classifier, test, _ in fitted]
        folds = {name: np.array([row[name] for row in rows]) for name in MEASURES}
        seconds = float(np.mean([seconds for *_, seconds in fitted]))
        evaluations.append(Evaluation(model, folds, seconds))
    return evaluations


def _folds(y: NDArray[Any], n_folds: int, seed: int) -> list[Fold]:
    """Return stratified folds; a class of fewer rows than folds is not in every test part."""
    classes, counts = np.unique(y, return_counts=True)
    if counts.min() < 2:
        raise CoCoError(
            f"class {classes[counts.argmin()]!s} has one row only, so that no fold can both learn "
            f"it and be judged by it; leave its row out or join the class with another"
        )
    return stratified_folds(y, min(n_folds, int(counts.max())), seed)


def _fit_in_lockstep(estimator: Any, X: Any, y: NDArray[Any], splits: list[Any]) -> list[Fitted]:
    from cocoloss.estimators import stacking  # noqa: F401, PLC0415 - torch, before the clock runs

    result = cross_validate_lockstep(
        estimator,
        X,
        y,
        cv=splits,
        return_estimator=True,
        scoring=lambda *_: 0.0,
        error_score="raise",
    )
    return [
        (classifier, test, float(seconds))
        for classifier, (_, test), seconds in zip(
            result["estimator"], splits, result["fit_time"], strict=True
        )
    ]


def _fit_one_by_one(estimator: Any, X: Any, y: NDArray[Any], splits: list[Any]) -> list[Fitted]:
    fitted = []
    for train, test in splits:
        started = time.perf_counter()
        classifier = clone(estimator).fit(_safe_indexing(X, train), y[train])
        fitted.append((classifier, test, time.perf_counter() - started))
    return fitted


def _measure(classifier: Any, X: Any, y: NDArray[Any], test: NDArray[np.intp]) -> dict[str, float]:
    """Return every measure of a fitted classifier on its test rows."""
    rows, labels = _safe_indexing(X, test), y[test]
    measures = dict.fromkeys(MEASURES, float("nan"))
    predicted = np.asarray(classifier.predict(rows))
    measures["balanced_accuracy"] = balanced_accuracy(labels, predicted)
    measures["accuracy"] = float(np.mean(labels == predicted))
    if hasattr(classifier, "predict_proba"):
        probabilities = classifier.predict_proba(rows)
        measures["log_loss"] = log_loss(labels, probabilities, classifier.classes_)
    if hasattr(classifier, "heads_") and _can_spread(labels):
        first = first_embedding(classifier, rows)
        measures["dispersity"] = dispersity(first, labels)
        collapse = neural_collapse(first, labels)
        measures |= {"nc1": collapse.nc1, "nc4": collapse.nc4}
        if len(np.unique(labels)) > 2:  # two points are always a simplex
            measures["nc2"] = collapse.nc2
    return measures


def _can_spread(labels: NDArray[Any]) -> bool:
    """Return whether there are classes, and rows in each of them, to differ from each other."""
    counts = np.unique(labels, return_counts=True)[1]
    return len(counts) > 1 and counts.min() > 1
