"""Columns of whole numbers that seem to name the rows, as customers' numbers do, or count them."""

import re
from typing import Any

import numpy as np
from pandas.api import types

NAMING = frozenset(
    {"id", "ids", "uid", "nr", "no", "num", "nummer", "number", "key", "code", "index", "idx"}
)
FEWEST_ROWS = 3
FEWEST_COUNTED = 10  # rows of which a column with a name is not 1, 2, 3, ... by chance
# What a column is called that has no name, here and by pandas.
_NO_NAME = re.compile(r"|column_\d+|Unnamed: \d+|index|level_\d+")
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


def find_counters(frame: Any) -> list[str]:
    """Return the columns that count the rows in their order, from 0 or 1.

    Those without a name, as the index of a data frame has none, in a table of 3 rows; others in a
    table of 10.

    Parameters
    ----------
    frame : pandas.DataFrame
        All rows, in the order of the file.

    Examples
    --------
    >>> import pandas as pd
    >>> find_counters(pd.DataFrame({"Unnamed: 0": [0, 1, 2], "a": [2, 3, 4], "b": [1, 2, 3]}))
    ['Unnamed: 0']
    """
    return [str(name) for name in frame.columns if _counts(frame[name], str(name))]


def _counts(column: Any, name: str) -> bool:
    fewest = FEWEST_ROWS if _NO_NAME.fullmatch(name) else FEWEST_COUNTED
    if len(column) < fewest or not _all_different(column) or column.isna().any():
        return False
    numbers = column.to_numpy(dtype=np.float64)
    return bool(numbers[0] in (0, 1) and (np.diff(numbers) == 1).all())


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
