"""The transformer that makes a table fit for a network: it decides the kinds of the columns.

How a kind is read or encoded is not this file's business.
"""

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from cocoloss._checks import check_integer, check_option
from cocoloss.columns.category_columns import TOO_RARE, fit_one_hots
from cocoloss.columns.cycles import varying_cycles
from cocoloss.columns.encoder import TableEncoder
from cocoloss.columns.findings import find_kinds
from cocoloss.columns.kinds import (
    BOOLEAN,
    CATEGORY,
    DATE,
    STRAYS,
    TEXT,
    Finding,
    Writing,
)
from cocoloss.columns.listed import FROM_DTYPE
from cocoloss.columns.numerals import AUTO, COMMA, DOT
from cocoloss.columns.quantities import QUANTITIES, read_quantities
from cocoloss.columns.remarks import (
    ColumnsWarning,
    how_to_call,
    some_reasons,
    warn_of_findings,
)
from cocoloss.columns.scaling import NumberScaler
from cocoloss.columns.tables import Table, read_table
from cocoloss.exceptions import CoCoError


class TablePreprocessor(TableEncoder, TransformerMixin, BaseEstimator):
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
    durations. White space around a category does not count. Blank text is a gap. Whole numbers are
    numbers, even where they count nothing, such as identifiers: leave those out of the table.

    Text is read as

    - numbers, if every value is one: plain, with thousands (1,234.50), with decimal commas
      (1.234,50) where that is the only reading, or all with the same currency, as a sign or a word
      ($5, 5 EUR, kr 5), or with %. Codes of digits of which any begins with 0, such as 01000, are
      categories. Other text is a gap where at least 95 % of the cells, and 20 of them, are
      numbers; a warning names it.
    - dates, if every value is one: in ISO 8601, with dots (31.12.2024), or with slashes or dashes
      (12/31/2024) where some value, or ``day_first``, tells day from month.

    In numbers and dates ``?``, ``-``, ``--``, ``.``, ``na``, ``n/a``, ``#n/a``, ``null``, ``none``,
    ``missing`` and ``unknown``, in any case, are gaps, and so are some words like them.

    Columns that are constant, empty or equal to an earlier one of their kind are dropped silently.
    Identifiers and free text, where nearly every value differs, are dropped with a warning, unless
    they are listed or of categorical dtype. A warning also names columns that are taken as
    categories although most values are numbers, or look like dates.

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
        above 12; if None, those are categories. If it is given, years may have two digits.

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

    def __init__(
        self,
        *,
        categorical_features: str | Sequence[str | int | bool] = FROM_DTYPE,
        max_categories: int = 64,
        decimal: str = AUTO,
        day_first: bool | None = None,
    ) -> None:
        self.categorical_features = categorical_features
        self.max_categories = max_categories
        self.decimal = decimal
        self.day_first = day_first

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
        table = read_table(X, self._speaker())
        findings = self._find_kinds(table)
        kinds = {name: finding.kind for name, finding in findings.items()}
        forms = {name: finding.form for name, finding in findings.items() if finding.form}
        strays = [name for name, f in findings.items() if f.about == STRAYS]
        dropped = {name: f.remark for name, f in findings.items() if f.kind == TEXT}

        quantities = {name: kind for name, kind in kinds.items() if kind in QUANTITIES}
        where = {name: j for j, name in enumerate(table.names)}
        matrix = read_quantities(table, where, quantities, forms, strays)
        scaler, used, reasons = NumberScaler.fit(
            matrix, list(quantities), list(quantities.values())
        )
        dropped |= reasons
        cycles = {
            name: varying_cycles(matrix[:, j])
            for j, (name, kind) in enumerate(quantities.items())
            if kind == DATE and j in used
        }
        categories = {name: kind for name, kind in kinds.items() if kind in {BOOLEAN, CATEGORY}}
        one_hots, reasons = fit_one_hots(table, categories, self.max_categories)
        dropped |= reasons

        width = scaler.width + 2 * sum(map(len, cycles.values()))
        width += sum(one_hot.width for one_hot in one_hots.values())
        if width == 0:
            few = ", as there is but one sample" if table.n_rows == 1 else ""
            raise CoCoError(f"no column is left to learn from{few}: {some_reasons(dropped)}")
        self._remember(table)
        self.scaler_, self.cycles_, self.one_hots_ = scaler, cycles, one_hots
        self.kinds_ = {name: kinds[name] for name in table.names if name not in dropped}
        self.forms_ = {name: form for name, form in forms.items() if name not in dropped}
        self.stray_columns_ = [name for name in strays if name not in dropped]
        self.dropped_columns_ = {name: dropped[name] for name in table.names if name in dropped}
        self.n_features_out_ = width
        self._warn_of(findings)
        self._warn_of_rare()
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
        return super().transform(X)

    def expect_decimal(self, decimal: str) -> Self:
        """Read numbers in text with another decimal mark from now on.

        Parameters
        ----------
        decimal : {".", ","}
            The mark of the tables to come.

        Returns
        -------
        TablePreprocessor
            Itself.
        """
        check_is_fitted(self, "n_features_out_")
        return super().expect_decimal(decimal)

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
        return super().get_feature_names_out(input_features)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        # Text is read, but as in scikit-learn's encoders the tag `string` stays off: it promises
        # that any object passes, and a dict in a table is better refused.
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _find_kinds(self, table: Table) -> dict[str, Finding]:
        check_integer(self.max_categories, "max_categories", minimum=2)
        check_option(self.decimal, "decimal", [AUTO, DOT, COMMA])
        writing = Writing(self.decimal, self.day_first)
        return find_kinds(table, self.categorical_features, self.max_categories, writing)

    def _warn_of(self, findings: dict[str, Finding]) -> None:
        warn_of_findings(findings, in_estimator=bool(self._reader), stacklevel=3)

    def _warn_of_rare(self) -> None:
        rare = {name: why for name, why in self.dropped_columns_.items() if why == TOO_RARE}
        if rare:
            call = how_to_call("max_categories=...", bool(self._reader))
            remedy = f"Raise max_categories to their number to keep them: {call}"
            warning = ColumnsWarning(f"dropped {some_reasons(rare)}", remedy, "rare")
            warnings.warn(warning, stacklevel=3)
