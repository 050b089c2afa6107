"""A table with its schema: features, classes, identifiers, and a fingerprint of the content."""

import hashlib
import re
import warnings
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from cocoloss._checks import check_option, did_you_mean, listed
from cocoloss.columns.column_kinds import (
    CATEGORY,
    NUMBER,
    ColumnKind,
    ColumnOptions,
    ColumnsWarning,
    find_kind,
)
from cocoloss.columns.frames import Column
from cocoloss.columns.quantities import read_numbers
from cocoloss.exceptions import CoCoError
from cocoloss.number_text import AUTO, COMMA, without_point

FINGERPRINT_VERSION = "cocoloss table 1"
TASKS = ("classes", "levels", "numbers")  # what a target can be
FEW_ROWS = 5  # too few to tell classes from names
MANY_CLASSES = 20  # fewer numbers than this are classes, whatever they look like
FEWEST_NUMBERS = 10  # rows of which more than half differ: numbers, though they are few

# Words of names that identifiers have.
NAMING = {"id", "ids", "uid", "nr", "no", "num", "nummer", "number", "key", "code", "index", "idx"}
FEWEST_ROWS = 3  # of which a column without a name is not 1, 2, 3 by chance
FEWEST_COUNTED = 10  # and of which one with a name is not
# What a column is called that has no name, here and by pandas.
_NO_NAME = re.compile(r"|column_\d+|Unnamed: \d+|index|level_\d+")
# Words of a name: between marks, or where a small letter is followed by a capital one.
_WORD = re.compile(r"[A-ZÄÖÜ]+(?![a-zäöüß])|[A-ZÄÖÜ]?[a-zäöüß]+")


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
        The class of each row, without gaps; or levels, or numbers.
    categorical : tuple of str
        The columns whose values are names, even if they are written in digits: those that were
        said to be. If nothing was said, also text that :mod:`cocoloss.columns` takes for
        categories; it stays text.
    n_left_out : int
        Rows without a class that the source had besides.

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
    task: str = "classes",
) -> Table:
    """Make a table of a data frame.

    Parameters
    ----------
    name : str
        What to call it.
    frame, target, missing, task
        As in :func:`split_target`.
    categorical : collection of str, optional
        The columns whose values are names. By default those that have pandas' category type; text
        is then left as it is to whoever learns from it, and counted among them if it looks so.
    """
    try:
        X, y = split_target(frame, target, missing=missing, task=task)
    except CoCoError as error:
        raise CoCoError(f"{name}: {error}") from error
    if categorical is None:
        names = [column for column in X.columns if _holds_names(X[column])]
        given = [c for c in names if isinstance(X[c].dtype, pd.CategoricalDtype)]
    else:
        given = names = [column for column in categorical if column != target]
        for column in names:
            if column not in X.columns:
                guess = did_you_mean(column, X.columns)
                raise CoCoError(f"{name}: there is no column {column!r} to be categorical{guess}")
    # Names have no order, whatever the file says.
    X = X.assign(**{c: X[c].astype("category").cat.as_unordered() for c in given})
    return Table(name, X, y, tuple(names), len(frame) - len(y))


