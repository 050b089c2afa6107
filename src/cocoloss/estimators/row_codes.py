"""A number for each row of a table, which depends on what it says and not on how it is stored.

So a fit is the same from pandas, polars or Arrow, whatever order the rows come in.
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from cocoloss.columns.frames import Table, is_polars, read_table

# What pandas calls the contents of a column of objects -> how they are read.
NUMBER, TIME, DURATION, OTHER = "number", "time", "duration", "other"
CONTENTS = {
    **dict.fromkeys(("boolean", "integer", "floating", "mixed-integer-float", "decimal"), NUMBER),
    **dict.fromkeys(("datetime", "datetime64", "date"), TIME),
    **dict.fromkeys(("timedelta", "timedelta64"), DURATION),
}


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


def _object_codes(column: Any) -> NDArray[np.uint64]:
    """Return codes of values of any kind, by the text that stands for each."""
    try:
        codes, values = pd.factorize(column.astype(object))
    except TypeError:  # not hashable; whether it may be in a table is not decided here
        codes, values = pd.factorize(column.astype(object).map(repr))
    texts = np.array([*(repr(value) for value in values), ""], dtype=object)  # the last is for gaps
    hashed: NDArray[np.uint64] = pd.util.hash_array(texts)[codes]
    return hashed
