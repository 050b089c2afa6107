"""Which kernels, widths, ridges and metrics: each is tried, and leave-one-out decides.

A search gives a recipe, and what it has fitted; the recipe can be fitted to other rows, such as
those of a fold, metric included. Knows target points and a loss, not what they stand for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.kernels.exact import Solution, coefficients, solve
from cocoloss.kernels.kernel import KERNELS, Kernel, distances, in_metric, unit_distance
from cocoloss.kernels.machine import KernelMachine
from cocoloss.kernels.metric import learnt_metric

MOST_MEMBERS = 4

Loss = Callable[[Solution], float]
"""Judges a solution by what it says of rows that are left out."""


@dataclass(frozen=True)
class Search:
    """What is tried, and how good is good enough."""

    # Kinds and widths: gamma times the typical distance.
    grid: tuple[tuple[str, float], ...] = (
        ("rbf", 0.25),
        ("rbf", 1.0),
        ("laplace", 0.05),
        ("laplace", 0.3),
        ("laplace-l1", 0.7),
        ("laplace-l1", 3.0),
    )
    ridges: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    first_ridge: int = 4  # where the walk over the ridges begins
    landmark_ridges: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0)
    leaf_ridges: tuple[float, ...] = (0.03, 0.3, 3.0)
    rounds: int = 2  # how often the metric is learnt anew
    large: int = 5_000  # rows, from which on two kernels must do, and more say what columns weigh
    # A member's loss is at most so many times the best one's, and so much more.
    close: tuple[float, float] = (1.1, 0.005)
    loss: str = "log loss"  # what is said of it

    @property
    def n_tried(self) -> int:
        """Kernels that are tried; from the second metric on one width of each kind."""
        return len(self.grid) + self.rounds * len({kind for kind, _ in self.grid})


USUAL = Search()


@dataclass(frozen=True)
class Setting:
    """One kernel, to be fitted to any rows."""

    kind: str
    width: float  # gamma times the typical distance of the rows
    ridge: float
    round: int  # the metric that it uses: 0 is that of the columns as they are
    loss: float = np.inf  # when it was chosen


@dataclass(frozen=True)
class Recipe:
    """All settings of a machine: how its metrics are learnt, and what is averaged."""

    path: tuple[Setting, ...]  # that of round r, from which the metric of round r + 1 is learnt
    members: tuple[Setting, ...]
    tried: tuple[Setting, ...] = ()  # each kernel in each metric at its best ridge, to look at

    def of_best(self, n: int) -> "Recipe":
        """Return the recipe of the first n members alone."""
        members = self.members[:n]
        return replace(self, path=self.path[: max(each.round for each in members)], members=members)


@dataclass(frozen=True, eq=False)
class Member:
    """A setting fitted to rows."""

    setting: Setting
    kernel: Kernel
    alpha: NDArray[Any]  # (n, q)


@dataclass(frozen=True, eq=False)
class Round:
    """Rows in one metric, with the distances that kernels share."""

    X: NDArray[np.float32]  # (n, d), as they are
    metric: NDArray[np.float32]  # (d,)
    seen: dict[str, tuple[NDArray[np.float32], float]]  # distances, and the typical one, by kind

    def distances(self, kind: str) -> tuple[NDArray[np.float32], float]:
        """Return the distances that a kind of kernel sees, (n, n), and the typical one."""
        distance = KERNELS[kind].distance
        if distance not in self.seen:
            D = distances(distance, in_metric(self.X, self.metric))
            self.seen[distance] = D, unit_distance(distance, D)
        return self.seen[distance]

    def kernel(self, kind: str, width: float) -> tuple[Kernel, NDArray[np.float32]]:
        """Return the kernel whose width is relative to these rows, and its matrix of them."""
        D, unit = self.distances(kind)
        kernel = Kernel(kind, width / unit, self.metric)
        return kernel, kernel.of(D.copy())

    def next(self, learner: Member) -> "Round":
        """Return the rows in the metric that is learnt from a function in this one."""
        D, _ = self.distances(learner.kernel.kind)
        return start_round(self.X, learnt_metric(learner.kernel, self.X, learner.alpha, D))


def start_round(X: NDArray[np.float32], metric: NDArray[np.float32] | None = None) -> Round:
    """Return rows in a metric, by default that of the columns as they are."""
    if metric is None:
        metric = np.ones(X.shape[1], dtype=np.float32)
    return Round(X, metric, {})


def find_recipe(
    X: NDArray[np.float32],
    V: NDArray[Any],
    weights: NDArray[Any],
    loss: Loss,
    search: Search = USUAL,
    *,
    goes_on: Callable[[Setting], bool] = lambda _: True,
) -> tuple[Recipe, list[Member]]:
    """Try every kernel in every metric, and return the best few, which are to be averaged.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows.
    V : array of shape (n, q)
        Target points.
    weights : array of shape (n,)
        What rows weigh, positive.
    loss : function
        Judges a solution, by leave-one-out.
    search : Search
        What is tried.
    goes_on : function
        Hears of each kernel with its best ridge, and says whether there is time for more.
    """
    here, grid = start_round(X), list(search.grid)
    found: list[Member] = []
    path: list[Setting] = []
    ridges = dict.fromkeys(grid, search.first_ridge)  # where each kernel's walk begins
    for r in range(search.rounds + 1):
        tried: dict[tuple[str, float], Member] = {}
        in_time = True
        for key in grid:
            tried[key], ridges[key] = _best_ridge(
                here, key, r, V, weights, loss, search.ridges, ridges[key]
            )
            in_time = goes_on(tried[key].setting)
            if not in_time:
                break
        found += tried.values()
        smooth = [member for (kind, _), member in tried.items() if KERNELS[kind].slope is not None]
        if r == search.rounds or not smooth or not in_time:
            break
        learner = min(smooth, key=lambda member: member.setting.loss)
        path.append(learner.setting)
        here = here.next(learner)
        grid = _best_widths(tried)
    members = _best_few(found, search.close)
    chosen, every = (tuple(each.setting for each in some) for some in (members, found))
    return Recipe(tuple(path), chosen, every).of_best(len(chosen)), members


def _best_widths(tried: Mapping[tuple[str, float], Member]) -> list[tuple[str, float]]:
    """Return one width of each kind: what suits one metric suits the next, which is like it."""
    best: dict[str, tuple[str, float]] = {}
    for key in sorted(tried, key=lambda key: tried[key].setting.loss):
        best.setdefault(key[0], key)
    return [key for key in tried if key in best.values()]


def _best_ridge(
    here: Round,
    key: tuple[str, float],
    r: int,
    V: NDArray[Any],
    weights: NDArray[Any],
    loss: Loss,
    ridges: Sequence[float],
    start: int,
) -> tuple[Member, int]:
    """Walk downhill over the ridges, from where the kernel was best in the metric before."""
    kind, width = key
    kernel, K = here.kernel(kind, width)
    tried: dict[int, Member] = {}

    def loss_at(i: int) -> float:
        if not 0 <= i < len(ridges):
            return np.inf
        if i not in tried:
            solution = solve(K, V, weights, ridges[i])
            setting = Setting(kind, width, ridges[i], r, loss(solution))
            tried[i] = Member(setting, kernel, solution.alpha)
        return tried[i].setting.loss

    i = start
    step = -1 if loss_at(i - 1) < loss_at(i) else 1
    while loss_at(i + step) < loss_at(i):
        i += step
    return tried[i], i


def _best_few(found: Sequence[Member], close: tuple[float, float]) -> list[Member]:
    """Return the best, and those nearly as good that differ in kernel or metric."""
    ranked = sorted(found, key=lambda member: member.setting.loss)
    times, more = close
    limit = ranked[0].setting.loss * times + more
    chosen: dict[tuple[str, int], Member] = {}
    for member in ranked:
        if len(chosen) < MOST_MEMBERS and member.setting.loss <= limit:
            chosen.setdefault((member.setting.kind, member.setting.round), member)
    return list(chosen.values())


def fit_recipe(
    recipe: Recipe, X: NDArray[np.float32], V: NDArray[Any], weights: NDArray[Any]
) -> list[Member]:
    """Fit the members of a recipe to rows; the metric is learnt from these rows, round by round."""
    here, fitted = start_round(X), {}
    for r in range(len(recipe.path) + 1):
        learner = recipe.path[r : r + 1]  # none in the last round
        for setting in {*learner, *(each for each in recipe.members if each.round == r)}:
            fitted[setting] = _fitted(here, setting, V, weights)
        if learner:
            here = here.next(fitted[learner[0]])
    return [fitted[setting] for setting in recipe.members]


def _fitted(here: Round, setting: Setting, V: NDArray[Any], weights: NDArray[Any]) -> Member:
    kernel, K = here.kernel(setting.kind, setting.width)
    return Member(setting, kernel, coefficients(K, V, weights, setting.ridge))


def machine_of(X: NDArray[np.float32], members: Sequence[Member]) -> KernelMachine:
    """Return the mean of fitted members as a function of rows."""
    alphas = np.stack([member.alpha for member in members]) / len(members)
    kernels = tuple(member.kernel for member in members)
    return KernelMachine(X, kernels, alphas.astype(np.float32))
