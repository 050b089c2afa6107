"""From the ``preprocess`` argument of an estimator to a transformer."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from cocoloss.exceptions import CoCoError
from cocoloss.preprocessing.preprocessor import TablePreprocessor

AUTO = "auto"


class FloatConverter(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Check that a table is all finite numbers, and convert it to float32; nothing else.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names; only if the table had names and all were strings.

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
        ValueError
            As of ``sklearn.utils.check_array``: for gaps, infinities, text, or a wrong shape.
        """
        validate_data(self, X, dtype=np.float32)
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
        return np.asarray(validate_data(self, X, dtype=np.float32, order="C", reset=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def make_preprocessor(preprocess: Any) -> Any:
    """Return a new, unfitted transformer.

    Parameters
    ----------
    preprocess : "auto", None or transformer
        ``"auto"`` builds a :class:`TablePreprocessor`, ``None`` a :class:`FloatConverter`, and a
        scikit-learn transformer its clone.

    Raises
    ------
    CoCoError
        If it is anything else.

    Examples
    --------
    >>> from cocoloss.preprocessing import make_preprocessor
    >>> make_preprocessor("auto")
    TablePreprocessor()
    """
    if preprocess is None:
        return FloatConverter()
    if isinstance(preprocess, str) and preprocess == AUTO:
        return TablePreprocessor()
    if isinstance(preprocess, type):
        raise CoCoError(f"preprocess is the class {preprocess.__name__}; pass an instance of it")
    if not all(hasattr(preprocess, name) for name in ("fit", "transform", "get_params")):
        raise CoCoError(
            f"preprocess must be 'auto', None or a scikit-learn transformer, not {preprocess!r}"
        )
    return clone(preprocess)
