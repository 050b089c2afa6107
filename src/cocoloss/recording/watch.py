"""Watch a fit: the embedding by its epochs, or its ridges, and results on test rows."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import cohen_kappa_score, confusion_matrix
from sklearn.metrics import log_loss as mean_log_loss
from sklearn.utils import _safe_indexing
from threadpoolctl import threadpool_limits

from cocoloss._checks import RandomState, as_generator, check_integer, check_share
from cocoloss.estimators.classifiers import BaseNetworkClassifier, CoCoOrdinalClassifier
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.fit import (
    as_table,
    finish_job,
    prepare_job,
    solver_of,
    unchanged_on_failure,
)
from cocoloss.fitting.fit_kernels import finish_kernels, solve_kernels
from cocoloss.fitting.jobs import Job, Trained, train_jobs
from cocoloss.fitting.model import Ensemble, FittedModel, as_inputs
from cocoloss.fitting.targets import encode_targets
from cocoloss.heads.decisions import cost_matrix
from cocoloss.metrics import balanced_accuracy
from cocoloss.recording.decisions import WORST, decision_record, worst_rows
from cocoloss.recording.measure import (
    Snapshot,
    SnapshotMeasure,
    make_film,
    path_record,
    prototypes,
    reliability_curve,
    target_similarity,
)
from cocoloss.recording.record import (
    MEASURES,
    Outcome,
    RunRecord,
    about,
)
from cocoloss.recording.why import Why, index_of, why_of_classes

if TYPE_CHECKING:
    from cocoloss.training import Callback, Epoch

FEWEST_OF_A_CLASS = 2  # rows of each class in a sample, if it has them


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
    costs: Any = None,
) -> RunRecord:
    """Fit a classifier on a part of the rows, watch it learn, and test it on the other rows.

    Networks are watched epoch by epoch. A fit in closed form, ``solver="kernel"``, has no epochs:
    its ridge path is walked, and the record has what kernels know besides, such as importances.

    The estimator is fitted as ``estimator.fit`` would fit it on the same rows: looking changes
    nothing. If anything fails, it stays as it was. Callbacks that were set with scikit-learn's
    ``set_callbacks`` are not called.

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
        always before training, at the epoch that is kept and at the last one. Of kernels, ridges
        at which the first is looked at, from everything alike to collapse. 0 fits without a look.
    max_points : int, default=1000
        At most so many training rows, and so many test rows, are embedded at every snapshot;
        but two of each class, if it has them.
    random_state : int, numpy generator or None, default=0
        Chooses test rows and embedded rows; the estimator has a seed of its own.
    callbacks : sequence of callables
        Listeners beside those of the estimator; networks have some.
    data_name : str
        What to call the data.
    class_names : sequence of str, optional
        What to call the classes, in the order of ``np.unique(y)``, or of levels.
    n_left_out : int, default=0
        Rows without a class that the data had besides, for the record.
    costs : dict, DataFrame or array of shape (C, C), optional
        What mistakes cost, as for ``predict`` of the classifier.

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
    if not isinstance(estimator, BaseNetworkClassifier):
        raise CoCoError(
            f"record_fit looks into the networks of a classifier of cocoloss, but got "
            f"{type(estimator).__name__}; give CoCoClassifier() or one of its kin, and a "
            f"CoCoRegressor to record_numbers"
        )
    check_share(test_size, "test_size")
    if n_snapshots:  # 0 is none, and one is no film
        check_integer(n_snapshots, "n_snapshots", minimum=2)
    check_integer(max_points, "max_points", minimum=2)
    X = as_table(estimator, X)
    classes, labels, _ = encode_targets(X, y, None, type(estimator).__name__, estimator.in_order)
    names = tuple(map(str, classes.tolist() if class_names is None else class_names))
    if len(names) != len(classes):
        raise CoCoError(
            f"class_names has {len(names)} names, but y has {len(classes)} classes; give one each"
        )
    paid = None if costs is None else cost_matrix(costs, classes)
    generator = as_generator(random_state)
    draw = partial(stratified_sample, most=max_points, generator=generator)
    train, test = split_test(labels, test_size, generator)
    rows = _Rows(X, classes, labels, train, test, draw(labels, test), draw)
    look = _looks(estimator, n_snapshots)
    with unchanged_on_failure(estimator):
        seen = look(estimator, rows, n_snapshots, callbacks)
        return RunRecord(
            model=type(estimator).__name__,
            data_name=str(data_name),
            class_names=names,
            n_train=len(train),
            n_test=len(test),
            n_features=X.shape[1],
            n_left_out=check_integer(n_left_out, "n_left_out", minimum=0),
            train_counts=np.bincount(labels[train], minlength=len(classes)),
            test_counts=np.bincount(labels[test], minlength=len(classes)),
            **seen,
            **_results(estimator, rows, len(seen["labels"]), names, paid),
            why=_why(estimator, rows, names),
        )


