"""The lead of one model over others, dataset by dataset, and what is known of the tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cocoloss.benchmark.characters import wins_by_character
from cocoloss.benchmark.tendencies import extremes, tendencies

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Leads:
    """One model beside others.

    Attributes
    ----------
    reference : str
        The model.
    scores : DataFrame, datasets x models
        Higher is better; NaN where a model lacks folds.
    characters : DataFrame
        What is known of the tables, indexed by dataset.
    """

    reference: str
    scores: "pd.DataFrame"
    characters: "pd.DataFrame"

    @property
    def others(self) -> list[str]:
        """The models that it is compared with."""
        return [model for model in self.scores.columns if model != self.reference]

    def among(self, models: Sequence[str], reference: str) -> "Leads":
        """Return the lead of a model over some of the others."""
        kept = [model for model in self.scores.columns if model in models]
        return Leads(reference, self.scores[kept], self.characters)

    def wins(self) -> "pd.DataFrame":
        """Count wins, ties and losses by character; see :func:`wins_by_character`."""
        return wins_by_character(self.scores, self.characters, self.reference)

    def tendencies(self) -> "pd.DataFrame":
        """Correlate leads with characters; see :func:`tendencies`."""
        return tendencies(self.scores, self.characters, self.reference)

    def extremes(self, other: str, n: int = 5) -> "pd.DataFrame":
        """Return the largest leads and deficits; see :func:`extremes`."""
        return extremes(self.scores, self.reference, other, n)
