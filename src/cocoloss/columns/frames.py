"""A table of any library as columns, and as one block of numbers where that is all there is.

What is no table is refused here, in one line. What a column means is not known here.
"""

import inspect
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cocoloss._checks import is_sparse, listed
from cocoloss.exceptions import CoCoError
from cocoloss.number_text import is_gap_mark

NUMBER_DTYPES = "iuf"  # kinds of numpy dtypes
MISSING = -1  # a code, as in pandas
UNSEEN = -2  # a code: a category that training did not have
BLANKS = frozenset({"", "nan", "<na>"})  # what a gap becomes when it is written as text
MOST_DENSE = 500  # columns of a sparse matrix that is read like a dense one
MOST_CELLS = 2**29  # of a sparse matrix that is made dense: 4 GB
CONTAINERS = (dict, list, tuple, set, frozenset, np.ndarray, pd.Series)
RESHAPE = (
    "Reshape your data: X.reshape(-1, 1) if it is one column, X.reshape(1, -1) if it is one row"
)


class Distinct(NamedTuple):
    """The distinct values of a column, and which of them each row has."""

    codes: NDArray[np.intp]  # (n_rows,), MISSING in a gap
    values: NDArray[Any]  # (n_distinct,), of dtype object

    @property
    def counts(self) -> NDArray[np.intp]:
        """In how many rows each value stands, (n_distinct,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.values))


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table, and the distinct values in it, which are looked for once."""

    name: str
    series: Any  # a pandas.Series of any dtype

    @cached_property
    def distinct(self) -> Distinct:
        """The distinct values; blank text counts as a gap, and containers are refused."""
        if isinstance(self.series.dtype, pd.CategoricalDtype):
            codes, values = self.series.cat.codes.to_numpy(), self.series.cat.categories
        else:
            try:
                codes, values = pd.factorize(self.series)
            except TypeError as error:  # not hashable
                culprit = next((v for v in self.series if isinstance(v, CONTAINERS)), None)
                raise self._container_error(culprit) from error
        values = np.asarray(values.astype(object), dtype=object)
        for value in values:
            if isinstance(value, CONTAINERS):
                raise self._container_error(value)
            if isinstance(value, complex):
                raise self.complex_error()
        blank = np.array([isinstance(v, str) and v.strip().lower() in BLANKS for v in values], bool)
        position = np.where(blank, MISSING, np.cumsum(~blank) - 1)
        position = np.append(position, MISSING)  # so that code -1 finds itself at the end
        return Distinct(position[codes.astype(np.intp)], values[~blank])

    def parse(
        self,
        parser: Callable[[NDArray[Any]], NDArray[np.float64]],
        what: str,
        now: str = ", but now holds",
        *,
        lenient: bool = False,
    ) -> NDArray[np.float64]:
        """Return what a parser makes of the column, NaN in a gap.

        What the parser cannot read (its NaN) is an error, unless it is the mark of a gap or the
        reading is lenient. The message says ``what`` training held, and what it is ``now``.
        """
        codes, values = self.distinct
        parsed = parser(values)
        unread = np.isnan(parsed)
        if unread.any() and not lenient:
            self.refuse(unread & ~np.array([is_gap_mark(v) for v in values], bool), what, now)
        return np.asarray(np.append(parsed, np.nan)[codes], dtype=np.float64)

    def refuse(self, bad: NDArray[np.bool_], what: str, now: str = ", but now holds") -> None:
        """Name the first of the distinct values that are not what training had, if any is."""
        if bad.any():
            raise CoCoError(
                f"column {self.name!r} held {what} in training{now} "
                f"{self.distinct.values[np.argmax(bad)]!r}; convert it, or fit again"
            )

    def complex_error(self) -> CoCoError:
        """Say that it holds complex numbers, in the words that scikit-learn has for them."""
        return CoCoError(
            f"Complex data not supported: column {self.name!r}; pass the real and the imaginary "
            f"part as two columns"
        )

    def _container_error(self, value: Any) -> TypeError:
        return TypeError(
            f"argument must be a string or a number, not {type(value).__name__!r}: "
            f"column {self.name!r} holds {value!r}; give each part a column of its own"
        )


