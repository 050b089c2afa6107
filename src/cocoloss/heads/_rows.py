"""Rows as the heads take them: labelled, weighted, cut into blocks."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocoloss._validation import as_float_array
from cocoloss.exceptions import CoCoError

FLOOR = 1e-2  # smallest variance a head believes in, relative to the embedding's own
BLOCK_NUMBERS = 2**19  # float64 numbers of one block: 4 MB, whatever the number of rows
MIN_BLOCK_ROWS = 64


class LabelledRows(NamedTuple):
    """Training rows of positive weight."""

    X: NDArray[Any]  # (n, q), float32 or float64
    codes: NDArray[np.intp]  # (n,), positions in classes_
    weights: NDArray[np.float64]  # (n,)
    masses: NDArray[np.float64]  # (C,), summed weights per class, all positive


def blocks(n_rows: int, numbers_per_row: int) -> Iterator[slice]:
    """Cut the rows into blocks of bounded memory; no rows are one empty block."""
    step = max(MIN_BLOCK_ROWS, BLOCK_NUMBERS // numbers_per_row)
    for start in range(0, max(n_rows, 1), step):
        yield slice(start, start + step)


def check_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
    """Return one finite, non-negative weight per row; ones when none are given."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = as_float_array(sample_weight, "sample_weight")
    if weights.shape != (n_rows,):
        raise CoCoError(
            f"sample_weight has shape {weights.shape} for {n_rows} rows; give one weight each"
        )
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        first = int(bad.argmax())
        raise CoCoError(
            f"sample_weight must be finite and not negative, but row {first} has {weights[first]}; "
            f"use 0 to leave a row out"
        )
    return weights


def as_array(values: Any) -> Any:
    """Return a tensor as an array, without importing torch; leave the rest to scikit-learn."""
    if not hasattr(values, "detach"):
        return values
    values = values.detach().cpu()
    if str(values.dtype) == "torch.bfloat16":  # numpy has no bfloat16
        values = values.float()
    return values.numpy()
