"""Tables written to files, a frame or chunk after chunk; what fails leaves the file as it was."""

import codecs
import csv
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
from cocoloss.tables.formats import (
    DELIMITED,
    PARQUET,
    SUFFIXES,
    import_pyarrow,
    suffix_of,
)

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
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
    suffix, gzipped = suffix_of(path)
    if SUFFIXES.get(suffix) == PARQUET and not gzipped:
        return write_parquet(frames, path)
    if suffix in SEPARATORS:
        return write_delimited(frames, path, SEPARATORS[suffix])
    raise CoCoError(
        f"cannot tell the format of {path} from its name; end it in one of "
        f".csv, .tsv, .txt, .csv.gz, .parquet"
    )


def write_delimited(
    frames: Any,
    path: str | os.PathLike[str],
    separator: str,
    *,
    encoding: str = "utf-8",
    header: bool = True,
    **options: Any,
) -> int:
    """Write delimited text; further options are those of ``DataFrame.to_csv``."""
    path = _check_format(path, DELIMITED)
    options = {"sep": separator, "index": False, "lineterminator": "\n", **options}
    if separator == " ":  # a gap must not vanish between two spaces
        options["quoting"] = csv.QUOTE_NONNUMERIC
    encoder = codecs.getincrementalencoder(encoding)()  # one byte order mark for all chunks
    n_rows = 0
    with write_whole(path) as aside, _opened(aside, gzipped=suffix_of(path)[1]) as file:
        for i, chunk in enumerate(_same_columns(frames)):
            names = chunk[:0].to_csv(**options) if header and i == 0 else ""
            lines = _repeated_lines(chunk, options) or chunk.to_csv(header=False, **options)
            try:
                file.write(encoder.encode(names + lines))
            except UnicodeEncodeError as error:
                stray = error.object[error.start]
                raise CoCoError(
                    f"cannot write {path}: {encoding} has no {stray!r}; write UTF-8 instead"
                ) from error
            n_rows += len(chunk)
    return n_rows


def write_parquet(frames: Any, path: str | os.PathLike[str]) -> int:
    """Write Parquet with the types of the first chunk."""
    path = _check_format(path, PARQUET)
    pa = import_pyarrow(path)
    chunks = _same_columns(frames)
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


def _check_format(path: str | os.PathLike[str], kind: str) -> Path:
    """Return the path of a file that is to be of a kind, unless its suffix says another."""
    if SUFFIXES.get(suffix_of(path)[0], kind) != kind:
        raise CoCoError(
            f"{path} would not be what its name says, but {kind}; choose another suffix"
        )
    return Path(path)


def _same_columns(frames: Any) -> Iterator[Any]:
    chunks: Iterable[Any] = [frames] if isinstance(frames, pd.DataFrame) else frames
    names: list[Any] | None = None
    for chunk in chunks:
        if names is None:
            names = list(chunk.columns)
        elif list(chunk.columns) != names:
            raise CoCoError("the chunks of a table must have the same columns in the same order")
        yield chunk
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


def _repeated_lines(chunk: Any, options: dict[str, Any]) -> str | None:
    """Return the lines of one column of few values, such as classes: ten times as fast.

    None where there are other columns, many values, or values that equal each other and are yet
    written differently: 0.0 and -0.0, 1 and True, dates with and without a time beside them.
    """
    if len(chunk.columns) != 1:
        return None
    codes, values = pd.factorize(chunk.iloc[:, 0], use_na_sentinel=False)
    if len(values) > len(chunk) // REPEATED or not _equal_is_the_same(values):
        return None
    singles = (pd.DataFrame({"": values[i : i + 1]}) for i in range(len(values)))
    lines = [single.to_csv(header=False, **options) for single in singles]
    return "".join(np.array(lines, dtype=object)[codes])


def _equal_is_the_same(values: Any) -> bool:
    """Tell whether distinct values are all integers, all booleans, or all text."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.categories
    if types.is_integer_dtype(values.dtype) or types.is_bool_dtype(values.dtype):
        return True
    return bool(types.infer_dtype(values, skipna=True) == "string")
