"""Numbers as people write them: 1,234.50 or 51,20 or $5 or 5 EUR or 51.2%, and marks of gaps.

A form says how the numbers of a column are written. It is the number 1234.5 written so, such as
``"$1,234.5"``; plain numbers have the empty form. Units change no value: 5% is 5. Which columns are
numbers is not decided here.
"""

import re
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cocoloss.exceptions import CoCoError

DOT, COMMA = ".", ","  # the decimal marks
AUTO = "auto"  # the decimal mark is to be found
WITH_DOT = "1,234.5"
WITH_COMMA = "1.234,5"

# Gaps in a column of numbers or dates; in a column of words they are words. Case does not matter.
GAP_MARKS = frozenset(
    {
        *("?", "-", "--", ".", "\u2013", "\u2014", "na", "n/a", "n.a.", "#n/a", "null", "none"),
        *("missing", "unknown", "k.a.", "k. a.", "keine angabe", "unbekannt"),
    }
)

SIGNS = "$€£¥₹₩₽₺₪"
# Codes that stand for a sign, so that 5 EUR and 6 € are of one column. Francs have no sign.
CODES = {"usd": "$", "eur": "€", "gbp": "£", "jpy": "¥", "chf": "CHF"}

_UNIT = "|".join([*CODES, *map(re.escape, SIGNS)])
_NUMBER = re.compile(
    rf"([+-]?) ?({_UNIT})? ?([+-]?[0-9.,]+(?:e[+-]?[0-9]+)?) ?({_UNIT}|%)?", re.IGNORECASE
)
# Thousands as in 1'234.50 and, with a space that does not break, 1 234,50. An ordinary space is not
# among them: 170 123 456 may be the number of a telephone.
_THOUSANDS_MARK = re.compile(r"(?<=[0-9])['\u2019\u00a0\u202f\u2009](?=[0-9]{3}(?![0-9]))")
_ODD_CHARACTERS = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2212": "-"})
_EXPONENT = r"(?:[eE][+-]?\d+)?"
_DIGITS = {  # decimal mark -> digits as they are written with it
    DOT: re.compile(
        rf"[+-]?(?:(?:[1-9]\d{{0,2}}(?:,\d{{3}})+|\d+)(?:\.\d*)?|\.\d+){_EXPONENT}", re.ASCII
    ),
    COMMA: re.compile(rf"[+-]?(?:[1-9]\d{{0,2}}(?:\.\d{{3}})+|\d+)(?:,\d*)?{_EXPONENT}", re.ASCII),
}
_TO_FLOAT = {DOT: str.maketrans("", "", ","), COMMA: str.maketrans(",", ".", ".")}
_FORM = re.compile(rf"(\D*?) ?({re.escape(WITH_DOT)}|{re.escape(WITH_COMMA)})(%?)")
_CODE = re.compile(r"\s*0\d+\s*", re.ASCII)


def split_unit(text: str) -> tuple[str, str]:
    """Return the unit of a number (a currency, % or nothing) and its digits; both empty if none.

    Examples
    --------
    >>> split_unit("-1.234,50 EUR"), split_unit("51%"), split_unit("5 kg")
    (('€', '-1.234,50'), ('%', '51'), ('', ''))
    """
    text = _THOUSANDS_MARK.sub("", text).translate(_ODD_CHARACTERS)
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return "", ""
    minus, before, digits, after = match.groups()
    if (before and after) or (minus and digits[0] in "+-"):
        return "", ""
    unit = before or after or ""
    return CODES.get(unit.lower(), unit), minus + digits


def has_decimal(digits: str, decimal: str) -> bool:
    """Return whether digits are a number with a decimal mark, and thousands in threes."""
    return _DIGITS[decimal].fullmatch(digits) is not None


def find_decimal(columns: Iterable[Collection[str]], *, has_commas: bool = True) -> str | None:
    """Return the decimal mark on which columns of cells agree, None if they do not.

    A column decides if all its cells are numbers with one mark, and not all with the other. With
    1.234.567 alone it does not: that may be the number of a version. The cells of a column are
    without gaps; where none can have a comma, the first column that decides is enough.
    """
    found: set[str] = set()
    for cells in columns:
        if not any("." in cell or "," in cell for cell in cells):
            continue
        digits = [split_unit(cell)[1] for cell in cells]
        fits = {mark for mark in _DIGITS if all(has_decimal(d, mark) for d in digits)}
        if len(fits) == 1 and (DOT in fits or any("," in d for d in digits)):
            found |= fits
        if len(found) == 2 or (found and not has_commas):
            break
    return found.pop() if len(found) == 1 else None


