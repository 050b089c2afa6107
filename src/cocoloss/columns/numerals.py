"""Numbers as people write them: 1,234.50 or 51,20 or $5 or 5 CHF or 51.2%, and marks of gaps.

A form is named by the number 1234.5 written in it, such as ``"$1,234.5"``; the plain form has no
name. Signs change no value: 5% is 5.
"""

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cocoloss.columns.currencies import SIGNS, WORDS
from cocoloss.exceptions import CoCoError

POINT = "1234.5"
THOUSANDS = "1,234.5"
DECIMAL_COMMA = "1.234,5"
AUTO = "auto"  # the decimal mark: as each column tells
COMMA = ","
DOT = "."

# Gaps in a column of numbers or dates; in a column of words they are words. Case does not matter.
GAP_MARKS = frozenset(
    {
        *("?", "-", "--", ".", "\u2013", "\u2014", "na", "n/a", "n.a.", "#n/a", "null", "none"),
        *("missing", "unknown", "k.a.", "k. a.", "keine angabe", "unbekannt"),
    }
)

_MONEY = "|".join(re.escape(word) for word in [*sorted(WORDS, key=len, reverse=True), *SIGNS])
_NUMERAL = re.compile(rf"([+-]?) ?({_MONEY})? ?([+-]?[0-9.,]+) ?({_MONEY}|%)?")
# Thousands as in 1'234.50 and, with a space that does not break, 1 234,50. A plain space is not
# among them: 170 123 456 may be the number of a telephone.
_GROUP_MARK = re.compile(r"(?<=[0-9])['\u2019\u00a0\u202f\u2009](?=[0-9]{3}(?![0-9]))")
_FORM = re.compile(r"(\D*?) ?(1[0-9.,]+)(%?)")
_ODD_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2212": "-"})
_DIGITS = {
    POINT: re.compile(r"[+-]?(\d+\.?\d*|\.\d+)", re.ASCII),
    THOUSANDS: re.compile(r"[+-]?([1-9]\d{0,2}(,\d{3})+|\d+)(\.\d*)?", re.ASCII),
    DECIMAL_COMMA: re.compile(r"[+-]?([1-9]\d{0,2}(\.\d{3})+|\d+)(,\d*)?", re.ASCII),
}
_REPLACED = {POINT: (), THOUSANDS: ((",", ""),), DECIMAL_COMMA: ((".", ""), (",", "."))}
_LEADING_ZERO = re.compile(r"\s*0\d+\s*", re.ASCII)


def parse_numbers(values: NDArray[Any], form: str = "") -> NDArray[np.float64]:
    """Return each value as a number, NaN where it is none.

    The sign of the form may lack, and what is a number already stays as it is.

    Examples
    --------
    >>> import numpy as np
    >>> parse_numbers(np.array(["$1,200", "7.5", 8, "€3"], dtype=object), "$1,234.5")
    array([1200. ,    7.5,    8. ,    nan])
    """
    if not form:
        return _parse_plain(values)
    match = _FORM.fullmatch(form)
    if match is None:  # of a model file that somebody has altered
        raise CoCoError(f"{form!r} is no form of a number")
    sign, writing = match[1] or match[3], match[2]
    parsed = _parse_plain(values)
    for j, value in enumerate(values):
        if isinstance(value, str):
            found, digits = _take_apart(value)
            readable = found in {"", sign} and _DIGITS[writing].fullmatch(digits)
            parsed[j] = _parse_digits(digits, writing) if readable else np.nan
    return parsed


