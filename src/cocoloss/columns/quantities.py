"""Columns of numbers, dates and durations: read as float64, scaled, clipped smoothly, gaps marked.

By hand, because scikit-learn's RobustScaler and SimpleImputer know neither infinities nor the
smooth clip, and would walk over the memory once for each of the steps. Dates are days since 1970
and durations seconds; both are scaled like numbers, and dates are points on circles besides.

Dates as people write them are 2024-12-31, 2024/12/31, 31.12.2024, and 12/31/2024 where it is clear.
With dots the day comes first. Between slashes or dashes it may be the month: a column shows which
by a number above 12, or else the user says.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from cocoloss._checks import require, state_array
from cocoloss.columns.frames import Column, Table
from cocoloss.exceptions import CoCoError
from cocoloss.number_text import parse_numbers

CLIP = 3.0  # where the smooth clip levels off, in scales: x / sqrt(1 + (x / 3)^2)
IQR_OF_NORMAL = 1.3489795003921634  # so that a normal column comes out with variance one
FAR = 1e6  # scales; beyond it the smooth clip has no digits left to tell values apart
HUGE = 1e150  # beyond it a square overflows float64
CHUNK = 2**15  # values scaled at a time, so that the steps stay in the cache
FEWEST_RANKED = 10  # distinct values; of fewer the ranks say nothing that their places do not
MOST_RANKED = 200  # columns; of wider tables ranks cost more than they were seen to give
BOX_DEVIATIONS = 6  # in the range of a column, as most of a normal one's rows have
KNOTS = 256  # at most, between which ranks are interpolated

Days = NDArray[np.float64]  # since 1970-01-01, a Thursday

DAY_FIRST = "%d/%m/%Y"
MONTH_FIRST = "%m/%d/%Y"
EXAMPLES = {"": "'2024-01-31'", DAY_FIRST: "'31/01/2024'", MONTH_FIRST: "'01/31/2024'"}
MICROSECONDS_PER_DAY = 86_400_000_000

_YEAR_FIRST = re.compile(r"\d{4}([./-])\d{1,2}\1\d{1,2}([ T].*)?", re.ASCII)
_YEAR_LAST = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?:[ T]+(\d.*))?", re.ASCII)
_SHORT_YEAR = re.compile(r"\d{1,2}([./-])\d{1,2}\1\d{2}([ T]+\d.*)?", re.ASCII)


def read_numbers(column: Column, form: str = "", *, lenient: bool = False) -> NDArray[np.float64]:
    """Return a column of numbers as float64, NaN in a gap.

    Text is written in the given form, see :mod:`cocoloss.number_text`; what is no number is an
    error, or a gap if the reading is lenient.
    """
    series = column.series
    if types.is_complex_dtype(series.dtype):
        raise column.complex_error()
    if types.is_numeric_dtype(series.dtype):
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
    # The form may be that of the new table, see TableEncoder.with_decimal.
    now = (
        f" and is to hold numbers (written as {form}) now, but holds" if form else ", but now holds"
    )
    return column.parse(partial(parse_numbers, form=form), "numbers", now, lenient=lenient)


def as_floats(table: Table, positions: Sequence[int]) -> NDArray[np.float32]:
    """Return some columns of a table as finite numbers, C-contiguous, or say which are none."""
    values = table.numbers(positions)
    if values is None:
        values = np.column_stack([_plain_numbers(table.column(j)) for j in positions])
    with np.errstate(over="ignore"):
        result = np.array(values, dtype=np.float32, order="C", copy=None)
    if np.isfinite(result).all():
        return result
    gaps = np.isnan(result).any(axis=0)
    bad = gaps if gaps.any() else np.isinf(result).any(axis=0)
    name = table.names[positions[int(np.argmax(bad))]]
    if gaps.any():
        raise CoCoError(
            f"X has gaps (NaN), such as in column {name!r}; use preprocess='auto', which fills and "
            f"marks them, or fill them first"
        )
    raise CoCoError(
        f"X has infinite values, or values too large for float32, such as in column {name!r}; use "
        f"preprocess='auto', which clips them smoothly, or take them out first"
    )


def _plain_numbers(column: Column) -> NDArray[np.float64]:
    if types.is_numeric_dtype(column.series.dtype):
        return read_numbers(column)
    codes, values = column.distinct
    parsed = parse_numbers(values)
    bad = np.isnan(parsed)
    if bad.any():
        raise CoCoError(
            f"column {column.name!r} holds {values[np.argmax(bad)]!r}, which is no number; use "
            f"preprocess='auto', which reads categories and dates, or convert it first"
        )
    return np.asarray(np.append(parsed, np.nan)[codes])


@dataclass(frozen=True, eq=False)
class Box:
    """The smallest and the largest finite value of each column of some rows."""

    low: NDArray[np.float64]  # (n_columns,)
    high: NDArray[np.float64]

    @classmethod
    def of(cls, matrix: NDArray[Any]) -> Self:
        """Return the box of the rows of a matrix of finite numbers."""
        low, high = (end(axis=0).astype(np.float64) for end in (matrix.min, matrix.max))
        return cls(low, high)

    def distance(self, matrix: NDArray[Any]) -> NDArray[np.float64]:
        """Return how far rows are outside, (n_rows,): the root of the summed squares of columns."""
        distance = np.empty(len(matrix))
        step = max(1, CHUNK // max(1, matrix.shape[1]))
        for start in range(0, len(matrix), step):
            outside = self.outside(matrix[start : start + step])
            distance[start : start + step] = np.sqrt(np.square(outside).sum(axis=1))
        return distance

    def outside(self, matrix: NDArray[Any]) -> NDArray[np.float64]:
        """Return how far each cell is outside the range of its column, (n_rows, n_columns).

        The unit of a column is a sixth of its range, about a standard deviation, which tails make
        longer; that of one value is the value. A gap is inside, and nothing farther than FAR.
        """
        unit = self.high / BOX_DEVIATIONS - self.low / BOX_DEVIATIONS  # which cannot overflow
        unit = np.where(unit > 0, unit, np.maximum(np.abs(self.low), 1.0))
        x = matrix.astype(np.float64)
        with np.errstate(over="ignore"):
            outside = np.maximum(np.fmax(self.low - x, x - self.high), 0.0) / unit
        return np.minimum(np.nan_to_num(outside, nan=0.0, posinf=FAR), FAR)

    def to_state(self) -> dict[str, Any]:
        """Return the value as a dict of arrays."""
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: Any, n_columns: int) -> Self:
        """Return the value that :meth:`to_state` described, or refuse it with a CoCoError."""
        lacks = "it lacks the ranges of its columns, as files of earlier versions do; fit it again"
        require(isinstance(state, dict), lacks)
        low, high = (state_array(state, end, np.float64, (n_columns,)) for end in ("low", "high"))
        require(bool((low <= high).all()), "a range of its columns ends before it begins")
        return cls(low, high)


@dataclass(frozen=True)
class NumberScaler:
    """Centre and scale of each column, and which columns come out of them."""

    box: "Box"  # the values seen in training, (n_columns,)
    center: NDArray[np.float64]  # (n_columns,), the medians
    scale: NDArray[np.float64]  # (n_columns,), interquartile ranges over that of a standard normal
    value_columns: NDArray[np.intp]  # positions of columns that vary
    gap_columns: NDArray[np.intp]  # of those whose gaps are marked
    rank_columns: NDArray[np.intp]  # and of those whose ranks are columns, too
    knots: list[NDArray[np.float64]]  # (2, k) of each of these: values, and the share of rows below

    @property
    def width(self) -> int:
        """Number of columns of the result."""
        return self.value_columns.size + self.gap_columns.size + self.rank_columns.size

    @classmethod
    def fit(
        cls, matrix: NDArray[Any], kinds: Mapping[str, str], *, ranks: bool = False
    ) -> tuple[Self, dict[str, str]]:
        """Learn from a matrix of numbers with NaN in the gaps, (n_rows, n_columns).

        The second result says of columns that are not in use why. Only columns of one kind repeat
        each other: the days of a date are numbers that say less than the date does.
        """
        names = list(kinds)
        location, n_finite, n_gaps = _statistics(matrix)
        center, scale, low, high = location
        has_infinite = n_finite + n_gaps < len(matrix)
        dropped: dict[int, str] = {}
        for j in np.flatnonzero(n_finite == 0):
            dropped[int(j)] = "no finite value" if has_infinite[j] else "no value"
        varies = (high > low) | has_infinite
        for j in np.flatnonzero(~varies & (n_gaps == 0)):
            dropped.setdefault(int(j), "constant")
        candidates = [j for j in range(len(names)) if j not in dropped]
        signatures = np.column_stack([center, scale, low, n_gaps])
        twins = find_twins(
            candidates,
            signature=lambda j: (kinds[names[j]], signatures[j].tobytes()),
            content=lambda j: (matrix[:, j] + 0.0).tobytes(),  # + 0.0 turns -0.0 into 0.0
        )
        dropped |= {j: f"duplicate of {names[twin]!r}" for j, twin in twins.items()}
        used = [j for j in candidates if j not in dropped]

        gaps_twice = find_twins(
            [j for j in used if n_gaps[j] > 0],
            signature=lambda j: n_gaps[j],
            content=lambda j: np.packbits(np.isnan(matrix[:, j])).tobytes(),
        )
        marked = [n_gaps[j] > 0 and j not in gaps_twice for j in used]
        ranks = ranks and len(used) <= MOST_RANKED
        knots = [_knots(matrix[:, j]) if ranks else None for j in used]
        scaler = cls(
            box=Box(low[used], high[used]),
            center=center[used],
            scale=scale[used],
            value_columns=np.flatnonzero(varies[used]),
            gap_columns=np.flatnonzero(marked),
            rank_columns=np.flatnonzero([each is not None for each in knots]),
            knots=[each for each in knots if each is not None],
        )
        return scaler, {names[j]: reason for j, reason in sorted(dropped.items())}

    def transform(self, matrix: NDArray[Any], out: NDArray[np.float32]) -> None:
        """Write the scaled values of a matrix, the marks of its gaps, and ranks, (n_rows, width).

        Infinities go where the clip levels off. Ranks have variance one, and are 0 in a gap.
        """
        n_rows, n_columns = matrix.shape
        n_values = self.value_columns.size
        n_marked = n_values + self.gap_columns.size
        all_vary = n_values == n_columns
        step = max(1, CHUNK // max(1, n_columns))
        for start in range(0, n_rows, step):
            rows = slice(start, start + step)
            with np.errstate(over="ignore"):
                z = matrix[rows] - self.center  # float64: a large offset must cost no digits
                z /= self.scale
            gaps = np.isnan(z)
            if gaps.any():
                z[gaps] = 0.0  # the median
            out[rows, n_values:n_marked] = gaps[:, self.gap_columns]
            np.clip(z, -FAR, FAR, out=z)
            values = (z if all_vary else z[:, self.value_columns]).astype(np.float32)
            np.divide(values, np.sqrt(1 + np.square(values / CLIP)), out=out[rows, :n_values])
        for k, (j, knots) in enumerate(zip(self.rank_columns, self.knots, strict=True)):
            below = np.interp(matrix[:, j], *knots)
            out[:, n_marked + k] = np.where(np.isnan(below), 0.0, (below - 0.5) * np.sqrt(12))

    def names(self, names: Sequence[str]) -> list[str]:
        """Return the names of the result's columns."""
        return [
            *(names[j] for j in self.value_columns),
            *(f"{names[j]}_missing" for j in self.gap_columns),
            *(f"{names[j]}_rank" for j in self.rank_columns),
        ]


