"""Which classifier is better, over folds and over datasets: scores in, results out.

It knows nothing of how scores came about, prints nothing and draws nothing.
"""

from cocoloss.stats.bayes import Practical, bayesian_correlated_t, bayesian_signed_rank
from cocoloss.stats.comparison import Comparison, compare
from cocoloss.stats.effects import (
    Against,
    Effect,
    against,
    cliffs_delta,
    mean_difference,
    prose,
    rank_biserial,
)
from cocoloss.stats.pairwise import (
    CorrectedT,
    SignedRank,
    corrected_t,
    holm,
    pairwise_p_values,
    wilcoxon_paired,
)
from cocoloss.stats.ranks import (
    Friedman,
    cliques,
    critical_distance,
    friedman,
    nemenyi,
    rank_models,
    significance_ranks,
)
from cocoloss.stats.score_table import CompleteTable, ScoreTable, complete, read_scores

__all__ = [
    "Against",
    "Comparison",
    "CompleteTable",
    "CorrectedT",
    "Effect",
    "Friedman",
    "Practical",
    "ScoreTable",
    "SignedRank",
    "against",
    "bayesian_correlated_t",
    "bayesian_signed_rank",
    "cliffs_delta",
    "cliques",
    "compare",
    "complete",
    "corrected_t",
    "critical_distance",
    "friedman",
    "holm",
    "mean_difference",
    "nemenyi",
    "pairwise_p_values",
    "prose",
    "rank_biserial",
    "rank_models",
    "read_scores",
    "significance_ranks",
    "wilcoxon_paired",
]