class _Rows(NamedTuple):
    """A table with its target, and which rows are learnt from, tested on and shown."""

    X: Any
    classes: NDArray[Any]  # (C,)
    labels: NDArray[np.int64]  # (n,), positions in classes
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    shown: NDArray[np.int64]  # some of the test rows
    draw: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]  # labels, rows: some

    def learnt(self) -> tuple[Any, NDArray[Any]]:
        """Return the training rows and their classes."""
        return self.take(self.train), self.target(self.train)

    def take(self, chosen: NDArray[np.int64]) -> Any:
        """Return some rows of the table."""
        return _safe_indexing(self.X, chosen)

    def target(self, chosen: NDArray[np.int64]) -> Any:
        """Return their classes, with the order that they have, if it is not the usual one."""
        values = self.classes[self.labels[chosen]]
        if np.array_equal(self.classes, np.unique(self.classes)):
            return values
        return pd.Series(pd.Categorical(values, self.classes, ordered=True))


# Fitting with a look: each of these fits the estimator, and returns what it saw on the way as parts
# of a record. Drawn rows are shown: training rows first, then test rows.


def _looks(estimator: BaseNetworkClassifier, n_snapshots: int) -> Callable[..., dict[str, Any]]:
    """Return the one for a solver; without snapshots the fit is not watched."""
    if not n_snapshots:
        return _fit_blindly
    return _watch_networks if solver_of(estimator) == "network" else _walk_ridges


def _watch_networks(
    estimator: BaseNetworkClassifier,
    rows: _Rows,
    n_snapshots: int,
    callbacks: "Sequence[Callback]",
) -> dict[str, Any]:
    """Fit networks, and look at the first of them at some epochs."""
    started = time.perf_counter()
    job = prepare_job(estimator, *rows.learnt())
    drawn = rows.draw(job.labels, job.train[0])
    test_rows, test_labels = rows.take(rows.shown), rows.labels[rows.shown]
    test_inputs = as_inputs(job.preprocessor.transform(test_rows), job.preprocessor, test_rows)
    recorder = Recorder(job, np.concatenate([job.inputs[drawn], test_inputs]), n_snapshots)
    listeners: list[Callback] = [*(estimator.callbacks or []), *callbacks, recorder]
    (trained,) = train_jobs([job], listeners, verbose=estimator.verbose)
    fitted = finish_job(job, trained)
    estimator.keep(*fitted)
    seconds = time.perf_counter() - started - recorder.seconds

    # Many small products: on a busy machine a second thread makes them ten times slower.
    with threadpool_limits(1, user_api="blas"):
        kept = recorder.finish(trained)
        measure = SnapshotMeasure(job, fitted, drawn, test_labels)
        measured, means = zip(*map(measure, recorder.snapshots.values()), strict=True)
    epochs = np.array(list(recorder.snapshots))
    embeddings = np.stack([snapshot.embedding for snapshot in recorder.snapshots.values()])
    n_inputs, q = job.inputs.shape[1], embeddings.shape[2]
    own = job.design.module  # whose hidden layers are unknown
    return {
        "layer_sizes": tuple(job.design.layer_sizes) if own is None else (n_inputs, q),
        "n_members": len(fitted.heads),
        "seconds": seconds,
        "normalized": bool(job.design.network["normalize"]),
        "centred": job.design.logits,
        "target": target_similarity(job.design.loss, job.n_classes, q),
        "loss_curve": np.array(estimator.loss_curve_),
        "epochs": epochs,
        "n_epochs": job.design.schedule.n_epochs,
        "kept": int(np.searchsorted(epochs, kept)),
        "measures": {name: np.array([m[name] for m in measured]) for name in MEASURES},
        "class_means": np.stack(means),
        "embeddings": embeddings,
        "labels": np.concatenate([job.labels[drawn], test_labels]),
    }


