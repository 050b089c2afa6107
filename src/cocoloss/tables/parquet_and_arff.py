"""Parquet and ARFF, whose columns have declared types, through pyarrow and liac-arff.

Both are extras; without one of them its files give one line that says how to get it.
"""

import csv
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from pandas.api import types

from cocoloss.exceptions import CoCoError
from cocoloss.tables.delimited import EXACT, bounded, check_columns, kinds_of, with_kinds
from cocoloss.tables.dialect import check_distinct
from cocoloss.tables.formats import TextSource, decoded

LONGEST_REASON = 200  # characters of what a library says
_VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^,\s"'{}]+)\s*"""
# liac-arff takes minutes to refuse a list of twenty values of which one has a space.
_LIST = re.compile(rf"\{{\s*(?:{_VALUE})?(?:,\s*(?:{_VALUE})?)*\}}\s*")
_ATTRIBUTE = re.compile(
    r"""\s*@attribute\s+("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s{]+)\s*(.*)""",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file; the contract is :class:`cocoloss.tables.TableFile`."""

    path: Path
    text: tuple[str, ...] = ()
    decimal = None
    codes = ()

    def __post_init__(self) -> None:
        check_columns(self.path, self.text, self.column_names)

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """The columns; an index that pandas saved is none of them."""
        with self._opened() as file:
            return tuple(_frame(file.schema_arrow.empty_table()).columns)

    def with_options(
        self,
        *,
        text: Collection[str] | None = None,
        decimal: str | None = None,  # noqa: ARG002 - there is none in Parquet
    ) -> Self:
        """Return the same file, to be read otherwise."""
        return self if text is None else replace(self, text=tuple(text))

    def read(self) -> Any:
        """Return all rows."""
        with self._opened() as file:
            return _with_text(_frame(file.read()), self.text)

    def chunks(
        self,
        rows: int,
        *,
        columns: Collection[str] | None = None,
        lenient: Collection[str] = (),  # noqa: ARG002 - types are declared
    ) -> Iterator[Any]:
        """Return chunks of so many rows; the categories are those of the chunk."""
        rows = bounded(rows, len(self.column_names))
        if columns is not None:
            columns = check_columns(self.path, columns, self.column_names)
        return self._typed_chunks(rows, columns)

    def verbatim(self, columns: Collection[str], rows: int) -> Iterator[Any]:
        """Return some columns in chunks, with the types of the file."""
        rows = bounded(rows, len(self.column_names))
        names = check_columns(self.path, columns, self.column_names)
        return (_frame(batch, exactly=True)[names] for batch in self._batches(rows, names))

    def _typed_chunks(self, rows: int, columns: list[str] | None) -> Iterator[Any]:
        kinds: dict[str, str] | None = None
        n_read = 0
        for batch in self._batches(rows, columns):
            chunk = _frame(batch)
            if columns is not None:
                chunk = chunk[columns]  # pyarrow takes "a" for "a.b" as well
            kinds = kinds_of(chunk) if kinds is None else kinds
            yield _with_text(with_kinds(chunk, kinds, n_read, self.path), self.text)
            n_read += len(chunk)

    def _batches(self, rows: int, columns: list[str] | None) -> Iterator[Any]:
        n_read = 0
        with self._opened() as file:
            for batch in file.iter_batches(batch_size=rows, columns=columns):
                yield batch
                n_read += batch.num_rows
            if not n_read:
                raise CoCoError(f"{self.path} is damaged: it has fewer rows than it says")

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        path = self.path
        pa = import_pyarrow(path)
        try:
            with pa.parquet.ParquetFile(path) as file:
                _check_shape(path, file)
                yield file
        except CoCoError:
            raise
        except (
            pa.ArrowException,
            OSError,
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
        ) as error:
            # The latter where pandas' own notes inside the file are damaged.
            raise CoCoError(
                f"{path} is a damaged Parquet file: {_reason(error)}; fetch it again"
            ) from error


@dataclass(frozen=True, eq=False)
class ArffFile:
    """An ARFF file, read at once; the contract is :class:`cocoloss.tables.TableFile`."""

    path: Path
    frame: Any
    text: tuple[str, ...] = ()
    decimal = None
    codes = ()

    def __post_init__(self) -> None:
        check_columns(self.path, self.text, self.column_names)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(self.frame.columns)

    def with_options(
        self,
        *,
        text: Collection[str] | None = None,
        decimal: str | None = None,  # noqa: ARG002 - ARFF has points
    ) -> Self:
        """Return the same file, to be read otherwise."""
        return self if text is None else replace(self, text=tuple(text))

    def read(self) -> Any:
        """Return all rows."""
        return _with_text(self.frame.copy(), self.text)

    def chunks(
        self,
        rows: int,
        *,
        columns: Collection[str] | None = None,
        lenient: Collection[str] = (),  # noqa: ARG002 - types are declared
    ) -> Iterator[Any]:
        """Return chunks of so many rows."""
        rows = bounded(rows, len(self.column_names))
        names = self.column_names if columns is None else columns
        frame = self.frame[check_columns(self.path, names, self.column_names)]
        kinds = kinds_of(frame)
        typed = (with_kinds(part, kinds, 0, self.path) for part in _slices(frame, rows))
        return (_with_text(chunk, self.text) for chunk in typed)

    def verbatim(self, columns: Collection[str], rows: int) -> Iterator[Any]:
        """Return some columns in chunks; integers have no point."""
        rows = bounded(rows, len(self.column_names))
        frame = self.frame[check_columns(self.path, columns, self.column_names)]
        return _slices(frame.apply(_without_points), rows)


def read_arff(path: Path, encoding: str | None = None) -> Any:
    """Return an ARFF file as a data frame.

    Numbers become float64, nominal columns unordered categories in the declared order; a bare ``?``
    is a gap.

    Raises
    ------
    CoCoError
        If liac-arff is not installed, or cannot read the file.
    """
    try:
        arff: Any = import_module("arff")  # an extra, and without types
    except ImportError:
        raise CoCoError(f"{path}: ARFF needs liac-arff; run pip install 'cocoloss[arff]'") from None
    try:
        with TextSource(path, encoding) as source:
            content = arff.load(_checked_header(path, source.lines()))
        attributes, rows = content["attributes"], content["data"]
        columns = [
            _declared(name, kind, cells)
            for (name, kind), cells in zip(attributes, zip(*rows, strict=True), strict=bool(rows))
        ]
    except CoCoError:
        raise
    except (
        arff.ArffException,
        ArithmeticError,
        LookupError,
        StopIteration,
        TypeError,
        ValueError,
        csv.Error,
    ) as error:
        raise CoCoError(f"{path} cannot be read as ARFF: {_reason(error)}") from error
    if not columns:
        raise CoCoError(f"{path} has a header but no rows")
    return pd.concat(columns, axis=1)


def import_pyarrow(path: object) -> Any:
    """Return pyarrow with its Parquet half, or say how to get it."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra, and slow to import
        import pyarrow.parquet  # noqa: PLC0415 - the same
    except ImportError:
        raise CoCoError(
            f"{path}: Parquet needs pyarrow; run pip install 'cocoloss[parquet]'"
        ) from None
    return pa


def _check_shape(path: object, file: Any) -> None:
    check_distinct(path, list(file.schema_arrow.names))
    if file.metadata.num_rows == 0:
        raise CoCoError(f"{path} has columns but no rows")
    if file.metadata.num_columns == 0:
        raise CoCoError(f"{path} has no columns")


def _checked_header(path: object, lines: Iterator[str]) -> Iterator[str]:
    """Give the lines of an ARFF file; refuse declarations that liac-arff does not understand."""
    for number, line in enumerate(lines, start=1):
        match = _ATTRIBUTE.match(line)
        if match is None:
            yield line.lstrip("\t")
        else:
            name, kind = match[1], match[2].strip()
            if kind.startswith("{") and not _LIST.fullmatch(kind):
                raise CoCoError(
                    f"{path}, line {number}: the values of {name} cannot be read; put values that "
                    f"hold spaces, commas or quotes into quotes, and all of them into braces"
                )
            if kind.lower().startswith(("date", "relational")):
                raise CoCoError(
                    f"{path}, line {number}: {name} has the type {kind!r}; numeric, real, integer, "
                    f"string and {{lists}} can be read: declare it as string"
                )
            yield f"@attribute {name} {kind}\n"
        if line.lstrip()[:5].lower() == "@data":
            break
    yield from lines


def _declared(name: str, kind: str | list[str], cells: tuple[Any, ...]) -> Any:
    if not isinstance(kind, str):
        # Unordered: the order of the list is that in which somebody wrote it down.
        dtype: Any = pd.CategoricalDtype(list(dict.fromkeys(kind)), ordered=False)
        return pd.Series(pd.Categorical(cells, dtype=dtype), name=name)
    if kind == "STRING":
        return pd.Series(cells, name=name)
    numbers = [np.nan if cell is None else float(cell) for cell in cells]
    return pd.Series(numbers, name=name, dtype=np.float64)


def _slices(frame: Any, rows: int) -> Iterator[Any]:
    starts = range(0, len(frame), rows)
    return (frame[start : start + rows].reset_index(drop=True) for start in starts)


def _without_points(column: Any) -> Any:
    """Return a column of integers as such, and any other as it is."""
    if not types.is_float_dtype(column.dtype):
        return column
    present = column.dropna()
    are_integers = np.isfinite(present).all() and (present == present.round()).all()
    return column.astype("Int64") if are_integers and (present.abs() < EXACT).all() else column


def _with_text(frame: Any, text: Collection[str]) -> Any:
    """Return a frame whose named columns are text, gaps left gaps."""
    names = [name for name in text if name in frame.columns]
    changed = {name: frame[name].map(_as_text, na_action="ignore") for name in names}
    return frame.assign(**changed) if changed else frame


def _as_text(value: object) -> str:
    """Return a value as a delimited file would have it: integers without a point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _frame(table: Any, *, exactly: bool = False) -> Any:
    """Return an arrow table as a data frame; ``exactly`` keeps integers with gaps integers."""
    frame = table.to_pandas(types_mapper=pd.ArrowDtype if exactly else None).reset_index(drop=True)
    frame.columns = [str(name) for name in frame.columns]
    if exactly:
        return frame
    # Text that was written as bytes; text of two encodings is decoded value by value.
    texts = {
        name: frame[name].astype(object).map(decoded, na_action="ignore")
        for name in (str(field.name) for field in table.schema if _holds_bytes(field.type))
        if name in frame.columns
    }
    return frame.assign(**texts) if texts else frame


def _holds_bytes(kind: Any) -> bool:
    from pyarrow import types as arrow  # noqa: PLC0415 - an extra, and slow to import

    kind = kind.value_type if arrow.is_dictionary(kind) else kind
    return bool(
        arrow.is_binary(kind) or arrow.is_large_binary(kind) or arrow.is_fixed_size_binary(kind)
    )


def _reason(error: Exception) -> str:
    """Return what a library says, on one short line."""
    try:
        text = str(error).strip()
    except (TypeError, ValueError):  # liac-arff formats rows that hold a % wrongly
        text = ""
    return (text or type(error).__name__).splitlines()[0][:LONGEST_REASON]
