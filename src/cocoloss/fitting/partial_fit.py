"""Learning from rows that come in parts: one epoch on each, and heads on the rows seen lately."""

import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from cocoloss.exceptions import CoCoError
from cocoloss.fitting.fit import (
    Fitted,
    as_table,
    check_arguments,
    finish_job,
    make_design,
    new_seed,
    read_inputs,
    refuse_unlabelled,
)
from cocoloss.fitting.jobs import Job, train_jobs
from cocoloss.fitting.model import History
from cocoloss.fitting.targets import (
    class_weights,
    decision_prior,
    make_copies,
    read_target,
    relative,
)
from cocoloss.heads import EmbeddingHead
from cocoloss.heads.fitted import FittedMatrix, FittedReadout

KEPT = 5000  # recent rows that the heads are fitted on, shared out evenly among the classes
FEWEST = 10  # so many rows of each class, unless it has had fewer, replace the heads of a fit


class RecentRows(NamedTuple):
    """The last rows of each class that came in parts, as the networks get them."""

    inputs: NDArray[np.float32]  # (n, d)
    labels: NDArray[np.int64]  # (n,)
    weights: NDArray[np.float64]  # (n,)
    carry_heads: bool  # whether the heads are fitted on them; those of a fit stay at first


def learn_part(
    estimator: Any, X: Any, y: Any, classes: Any, sample_weight: Any
) -> tuple[Fitted, RecentRows]:
    """Return the model after one more epoch on some rows, and the rows to keep for the next.

    It goes on from the model of the estimator, if there is one.
    """
    check_arguments(estimator)
    refuse_unlabelled(estimator, "partial_fit")
    reader = type(estimator).__name__
    X = as_table(estimator, X)
    given = y
    y, weights = read_target(X, y, sample_weight, reader)
    first = not hasattr(estimator, "model_")
    if first:
        classes, seen = _begin(estimator, y[weights > 0], classes, given)
    else:
        classes, seen = _go_on(estimator)
    labels = _known_labels(y, weights > 0, classes)
    copies = make_copies(X, labels, weights, reader)
    labels, weights = labels[copies.rows], copies.weights
    rows = _safe_indexing(X, copies.rows)
    preprocessor, inputs = read_inputs(estimator, rows, classes[labels], learn=first)
    absent = np.setdiff1d(np.arange(len(classes)), labels)
    if first and len(absent):
        raise CoCoError(
            f"the first part must hold rows of every class, but has none of "
            f"{classes[absent[:5]].tolist()} that weigh anything; put some into it"
        )
    masses = seen.class_masses + np.bincount(labels, weights=weights, minlength=len(classes))

    n, seed = estimator.n_members, seen.seed
    shape = len(labels), inputs.shape[1], len(classes)
    start = None if first else estimator.model_.networks
    design = make_design(estimator, shape, seed, holds_out=False, start=start)
    per_class = _weights_in_training(estimator, classes, masses, design.objective)
    schedule = replace(design.schedule, n_epochs=1, decay="constant", patience=None)
    everything = np.arange(len(labels))
    job = Job(
        design=replace(design, schedule=schedule),
        classes=classes,
        prior=decision_prior(estimator.priors, estimator.class_weight, classes, masses),
        preprocessor=preprocessor,
        inputs=inputs,
        labels=labels,
        weights=relative(weights * per_class[labels]),
        row_weights=weights,
        train=[everything] * n,
        held_out=[everything[:0]] * n,
        seed=seed,
        seeds=[seed + k + n * seen.n_parts for k in range(n)],  # another order in every part
        start=start,
    )
    (trained,) = train_jobs([job], estimator.callbacks or [], verbose=estimator.verbose)
    recent = _keep_rows(None if first else estimator.recent_rows_, job, masses, first=first)
    learnt = masses * per_class  # what the rows of each class weighed in the loss, (C,)
    if recent.carry_heads:
        fitted = finish_job(_on_recent_rows(job, recent, learnt), trained)
    else:
        heads = [_with_shares(head, job.prior, learnt) for head in estimator.heads_]
        fitted = finish_job(job, trained, heads)
    curves = zip(seen.loss_curves, fitted.history.loss_curves, strict=True)
    history = replace(
        fitted.history,
        loss_curves=[before + now for before, now in curves],
        class_masses=masses,
        n_parts=seen.n_parts + 1,
    )
    return fitted._replace(history=history), recent


