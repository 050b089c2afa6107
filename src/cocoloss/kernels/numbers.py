"""Numbers in closed form: standardised numbers as target points, squared error as the judge.

    rows and numbers ->  ``pose``  distinct rows, pairs of a row and its numbers, target points
                     ->  ``solve_numbers``  kernels, and honest predictions of all rows
                     ->  ``readout``  back to the scale of the table, and how far off

Knows matrices and numbers, no tables and no estimators; needs no torch.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import boxcox_normmax, skew

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
from cocoloss.kernels.exact import Solution, solve
from cocoloss.kernels.intervals import NumberReadout, Response, Spread
from cocoloss.kernels.kernel import Kernel
from cocoloss.kernels.landmarks import LandmarkPath, Landmarks, sums_of
from cocoloss.kernels.machine import KernelMachine
from cocoloss.kernels.search import Recipe, Search, find_recipe
from cocoloss.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cocoloss.kernels.landmarks import Sums

SEARCH = Search(
    grid=(
        ("rbf", 0.25),
        ("rbf", 1.0),
        ("laplace", 0.05),
        ("laplace", 0.3),
        ("laplace-l1", 0.7),
        ("laplace-l1", 3.0),
    ),
    ridges=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
    first_ridge=3,
    landmark_ridges=(0.0001, 0.001, 0.01, 0.1, 1.0, 10.0),
    leaf_ridges=(0.001, 0.03, 0.3, 3.0),
    rounds=3,
    large=0,
    close=(1.2, 0.0),
    loss="squared error",
)
# Whether a power of the numbers is easier to predict, a few kernels tell.
GLANCE = replace(SEARCH, rounds=1, close=(1.0, 0.0))
GLANCED = 600  # rows for that
SKEWED = 1.0  # skewness from which on a power is tried
CONSTANT = 1e-12  # deviation of numbers that are all the same but for rounding, of the largest
UNIT = 0.1  # quantile of the distances from the end without a tail, which is as good as zero there
WORTH_A_POWER = 0.5  # nats of a row
LEVELS = (np.arange(20) + 0.5) / 20  # of residuals, over which numbers are expected
PLAIN_WIDTH = 0.3
MOST_SIZED, LANDMARKS = 4000, 1000  # rows that tell how large residuals are, and that are held
ITSELF = 1 - 1e-6  # the kernel of a row and itself, but for rounding
SIZE_RIDGES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
LEAST_RESIDUAL = 0.05  # of the median: smaller ones are as good as this
USUALLY_NEARER = 0.05  # share of rows that may be farther from all others
MOST_LEVELS = 999  # of the quantiles that are kept


@dataclass(frozen=True, eq=False)
class NumberRows:
    """Distinct rows, and the pairs of a row and its numbers that occur."""

    X: NDArray[np.float32]  # (u, d)
    row: NDArray[np.intp]  # (p,), of each pair
    targets: NDArray[np.float64]  # (p, t), target points
    mass: NDArray[np.float64]  # (p,)
    given: NDArray[np.int64] | None = None  # (p,), rows of the table, if weights are relative

    @property
    def copies(self) -> NDArray[np.int64]:
        """How many rows a pair is, to be left out one by one, (p,)."""
        if self.given is not None:
            return self.given
        return np.asarray(np.maximum(1, np.rint(self.mass)), dtype=np.int64)

    @property
    def unit(self) -> NDArray[np.float64]:
        """What one copy of each pair weighs in the fit, (p,)."""
        return np.asarray(self.mass / self.copies)

    def problem(self, mass: NDArray[np.float64] | None = None) -> Problem:
        """Return the rows that weigh anything, their mean target points, and what they weigh."""
        mass = self.mass if mass is None else mass
        weights = np.bincount(self.row, mass, minlength=len(self.X))
        sums = [np.bincount(self.row, mass * z, minlength=len(self.X)) for z in self.targets.T]
        rows = np.flatnonzero(weights > 0)
        targets = np.stack(sums, axis=1)[rows] / weights[rows, None]
        return rows, targets, np.asarray(weights[rows], dtype=np.float64)

    def of(self, chosen: NDArray[np.intp]) -> "NumberRows":
        """Return some of the rows, weighed as they are here."""
        kept, row = pairs_of(self.row, chosen, len(self.X))
        given = None if self.given is None else self.given[kept]
        return NumberRows(self.X[chosen], row, self.targets[kept], self.mass[kept], given)

    def spread(self, n: int, generator: np.random.Generator) -> NDArray[np.intp]:
        """Draw at most n of the rows."""
        if len(self.X) <= n:
            return np.arange(len(self.X))
        return np.sort(generator.choice(len(self.X), n, replace=False))

    def folds(self, generator: np.random.Generator) -> NDArray[np.float64]:
        """Return what part of each pair is in each fold: copies go to folds in turn."""
        shares = np.zeros((len(self.row), N_FOLDS))
        parts = np.minimum(self.copies, N_FOLDS)
        part, fold, share = deal(generator.permutation(len(self.row)), parts, self.mass)
        shares[part, fold] = share
        return shares

    def criterion(self, shares: NDArray[np.float64]) -> "SquaredError":  # noqa: ARG002
        """Return the squared error of rows that are left out."""
        return SquaredError(self)


class SquaredError:
    """Mean squared error of pairs that are left out, one copy at a time; 1 is that of the mean."""

    def __init__(self, rows: NumberRows) -> None:
        self.rows = rows
        self.weights = rows.mass / rows.mass.sum() / rows.targets.shape[1]

    def left_out(self, solution: Solution) -> NDArray[np.float64]:
        """Return what a function is at each pair when one copy of it is left out, (p, t)."""
        rows = self.rows
        return solution.without(rows.row, rows.targets, rows.unit).astype(np.float64)

    def __call__(self, solution: Solution) -> float:
        """Return the error of a solution; infinite where it is none."""
        missed = self.rows.targets - self.left_out(solution)
        error = float(self.weights @ np.square(missed).sum(axis=1))
        return error if np.isfinite(error) else np.inf


@dataclass(frozen=True, eq=False)
class NumberProblem:
    """Rows with numbers, ready to be solved."""

    rows: NumberRows
    response: Response
    pair: NDArray[np.intp]  # (n,), the pair of each given row

    def readout(
        self,
        kernel: Kernel,
        honest: NDArray[np.float64],
        known: NDArray[np.bool_],
        seed: int,
        means: NDArray[np.float32] | None = None,
    ) -> NumberReadout:
        """Return what reads numbers off target points, by honest predictions of pairs, (p, t).

        ``known`` are the pairs that have one; the kernel says which rows are alike. Where means of
        rows are given, it holds these and no rows.
        """
        missed = self.rows.targets - honest
        generator = np.random.default_rng([seed, 6])
        spread = _spread(kernel, self.rows, missed, known, generator, means)
        return NumberReadout(self.response, spread)

    def numbers(self, readout: NumberReadout, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return expected numbers of each given row, (n, t), of target points of pairs."""
        return readout.mean(z, self.rows.X[self.rows.row])[self.pair]


