"""Reads what a loss is called with, and says what does not fit; no loss is known here."""

import numpy as np
import torch
from torch import Tensor

from cocoloss.exceptions import CoCoError

HALF = (torch.float16, torch.bfloat16)
FLOATS = (*HALF, torch.float32, torch.float64)


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


def check_weight(weight: Tensor | None, shape: torch.Size, like: Tensor) -> Tensor | None:
    """Return sample weights as (K, n) like the embeddings, or say which one is not a weight."""
    if weight is None:
        return None
    given = as_tensor(weight, "sample_weight")
    if given.requires_grad:
        raise CoCoError("sample_weight is a constant here, but requires a gradient; detach it")
    if given.is_complex():
        raise CoCoError(f"sample_weight must be real numbers, not {given.dtype}")
    w = fit(given.to(like.device, like.dtype), shape, "sample_weight")
    bad = ~((w >= 0) & w.isfinite())
    if bad.any():
        k, i = (int(place[0]) for place in torch.nonzero(bad, as_tuple=True))
        came = fit(given, shape, "sample_weight")[k, i].item()
        too_large = f", which is too large for {like.dtype}" if 0 <= came < float("inf") else ""
        raise CoCoError(
            f"sample_weight must be finite and not negative, but row {i} has {came}{too_large}"
            + (f" in model {k}" if len(w) > 1 else "")
        )
    return w


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


def fit(values: Tensor, shape: torch.Size, name: str) -> Tensor:
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
