"""Fitted kernel machines: rows, kernels and coefficients, and trees of them; all that predicts.

numpy alone, but for the distance of "laplace-l1", which is scipy's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cocoloss._checks import check_option, require, state_array, state_part
from cocoloss.heads.fitted import blocks
from cocoloss.kernels.kernel import KERNELS, Kernel, kernel_values
from cocoloss.kernels.metric import learnt_metric


@dataclass(frozen=True, eq=False)
class KernelMachine:
    """The function f(x) = sum over kernels k and rows i of k(x, x_i) alpha_ki: an embedding."""

    rows: NDArray[np.float32]  # (m, d), training rows or landmarks
    kernels: tuple[Kernel, ...]  # (K,)
    alphas: NDArray[np.floating[Any]]  # (K, m, q); those of landmarks are large, in float64
    trees: tuple["Tree", ...] = ()  # whose mean is added

    # A machine takes the place of networks in a model: it is one of them.
    n_networks = 1

    @property
    def n_inputs(self) -> int:
        """Columns of the rows, d."""
        return int(self.rows.shape[1])

    @property
    def width(self) -> int:
        """Dimensions of an embedding, q."""
        return int(self.alphas.shape[2])

    n_outputs = width

    @property
    def n_rows(self) -> int:
        """Different rows that it holds, as a file of it does: its own, and those of its leaves."""
        leaves = (leaf for tree in self.trees for leaf in tree.machines if leaf is not None)
        held = np.concatenate([self.rows, *(leaf.rows for leaf in leaves)])
        return len(np.unique(held, axis=0))

    @property
    def column_importances(self) -> NDArray[np.float64]:
        """How much the function goes with each column, (d,): they sum to one.

        Mean squared gradient times variance, averaged over the kernels. One whose gradients jump
        says what its metric says.
        """
        variance = self.rows.var(axis=0, dtype=np.float64)
        total = np.zeros(self.n_inputs)
        for kernel, alpha in zip(self.kernels, self.alphas, strict=True):
            smooth = KERNELS[kernel.kind].slope is not None
            metric = learnt_metric(kernel, self.rows, alpha) if smooth else kernel.metric
            share = metric * variance
            total += share / max(share.sum(), np.finfo(np.float64).tiny)
        return np.asarray(total / max(total.sum(), np.finfo(np.float64).tiny))

    def __call__(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return f at rows, (n, q), block by block.

        Sums are in float64, so that a row gets the same value whatever other rows it comes with.
        """
        result = np.zeros((len(X), self.width))
        alphas = self.alphas.astype(np.float64)
        for part in blocks(len(X), len(self.rows)):
            for K, alpha in zip(
                kernel_values(self.kernels, X[part], self.rows), alphas, strict=True
            ):
                result[part] += K.astype(np.float64) @ alpha
        for tree in self.trees:
            result += tree(X) / len(self.trees)
        return result

    def outputs(self, X: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return f at rows as the outputs of one network, (1, n, q)."""
        return self(X)[None]

    embeddings = outputs

    def kernel(self, X: NDArray[Any], Z: NDArray[Any]) -> NDArray[np.float64]:
        """Return the mean of the kernels between rows, (n, m)."""
        total = sum(kernel(X, Z).astype(np.float64) for kernel in self.kernels)
        return np.asarray(total / len(self.kernels))

    def outlier_score(self, X: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return how far rows are from all rows of the machine: -log of the mean kernel, (n,)."""
        score = np.empty(len(X))
        for part in blocks(len(X), len(self.rows)):
            values = kernel_values(self.kernels, X[part], self.rows)
            near = sum(K.mean(axis=1, dtype=np.float64) for K in values)
            score[part] = -np.log(np.maximum(near / len(self.kernels), np.finfo(np.float32).tiny))
        return score

    def to_state(self) -> dict[str, Any]:
        """Return the value as a dict of lists and arrays."""
        return {
            "rows": self.rows,
            "kinds": [kernel.kind for kernel in self.kernels],
            "gammas": np.array([kernel.gamma for kernel in self.kernels]),
            "metrics": np.stack([kernel.metric for kernel in self.kernels]),
            "alphas": self.alphas,
            "trees": [tree.to_state() for tree in self.trees],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the value that :meth:`to_state` described, or refuse it with a CoCoError."""
        kinds = state_part(state, "kinds", list)
        K = len(kinds)
        require(K > 0, "it has no kernels")
        rows = state_array(state, "rows", np.float32, (None, None))
        m, d = rows.shape
        alphas = state_array(state, "alphas", np.floating, (K, m, None))
        gammas = state_array(state, "gammas", np.float64, (K,), positive=True)
        metrics = state_array(state, "metrics", np.float32, (K, d), positive=True)
        kernels = tuple(
            Kernel(check_option(kind, "kernel", KERNELS), float(gamma), metric)
            for kind, gamma, metric in zip(kinds, gammas, metrics, strict=True)
        )
        described = state_part(state, "trees", list)
        trees = tuple(Tree.from_state(each, d, alphas.shape[2]) for each in described)
        return cls(rows, kernels, alphas, trees)


@dataclass(frozen=True, eq=False)
class Tree:
    """Cuts of the space into leaves, each with a machine of its own or none."""

    directions: NDArray[np.float32]  # (cuts, d)
    thresholds: NDArray[np.float64]  # (cuts,): rows below go to the first child
    children: NDArray[np.int64]  # (cuts, 2): a later cut, or -1 - leaf
    machines: tuple[KernelMachine | None, ...]  # of the leaves; None adds nothing
    width: int  # q

    def __call__(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return what the leaves' machines say of their rows, (n, q)."""
        result = np.zeros((len(X), self.width))
        for leaf, rows in enumerate(self.parts(X)):
            machine = self.machines[leaf]
            if machine is not None and len(rows):
                result[rows] = machine(X[rows])
        return result

    def parts(self, X: NDArray[Any]) -> list[NDArray[np.intp]]:
        """Return the rows of each leaf."""
        X = np.asarray(X, dtype=np.float32)
        leaves: list[NDArray[np.intp]] = [np.arange(0)] * (len(self.children) + 1)
        waiting = [(0 if len(self.children) else -1, np.arange(len(X)))]
        while waiting:
            cut, rows = waiting.pop()
            if cut < 0:
                leaves[-1 - cut] = rows
                continue
            # In float64: a row goes the same way whatever other rows it comes with.
            places = X[rows].astype(np.float64) @ self.directions[cut].astype(np.float64)
            first = places < self.thresholds[cut]
            waiting += zip(self.children[cut].tolist(), (rows[first], rows[~first]), strict=True)
        return leaves

    def to_state(self) -> dict[str, Any]:
        """Return the value as a dict of lists and arrays."""
        machines = [machine and machine.to_state() for machine in self.machines]
        return {
            "directions": self.directions,
            "thresholds": self.thresholds,
            "children": self.children,
            "machines": machines,
        }

    @classmethod
    def from_state(cls, state: Any, n_inputs: int, width: int) -> Self:
        """Return the value that :meth:`to_state` described, or refuse it with a CoCoError."""
        children = state_array(state, "children", np.int64, (None, 2))
        n = len(children)
        # Every cut but the first, and every leaf, is the child of one cut that comes before it.
        is_tree = np.array_equal(np.sort(children, axis=None), np.r_[-1 - n : 0, 1:n])
        is_tree = is_tree and bool(((children < 0) | (children > np.arange(n)[:, None])).all())
        require(is_tree or not n, "the cuts of a tree are none")
        machines = state_part(state, "machines", list, n=n + 1)
        made = tuple(each and KernelMachine.from_state(each) for each in machines)
        fits = all((m.n_inputs, m.width, m.trees) == (n_inputs, width, ()) for m in made if m)
        require(fits, "a leaf does not fit its tree")
        directions = state_array(state, "directions", np.float32, (n, n_inputs))
        return cls(
            directions, state_array(state, "thresholds", np.float64, (n,)), children, made, width
        )
