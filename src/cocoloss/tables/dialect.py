"""How a delimited file is written: its separator, its header, its decimal mark.

``csv.Sniffer`` is not used: it counts characters inside quoted fields and takes letters for
separators. Here the beginning of the file is parsed under each candidate, and the one that gives
even rows wins.
"""

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import NamedTuple

from cocoloss._checks import listed
from cocoloss.exceptions import CoCoError
from cocoloss.tables.commas import decimal_of, is_comma_number
from cocoloss.tables.records import WHITESPACE, Record, check_widths, sample_records

SEPARATORS = ["\t", ",", ";", "|", WHITESPACE]  # the first of equals wins
UNUSUAL = [":", "^", "~", "!", "\x01", "\x1f"]  # to name in a message, not to guess
SPOKEN = {"\t": "tab", WHITESPACE: "white space", "\x01": r"\x01", "\x1f": r"\x1f"}

# What pandas takes for a gap, and the mark of ARFF and the UCI repository.
MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null", "?"),
)

ENOUGH_LINES = 100  # to tell the separator
EVEN_ENOUGH = 0.5  # share of rows of the usual width, below which a separator is out
MOST_WORDS = 4  # in the cells of a table that has one column

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
OTHER_SEPARATOR = re.compile(r"[\t,;|]")


@dataclass(frozen=True)
class Dialect:
    r"""How to read a delimited file.

    Attributes
    ----------
    separator : str
        One character, or ``\s+`` for white space of any length.
    names : tuple of str
        The columns.
    header : bool
        Whether the first row holds the names.
    decimal : {".", ","}
        The decimal mark.
    skip_spaces : bool
        Whether every separator is followed by spaces that mean nothing.
    decimal_is_known : bool
        Whether the user told the decimal mark, or the columns agree on it.
    codes : tuple of str
        Columns of digits of which some begin with 0, as postcodes and identifiers do.
    """

    separator: str
    names: tuple[str, ...]
    header: bool
    decimal: str
    skip_spaces: bool
    decimal_is_known: bool
    codes: tuple[str, ...] = ()


def find_dialect(
    path: object,
    sample: str,
    *,
    whole: bool,
    separator: str | None = None,
    header: bool | str = "auto",
    decimal: str | None = None,
    missing: Collection[str] = MISSING,
    text: Collection[str] = (),
) -> Dialect:
    r"""Find how a file is written from its beginning.

    Parameters
    ----------
    path : object
        Its name, for the messages.
    sample : str
        The beginning of the file.
    whole : bool
        Whether that is all of it; if not, the last row is left out.
    separator, header, decimal, missing, text
        What the user knows; see :func:`cocoloss.tables.read_table`.

    Raises
    ------
    CoCoError
        If it is no table, or its header cannot be used, or a row has more or fewer cells.

    Examples
    --------
    >>> found = find_dialect("a.csv", 'a;b\n1,5;"x;y"\n2,5;z\n', whole=True)
    >>> found.separator, found.names, found.decimal
    (';', ('a', 'b'), ',')
    """
    if separator is None:
        separator = _find_separator(path, sample, whole=whole)
    else:
        separator = _check_separator(path, separator, sample, whole=whole)
    skip_spaces = _spaces_follow(sample_records(sample, separator, whole=whole, skip_spaces=False))
    rows = sample_records(sample, separator, whole=whole, skip_spaces=skip_spaces)
    if not rows:
        raise CoCoError(f"{path} has no complete row in its first {len(sample)} characters")
    has_header = _check_header(path, header, rows[0].cells)
    names = _names(path, rows[0].cells, has_header=has_header)
    check_widths(path, rows, len(names))
    body = rows[1:] if has_header else rows
    if not body and whole:
        raise CoCoError(f"{path} has a header but no rows")
    columns = {n: _cells_of(j, body, missing) for j, n in enumerate(names) if n not in text}
    if decimal is None:
        decimal = decimal_of(columns.values(), has_commas=separator != "," or '"' in sample)
    elif decimal not in {".", ","}:
        raise CoCoError(f"decimal must be '.' or ',', not {decimal!r}")
    codes = tuple(name for name, cells in columns.items() if _are_codes(cells))
    return Dialect(
        separator, names, has_header, decimal or ".", skip_spaces, decimal is not None, codes
    )


def spoken(separator: str) -> str:
    """Return a separator as a message names it."""
    return SPOKEN.get(separator, repr(separator))


class _Score(NamedTuple):
    """How well a separator fits; the larger the better, from left to right."""

    header_fits: bool
    evenness: float
    clean: float
    width: int


def _score(start: str, separator: str, *, whole: bool) -> _Score | None:
    rows = sample_records(start, separator, whole=whole, skip_spaces=True)
    if not rows:
        return None
    widths = Counter(len(row.cells) for row in rows)
    width, n_usual = widths.most_common(1)[0]
    width = max(width, len(rows[0].cells)) if n_usual <= len(rows) / 2 else width
    if width < 2 or widths[width] < EVEN_ENOUGH * len(rows):
        return None
    cells = [cell for row in rows for cell in row.cells]
    clean = sum(_is_clean(cell, separator) for cell in cells) / len(cells)
    return _Score(len(rows[0].cells) == width, widths[width] / len(rows), clean, width)


