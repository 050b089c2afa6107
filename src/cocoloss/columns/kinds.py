"""What kind a column is, judged by its dtype and, where that says nothing, by its content."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from cocoloss.columns.dates import find_order, look_like_dates
from cocoloss.columns.numerals import (
    AUTO,
    COMMA,
    DECIMAL_COMMA,
    are_digits,
    are_gap_marks,
    could_be_thousands,
    find_form,
    have_leading_zeros,
)
from cocoloss.columns.values import Distinct, complex_error, distinct

NUMBER = "number"
DATE = "date"
DURATION = "duration"
BOOLEAN = "boolean"
CATEGORY = "category"
TEXT = "text"

# What pandas finds in a column of Python objects. Whatever is not listed is looked at as text.
KIND_OF_OBJECTS = {
    "boolean": BOOLEAN,
    "integer": NUMBER,
    "floating": NUMBER,
    "mixed-integer-float": NUMBER,
    "decimal": NUMBER,
    "empty": NUMBER,
    "date": DATE,
    "datetime": DATE,
    "datetime64": DATE,
    "timedelta": DURATION,
    "timedelta64": DURATION,
}

# Text among numbers is a gap where it is this rare; else the column is a category.
NUMBERS_MIN_SHARE = 0.95
NUMBERS_MIN_COUNT = 20

# Identifiers and free text: many values, nearly all different, longer than a code or too many.
TEXT_MIN_DISTINCT = 20
TEXT_MIN_DISTINCT_SHARE = 0.9
TEXT_MIN_LENGTH = 5


# What a remark is about.
STRAYS = "strays"  # other text among numbers
MIXTURE = "mixture"  # a category, though most values are numbers
UNCLEAR_DATES = "dates"
THOUSANDS = "thousands"  # points that might be decimal points


class Finding(NamedTuple):
    """What a column turned out to be."""

    kind: str
    form: str = ""  # how its numbers or dates are written, where that is not the plain way
    remark: str = ""  # what the user should know: why it is text, or what speaks against the kind
    about: str = ""  # which sort of remark it is


class Writing(NamedTuple):
    """What the user knows of the writing of a table.

    Attributes
    ----------
    decimal : {"auto", ".", ","}
        The decimal mark of numbers in text.
    day_first : bool or None
        Whether the day or the month comes first in dates, where no value tells.
    """

    decimal: str = AUTO
    day_first: bool | None = None


def find_kind(
    series: Any,
    name: str,
    max_categories: int,
    writing: Writing = Writing(),  # noqa: B008 - frozen
) -> Finding:
    """Say whether a column is numbers, dates, durations, booleans, a category or text.

    A categorical dtype is a category whether or not it is ordered, because readers of nominal
    data often set the flag. Integers are numbers.

    Parameters
    ----------
    series : pandas.Series
        The column.
    name : str
        Its name, for the errors.
    max_categories : int
        With more values than this, nearly all different, even short ones are text.
    writing : Writing
        How numbers and dates are written, where that is known.

    Raises
    ------
    CoCoError
        If the column holds complex numbers.
    TypeError
        If it holds containers.

    Examples
    --------
    >>> import pandas as pd
    >>> find_kind(pd.Series(["$1.5", "$1,300", "?"]), "a", 64)
    Finding(kind='number', form='$1,234.5', remark='', about='')
    >>> find_kind(pd.Series([1, 2], dtype="category"), "b", 64).kind
    'category'
    """
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype | pd.IntervalDtype):
        return Finding(CATEGORY)
    if types.is_complex_dtype(dtype):
        raise complex_error(name)
    if types.is_bool_dtype(dtype):
        return Finding(BOOLEAN)
    if types.is_numeric_dtype(dtype):
        return Finding(NUMBER)
    if types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
        return Finding(DATE)
    if types.is_timedelta64_dtype(dtype):
        return Finding(DURATION)
    return _find_kind_of_objects(distinct(series, name), max_categories, writing)


def _find_kind_of_objects(column: Distinct, max_categories: int, writing: Writing) -> Finding:
    kind = KIND_OF_OBJECTS.get(types.infer_dtype(column.values, skipna=False))
    if kind is not None:
        return Finding(kind)
    is_mark = are_gap_marks(column.values)
    if is_mark.all():
        return Finding(CATEGORY)
    found = _look_for_quantity(column.values[~is_mark], column.counts[~is_mark], writing)
    if found.kind != CATEGORY or not _looks_like_text(column, max_categories):
        return found
    more = f"and {found.remark}" if found.remark else f"such as {column.values[0]!r}"
    about = found.about if found.about == UNCLEAR_DATES else TEXT
    return Finding(TEXT, remark=f"text: nearly every value differs, {more}", about=about)


def _look_for_quantity(values: NDArray[Any], counts: NDArray[np.intp], writing: Writing) -> Finding:
    """Say which quantity a column is, or else that it is a category, and what speaks against it."""
    kind = KIND_OF_OBJECTS.get(types.infer_dtype(values, skipna=False))
    if kind is not None and kind != BOOLEAN:
        return Finding(kind)
    found = _look_for_numbers(values, counts, writing.decimal)
    if found.kind == NUMBER:
        return found
    order = find_order(values, day_first=writing.day_first)
    if order is not None:
        return Finding(DATE, order)
    if look_like_dates(values):
        remark = f"they look like dates, but cannot be read for sure, such as {values[0]!r}"
        return Finding(CATEGORY, remark=remark, about=UNCLEAR_DATES)
    return found


def _look_for_numbers(values: NDArray[Any], counts: NDArray[np.intp], decimal: str) -> Finding:
    """Say that a column is numbers, or else a category, and what speaks against it."""
    form, fits = find_form(values, counts, decimal)
    zeros = have_leading_zeros(values)
    if zeros.any():  # a code, such as a postcode
        if are_digits(values):
            return Finding(CATEGORY)
        fits &= ~zeros
    n_fit, n_cells = int(counts[fits].sum()), int(counts.sum())
    odd = values[np.argmin(fits)]
    if fits.all():
        if decimal == COMMA and DECIMAL_COMMA in form and could_be_thousands(values):
            point = next(value for value in values if "." in str(value))
            return Finding(NUMBER, form, f"such as {point!r}", THOUSANDS)
        return Finding(NUMBER, form)
    strays_are_few = n_fit >= max(NUMBERS_MIN_COUNT, NUMBERS_MIN_SHARE * n_cells)
    sure = decimal == COMMA or DECIMAL_COMMA not in form
    if strays_are_few and not zeros.any() and sure:
        return Finding(NUMBER, form, f"such as {odd!r}", STRAYS)
    if 2 * n_fit > n_cells and len(values) > TEXT_MIN_DISTINCT:
        remark = f"most values are numbers, but not {odd!r}"
        return Finding(CATEGORY, remark=remark, about=MIXTURE)
    return Finding(CATEGORY)


def _looks_like_text(column: Distinct, max_categories: int) -> bool:
    n_distinct = len(column.values)
    if n_distinct <= TEXT_MIN_DISTINCT:
        return False
    if n_distinct < TEXT_MIN_DISTINCT_SHARE * int(column.counts.sum()):
        return False
    if n_distinct > max_categories:
        return True
    return float(np.mean([len(str(value)) for value in column.values])) >= TEXT_MIN_LENGTH
