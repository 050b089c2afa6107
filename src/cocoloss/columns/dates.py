"""Dates as people write them: 2024-12-31, 2024/12/31, 31.12.2024, and 12/31/2024 where it is clear.

With dots the day comes first. Between slashes or dashes it may be the month: a column tells which
by a number above 12, or else the user. Years of two digits are read only if the user has told, for
they may stand first.
"""

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

DAY_FIRST = "%d/%m/%Y"
MONTH_FIRST = "%m/%d/%Y"
SHORT = {DAY_FIRST: "%d/%m/%y", MONTH_FIRST: "%m/%d/%y"}  # the same with years of two digits
EXAMPLES = {
    "": "'2024-01-31'",
    DAY_FIRST: "'31/01/2024'",
    MONTH_FIRST: "'01/31/2024'",
    SHORT[DAY_FIRST]: "'31/01/24'",
    SHORT[MONTH_FIRST]: "'01/31/24'",
}
FIRST_SHORT_YEAR = 69  # is 1969, and 68 is 2068, as in POSIX
MICROSECONDS_PER_DAY = 86_400_000_000

_YEAR_FIRST = re.compile(r"\d{4}([./-])\d{1,2}\1\d{1,2}([ T].*)?", re.ASCII)
_YEAR_LAST = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?:[ T]+(\d.*))?", re.ASCII)
_SHORT_YEAR = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{2})(?:[ T]+(\d.*))?", re.ASCII)


def parse_dates(values: NDArray[Any], form: str = "") -> NDArray[np.float64]:
    """Return days since 1970 in UTC, NaN where a value is no date.

    Parameters
    ----------
    values : ndarray of shape (n_distinct,)
        Dates, or text in ISO 8601 or with the year last.
    form : "", "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y" or "%m/%d/%y"
        What comes first between slashes or dashes; if empty, such text is no date. The latter two
        take years of two digits as well.

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


def find_order(values: NDArray[Any], *, day_first: bool | None = None) -> str | None:
    """Return the form in which all texts are dates, None if there is none.

    Parameters
    ----------
    values : ndarray of shape (n_distinct,)
        The texts.
    day_first : bool, optional
        What the user knows; it decides where no value does.

    Examples
    --------
    >>> import numpy as np
    >>> find_order(np.array(["1/12/2024", "1/13/2024"], dtype=object))
    '%m/%d/%Y'
    >>> unclear = np.array(["1/12/2024", "1/10/2024"], dtype=object)
    >>> find_order(unclear) is None
    True
    >>> find_order(unclear, day_first=True)
    '%d/%m/%Y'
    """
    first = second = 0  # the largest numbers at the two places
    short = False
    for value in values:
        text = value.strip() if isinstance(value, str) else ""
        match = _YEAR_LAST.fullmatch(text)
        if match is None and day_first is not None:
            match = _SHORT_YEAR.fullmatch(text)
            short = short or match is not None
        if match is None and not _YEAR_FIRST.fullmatch(text):
            return None
        if match and match[2] != ".":
            first, second = max(first, int(match[1])), max(second, int(match[3]))
    if 0 < first <= 12 and second <= 12:
        if day_first is None:
            return None
        form = DAY_FIRST if day_first else MONTH_FIRST
    else:
        form = "" if first == 0 else DAY_FIRST if first > 12 else MONTH_FIRST
    form = SHORT[form or DAY_FIRST] if short else form
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
    if match is None and form in SHORT.values():
        match = _SHORT_YEAR.fullmatch(text.strip())
    if match is None:
        return text
    first, separator, second, year, time = match.groups()
    if separator != "." and not form:
        return ""
    if len(year) == 2:
        year = f"{20 if int(year) < FIRST_SHORT_YEAR else 19}{year}"
    swapped = separator != "." and form in {MONTH_FIRST, SHORT[MONTH_FIRST]}
    day, month = (second, first) if swapped else (first, second)
    clock = f"T{time.zfill(5)}" if time else ""  # 9:30 is 09:30
    return f"{year}-{int(month):02}-{int(day):02}{clock}"