def _is_clean(cell: str, separator: str) -> bool:
    """Tell whether a cell could not be cut further by another separator."""
    cell = cell.strip()
    if separator != "," and is_comma_number(cell):
        return True
    return not OTHER_SEPARATOR.search(cell)


def _first_lines(sample: str) -> str:
    """Return the beginning of a sample: some lines tell the separator as well as many."""
    ends = re.finditer(r"\r\n?|\n", sample)
    last = next(islice(ends, ENOUGH_LINES - 1, None), None)
    return sample if last is None else sample[: last.end()]


def _find_separator(path: object, sample: str, *, whole: bool) -> str:
    start = _first_lines(sample)
    whole = whole and len(start) == len(sample)
    scores = {
        candidate: score
        for candidate in SEPARATORS
        if (score := _score(start, candidate, whole=whole)) is not None
    }
    if scores:
        return max(scores, key=lambda candidate: scores[candidate])
    lines = [line for line in start.splitlines() if line.strip()]
    for candidate in UNUSUAL:
        if _score(start, candidate, whole=whole) is not None:
            raise CoCoError(
                f"{path}: no comma, semicolon, tab, bar or space splits its rows; it looks "
                f"separated by {spoken(candidate)}, say separator={candidate!r} if so"
            )
    if any(OTHER_SEPARATOR.search(line) or len(line.split()) > MOST_WORDS for line in lines):
        raise CoCoError(
            f"{path} does not look like a table: no comma, semicolon, tab, bar or space splits "
            f"its lines into the same number of cells; if it is one, name its separator"
        )
    return ","  # one column


def _check_separator(path: object, separator: str, sample: str, *, whole: bool) -> str:
    separator = {"tab": "\t", r"\t": "\t", " ": WHITESPACE, "space": WHITESPACE}.get(
        separator, separator
    )
    if separator != WHITESPACE and (len(separator) != 1 or separator in '"\r\n\0'):
        raise CoCoError(f"separator must be one character, 'tab' or 'space', not {separator!r}")
    if separator != WHITESPACE and not separator.isascii():
        raise CoCoError(f"separator must be an ASCII character, not {separator!r}")
    rows = sample_records(sample, separator, whole=whole, skip_spaces=True)
    if rows and all(len(row.cells) == 1 for row in rows):
        found = _find_separator(path, sample, whole=whole)
        if _score(sample, found, whole=whole) is not None:
            raise CoCoError(
                f"{path} has no {spoken(separator)} between its cells; "
                f"it looks separated by {spoken(found)}"
            )
    return separator


def _spaces_follow(rows: list[Record]) -> bool:
    inner = [cell for row in rows for cell in row.cells[1:] if cell]
    return bool(inner) and all(cell.startswith(" ") for cell in inner)


def _check_header(path: object, header: bool | str, first: list[str]) -> bool:
    if isinstance(header, bool):
        return header
    if header != "auto":
        raise CoCoError(f"header must be True, False or 'auto', not {header!r}")
    if _looks_like_data(first):
        raise CoCoError(
            f"{path}: the first row looks like data, not like names: {listed(first)}; "
            f"say header=False (--no-header) if so, header=True if these are names"
        )
    return True


def _looks_like_data(cells: list[str]) -> bool:
    """Tell whether a first row holds values.

    Counted columns, 0, 1, 2, ..., are names. So are numbers in rising order beside names, which
    may be years or wavelengths. Fewer than two numbers say nothing.
    """
    cells = [cell.strip() for cell in cells]
    numbers = [float(cell) for cell in cells if NUMBER.fullmatch(cell)]
    if len(numbers) == len(cells):
        counted = list(range(len(cells)))
        return numbers not in (counted, [number + 1 for number in counted])
    rising = all(a < b for a, b in pairwise(numbers))
    return len(numbers) > 1 and not rising


def _names(path: object, first: list[str], *, has_header: bool) -> tuple[str, ...]:
    if not has_header:
        return tuple(f"column_{j}" for j in range(1, len(first) + 1))
    names = [cell.strip() or f"column_{j}" for j, cell in enumerate(first, start=1)]
    check_distinct(path, names)
    return tuple(names)


def check_distinct(path: object, names: list[str]) -> None:
    """Say which names, if any, several columns have."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise CoCoError(f"{path} has several columns named {listed(repeated)}; rename them")


def _cells_of(column: int, body: list[Record], missing: Collection[str]) -> list[str]:
    """Return the cells of a column that hold something."""
    cells = (row.cells[column].strip() for row in body)
    return [cell for cell in cells if cell not in missing]


def _are_codes(cells: list[str]) -> bool:
    """Tell whether a column is of digits, and a number would lose a zero at the front."""
    padded = any(len(cell) > 1 and cell[0] == "0" for cell in cells)
    return padded and all(cell.isascii() and cell.isdecimal() for cell in cells)