def split_target(
    frame: Any,
    target: str,
    *,
    missing: str = "raise",
    whole: bool = True,
    task: str = "classes",
    levels: Sequence[Any] | None = None,
    decimal: str = AUTO,
    verbatim: bool = False,
) -> tuple[Any, Any]:
    """Split a table into features and classes, levels or numbers.

    Parameters
    ----------
    frame : pandas.DataFrame
        Features and target.
    target : str
        The column to predict.
    missing : {"raise", "drop", "keep"}
        What to do with rows whose target is missing; ``len(frame) - len(y)`` of them are dropped.
        "keep" leaves gaps in y, which is of objects then.
    whole : bool
        Whether this is the whole table. The classes of a part are not counted.
    task : {"classes", "levels", "numbers"}
        What the target is; :func:`guess_task` has a guess.
    levels : sequence, optional
        Of levels, from the lowest to the highest. If None, the order is that of an ordered
        categorical, or of numbers.
    decimal : {"auto", ".", ","}
        The decimal mark of numbers that are written as text.
    verbatim : bool
        Whether text is what stands in a file, so that digits may be a quantity all the same.

    Returns
    -------
    X : pandas.DataFrame
        The other columns, with a plain index.
    y : pandas.Series
        The classes. Text has no spaces around it; whole numbers are int64, and numbers of which
        some have fractions are text: no classifier takes them for classes otherwise. Levels are an
        ordered categorical of these, and numbers float64.

    Raises
    ------
    CoCoError
        If there is no such column or no other one, it has gaps, one class only, or does not
        look like classes. It does not if every value is different; or if its values are numbers,
        more than 20 of them different, and some have fractions or more than half are different. So
        does text of which more than half, and more than 20, are different.

    Examples
    --------
    >>> from cocoloss.tables import split_target
    >>> table = pd.DataFrame({"size": [1.0, 2.0, 3.0], "kind": ["ant ", "bee", "ant"]})
    >>> X, y = split_target(table, "kind")
    >>> y.tolist()
    ['ant', 'bee', 'ant']
    >>> table = pd.DataFrame({"size": [1, 2], "price": ["$1,200.50", "$900"]})
    >>> split_target(table, "price", task="numbers")[1].tolist()
    [1200.5, 900.0]
    """
    check_option(missing, "missing", ["raise", "drop", "keep"])
    check_option(task, "task", TASKS)
    if target not in frame.columns:
        names = [str(name) for name in frame.columns]
        guess = did_you_mean(str(target), names) or f"; the columns are {listed(names)}"
        raise CoCoError(f"there is no column {target!r}{guess}")
    if frame.shape[1] == 1:
        raise CoCoError(f"there is no column beside {target!r} to learn from")
    y, given = _values(frame[target]), frame[target].dtype
    what = task.removesuffix("es" if task == "classes" else "s")
    if task == "numbers":
        y = _as_numbers(y, decimal)
    present = y.notna().to_numpy()
    n_gaps = len(y) - int(present.sum())
    if n_gaps == len(y) and whole:
        raise CoCoError(f"column {target!r} is empty; there is no {what} to learn")
    if n_gaps and missing == "raise":
        first = int(present.argmin()) + 1
        raise CoCoError(
            f"column {target!r} has no {what} in {n_gaps} of {len(y)} rows, the first of them row "
            f"{first}; drop them with missing='drop', or fill them in"
        )
    y = y[present]
    if task != "numbers":
        y = _as_classes(y) if present.any() else y
        numbers = plain_numbers(y) if verbatim else y
        spellings = numbers if numbers.nunique() == y.nunique() else y  # 01 is not 1
        if whole:
            _check_classes(spellings, target)
        # Where rows without a class are kept, a class -1 would be such a row.
        ordered = numbers if whole and missing != "keep" else y
        labels = _as_labels(y, ordered)
        y = labels if task == "classes" else _as_levels(labels, numbers, levels, given)
    X = frame.drop(columns=target)
    if missing == "keep" and n_gaps:
        y = (y if task == "levels" else y.astype(object)).reindex(frame.index)
    else:
        X = X[present]
    return X.reset_index(drop=True), y.reset_index(drop=True)


def _as_labels(y: Any, numbers: Any) -> Any:
    """Return classes; numbers with fractions are classes by their text.

    Text is the whole numbers that it is, in their order, where these are written to the letter.
    """
    if types.is_integer_dtype(numbers.dtype) and (numbers.map(str) == y.map(str)).all():
        return numbers
    return y.map(str) if types.is_float_dtype(y.dtype) else y


def guess_task(column: Any, decimal: str = AUTO) -> str:
    """Say whether a column to predict looks like classes or like numbers.

    Text and truths are classes, and so are few different numbers; more than 20 are numbers, and so
    are ten of which more than half differ. That classes have an order is not guessed.

    Examples
    --------
    >>> import pandas as pd
    >>> guess_task(pd.Series(["$1,200", "$950"] * 5 + [f"${k}00" for k in range(11)]))
    'numbers'
    >>> guess_task(pd.Series([0, 1, 1, 0])), guess_task(pd.Series(["a", "b"]))
    ('classes', 'classes')
    """
    values = _values(column).dropna()
    if not len(values) or types.is_bool_dtype(values.dtype):
        return "classes"
    if _number_kind(Column(str(column.name), values), decimal) is None:
        return "classes"
    n, n_rows = values.nunique(), len(values)
    many = n > MANY_CLASSES or (2 * n > n_rows >= FEWEST_NUMBERS)
    named = pd.DataFrame({str(column.name): values.reset_index(drop=True)})
    only_name_rows = find_identifiers(named) or find_counters(named)
    return "numbers" if many and not only_name_rows else "classes"


