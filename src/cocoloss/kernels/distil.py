"""Few labels in closed form: teachers on the labelled rows, a student on all rows.

    labelled rows ->  teachers, one of all columns, others of columns drawn at random
    all rows      ->  the student, one function onto the points that the teachers expect

With a handful of rows of each class, what is chosen by leave-one-out is mostly luck; many fits that
see other columns average it out. Rows without a label say where the average must be learnt, and
stand beside the others as landmarks and in the learnt metric. Knows matrices and labels.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.heads.fitted import log_softmax
from cocoloss.heads.readout import matrix_readout
from cocoloss.kernels.classes import ClosedForm, fit_closed_form
from cocoloss.kernels.closed_form import SAMPLE
from cocoloss.kernels.exact import Solution
from cocoloss.kernels.search import USUAL, Search, find_recipe, machine_of
from cocoloss.pace import Pace

N_TEACHERS = 16  # beside the first, each of a part of the columns:
PARTS = (0.5, 0.75)
FEWEST_COLUMNS = 3  # of which parts are drawn
TEMPER = 0.1  # of what labelled rows say about teachers, whose settings they have chosen
# Targets are a function without noise: small ridges suffice.
SEARCH: Search = replace(
    USUAL,
    ridges=(0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    close=(1.1, 0.0),
    loss="squared error",
)


def distil(
    first: ClosedForm,
    inputs: NDArray[np.float32],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    class_weights: NDArray[np.float64],
    points: NDArray[np.float64],
    prior: NDArray[np.float64],
    unlabelled: NDArray[np.float32],
    seed: int,
    pace: Pace,
) -> ClosedForm:
    """Return a student that has learnt from labels, and from what teachers say of other rows.

    Parameters
    ----------
    first : ClosedForm
        The fit to the labelled rows alone, which is the first teacher.
    inputs, labels, weights, class_weights, points, prior
        As of :func:`cocoloss.kernels.classes.fit_closed_form`.
    unlabelled : array of shape (m, d)
        Rows without a label; of more than there is room for, some are drawn.
    seed : int
        What columns and rows follow from.
    pace : Pace
        How long it may take.

    Notes
    -----
    A teacher's word weighs exp(-0.1 N L), with L its log loss on N rows that it has not learnt
    from: all weigh alike where labels are few, and the best has its way where they are many.
    Labelled rows alone calibrate the student, by what teachers say of those left out.
    """
    generator = np.random.default_rng([seed, 6])
    room = max(SAMPLE - len(inputs), 0)
    if len(unlabelled) > room:
        unlabelled = unlabelled[np.sort(generator.permutation(len(unlabelled))[:room])]
    if not len(unlabelled):
        return first
    everything = np.arange(inputs.shape[1])
    n_teachers = N_TEACHERS if len(everything) >= FEWEST_COLUMNS else 0
    sizes = [math.ceil(PARTS[k % len(PARTS)] * len(everything)) for k in range(n_teachers)]
    drawn = [np.sort(generator.permutation(everything)[:size]) for size in sizes]
    of_class = np.bincount(labels, weights=weights)
    alike = weights / of_class[labels] / len(of_class)  # every class counts the same
    honest: list[NDArray[np.float64]] = []
    said: list[NDArray[np.float64]] = []
    losses: list[float] = []
    started, found = pace.elapsed, first
    for columns in (everything, *drawn):
        if columns is not everything:
            if not pace.has((pace.elapsed - started) / max(len(said) - 1, 1), "teachers"):
                break
            found = fit_closed_form(
                inputs[:, columns], labels, weights, class_weights, points, prior, len(said)
            )
        honest.append(_log_posterior(found, found.honest))
        said.append(_log_posterior(found, found.machine(unlabelled[:, columns])))
        losses.append(-float(alike @ honest[-1][np.arange(len(labels)), labels]))
    trust = np.exp(-TEMPER * len(labels) * (np.array(losses) - min(losses)))
    trust /= trust.sum()
    pace.say(
        f"{len(said)} teachers, of which the first has {trust[0]:.0%} of the say about "
        f"{len(unlabelled)} rows without a label"
    )
    expected, of_labelled = (
        np.exp(log_softmax(np.tensordot(trust, np.stack(each), 1))) @ points
        for each in (said, honest)
    )
    X, targets, masses = _merged(
        np.concatenate([inputs, unlabelled]),
        np.concatenate([points[labels], expected]),
        np.concatenate([weights, np.ones(len(unlabelled))]),
    )

    def squared_error(solution: Solution) -> float:
        off = targets - solution.leave_one_out(targets, masses)
        return float(masses @ np.square(off).sum(axis=1) / masses.sum())

    recipe, members = find_recipe(X, targets, masses, squared_error, SEARCH)
    readout = matrix_readout(of_labelled @ points.T, labels, weights, points, prior)
    return replace(
        first, machine=machine_of(X, members), readout=readout, recipe=recipe, honest=of_labelled
    )


def _log_posterior(found: ClosedForm, embeddings: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log probabilities as if classes were equally likely, (n, C)."""
    return log_softmax(found.readout.predict_log_proba(embeddings) - np.log(found.readout.prior))


def _merged(
    X: NDArray[np.float32], targets: NDArray[Any], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64]]:
    """Return distinct rows, the mean target of each, and what it weighs."""
    X, row = np.unique(X, axis=0, return_inverse=True)
    masses = np.bincount(row.ravel(), weights=weights).astype(np.float64)
    sums = np.zeros((len(X), targets.shape[1]))
    np.add.at(sums, row.ravel(), weights[:, None] * targets)
    return X, sums / masses[:, None], masses
