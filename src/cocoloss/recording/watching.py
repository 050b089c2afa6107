"""Record a fit: the embedding of the first network, epoch by epoch, and honest test results."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix
from sklearn.metrics import log_loss as mean_log_loss
from sklearn.utils import _safe_indexing
from threadpoolctl import threadpool_limits

from cocoloss._checks import RandomState, as_generator, check_integer
from cocoloss.estimators.base import BaseNetworkClassifier
from cocoloss.estimators.fit import as_table, finish_job, prepare_job, unchanged_on_failure
from cocoloss.estimators.jobs import train_jobs
from cocoloss.estimators.model import as_inputs
from cocoloss.estimators.targets import encode_targets
from cocoloss.exceptions import CoCoError
from cocoloss.recording.facts import arguments_of, columns_of, gaps_of, versions
from cocoloss.recording.measuring import SnapshotMeasure, balanced_accuracy, target_similarity
from cocoloss.recording.reliability import reliability_curve
from cocoloss.recording.rows import split_test, stratified_sample
from cocoloss.recording.run_record import MEASURES, RunRecord
from cocoloss.recording.snapshots import Recorder

if TYPE_CHECKING:
    from cocoloss.training import Callback


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
    n_left_out: int = 0,
) -> RunRecord:
    """Fit a classifier on a part of the rows, watch it learn, and test it on the other rows.

    The estimator is fitted as ``estimator.fit`` would fit it on the same rows: looking changes
    nothing. If anything fails, it stays as it was. Callbacks that were set with scikit-learn's
    ``set_callbacks`` are not told.

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
    n_left_out : int, default=0
        Rows without a class that the data had besides, for the record.

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
    >>> from cocoloss.recording import record_fit
    >>> X, y = load_wine(return_X_y=True)
    >>> classifier = CoCoClassifier(max_iter=10, random_state=0, early_stopping=False)
    >>> record = record_fit(classifier, X, y, n_snapshots=5, data_name="wine")
    >>> record.epochs.tolist()
    [0, 1, 2, 6, 10]
    >>> record.balanced_accuracy > 0.9
    True
    """
    _check_arguments(estimator, test_size, n_snapshots, max_points)
    X = as_table(estimator, X)
    classes, labels, _ = encode_targets(X, y, None, type(estimator).__name__)
    names = _class_names(class_names, classes)
    generator = as_generator(random_state)
    rows = _Rows(X, classes, labels, *split_test(labels, test_size, generator))
    with unchanged_on_failure(estimator):
        return RunRecord(
            model=type(estimator).__name__,
            data_name=str(data_name),
            class_names=names,
            n_train=len(rows.train),
            n_test=len(rows.test),
            n_features=X.shape[1],
            n_left_out=check_integer(n_left_out, "n_left_out", minimum=0),
            train_counts=np.bincount(labels[rows.train], minlength=len(classes)),
            test_counts=np.bincount(labels[rows.test], minlength=len(classes)),
            **_watch(estimator, rows, n_snapshots, max_points, generator, callbacks),
        )


class _Rows(NamedTuple):
    """A table with its target, and which rows are learnt from and which tested on."""

    X: Any
    classes: NDArray[Any]  # (C,)
    labels: NDArray[np.int64]  # (n,), positions in classes
    train: NDArray[np.int64]
    test: NDArray[np.int64]

    def take(self, chosen: NDArray[np.int64]) -> Any:
        """Return some rows of the table."""
        return _safe_indexing(self.X, chosen)


def _watch(
    estimator: BaseNetworkClassifier,
    rows: _Rows,
    n_snapshots: int,
    max_points: int,
    generator: np.random.Generator,
    callbacks: "Sequence[Callback]",
) -> dict[str, Any]:
    """Fit, look and test; return what a record has to say about it."""
    _, classes, labels, train, test = rows
    started = time.perf_counter()
    job = prepare_job(estimator, rows.take(train), classes[labels[train]])
    drawn = stratified_sample(job.labels, job.train[0], max_points, generator)
    drawn_test = stratified_sample(labels, test, max_points, generator)
    test_rows = rows.take(drawn_test)
    test_inputs = as_inputs(job.preprocessor.transform(test_rows), job.preprocessor, test_rows)
    recorder = Recorder(job, np.concatenate([job.inputs[drawn], test_inputs]), n_snapshots)
    heard: list[Callback] = [*(estimator.callbacks or []), *callbacks, recorder]
    (trained,) = train_jobs([job], heard, verbose=estimator.verbose)
    estimator.keep(*finish_job(job, trained))
    seconds = time.perf_counter() - started - recorder.seconds

    # Many small products: on a busy machine a second thread makes them ten times slower.
    with threadpool_limits(1, user_api="blas"):
        kept = recorder.finish(trained)
        measure = SnapshotMeasure(estimator, job, drawn, labels[drawn_test])
        measured, means = zip(*map(measure, recorder.snapshots.values()), strict=True)
        answers, results = _test(estimator, rows.take(test), labels[test])
        learnt = stratified_sample(labels, train, max_points, generator)
        recalled = _positions(estimator, estimator.predict(rows.take(learnt)))
    epochs = np.array(list(recorder.snapshots))
    embeddings = np.stack([snapshot.embedding for snapshot in recorder.snapshots.values()])
    arguments, changed = arguments_of(estimator)
    unknown = np.full(len(drawn), -1)
    return {
        "arguments": arguments,
        "changed": changed,
        "versions": versions(),
        **columns_of(estimator.preprocessor_),
        "column_gaps": gaps_of(estimator.preprocessor_, rows.X),
        "layer_sizes": _layer_sizes(estimator, job.inputs.shape[1], embeddings.shape[2]),
        "n_members": len(estimator.heads_),
        "seconds": seconds,
        "normalized": bool(job.design.network["normalize"]),
        "centred": job.design.logits,
        "target": target_similarity(job.design.loss, job.n_classes, embeddings.shape[2]),
        "loss_curve": np.array(estimator.loss_curve_),
        "epochs": epochs,
        "n_epochs": job.design.schedule.n_epochs,
        "kept": int(np.searchsorted(epochs, kept)),
        "measures": {name: np.array([m[name] for m in measured]) for name in MEASURES},
        "class_means": np.stack(means),
        "embeddings": embeddings,
        "labels": np.concatenate([job.labels[drawn], labels[drawn_test]]),
        "predicted": np.concatenate([unknown, answers[np.searchsorted(test, drawn_test)]]),
        "is_test": np.arange(embeddings.shape[1]) >= len(drawn),
        "train_balanced_accuracy": balanced_accuracy(labels[learnt], recalled),
        "prior": estimator.class_prior_,
        **results,
    }


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
