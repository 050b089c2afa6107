"""The gradient of a batch that does not fit in memory: exact, chunk by chunk."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
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
    output: str | int | None = None,
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
    inputs : Tensor, dict or tuple
        Rows of the batch; anything that can be sliced, such as a memory map that gives tensors.
        A dict is what the network takes by name, ``network(**inputs)``, a tuple what it takes in
        order; both may hold others. All that has a length must have a row for each label; anything
        else, such as None or a truth, goes to every chunk as it is.
    labels : integer Tensor of shape (n,)
        Classes, 0 to C - 1; or soft labels (n, C), or for CoCo losses points (n, p).
    chunk_size : int
        Rows that go through the network at once.
    sample_weight : Tensor of shape (n,), optional
        Non-negative weights.
    scale : float
        Factor on the gradients, as ``GradScaler.get_scale()`` gives it for half precision.
    output : str or int, optional
        Which part of what the network gives is the embeddings, by its name or place, if it gives
        several. Not needed if one of them only is a matrix with a row for each of the inputs.

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
    network_of = _Network(network, inputs, output)
    weight = None
    if sample_weight is not None:
        sample_weight = as_tensor(sample_weight, "sample_weight")
        double = any(tensor.dtype == torch.float64 for tensor in network_of.tensors())
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
        return _backward_coupled(network_of, loss, chunks, batch_of, scale)
    with _averaged_over_ranks(loss):
        return _backward_samplewise(network_of, loss, y, chunks, batch_of, scale)


BatchOf = Callable[[slice, Tensor], Batch]


@dataclass(frozen=True)
class _Network:
    """A network with the rows that go through it in chunks."""

    module: nn.Module
    inputs: Any  # what can be sliced, or dicts and tuples of it
    output: str | int | None

    def __call__(self, chunk: slice) -> Tensor:
        """Return the embeddings of a chunk."""
        given = _rows_of(self.inputs, chunk)
        if isinstance(given, Mapping):
            came = self.module(**given)
        else:
            came = self.module(*given) if isinstance(given, tuple) else self.module(given)
        return came if isinstance(came, Tensor) else _embeddings_among(came, self.output)

    def unwrapped(self) -> "_Network":
        """Return the network without DistributedDataParallel: ranks do not wait for each other."""
        if not isinstance(self.module, DistributedDataParallel):
            return self
        return replace(self, module=self.module.module)

    def tensors(self) -> list[Tensor]:
        """Return parameters and inputs that are tensors."""
        return [
            *self.module.parameters(),
            *(x for _, x in _leaves(self.inputs) if isinstance(x, Tensor)),
        ]


def _leaves(inputs: Any, name: str = "inputs") -> Iterator[tuple[str, Any]]:
    """Yield what dicts and tuples hold, with the way to it."""
    if isinstance(inputs, Mapping):
        for key, part in inputs.items():
            yield from _leaves(part, f"{name}[{key!r}]")
    elif isinstance(inputs, tuple):
        for place, part in enumerate(inputs):
            yield from _leaves(part, f"{name}[{place}]")
    else:
        yield name, inputs


def _rows_of(inputs: Any, chunk: slice) -> Any:
    """Return a chunk of everything that has rows, in dicts and tuples as they came."""
    if isinstance(inputs, Mapping):
        return {key: _rows_of(part, chunk) for key, part in inputs.items()}
    if isinstance(inputs, tuple):
        return tuple(_rows_of(part, chunk) for part in inputs)
    return inputs[chunk] if _has_rows(inputs) else inputs


def _has_rows(x: Any) -> bool:
    if isinstance(x, str) or (isinstance(x, Tensor) and x.dim() == 0):
        return False
    return hasattr(x, "__getitem__")


def _embeddings_among(came: Any, output: str | int | None) -> Tensor:
    """Return the one tensor that was meant of a tuple, a dict or a dataclass of them."""
    if isinstance(came, Mapping):  # also the outputs of Hugging Face's models
        parts = dict(came)
    elif isinstance(came, list | tuple):
        parts = dict(enumerate(came))
        parts |= getattr(came, "_asdict", dict)()
    else:
        parts = dict(vars(came)) if hasattr(came, "__dict__") else {}
    tensors = {name: x for name, x in parts.items() if isinstance(x, Tensor)}
    if output is None:
        matrices = [x for x in tensors.values() if x.dim() == 2 and x.is_floating_point()]
        chosen = matrices[0] if len({id(x) for x in matrices}) == 1 else None
    else:
        chosen = tensors.get(output)
    if chosen is None:
        shapes = ", ".join(f"{name!r} {tuple(x.shape)}" for name, x in tensors.items())
        raise CoCoError(
            f"the network gave a {type(came).__name__} with {shapes or 'no tensor'}; "
            + (
                "say which one is the embeddings by output=, or give a network that returns them"
                if output is None
                else f"output={output!r} is none of them"
            )
        )
    return chosen


def _backward_coupled(
    network: _Network,
    loss: CoCoLoss,
    chunks: list[slice],
    batch_of: BatchOf,
    scale: float,
) -> Tensor:
    """Collect the moments of all chunks, then give each chunk its rows of the gradient."""
    plain = network.unwrapped()
    with _as_if_it_had_not_run(plain), torch.no_grad():
        parts = (loss.summarise(batch_of(chunk, plain(chunk))) for chunk in chunks)
        summary = loss.reduce_over_ranks(reduce(moments.merge, parts))
    for chunk in _last_one_synchronises(network.module, chunks):
        embeddings = network(chunk)
        gradient = loss.gradient_given(summary, batch_of(chunk, embeddings.detach()))
        # Half precision comes last: the scale must meet the gradient in float32.
        gradient = gradient.mul_(scale).view(embeddings.shape).to(embeddings.dtype)
        embeddings.backward(gradient)  # type: ignore[no-untyped-call]
    value = loss.value_of(summary)[0]
    return value.float() if embeddings.dtype in (*HALF, torch.float32) else value


def _backward_samplewise(
    network: _Network,
    loss: SamplewiseLoss,
    y: Tensor,
    chunks: list[slice],
    batch_of: BatchOf,
    scale: float,
) -> Tensor:
    """Add up the chunks: only the divisor must be known beforehand, and labels give it."""
    value = normaliser = None
    for chunk in _last_one_synchronises(network.module, chunks):
        batch = batch_of(chunk, network(chunk))
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
def _as_if_it_had_not_run(network: _Network) -> Iterator[None]:
    """Rewind random numbers and buffers on leaving: the second pass sees what the first saw."""
    devices = {t.device for t in network.tensors() if t.device.type != "cpu"}
    kind = next(iter(devices)).type if devices else "cuda"
    buffers = [(buffer, buffer.clone()) for buffer in network.module.buffers()]
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


def _check_inputs(inputs: object, y: Tensor) -> Any:
    if y.dim() != (2 if y.is_floating_point() else 1):
        raise CoCoError(
            "labels must have shape (n_samples,), or (n_samples, n_classes) if they are soft, and "
            "points (n_samples, n_coordinates): one for each row of the inputs"
        )
    inputs = _with_tensors(inputs)
    with_rows = [(name, x) for name, x in _leaves(inputs) if _has_rows(x)]
    if not with_rows:
        raise CoCoError(
            f"inputs must be something that can be sliced by rows, such as a tensor, or a dict or "
            f"a tuple of such things, not {type(inputs).__name__}"
        )
    for name, x in with_rows:
        if hasattr(x, "__len__") and len(x) != len(y):
            raise CoCoError(f"{name} has {len(x)} rows, but there are {len(y)} labels")
    return inputs


def _with_tensors(inputs: Any) -> Any:
    """Return inputs with tensors in place of arrays."""
    if isinstance(inputs, Mapping):
        return {key: _with_tensors(part) for key, part in inputs.items()}
    if isinstance(inputs, tuple):
        return tuple(_with_tensors(part) for part in inputs)
    return torch.as_tensor(inputs) if isinstance(inputs, np.ndarray) else inputs
