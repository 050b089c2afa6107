"""Leaves for what is local: a tree of small exact machines on what landmarks leave over.

A tree halves the rows at the median along the line between two of them, until a part is small
enough for an exact machine; its targets are what the global function got wrong, row by row, when
the row was left out. Cost and memory are linear in the rows. Trees of leaves are those of xRFM
(Beaglehole et al., ICLR 2026).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.kernels.exact import solve
from cocoloss.kernels.kernel import in_metric
from cocoloss.kernels.machine import KernelMachine
from cocoloss.kernels.search import Setting, start_round

MOST_ROWS = 1500  # of a leaf: an exact machine of so many takes a tenth of a second
RIDGES = (0.1, 1.0, 10.0)
TRIES = 5  # lines that are drawn until one tells rows apart


@dataclass(frozen=True, eq=False)
class Node:
    """A cut: rows on this side of the threshold go left."""

    direction: NDArray[np.float32]  # (d,)
    threshold: float
    left: "Node | int"  # a number is that of a leaf
    right: "Node | int"


@dataclass(frozen=True, eq=False)
class Tree:
    """What is added to a global function, leaf by leaf."""

    root: Node | int
    machines: tuple[KernelMachine | None, ...]  # None adds nothing
    n_outputs: int

    def __call__(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sum of nothing and the leaf's machine at rows, (n, q)."""
        result = np.zeros((len(X), self.n_outputs))
        for leaf, rows in parts(self.root, np.asarray(X, dtype=np.float32)):
            machine = self.machines[leaf]
            if machine is not None and len(rows):
                result[rows] = machine(X[rows])
        return result


def parts(root: Node | int, X: NDArray[np.float32]) -> list[tuple[int, NDArray[np.intp]]]:
    """Return each leaf with its rows."""
    found, waiting = [], [(root, np.arange(len(X)))]
    while waiting:
        node, rows = waiting.pop()
        if isinstance(node, int):
            found.append((node, rows))
            continue
        left = X[rows] @ node.direction < node.threshold
        waiting += [(node.left, rows[left]), (node.right, rows[~left])]
    return found


def grow(
    X: NDArray[np.float32],
    metric: NDArray[np.float32],
    most_rows: int,
    generator: np.random.Generator,
) -> Node | int:
    """Return a tree with at most so many rows in a leaf, where cuts can tell them apart."""
    A = in_metric(X, metric)
    n_leaves = 0

    def node_of(rows: NDArray[np.intp]) -> Node | int:
        nonlocal n_leaves
        if len(rows) > most_rows:
            for _ in range(TRIES):
                first, second = A[generator.choice(rows, 2, replace=False)]
                # Along the line in the metric: a column counts twice by its scale.
                direction = (second - first) * np.sqrt(metric)
                places = X[rows] @ direction
                threshold = float(np.median(places))
                left = places < threshold
                if min(left.sum(), (~left).sum()) >= len(rows) // 4:
                    return Node(direction, threshold, node_of(rows[left]), node_of(rows[~left]))
        n_leaves += 1
        return n_leaves - 1

    return node_of(np.arange(len(X)))


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
    """Fit one tree.

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
    The tree, and the sum of both at each row, fitted to all others. A leaf that does not lower the
    squared error so stays out.
    """
    root = grow(X, metric, most_rows, generator)
    total = np.array(left_out, dtype=np.float64)
    machines: dict[int, KernelMachine | None] = {}
    for leaf, rows in parts(root, X):
        kernel, K = start_round(X[rows], metric).kernel(setting.kind, setting.width)
        w, missed = weights[rows], V[rows] - left_out[rows]
        least, machines[leaf] = float(w @ np.square(missed).sum(axis=1)), None
        for ridge in ridges:
            solution = solve(K, missed, w, ridge)
            added = solution.leave_one_out(missed, w)
            error = float(w @ np.square(missed - added).sum(axis=1))
            if error < least:
                alpha = solution.alpha[None].astype(np.float32)
                least, machines[leaf] = error, KernelMachine(X[rows], (kernel,), alpha)
                total[rows] = left_out[rows] + added
    ordered = tuple(machines[leaf] for leaf in range(len(machines)))
    return Tree(root, ordered, V.shape[1]), total
