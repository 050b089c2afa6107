"""Kernel ridge regression onto target points, solved exactly, with leave-one-out for free.

Minimises ``sum_i w_i |f(x_i) - v_i|^2 + ridge |f|^2`` over the kernel's space. The minimiser is
``f(x) = sum_i k(x, x_i) alpha_i`` with ``(K + ridge W^-1) alpha = V``. Knows no classes.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, lapack

SAFE = 4  # float32 solves where the ridge is so many times larger than its rounding of the kernel
JITTER = 1e-7  # added to the ridge where the rounded kernel has negative eigenvalues; then tenfold
TINY = 1e-12  # smaller entries of eigenvectors have subnormal squares: five times the time


@dataclass(frozen=True, eq=False)
class Solution:
    """What one ridge gives at the rows of a fit, landmarks or not."""

    alpha: NDArray[Any]  # (m, q), coefficients of the rows or landmarks
    fitted: NDArray[Any]  # (n, q), f at the rows
    leverage: NDArray[Any]  # (n,), how far f(x_i) follows v_i, per unit of weight

    def without(
        self, rows: NDArray[np.intp], targets: NDArray[Any], weights: NDArray[Any]
    ) -> NDArray[Any]:
        """Return f at rows when so much weight of a target is taken from them, (p, q).

        With the target and the weight of a row this is leaving it out. A row that stands for
        several, with the mean of their targets, can lose one of them.
        """
        f, pull = self.fitted[rows], (weights * self.leverage[rows])[:, None]
        left_out: NDArray[Any] = f - (targets - f) * (pull / np.maximum(1 - pull, LEAST_REST))
        return left_out

    def leave_one_out(self, V: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
        """Return what f is at each row when it is fitted to all others, (n, q)."""
        return self.without(np.arange(len(V)), V, weights)


LEAST_REST = 1e-6  # what is left of a leverage of one, where rounding decides


def solve(K: NDArray[Any], V: NDArray[Any], weights: NDArray[Any], ridge: float) -> Solution:
    """Solve for one ridge, by Cholesky.

    Parameters
    ----------
    K : array of shape (n, n)
        Kernel of the rows.
    V : array of shape (n, q)
        Target points.
    weights : array of shape (n,)
        What rows weigh, positive.
    ridge : float
        Positive.

    Returns
    -------
    Solution
        With B = (K + ridge W^-1)^-1: alpha = B V, f = V - ridge W^-1 alpha, and the leverage of row
        i is 1 - ridge B_ii / w_i, here divided by w_i.

    Examples
    --------
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> V, weights = np.array([[1.0], [-1.0]]), np.ones(2)
    >>> solution = solve(K, V, weights, 0.5)
    >>> solution.fitted.ravel()
    array([ 0.5, -0.5])
    >>> solution.leave_one_out(V, weights).ravel().round(4)  # each from the other
    array([-0.3333,  0.3333])
    """
    factor, diagonal = _factor(K, weights, ridge)
    trtri = _lapack("trtri", factor)
    inverse, _ = trtri(factor, lower=True, overwrite_c=True)  # B = inverse^T inverse
    V = V.astype(factor.dtype)
    alpha = inverse.T @ (inverse @ V)
    fitted = V - diagonal[:, None] * alpha
    spread = np.einsum("ij,ij->j", inverse, inverse)  # B_ii
    return Solution(alpha, fitted, (1 - diagonal * spread) / weights)


def coefficients(
    K: NDArray[Any], V: NDArray[Any], weights: NDArray[Any], ridge: float
) -> NDArray[Any]:
    """Return alpha alone, (n, q), in half the time of :func:`solve`."""
    factor, _ = _factor(K, weights, ridge)
    potrs = _lapack("potrs", factor)
    alpha, _ = potrs(factor, V.astype(factor.dtype), lower=True)
    return np.asarray(alpha)


def _factor(
    K: NDArray[Any], weights: NDArray[Any], ridge: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the Cholesky factor of K + ridge W^-1, and what was added to its diagonal.

    In float32 where the ridge is well above its rounding of the kernel. The kernel itself is
    rounded, so that its smallest eigenvalues may be negative: then some jitter is added.
    """
    diagonal = ridge / weights
    safe = diagonal.min() > SAFE * len(K) * np.finfo(np.float32).eps
    dtype = np.float32 if safe and K.dtype == np.float32 else np.float64
    jitter = 0.0
    while True:
        matrix: NDArray[Any] = np.array(K, dtype=dtype, order="C").T  # a copy; K is symmetric
        added = (diagonal + jitter).astype(dtype)
        matrix[np.diag_indices(len(K))] += added
        potrf = _lapack("potrf", matrix)
        factor, failed = potrf(matrix, lower=True, overwrite_a=True, clean=True)
        if not failed:
            return factor, added
        jitter = max(JITTER, 10 * jitter) if dtype == np.float64 else 0.0
        dtype = np.float64


def _lapack(name: str, matrix: NDArray[Any]) -> Any:
    """Return LAPACK's routine for the precision of a matrix."""
    return getattr(lapack, ("s" if matrix.dtype == np.float32 else "d") + name)


@dataclass(frozen=True, eq=False)
class RidgePath:
    """The same for every ridge at once, by one eigendecomposition of W^1/2 K W^1/2.

    It costs as much as five ridges by Cholesky.
    """

    values: NDArray[Any]  # (n,)
    vectors: NDArray[Any]  # (n, n)
    V: NDArray[Any]  # (n, q)
    weights: NDArray[Any]  # (n,)

    @classmethod
    def of(cls, K: NDArray[Any], V: NDArray[Any], weights: NDArray[Any]) -> Self:
        """Decompose a kernel; parameters as of :func:`solve`."""
        roots = np.sqrt(weights).astype(K.dtype)
        values, vectors = eigh(
            K * roots[:, None] * roots, overwrite_a=True, check_finite=False, driver="evd"
        )
        vectors[np.abs(vectors) < TINY] = 0
        weights = weights.astype(K.dtype)
        return cls(np.maximum(values, 0), vectors, V.astype(K.dtype), weights)

    def solution(self, ridge: float) -> Solution:
        """Return alpha = W^1/2 U (S + ridge)^-1 U^T W^1/2 V, and what follows from it."""
        U, roots = self.vectors, np.sqrt(self.weights)[:, None]
        inverse = 1 / (self.values + self.values.dtype.type(ridge))
        alpha = roots * (U @ (inverse[:, None] * (U.T @ (roots * self.V))))
        fitted = self.V - (ridge / self.weights)[:, None] * alpha
        leverage = np.square(U) @ (self.values * inverse) / self.weights
        return Solution(alpha, fitted, leverage)
