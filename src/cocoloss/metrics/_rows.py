"""Labelled rows, the input of every metric: read and checked, with clear errors."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss._checks import as_array, as_float_array
from cocoloss.exceptions import CoCoError


def as_embeddings(embeddings: Any) -> NDArray[np.float64]:
    """Return embeddings as a finite float64 array of shape (n, q)."""
    rows = as_float_array(embeddings, "embeddings")
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise CoCoError(
            f"embeddings must be a matrix of shape (n_samples, embedding_dim), "
            f"but has shape {rows.shape}; reshape it to one row per sample"
        )
    check_finite(rows, "embeddings")
    return rows


def check_finite(values: NDArray[np.float64], name: str) -> None:
    """Refuse NaN and infinity, and say where the first one is."""
    finite = np.isfinite(values)
    if not finite.all():
        first = int(np.argwhere(~finite)[0, 0])
        raise CoCoError(
            f"{name} must be finite, but row {first} holds NaN or infinity; "
            f"drop such rows, or look for a training run that diverged"
        )


def at_unit_scale(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers over a power of two, the largest about one: their squares fit into float64.

    A power of two changes no digit, so that whatever does not depend on scale stays as it is.
    """
    _, exponent = np.frexp(np.abs(rows).max(initial=0))
    scaled: NDArray[np.float64] = np.ldexp(rows, -exponent)
    return scaled


def as_labels(labels: Any, n_rows: int) -> NDArray[Any]:
    """Return labels of any kind as a vector with one entry per row."""
    try:
        vector: NDArray[Any] = np.asarray(as_array(labels))
    except (TypeError, ValueError, RuntimeError) as error:
        raise CoCoError(f"labels must be a vector that numpy can read: {error}") from error
    if vector.ndim != 1:
        raise CoCoError(
            f"labels must be a vector with one class per row, but has shape {vector.shape}; "
            f"flatten it, or take the argmax of one-hot rows"
        )
    if len(vector) != n_rows:
        raise CoCoError(f"{len(vector)} labels came with {n_rows} embeddings; give one label each")
    return vector


def encode_labels(labels: NDArray[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the sorted classes among the labels, and the position of every label in them."""
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise CoCoError(
            f"labels must be of one kind that can be sorted, such as all integers or all strings; "
            f"convert them first ({error})"
        ) from error
    found = classes.tolist()
    missing = classes.dtype.kind in "mM" and np.isnat(classes).any()  # in the list it is None
    if missing or any(_is_missing(label) for label in found):
        raise CoCoError("labels hold NaN, NaT or None; drop the rows that have no class")
    return found, codes


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)  # noqa: PLR0124 - NaN differs from itself
    except TypeError:  # pandas' NA is neither true nor false
        return True
