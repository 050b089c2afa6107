"""Every model against every other: tests of paired scores, and Holm's correction for many."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import stdtr

from cocoloss._checks import as_float_array, check_option
from cocoloss.exceptions import CoCoError
from cocoloss.stats._scores import (
    Floats,
    check_finite,
    check_matrix,
    check_pair,
    check_share,
    score_differences,
)
from cocoloss.stats.wilcoxon import check_enough, signed_rank_tests

BLOCK = 2**18  # differences in memory at a time: not those of all pairs of a hundred models


@dataclass(frozen=True)
class CorrectedT:
    """Result of a corrected t-test: ``p_value`` (two-sided), ``statistic`` and ``df``."""

    p_value: float
    statistic: float
    df: int


def holm(p_values: Any) -> Floats:
    """Adjust p-values for many tests by Holm's step-down procedure.

    The smallest of m p-values is multiplied by m, the next by m - 1, and so on; none may be
    smaller than the one before, or larger than 1. Rejecting those below alpha keeps the
    probability of any false rejection below alpha.

    Parameters
    ----------
    p_values : array-like of shape (m,)
        In any order.

    Returns
    -------
    ndarray of shape (m,)
        Adjusted p-values, in the order given.

    Raises
    ------
    CoCoError
        If a value is not between 0 and 1; NaN is not.

    Examples
    --------
    >>> from cocoloss.stats import holm
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p_values = as_float_array(p_values, "p_values")
    if p_values.ndim != 1:
        raise CoCoError(f"p_values must be a list, but has shape {p_values.shape}")
    bad = ~((p_values >= 0) & (p_values <= 1))  # also catches NaN
    if bad.any():
        first = int(bad.argmax())
        raise CoCoError(
            f"p_values must lie between 0 and 1, but number {first} (counted from 0) is "
            f"{p_values[first]}; leave out tests without a result"
        )
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    adjusted: Floats = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1.0)
    return adjusted


def corrected_t(first: Any, second: Any, *, test_fraction: float | None = None) -> CorrectedT:
    r"""Test paired scores of cross-validation by Nadeau and Bengio's corrected t-test.

    Folds share training rows, so their scores are correlated, and the plain t-test finds
    differences where there are none. The correction widens the variance:

    .. math:: t = \bar d \Big/ \sqrt{\left(\tfrac1n + \tfrac{f}{1 - f}\right) \hat\sigma^2}

    with f the share of the rows that are tested and n - 1 degrees of freedom.

    Parameters
    ----------
    first, second : array-like of shape (n,)
        Scores of two models on the same folds; at least two.
    test_fraction : float, optional
        Share of the rows in each test fold. By default 1 / n, as in one run of n-fold
        cross-validation; ten runs of ten folds have n = 100 and a share of 0.1.

    Raises
    ------
    CoCoError
        If scores are missing or infinite, or there are fewer than two.

    Notes
    -----
    Differences that are all zero have p = 1; differences that are all equal and not zero p = 0.

    Examples
    --------
    >>> from cocoloss.stats import corrected_t
    >>> result = corrected_t([0.91, 0.93, 0.92, 0.94, 0.90], [0.88, 0.91, 0.91, 0.90, 0.89])
    >>> round(result.statistic, 3), round(result.p_value, 3)
    (2.515, 0.066)
    """
    first, second = check_pair(first, second)
    differences = score_differences(first, second)
    statistics, p_values = _corrected_t_tests(differences[None], test_fraction)
    return CorrectedT(float(p_values[0]), float(statistics[0]), len(first) - 1)


def variance_factor(n_folds: int, test_fraction: float | None) -> float:
    """Return 1/n + f/(1 - f): the variance of the mean difference over that of a difference."""
    if n_folds < 2:
        raise CoCoError(f"a t-test needs two folds or more, but there is {n_folds}")
    fraction = 1 / n_folds if test_fraction is None else test_fraction
    fraction = check_share(fraction, "test_fraction")
    return 1 / n_folds + fraction / (1 - fraction)


