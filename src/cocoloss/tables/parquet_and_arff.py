"""Parquet and ARFF, whose columns have declared types, through pyarrow and liac-arff.

Both are extras; without one of them its files give one line that says how to get it.
"""

import csv
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from glob import glob, has_magic
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from pandas.api import types

from cocoloss._checks import require
from cocoloss.exceptions import CoCoError
from cocoloss.files import write_whole
from cocoloss.number_text import without_point
from cocoloss.tables.delimited import (
    EXACT,
    bounded,
    check_columns,
    check_format,
    kinds_of,
    same_columns,
    with_kinds,
)
from cocoloss.tables.dialect import PARQUET, TextSource, check_distinct

Writer = Callable[[Any, str | os.PathLike[str]], int]
LONGEST_REASON = 200  # characters of what a library says
# How liac-arff fails, beside its own exceptions.
ARFF_FAILURES = (ArithmeticError, LookupError, StopIteration, TypeError, ValueError)
_VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^,\s"'{}]+)\s*"""
# liac-arff takes minutes to refuse a list of twenty values of which one has a space.
_LIST = re.compile(rf"\{{\s*(?:{_VALUE})?(?:,\s*(?:{_VALUE})?)*\}}\s*")
_ATTRIBUTE = re.compile(
    r"""\s*@attribute\s+("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s{]+)\s*(.*)""",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, eq=False)
class TypedFile:
    """A file of a format with types; the contract is :class:`cocoloss.tables.TableFile`."""

    path: Path
    writer: Writer  # of tables like it
    column_names: tuple[str, ...]
    # Gives frames of so many rows, or (None) one of all, of all columns or of some; ``exactly``
    # keeps integers with gaps integers.
    frames: Callable[..., Iterator[Any]]
    text: tuple[str, ...] = ()
    decimal = None
    codes = ()

    def __post_init__(self) -> None:
        check_columns(self.path, self.text, self.column_names)

    def with_options(
        self,
        *,
        text: Collection[str] | None = None,
        decimal: str | None = None,  # noqa: ARG002 - there is none
    ) -> Self:
        """Return the same file, to be read otherwise."""
        return self if text is None else replace(self, text=tuple(text))

    def read(self) -> Any:
        """Return all rows."""
        (frame,) = self.frames(None)
        return _with_text(frame, self.text)

    def chunks(
        self,
        rows: int,
        *,
        columns: Collection[str] | None = None,
        lenient: Collection[str] = (),  # noqa: ARG002 - types are declared
    ) -> Iterator[Any]:
        """Return chunks of so many rows; the categories of Parquet are those of the chunk."""
        rows = bounded(rows, len(self.column_names))
        if columns is not None:
            columns = check_columns(self.path, columns, self.column_names)
        return self._typed_chunks(rows, columns)

    def verbatim(self, columns: Collection[str], rows: int) -> Iterator[Any]:
        """Return some columns in chunks, with the types of the file."""
        rows = bounded(rows, len(self.column_names))
        names = check_columns(self.path, columns, self.column_names)
        return (frame[names] for frame in self.frames(rows, names, exactly=True))

    def write(self, frames: Any, path: str | os.PathLike[str]) -> int:
        """Write a table as Parquet; beside ARFF, as its suffix says."""
        return self.writer(frames, path)

    def _typed_chunks(self, rows: int, columns: list[str] | None) -> Iterator[Any]:
        kinds: dict[str, str] | None = None
        n_read = 0
        for frame in self.frames(rows, columns):
            chunk = frame if columns is None else frame[columns]
            kinds = kinds_of(chunk) if kinds is None else kinds
            yield _with_text(with_kinds(chunk, kinds, n_read, self.path), self.text)
            n_read += len(chunk)


def open_parquet(path: Path, text: tuple[str, ...]) -> TypedFile:
    """Return a Parquet file; an index that pandas saved is no column of it."""

    def frames(
        rows: int | None, columns: list[str] | None = None, *, exactly: bool = False
    ) -> Iterator[Any]:
        n_read = 0
        with _opened_parquet(path) as file:
            if rows is None:
                yield _frame(file.read())
                return
            # pyarrow takes "a" for "a.b" as well.
            for batch in file.iter_batches(batch_size=rows, columns=columns):
                yield _frame(batch, exactly=exactly)
                n_read += batch.num_rows
            if not n_read:
                raise CoCoError(f"{path} is damaged: it has fewer rows than it says")

    with _opened_parquet(path) as file:
        names = tuple(_frame(file.schema_arrow.empty_table()).columns)
    return TypedFile(path, write_parquet, names, frames, text)


def open_arff(path: Path, encoding: str | None, text: tuple[str, ...], writer: Writer) -> TypedFile:
    """Return an ARFF file, which is read at once, and written in other formats."""
    frame = _read_arff(path, encoding)

    def frames(
        rows: int | None, columns: list[str] | None = None, *, exactly: bool = False
    ) -> Iterator[Any]:
        wanted = frame if columns is None else frame[columns]
        wanted = wanted.apply(_without_points) if exactly else wanted
        for start in range(0, len(wanted), rows or len(wanted)):
            stop = start + rows if rows else None
            yield wanted[start:stop].reset_index(drop=True)

    return TypedFile(path, writer, tuple(frame.columns), frames, text)