def find_form(
    values: NDArray[Any], counts: NDArray[np.intp], decimal: str = AUTO
) -> tuple[str, NDArray[np.bool_]]:
    """Return the form in which most cells of a column are numbers, and which values have it.

    The column comes as its distinct values and their counts, (n_distinct,). Where several forms
    fit, the earlier of plain numbers, decimal points and decimal commas is taken. A unit belongs to
    the form only where it is written: 5% and 0.05 are never read as one column.

    Examples
    --------
    >>> find_form(np.array(["51,20", "3,5"], dtype=object), np.array([1, 1]))
    ('1.234,5', array([ True,  True]))
    >>> find_form(np.array(["1.250 CHF"], dtype=object), np.array([1]), decimal=",")
    ('CHF 1.234,5', array([ True]))
    """
    plain = ~np.isnan(_parse_plain(values))
    if plain.all() and decimal != COMMA:
        return "", plain
    is_text = np.array([isinstance(value, str) for value in values], dtype=bool)
    parts = [split_unit(value) if isinstance(value, str) else ("", "") for value in values]
    # Without a comma anywhere, 1.234.567 may be the number of a version.
    commas = decimal == COMMA or (decimal == AUTO and any("," in digits for _, digits in parts))
    found = [("", plain)]
    for unit in sorted({unit for unit, digits in parts if digits}):
        for mark in (DOT, COMMA) if commas else (DOT,):
            fits = np.array([u == unit and has_decimal(d, mark) for u, d in parts], dtype=bool)
            if not unit:
                fits |= plain & ~is_text
            found.append((_form_of(unit, mark), fits))
    if decimal == COMMA:  # first of equals
        found.sort(key=lambda item: WITH_COMMA not in item[0])
    return max(found, key=lambda item: counts[item[1]].sum())


def with_decimal(form: str, decimal: str) -> str:
    """Return the same form with another decimal mark; that of plain numbers too, with a comma."""
    if decimal == DOT:
        return form.replace(WITH_COMMA, WITH_DOT)
    return (form or WITH_DOT).replace(WITH_DOT, WITH_COMMA)


def parse_numbers(values: Collection[Any], form: str = "") -> NDArray[np.float64]:
    """Return each value as a number, NaN where it is none.

    The unit of the form may lack, and what is a number already stays as it is.

    Examples
    --------
    >>> parse_numbers(["$1,200", "7.5", 8, "€3"], "$1,234.5")
    array([1200. ,    7.5,    8. ,    nan])
    """
    parsed = _parse_plain(values)
    if not form:
        return parsed
    match = _FORM.fullmatch(form)
    if match is None:  # of a model file that somebody has altered
        raise CoCoError(f"{form!r} is no form of a number")
    unit, decimal = match[1] or match[3], COMMA if match[2] == WITH_COMMA else DOT
    for j, value in enumerate(values):
        if isinstance(value, str):
            found, digits = split_unit(value)
            fits = found in {"", unit} and has_decimal(digits, decimal)
            parsed[j] = float(digits.translate(_TO_FLOAT[decimal])) if fits else np.nan
    return parsed


def is_gap_mark(value: object) -> bool:
    """Return whether a value says that there is none, in a column of numbers or dates."""
    return isinstance(value, str) and value.strip().lower() in GAP_MARKS


def has_leading_zero(value: object) -> bool:
    """Return whether a value is a code of digits that a number would spoil, such as ``"01000"``."""
    return isinstance(value, str) and _CODE.fullmatch(value) is not None


def are_codes(values: Iterable[object]) -> bool:
    """Return whether all values are texts of nothing but digits, and some have a leading zero."""
    values = list(values)
    digits = all(isinstance(value, str) and value.strip().isdecimal() for value in values)
    return digits and any(map(has_leading_zero, values))


def without_point(value: object) -> str:
    """Return a value as text, a whole number without a point, as other files may have it."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _form_of(unit: str, decimal: str) -> str:
    digits = WITH_COMMA if decimal == COMMA else WITH_DOT
    if unit == "%":
        return f"{digits}%"
    return f"{unit} {digits}" if unit.isalpha() else f"{unit}{digits}"


def _parse_plain(values: Collection[Any]) -> NDArray[np.float64]:
    try:
        parsed = pd.to_numeric(pd.Series(values, dtype=object), errors="coerce")
        return np.array(parsed.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
    except (OverflowError, TypeError, ValueError):  # such as 10**400, or a date among numbers
        return np.array([_parse_one(value) for value in values], dtype=np.float64)


def _parse_one(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    except (TypeError, ValueError):
        return float("nan")
