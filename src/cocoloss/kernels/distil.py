"""Few labels in closed form: teachers on the labelled rows, a student on all rows.

    labelled rows ->  teachers, one of all columns, others of columns drawn at random
    all rows      ->  the student, one function onto what the teachers say of them

With a handful of rows of each class, what is chosen by leave-one-out is mostly luck; many fits that
see other columns average it out. Rows without a label say where the average must be learnt, and
stand beside the others as landmarks and in the learnt metric. Knows matrices and labels.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cocoloss.geometry import target_points
from cocoloss.heads.fitted import log_softmax
from cocoloss.heads.readout import matrix_readout
from cocoloss.kernels.classes import ClosedForm, Lesson, fit_closed_form
from cocoloss.kernels.exact import Solution
from cocoloss.kernels.search import USUAL, Search, find_recipe, machine_of
from cocoloss.pace import Pace

N_TEACHERS = 16  # beside the first, each of a part of the columns:
PARTS = (0.5, 0.75)
FEWEST_COLUMNS = 10  # of which parts are drawn: of five numbers and their ranks, say
SURE = 0.01  # probability of a class that is as good as none
OF_THE_FIRST = 0.5  # of the say, at least: some functions need all columns at once
# Targets are a function without noise: small ridges suffice.
SEARCH: Search = replace(
    USUAL,
    ridges=(0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    close=(1.1, 0.0),
    loss="squared error",
)


def distil(
    first: ClosedForm, lesson: Lesson, unlabelled: NDArray[np.float32], seed: int, pace: Pace
) -> ClosedForm:
    """Return a student that has learnt from labels, and from what teachers say of other rows.

    Parameters
    ----------
    first : ClosedForm
        The fit to the labelled rows alone, which is the first teacher.
    lesson : Lesson
        What it was fitted to.
    unlabelled : array of shape (m, d)
        Rows without a label.
    seed : int
        What the columns of teachers follow from.
    pace : Pace
        How long it may take.

    Notes
    -----
    Teachers are heard if their log loss, on rows that they have not learnt from, is close to that
    of the first, as it is for kernels that are averaged. Labelled rows alone calibrate the student,
    by what teachers say of those left out.
    """
    inputs, labels, weights, _, points, prior, _ = lesson
    generator = np.random.default_rng([seed, 6])
    X = np.unique(np.concatenate([inputs, unlabelled]), axis=0)
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
            found = fit_closed_form(lesson._replace(inputs=inputs[:, columns]), len(said))
        honest.append(_log_posterior(found, found.honest))
        said.append(_log_posterior(found, found.machine(X[:, columns])))
        losses.append(-float(alike @ honest[-1][np.arange(len(labels)), labels]))
    times, more = USUAL.close
    heard = np.array(losses) <= times * losses[0] + more
    trust = (1 - OF_THE_FIRST) * heard / heard.sum()
    trust[0] += OF_THE_FIRST
    pace.say(
        f"{heard.sum()} of {len(said)} teachers are heard about {len(unlabelled)} rows without a "
        f"label"
    )
    frame = target_points("simplex", len(points), max(points.shape[1], len(points) - 1))
    targets, of_labelled = (
        _embedded(np.tensordot(trust, each, 1), frame) for each in (said, honest)
    )
    ones = np.ones(len(X))

    def squared_error(solution: Solution) -> float:
        off = targets - solution.leave_one_out(targets, ones)
        return float(np.square(off).sum(axis=1).mean())

    recipe, members = find_recipe(X, targets, ones, squared_error, SEARCH)
    # Teachers have read their embeddings: once more by few rows would add what these do not know.
    readout = matrix_readout(of_labelled @ frame.T, labels, weights, frame, prior, matrix=False)
    return replace(
        first, machine=machine_of(X, members), readout=readout, recipe=recipe, honest=of_labelled
    )


def _embedded(log_p: NDArray[np.float64], frame: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log probabilities as points, (n, q): rows that are sure of a class at its vertex.

    A function onto these is smoother than one onto probabilities, and loses no class between two.
    """
    bounded = np.maximum(log_softmax(log_p), np.log(SURE))
    return np.asarray(bounded @ frame / -np.log(SURE))  # the vertices sum to zero


def _log_posterior(found: ClosedForm, embeddings: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log probabilities as if classes were equally likely, (n, C)."""
    return log_softmax(found.readout.predict_log_proba(embeddings) - np.log(found.readout.prior))
