"""One type per column, from the first chunk of a table to its last."""

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from cocoloss.exceptions import CoCoError
from cocoloss.tables.commas import COMMA, is_blank_mark, parse_comma_numbers

NUMBER = "number"
BOOLEAN = "boolean"
TEXT = "text"
NUMBER_KINDS = "iuf"  # of numpy dtypes
WORDS = {"true": True, "false": False}
OTHER = "other"  # dates and categories: formats that have them keep them the same throughout


def kinds_of(frame: Any) -> dict[str, str]:
    """Return the kind of each column of a chunk.

    Examples
    --------
    >>> kinds_of(pd.DataFrame({"a": [1], "b": [None], "c": [True], "d": ["x"]}))
    {'a': 'number', 'b': 'text', 'c': 'boolean', 'd': 'text'}
    """
    return {name: _kind_of(frame, name, dtype) for name, dtype in frame.dtypes.items()}


def steady(
    frame: Any,
    kinds: dict[str, str],
    n_before: int,
    path: object,
    decimal: str = ".",
    lenient: Collection[str] = (),
) -> Any:
    """Return a chunk with the types of its kinds: float64, boolean, or as it is.

    Whole numbers become float64 too, since a later chunk may have gaps or fractions in them.

    Parameters
    ----------
    frame : pandas.DataFrame
        The chunk.
    kinds : dict
        What :func:`kinds_of` found in the first chunk. Other columns are left alone.
    n_before : int
        Number of rows before this chunk, for the message.
    path : object
        Name of the file, for the message.
    decimal : {".", ","}
        The decimal mark of numbers among text.
    lenient : collection of str
        Columns of numbers that are left as they are where other text is among them.

    Raises
    ------
    CoCoError
        If another column of numbers, or one of true and false, holds something else from here on.

    Examples
    --------
    >>> chunk = pd.DataFrame({"a": [1, 2]})
    >>> steady(chunk, {"a": "number"}, 0, "a.csv")["a"].tolist()
    [1.0, 2.0]
    """
    if set(kinds.values()) == {NUMBER} and all(map(_is_plain_number, set(frame.dtypes))):
        return frame.astype(np.float64)  # in one go: a table may be wide
    changed = {}
    for name, dtype in frame.dtypes.items():
        if kinds.get(name) == NUMBER and dtype != np.float64:
            try:
                changed[name] = _numbers(frame[name], n_before, path, decimal)
            except CoCoError:
                if name not in lenient:
                    raise
        elif kinds.get(name) == BOOLEAN and dtype != "boolean":
            changed[name] = _booleans(frame[name], n_before, path)
    return frame.assign(**changed) if changed else frame


def without_objects(frame: Any) -> Any:
    """Return a frame whose columns of true, false and gaps have pandas' boolean type.

    Examples
    --------
    >>> without_objects(pd.DataFrame({"a": [True, None]})).dtypes["a"]
    BooleanDtype
    """
    changed = {
        name: frame[name].astype("boolean")
        for name, dtype in frame.dtypes.items()
        if types.is_object_dtype(dtype) and types.infer_dtype(frame[name], skipna=True) == "boolean"
    }
    return frame.assign(**changed) if changed else frame


def _is_plain_number(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in NUMBER_KINDS


def _kind_of(frame: Any, name: str, dtype: Any) -> str:
    if _is_plain_number(dtype):
        return NUMBER
    if types.is_bool_dtype(dtype):
        return BOOLEAN
    if types.is_numeric_dtype(dtype):
        return NUMBER
    if types.is_object_dtype(dtype):
        found = types.infer_dtype(frame[name], skipna=True)
        return {"boolean": BOOLEAN, "integer": NUMBER, "decimal": NUMBER}.get(found, TEXT)
    return TEXT if types.is_string_dtype(dtype) else OTHER


def _numbers(column: Any, n_before: int, path: object, decimal: str) -> Any:
    if types.is_bool_dtype(column.dtype):
        raise _surprise(column, 0, "numbers", n_before, path)
    if types.is_numeric_dtype(column.dtype):
        return column.astype("float64")
    if decimal == COMMA:
        numbers = pd.Series(parse_comma_numbers(column), index=column.index)
        column = column.mask(column.map(is_blank_mark))
    else:
        numbers = pd.to_numeric(column.astype(str).where(column.notna()), errors="coerce")
    _check_all_found(numbers, column, "numbers", n_before, path)
    return numbers.astype("float64")


def _booleans(column: Any, n_before: int, path: object) -> Any:
    found = column.map(lambda value: WORDS.get(str(value).lower()), na_action="ignore")
    _check_all_found(found, column, "true and false", n_before, path)
    return found.astype("boolean")


def _check_all_found(found: Any, column: Any, before: str, n_before: int, path: object) -> None:
    stray = (found.isna() & column.notna()).to_numpy()
    if stray.any():
        raise _surprise(column, int(stray.argmax()), before, n_before, path)


def _surprise(column: Any, position: int, before: str, n_before: int, path: object) -> CoCoError:
    row = n_before + position + 1
    return CoCoError(
        f"{path}, row {row} below the header: column {column.name!r} holds "
        f"{str(column.iloc[position])!r}, but {before} up to there; mend the cell or empty it"
    )
