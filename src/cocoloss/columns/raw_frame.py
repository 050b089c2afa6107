"""Tables for models that read categories and gaps themselves: columns by kind, nothing encoded."""

from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from cocoloss.columns.categories import category_codes, category_key, truth_codes
from cocoloss.columns.column_kinds import CATEGORY, QUANTITIES, ColumnOptions
from cocoloss.columns.encoder import TableEncoder, _read_quantity
from cocoloss.columns.frames import read_table


class RawFrame(TransformerMixin, BaseEstimator):
    """Read a table of any kind into a frame of numbers and categories, gaps left as gaps.

    Columns are read, and left out, as :class:`cocoloss.columns.TablePreprocessor` does it. Numbers,
    dates (days since 1970), durations (seconds) and booleans (0 and 1) are float64; all else is
    of categorical dtype, with the categories of the training rows: others are gaps.

    Attributes
    ----------
    encoder_ : TableEncoder
        What each column is.
    categories_ : dict of str to list of str
        The categories of each column that has some, sorted.

    Examples
    --------
    >>> table = pd.DataFrame({"age": ["31", None, "45"], "city": ["Oslo", "Rome", "Oslo"]})
    >>> RawFrame().fit_transform(table)
        age  city
    0  31.0  Oslo
    1   NaN  Rome
    2  45.0  Oslo
    """

    encoder_: TableEncoder
    categories_: dict[str, list[str]]

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  scikit-learn passes a target
        """Learn what each column is."""
        self.encoder_ = TableEncoder.fit(X, ColumnOptions(), stacklevel=2)
        table = read_table(X, type(self).__name__)
        self.categories_ = {}
        for j, name in enumerate(table.names):
            if self.encoder_.kinds.get(name) == CATEGORY:
                codes, values = table.column(j).distinct
                seen = values[np.unique(codes[codes >= 0])]
                self.categories_[name] = sorted({category_key(value) for value in seen})
        return self

    def transform(self, X: Any) -> "pd.DataFrame":
        """Return the columns in use, in the order of the table of fit."""
        check_is_fitted(self, "encoder_")
        encoder = self.encoder_
        table = read_table(X, type(self).__name__)
        where = encoder.header.locate(table.header, encoder.kinds, type(self).__name__)
        columns: dict[str, Any] = {}
        for name, kind in encoder.kinds.items():
            column = table.column(where[name])
            if kind in QUANTITIES:
                columns[name] = _read_quantity(column, encoder.columns[name])
            elif kind == CATEGORY:
                known = self.categories_[name]
                codes = np.maximum(category_codes(column, known), -1)  # unseen is a gap
                columns[name] = pd.Categorical.from_codes(codes, categories=known)
            else:
                codes = truth_codes(column)
                columns[name] = np.where(codes < 0, np.nan, codes.astype(np.float64))
        return pd.DataFrame(columns)
