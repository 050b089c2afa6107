"""By how much one model leads others, dataset by dataset, and on what kinds of table it does."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.stats import holm

if TYPE_CHECKING:
    import pandas as pd

DIGITS = 12  # in which two scores must agree to be a tie
FEWEST = 5  # datasets for a rank correlation
# Character of a table -> (title, edges of the bins, how its values are written)
BINS: Mapping[str, tuple[str, tuple[float, ...], Callable[[float], str]]] = {
    "n_rows": ("rows", (1000, 10_000), lambda x: f"{x:,.0f}"),
    "n_columns": ("columns", (20, 100), lambda x: f"{x:.0f}"),
    "n_classes": ("classes", (3, 10), lambda x: f"{x:.0f}"),
    "class_ratio": ("largest class / smallest", (1.5, 3), lambda x: f"{x:.3g}"),
    "categorical_share": ("share of categorical columns", (0.01, 0.5), lambda x: f"{x:.0%}"),
}


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
        What is known of the tables: indexed by dataset, with some of the columns of ``BINS``.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame({"coco": [0.9, 0.8], "rf": [0.8, 0.8]}, index=["a", "b"])
    >>> leads = Leads("coco", scores, pd.DataFrame({"n_classes": [2, 5]}, index=["a", "b"]))
    >>> leads.wins()
      character            bin  n_tables other  n_datasets  wins  ties  losses
    0   classes        below 3         1    rf           1     1     0       0
    1   classes  3 to under 10         1    rf           1     0     1       0
    >>> leads.extremes("rf").round(2)
       ours  theirs  lead
    a   0.9     0.8   0.1
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
        """Count the datasets on which the model is better than each other, by their character.

        Returns
        -------
        DataFrame
            With the columns character, bin, n_tables, other, n_datasets, wins, ties, losses.
            ``n_tables`` are in the bin, ``n_datasets`` of them have a score of both models. Bins
            without a dataset are left out, and characters that nothing is known of.
        """
        import pandas as pd  # noqa: PLC0415 - heavy

        lines = []
        for character, title, values in self._known():
            for label, inside in bins_of(character, values).items():
                chosen = self.scores[inside]
                lines += [
                    [title, label, len(chosen), other, *count(lead(chosen, self.reference, other))]
                    for other in self.others
                    if len(chosen)
                ]
        columns = ["character", "bin", "n_tables", "other", "n_datasets", "wins", "ties", "losses"]
        return pd.DataFrame(lines, columns=columns)

    def tendencies(self) -> "pd.DataFrame":
        """Correlate the lead over each other model with the character of the tables.

        Returns
        -------
        DataFrame
            With the columns character, other, n_datasets, spearman, p_value and p_holm, which is
            adjusted for all the lines. Pairs without five datasets are left out, and characters
            that are the same for all tables.
        """
        import pandas as pd  # noqa: PLC0415 - heavy
        from scipy.stats import spearmanr  # noqa: PLC0415

        lines = []
        for _, title, values in self._known():
            for other in self.others:
                both = pd.DataFrame({"x": values, "y": lead(self.scores, self.reference, other)})
                both = both.dropna()
                if len(both) >= FEWEST and np.ptp(both["x"]) > 0 and np.ptp(both["y"]) > 0:
                    found: Any = spearmanr(both["x"], both["y"])
                    lines.append([title, other, len(both), found.statistic, found.pvalue])
        columns = ["character", "other", "n_datasets", "spearman", "p_value"]
        frame = pd.DataFrame(lines, columns=columns)
        return frame.assign(p_holm=holm(frame["p_value"]) if lines else [])

    def extremes(self, other: str, n: int = 5) -> "pd.DataFrame":
        """Return the datasets with the ``n`` largest leads over another model, and deficits.

        Returns
        -------
        DataFrame
            Indexed by dataset, with the columns ours, theirs and lead; from the largest lead to
            the largest deficit.
        """
        import pandas as pd  # noqa: PLC0415 - heavy

        columns = {"ours": self.scores[self.reference], "theirs": self.scores[other]}
        table = pd.DataFrame(columns).dropna()
        table["lead"] = lead(table, "ours", "theirs")
        table = table.sort_values("lead", ascending=False, kind="stable")
        best, worst = table[table["lead"] > 0].head(n), table[table["lead"] < 0].tail(n)
        return pd.concat([best, worst])

    def _known(self) -> Iterator[tuple[str, str, Any]]:
        """Yield each character that is known, its title, and its values in the order of scores."""
        if self.reference not in self.scores.columns:
            return
        for character, (title, *_) in BINS.items():
            if character in self.characters.columns:
                yield character, title, self.characters[character].reindex(self.scores.index)


def bins_of(character: str, values: Any) -> dict[str, NDArray[np.bool_]]:
    """Return which values lie in each bin of a character, by what the bin is called.

    Examples
    --------
    >>> bins_of("n_classes", [2, 12, float("nan")])["10 or more"]
    array([False,  True, False])
    """
    _, edges, write = BINS[character]
    between = [f"{write(a)} to under {write(b)}" for a, b in pairwise(edges)]
    labels = [f"below {write(edges[0])}", *between, f"{write(edges[-1])} or more"]
    numbers = np.asarray(values, dtype=float)
    places = np.where(np.isnan(numbers), -1, np.digitize(numbers, edges))
    return {label: places == place for place, label in enumerate(labels)}


def lead(scores: Any, reference: str, other: str) -> Any:
    """Return by how much a model leads on each dataset; exactly 0 where two scores tie.

    Means of the same folds may differ in their last digit. Whatever is counted, sorted or
    correlated with would take that for a lead.

    Examples
    --------
    >>> import pandas as pd
    >>> lead(pd.DataFrame({"coco": [0.3, 0.3], "rf": [0.1 + 0.2, 0.2]}), "coco", "rf").tolist()
    [0.0, 0.1]
    """
    return (scores[reference] - scores[other]).round(DIGITS) + 0.0  # and no -0.0


def count(leads: Any) -> tuple[int, int, int, int]:
    """Return how many leads (of :func:`lead`) are known, and of them wins, ties and losses."""
    known = leads.dropna()
    n = len(known)
    wins, losses = int((known > 0).sum()), int((known < 0).sum())
    return n, wins, n - wins - losses, losses
