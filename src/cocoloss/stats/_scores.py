"""What every test asks of scores: real numbers, paired, and equal where only rounding differs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss._checks import as_float_array
from cocoloss.exceptions import CoCoError

Floats = NDArray[np.float64]

DIGITS = 12  # scores that agree in so many digits are equal: 0.9 - 0.8 ties with 0.8 - 0.7
DECIMALS = (-300, 340)  # of the largest and of the least float in so many digits
IN_ONE_STEP = 280  # decimals for which 10**decimals is within the range of a float


def check_matrix(values: Any, name: str, *, rows: str) -> Floats:
    """Return a matrix of scores with one column per model, none of them NaN."""
    matrix = as_float_array(values, name)
    if matrix.ndim != 2:
        raise CoCoError(
            f"{name} must have one row per {rows} and one column per model, "
            f"but has shape {matrix.shape}"
        )
    if matrix.shape[1] < 2:
        raise CoCoError(f"{name} has {matrix.shape[1]} model(s); a comparison needs two or more")
    if matrix.shape[0] < 1:
        raise CoCoError(f"{name} has no {rows}; give one row for each")
    if np.isnan(matrix).any():
        row, column = np.argwhere(np.isnan(matrix))[0]
        raise CoCoError(
            f"{name} has no number for {rows} {row}, model {column} (counted from 0); "
            f"fill the gap or leave the {rows} out"
        )
    return matrix


def check_pair(first: Any, second: Any) -> tuple[Floats, Floats]:
    """Return two vectors of paired scores, none of them NaN."""
    first, second = as_float_array(first, "first"), as_float_array(second, "second")
    if first.ndim != 1 or first.shape != second.shape:
        raise CoCoError(
            f"first and second must be two lists of equal length, one score per fold or dataset, "
            f"but have shapes {first.shape} and {second.shape}"
        )
    check_matrix(np.stack([first, second], axis=1), "the pair of score lists", rows="row")
    return first, second


def check_finite(values: Floats, reason: str) -> Floats:
    """Refuse infinite scores where more than their order matters."""
    if not np.isfinite(values).all():
        raise CoCoError(
            f"{reason} needs finite scores, but one is infinite; "
            f"leave that row out, or use a test on ranks"
        )
    return values


def round_off(scores: Floats) -> Floats:
    """Return scores in 12 significant digits, so that equal ones are equal."""
    return _round(scores, _decimals(scores))


def mean_scores(scores: Floats) -> Floats:
    """Return the mean of each column, in 12 digits; infinite if a score of the column is."""
    with np.errstate(invalid="ignore"):
        means = scores.mean(axis=0)
    if np.isnan(means).any():
        raise CoCoError(
            "scores of one model are infinite with both signs, so that they have no mean; "
            "leave those rows out"
        )
    return round_off(means)


def score_differences(first: Floats, second: Floats) -> Floats:
    """Return first - second, with 0 for equal infinities and no digits made by rounding."""
    # inf - inf is mended in place; what is beyond the range of a float is infinite.
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.where(first == second, 0.0, first - second)
    return _round(difference, np.minimum(_decimals(first), _decimals(second)))


def _decimals(scores: Floats) -> Floats:
    """Return how many places after the point make 12 significant digits."""
    with np.errstate(divide="ignore"):
        exponent = np.floor(np.log10(np.abs(scores)))  # -inf for 0, inf for inf
    return np.asarray(np.clip(DIGITS - 1 - exponent, *DECIMALS))


def _round(values: Floats, decimals: Floats) -> Floats:
    first = np.minimum(decimals, IN_ONE_STEP)
    scale, rest = 10.0**first, 10.0 ** (decimals - first)  # two steps for the least of floats
    with np.errstate(over="ignore"):  # values near the largest float, kept in the next line
        scaled = values * scale * rest
        rounded = np.rint(scaled) / rest / scale
    return np.where(np.isfinite(scaled) & np.isfinite(rounded), rounded, values)