def pose(
    inputs: NDArray[np.float32],
    y: NDArray[np.float64],
    weights: NDArray[np.float64],
    seed: int,
    given: NDArray[np.int64] | None = None,
) -> NumberProblem:
    """Merge equal rows, and choose how numbers become target points.

    Parameters
    ----------
    inputs : array of shape (n, d)
        What the preprocessing makes of the table.
    y : array of shape (n, t)
        Numbers.
    weights : array of shape (n,)
        How often each row counts, positive.
    seed : int
        What everything random follows from.
    given : array of shape (n,), optional
        The row of the table that each is a copy of.
    """
    X, row, y, mass, pair = merge(inputs, y, weights)
    rows = NumberRows(X, row, y, mass, rows_of_pairs(pair, given, weights))
    response = _response(rows, np.random.default_rng([seed, 4]))
    return NumberProblem(replace(rows, targets=response.points(y)), response, pair)


class SolvedNumbers(NamedTuple):
    """What kernels leave."""

    machine: KernelMachine
    recipe: Recipe
    criterion: SquaredError  # by which the recipe was found, with the rows that found it
    honest: NDArray[np.float64]  # (p, t), the target points of pairs by fits without them
    known: NDArray[np.bool_]  # (p,), whether there is such a fit


def solve_numbers(
    problem: NumberProblem, seed: int, *, means: bool = False, pace: Pace | None = None
) -> SolvedNumbers:
    """Fit kernels to rows with numbers; with ``means`` they hold means of rows rather than rows."""
    rows = problem.rows
    generator = np.random.default_rng([seed, 5])
    solved, chosen = fit_rows(rows, SEARCH, generator, pace or Pace(), means=means)
    honest, known = _honest(solved, rows if chosen is None else rows.of(chosen))
    if chosen is not None:  # the fit has not seen the other rows: what it says of them is honest
        seen, honest = honest, solved.machine(rows.X)[rows.row]
        honest[np.isin(rows.row, chosen)] = seen
        known = np.ones(len(honest), dtype=bool)
    return SolvedNumbers(solved.machine, solved.recipe, solved.criterion, honest, known)


