"""Columns of dates and durations: read as days and seconds, and dates as points on circles.

Dates as people write them are 2024-12-31, 2024/12/31, 31.12.2024, and 12/31/2024 where it is clear.
With dots the day comes first. Between slashes or dashes it may be the month: a column shows which
by a number above 12, or else the user says.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from cocoloss.columns.frames import Column

Days = NDArray[np.float64]  # since 1970-01-01, a Thursday

DAY_FIRST = "%d/%m/%Y"
MONTH_FIRST = "%m/%d/%Y"
EXAMPLES = {"": "'2024-01-31'", DAY_FIRST: "'31/01/2024'", MONTH_FIRST: "'01/31/2024'"}
MICROSECONDS_PER_DAY = 86_400_000_000

_YEAR_FIRST = re.compile(r"\d{4}([./-])\d{1,2}\1\d{1,2}([ T].*)?", re.ASCII)
_YEAR_LAST = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?:[ T]+(\d.*))?", re.ASCII)
_SHORT_YEAR = re.compile(r"\d{1,2}([./-])\d{1,2}\1\d{2}([ T]+\d.*)?", re.ASCII)


def read_days(column: Column, form: str = "") -> Days:
    """Return a column of dates as days since 1970 (UTC), NaN in a gap.

    Text is ISO 8601, has dots (31.12.2024), or the order of day and month that the form says.
    """
    series = column.series
    if isinstance(series.dtype, pd.PeriodDtype):
        series = series.dt.to_timestamp()
    is_arrow = isinstance(series.dtype, pd.ArrowDtype)  # whose dates have no time zone to ask for
    if types.is_datetime64_any_dtype(series.dtype) and not is_arrow:
        return _days_of(series)
    return column.parse(
        partial(parse_dates, form=form), f"dates (or text such as {EXAMPLES[form]})"
    )


def read_seconds(column: Column) -> NDArray[np.float64]:
    """Return a column of durations in seconds, NaN in a gap."""
    if types.is_timedelta64_dtype(column.series.dtype):
        return np.asarray(column.series.dt.total_seconds(), dtype=np.float64)
    return column.parse(_parse_durations, "durations")


def parse_dates(values: NDArray[Any], form: str = "") -> Days:
    """Return days since 1970 in UTC of dates and of text, NaN where a value is no date.

    The form says what comes first between slashes or dashes; if empty, such text is no date.
    """
    is_text = np.array([isinstance(value, str) for value in values], dtype=bool)
    is_date = np.array([hasattr(value, "toordinal") for value in values], dtype=bool)
    result = np.full(len(values), np.nan)
    if is_text.any():
        result[is_text] = _parse([_in_iso(text, form) for text in values[is_text]], "ISO8601")
    if is_date.any():
        result[is_date] = _parse(values[is_date], None)
    return result


def find_order(values: NDArray[Any], *, day_first: bool | None = None) -> str | None:
    """Return the form in which all texts are dates, None if there is none.

    Where no value shows the order of day and month, ``day_first`` decides.
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
        if day_first is None:
            return None
        form = DAY_FIRST if day_first else MONTH_FIRST
    else:
        form = "" if first == 0 else DAY_FIRST if first > 12 else MONTH_FIRST
    return None if np.isnan(parse_dates(values, form)).any() else form


def look_like_dates(values: NDArray[Any]) -> bool:
    """Return whether all values have the look of dates, whether or not they can be read."""
    looks = (_YEAR_FIRST, _YEAR_LAST, _SHORT_YEAR)
    return all(
        isinstance(value, str) and any(look.fullmatch(value.strip()) for look in looks)
        for value in values
    )


def as_timestamps(days: Days) -> Any:
    """Return days since 1970 as times, which are whole microseconds."""
    gaps = np.isnan(days)
    microseconds = np.rint(np.where(gaps, 0, days) * MICROSECONDS_PER_DAY).astype(np.int64)
    stamps = microseconds.astype("datetime64[us]")
    stamps[gaps] = np.datetime64("NaT")
    return stamps


def _parse_durations(values: NDArray[Any]) -> NDArray[np.float64]:
    readable = [v if isinstance(v, str) or hasattr(v, "total_seconds") else None for v in values]
    spans = pd.to_timedelta(pd.Series(readable, dtype=object), errors="coerce")
    return np.asarray(spans.dt.total_seconds(), dtype=np.float64)


def _parse(values: Any, form: str | None) -> Days:
    series = pd.Series(values, dtype=object)
    return _days_of(pd.to_datetime(series, utc=True, errors="coerce", format=form))


def _days_of(stamps: Any) -> Days:
    if getattr(stamps.dt, "tz", None) is not None:
        stamps = stamps.dt.tz_convert("UTC").dt.tz_localize(None)
    values = stamps.to_numpy(dtype="datetime64[us]")
    return np.where(np.isnat(values), np.nan, values.astype(np.int64) / MICROSECONDS_PER_DAY)


def _in_iso(text: str, form: str) -> str:
    """Return a date in ISO 8601 if its year is last, else the text as it is."""
    match = _YEAR_LAST.fullmatch(text.strip())
    if match is None:
        return text
    first, separator, second, year, time = match.groups()
    if separator != "." and not form:
        return ""
    swapped = separator != "." and form == MONTH_FIRST
    day, month = (second, first) if swapped else (first, second)
    clock = f"T{time.zfill(5)}" if time else ""  # 9:30 is 09:30
    return f"{year}-{int(month):02}-{int(day):02}{clock}"


def _month(days: Days) -> Days:
    months = np.floor(days).astype(np.int64).astype("datetime64[D]").astype("datetime64[M]")
    return months.astype(np.int64) % 12 / 12


CYCLES: dict[str, Callable[[Days], Days]] = {  # how much of each has passed, from 0 to 1
    "hour": lambda days: days - np.floor(days),
    "weekday": lambda days: (np.floor(days) + 3) % 7 / 7,  # Monday is 0
    "month": _month,
}


def varying_cycles(days: Days) -> list[str]:
    """Return the names of the cycles in which the dates differ."""
    days = days[~np.isnan(days)]
    return [name for name, phase in CYCLES.items() if np.unique(phase(days)).size > 1]


def write_cycles(days: Days, cycles: Sequence[str], out: NDArray[np.float32]) -> None:
    """Write sine and cosine of each cycle, (n_rows, 2 * len(cycles)); a gap is in the centre."""
    is_gap = np.isnan(days)
    filled = np.where(is_gap, 0.0, days)
    for j, cycle in enumerate(cycles):
        angle = 2 * np.pi * CYCLES[cycle](filled)
        out[:, 2 * j] = np.where(is_gap, 0.0, np.sin(angle))
        out[:, 2 * j + 1] = np.where(is_gap, 0.0, np.cos(angle))


def cycle_names(name: str, cycles: Sequence[str]) -> list[str]:
    """Return the names of the columns that :func:`write_cycles` fills."""
    return [f"{name}_{cycle}_{part}" for cycle in cycles for part in ("sin", "cos")]