def _walk_ridges(
    estimator: BaseNetworkClassifier,
    rows: _Rows,
    n_snapshots: int,
    callbacks: "Sequence[Callback]",
) -> dict[str, Any]:
    """Fit kernels, and look at the first of them at every ridge."""
    if callbacks:
        raise CoCoError("callbacks hear of epochs, and kernels have none; leave them out")
    started = time.perf_counter()
    solved = solve_kernels(estimator, *rows.learnt())
    fitted = finish_kernels(solved)
    estimator.keep(*fitted)
    seconds = time.perf_counter() - started

    found, model, test_labels = solved.found, fitted.model, rows.labels[rows.shown]
    pairs = found.criterion.rows
    every = np.repeat(np.arange(len(pairs.row)), pairs.copies)  # as often as there are rows
    drawn = every[rows.draw(pairs.label[every], np.arange(len(every)))]
    with threadpool_limits(1, user_api="blas"):
        test_inputs = model.inputs(rows.take(rows.shown))
        film = make_film(found, drawn, test_inputs, test_labels, n_snapshots)
        path = path_record(found, model, film.ridges)
    return _of_model(model, len(pairs.points)) | {
        "seconds": seconds,
        "target": pairs.points @ pairs.points.T,
        "kept": film.kept,
        "measures": film.measures,
        "class_means": film.class_means,
        "embeddings": film.embeddings,
        "labels": np.concatenate([pairs.label[drawn], test_labels]),
        "ridge_path": path,
    }


def _fit_blindly(estimator: BaseNetworkClassifier, rows: _Rows, *_: Any) -> dict[str, Any]:
    """Fit without a look."""
    started = time.perf_counter()
    estimator.fit(*rows.learnt())
    seconds = time.perf_counter() - started
    return _of_model(estimator.model_, len(rows.classes)) | {
        "seconds": seconds,
        "labels": rows.labels[rows.shown],
        "embeddings": np.zeros((0, len(rows.shown), estimator.model_.networks.width), np.float32),
    }


def _of_model(model: FittedModel, n_classes: int) -> dict[str, Any]:
    """Return what a record says of a model without epochs and snapshots."""
    networks, machine = model.networks, model.machine
    made_of = {"member": "network", "n_members": len(model.heads)}
    if machine is not None:
        made_of = {"member": "kernel", "n_members": len(machine.kernels)}
        made_of["n_networks"] = len(model.heads) - 1
    return {
        **made_of,
        "layer_sizes": getattr(networks, "layer_sizes", (networks.n_inputs, networks.width)),
        "normalized": bool(getattr(networks, "normalize", False)),
        "centred": False,
        "target": None,
        "loss_curve": np.zeros(0),
        "epochs": np.zeros(0, np.int64),
        "n_epochs": 0,
        "kept": 0,
        "measures": {name: np.zeros(0) for name in MEASURES},
        "class_means": np.zeros((0, n_classes, networks.width)),
    }


# What a fitted estimator says of rows, and of itself.


def _results(
    estimator: Any,
    rows: _Rows,
    n_shown: int,
    names: tuple[str, ...],
    costs: NDArray[np.float64] | None,
) -> dict[str, Any]:
    """Return the other parts of a record; of n rows that are shown the last are test rows."""
    labels, train, test = rows.labels, rows.train, rows.test
    with threadpool_limits(1, user_api="blas"):
        table = rows.take(test)
        proba = estimator.predict_proba(table) if hasattr(estimator, "predict_proba") else None
        predicted, tested = _test(estimator, table, labels[test], proba)
        learnt = rows.draw(labels, train)
        recalled = _positions(estimator, estimator.predict(rows.take(learnt)))
    left_out = None
    if hasattr(estimator, "loo_proba_"):
        left_out = _outcome(labels[train], estimator.loo_proba_, estimator)
    unknown = np.full(n_shown - len(rows.shown), -1)
    described = about(estimator, rows.X)
    return {
        **described,
        **_decisions(estimator, rows, proba, names, costs, described["importances"]),
        "predicted": np.concatenate([unknown, predicted[np.searchsorted(test, rows.shown)]]),
        "is_test": np.arange(n_shown) >= len(unknown),
        "train_balanced_accuracy": balanced_accuracy(labels[learnt], recalled),
        "prior": estimator.class_prior_,
        "left_out": left_out,
        **vars(tested),
    }


