"""Columns of whole numbers that seem to name the rows, as customers' numbers do."""

import re
from typing import Any

import numpy as np
from pandas.api import types

NAMING = frozenset(
    {"id", "ids", "uid", "nr", "no", "num", "nummer", "number", "key", "code", "index", "idx"}
)
FEWEST_ROWS = 3
# Words of a name: between marks, or where a small letter is followed by a capital one.
_WORD = re.compile(r"[A-ZÄÖÜ]+(?![a-zäöüß])|[A-ZÄÖÜ]?[a-zäöüß]+")


def find_identifiers(frame: Any) -> list[str]:
    """Return the columns that look like identifiers, though they are numbers.

    They are called so, by a word of their name such as id, nr, number, key, code or index, and
    hold whole numbers that are all different.

    Parameters
    ----------
    frame : pandas.DataFrame
        The features.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"Kunden-Nr": [11, 12, 13], "width": [4, 5, 6], "code": [1, 1, 2]})
    >>> find_identifiers(frame)
    ['Kunden-Nr']
    """
    if len(frame) < FEWEST_ROWS:
        return []
    called_so = [name for name in frame.columns if is_named_like_identifier(str(name))]
    return [str(name) for name in called_so if _all_different(frame[name])]


def is_named_like_identifier(name: str) -> bool:
    """Tell whether a word of a name says that the column names its rows.

    Examples
    --------
    >>> [is_named_like_identifier(name) for name in ("customerID", "row_no", "width", "Idee")]
    [True, True, False, False]
    """
    return any(word.lower() in NAMING for word in _WORD.findall(name))


def _all_different(column: Any) -> bool:
    """Tell whether a column is whole numbers of which no two are equal."""
    if not types.is_numeric_dtype(column.dtype) or types.is_bool_dtype(column.dtype):
        return False
    known = column.dropna()
    if len(known) < FEWEST_ROWS or not known.is_unique:
        return False
    if types.is_integer_dtype(known.dtype):
        return True
    numbers = known.to_numpy(dtype=np.float64)
    return bool((numbers == np.round(numbers)).all())
