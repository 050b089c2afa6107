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

from cocoloss.columns.frames import is_polars, read_table

# More copies than this, and than ten of each row, are thinned out to so many that weigh more: who
# gives weights of hundreds wants ratios, not an epoch of hundreds of tables.
MOST_COPIES = 10_000
MOST_OF_EACH = 10
TABLE_OF_COUNTS = 50  # fewer different rows than this are counts of outcomes, which are evidence
WHOLE = 1e-9  # how far a weight may be from a whole number, relative to it
# What pandas calls the contents of a column of objects -> how they are read.
NUMBER, TIME, DURATION, OTHER = "number", "time", "duration", "other"
CONTENTS = {
    **dict.fromkeys(("boolean", "integer", "floating", "mixed-integer-float", "decimal"), NUMBER),
    **dict.fromkeys(("datetime", "datetime64", "date"), TIME),
    **dict.fromkeys(("timedelta", "timedelta64"), DURATION),
}


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
    a row becomes the nearest whole number of rows, at least one, that share its weight. Rows of
    different classes are different rows; rows of weight zero are no rows.

    ``in_lowest_terms`` says that these are all rows that there will be, so that a table in which
    every row occurs three times is the table in which it occurs once, unless it is one of counts.
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
    """Return 64 bits for each row, which depend on what it says and not on how it is stored."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "iufb":
        columns = list(X.reshape(len(X), -1).T)
    elif isinstance(X, pd.DataFrame) or is_polars(X) or np.ndim(X) == 2:
        table = read_table(X, reader)
        block = table.block
        columns = [c.series for c in table.columns] if block is None else list(block.T)
    else:  # rows of text, which only a transformer of the user's own can read
        columns = [pd.Series(list(X), dtype=object)]
    codes = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        codes = codes * np.uint64(0x100000001B3) ^ _column_codes(column)
        codes ^= codes >> np.uint64(29)
    return codes


def _column_codes(column: Any) -> NDArray[np.uint64]:
    numbers = _numbers(column) if isinstance(column, pd.Series) else column
    if numbers is not None:
        return np.asarray(pd.util.hash_array(numbers.astype(np.float64) + 0.0))  # no -0.0
    try:  # values of any kind, by the text that stands for each
        codes, values = pd.factorize(column.astype(object))
    except TypeError:  # not hashable; whether it may be in a table is not decided here
        codes, values = pd.factorize(column.astype(object).map(repr))
    texts = np.array([*(repr(value) for value in values), ""], dtype=object)  # the last is for gaps
    return np.asarray(pd.util.hash_array(texts)[codes])


def _numbers(column: Any) -> NDArray[Any] | None:
    """Return numbers and truths as they are, times in microseconds; None for everything else."""
    kind = _kind(column)
    try:
        if kind == NUMBER:
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        if kind == TIME:
            if isinstance(column.dtype, pd.PeriodDtype):
                column = column.dt.to_timestamp()
            column = pd.to_datetime(column, utc=True).dt.tz_localize(None)
            return np.asarray(column.to_numpy(dtype="M8[us]").view(np.int64))
        if kind == DURATION:
            return np.asarray(pd.to_timedelta(column).to_numpy(dtype="m8[us]").view(np.int64))
    except (TypeError, ValueError, OverflowError):  # a day in the year 40000, for one
        pass
    return None


def _kind(column: Any) -> str:
    dtype = column.dtype
    other = pd.CategoricalDtype | pd.IntervalDtype | pd.StringDtype
    if isinstance(dtype, other) or types.is_complex_dtype(dtype):
        return OTHER
    if types.is_bool_dtype(dtype) or types.is_numeric_dtype(dtype):
        return NUMBER
    if types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
        return TIME
    if types.is_timedelta64_dtype(dtype):
        return DURATION
    return CONTENTS.get(types.infer_dtype(column.astype(object), skipna=True), OTHER)
