"""Models fitted and measured on folds: networks in lockstep, others one by one."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, parallel_config
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.svm import SVC
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_features

from cocoloss.columns import RawFrame, TablePreprocessor
from cocoloss.estimators import (
    CoCoClassifier,
    CrossEntropyClassifier,
    DotRegressionClassifier,
    cross_validate_lockstep,
)
from cocoloss.exceptions import CoCoError
from cocoloss.metrics import balanced_accuracy, dispersity, neural_collapse
from cocoloss.tables import Fold, stratified_folds

# Called with the number of columns that the model sees, arguments and a seed.
Factory = Callable[[int, Mapping[str, Any], int], Any]
# Called with a trial, the number of training rows, of columns and of classes; returns arguments.
Space = Callable[[Any, int, int, int], dict[str, Any]]
# Called with the number of a fold, its test rows and what was fitted; returns more measures.
OnFold = Callable[[int, NDArray[np.int64], Any], dict[str, float]]
LEAST_PROBABILITY = 1e-15  # of a class that a model calls impossible, or has never seen
NAN = float("nan")
TOLERANCE = 1e-3  # in which probabilities of float32 sum to one


@dataclass(frozen=True)
class ModelKind:
    """A model of the benchmark."""

    make: Factory  # gives an estimator that is not fitted
    space: Space | None = None  # None if it is not tuned
    n_hyperparameters: int = 0  # t of the rule "10 t trials"
    neural: bool = False  # a classifier of cocoloss, whose folds train in lockstep
    takes_epochs: bool = False  # ``max_iter`` is the spec's number of epochs
    whose: str = ""  # what messages call a model of the user's own; empty for ours
    raw: bool = False  # gets a frame with categories and gaps, not a matrix
    needs: str = ""  # a package that need not be installed
    version: str = ""  # makes other keys of its tasks, where a model of a name has changed


def balanced_accuracy_of(classifier: Any, X: Any, y: Any) -> float:
    """Return the balanced accuracy of a fitted classifier, in the form of a scikit-learn scorer."""
    return balanced_accuracy(np.asarray(y), np.asarray(classifier.predict(X)))


def log_loss(y: NDArray[Any], probabilities: NDArray[Any], classes: NDArray[Any]) -> float:
    """Return the mean of -log p of the true class; ``classes`` are those of the columns, sorted."""
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
    """Return the measures of a fitted classifier on test rows of a table.

    "log_loss" where there are probabilities, "balanced_accuracy_uniform" where they are known to be
    under a prior and not an average, and where there is an embedding "dispersity" and, of ``train``
    rows, "train_dispersity". ``whose`` is the user's own model, whose probabilities are checked.
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
        self, preprocessor: Any, classifier: Any, classes: NDArray[Any], whose: str
    ) -> None:
        self.preprocessor, self.classifier, self.classes_ = preprocessor, classifier, classes
        self.whose = whose or "the model"  # in messages
        for name in ("predict_proba", "decision_function"):
            if hasattr(classifier, name):
                setattr(self, name, self._on_inputs(getattr(classifier, name)))

    def _on_inputs(self, method: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda X: method(self.preprocessor.transform(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row."""
        inputs = self.preprocessor.transform(X)
        codes = check_codes(
            self.classifier.predict(inputs), len(inputs), len(self.classes_), self.whose
        )
        return np.asarray(self.classes_[codes])


def check_codes(codes: Any, n_rows: int, n_classes: int, whose: str) -> NDArray[np.intp]:
    """Return predictions as numbers of classes, one per row.

    Anything else is refused: -1 would be the last class, and 0.97 the first.
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
    """Refuse what are no probabilities: scores, logits, or those of other classes."""
    method = f"{whose}: predict_proba"
    if probabilities.shape != (n_rows, n_classes) or probabilities.dtype.kind not in "biuf":
        raise CoCoError(
            f"{method} gave an array of {probabilities.dtype} of shape {probabilities.shape}; "
            f"expected are numbers of shape ({n_rows}, {n_classes}), one column per class"
        )
    within = (probabilities >= -TOLERANCE) & (probabilities <= 1 + TOLERANCE)  # no NaN either
    if not within.all():
        raise CoCoError(
            f"{method} gave {probabilities[~within][0].item()!r}; a probability is between 0 and 1"
        )
    sums = probabilities.sum(axis=1)
    wrong = np.abs(sums - 1) > TOLERANCE
    if wrong.any():
        raise CoCoError(
            f"{method} gave a row that sums to {sums[wrong][0].item():.6g}; the probabilities of a "
            f"row sum to one"
        )


def fit_folds(
    kind: ModelKind,
    params: Mapping[str, Any],
    X: Any,
    y: NDArray[Any],
    folds: Sequence[Fold],
    seed: int | Sequence[int],
) -> list[Fitted]:
    """Return a classifier for each fold, fitted on its training rows, with one seed or one each."""
    seeds = [seed] * len(folds) if isinstance(seed, int) else list(seed)
    try:
        if kind.neural:
            estimator = kind.make(_num_features(X), params, seeds[0])
            if "device" in params:  # which kinds with settings of their own would not ask for
                estimator.set_params(device=params["device"])
            return _in_lockstep(estimator, X, y, folds, seeds)
        pairs = zip(folds, seeds, strict=True)
        return [_alone(kind, params, own, X, y, fold) for fold, own in pairs]
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
    on_fold: OnFold | None = None,
) -> list[dict[str, Any]]:
    """Return a row of measures for each fold, with its number as "fold".

    ``briefly`` leaves out all but the balanced accuracy. What ``on_fold`` returns is added. Beside
    the seconds of a fit stand those that the processor worked for it, which hang less on what else
    the machine does: a fold's share, where all were fitted.
    """
    started = time.process_time()
    fitted = fit_folds(kind, params, X, y, list(folds.values()), seed)
    worked = (time.process_time() - started) / len(folds)
    rows = []
    for (number, fold), (classifier, seconds) in zip(folds.items(), fitted, strict=True):
        if briefly:
            score = balanced_accuracy_of(classifier, _safe_indexing(X, fold.test), y[fold.test])
            measures = {"balanced_accuracy": score}
        else:
            measures = measure(classifier, X, y, fold.test, fold.train, whose=kind.whose)
        if on_fold is not None:
            measures = measures | on_fold(number, fold.test, classifier) | measures  # ours count
        rows.append(
            {"fold": number, **measures, "fit_seconds": seconds, "processor_seconds": worked}
        )
    return rows


def means(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the mean of each measure over the rows that have a number for it."""
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
            scoring=lambda *_: 0.0,  # measured later
            error_score="raise",
            return_estimator=True,
            random_states=seeds[start : start + at_once],
        )
        pairs = zip(result["estimator"], result["fit_time"], strict=True)
        fitted += [Fitted(classifier, float(seconds)) for classifier, seconds in pairs]
    return fitted


def _alone(
    kind: ModelKind, params: Mapping[str, Any], seed: int, X: Any, y: NDArray[Any], fold: Fold
) -> Fitted:
    started = time.perf_counter()
    rows = _safe_indexing(X, fold.train)
    classes, labels = np.unique(y[fold.train], return_inverse=True)
    preprocessor = (RawFrame() if kind.raw else TablePreprocessor()).fit(rows)
    inputs = preprocessor.transform(rows)
    model = kind.make(inputs.shape[1], params, seed)
    model.fit(inputs, labels)
    joined = OnPreprocessed(preprocessor, model, classes, kind.whose)
    return Fitted(joined, time.perf_counter() - started)


def _network(make: Callable[..., Any]) -> ModelKind:
    return ModelKind(lambda _, params, seed: make(random_state=seed, **params), neural=True)


def _forest(_n_features: int, params: Mapping[str, Any], seed: int) -> Any:
    return RandomForestClassifier(500, random_state=seed, n_jobs=-1, **params)


def _boosting(_n_features: int, params: Mapping[str, Any], seed: int) -> Any:
    return HistGradientBoostingClassifier(random_state=seed, **params)


EVALUATED = {
    "coco": _network(CoCoClassifier),
    "dr": _network(DotRegressionClassifier),
    "ce": _network(CrossEntropyClassifier),
    "hgb": ModelKind(_boosting),
    "rf": ModelKind(_forest),
    "ksvm": ModelKind(lambda _, params, _seed: SVC(C=10, **params)),
}
NAMES = {
    "coco": "CoCo",
    "dr": "dot regression",
    "ce": "cross-entropy",
    "hgb": "boosted trees",
    "rf": "random forest",
    "ksvm": "kernel SVM",
}
# Rows that support vectors, whose time grows faster than rows do, learn from at most: 10,000 of
# adult take 2 s, 20,000 take 10 s, where boosted trees take 1.2 s.
SVM_ROWS = 10_000
SVMS = ("ksvm", "svr")


@dataclass(frozen=True)
class Evaluation:
    """What cross-validation says of a model."""

    model: str  # its short name, such as "coco"
    folds: dict[str, NDArray[np.float64]]  # measure -> (n_folds,); NaN where there is none
    seconds: float  # mean time of a fit
    n_train: int = 0  # rows that the first fold learnt from
    n_left_out: int = 0  # rows that it could have learnt from besides

    @property
    def n_folds(self) -> int:
        """How many folds are finished."""
        return len(next(iter(self.folds.values())))

    def mean(self, measure: str) -> float:
        """Return the mean of a measure over the folds; NaN if no fold has it."""
        values = self.folds[measure]
        return float(np.nan if np.isnan(values).all() else np.nanmean(values))

    def spread(self, measure: str) -> float:
        """Return the standard deviation of a measure over the folds."""
        values = self.folds[measure]
        return float(np.nan if np.isnan(values).all() else np.nanstd(values))


class FoldScores(NamedTuple):
    """What one fold says of one model."""

    model: str
    measures: Mapping[str, float]
    seconds: float  # of its fit
    n_train: int
    n_left_out: int  # of the training rows, since they are many for the model
    n_folds: int  # that there will be


def gathered(scores: Iterable[FoldScores]) -> list[Evaluation]:
    """Return what folds say of each model, in the order in which models first come."""
    of_model: dict[str, list[FoldScores]] = {}
    for one in scores:
        of_model.setdefault(one.model, []).append(one)
    return [
        Evaluation(
            model,
            {name: np.array([one.measures[name] for one in rows]) for name in rows[0].measures},
            float(np.mean([one.seconds for one in rows])),
            rows[0].n_train,
            rows[0].n_left_out,
        )
        for model, rows in of_model.items()
    ]


def capped(fold: Fold, parts: NDArray[Any], model: str, svm_rows: int | None, seed: int) -> Fold:
    """Return a fold of which support vectors learn from so many rows, drawn part by part."""
    if model not in SVMS or svm_rows is None or len(fold.train) <= svm_rows:
        return fold
    shuffled = np.random.default_rng(seed).permutation(fold.train)
    of_part = pd.Series(shuffled).groupby(parts[shuffled])
    place = of_part.cumcount() / of_part.transform("size")  # 0 for the first row of each
    drawn = shuffled[np.argsort(place, kind="stable")[:svm_rows]]
    return Fold(np.sort(drawn), fold.test)


MEASURES = (
    "balanced_accuracy",
    "accuracy",
    "auc",
    "f1",
    "log_loss",
    "dispersity",
    "nc1",
    "nc2",
    "nc4",
)


def evaluate_models(X: Any, y: Any, models: Sequence[str] = (), **how: Any) -> list[Evaluation]:
    """Cross-validate models on one table; arguments as of :func:`score_folds`."""
    return gathered(score_folds(X, y, models, **how))


def score_folds(
    X: Any,
    y: Any,
    models: Sequence[str] = (),
    *,
    n_folds: int = 10,
    priors: str = "uniform",
    seed: int = 0,
    solver: str | None = None,
    network_options: dict[str, Any] | None = None,
    svm_rows: int | None = SVM_ROWS,
    workers: int = 1,
) -> Iterator[FoldScores]:
    """Cross-validate models on one table, all on the same stratified and shuffled folds.

    Yields the first fold of every model, then the second, and so on: whoever stops early can
    compare what there is, and whoever waits knows after the first round how long it takes. (Six
    networks of one fold take as long as their share of all folds at once.) With "uniform" priors
    the peers weigh the classes alike as well; with "empirical" ones nobody does. ``solver`` is
    CoCo's, if it is to have another than its own choice. Support vectors learn from ``svm_rows``
    rows at most. More than one of ``workers`` are processes of one thread each that fit side by
    side; what they find comes in the same order.
    """
    y = np.asarray(y)
    folds = stratified(y, n_folds, seed)
    positive = rarer_class(y)
    kinds = {model: EVALUATED[model] for model in models or NAMES}

    def score(model: str, whole: Fold) -> FoldScores:
        # What the priors ask of our models, class weights ask of a peer.
        params: dict[str, Any] = {"class_weight": "balanced" if priors == "uniform" else None}
        if kinds[model].neural:
            from cocoloss.fitting import jobs  # noqa: F401, PLC0415 - torch, before the clock

            params = {"priors": priors, **(network_options or {})}
            if model == "coco" and solver is not None:
                params["solver"] = solver
        fold = capped(whole, y, model, svm_rows, seed)
        ((classifier, seconds),) = fit_folds(kinds[model], params, X, y, [fold], seed)
        found = all_measures(classifier, X, y, fold.test, positive)
        n_train, n_left_out = len(fold.train), len(whole.train) - len(fold.train)
        return FoldScores(model, found, seconds, n_train, n_left_out, len(folds))

    asked = [(model, whole) for whole in folds for model in kinds]
    if workers == 1:
        yield from (score(*each) for each in asked)
        return
    with parallel_config(backend="loky", inner_max_num_threads=1):
        side_by_side = Parallel(n_jobs=workers, return_as="generator")
        found = side_by_side(delayed(score)(*each) for each in asked)
    yield from found


def stratified(y: NDArray[Any], n_folds: int, seed: int) -> list[Fold]:
    """Return stratified folds; a class of fewer rows than folds is not in every test part."""
    classes, counts = np.unique(y, return_counts=True)
    if counts.min() < 2:
        raise CoCoError(
            f"class {classes[counts.argmin()]!s} has one row only, so that no fold can both learn "
            f"it and be judged by it; leave its row out or join the class with another"
        )
    return stratified_folds(y, min(n_folds, int(counts.max())), seed)


def rarer_class(y: NDArray[Any]) -> Any:
    """Return the rarer of two classes, the last of equally rare ones; None if there are more."""
    classes, counts = np.unique(y, return_counts=True)
    return classes[1 if counts[1] <= counts[0] else 0] if len(classes) == 2 else None


def auc(y: NDArray[Any], scores: NDArray[Any], classes: NDArray[Any]) -> float:
    """Return the chance that a row of a class scores above one of another, the mean over classes.

    ``scores`` has a column for each of the ``classes``, or one number for two of them, the larger
    the more of the second. For two classes that is the area under their ROC curve; for more, each
    is set against the rest. A class without rows, or without others, is left out.
    """
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    judged = [k for k, label in enumerate(classes) if 0 < np.sum(y == label) < len(y)]
    areas = [roc_auc_score(y == classes[k], scores[:, k]) for k in judged]
    return float(np.mean(areas)) if areas else NAN


class Answered:
    """A fitted classifier that is asked about the same rows again and again, and answers once."""

    def __init__(self, classifier: Any) -> None:
        self._classifier = classifier
        self._answers: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        """Return what the classifier has; predictions as they were the first time."""
        method = getattr(self._classifier, name)
        if not name.startswith(("predict", "decision")):
            return method

        def answer(X: Any) -> Any:
            if name not in self._answers:
                self._answers[name] = np.asarray(method(X))
            return self._answers[name]

        return answer


def all_measures(
    fitted: Any, X: Any, y: NDArray[Any], test: NDArray[np.intp], positive: Any
) -> dict[str, float]:
    """Return every measure of a fitted classifier on its test rows; NaN for what it has not."""
    classifier, rows, labels = Answered(fitted), _safe_indexing(X, test), y[test]
    measures = dict.fromkeys(MEASURES, NAN) | measure(classifier, X, y, test)
    only = None if positive is None else [positive]
    predicted = classifier.predict(rows)
    measures["f1"] = float(
        f1_score(labels, predicted, labels=only, average="macro", zero_division=0)
    )
    scored = "predict_proba" if hasattr(classifier, "predict_proba") else "decision_function"
    measures["auc"] = auc(labels, getattr(classifier, scored)(rows), classifier.classes_)
    if not hasattr(classifier, "heads_"):
        return measures
    counts = np.unique(labels, return_counts=True)[1]
    if len(counts) < 2 or counts.min() < 2:  # no other class, or no other row of it, to differ from
        return measures | {"dispersity": NAN}
    collapse = neural_collapse(first_embedding(classifier, rows), labels)._asdict()
    measures |= {"nc1": collapse["nc1"], "nc4": collapse["nc4"]}
    if len(counts) > 2:  # two points are always a simplex
        measures["nc2"] = collapse["nc2"]
    return measures