def _why(estimator: Any, rows: _Rows, names: Sequence[str]) -> Why | None:
    """Return why test rows get the predictions that they get."""
    trained = index_of(rows.X)[rows.train]
    with threadpool_limits(1, user_api="blas"):
        labels = rows.labels[rows.shown]
        return why_of_classes(estimator.model_, rows.take(rows.shown), labels, names, trained)


def _decisions(
    estimator: Any,
    rows: _Rows,
    proba: NDArray[np.float64] | None,
    names: tuple[str, ...],
    costs: NDArray[np.float64] | None,
    importances: dict[str, float],
) -> dict[str, Any]:
    """Return what a record says of thresholds, costs and the worst rows, given probabilities."""
    if proba is None:
        return {}
    labels, test = rows.labels[rows.test], rows.take(rows.test)
    learnt = rows.labels[rows.train]
    judged = {"test rows": (labels, proba)}
    if hasattr(estimator, "loo_proba_"):
        judged["leave-one-out"] = learnt, estimator.loo_proba_
    cheapest = None
    if costs is not None:
        cheapest = _positions(estimator, estimator.predict(test, costs=costs))
    of_truth, predicted = proba[np.arange(len(labels)), labels], proba.argmax(axis=1)
    order = np.argsort(of_truth, kind="stable")[:WORST]
    remarks = [(names[labels[i]], names[predicted[i]], float(of_truth[i])) for i in order]
    counts = np.bincount(learnt, minlength=len(names))
    return {
        "decisions": decision_record(judged, rows.classes, counts, costs, cheapest),
        "worst": worst_rows(test, rows.test, order, remarks, importances),
    }


def _positions(estimator: Any, predicted: NDArray[Any]) -> NDArray[np.int64]:
    return np.asarray(pd.Index(estimator.classes_).get_indexer(pd.Index(predicted)))


def _test(
    estimator: Any, X: Any, labels: NDArray[np.int64], probabilities: NDArray[np.float64] | None
) -> tuple[NDArray[np.int64], Outcome]:
    """Return the predicted classes of the test rows, and how good they are."""
    if probabilities is not None:
        predicted = probabilities.argmax(axis=1)  # which is what predict does
        return predicted, _outcome(labels, probabilities, estimator)
    predicted = _positions(estimator, estimator.predict(X))
    certain = _outcome(labels, np.eye(len(estimator.classes_))[predicted], estimator)
    unknown: dict[str, Any] = {"reliability": None, "reliability_at_shares": None}
    return predicted, replace(certain, log_loss=float("nan"), **unknown)


def _outcome(
    labels: NDArray[np.int64], probabilities: NDArray[np.float64], estimator: Any
) -> Outcome:
    """Return how good probabilities are, and the classes that they say."""
    prior = estimator.class_prior_
    classes, predicted = np.arange(len(prior)), probabilities.argmax(axis=1)
    masses = estimator.history_.class_masses
    brought = probabilities * (masses / masses.sum() / prior)  # by Bayes' rule
    of_levels = {}
    if isinstance(estimator, CoCoOrdinalClassifier):
        of_levels["levels_off"] = float(np.abs(labels - predicted).mean())
        kappa = cohen_kappa_score(labels, predicted, labels=classes, weights="quadratic")
        of_levels["kappa"] = float(kappa)
    return Outcome(
        confusion=confusion_matrix(labels, predicted, labels=classes),
        balanced_accuracy=balanced_accuracy(labels, predicted),
        accuracy=float(np.mean(labels == predicted)),
        log_loss=float(mean_log_loss(labels, probabilities, labels=classes)),
        reliability=reliability_curve(probabilities, labels),
        reliability_at_shares=reliability_curve(brought / brought.sum(1, keepdims=True), labels),
        **of_levels,
    )


