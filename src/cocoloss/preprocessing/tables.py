"""One face for every table: named columns, or one block of numbers where that is all there is.

What a column means, a quantity or a category, is not this file's business.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from cocoloss.exceptions import CoCoError

NUMBER_KINDS = "iuf"  # of numpy dtypes


@dataclass(frozen=True)
class Table:
    """A table whose columns can be asked for by position.

    Attributes
    ----------
    names : list of str
        One per column; ``x0, x1, ...`` where the data brought none.
    named : bool
        Whether the names came with the data, so that columns can be found by them.
    names_are_text : bool
        Whether they did and were all strings, as scikit-learn wants feature names to be.
    n_rows : int
        Number of rows, at least one.
    block : ndarray of shape (n_rows, n_columns) or None
        The whole table, if it holds numbers only.
    series : list of pandas.Series
        The columns, if it does not.
    """

    names: list[str]
    named: bool
    names_are_text: bool
    n_rows: int
    block: NDArray[Any] | None
    series: list[Any]

    @property
    def n_columns(self) -> int:
        """Number of columns, at least one."""
        return len(self.names)

    def column(self, position: int) -> Any:
        """Return one column as a ``pandas.Series``."""
        if self.block is None:
            return self.series[position]
        return pd.Series(self.block[:, position])


def read_table(X: Any, reader: str) -> Table:
    """Read arrays, lists of rows, and pandas, polars or Arrow tables.

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_columns)
        The table.
    reader : str
        Who wants to know, for the messages.

    Raises
    ------
    CoCoError
        If there is no table in ``X``, or it has no rows, no columns or two columns of one name.
    TypeError
        If ``X`` is a sparse matrix.
    """
    if isinstance(X, pd.DataFrame):
        return _from_pandas(X, reader)
    if type(X).__module__.partition(".")[0] == "polars":  # known without importing polars
        return _from_polars(X, reader)
    if hasattr(X, "to_pandas"):  # Arrow and other frames
        return _from_pandas(X.to_pandas(), reader)
    return _from_array(X, reader)


def _from_pandas(frame: Any, reader: str) -> Table:
    names = _column_names(frame.columns)
    _check_shape(frame.shape, reader)
    as_text = all(isinstance(label, str) for label in frame.columns)
    dtypes = set(frame.dtypes)
    if all(isinstance(t, np.dtype) and t.kind in NUMBER_KINDS for t in dtypes):
        block = frame.to_numpy() if len(dtypes) == 1 else frame.to_numpy(dtype=np.float64)
        return Table(names, True, as_text, len(frame), block, [])
    series = [frame.iloc[:, j] for j in range(len(names))]
    return Table(names, True, as_text, len(frame), None, series)


def _from_polars(frame: Any, reader: str) -> Table:
    if hasattr(frame, "collect"):
        raise CoCoError("X is a lazy polars frame; pass X.collect()")
    if not hasattr(frame, "get_columns"):
        return _from_array(frame.to_numpy(), reader)
    names = _column_names(frame.columns)
    _check_shape(frame.shape, reader)
    # By way of numpy, because polars' own to_pandas needs pyarrow.
    series = [_polars_column(column) for column in frame.get_columns()]
    return Table(names, True, True, frame.height, None, series)


def _polars_column(column: Any) -> Any:
    if str(column.dtype).startswith(("Categorical", "Enum")):
        return pd.Series(column.cast(str).to_numpy(), dtype="category")
    values = column.to_numpy()
    if values.ndim > 1:  # structs and arrays, which the reader will refuse by name
        return pd.Series(column.to_list(), dtype=object)
    return pd.Series(values, dtype=object if values.dtype == object else None)


def _from_array(X: Any, reader: str) -> Table:
    if getattr(getattr(X, "dtype", None), "names", None):
        raise CoCoError("X is a structured array; pass pandas.DataFrame(X)")
    values = _as_array(X, None, reader)
    if values.dtype.kind in "US" and not hasattr(X, "dtype"):
        values = _as_array(X, object, reader)  # numpy has turned the numbers beside text into text
    n_rows, n_columns = values.shape
    names = [f"x{j}" for j in range(n_columns)]
    if values.dtype.kind in NUMBER_KINDS:
        return Table(names, False, False, n_rows, values, [])
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    dtype = object if values.dtype.kind in "OUT" else None
    series = [pd.Series(values[:, j], dtype=dtype) for j in range(n_columns)]
    return Table(names, False, False, n_rows, None, series)


def _as_array(X: Any, dtype: Any, reader: str) -> NDArray[Any]:
    try:
        return np.asarray(
            check_array(X, dtype=dtype, ensure_all_finite=False, estimator=reader, input_name="X")
        )
    except ValueError as error:  # one dimension or three, complex, ragged, no rows, no columns
        raise CoCoError(str(error)) from error


def _column_names(columns: Sequence[Any]) -> list[str]:
    names = [str(name) for name in columns]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise CoCoError(f"column names must differ, but these come twice: {', '.join(twice)}")
    return names


def _check_shape(shape: tuple[int, int], reader: str) -> None:
    """Refuse an empty frame in the words that scikit-learn has for an empty array."""
    for count, what in zip(shape, ("sample", "feature"), strict=True):
        if count == 0:
            raise CoCoError(
                f"Found array with 0 {what}(s) (shape={shape}) "
                f"while a minimum of 1 is required by {reader}."
            )
