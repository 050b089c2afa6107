"""The face towards scikit-learn: transformers that hold an encoder, and what builds one of them.

What is learnt of a table, and how, is decided by the encoder.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from cocoloss.columns.column_kinds import FROM_DTYPE, ColumnOptions
from cocoloss.columns.encoder import FloatEncoder, TableEncoder
from cocoloss.columns.frames import is_wide
from cocoloss.columns.sparse import SparseEncoder
from cocoloss.exceptions import CoCoError
from cocoloss.number_text import AUTO


def _learnt(name: str) -> Any:
    """Return a fitted attribute that is a part of the encoder."""
    return property(lambda self: getattr(self.encoder_, name))


class _EncoderTransformer(TransformerMixin, BaseEstimator):
    """What both transformers do with their encoder."""

    encoder_: TableEncoder | FloatEncoder | SparseEncoder
    _estimator = ""  # who speaks in messages, where an estimator lets this one read its tables

    n_features_out_ = _learnt("width")
    column_names_ = _learnt("column_names")

    @property
    def n_features_in_(self) -> int:
        """Number of columns seen in fit."""
        return len(self.encoder_.header.names)

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the columns seen in fit, if the table had names and all were strings."""
        if not self.encoder_.header.all_text:
            raise AttributeError("the table of fit had no names, or not all were strings")
        return np.array(self.encoder_.header.names, dtype=object)

    @property
    def matched_by_name_(self) -> bool:
        """Whether the table had names, by which columns are found again."""
        return self.encoder_.header.named

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Encode a table.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns)
            With the columns seen in fit; it is an error if one lacks, or holds something else.

        Returns
        -------
        ndarray of shape (n_rows, n_features_out_)
            Finite, C-contiguous, float32.
        """
        check_is_fitted(self, "encoder_")
        return self.encoder_.transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the result's columns.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names for the columns of a table that had none; else those seen in fit.

        Returns
        -------
        ndarray of shape (n_features_out_,)
            Such as ``age``, ``age_missing``, ``city_Oslo`` and ``day_month_sin``.
        """
        check_is_fitted(self, "encoder_")
        return self.encoder_.feature_names_out(input_features)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