def _number_kind(known: Column, decimal: str) -> ColumnKind | None:
    """Return how the numbers of a target are written; None if they are none.

    Of other columns few odd values and commas together are a category: here they would be classes.
    """
    for mark in [decimal, COMMA] if decimal == AUTO else [decimal]:
        found = find_kind(known, ColumnOptions(decimal=mark))
        if found.kind == NUMBER:
            return found
    return None


def _as_numbers(y: Any, decimal: str) -> Any:
    """Return a column as float64, in which text that is no number is a gap if there is little."""
    if types.is_bool_dtype(y.dtype):
        raise CoCoError(f"column {y.name!r} holds truths, not numbers; its task is classes")
    known = Column(str(y.name), y.dropna())
    if not len(known.series):
        return y.astype(object)
    found = _number_kind(known, decimal)
    if found is None:
        raise CoCoError(
            f"column {y.name!r} does not hold numbers that are written alike, but "
            f"{listed(known.distinct.values[:3])}; mend that text, or its task is classes or levels"
        )
    if found.lenient:
        what = f"column {y.name!r} holds numbers, and other text {found.remark}, which is a gap"
        warning = ColumnsWarning(what, "Mend that text if such rows are to count", found.about)
        warnings.warn(warning, stacklevel=3)
    numbers = read_numbers(Column(str(y.name), y), found.form, lenient=found.lenient)
    if np.isinf(numbers).any():
        raise CoCoError(f"column {y.name!r} holds {numbers[np.isinf(numbers)][0]}; drop such rows")
    return pd.Series(numbers, y.index, name=y.name)


def _as_levels(labels: Any, numbers: Any, levels: Sequence[Any] | None, dtype: Any) -> Any:
    """Return classes as an ordered categorical, in the order given or in that of their numbers.

    A given level is a class as it is written, or else the one that is the same number.
    """
    is_number = types.is_numeric_dtype(numbers.dtype) and not types.is_bool_dtype(numbers.dtype)
    if levels is None and isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
        levels = list(dtype.categories)
    elif levels is None and not (is_number or types.is_bool_dtype(numbers.dtype)):
        raise CoCoError(
            f"column {labels.name!r} holds text, {listed(np.unique(labels))}, whose order nobody "
            f"knows; say the levels from the lowest to the highest"
        )
    classes = labels[~labels.duplicated()]
    classes = classes.iloc[np.lexsort([classes.map(str), numbers[classes.index]])]
    by_name = {without_point(value).strip(): value for value in classes.tolist()}
    by_number = {}
    if is_number and classes.nunique() == numbers.nunique():
        by_number = dict(zip(numbers[classes.index].tolist(), by_name, strict=True))

    def name_of(level: Any) -> str:
        name = without_point(level).strip()
        with suppress(ValueError):
            return name if name in by_name else by_number.get(float(level), name)
        return name

    names = list(by_name) if levels is None else [name_of(level) for level in levels]
    unknown = [name for name in by_name if name not in names]
    if unknown or len(set(names)) < len(names):
        odd = f"{unknown[0]!r} is not among" if unknown else "one is twice among"
        raise CoCoError(f"column {labels.name!r}: {odd} the levels {listed(names)}")
    ordered = [by_name[name] for name in names if name in by_name]
    return labels.astype(pd.CategoricalDtype(ordered, ordered=True))


