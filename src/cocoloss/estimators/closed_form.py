"""The closed form of a classifier: kernels onto target points, chosen by leave-one-out, calibrated.

    labelled rows ->  ``merge``          distinct rows, and what each class weighs there
                  ->  ``find_recipe``    kernels, ridges, metric; class-balanced log loss decides
                  ->  ``cross_fit``      an honest embedding of every row, metric included
                  ->  ``matrix_readout``

Of many rows a sample finds the recipe, landmarks carry it to all of them, leaves add what is local,
and leave-one-out is honest enough.

Knows matrices and labels, no tables and no estimators; needs no torch.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from cocoloss.heads.fitted import FittedReadout
from cocoloss.heads.readout import matrix_readout
from cocoloss.kernels import (
    KernelMachine,
    LandmarkPath,
    Landmarks,
    Recipe,
    Solution,
    find_recipe,
    fit_leaves,
    fit_recipe,
    machine_of,
)

N_FOLDS = 5
MOST_EXACT = 1800  # distinct rows: their kernel matrices are solved as they are
SAMPLE = 1200  # rows that find the recipe of a larger table
LANDMARKS = 1000
LARGE = 20_000  # rows, from which on two kernels must do, and a second thread pays
RIDGES = (0.01, 0.1, 1.0, 10.0)  # that landmarks try
JUDGED = 4000  # pairs that judge them
N_TREES = 2
NARROWER = 4  # times than the kernels of all rows are those of a leaf
CALIBRATED = 50_000  # pairs that the readout is fitted to
ENOUGH_DIFFERENT = 50  # rows of a class, from which on their least multiplicity is its unit
NEWTON_STEPS = 8
MOST_SHARP = 60.0
FLOOR = 1e-2  # of the covariance of embeddings, relative to their mean variance
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

    def problem(
        self, masses: NDArray[np.float64]
    ) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
        """Return the rows that weigh anything, their mean target points, and what they weigh."""
        weighted = masses * self.scale
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
        place = np.full(len(self.X), -1)
        place[chosen] = np.arange(len(chosen))
        kept = np.flatnonzero(place[self.row] >= 0)
        return replace(
            self,
            X=self.X[chosen],
            masses=self.masses[chosen],
            row=place[self.row[kept]],
            label=self.label[kept],
            mass=self.mass[kept],
            copies=self.copies[kept],
        )


def merge(
    inputs: NDArray[np.float32],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    class_weights: NDArray[np.float64],
    points: NDArray[np.float64],
) -> tuple[LabelledRows, NDArray[np.intp]]:
    """Return distinct rows, and the pair that each of the given rows is in, (n,)."""
    C = len(points)
    X, of_row = np.unique(inputs, axis=0, return_inverse=True)
    of_row = of_row.ravel()
    masses = np.zeros((len(X), C))
    np.add.at(masses, (of_row, labels), weights)
    totals = masses.sum(axis=0)
    scale = class_weights / (C * totals / totals.sum())
    scale *= totals.sum() / (totals @ scale)
    row, label = np.nonzero(masses)
    mass = masses[row, label]
    unit = np.ones(C)
    for c in range(C):
        of_class = mass[label == c]
        if len(of_class) >= ENOUGH_DIFFERENT:  # multiplied by somebody: new rows will be new
            unit[c] = max(1.0, np.quantile(of_class, 0.1, method="lower"))
    copies = np.maximum(1, np.rint(mass / unit[label])).astype(np.int64)
    merged = LabelledRows(X, masses, scale, points, row, label, mass, copies)
    places = np.zeros(masses.shape, dtype=np.intp)
    places[row, label] = np.arange(len(row))
    return merged, places[of_row, labels]


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """What a fit in closed form leaves."""

    machine: KernelMachine
    readout: FittedReadout
    recipe: Recipe
    honest: NDArray[np.float64]  # (n, q), the embedding of each given row by a fit without it


def fit_closed_form(
    inputs: NDArray[np.float32],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    class_weights: NDArray[np.float64],
    points: NDArray[np.float64],
    prior: NDArray[np.float64],
    seed: int,
) -> ClosedForm:
    """Fit kernels to labelled rows.

    Parameters
    ----------
    inputs : array of shape (n, d)
        What the preprocessing makes of the table.
    labels : array of shape (n,)
        Classes, by position.
    weights : array of shape (n,)
        How often each row counts, positive.
    class_weights : array of shape (C,)
        What a row of each class weighs beyond being balanced.
    points : array of shape (C, q)
        Target points.
    prior : array of shape (C,)
        Under which to predict.
    seed : int
        What the folds follow from.
    """
    rows, pair = merge(inputs, labels, weights, class_weights, points)
    generator = np.random.default_rng([seed, 5])
    fit = _fit_exactly if len(rows.X) <= MOST_EXACT else _fit_landmarks
    recipe, machine, embeddings, shares = fit(rows, generator)
    which, fold = np.nonzero(shares)
    if len(which) > CALIBRATED:
        chosen = generator.choice(len(which), CALIBRATED, replace=False)
        which, fold = which[chosen], fold[chosen]
    readout = matrix_readout(
        embeddings[which, fold] @ points.T, rows.label[which], shares[which, fold], points, prior
    )
    mean = np.einsum("pf,pfq->pq", shares, embeddings)
    mean /= np.maximum(shares.sum(axis=1), np.finfo(np.float64).tiny)[:, None]
    return ClosedForm(machine, readout, recipe, mean[pair])


# What a fit of either kind gives: settings, the function, honest embeddings of the pairs by each of
# F fits without them, (p, F, q), and what part of a pair each stands for, (p, F).
_Solved = tuple[Recipe, KernelMachine, NDArray[np.float64], NDArray[np.float64]]


def _fit_exactly(rows: LabelledRows, generator: np.random.Generator) -> _Solved:
    folds = _folds(rows, generator)
    _, targets, weights = rows.problem(rows.masses)
    recipe, members = find_recipe(rows.X, targets, weights, _Criterion(rows, folds))
    return recipe, machine_of(rows.X, members), *cross_fit(recipe, rows, folds)


def _fit_landmarks(rows: LabelledRows, generator: np.random.Generator) -> _Solved:
    sample = rows.of(_spread(rows, SAMPLE, generator))
    folds = _folds(sample, generator)
    _, targets, weights = sample.problem(sample.masses)
    recipe, members = find_recipe(sample.X, targets, weights, _Criterion(sample, folds))
    members = members[: 2 if len(rows.X) >= LARGE else None]

    _, targets, weights = rows.problem(rows.masses)
    chosen = rows.X[_spread(rows, LANDMARKS, generator)]
    judge = rows.of(_spread(rows, JUDGED, generator))
    criterion = _Criterion(judge, _folds(judge, generator))
    left_out = np.zeros((len(rows.row), targets.shape[1]))  # of each pair
    row_left_out = np.zeros(targets.shape)
    alphas = []
    for member in members:
        landmarks = Landmarks.of(member.kernel, chosen)
        path = LandmarkPath.of(landmarks, landmarks.sums(rows.X, targets, weights))
        ridge = min(RIDGES, key=lambda r: criterion(path.solution(judge.X, r)))
        solution = path.solution(rows.X, ridge)
        alphas.append(solution.alpha / len(members))
        left_out += solution.without(rows.row, rows.points[rows.label], rows.unit) / len(members)
        row_left_out += solution.leave_one_out(targets, weights) / len(members)
    trees = []
    setting, metric = members[0].setting, members[0].kernel.metric
    setting = replace(setting, width=NARROWER * setting.width)
    for _ in range(N_TREES):
        tree, added = fit_leaves(setting, metric, rows.X, targets, row_left_out, weights, generator)
        trees.append(tree)
        left_out += added[rows.row] / N_TREES
    kernels = tuple(member.kernel for member in members)
    machine = KernelMachine(chosen, kernels, np.stack(alphas).astype(np.float32), tuple(trees))
    return recipe, machine, left_out[:, None], rows.mass[:, None]


def _spread(rows: LabelledRows, n: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """Draw rows so that every class has its share, and small classes some more."""
    if len(rows.X) <= n:
        return np.arange(len(rows.X))
    per_class = np.bincount(rows.label, minlength=len(rows.points))
    odds = (1 / np.sqrt(np.maximum(per_class, 1)))[rows.masses.argmax(axis=1)]
    return np.sort(generator.choice(len(rows.X), n, replace=False, p=odds / odds.sum()))


def _folds(rows: LabelledRows, generator: np.random.Generator) -> NDArray[np.float64]:
    """Return what part of each pair is in each fold, (p, folds): copies go to folds in turn."""
    shares = np.zeros((len(rows.row), N_FOLDS))
    parts = np.minimum(rows.copies, N_FOLDS)  # more copies are in all folds alike
    start = 0
    for c in range(len(rows.points)):
        pairs = generator.permutation(np.flatnonzero(rows.label == c))
        part = np.repeat(pairs, parts[pairs])
        fold = (start + np.arange(len(part))) % N_FOLDS
        shares[part, fold] = rows.mass[part] / parts[part]
        start += len(part)
    return shares


def cross_fit(
    recipe: Recipe, rows: LabelledRows, shares: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the embedding of each pair by the fit without each of its folds, and shares.

    The metric is learnt anew from the rows of each fit. Where one fold holds all there is, nothing
    is honest, and its shares become zero.
    """
    p, F = shares.shape
    embeddings, shares = np.zeros((p, F, rows.points.shape[1])), shares.copy()
    for k in range(F):
        pairs = np.flatnonzero(shares[:, k])
        masses = rows.masses.copy()
        masses[rows.row, rows.label] -= shares[:, k]
        masses[masses < 1e-9 * rows.masses.max()] = 0
        kept, targets, weights = rows.problem(masses)
        if not len(kept):
            shares[:, k] = 0
            continue
        machine = machine_of(rows.X[kept], fit_recipe(recipe, rows.X[kept], targets, weights))
        distinct, place = np.unique(rows.row[pairs], return_inverse=True)
        embeddings[pairs, k] = machine(rows.X[distinct])[place]
    return embeddings, shares


class _Criterion:
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
        self.targets = rows.points[rows.label]

    def __call__(self, solution: Solution) -> float:
        embeddings = solution.without(self.rows.row, self.targets, self.unit).astype(np.float64)
        scores = embeddings @ self.rows.points.T
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
