"""How a delimited file is written: its separator and its header, found from its beginning.

``csv.Sniffer`` is not used: it counts characters inside quoted fields and takes letters for
separators. Here the beginning of the file is parsed under each candidate, and the one that gives
even rows wins. What the cells mean is not this file's business.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import NamedTuple

from cocoloss._checks import listed
from cocoloss.exceptions import CoCoError
from cocoloss.number_text import COMMA, has_decimal, split_unit
from cocoloss.tables.formats import TextSource

WHITESPACE = r"\s+"  # as pandas spells it
SEPARATORS = ["\t", ",", ";", "|", WHITESPACE]  # the first of equals wins
UNUSUAL = [":", "^", "~", "!", "\x01", "\x1f"]  # to name in a message, not to guess
SPOKEN = {"\t": "tab", WHITESPACE: "white space", "\x01": r"\x01", "\x1f": r"\x1f"}

ENOUGH_BYTES = 1 << 16  # of a file show how it is written
MOST_BYTES = 1 << 23  # are looked at, however long the lines
ENOUGH_LINES = 100  # to find the separator
EVEN_ENOUGH = 0.5  # share of rows of the usual width, below which a separator is out
MOST_WORDS = 4  # in the cells of a table that has one column

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
OTHER_SEPARATOR = re.compile(r"[\t,;|]")
TOKEN = re.compile(r'"((?:[^"]|"")*)"|(\S+)')


class Sample(NamedTuple):
    """The beginning of a text, and whether that is all of it."""

    text: str
    is_complete: bool


class Row(NamedTuple):
    """The cells of a row, and the line of the file in which it ends."""

    line: int
    cells: list[str]


@dataclass(frozen=True)
class Dialect:
    r"""How a delimited file is written.

    Attributes
    ----------
    separator : str
        One character, or ``\s+`` for white space of any length.
    names : tuple of str
        The columns.
    header : bool
        Whether the first row holds the names.
    skip_spaces : bool
        Whether every separator is followed by spaces that mean nothing.
    returns : bool
        Whether lines end in ``\r`` alone.
    may_have_commas : bool
        Whether a cell may hold a comma.
    sample : list of list of str
        The cells of the first rows below the header.
    sample_is_complete : bool
        Whether these are all rows of the file.
    """

    separator: str
    names: tuple[str, ...]
    header: bool
    skip_spaces: bool
    returns: bool
    may_have_commas: bool
    sample: list[list[str]] = field(repr=False, compare=False)
    sample_is_complete: bool

    def columns(self, missing: Collection[str]) -> Iterator[tuple[str, list[str]]]:
        """Give each column with those of its cells in the sample that hold something."""
        for j, name in enumerate(self.names):
            cells = (row[j].strip() for row in self.sample)
            yield name, [cell for cell in cells if cell not in missing]


def read_sample(source: TextSource) -> Sample:
    """Return the beginning of a file: 64 kB, or more until it has some lines."""
    parts: list[str] = []
    size = lines = 0
    while size < ENOUGH_BYTES or (lines < 10 and size < MOST_BYTES):
        part = source.read(ENOUGH_BYTES).decode()
        if not part:
            return Sample("".join(parts), is_complete=True)
        parts.append(part)
        size += len(part)
        lines += part.count("\n") + part.count("\r")
    return Sample("".join(parts), is_complete=not source.read(1))


def find_dialect(
    path: object, sample: Sample, *, separator: str | None = None, header: bool | str = "auto"
) -> Dialect:
    r"""Find how a file is written from its beginning.

    Parameters
    ----------
    path : object
        Its name, for the messages.
    sample : Sample
        The beginning of the file. If that is not all of it, its last row is left out.
    separator, header
        What the user knows; see :func:`cocoloss.tables.open_table`.

    Raises
    ------
    CoCoError
        If it is no table, or its header cannot be used, or a row has more or fewer cells.

    Examples
    --------
    >>> found = find_dialect("a.csv", Sample('a;b\n1,5;"x;y"\n2,5;z\n', is_complete=True))
    >>> found.separator, found.names
    (';', ('a', 'b'))
    """
    if separator is None:
        separator = _find_separator(path, sample)
    else:
        separator = _check_separator(path, separator, sample)
    skip_spaces = _spaces_follow(_sample_rows(sample, separator, skip_spaces=False))
    rows = _sample_rows(sample, separator, skip_spaces=skip_spaces)
    if not rows:
        raise CoCoError(f"{path} has no complete row in its first {len(sample.text)} characters")
    has_header = _check_header(path, header, rows[0].cells)
    names = _names(path, rows[0].cells, has_header=has_header)
    check_widths(path, rows, len(names))
    body = [row.cells for row in (rows[1:] if has_header else rows)]
    if not body and sample.is_complete:
        raise CoCoError(f"{path} has a header but no rows")
    return Dialect(
        separator,
        names,
        has_header,
        skip_spaces,
        returns="\r" in sample.text and "\n" not in sample.text,
        may_have_commas=separator != "," or '"' in sample.text,
        sample=body,
        sample_is_complete=sample.is_complete,
    )


def iter_rows(lines: Iterable[str], separator: str, *, skip_spaces: bool = False) -> Iterator[Row]:
    r"""Give the rows of a delimited text one by one, empty lines left out.

    Slow, but each row has its line in the file.

    Examples
    --------
    >>> [row.cells for row in iter_rows(['a,"b\n', 'c"\n', '\n', '1,2\n'], ",")]
    [['a', 'b\nc'], ['1', '2']]
    """
    if separator == WHITESPACE:
        for number, line in enumerate(lines, start=1):
            cells = [
                quoted.replace('""', '"') if quoted else bare
                for quoted, bare in TOKEN.findall(line)
            ]
            if cells:
                yield Row(number, cells)
        return
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=skip_spaces)
    for cells in reader:
        if len(cells) > 1 or (cells and cells[0].strip()):
            yield Row(reader.line_num, cells)


def check_widths(path: object, rows: Iterable[Row], n_columns: int) -> None:
    """Say which row, if any, has more or fewer cells than there are columns."""
    for row in rows:
        if len(row.cells) != n_columns:
            cells = "1 cell" if len(row.cells) == 1 else f"{len(row.cells)} cells"
            raise CoCoError(
                f"{path}, line {row.line}: {cells} where the first row has {n_columns}; "
                f"mend the line, or put cells that hold the separator into quotes"
            )


def check_distinct(path: object, names: list[str]) -> None:
    """Say which names, if any, several columns have."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise CoCoError(f"{path} has several columns named {listed(repeated)}; rename them")


