"""Groups of models that do not differ: each pair that does not is in one, no pair that does."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.exceptions import CoCoError

Clique = tuple[int, ...]


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
    runs = _runs(same)
    shown = np.zeros_like(same)
    for run in runs:
        shown[np.ix_(run, run)] = True
    groups = list(runs)
    for i, j in np.argwhere(np.triu(same, k=1)):
        if not shown[i, j]:
            group = _grow((int(i), int(j)), same)
            shown[np.ix_(group, group)] = True
            groups.append(group)
    return tuple(groups)


def _runs(same: NDArray[np.bool_]) -> list[Clique]:
    """Return the longest stretches of places in which all are the same."""
    k = len(same)
    # The first place after i that differs from i; k if none does.
    stop = [next((j for j in range(i + 1, k) if not same[i, j]), k) for i in range(k)]
    runs: list[Clique] = []
    reached = 0
    for start in range(k):
        end, place = k, start
        while place < end:
            end = min(end, stop[place])
            place += 1
        if end > reached and end - start > 1:
            runs.append(tuple(range(start, end)))
        reached = max(reached, end)
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
