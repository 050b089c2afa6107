"""A fit in closed form: kernels onto target points, chosen by leave-one-out.

    rows ->  ``find_recipe``    kernels, ridges, metric; rows that are left out decide
         ->  ``cross_fit``      an honest embedding of every row, metric included

Of many rows a sample finds the recipe, landmarks carry it to all of them, leaves add what is local,
and leave-one-out is honest enough.

Knows rows, points and what judges them, not what they stand for: that is for classes.py and
numbers.py to know.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from cocoloss.kernels.exact import Solution
from cocoloss.kernels.kernel import Kernel, in_metric
from cocoloss.kernels.landmarks import LandmarkPath, Landmarks, Sums, sums_of
from cocoloss.kernels.leaves import find_leaf_setting, fit_leaves, grow
from cocoloss.kernels.machine import KernelMachine, Tree
from cocoloss.kernels.search import (
    Member,
    Recipe,
    Search,
    Setting,
    find_recipe,
    fit_recipe,
    machine_of,
)
from cocoloss.pace import Pace
from cocoloss.threads import threads_for

N_FOLDS = 5
SEARCH = 0.4  # of the time that is left, for finding the recipe
FOR_ROWS = 0.4  # of the time, for what grows with the rows
PASSES = 8  # over the rows, each as long as adding them up for one kernel
TIMED = 2000  # rows by which that is foreseen
GROWTH = 2.5  # of the time of an exact fit: its power of the rows, between distances and solving
MOST_EXACT = 1800  # distinct rows: their kernel matrices are solved as they are
MOST_SEARCHED = 900  # of these rows, up to which all find the recipe
SEARCHED = 700  # that find it if there are more
SAMPLE = 1200  # rows that find the recipe of a larger table
LANDMARKS = 1000
MEASURED = 3000  # rows that say what columns weigh in a large one
THREADED = 20_000  # rows, from which on a second thread pays, and is worth its risk
JUDGED = 4000  # pairs that judge them
MOST_TREES = 5
FOR_LEAVES = 3.0  # seconds that kernels for leaves and a first tree take, or less
WORTH_LEAVES = 0.995  # of the squared error; if the first leaves leave more, there are none
WORTH_A_TREE = 0.985  # one that leaves more of the squared error is the last
MOST_AVERAGED = 20_000  # rows that means of rows are taken of
ROWS_PER_MEAN = 5  # at least, on average
FEWEST_AVERAGED = 3  # a mean of fewer is left out: it would nearly be a row

Problem = tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]
"""The rows that weigh anything, their mean target points, and what they weigh."""


class Criterion(Protocol):
    """Judges a solution by what it says of rows that are left out; the less, the better."""

    def __call__(self, solution: Solution) -> float:
        """Return the loss; infinite where the solution is none."""


class TargetRows(Protocol):
    """Distinct rows, and the pairs of a row and a target that occur.

    A row that occurs twice is one row that weighs two, so that weights and copies are the same.
    """

    @property
    def X(self) -> NDArray[np.float32]:  # noqa: N802
        """The distinct rows, (u, d)."""

    @property
    def row(self) -> NDArray[np.intp]:
        """The row of each pair, (p,)."""

    @property
    def mass(self) -> NDArray[np.float64]:
        """How often each pair occurs, (p,)."""

    @property
    def targets(self) -> NDArray[np.float64]:
        """The target point of each pair, (p, q)."""

    @property
    def unit(self) -> NDArray[np.float64]:
        """What one copy of each pair weighs in the fit, (p,)."""

    def problem(self, mass: NDArray[np.float64] | None = None) -> Problem:
        """Return what is to be solved if pairs occur so often, by default as often as they do."""

    def of(self, chosen: NDArray[np.intp]) -> Self:
        """Return some of the rows, weighed as they are here."""

    def spread(self, n: int, generator: np.random.Generator) -> NDArray[np.intp]:
        """Draw at most n of the rows to stand for all."""

    def folds(self, generator: np.random.Generator) -> NDArray[np.float64]:
        """Return what part of each pair is in each fold, (p, N_FOLDS)."""

    def criterion(self, shares: NDArray[np.float64]) -> Any:
        """Return what judges solutions; the shares are those of folds."""


def pairs_of(
    row: NDArray[np.intp], chosen: NDArray[np.intp], n_rows: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the pairs of some rows, and where the row of each is among these."""
    place = np.full(n_rows, -1)
    place[chosen] = np.arange(len(chosen))
    kept = np.flatnonzero(place[row] >= 0)
    return kept, place[row[kept]]


