"""Tables that are fit for a network as they are: checked, and converted to float32.

No scikit-learn here: a model file is answered from without it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pandas.api import types

from cocoloss.columns.columns import RemembersColumns
from cocoloss.columns.numerals import parse_numbers
from cocoloss.columns.tables import Table, read_table
from cocoloss.columns.values import distinct, numbers
from cocoloss.exceptions import CoCoError


class FloatEncoder(RemembersColumns):
    """What a fitted :class:`FloatConverter` does, whose attributes it has."""

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Check and convert a table, (n_rows, n_columns)."""
        table = read_table(X, self._speaker())
        where = self._find(table, self.column_names_)
        return as_floats(table, [where[name] for name in self.column_names_])


def as_floats(table: Table, positions: Sequence[int]) -> NDArray[np.float32]:
    """Return some columns of a table as finite numbers, C-contiguous, or say which are none."""
    if table.block is None:
        values = np.column_stack([_numbers(table.column(j), table.names[j]) for j in positions])
    elif list(positions) == list(range(table.n_columns)):
        values = table.block
    else:
        values = table.block[:, list(positions)]
    with np.errstate(over="ignore"):
        result = np.array(values, dtype=np.float32, order="C", copy=None)
    if np.isfinite(result).all():
        return result
    gaps = np.isnan(result).any(axis=0)
    bad = gaps if gaps.any() else np.isinf(result).any(axis=0)
    name = table.names[positions[int(np.argmax(bad))]]
    if gaps.any():
        raise CoCoError(
            f"X has gaps (NaN), such as in column {name!r}; use preprocess='auto', which fills and "
            f"marks them, or fill them first"
        )
    raise CoCoError(
        f"X has infinite values, or values too large for float32, such as in column {name!r}; use "
        f"preprocess='auto', which clips them smoothly, or take them out first"
    )


def _numbers(column: Any, name: str) -> NDArray[np.float64]:
    if types.is_numeric_dtype(column.dtype):
        return numbers(column, name)
    codes, values = distinct(column, name)
    parsed = parse_numbers(values)
    bad = np.isnan(parsed)
    if bad.any():
        raise CoCoError(
            f"column {name!r} holds {values[np.argmax(bad)]!r}, which is no number; use "
            f"preprocess='auto', which reads categories and dates, or convert it first"
        )
    return np.asarray(np.append(parsed, np.nan)[codes])
