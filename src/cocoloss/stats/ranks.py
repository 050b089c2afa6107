"""Ranks of models over datasets, groups that do not differ; the tests of Friedman and Nemenyi."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, fdtrc, gammaln, log_ndtr
from scipy.stats import rankdata, studentized_range

from cocoloss._checks import as_float_array, check_integer, check_option, check_share
from cocoloss.exceptions import CoCoError
from cocoloss.stats.pairwise import PAIRED_TESTS, check_reach, pairwise_p_values
from cocoloss.stats.score_table import Floats, check_matrix, mean_scores, round_off

TIES = ("average", "competition")
Clique = tuple[int, ...]  # places of models, in order of rank


def rank_models(scores: Any, *, higher_is_better: bool = True, ties: str = "average") -> Floats:
    """Rank models on every dataset by their scores; 1 is best.

    Parameters
    ----------
    scores : array-like of shape (n_datasets, n_models)
        No gaps; an infinite score is better or worse than any other.
    higher_is_better : bool
        Whether a large score is a good one.
    ties : {"average", "competition"}
        Models with equal scores (in 12 digits) share the mean of the places they take up, 1 2.5
        2.5 4, or the first of them, 1 2 2 4.

    Returns
    -------
    ndarray of shape (n_datasets, n_models)

    Examples
    --------
    >>> from cocoloss.stats import rank_models
    >>> rank_models([[0.9, 0.7, 0.8], [0.6, 0.6, 0.5]]).tolist()
    [[1.0, 3.0, 2.0], [1.5, 1.5, 3.0]]
    """
    check_option(ties, "ties", TIES)
    scores = round_off(check_matrix(scores, "scores", rows="dataset"))
    worse = -scores if higher_is_better else scores
    if ties == "average":
        return np.asarray(rankdata(worse, axis=-1))
    return np.asarray(rankdata(worse, method="min", axis=-1), dtype=np.float64)


def significance_ranks(
    folds: Any,
    *,
    higher_is_better: bool = True,
    test: str = "wilcoxon",
    alpha: float = 0.05,
    ties: str = "competition",
    test_fraction: float | None = None,
) -> Floats:
    """Rank models on one dataset by how many are significantly better over its folds.

    The rank of a model is 1 plus the number of models that have a better mean score and a
    p-value below alpha against it, after Holm's correction for all pairs. This is the first
    stage of the paper's ranking.

    Parameters
    ----------
    folds : array-like of shape (n_folds, n_models)
        Scores of one dataset; the same folds for every model.
    higher_is_better : bool
        Whether a large score is a good one.
    test : {"wilcoxon", "corrected_t"}
        "wilcoxon" takes folds for independent, as the paper does, and needs six or more;
        "corrected_t" allows for the training rows they share.
    alpha : float
        Significance level.
    ties : {"competition", "average"}
        "competition" is as above; with "average" models of equal rank share the mean of the
        places they take up, so that ranks always sum to k (k + 1) / 2.
    test_fraction : float, optional
        Share of the rows in a test fold, for the corrected t-test; by default 1 / n_folds.

    Returns
    -------
    ndarray of shape (n_models,)

    Raises
    ------
    CoCoError
        If the Wilcoxon test cannot be significant whatever the scores: below six folds, or with so
        many models that Holm's correction leaves no room.

    Examples
    --------
    >>> from cocoloss.stats import significance_ranks
    >>> folds = [[0.90 + 0.01 * i, 0.90 + 0.011 * i, 0.5 + 0.01 * i] for i in range(10)]
    >>> significance_ranks(folds).tolist()
    [2.0, 1.0, 3.0]
    """
    check_option(ties, "ties", TIES)
    check_option(test, "test", PAIRED_TESTS)
    alpha = check_share(alpha, "alpha")
    folds = check_matrix(folds, "folds", rows="fold")
    if test == "wilcoxon":
        # NOTE[PAPER]: the paper tests 10 folds by Wilcoxon as if they were independent. Nothing
        # can be significant below 6 folds, nor with 8 models and 10 folds: refused. The
        # corrected t-test, which allows for shared training rows, is there by name.
        check_reach(folds.shape[0], folds.shape[1], alpha, "folds")
    p_values = pairwise_p_values(folds, test, test_fraction=test_fraction, unit="folds")
    means = mean_scores(folds)
    if not higher_is_better:
        means = -means
    better = (p_values < alpha) & (means[:, None] > means[None, :])  # row beats column
    # NOTE[PAPER]: the text says 1 + the number of better models, but the printed ranks sum to
    # 1 + ... + k, which those of tied models do not. Default as in the text; ties="average"
    # restores the sum.
    ranks = 1.0 + better.sum(axis=0)
    return np.asarray(rankdata(ranks)) if ties == "average" else ranks


def cliques(different: Any) -> tuple[Clique, ...]:
    """Group models, given in order of rank, so that no two of a group differ.

    First come all runs: models next to each other in rank, no two of which differ, as many as
    possible. With a critical distance there is nothing else. Tests that look at each pair by
    itself may find that models far apart do not differ while one between them does; groups with
    gaps follow, until every pair that does not differ is in a group.

    Parameters
    ----------
    different : array-like of bool, of shape (k, k)
        Which models differ; symmetric, in order of rank.

    Returns
    -------
    tuple of tuples of int
        Places of the members, ascending; two or more in each. A model that differs from all
        others is in none.

    Examples
    --------
    The first and the last do not differ, though both differ from the second:

    >>> from cocoloss.stats import cliques
    >>> cliques([[0, 1, 0, 0], [1, 0, 1, 1], [0, 1, 0, 0], [0, 1, 0, 0]])
    ((2, 3), (0, 2, 3))
    """
    different = np.asarray(different).astype(bool)
    if different.ndim != 2 or (different != different.T).any():
        raise CoCoError("different must be a symmetric matrix, one row and column per model")
    same = ~different
    np.fill_diagonal(same, val=True)
    groups = _runs(same)
    shown = np.zeros_like(same)
    for run in groups:
        shown[np.ix_(run, run)] = True
    for i, j in np.argwhere(np.triu(same, k=1)):
        if not shown[i, j]:
            group = _grow((int(i), int(j)), same)
            shown[np.ix_(group, group)] = True
            groups.append(group)
    return tuple(groups)


def _runs(same: NDArray[np.bool_]) -> list[Clique]:
    """Return the longest stretches of places in which all are the same."""
    runs: list[Clique] = []
    end = 0
    for start in range(len(same)):
        reached = end
        while end < len(same) and same[end, start : end + 1].all():
            end += 1
        if end > reached and end - start > 1:
            runs.append(tuple(range(start, end)))
    return runs


def _grow(pair: Clique, same: NDArray[np.bool_]) -> Clique:
    """Return a group that holds the pair and to which no model can be added."""
    members = list(pair)
    fits: NDArray[np.bool_] = np.asarray(same[members].all(axis=0))
    for place in range(len(same)):
        if fits[place] and place not in pair:
            members.append(place)
            fits &= same[place]
    return tuple(sorted(members))


# Nodes over which the density of the best of k normal variables is integrated. Below -9 and
# above 16 it is nothing, for any k that fits into memory.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(256)
_LOW, _HIGH = -9.0, 16.0


@dataclass(frozen=True)
class Friedman:
    """Result of a Friedman test, and of the sharper F test of Iman and Davenport (1980).

    The latter is less conservative; it is the one that Demsar (2006) recommends.
    """

    chi2: float
    p_value: float
    f: float
    f_p_value: float
    df: int  # of chi2: k - 1 for k models
    f_df: tuple[int, int]  # (k - 1, (k - 1)(N - 1)) for N datasets


def friedman(ranks: Any, *, correct_ties: bool = True) -> Friedman:
    r"""Test whether models differ over datasets.

    .. math:: \chi^2_F = \frac{12 N}{k (k + 1)} \Big( \sum_j R_j^2 - \frac{k (k + 1)^2}{4} \Big),
        \qquad F_F = \frac{(N - 1) \chi^2_F}{N (k - 1) - \chi^2_F}

    with :math:`R_j` the average ranks.

    Parameters
    ----------
    ranks : array-like of shape (n_datasets, n_models)
        Ranks with the best lowest. Only their order within a dataset counts: models of equal
        rank share the mean of the places they take up, whatever rank they came with.
    correct_ties : bool
        Whether the statistic is divided by the share of variance that ties leave. It should be;
        without, the numbers printed by Demsar (2006) come out.

    Returns
    -------
    Friedman
        If all models tie on all datasets, the statistics are 0 and the p-values 1. If all datasets
        agree on one order, F is infinite and its p-value the probability of that:
        (1 / k!)^(N - 1) without ties.

    Examples
    --------
    >>> from cocoloss.stats import friedman, rank_models
    >>> scores = [[0.9, 0.8, 0.7], [0.8, 0.6, 0.7], [0.9, 0.7, 0.6], [0.7, 0.6, 0.5]]
    >>> result = friedman(rank_models(scores))
    >>> result.chi2, round(result.p_value, 3), result.f, round(result.f_p_value, 3)
    (6.5, 0.039, 13.0, 0.007)
    """
    ranks = check_matrix(ranks, "ranks", rows="dataset")
    n, k = ranks.shape
    if n < 2:
        raise CoCoError("a Friedman test needs two datasets or more, but there is 1")
    places = rankdata(ranks, axis=1)
    df, f_df = k - 1, (k - 1, (k - 1) * (n - 1))
    # Sum of squared deviations from the mean rank; without ties it is N k (k^2 - 1) / 12.
    untied = n * k * (k**2 - 1) / 12
    spread = float(np.sum((places - (k + 1) / 2) ** 2)) if correct_ties else untied
    if spread == 0:
        return Friedman(0.0, 1.0, 0.0, 1.0, df, f_df)
    between = float(np.sum((places.mean(axis=0) - (k + 1) / 2) ** 2))
    agreement = min(n * between / spread, 1.0)  # Kendall's W
    chi2 = n * df * agreement
    if np.isclose(agreement, 1.0, rtol=0, atol=1e-12):
        _, shared = np.unique(places[0], return_counts=True)
        chance = np.sum(gammaln(shared + 1)) - gammaln(k + 1)  # log of one of the k! orders
        f, f_p_value = np.inf, float(np.exp((n - 1) * chance))
    else:
        f = (n - 1) * agreement / (1 - agreement)
        f_p_value = float(fdtrc(*f_df, f))
    return Friedman(float(chi2), float(chdtrc(df, chi2)), float(f), f_p_value, df, f_df)


def critical_distance(n_models: int, n_datasets: int, alpha: float = 0.05) -> float:
    r"""Return how far apart two average ranks must be to differ by Nemenyi's test.

    .. math:: CD = q_\alpha \sqrt{k (k + 1) / (6 N)}

    with :math:`q_\alpha` the quantile of the studentised range of k normal variables with
    infinite degrees of freedom, divided by the root of 2.

    Parameters
    ----------
    n_models, n_datasets : int
        k, at least 2, and N, at least 1.
    alpha : float
        Probability of any false finding among all pairs.

    Examples
    --------
    >>> from cocoloss.stats import critical_distance
    >>> round(critical_distance(5, 72), 3), round(critical_distance(3, 70), 3)
    (0.719, 0.396)
    """
    n_models = check_integer(n_models, "n_models", minimum=2)
    n_datasets = check_integer(n_datasets, "n_datasets", minimum=1)
    quantile = _range_quantile(n_models, check_share(alpha, "alpha"))
    return float(quantile * _standard_error(n_models, n_datasets))


def nemenyi(average_ranks: Any, n_datasets: int) -> Floats:
    """Return Nemenyi's p-value for every pair of average ranks.

    Parameters
    ----------
    average_ranks : array-like of shape (n_models,)
        Over the datasets.
    n_datasets : int
        How many those are.

    Returns
    -------
    ndarray of shape (n_models, n_models)
        For the whole family of pairs: no further correction is due. Ones on the diagonal.

    Examples
    --------
    >>> from cocoloss.stats import nemenyi
    >>> nemenyi([1.97, 2.65, 2.65, 3.20, 4.53], 72)[0].round(4).tolist()
    [1.0, 0.074, 0.074, 0.0, 0.0]
    """
    average_ranks = as_float_array(average_ranks, "average_ranks")
    if average_ranks.ndim != 1 or len(average_ranks) < 2 or not np.isfinite(average_ranks).all():
        raise CoCoError(
            f"average_ranks must be a list of two or more finite numbers, "
            f"not {average_ranks.tolist()}"
        )
    n_models = len(average_ranks)
    error = _standard_error(n_models, check_integer(n_datasets, "n_datasets", minimum=1))
    gaps = np.abs(average_ranks[:, None] - average_ranks[None, :])
    p_values = np.stack([_range_survival(row, n_models) for row in gaps / error])
    np.fill_diagonal(p_values, 1.0)
    return p_values


def _standard_error(n_models: int, n_datasets: int) -> float:
    """Return the deviation of independent variables that differ as average ranks do by chance."""
    return float(np.sqrt(n_models * (n_models + 1) / (12 * n_datasets)))


@lru_cache(maxsize=256)
def _range_quantile(n_models: int, alpha: float) -> float:
    return float(studentized_range.ppf(1 - alpha, n_models, np.inf))


def _range_survival(q: Floats, k: int) -> Floats:
    r"""Return the probability that the range of k standard normal variables exceeds q.

    SciPy's survival function is 1 - cdf, which has no digits left below 1e-15, where p-values
    over a thousand datasets are. Here the complement is taken under the integral over the
    largest variable z:

    .. math:: k \int \varphi(z) \big[ \Phi(z)^{k-1} - (\Phi(z) - \Phi(z - q))^{k-1} \big] dz
    """
    z = (_LOW + _HIGH) / 2 + (_HIGH - _LOW) / 2 * _NODES
    log_below = log_ndtr(z)  # log Phi(z)
    density = np.exp(-(z**2) / 2 + (k - 1) * log_below) * k / np.sqrt(2 * np.pi)
    out_of_range = np.exp(log_ndtr(z - q[:, None]) - log_below)  # (pairs, nodes), at most 1
    with np.errstate(divide="ignore"):  # q = 0: log 0
        some_out = -np.expm1((k - 1) * np.log1p(-np.minimum(out_of_range, 1.0)))
    integral = (density * some_out) @ (_WEIGHTS * (_HIGH - _LOW) / 2)
    return np.asarray(np.minimum(integral, 1.0))
