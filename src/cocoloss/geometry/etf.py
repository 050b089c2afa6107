"""How far class means are from a simplex equiangular tight frame: neural collapse, NC2."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocoloss._checks import as_float_array
from cocoloss.exceptions import CoCoError


def etf_distance(class_means: ArrayLike, *, center: bool = True) -> float:
    r"""Return the distance of class means from a simplex ETF, whatever its scale and rotation.

    With M the (C, q) matrix of class means, centred at their mean, it is

    .. math:: \left\| \frac{M M^\top}{\|M M^\top\|_F}
              - \frac{1}{\sqrt{C-1}} \left(I - \tfrac{1}{C} 1 1^\top\right) \right\|_F,

    the measure that Zhu et al. (2021, "A geometric analysis of neural collapse with unconstrained
    features") take of a classifier's weights, applied to class means.

    Parameters
    ----------
    class_means : array-like or tensor of shape (n_classes, embedding_dim)
        One mean per class, each class counted once whatever its size.
    center : bool, default=True
        Whether to subtract the mean of the class means first. Without it, a simplex whose centre
        is not the origin counts as distant.

    Returns
    -------
    float
        0 on a simplex of any scale and rotation, below sqrt(2) otherwise. Means that all coincide
        have no shape to compare: their distance is that of the zero matrix, 1. Two means that
        differ are always a simplex, so C = 2 says little.

    Raises
    ------
    CoCoError
        If there are fewer than two means, or they are not a finite (C, q) matrix.

    Examples
    --------
    >>> triangle = [[0.0, 2.0], [np.sqrt(3), -1.0], [-np.sqrt(3), -1.0]]
    >>> round(etf_distance(triangle), 12)
    0.0
    >>> round(etf_distance([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]), 4)  # on one line
    0.7654
    """
    means = _checked(class_means)
    n_classes = len(means)
    largest = np.abs(means).max()
    if largest == 0:
        return 1.0
    means = means / largest  # the scale does not matter, and squares shall not under- or overflow
    if center:
        length = np.linalg.norm(means)
        means = means - means.mean(axis=0)
        if np.linalg.norm(means) <= n_classes * np.finfo(np.float64).eps * length:
            return 1.0  # only rounding is left: the means coincide
    gram = means @ means.T  # (C, C)
    gram /= np.linalg.norm(gram)
    simplex = (np.eye(n_classes) - 1 / n_classes) / np.sqrt(n_classes - 1)  # unit norm, too
    return float(np.linalg.norm(gram - simplex))


def _checked(class_means: ArrayLike) -> NDArray[np.float64]:
    means = as_float_array(class_means, "class_means")
    if means.ndim != 2 or means.shape[1] == 0:
        raise CoCoError(
            f"class_means must have shape (n_classes, embedding_dim), but has shape {means.shape}"
        )
    if len(means) < 2:
        raise CoCoError(f"class_means needs at least two classes, but has {len(means)}")
    if not np.all(np.isfinite(means)):
        bad = int(np.argmin(np.isfinite(means).all(axis=1)))
        raise CoCoError(f"class_means must be finite, but the mean of class {bad} is not")
    return means
