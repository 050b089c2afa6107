"""The gradient of a batch that does not fit in memory: exact, chunk by chunk."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel

from cocoloss._validation import check_integer
from cocoloss.exceptions import CoCoError
from cocoloss.losses import moments
from cocoloss.losses.base import Labels, world_size
from cocoloss.losses.coco import CoCoLoss
from cocoloss.losses.samplewise import SamplewiseLoss


class Sliceable(Protocol):
    """Inputs: a tensor, or anything whose slices the network takes."""

    def __getitem__(self, rows: slice, /) -> Any: ...


def backward_in_chunks(
    network: nn.Module,
    loss: CoCoLoss | SamplewiseLoss,
    inputs: Sliceable,
    labels: Labels,
    chunk_size: int,
    sample_weight: Tensor | None = None,
) -> Tensor:
    """Add the gradient of the whole batch to the parameters, in the memory of one chunk.

    Does what ``loss(network(inputs), labels, sample_weight).backward()`` does, but holds the
    activations of ``chunk_size`` rows only. For the CoCo losses, whose samples interact, the
    network runs twice: once without gradients for the moments of the batch, once chunk by chunk
    with the gradient that they give. Dropout draws the same mask both times.

    Parameters
    ----------
    network : torch.nn.Module
        Maps a slice of the inputs to embeddings. May be wrapped in ``DistributedDataParallel``:
        the ranks then exchange gradients once, after the last chunk.
    loss : EmbeddingLoss
        Any loss of this package.
    inputs : Tensor
        Rows of the batch; anything that can be sliced, such as a memory map that gives tensors.
    labels : integer Tensor of shape (n,)
        Classes, 0 to C - 1.
    chunk_size : int
        Rows that go through the network at once.
    sample_weight : Tensor of shape (n,), optional
        Non-negative weights.

    Returns
    -------
    Tensor of shape ()
        The loss of the whole batch, detached.

    Raises
    ------
    CoCoError
        If the network holds batch normalisation in training mode, which ties the rows of a chunk
        together, so that no chunking gives the gradient of the whole batch.

    Examples
    --------
    >>> import torch
    >>> from cocoloss import CoCoLoss, backward_in_chunks
    >>> network, loss = torch.nn.Linear(5, 4), CoCoLoss(n_classes=3)
    >>> inputs, labels = torch.randn(1000, 5), torch.arange(1000) % 3
    >>> value = backward_in_chunks(network, loss, inputs, labels, chunk_size=64)
    >>> torch.allclose(value, loss(network(inputs), labels))
    True
    """
    if not isinstance(loss, CoCoLoss | SamplewiseLoss):
        raise CoCoError(f"backward_in_chunks needs a loss of cocoloss, not {type(loss).__name__}")
    chunk_size = check_integer(chunk_size, "chunk_size", minimum=1)
    _refuse_batch_norm(network)
    y = loss.check_labels(labels)
    rows = _check_rows(inputs, y, sample_weight)
    # An empty batch is one empty chunk: its rank must still take part in the exchange.
    chunks = [slice(start, start + chunk_size) for start in range(0, max(rows, 1), chunk_size)]

    def weight_of(chunk: slice) -> Tensor | None:
        return None if sample_weight is None else sample_weight[chunk]

    if isinstance(loss, CoCoLoss):
        return _backward_coupled(network, loss, inputs, y, chunks, weight_of)
    return _backward_samplewise(network, loss, inputs, y, chunks, weight_of)


Weights = Callable[[slice], Tensor | None]


def _backward_coupled(
    network: nn.Module,
    loss: CoCoLoss,
    inputs: Sliceable,
    y: Tensor,
    chunks: list[slice],
    weight_of: Weights,
) -> Tensor:
    """Collect the moments of all chunks, then give each chunk its rows of the gradient."""
    # Unwrapped, because ranks with different numbers of chunks must not wait for each other here.
    plain = network.module if isinstance(network, DistributedDataParallel) else network
    with _same_random_numbers_afterwards(inputs), torch.no_grad():
        local = None
        for chunk in chunks:
            part = loss.summarise_locally(plain(inputs[chunk]), y[chunk], weight_of(chunk))
            local = part if local is None else moments.merge(local, part)
        assert local is not None
    summary = loss.reduce_over_ranks(local)
    ranks = world_size(loss.resolved_group())  # which DistributedDataParallel divides by
    for chunk in _last_one_synchronises(network, chunks):
        embeddings = network(inputs[chunk])
        gradient = loss.gradient_given(summary, embeddings, y[chunk], weight_of(chunk))
        embeddings.backward(gradient.mul_(ranks))
    return loss.value_of(summary)[0]


def _backward_samplewise(
    network: nn.Module,
    loss: SamplewiseLoss,
    inputs: Sliceable,
    y: Tensor,
    chunks: list[slice],
    weight_of: Weights,
) -> Tensor:
    """Add up the chunks: only the divisor must be known beforehand, and labels give it."""
    value = normaliser = None
    ranks = world_size(loss.resolved_group())
    for chunk in _last_one_synchronises(network, chunks):
        embeddings = network(inputs[chunk])
        if normaliser is None:
            normaliser = loss.normaliser(y.unsqueeze(0).to(embeddings.device), embeddings)
        share = loss.total(embeddings, y[chunk], weight_of(chunk)) / normaliser
        (share * ranks).backward()  # type: ignore[no-untyped-call]
        value = share.detach() if value is None else value + share.detach()
    assert value is not None
    return loss.sum_over_ranks(value)[0]


def _last_one_synchronises(network: nn.Module, chunks: list[slice]) -> Iterator[slice]:
    """Yield the chunks; ranks exchange gradients in the backward pass of the last one only."""
    for chunk in chunks:
        context: AbstractContextManager[object] = nullcontext()
        if isinstance(network, DistributedDataParallel) and chunk is not chunks[-1]:
            context = network.no_sync()
        with context:
            yield chunk


@contextmanager
def _same_random_numbers_afterwards(inputs: object) -> Iterator[None]:
    """Rewind the random state on leaving, so that dropout draws the same masks again."""
    device = inputs.device if isinstance(inputs, Tensor) else torch.device("cpu")
    devices = [] if device.type == "cpu" else [device]
    with torch.random.fork_rng(devices, device_type=device.type if devices else "cuda"):
        yield


def _refuse_batch_norm(network: nn.Module) -> None:
    for name, module in network.named_modules():
        if isinstance(module, _BatchNorm) and module.training:
            raise CoCoError(
                f"layer {name!r} normalises over the batch, which in chunks is another network; "
                f"call .eval() on it, or use LayerNorm or GroupNorm"
            )


def _check_rows(inputs: object, y: Tensor, sample_weight: Tensor | None) -> int:
    rows = y.shape[0] if y.dim() == 1 else None
    if rows is None:
        raise CoCoError(f"labels must have shape (n_samples,), but have {tuple(y.shape)}")
    for name, values in (("inputs", inputs), ("sample_weight", sample_weight)):
        length = len(values) if hasattr(values, "__len__") else rows
        if length != rows:
            raise CoCoError(f"{name} has {length} rows, but there are {rows} labels")
    return rows