def open_dataset(paths: str | os.PathLike[str] | Sequence[Any]) -> Any:
    """Return the Parquet files that a path, a folder, a glob or a list of them names, as one.

    It is a ``pyarrow.dataset.Dataset``; folders called ``year=2024`` are a column.
    """
    listed = [paths] if isinstance(paths, str | os.PathLike) else paths
    given = [os.fspath(path) for path in listed]
    pa = import_pyarrow(given[0] if given else "the list of files")
    found: list[str] = []
    for name in given:
        matches = sorted(glob(name, recursive=True)) if has_magic(name) else [name]  # noqa: PTH207 - any root
        require(bool(matches), f"no file is called like {name}")
        found += matches
    require(bool(found), "the list of Parquet files is empty; name at least one")
    try:
        # A folder is looked through by pyarrow, a list must be one of files.
        return import_module("pyarrow.dataset").dataset(
            found[0] if len(found) == 1 else found, format="parquet", partitioning="hive"
        )
    except (pa.ArrowException, OSError, ValueError) as error:
        what = found[0] if len(found) == 1 else f"{found[0]} and {len(found) - 1} more"
        require(not isinstance(error, FileNotFoundError), f"there is no file {what}")
        raise CoCoError(f"cannot read {what} as Parquet: {_reason(error)}") from error


def iter_dataset(dataset: Any, rows: int) -> Iterator[Any]:
    """Give the rows of a dataset as data frames of at most so many, with little read ahead."""
    pa = import_pyarrow("the dataset")
    rows = bounded(rows, len(dataset.schema.names))
    batches = dataset.to_batches(batch_size=rows, batch_readahead=1, fragment_readahead=1)
    try:
        for batch in batches:
            if batch.num_rows:
                yield _frame(batch)
    except (pa.ArrowException, OSError) as error:
        raise CoCoError(f"the Parquet files cannot be read to their end: {_reason(error)}") from (
            error
        )


def write_parquet(frames: Any, path: str | os.PathLike[str]) -> int:
    """Write Parquet with the types of the first chunk."""
    path = check_format(path, PARQUET)
    pa = import_pyarrow(path)
    chunks = same_columns(frames)
    n_rows = 0
    with write_whole(path) as aside:
        first = next(chunks)
        try:
            schema = pa.Schema.from_pandas(first, preserve_index=False)
            with pa.parquet.ParquetWriter(aside, schema) as writer:
                for chunk in chain([first], chunks):
                    writer.write_table(pa.Table.from_pandas(chunk, schema, preserve_index=False))
                    n_rows += len(chunk)
        except (pa.ArrowException, TypeError) as error:
            reason = str(error).strip().splitlines()[0]
            raise CoCoError(
                f"cannot write {path} as Parquet: {reason}; write CSV instead"
            ) from error
    return n_rows


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


@contextmanager
def _opened_parquet(path: Path) -> Iterator[Any]:
    pa = import_pyarrow(path)
    failures = (pa.ArrowException, OSError, ValueError, LookupError, TypeError, AttributeError)
    try:
        with pa.parquet.ParquetFile(path) as file:
            check_distinct(path, list(file.schema_arrow.names))
            has_cells = file.metadata.num_rows and file.metadata.num_columns
            require(has_cells, f"{path} has no rows, or no columns")
            yield file
    except CoCoError:
        raise
    except failures as error:  # the last of them where pandas' own notes in the file are damaged
        raise CoCoError(
            f"{path} is a damaged Parquet file: {_reason(error)}; fetch it again"
        ) from error


def _read_arff(path: Path, encoding: str | None) -> Any:
    """Return an ARFF file as a data frame; a bare ``?`` is a gap."""
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
    except (arff.ArffException, csv.Error, *ARFF_FAILURES) as error:
        raise CoCoError(f"{path} cannot be read as ARFF: {_reason(error)}") from error
    if not columns:
        raise CoCoError(f"{path} has a header but no rows")
    return pd.concat(columns, axis=1)


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
        # Unordered: the order of the list may be arbitrary.
        dtype: Any = pd.CategoricalDtype(list(dict.fromkeys(kind)), ordered=False)
        return pd.Series(pd.Categorical(cells, dtype=dtype), name=name)
    if kind == "STRING":
        return pd.Series(cells, name=name)
    numbers = [np.nan if cell is None else float(cell) for cell in cells]
    return pd.Series(numbers, name=name, dtype=np.float64)


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
    changed = {name: frame[name].map(without_point, na_action="ignore") for name in names}
    return frame.assign(**changed) if changed else frame


def _frame(table: Any, *, exactly: bool = False) -> Any:
    """Return an arrow table as a data frame; ``exactly`` keeps integers with gaps integers."""
    frame = table.to_pandas(types_mapper=pd.ArrowDtype if exactly else None).reset_index(drop=True)
    frame.columns = [str(name) for name in frame.columns]
    return frame


def _reason(error: Exception) -> str:
    """Return what a library says, on one short line."""
    try:
        text = str(error).strip()
    except (TypeError, ValueError):  # liac-arff formats rows that hold a % wrongly
        text = ""
    return (text or type(error).__name__).splitlines()[0][:LONGEST_REASON]
