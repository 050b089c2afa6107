"""The gradient of a batch that does not fit in memory: exact, chunk by chunk."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel

from cocoloss._checks import check_integer
from cocoloss.exceptions import CoCoError
from cocoloss.losses import moments
from cocoloss.losses.base import (
    HALF,
    Batch,
    Labels,
    as_tensor,
    check_values,
    read_weight,
    world_size,
)
from cocoloss.losses.coco import CoCoLoss
from cocoloss.losses.samplewise import SamplewiseLoss


def backward_in_chunks(
    network: nn.Module,
    loss: CoCoLoss | SamplewiseLoss,
    inputs: Any,
    labels: Labels,
    chunk_size: int,
    sample_weight: Tensor | None = None,
    *,
    scale: float = 1.0,
) -> Tensor:
    """Add the gradient of the whole batch to the parameters, in the memory of one chunk.

    Does what ``loss(network(inputs), labels, sample_weight).backward()`` does, but holds the
    activations of ``chunk_size`` rows only. For the CoCo losses, whose samples interact, the
    network runs twice: once without gradients for the moments of the batch, once chunk by chunk
    with the gradient that they give. Dropout draws the same masks both times, and buffers that a
    forward pass changes start from the same values.

    Parameters
    ----------
    network : torch.nn.Module
        Maps a slice of the inputs to embeddings. May be wrapped in ``DistributedDataParallel``:
        the ranks then exchange gradients once, after the last chunk.
    loss : EmbeddingLoss
        Of this package, not wrapped: with a process group, the gradients of a layer of its own
        (``CrossEntropyLoss``) are averaged over the ranks here.
    inputs : Tensor
        Rows of the batch; anything that can be sliced, such as a memory map that gives tensors.
    labels : integer Tensor of shape (n,)
        Classes, 0 to C - 1; or, for the CoCo losses, soft labels (n, C) or points (n, p).
    chunk_size : int
        Rows that go through the network at once.
    sample_weight : Tensor of shape (n,), optional
        Non-negative weights.
    scale : float
        Factor on the gradients, as ``GradScaler.get_scale()`` gives it for half precision.

    Returns
    -------
    Tensor of shape ()
        The loss of the whole batch, detached and not scaled.

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
    if not isinstance(network, nn.Module):
        raise CoCoError(f"network must be a torch.nn.Module, not {type(network).__name__}")
    if not torch.is_grad_enabled():
        raise CoCoError("gradients are switched off; leave torch.no_grad or inference_mode first")
    chunk_size = check_integer(chunk_size, "chunk_size", minimum=1)
    _refuse_batch_norm(network)
    y = loss.read_targets(labels)
    inputs = _check_inputs(inputs, y)
    weight = None
    if sample_weight is not None:
        sample_weight = as_tensor(sample_weight, "sample_weight")
        double = any(tensor.dtype == torch.float64 for tensor in _tensors(network, inputs))
        weight = read_weight(sample_weight, torch.float64 if double else torch.float32)
        if weight.shape != y.shape[:1]:
            raise CoCoError(
                f"sample_weight must have one value per sample, shape {tuple(y.shape[:1])}, but "
                f"has shape {tuple(weight.shape)}"
            )
    if loss.validate:  # all of it, before the first gradient is written
        check_values(y, weight, loss.n_classes, came=sample_weight)
    # An empty batch is one empty chunk: its rank must still take part in the exchange.
    chunks = [slice(start, start + chunk_size) for start in range(0, max(len(y), 1), chunk_size)]
    scale *= world_size(loss.resolved_group())  # which DistributedDataParallel divides by

    def batch_of(chunk: slice, embeddings: Tensor) -> Batch:
        if embeddings.dim() != 2:
            raise CoCoError(
                f"the network must give embeddings of shape (n_samples, embedding_dim), but gave "
                f"{tuple(embeddings.shape)}"
            )
        weight = None if sample_weight is None else sample_weight[chunk]
        return loss.check_batch(embeddings, y[chunk], weight, validate=False)

    if isinstance(loss, CoCoLoss):
        return _backward_coupled(network, loss, inputs, chunks, batch_of, scale)
    with _averaged_over_ranks(loss):
        return _backward_samplewise(network, loss, inputs, y, chunks, batch_of, scale)


BatchOf = Callable[[slice, Tensor], Batch]


