"""What every loss is called with and gives back; no formula lives here."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, ParamSpec, TypedDict, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, distributed, nn

from cocoloss._checks import check_n_classes, check_option
from cocoloss.exceptions import CoCoError
from cocoloss.losses.batch import Batch, Labels, read_batch

REDUCTIONS = ("mean", "sum")

P = ParamSpec("P")
R = TypeVar("R")


class LossOptions(TypedDict, total=False):
    """Arguments that every loss takes; see :class:`EmbeddingLoss`."""

    reduction: str
    process_group: Any
    validate: bool


class EmbeddingLoss(nn.Module, ABC):
    """The contract of every loss: embeddings and labels in, a value and a gradient out.

    Parameters
    ----------
    n_classes : int
        Number of classes C; labels are 0, ..., C - 1.
    reduction : {"mean", "sum"}
        Whether the loss is normalised by the size of the batch.
    process_group : torch.distributed.ProcessGroup or "world", optional
        If given, the loss is the loss of the global batch over all ranks of the group, and the
        gradients that ``DistributedDataParallel`` averages are the gradients of that loss.
        "world" is resolved at the first call, so it may be given before
        ``init_process_group``.
    validate : bool
        Whether every batch is looked at: labels from 0 to C - 1, weights finite and not negative.
        On a GPU the look waits for all that was asked of it before, so it is worth switching off
        in a loop whose batches are known to be sound. A wrong label then gives a wrong number or
        an error of the device. Types and shapes are checked in any case.

    Notes
    -----
    Embeddings may carry a leading model axis, (K, n, q): K networks that train in lockstep, each
    with its own batch. Labels and weights are then (K, n), or (n,) if the models share them, and
    values are (K,).
    """

    embedding_dim: int | None = None  # columns that the embeddings must have, if that is fixed

    def __init__(
        self,
        n_classes: int,
        *,
        reduction: str = "mean",
        process_group: Any = None,
        validate: bool = True,
    ) -> None:
        super().__init__()
        self.n_classes = check_n_classes(n_classes)
        self.reduction = check_option(reduction, "reduction", REDUCTIONS)
        self.process_group = _check_process_group(process_group)
        self.validate = validate
        self._constants: dict[Hashable, Tensor] = {}

    @abstractmethod
    def forward(
        self, embeddings: Tensor, labels: Labels, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Return the loss of a batch, ready for ``backward``.

        Parameters
        ----------
        embeddings : Tensor of shape (n, q) or (K, n, q)
            What the network gave.
        labels : integer Tensor of shape (n,) or (K, n)
            Classes, 0 to C - 1.
        sample_weight : Tensor of shape (n,) or (K, n), optional
            Non-negative weights.

        Returns
        -------
        Tensor of shape () or (K,)

        Raises
        ------
        CoCoError
            If the batch does not fit; the message says what came and what to do.
        """

    def value_and_grad(
        self, embeddings: Tensor, labels: Labels, sample_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the loss and its gradient with respect to the embeddings, without autograd.

        Parameters are those of :meth:`forward`. With a process group the gradient is the plain
        derivative of the global loss; :meth:`forward` multiplies it by the number of ranks,
        because ``DistributedDataParallel`` divides by it.

        Returns
        -------
        value : Tensor of shape () or (K,)
        gradient : Tensor of the shape and dtype of the embeddings
        """
        with torch.no_grad():
            value, gradient = self.evaluate(self.check_batch(embeddings, labels, sample_weight))
        return drop_model_axis(value, embeddings), gradient.view(embeddings.shape).to(embeddings)

    @abstractmethod
    def evaluate(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return values (K,) and gradients (K, n, q) of a batch that is known to be sound."""

    @abstractmethod
    def n_terms(self, batch_size: int) -> int:
        """Return how many terms the loss sums over a batch: the paper's measure of effort."""

    def __getstate__(self) -> dict[str, Any]:
        # The tensors made of constants are made again: a pickle need not carry them.
        return self.__dict__ | {"_constants": {}}

    def extra_repr(self) -> str:
        """Say what ``print(loss)`` shows."""
        return f"n_classes={self.n_classes}, reduction={self.reduction!r}"

    def resolved_group(self) -> Any:
        """Return the process group, or None if the loss is local."""
        if self.process_group is None:
            return None
        if not (distributed.is_available() and distributed.is_initialized()):
            raise CoCoError(
                "the loss was given a process_group, but torch.distributed is not initialised; "
                "call torch.distributed.init_process_group first, or leave process_group out"
            )
        group = distributed.group.WORLD if self.process_group == "world" else self.process_group
        if distributed.get_rank(group) < 0:
            raise CoCoError(
                "this rank is not in the process_group of the loss; build the loss with the group "
                "that this rank trains in"
            )
        return group

    def constant(
        self, name: Hashable, make: Callable[[], NDArray[np.float64]], like: Tensor
    ) -> Tensor:
        """Return a constant of the loss in the dtype and on the device of the embeddings.

        Kept in float64 and turned into a tensor once for each dtype and device, so that float64
        embeddings get all digits and ``loss.to(...)`` has nothing to move.
        """
        key = (name, like.dtype, like.device)
        if key not in self._constants:
            with torch.inference_mode(mode=False):  # it will meet batches that need gradients
                tensor = torch.tensor(make(), dtype=like.dtype, device=like.device)
            self._constants[key] = tensor
        return self._constants[key]

    def check_batch(
        self,
        embeddings: Tensor,
        labels: Labels,
        sample_weight: Tensor | None,
        *,
        validate: bool | None = None,
    ) -> Batch:
        """Return the batch in the form that the formulas take, or say what does not fit.

        ``validate`` is whether the values are looked at, by default what the loss was made with.
        """
        return read_batch(
            embeddings,
            labels,
            sample_weight,
            n_classes=self.n_classes,
            embedding_dim=self.embedding_dim,
            validate=self.validate if validate is None else validate,
        )


def _check_process_group(group: Any) -> Any:
    if group is None or (isinstance(group, str) and group == "world"):
        return group
    if distributed.is_available() and isinstance(group, distributed.ProcessGroup):
        return group
    raise CoCoError(
        f"process_group must be a group of torch.distributed, 'world' or None, not {group!r}"
    )


def drop_model_axis(value: Tensor, embeddings: Tensor) -> Tensor:
    """Return a value per model as the caller expects it: (K,), or () if there was no such axis."""
    return value[0] if embeddings.dim() == 2 else value


def world_size(group: Any) -> int:
    """Return the number of ranks that share a loss: 1 without a group."""
    return 1 if group is None else distributed.get_world_size(group)


def out_of_graph(function: Callable[P, R]) -> Callable[P, R]:
    """Keep a loss out of the graphs of torch.compile, which then hold the network alone.

    ``torch.compiler.disable`` does it, but imports the compiler, two seconds for everybody who
    imports the losses. So it is asked only once a compiler is there.
    """
    uncompiled: list[Callable[P, R]] = []

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if not torch.compiler.is_compiling():
            return function(*args, **kwargs)
        if not uncompiled:
            uncompiled.append(torch.compiler.disable(function))  # type: ignore[no-untyped-call]
        return uncompiled[0](*args, **kwargs)

    return run