class TablePreprocessor(_EncoderTransformer):
    """Turn a table of any kind into a finite float32 matrix for a neural network.

    Each column is treated by its kind:

    - Numbers are centred at the median, divided by the interquartile range (in units in which a
      standard normal has variance one; by the standard deviation where that range is zero) and
      clipped smoothly, ``x / sqrt(1 + (x / 3)**2)``. A gap becomes the median, and a column marks
      the gaps if training had any. Infinities are the limits of the clip, -3 and 3, and take no
      part in median and range. Durations are numbers of seconds.
    - Dates are numbers of days, and sine and cosine of the hour, the weekday and the month where
      these vary. Time zones are converted to UTC.
    - Booleans and categories of two values are one column of 0 and 1, with 0.5 for a gap or an
      unseen value; a column marks the gaps if training had any.
    - Other categories are one-hot. An unseen one is zero throughout, or counts as infrequent
      where there are infrequent ones; gaps are a category if training had any.
    - Free text is 30 numbers: parts of its words, of three to five characters, are hashed and
      weighed by their rarity, and scikit-learn's TruncatedSVD finds what texts have in common. All
      of them together weigh as much as five columns of numbers.

    A column is a category if its dtype is categorical (ordered or not), if
    ``categorical_features`` lists it, or if it holds anything but numbers, booleans, dates and
    durations. White space around a category does not count. Blank text is a gap. Whole numbers are
    numbers, even where they count nothing, such as identifiers: leave those out of the table.

    Text is read as

    - numbers, if every value is one: plain, with thousands (1,234.50), with decimal commas
      (1.234,50) where that is the only reading, or all with the same currency ($5, 5 €, 5 EUR) or
      with %. Codes of digits of which any begins with 0, such as 01000, are categories. Other text
      is a gap where at least 95 % of the cells, and 20 of them, are numbers; a warning names it.
    - dates, if every value is one: in ISO 8601, with dots (31.12.2024), or with slashes or dashes
      (12/31/2024) where some value, or ``day_first``, tells day from month.

    In numbers and dates ``?``, ``-``, ``--``, ``.``, ``na``, ``n/a``, ``#n/a``, ``null``, ``none``,
    ``missing`` and ``unknown``, in any case, are gaps, and so are some words like them.

    Columns that are constant, empty or equal to an earlier one of their kind are dropped silently.
    Other text is free text if more than ``max_categories`` values differ, or nine tenths of more
    than 20, at least half of the cells differ, half of the values do so by their words, and they
    have two words on average; a warning names such columns. Identifiers, other text of which nearly
    every value differs, are dropped with a warning. Neither is so if listed or of categorical
    dtype. A warning also names columns that are taken as categories although most values are
    numbers, or look like dates.

    Parameters
    ----------
    categorical_features : "from_dtype" or array-like of str, int or bool, default="from_dtype"
        Columns that are categories besides those that are so by dtype or content: names,
        positions or a mask. Integer codes are numbers unless they are listed here.
    max_categories : int, default=64
        A column with more categories keeps the most frequent of those seen at least twice; the
        others share one column, so that no feature is wider than this (and a column for gaps).
    decimal : {"auto", ".", ","}, default="auto"
        The decimal mark of numbers in text. With a comma, points are thousands: 7.730 is 7730. By
        default each column tells; those that do not follow the others, with a warning.
    day_first : bool, optional
        Whether the day comes first in dates between slashes or dashes of which none has a number
        above 12; if None, those are categories.
    ranks : bool, optional
        Whether numbers, dates and durations of more than ten different values are columns twice:
        as above, and by their rank, evenly spread with variance one; not in tables of more than 200
        such columns. If None, the estimator that uses the preprocessor decides: kernels gain by it.

    Attributes
    ----------
    encoder_ : TableEncoder
        All that was learnt, as one frozen value; the other attributes are parts of it.
    n_features_in_ : int
        Number of columns seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names; only if the table had names and all were strings.
    n_features_out_ : int
        Number of columns of the result.
    column_names_ : list of str
        Names of the columns seen in fit, or ``x0, x1, ...``.
    matched_by_name_ : bool
        Whether the table had names, by which columns are found again.
    kinds_ : dict of str to str
        The kind of each column in use.
    forms_ : dict of str to str
        How text is written where that is not the plain way: as ``"$1,234.5"`` or ``"%m/%d/%Y"``.
    stray_columns_ : list of str
        Columns of numbers that held other text; in these it is a gap, in others an error.
    dropped_columns_ : dict of str to str
        Why the other columns are not.
    scaler_ : NumberScaler
        Centre and scale of numbers, dates and durations.
    cycles_ : dict of str to list of str
        The cycles of each date.
    one_hots_ : dict of str to OneHot
        The categories of each boolean and category.
    texts_ : dict of str to TextReducer
        What was learnt of each column of text.

    Notes
    -----
    In ``transform`` columns are found by name, in any order; further columns are ignored, and
    columns that were dropped in fit need not be there. Sparse matrices are read like dense ones of
    up to 500 columns, and those of wider ones become 200 numbers of each row, by scikit-learn's
    TruncatedSVD of rows of norm one, whose columns are divided by the root of their root mean
    square; ``encoder_`` is a SparseEncoder then. An encoder needs no scikit-learn, and its state is
    numbers, text and arrays. That, speed and the treatment of infinities and of unseen values are
    why this is not a ``ColumnTransformer``.

    Examples
    --------
    >>> import pandas as pd
    >>> from cocoloss.columns import TablePreprocessor
    >>> table = pd.DataFrame({
    ...     "age": [31, None, 45, 60],
    ...     "city": ["Bern", "Oslo", "Rome", "Oslo"],
    ...     "member": [True, False, True, True],
    ... })
    >>> preprocessor = TablePreprocessor().fit(table)
    >>> preprocessor.get_feature_names_out().tolist()
    ['age', 'age_missing', 'city_Bern', 'city_Oslo', 'city_Rome', 'member_True']
    >>> preprocessor.transform(table).round(2)
    array([[-1.19,  0.  ,  1.  ,  0.  ,  0.  ,  1.  ],
           [ 0.  ,  1.  ,  0.  ,  1.  ,  0.  ,  0.  ],
           [ 0.  ,  0.  ,  0.  ,  0.  ,  1.  ,  1.  ],
           [ 1.27,  0.  ,  0.  ,  1.  ,  0.  ,  1.  ]], dtype=float32)
    """

    encoder_: TableEncoder | SparseEncoder

    def __init__(
        self,
        *,
        categorical_features: str | Sequence[str | int | bool] = FROM_DTYPE,
        max_categories: int = 64,
        decimal: str = AUTO,
        day_first: bool | None = None,
        ranks: bool | None = None,
    ) -> None:
        self.categorical_features = categorical_features
        self.max_categories = max_categories
        self.decimal = decimal
        self.day_first = day_first
        self.ranks = ranks

    kinds_ = _learnt("kinds")
    forms_ = _learnt("forms")
    stray_columns_ = _learnt("stray_columns")
    dropped_columns_ = _learnt("dropped_columns")
    scaler_ = _learnt("scaler")
    cycles_ = _learnt("cycles")
    one_hots_ = _learnt("one_hots")
    texts_ = _learnt("texts")

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  scikit-learn passes a target
        """Learn kinds, scales and categories.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns)
            A numpy array, rows in lists, or a pandas, polars or Arrow table.
        y : None
            Ignored.

        Raises
        ------
        CoCoError
            If ``X`` is no table, has no column to learn from, or lacks a listed column.
        TypeError
            If ``X`` holds dicts, lists or other containers.
        """
        options = ColumnOptions.of(self)
        if is_wide(X):
            self.encoder_ = SparseEncoder.fit(X, estimator=self._estimator)
        else:
            self.encoder_ = TableEncoder.fit(X, options, estimator=self._estimator, stacklevel=2)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        # Text is read, but as in scikit-learn's encoders the tag `string` stays off: it promises
        # that any object passes, and a dict in a table is better refused.
        return tags


