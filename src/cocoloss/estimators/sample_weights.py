"""Weights are numbers of copies: a row that weighs two is in the table twice.

So whatever counts rows, from the preprocessing to the last head, sees the same rows whether they
came with weights or one by one; and it sees them in an order that only their contents decide, be
they in pandas, polars or Arrow.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from cocoloss.columns.column_kinds import (
    BOOLEAN,
    DATE,
    DURATION,
    KIND_OF_OBJECTS,
    NUMBER,
    kind_of_dtype,
)
from cocoloss.columns.frames import Table, is_polars, read_table

# More copies than this, and than ten of each row, are thinned out to so many that weigh more: who
# gives weights of hundreds wants ratios, not an epoch of hundreds of tables.
MOST_COPIES = 10_000
MOST_OF_EACH = 10
TABLE_OF_COUNTS = 50  # fewer different rows than this are counts of outcomes, which are evidence
WHOLE = 1e-9  # how far a weight may be from a whole number, relative to it


class Copies(NamedTuple):
    """The rows of a table, each as often as it counts."""

    rows: NDArray[np.int64]  # (N,), positions in the table that was given
    weights: NDArray[np.float64]  # (N,), ones unless the weights are no numbers of copies
    groups: NDArray[np.int64]  # (N,), 0, 1, ...: equal rows of one class have the same number


def make_copies(
    X: Any,
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    reader: str = "cocoloss",
    *,
    in_lowest_terms: bool = False,
) -> Copies:
    """Return each row as many times as it weighs, equal ones side by side.

    Whole weights are numbers of copies. Others are relative: they are scaled to a mean of one, and
    a row becomes the nearest whole number of rows, at least one, that share its weight.

    Parameters
    ----------
    X : array or DataFrame of n rows
    labels : array of shape (n,)
        Rows of different classes are different rows.
    weights : array of shape (n,)
        Not negative, not all zero. Rows of weight zero are no rows.
    reader : str
        Who wants to know, for the messages.
    in_lowest_terms : bool
        Whether these are all rows that there will be, so that a table in which every row occurs
        three times is the table in which it occurs once, unless it is a table of counts.

    Examples
    --------
    >>> X, y = np.array([[1.0], [2.0], [3.0]]), np.array([0, 1, 1])
    >>> sorted(make_copies(X, y, np.array([2.0, 0.0, 1.0])).rows.tolist())
    [0, 0, 2]
    >>> copies = make_copies(X, y, np.array([0.1, 0.1, 0.4]))
    >>> [(int(i), round(float(w), 6)) for i, w in sorted(zip(copies.rows, copies.weights))]
    [(0, 0.5), (1, 0.5), (2, 1.0), (2, 1.0)]
    """
    codes = row_codes(X, reader) * np.uint64(0x9E3779B97F4A7C15) ^ pd.util.hash_array(labels)
    present = np.flatnonzero(weights > 0)
    order = present[np.lexsort((weights[present], codes[present]))]
    groups = np.cumsum(np.r_[False, codes[order][1:] != codes[order][:-1]])
    masses = weights[order]
    whole = np.rint(masses)
    if np.all(np.abs(masses - whole) <= WHOLE * masses):
        masses = whole
        if in_lowest_terms:
            order, groups, masses = _in_lowest_terms(order, groups, masses)
        most = max(len(order), MOST_COPIES, MOST_OF_EACH * (groups[-1] + 1))
        times = masses * min(1.0, most / masses.sum())
    else:
        masses = masses / masses.mean()
        times = masses
    times = np.maximum(1, np.rint(times)).astype(np.int64)
    return Copies(
        np.repeat(order, times), np.repeat(masses / times, times), np.repeat(groups, times)
    )


def _in_lowest_terms(
    order: NDArray[np.int64], groups: NDArray[np.int64], masses: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Divide the masses of all groups by what divides each; one row stands for a group then."""
    totals = np.bincount(groups, weights=masses)
    if len(totals) < TABLE_OF_COUNTS or totals.max() >= 2**53:  # where floats skip numbers
        return order, groups, masses
    divisor = np.gcd.reduce(totals.astype(np.int64))
    if divisor == 1:
        return order, groups, masses
    different, first = np.unique(groups, return_index=True)
    return order[first], different, totals / divisor


def row_codes(X: Any, reader: str) -> NDArray[np.uint64]:
    """Return 64 bits for each row, which depend on what it says and not on how it is stored.

    Parameters
    ----------
    X : array or DataFrame of n rows
    reader : str
        Who wants to know, for the messages.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"sold": [True, False]})
    >>> bool((row_codes(table, "me") == row_codes(table.astype(object), "me")).all())
    True
    """
    if isinstance(X, np.ndarray) and X.dtype.kind in "iufb":
        columns = list(X.reshape(len(X), -1).T)
    elif isinstance(X, pd.DataFrame) or is_polars(X) or np.ndim(X) == 2:
        columns = _columns(read_table(X, reader))
    else:  # rows of text, which only a transformer of the user's own can read
        columns = [pd.Series(list(X), dtype=object)]
    codes = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        codes = codes * np.uint64(0x100000001B3) ^ _column_codes(column)
        codes ^= codes >> np.uint64(29)
    return codes


def _columns(table: Table) -> list[Any]:
    if table.block is not None:
        return list(table.block.T)
    return [column.series for column in table.columns]


def _column_codes(column: Any) -> NDArray[np.uint64]:
    numbers = _numbers(column) if isinstance(column, pd.Series) else column
    if numbers is None:
        return _object_codes(column)
    return np.asarray(pd.util.hash_array(numbers.astype(np.float64) + 0.0))  # no -0.0


def _numbers(column: Any) -> NDArray[Any] | None:
    """Return numbers and truths as they are, times in microseconds; None for everything else."""
    kind = _kind(column)
    try:
        if kind in (NUMBER, BOOLEAN):
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        if kind == DATE:
            if isinstance(column.dtype, pd.PeriodDtype):
                column = column.dt.to_timestamp()
            column = pd.to_datetime(column, utc=True).dt.tz_localize(None)
            return np.asarray(column.to_numpy(dtype="M8[us]").view(np.int64))
        if kind == DURATION:
            return np.asarray(pd.to_timedelta(column).to_numpy(dtype="m8[us]").view(np.int64))
    except (TypeError, ValueError, OverflowError):  # a day in the year 40000, for one
        pass
    return None


def _kind(column: Any) -> str | None:
    kind = kind_of_dtype(column.dtype)
    if kind is None:
        found = types.infer_dtype(column.astype(object), skipna=True)
        kind = None if found == "empty" else KIND_OF_OBJECTS.get(found)
    return kind


def _object_codes(column: Any) -> NDArray[np.uint64]:
    """Return codes of values of any kind, by the text that stands for each."""
    try:
        codes, values = pd.factorize(column.astype(object))
    except TypeError:  # not hashable; whether it may be in a table is not decided here
        codes, values = pd.factorize(column.astype(object).map(repr))
    texts = np.array([*(repr(value) for value in values), ""], dtype=object)  # the last is for gaps
    hashed: NDArray[np.uint64] = pd.util.hash_array(texts)[codes]
    return hashed