@dataclass(frozen=True)
class Header:
    """The names of a table's columns, by which they are found again in another table."""

    names: tuple[str, ...]  # x0, x1, ... where the data brought none
    named: bool = False  # whether it did, so that columns can be found by them
    all_text: bool = False  # and all were strings, as scikit-learn wants feature names to be

    def locate(self, other: "Header", needed: Iterable[str], reader: str) -> dict[str, int]:
        """Return where the columns of this header are in another: by name if both have names.

        Those that are ``needed`` must be there. The ``reader`` speaks in the messages.
        """
        if self.named and other.named:
            where = {name: j for j, name in enumerate(other.names)}
            lacking = [name for name in needed if name not in where]
            if lacking:
                raise CoCoError(
                    f"X lacks columns that were there in fit: {listed(lacking)}; "
                    f"it has {listed(other.names)}"
                )
            return where
        if len(other.names) != len(self.names):
            raise CoCoError(
                f"X has {len(other.names)} features, but {reader} is expecting "
                f"{len(self.names)} features as input."
            )
        odd = ""
        if self.all_text:
            odd = f"X does not have valid feature names, but {reader} was fitted with feature names"
        elif other.named and not self.named:
            odd = f"X has feature names, but {reader} was fitted without feature names"
        if odd:
            # Where transform was called: past two of that name, and scikit-learn's wrapper of one.
            warnings.warn(odd, UserWarning, stacklevel=5)
        return {name: j for j, name in enumerate(self.names)}

    def renamed(self, input_features: Any) -> dict[str, str]:
        """Return how the user calls each column; as in fit where nothing is given."""
        if input_features is None:
            return {name: name for name in self.names}
        names = [str(name) for name in input_features]
        if self.all_text and names != list(self.names):
            raise CoCoError("input_features is not equal to feature_names_in_")
        if len(names) != len(self.names):
            raise CoCoError(
                f"input_features should have length equal to number of features "
                f"({len(self.names)}), got {len(names)}"
            )
        return dict(zip(self.names, names, strict=True))

    def row_of(self, value: float) -> Any:
        """Return a table of one row that has the same number in every column."""
        row = np.full((1, len(self.names)), value)
        return pd.DataFrame(row, columns=list(self.names)) if self.named else row


@dataclass(frozen=True, eq=False)
class Table:
    """A table of at least one row and one column, whose columns are known by position."""

    header: Header
    n_rows: int
    block: NDArray[Any] | None  # (n_rows, n_columns), if it holds numbers only
    columns: list[Column]  # if it does not

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.header.names

    def column(self, position: int) -> Column:
        """Return one column."""
        if self.block is None:
            return self.columns[position]
        return Column(self.names[position], pd.Series(self.block[:, position]))

    def numbers(self, positions: Sequence[int]) -> NDArray[Any] | None:
        """Return some columns of the block, without a copy where they are all; None without one."""
        if self.block is None or list(positions) == list(range(len(self.names))):
            return self.block
        return self.block[:, list(positions)]


def read_table(X: Any, reader: str) -> Table:
    """Read an array, a list of rows, or a pandas, polars or Arrow table.

    Whatever :func:`check_is_table` refuses is refused, in the name of ``reader``.
    """
    check_is_table(X, reader)
    X = as_dense(X) if is_sparse(X) else X
    if isinstance(X, pd.DataFrame):
        return _from_pandas(X)
    if is_polars(X):
        # By way of numpy, because polars' own to_pandas needs pyarrow.
        series = [_polars_column(column) for column in X.get_columns()]
        return _of_series(Header(tuple(X.columns), named=True, all_text=True), X.height, series)
    if hasattr(X, "to_pandas"):  # Arrow and other frames
        frame = X.to_pandas()
        check_is_table(frame, reader)
        return _from_pandas(frame)
    return _from_array(X, reader)


def as_dense(X: Any) -> NDArray[Any]:
    """Return a sparse matrix as an array, or say that it is too large for one."""
    n_rows, n_columns = X.shape
    if n_rows * n_columns > MOST_CELLS:
        raise CoCoError(
            f"X is a sparse matrix of {n_rows:,} x {n_columns:,}, which is too large to be made "
            f"dense; use preprocess='auto', which reduces those of more than {MOST_DENSE} columns, "
            f"or reduce it first, as sklearn.decomposition.TruncatedSVD does"
        )
    return np.asarray(X.toarray())


def is_wide(X: Any) -> bool:
    """Return whether this is a sparse matrix that is not to be made dense."""
    return is_sparse(X) and X.ndim == 2 and X.shape[1] > MOST_DENSE


def rows_of(X: Any) -> Any:
    """Return a sparse matrix as one whose rows can be chosen: dense, unless it is wide."""
    return X.tocsr() if is_wide(X) else as_dense(X)


def is_polars(X: Any) -> bool:
    """Return whether something is of polars, without importing polars."""
    return type(X).__module__.partition(".")[0] == "polars"


def is_dask(X: Any) -> bool:
    """Return whether something is a collection of Dask, without importing Dask."""
    return type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "to_delayed")


