"""How far an embedding has contracted its classes and contrasted them: arrays in, numbers out.

Neither the network that made the embedding nor its loss is known here. What is about predictions
is the function below.
"""

from typing import Any

import numpy as np

from cocoloss.metrics.collapse import (
    NORMS,
    NeuralCollapse,
    dispersity,
    dispersity_of,
    neural_collapse,
    neural_collapse_of,
)
from cocoloss.metrics.scatter import ClassMoments
from cocoloss.metrics.streaming import NeuralCollapseMetric

__all__ = [
    "NORMS",
    "ClassMoments",
    "NeuralCollapse",
    "NeuralCollapseMetric",
    "balanced_accuracy",
    "dispersity",
    "dispersity_of",
    "neural_collapse",
    "neural_collapse_of",
]


def balanced_accuracy(y: Any, predicted: Any) -> float:
    """Return the mean recall of the classes that occur in ``y``.

    Parameters
    ----------
    y : array-like of shape (n,)
        The class of each row.
    predicted : array-like of shape (n,)
        The predictions. A class of ``y`` that is never predicted has a recall of zero; a
        predicted class that does not occur in ``y`` is a mistake like any other.

    Returns
    -------
    float
        Between 0 and 1; NaN of no rows at all.

    Examples
    --------
    >>> from cocoloss.metrics import balanced_accuracy
    >>> balanced_accuracy(["a", "a", "b"], ["a", "c", "b"])
    0.75
    """
    labels = np.asarray(y)
    if not len(labels):
        return float("nan")
    _, codes = np.unique(labels, return_inverse=True)
    right = np.bincount(codes, weights=labels == np.asarray(predicted))
    return float(np.mean(right / np.bincount(codes)))
