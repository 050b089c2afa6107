"""Which rows are kept apart to test on, and which of many are looked at."""

import numpy as np
from numpy.typing import NDArray

from cocoloss.exceptions import CoCoError

FEWEST_OF_A_CLASS = 2  # rows of each class in a sample, if it has them


def split_test(
    labels: NDArray[np.int64], test_size: float, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows to learn from and rows to test on, both sorted.

    Every class keeps a row to learn from, and if it has two it gives one to the test.

    Examples
    --------
    >>> split_test(np.array([0] * 8 + [1, 1, 2]), 0.25, np.random.default_rng(0))[1].shape
    (3,)
    """
    chosen = []
    for c in np.unique(labels):
        rows = generator.permutation(np.flatnonzero(labels == c))
        wanted = (
            int(np.clip(round(len(rows) * test_size), 1, len(rows) - 1)) if rows.size > 1 else 0
        )
        chosen.append(rows[:wanted])
    test = np.sort(np.concatenate(chosen))
    if not len(test):
        raise CoCoError(
            "every class has a single row, so none can be kept apart to test on; give a table "
            "with at least two rows of some class"
        )
    return np.setdiff1d(np.arange(len(labels)), test), test


def stratified_sample(
    labels: NDArray[np.int64],
    rows: NDArray[np.int64],
    most: int,
    generator: np.random.Generator,
) -> NDArray[np.int64]:
    """Return some of the rows, sorted, with the class shares of all; at least two of a class.

    Examples
    --------
    >>> labels = np.array([0] * 97 + [1] * 3)
    >>> chosen = stratified_sample(labels, np.arange(100), 10, np.random.default_rng(0))
    >>> np.bincount(labels[chosen]).tolist()
    [9, 2]
    """
    if len(rows) <= most:
        return np.sort(rows)
    chosen = []
    for c in np.unique(labels[rows]):
        members = generator.permutation(rows[labels[rows] == c])
        chosen.append(members[: max(FEWEST_OF_A_CLASS, int(most * len(members) / len(rows)))])
    return np.sort(np.concatenate(chosen))
