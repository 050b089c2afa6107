"""A table file: opened once, its encoding, dialect and decimal mark found once, then read.

What the columns mean to a model is not this file's business.
"""

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Protocol, Self

from cocoloss.tables.delimited import DelimitedFile, check_columns, check_decimal
from cocoloss.tables.dialect import find_dialect, read_sample
from cocoloss.tables.formats import ARFF, PARQUET, TextSource, check_is_file, find_format
from cocoloss.tables.parquet_and_arff import open_arff, open_parquet

# What pandas takes for a gap, and the mark of ARFF and the UCI repository.
MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null", "?"),
)
CHUNK_ROWS = 50_000


class TableFile(Protocol):
    """A table in a file of any format. Made by :func:`open_table`, which looks at the file once."""

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
        """The decimal mark of a delimited file.

        The one that was given, or else the one on which the columns that are not text agree; None
        if they do not, and numbers have a point then.
        """

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns of a delimited file that may be codes rather than numbers.

        They hold digits of which some begin with 0, as postcodes do, and are not read as text.
        """

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

    def write(self, frames: Any, path: str | os.PathLike[str]) -> int:
        """Write a table as this one is written, and return its number of rows.

        Delimited text has the separator, the encoding, the decimal mark and, or not, the header of
        this file; it is packed if the path ends in ``.gz``. Parquet is written as Parquet. ARFF is
        not written: there the suffix says the format, as in :func:`write_table`.

        Parameters
        ----------
        frames : pandas.DataFrame or iterable of pandas.DataFrame
            The table, or its chunks; see :func:`write_table`.
        path : path
            The file to write, which may be this one.

        Raises
        ------
        CoCoError
            As :func:`write_table`; and if the suffix says another format, or the encoding lacks a
            character.
        """


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
        return open_parquet(path, text)
    if found == ARFF:
        return open_arff(path, encoding, text)
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
    """Read a table in chunks, each column with one type from the first chunk to the last.

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
    """
    return open_table(path, **options).chunks(rows, columns=columns, lenient=lenient)


def iter_columns(
    path: str | os.PathLike[str],
    columns: Collection[str],
    *,
    rows: int = CHUNK_ROWS,
    **options: Any,
) -> Iterator[Any]:
    """Give some columns as they stand in a file, to be copied, in chunks of the same rows.

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
    """
    return open_table(path, **options).verbatim(columns, rows)
