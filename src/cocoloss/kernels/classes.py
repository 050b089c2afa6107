"""Classes in closed form: vertices as target points, log loss as the judge, a calibrated readout.

    labelled rows ->  ``merge``  distinct rows, and what each class weighs there
                  ->  closed_form.py: a function, and honest embeddings of all rows
                  ->  ``matrix_readout``

Knows matrices and labels, no tables and no estimators; needs no torch.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from cocoloss.heads.fitted import FittedReadout
from cocoloss.heads.readout import matrix_readout
from cocoloss.kernels.closed_form import (
    N_FOLDS,
    Plan,
    Problem,
    Solved,
    deal,
    finish,
    fit_rows,
    make_plan,
    pairs_of,
    rows_of_pairs,
)
from cocoloss.kernels.exact import Solution
from cocoloss.kernels.machine import KernelMachine
from cocoloss.kernels.search import USUAL, Recipe
from cocoloss.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cocoloss.kernels.landmarks import Sums

CALIBRATED = 50_000  # pairs that the readout is fitted to
ENOUGH_DIFFERENT = 50  # rows of a class, from which on their least multiplicity is its unit
NEWTON_STEPS = 8
MOST_SHARP = 60.0
FLOOR = 1e-2  # of the covariance of embeddings, relative to their mean variance
ROWS_A_NUMBER = 4  # honest rows for each number of the matrix; of fewer it knows many by heart
FEWEST_CROSSED = 30  # rows; with fewer, the readout trusts itself little
SHARPNESSES = (0.2, 0.35, 0.6, 0.8, 1.0)  # of Gaussians


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Distinct rows, what each class weighs there, and the pairs of a row and a class that occur.

    A row that occurs twice is one row that weighs two, so that weights and copies are the same.
    """

    X: NDArray[np.float32]  # (u, d)
    masses: NDArray[np.float64]  # (u, C)
    scale: NDArray[np.float64]  # (C,), what one row of a class weighs in the fit
    points: NDArray[np.float64]  # (C, q)
    row: NDArray[np.intp]  # (p,), of each pair
    label: NDArray[np.intp]  # (p,)
    mass: NDArray[np.float64]  # (p,)
    copies: NDArray[np.int64]  # (p,), how many rows a pair is, to be left out one by one

    @property
    def targets(self) -> NDArray[np.float64]:
        """The vertex of each pair, (p, q)."""
        return np.asarray(self.points[self.label])

    def problem(self, mass: NDArray[np.float64] | None = None) -> Problem:
        """Return the rows that weigh anything, their mean target points, and what they weigh."""
        masses, scale = self.masses, self.scale
        if mass is not None:
            masses = np.zeros(masses.shape)
            masses[self.row, self.label] = mass
            # A class of fewer rows than folds loses much in some folds and nothing in others. What
            # is left of it weighs as much as all of it, or rows left out look like other classes.
            few = np.bincount(self.label, self.copies, len(scale)) < N_FOLDS
            left, total = masses.sum(axis=0), self.masses.sum(axis=0)
            scale = scale * np.divide(total, left, out=np.ones(len(left)), where=few & (left > 0))
        weighted = masses * scale
        weights = weighted.sum(axis=1)
        rows = np.flatnonzero(weights > 0)
        targets = weighted[rows] @ self.points / weights[rows, None]
        return rows, targets, weights[rows]

    @property
    def unit(self) -> NDArray[np.float64]:
        """What one copy of each pair weighs in the fit, (p,)."""
        return np.asarray(self.scale[self.label] * self.mass / self.copies)

    def of(self, chosen: NDArray[np.intp]) -> "LabelledRows":
        """Return some of the rows, weighed as they are here."""
        kept, row = pairs_of(self.row, chosen, len(self.X))
        return replace(
            self,
            X=self.X[chosen],
            masses=self.masses[chosen],
            row=row,
            label=self.label[kept],
            mass=self.mass[kept],
            copies=self.copies[kept],
        )

    def spread(self, n: int, generator: np.random.Generator) -> NDArray[np.intp]:
        """Draw rows so that every class has its share, and small classes some more."""
        if len(self.X) <= n:
            return np.arange(len(self.X))
        per_class = np.bincount(self.label, minlength=len(self.points))
        odds = (1 / np.sqrt(np.maximum(per_class, 1)))[self.masses.argmax(axis=1)]
        return np.sort(generator.choice(len(self.X), n, replace=False, p=odds / odds.sum()))

    def folds(self, generator: np.random.Generator) -> NDArray[np.float64]:
        """Return what part of each pair is in each fold: copies go to folds in turn."""
        shares = np.zeros((len(self.row), N_FOLDS))
        parts = np.minimum(self.copies, N_FOLDS)  # more copies are in all folds alike
        start = 0
        for c in range(len(self.points)):
            pairs = generator.permutation(np.flatnonzero(self.label == c))
            part, fold, share = deal(pairs, parts, self.mass, start)
            shares[part, fold] = share
            start += len(part)
        return shares

    def criterion(self, shares: NDArray[np.float64]) -> "LogLoss":
        """Return the class-balanced log loss of rows that are left out."""
        return LogLoss(self, shares)