def _values(column: Any) -> Any:
    """Return values rather than categories, text without outer spaces, nothing for empty text."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        dtype = column.cat.categories.dtype
        has_no_room = types.is_integer_dtype(dtype) and column.isna().any()  # for gaps
        column = column.astype(object if has_no_room else dtype)
    if column.dtype == object or types.is_string_dtype(column.dtype):
        if types.infer_dtype(column, skipna=True) == "boolean":
            return column.astype("boolean")
        column = column.map(lambda v: v.strip() if isinstance(v, str) else v, na_action="ignore")
        column = column.mask(column == "")
        if types.infer_dtype(column, skipna=True).startswith("mixed"):
            column = column.map(str, na_action="ignore")
    return column


def _as_classes(y: Any) -> Any:
    if types.is_bool_dtype(y.dtype):
        return y.astype(bool)
    if types.is_numeric_dtype(y.dtype):
        numbers = y.to_numpy(dtype=np.float64)
        infinite = ~np.isfinite(numbers)
        if infinite.any():
            raise CoCoError(f"column {y.name!r} holds {numbers[infinite][0]}, which is no class")
        integers = (numbers == np.round(numbers)).all() and np.abs(numbers).max() < 2**53
        return y.astype(np.int64 if integers else np.float64)
    return y


def plain_numbers(y: Any) -> Any:
    """Return text as the numbers it is, with NaN for gaps, or as it is if some is none."""
    if not types.is_string_dtype(y.dtype):
        return y
    numbers = pd.to_numeric(y.dropna(), errors="coerce")
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    if not len(values) or not np.isfinite(values).all():
        return y
    return _as_classes(numbers).reindex(y.index)


def _check_classes(y: Any, target: str) -> None:
    n_classes = int(y.nunique())
    if n_classes == 1:
        raise CoCoError(
            f"column {target!r} holds one class only, {str(y.iloc[0])!r}, in all {len(y)} rows; "
            f"a classifier needs at least two"
        )
    if n_classes == len(y) and n_classes <= FEW_ROWS:
        raise CoCoError(
            f"column {target!r} has a different value in each of its {len(y)} rows; a class is "
            f"learnt from two rows or more"
        )
    if n_classes == len(y):
        raise CoCoError(
            f"column {target!r} has a different value in each of its {len(y)} rows; it looks like "
            f"an identifier, or like a quantity, whose task is numbers, not like classes"
        )
    is_number = types.is_numeric_dtype(y.dtype) and not types.is_bool_dtype(y.dtype)
    mostly_different = n_classes > len(y) / 2
    if n_classes <= MANY_CLASSES or not (mostly_different or types.is_float_dtype(y.dtype)):
        return
    if is_number:
        raise CoCoError(
            f"column {target!r} holds {n_classes} different numbers in {len(y)} rows; it looks "
            f"like a quantity, not like classes: its task is numbers, or cut it into a few ranges"
        )
    raise CoCoError(
        f"column {target!r} holds {n_classes} different values in {len(y)} rows; nearly every row "
        f"would be a class of its own: it looks like an identifier or a quantity"
    )


def find_identifiers(frame: Any) -> list[str]:
    """Return the columns of whole numbers that all differ, and are called like an identifier."""
    return [
        str(name)
        for name in frame.columns
        if any(word.lower() in NAMING for word in _WORD.findall(str(name)))
        and _all_different(frame[name])
    ]


def find_counters(frame: Any) -> list[str]:
    """Return the columns that count the rows in their order, from 0 or 1."""
    return [str(name) for name in frame.columns if _counts(frame[name], str(name))]


def _counts(column: Any, name: str) -> bool:
    fewest = FEWEST_ROWS if _NO_NAME.fullmatch(name) else FEWEST_COUNTED
    if types.is_string_dtype(column.dtype) and re.match("00|01", str(next(iter(column), ""))):
        column = pd.to_numeric(column, errors="coerce")  # 000, 001, ...: codes are text
    if len(column) < fewest or not _all_different(column) or column.isna().any():
        return False
    numbers = column.to_numpy(dtype=np.float64)
    return bool(numbers[0] in (0, 1) and (np.diff(numbers) == 1).all())


def _all_different(column: Any) -> bool:
    """Tell whether a column is whole numbers of which no two are equal."""
    if not types.is_numeric_dtype(column.dtype) or types.is_bool_dtype(column.dtype):
        return False
    known = column.dropna()
    if len(known) < FEWEST_ROWS or not known.is_unique:
        return False
    if types.is_integer_dtype(known.dtype):
        return True
    numbers = known.to_numpy(dtype=np.float64)
    return bool((numbers == np.round(numbers)).all())


def _holds_names(column: Any) -> bool:
    """Tell whether a column is categories, or text that is taken for categories."""
    if not (column.dtype == object or types.is_string_dtype(column.dtype)):
        return isinstance(column.dtype, pd.CategoricalDtype)
    known = Column(str(column.name), column.dropna())
    return len(known.series) > 0 and find_kind(known, ColumnOptions()).kind == CATEGORY


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
        _feed(digest, without_point(value))
    digest.update(codes.astype("<i8").tobytes())
