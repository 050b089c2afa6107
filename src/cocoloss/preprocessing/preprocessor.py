"""The transformer that makes a table fit for a network: it decides kinds and lines up the columns.

How a kind is read or encoded is not this file's business.
"""

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from cocoloss._validation import check_integer
from cocoloss.exceptions import CoCoError
from cocoloss.preprocessing.categories import OneHot
from cocoloss.preprocessing.cycles import cycle_names, varying_cycles, write_cycles
from cocoloss.preprocessing.kinds import (
    BOOLEAN,
    CATEGORY,
    DATE,
    DURATION,
    NUMBER,
    TEXT,
    kind_of,
    text_reason,
)
from cocoloss.preprocessing.listed import FROM_DTYPE, listed_categories
from cocoloss.preprocessing.scaling import NumberScaler, find_twins
from cocoloss.preprocessing.tables import Table, read_table
from cocoloss.preprocessing.values import (
    UNSEEN,
    category_codes,
    category_keys,
    days,
    distinct,
    numbers,
    seconds,
    truth_codes,
)

QUANTITIES = {NUMBER: numbers, DATE: days, DURATION: seconds}  # kind -> reader to float64
TRUTH_KEYS = ["False", "True"]


class TablePreprocessor(TransformerMixin, BaseEstimator):
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

    A column is a category if its dtype is categorical (ordered or not), if
    ``categorical_features`` lists it, or if it holds anything but numbers, booleans, dates and
    durations. Python objects and text are numbers if every value parses as one, and dates if
    every value is in ISO 8601. Blank text is a gap.

    Columns that are constant, empty or equal to an earlier one are dropped silently. Identifiers
    and free text, where nearly every value differs, are dropped with a warning, unless they are
    listed or of categorical dtype.

    Parameters
    ----------
    categorical_features : "from_dtype" or array-like of str, int or bool, default="from_dtype"
        Columns that are categories besides those that are so by dtype or content: names,
        positions or a mask. Integer codes are numbers unless they are listed here.
    max_categories : int, default=64
        A column with more categories keeps the most frequent of those seen at least twice; the
        others share one column, so that no feature is wider than this (and a column for gaps).

    Attributes
    ----------
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
    dropped_columns_ : dict of str to str
        Why the other columns are not.
    scaler_ : NumberScaler
        Centre and scale of numbers, dates and durations.
    cycles_ : dict of str to list of str
        The cycles of each date.
    one_hots_ : dict of str to OneHot
        The categories of each boolean and category.

    Notes
    -----
    In ``transform`` columns are found by name, in any order; further columns are ignored, and
    columns that were dropped in fit need not be there. Sparse matrices are refused: centring
    would fill them. All fitted state is numbers, strings, lists, dicts and arrays of numbers, in
    frozen dataclasses. That, speed and the treatment of infinities and of unseen values are why
    this is not a ``ColumnTransformer``.

    Examples
    --------
    >>> import pandas as pd
    >>> from cocoloss.preprocessing import TablePreprocessor
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

    feature_names_in_: NDArray[np.object_]  # not there after fitting on a table without names

    def __init__(
        self,
        *,
        categorical_features: str | Sequence[str | int | bool] = FROM_DTYPE,
        max_categories: int = 64,
    ) -> None:
        self.categorical_features = categorical_features
        self.max_categories = max_categories

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  scikit-learn passes a target
        """Learn kinds, scales and categories.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns)
            A numpy array, rows in lists, or a pandas, polars or Arrow table.
        y : None
            Ignored.

        Returns
        -------
        TablePreprocessor
            Itself.

        Raises
        ------
        CoCoError
            If ``X`` is no table, has no column to learn from, or lacks a listed column.
        TypeError
            If ``X`` is sparse, or holds dicts, lists or other containers.
        """
        check_integer(self.max_categories, "max_categories", minimum=2)
        table = read_table(X, type(self).__name__)
        kinds = self._kinds(table)
        dropped = {
            name: text_reason(distinct(table.column(j), name))
            for j, name in enumerate(table.names)
            if kinds[name] == TEXT
        }
        texts = list(dropped)
        where = {name: j for j, name in enumerate(table.names)}

        quantities = [name for name in table.names if kinds[name] in QUANTITIES]
        matrix = _matrix(table, quantities, kinds, where)
        scaler, used, reasons = NumberScaler.fit(matrix, quantities)
        dropped |= reasons
        cycles = {
            quantities[j]: varying_cycles(matrix[:, j])
            for j in used
            if kinds[quantities[j]] == DATE
        }
        one_hots, reasons = self._fit_categories(table, kinds)
        dropped |= reasons

        width = scaler.width + 2 * sum(map(len, cycles.values()))
        width += sum(one_hot.width for one_hot in one_hots.values())
        if width == 0:
            raise CoCoError(
                f"no column is left to learn from (n_samples = {table.n_rows}): "
                f"{_list_reasons(dropped)}"
            )
        self.scaler_, self.cycles_, self.one_hots_ = scaler, cycles, one_hots
        self.column_names_ = table.names
        self.matched_by_name_ = table.named
        self.kinds_ = {name: kinds[name] for name in table.names if name not in dropped}
        self.dropped_columns_ = {name: dropped[name] for name in table.names if name in dropped}
        self.n_features_in_ = table.n_columns
        self.n_features_out_ = width
        self._set_feature_names(table)
        if texts:
            warnings.warn(
                f"dropped {_list_reasons({name: dropped[name] for name in texts})}. List a column "
                f"in categorical_features to keep it, or turn it into numbers first",
                UserWarning,
                stacklevel=2,
            )
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Encode a table.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns)
            A table with the columns seen in fit.

        Returns
        -------
        ndarray of shape (n_rows, n_features_out_)
            Finite, C-contiguous, float32.

        Raises
        ------
        CoCoError
            If columns lack, or a column holds what it did not hold in fit.
        """
        check_is_fitted(self, "n_features_out_")
        table = read_table(X, type(self).__name__)
        where = self._find_columns(table)
        out = np.zeros((table.n_rows, self.n_features_out_), dtype=np.float32)
        quantities = [name for name, kind in self.kinds_.items() if kind in QUANTITIES]
        matrix = _matrix(table, quantities, self.kinds_, where)
        self.scaler_.transform(matrix, out[:, : self.scaler_.width])
        end = self.scaler_.width
        for name, cycles in self.cycles_.items():
            start, end = end, end + 2 * len(cycles)
            write_cycles(matrix[:, quantities.index(name)], cycles, out[:, start:end])
        for name, one_hot in self.one_hots_.items():
            start, end = end, end + one_hot.width
            column = table.column(where[name])
            if self.kinds_[name] == CATEGORY:
                codes = category_codes(column, name, one_hot.categories)
            else:
                codes = truth_codes(column, name)
                if not one_hot.categories:  # training saw one of the two only, and gaps
                    codes = np.where(codes >= 0, UNSEEN, codes)
            one_hot.transform(codes, out[:, start:end])
        return out

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the result's columns.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names for the columns of a table that had none.

        Returns
        -------
        ndarray of shape (n_features_out_,)
            Such as ``age``, ``age_missing``, ``city_Oslo`` and ``day_month_sin``.

        Raises
        ------
        CoCoError
            If ``input_features`` are too many, too few, or not the names seen in fit.
        """
        check_is_fitted(self, "n_features_in_")
        called = dict(zip(self.column_names_, self._input_names(input_features), strict=True))
        quantities = [called[name] for name, kind in self.kinds_.items() if kind in QUANTITIES]
        names = self.scaler_.names(quantities)
        for name, cycles in self.cycles_.items():
            names += cycle_names(called[name], cycles)
        for name, one_hot in self.one_hots_.items():
            names += one_hot.names(called[name])
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        # Text is read, but as in scikit-learn's encoders the tag `string` stays off: it promises
        # that any object passes, and a dict in a table is better refused.
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _kinds(self, table: Table) -> dict[str, str]:
        listed = listed_categories(self.categorical_features, table)
        kinds = {}
        for j, name in enumerate(table.names):
            if name in listed:
                kinds[name] = CATEGORY
            elif table.block is not None:
                kinds[name] = NUMBER
            else:
                kinds[name] = kind_of(table.column(j), name)
        return kinds

    def _fit_categories(
        self, table: Table, kinds: dict[str, str]
    ) -> tuple[dict[str, OneHot], dict[str, str]]:
        positions = [j for j, name in enumerate(table.names) if kinds[name] in {BOOLEAN, CATEGORY}]
        one_hots, dropped, contents = {}, {}, {}
        for j in positions:
            name = table.names[j]
            column = table.column(j)
            if kinds[name] == BOOLEAN:
                keys, codes = TRUTH_KEYS, truth_codes(column, name)
            else:
                keys = sorted(set(category_keys(distinct(column, name).values)))
                codes = category_codes(column, name, keys)
            one_hot = OneHot.fit(codes, keys, self.max_categories)
            if one_hot.width == 0:
                dropped[name] = "constant" if (codes >= 0).any() else "no value"
            else:
                one_hots[name] = one_hot
                contents[j] = (tuple(keys), codes.tobytes())
        twins = find_twins(list(contents), lambda j: contents[j][0], lambda j: contents[j][1])
        for j, twin in twins.items():
            dropped[table.names[j]] = f"duplicate of {table.names[twin]!r}"
            del one_hots[table.names[j]]
        return one_hots, dropped

    def _find_columns(self, table: Table) -> dict[str, int]:
        """Return where the columns in use are: by name if both tables have names."""
        if self.matched_by_name_ and table.named:
            where = {name: j for j, name in enumerate(table.names)}
            lacking = [repr(name) for name in self.kinds_ if name not in where]
            if lacking:
                raise CoCoError(
                    f"X lacks columns that were there in fit: {', '.join(lacking)}; "
                    f"it has {', '.join(map(repr, table.names))}"
                )
            return where
        me = type(self).__name__
        if table.n_columns != self.n_features_in_:
            raise CoCoError(
                f"X has {table.n_columns} features, but {me} is expecting "
                f"{self.n_features_in_} features as input."
            )
        if hasattr(self, "feature_names_in_"):
            message = f"X does not have valid feature names, but {me} was fitted with feature names"
            warnings.warn(message, UserWarning, stacklevel=3)
        elif table.named and not self.matched_by_name_:
            message = f"X has feature names, but {me} was fitted without feature names"
            warnings.warn(message, UserWarning, stacklevel=3)
        return {name: j for j, name in enumerate(self.column_names_)}

    def _set_feature_names(self, table: Table) -> None:
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if table.names_are_text:
            self.feature_names_in_ = np.array(table.names, dtype=object)

    def _input_names(self, input_features: Any) -> list[str]:
        if input_features is None:
            return self.column_names_
        names = [str(name) for name in input_features]
        if hasattr(self, "feature_names_in_") and names != self.column_names_:
            raise CoCoError("input_features is not equal to feature_names_in_")
        if len(names) != self.n_features_in_:
            raise CoCoError(
                f"input_features should have length equal to number of features "
                f"({self.n_features_in_}), got {len(names)}"
            )
        return names


def _matrix(
    table: Table, names: Sequence[str], kinds: dict[str, str], where: dict[str, int]
) -> NDArray[Any]:
    """Return the named quantities as a matrix of shape (n_rows, len(names)), NaN in the gaps."""
    positions = [where[name] for name in names]
    if table.block is not None and all(kinds[name] == NUMBER for name in names):
        if positions == list(range(table.n_columns)):
            return table.block
        return table.block[:, positions]
    matrix = np.empty((len(names), table.n_rows))
    for row, name, position in zip(matrix, names, positions, strict=True):
        row[:] = QUANTITIES[kinds[name]](table.column(position), name)
    return matrix.T


def _list_reasons(dropped: dict[str, str]) -> str:
    return "; ".join(f"{name!r} ({reason})" for name, reason in dropped.items())