def is_dataset(X: Any) -> bool:
    """Return whether something is a dataset of Arrow, without importing Arrow."""
    return type(X).__module__.partition(".")[0] == "pyarrow" and hasattr(X, "get_fragments")


def are_paths(X: Any) -> bool:
    """Return whether something is a path, or a list of paths."""
    listed_paths = isinstance(X, list | tuple) and len(X) > 0
    return all(isinstance(each, str | os.PathLike) for each in (X if listed_paths else [X]))


def is_in_blocks(X: Any, y: Any) -> bool:
    """Return whether X is a table in blocks, to be read one after the other, and not one table."""
    if is_dask(X) or is_dataset(X) or isinstance(X, Iterator) or inspect.isroutine(X):
        return True
    if are_paths(X):  # a list may be rows of text, for a transformer of the user's own
        return isinstance(y, str) or not isinstance(X, list | tuple)
    if isinstance(X, Sequence):
        return len(X) > 0 and all(map(_is_block, X))
    known = isinstance(X, Mapping | AbstractSet)
    known |= any(hasattr(X, name) for name in ("shape", "__array__", "to_pandas", "collect"))
    return isinstance(X, Iterable) and not known


def _is_block(each: Any) -> bool:
    """Return whether this is a table, or a pair of a table and its classes."""
    table = each[0] if isinstance(each, tuple) and len(each) == 2 else each
    return len(getattr(table, "shape", ())) == 2


def is_plain_number(dtype: Any) -> bool:
    """Return whether a dtype is one of numpy's numbers."""
    return isinstance(dtype, np.dtype) and dtype.kind in NUMBER_DTYPES


def check_is_table(X: Any, reader: str) -> None:
    """Refuse what is no table of at least one row and one column; the cells are not looked at.

    The messages speak of ``reader``.
    """
    if isinstance(X, Mapping) and not is_sparse(X):  # which may be a dictionary of keys
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
        counts = Counter(map(str, X.columns))
        twice = [name for name, count in counts.items() if count > 1]
        if twice:
            raise CoCoError(
                f"column names must differ, but these come twice: {listed(twice)}; rename them, or "
                f"drop the repetitions by X.loc[:, ~X.columns.duplicated()]"
            )


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
            first, other = (
                "no cells but a value" if n is None else f"{n} cells" for n in (lengths[0], length)
            )
            raise CoCoError(
                f"the rows of X differ in length, so that the shape is inhomogeneous: row 0 has "
                f"{first}, row {j} has {other}"
            )
    return (len(rows),) if not rows or lengths[0] is None else (len(rows), lengths[0])


def _check_shape(shape: tuple[int, ...], reader: str, *, is_series: bool = False) -> None:
    """Refuse another number of dimensions, and an empty table in scikit-learn's words."""
    if len(shape) == 1 and shape[0] > 0:
        remedy = "Pass X.to_frame() if it is a column, X.to_frame().T if it is a row (or iloc[[0]])"
        remedy = remedy if is_series else RESHAPE
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


def _from_pandas(frame: Any) -> Table:
    names = tuple(str(label) for label in frame.columns)
    all_text = all(isinstance(label, str) for label in frame.columns)
    header = Header(names, named=True, all_text=all_text)
    dtypes = set(frame.dtypes)
    if all(map(is_plain_number, dtypes)):
        block = frame.to_numpy() if len(dtypes) == 1 else frame.to_numpy(dtype=np.float64)
        return Table(header, len(frame), block, [])
    return _of_series(header, len(frame), [frame.iloc[:, j] for j in range(len(names))])


def _of_series(header: Header, n_rows: int, series: list[Any]) -> Table:
    columns = [Column(name, values) for name, values in zip(header.names, series, strict=True)]
    return Table(header, n_rows, None, columns)


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
    header = Header(tuple(f"x{j}" for j in range(n_columns)))
    if values.dtype.kind in NUMBER_DTYPES:
        return Table(header, n_rows, values, [])
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    dtype = object if values.dtype.kind in "OUT" else None
    return _of_series(header, n_rows, [pd.Series(column, dtype=dtype) for column in values.T])


def _as_array(X: Any, dtype: Any, reader: str) -> NDArray[Any]:
    if type(X) is np.ndarray and X.dtype.kind in NUMBER_DTYPES:
        return X  # there is nothing to say of it that check_is_table has not said
    from sklearn.utils.validation import check_array  # noqa: PLC0415 - slow, and seldom needed

    try:
        return np.asarray(
            check_array(X, dtype=dtype, ensure_all_finite=False, estimator=reader, input_name="X")
        )
    except ValueError as error:  # complex, or lists within lists within lists
        raise CoCoError(str(error).partition("\n")[0]) from error  # and without the data
