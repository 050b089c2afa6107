"""A table to a matrix, by what a preprocessor has learnt: it lines up the columns.

How a kind is read or encoded is not this file's business, nor is learning. No scikit-learn here: a
model file is answered from without it.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cocoloss._checks import check_option
from cocoloss.columns.categories import OneHot
from cocoloss.columns.category_columns import one_hot_codes
from cocoloss.columns.columns import RemembersColumns
from cocoloss.columns.cycles import cycle_names, write_cycles
from cocoloss.columns.kinds import NUMBER
from cocoloss.columns.numerals import COMMA, DOT, with_decimal
from cocoloss.columns.quantities import QUANTITIES, read_quantities
from cocoloss.columns.scaling import NumberScaler
from cocoloss.columns.tables import read_table


class TableEncoder(RemembersColumns):
    """What a fitted :class:`TablePreprocessor` does, whose attributes it has."""

    n_features_out_: int
    kinds_: dict[str, str]
    forms_: dict[str, str]
    stray_columns_: list[str]
    scaler_: NumberScaler
    cycles_: dict[str, list[str]]
    one_hots_: dict[str, OneHot]

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Encode a table, (n_rows, n_features_out_)."""
        table = read_table(X, self._speaker())
        where = self._find(table, self.kinds_)
        out = np.zeros((table.n_rows, self.n_features_out_), dtype=np.float32)
        quantities = {name: kind for name, kind in self.kinds_.items() if kind in QUANTITIES}
        matrix = read_quantities(table, where, quantities, self.forms_, self.stray_columns_)
        end = self.scaler_.width
        self.scaler_.transform(matrix, out[:, :end])
        for name, cycles in self.cycles_.items():
            start, end = end, end + 2 * len(cycles)
            write_cycles(matrix[:, list(quantities).index(name)], cycles, out[:, start:end])
        for name, one_hot in self.one_hots_.items():
            start, end = end, end + one_hot.width
            codes = one_hot_codes(table.column(where[name]), name, self.kinds_[name], one_hot)
            one_hot.transform(codes, out[:, start:end])
        return out

    def expect_decimal(self, decimal: str) -> Self:
        """Read numbers in text with another decimal mark from now on."""
        check_option(decimal, "decimal", [DOT, COMMA])
        numbers = [name for name, kind in self.kinds_.items() if kind == NUMBER]
        forms = {name: with_decimal(self.forms_.get(name, ""), decimal) for name in numbers}
        self.forms_ = self.forms_ | {name: form for name, form in forms.items() if form}
        return self

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the result's columns."""
        called = dict(zip(self.column_names_, self._input_names(input_features), strict=True))
        quantities = [called[name] for name, kind in self.kinds_.items() if kind in QUANTITIES]
        names = self.scaler_.names(quantities)
        for name, cycles in self.cycles_.items():
            names += cycle_names(called[name], cycles)
        for name, one_hot in self.one_hots_.items():
            names += one_hot.names(called[name])
        return np.array(names, dtype=object)