def balanced(
    totals: NDArray[np.float64], class_weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what one row of each class weighs so that classes weigh alike, but for weights.

    The mean over all rows is one.
    """
    scale = class_weights / (len(totals) * totals / totals.sum())
    return np.asarray(scale * (totals.sum() / (totals @ scale)))


class Lesson(NamedTuple):
    """Labelled rows, and what is to be made of them."""

    inputs: NDArray[np.float32]  # (n, d), what the preprocessing makes of the table
    labels: NDArray[np.int64]  # (n,), classes, by position
    weights: NDArray[np.float64]  # (n,), how often each row counts, positive
    class_weights: NDArray[np.float64]  # (C,), what a row of each class weighs beyond balance
    points: NDArray[np.float64]  # (C, q), target points
    prior: NDArray[np.float64]  # (C,), under which to predict
    given: NDArray[np.int64] | None = None  # (n,), the row of the table that each is a copy of


def merge(lesson: Lesson) -> tuple[LabelledRows, NDArray[np.intp]]:
    """Return distinct rows, and the pair that each of the given rows is in, (n,)."""
    labels, points = lesson.labels, lesson.points
    C = len(points)
    X, of_row = np.unique(lesson.inputs, axis=0, return_inverse=True)
    of_row = of_row.ravel()
    masses = np.zeros((len(X), C))
    np.add.at(masses, (of_row, labels), lesson.weights)
    scale = balanced(masses.sum(axis=0), lesson.class_weights)
    row, label = np.nonzero(masses)
    mass = masses[row, label]
    unit = np.ones(C)
    for c in range(C):
        of_class = mass[label == c]
        if len(of_class) >= ENOUGH_DIFFERENT:  # multiplied by somebody: new rows will be new
            unit[c] = max(1.0, np.quantile(of_class, 0.1, method="lower"))
    places = np.zeros(masses.shape, dtype=np.intp)
    places[row, label] = np.arange(len(row))
    pair = places[of_row, labels]
    copies = rows_of_pairs(pair, lesson.given, lesson.weights)
    if copies is None:
        copies = np.maximum(1, np.rint(mass / unit[label])).astype(np.int64)
    return LabelledRows(X, masses, scale, points, row, label, mass, copies), pair


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """What a fit in closed form leaves."""

    machine: KernelMachine
    readout: FittedReadout
    recipe: Recipe
    honest: NDArray[np.float64]  # (n, q), the embedding of each given row by a fit without it
    criterion: "LogLoss"  # by which the recipe was found, with the rows that found it
    crossed: NDArray[np.float64] | None  # (n, C), if the readout has learnt these by heart

    @property
    def honest_proba(self) -> NDArray[np.float64]:
        """Class probabilities of each given row by a fit, and a readout, without it, (n, C)."""
        return self.readout.predict_proba(self.honest) if self.crossed is None else self.crossed


def fit_closed_form(
    lesson: Lesson, seed: int, *, means: bool = False, pace: Pace | None = None
) -> ClosedForm:
    """Fit kernels to labelled rows.

    Parameters
    ----------
    lesson : Lesson
    seed : int
        What the folds follow from.
    means : bool
        Whether the function is to hold means of rows rather than rows.
    pace : Pace, optional
        How long it may take.
    """
    pace = pace or Pace()
    rows, pair = merge(lesson)
    generator = np.random.default_rng([seed, 5])
    solved, chosen = fit_rows(rows, USUAL, generator, pace, means=means)
    if chosen is None:
        return _calibrated(solved, rows, pair, lesson.prior, generator)
    some = rows.of(chosen)
    found = _calibrated(solved, some, np.arange(len(some.row)), lesson.prior, generator)
    # The fit has not seen the other rows: what it says of them is honest.
    honest = found.machine(rows.X)[rows.row]
    seen = np.isin(rows.row, chosen)
    honest[seen] = found.honest
    crossed = None
    if found.crossed is not None:
        crossed = found.readout.predict_proba(honest)
        crossed[seen] = found.crossed
        crossed = crossed[pair]
    return replace(found, honest=honest[pair], crossed=crossed)


def fit_sampled(
    lesson: Lesson,
    totals: NDArray[np.float64],
    seed: int,
    add_up: "Callable[[Plan, NDArray[np.float64]], Sequence[Sums]]",
    pace: Pace,
    *,
    means: bool = False,
) -> ClosedForm:
    """Fit kernels to rows of which a sample is at hand, and of all of them what they add up to.

    Parameters
    ----------
    lesson, seed, pace, means
        As of :func:`fit_closed_form`, of the sample. Every class has rows in it.
    totals : array of shape (C,)
        How often rows of each class occur in all.
    add_up : function
        Gets a plan, and what a row of each class weighs, (C,); returns the plan's sums over all
        rows, those of the sample among them.
    """
    rows, pair = merge(lesson)
    generator = np.random.default_rng([seed, 5])
    plan = make_plan(rows, int(totals.sum()), USUAL, generator, pace, means=means)
    # In the sample classes weigh alike by its own counts, in the sums by those of all rows.
    in_sums = replace(rows, scale=balanced(totals, lesson.class_weights))
    sums = add_up(plan, in_sums.scale)
    leaves = None if means else rows
    solved = finish(plan, sums, in_sums, generator, leaves, pace, np.float64)
    sampled = rows.masses.sum(axis=0)
    stands_for = (totals / totals.sum() / (sampled / sampled.sum()))[rows.label, None]
    solved = solved._replace(shares=solved.shares * stands_for)
    return _calibrated(solved, rows, pair, lesson.prior, generator)


def _calibrated(
    solved: Solved,
    rows: LabelledRows,
    pair: NDArray[np.intp],
    prior: NDArray[np.float64],
    generator: np.random.Generator,
) -> ClosedForm:
    """Fit the readout to honest embeddings."""
    recipe, machine, embeddings, shares, criterion = solved
    which, fold = np.nonzero(shares)
    if len(which) > CALIBRATED:
        chosen = generator.choice(len(which), CALIBRATED, replace=False)
        which, fold = which[chosen], fold[chosen]
    points, labels, weights = rows.points, rows.label[which], shares[which, fold]
    scores = embeddings[which, fold] @ points.T
    readout = matrix_readout(scores, labels, weights, points, prior)
    mean = np.einsum("pf,pfq->pq", shares, embeddings)
    mean /= np.maximum(shares.sum(axis=1), np.finfo(np.float64).tiny)[:, None]
    n, C = len(mean), len(points)
    crossed = None
    if FEWEST_CROSSED <= n < ROWS_A_NUMBER * C * (C + 1):
        part = np.empty(n, dtype=np.intp)
        part[np.argsort(rows.label, kind="stable")] = np.arange(n) % N_FOLDS
        crossed = np.empty((n, C))
        for k in range(N_FOLDS):
            rest, here = part[which] != k, part == k
            other = matrix_readout(scores[rest], labels[rest], weights[rest], points, prior)
            crossed[here] = other.predict_proba(mean[here])
        crossed = crossed[pair]
    return ClosedForm(machine, readout, recipe, mean[pair], criterion, crossed)


class LogLoss:
    """Class-balanced log loss of rows that are left out, one copy at a time.

    Their scores are read by one temperature or, of more than two classes, by Gaussians with one
    covariance if that is better: regression onto vertices hides a class between two others, which a
    linear discriminant sees. The Gaussians are fitted to other folds than they judge.
    """

    def __init__(self, rows: LabelledRows, shares: NDArray[np.float64]) -> None:
        self.rows = rows
        totals = rows.masses.sum(axis=0)
        self.weights = rows.mass / totals[rows.label] / np.count_nonzero(totals)
        self.unit = rows.unit
        self.fold = shares.argmax(axis=1)  # of most copies of a pair

    def left_out(self, solution: Solution) -> NDArray[np.float64]:
        """Return what a function is at each pair when one copy of it is left out, (p, q)."""
        return solution.without(self.rows.row, self.rows.targets, self.unit).astype(np.float64)

    def __call__(self, solution: Solution) -> float:
        """Return the loss of a solution; infinite where it is none."""
        scores = self.left_out(solution) @ self.rows.points.T
        loss = _loss_at_best_sharpness(scores, self.rows.label, self.weights)
        if len(self.rows.points) > 2:
            loss = min(loss, self._discriminant_loss(scores))
        return loss if np.isfinite(loss) else np.inf

    def _discriminant_loss(self, scores: NDArray[np.float64]) -> float:
        label, C = self.rows.label, scores.shape[1]
        judged = np.empty_like(scores)
        for k in np.unique(self.fold):
            rest, here = self.fold != k, self.fold == k
            weights = np.zeros((len(label), C))
            weights[rest, label[rest]] = self.weights[rest]
            totals = weights.sum(axis=0)
            means = weights.T @ scores / np.maximum(totals, 1e-300)[:, None]
            absent = totals == 0
            means[absent] = (self.rows.points @ self.rows.points.T)[absent]  # where it should be
            deviations = (scores - means[label])[rest]
            covariance = (deviations * self.weights[rest, None]).T @ deviations
            covariance /= max(self.weights[rest].sum(), 1e-300)
            covariance[np.diag_indices(C)] += FLOOR * np.trace(covariance) / C + 1e-9
            precise = np.linalg.solve(covariance, means.T)  # (C, C)
            judged[here] = scores[here] @ precise - 0.5 * np.einsum("cq,qc->c", means, precise)
        rows = np.arange(len(label))
        return min(
            -float(self.weights @ log_softmax(sharp * judged, axis=1)[rows, label])
            for sharp in SHARPNESSES
        )


def _loss_at_best_sharpness(
    scores: NDArray[np.float64], labels: NDArray[Any], weights: NDArray[np.float64]
) -> float:
    """Return the least weighted log loss of softmax(t scores) over t, which is convex in t."""
    rows, t, best = np.arange(len(labels)), 6.0, np.inf
    for _ in range(NEWTON_STEPS):
        log_p = log_softmax(t * scores, axis=1)
        best = min(best, -float(weights @ log_p[rows, labels]))
        p = np.exp(log_p)
        mean = (p * scores).sum(axis=1)
        slope = weights @ (mean - scores[rows, labels])
        curvature = weights @ ((p * np.square(scores)).sum(axis=1) - np.square(mean))
        step = float(np.clip(t - slope / max(curvature, 1e-9), t / 4, min(4 * t, MOST_SHARP)))
        if abs(step - t) < 0.02 * t:
            break
        t = step
    return best
