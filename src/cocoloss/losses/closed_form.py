"""Lets autograd use a gradient that is known in closed form."""

from typing import Any, Protocol

import torch
from torch import Tensor

from cocoloss.losses.base import Batch, Labels, drop_model_axis, world_size


class KnowsItsGradient(Protocol):
    """A loss whose gradient is a formula."""

    def check_batch(
        self, embeddings: Tensor, labels: Labels, sample_weight: Tensor | None
    ) -> Batch:
        """Return a checked batch."""

    def value(self, batch: Batch) -> Tensor:
        """Return values (K,)."""

    def evaluate(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return values (K,) and gradients (K, n, q)."""

    def differentiable_gradient(self, batch: Batch) -> Tensor:
        """Return the gradients by steps that autograd can follow."""

    def resolved_group(self) -> Any:
        """Return the process group."""


class ClosedForm(torch.autograd.Function):
    """Value and gradient together, while the batch is at hand; ``backward`` only scales.

    Second derivatives differentiate the same formula, written without in-place steps.
    """

    @staticmethod
    def forward(
        ctx: Any,
        embeddings: Tensor,
        loss: KnowsItsGradient,
        labels: Labels,
        sample_weight: Tensor | None,
    ) -> Tensor:
        """Return the value, and keep the gradient if somebody will ask for it."""
        batch = loss.check_batch(embeddings, labels, sample_weight)
        if not ctx.needs_input_grad[0]:
            return drop_model_axis(loss.value(batch), embeddings)
        value, gradient = loss.evaluate(batch)
        ctx.save_for_backward(embeddings, gradient, batch.labels, batch.weight)
        ctx.loss = loss
        return drop_model_axis(value, embeddings)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None, None]:
        """Return the gradient, scaled by what comes from above."""
        embeddings, gradient, labels, weight = ctx.saved_tensors
        loss = ctx.loss
        if torch.is_grad_enabled():  # backward(create_graph=True)
            batch = loss.check_batch(embeddings, labels, weight)
            gradient = loss.differentiable_gradient(batch)
        # DistributedDataParallel divides the summed gradients by the number of ranks.
        scale = grad_output.reshape(-1, 1, 1) * world_size(loss.resolved_group())
        # Half precision comes last: a GradScaler's factor must meet the gradient in float32.
        scaled = (gradient * scale).view(embeddings.shape)
        return scaled.to(embeddings.dtype), None, None, None
