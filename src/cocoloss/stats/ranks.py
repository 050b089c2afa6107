"""Ranks of models on each dataset, by scores or by significance; groups that do not differ."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from cocoloss._checks import check_option, check_share
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
