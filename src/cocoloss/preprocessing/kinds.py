"""What kind a column is, judged by its dtype and, where that says nothing, by its content."""

import re
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from cocoloss.preprocessing.values import (
    Distinct,
    complex_error,
    distinct,
    parse_dates,
    parse_numbers,
)

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
ISO_DATE = re.compile(r"\s*\d{4}-\d{2}-\d{2}")

# Identifiers and free text: many values, nearly all different, longer than a code.
TEXT_MIN_DISTINCT = 20
TEXT_MIN_DISTINCT_SHARE = 0.9
TEXT_MIN_LENGTH = 5


def kind_of(series: Any, name: str) -> str:
    """Return the kind of a column: number, date, duration, boolean, category or text.

    A categorical dtype is a category whether or not it is ordered, because readers of nominal
    data often set the flag. Integers are numbers.

    Raises
    ------
    CoCoError
        If the column holds complex numbers.
    TypeError
        If it holds containers.

    Examples
    --------
    >>> import pandas as pd
    >>> kind_of(pd.Series(["1.5", "3", None]), "a")
    'number'
    >>> kind_of(pd.Series([1, 2], dtype="category"), "b")
    'category'
    """
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype | pd.IntervalDtype):
        return CATEGORY
    if types.is_complex_dtype(dtype):
        raise complex_error(name)
    if types.is_bool_dtype(dtype):
        return BOOLEAN
    if types.is_numeric_dtype(dtype):
        return NUMBER
    if types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
        return DATE
    if types.is_timedelta64_dtype(dtype):
        return DURATION
    return _kind_of_objects(distinct(series, name))


def _kind_of_objects(column: Distinct) -> str:
    found = types.infer_dtype(column.values, skipna=False)
    if found in KIND_OF_OBJECTS:
        return KIND_OF_OBJECTS[found]
    if not np.isnan(parse_numbers(column.values)).any():
        return NUMBER
    if _are_iso_dates(column):
        return DATE
    return TEXT if _looks_like_text(column) else CATEGORY


def _are_iso_dates(column: Distinct) -> bool:
    if not all(isinstance(value, str) and ISO_DATE.match(value) for value in column.values):
        return False
    return not np.isnan(parse_dates(column.values)).any()


def _looks_like_text(column: Distinct) -> bool:
    n_distinct = len(column.values)
    n_present = int((column.codes >= 0).sum())
    if n_distinct <= TEXT_MIN_DISTINCT or n_distinct < TEXT_MIN_DISTINCT_SHARE * n_present:
        return False
    return float(np.mean([len(str(value)) for value in column.values])) >= TEXT_MIN_LENGTH


def text_reason(column: Distinct) -> str:
    """Say why a column counts as text, and which value keeps it from being numeric if it nearly is.

    Examples
    --------
    >>> import numpy as np
    >>> text_reason(Distinct(np.arange(3), np.array(["1.5", "2.5", "?"], dtype=object)))
    "text: nearly every value differs, and not all are numbers, such as '?'"
    """
    is_number = ~np.isnan(parse_numbers(column.values))
    if is_number.mean() > 0.5:
        odd = column.values[np.argmin(is_number)]
        return f"text: nearly every value differs, and not all are numbers, such as {odd!r}"
    return f"text: nearly every value differs, such as {column.values[0]!r}"