def solve_sampled(
    problem: NumberProblem,
    n_rows: int,
    seed: int,
    add_up: "Callable[[Plan], Sequence[Sums]]",
    pace: Pace,
    *,
    means: bool = False,
) -> SolvedNumbers:
    """Fit kernels to many rows, of which the problem is a sample, and of all what they add up to.

    ``add_up`` gets a plan, and returns its sums over all rows, those of the sample among them.
    """
    rows = problem.rows
    generator = np.random.default_rng([seed, 5])
    plan = make_plan(rows, n_rows, SEARCH, generator, pace, means=means)
    leaves = None if means else rows
    solved = finish(plan, add_up(plan), rows, generator, leaves, pace, np.float64)
    honest = _honest(solved, rows)
    return SolvedNumbers(solved.machine, solved.recipe, solved.criterion, *honest)


def plain_kernel(X: NDArray[np.float32]) -> Kernel:
    """Return a kernel that has learnt nothing, for rows that networks predict."""
    metric = np.ones(X.shape[1], dtype=np.float32)
    typical = float(2 * X.var(axis=0, dtype=np.float64).sum())
    return Kernel("laplace", PLAIN_WIDTH / max(typical, 1e-12), metric)


def merge(
    inputs: NDArray[np.float32], y: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float32], NDArray[np.intp], Any, Any, NDArray[np.intp]]:
    """Return distinct rows; of each pair its row, numbers and mass; and the pair of each row."""
    X, of_row = np.unique(inputs, axis=0, return_inverse=True)
    keys, pair = np.unique(np.column_stack([of_row.ravel(), y]), axis=0, return_inverse=True)
    pair = pair.ravel()
    mass = np.bincount(pair, weights)
    return X, keys[:, 0].astype(np.intp), keys[:, 1:], mass, pair


def _response(rows: NumberRows, generator: np.random.Generator) -> Response:
    """Return how numbers become target points: as they are, or skewed ones by a power.

    A power is taken if rows that are left out are far more likely by it, and nearer on average.
    Their squared errors would be the natural judge, but hang on a few rows in the tail.
    """
    y, mass = rows.targets, rows.mass
    plain = _standardised(y, mass, [(0.0, 1.0, 1.0)] * y.shape[1])
    raised = _standardised(y, mass, [_power_of(column) for column in y.T])
    if (raised.powers == 1).all():
        return plain
    some = rows.of(rows.spread(GLANCED, generator))
    (surprise, error), (surprise_raised, error_raised) = (
        _glance(some, response, plain.scale) for response in (plain, raised)
    )
    better = surprise_raised < surprise - WORTH_A_POWER and error_raised < error
    return raised if better else plain


def _glance(
    rows: NumberRows, response: Response, scale: NDArray[np.float64]
) -> tuple[float, float]:
    """Return how surprising numbers are that are left out, per row, and the mean absolute error.

    A response is judged by the best of a few kernels; the surprise is minus the log likelihood of
    Gaussian residuals, on the scale of the numbers.
    """
    y = rows.targets
    rows = replace(rows, targets=response.points(y))
    _, targets, weights = rows.problem()
    criterion = SquaredError(rows)
    best: tuple[float, NDArray[np.float64]] = np.inf, np.zeros(y.shape)

    def judge(solution: Solution) -> float:
        nonlocal best
        loss = criterion(solution)
        if loss < best[0]:
            best = loss, criterion.left_out(solution)
        return loss

    find_recipe(rows.X, targets, weights, judge, GLANCE)
    z, share = best[1], rows.mass / rows.mass.sum()
    variance = share @ np.square(rows.targets - z)
    tiny = np.finfo(np.float64).tiny
    surprise = 0.5 * np.log(np.maximum(variance, tiny)) - share @ response.log_slopes(y)
    residuals = np.quantile(rows.targets - z, LEVELS, axis=0)
    expected = np.mean([response.numbers(z + each) for each in residuals], axis=0)
    error = share @ np.abs((y - expected) / scale)
    return float(surprise.mean()), float(error.mean())


