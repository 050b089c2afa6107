"""The columns of numbers, dates and durations, read into one matrix."""

from collections.abc import Container, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.columns.kinds import DATE, DURATION, NUMBER
from cocoloss.columns.tables import Table
from cocoloss.columns.values import days, numbers, seconds

QUANTITIES = frozenset({NUMBER, DATE, DURATION})


def read_quantities(
    table: Table,
    where: Mapping[str, int],
    kinds: Mapping[str, str],
    forms: Mapping[str, str],
    lenient: Container[str],
) -> NDArray[Any]:
    """Return quantities as a matrix, NaN in the gaps.

    Parameters
    ----------
    table : Table
        The table.
    where : mapping of str to int
        Positions of its columns.
    kinds : mapping of str to str
        The columns to read, and the kind of each.
    forms : mapping of str to str
        How their text is written, where that is not the plain way.
    lenient : container of str
        Columns of numbers in which other text is a gap.

    Returns
    -------
    ndarray of shape (n_rows, len(kinds))
        Numbers, days since 1970, seconds; at times the table's own block.
    """
    positions = [where[name] for name in kinds]
    if table.block is not None and all(kind == NUMBER for kind in kinds.values()):
        if positions == list(range(table.n_columns)):
            return table.block
        return table.block[:, positions]
    matrix = np.empty((len(kinds), table.n_rows))
    for row, position, (name, kind) in zip(matrix, positions, kinds.items(), strict=True):
        column, form = table.column(position), forms.get(name, "")
        if kind == NUMBER:
            row[:] = numbers(column, name, form, lenient=name in lenient)
        elif kind == DATE:
            row[:] = days(column, name, form)
        else:
            row[:] = seconds(column, name)
    return matrix.T
