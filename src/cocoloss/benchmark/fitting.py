"""Fit a model on the training rows of some folds: networks in lockstep, others one by one."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_features

from cocoloss.benchmark.folds import Fold
from cocoloss.benchmark.measures import balanced_accuracy_of, measure
from cocoloss.benchmark.model_kind import ModelKind
from cocoloss.columns import TablePreprocessor
from cocoloss.estimators import cross_validate_lockstep
from cocoloss.exceptions import CoCoError

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


def fit_folds(
    kind: ModelKind,
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
    >>> from cocoloss.benchmark.folds import stratified_folds
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
            return _in_lockstep(kind, params, X, y, folds, seeds)
        pairs = zip(folds, seeds, strict=True)
        return [_alone(kind, params, X, y, fold, own) for fold, own in pairs]
    except Exception as error:
        if not kind.whose or isinstance(error, CoCoError):
            raise
        raise CoCoError(f"{kind.whose} failed: {type(error).__name__}: {error}") from error


def evaluate_folds(
    kind: ModelKind,
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
            measures = measure(classifier, X, y, fold.test, fold.train)
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
    kind: ModelKind,
    params: Mapping[str, Any],
    X: Any,
    y: NDArray[Any],
    folds: Sequence[Fold],
    seeds: Sequence[int],
) -> list[Fitted]:
    n_features = _num_features(X)
    estimator = kind.make(n_features, len(np.unique(y)), params, seeds[0])
    at_once = max(1, MOST_NUMBERS // max(1, len(y) * n_features))
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


def _alone(
    kind: ModelKind,
    params: Mapping[str, Any],
    X: Any,
    y: NDArray[Any],
    fold: Fold,
    seed: int,
) -> Fitted:
    started = time.perf_counter()
    rows = _safe_indexing(X, fold.train)
    classes, labels = np.unique(y[fold.train], return_inverse=True)
    preprocessor = TablePreprocessor().fit(rows)
    inputs = preprocessor.transform(rows)
    model = kind.make(inputs.shape[1], len(classes), params, seed)
    model.fit(inputs, labels)
    return Fitted(
        OnPreprocessed(preprocessor, model, classes, kind.whose), time.perf_counter() - started
    )
