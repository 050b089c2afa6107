"""Rows of a delimited text, one by one in Python: slow, but each with its line in the file."""

import csv
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from cocoloss.exceptions import CoCoError

WHITESPACE = r"\s+"  # as pandas spells it
TOKEN = re.compile(r'"((?:[^"]|"")*)"|(\S+)')


class Record(NamedTuple):
    """A row of cells, and the line of the file in which it ends."""

    line: int
    cells: list[str]


def records(lines: Iterable[str], separator: str, *, skip_spaces: bool = False) -> Iterator[Record]:
    r"""Give the rows of a delimited text one by one, empty lines left out.

    Examples
    --------
    >>> [row.cells for row in records(['a,"b\n', 'c"\n', '\n', '1,2\n'], ",")]
    [['a', 'b\nc'], ['1', '2']]
    """
    if separator == WHITESPACE:
        for number, line in enumerate(lines, start=1):
            cells = [
                quoted.replace('""', '"') if quoted else bare
                for quoted, bare in TOKEN.findall(line)
            ]
            if cells:
                yield Record(number, cells)
        return
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=skip_spaces)
    for cells in reader:
        if len(cells) > 1 or (cells and cells[0].strip()):
            yield Record(reader.line_num, cells)


def check_widths(path: object, rows: Iterable[Record], n_columns: int) -> None:
    """Say which row, if any, has more or fewer cells than there are columns."""
    for row in rows:
        if len(row.cells) != n_columns:
            cells = "1 cell" if len(row.cells) == 1 else f"{len(row.cells)} cells"
            raise CoCoError(
                f"{path}, line {row.line}: {cells} where the first row has {n_columns}; "
                f"mend the line, or put cells that hold the separator into quotes"
            )


def sample_records(sample: str, separator: str, *, whole: bool, skip_spaces: bool) -> list[Record]:
    """Return the rows of the beginning of a text; not the last, unless it is the whole text."""
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", sample)
    if not lines[-1]:
        lines.pop()
    found: list[Record] = []
    try:
        found.extend(records(lines, separator, skip_spaces=skip_spaces))
    except csv.Error:
        return found  # a cell beyond csv's limit: a quote that never closes, or no table at all
    return found if whole else found[:-1]