def spread(differences: Floats) -> Floats:
    """Return the standard deviation along the last axis; exactly 0 if all are equal."""
    all_equal = differences.min(axis=-1) == differences.max(axis=-1)
    return np.where(all_equal, 0.0, differences.std(axis=-1, ddof=1))


def _corrected_t_tests(
    differences: Floats, test_fraction: float | None = None
) -> tuple[Floats, Floats]:
    """Return statistics and p-values, one per row of differences (pairs, n)."""
    check_finite(differences, "the corrected t-test")
    n_folds = differences.shape[-1]
    mean = differences.mean(axis=-1)
    scale = np.sqrt(variance_factor(n_folds, test_fraction)) * spread(differences)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistics = np.where(mean == 0, 0.0, mean / scale)
    return statistics, 2 * stdtr(n_folds - 1, -np.abs(statistics))


def _wilcoxon_p_values(differences: Floats, _test_fraction: float | None) -> Floats:
    return signed_rank_tests(differences)[2]


def _corrected_t_p_values(differences: Floats, test_fraction: float | None) -> Floats:
    return _corrected_t_tests(differences, test_fraction)[1]


PAIRED_TESTS: Mapping[str, Callable[[Floats, float | None], Floats]] = MappingProxyType(
    {"wilcoxon": _wilcoxon_p_values, "corrected_t": _corrected_t_p_values}
)


def pairwise_p_values(
    scores: Any,
    test: str = "wilcoxon",
    *,
    adjust: bool = True,
    test_fraction: float | None = None,
    unit: str = "datasets",
) -> Floats:
    """Test every pair of models on the same datasets or folds.

    Parameters
    ----------
    scores : array-like of shape (n, n_models)
        One row per dataset or fold.
    test : {"wilcoxon", "corrected_t"}
        :func:`wilcoxon_paired`, or :func:`corrected_t`, which is for folds only.
    adjust : bool
        Whether to correct for the number of pairs by :func:`holm`.
    test_fraction : float, optional
        For the corrected t-test.
    unit : str
        What a row is called in messages.

    Returns
    -------
    ndarray of shape (n_models, n_models)
        Symmetric, with ones on the diagonal.

    Examples
    --------
    >>> from cocoloss.stats import pairwise_p_values
    >>> scores = [[0.9, 0.8], [0.8, 0.7], [0.7, 0.5], [0.9, 0.6], [0.8, 0.4], [0.9, 0.4]]
    >>> pairwise_p_values(scores).tolist()
    [[1.0, 0.03125], [0.03125, 1.0]]
    """
    check_option(test, "test", PAIRED_TESTS)
    scores = check_matrix(scores, "scores", rows="row")
    if test == "wilcoxon":
        check_enough(len(scores), unit)
    columns = np.ascontiguousarray(scores.T)  # (n_models, n)
    first, second = np.triu_indices(len(columns), k=1)
    p_values = np.empty(len(first))
    at_once = max(1, BLOCK // len(scores))
    for start in range(0, len(first), at_once):
        pairs = slice(start, start + at_once)
        differences = score_differences(columns[first[pairs]], columns[second[pairs]])
        p_values[pairs] = PAIRED_TESTS[test](differences, test_fraction)
    matrix = np.ones((len(columns), len(columns)))
    matrix[first, second] = holm(p_values) if adjust else p_values
    return np.minimum(matrix, matrix.T)  # ones below the diagonal give way


def check_reach(n_rows: int, n_models: int, alpha: float, unit: str) -> None:
    """Refuse a Wilcoxon-Holm comparison in which no pair could ever be significant."""
    check_enough(n_rows, unit)
    n_pairs = n_models * (n_models - 1) // 2
    smallest = n_pairs * 2.0 ** (1 - n_rows)  # Holm's first step on the smallest p-value
    if smallest >= alpha:
        needed = int(np.floor(np.log2(n_pairs / alpha))) + 2
        raise CoCoError(
            f"with {n_models} models and {n_rows} {unit} no difference can ever be significant at "
            f"alpha = {alpha:g}: the smallest Wilcoxon p-value after Holm's correction for "
            f"{n_pairs} pairs is {smallest:.3g}. Use {needed} or more {unit}, fewer models, or "
            f"another test"
        )
