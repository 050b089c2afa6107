"""The transformer for tables that are fit for a network as they are."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pandas.api import types
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from cocoloss.exceptions import CoCoError
from cocoloss.preprocessing.columns import RemembersColumns
from cocoloss.preprocessing.numerals import parse_numbers
from cocoloss.preprocessing.tables import Table, read_table
from cocoloss.preprocessing.values import distinct, numbers


class FloatConverter(RemembersColumns, TransformerMixin, BaseEstimator):
    """Check that a table is all finite numbers, and convert it to float32; nothing else.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names; only if the table had names and all were strings.
    column_names_ : list of str
        Names of the columns seen in fit, or ``x0, x1, ...``.
    matched_by_name_ : bool
        Whether the table had names, by which columns are found again.

    Examples
    --------
    >>> from cocoloss.preprocessing import FloatConverter
    >>> FloatConverter().fit_transform([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  scikit-learn passes a target
        """Check a table and remember its columns.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            Finite numbers.
        y : None
            Ignored.

        Returns
        -------
        FloatConverter
            Itself.

        Raises
        ------
        CoCoError
            For gaps, infinities, text, or what is no table.
        TypeError
            If ``X`` is sparse, or holds containers.
        """
        table = read_table(X, self._speaker())
        _floats(table, list(range(table.n_columns)))
        self._remember(table)
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Check and convert a table.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            Finite numbers.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            The same numbers, C-contiguous.
        """
        check_is_fitted(self, "n_features_in_")
        table = read_table(X, self._speaker())
        where = self._find(table, self.column_names_)
        return _floats(table, [where[name] for name in self.column_names_])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns, which are those of the table."""
        check_is_fitted(self, "n_features_in_")
        return np.array(self._input_names(input_features), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _floats(table: Table, positions: list[int]) -> NDArray[np.float32]:
    if table.block is None:
        values = np.column_stack([_numbers(table.column(j), table.names[j]) for j in positions])
    elif positions == list(range(table.n_columns)):
        values = table.block
    else:
        values = table.block[:, positions]
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
