"""Any table file as a data frame: whole, or in chunks of bounded memory."""

import os
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from cocoloss._checks import check_integer
from cocoloss.tables.arff import read_arff
from cocoloss.tables.delimited import Delimited, check_text_columns, open_delimited
from cocoloss.tables.formats import ARFF, PARQUET, find_format
from cocoloss.tables.parquet import iter_parquet, n_parquet_columns, read_parquet
from cocoloss.tables.parsing import iter_delimited, read_delimited
from cocoloss.tables.steady import kinds_of, steady

MOST_CELLS = 1 << 22  # in a chunk: 32 MB of numbers, however wide the table


def read_table(
    path: str | os.PathLike[str],
    *,
    separator: str | None = None,
    encoding: str | None = None,
    header: bool | str = "auto",
    decimal: str | None = None,
    text: Collection[str] = (),
    missing: Collection[str] | None = None,
) -> Any:
    r"""Read a table from a CSV, TSV, Parquet or ARFF file, packed by gzip or not.

    The format is told from the content first and from the suffix second. What can be found by
    looking is found; what is not a table is refused with one line that says why.

    Parameters
    ----------
    path : path
        The file.
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

    Returns
    -------
    pandas.DataFrame
        With a plain index. Nominal columns of ARFF are unordered categories.

    Raises
    ------
    CoCoError
        If there is no such file or no table in it: a header without rows, columns of the same
        name, rows of different length, a file that is cut short, a workbook, a web page.

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
    found = find_format(path, encoding)
    if found.format == PARQUET:
        return _with_text(path, read_parquet(found), text)
    if found.format == ARFF:
        return _with_text(path, read_arff(found, encoding), text)
    return read_delimited(
        open_delimited(
            found,
            separator=separator,
            encoding=encoding,
            header=header,
            decimal=decimal,
            text=text,
            missing=missing,
        )
    )


def iter_tables(
    path: str | os.PathLike[str],
    *,
    rows: int = 50_000,
    separator: str | None = None,
    encoding: str | None = None,
    header: bool | str = "auto",
    decimal: str | None = None,
    text: Collection[str] = (),
    missing: Collection[str] | None = None,
    columns: Collection[str] | None = None,
    lenient: Collection[str] = (),
) -> Iterator[Any]:
    r"""Read a table in chunks, each column with one type from the first chunk to the last.

    Memory stays at a few chunks, however long the file; an ARFF file alone is read whole. The
    chunks joined are what :func:`read_table` gives, except that columns of numbers are float64
    and columns of true and false have pandas' boolean type, since later chunks may have gaps.

    Parameters
    ----------
    path : path
        The file.
    rows : int
        Most rows in a chunk. There are fewer where the table is very wide, and where a group of
        rows ends in a Parquet file.
    separator, encoding, header, decimal, text, missing
        As in :func:`read_table`. Name the columns that a model takes for categories in ``text``:
        then codes are read as they were when it was fitted.
    columns : collection of str, optional
        The only columns wanted; what others hold does not matter then.
    lenient : collection of str
        Columns that may hold text among numbers in a later chunk; they are text in such a chunk.

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
    rows = check_integer(rows, "rows", minimum=1)
    found = find_format(path, encoding)
    if found.format == PARQUET:
        chunks = iter_parquet(found, bounded(rows, n_parquet_columns(found)), columns=columns)
    elif found.format == ARFF:
        chunks = _slices(_chosen(path, read_arff(found, encoding), columns), rows, path)
    else:
        table = open_delimited(
            found,
            separator=separator,
            encoding=encoding,
            header=header,
            decimal=decimal,
            text=text,
            missing=missing,
        )
        if columns is not None:
            check_text_columns(path, columns, table.dialect.names)
        return _delimited_chunks(table, rows, columns, lenient)
    return (_with_text(path, chunk, text).reset_index(drop=True) for chunk in chunks)


class Writing(NamedTuple):
    """How a file is written.

    Attributes
    ----------
    decimal : {".", ","} or None
        The decimal mark, None if the columns do not agree on one.
    codes : tuple of str
        Columns of digits of which some begin with 0, as postcodes do, and numbers do not.
    """

    decimal: str | None = None
    codes: tuple[str, ...] = ()


def find_writing(
    path: str | os.PathLike[str],
    *,
    separator: str | None = None,
    encoding: str | None = None,
    header: bool | str = "auto",
    decimal: str | None = None,
    text: Collection[str] = (),
    missing: Collection[str] | None = None,
) -> Writing:
    r"""Say how the cells of a delimited file are written, from its beginning.

    Parameters
    ----------
    path : path
        The file; of Parquet and ARFF there is nothing to say.
    separator, encoding, header, decimal, text, missing
        As in :func:`read_table`; columns that are text do not count.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from cocoloss.tables import find_writing
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "table.csv"
    ...     _ = path.write_text("zip;size;price\n01067;7.730;2,50\n")
    ...     find_writing(path)
    Writing(decimal=',', codes=('zip',))
    """
    found = find_format(path, encoding)
    if found.format in {PARQUET, ARFF}:
        return Writing()
    dialect = open_delimited(
        found,
        separator=separator,
        encoding=encoding,
        header=header,
        decimal=decimal,
        text=text,
        missing=missing,
    ).dialect
    return Writing(dialect.decimal if dialect.decimal_is_known else None, dialect.codes)


def _delimited_chunks(
    table: Delimited, rows: int, columns: Collection[str] | None, lenient: Collection[str]
) -> Iterator[Any]:
    rows = bounded(rows, len(table.dialect.names))
    for chunk in iter_delimited(table, rows, columns=columns, lenient=lenient):
        yield chunk.reset_index(drop=True)


def bounded(rows: int, n_columns: int) -> int:
    """Return how many rows a chunk of a table of so many columns has."""
    return max(1, min(rows, MOST_CELLS // n_columns))


def _chosen(path: object, frame: Any, columns: Collection[str] | None) -> Any:
    return frame if columns is None else frame[check_text_columns(path, columns, frame.columns)]


def _slices(frame: Any, rows: int, path: object) -> Iterator[Any]:
    kinds = kinds_of(frame)
    for start in range(0, len(frame), rows):
        yield steady(frame[start : start + rows], kinds, start, path)


def _with_text(path: object, frame: Any, text: Collection[str]) -> Any:
    """Return a frame whose named columns are text, gaps left gaps."""
    names = check_text_columns(path, text, frame.columns)
    changed = {name: frame[name].map(_as_text, na_action="ignore") for name in names}
    return frame.assign(**changed) if changed else frame


def _as_text(value: object) -> str:
    """Return a value as a delimited file would have it: whole numbers without a point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
