"""Places of models on each dataset: by their scores, or by what is significant over the folds."""

from typing import Any

import numpy as np
from scipy.stats import rankdata

from cocoloss._checks import check_option
from cocoloss.stats._scores import Floats, check_matrix, check_share, mean_scores, round_off
from cocoloss.stats.pairwise import PAIRED_TESTS, check_reach, pairwise_p_values

TIES = ("average", "competition")


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
        Ranks.

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
        Ranks; 1 is best.

    Raises
    ------
    CoCoError
        If scores are missing, or the Wilcoxon test cannot be significant whatever the scores:
        below six folds, or with so many models that Holm's correction leaves no room.

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
