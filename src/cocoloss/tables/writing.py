"""Data frames to files, whole or not at all, a chunk at a time."""

import gzip
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from cocoloss.exceptions import CoCoError
from cocoloss.files import write_whole
from cocoloss.tables.parquet import import_pyarrow

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
PARQUET_SUFFIXES = {".parquet", ".pq"}
REPEATED = 50  # a value must stand in so many rows, on average, for its line to be made once


def write_table(frames: Any, path: str | os.PathLike[str]) -> int:
    """Write a table, or chunks of one, to a file whose format its suffix says.

    Parameters
    ----------
    frames : pandas.DataFrame or iterable of pandas.DataFrame
        The table, or its chunks from first to last, all with the same columns. The index is
        left out.
    path : path
        ``.csv``, ``.tsv`` or ``.txt`` (tabs), each also with ``.gz``, or ``.parquet``. If
        anything fails, the file is as it was before.

    Returns
    -------
    int
        The number of rows written.

    Raises
    ------
    CoCoError
        If the suffix says no format, there is no chunk, or a chunk has other columns.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from cocoloss.tables import write_table
    >>> with TemporaryDirectory() as folder:
    ...     write_table(pd.DataFrame({"a": [1, 2]}), Path(folder) / "a.tsv.gz")
    2
    """
    path = Path(path)
    suffix, gzipped = check_suffix(path)
    chunks = _same_columns([frames] if isinstance(frames, pd.DataFrame) else frames)
    with write_whole(path) as aside:
        if suffix in PARQUET_SUFFIXES:
            return _write_parquet(chunks, aside, path)
        with _opened(aside, gzipped=gzipped) as file:
            return _write_delimited(chunks, file, SEPARATORS[suffix])


def check_suffix(path: str | os.PathLike[str]) -> tuple[str, bool]:
    """Return the suffix that says the format, and whether to pack; long work asks beforehand.

    Examples
    --------
    >>> check_suffix("answers.csv.gz")
    ('.csv', True)
    """
    path = Path(path)
    gzipped = path.suffix.lower() == ".gz"
    suffix = Path(path.stem if gzipped else path.name).suffix.lower()
    if suffix in SEPARATORS or (suffix in PARQUET_SUFFIXES and not gzipped):
        return suffix, gzipped
    known = ", ".join([*SEPARATORS, ".csv.gz", ".parquet"])
    raise CoCoError(f"cannot tell the format of {path} from its name; end it in one of {known}")


def _same_columns(frames: Iterable[Any]) -> Iterator[Any]:
    names: list[Any] | None = None
    for frame in frames:
        if names is None:
            names = list(frame.columns)
        elif list(frame.columns) != names:
            raise CoCoError("the chunks of a table must have the same columns in the same order")
        yield frame
    if names is None:
        raise CoCoError("there is no table to write: not one chunk came")


@contextmanager
def _opened(path: Path, *, gzipped: bool) -> Iterator[Any]:
    with path.open("wb") as raw:
        if not gzipped:
            yield raw
            return
        # No name and no time inside: the same table gives the same bytes.
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as packed:
            yield packed


def _write_delimited(chunks: Iterator[Any], file: Any, separator: str) -> int:
    n_rows = 0
    for i, chunk in enumerate(chunks):
        if i == 0:
            file.write(_delimited(chunk[:0], separator, header=True))
        file.write(_repeated_lines(chunk, separator) or _delimited(chunk, separator))
        n_rows += len(chunk)
    return n_rows


def _delimited(frame: Any, separator: str, *, header: bool = False) -> bytes:
    text = frame.to_csv(sep=separator, index=False, header=header, lineterminator="\n")
    return bytes(text, "utf-8")


def _repeated_lines(chunk: Any, separator: str) -> bytes | None:
    """Return the lines of one column of few values, such as classes: ten times as fast.

    None where there are other columns, many values, or values that equal each other and are yet
    written differently: 0.0 and -0.0, 1 and True, dates with and without a time beside them.
    """
    if len(chunk.columns) != 1:
        return None
    codes, values = pd.factorize(chunk.iloc[:, 0], use_na_sentinel=False)
    if len(values) > len(chunk) // REPEATED or not _equal_is_the_same(values):
        return None
    lines = [
        _delimited(pd.DataFrame({"": values[i : i + 1]}), separator) for i in range(len(values))
    ]
    return b"".join(np.array(lines, dtype=object)[codes])


def _equal_is_the_same(values: Any) -> bool:
    """Tell whether distinct values are all whole numbers, all truth values, or all text."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        return _equal_is_the_same(values.categories)
    if types.is_integer_dtype(values.dtype) or types.is_bool_dtype(values.dtype):
        return True
    return bool(types.infer_dtype(values, skipna=True) == "string")


def _write_parquet(chunks: Iterator[Any], aside: Path, path: Path) -> int:
    pa = import_pyarrow(path)
    first = next(chunks)
    n_rows = 0
    try:
        schema = pa.Schema.from_pandas(first, preserve_index=False)
        with pa.parquet.ParquetWriter(aside, schema) as writer:
            for chunk in chain([first], chunks):
                writer.write_table(pa.Table.from_pandas(chunk, schema, preserve_index=False))
                n_rows += len(chunk)
    except (pa.ArrowException, TypeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise CoCoError(f"cannot write {path} as Parquet: {reason}; write CSV instead") from error
    return n_rows
