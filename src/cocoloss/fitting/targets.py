"""Classes, weights and priors: what a fit reads off its target and its sample weights.

Weights are numbers of copies: a row that weighs two is in the table twice. So whatever counts rows,
from the preprocessing to the last head, sees the same rows whether they came with weights or one by
one; and it sees them in an order that only their contents decide, be they in pandas, polars or
Arrow.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pandas.api import types
from sklearn.utils import assert_all_finite, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, column_or_1d

from cocoloss._checks import as_array, check_weights, is_sparse
from cocoloss.columns.column_kinds import (
    BOOLEAN,
    DATE,
    DURATION,
    KIND_OF_OBJECTS,
    NUMBER,
    kind_of_dtype,
)
from cocoloss.columns.frames import is_polars, read_table
from cocoloss.exceptions import CoCoError
from cocoloss.heads.base import as_prior

# What pandas finds among objects -> how they are held.
DTYPES: dict[str, Any] = {
    "string": object,
    "boolean": np.bool_,
    "integer": np.int64,
    "floating": np.float64,
    "mixed-integer-float": np.float64,
}
MOST_BITS = 53  # of the largest weight
EQUAL = 1e-6  # weights that differ by less than this share of the largest count as equal
# More copies than this, and than ten of each row, are thinned out to so many that weigh more: who
# gives weights of hundreds wants ratios, not an epoch of hundreds of tables.
MOST_COPIES = 10_000
MOST_OF_EACH = 10
TABLE_OF_COUNTS = 50  # fewer different rows than this are counts of outcomes, which are evidence
LEAST_NUMBER = 1e-140  # that the largest number of a regression may be, and its inverse
NEARLY_WHOLE = 1e-9  # how far a weight may be from a whole number, relative to it


class Targets(NamedTuple):
    """The target of a fit."""

    classes: NDArray[Any]  # (C,), those of rows that weigh anything
    labels: NDArray[np.int64]  # (n,), positions in classes
    weights: NDArray[np.float64]  # (n,)


def encode_targets(
    X: Any,
    y: Any,
    sample_weight: Any,
    reader: str,
    in_order: Callable[[NDArray[Any], Any], NDArray[Any]] = lambda classes, _: classes,
) -> Targets:
    """Return classes, labels 0, ..., C - 1 and weights, or say what is wrong with them.

    Classes are sorted; ``in_order`` may give them another order, and sees y as it was given.
    """
    given = y
    y, weights = read_target(X, y, sample_weight, reader)
    present = weights > 0
    classes = np.unique(y[present])  # rows of weight zero are no rows
    labels = np.where(present, np.searchsorted(classes, y).clip(max=len(classes) - 1), 0)
    if len(classes) < 2:
        raise CoCoError(
            f"{reader} needs at least two classes to tell apart, but y has one class: "
            f"{classes.tolist()}"
        )
    ordered = in_order(classes, given)
    if ordered is not classes:
        classes, labels = ordered, pd.Index(ordered).get_indexer(pd.Index(classes))[labels]
    return Targets(classes, labels.astype(np.int64), weights)


def ordered_categories(y: Any) -> NDArray[Any] | None:
    """Return the categories of an ordered categorical of pandas, used or not; None of others."""
    if isinstance(y, pd.DataFrame) and y.shape[1] == 1:
        y = y.iloc[:, 0]
    dtype = getattr(y, "dtype", None)
    if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
        return np.asarray(dtype.categories)
    return None


def by_levels(classes: NDArray[Any], levels: Any, reader: str) -> NDArray[Any]:
    """Return sorted classes in the order of levels, of which some may have no class."""
    if isinstance(levels, (str, bytes)) or np.ndim(levels) != 1:
        raise CoCoError(
            f"levels must be a list, from the lowest to the highest, not {levels!r:.80}"
        )
    listed = list(levels)
    index = pd.Index(listed)
    if index.hasnans or not index.is_unique:
        odd = "a gap" if index.hasnans else f"{index[index.duplicated()][0]!r} more than once"
        raise CoCoError(f"levels must name each level once, but has {odd}: {listed!r:.200}")
    rank = index.get_indexer(pd.Index(classes))
    if (rank < 0).any():
        unknown = classes[rank < 0][:5].tolist()
        raise CoCoError(
            f"y has {unknown}, which {reader} does not find among its levels {listed!r:.200}; add "
            f"them where they belong, or leave their rows out"
        )
    return np.asarray(classes[np.argsort(rank)])


def _check_given(y: Any, reader: str) -> None:
    if y is None:
        raise CoCoError(f"{reader} requires y to be passed, but the target y is None")
    if isinstance(y, str):
        raise CoCoError(
            f"y is the name {y!r:.80}, which only a table in blocks takes; give the column itself"
        )


def read_target(
    X: Any, y: Any, sample_weight: Any, reader: str
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return a class and a weight for each row of X, or say what is wrong with them."""
    _check_given(y, reader)
    try:
        if isinstance(y, (list, tuple)) and not all(isinstance(label, str) for label in y):
            as_array = np.asarray(y)  # would make text of a gap or a number among text
            y = np.array(y, dtype=object) if as_array.dtype.kind == "U" else as_array
        y = column_or_1d(y, warn=True)
        if y.dtype.kind in "fO" and pd.isna(y).any():
            raise CoCoError("y contains NaN: it has gaps; drop the rows whose class is not known")
        if y.dtype == object:
            y = _of_one_kind(y)
        if y.dtype.kind == "f":
            assert_all_finite(y, input_name="y")
            broken = y[y % 1 != 0]
            if len(broken):
                raise CoCoError(
                    f"Unknown label type: continuous. y has numbers such as {broken[0]}, and "
                    f"classes are whole numbers or text; {reader} takes them as text, and "
                    f"CoCoRegressor as numbers"
                )
        check_classification_targets(y)
    except (ValueError, TypeError) as error:  # scikit-learn refuses bytes by the latter
        raise error if isinstance(error, CoCoError) else CoCoError(str(error)) from error
    return y, row_weights(X, y, sample_weight, "class")


