"""Stratified folds and row caps, the same for the same seed."""

import hashlib
import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from cocoloss._checks import RandomState, as_generator, check_integer, listed
from cocoloss.columns.column_kinds import DATE, DURATION, NUMBER, ColumnOptions, find_kind
from cocoloss.columns.frames import Column
from cocoloss.columns.quantities import read_days, read_numbers, read_seconds
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
    """Split rows into folds so that each has its share of every class.

    The folds are those of scikit-learn's ``StratifiedKFold`` with that seed, as others have them,
    where it has any. The rows of a class differ by at most one between folds, and so do all rows. A
    class of fewer rows than folds is in some test parts only; no fold is without rows.

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

    Raises
    ------
    CoCoError
        If there are fewer rows than folds, or a class is missing.

    Examples
    --------
    >>> [fold.test.tolist() for fold in stratified_folds(list("aabbab"), 2, seed=0)]
    [[1, 3, 4], [0, 2, 5]]
    """
    n_splits = check_integer(n_splits, "n_splits", minimum=2)
    codes = pd.factorize(np.asarray(y), sort=True)[0]
    if (codes < 0).any():
        raise CoCoError("y has gaps; drop the rows whose class is not known")
    if n_splits > len(codes):
        raise CoCoError(f"{len(codes)} rows cannot be split into {n_splits} folds; ask for fewer")
    if np.bincount(codes).max() < n_splits:  # which scikit-learn refuses
        return _deal(codes, n_splits, as_generator(seed))
    from sklearn.model_selection import StratifiedKFold  # noqa: PLC0415 - slow to import

    if isinstance(seed, np.random.Generator):
        seed = int(seed.integers(2**32))
    splitter = StratifiedKFold(n_splits, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")  # what the docstring says
        return [Fold(train, test) for train, test in splitter.split(codes[:, None], codes)]


def _deal(codes: NDArray[np.intp], n_splits: int, generator: np.random.Generator) -> list[Fold]:
    """Deal rows in turn, from one class into the next: the rests do not pile up in one fold."""
    shuffled = generator.permutation(len(codes))
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    fold_of = np.empty(len(codes), dtype=np.intp)
    fold_of[by_class] = generator.permutation(n_splits)[np.arange(len(codes)) % n_splits]
    return [
        Fold(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold))
        for fold in range(n_splits)
    ]


def grouped_folds(y: Any, groups: Any, n_splits: int, seed: RandomState) -> list[Fold]:
    """Split rows into folds so that rows of one group are in one fold, and classes in their share.

    The folds are those of scikit-learn's ``StratifiedGroupKFold``, shuffled.

    Parameters
    ----------
    y : array-like of shape (n,)
        The classes.
    groups : array-like of shape (n,)
        Such as patients: whoever is tested was not learnt from.
    n_splits : int
        Number of folds, at least two and at most as many as there are groups.
    seed : int, generator or None
        See :func:`named_seed` for one that follows from names.

    Examples
    --------
    >>> folds = grouped_folds(list("abab"), ["one", "one", "two", "two"], 2, seed=0)
    >>> sorted(fold.test.tolist() for fold in folds)
    [[0, 1], [2, 3]]
    """
    n_splits = check_integer(n_splits, "n_splits", minimum=2)
    codes = _known(groups, "group")
    n_groups = int(codes.max(initial=-1)) + 1
    if n_splits > n_groups:
        raise CoCoError(
            f"{n_groups} groups cannot be split into {n_splits} folds; ask for fewer folds"
        )
    from sklearn.model_selection import StratifiedGroupKFold  # noqa: PLC0415 - slow to import

    if isinstance(seed, np.random.Generator):
        seed = int(seed.integers(2**32))
    classes = pd.factorize(np.asarray(y), sort=True)[0]
    splitter = StratifiedGroupKFold(n_splits, shuffle=True, random_state=seed)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The least populated class")
            found = list(splitter.split(classes[:, None], classes, codes))
    except ValueError:  # every class has fewer rows than there are folds: shares do not matter
        found = list(splitter.split(classes[:, None], np.zeros(len(codes), dtype=int), codes))
    return [Fold(train, test) for train, test in found]


