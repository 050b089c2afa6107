"""Directions: cosines to class vectors, and how closely unit vectors gather around them."""

import numpy as np
from numpy.typing import NDArray

from cocoloss.heads._rows import FLOOR, LabelledRows, blocks

MIN_MEAN_COSINE = 1e-3  # rows that point elsewhere still rank the classes by their cosines


def unit_rows(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each row divided by its norm; a row of zeros, which points nowhere, stays."""
    largest = np.abs(X).max(axis=1, keepdims=True)  # first, so that no square over- or underflows
    X = X / np.where(largest > 0, largest, 1.0)
    norm = np.linalg.norm(X, axis=1, keepdims=True)
    unit: NDArray[np.float64] = X / np.where(norm > 0, norm, 1.0)
    return unit


def cosines(X: NDArray[np.float64], directions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cosine between each row and each class vector, (n, C)."""
    return unit_rows(X) @ unit_rows(directions).T


def concentration(rows: LabelledRows, directions: NDArray[np.float64]) -> float:
    r"""Return the concentration :math:`\kappa` of unit rows around the vectors of their classes.

    With :math:`\bar R` the mean cosine between a row and its class vector,
    :math:`\kappa = \bar R (q - \bar R^2) / (1 - \bar R^2)`: nearly the maximum-likelihood estimate
    of von Mises-Fisher distributions with one common concentration (Banerjee et al., 2005).
    Classes that have collapsed count as if the mean squared distance, 2 - 2 R, were ``FLOOR``.
    """
    total = 0.0
    for block in blocks(len(rows.X), len(directions) + rows.X.shape[1]):
        cosine = cosines(rows.X[block].astype(np.float64, copy=False), directions)
        own = np.take_along_axis(cosine, rows.codes[block][:, None], axis=1)[:, 0]
        total += float(rows.weights[block] @ own)
    mean_cosine = np.clip(total / rows.masses.sum(), MIN_MEAN_COSINE, 1 - FLOOR / 2)
    q = max(rows.X.shape[1], 2)  # on a line the estimate would not see the collapse
    return float(mean_cosine * (q - mean_cosine**2) / (1 - mean_cosine**2))
