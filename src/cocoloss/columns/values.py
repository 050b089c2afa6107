"""What stands in a column: numbers, days, seconds, truth values or category names.

Each reader takes a ``pandas.Series`` of any dtype and says what cannot be read, and where.
"""

from collections.abc import Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from cocoloss.columns.dates import EXAMPLES, days_of_stamps, parse_dates
from cocoloss.columns.numerals import are_gap_marks, parse_numbers
from cocoloss.exceptions import CoCoError

MISSING = -1  # a code, as in pandas
UNSEEN = -2  # a code: a category that training did not have
BLANKS = frozenset({"", "nan", "<na>"})  # what a gap becomes when it is written as text
CONTAINERS = (dict, list, tuple, set, frozenset, np.ndarray, pd.Series)
BUT_NOW = ", but now holds"
TRUTHS = {"false": 0, "0": 0, "true": 1, "1": 1}


class Distinct(NamedTuple):
    """The distinct values of a column, and which of them each row has."""

    codes: NDArray[np.intp]  # (n_rows,), MISSING in a gap
    values: NDArray[Any]  # (n_distinct,), of dtype object

    @property
    def counts(self) -> NDArray[np.intp]:
        """In how many rows each value stands, (n_distinct,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.values))


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


def parse_durations(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return seconds, NaN where a value is neither a duration nor text that means one."""
    readable = [v if isinstance(v, str) or hasattr(v, "total_seconds") else None for v in values]
    spans = pd.to_timedelta(pd.Series(readable, dtype=object), errors="coerce")
    return np.asarray(spans.dt.total_seconds(), dtype=np.float64)


def numbers(
    series: Any, name: str, form: str = "", *, lenient: bool = False
) -> NDArray[np.float64]:
    """Return a column of numbers as float64, NaN in a gap.

    Parameters
    ----------
    series : pandas.Series
        The column.
    name : str
        Its name, for the errors.
    form : str
        How its text is written; see :mod:`cocoloss.columns.numerals`. Empty is plainly.
    lenient : bool
        Whether text that is no number is a gap, and not an error.
    """
    if types.is_complex_dtype(series.dtype):
        raise complex_error(name)
    if types.is_numeric_dtype(series.dtype) and not isinstance(series.dtype, pd.CategoricalDtype):
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
    parse = partial(parse_numbers, form=form)
    # The form may be that of the new table, see TablePreprocessor.expect_decimal.
    now = f" and is to hold numbers (written as {form}) now, but holds" if form else BUT_NOW
    return _read(series, name, parse, "numbers", now, lenient=lenient)


def days(series: Any, name: str, form: str = "") -> NDArray[np.float64]:
    """Return a column of dates as days since 1970 (UTC), NaN in a gap.

    Text is ISO 8601, has dots (31.12.2024), or the order of day and month that the form says.
    """
    if isinstance(series.dtype, pd.PeriodDtype):
        series = series.dt.to_timestamp()
    is_arrow = isinstance(series.dtype, pd.ArrowDtype)  # whose dates have no time zone to ask for
    if types.is_datetime64_any_dtype(series.dtype) and not is_arrow:
        return days_of_stamps(series)
    parse = partial(parse_dates, form=form)
    return _read(series, name, parse, f"dates (or text such as {EXAMPLES[form]})")


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
    """Return the name of each category, without the white space around it.

    1, 1.0 and '1' are one, as gaps turn integers to floats.

    Examples
    --------
    >>> import numpy as np
    >>> category_keys(np.array([1, 1.0, "1", 2.5, True, "red "], dtype=object))
    ['1', '1', '1', '2.5', 'True', 'red']
    """
    return [_category_key(value) for value in values]


def _category_key(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").strip()
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real) and float(value).is_integer():
        return str(int(float(value)))
    return str(value)


def _read(
    series: Any, name: str, parse: Any, what: str, now: str = BUT_NOW, *, lenient: bool = False
) -> NDArray[np.float64]:
    codes, values = distinct(series, name)
    parsed = parse(values)
    unread = np.isnan(parsed)
    if unread.any() and not lenient:
        _complain(values, unread & ~are_gap_marks(values), name, what, now)
    return np.asarray(np.append(parsed, np.nan)[codes], dtype=np.float64)


def _complain(
    values: NDArray[Any], bad: NDArray[np.bool_], name: str, what: str, now: str = BUT_NOW
) -> None:
    if bad.any():
        raise CoCoError(
            f"column {name!r} held {what} in training{now} {values[np.argmax(bad)]!r}; "
            f"convert it, or fit again"
        )


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
