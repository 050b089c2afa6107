"""Kernel ridge regression on landmarks: any number of rows, as sums over blocks of them.

f is sought among ``sum_j k(x, z_j) alpha_j`` with m landmarks z (Nystroem's approximation). All
that rows have to say is an m x m matrix and an m x q one, which add up over blocks, processes and
machines; the memory is that of these and of one block. Knows no classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular
from scipy.linalg.blas import dsyrk

from cocoloss.heads.fitted import blocks
from cocoloss.kernels.exact import Solution
from cocoloss.kernels.kernel import Kernel, kernel_values

# On the diagonal of the landmarks' kernel, which is rounded to float32: its eigenvalues are off by
# 3e-6 where landmarks are a thousand. Tenfold where that is not enough.
JITTER = 1e-5
SILENT = 1e-3  # of the ridge: directions with smaller eigenvalues


@dataclass(frozen=True, eq=False)
class Sums:
    """What rows say of a function on landmarks; ``a + b`` is what both say."""

    gram: NDArray[np.float64]  # (m, m), sum of w k k^T with k = k(x, z)
    cross: NDArray[np.float64]  # (m, q), sum of w k v^T

    def __add__(self, other: Self) -> Self:
        return type(self)(self.gram + other.gram, self.cross + other.cross)


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Rows z whose kernels span the functions."""

    kernel: Kernel
    rows: NDArray[np.float32]  # (m, d)

    @classmethod
    def of(cls, kernel: Kernel, rows: NDArray[Any]) -> Self:
        """Take rows as landmarks."""
        return cls(kernel, np.asarray(rows, dtype=np.float32))

    def sums(self, X: NDArray[Any], V: NDArray[Any], weights: NDArray[Any]) -> Sums:
        """Return what rows X (n, d) with targets V (n, q) say."""
        (sums,) = sums_of([self.kernel], self.rows, X, V, weights)
        return sums

    def whitener(self) -> NDArray[np.float64]:
        """Return R, (m, m), with which ``k(x, z) R`` are orthonormal functions."""
        K, jitter = self.kernel(self.rows).astype(np.float64), JITTER
        identity = np.eye(len(K))
        while True:
            try:
                factor = cholesky(K + jitter * identity, lower=True, check_finite=False)
            except LinAlgError:
                jitter *= 10
            else:
                whitener = solve_triangular(factor, identity, lower=True).T
                return np.ascontiguousarray(whitener)


def sums_of(
    kernels: Sequence[Kernel],
    rows: NDArray[np.float32],
    X: NDArray[Any],
    V: NDArray[Any],
    weights: NDArray[Any],
) -> tuple[Sums, ...]:
    """Return what rows X (n, d) with targets V (n, q) say of functions of each kernel.

    All kernels have the same landmarks, ``rows`` (m, d), and see X once, block by block. Kernel
    values are float32, but their products are not: a whitener brings out what is small in them.
    """
    m, K = len(rows), len(kernels)
    grams = [np.zeros((m, m), order="F") for _ in kernels]
    crosses = np.zeros((K, m, V.shape[1]))
    for part in blocks(len(X), m):
        roots = np.sqrt(weights[part])[:, None]
        weighted = roots * V[part]
        for k, values in enumerate(kernel_values(kernels, X[part], rows)):
            phi = values.astype(np.float64)
            phi *= roots
            grams[k] = dsyrk(1.0, phi.T, beta=1.0, c=grams[k], lower=True, overwrite_c=True)
            crosses[k] += phi.T @ weighted
    return tuple(Sums(g + np.tril(g, -1).T, cross) for g, cross in zip(grams, crosses, strict=True))


@dataclass(frozen=True, eq=False)
class LandmarkPath:
    """The minimiser for every ridge, by one eigendecomposition of the rows' m x m matrix."""

    landmarks: Landmarks
    values: NDArray[np.float64]  # (m,)
    basis: NDArray[np.float64]  # (m, m): psi(x) = k(x, z) basis are uncorrelated over the rows
    cross: NDArray[np.float64]  # (m, q), sum of w psi v^T

    @classmethod
    def of(cls, landmarks: Landmarks, sums: Sums) -> Self:
        """Decompose what all rows say."""
        R = landmarks.whitener()
        values, vectors = eigh(R.T @ sums.gram @ R, check_finite=False, driver="evd")
        return cls(landmarks, np.maximum(values, 0), R @ vectors, vectors.T @ (R.T @ sums.cross))

    def alpha(self, ridge: float) -> NDArray[np.float64]:
        """Return the coefficients of the landmarks, (m, q)."""
        return self.basis @ (self.cross / (self.values + ridge)[:, None])

    def solution(self, X: NDArray[Any], ridge: float, dtype: Any = np.float32) -> Solution:
        """Return the minimiser, with f and the leverage at rows of the fit, (n, d).

        The leverage is ``psi^T (S + ridge)^-1 psi`` per unit of weight. A row that is a landmark
        stays one when it is left out. In float32 that takes half the time; in float64 sums that
        differ by rounding give what does.
        """
        (solution,) = self.solutions(X, [ridge], dtype)
        return solution

    def solutions(
        self, X: NDArray[Any], ridges: Sequence[float], dtype: Any = np.float32
    ) -> list[Solution]:
        """Return :meth:`solution` of several ridges in hardly more time than of the smallest."""
        # What the ridge holds down has no say, and its basis functions are mostly rounding.
        heard = self.values > SILENT * min(ridges)
        values, cross = self.values[heard], self.cross[heard]
        basis = self.basis[:, heard].astype(dtype)
        shrunk = [np.where(values > SILENT * r, 1 / (values + r), 0) for r in ridges]
        coefficients = [(cross * each[:, None]).astype(dtype) for each in shrunk]
        fitted = np.empty((len(ridges), len(X), cross.shape[1]))
        leverage = np.empty((len(ridges), len(X)))
        for part in blocks(len(X), len(self.values)):
            psi = self.landmarks.kernel(X[part], self.landmarks.rows) @ basis
            squares = np.square(psi)
            for i in range(len(ridges)):
                fitted[i, part] = psi @ coefficients[i]
                leverage[i, part] = squares @ shrunk[i].astype(dtype)
        alphas = [self.alpha(ridge) for ridge in ridges]
        return [Solution(*each) for each in zip(alphas, fitted, leverage, strict=True)]
