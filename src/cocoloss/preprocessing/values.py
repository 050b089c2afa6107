"""What stands in a column: numbers, days, seconds, truth values or category names.

Each reader takes a ``pandas.Series`` of any dtype and says what cannot be read, and where.
"""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from cocoloss.exceptions import CoCoError

MISSING = -1  # a code, as in pandas
UNSEEN = -2  # a code: a category that training did not have
BLANKS = frozenset({"", "nan", "<na>"})  # what a gap becomes when it is written as text
CONTAINERS = (dict, list, tuple, set, frozenset, np.ndarray, pd.Series)
TRUTHS = {"false": 0, "0": 0, "true": 1, "1": 1}
MICROSECONDS_PER_DAY = 86_400_000_000


class Distinct(NamedTuple):
    """The distinct values of a column, and which of them each row has."""

    codes: NDArray[np.intp]  # (n_rows,), MISSING in a gap
    values: NDArray[Any]  # (n_distinct,), of dtype object


def distinct(series: Any, name: str) -> Distinct:
    """Return the distinct values of a column; blank text counts as a gap.

    Raises
    ------
    CoCoError
        If a value is a complex number.
    TypeError
        If a value is a dict, a list or another container.
    """
    if isinstance(series.dtype, pd.CategoricalDtype):
        codes, values = series.cat.codes.to_numpy(), series.cat.categories
    else:
        try:
            codes, values = pd.factorize(series)
        except TypeError as error:  # not hashable
            culprit = next((v for v in series if isinstance(v, CONTAINERS)), None)
            raise _container_error(name, culprit) from error
    values = np.asarray(values.astype(object), dtype=object)
    for value in values:
        if isinstance(value, CONTAINERS):
            raise _container_error(name, value)
        if isinstance(value, complex):
            raise complex_error(name)
    blank = np.array([isinstance(v, str) and v.strip().lower() in BLANKS for v in values], bool)
    position = np.where(blank, MISSING, np.cumsum(~blank) - 1)
    position = np.append(position, MISSING)  # so that code -1 finds itself at the end
    return Distinct(position[codes.astype(np.intp)], values[~blank])


def parse_numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return each value as a number, NaN where it is none."""
    try:
        parsed = pd.to_numeric(pd.Series(values, dtype=object), errors="coerce")
        return np.asarray(parsed.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
    except (OverflowError, TypeError, ValueError):  # such as 10**400, or a date among numbers
        return np.array([_parse_number(value) for value in values], dtype=np.float64)


def _parse_number(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    except (TypeError, ValueError):
        return float("nan")


def parse_dates(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return days since 1970 in UTC, NaN where a value is no date; text must be ISO 8601."""
    as_text = np.array([isinstance(value, str) for value in values], dtype=bool)
    is_date = np.array([hasattr(value, "toordinal") for value in values], dtype=bool)
    result = np.full(len(values), np.nan)
    for chosen, form in ((as_text, "ISO8601"), (is_date & ~as_text, None)):
        if chosen.any():
            stamps = pd.to_datetime(
                pd.Series(values[chosen], dtype=object), utc=True, errors="coerce", format=form
            )
            result[chosen] = _days_of_stamps(stamps)
    return result


def parse_durations(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return seconds, NaN where a value is neither a duration nor text that means one."""
    readable = [v if isinstance(v, str) or hasattr(v, "total_seconds") else None for v in values]
    spans = pd.to_timedelta(pd.Series(readable, dtype=object), errors="coerce")
    return np.asarray(spans.dt.total_seconds(), dtype=np.float64)


def numbers(series: Any, name: str) -> NDArray[np.float64]:
    """Return a column of numbers as float64, NaN in a gap."""
    if types.is_complex_dtype(series.dtype):
        raise complex_error(name)
    if types.is_numeric_dtype(series.dtype) and not isinstance(series.dtype, pd.CategoricalDtype):
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
    return _read(series, name, parse_numbers, "numbers")


def days(series: Any, name: str) -> NDArray[np.float64]:
    """Return a column of dates as days since 1970 (UTC), NaN in a gap."""
    if isinstance(series.dtype, pd.PeriodDtype):
        series = series.dt.to_timestamp()
    is_arrow = isinstance(series.dtype, pd.ArrowDtype)  # whose dates have no time zone to ask for
    if types.is_datetime64_any_dtype(series.dtype) and not is_arrow:
        return _days_of_stamps(series)
    return _read(series, name, parse_dates, "dates (or text such as '2024-01-31')")


def seconds(series: Any, name: str) -> NDArray[np.float64]:
    """Return a column of durations in seconds, NaN in a gap."""
    if types.is_timedelta64_dtype(series.dtype):
        return np.asarray(series.dt.total_seconds(), dtype=np.float64)
    return _read(series, name, parse_durations, "durations")


def truth_codes(series: Any, name: str) -> NDArray[np.intp]:
    """Return 0 and 1 for false and true, MISSING in a gap."""
    codes, values = distinct(series, name)
    truths = [TRUTHS.get(key.lower(), UNSEEN) for key in category_keys(values)]
    _complain(values, np.array(truths) == UNSEEN, name, "true and false (or 1 and 0)")
    return np.array([*truths, MISSING], dtype=np.intp)[codes]


def category_codes(series: Any, name: str, categories: Sequence[str]) -> NDArray[np.intp]:
    """Return the position of each row's category, MISSING in a gap, UNSEEN where it is new."""
    codes, values = distinct(series, name)
    position = {key: index for index, key in enumerate(categories)}
    found = [position.get(key, UNSEEN) for key in category_keys(values)]
    return np.array([*found, MISSING], dtype=np.intp)[codes]


def category_keys(values: NDArray[Any]) -> list[str]:
    """Return the name of each category; 1, 1.0 and '1' are one, as gaps turn integers to floats.

    Examples
    --------
    >>> import numpy as np
    >>> category_keys(np.array([1, 1.0, "1", 2.5, True, "red"], dtype=object))
    ['1', '1', '1', '2.5', 'True', 'red']
    """
    return [_category_key(value) for value in values]


def _category_key(value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real) and float(value).is_integer():
        return str(int(float(value)))
    return str(value)


def _read(series: Any, name: str, parse: Any, what: str) -> NDArray[np.float64]:
    codes, values = distinct(series, name)
    parsed = parse(values)
    _complain(values, np.isnan(parsed), name, what)
    return np.asarray(np.append(parsed, np.nan)[codes], dtype=np.float64)


def _complain(values: NDArray[Any], bad: NDArray[np.bool_], name: str, what: str) -> None:
    if bad.any():
        raise CoCoError(
            f"column {name!r} held {what} in training, but now holds "
            f"{values[np.argmax(bad)]!r}; convert it, or fit again"
        )


def _days_of_stamps(stamps: Any) -> NDArray[np.float64]:
    if getattr(stamps.dt, "tz", None) is not None:
        stamps = stamps.dt.tz_convert("UTC").dt.tz_localize(None)
    values = stamps.to_numpy(dtype="datetime64[us]")
    return np.where(np.isnat(values), np.nan, values.astype(np.int64) / MICROSECONDS_PER_DAY)


def complex_error(name: str) -> CoCoError:
    """Say that a column holds complex numbers, in the words that scikit-learn has for them."""
    return CoCoError(
        f"Complex data not supported: column {name!r}; pass the real and the imaginary part "
        f"as two columns"
    )


def _container_error(name: str, value: Any) -> TypeError:
    return TypeError(
        f"argument must be a string or a number, not {type(value).__name__!r}: "
        f"column {name!r} holds {value!r}; give each part a column of its own"
    )
