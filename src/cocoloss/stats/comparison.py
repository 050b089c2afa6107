"""The outcome of a comparison, computed once; tables and diagrams are made from it."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from cocoloss.stats.friedman import Friedman


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Which models are better over many datasets, and which cannot be told apart.

    Made by :func:`compare`. Everything that is per model is in the order of ``models``.

    Attributes
    ----------
    models : tuple of str
        Best average rank first; equal ones by mean score, then by name.
    datasets : tuple of str
        Those that were compared on.
    scores : DataFrame, datasets x models
        As given, means over folds; NaN only in cells that ``filled`` lists.
    ranks : DataFrame, datasets x models
        Rank of each model on each dataset; 1 is best.
    average_ranks, rank_spread, mean_scores : Series
        Mean and standard deviation of the ranks, and mean of the scores over
        ``common_datasets``; if there are none, over the datasets that the model has.
    friedman : Friedman
        Whether the models differ at all.
    p_values : DataFrame, models x models
        Adjusted for the number of pairs; ones on the diagonal.
    different : DataFrame of bool, models x models
        Which pairs differ at level ``alpha``.
    critical_distance : float or None
        By how much average ranks must differ; None if ``test`` is "wilcoxon".
    cliques : tuple of tuples of str
        Groups no two of which differ; every pair that does not differ is in one. Runs of models
        next to each other in rank come first, groups with gaps after them.
    wins, ties : DataFrame of int, models x models
        On how many datasets the row has a better score than the column, and the same score.
    bayes : DataFrame or None
        One row per pair: ``first``, ``second``, and the probabilities ``first_better``, ``equal``
        and ``second_better``; see :func:`bayesian_signed_rank`.
    dropped : tuple of str
        Datasets left out because a result was missing.
    filled : tuple of (dataset, model)
        Missing results that count as the worst.
    test, alpha, ranking, ranking_ties, missing, higher_is_better
        What was asked for.
    """

    models: tuple[str, ...]
    datasets: tuple[str, ...]
    scores: Any
    ranks: Any
    average_ranks: Any
    rank_spread: Any
    mean_scores: Any
    friedman: Friedman
    p_values: Any
    different: Any
    critical_distance: float | None
    cliques: tuple[tuple[str, ...], ...]
    wins: Any
    ties: Any
    bayes: Any
    dropped: tuple[str, ...]
    filled: tuple[tuple[str, str], ...]
    test: str
    alpha: float
    ranking: str
    ranking_ties: str
    missing: str
    higher_is_better: bool

    @property
    def n_models(self) -> int:
        """Number of models."""
        return len(self.models)

    @property
    def n_datasets(self) -> int:
        """Number of datasets that were compared on."""
        return len(self.datasets)

    @property
    def common_datasets(self) -> tuple[str, ...]:
        """Datasets on which every model has a result: all of them, if no gap was filled."""
        return tuple(self.scores.index[self.scores.notna().all(axis=1)])

    @property
    def losses(self) -> Any:
        """On how many datasets the row has a worse score than the column."""
        return self.wins.T

    def to_frame(self) -> Any:
        """Return one row per model: ranks, scores, and pairs won, tied and lost over datasets."""
        return pd.DataFrame(
            {
                "rank": self.average_ranks,
                "spread": self.rank_spread,
                "score": self.mean_scores,
                "wins": self.wins.sum(axis=1),
                "ties": self.ties.sum(axis=1),
                "losses": self.losses.sum(axis=1),
            }
        )

    def __str__(self) -> str:
        how = {"scores": "by score", "folds": "by significance over folds"}[self.ranking]
        better = "higher" if self.higher_is_better else "lower"
        lines = [
            f"{self.n_models} models on {self.n_datasets} datasets, {better} is better",
            f"ranked {how}, ties: {self.ranking_ties}",
            f"Friedman chi2 = {self.friedman.chi2:.2f}, {_p(self.friedman.p_value)}",
            f"Iman-Davenport F = {self.friedman.f:.2f}, {_p(self.friedman.f_p_value)}",
            self.describe_test(),
            "",
            self.to_frame().to_string(float_format="{:.3f}".format),
            "",
        ]
        lines += [f"not different: {', '.join(group)}" for group in self.cliques]
        if not self.cliques:
            lines.append("every pair differs")
        if self.dropped:
            lines.append(f"left out, a result is missing: {', '.join(self.dropped)}")
        if self.filled:
            cells = ", ".join(f"{model} on {dataset}" for dataset, model in self.filled)
            lines.append(f"missing, counted as the worst: {cells}")
            lines.append(self.describe_means())
        return "\n".join(lines)

    def describe_friedman(self) -> str:
        """Return the p-value of the Friedman test in words."""
        return f"Friedman {_p(self.friedman.p_value)}"

    def describe_test(self) -> str:
        """Return the name of the test between models, and its level."""
        if self.critical_distance is None:
            return f"Wilcoxon signed-rank with Holm's correction, alpha = {self.alpha:g}"
        return f"Nemenyi, alpha = {self.alpha:g}, critical distance {self.critical_distance:.3f}"

    def describe_means(self) -> str:
        """Say over which datasets the mean scores are."""
        n_common = len(self.common_datasets)
        if n_common == self.n_datasets:
            return f"mean scores are over all {self.n_datasets} datasets"
        if n_common:
            return (
                f"mean scores are over the {n_common} of {self.n_datasets} datasets on which every "
                f"model has a result"
            )
        return (
            "no dataset has a result of every model: mean scores are over different datasets, and "
            "cannot be compared"
        )

    __repr__ = __str__


def _p(p_value: float) -> str:
    """Write a p-value; none is ever zero, though a float may be."""
    return f"p = {p_value:.2g}" if p_value >= 1e-300 else "p < 1e-300"
