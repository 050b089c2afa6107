"""Rows without a label: which they are, and fits that learn from them, too.

y ->  ``read_known``   which rows have a label; "ignore" gives the others a weight of zero
  ->  ``fit_soft``     teachers on the labelled rows, students on all of them
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from cocoloss._checks import check_weights
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.fit import (
    FEWEST_EPOCHS,
    LEAST_SECONDS,
    Fitted,
    Rows,
    check_arguments,
    finish_job,
    job_of,
    make_design,
    new_seed,
    read_rows,
    solver_of,
    split_members,
)
from cocoloss.fitting.fit_kernels import ROWS_A_SECOND, finish_kernels, solve_rows
from cocoloss.fitting.jobs import Trained, train_jobs
from cocoloss.fitting.model import Ensemble
from cocoloss.fitting.targets import class_weights, decision_prior
from cocoloss.kernels.closed_form import SAMPLE
from cocoloss.kernels.distil import distil
from cocoloss.pace import Pace

SWAPPED = 0.3  # of the cells that students see of rows without a label
NO_LABEL = -1  # among whole numbers, as scikit-learn has it


def read_known(
    X: Any, y: Any, sample_weight: Any
) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_]]:
    """Return y with any class in its gaps, weights, and which rows have a label.

    Gaps are None, NaN and the like, and -1 among whole numbers; floats with a gap may have it as a
    class.
    """
    if np.ndim(y) != 1:
        raise CoCoError("with unlabelled, y must be one column, with -1, None or NaN for no label")
    given, n = pd.Series(y), _num_samples(X)
    if n != len(given):
        raise CoCoError(f"X has {n} rows, but y has {len(given)}; give a class or a gap for each")
    known = given.notna().to_numpy()
    kind = pd.api.types.infer_dtype(given, skipna=True)
    if kind == "integer" or (kind == "floating" and known.all() and not (given % 1).any()):
        known = known & (given != NO_LABEL).to_numpy(dtype=bool, na_value=False)
    weights = check_weights(sample_weight, n)
    if not known.any():
        raise CoCoError("y has no label at all, only -1 or gaps; give some rows their class")
    return given.where(known, given[known].iloc[0]), weights, known


def fit_soft(
    estimator: Any,
    X: Any,
    y: Any,
    weights: NDArray[np.float64],
    known: NDArray[np.bool_],
) -> Fitted:
    """Fit teachers to the labelled rows, and students to what they say of the others.

    What kernels and what networks find in a handful of labels differs enough that both together
    know more; "auto" is both.
    """
    check_arguments(estimator)
    solver = solver_of(estimator)
    by_networks = solver == "network"
    pace = Pace(estimator.time_limit, verbose=estimator.verbose)
    every = read_rows(estimator, X, y, weights, keep_preprocessor=False, ranks=not by_networks)
    has_label = known[every.positions]
    labelled = _labelled(estimator, every, has_label)
    if by_networks:
        return _soft_networks(estimator, every, labelled, has_label, new_seed(estimator), pace)
    room = SAMPLE - len(labelled.labels)
    if room <= 0 or has_label.all():  # labels are many, or all there are
        return finish_kernels(solve_rows(estimator, labelled, pace))
    q = None
    if solver != "kernel":  # networks come later; their embeddings have the same dimension
        shape = len(labelled.labels), every.inputs.shape[1], len(every.classes)
        q = make_design(estimator, shape, 0, holds_out=True).layer_sizes[-1]
    solved = solve_rows(estimator, labelled, pace, q)
    others = np.random.default_rng([solved.seed, 6]).permutation(np.flatnonzero(~has_label))[:room]
    student = distil(solved.found, solved.lesson, every.inputs[others], solved.seed, pace)
    networks = None
    chosen = np.sort(np.r_[np.flatnonzero(has_label), others])
    least = FEWEST_EPOCHS * 2 * estimator.n_members * len(chosen) / ROWS_A_SECOND  # seconds
    if q is not None and pace.has(least, "networks beside the kernels"):
        networks = _soft_networks(
            estimator, _only(every, chosen), labelled, has_label[chosen], solved.seed, pace
        )
    return finish_kernels(solved._replace(found=student, design=None), networks)


def _labelled(estimator: Any, every: Rows, has_label: NDArray[np.bool_]) -> Rows:
    """Return the rows that have a label, which alone say how often classes occur."""
    rows = _only(every, np.flatnonzero(has_label))
    masses = np.bincount(rows.labels, rows.weights, len(rows.classes)).astype(np.float64)
    return replace(
        rows,
        class_weights=class_weights(estimator.class_weight, rows.classes, masses),
        prior=decision_prior(estimator.priors, estimator.class_weight, rows.classes, masses),
        masses=masses,
    )


def _soft_networks(
    estimator: Any,
    every: Rows,
    labelled: Rows,
    has_label: NDArray[np.bool_],
    seed: int,
    pace: Pace,
) -> Fitted:
    """Train members on the labelled rows, and as many on all of them.

    The students' classes are the teachers', weighed by how sure these are.
    """
    C, K = len(every.classes), estimator.n_members
    teachers, trained = _train(estimator, labelled, range(seed, seed + K), pace.left / 2)
    if has_label.all():
        return teachers
    places = np.flatnonzero(~has_label)
    embedded = (
        trained.networks.outputs if teachers.model.reads_outputs else trained.networks.embeddings
    )(every.inputs[places])
    heads = teachers.model.heads
    if not all(hasattr(head, "predict_log_proba") for head in heads):
        raise CoCoError(
            f"unlabelled='soft' needs probabilities, which head={estimator.head!r} does not have; "
            f"leave head out, or use unlabelled='ignore'"
        )
    said = [head.predict_log_proba(h) for head, h in zip(heads, embedded, strict=True)]
    proba = np.exp(np.mean(said, axis=0) - np.log(labelled.prior))
    proba /= proba.sum(axis=1, keepdims=True)
    by_chance = 1 / C
    sure = np.square((proba.max(axis=1) - by_chance) / (1 - by_chance))
    labels, trust = every.labels.copy(), every.weights.copy()
    labels[places] = proba.argmax(axis=1)
    trust[places] *= np.maximum(sure, np.finfo(np.float32).eps)
    inputs = every.inputs.copy()
    inputs[places] = _with_cells_of_others(inputs[places], np.random.default_rng([seed, 7]))
    every = replace(
        every,
        inputs=inputs,
        labels=labels,
        weights=trust,
        class_weights=labelled.class_weights,
        prior=labelled.prior,
        masses=labelled.masses,
    )
    students, more = _train(estimator, every, range(seed + K, seed + 2 * K), pace.left, has_label)
    return _together(teachers, students, trained, more)


def _with_cells_of_others(
    inputs: NDArray[np.float32], generator: np.random.Generator
) -> NDArray[np.float32]:
    """Return rows some of whose cells are those of other rows, so that students learn to differ."""
    n, d = inputs.shape
    others = inputs[generator.integers(n, size=(n, d)), np.arange(d)]
    return np.where(generator.random((n, d)) < SWAPPED, others, inputs)


def _only(rows: Rows, chosen: NDArray[np.intp]) -> Rows:
    """Return some of the rows."""
    return replace(
        rows,
        positions=rows.positions[chosen],
        labels=rows.labels[chosen],
        weights=rows.weights[chosen],
        groups=np.unique(rows.groups[chosen], return_inverse=True)[1],
        inputs=rows.inputs[chosen],
    )


def _train(
    estimator: Any,
    rows: Rows,
    seeds: Sequence[int],
    seconds: float,
    has_label: NDArray[np.bool_] | None = None,
) -> tuple[Fitted, Trained]:
    """Train members on rows, of which those with a label are held out now and then."""
    places = np.arange(len(rows.labels)) if has_label is None else np.flatnonzero(has_label)
    judges = _only(rows, places)
    train, held_out = split_members(estimator, judges.labels, judges.groups, list(seeds))
    rest = np.setdiff1d(np.arange(len(rows.labels)), places)
    train = [np.concatenate([places[part], rest]) for part in train]
    shape = len(train[0]), rows.inputs.shape[1], len(rows.classes)
    design = make_design(estimator, shape, seeds[0], holds_out=estimator.early_stopping)
    if estimator.time_limit is not None:
        schedule = replace(design.schedule, seconds=max(seconds, LEAST_SECONDS))
        design = replace(design, schedule=schedule)
    job = job_of(rows, design, train, [places[part] for part in held_out], seeds[0], list(seeds))
    (trained,) = train_jobs([job], estimator.callbacks or (), verbose=estimator.verbose)
    return finish_job(job, trained), trained


def _together(teachers: Fitted, students: Fitted, first: Trained, second: Trained) -> Fitted:
    """Return one model of both, whose probabilities are averaged."""
    one, other = first.networks, second.networks
    assert isinstance(one, Ensemble)  # no module of the user's own: see check_arguments
    assert isinstance(other, Ensemble)
    both = replace(one, parameters=np.concatenate([one.parameters, other.parameters]))
    model = replace(
        teachers.model, networks=both, heads=(*teachers.model.heads, *students.model.heads)
    )
    history = replace(
        teachers.history,
        loss_curves=[*first.loss_curves, *second.loss_curves],
        best_epochs=np.concatenate([first.best_epochs, second.best_epochs]),
    )
    every = [*teachers.heads, *students.heads]
    why = "students have learnt what teachers say of the rows that were held out"
    return teachers._replace(model=model, history=history, heads=every, honest=why)
