"""Tests of paired scores: Wilcoxon's signed ranks, the corrected t, all pairs with Holm's."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtr, stdtr
from scipy.stats import rankdata

from cocoloss._checks import as_float_array, check_option, check_share, counted
from cocoloss.exceptions import CoCoError
from cocoloss.stats.score_table import (
    Floats,
    check_finite,
    check_matrix,
    check_pair,
    score_differences,
)

# NOTE[PAPER]: folds on which two models are equal are not mentioned there. They are ranked and
# their ranks shared, as Demsar (2006) advises, whom the paper follows; "drop" is Wilcoxon (1945).
ZEROS = ("split", "drop")
FEWEST = 6  # with 5 differences the smallest two-sided p-value is 2 / 2^5 = 0.0625
MOST_EXACT = 50  # beyond that the normal distribution is as good, and faster
BLOCK = 2**18  # differences in memory at a time: not those of all pairs of a hundred models


@dataclass(frozen=True)
class SignedRank:
    """Result of a signed-rank test."""

    p_value: float  # two-sided; 1 if no difference is left
    sum_first: float  # of the ranks of the differences in favour of the first
    sum_second: float
    n_pairs: int
    n_zeros: int  # pairs that do not differ
    exact: bool  # whether the p-value counts all signs, or is that of the normal distribution


def wilcoxon_paired(first: Any, second: Any, *, zeros: str = "split") -> SignedRank:
    """Test whether paired scores differ, by the ranks of their differences.

    Parameters
    ----------
    first, second : array-like of shape (n,)
        Scores of two models on the same folds, or on the same datasets; at least six.
    zeros : {"split", "drop"}
        What to do where the two are equal. "split" ranks these pairs with the others and shares
        their ranks evenly between the two sums (Demsar, 2006); the p-value is that of Pratt
        (1959). "drop" leaves them out, as Wilcoxon (1945) did.

    Returns
    -------
    SignedRank

    Notes
    -----
    Up to 50 pairs the p-value is exact: all signs of the non-zero differences are equally
    probable, and ties are no obstacle. (SciPy counts them exactly up to 13 pairs if there are
    ties, and its normal approximation for split zeros takes their ranks for random.) Beyond 50
    it is the normal approximation with the variance of the ranks at hand, without continuity
    correction.

    Differences are compared in 12 digits of the scores. An infinite score is beyond all finite
    ones and equal to another infinite one of its sign.

    Examples
    --------
    >>> from cocoloss.stats import wilcoxon_paired
    >>> wilcoxon_paired([0.9, 0.8, 0.7, 0.9, 0.8, 0.9], [0.8, 0.7, 0.5, 0.6, 0.4, 0.4]).p_value
    0.03125
    >>> wilcoxon_paired([0.5] * 6, [0.5] * 6).p_value
    1.0
    """
    check_option(zeros, "zeros", ZEROS)
    first, second = check_pair(first, second)
    check_enough(len(first), "pairs of scores")
    differences = score_differences(first, second)
    sum_first, sum_second, p_values = signed_rank_tests(differences[None], zeros=zeros)
    return SignedRank(
        p_value=float(p_values[0]),
        sum_first=float(sum_first[0]),
        sum_second=float(sum_second[0]),
        n_pairs=len(differences),
        n_zeros=int(np.sum(differences == 0)),
        exact=len(differences) <= MOST_EXACT,
    )


def check_enough(n_pairs: int, what: str) -> None:
    """Refuse so few pairs that no result could be significant."""
    if n_pairs < FEWEST:
        raise CoCoError(
            f"a Wilcoxon test over {counted(n_pairs, what.removesuffix('s'), what)} can never "
            f"reach p < 0.05: its smallest p-value is {2.0 ** (1 - n_pairs):.3g}. Use {FEWEST} or "
            f"more {what}, or {_instead(what)}"
        )


def _instead(what: str) -> str:
    """Name the test that can do with fewer rows of a kind."""
    return "Nemenyi's test" if what == "datasets" else "the corrected t-test"


def signed_rank_tests(
    differences: Floats, *, zeros: str = "split"
) -> tuple[Floats, Floats, Floats]:
    """Return the positive rank sums, the negative ones and the p-values, each row by itself."""
    is_zero = differences == 0  # (pairs, n)
    ranks = rankdata(np.abs(differences), axis=-1)  # ties share their mean rank
    n_zeros = is_zero.sum(axis=-1, keepdims=True)
    if zeros == "drop":  # zeros have the lowest ranks: without them the others move down
        ranks = ranks - n_zeros
        share = np.zeros(len(ranks))
    else:
        share = (ranks * is_zero).sum(axis=-1) / 2
    ranks = np.where(is_zero, 0.0, ranks)
    positive = np.sum(ranks * (differences > 0), axis=-1)
    negative = np.sum(ranks * (differences < 0), axis=-1)
    p_values = (_exact if differences.shape[-1] <= MOST_EXACT else _normal)(
        ranks, np.minimum(positive, negative)
    )
    return positive + share, negative + share, p_values


def _exact(ranks: Floats, smaller: Floats) -> Floats:
    """Return 2 P(S <= smaller) for S the sum of a random half of the ranks, row by row."""
    # Mean ranks are multiples of one half. Without ties all rows are alike: one distribution.
    doubled = np.sort(np.rint(2 * ranks).astype(np.int64), axis=-1)
    kinds, kind_of = np.unique(doubled, axis=0, return_inverse=True)
    kind_of = kind_of.reshape(-1)
    at = np.rint(2 * smaller).astype(np.int64)
    p_values = np.empty(len(ranks))
    for number, kind in enumerate(kinds):
        rows = kind_of == number
        p_values[rows] = 2 * _cumulative(tuple(kind[kind > 0].tolist()))[at[rows]]
    return np.minimum(p_values, 1.0)


@lru_cache(maxsize=512)
def _cumulative(weights: tuple[int, ...]) -> Floats:
    """Return P(S <= s) for s = 0, 1, ...; S adds each weight with probability one half."""
    ways = np.zeros(sum(weights) + 1)  # how many choices give each sum: exact up to 2^53
    ways[0] = 1
    for weight in weights:
        ways[weight:] += ways[:-weight].copy()
    return np.cumsum(ways) / 2.0 ** len(weights)


def _normal(ranks: Floats, smaller: Floats) -> Floats:
    """Return the p-values of a normal distribution with the mean and variance of S."""
    mean, deviation = ranks.sum(axis=-1) / 2, np.sqrt(np.sum(ranks**2, axis=-1)) / 2
    some = deviation > 0
    z = np.zeros(len(ranks))
    z[some] = (smaller[some] - mean[some]) / deviation[some]  # never positive
    return np.asarray(2 * ndtr(z))


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
        In any order; NaN is refused.

    Returns
    -------
    ndarray of shape (m,)
        In the same order.

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

    Folds share training rows, so their scores are correlated, and the ordinary t-test finds
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


# of differences (pairs, n), and the share of the rows that a fold tests -> p-values (pairs,)
PAIRED_TESTS: dict[str, Callable[[Floats, float | None], Floats]] = {
    "wilcoxon": lambda differences, _: signed_rank_tests(differences)[2],
    "corrected_t": lambda differences, fraction: _corrected_t_tests(differences, fraction)[1],
}


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
        For :func:`corrected_t`.
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
            f"{_instead(unit)}"
        )
