"""Labelled rows as they came, looked at in blocks: arrays, or tensors that stay on their device.

A measure needs float64, but not of all rows at once. Tensors bring torch along: it is not imported.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from cocoloss._checks import as_array, as_float_array, check_weights
from cocoloss.exceptions import CoCoError

ROW_NUMBERS = 2**16  # float64 numbers of a block: 512 kB, which stay in the cache between the steps
FEWEST_ROWS = 128
DEVICE_FACTOR = 64  # a GPU wants larger blocks: 32 MB
TABLE_NUMBERS = 2**20  # of a block of rows by classes
CODE_RANGE = 2**16  # integers this close together are numbered by a table, without sorting


class Block(NamedTuple):
    """Some rows in float64, on the host or on the device of the tensor they came in."""

    h: Any  # (b, q)
    codes: Any  # (b,) where their classes stand
    weights: Any  # (b,)
    place: slice  # among the rows that count

    def add_to_(self, sums: Any, values: Any) -> None:
        """Add weighted values (b, q) to the sums of their classes, (C, q), in place."""
        if is_tensor(values):
            sums.index_add_(0, self.codes, values * self.weights[:, None])
            return
        present: Any = slice(None)
        codes = self.codes
        if len(sums) > len(values):  # most classes are not here
            present, codes = np.unique(codes, return_inverse=True)
        # One non-zero per column: O(b q) without a table of rows by classes.
        membership = csc_array(
            (self.weights, codes, np.arange(len(values) + 1)),
            shape=(len(sums[present]), len(values)),
        )
        sums[present] += membership @ values


@dataclass(frozen=True)
class LabelledRows:
    """Rows with their classes, checked, and not copied."""

    values: Any  # (n, q), of any floating or integer type
    classes: list[Any]  # sorted
    codes: NDArray[np.intp]  # (n,)
    weights: NDArray[np.float64] | None  # (n,), None for ones; a row of weight zero is not there
    origin: Any = None  # (q,), halved: what rows are seen from, halved themselves
    exponent: int = 0  # rows are divided by two to this power

    @classmethod
    def read(cls, embeddings: Any, labels: Any, sample_weight: Any = None) -> Self:
        """Check rows and labels; only that numbers are finite is left to the first look at them."""
        values = as_matrix(embeddings)
        vector = as_labels(labels, len(values))
        weights = None
        if sample_weight is not None:
            weights = check_weights(sample_weight, len(values))
            present = weights > 0  # a class of weight zero has no mean
            if not present.all():
                check_finite(values[0 : len(values)], "embeddings")
                chosen = on_device(np.flatnonzero(present), values)
                values, vector, weights = values[chosen], vector[present], weights[present]
        classes, codes = encode_labels(vector)
        return cls(values, classes, codes, weights)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of classes and of dimensions."""
        return len(self.classes), self.values.shape[1]

    def step(self, fewest: int = 1) -> int:
        """Return the number of rows of a block."""
        n_classes, q = self.shape
        step = max(fewest, FEWEST_ROWS, ROW_NUMBERS // q)
        if stays_on_device(self.values):
            step *= DEVICE_FACTOR
        return max(1, min(step, TABLE_NUMBERS // max(n_classes, 1)))

    def blocks(self, fewest: int = 1, *, check: bool = False) -> Iterator[Block]:
        """Yield all rows, at least so many at once; ``check`` refuses what is not finite."""
        step = self.step(fewest)
        for start in range(0, len(self), step):
            place = slice(start, start + step)
            h = in_float64(self.values[place])
            if check:
                check_finite(h, "embeddings", start)
            if self.origin is not None:
                h = h / 2 - self.origin
            if self.exponent:
                h = over_power_of_two(h, self.exponent)
            codes = self.codes[place]
            weights = np.ones(len(codes)) if self.weights is None else self.weights[place]
            yield Block(h, on_device(codes, h), on_device(weights, h), place)

    def at_unit_scale(self) -> Self:
        """Return rows over a power of two, the largest number about one: squares fit into float64.

        A power of two changes no digit. Numbers of at most 32 bits need none.
        """
        if self.origin is None and self.values.itemsize <= 4:  # both in arrays and in tensors
            return self
        largest = max((float(abs(block.h).max()) for block in self.blocks(check=True)), default=0.0)
        return replace(self, exponent=int(np.frexp(largest)[1]))

    def from_first(self) -> Self:
        """Return rows as seen from the first: a common offset must not set the scale.

        Halves, because the difference of two large numbers may be larger than float64 holds.
        """
        return replace(self, origin=in_float64(self.values[:1])[0] / 2) if len(self) else self


def is_tensor(values: Any) -> bool:
    """Return whether something is a tensor, without importing torch."""
    return hasattr(values, "detach")


def stays_on_device(values: Any) -> bool:
    """Return whether blocks are worked on where they are: on devices that know float64."""
    return is_tensor(values) and values.device.type not in ("cpu", "mps")


def namespace(values: Any) -> Any:
    """Return numpy or torch: functions of the same names do the same in both."""
    return sys.modules["torch"] if is_tensor(values) else np


def on_device(values: Any, like: Any) -> Any:
    """Return an array or a tensor as what another one is, on its device."""
    if not is_tensor(like):
        return as_array(values)
    return sys.modules["torch"].as_tensor(values, device=like.device)


def in_float64(values: Any) -> Any:
    """Return a block in float64: a tensor on its device, an array from anywhere else."""
    if stays_on_device(values):
        return values.double()
    return np.asarray(as_array(values)).astype(np.float64, copy=False)


def over_power_of_two(values: Any, exponent: int) -> Any:
    """Divide by two to some power, in two steps: one factor may be more than float64 holds."""
    half = exponent // 2
    return values * 2.0**-half * 2.0 ** (half - exponent)


def as_matrix(embeddings: Any) -> Any:
    """Return embeddings as a matrix (n, q) of real numbers; tensors and arrays as they are."""
    values = embeddings
    if is_tensor(values):
        values = values.detach()
        if values.is_complex():
            raise CoCoError(f"embeddings must hold real numbers, not {values.dtype}")
        if str(values.layout) != "torch.strided":
            raise CoCoError(f"embeddings must be dense, not {values.layout}; use .to_dense()")
        on_host = values.device.type == "cpu" and not stays_on_device(values)
        if on_host and str(values.dtype) != "torch.bfloat16":  # which numpy takes block by block
            values = values.numpy()  # the same memory
    elif getattr(getattr(values, "dtype", None), "kind", "O") not in "fiub":
        values = as_float_array(values, "embeddings")
    if values.ndim != 2 or values.shape[1] == 0:
        raise CoCoError(
            f"embeddings must be a matrix of shape (n_samples, embedding_dim), "
            f"but has shape {tuple(values.shape)}; reshape it to one row per sample"
        )
    return values


def check_finite(values: Any, name: str, start: int = 0) -> None:
    """Refuse NaN and infinity, and say in which row the first one is."""
    finite = namespace(values).isfinite(values)
    if not finite.all():
        first = start + int(np.argwhere(~as_array(finite))[0, 0])
        raise CoCoError(
            f"{name} must be finite, but row {first} holds NaN or infinity; "
            f"drop such rows, or look for a training run that diverged"
        )


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
    if labels.dtype.kind in "iu" and len(labels):
        low, high = int(labels.min()), int(labels.max())
        if high - low < CODE_RANGE:
            wide = labels if labels.itemsize == 8 else labels.astype(np.int64)
            offsets = (wide - wide.dtype.type(low)).astype(np.intp, copy=False)
            there = np.bincount(offsets) > 0
            return (low + np.flatnonzero(there)).tolist(), (np.cumsum(there) - 1)[offsets]
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