def _begin(
    estimator: Any, y: NDArray[Any], classes: Any, given: Any
) -> tuple[NDArray[Any], History]:
    """Return the classes, and the history of a model that has seen nothing.

    ``given`` is y as it came, which may say in what order its classes are.
    """
    classes = np.unique(y if classes is None else classes)
    if len(classes) < 2:
        raise CoCoError(
            f"{type(estimator).__name__} needs at least two classes to tell apart, but there is "
            f"one class: {classes.tolist()}; give all classes in the first call"
        )
    classes = estimator.in_order(classes, given)
    n, nothing = estimator.n_members, np.zeros(len(classes))
    return classes, History([[]] * n, np.zeros(n, np.int64), new_seed(estimator), nothing, 0)


def _go_on(estimator: Any) -> tuple[NDArray[Any], History]:
    """Return the classes and the history of the model so far."""
    n_members = len(estimator.model_.heads)
    if n_members != estimator.n_members:
        raise CoCoError(
            f"partial_fit goes on with {n_members} members, but n_members is "
            f"{estimator.n_members}; make a new estimator to start anew"
        )
    return estimator.classes_, estimator.history_


def _known_labels(
    y: NDArray[Any], present: NDArray[np.bool_], classes: NDArray[Any]
) -> NDArray[np.int64]:
    unknown = np.setdiff1d(y[present], classes)
    if len(unknown):
        raise CoCoError(
            f"y has classes that the first part did not name: {unknown[:5].tolist()}; give "
            f"all of them as classes in the first call of partial_fit"
        )
    labels = np.zeros(len(y), dtype=np.int64)
    by_size = np.argsort(classes)
    labels[present] = by_size[np.searchsorted(classes, y[present], sorter=by_size)]
    return labels


def _weights_in_training(
    estimator: Any, classes: NDArray[Any], masses: NDArray[np.float64], objective: Any
) -> NDArray[np.float64]:
    """Return what a row of each class weighs in the loss, by the rows seen so far, (C,)."""
    if isinstance(estimator.class_weight, str):
        raise CoCoError(
            f"class_weight={estimator.class_weight!r} needs all rows at once; give partial_fit a "
            f"dict of weights"
        )
    counted = masses * class_weights(estimator.class_weight, classes, masses)
    return np.asarray(objective.loss_weights(np.arange(len(classes)), counted) / masses)


def _keep_rows(
    recent: RecentRows | None, job: Job, masses: NDArray[np.float64], *, first: bool
) -> RecentRows:
    """Return the last rows of each class, those of the job after those kept before.

    ``masses`` is what all rows of each class have weighed so far, (C,). Where a fit came before,
    its heads stay until there are enough rows.
    """
    parts: list[Any] = [job.inputs, job.labels, job.row_weights]
    if recent is not None:
        kept = (recent.inputs, recent.labels, recent.weights)
        parts = [np.concatenate([old, new]) for old, new in zip(kept, parts, strict=True)]
    C = job.n_classes
    last = [np.flatnonzero(parts[1] == c)[-max(1, KEPT // C) :] for c in range(C)]
    chosen = np.sort(np.concatenate(last))
    inputs, labels, weights = (part[chosen] for part in parts)
    needed = np.minimum(min(FEWEST, max(1, KEPT // C)), np.maximum(1, masses))
    enough = bool((np.bincount(labels, minlength=C) >= np.floor(needed)).all())
    carry_heads = first or enough or (recent is not None and recent.carry_heads)
    return RecentRows(inputs, labels, weights, carry_heads)


def _with_shares(head: Any, prior: NDArray[np.float64], learnt: NDArray[np.float64]) -> Any:
    """Return a head of a fit under a new prior, given what networks have learnt of the classes."""
    if not isinstance(head, EmbeddingHead):
        return head
    share = learnt / learnt.sum()
    changes = {"prior": prior}
    if isinstance(head.fitted_, FittedReadout) and not isinstance(head.fitted_, FittedMatrix):
        changes["share" if head.fitted_.metric == "dot" else "learnt_share"] = share
    head = copy.copy(head)
    head.fitted_ = replace(head.fitted_, **changes)
    return head


def _on_recent_rows(job: Job, recent: RecentRows, learnt: NDArray[np.float64]) -> Job:
    """Return the job on the recent rows, given what all rows of each class weighed, (C,)."""
    inputs, labels, weights, _ = recent
    # Logits have learnt the class shares of all rows seen, not those of the kept ones.
    per_class = learnt / np.bincount(labels, weights=weights)
    everything = np.arange(len(labels))
    return replace(
        job,
        inputs=inputs,
        labels=labels,
        weights=relative(weights * per_class[labels]),
        row_weights=weights,
        train=[everything] * len(job.train),
        held_out=[everything[:0]] * len(job.train),
    )
