"""Columns that the user lists as categories: by name, by position, or by a mask."""

from numbers import Integral
from typing import Any

import numpy as np

from cocoloss.columns.remarks import some_of
from cocoloss.columns.tables import Table
from cocoloss.exceptions import CoCoError

FROM_DTYPE = "from_dtype"


def listed_categories(listed: Any, table: Table) -> set[str]:
    """Return the names of the listed columns.

    Parameters
    ----------
    listed : "from_dtype" or sequence
        Names, positions from 0, or a mask; "from_dtype" lists none.
    table : Table
        Whose columns they are.

    Raises
    ------
    CoCoError
        If an entry is no column of the table.
    """
    if isinstance(listed, str):
        if listed == FROM_DTYPE:
            return set()
        raise CoCoError(f"categorical_features must be {FROM_DTYPE!r} or a list, not {listed!r}")
    entries = np.asarray(listed, dtype=object).ravel().tolist()
    if entries and all(isinstance(entry, bool | np.bool_) for entry in entries):
        if len(entries) != table.n_columns:
            raise CoCoError(
                f"categorical_features is a mask of {len(entries)} for {table.n_columns} "
                f"columns; give one value each"
            )
        entries = np.flatnonzero(entries).tolist()
    known = set(table.names)
    result = set()
    for entry in entries:
        if isinstance(entry, str) and entry in known:
            result.add(entry)
        elif isinstance(entry, Integral) and int(entry) in range(table.n_columns):
            result.add(table.names[int(entry)])
        else:
            raise CoCoError(
                f"categorical_features lists {entry!r}, but the columns are "
                f"{some_of(table.names)}; give names or positions from 0"
            )
    return result