def forward_folds(times: Any, n_splits: int) -> list[Fold]:
    """Split rows by time: each fold is learnt from all that was before it.

    Rows are cut into ``n_splits + 1`` parts of nearly equal size, in the order of time; rows of
    one time are in one part. Each part but the first is tested once.

    Parameters
    ----------
    times : array-like of shape (n,)
        Numbers or dates, without gaps.
    n_splits : int
        Number of folds.

    Examples
    --------
    >>> [(f.train.tolist(), f.test.tolist()) for f in forward_folds([5, 1, 2, 3, 3, 4], 2)]
    [([1, 2], [3, 4]), ([1, 2, 3, 4], [0, 5])]
    """
    n_splits = check_integer(n_splits, "n_splits", minimum=1)
    codes = _known(times, "time")
    starts = np.cumsum(np.bincount(codes))  # rows up to and with each time
    wanted = len(codes) * np.arange(1, n_splits + 1) / (n_splits + 1)
    # The cut nearest to each that is wanted; none of them the end, which would leave no test.
    cuts = starts[np.abs(starts[:-1] - wanted[:, None]).argmin(axis=1)] if len(starts) > 1 else []
    if len(np.unique(cuts)) < n_splits:
        raise CoCoError(
            f"{len(starts)} different times in {len(codes)} rows cannot be cut into {n_splits + 1} "
            f"parts; ask for fewer folds"
        )
    parts = np.split(np.argsort(codes, kind="stable"), cuts)
    return [
        Fold(np.sort(np.concatenate(parts[: k + 1])), np.sort(parts[k + 1]))
        for k in range(n_splits)
    ]


def times_of(column: Any) -> NDArray[np.float64]:
    """Return a column of numbers, dates or durations, perhaps written as text, as numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> times_of(pd.Series(["1970-01-03", "1970-01-01"], name="day")).tolist()
    [2.0, 0.0]
    """
    known = Column(str(column.name), column)
    found = find_kind(known, ColumnOptions())
    if found.kind == NUMBER:
        return read_numbers(known, found.form, lenient=found.lenient)
    if found.kind == DATE:
        return read_days(known, found.form)
    if found.kind == DURATION:
        return read_seconds(known)
    raise CoCoError(
        f"column {column.name!r} holds neither numbers nor dates that are written alike, but "
        f"{listed(known.distinct.values[:3])}; rows cannot be put in the order of time by it"
    )


def given_folds(numbers: Any) -> list[Fold]:
    """Split rows as given: each value is a fold; a gap or -1 is learnt from in all.

    Parameters
    ----------
    numbers : array-like of shape (n,)
        The fold of each row, numbers or names; folds are in the order of these.

    Examples
    --------
    >>> [(f.train.tolist(), f.test.tolist()) for f in given_folds([1, 0, -1, 1])]
    [([0, 2, 3], [1]), ([1, 2], [0, 3])]
    """
    values = pd.Series(np.asarray(numbers, dtype=object)).astype(object)
    values = values.mask(values.map(lambda v: str(v).strip() in {"-1", "-1.0", ""}).astype(bool))
    as_numbers = pd.to_numeric(values, errors="coerce")
    codes, found = pd.factorize(
        as_numbers if as_numbers.notna().equals(values.notna()) else values.map(str, "ignore"),
        sort=True,
    )
    if len(found) < 1 or (len(found) == 1 and (codes == 0).all()):
        raise CoCoError(
            f"given folds need rows to learn from and rows to test, but all {len(codes)} rows "
            f"{'are in one fold' if len(found) else 'have none'}"
        )
    return [
        Fold(np.flatnonzero(codes != fold), np.flatnonzero(codes == fold))
        for fold in range(len(found))
    ]


def _known(values: Any, what: str) -> NDArray[np.intp]:
    """Return the place of each value in their order; gaps are refused."""
    codes: NDArray[np.intp] = pd.factorize(pd.Series(values), sort=True)[0]
    if (codes < 0).any():
        raise CoCoError(
            f"{int((codes < 0).sum())} of {len(codes)} rows have no {what}, the first of them row "
            f"{int((codes < 0).argmax()) + 1}; fill it in, or drop such rows"
        )
    return codes


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
    if types.is_float_dtype(table.y.dtype):  # numbers, which classes never are
        chosen = as_generator(seed).choice(table.n_rows, size=n_rows, replace=False)
        return table.rows(np.sort(chosen))
    codes = pd.factorize(table.y.to_numpy(), sort=True)[0]
    counts = np.bincount(codes)
    if n_rows < len(counts):
        raise CoCoError(
            f"{table.name} has {len(counts)} classes, so {n_rows} rows cannot hold one of each"
        )
    shares = _rounded_shares(counts, n_rows)
    generator = as_generator(seed)
    kept = [
        generator.choice(np.flatnonzero(codes == c), size=share, replace=False)
        for c, share in enumerate(shares)
    ]
    return table.rows(np.sort(np.concatenate(kept)))


def _rounded_shares(counts: NDArray[np.intp], n_rows: int) -> NDArray[np.intp]:
    """Return how many rows each class keeps: one, and of the others its share, largest rests up."""
    spare = (counts - 1) * (n_rows - len(counts)) / (counts.sum() - len(counts))
    shares: NDArray[np.intp] = 1 + np.floor(spare).astype(np.intp)
    rests = np.argsort(np.floor(spare) - spare, kind="stable")
    shares[rests[: n_rows - shares.sum()]] += 1
    return shares
