"""A delimited file: how it is to be read, and what is wrong with it where pandas stumbles.

The reading itself is done in ``parsing``.
"""

import csv
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pandas as pd

from cocoloss._checks import did_you_mean
from cocoloss.exceptions import CoCoError
from cocoloss.tables.dialect import MISSING, Dialect, find_dialect
from cocoloss.tables.formats import Found
from cocoloss.tables.records import WHITESPACE, check_widths, records
from cocoloss.tables.text import BLOCK, TextSource, read_sample

ENOUGH = 1 << 16  # bytes that show how a file is written
MOST = 1 << 23  # more are not looked at, however long the lines


@dataclass(frozen=True)
class Delimited:
    """A delimited file, and all that is needed to read it."""

    found: Found
    encoding: str | None
    dialect: Dialect
    text: Collection[str]
    missing: Collection[str]
    sample_is_whole: bool
    returns: bool  # alone at the ends of lines
    doubt_decimal: bool = False  # whether the user should hear how points were read

    def open(self) -> TextSource:
        """Return the text from its start."""
        return TextSource(self.found, self.encoding, returns=self.returns)

    def options(self) -> dict[str, Any]:
        """Return the arguments of ``pandas.read_csv``."""
        return {
            "sep": self.dialect.separator,
            "names": list(self.dialect.names),
            "header": 0 if self.dialect.header else None,
            "decimal": self.dialect.decimal,
            "skipinitialspace": self.dialect.skip_spaces,
            "na_values": list(self.missing),
            "keep_default_na": False,
            "dtype": dict.fromkeys(self.text, str),
            "engine": "c",
        }


def open_delimited(
    found: Found,
    *,
    separator: str | None,
    encoding: str | None,
    header: bool | str,
    decimal: str | None,
    text: Collection[str],
    missing: Collection[str] | None,
) -> Delimited:
    """Find how a delimited file is to be read; see :func:`cocoloss.tables.read_table`."""
    marks = MISSING if missing is None else tuple(missing)
    sample, whole = read_sample(found, encoding, ENOUGH, MOST)
    dialect = find_dialect(
        found.path,
        sample,
        whole=whole,
        separator=separator,
        header=header,
        decimal=decimal,
        missing=marks,
        text=text,
    )
    text = check_text_columns(found.path, text, dialect.names)
    returns = "\r" in sample and "\n" not in sample
    return Delimited(found, encoding, dialect, text, marks, whole, returns, decimal is None)


def check_text_columns(path: object, text: Collection[str], names: Collection[str]) -> list[str]:
    """Return the columns to be read as text, or say which of them the table lacks."""
    if isinstance(text, str):
        raise CoCoError(f"text must be a list of columns, not the text {text!r}; say [{text!r}]")
    for name in text:
        if name not in names:
            raise CoCoError(f"{path} has no column {name!r}{did_you_mean(str(name), names)}")
    return list(text)


@contextmanager
def explained(table: Delimited) -> Iterator[None]:
    """Turn what pandas says of a file into one line that a user can act on."""
    path = table.found.path
    try:
        yield
    except (CoCoError, Warning):
        raise
    except (ValueError, OverflowError) as error:  # a ParserError is a ValueError
        reason = str(error).strip().splitlines()[-1].rpartition("C error: ")[2]
        if "EOF inside string" in reason:
            row = reason.rpartition(" ")[2]
            raise CoCoError(
                f"{path}: a quotation mark opens near row {row} and never closes; close it, "
                f"or double the quotation marks inside quoted cells"
            ) from error
        if isinstance(error, pd.errors.ParserError):
            _find_uneven_row(table)
        raise CoCoError(f"{path} cannot be read as a table: {reason}") from error


def check_has_rows(table: Delimited, frame: Any) -> None:
    """Say so if nothing stands below the header."""
    if frame.empty:
        raise CoCoError(f"{table.found.path} has a header but no rows")


def has_gaps_at_end(frame: Any) -> bool:
    """Tell whether the last column has gaps."""
    return bool(frame.iloc[:, -1].isna().any())


def check_short_rows(table: Delimited, n_rows: int, *, gaps_at_end: bool) -> None:
    """Look for rows that are cut short, which pandas fills with gaps.

    Such a row has a gap in the last column. Only then, and only beyond the sample, which was
    looked at already, are the separators counted; and the rows only if that does not settle it.
    """
    n_columns = len(table.dialect.names)
    if not gaps_at_end or table.sample_is_whole or n_columns == 1:
        return
    expected = (n_rows + table.dialect.header) * (n_columns - 1)
    if table.dialect.separator == WHITESPACE or _count_separators(table) != expected:
        _find_uneven_row(table)


def _count_separators(table: Delimited) -> int | None:
    """Return how many separators a file has, or None if some may stand in quotes."""
    separator = table.dialect.separator.encode()
    count = 0
    with table.open() as source:
        while block := source.read(BLOCK):
            if b'"' in block:
                return None
            count += block.count(separator)
    return count


def _find_uneven_row(table: Delimited) -> None:
    with table.open() as source:
        rows = records(
            source.lines(), table.dialect.separator, skip_spaces=table.dialect.skip_spaces
        )
        try:
            check_widths(table.found.path, rows, len(table.dialect.names))
        except csv.Error as error:  # it has a limit to the length of a cell
            raise CoCoError(
                f"{table.found.path} cannot be read as a table: {error}; "
                f"a quotation mark may be left open"
            ) from error
