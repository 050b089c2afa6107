"""Rows that occur more than once become one row that weighs more.

So a weight of two is exactly the row twice, a weight of zero is exactly no row, and what is learnt
does not depend on the order of the rows.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse


class DistinctRows(NamedTuple):
    """One of each."""

    first: NDArray[np.int64]  # where each distinct row occurs first
    weights: NDArray[np.float64]  # its summed weight


def distinct_rows(X: Any, labels: NDArray[np.int64], weights: NDArray[np.float64]) -> DistinctRows:
    """Find the distinct rows of positive weight, in an order that only their contents decide.

    Parameters
    ----------
    X : array or DataFrame of shape (n, d)
    labels : array of shape (n,)
        Rows of different classes are different rows.
    weights : array of shape (n,)
        Not negative.
    """
    present = np.flatnonzero(weights > 0)
    codes = _codes(X)[present] * np.uint64(0x9E3779B97F4A7C15) ^ pd.util.hash_array(labels[present])
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    mass = np.bincount(inverse, weights=weights[present])
    return DistinctRows(present[first], mass.astype(np.float64, copy=False))


def as_table(X: Any, reader: str) -> Any:
    """Return a DataFrame or an array; what is neither becomes an array."""
    if issparse(X):
        raise TypeError(
            f"Sparse data was passed, but {reader} needs a dense table; use X.toarray()"
        )
    if isinstance(X, pd.DataFrame | np.ndarray) or _is_polars(X):
        return X
    return np.asarray(X)


def _is_polars(X: Any) -> bool:
    return type(X).__module__.split(".")[0] == "polars"


def _codes(X: Any) -> NDArray[np.uint64]:
    """Return 64 bits for each row, which two of a million rows share once in 4e7 tables."""
    if _is_polars(X):
        frame = pd.DataFrame({name: np.asarray(X[name]) for name in X.columns})
    else:
        frame = pd.DataFrame(X)
    frame = frame.copy(deep=False)
    for column in frame.columns:
        if frame[column].dtype == object:
            frame[column] = frame[column].map(repr)  # mixed values have no common hash
    return np.asarray(pd.util.hash_pandas_object(frame, index=False).to_numpy())
