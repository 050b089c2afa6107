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
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from cocoloss._checks import check_weights
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.fit import (
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
from cocoloss.fitting.fit_kernels import finish_kernels, solve_kernels
from cocoloss.fitting.jobs import Trained, train_jobs
from cocoloss.fitting.model import Ensemble, as_inputs
from cocoloss.fitting.targets import class_weights, decision_prior
from cocoloss.kernels.distil import distil

SWAPPED = 0.3  # of the cells that students see of rows without a label
NO_LABEL = -1  # among whole numbers, as scikit-learn has it


def read_known(
    X: Any, y: Any, sample_weight: Any
) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_]]:
    """Return y with any class in its gaps, weights, and which rows have a label.

    Gaps are None, NaN and the like, and -1 among whole numbers.
    """
    if np.ndim(y) != 1:
        raise CoCoError("with unlabelled, y must be one column, with -1, None or NaN for no label")
    given, n = pd.Series(y), _num_samples(X)
    if n != len(given):
        raise CoCoError(f"X has {n} rows, but y has {len(given)}; give a class or a gap for each")
    known = given.notna().to_numpy()
    if pd.api.types.infer_dtype(given, skipna=True) == "integer":
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
    """Fit teachers to the labelled rows, and students to what they say of the others."""
    check_arguments(estimator)
    if solver_of(estimator) == "network":
        return _fit_networks(estimator, X, y, weights, known)
    solved = solve_kernels(estimator, X, y, np.where(known, weights, 0.0))
    others = np.flatnonzero(~known & (weights > 0))
    if solved.design is not None or not len(others):  # labels are many, or all there are
        return finish_kernels(solved)
    rows, found = solved.rows, solved.found
    table = _safe_indexing(rows.table, others)
    unlabelled = as_inputs(rows.preprocessor.transform(table), rows.preprocessor, table)
    student = distil(
        found,
        rows.inputs,
        rows.labels,
        rows.weights,
        rows.class_weights,
        found.criterion.rows.points,
        rows.prior,
        unlabelled,
        solved.seed,
        solved.pace,
    )
    return finish_kernels(solved._replace(found=student))


def _fit_networks(
    estimator: Any,
    X: Any,
    y: Any,
    weights: NDArray[np.float64],
    known: NDArray[np.bool_],
) -> Fitted:
    """Train members on the labelled rows, and as many on all of them.

    The students' classes are the teachers', weighed by how sure these are.
    """
    every = read_rows(estimator, X, y, weights, keep_preprocessor=False)
    has_label = known[every.positions]
    labelled = _only(every, np.flatnonzero(has_label))
    C = len(every.classes)
    masses = np.bincount(labelled.labels, labelled.weights, C).astype(np.float64)
    meant: dict[str, Any] = {
        "class_weights": class_weights(estimator.class_weight, every.classes, masses),
        "prior": decision_prior(estimator.priors, estimator.class_weight, every.classes, masses),
        "masses": masses,
    }
    labelled, seed = replace(labelled, **meant), new_seed(estimator)
    K = estimator.n_members
    teachers, trained = _train(estimator, labelled, range(seed, seed + K))
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
    every = replace(every, inputs=inputs, labels=labels, weights=trust, **meant)
    students, more = _train(estimator, every, range(seed + K, seed + 2 * K), has_label)
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
