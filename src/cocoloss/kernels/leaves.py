"""Leaves for what is local: a tree of small exact machines on what landmarks leave over.

A tree halves the rows at the median along the line between two of them, until a part is small
enough for an exact machine; its targets are what the global function got wrong, row by row, when
the row was left out. Cost and memory are linear in the rows. Trees of leaves are those of xRFM
(Beaglehole et al., ICLR 2026).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.kernels.exact import solve
from cocoloss.kernels.machine import KernelMachine, Tree
from cocoloss.kernels.search import Setting, start_round

MOST_ROWS = 1500  # of a leaf: an exact machine of so many takes a tenth of a second
RIDGES = (0.1, 1.0, 10.0)
TRIES = 5  # lines that are drawn until one tells rows apart
LEAST_PART = 4  # a cut leaves at least one of so many rows on each side


def grow(
    X: NDArray[np.float32],
    metric: NDArray[np.float32],
    most_rows: int,
    generator: np.random.Generator,
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


def fit_leaves(
    setting: Setting,
    metric: NDArray[np.float32],
    X: NDArray[np.float32],
    V: NDArray[Any],
    left_out: NDArray[Any],
    weights: NDArray[Any],
    generator: np.random.Generator,
    *,
    most_rows: int = MOST_ROWS,
    ridges: Sequence[float] = RIDGES,
) -> tuple[Tree, NDArray[np.float64]]:
    """Fit one tree of machines.

    Parameters
    ----------
    setting : Setting
        Kind and width of the kernels.
    metric : array of shape (d,)
        Theirs.
    X, V, weights
        Rows, target points and weights of the fit.
    left_out : array of shape (n, q)
        The global function at each row, fitted to all others.

    Returns
    -------
    The tree, and what it adds to the global function at each row when it is fitted to all others,
    (n, q). A leaf that does not lower the squared error so stays out.
    """
    cuts = grow(X, metric, most_rows, generator)
    added = np.zeros(left_out.shape)
    machines: list[KernelMachine | None] = []
    for rows in cuts.parts(X):
        kernel, K = start_round(X[rows], metric).kernel(setting.kind, setting.width)
        w, missed = weights[rows], V[rows] - left_out[rows]
        least, machine = float(w @ np.square(missed).sum(axis=1)), None
        for ridge in ridges:
            solution = solve(K, missed, w, ridge)
            here = solution.leave_one_out(missed, w)
            error = float(w @ np.square(missed - here).sum(axis=1))
            if error < least:
                alpha = solution.alpha[None].astype(np.float32)
                least, machine = error, KernelMachine(X[rows], (kernel,), alpha)
                added[rows] = here
        machines.append(machine)
    made = Tree(cuts.directions, cuts.thresholds, cuts.children, tuple(machines), V.shape[1])
    return made, added
