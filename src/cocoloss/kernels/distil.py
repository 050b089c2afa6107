"""Few labels in closed form: teachers on the labelled rows, a student on all rows.

    labelled rows ->  teachers: of all columns, of columns drawn at random, of leaves, of clusters,
                      and one that takes what it is sure of for labels
    all rows      ->  the student, one function onto what the teachers say of them

With a handful of rows of each class, what is chosen by leave-one-out is mostly luck; many fits that
see other things average it out. Rows without a label say where the average must be learnt, and
stand beside the others as landmarks and in the learnt metric. Knows matrices and labels.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocoloss.geometry import target_points
from cocoloss.heads.fitted import log_softmax
from cocoloss.heads.readout import matrix_readout
from cocoloss.kernels.classes import ClosedForm, Lesson, fit_closed_form
from cocoloss.kernels.exact import Solution
from cocoloss.kernels.search import USUAL, Search, find_recipe, machine_of
from cocoloss.pace import Pace

SAY = {"all columns": 0.35, "some columns": 0.25, "leaves": 0.13, "clusters": 0.13, "itself": 0.14}
PARTS = (0.5, 0.75) * 8  # of the columns, for a teacher each
FEWEST_COLUMNS = 10  # of which parts are drawn: of five numbers and their ranks, say
TREES, DEPTH = 100, 4  # of random splits, whose leaves are columns
CLUSTERINGS = 24  # whose clusters are columns
CERTAIN = 0.75  # probability from which on a prediction is taken for a label
ROUNDS = 5  # of that
SURE = 0.01  # probability of a class that is as good as none
# Targets are a function without noise: small ridges suffice.
SEARCH: Search = replace(
    USUAL,
    ridges=(0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    close=(1.1, 0.0),
    loss="squared error",
)


class Teacher(NamedTuple):
    """What a fit to the labelled rows says, in log probabilities of even class shares."""

    kind: str
    said: NDArray[np.float64]  # (N, C), of all rows
    honest: NDArray[np.float64] | None  # (n, C), of each labelled row by a fit without it


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
        What the columns, trees and clusters of teachers follow from.
    pace : Pace
        How long it may take.

    Notes
    -----
    Labelled rows alone calibrate the student, by what teachers say of those left out.
    """
    _, labels, weights, _, points, prior, _ = lesson
    X, of_row = np.unique(np.concatenate([lesson.inputs, unlabelled]), axis=0, return_inverse=True)
    of_row = of_row.ravel()
    teachers = _teachers(first, lesson, X, of_row, seed, pace)
    pace.say(f"{len(teachers)} teachers are heard about {len(unlabelled)} rows without a label")
    frame = target_points("simplex", len(points), max(points.shape[1], len(points) - 1))
    targets = _embedded(_mean([(each.kind, each.said) for each in teachers]), frame)
    of_labelled = _embedded(
        _mean([(each.kind, each.honest) for each in teachers if each.honest is not None]), frame
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


def _teachers(
    first: ClosedForm,
    lesson: Lesson,
    X: NDArray[np.float32],
    of_row: NDArray[np.intp],
    seed: int,
    pace: Pace,
) -> list[Teacher]:
    """Return the teachers for which there is time, of which the first is always heard.

    Those of some columns are heard if their log loss, on rows that they have not learnt from, is
    close to that of the first, as it is for kernels that are averaged.
    """
    n, d, C = len(lesson.labels), X.shape[1], len(lesson.points)
    of_class = np.bincount(lesson.labels, weights=lesson.weights)
    alike = lesson.weights / of_class[lesson.labels] / len(of_class)  # every class counts the same
    times, more = USUAL.close

    def loss(teacher: Teacher) -> float:
        assert teacher.honest is not None
        return -float(alike @ teacher.honest[np.arange(n), lesson.labels])

    def taught(kind: str, view: NDArray[np.float32], number: int) -> Teacher:
        """Fit a teacher to what a view of all rows shows of the labelled ones."""
        found = fit_closed_form(lesson._replace(inputs=view[of_row[:n]]), number)
        return _heard(kind, found, view)

    generator = np.random.default_rng([seed, 6])
    every = np.arange(d)
    parts = PARTS if d >= FEWEST_COLUMNS else ()
    drawn = [np.sort(generator.permutation(every)[: math.ceil(part * d)]) for part in parts]
    teachers = [_heard("all columns", first, X)]
    worst = times * loss(teachers[0]) + more
    started = pace.elapsed
    for k, columns in enumerate(drawn, start=1):
        if not pace.has((pace.elapsed - started) / k, "teachers"):
            return teachers
        found = taught("some columns", X[:, columns], k)
        if loss(found) <= worst:
            teachers.append(found)
    for kind in ("leaves", "clusters"):
        if not pace.has(pace.elapsed / 2, f"teachers of {kind}"):
            return teachers
        view = _leaves(X, seed) if kind == "leaves" else _clusters(X, C, seed)
        teachers.append(taught(kind, view, 0))
    itself = _self_trained(first, lesson, X[of_row[n:]], pace)
    teachers.append(_heard("itself", itself, X)._replace(honest=None))  # its rows know each other
    return teachers


def _heard(kind: str, found: ClosedForm, view: NDArray[np.float32]) -> Teacher:
    return Teacher(
        kind, _log_posterior(found, found.machine(view)), _log_posterior(found, found.honest)
    )


def _mean(
    said: "list[tuple[str, NDArray[np.float64]]]",
) -> NDArray[np.float64]:
    """Return the mean of what teachers say; those of one kind share the say of the kind."""
    kinds = [kind for kind, _ in said]
    trust = np.array([SAY[kind] / kinds.count(kind) for kind in kinds])
    return np.tensordot(trust / trust.sum(), [each for _, each in said], 1)


def _leaves(X: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
    """Return in which leaf of each random tree a row is, one column per leaf."""
    from sklearn.ensemble import RandomTreesEmbedding  # noqa: PLC0415 - not for predicting

    trees = RandomTreesEmbedding(TREES, max_depth=DEPTH, random_state=seed, sparse_output=False)
    return np.asarray(trees.fit_transform(X), dtype=np.float32)


def _clusters(X: NDArray[np.float32], n_classes: int, seed: int) -> NDArray[np.float32]:
    """Return in which cluster of some columns a row is, again and again, one column per cluster."""
    from sklearn.cluster import KMeans  # noqa: PLC0415

    generator, found = np.random.default_rng(seed), []
    for number in range(CLUSTERINGS):
        k = min(int(generator.integers(2, 8 + 2 * n_classes)), len(X))
        part = generator.choice([*PARTS[:2], 1.0])
        columns = generator.permutation(X.shape[1])[: max(2, math.ceil(part * X.shape[1]))]
        means = KMeans(k, n_init=1, max_iter=20, random_state=number)
        found.append(np.eye(k, dtype=np.float32)[means.fit_predict(X[:, columns])])
    return np.hstack(found)


def _self_trained(
    first: ClosedForm, lesson: Lesson, unlabelled: NDArray[np.float32], pace: Pace
) -> ClosedForm:
    """Return a fit to labelled rows, and to those whose class was certain in some round."""
    found, label, seconds = first, np.full(len(unlabelled), -1), 0.0
    for _ in range(ROUNDS):
        rest = np.flatnonzero(label < 0)
        log_p = _log_posterior(found, found.machine(unlabelled[rest]))
        certain = log_p.max(axis=1, initial=-np.inf) > np.log(CERTAIN)
        if not certain.any() or not pace.has(seconds, "rounds of self-training"):
            break
        label[rest[certain]] = log_p[certain].argmax(axis=1)
        more, started = np.flatnonzero(label >= 0), pace.elapsed
        taken = lesson._replace(
            inputs=np.concatenate([lesson.inputs, unlabelled[more]]),
            labels=np.r_[lesson.labels, label[more]],
            weights=np.r_[lesson.weights, np.ones(len(more))],
            given=None,
        )
        found = fit_closed_form(taken, 0, pace=pace)
        seconds = pace.elapsed - started
    return found


def _embedded(log_p: NDArray[np.float64], frame: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log probabilities as points, (n, q): rows that are sure of a class at its vertex.

    A function onto these is smoother than one onto probabilities, and loses no class between two.
    """
    bounded = np.maximum(log_softmax(log_p), np.log(SURE))
    return np.asarray(bounded @ frame / -np.log(SURE))  # the vertices sum to zero


def _log_posterior(found: ClosedForm, embeddings: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log probabilities as if classes were equally likely, (n, C)."""
    return log_softmax(found.readout.predict_log_proba(embeddings) - np.log(found.readout.prior))
