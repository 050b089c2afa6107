"""How probable an embedding is in each class, and how strange in all: one class for each head.

They work from what a head has learnt; the heads of the same names learn it and tell the formulas.
"""

import numpy as np
from numpy.typing import NDArray

from cocoloss.heads._softmax import logsumexp
from cocoloss.heads._sphere import cosines
from cocoloss.heads.answers import BayesAnswers


class GaussianAnswers(BayesAnswers):
    """Answers of a :class:`GaussianHead`."""

    means_: NDArray[np.float64]
    covariance_: str
    precisions_cholesky_: NDArray[np.float64]

    def _log_likelihood(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        P = self.precisions_cholesky_
        diagonal = P if self.covariance_ == "diag" else np.diagonal(P, axis1=-2, axis2=-1)
        log_det = np.log(diagonal).sum(axis=-1)  # (C,), or one number for "tied"
        q = block.shape[1]
        distances = self._squared_distances(block)  # (b, C)
        log_density: NDArray[np.float64] = log_det - 0.5 * (q * np.log(2 * np.pi) + distances)
        return log_density

    def _strangeness(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        nearest: NDArray[np.float64] = self._squared_distances(block).min(axis=1)
        return nearest

    def _squared_distances(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the squared Mahalanobis distance to each class, (b, C)."""
        P = self.precisions_cholesky_
        if self.covariance_ == "tied":
            return pairwise_squares(block @ P, self.means_ @ P)
        deviations = block - self.means_[:, None]  # (C, b, q)
        whitened = deviations * P[:, None] if self.covariance_ == "diag" else deviations @ P
        squared: NDArray[np.float64] = np.einsum("cbq,cbq->cb", whitened, whitened).T
        return squared


class CentroidAnswers(BayesAnswers):
    """Answers of a :class:`CentroidHead`."""

    metric: str
    means_: NDArray[np.float64]
    concentration_: float

    def _log_likelihood(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        return -0.5 * self._squared_distances(block)

    def _strangeness(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        nearest: NDArray[np.float64] = self._squared_distances(block).min(axis=1)
        return nearest

    def _squared_distances(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the squared distance to each mean in units of the spread, (b, C)."""
        if self.metric == "angular":
            return 2 * self.concentration_ * (1 - cosines(block, self.means_))
        deviations = block - self.means_[:, None]  # (C, b, q)
        squared: NDArray[np.float64] = np.einsum("cbq,cbq->cb", deviations, deviations).T
        return self.concentration_ * squared


class ReadoutAnswers(BayesAnswers):
    """Answers of a :class:`ReadoutHead`."""

    metric: str
    prototypes_: NDArray[np.float64]
    bias_: NDArray[np.float64]
    concentration_: float
    learnt_share_: NDArray[np.float64] | float = 1.0

    def _offset(self, prior: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.log(prior) - np.log(self.learnt_share_)

    def _log_likelihood(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.metric == "angular":
            return self.concentration_ * cosines(block, self.prototypes_)
        return self._logits(block) - np.log(self.class_share_)

    def _strangeness(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.metric == "angular":
            nearest: NDArray[np.float64] = cosines(block, self.prototypes_).max(axis=1)
            return 2 * self.concentration_ * (1 - nearest)
        return -logsumexp(self._logits(block))

    def _logits(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        logits: NDArray[np.float64] = block @ self.prototypes_.T + self.bias_
        return logits


def pairwise_squares(X: NDArray[np.float64], Z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the squared distance between each row of X and each of Z, (n, m).

    One dimension after the other: from the differences, since the expanded square has no digits
    left where two points are near, and in the memory of the answer.
    """
    squares = np.zeros((len(X), len(Z)))
    for x, z in zip(X.T, Z.T, strict=True):
        squares += np.square(x[:, None] - z)
    return squares