class Recorder:
    """A callback that takes snapshots of the first network, at about so many epochs.

    ``snapshots`` has them by epoch; 0 is before training. ``seconds`` is what looking has cost.
    """

    def __init__(self, job: Job, inputs: NDArray[np.float32], n_snapshots: int) -> None:
        started = time.perf_counter()
        self._design, self._inputs = job.design, inputs
        # The networks before the first step: a training of no epochs.
        schedule = replace(job.design.schedule, n_epochs=0)
        (before,) = train_jobs([replace(job, design=replace(job.design, schedule=schedule))])
        modules = getattr(before.networks, "modules", None)
        self._scratch = None if modules is None else modules[0]
        self.snapshots = {0: self._look(_weights(before.networks, 0))}
        self._epochs = set(snapshot_epochs(job.design.schedule.n_epochs, n_snapshots))
        self._latest: tuple[int, Any] | None = None
        self.seconds = time.perf_counter() - started

    def __call__(self, epoch: "Epoch") -> None:
        """Look at the first network, if it still trains."""
        place = np.flatnonzero(epoch.models == 0)
        if not len(place):
            return
        started = time.perf_counter()
        # The next epoch may not come, so the weights of this one are kept.
        self._latest = epoch.number, _weights(epoch.network, int(place[0]))
        if epoch.number in self._epochs:
            self.snapshots[epoch.number] = self._look(self._latest[1])
        self.seconds += time.perf_counter() - started

    def finish(self, trained: Trained) -> int:
        """Add the last epoch and the one that was kept; return the latter."""
        if self._latest is not None:
            number, weights = self._latest
            if number not in self.snapshots:
                self.snapshots[number] = self._look(weights)
        kept = int(trained.best_epochs[0])
        self.snapshots[kept] = self._look(_weights(trained.networks, 0))
        self.snapshots = dict(sorted(self.snapshots.items()))
        return kept

    def _look(self, weights: Any) -> Snapshot:
        """Embed the rows by a network of these weights."""
        design = self._design
        if self._scratch is None:
            networks = design.make_networks(weights[None], None)
        else:
            self._scratch.load_state_dict(weights)
            self._scratch.eval()
            nothing = np.empty((1, 0), dtype=np.float32)  # the module holds its parameters
            networks = design.make_networks(nothing, [self._scratch])
        with np.errstate(over="ignore", invalid="ignore"):  # a run that diverged is shown as such
            embedding = networks.embeddings(self._inputs)[0].astype(np.float32)
            if not (design.logits and isinstance(networks, Ensemble)):
                return Snapshot(embedding, embedding, prototypes(design.loss), None)
            outputs = networks.outputs(self._inputs)[0].astype(np.float32)
        *_, (last, bias) = networks.layers(0)
        return Snapshot(embedding, outputs, last.T, bias)


def _weights(networks: Any, k: int) -> Any:
    """Copy the weights of network k: an array, or the state of a module of the user's own."""
    modules = getattr(networks, "modules", None)
    if isinstance(modules, list):
        return {name: value.detach().clone() for name, value in modules[k].state_dict().items()}
    weights = networks.parameters[k]
    return np.array(weights.detach().cpu().numpy() if hasattr(weights, "detach") else weights)


def snapshot_epochs(n_epochs: int, n_snapshots: int) -> list[int]:
    """Return the epochs to look at, 0 first and the last one last: dense early, sparse later."""
    if n_snapshots > n_epochs:
        return list(range(n_epochs + 1))
    epochs = [0]
    for k in range(1, n_snapshots):
        planned = round(n_epochs * (k / (n_snapshots - 1)) ** 2)
        epochs.append(max(epochs[-1] + 1, planned))
    return epochs


def split_test(
    labels: NDArray[np.int64], test_size: float, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows to learn from and rows to test on, both sorted.

    Every class keeps a row to learn from, and if it has two it gives one to the test.
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
    labels: NDArray[np.int64], rows: NDArray[np.int64], most: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Return some of the rows, sorted, with the class shares of all; at least two of a class."""
    if len(rows) <= most:
        return np.sort(rows)
    chosen = []
    for c in np.unique(labels[rows]):
        members = generator.permutation(rows[labels[rows] == c])
        chosen.append(members[: max(FEWEST_OF_A_CLASS, int(most * len(members) / len(rows)))])
    return np.sort(np.concatenate(chosen))
