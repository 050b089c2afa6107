"""Reliability: how often the predicted class is right when the model is so sure of it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cocoloss._checks import check_integer

BINS = 10


@dataclass(frozen=True)
class Reliability:
    """Rows sorted into bins by the probability of their predicted class.

    Attributes
    ----------
    edges : array of shape (B + 1,)
        Bounds of the bins; a bin holds its upper bound.
    counts : array of shape (B,)
        Rows in each bin.
    confidence : array of shape (B,)
        Mean probability of the predicted class; NaN in an empty bin.
    accuracy : array of shape (B,)
        Share of rows whose predicted class is right; NaN in an empty bin.
    error : float
        Expected calibration error: the gap between the two, averaged over the rows.
    """

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    error: float


def reliability_curve(
    probabilities: NDArray[np.float64],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64] | None = None,
    *,
    n_bins: int = BINS,
) -> Reliability:
    """Return the reliability curve of predicted probabilities, in bins of equal width.

    Parameters
    ----------
    probabilities : array of shape (n, C)
    labels : array of shape (n,)
        The true classes, 0, ..., C - 1.
    weights : array of shape (n,), optional
        How much each row counts.
    n_bins : int
        Number of bins B.

    Examples
    --------
    >>> curve = reliability_curve(np.array([[0.9, 0.1], [0.7, 0.3]]), np.array([0, 1]))
    >>> curve.counts[[6, 8]], round(curve.error, 12)
    (array([1, 1]), 0.4)
    """
    n_bins = check_integer(n_bins, "n_bins", minimum=1)
    weights = np.ones(len(labels)) if weights is None else weights
    sure = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == labels
    edges = np.linspace(0, 1, n_bins + 1)
    place = np.clip(np.searchsorted(edges, sure, side="left") - 1, 0, n_bins - 1)
    mass = np.bincount(place, weights=weights, minlength=n_bins)
    share = np.where(mass > 0, mass, np.nan)
    confidence = np.bincount(place, weights=weights * sure, minlength=n_bins) / share
    accuracy = np.bincount(place, weights=weights * right, minlength=n_bins) / share
    gaps = np.nansum(mass * np.abs(confidence - accuracy))
    return Reliability(
        edges,
        np.bincount(place, minlength=n_bins),
        confidence,
        accuracy,
        float(gaps / mass.sum()) if len(labels) else float("nan"),
    )
