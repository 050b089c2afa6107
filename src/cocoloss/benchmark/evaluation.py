"""Models fitted and measured on folds: networks in lockstep, others one by one."""

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_features

from cocoloss._checks import check_integer, check_option
from cocoloss.columns import TablePreprocessor
from cocoloss.estimators import (
    CoCoClassifier,
    CrossEntropyClassifier,
    DotRegressionClassifier,
    cross_validate_lockstep,
)
from cocoloss.exceptions import CoCoError
from cocoloss.metrics import balanced_accuracy, dispersity, neural_collapse
from cocoloss.tables import Fold, stratified_folds

if TYPE_CHECKING:
    from cocoloss.benchmark.models import ModelKind

LEAST_PROBABILITY = 1e-15  # of a class that a model calls impossible, or has never seen
NAN = float("nan")
TOLERANCE = 1e-3  # in which probabilities of float32 sum to one


def balanced_accuracy_of(classifier: Any, X: Any, y: Any) -> float:
    """Return the balanced accuracy of a fitted classifier, in the form of a scikit-learn scorer."""
    return balanced_accuracy(np.asarray(y), np.asarray(classifier.predict(X)))


def log_loss(y: NDArray[Any], probabilities: NDArray[Any], classes: NDArray[Any]) -> float:
    """Return the mean of -log p of the true class.

    Parameters
    ----------
    y : array of shape (n,)
    probabilities : array of shape (n, C)
    classes : array of shape (C,)
        The class of each column, sorted. A class that is not among them has the least
        probability.

    Examples
    --------
    >>> p = np.array([[0.5, 0.5], [0.75, 0.25]])
    >>> round(log_loss(np.array(["a", "a"]), p, np.array(["a", "b"])), 4)
    0.4904
    """
    column = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    own = np.asarray(probabilities)[np.arange(len(y)), column]
    own = np.where(np.asarray(classes)[column] == y, own, 0)
    return float(-np.log(np.clip(own, LEAST_PROBABILITY, 1)).mean())


def measure(
    classifier: Any,
    X: Any,
    y: NDArray[Any],
    test: NDArray[np.int64],
    train: NDArray[np.int64] | None = None,
    *,
    whose: str = "",
) -> dict[str, float]:
    """Return the measures of a fitted classifier.

    Parameters
    ----------
    classifier : classifier
        Fitted.
    X, y
        The whole table.
    test, train : integer arrays
        Rows to measure on. Training rows are asked for their dispersity only.
    whose : str
        What messages call a model of the user's own, whose probabilities are checked.

    Returns
    -------
    dict of str to float
        "balanced_accuracy", "accuracy", "log_loss" where there are probabilities,
        "balanced_accuracy_uniform" where they are known to be under a prior and not an average,
        and "dispersity" and "train_dispersity" where there is an embedding.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> measures = measure(SVC().fit(X[::2], y[::2]), X, y, np.arange(1, 150, 2))
    >>> sorted(measures)
    ['accuracy', 'balanced_accuracy']
    """
    rows, labels = _safe_indexing(X, test), y[test]
    predicted = np.asarray(classifier.predict(rows))
    measures = {
        "balanced_accuracy": balanced_accuracy(labels, predicted),
        "accuracy": float(np.mean(labels == predicted)),
    }
    if hasattr(classifier, "predict_proba"):
        probabilities = np.asarray(classifier.predict_proba(rows))
        if whose:
            check_probabilities(probabilities, len(labels), len(classifier.classes_), whose)
        measures["log_loss"] = log_loss(labels, probabilities, classifier.classes_)
        if hasattr(classifier, "class_prior_") and len(getattr(classifier, "heads_", "1")) == 1:
            # The same network and head, had the classes been equally likely: by Bayes' rule.
            alike = (probabilities / classifier.class_prior_).argmax(axis=1)
            score = balanced_accuracy(labels, classifier.classes_[alike])
            measures["balanced_accuracy_uniform"] = score
    if hasattr(classifier, "transform") and hasattr(classifier, "heads_"):
        measures["dispersity"] = embedding_dispersity(classifier, rows, labels)
        if train is not None:
            seen = _safe_indexing(X, train)
            measures["train_dispersity"] = embedding_dispersity(classifier, seen, y[train])
    return measures


