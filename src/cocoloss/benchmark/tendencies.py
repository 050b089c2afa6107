"""What the lead of a model over another goes with, and on which tables it is largest."""

from typing import Any

import numpy as np

from cocoloss.benchmark.characters import BINS, lead
from cocoloss.stats import holm

FEWEST = 5  # datasets for a rank correlation


def tendencies(scores: Any, characters: Any, reference: str) -> Any:
    """Correlate the lead of a model over each other with the character of the tables.

    Parameters
    ----------
    scores : DataFrame, datasets x models
        Higher is better.
    characters : DataFrame
        Indexed by dataset, with some of the columns of ``BINS``.
    reference : str
        The model.

    Returns
    -------
    DataFrame
        With the columns character, other, n_datasets, spearman, p_value and p_holm, which is
        adjusted for all the lines. Pairs without five datasets are left out, and characters that
        are the same for all tables.

    Examples
    --------
    >>> import pandas as pd
    >>> names = list("abcde")
    >>> scores = pd.DataFrame({"coco": [0.5, 0.6, 0.7, 0.8, 0.9], "rf": [0.7] * 5}, index=names)
    >>> known = pd.DataFrame({"n_classes": [2, 3, 4, 5, 6]}, index=names)
    >>> tendencies(scores, known, "coco")[["character", "other", "spearman"]]
      character other  spearman
    0   classes    rf       1.0
    """
    import pandas as pd  # noqa: PLC0415 - heavy
    from scipy.stats import spearmanr  # noqa: PLC0415

    lines = []
    if reference in scores.columns:
        for column, (title, *_) in BINS.items():
            if column not in characters.columns:
                continue
            for other in scores.columns.drop(reference):
                leads = lead(scores, reference, other)
                both = pd.DataFrame({"x": characters[column].reindex(leads.index), "y": leads})
                both = both.dropna()
                if len(both) >= FEWEST and np.ptp(both["x"]) > 0 and np.ptp(both["y"]) > 0:
                    found: Any = spearmanr(both["x"], both["y"])
                    lines.append([title, other, len(both), found.statistic, found.pvalue])
    columns = ["character", "other", "n_datasets", "spearman", "p_value"]
    frame = pd.DataFrame(lines, columns=columns)
    return frame.assign(p_holm=holm(frame["p_value"]) if lines else [])


def extremes(scores: Any, reference: str, other: str, n: int = 5) -> Any:
    """Return the datasets with the largest leads and the largest deficits of a model.

    Parameters
    ----------
    scores : DataFrame, datasets x models
        Higher is better.
    reference, other : str
        The model, and the one that it is compared with.
    n : int
        Most datasets of either kind.

    Returns
    -------
    DataFrame
        Indexed by dataset, with the columns ours, theirs and lead; from the largest lead to the
        largest deficit.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame({"coco": [0.9, 0.8, 0.7], "rf": [0.8, 0.8, 0.8]}, index=list("abc"))
    >>> extremes(scores, "coco", "rf").round(2)
       ours  theirs  lead
    a   0.9     0.8   0.1
    c   0.7     0.8  -0.1
    """
    import pandas as pd  # noqa: PLC0415 - heavy

    table = pd.DataFrame({"ours": scores[reference], "theirs": scores[other]}).dropna()
    table["lead"] = lead(table, "ours", "theirs")
    table = table.sort_values("lead", ascending=False, kind="stable")
    best, worst = table[table["lead"] > 0].head(n), table[table["lead"] < 0].tail(n)
    return pd.concat([best, worst])
