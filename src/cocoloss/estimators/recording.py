"""Record a fit: the embedding of the first network, epoch by epoch, and honest test results."""

import inspect
import platform
import textwrap
import time
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix
from sklearn.metrics import log_loss as mean_log_loss
from sklearn.utils import _safe_indexing
from threadpoolctl import threadpool_limits

import cocoloss
from cocoloss._random import RandomState, as_generator
from cocoloss._validation import check_integer
from cocoloss.estimators.base import BaseNetworkClassifier
from cocoloss.estimators.fitting import train_together
from cocoloss.estimators.inputs import as_table
from cocoloss.estimators.measuring import SnapshotMeasure, balanced_accuracy, target_similarity
from cocoloss.estimators.reliability import reliability_curve
from cocoloss.estimators.run_record import MEASURES, RunRecord
from cocoloss.estimators.snapshots import Recorder
from cocoloss.estimators.targets import encode_targets
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    from cocoloss.training import Callback

FEWEST_OF_A_CLASS = 2  # rows of each class in a sample, if it has them
UNTOLD = ("callbacks", "verbose")  # arguments that say nothing about what was learnt
LONGEST_ARGUMENT = 80


def record_fit(
    estimator: BaseNetworkClassifier,
    X: Any,
    y: Any,
    *,
    test_size: float = 0.2,
    n_snapshots: int = 40,
    max_points: int = 1000,
    random_state: RandomState = 0,
    callbacks: "Sequence[Callback]" = (),
    data_name: str = "",
    class_names: Sequence[str] | None = None,
) -> RunRecord:
    """Fit a classifier on a part of the rows, watch it learn, and test it on the other rows.

    The estimator is fitted as ``estimator.fit`` would fit it on the same rows: looking changes
    nothing. Callbacks that were set with scikit-learn's ``set_callbacks`` are not told.

    Parameters
    ----------
    estimator : classifier of cocoloss
        Fitted in place.
    X : DataFrame or array of shape (n, d)
    y : array of shape (n,)
    test_size : float, default=0.2
        Share of the rows of each class that are kept apart; a class of one row is only learnt.
    n_snapshots : int, default=40
        Epochs at which the first network is looked at, about: dense early, sparse later, and
        always before training, at the epoch that is kept and at the last one.
    max_points : int, default=1000
        At most so many training rows, and so many test rows, are embedded at every snapshot;
        but two of each class, if it has them.
    random_state : int, numpy generator or None, default=0
        Chooses test rows and embedded rows; the estimator has a seed of its own.
    callbacks : sequence of callables
        Listeners beside those of the estimator.
    data_name : str
        What to call the data.
    class_names : sequence of str, optional
        What to call the classes, in the order of ``np.unique(y)``.

    Returns
    -------
    RunRecord

    Raises
    ------
    CoCoError
        If the estimator is not one of cocoloss, or no row can be kept apart.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from cocoloss import CoCoClassifier
    >>> from cocoloss.estimators.recording import record_fit
    >>> X, y = load_wine(return_X_y=True)
    >>> classifier = CoCoClassifier(max_iter=10, random_state=0, early_stopping=False)
    >>> record = record_fit(classifier, X, y, n_snapshots=5, data_name="wine")
    >>> record.epochs.tolist()
    [0, 1, 2, 6, 10]
    >>> record.balanced_accuracy > 0.9
    True
    """
    _check_arguments(estimator, test_size, n_snapshots, max_points)
    X = as_table(X, type(estimator).__name__)
    classes, labels, _ = encode_targets(X, y, None, type(estimator).__name__)
    names = _class_names(class_names, classes)
    generator = as_generator(random_state)
    train, test = split_test(labels, test_size, generator)

    started = time.perf_counter()
    fitting = estimator._start(_safe_indexing(X, train), classes[labels[train]])  # noqa: SLF001
    job = fitting.job
    drawn = stratified_sample(job.labels, job.train[0], max_points, generator)
    drawn_test = stratified_sample(labels, test, max_points, generator)
    test_inputs = estimator.preprocessor_.transform(_safe_indexing(X, drawn_test))
    inputs = np.concatenate([job.inputs[drawn], np.asarray(test_inputs, dtype=np.float32)])
    recorder = Recorder(job, inputs, n_snapshots)
    (trained,) = train_together([fitting], [*callbacks, recorder])
    seconds = time.perf_counter() - started - recorder.seconds

    # Many small products: on a busy machine a second thread makes them ten times slower.
    with threadpool_limits(1, user_api="blas"):
        kept = recorder.finish(trained)
        measure = SnapshotMeasure(estimator, job, drawn, labels[drawn_test])
        measured, means = zip(*map(measure, recorder.snapshots.values()), strict=True)
        answers, results = _test(estimator, _safe_indexing(X, test), labels[test])
        learnt = stratified_sample(labels, train, max_points, generator)
        recalled = _positions(estimator, estimator.predict(_safe_indexing(X, learnt)))
    epochs = np.array(list(recorder.snapshots))
    embeddings = np.stack([snapshot.embedding for snapshot in recorder.snapshots.values()])
    unknown = np.full(len(drawn), -1)
    return RunRecord(
        model=type(estimator).__name__,
        data_name=str(data_name),
        class_names=names,
        **_arguments(estimator),
        versions=_versions(),
        layer_sizes=_layer_sizes(estimator, job.inputs.shape[1], embeddings.shape[2]),
        n_members=len(estimator.heads_),
        n_train=len(train),
        n_test=len(test),
        n_features=X.shape[1],
        seconds=seconds,
        normalized=bool(job.design.network["normalize"]),
        centred=job.design.logits,
        target=target_similarity(job.design.loss, job.n_classes, embeddings.shape[2]),
        train_counts=np.bincount(labels[train], minlength=len(classes)),
        test_counts=np.bincount(labels[test], minlength=len(classes)),
        loss_curve=np.array(estimator.loss_curve_),
        epochs=epochs,
        n_epochs=job.design.schedule.n_epochs,
        kept=int(np.searchsorted(epochs, kept)),
        measures={name: np.array([m[name] for m in measured]) for name in MEASURES},
        class_means=np.stack(means),
        embeddings=embeddings,
        labels=np.concatenate([job.labels[drawn], labels[drawn_test]]),
        predicted=np.concatenate([unknown, answers[np.searchsorted(test, drawn_test)]]),
        is_test=np.arange(len(inputs)) >= len(drawn),
        train_balanced_accuracy=balanced_accuracy(labels[learnt], recalled),
        prior=estimator.class_prior_,
        **results,
    )