def _knots(column: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return distinct values and the share of rows below each, equals counted by half, (2, k).

    None if there are too few of them. By hand, because scikit-learn's QuantileTransformer has a
    jump where values are equal.
    """
    finite = column[np.isfinite(column)]
    values, counts = np.unique(finite, return_counts=True)
    if len(values) <= FEWEST_RANKED:
        return None
    below = (np.cumsum(counts) - counts / 2) / len(finite)
    if len(values) > KNOTS:  # evenly among the rows, with both ends
        even = np.searchsorted(below, np.linspace(below[0], below[-1], KNOTS))
        kept = np.unique(np.minimum(even, len(values) - 1))
        values, below = values[kept], below[kept]
    return np.stack([values, below]).astype(np.float64)


def find_twins(
    columns: Sequence[int],
    signature: Callable[[int], Hashable],
    content: Callable[[int], Hashable],
) -> dict[int, int]:
    """Return, for each column that repeats an earlier one, which one that is.

    Contents are compared only where the cheap signatures agree.
    """
    signatures = {j: signature(j) for j in columns}
    shared = {s for s, count in Counter(signatures.values()).items() if count > 1}
    first: dict[Hashable, int] = {}
    twins = {}
    for j in columns:
        if signatures[j] in shared:
            earlier = first.setdefault((signatures[j], content(j)), j)
            if earlier != j:
                twins[j] = earlier
    return twins


def _statistics(
    matrix: NDArray[Any],
) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]:
    """Return location and scale of finite values, (4, n_columns), and how many there are, and gaps.

    Columns without gaps and infinities, most often all of them, are looked at together.
    """
    columns = np.array(matrix.T, dtype=np.float64, order="C")  # (n_columns, n_rows), a copy
    finite = np.isfinite(columns)
    n_finite = finite.sum(axis=1)
    n_gaps = np.zeros_like(n_finite)
    location = np.zeros((4, len(columns)))
    complete = n_finite == len(matrix)
    if complete.all():
        location[:] = _location_and_scale(columns)
    elif complete.any():
        location[:, complete] = _location_and_scale(columns[complete])
    for j in np.flatnonzero(~complete):
        n_gaps[j] = np.isnan(columns[j]).sum()
        if n_finite[j]:
            location[:, [j]] = _location_and_scale(columns[j][finite[j]][np.newaxis])
    return location, n_finite, n_gaps


def _location_and_scale(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return median, scale, minimum and maximum of rows of finite numbers; overwrites them."""
    low, high = columns.min(axis=1), columns.max(axis=1)
    size = np.maximum(np.abs(low), np.abs(high))
    unit = np.where(size > HUGE, size, 1.0)
    if (unit > 1).any():
        columns /= unit[:, np.newaxis]
    quarter, center, three_quarters = np.percentile(
        columns, [25, 50, 75], axis=1, overwrite_input=True
    )
    scale = (three_quarters - quarter) / IQR_OF_NORMAL
    flat = scale == 0
    if flat.any():  # more than half of the values are one and the same
        scale[flat] = columns[flat].std(axis=1)
    scale = np.where(scale == 0, high / unit - low / unit, scale)  # a deviation that underflowed
    scale = np.where(high > low, scale, 1.0)  # constant
    biggest = np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        return np.stack([center * unit, np.minimum(scale * unit, biggest), low, high])


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
