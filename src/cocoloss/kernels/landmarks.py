"""Kernel ridge regression on landmarks: any number of rows, as sums over blocks of them.

f is sought among ``sum_j k(x, z_j) alpha_j`` with m landmarks z (Nystroem's approximation). All
that rows have to say is an m x m matrix and an m x q one, which add up over blocks, processes and
machines; the memory is that of these and of one block. Knows no classes.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.linalg.blas import dsyrk

from cocoloss.heads.fitted import blocks
from cocoloss.kernels.exact import Solution
from cocoloss.kernels.kernel import Kernel

JITTER = 1e-6  # on the diagonal of the landmarks' kernel, which is rounded to float32
SILENT = 1e-3  # of the ridge: directions with smaller eigenvalues


@dataclass(frozen=True, eq=False)
class Sums:
    """What rows say of a function on landmarks; ``a + b`` is what both say."""

    gram: NDArray[np.float64]  # (m, m), sum of w phi phi^T
    cross: NDArray[np.float64]  # (m, q), sum of w phi v^T

    def __add__(self, other: Self) -> Self:
        return type(self)(self.gram + other.gram, self.cross + other.cross)


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Rows z whose kernels span the functions; phi(x) are m orthonormal ones of these."""

    kernel: Kernel
    rows: NDArray[np.float32]  # (m, d)
    whitener: NDArray[np.float64]  # (m, m): phi(x) = k(x, z) whitener

    @classmethod
    def of(cls, kernel: Kernel, rows: NDArray[Any]) -> Self:
        """Take rows as landmarks."""
        rows = np.asarray(rows, dtype=np.float32)
        K = kernel(rows).astype(np.float64)
        K[np.diag_indices(len(K))] += JITTER
        factor = cholesky(K, lower=True, overwrite_a=True, check_finite=False)
        identity = np.eye(len(K))
        whitener = solve_triangular(factor, identity, lower=True, overwrite_b=True).T
        return cls(kernel, rows, np.ascontiguousarray(whitener))

    def sums(self, X: NDArray[Any], V: NDArray[Any], weights: NDArray[Any]) -> Sums:
        """Return what rows X (n, d) with targets V (n, q) say.

        Kernel values are float32, but their products are not: the whitener brings out what is
        small in the sums.
        """
        m = len(self.rows)
        gram, cross = np.zeros((m, m), order="F"), np.zeros((m, V.shape[1]))
        for part in blocks(len(X), m):
            K = self.kernel(X[part], self.rows).astype(np.float64)
            roots = np.sqrt(weights[part])[:, None]
            K *= roots
            gram = dsyrk(1.0, K.T, beta=1.0, c=gram, lower=True, overwrite_c=True)
            cross += K.T @ (roots * V[part])
        gram += np.tril(gram, -1).T
        R = self.whitener
        return Sums(R.T @ gram @ R, R.T @ cross)


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
        values, vectors = eigh(sums.gram, check_finite=False, driver="evd")
        values = np.maximum(values, 0)
        return cls(landmarks, values, landmarks.whitener @ vectors, vectors.T @ sums.cross)

    def alpha(self, ridge: float) -> NDArray[np.float64]:
        """Return the coefficients of the landmarks, (m, q)."""
        return self.basis @ (self.cross / (self.values + ridge)[:, None])

    def solution(self, X: NDArray[Any], ridge: float) -> Solution:
        """Return the minimiser, with f and the leverage at rows of the fit, (n, d).

        The leverage is ``psi^T (S + ridge)^-1 psi`` per unit of weight. A row that is a landmark
        stays one when it is left out.
        """
        # What the ridge holds down has no say, and its basis functions are mostly rounding.
        heard = self.values > SILENT * ridge
        shrunk = 1 / (self.values[heard] + ridge)
        coefficients = (self.cross[heard] * shrunk[:, None]).astype(np.float32)
        basis = self.basis[:, heard].astype(np.float32)
        fitted, leverage = np.empty((len(X), self.cross.shape[1])), np.empty(len(X))
        for part in blocks(len(X), len(self.values)):
            psi = self.landmarks.kernel(X[part], self.landmarks.rows) @ basis
            fitted[part] = psi @ coefficients
            leverage[part] = np.square(psi) @ shrunk
        return Solution(self.alpha(ridge), fitted, leverage)
