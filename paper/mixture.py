"""Ensembles of plain networks, of balanced ones, of those between, and of both, at equal compute.

Factories of the models of ``mixture.toml``: six untuned networks each, in two halves that may have
different exponents, and nothing else that differs.
"""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from cocoloss import CoCoClassifier

IN_A_HALF = 3  # networks


class TwoHalves(ClassifierMixin, BaseEstimator):
    """Networks of two exponents, whose probabilities are averaged; seeds are those of one fit."""

    def __init__(
        self,
        exponents: tuple[float, float] = (0.0, 0.5),
        max_iter: int | str = "auto",
        random_state: Any = None,
    ) -> None:
        self.exponents = exponents
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train both halves on numbers."""
        seed = 0 if self.random_state is None else int(self.random_state)
        self.halves_ = [
            CoCoClassifier(
                solver="network",
                balance=exponent,
                n_members=IN_A_HALF,
                max_iter=self.max_iter,
                preprocess=None,
                random_state=seed + k,
            ).fit(X, y)
            for k, exponent in enumerate(self.exponents)
        ]
        self.classes_ = self.halves_[0].classes_
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the mean of what the halves say, (n, C)."""
        return np.asarray(np.mean([half.predict_proba(X) for half in self.halves_], axis=0))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


def _of(*exponents: float) -> Callable[[], TwoHalves]:
    return lambda: TwoHalves((exponents[0], exponents[-1]))


plain, quarter, balanced, equal = map(_of, (0.0, 0.25, 0.5, 1.0))
mixture = _of(0.0, 0.5)