def find_form(
    values: NDArray[Any], counts: NDArray[np.intp], decimal: str = AUTO
) -> tuple[str, NDArray[np.bool_]]:
    """Return the form in which most cells of a column are numbers.

    Where several do, the earlier of plain numbers, thousands and decimal commas is taken. A sign
    belongs to the form only where it stands: 5% and 0.05 are never read as one column.

    Parameters
    ----------
    values : ndarray of shape (n_distinct,)
        The distinct values.
    counts : ndarray of shape (n_distinct,)
        In how many cells each stands.
    decimal : {"auto", ".", ","}
        The decimal mark, if it is known. With a comma, 1.234 is a thousand and more.

    Returns
    -------
    form : str
        Its name.
    fits : ndarray of shape (n_distinct,)
        Which values have it.

    Examples
    --------
    >>> import numpy as np
    >>> find_form(np.array(["51,20", "3,5"], dtype=object), np.array([1, 1]))
    ('1.234,5', array([ True,  True]))
    >>> find_form(np.array(["1.250 CHF"], dtype=object), np.array([1]), decimal=",")
    ('CHF 1.234,5', array([ True]))
    """
    plain = ~np.isnan(_parse_plain(values))
    if plain.all() and decimal != COMMA:
        return "", plain
    is_text = np.array([isinstance(value, str) for value in values], dtype=bool)
    parts = [_take_apart(value) if isinstance(value, str) else ("", "") for value in values]
    found = [("", plain)]
    for sign in sorted({sign for sign, digits in parts if digits}):
        for writing, pattern in _DIGITS.items():
            if writing == DECIMAL_COMMA and not _may_be_comma(decimal, parts):
                continue
            fits = np.array([s == sign and bool(pattern.fullmatch(d)) for s, d in parts], bool)
            if not sign:
                fits |= plain & ~is_text
            found.append((_name(sign, writing), fits))
    if decimal == COMMA:  # first of equals
        found.sort(key=lambda item: DECIMAL_COMMA not in item[0])
    return max(found, key=lambda item: counts[item[1]].sum())


def could_be_thousands(values: NDArray[Any]) -> bool:
    """Return whether points may stand between thousands, and no comma says if they do.

    Examples
    --------
    >>> import numpy as np
    >>> could_be_thousands(np.array(["7.730", "€ 1.250", "12"], dtype=object))
    True
    >>> could_be_thousands(np.array(["7.73", "1.250"], dtype=object))
    False
    """
    digits = [_take_apart(value)[1] for value in values if isinstance(value, str)]
    digits = [numeral for numeral in digits if numeral]
    return (
        any("." in numeral for numeral in digits)
        and not any("," in numeral for numeral in digits)
        and all(map(_DIGITS[DECIMAL_COMMA].fullmatch, digits))
    )


def with_decimal(form: str, decimal: str) -> str:
    """Return the same form with another decimal mark.

    Examples
    --------
    >>> with_decimal("$1,234.5", ","), with_decimal("", ","), with_decimal("1.234,5%", ".")
    ('$1.234,5', '1.234,5', '1,234.5%')
    """
    if decimal == DOT:
        return form.replace(DECIMAL_COMMA, THOUSANDS)
    return (form or POINT).replace(THOUSANDS, DECIMAL_COMMA).replace(POINT, DECIMAL_COMMA)


def have_leading_zeros(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values are codes of digits that a number would spoil, such as ``"01000"``."""
    return np.array([isinstance(v, str) and bool(_LEADING_ZERO.fullmatch(v)) for v in values], bool)


def are_digits(values: NDArray[Any]) -> bool:
    """Return whether all values are texts of nothing but digits."""
    return all(isinstance(value, str) and value.strip().isdecimal() for value in values)


def are_gap_marks(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values say that there is none, in a column of numbers or dates.

    Examples
    --------
    >>> import numpy as np
    >>> are_gap_marks(np.array(["?", " N/A", "nil", 0], dtype=object))
    array([ True,  True, False, False])
    """
    return np.array([isinstance(v, str) and v.strip().lower() in GAP_MARKS for v in values], bool)


def _take_apart(text: str) -> tuple[str, str]:
    """Return the sign and the digits of a numeral; both are empty where it is none."""
    text = _GROUP_MARK.sub("", text).translate(_ODD_SPACES)
    match = _NUMERAL.fullmatch(text.strip().lower())
    if match is None:
        return "", ""
    minus, before, digits, after = match.groups()
    if (before and after) or (minus and digits[0] in "+-"):
        return "", ""
    unit = before or after or ""
    return WORDS.get(unit, unit), minus + digits


def _name(sign: str, writing: str) -> str:
    if sign == "%":
        return f"{writing}%"
    return f"{sign} {writing}" if sign.isalpha() else f"{sign}{writing}"


def _may_be_comma(decimal: str, parts: list[tuple[str, str]]) -> bool:
    """Return whether decimal commas are possible; 1.234.567 may be the number of a version."""
    return decimal == COMMA or (decimal == AUTO and any("," in digits for _, digits in parts))


def _parse_digits(digits: str, writing: str) -> float:
    for old, new in _REPLACED[writing]:
        digits = digits.replace(old, new)
    return float(digits)


def _parse_plain(values: NDArray[Any]) -> NDArray[np.float64]:
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
