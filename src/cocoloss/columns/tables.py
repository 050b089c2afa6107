"""One face for every table: named columns, or one block of numbers where that is all there is.

What a column means, a quantity or a category, is not this file's business.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cocoloss.columns.refusals import check_is_table, is_polars
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
    check_is_table(X, reader)
    if isinstance(X, pd.DataFrame):
        return _from_pandas(X)
    if is_polars(X):
        return _from_polars(X)
    if hasattr(X, "to_pandas"):  # Arrow and other frames
        frame = X.to_pandas()
        check_is_table(frame, reader)
        return _from_pandas(frame)
    return _from_array(X, reader)


def _from_pandas(frame: Any) -> Table:
    names = [str(label) for label in frame.columns]
    as_text = all(isinstance(label, str) for label in frame.columns)
    dtypes = set(frame.dtypes)
    if all(isinstance(t, np.dtype) and t.kind in NUMBER_KINDS for t in dtypes):
        block = frame.to_numpy() if len(dtypes) == 1 else frame.to_numpy(dtype=np.float64)
        return Table(names, True, as_text, len(frame), block, [])
    series = [frame.iloc[:, j] for j in range(len(names))]
    return Table(names, True, as_text, len(frame), None, series)


def _from_polars(frame: Any) -> Table:
    # By way of numpy, because polars' own to_pandas needs pyarrow.
    series = [_polars_column(column) for column in frame.get_columns()]
    return Table(list(frame.columns), True, True, frame.height, None, series)


def _polars_column(column: Any) -> Any:
    if str(column.dtype).startswith(("Categorical", "Enum")):
        return pd.Series(column.cast(str).to_numpy(), dtype="category")
    values = column.to_numpy()
    if values.ndim > 1:  # structs and arrays, which the reader will refuse by name
        return pd.Series(column.to_list(), dtype=object)
    return pd.Series(values, dtype=object if values.dtype == object else None)


def _from_array(X: Any, reader: str) -> Table:
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
    if type(X) is np.ndarray and X.dtype.kind in NUMBER_KINDS:
        return X  # there is nothing to say of it that check_is_table has not said
    from sklearn.utils.validation import check_array  # noqa: PLC0415 - slow, and seldom needed

    try:
        return np.asarray(
            check_array(X, dtype=dtype, ensure_all_finite=False, estimator=reader, input_name="X")
        )
    except ValueError as error:  # complex, or lists within lists within lists
        raise CoCoError(str(error).partition("\n")[0]) from error  # and without the data