class _Score(NamedTuple):
    """How well a separator fits; the larger the better, from left to right."""

    header_fits: bool
    evenness: float
    clean: float
    width: int


def _score(sample: Sample, separator: str) -> _Score | None:
    rows = _sample_rows(sample, separator, skip_spaces=True)
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
    if not OTHER_SEPARATOR.search(cell.strip()):
        return True
    digits = split_unit(cell)[1]
    return separator != "," and "," in digits and has_decimal(digits, COMMA)


def _find_separator(path: object, sample: Sample) -> str:
    start = _first_lines(sample)
    scores = {
        candidate: score
        for candidate in SEPARATORS
        if (score := _score(start, candidate)) is not None
    }
    if scores:
        return max(scores, key=lambda candidate: scores[candidate])
    for candidate in UNUSUAL:
        if _score(start, candidate) is not None:
            raise CoCoError(
                f"{path}: no comma, semicolon, tab, bar or space splits its rows; it looks "
                f"separated by {_spoken(candidate)}, set separator to {candidate!r} if so"
            )
    lines = [line for line in start.text.splitlines() if line.strip()]
    if any(OTHER_SEPARATOR.search(line) or len(line.split()) > MOST_WORDS for line in lines):
        raise CoCoError(
            f"{path} does not look like a table: no comma, semicolon, tab, bar or space splits "
            f"its lines into the same number of cells; if it is one, name its separator"
        )
    return ","  # one column


def _check_separator(path: object, separator: str, sample: Sample) -> str:
    separator = {"tab": "\t", r"\t": "\t", " ": WHITESPACE, "space": WHITESPACE}.get(
        separator, separator
    )
    if separator != WHITESPACE and (len(separator) != 1 or separator in '"\r\n\0'):
        raise CoCoError(f"separator must be one character, 'tab' or 'space', not {separator!r}")
    if separator != WHITESPACE and not separator.isascii():
        raise CoCoError(f"separator must be an ASCII character, not {separator!r}")
    rows = _sample_rows(sample, separator, skip_spaces=True)
    if rows and all(len(row.cells) == 1 for row in rows):
        found = _find_separator(path, sample)
        if _score(sample, found) is not None:
            raise CoCoError(
                f"{path} has no {_spoken(separator)} between its cells; "
                f"it looks separated by {_spoken(found)}"
            )
    return separator


def _sample_rows(sample: Sample, separator: str, *, skip_spaces: bool) -> list[Row]:
    """Return the rows of a sample; not the last, which may be cut, unless it is all there is."""
    lines = io.StringIO(sample.text, newline="")  # which ends at \n, \r\n and \r, and keeps them
    found: list[Row] = []
    try:
        found.extend(iter_rows(lines, separator, skip_spaces=skip_spaces))
    except csv.Error:
        return found  # a cell beyond csv's limit: a quote that never closes, or no table at all
    return found if sample.is_complete else found[:-1]


def _first_lines(sample: Sample) -> Sample:
    """Return the beginning of a sample: some lines show the separator as well as many."""
    ends = re.finditer(r"\r\n?|\n", sample.text)
    last = next(islice(ends, ENOUGH_LINES - 1, None), None)
    start = sample.text if last is None else sample.text[: last.end()]
    return Sample(start, sample.is_complete and len(start) == len(sample.text))


def _spoken(separator: str) -> str:
    return SPOKEN.get(separator, repr(separator))


def _spaces_follow(rows: list[Row]) -> bool:
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
            f"set header to False (--no-header) if so, to True (--header) if these are names"
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
