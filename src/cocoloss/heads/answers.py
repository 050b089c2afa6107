"""What every head answers once it has learnt: log-likelihoods, priors and temperature to classes.

How a head comes by its log-likelihoods is not this file's business, nor is learning. No
scikit-learn here: a model file is answered from without it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.exceptions import CoCoError
from cocoloss.heads._rows import blocks
from cocoloss.heads._softmax import log_softmax, softmax

BlockFunction = Callable[[NDArray[np.float64]], NDArray[Any]]

HUGE = 1e300  # what a number becomes that overflows: rows that far away are equally far from all


class BayesAnswers(ABC):
    """Bayes' rule on what a head has learnt; :class:`EmbeddingHead` tells the formula."""

    classes_: NDArray[Any]
    class_prior_: NDArray[np.float64]
    class_share_: NDArray[np.float64]
    temperature_: float

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row, the first one of equals.

        It is the argmax of :meth:`predict_proba`: under the same priors and temperature.
        """
        best = self._answer(X, lambda h: softmax(self._joint(h)).argmax(axis=1))
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the posterior probability of each class, of shape (n, C)."""
        return self._answer(X, lambda h: softmax(self._joint(h)))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the log of the posterior probability of each class, of shape (n, C); finite."""
        return self._answer(X, lambda h: log_softmax(self._joint(h)))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the log posterior of shape (n, C); for two classes the log odds of the second."""

        def scores(block: NDArray[np.float64]) -> NDArray[np.float64]:
            joint = self._joint(block)
            return np.diff(joint, axis=1)[:, 0] if joint.shape[1] == 2 else log_softmax(joint)

        return self._answer(X, scores)

    def log_likelihood(self, X: Any) -> NDArray[np.float64]:
        """Return what the embedding says of each class, before priors and temperature, (n, C)."""
        return self._answer(X, self._bounded_log_likelihood)

    def outlier_score(self, X: Any) -> NDArray[np.float64]:
        """Return how strange each row is, of shape (n,): larger is stranger.

        The scores of one fitted head are comparable from row to row; what they measure is said
        on the class. Neither priors nor temperature matter.
        """
        return self._answer(X, lambda h: _bounded(self._strangeness, h, overflow=HUGE))

    @abstractmethod
    def _log_likelihood(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return class log-likelihoods of a block, (b, C), up to a term that the classes share."""

    @abstractmethod
    def _strangeness(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the outlier scores of a block, (b,)."""

    def _joint(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log posterior up to a term that the classes share, (b, C)."""
        evidence = self._bounded_log_likelihood(block)
        evidence -= evidence.max(axis=1, keepdims=True)  # or large ones would swallow the prior
        joint: NDArray[np.float64] = self._offset(self.class_prior_) + evidence / self.temperature_
        return joint

    def _offset(self, prior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what is added to the evidence to answer under a prior, (C,)."""
        return np.log(prior)

    def _bounded_log_likelihood(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        return _bounded(self._log_likelihood, block, overflow=-HUGE)

    def _answer(self, X: Any, function: BlockFunction) -> NDArray[Any]:
        """Apply a function of a block of rows to the rows of a table."""
        return self._map_blocks(self._checked(X), function)

    def _checked(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the rows of X, (n, q), after a look at them; networks of ours made them."""
        if not np.isfinite(X).all():
            raise CoCoError(
                "the embedding of a row is not finite: the weights of the network are too large"
            )
        return X

    def _map_blocks(self, X: NDArray[Any], function: BlockFunction) -> NDArray[Any]:
        result: NDArray[Any] | None = None
        for block in blocks(len(X), len(self.classes_) * X.shape[1]):
            values = function(X[block].astype(np.float64, copy=False))
            if result is None:
                result = np.empty((len(X), *values.shape[1:]), dtype=values.dtype)
            result[block] = values
        assert result is not None  # there is always a block, if only an empty one
        return result


def _bounded(
    function: BlockFunction, block: NDArray[np.float64], *, overflow: float
) -> NDArray[np.float64]:
    """Return finite values of a function; inf - inf counts as ``overflow``."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = function(block)
    bounded: NDArray[np.float64] = np.clip(np.nan_to_num(values, nan=overflow), -HUGE, HUGE)
    return bounded
