"""Rows dealt into folds, and large tables cut down, class by class and the same every time."""

import hashlib
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cocoloss._checks import RandomState, as_generator, check_integer
from cocoloss.exceptions import CoCoError
from cocoloss.tables.table import Table


class Fold(NamedTuple):
    """Positions of the rows to learn from and of those to test on, each in rising order."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]


def named_seed(*parts: object) -> int:
    """Return a seed that follows from names: the same on every machine and in every run.

    Examples
    --------
    >>> named_seed("credit-g", "fold", 3)
    1507880270
    """
    text = "\0".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


def stratified_folds(y: Any, n_splits: int, seed: RandomState) -> list[Fold]:
    """Deal rows into folds so that each has its share of every class.

    The rows of a class differ by at most one between folds, and so do all rows. A class of fewer
    rows than folds is in some of them only; no fold is without rows.

    Parameters
    ----------
    y : array-like of shape (n,)
        The classes.
    n_splits : int
        Number of folds, at least two and at most n.
    seed : int, generator or None
        See :func:`named_seed` for one that follows from names.

    Returns
    -------
    list of Fold
        ``train`` and ``test`` of each fold; every row is tested once.

    Examples
    --------
    >>> [fold.test.tolist() for fold in stratified_folds(list("aabbab"), 2, seed=0)]
    [[0, 3, 5], [1, 2, 4]]
    """
    n_splits = check_integer(n_splits, "n_splits", minimum=2)
    codes = pd.factorize(np.asarray(y), sort=True)[0]
    if (codes < 0).any():
        raise CoCoError("y has gaps; drop the rows whose class is not known")
    if n_splits > len(codes):
        raise CoCoError(f"n_splits is {n_splits}, but there are {len(codes)} rows to deal")
    generator = as_generator(seed)
    shuffled = generator.permutation(len(codes))
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    # Dealt in turn from one class into the next, so that the rests do not pile up in one fold.
    fold_of = np.empty(len(codes), dtype=np.intp)
    fold_of[by_class] = generator.permutation(n_splits)[np.arange(len(codes)) % n_splits]
    return [
        Fold(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold))
        for fold in range(n_splits)
    ]


def cap_rows(table: Table, n_rows: int, seed: RandomState) -> Table:
    """Return a table of at most so many rows, with nearly its class shares and every class kept.

    Parameters
    ----------
    table : Table
        The table; it is returned itself if it is small enough.
    n_rows : int
        Most rows, at least one for each class.
    seed : int, generator or None
        See :func:`named_seed` for one that follows from names.

    Examples
    --------
    >>> import pandas as pd
    >>> from cocoloss.tables import make_table
    >>> frame = pd.DataFrame({"x": range(100), "y": ["a"] * 97 + ["b"] * 3})
    >>> cap_rows(make_table("toy", frame, "y"), 10, seed=0).class_counts.to_dict()
    {'a': 9, 'b': 1}
    """
    n_rows = check_integer(n_rows, "n_rows", minimum=1)
    if table.n_rows <= n_rows:
        return table
    codes = pd.factorize(table.y.to_numpy(), sort=True)[0]
    counts = np.bincount(codes)
    if n_rows < len(counts):
        raise CoCoError(
            f"{table.name} has {len(counts)} classes, so {n_rows} rows cannot hold one of each"
        )
    shares = _whole_shares(counts, n_rows)
    generator = as_generator(seed)
    kept = [
        generator.choice(np.flatnonzero(codes == c), size=share, replace=False)
        for c, share in enumerate(shares)
    ]
    return table.rows(np.sort(np.concatenate(kept)))


def _whole_shares(counts: NDArray[np.intp], n_rows: int) -> NDArray[np.intp]:
    """Return how many rows each class keeps: one, and of the others its share, largest rests up."""
    spare = (counts - 1) * (n_rows - len(counts)) / (counts.sum() - len(counts))
    shares: NDArray[np.intp] = 1 + np.floor(spare).astype(np.intp)
    rests = np.argsort(np.floor(spare) - spare, kind="stable")
    shares[rests[: n_rows - shares.sum()]] += 1
    return shares