def rows_of_pairs(
    pair: NDArray[np.intp], given: NDArray[np.int64] | None, weights: NDArray[np.float64]
) -> NDArray[np.int64] | None:
    """Return how many rows of the table each pair is, if their weights are no numbers of copies.

    ``given`` are the rows of the table that the others are copies of; None if all weights are
    whole. A row of relative weight is one row, to be left out whole.
    """
    if given is None:
        return None
    weighed = np.bincount(given, weights)
    if np.allclose(weighed, np.rint(weighed), rtol=1e-9, atol=1e-9):
        return None
    return np.bincount(np.unique(np.stack([pair, given]), axis=1)[0])


def deal(
    pairs: NDArray[np.intp], parts: NDArray[np.int64], mass: NDArray[np.float64], start: int = 0
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Deal the parts of pairs to folds in turn; return pair, fold and share of each part."""
    part = np.repeat(pairs, parts[pairs])
    return part, (start + np.arange(len(part))) % N_FOLDS, mass[part] / parts[part]


def fit_rows(
    rows: TargetRows,
    search: Search,
    generator: np.random.Generator,
    pace: Pace,
    *,
    means: bool = False,
) -> tuple["Solved", NDArray[np.intp] | None]:
    """Solve for rows, exactly or on landmarks; also return which of them, if there was no time.

    With ``means`` the function holds means of rows rather than rows.
    """
    if not means and len(rows.X) <= MOST_EXACT:
        return _fit_exactly(rows, search, generator, pace), None
    n, chosen = _affordable(rows, pace), None
    if n < len(rows.X):
        pace.left_out.append(f"{len(rows.X) - n:,} of {len(rows.X):,} rows")
        chosen = rows.spread(n, generator)
        rows = rows.of(chosen)
    plan = make_plan(rows, len(rows.X), search, generator, pace, means=means)
    _, targets, weights = rows.problem()
    sums = plan.sums(rows.X, targets, weights)
    return finish(plan, sums, rows, generator, None if means else rows, pace), chosen


def _affordable(rows: TargetRows, pace: Pace) -> int:
    """Return how many rows there is time for, by how long some of them take."""
    if pace.limit is None:
        return len(rows.X)
    started = pace.elapsed
    kernel = Kernel("laplace", 1.0, np.ones(rows.X.shape[1], dtype=np.float32))
    some = rows.X[:TIMED]
    sums_of([kernel], rows.X[:LANDMARKS], some, np.zeros((len(some), 1)), np.ones(len(some)))
    seconds = (pace.elapsed - started) / len(some)
    return max(MOST_EXACT, int(FOR_ROWS * pace.left / (PASSES * seconds)))


class Solved(NamedTuple):
    """What a fit of either kind gives."""

    recipe: Recipe
    machine: KernelMachine
    embeddings: NDArray[np.float64]  # (p, F, q), honest, of the pairs by F fits without them
    shares: NDArray[np.float64]  # (p, F), what part of a pair each stands for
    criterion: Any  # what chose


def _fit_exactly(
    rows: TargetRows, search: Search, generator: np.random.Generator, pace: Pace
) -> Solved:
    folds = rows.folds(generator)
    if len(rows.X) <= MOST_SEARCHED:
        recipe, members, criterion = _search(rows, folds, search, pace)
    else:
        recipe, _, criterion = _search_sample(rows, SEARCHED, search, generator, pace)
        if len(recipe.members) > 1 and pace.limit is not None:
            seconds = _seconds_of(recipe, rows, pace)
            if not pace.has(seconds, "all kernels but the best"):
                recipe = recipe.of_best(1)
        _, targets, weights = rows.problem()
        members = fit_recipe(recipe, rows.X, targets, weights)
    pace.say("five fits without a fifth of the rows each, to calibrate")
    return Solved(recipe, machine_of(rows.X, members), *cross_fit(recipe, rows, folds), criterion)


def _seconds_of(recipe: Recipe, rows: TargetRows, pace: Pace) -> float:
    """Return how long a recipe takes for all rows and without each fold, by how long for some."""
    started = pace.elapsed
    some = rows.of(np.arange(SEARCHED))
    _, targets, weights = some.problem()
    fit_recipe(recipe, some.X, targets, weights)
    larger = len(rows.X) / len(some.X)
    fits = 1 + N_FOLDS * (1 - 1 / N_FOLDS) ** GROWTH
    return float(fits * larger**GROWTH) * (pace.elapsed - started)


def _search_sample(
    rows: TargetRows, n: int, search: Search, generator: np.random.Generator, pace: Pace
) -> tuple[Recipe, list[Member], Criterion]:
    """Find a recipe on some of the rows."""
    sample = rows.of(rows.spread(n, generator))
    return _search(sample, sample.folds(generator), search, pace)


def _search(
    rows: TargetRows, shares: NDArray[np.float64], search: Search, pace: Pace
) -> tuple[Recipe, list[Member], Criterion]:
    """Find a recipe, in a part of the time that is left; also return what judged."""
    criterion: Criterion = rows.criterion(shares)
    _, targets, weights = rows.problem()
    until = pace.elapsed + SEARCH * pace.left
    number = itertools.count(1)

    def goes_on(setting: Setting) -> bool:
        pace.say(
            f"kernel {next(number)} of {search.n_tried}: {setting.kind} of width "
            f"{setting.width:g} in metric {setting.round}, ridge {setting.ridge:g}: {search.loss} "
            f"{setting.loss:.4f} of rows left out"
        )
        in_time = pace.elapsed < until
        if not in_time:
            pace.left_out.append("kernels and metrics that were still to be tried")
        return in_time

    found = find_recipe(rows.X, targets, weights, criterion, search, goes_on=goes_on)
    return *found, criterion


@dataclass(frozen=True, eq=False)
class Plan:
    """What a sample decides for all rows."""

    recipe: Recipe
    members: Sequence[Member]
    landmarks: NDArray[np.float32]  # (m, d), of all members
    criterion: Any  # that found the recipe
    search: Search

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernel of each member."""
        return tuple(member.kernel for member in self.members)

    def sums(
        self, X: NDArray[np.float32], targets: NDArray[Any], weights: NDArray[Any]
    ) -> tuple[Sums, ...]:
        """Return what rows say of the function of each member; sums of blocks add up."""
        return sums_of(self.kernels, self.landmarks, X, targets, weights)


def make_plan(
    rows: TargetRows,
    n_rows: int,
    search: Search,
    generator: np.random.Generator,
    pace: Pace,
    *,
    means: bool = False,
) -> Plan:
    """Choose kernels, metric and landmarks for ``n_rows`` rows, of which these are some or all."""
    started = pace.elapsed
    with threads_for(0):  # where cores are busy, two threads take many times longer for this
        recipe, members, criterion = _search_sample(rows, SAMPLE, search, generator, pace)
    if n_rows >= search.large:
        recipe, members = recipe.of_best(2), members[:2]
        if pace.has(pace.elapsed - started, "a metric learnt from more rows"):
            more = rows.of(rows.spread(MEASURED, generator))
            _, targets, weights = more.problem()
            members = fit_recipe(recipe, more.X, targets, weights)
            pace.say(f"the metric of these kernels, learnt from {len(more.X):,} rows")
    if means:
        some = rows.X[rows.spread(MOST_AVERAGED, generator)]
        landmarks = mean_rows(some, members[0].kernel.metric, LANDMARKS, generator)
    else:
        landmarks = rows.X[rows.spread(LANDMARKS, generator)]
    return Plan(recipe, members, landmarks, criterion, search)


def mean_rows(
    X: NDArray[np.float32],
    metric: NDArray[np.float32],
    n: int,
    generator: np.random.Generator,
) -> NDArray[np.float32]:
    """Return means of at most n clusters of rows in a metric; none is that of a row alone."""
    from sklearn.cluster import MiniBatchKMeans  # noqa: PLC0415 - slow to import, seldom wanted

    clusters = MiniBatchKMeans(
        max(1, min(n, len(X) // ROWS_PER_MEAN)),
        random_state=int(generator.integers(2**31)),
        n_init=1,
        reassignment_ratio=0,  # else lone rows are drawn into new clusters
    )
    label = clusters.fit_predict(in_metric(X, metric))
    label = np.unique(label, return_inverse=True)[1]
    sizes = np.bincount(label)
    means = np.zeros((len(sizes), X.shape[1]))
    np.add.at(means, label, X)
    means /= sizes[:, None]
    enough = sizes >= FEWEST_AVERAGED
    kept = means[enough] if enough.any() else X.mean(axis=0, dtype=np.float64, keepdims=True)
    return np.asarray(kept, dtype=np.float32)


def finish(
    plan: Plan,
    sums: Sequence[Sums],
    rows: TargetRows,
    generator: np.random.Generator,
    of_leaves: TargetRows | None,
    pace: Pace,
    dtype: Any = np.float32,
) -> Solved:
    """Solve for what all rows say: ridges by leave-one-out, then leaves for what is local.

    ``rows`` are those at hand, weighed as they are in the sums; ``of_leaves`` the same, weighed as
    the leaves are to see them, or None for a function without leaves. In float64, sums that differ
    by rounding give a function that does.
    """
    _, targets, weights = rows.problem()
    judge = rows.of(rows.spread(JUDGED, generator))
    criterion = judge.criterion(judge.folds(generator))
    left_out = np.zeros((len(rows.row), targets.shape[1]))  # of each pair
    row_left_out = np.zeros(targets.shape)
    alphas: list[NDArray[Any]] = []
    started = pace.elapsed
    for kernel, each in zip(plan.kernels, sums, strict=True):
        if alphas and not pace.has((pace.elapsed - started) / len(alphas), "a kernel of all rows"):
            break
        path = LandmarkPath.of(Landmarks(kernel, plan.landmarks), each)
        ridges = plan.search.landmark_ridges
        judged = map(criterion, path.solutions(judge.X, ridges, dtype))
        ridge, _ = min(zip(ridges, judged, strict=True), key=itemgetter(1))
        solution = path.solution(rows.X, ridge, dtype)
        pace.say(f"{kernel.kind} on {len(plan.landmarks)} landmarks: ridge {ridge:g}")
        alphas.append(solution.alpha)
        left_out += solution.without(rows.row, rows.targets, rows.unit)
        row_left_out += solution.leave_one_out(targets, weights)
    K = len(alphas)
    left_out /= K
    row_left_out /= K
    trees: list[Tree] = []
    if of_leaves is not None:
        _, targets, weights = of_leaves.problem()
        missed = targets - row_left_out
        trees, added = _local_trees(plan, rows.X, missed, weights, generator, pace, dtype)
        left_out += added[rows.row]
    alpha = np.stack(alphas) / K
    machine = KernelMachine(plan.landmarks, plan.kernels[:K], alpha, tuple(trees))
    return Solved(plan.recipe, machine, left_out[:, None], rows.mass[:, None], plan.criterion)


def _local_trees(
    plan: Plan,
    X: NDArray[np.float32],
    missed: NDArray[np.float64],
    weights: NDArray[np.float64],
    generator: np.random.Generator,
    pace: Pace,
    dtype: Any,
) -> tuple[list[Tree], NDArray[np.float64]]:
    """Fit trees of leaves as long as one more pays; return them, and what their mean adds."""
    trees: list[Tree] = []
    total = np.zeros(missed.shape)
    error = float(weights @ np.square(missed).sum(axis=1))
    if not error or not pace.has(FOR_LEAVES, "trees of leaves"):
        return trees, total
    metric = plan.kernels[0].metric
    cuts = grow(X, metric, generator)
    setting = find_leaf_setting(metric, X, missed, weights, cuts, plan.search.leaf_ridges)
    pace.say(f"leaves: {setting.kind} of width {setting.width:g}, ridge {setting.ridge:g}")
    if setting.loss > WORTH_LEAVES:
        return trees, total
    while len(trees) < MOST_TREES:
        started = pace.elapsed
        tree, added = fit_leaves(setting, metric, X, missed, weights, cuts, dtype)
        mean = (total + added) / (len(trees) + 1)
        before, error = error, float(weights @ np.square(missed - mean).sum(axis=1))
        pace.say(f"a tree of {len(tree.machines)} leaves: squared error {error / before - 1:+.1%}")
        if error >= before:
            break
        trees.append(tree)
        total += added
        seconds = pace.elapsed - started
        if error > WORTH_A_TREE * before or not pace.has(seconds, "trees of leaves"):
            break
        cuts = grow(X, metric, generator)
    return trees, total / max(len(trees), 1)


def cross_fit(
    recipe: Recipe, rows: TargetRows, shares: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the embedding of each pair by the fit without each of its folds, and shares.

    The metric is learnt anew from the rows of each fit. Where one fold holds all there is, nothing
    is honest, and its shares become zero.
    """
    p, F = shares.shape
    embeddings, shares = np.zeros((p, F, rows.targets.shape[1])), shares.copy()
    for k in range(F):
        pairs = np.flatnonzero(shares[:, k])
        mass = rows.mass - shares[:, k]
        mass[mass < 1e-9 * rows.mass.max()] = 0
        kept, targets, weights = rows.problem(mass)
        if not len(kept):
            shares[:, k] = 0
            continue
        machine = machine_of(rows.X[kept], fit_recipe(recipe, rows.X[kept], targets, weights))
        distinct, place = np.unique(rows.row[pairs], return_inverse=True)
        embeddings[pairs, k] = machine(rows.X[distinct])[place]
    return embeddings, shares
