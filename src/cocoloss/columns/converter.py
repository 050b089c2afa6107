"""The transformer for tables that are fit for a network as they are."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from cocoloss.columns.floats import FloatEncoder, as_floats
from cocoloss.columns.tables import read_table


class FloatConverter(FloatEncoder, TransformerMixin, BaseEstimator):
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
    >>> from cocoloss.columns import FloatConverter
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
        as_floats(table, range(table.n_columns))
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
        return super().transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns, which are those of the table."""
        check_is_fitted(self, "n_features_in_")
        return np.array(self._input_names(input_features), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
