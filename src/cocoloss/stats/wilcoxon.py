"""Wilcoxon's signed-rank test, for many pairs at once, exact up to 50 differences, ties or not."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import rankdata

from cocoloss._checks import check_option
from cocoloss.exceptions import CoCoError
from cocoloss.stats._scores import Floats, check_pair, score_differences

# NOTE[PAPER]: folds on which two models are equal are not mentioned there. They are ranked and
# their ranks shared, as Demsar (2006) advises, whom the paper follows; "drop" is Wilcoxon (1945).
ZEROS = ("split", "drop")
FEWEST = 6  # with 5 differences the smallest two-sided p-value is 2 / 2^5 = 0.0625
MOST_EXACT = 50  # beyond that the normal distribution is as good, and faster


@dataclass(frozen=True)
class SignedRank:
    """Result of a signed-rank test.

    Attributes
    ----------
    p_value : float
        Two-sided; 1 if no difference is left.
    sum_first, sum_second : float
        Sums of the ranks of the differences in favour of either side.
    n_pairs, n_zeros : int
        How many pairs there were, and how many of them did not differ.
    exact : bool
        Whether the p-value counts all signs, or is that of the normal distribution.
    """

    p_value: float
    sum_first: float
    sum_second: float
    n_pairs: int
    n_zeros: int
    exact: bool


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
        With a two-sided p-value.

    Raises
    ------
    CoCoError
        If there are fewer than six pairs, or scores are missing.

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
        other = "another test" if what == "datasets" else "the corrected t-test"
        counted = {"folds": "fold", "datasets": "dataset"}.get(what, what) if n_pairs == 1 else what
        raise CoCoError(
            f"a Wilcoxon test over {n_pairs} {counted} can never reach p < 0.05: its smallest "
            f"p-value is {2.0 ** (1 - n_pairs):.3g}. Use {FEWEST} or more {what}, or {other}"
        )


def signed_rank_tests(
    differences: Floats, *, zeros: str = "split"
) -> tuple[Floats, Floats, Floats]:
    """Return the positive rank sums, the negative ones and the p-values, one per row.

    Each row is tested by itself: its p-value does not depend on the other rows.
    """
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
