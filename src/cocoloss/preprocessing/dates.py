"""Dates as people write them: 2024-12-31, 2024/12/31, 31.12.2024, and 12/31/2024 where it is clear.

With dots the day comes first. Between slashes or dashes it may be the month: a column tells which
by a number above 12.
"""

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

DAY_FIRST = "%d/%m/%Y"
MONTH_FIRST = "%m/%d/%Y"
EXAMPLES = {"": "'2024-01-31'", DAY_FIRST: "'31/01/2024'", MONTH_FIRST: "'01/31/2024'"}
MICROSECONDS_PER_DAY = 86_400_000_000

_YEAR_FIRST = re.compile(r"\d{4}([./-])\d{1,2}\1\d{1,2}([ T].*)?", re.ASCII)
_YEAR_LAST = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?:[ T]+(\d.*))?", re.ASCII)
_SHORT_YEAR = re.compile(r"\d{1,2}([./-])\d{1,2}\1\d{2}([ T].*)?", re.ASCII)


def parse_dates(values: NDArray[Any], form: str = "") -> NDArray[np.float64]:
    """Return days since 1970 in UTC, NaN where a value is no date.

    Parameters
    ----------
    values : ndarray of shape (n_distinct,)
        Dates, or text in ISO 8601 or with the year last.
    form : "", "%d/%m/%Y" or "%m/%d/%Y"
        What comes first between slashes or dashes; if empty, such text is no date.

    Examples
    --------
    >>> import numpy as np
    >>> parse_dates(np.array(["1970-01-31", "31.1.1970", "1/31/1970"], dtype=object), MONTH_FIRST)
    array([30., 30., 30.])
    """
    is_text = np.array([isinstance(value, str) for value in values], dtype=bool)
    is_date = np.array([hasattr(value, "toordinal") for value in values], dtype=bool)
    result = np.full(len(values), np.nan)
    if is_text.any():
        result[is_text] = _parse([_year_first(text, form) for text in values[is_text]], "ISO8601")
    if is_date.any():
        result[is_date] = _parse(values[is_date], None)
    return result


def find_order(values: NDArray[Any]) -> str | None:
    """Return the form in which all texts are dates, None if there is none.

    Examples
    --------
    >>> import numpy as np
    >>> find_order(np.array(["1/12/2024", "1/13/2024"], dtype=object))
    '%m/%d/%Y'
    >>> find_order(np.array(["1/12/2024", "1/10/2024"], dtype=object)) is None
    True
    """
    first = second = 0  # the largest numbers at the two places
    for value in values:
        text = value.strip() if isinstance(value, str) else ""
        match = _YEAR_LAST.fullmatch(text)
        if match is None and not _YEAR_FIRST.fullmatch(text):
            return None
        if match and match[2] != ".":
            first, second = max(first, int(match[1])), max(second, int(match[3]))
    if 0 < first <= 12 and second <= 12:
        return None
    form = "" if first == 0 else DAY_FIRST if first > 12 else MONTH_FIRST
    return None if np.isnan(parse_dates(values, form)).any() else form


def look_like_dates(values: NDArray[Any]) -> bool:
    """Return whether all values have the look of dates, whether or not they can be read."""
    looks = (_YEAR_FIRST, _YEAR_LAST, _SHORT_YEAR)
    return all(
        isinstance(value, str) and any(look.fullmatch(value.strip()) for look in looks)
        for value in values
    )


def days_of_stamps(stamps: Any) -> NDArray[np.float64]:
    """Return days since 1970 in UTC of a series of dates, NaN in a gap."""
    if getattr(stamps.dt, "tz", None) is not None:
        stamps = stamps.dt.tz_convert("UTC").dt.tz_localize(None)
    values = stamps.to_numpy(dtype="datetime64[us]")
    return np.where(np.isnat(values), np.nan, values.astype(np.int64) / MICROSECONDS_PER_DAY)


def _parse(values: Any, form: str | None) -> NDArray[np.float64]:
    series = pd.Series(values, dtype=object)
    return days_of_stamps(pd.to_datetime(series, utc=True, errors="coerce", format=form))


def _year_first(text: str, form: str) -> str:
    """Return a date in ISO 8601 if its year is last, else the text as it is."""
    match = _YEAR_LAST.fullmatch(text.strip())
    if match is None:
        return text
    first, separator, second, year, time = match.groups()
    if separator != "." and not form:
        return ""
    day, month = (second, first) if separator != "." and form == MONTH_FIRST else (first, second)
    clock = f"T{time.zfill(5)}" if time else ""  # 9:30 is 09:30
    return f"{year}-{int(month):02}-{int(day):02}{clock}"
