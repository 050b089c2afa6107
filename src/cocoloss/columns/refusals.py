"""What is no table, told by its outside alone and in one line."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from cocoloss._checks import is_sparse
from cocoloss.columns.remarks import some_of
from cocoloss.exceptions import CoCoError

ONE_DIMENSION = (
    "Reshape your data: X.reshape(-1, 1) if it is one column, X.reshape(1, -1) if it is one row"
)


def check_is_table(X: Any, reader: str) -> None:
    """Refuse what is no table of at least one row and one column; the cells are not looked at.

    Parameters
    ----------
    X
        What should be a table.
    reader : str
        Who wants to know, for the messages.

    Raises
    ------
    CoCoError
        If it is none, has no rows or no columns, or two columns of one name.
    TypeError
        If it is a sparse matrix.

    Examples
    --------
    >>> check_is_table([[1, 2], [3, 4]], "CoCoClassifier")
    >>> check_is_table({"a": [1, 2]}, "CoCoClassifier")
    Traceback (most recent call last):
    cocoloss.exceptions.CoCoError: X is a dict; pass pandas.DataFrame(X)
    """
    if is_sparse(X):
        raise TypeError(
            f"Sparse data was passed, but {reader} needs a dense table; use X.toarray()"
        )
    if isinstance(X, Mapping):
        raise CoCoError("X is a dict; pass pandas.DataFrame(X)")
    if is_polars(X) and hasattr(X, "collect"):
        raise CoCoError("X is a lazy polars frame; pass X.collect()")
    if getattr(getattr(X, "dtype", None), "names", None):
        raise CoCoError("X is a structured array; pass pandas.DataFrame(X)")
    if isinstance(X, Sequence) and not isinstance(X, str | bytes):
        _check_shape(_shape_of_rows(X), reader)
    elif hasattr(X, "shape") or hasattr(X, "__array__"):
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
        _check_shape(tuple(shape), reader, is_series=hasattr(X, "to_frame"))
    else:
        raise CoCoError(
            f"X is {'None' if X is None else f'a {type(X).__name__}'}, but {reader} needs a table: "
            f"a data frame, a 2D array or a list of rows"
        )
    if isinstance(X, pd.DataFrame):
        _check_names(X)


def is_polars(X: Any) -> bool:
    """Return whether something is of polars, without importing polars."""
    return type(X).__module__.partition(".")[0] == "polars"


def _shape_of_rows(rows: Sequence[Any]) -> tuple[int, ...]:
    """Return the shape of a list of rows; what is in the cells does not count."""
    if any(isinstance(row, Mapping) for row in rows):
        raise CoCoError("X is a list of dicts; pass pandas.DataFrame(X)")
    lengths = [
        len(row) if hasattr(row, "__len__") and not isinstance(row, str | bytes) else None
        for row in rows
    ]
    for j, length in enumerate(lengths):
        if length != lengths[0]:
            raise CoCoError(
                f"the rows of X differ in length, so that the shape is inhomogeneous: row 0 has "
                f"{_cells(lengths[0])}, row {j} has {_cells(length)}"
            )
    return (len(rows),) if not rows or lengths[0] is None else (len(rows), lengths[0])


def _cells(length: int | None) -> str:
    return "no cells but a value" if length is None else f"{length} cells"


def _check_shape(shape: tuple[int, ...], reader: str, *, is_series: bool = False) -> None:
    """Refuse another number of dimensions, and an empty table in scikit-learn's words."""
    if len(shape) == 1 and shape[0] > 0:
        remedy = "Pass X.to_frame()" if is_series else ONE_DIMENSION
        raise CoCoError(f"X has one dimension (shape={shape}), but a table has two. {remedy}")
    if len(shape) not in {1, 2}:
        raise CoCoError(
            f"X has {len(shape)} dimensions (shape={shape}), but {reader} needs a table, which "
            f"has two: rows and columns"
        )
    for count, what in zip(shape, ("sample", "feature"), strict=False):
        if count == 0:
            raise CoCoError(
                f"Found array with 0 {what}(s) (shape={shape}) "
                f"while a minimum of 1 is required by {reader}."
            )


def _check_names(frame: Any) -> None:
    counts = Counter(str(label) for label in frame.columns)
    twice = [repr(name) for name, count in counts.items() if count > 1]
    if twice:
        raise CoCoError(
            f"column names must differ, but these come twice: {some_of(twice)}; rename them, or "
            f"drop the repetitions by X.loc[:, ~X.columns.duplicated()]"
        )
