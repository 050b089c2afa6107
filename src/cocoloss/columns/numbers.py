"""Columns of numbers: read as float64, scaled robustly, clipped smoothly, gaps filled and marked.

By hand, because scikit-learn's RobustScaler and SimpleImputer know neither infinities nor the
smooth clip, and would walk over the memory once for each of the steps. Dates and durations are
scaled here too, once they are numbers.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from cocoloss.columns.frames import Column, Table
from cocoloss.exceptions import CoCoError
from cocoloss.number_text import parse_numbers

CLIP = 3.0  # where the smooth clip levels off, in scales: x / sqrt(1 + (x / 3)^2)
IQR_OF_NORMAL = 1.3489795003921634  # so that a normal column comes out with variance one
FAR = 1e6  # scales; beyond it the smooth clip has no digits left to tell values apart
HUGE = 1e150  # beyond it a square overflows float64
CHUNK = 2**15  # values scaled at a time, so that the steps stay in the cache


def read_numbers(column: Column, form: str = "", *, lenient: bool = False) -> NDArray[np.float64]:
    """Return a column of numbers as float64, NaN in a gap.

    Text is written in the given form, see :mod:`cocoloss.number_text`; what is no number is an
    error, or a gap if the reading is lenient.
    """
    series = column.series
    if types.is_complex_dtype(series.dtype):
        raise column.complex_error()
    if types.is_numeric_dtype(series.dtype) and not isinstance(series.dtype, pd.CategoricalDtype):
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


@dataclass(frozen=True)
class NumberScaler:
    """Centre and scale of each column, and which columns come out of them."""

    center: NDArray[np.float64]  # (n_columns,), the medians
    scale: NDArray[np.float64]  # (n_columns,), interquartile ranges over that of a standard normal
    value_columns: NDArray[np.intp]  # positions of columns that vary
    gap_columns: NDArray[np.intp]  # and of those whose gaps are marked

    @property
    def width(self) -> int:
        """Number of columns of the result."""
        return self.value_columns.size + self.gap_columns.size

    @classmethod
    def fit(cls, matrix: NDArray[Any], kinds: Mapping[str, str]) -> tuple[Self, dict[str, str]]:
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
        scaler = cls(
            center=center[used],
            scale=scale[used],
            value_columns=np.flatnonzero(varies[used]),
            gap_columns=np.flatnonzero(marked),
        )
        return scaler, {names[j]: reason for j, reason in sorted(dropped.items())}

    def transform(self, matrix: NDArray[Any], out: NDArray[np.float32]) -> None:
        """Write the scaled values of a matrix and then the marks of its gaps, (n_rows, width).

        Infinities go where the clip levels off.
        """
        n_rows, n_columns = matrix.shape
        n_values = self.value_columns.size
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
            out[rows, n_values:] = gaps[:, self.gap_columns]
            np.clip(z, -FAR, FAR, out=z)
            values = (z if all_vary else z[:, self.value_columns]).astype(np.float32)
            np.divide(values, np.sqrt(1 + np.square(values / CLIP)), out=out[rows, :n_values])

    def names(self, names: Sequence[str]) -> list[str]:
        """Return the names of the result's columns."""
        return [names[j] for j in self.value_columns] + [
            f"{names[j]}_missing" for j in self.gap_columns
        ]


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
