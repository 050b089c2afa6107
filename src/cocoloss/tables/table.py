"""A table with its schema: features, classes, and a fingerprint of the content."""

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from cocoloss._checks import did_you_mean
from cocoloss.exceptions import CoCoError
from cocoloss.tables.target import split_target

FINGERPRINT_VERSION = "cocoloss table 1"
FEW_NAMES = 20  # so many may all be different, and yet be names
NEARLY_ALL = 0.9  # of the cells of free text are different
# Numbers with a currency or a unit, and dates: 12,50 EUR, $5, 31.12.2024, 2024-12-31T10:00Z.
QUANTITY = re.compile(r"\W*\d[\d\s.,:/'+T-]*\D{0,4}")


@dataclass(frozen=True, eq=False)
class Table:
    """Features and classes under a name. Made by :func:`make_table` or by a source.

    Attributes
    ----------
    name : str
        What it is called.
    X : pandas.DataFrame
        The features. Columns that were said to be categorical are unordered categories.
    y : pandas.Series
        The class of each row, without gaps.
    categorical : tuple of str
        The columns whose values are names, even if they are written in digits: those that were
        said to be. If nothing was said, also text that is neither numbers nor dates and does not
        differ from row to row; it stays text.
    n_left_out : int
        Rows without a class that the source had besides.
    fingerprint : str
        See below.
    n_rows, n_features, n_classes : int
        Sizes.
    class_counts : pandas.Series
        Rows of each class, largest first.
    class_ratio : float
        Rows of the largest class over rows of the smallest.

    Notes
    -----
    The fingerprint is a SHA-256 of what a learner sees: names, kinds and values of the columns in
    their order, and the class of every row. It is the same for CSV, Parquet and ARFF where they
    hold the same values, for whole numbers written with a point, and for any name of the table
    or of the target. Another order of the rows is another table.

    Examples
    --------
    >>> import pandas as pd
    >>> from cocoloss.tables import make_table
    >>> frame = pd.DataFrame({"size": [1, 2, 3], "zip": [7, 8, 7], "kind": ["a", "b", "a"]})
    >>> table = make_table("toy", frame, "kind", categorical=["zip"])
    >>> table
    Table('toy', 3 rows, 2 features, 2 classes)
    >>> table.class_ratio
    2.0
    >>> table.fingerprint[:8] == make_table("other", frame, "kind").fingerprint[:8]
    False
    """

    name: str
    X: Any
    y: Any
    categorical: tuple[str, ...] = ()
    n_left_out: int = 0

    def __post_init__(self) -> None:
        if len(self.X) != len(self.y):
            raise CoCoError(f"{self.name}: {len(self.X)} rows of features, {len(self.y)} classes")
        if self.y.isna().any():
            raise CoCoError(f"{self.name}: some rows have no class; drop them first")

    def __repr__(self) -> str:
        return (
            f"Table({self.name!r}, {self.n_rows} rows, {self.n_features} features, "
            f"{self.n_classes} classes)"
        )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.X)

    @property
    def n_features(self) -> int:
        """Number of columns beside the class."""
        return int(self.X.shape[1])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.y.nunique())

    @property
    def class_counts(self) -> Any:
        """Rows of each class, largest first."""
        return self.y.value_counts()

    @property
    def class_ratio(self) -> float:
        """Rows of the largest class over rows of the smallest."""
        counts = self.class_counts
        return float(counts.iloc[0] / counts.iloc[-1])

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content, in hexadecimal."""
        digest = hashlib.sha256(FINGERPRINT_VERSION.encode())
        _feed(digest, f"{self.n_rows} {self.n_features}")
        for name in self.X.columns:
            _feed(digest, str(name))
            _feed_column(digest, self.X[name])
        _feed_texts(digest, self.y)
        return digest.hexdigest()

    def rows(self, positions: Any) -> "Table":
        """Return the table of some rows, by position and in the order given."""
        return Table(
            self.name,
            self.X.iloc[positions].reset_index(drop=True),
            self.y.iloc[positions].reset_index(drop=True),
            self.categorical,
        )


def make_table(
    name: str,
    frame: Any,
    target: str,
    *,
    categorical: Collection[str] | None = None,
    missing: str = "raise",
) -> Table:
    """Make a table of a data frame.

    Parameters
    ----------
    name : str
        What to call it.
    frame : pandas.DataFrame
        Features and classes.
    target : str
        The column of the classes.
    categorical : collection of str, optional
        The columns whose values are names. By default those that have pandas' category type; text
        is then left as it is to whoever learns from it, and counted among them if it looks so.
    missing : {"raise", "drop"}
        What to do with rows whose class is missing.

    Raises
    ------
    CoCoError
        If the target cannot be learnt, see :func:`split_target`, or a listed column is missing.
    """
    try:
        X, y = split_target(frame, target, missing=missing)
    except CoCoError as error:
        raise CoCoError(f"{name}: {error}") from error
    if categorical is None:
        listed = [column for column in X.columns if _holds_names(X[column])]
        given = [c for c in listed if isinstance(X[c].dtype, pd.CategoricalDtype)]
    else:
        listed = [column for column in categorical if column != target]
        for column in listed:
            if column not in X.columns:
                guess = did_you_mean(column, X.columns)
                raise CoCoError(f"{name}: there is no column {column!r} to be categorical{guess}")
        given = listed
    X = X.assign(**{column: _as_category(X[column]) for column in given})
    return Table(name, X, y, tuple(listed), len(frame) - len(y))


def _holds_names(column: Any) -> bool:
    """Tell whether a column is categories, or text that is likely to be taken for categories."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return True
    if not (column.dtype == object or types.is_string_dtype(column.dtype)):
        return False
    values = [value for value in column.dropna() if isinstance(value, str) and value.strip()]
    distinct = set(values)
    if len(distinct) > FEW_NAMES and len(distinct) > NEARLY_ALL * len(values):
        return False  # free text, or identifiers
    quantities = sum(QUANTITY.fullmatch(value.strip()) is not None for value in distinct)
    return 2 * quantities < len(distinct)


def _as_category(column: Any) -> Any:
    """Return a column of names. They have no order, whatever the file says."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.as_unordered()
    return column.astype("category").cat.as_unordered()


def _feed(digest: Any, text: str) -> None:
    """Add a text and its length, so that no two sequences of texts look alike."""
    data = text.encode("utf-8", errors="surrogatepass")
    digest.update(len(data).to_bytes(8, "little") + data)


def _feed_column(digest: Any, column: Any) -> None:
    dtype = column.dtype
    if types.is_datetime64_any_dtype(dtype):
        _feed(digest, "date")
        utc = pd.to_datetime(column, utc=True).dt.tz_localize(None)
        digest.update(utc.to_numpy("datetime64[ns]").astype("<i8").tobytes())
    elif types.is_numeric_dtype(dtype) and not types.is_bool_dtype(dtype):
        _feed(digest, "number")
        # Adding zero makes -0.0 and 0.0 one; so are all kinds of NaN.
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan) + 0.0
        numbers[np.isnan(numbers)] = np.nan
        digest.update(numbers.astype("<f8").tobytes())
    else:
        _feed_texts(digest, column)


def _feed_texts(digest: Any, column: Any) -> None:
    """Add values as texts: the distinct ones as they first appear, then which one each row has."""
    codes, values = pd.factorize(column, use_na_sentinel=True)
    _feed(digest, f"text {len(values)}")
    for value in values:
        _feed(digest, _spelling(value))
    digest.update(codes.astype("<i8").tobytes())


def _spelling(value: object) -> str:
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)