def embedding_dispersity(classifier: Any, X: Any, y: NDArray[Any]) -> float:
    """Return the dispersity of the first member's embedding; NaN if there is one class only.

    NOTE[PAPER]: which rows the dispersity is taken on is not said; the test rows of each fold,
    like the balanced accuracy, and the training rows beside them. The features are those that
    are said: the output of CoCo and DR, the last hidden layer of CE.
    """
    if len(np.unique(y)) < 2:
        return NAN
    first = first_embedding(classifier, X)
    if not np.isfinite(first).all():
        return NAN  # a network that diverged
    return float(dispersity(first, y))


def first_embedding(classifier: Any, X: Any) -> NDArray[np.float64]:
    """Return the embedding of rows by the first member of a classifier of ours, but for its scale.

    An array of shape (n, q). Members stand side by side in ``transform``, all scaled alike.
    """
    joined = np.asarray(classifier.transform(X), dtype=np.float64)
    first: NDArray[np.float64] = joined[:, : joined.shape[1] // len(classifier.heads_)]
    return first


# Tables of all folds of a stack lie side by side: at most so many numbers, half a gigabyte.
MOST_NUMBERS = 120_000_000


class Fitted(NamedTuple):
    """A fitted classifier, and what its fit took."""

    classifier: Any
    seconds: float


class OnPreprocessed:
    """A classifier of numbered classes that gets its rows through a preprocessor; both are fitted.

    Numbered, since scikit-learn's weights of classes do not find classes that are called "1".
    """

    def __init__(
        self, preprocessor: Any, classifier: Any, classes: NDArray[Any], whose: str = ""
    ) -> None:
        self.preprocessor, self.classifier, self.classes_ = preprocessor, classifier, classes
        self.whose = whose or "the model"  # in messages
        if hasattr(classifier, "predict_proba"):
            self.predict_proba = lambda X: classifier.predict_proba(preprocessor.transform(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row."""
        inputs = self.preprocessor.transform(X)
        codes = check_codes(
            self.classifier.predict(inputs), len(inputs), len(self.classes_), self.whose
        )
        return np.asarray(self.classes_[codes])


def check_codes(codes: Any, n_rows: int, n_classes: int, whose: str) -> NDArray[np.intp]:
    """Return predictions as numbers of classes, one per row.

    Raises
    ------
    CoCoError
        If they are anything else: -1 would be the last class, and 0.97 the first.

    Examples
    --------
    >>> check_codes([0.0, 2.0], 2, 3, "model 'm'")
    array([0, 2])
    """
    found = np.asarray(codes)
    numbered = f"classes are numbered 0 to {n_classes - 1}"
    if found.shape != (n_rows,):
        raise CoCoError(
            f"{whose} predicted an array of shape {found.shape} for {n_rows} rows; {numbered}, "
            f"one number per row"
        )
    found = np.asarray(found.tolist())  # numbers in an array of objects are numbers
    if found.dtype.kind not in "biuf":
        raise CoCoError(f"{whose} predicted {found.tolist()[0]!r}; {numbered}")
    good = (found >= 0) & (found < n_classes) & (found == np.floor(found))  # no NaN either
    if not good.all():
        raise CoCoError(f"{whose} predicted {found[~good][0].item()!r}; {numbered}")
    return found.astype(np.intp)


def check_probabilities(
    probabilities: NDArray[Any], n_rows: int, n_classes: int, whose: str
) -> None:
    """Refuse what are no probabilities: scores, logits, or those of other classes.

    Raises
    ------
    CoCoError
        If the shape is not (n_rows, n_classes), or a row is not finite, has a number that is not
        between 0 and 1, or does not sum to one.

    Examples
    --------
    >>> check_probabilities(np.array([[0.25, 0.75]]), 1, 2, "model 'm'")
    """
    said = f"{whose}: predict_proba"
    if probabilities.shape != (n_rows, n_classes) or probabilities.dtype.kind not in "biuf":
        raise CoCoError(
            f"{said} gave an array of {probabilities.dtype} of shape {probabilities.shape}; "
            f"expected are numbers of shape ({n_rows}, {n_classes}), one column per class"
        )
    within = (probabilities >= -TOLERANCE) & (probabilities <= 1 + TOLERANCE)  # no NaN either
    if not within.all():
        raise CoCoError(
            f"{said} gave {probabilities[~within][0].item()!r}; a probability is between 0 and 1"
        )
    sums = probabilities.sum(axis=1)
    wrong = np.abs(sums - 1) > TOLERANCE
    if wrong.any():
        raise CoCoError(
            f"{said} gave a row that sums to {sums[wrong][0].item():.6g}; the probabilities of a "
            f"row sum to one"
        )


def fit_folds(
    kind: "ModelKind",
    params: Mapping[str, Any],
    X: Any,
    y: NDArray[Any],
    folds: Sequence[Fold],
    seed: int | Sequence[int],
) -> list[Fitted]:
    """Return a classifier for each fold, fitted on its training rows.

    Parameters
    ----------
    kind : ModelKind
    params : dict
        Arguments for its factory.
    X, y
        The whole table.
    folds : sequence of Fold
    seed : int or sequence of int
        Of all fits, or of each.

    Raises
    ------
    CoCoError
        If a model of the user's own fails; the message names it, and what it failed with.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cocoloss.tables import stratified_folds
    >>> from cocoloss.benchmark.models import MODELS
    >>> X, y = load_iris(return_X_y=True)
    >>> folds = stratified_folds(y, 3, seed=0)
    >>> first, *others = fit_folds(MODELS["ksvm"], {}, X, y, folds, seed=0)
    >>> first.classifier.predict(X[:2])
    array([0, 0])
    """
    seeds = [seed] * len(folds) if isinstance(seed, int) else list(seed)
    try:
        if kind.neural:
            estimator = kind.make(_num_features(X), len(np.unique(y)), params, seeds[0])
            return _in_lockstep(estimator, X, y, folds, seeds)
        return [
            _alone(partial(_made, kind, params, own), X, y, fold, kind.whose)
            for fold, own in zip(folds, seeds, strict=True)
        ]
    except Exception as error:
        if not kind.whose or isinstance(error, CoCoError):
            raise
        raise CoCoError(f"{kind.whose} failed: {type(error).__name__}: {error}") from error


def evaluate_folds(
    kind: "ModelKind",
    params: Mapping[str, Any],
    X: Any,
    y: NDArray[Any],
    folds: Mapping[int, Fold],
    seed: int | Sequence[int],
    *,
    briefly: bool = False,
) -> list[dict[str, Any]]:
    """Return a row of measures for each fold, with its number as "fold".

    ``briefly`` leaves out all but the balanced accuracy.
    """
    fitted = fit_folds(kind, params, X, y, list(folds.values()), seed)
    rows = []
    for (number, fold), (classifier, seconds) in zip(folds.items(), fitted, strict=True):
        if briefly:
            score = balanced_accuracy_of(classifier, _safe_indexing(X, fold.test), y[fold.test])
            measures = {"balanced_accuracy": score}
        else:
            measures = measure(classifier, X, y, fold.test, fold.train, whose=kind.whose)
        rows.append({"fold": number, **measures, "fit_seconds": seconds})
    return rows


def means(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the mean of each measure over the rows that have a number for it.

    Examples
    --------
    >>> means([{"fold": 0, "accuracy": 0.5}, {"fold": 1, "accuracy": 1.0}])
    {'accuracy': 0.75}
    """
    names = [name for name in rows[0] if name != "fold"]
    columns = {name: np.array([row[name] for row in rows], dtype=float) for name in names}
    return {
        name: float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")
        for name, values in columns.items()
    }


def _in_lockstep(
    estimator: Any, X: Any, y: NDArray[Any], folds: Sequence[Fold], seeds: Sequence[int]
) -> list[Fitted]:
    at_once = max(1, MOST_NUMBERS // max(1, len(y) * _num_features(X)))
    fitted: list[Fitted] = []
    for start in range(0, len(folds), at_once):
        result = cross_validate_lockstep(
            estimator,
            X,
            y,
            cv=folds[start : start + at_once],
            scoring=_no_score,
            error_score="raise",
            return_estimator=True,
            random_states=seeds[start : start + at_once],
        )
        pairs = zip(result["estimator"], result["fit_time"], strict=True)
        fitted += [Fitted(classifier, float(seconds)) for classifier, seconds in pairs]
    return fitted


def _no_score(classifier: Any, X: Any, y: Any) -> float:  # noqa: ARG001 - measured later
    return 0.0


def _made(
    kind: "ModelKind", params: Mapping[str, Any], seed: int, n_features: int, n_classes: int
) -> Any:
    return kind.make(n_features, n_classes, params, seed)


def _alone(
    make: Callable[[int, int], Any], X: Any, y: NDArray[Any], fold: Fold, whose: str = ""
) -> Fitted:
    """Fit what is made for so many columns and classes on the training rows of a fold."""
    started = time.perf_counter()
    rows = _safe_indexing(X, fold.train)
    classes, labels = np.unique(y[fold.train], return_inverse=True)
    preprocessor = TablePreprocessor().fit(rows)
    inputs = preprocessor.transform(rows)
    model = make(inputs.shape[1], len(classes))
    model.fit(inputs, labels)
    joined = OnPreprocessed(preprocessor, model, classes, whose)
    return Fitted(joined, time.perf_counter() - started)


PRIORS = ("uniform", "empirical")


def _peer(model: str, class_weight: str | None, seed: int, *_size: int) -> Any:
    if model == "rf":
        return RandomForestClassifier(500, class_weight=class_weight, random_state=seed, n_jobs=-1)
    return SVC(C=10, class_weight=class_weight, decision_function_shape="ovr")


TRAINING = "cocoloss.estimators.jobs"
NETWORKS = {"coco": CoCoClassifier, "dr": DotRegressionClassifier, "ce": CrossEntropyClassifier}
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
    folds = _folds(y, n_folds, seed)
    evaluations = []
    for model in models:
        if on_model is not None:
            on_model(model)
        if model in NETWORKS:
            options: dict[str, Any] = {"priors": priors, "random_state": seed}
            options |= network_options or {}
            importlib.import_module(TRAINING)  # torch, before the clock runs
            estimator = NETWORKS[model](**options)
            fitted = _in_lockstep(estimator, X, y, folds, [options["random_state"]] * len(folds))
        else:
            # What the priors ask of our models, class weights ask of a peer.
            weights = "balanced" if priors == "uniform" else None
            make = partial(_peer, model, weights, seed)
            fitted = [_alone(make, X, y, fold) for fold in folds]
        pairs = zip(fitted, folds, strict=True)
        rows = [_all_measures(one.classifier, X, y, fold.test) for one, fold in pairs]
        values = {name: np.array([row[name] for row in rows]) for name in MEASURES}
        seconds = float(np.mean([one.seconds for one in fitted]))
        evaluations.append(Evaluation(model, values, seconds))
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


def _all_measures(
    classifier: Any, X: Any, y: NDArray[Any], test: NDArray[np.intp]
) -> dict[str, float]:
    """Return every measure of a fitted classifier on its test rows; NaN for what it has not."""
    measures = dict.fromkeys(MEASURES, NAN) | measure(classifier, X, y, test)
    labels = y[test]
    if hasattr(classifier, "heads_") and not _can_spread(labels):
        return measures | {"dispersity": NAN}
    if hasattr(classifier, "heads_"):
        collapse = neural_collapse(first_embedding(classifier, _safe_indexing(X, test)), labels)
        measures |= {"nc1": collapse.nc1, "nc4": collapse.nc4}
        if len(np.unique(labels)) > 2:  # two points are always a simplex
            measures["nc2"] = collapse.nc2
    return measures


def _can_spread(labels: NDArray[Any]) -> bool:
    """Return whether there are classes, and rows in each of them, to differ from each other."""
    counts = np.unique(labels, return_counts=True)[1]
    return len(counts) > 1 and counts.min() > 1