def _power_of(y: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return origin, unit and power that make skewed numbers even; those that leave others."""
    largest = float(np.abs(y).max())
    varies = float(np.std(y)) > CONSTANT * largest
    # Cubes of large numbers overflow: a power of two takes away the scale, and no digit.
    tail = float(skew(np.ldexp(y, -np.frexp(largest)[1]))) if varies else 0.0
    if not abs(tail) > SKEWED:
        return 0.0, 1.0, 1.0
    origin, sign = (float(y.min()), 1.0) if tail > 0 else (float(y.max()), -1.0)
    beyond = sign * (y - origin)
    unit = float(np.quantile(beyond[beyond > 0], UNIT))
    power = float(boxcox_normmax(1 + beyond / unit, method="mle"))
    return origin, sign * unit, min(max(power, 0.0), 1.0)


def _standardised(
    y: NDArray[np.float64], mass: NDArray[np.float64], powers: list[tuple[float, float, float]]
) -> Response:
    """Return the response of origins, units and powers, with mean 0 and variance 1."""
    origin, unit, power = np.array(powers).T
    t = y.shape[1]
    raised = Response(origin, unit, power, np.zeros(t), np.ones(t), np.zeros((2, t))).points(y)
    center = np.average(raised, axis=0, weights=mass)
    scale = np.sqrt(np.average(np.square(raised - center), axis=0, weights=mass))
    least = np.maximum(CONSTANT * np.abs(raised).max(axis=0), np.finfo(np.float64).tiny)
    scale = np.maximum(scale, least)  # of a constant, which networks miss by some of it
    low, high = y.min(axis=0), y.max(axis=0)
    ends = np.stack([low - (high - low), high + (high - low)])  # twice as far as any number was
    return Response(origin, unit, power, center, scale, ends)


def _honest(solved: Solved, rows: NumberRows) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return what fits without them say of the pairs, (p, t), and whether there is such a fit.

    Fits to four fifths of the rows are a little worse than the fit, and leave-one-out is a little
    better, since the metric has seen the row: the truth is between, and so is their mean.
    """
    shares = solved.shares.sum(axis=1)
    known = shares > 0
    crossed = np.einsum("pf,pft->pt", solved.shares, solved.embeddings)
    crossed /= np.where(known, shares, 1)[:, None]
    if solved.shares.shape[1] == 1 or not known.all():  # of landmarks it is leave-one-out already
        return crossed, known
    _, targets, weights = rows.problem()
    left_out = np.zeros(crossed.shape)
    members = solved.recipe.members
    for kernel, setting in zip(solved.machine.kernels, members, strict=True):
        solution = solve(kernel(rows.X), targets, weights, setting.ridge)
        left_out += solution.without(rows.row, rows.targets, rows.unit) / len(members)
    return (crossed + left_out) / 2, known


def _spread(
    kernel: Kernel,
    rows: NumberRows,
    missed: NDArray[np.float64],
    known: NDArray[np.bool_],
    generator: np.random.Generator,
    held: NDArray[np.float32] | None,
) -> Spread:
    """Learn how large residuals of rows are that were left out, and how they are distributed.

    The function of sizes holds some of the rows, unless there are means of rows that it may hold.
    """
    if not known.any():  # one row: nothing is known of it without it
        missed, known = rows.targets, np.ones(len(missed), dtype=bool)
    floor = LEAST_RESIDUAL * np.median(np.abs(missed[known]), axis=0) + 1e-9
    sizes = np.log(np.maximum(np.abs(missed), floor))
    center = np.average(sizes[known], axis=0, weights=rows.mass[known])
    sizes[~known] = center
    chosen = rows.spread(MOST_SIZED, generator)
    sample = replace(rows, targets=sizes - center).of(chosen)
    _, targets, weights = sample.problem()
    landmarks = sample.X[sample.spread(LANDMARKS, generator)] if held is None else held
    sums = sums_of([kernel], landmarks, sample.X, targets, weights)[0]
    path = LandmarkPath.of(Landmarks(kernel, landmarks), sums)
    alpha, left_out = np.zeros((len(landmarks), targets.shape[1])), np.zeros(targets.shape)
    least = float(weights @ np.square(targets).sum(axis=1))  # if they are alike everywhere
    for solution in path.solutions(sample.X, SIZE_RIDGES, np.float64):
        without = solution.leave_one_out(targets, weights)
        loss = float(weights @ np.square(targets - without).sum(axis=1))
        if loss < least:
            least, alpha, left_out = loss, solution.alpha, without
    machine = KernelMachine(landmarks, (kernel,), alpha[None])
    # Residuals are divided by what is said of their size without them.
    size = machine(rows.X)
    size[chosen] = left_out
    relative = missed[known] / np.exp(size[rows.row[known]] + center)
    levels, residuals = _quantiles(relative, rows.mass[known])
    return Spread(machine, center, _usual_nearness(kernel, sample.X, landmarks), levels, residuals)


def _usual_nearness(
    kernel: Kernel, X: NDArray[np.float32], landmarks: NDArray[np.float32]
) -> float:
    """Return the kernel of rows to the nearest landmark but themselves; few rows have less."""
    K = kernel(X[:LANDMARKS], landmarks)
    K[K > ITSELF] = 0
    near = float(np.quantile(K.max(axis=1), USUALLY_NEARER))
    return near if near > 0 else 1.0


def _quantiles(
    values: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return levels, and the quantiles of each column there: value i of n is at i / (n + 1).

    So a new value is between two quantiles as often as their levels say, be n ever so small.
    """
    n = len(values)
    levels = np.arange(1, n + 1) / (n + 1)
    if n > MOST_LEVELS:
        levels = np.arange(1, MOST_LEVELS + 1) / (MOST_LEVELS + 1)
    columns = []
    for column in values.T:
        order = np.argsort(column)
        place = np.cumsum(weights[order]) / (weights.sum() * (1 + 1 / n))
        columns.append(np.interp(levels, place, column[order]))
    return levels, np.stack(columns, axis=1)
