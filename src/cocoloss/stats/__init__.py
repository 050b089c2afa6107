"""Which classifier is better, over folds and over datasets: tables in, results out."""

from cocoloss.stats.bayes import Practical, bayesian_correlated_t, bayesian_signed_rank
from cocoloss.stats.cliques import cliques
from cocoloss.stats.compare import compare
from cocoloss.stats.comparison import Comparison
from cocoloss.stats.friedman import Friedman, critical_distance, friedman, nemenyi
from cocoloss.stats.missing import CompleteTable, complete
from cocoloss.stats.pairwise import CorrectedT, corrected_t, holm, pairwise_p_values
from cocoloss.stats.ranks import rank_models, significance_ranks
from cocoloss.stats.tables import ScoreTable, read_scores
from cocoloss.stats.wilcoxon import SignedRank, wilcoxon_paired

__all__ = [
    "Comparison",
    "CompleteTable",
    "CorrectedT",
    "Friedman",
    "Practical",
    "ScoreTable",
    "SignedRank",
    "bayesian_correlated_t",
    "bayesian_signed_rank",
    "cliques",
    "compare",
    "complete",
    "corrected_t",
    "critical_distance",
    "friedman",
    "holm",
    "nemenyi",
    "pairwise_p_values",
    "rank_models",
    "read_scores",
    "significance_ranks",
    "wilcoxon_paired",
]