def _backward_coupled(
    network: nn.Module,
    loss: CoCoLoss,
    inputs: Any,
    chunks: list[slice],
    batch_of: BatchOf,
    scale: float,
) -> Tensor:
    """Collect the moments of all chunks, then give each chunk its rows of the gradient."""
    # Unwrapped, because ranks with different numbers of chunks must not wait for each other here.
    plain = network.module if isinstance(network, DistributedDataParallel) else network
    with _as_if_it_had_not_run(plain, inputs), torch.no_grad():
        parts = (loss.summarise(batch_of(chunk, plain(inputs[chunk]))) for chunk in chunks)
        summary = loss.reduce_over_ranks(reduce(moments.merge, parts))
    for chunk in _last_one_synchronises(network, chunks):
        embeddings = network(inputs[chunk])
        gradient = loss.gradient_given(summary, batch_of(chunk, embeddings.detach()))
        # Half precision comes last: the scale must meet the gradient in float32.
        embeddings.backward(gradient.mul_(scale).view(embeddings.shape).to(embeddings.dtype))
    value = loss.value_of(summary)[0]
    return value.float() if embeddings.dtype in (*HALF, torch.float32) else value


def _backward_samplewise(
    network: nn.Module,
    loss: SamplewiseLoss,
    inputs: Any,
    y: Tensor,
    chunks: list[slice],
    batch_of: BatchOf,
    scale: float,
) -> Tensor:
    """Add up the chunks: only the divisor must be known beforehand, and labels give it."""
    value = normaliser = None
    for chunk in _last_one_synchronises(network, chunks):
        batch = batch_of(chunk, network(inputs[chunk]))
        if normaliser is None:
            labels = y.unsqueeze(0).to(batch.embeddings.device)
            normaliser = loss.normaliser(labels, batch.embeddings)
        share = loss.total(batch) / normaliser
        (share * scale).backward()  # type: ignore[no-untyped-call]
        value = share.detach() if value is None else value + share.detach()
    assert value is not None
    return loss.sum_over_ranks(value)[0]


@contextmanager
def _averaged_over_ranks(loss: SamplewiseLoss) -> Iterator[None]:
    """Do for the parameters of a loss what DistributedDataParallel does for the network's."""
    group, parameters = loss.resolved_group(), list(loss.parameters())
    if group is None or not parameters:
        yield
        return
    before = [parameter.grad for parameter in parameters]
    loss.zero_grad()
    try:
        yield
    except BaseException:
        for parameter, earlier in zip(parameters, before, strict=True):
            parameter.grad = earlier
        raise
    for parameter, earlier in zip(parameters, before, strict=True):
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        gradient = loss.sum_over_ranks(gradient) / world_size(group)
        parameter.grad = gradient if earlier is None else earlier + gradient


def _last_one_synchronises(network: nn.Module, chunks: list[slice]) -> Iterator[slice]:
    """Yield the chunks; ranks exchange gradients in the backward pass of the last one only."""
    for chunk in chunks:
        context: AbstractContextManager[object] = nullcontext()
        if isinstance(network, DistributedDataParallel) and chunk is not chunks[-1]:
            context = network.no_sync()
        with context:
            yield chunk


@contextmanager
def _as_if_it_had_not_run(network: nn.Module, inputs: object) -> Iterator[None]:
    """Rewind random numbers and buffers on leaving: the second pass sees what the first saw."""
    devices = {t.device for t in _tensors(network, inputs) if t.device.type != "cpu"}
    kind = next(iter(devices)).type if devices else "cuda"
    buffers = [(buffer, buffer.clone()) for buffer in network.buffers()]
    try:
        with torch.random.fork_rng(devices, device_type=kind):
            yield
    finally:
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)


def _refuse_batch_norm(network: nn.Module) -> None:
    for name, module in network.named_modules():
        over_batch = isinstance(module, _BatchNorm)
        if over_batch and (module.training or module.running_mean is None):
            raise CoCoError(
                f"layer {name!r} normalises over the batch, which in chunks is another network; "
                f"call .eval() on it, or use LayerNorm or GroupNorm"
            )


def _tensors(network: nn.Module, inputs: object) -> list[Tensor]:
    return [*network.parameters(), *([inputs] if isinstance(inputs, Tensor) else [])]


def _check_inputs(inputs: object, y: Tensor) -> Any:
    if y.dim() != (2 if y.is_floating_point() else 1):
        raise CoCoError(
            "labels must have shape (n_samples,), or (n_samples, n_classes) if they are soft, and "
            "points (n_samples, n_coordinates): one for each row of the inputs"
        )
    if isinstance(inputs, np.ndarray):
        inputs = torch.as_tensor(inputs)
    if not hasattr(inputs, "__getitem__") or (isinstance(inputs, Tensor) and inputs.dim() == 0):
        raise CoCoError(
            f"inputs must be something that can be sliced by rows, such as a tensor, not "
            f"{type(inputs).__name__}"
        )
    if hasattr(inputs, "__len__") and len(inputs) != len(y):
        raise CoCoError(f"inputs has {len(inputs)} rows, but there are {len(y)} labels")
    return inputs
