"""A table file: opened once, its encoding, dialect and decimal mark found once, then read.

What the columns mean to a model is not this file's business.
"""

import gzip
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import pandas as pd
from pandas.api import types

from cocoloss.exceptions import CoCoError
from cocoloss.files import write_whole
from cocoloss.tables.delimited import DelimitedFile, check_columns, check_decimal
from cocoloss.tables.dialect import find_dialect, read_sample
from cocoloss.tables.formats import (
    ARFF,
    PARQUET,
    SUFFIXES,
    TextSource,
    check_is_file,
    check_suffix,
    find_format,
)
from cocoloss.tables.parquet_and_arff import ArffFile, ParquetFile, import_pyarrow, read_arff

# What pandas takes for a gap, and the mark of ARFF and the UCI repository.
MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null", "?"),
)
CHUNK_ROWS = 50_000
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}  # of files that are written
REPEATED = 50  # a value must stand in so many rows, on average, for its line to be made once


class TableFile(Protocol):
    """A table in a file of any format. Made by :func:`open_table`, which looks at the file once.

    Attributes
    ----------
    path : Path
        The file.
    column_names : tuple of str
        The columns.
    text : tuple of str
        Columns that are read as text.
    decimal : {".", ","} or None
        The decimal mark of a delimited file: the one that was given, or else the one on which the
        columns that are not text agree, None if they do not. Numbers have a point then.
    codes : tuple of str
        Columns of a delimited file, not read as text, that hold digits of which some begin with 0,
        as postcodes do and numbers do not.
    """

    @property
    def path(self) -> Path:
        """The file."""

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns."""

    @property
    def text(self) -> tuple[str, ...]:
        """Columns that are read as text."""

    @property
    def decimal(self) -> str | None:
        """The decimal mark, if it is known."""

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns of digits of which some begin with 0."""

    def with_options(
        self, *, text: Collection[str] | None = None, decimal: str | None = None
    ) -> Self:
        """Return the same file, to be read otherwise, without another look at it.

        Parameters
        ----------
        text : collection of str, optional
            Columns to be read as text, instead of those before.
        decimal : {".", ","}, optional
            The decimal mark.
        """

    def read(self) -> Any:
        """Return all rows as a data frame; see :func:`read_table`."""

    def chunks(
        self,
        rows: int,
        *,
        columns: Collection[str] | None = None,
        lenient: Collection[str] = (),
    ) -> Iterator[Any]:
        """Return data frames of at most so many rows; see :func:`iter_tables`."""

    def verbatim(self, columns: Collection[str], rows: int) -> Iterator[Any]:
        """Return columns to be copied, in chunks of the same rows; see :func:`iter_columns`."""


def open_table(
    path: str | os.PathLike[str],
    *,
    separator: str | None = None,
    encoding: str | None = None,
    header: bool | str = "auto",
    decimal: str | None = None,
    text: Collection[str] = (),
    missing: Collection[str] | None = None,
) -> TableFile:
    r"""Find out what a table file is and how it is written, from its beginning.

    Parameters
    ----------
    path : path
        CSV, TSV, Parquet or ARFF, packed by gzip or not. The format follows from the content first
        and from the suffix second.
    separator : str, optional
        Between cells: one character, "tab", or "space" for white space of any length. By default
        whichever of comma, semicolon, tab, bar and white space gives even rows.
    encoding : str, optional
        Of a text file. By default UTF-8, with or without a byte order mark, UTF-16 with one, and
        else Windows-1252, which reads latin-1 too.
    header : "auto" or bool
        Whether the first row of a delimited file holds the names. "auto" takes them for names
        and refuses a first row that looks like data. Without a header, columns are called
        ``column_1``, ``column_2`` and so on.
    decimal : {".", ","}, optional
        Decimal mark of a delimited file. By default a comma only where a whole column is of
        numbers so written, and no column is of numbers with a decimal point. Among decimal commas,
        points are thousands: 7.730 is 7730; a warning says so where no comma in the column does.
    text : collection of str
        Columns to be read as text even if they hold numbers: codes, identifiers, class names.
    missing : collection of str, optional
        Cells of a delimited file that mean a gap. By default an empty cell, ``?``, and what
        pandas takes for one, such as ``NA`` and ``None``.

    Raises
    ------
    CoCoError
        If there is no such file or no table in it: a header without rows, columns of the same
        name, a workbook, a web page.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from cocoloss.tables import open_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "table.csv"
    ...     _ = path.write_text("zip;size;price\n01067;7.730;2,50\n")
    ...     table = open_table(path)
    ...     table.column_names, table.decimal, table.codes
    ...     table.with_options(text=["zip"], decimal=",").read()
    (('zip', 'size', 'price'), ',', ('zip',))
         zip  size  price
    0  01067  7730    2.5
    """
    path = check_is_file(path)
    decimal = check_decimal(decimal)
    text = tuple(check_columns(path, text, text))
    with TextSource(path, encoding) as source:
        found = find_format(source, encoding)
        if found not in {PARQUET, ARFF}:
            sample = read_sample(source)
    if found == PARQUET:
        return ParquetFile(path, text)
    if found == ARFF:
        return ArffFile(path, read_arff(path, encoding), text)
    return DelimitedFile(
        path,
        encoding,
        find_dialect(path, sample, separator=separator, header=header),
        MISSING if missing is None else tuple(missing),
        text,
        decimal,
    )


