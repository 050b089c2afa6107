"""Leaves for what is local: a tree of small exact machines on what landmarks leave over.

A tree halves the rows at the median along the line between two of them, until a part is small
enough for an exact machine; its targets are what the global function got wrong, row by row, when
the row was left out. Cost and memory are linear in the rows. Trees of leaves are those of xRFM
(Beaglehole et al., ICLR 2026).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.kernels.exact import solve
from cocoloss.kernels.machine import KernelMachine, Tree
from cocoloss.kernels.search import Setting, start_round

MOST_ROWS = 1500  # of a leaf: an exact machine of so many takes a tenth of a second
# Kinds and widths that are tried, as in search.py; what is local is narrow.
GRID = (("laplace-l1", 4.0), ("laplace-l1", 12.0), ("laplace", 1.0), ("laplace", 4.0))
TRIED_LEAVES = 2  # that decide
TRIES = 5  # lines that are drawn until one tells rows apart
LEAST_PART = 4  # a cut leaves at least one of so many rows on each side


def grow(
    X: NDArray[np.float32],
    metric: NDArray[np.float32],
    generator: np.random.Generator,
    most_rows: int = MOST_ROWS,
) -> Tree:
    """Return cuts into leaves of at most so many rows, where cuts can tell them apart."""
    directions: list[NDArray[np.float32]] = []
    thresholds: list[float] = []
    children: list[list[int]] = []
    n_leaves = 0

    def grow_from(rows: NDArray[np.intp]) -> int:
        nonlocal n_leaves
        for _ in range(TRIES if len(rows) > most_rows else 0):
            first, second = X[generator.choice(rows, 2, replace=False)]
            direction = (second - first) * metric  # along the line between them, in the metric
            places = X[rows].astype(np.float64) @ direction.astype(np.float64)
            threshold = float(np.median(places))
            below = places < threshold
            if min(below.sum(), (~below).sum()) * LEAST_PART >= len(rows):
                cut = len(children)
                directions.append(direction)
                thresholds.append(threshold)
                children.append([0, 0])
                children[cut] = [grow_from(rows[below]), grow_from(rows[~below])]
                return cut
        n_leaves += 1
        return -n_leaves

    grow_from(np.arange(len(X)))
    return Tree(
        np.array(directions, dtype=np.float32).reshape(-1, X.shape[1]),
        np.array(thresholds, dtype=np.float64),
        np.array(children, dtype=np.int64).reshape(-1, 2),
        (None,) * n_leaves,
        0,
    )


def find_leaf_setting(
    metric: NDArray[np.float32],
    X: NDArray[np.float32],
    missed: NDArray[Any],
    weights: NDArray[Any],
    cuts: Tree,
    ridges: Sequence[float],
) -> Setting:
    """Return the kernel and the ridge that suit the first few leaves best, by leave-one-out.

    Its loss is the share of the squared error that it leaves there.
    """
    grid = [Setting(kind, width, ridge, round=0) for kind, width in GRID for ridge in ridges]
    errors, before = np.zeros(len(grid)), 0.0
    for rows in cuts.parts(X)[:TRIED_LEAVES]:
        here = start_round(X[rows], metric)
        w, V = weights[rows], missed[rows]
        before += float(w @ np.square(V).sum(axis=1))
        for i, each in enumerate(grid):
            if i % len(ridges) == 0:
                _, K = here.kernel(each.kind, each.width)
            left_out = solve(K, V, w, each.ridge).leave_one_out(V, w)
            errors[i] += w @ np.square(V - left_out).sum(axis=1)
    best = int(errors.argmin())
    return replace(grid[best], loss=float(errors[best]) / max(before, np.finfo(np.float64).tiny))


def fit_leaves(
    setting: Setting,
    metric: NDArray[np.float32],
    X: NDArray[np.float32],
    missed: NDArray[Any],
    weights: NDArray[Any],
    cuts: Tree,
    dtype: Any = np.float32,
) -> tuple[Tree, NDArray[np.float64]]:
    """Fit machines to the leaves of a tree of cuts.

    Parameters
    ----------
    setting : Setting
        Kind, width and ridge of the kernels.
    metric : array of shape (d,)
        Theirs.
    X, weights
        Rows and weights of the fit.
    missed : array of shape (n, q)
        Target points, less the global function at each row when it is fitted to all others.
    cuts : Tree
        That of :func:`grow`.
    dtype : dtype
        Of the kernels' matrices and of the coefficients.

    Returns
    -------
    The tree, and what it adds to the global function at each row when it is fitted to all others,
    (n, q). A leaf that does not lower the squared error so stays out.
    """
    added = np.zeros(missed.shape)
    machines: list[KernelMachine | None] = []
    for rows in cuts.parts(X):
        kernel, K = start_round(X[rows], metric).kernel(setting.kind, setting.width)
        w, V = weights[rows], missed[rows]
        solution = solve(K.astype(dtype, copy=False), V, w, setting.ridge)
        left_out = solution.leave_one_out(V, w)
        machine = None
        if w @ np.square(V - left_out).sum(axis=1) < w @ np.square(V).sum(axis=1):
            alpha = solution.alpha[None].astype(dtype)
            machine = KernelMachine(X[rows], (kernel,), alpha)
            added[rows] = left_out
        machines.append(machine)
    return replace(cuts, machines=tuple(machines), width=missed.shape[1]), added
