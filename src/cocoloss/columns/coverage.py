"""Columns of new rows that tell a model nothing: empty ones, and categories it never saw."""

from typing import Any

import numpy as np

from cocoloss.columns.category_columns import one_hot_codes
from cocoloss.columns.encoder import TableEncoder
from cocoloss.columns.quantities import QUANTITIES, read_quantities
from cocoloss.columns.tables import read_table
from cocoloss.columns.values import UNSEEN


class Coverage:
    """Which columns have held nothing that a fitted preprocessor knows, over parts of a table.

    A column is looked at until its first known value, so that long tables cost nothing more.

    Parameters
    ----------
    preprocessor : transformer
        A fitted :class:`TablePreprocessor`; of others nothing is known, and nothing said.

    Attributes
    ----------
    n_rows : int
        Rows seen so far.
    empty : list of str
        Columns in use without a value so far.
    unknown : dict of str to str
        Categories of which none was there in training so far -> one of them.

    Examples
    --------
    >>> import pandas as pd
    >>> from cocoloss.columns import TablePreprocessor
    >>> table = pd.DataFrame({"city": ["Bern", "Oslo", "Rome"], "age": [31, 45, 60]})
    >>> coverage = Coverage(TablePreprocessor().fit(table))
    >>> coverage.see(pd.DataFrame({"city": ["Atlantis", None], "age": [None, None]}))
    >>> coverage.empty, coverage.unknown
    (['age'], {'city': 'Atlantis'})
    """

    def __init__(self, preprocessor: Any) -> None:
        told = isinstance(preprocessor, TableEncoder) and preprocessor.matched_by_name_
        self.n_rows = 0
        self.empty: list[str] = list(preprocessor.kinds_) if told else []
        self.unknown: dict[str, str] = {}
        self._preprocessor = preprocessor

    def see(self, X: Any) -> None:
        """Look at further rows, a data frame with the columns of training."""
        self.n_rows += len(X)
        open_columns = [*self.empty, *self.unknown]
        if not open_columns or not len(X):
            return
        table = read_table(X[open_columns], "Coverage")
        for j, name in enumerate(open_columns):
            kind = self._preprocessor.kinds_[name]
            if kind in QUANTITIES:
                self._see_quantity(table, j, name, kind)
            else:
                self._see_category(table.column(j), name, kind)

    def _see_quantity(self, table: Any, position: int, name: str, kind: str) -> None:
        known = self._preprocessor
        where, forms, strays = {name: position}, known.forms_, known.stray_columns_
        if not np.isnan(read_quantities(table, where, {name: kind}, forms, strays)).all():
            self.empty.remove(name)

    def _see_category(self, column: Any, name: str, kind: str) -> None:
        one_hot = self._preprocessor.one_hots_[name]
        codes = one_hot_codes(column, name, kind, one_hot)
        new = codes == UNSEEN
        # Rare categories are not remembered one by one, nor is the only one beside gaps.
        vague = one_hot.has_infrequent or not one_hot.categories
        if (codes >= 0).any() or (vague and new.any()):
            self.unknown.pop(name, None)
            if name in self.empty:
                self.empty.remove(name)
        elif new.any() and name in self.empty:
            self.empty.remove(name)
            self.unknown[name] = str(column.iloc[int(np.argmax(new))])
