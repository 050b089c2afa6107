"""Rows of ARFF cut into cells: quotes of both kinds, backslashes, sparse rows."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from cocoloss.exceptions import CoCoError

QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
CELL = re.compile(rf"\s*({QUOTED}|[^,]*?)\s*(,|$)", re.DOTALL)
ENTRY = re.compile(rf"\s*(\d+)\s+({QUOTED}|[^,]*?)\s*(,|$)", re.DOTALL)
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}

Cell = str | None


def unquote(cell: str) -> str:
    r"""Return a cell without its quotes and backslashes.

    Examples
    --------
    >>> unquote(r"'it\'s'")
    "it's"
    >>> unquote("plain")
    'plain'
    """
    if len(cell) < 2 or cell[0] not in "'\"" or cell[0] != cell[-1]:
        return cell
    return ESCAPE.sub(_unescape, cell[1:-1]) if "\\" in cell else cell[1:-1]


def split_list(text: str) -> list[str]:
    """Return the values of a declared list.

    Examples
    --------
    >>> split_list("a, 'b, c' ,d")
    ['a', 'b, c', 'd']
    """
    return [unquote(cell) for cell in _cells(text)] if text.strip() else []


def cut_rows(path: object, body: str, n_before: int, defaults: Sequence[Cell]) -> list[Any]:
    r"""Return the cells below ``@data``, one array per column, None for a gap.

    Parameters
    ----------
    path : object
        Name of the file, for the message.
    body : str
        What stands below ``@data``.
    n_before : int
        Lines above it, for the message.
    defaults : sequence of str or None
        What a sparse row means by leaving a column out.

    Raises
    ------
    CoCoError
        If a row has more or fewer cells than there are columns.

    Examples
    --------
    >>> [list(column) for column in cut_rows("a.arff", "1,?\n{1 'x y'}\n", 3, ["0", None])]
    [['1', '0'], [None, 'x y']]
    """
    columns: list[list[Cell]] = [[] for _ in defaults]
    for number, line in enumerate(body.split("\n"), start=n_before + 1):
        row = line.strip()
        if not row or row.startswith("%"):
            continue
        if row.startswith("{"):
            cells = _sparse(f"{path}, line {number}", row, defaults)
        else:
            cells = [_value(cell) for cell in _cells(row)]
        if len(cells) != len(columns):
            raise CoCoError(
                f"{path}, line {number}: {len(cells)} cells where {len(columns)} columns are "
                f"declared; mend the line, or put cells that hold a comma into quotes"
            )
        for column, cell in zip(columns, cells, strict=True):
            column.append(cell)
    return [np.array(column, dtype=object) for column in columns]


def _cells(row: str) -> list[str]:
    found = []
    position = 0
    while True:
        match = CELL.match(row, position)
        assert match is not None, "the empty cell matches everywhere"
        found.append(match[1])
        if not match[2]:
            return found
        position = match.end()


def _sparse(place: str, row: str, defaults: Sequence[Cell]) -> list[Cell]:
    cells = list(defaults)
    inside = row[1:].rpartition("}")[0].strip()
    position = 0
    while position < len(inside):
        match = ENTRY.match(inside, position)
        if match is None or int(match[1]) >= len(cells):
            raise CoCoError(
                f"{place}: expected column numbers below {len(cells)} with a value each, "
                f"not {inside[position : position + 40]!r}"
            )
        cells[int(match[1])] = _value(match[2])
        position = match.end()
    return cells


def _value(cell: str) -> Cell:
    return None if cell in {"?", ""} else unquote(cell)


def _unescape(match: re.Match[str]) -> str:
    letter = match[1]
    if len(letter) == 5:
        return chr(int(letter[1:], 16))
    return ESCAPED.get(letter, letter)
