"""Numbers with decimal commas, in which points stand between thousands: 1.234,50.

Left alone, pandas would take 7.730 for a fraction, or take 31.12.2024 for a number.
"""

import re
import warnings
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from cocoloss._checks import SHOWN

COMMA, POINT = ",", "."
_GROUPS = r"[+-]?(?:\d+|[1-9]\d{{0,2}}(?:{thousands}\d{{3}})+)"
_WRITINGS = {  # decimal mark -> a number as it is written with it
    COMMA: re.compile(_GROUPS.format(thousands=r"\.") + r"(?:,\d*)?(?:[eE][+-]?\d+)?", re.ASCII),
    POINT: re.compile(
        rf"(?:{_GROUPS.format(thousands=',')}(?:\.\d*)?|[+-]?\.\d+)(?:[eE][+-]?\d+)?", re.ASCII
    ),
}
# A sign such as € or %, or a code of three capitals, before or after a number.
_UNIT = r"(?:[^\w\s.,;+-]|[A-Z]{3}|kr)"
_WITH_UNIT = re.compile(rf"(?:{_UNIT}\s?)?([+-]?\d[\d.,]*)(?:\s?{_UNIT})?")
_BLANK_MARK = re.compile(r"[^\w]*")  # such as - and --
_EXACT = 2**53  # below it, float64 has every whole number


class ThousandsWarning(UserWarning):
    """Columns in which points were taken for thousands, because the file has decimal commas.

    Attributes
    ----------
    what : str
        Which columns.
    about : str
        "thousands".
    """

    about = "thousands"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}. Say decimal='.' if they are decimal points")
        self.what = what


def decimal_of(columns: Iterable[Collection[str]], *, has_commas: bool = True) -> str | None:
    """Return the decimal mark on which columns of cells agree, None if they do not.

    A column tells if all its cells are numbers under one mark, and not all under the other. With
    1.234.567 alone it does not: that may be the number of a version.

    Parameters
    ----------
    columns : iterable of collections of str
        The cells of each column, without gaps.
    has_commas : bool
        Whether a cell may have a comma; if not, the first point that tells is enough.

    Examples
    --------
    >>> decimal_of([["7.730", "1.250"], ["2,5 EUR", "3 EUR"]])
    ','
    >>> decimal_of([["7.730", "1.250"]]) is None
    True
    """
    told = set()
    for cells in columns:
        told |= _decimals_of_column(cells)
        if len(told) == 2 or (told and not has_commas):
            break
    return told.pop() if len(told) == 1 else None


def is_comma_number(cell: str) -> bool:
    """Tell whether a cell is a number with a comma in it, perhaps with a currency.

    Examples
    --------
    >>> is_comma_number("1.234,50 EUR"), is_comma_number("1,2,3")
    (True, False)
    """
    digits = _without_unit(cell)
    return "," in digits and _WRITINGS[COMMA].fullmatch(digits) is not None


def _without_unit(cell: str) -> str:
    match = _WITH_UNIT.fullmatch(cell)
    return match[1] if match else cell


def _decimals_of_column(cells: Collection[str]) -> set[str]:
    """Return the one decimal mark that a column has, or nothing."""
    if not any("." in cell or "," in cell for cell in cells):
        return set()
    found = [_without_unit(cell) for cell in cells]
    fits = {mark for mark, form in _WRITINGS.items() if all(map(form.fullmatch, found))}
    if len(fits) == 2 or (COMMA in fits and not any("," in cell for cell in found)):
        return set()
    return fits


def with_comma_numbers(frame: Any, text: Collection[str], *, warn: bool) -> Any:
    """Return a frame in which text that is numbers with decimal commas is numbers.

    Parameters
    ----------
    frame : pandas.DataFrame
        What pandas made of a file with decimal commas: points between thousands left text.
    text : collection of str
        Columns to be left as they are.
    warn : bool
        Whether to say where there are points but no commas, so that another reading is possible.
    """
    changed, doubtful = {}, []
    for name, dtype in frame.dtypes.items():
        if name in text or types.is_numeric_dtype(dtype) or not types.is_string_dtype(dtype):
            continue
        column = frame[name]
        first = column.first_valid_index()
        if first is None or not _may_be_number(column[first]):  # as most text, told at once
            continue
        codes, values = pd.factorize(column)
        numbers = parse_comma_numbers(values)
        is_number = ~np.isnan(numbers)
        points = [value for value in values[is_number] if "." in value]
        commas = [value for value in values[is_number] if "," in value]
        if not (points or commas) or not all(map(is_blank_mark, values[~is_number])):
            continue  # digits alone may be codes
        whole = not commas and is_number.all() and (codes >= 0).all()
        whole = whole and bool((np.abs(numbers) < _EXACT).all())
        filled = np.append(numbers, np.nan)[codes]
        changed[name] = pd.Series(filled.astype(np.int64) if whole else filled, frame.index)
        if not commas:
            doubtful.append(f"{name!r} (such as {points[0]})")
    if doubtful and warn:
        more = f" and {len(doubtful) - SHOWN} more" if len(doubtful) > SHOWN else ""
        what = (
            f"read with points between thousands, as decimal marks are commas: "
            f"{', '.join(doubtful[:SHOWN])}{more}"
        )
        warnings.warn(ThousandsWarning(what), stacklevel=4)
    return frame.assign(**changed) if changed else frame


def parse_comma_numbers(values: Iterable[Any]) -> NDArray[np.float64]:
    """Return numbers with decimal commas as numbers, NaN where a value is none.

    Examples
    --------
    >>> parse_comma_numbers(["1.234,5", "7.730", "2", "3.5"]).tolist()
    [1234.5, 7730.0, 2.0, nan]
    """
    texts = [str(value).strip() for value in values]
    fits = map(_WRITINGS[COMMA].fullmatch, texts)
    return np.array(
        [
            float(text.replace(".", "").replace(",", ".")) if fit else np.nan
            for text, fit in zip(texts, fits, strict=True)
        ]
    )


def is_blank_mark(value: object) -> bool:
    """Tell whether a cell of a column of numbers has neither digit nor letter, such as a dash."""
    return _BLANK_MARK.fullmatch(str(value)) is not None


def _may_be_number(value: object) -> bool:
    return is_blank_mark(value) or _WRITINGS[COMMA].fullmatch(str(value).strip()) is not None
