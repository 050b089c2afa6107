"""On which tables a model wins: large or small ones, of many classes or few, balanced or not."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

DIGITS = 12  # in which two scores must agree to be a tie
BINS: Mapping[str, tuple[str, tuple[float, ...], Callable[[float], str]]] = {
    "n_rows": ("rows", (1000, 10_000), lambda x: f"{x:,.0f}"),
    "n_columns": ("columns", (20, 100), lambda x: f"{x:.0f}"),
    "n_classes": ("classes", (3, 10), lambda x: f"{x:.0f}"),
    "class_ratio": ("largest class / smallest", (1.5, 3), lambda x: f"{x:.3g}"),
    "categorical_share": ("share of categorical columns", (0.01, 0.5), lambda x: f"{x:.0%}"),
}


def wins_by_character(scores: Any, characters: Any, reference: str) -> Any:
    """Count the datasets on which a model has a better score than each other, by their character.

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
        With the columns character, bin, n_tables, other, n_datasets, wins, ties, losses.
        ``n_tables`` are in the bin, ``n_datasets`` of them have a score of both models. Bins
        without a dataset are left out, and characters that nothing is known of.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame({"coco": [0.9, 0.8], "rf": [0.8, 0.8]}, index=["a", "b"])
    >>> wins_by_character(scores, pd.DataFrame({"n_classes": [2, 5]}, index=["a", "b"]), "coco")
      character            bin  n_tables other  n_datasets  wins  ties  losses
    0   classes        below 3         1    rf           1     1     0       0
    1   classes  3 to under 10         1    rf           1     0     1       0
    """
    import pandas as pd  # noqa: PLC0415 - heavy

    lines = []
    if reference in scores.columns:
        for column, (title, *_) in BINS.items():
            if column not in characters.columns:
                continue
            for label, inside in bins_of(column, characters[column].reindex(scores.index)).items():
                chosen = scores[inside]
                lines += [
                    [title, label, len(chosen), other, *count(lead(chosen, reference, other))]
                    for other in scores.columns
                    if other != reference and len(chosen)
                ]
    columns = ["character", "bin", "n_tables", "other", "n_datasets", "wins", "ties", "losses"]
    return pd.DataFrame(lines, columns=columns)


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
