"""A table file: opened once, its format, encoding, dialect and decimal mark found once, then read.

What the columns mean to a model is not known here.
"""

import codecs
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Protocol, Self

from cocoloss._checks import did_you_mean
from cocoloss.exceptions import CoCoError
from cocoloss.tables.delimited import DelimitedFile, check_columns, write_delimited
from cocoloss.tables.dialect import (
    ARFF,
    DELIMITED,
    EXCEL,
    PARQUET,
    SUFFIXES,
    TextSource,
    find_dialect,
    read_sample,
    suffix_of,
    unreadable,
)

# What pandas takes for a gap, and the mark of ARFF and the UCI repository.
MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null", "?"),
)
CHUNK_ROWS = 50_000
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}  # of files that are written

RELATION = re.compile(rb"@relation\b", re.IGNORECASE)
# How files begin that people take for tables, and what to do with them.
NOT_TABLES = {
    rb"\xd0\xcf\x11\xe0": "an old Excel or Office file; open it there and save it as CSV",
    rb"PK\x03\x04.*(xl/|\[Content_Types\])": "an Office file; save it as .xlsx or as CSV",
    rb"PK\x03\x04": "a zip archive; unpack it first",
    rb"BZh|\xfd7zXZ\0|\x28\xb5\x2f\xfd": "packed by bzip2, xz or zstd; unpack it first",
    rb"ARROW1": "a Feather (Arrow) file; save it as Parquet or CSV",
    rb"SQLite format 3\0": "an SQLite database; export the table as CSV",
    rb"%PDF": "a PDF document",
    rb"\x89PNG": "a picture",
    rb"\x80[\x02-\x05]": "a pickle, which runs code when it is read; save it as Parquet or CSV",
    rb"(?i:\s*<(!doctype|html|head|body|\?xml|!--|[a-z]+:|table))": (
        "a web page or XML; download the file itself, not its page"
    ),
    # An object, or a list of objects, lists, strings or numbers.
    rb'\s*(\{\s*("|\}|$)|\[\s*([\[{]|"[^"]*"\s*[,\]]|-?\d+[\d.eE+-]*\s*[,\]]))': (
        "JSON; save it as CSV"
    ),
}


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
        """The decimal mark that was given, or on which the columns that are not text agree.

        None if they do not, and numbers have a point then.
        """

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that are not read as text and hold digits of which some begin with 0: codes."""

    def with_options(
        self, *, text: Collection[str] | None = None, decimal: str | None = None
    ) -> Self:
        """Return the same file, to be read otherwise; there is no second look at it."""

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
        """Write a table, or its chunks, as this one is written; return its number of rows.

        Delimited text has the separator, the encoding, the decimal mark and, or not, the header of
        this file; it is packed if the path ends in ``.gz``. Parquet is written as Parquet. ARFF is
        not written: there the suffix says the format, as in :func:`write_table`. An error as there;
        and if the suffix says another format, or the encoding lacks a character.
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
    labels: Collection[str] = (),
    sheet: str | int | None = None,
) -> TableFile:
    r"""Find out what a table file is and how it is written, from its beginning.

    Parameters
    ----------
    path : path
        CSV, TSV, Parquet, ARFF or Excel's .xlsx, packed by gzip or not. The format follows from the
        content first and from the suffix second.
    separator : str, optional
        Between cells: one character, "tab", or "space" for white space of any length. By default
        whichever of comma, semicolon, tab, bar and white space gives even rows.
    encoding : str, optional
        Of a text file. By default UTF-8, with or without a byte order mark, UTF-16 with one, and
        else Windows-1252, which reads latin-1 too.
    header : "auto" or bool
        Whether the first row of a delimited file holds the names. "auto" takes them for names,
        passes over titles above them with a warning, and refuses a first row that looks like data.
        Without a header, columns are called ``column_1``, ``column_2`` and so on.
    decimal : {".", ","}, optional
        Decimal mark of a delimited file. By default a comma only where a whole column is of
        numbers so written, and no column is of numbers with a decimal point. Among decimal commas,
        points are thousands: 7.730 is 7730; a warning says so where no comma in the column does.
    text : collection of str
        Columns to be read as text even if they hold numbers: codes, identifiers, class names.
    missing : collection of str, optional
        Cells of a delimited file that mean a gap. By default an empty cell, ``?``, and what
        pandas takes for one, such as ``NA`` and ``None``.
    labels : collection of str
        Columns of a delimited file whose cells are names, to the letter: text, as in ``text``, in
        which only empty cells are gaps, and what ``missing`` names. Typed formats keep their types.
    sheet : str or int, optional
        Of a workbook: its name, or its number from 1. By default the first that is not hidden and
        has more than a row of several cells; a warning names the others.

    Raises
    ------
    CoCoError
        If there is no such file or no table in it: a header without rows, columns of the same
        name, a web page.

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
    text = tuple(check_columns(path, text, text))
    with TextSource(path, encoding) as source:
        found = find_format(source, encoding)
        if found == DELIMITED:
            sample = read_sample(source)
    if sheet is not None and found != EXCEL:
        raise CoCoError(f"sheet={sheet!r} (--sheet): {path} is no workbook, and has no sheets")
    gaps = MISSING if missing is None else tuple(missing)
    label_gaps = ("",) if missing is None else gaps
    if found == EXCEL:
        from cocoloss.tables.excel import open_excel  # noqa: PLC0415 - text does without

        return open_excel(
            path,
            text,
            write_table,
            sheet=sheet,
            header=header,
            missing=gaps,
            labels=labels,
            label_gaps=label_gaps,
        )
    if found in {PARQUET, ARFF}:
        from cocoloss.tables import parquet_and_arff as typed  # noqa: PLC0415 - text does without

        if found == PARQUET:
            return typed.open_parquet(path, text)
        return typed.open_arff(path, encoding, text, write_table)
    dialect = find_dialect(path, sample, separator=separator, header=header)
    return DelimitedFile(
        path,
        encoding,
        dialect,
        gaps,
        text,
        decimal,
        tuple(name for name in labels if name in dialect.names),
        label_gaps,
    )


def read_table(path: str | os.PathLike[str], **options: Any) -> Any:
    r"""Read a table from a CSV, TSV, Parquet, ARFF or Excel file, packed by gzip or not.

    Parameters
    ----------
    path, **options
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
    path, **options
        As in :func:`open_table`. Name the columns that a model takes for categories in ``text``:
        then codes are read as they were when it was fitted.
    rows : int
        Most rows in a chunk. There are fewer where the table is very wide, and where a group of
        rows ends in a Parquet file.
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
    path, **options
        As in :func:`open_table`.
    columns : collection of str
        Which columns, in the order wanted.
    rows : int
        Most rows in a chunk, as in :func:`iter_tables`.

    Yields
    ------
    pandas.DataFrame
        At least one row each.
    """
    return open_table(path, **options).verbatim(columns, rows)


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
    >>> import pandas as pd
    >>> from tempfile import TemporaryDirectory
    >>> from cocoloss.tables import write_table
    >>> with TemporaryDirectory() as folder:
    ...     write_table(pd.DataFrame({"a": [1, 2]}), Path(folder) / "a.tsv.gz")
    2
    """
    suffix, gzipped = suffix_of(path)
    if SUFFIXES.get(suffix) == PARQUET and not gzipped:
        from cocoloss.tables.parquet_and_arff import write_parquet  # noqa: PLC0415 - the same

        return write_parquet(frames, path)
    if suffix in SEPARATORS:
        return write_delimited(frames, path, SEPARATORS[suffix])
    raise CoCoError(
        f"cannot tell the format of {path} from its name; end it in one of "
        f".csv, .tsv, .txt, .csv.gz, .parquet"
    )


