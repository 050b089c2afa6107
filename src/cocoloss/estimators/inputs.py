"""From a table to what the networks get, by any transformer that makes finite numbers of it."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cocoloss._checks import is_sparse
from cocoloss.columns.frames import check_is_table, is_polars
from cocoloss.exceptions import CoCoError


def as_table(X: Any, reader: str, *, own: bool = False) -> Any:
    """Return a table whose rows can be chosen: a pandas or polars frame, or an array.

    Parameters
    ----------
    X
        What ``fit`` was given.
    reader : str
        Who reads it, for the messages.
    own : bool
        Whether a transformer of the user's own reads it, who decides what a table is.

    Raises
    ------
    CoCoError
        If it is no table.
    TypeError
        If it is sparse.
    """
    if is_sparse(X):
        raise TypeError(
            f"Sparse data was passed, but {reader} needs a dense table; use X.toarray()"
        )
    if not own:
        check_is_table(X, reader)
    if hasattr(X, "iloc") or is_polars(X):
        return X
    if hasattr(X, "to_pandas"):  # Arrow and other frames, which keep their names so
        return X.to_pandas()
    return X if isinstance(X, np.ndarray) else _as_array(X)


def _as_array(X: Any) -> NDArray[Any]:
    array = np.asarray(X)
    # Beside text, numpy turns numbers into text.
    return np.asarray(X, dtype=object) if array.dtype.kind in "US" else array


def fit_inputs(transformer: Any, rows: Any, y: NDArray[Any]) -> NDArray[np.float32]:
    """Fit a transformer, and return what it makes of the same rows.

    By ``fit_transform`` where there is one: to those who read the classes, such as a target
    encoder, that is not ``fit`` and then ``transform``.
    """
    if hasattr(transformer, "fit_transform"):
        return as_inputs(transformer.fit_transform(rows, y), transformer, rows)
    return transform_inputs(transformer.fit(rows, y), rows)


def transform_inputs(transformer: Any, rows: Any) -> NDArray[np.float32]:
    """Return what a fitted transformer makes of some rows."""
    return as_inputs(transformer.transform(rows), transformer, rows)


def as_inputs(made: Any, transformer: Any, rows: Any) -> NDArray[np.float32]:
    """Return a float32 matrix, or say what is wrong with what a transformer made."""
    name = type(transformer).__name__
    made = made.toarray() if is_sparse(made) else made
    try:
        with np.errstate(over="ignore"):  # told below
            inputs = np.ascontiguousarray(made, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise CoCoError(f"the preprocessing {name} must make numbers: {error}") from error
    if inputs.ndim != 2 or len(inputs) != _n_rows(rows) or inputs.shape[1] == 0:
        raise CoCoError(
            f"the preprocessing {name} must make a matrix with a row for each of the "
            f"{_n_rows(rows)} rows, but made one of shape {inputs.shape}"
        )
    if not np.isfinite(inputs).all():
        raise CoCoError(
            f"the preprocessing {name} left gaps or infinite numbers; add an imputer to it, or use "
            f"preprocess='auto'"
        )
    return inputs


def _n_rows(rows: Any) -> int:
    if isinstance(rows, pd.DataFrame | np.ndarray):
        return len(rows)
    from sklearn.utils.validation import _num_samples  # noqa: PLC0415 - slow, and seldom needed

    return int(_num_samples(rows))