def read_table(path: str | os.PathLike[str], **options: Any) -> Any:
    r"""Read a table from a CSV, TSV, Parquet or ARFF file, packed by gzip or not.

    What can be found by looking is found; what is not a table is refused with one line that says
    why.

    Parameters
    ----------
    path : path
        The file.
    **options
        As in :func:`open_table`.

    Returns
    -------
    pandas.DataFrame
        With a plain index. Nominal columns of ARFF are unordered categories.

    Raises
    ------
    CoCoError
        As :func:`open_table`; and if rows differ in length, or the file is cut short.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from cocoloss.tables import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "table.csv"
    ...     _ = path.write_text("size;city\n1,5;Köln\n?;Bonn\n", encoding="latin-1")
    ...     read_table(path)
       size  city
    0   1.5  Köln
    1   NaN  Bonn
    """
    return open_table(path, **options).read()


def iter_tables(
    path: str | os.PathLike[str],
    *,
    rows: int = CHUNK_ROWS,
    columns: Collection[str] | None = None,
    lenient: Collection[str] = (),
    **options: Any,
) -> Iterator[Any]:
    r"""Read a table in chunks, each column with one type from the first chunk to the last.

    Memory stays at a few chunks, however long the file; an ARFF file alone is read at once. The
    chunks joined are what :func:`read_table` gives, except that columns of numbers are float64
    and columns of true and false have pandas' boolean type, since later chunks may have gaps.

    Parameters
    ----------
    path : path
        The file.
    rows : int
        Most rows in a chunk. There are fewer where the table is very wide, and where a group of
        rows ends in a Parquet file.
    columns : collection of str, optional
        The only columns wanted; what others hold does not matter then.
    lenient : collection of str
        Columns that may hold text among numbers in a later chunk; they are text in such a chunk.
    **options
        As in :func:`open_table`. Name the columns that a model takes for categories in ``text``:
        then codes are read as they were when it was fitted.

    Yields
    ------
    pandas.DataFrame
        At least one row each, with a plain index of its own.

    Raises
    ------
    CoCoError
        As :func:`read_table`, at the start where the start shows it; and if a column of numbers
        that is not lenient holds text in a later chunk.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from cocoloss.tables import iter_tables
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "table.csv"
    ...     _ = path.write_text("size\n1\n2\n3\n")
    ...     [chunk["size"].tolist() for chunk in iter_tables(path, rows=2)]
    [[1.0, 2.0], [3.0]]
    """
    return open_table(path, **options).chunks(rows, columns=columns, lenient=lenient)


def iter_columns(
    path: str | os.PathLike[str],
    columns: Collection[str],
    *,
    rows: int = CHUNK_ROWS,
    **options: Any,
) -> Iterator[Any]:
    r"""Give some columns as they stand in a file, to be copied, in chunks of the same rows.

    In a delimited file every cell is the text that stands there: ``007`` and ``NA`` stay what they
    are. Parquet keeps its types; in ARFF, integers have no point.

    Parameters
    ----------
    path : path
        The file.
    columns : collection of str
        Which columns, in the order wanted.
    rows : int
        Most rows in a chunk, as in :func:`iter_tables`.
    **options
        As in :func:`open_table`.

    Yields
    ------
    pandas.DataFrame
        At least one row each.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from cocoloss.tables import iter_columns
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "table.csv"
    ...     _ = path.write_text("id,size\n007,1\nNA,2\n")
    ...     [chunk["id"].tolist() for chunk in iter_columns(path, ["id"])]
    [['007', 'NA']]
    """
    return open_table(path, **options).verbatim(columns, rows)


class Writing(NamedTuple):
    """How a file is written: ``decimal`` and ``codes`` of a :class:`TableFile`."""

    decimal: str | None = None
    codes: tuple[str, ...] = ()


def find_writing(path: str | os.PathLike[str], **options: Any) -> Writing:
    """Return the decimal mark and the columns of codes of a file; see :func:`open_table`."""
    table = open_table(path, **options)
    return Writing(table.decimal, table.codes)


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
        if SUFFIXES[suffix] == PARQUET:
            return _write_parquet(chunks, aside, path)
        with _opened(aside, gzipped=gzipped) as file:
            return _write_delimited(chunks, file, SEPARATORS[suffix])


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
    """Tell whether distinct values are all integers, all booleans, or all text."""
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