def split_test(
    labels: NDArray[np.int64], test_size: float, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows to learn from and rows to test on, both sorted.

    Every class keeps a row to learn from, and if it has two it gives one to the test.

    Examples
    --------
    >>> split_test(np.array([0] * 8 + [1, 1, 2]), 0.25, np.random.default_rng(0))[1].shape
    (3,)
    """
    chosen = []
    for c in np.unique(labels):
        rows = generator.permutation(np.flatnonzero(labels == c))
        wanted = (
            int(np.clip(round(len(rows) * test_size), 1, len(rows) - 1)) if rows.size > 1 else 0
        )
        chosen.append(rows[:wanted])
    test = np.sort(np.concatenate(chosen))
    if not len(test):
        raise CoCoError(
            "every class has a single row, so none can be kept apart to test on; give a table "
            "with at least two rows of some class"
        )
    return np.setdiff1d(np.arange(len(labels)), test), test


def stratified_sample(
    labels: NDArray[np.int64],
    rows: NDArray[np.int64],
    most: int,
    generator: np.random.Generator,
) -> NDArray[np.int64]:
    """Return some of the rows, sorted, with the class shares of all; at least two of a class."""
    if len(rows) <= most:
        return np.sort(rows)
    chosen = []
    for c in np.unique(labels[rows]):
        members = generator.permutation(rows[labels[rows] == c])
        chosen.append(members[: max(FEWEST_OF_A_CLASS, int(most * len(members) / len(rows)))])
    return np.sort(np.concatenate(chosen))


def _check_arguments(estimator: Any, test_size: Any, n_snapshots: Any, max_points: Any) -> None:
    if not isinstance(estimator, BaseNetworkClassifier):
        raise CoCoError(
            f"record_fit looks into the networks of a classifier of cocoloss, but got "
            f"{type(estimator).__name__}; give CoCoClassifier() or one of its kin"
        )
    if isinstance(test_size, bool) or not isinstance(test_size, float) or not 0 < test_size < 1:
        raise CoCoError(
            f"test_size must be a share between 0 and 1, such as 0.2, but is {test_size!r}"
        )
    check_integer(n_snapshots, "n_snapshots", minimum=2)
    check_integer(max_points, "max_points", minimum=2)


def _class_names(given: Sequence[str] | None, classes: NDArray[Any]) -> tuple[str, ...]:
    names = tuple(str(name) for name in (classes.tolist() if given is None else given))
    if len(names) != len(classes):
        raise CoCoError(
            f"class_names has {len(names)} names, but y has {len(classes)} classes; give one each"
        )
    return names


def _positions(estimator: Any, predicted: NDArray[Any]) -> NDArray[np.int64]:
    return np.asarray(np.searchsorted(estimator.classes_, predicted))


def _test(
    estimator: Any, X: Any, labels: NDArray[np.int64]
) -> tuple[NDArray[np.int64], dict[str, Any]]:
    """Return the predicted classes of the test rows, and how good they are."""
    C = len(estimator.classes_)
    results: dict[str, Any] = dict.fromkeys(("reliability", "reliability_at_prior"))
    results["log_loss"] = float("nan")
    if hasattr(estimator, "predict_proba"):
        probabilities = estimator.predict_proba(X)
        answers = probabilities.argmax(axis=1)  # which is what predict does
        share = np.bincount(labels, minlength=C) / len(labels)
        weights = estimator.class_prior_[labels] / share[labels]
        results = {
            "log_loss": float(mean_log_loss(labels, probabilities, labels=np.arange(C))),
            "reliability": reliability_curve(probabilities, labels),
            "reliability_at_prior": reliability_curve(probabilities, labels, weights),
        }
    else:
        answers = _positions(estimator, estimator.predict(X))
    return answers, results | {
        "confusion": confusion_matrix(labels, answers, labels=np.arange(C)),
        "balanced_accuracy": balanced_accuracy(labels, answers),
        "accuracy": float(np.mean(labels == answers)),
    }


def _layer_sizes(estimator: Any, n_inputs: int, q: int) -> tuple[int, ...]:
    return (n_inputs, q) if estimator.module is not None else tuple(estimator.layer_sizes_)


def _arguments(estimator: BaseNetworkClassifier) -> dict[str, Any]:
    """Return the arguments as text, and the names of those that are not the default."""
    parameters = inspect.signature(type(estimator)).parameters
    given = {n: v for n, v in estimator.get_params(deep=False).items() if n not in UNTOLD}
    text = {name: _text(value) for name, value in given.items()}
    changed = [name for name in text if text[name] != _text(parameters[name].default)]
    return {"arguments": text, "changed": tuple(changed)}


def _text(value: Any) -> str:
    if inspect.isroutine(value) or inspect.isclass(value):
        return str(value.__name__)  # its repr has an address, which is nobody's business
    return textwrap.shorten(repr(value), LONGEST_ARGUMENT, placeholder=" …")


def _versions() -> dict[str, str]:
    packages = {name: version(name) for name in ("numpy", "scikit-learn", "torch")}
    return {"cocoloss": cocoloss.__version__, "Python": platform.python_version()} | packages
