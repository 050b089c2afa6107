"""Untuned peers for benchmarks, each counting classes alike, as models of one's own.

They read tables with categories and gaps, and have no search space: `paper/accuracy-lite.toml` has
them beside models that it tunes.

LightGBM and CatBoost are told to weigh classes. RealMLP and xRFM cannot be told: the class shares
of the training rows are divided out of their probabilities.

    pip install 'cocoloss[bench]' pytabkit
"""

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.benchmark.models import find_model

reads_tables = True


def lightgbm() -> Any:
    """Return LightGBM by its defaults."""
    return find_model("lightgbm-w").make(0, {}, 0)


def catboost() -> Any:
    """Return CatBoost by its defaults."""
    return find_model("catboost-w").make(0, {}, 0)


def realmlp() -> Any:
    """Return RealMLP with its tuned defaults, of pytabkit."""
    return PriorsDividedOut("RealMLP_TD_Classifier")


def xrfm() -> Any:
    """Return xRFM with its defaults, of pytabkit."""
    return PriorsDividedOut("XRFM_D_Classifier")


class PriorsDividedOut:
    """A classifier of pytabkit, answering as if classes were equally likely: by Bayes' rule."""

    def __init__(self, name: str, random_state: int | None = None) -> None:
        self.name, self.random_state = name, random_state

    def get_params(self) -> dict[str, Any]:
        """Return the arguments; the benchmark gives a seed where it finds none."""
        return {"name": self.name, "random_state": self.random_state}

    def set_params(self, **params: Any) -> "PriorsDividedOut":
        """Set arguments."""
        vars(self).update(params)
        return self

    def fit(self, X: Any, y: NDArray[Any]) -> "PriorsDividedOut":
        """Fit the model to a frame; gaps in numbers, which it refuses, become medians."""
        self.medians_ = X.select_dtypes("number").median().fillna(0)
        make = getattr(import_module("pytabkit"), self.name)
        self.model_ = make(random_state=self.random_state, n_threads=1, device="cpu", verbosity=0)
        self.model_.fit(X.fillna(self.medians_), y)
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares_ = counts / counts.sum()
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return probabilities under equal shares."""
        said = self.model_.predict_proba(X.fillna(self.medians_)).astype(np.float64) / self.shares_
        return said / said.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class that is most probable then."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]
