"""What a loss is called with, read and checked: embeddings, labels, weights. No loss is known here.

Types and shapes are known without looking at the numbers. Those are looked at once per batch,
because on a GPU every look waits for all that was asked of it before.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from cocoloss.exceptions import CoCoError

HALF = (torch.float16, torch.bfloat16)
FLOATS = (*HALF, torch.float32, torch.float64)
INTEGERS = (
    *(torch.int64, torch.int32, torch.int16, torch.int8),
    *(torch.uint64, torch.uint32, torch.uint16, torch.uint8),
)

Labels = Tensor | ArrayLike | Sequence[int]


class Batch(NamedTuple):
    """A checked batch. K is the number of models: 1 if the embeddings came without that axis."""

    embeddings: Tensor  # (K, n, q) in float32 or float64
    labels: Tensor  # (K, n) int64
    weight: Tensor | None  # (K, n) in the dtype of the embeddings


def read_batch(
    embeddings: Tensor,
    labels: Labels,
    sample_weight: Tensor | None,
    *,
    n_classes: int,
    embedding_dim: int | None,
    validate: bool,
) -> Batch:
    """Return a batch in the form that the formulas take, or say what does not fit.

    ``validate`` is whether the values of labels and weights are looked at; types and shapes are
    in any case.
    """
    h = check_embeddings(embeddings, embedding_dim)
    y = read_labels(labels, n_classes)
    w = None if sample_weight is None else read_weight(sample_weight, h.dtype)
    if validate:
        check_values(y, w, n_classes, came=sample_weight)
    shape = h.shape[:-1]  # (K, n)
    y = _fit(y.to(h.device), shape, "labels")
    return Batch(h, y, None if w is None else _fit(w.to(h.device), shape, "sample_weight"))


def check_embeddings(embeddings: Tensor, embedding_dim: int | None) -> Tensor:
    """Return embeddings as (K, n, q), in float32 at least: half precision only stores."""
    if not isinstance(embeddings, Tensor):
        raise CoCoError(
            f"embeddings must be a torch tensor, not {type(embeddings).__name__}; "
            f"use torch.as_tensor(embeddings)"
        )
    if embeddings.layout is not torch.strided:
        raise CoCoError(f"embeddings must be dense, not {embeddings.layout}; use .to_dense()")
    if embeddings.dim() not in (2, 3):
        raise CoCoError(
            f"embeddings must have shape (n_samples, embedding_dim), or with a leading model axis "
            f"(n_models, n_samples, embedding_dim), but have shape {tuple(embeddings.shape)}"
        )
    if embeddings.dim() == 3 and embeddings.shape[0] == 0:
        raise CoCoError("embeddings have a model axis of length 0; there must be a model")
    if embeddings.dtype not in FLOATS:  # those of 8 bits only store: nothing is computed in them
        raise CoCoError(
            f"embeddings must be real floating-point numbers, not {embeddings.dtype}; use .float()"
        )
    q = embeddings.shape[-1]
    if q == 0 or (embedding_dim is not None and q != embedding_dim):
        expected = "at least 1" if embedding_dim is None else str(embedding_dim)
        raise CoCoError(f"embedding_dim must be {expected}, but the embeddings have {q} columns")
    if embeddings.dim() == 2:
        embeddings = embeddings.unsqueeze(0)
    return embeddings.float() if embeddings.dtype in HALF else embeddings


def read_labels(labels: Labels, n_classes: int) -> Tensor:
    """Return labels as int64, or say why they are no integers."""
    y = as_tensor(labels, "labels")
    if y.dtype not in INTEGERS and y.numel():
        raise CoCoError(
            f"labels must be integers from 0 to {n_classes - 1}, not {y.dtype}; "
            f"use labels.long() if they are whole numbers, or scikit-learn's LabelEncoder"
        )
    return y.long()


def read_weight(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """Return sample weights in the dtype of the embeddings, or say why they are no constants."""
    w = as_tensor(weight, "sample_weight")
    if w.requires_grad:
        raise CoCoError("sample_weight is a constant here, but requires a gradient; detach it")
    if w.is_complex():
        raise CoCoError(f"sample_weight must be real numbers, not {w.dtype}")
    return w.to(dtype)


def check_values(y: Tensor, w: Tensor | None, n_classes: int, *, came: object) -> None:
    """Refuse labels that are no classes and weights that are negative or not finite.

    One look at the smallest and the largest of both: what exactly is wrong is found out afterwards,
    from the weights as they came.
    """
    if not y.numel():
        return
    extremes = torch.aminmax(y)
    if w is None or not w.numel():
        low, high = _numbers(*extremes)
        lightest = heaviest = 0.0
    else:  # NaN is passed on
        both = [*(extreme.to(w) for extreme in extremes), *torch.aminmax(w)]
        low, high, lightest, heaviest = _numbers(*both)
    if low < 0 or high >= n_classes:
        low, high = (int(bound) for bound in extremes)
        raise CoCoError(
            f"labels must be from 0 to {n_classes - 1} for {n_classes} classes, "
            f"but go from {low} to {high}; encode them as 0, ..., C - 1"
        )
    if not (lightest >= 0 and heaviest < float("inf")):
        assert w is not None
        raise _bad_weight(w, as_tensor(came, "sample_weight"))


def _numbers(*scalars: Tensor) -> list[float]:
    """Return the numbers in tensors of one device: from another than the CPU, all at once."""
    if scalars[0].device.type == "cpu":
        return [scalar.item() for scalar in scalars]
    numbers: list[float] = torch.stack(scalars).tolist()
    return numbers


def _bad_weight(w: Tensor, given: Tensor) -> CoCoError:
    """Say which weight is none; ``given`` is what was cast to ``w``."""
    place = torch.nonzero(~((w >= 0) & w.isfinite()))[0].tolist()  # (i,), or (k, i) of model k
    came = given[tuple(place)].item()
    too_large = f", which is too large for {w.dtype}" if 0 <= came < float("inf") else ""
    return CoCoError(
        f"sample_weight must be finite and not negative, but row {place[-1]} has {came}{too_large}"
        + (f" in model {place[0]}" if len(place) > 1 and len(w) > 1 else "")
    )


def as_tensor(values: object, name: str) -> Tensor:
    """Return labels or weights as a tensor, from whatever numpy can read."""
    if isinstance(values, Tensor):
        return values
    try:
        array = np.asarray(values)  # of a pandas Series the values, whatever its index
        if array.dtype == object:  # whole numbers in boxes; anything else stays, and is refused
            array = np.asarray(array.tolist())
        # A copy, because torch takes neither negative strides nor foreign bytes, and warns of
        # arrays that are read-only.
        return torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))
    except (TypeError, ValueError, RuntimeError) as error:
        raise CoCoError(
            f"{name} must be numbers in a tensor, an array or a list: {error}"
        ) from error


def check_class_order(values: object, name: str) -> None:
    """Refuse a pandas Series of values per class that has the classes in another order.

    ``value_counts`` sorts by frequency, and its order is lost with the index.
    """
    index = getattr(values, "index", None)
    if index is None or callable(index):  # of a list it is a method
        return
    classes = np.asarray(index)
    if classes.ndim != 1 or classes.dtype.kind not in "biuf":
        return
    in_order = np.arange(len(classes))
    if np.array_equal(np.sort(classes), in_order) and not np.array_equal(classes, in_order):
        raise CoCoError(
            f"{name} is a series with the classes in the order {classes[:5].tolist()}"
            f"{'...' if len(classes) > 5 else ''}, but they are taken in the order 0, ..., C - 1; "
            f"use {name}.sort_index()"
        )


def _fit(values: Tensor, shape: torch.Size, name: str) -> Tensor:
    """Return per-sample values as (K, n)."""
    if values.shape == shape[1:]:
        values = values.unsqueeze(0)
        return values if shape[0] == 1 else values.expand(shape)
    if values.shape != shape:
        raise CoCoError(
            f"{name} must have one value per sample, shape {tuple(shape[1:])}"
            + (f" or {tuple(shape)}" if shape[0] != 1 else "")
            + f", but has shape {tuple(values.shape)}"
        )
    return values