class FloatConverter(_EncoderTransformer):
    """Check that a table is all finite numbers, and convert it to float32; nothing else.

    Attributes
    ----------
    encoder_ : FloatEncoder
        All that was learnt: which columns there are.
    n_features_in_, feature_names_in_, n_features_out_, column_names_, matched_by_name_
        As those of :class:`TablePreprocessor`.

    Examples
    --------
    >>> from cocoloss.columns import FloatConverter
    >>> FloatConverter().fit_transform([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """

    encoder_: FloatEncoder

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  scikit-learn passes a target
        """Check that a table, as in :meth:`TablePreprocessor.fit`, is finite numbers alone."""
        self.encoder_ = FloatEncoder.fit(X, estimator=self._estimator)
        return self


def make_preprocessor(preprocess: Any, reader: str = "", *, ranks: bool = False) -> Any:
    """Return a new, unfitted transformer.

    Parameters
    ----------
    preprocess : "auto", None or transformer
        ``"auto"`` builds a :class:`TablePreprocessor`, ``None`` a :class:`FloatConverter`, and a
        scikit-learn transformer its clone.
    reader : str, optional
        The estimator that speaks in the messages of the first two.
    ranks : bool
        What a :class:`TablePreprocessor` is to do that leaves it open.

    Examples
    --------
    >>> from cocoloss.columns import make_preprocessor
    >>> make_preprocessor("auto")
    TablePreprocessor()
    """
    if preprocess is None:
        preprocess = FloatConverter()
    elif isinstance(preprocess, str) and preprocess == "auto":
        preprocess = TablePreprocessor()
    if isinstance(preprocess, type):
        raise CoCoError(f"preprocess is the class {preprocess.__name__}; pass an instance of it")
    if not all(hasattr(preprocess, name) for name in ("fit", "transform", "get_params")):
        raise CoCoError(
            f"preprocess must be 'auto', None or a scikit-learn transformer, not {preprocess!r}"
        )
    transformer = clone(preprocess)
    if isinstance(transformer, _EncoderTransformer):
        transformer._estimator = reader  # noqa: SLF001 - no parameter: it changes words only
    if isinstance(transformer, TablePreprocessor) and transformer.ranks is None and ranks:
        transformer.ranks = True
    return transformer