def row_weights(X: Any, y: NDArray[Any], sample_weight: Any, target: str) -> NDArray[np.float64]:
    """Return a weight for each row of X, or say why there is none; ``target`` is what y holds."""
    n = _num_samples(X)
    if n == 0:
        raise CoCoError("X has no rows (0 sample(s)), and a minimum of 1 is required")
    if n != len(y):
        raise CoCoError(f"X has {n} rows, but y has {len(y)}; give one {target} per row")
    weights = check_weights(sample_weight, n)
    if not weights.any():
        raise CoCoError("every sample_weight is zero; give a positive one to the rows that count")
    # Up to 2**53, weights that are whole numbers are numbers of rows. Beyond, floats know no more
    # than ratios, which a power of two keeps to the last bit, and sums could overflow.
    exponent = int(np.frexp(weights.max())[1])  # the largest weight is below 2**exponent
    return np.asarray(np.ldexp(weights, min(0, MOST_BITS - exponent)))


def read_numbers(
    X: Any, y: Any, sample_weight: Any, reader: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the number of each row of X, (n,), or its numbers, (n, t), and its weight.

    Examples
    --------
    >>> y, weights = read_numbers(np.zeros((2, 1)), [3, 4], None, "CoCoRegressor")
    >>> y.tolist(), weights.tolist()
    ([3.0, 4.0], [1.0, 1.0])
    """
    _check_given(y, reader)
    array = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(as_array(y))
    if array.dtype.kind == "c":
        raise CoCoError("Complex data not supported: y must hold real numbers")
    if array.dtype.kind in "mM":
        raise CoCoError(f"y must hold numbers, not {array.dtype}; make numbers of it, such as days")
    if array.dtype == object and pd.isna(array).any():  # pandas' own gap is no float
        array = np.where(pd.isna(array), np.nan, array)
    try:
        numbers = array.astype(np.float64)
    except (TypeError, ValueError):
        odd = next(value for value in array.ravel().tolist() if not _is_numeric(value))
        raise CoCoError(
            f"y must hold numbers for {reader}, but has {odd!r:.80}; for classes use "
            f"CoCoClassifier, for ordered levels CoCoOrdinalClassifier"
        ) from None
    if numbers.ndim not in (1, 2) or 0 in numbers.shape[1:]:
        raise CoCoError(
            f"y must have shape (n_samples,) or (n_samples, n_targets), but has {array.shape}"
        )
    weights = row_weights(X, numbers, sample_weight, "number")
    finite = np.isfinite(numbers.reshape(len(numbers), -1))
    bad: NDArray[np.bool_] = np.asarray(~finite.all(axis=1), dtype=bool)
    if bad.any():
        first = int(bad.argmax())
        raise CoCoError(
            f"y contains NaN or infinity: row {first} has {numbers[first].tolist()}, and "
            f"{int(bad.sum())} of {len(bad)} rows have no finite number; drop these rows"
        )
    for largest in np.abs(numbers.reshape(len(numbers), -1)).max(axis=0).tolist():
        if largest > 0 and not LEAST_NUMBER <= largest <= 1 / LEAST_NUMBER:
            raise CoCoError(
                f"y has numbers as large as {largest:.3g}, whose squares floats do not hold; "
                f"multiply them by a power of ten, so that the largest is between "
                f"{LEAST_NUMBER:g} and {1 / LEAST_NUMBER:g}"
            )
    return numbers, weights


def _is_numeric(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _of_one_kind(y: NDArray[Any]) -> NDArray[Any]:
    """Return objects as what they are: text stays, truths and numbers become numpy's."""
    found = types.infer_dtype(y)
    if found in DTYPES:
        try:
            return y.astype(DTYPES[found], copy=False)
        except OverflowError:
            raise CoCoError(
                f"y has whole numbers of more than 64 bits, such as {max(y, key=abs)}; make them "
                f"text"
            ) from None
    kinds = sorted({type(label).__name__ for label in y})
    if len(kinds) > 1:
        raise CoCoError(f"y mixes {' and '.join(kinds)}; make all its classes of one kind")
    raise CoCoError(
        f"y holds values of type {kinds[0]}, such as {y[0]!r:.80}; make its classes text, whole "
        f"numbers or booleans"
    )


def class_weights(
    class_weight: Any, classes: NDArray[Any], masses: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the weight of a row of each class, (C,), given what all its rows weigh."""
    if isinstance(class_weight, str):  # "balanced": every class weighs the same
        return np.asarray(masses.mean() / masses)
    try:
        weights = compute_class_weight(class_weight, classes=classes, y=classes)
    except ValueError as error:
        raise CoCoError(str(error)) from error
    return np.asarray(weights, dtype=np.float64)


def beyond_balance(class_weight: Any, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return class weights as kernels take them: they balance classes before any are asked for."""
    return np.ones_like(weights) if isinstance(class_weight, str) else weights


def decision_prior(
    priors: str | ArrayLike,
    class_weight: Any,
    classes: NDArray[Any],
    masses: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the prior under which classes are predicted, (C,).

    Class weights of the user's own multiply it: a class that weighs more in training is meant to
    be predicted more. Balanced ones do not, because they only undo the class shares.
    """
    if isinstance(priors, Mapping):
        named = classes.tolist()
        if set(priors) != set(named):
            raise CoCoError(f"priors names the classes {list(priors)}, but y has {named}")
        priors = [priors[name] for name in named]
    if isinstance(priors, str) and priors == "auto":
        priors = "uniform"
    prior = as_prior(priors, masses / masses.sum())
    if class_weight is not None and not isinstance(class_weight, str):
        prior = prior * class_weights(class_weight, classes, masses)
    return np.asarray(prior / prior.sum())


def relative(weights: NDArray[np.float64]) -> NDArray[np.float32] | None:
    """Return weights scaled to a mean of one; None if they are all the same."""
    if np.ptp(weights) <= EQUAL * weights.max():
        return None
    return np.asarray(weights / weights.mean(), dtype=np.float32)


# Weights as copies ------------------------------------------------------------------------------


class Copies(NamedTuple):
    """The rows of a table, each as often as it counts."""

    rows: NDArray[np.int64]  # (N,), positions in the table that was given
    weights: NDArray[np.float64]  # (N,), ones unless the weights are no numbers of copies
    groups: NDArray[np.int64]  # (N,), 0, 1, ...: equal rows of one class have the same number


def make_copies(
    X: Any,
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    reader: str = "cocoloss",
    *,
    in_lowest_terms: bool = False,
) -> Copies:
    """Return each row as many times as it weighs, equal ones side by side.

    Whole weights are numbers of copies. Others are relative: they are scaled to a mean of one, and
    a row becomes the nearest whole number of rows, at least one, that share its weight. With
    ``in_lowest_terms``, for a table to which no rows will be added, a table in which every row
    occurs three times is the table in which it occurs once, unless it is a table of counts.

    Examples
    --------
    >>> X, y = np.array([[1.0], [2.0], [3.0]]), np.array([0, 1, 1])
    >>> sorted(make_copies(X, y, np.array([2.0, 0.0, 1.0])).rows.tolist())
    [0, 0, 2]
    >>> copies = make_copies(X, y, np.array([0.1, 0.1, 0.4]))
    >>> [(int(i), round(float(w), 6)) for i, w in sorted(zip(copies.rows, copies.weights))]
    [(0, 0.5), (1, 0.5), (2, 1.0), (2, 1.0)]
    """
    codes = row_codes(X, reader) * np.uint64(0x9E3779B97F4A7C15) ^ pd.util.hash_array(labels)
    present = np.flatnonzero(weights > 0)
    order = present[np.lexsort((weights[present], codes[present]))]
    groups = np.cumsum(np.r_[False, codes[order][1:] != codes[order][:-1]])
    masses = weights[order]
    whole = np.rint(masses)
    if np.all(np.abs(masses - whole) <= NEARLY_WHOLE * masses):
        masses = whole
        if in_lowest_terms:
            order, groups, masses = _in_lowest_terms(order, groups, masses)
        most = max(len(order), MOST_COPIES, MOST_OF_EACH * (groups[-1] + 1))
        times = masses * min(1.0, most / masses.sum())
    else:
        masses = masses / masses.mean()
        times = masses
    times = np.maximum(1, np.rint(times)).astype(np.int64)
    return Copies(
        np.repeat(order, times), np.repeat(masses / times, times), np.repeat(groups, times)
    )


def _in_lowest_terms(
    order: NDArray[np.int64], groups: NDArray[np.int64], masses: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Divide the masses of all groups by what divides each; one row stands for a group then."""
    totals = np.bincount(groups, weights=masses)
    if len(totals) < TABLE_OF_COUNTS or totals.max() >= 2**53:  # where floats skip numbers
        return order, groups, masses
    divisor = np.gcd.reduce(totals.astype(np.int64))
    if divisor == 1:
        return order, groups, masses
    different, first = np.unique(groups, return_index=True)
    return order[first], different, totals / divisor


def row_codes(X: Any, reader: str) -> NDArray[np.uint64]:
    """Return 64 bits for each row, which depend on what it says and not on how it is stored."""
    if is_sparse(X):
        return _sparse_codes(X)
    if isinstance(X, np.ndarray) and X.dtype.kind in "iufb":
        columns = list(X.reshape(len(X), -1).T)
    elif isinstance(X, pd.DataFrame) or is_polars(X) or np.ndim(X) == 2:
        table = read_table(X, reader)
        columns = (
            [column.series for column in table.columns]
            if table.block is None
            else list(table.block.T)
        )
    else:  # rows of text, which only a transformer of the user's own can read
        columns = [pd.Series(list(X), dtype=object)]
    codes = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        numbers = _as_numbers(column) if isinstance(column, pd.Series) else column
        if numbers is None:
            hashed = _object_codes(column)
        else:
            hashed = pd.util.hash_array(numbers.astype(np.float64) + 0.0)  # no -0.0
        codes = codes * np.uint64(0x100000001B3) ^ hashed
        codes ^= codes >> np.uint64(29)
    return codes


def _sparse_codes(X: Any) -> NDArray[np.uint64]:
    """Return codes of the rows of a sparse matrix: sums over what is not zero."""
    matrix = X.tocsr().astype(np.float64)  # a copy
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    columns = pd.util.hash_array(matrix.indices.astype(np.int64))
    hashed = (pd.util.hash_array(matrix.data) ^ columns) * np.uint64(0x9E3779B97F4A7C15)
    codes = np.zeros(matrix.shape[0], dtype=np.uint64)
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    np.add.at(codes, row, hashed ^ (hashed >> np.uint64(29)))
    return codes


def _as_numbers(column: Any) -> NDArray[Any] | None:
    """Return numbers and truths as they are, times in microseconds; None for everything else."""
    kind = kind_of_dtype(column.dtype)
    if kind is None:
        found = types.infer_dtype(column.astype(object), skipna=True)
        kind = None if found == "empty" else KIND_OF_OBJECTS.get(found)
    try:
        if kind in (NUMBER, BOOLEAN):
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        if kind == DATE:
            if isinstance(column.dtype, pd.PeriodDtype):
                column = column.dt.to_timestamp()
            column = pd.to_datetime(column, utc=True).dt.tz_localize(None)
            return np.asarray(column.to_numpy(dtype="M8[us]").view(np.int64))
        if kind == DURATION:
            return np.asarray(pd.to_timedelta(column).to_numpy(dtype="m8[us]").view(np.int64))
    except (TypeError, ValueError, OverflowError):  # a day in the year 40000, for one
        pass
    return None


def _object_codes(column: Any) -> NDArray[np.uint64]:
    """Return codes of values of any kind, by the text that stands for each."""
    try:
        codes, values = pd.factorize(column.astype(object))
    except TypeError:  # not hashable; whether it may be in a table is not decided here
        codes, values = pd.factorize(column.astype(object).map(repr))
    texts = np.array([*(repr(value) for value in values), ""], dtype=object)  # the last is for gaps
    return np.asarray(pd.util.hash_array(texts)[codes])
