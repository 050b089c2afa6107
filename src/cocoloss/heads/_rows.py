"""Rows as the heads take them: labelled, weighted, cut into blocks."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
