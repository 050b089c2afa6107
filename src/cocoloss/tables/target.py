"""The column to learn: taken out of a table, its gaps and oddities said."""

from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from cocoloss._checks import check_option, did_you_mean, listed
from cocoloss.exceptions import CoCoError

MANY_CLASSES = 20  # fewer numbers than this are classes, whatever they look like


def split_target(
    frame: Any, target: str, *, missing: str = "raise", training: bool = True
) -> tuple[Any, Any]:
    """Split a table into features and classes.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table.
    target : str
        Name of the column that holds the class.
    missing : {"raise", "drop"}
        What to do with rows whose class is missing; ``len(frame) - len(y)`` of them are dropped.
    training : bool
        Whether the rows are to be learnt from. If not, they may be of one class, and anything
        goes that could be a class.

    Returns
    -------
    X : pandas.DataFrame
        The other columns, with a plain index.
    y : pandas.Series
        The classes. Text has no spaces around it; whole numbers are int64, and numbers of which
        some have fractions are text: no classifier takes them for classes otherwise.

    Raises
    ------
    CoCoError
        If there is no such column or no other one, it has gaps, one class only, or does not
        look like classes. It does not if every value is different; or if its values are numbers,
        more than 20 of them different, and some have fractions or more than half are different. So
        does text of which more than half, and more than 20, are different.

    Examples
    --------
    >>> from cocoloss.tables import split_target
    >>> table = pd.DataFrame({"size": [1.0, 2.0, 3.0], "kind": ["ant ", "bee", "ant"]})
    >>> X, y = split_target(table, "kind")
    >>> y.tolist()
    ['ant', 'bee', 'ant']
    """
    check_option(missing, "missing", ["raise", "drop"])
    column = _column(frame, target)
    y = _values(column)
    present = y.notna().to_numpy()
    n_gaps = len(y) - int(present.sum())
    if n_gaps == len(y):
        raise CoCoError(f"column {target!r} is empty; there is no class to learn")
    if n_gaps and missing == "raise":
        first = int(present.argmin()) + 1
        raise CoCoError(
            f"column {target!r} has no class in {n_gaps} of {len(y)} rows, the first of them row "
            f"{first}; drop them with missing='drop', or fill them in"
        )
    y = _as_classes(y[present])
    if training:
        _check_classes(y, target)
    if types.is_float_dtype(y.dtype):
        y = y.map(str)
    X = frame.drop(columns=target)[present]
    return X.reset_index(drop=True), y.reset_index(drop=True)


def _column(frame: Any, target: str) -> Any:
    if target not in frame.columns:
        names = [str(name) for name in frame.columns]
        guess = did_you_mean(str(target), names)
        raise CoCoError(
            f"there is no column {target!r}{guess or f'; the columns are {listed(names)}'}"
        )
    if frame.shape[1] == 1:
        raise CoCoError(f"there is no column beside {target!r} to learn from")
    return frame[target]


def _values(column: Any) -> Any:
    """Return values rather than categories, text without outer spaces, nothing for empty text."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype if _fits(column) else object)
    if column.dtype == object or types.is_string_dtype(column.dtype):
        if types.infer_dtype(column, skipna=True) == "boolean":
            return column.astype("boolean")
        column = column.map(lambda v: v.strip() if isinstance(v, str) else v, na_action="ignore")
        column = column.mask(column == "")
        if types.infer_dtype(column, skipna=True).startswith("mixed"):
            column = column.map(str, na_action="ignore")
    return column


def _fits(column: Any) -> bool:
    """Tell whether the values of a categorical column fit the type of its categories."""
    return not column.isna().any() or not types.is_integer_dtype(column.cat.categories.dtype)


def _as_classes(y: Any) -> Any:
    if types.is_bool_dtype(y.dtype):
        return y.astype(bool)
    if types.is_numeric_dtype(y.dtype):
        numbers = y.to_numpy(dtype=np.float64)
        infinite = ~np.isfinite(numbers)
        if infinite.any():
            raise CoCoError(f"column {y.name!r} holds {numbers[infinite][0]}, which is no class")
        integers = (numbers == np.round(numbers)).all() and np.abs(numbers).max() < 2**53
        return y.astype(np.int64 if integers else np.float64)
    return y


def _check_classes(y: Any, target: str) -> None:
    n_classes = int(y.nunique())
    if n_classes == 1:
        raise CoCoError(
            f"column {target!r} holds one class only, {str(y.iloc[0])!r}, in all {len(y)} rows; "
            f"a classifier needs at least two"
        )
    if n_classes == len(y):
        raise CoCoError(
            f"column {target!r} has a different value in each of its {len(y)} rows; "
            f"it looks like an identifier or a quantity, not like classes"
        )
    if not types.is_numeric_dtype(y.dtype) or types.is_bool_dtype(y.dtype):
        if n_classes > MANY_CLASSES and n_classes > len(y) / 2:
            raise CoCoError(
                f"column {target!r} holds {n_classes} different values in {len(y)} rows; nearly "
                f"every row would be a class of its own: it looks like an identifier or a quantity"
            )
        return
    fractions = types.is_float_dtype(y.dtype)
    if n_classes > MANY_CLASSES and (fractions or n_classes > len(y) / 2):
        raise CoCoError(
            f"column {target!r} holds {n_classes} different numbers in {len(y)} rows; it looks "
            f"like a quantity, not like classes: cut it into a few ranges, or read it as text"
        )
