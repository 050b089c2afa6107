"""Rows that a member of an ensemble does not train on: to stop in time and to calibrate."""

import numpy as np
from numpy.typing import NDArray

# Fewer held-out rows than this say too little about when to stop, or how sure to be.
FEWEST_HELD_OUT = 20
# From this many different rows of a class on, how often they occur says how often rows recur.
ENOUGH_DIFFERENT = 50
SELDOM = 0.1  # the share of the different rows that occur most seldom


def split_held_out(
    labels: NDArray[np.int64],
    groups: NDArray[np.int64],
    fraction: float,
    generator: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows to train on and rows to hold out, with the class shares of both alike.

    Every class keeps at least two thirds of its rows, and classes of fewer than three rows keep
    all. If too few rows would be held out, none are. How many are held out is not a matter of
    chance, so that the members of an ensemble take equally many steps.

    Equal rows stay together (but for the last ones chosen), so that a copy of a training row is no
    test. But a row that occurs so often that its share is a whole copy is in both parts: in a
    table of few different rows, the rows to come have been seen before. "Often" is relative to
    the rows of its class that occur most seldom: where even they occur ten times, somebody has
    multiplied the class, by weights or by oversampling, and new rows will be new.

    Parameters
    ----------
    labels : array of shape (n,)
    groups : array of shape (n,)
        Equal rows have the same number, and stand side by side.
    fraction : float
        Share of the rows to hold out.
    generator : numpy generator

    Examples
    --------
    >>> labels = np.repeat([0, 1], [100, 60])
    >>> train, held_out = split_held_out(
    ...     labels, np.arange(160), 0.2, np.random.default_rng(0)
    ... )
    >>> np.bincount(labels[held_out]).tolist()
    [20, 12]
    """
    everything = np.arange(len(labels))
    counts = np.bincount(labels)
    wanted = _quotas(np.minimum(counts * fraction, counts // 3), generator)
    if wanted.sum() < FEWEST_HELD_OUT:
        return everything, everything[:0]
    places = _places(labels, groups, fraction, generator)
    order = np.lexsort((places, labels))  # class by class, those to be held out first
    rank = everything - np.repeat(np.cumsum(counts) - counts, counts)
    is_held_out = np.zeros(len(labels), dtype=bool)
    is_held_out[order] = rank < np.repeat(wanted, counts)
    return everything[~is_held_out], everything[is_held_out]


def _quotas(shares: NDArray[np.float64], generator: np.random.Generator) -> NDArray[np.int64]:
    """Round shares to whole numbers, at random, with the same sum whatever is drawn.

    So the rows of a rare class are held out now and then instead of never.
    """
    total = int(shares.sum())
    if total == 0:
        return np.zeros(len(shares), dtype=np.int64)
    ends = np.cumsum(shares) * (total / shares.sum())
    ends[-1] = total
    steps = np.floor(ends + generator.random()).astype(np.int64)
    return np.asarray(np.diff(steps, prepend=0))


def _places(
    labels: NDArray[np.int64],
    groups: NDArray[np.int64],
    fraction: float,
    generator: np.random.Generator,
) -> NDArray[np.float64]:
    """Return a random place in [0, 1) for each row.

    That of a row without equals is uniform. Equal rows are all at one place if they are few, and
    at even distances if they are many.
    """
    sizes = np.bincount(groups)
    first = np.cumsum(sizes) - sizes
    draws = generator.random(len(sizes))[groups]
    size = sizes[groups]
    copy = np.arange(len(groups)) - first[groups]
    often = size / _seldom(labels[first], sizes)[labels]
    return np.where(often * fraction < 1, draws, (copy + draws) / size)


def _seldom(labels: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how often the rows of each class occur that occur most seldom.

    ``labels`` and ``sizes`` are those of the different rows.
    """
    seldom = np.ones(labels.max() + 1)
    for c in range(len(seldom)):
        of_class = sizes[labels == c]
        if len(of_class) >= ENOUGH_DIFFERENT:
            seldom[c] = np.quantile(of_class, SELDOM, method="lower")
    return seldom
