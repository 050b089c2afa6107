"""One number that makes probabilities honest: the temperature of a softmax, from held-out rows."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import softmax

from cocoloss._checks import as_float_array, check_weights
from cocoloss.exceptions import CoCoError

MIN_TEMPERATURE = 1e-2
MAX_TEMPERATURE = 1e6  # Gaussians of collapsed classes have asked for 2e5


def fit_temperature(
    scores: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    offset: ArrayLike | None = None,
) -> float:
    r"""Return the temperature that minimises the log loss of held-out rows.

    .. math:: T = \arg\min_{T > 0}\;
        -\sum_i w_i \log \mathrm{softmax}(\mathrm{offset} + \mathrm{scores}_i / T)_{y_i}

    The sum is convex in 1/T, so the root of its derivative is the minimum.

    Parameters
    ----------
    scores : array-like of shape (n, C)
        Log probabilities, or any scores that a softmax turns into probabilities.
    y : array-like of int of shape (n,)
        Column of each row's own class.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights; 1 each by default.
    offset : array-like of shape (C,), optional
        What is added after the division, such as log priors; nothing by default.

    Returns
    -------
    float
        Between 0.01 and 1,000,000. Exactly 1.0 if no row has another class scored above its own:
        on such rows, none at all included, the log loss falls for ever as T goes to 0, so they say
        nothing about how often the scores are wrong. The upper bound, which leaves the offset
        alone, if the scores are worse than none.

    Raises
    ------
    CoCoError
        If the shapes do not match, a score is not finite, or a label is not a column.

    Examples
    --------
    Scores that claim 95 % and are right in two rows of three:

    >>> T = fit_temperature([[3.0, 0.0], [3.0, 0.0], [3.0, 0.0]], [0, 0, 1])
    >>> round(T, 3)
    4.328
    >>> round(float(1 / (1 + np.exp(-3.0 / T))), 3)
    0.667
    """
    lead, weights, shift = _leads_over_own_class(scores, y, sample_weight, offset)
    if not (lead > 0).any():
        return 1.0

    def slope(log_inverse_temperature: float) -> float:
        p = softmax(shift + np.exp(log_inverse_temperature) * lead, axis=1)
        return float(weights @ (p * lead).sum(axis=1))

    low, high = -np.log(MAX_TEMPERATURE), -np.log(MIN_TEMPERATURE)
    if slope(low) >= 0:
        return MAX_TEMPERATURE
    if slope(high) <= 0:
        return MIN_TEMPERATURE
    return float(np.exp(-brentq(slope, low, high, xtol=1e-10)))


def _leads_over_own_class(
    scores: Any, y: Any, sample_weight: Any, offset: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return by how much each class leads a row's own, in scores and in offset, and weights."""
    scores = as_float_array(scores, "scores")
    own = np.asarray(y)
    if scores.ndim != 2 or own.shape != scores.shape[:1]:
        raise CoCoError(
            f"scores must be (n_samples, n_classes) with one label per row, but have shapes "
            f"{scores.shape} and {own.shape}"
        )
    if not np.isfinite(scores).all():
        raise CoCoError("scores must be finite; use log probabilities that are bounded below")
    if own.size and not (own.dtype.kind in "iu" and own.min() >= 0 and own.max() < scores.shape[1]):
        raise CoCoError(
            f"y must hold column numbers from 0 to {scores.shape[1] - 1}; "
            f"encode labels by their position in classes_"
        )
    weights = check_weights(sample_weight, len(own))
    present = weights > 0
    scores, own, weights = scores[present], own[present].astype(np.intp), weights[present]
    shift = np.zeros(scores.shape[1]) if offset is None else as_float_array(offset, "offset")
    lead = scores - np.take_along_axis(scores, own[:, None], axis=1)  # (n, C), 0 for the own class
    return lead, weights, shift - shift[own][:, None]