def check_is_file(path: str | os.PathLike[str]) -> Path:
    """Return a path that leads to a file, or say what is there instead."""
    path = Path(path)
    try:
        if path.is_file():
            return path
        if path.is_dir():
            raise CoCoError(f"{path} is a folder; name a file in it")
        if path.exists():
            raise CoCoError(f"{path} is not a regular file; save the table to one first")
        if not path.parent.is_dir():
            raise CoCoError(f"there is no file {path}, and no folder {path.parent}")
        guess = did_you_mean(path.name, [other.name for other in path.parent.iterdir()])
    except OSError as error:
        raise unreadable(path, error) from error
    raise CoCoError(f"there is no file {path}{guess}")


def find_format(source: TextSource, encoding: str | None = None) -> str:  # noqa: C901 - a list
    """Say whether a file is delimited text, Parquet, ARFF or Excel, or what it is instead.

    The first bytes decide, and the suffix where they are silent.
    """
    head, path = source.head.removeprefix(codecs.BOM_UTF8), source.path
    if not head.strip():
        raise CoCoError(f"{path} is empty; there is no table in it")
    if head.startswith(b"PAR1"):
        if source.gzipped:
            raise CoCoError(f"{path} is Parquet inside gzip; unpack it first, Parquet packs itself")
        return PARQUET
    if head.startswith(b"PK\x03\x04"):
        from cocoloss.tables.excel import is_workbook  # noqa: PLC0415 - text does without

        if is_workbook(path):
            return EXCEL
    for start, what in NOT_TABLES.items():
        if re.match(start, head, re.DOTALL):
            raise CoCoError(f"{path} is not a table but {what}")
    is_wide = encoding is not None or head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if b"\0" in head and not is_wide:
        if 0.4 < head.count(b"\0") / len(head) < 0.6:  # every other byte
            raise CoCoError(
                f"{path} looks like UTF-16 without its mark; save it as UTF-8, or name its "
                f"encoding, utf-16-le or utf-16-be"
            )
        raise CoCoError(f"{path} is not a table: it holds binary data")
    lines = map(bytes.strip, head.splitlines())
    first = next((line for line in lines if line and not line.startswith(b"%")), b"")
    found = ARFF if RELATION.match(first) else SUFFIXES.get(suffix_of(path)[0], DELIMITED)
    if found in {PARQUET, EXCEL}:
        name = "a Parquet" if found == PARQUET else "an Excel"
        raise CoCoError(f"{path} has the name of {name} file, but is none; fetch it again")
    return found
