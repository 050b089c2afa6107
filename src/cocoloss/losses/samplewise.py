"""Losses with one term per sample: what dot regression and cross-entropy share."""

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, distributed

from cocoloss._checks import as_float_array, check_integer
from cocoloss.exceptions import CoCoError
from cocoloss.losses.base import EmbeddingLoss, drop_model_axis, out_of_graph, world_size
from cocoloss.losses.batch import Batch, Labels, check_class_order


class SamplewiseLoss(EmbeddingLoss):
    """A weighted sum over samples, divided by the summed class weights if ``reduction="mean"``.

    Class weights are normalised as in :func:`torch.nn.functional.cross_entropy`; without them
    the divisor is the number of samples. Sample weights multiply the terms.
    """

    embedding_dim: int

    def __init__(
        self,
        n_classes: int,
        embedding_dim: int,
        *,
        class_weight: ArrayLike | Tensor | None,
        reduction: str,
        process_group: Any,
        validate: bool,
    ) -> None:
        super().__init__(
            n_classes, reduction=reduction, process_group=process_group, validate=validate
        )
        self.embedding_dim = check_integer(embedding_dim, "embedding_dim", minimum=1)
        self.class_weight = None if class_weight is None else self._check_class_weight(class_weight)

    @out_of_graph
    def forward(
        self, embeddings: Tensor, labels: Labels, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Return the loss of a batch; see :meth:`EmbeddingLoss.forward`."""
        batch = self.check_batch(embeddings, labels, sample_weight)
        normaliser = self.normaliser(batch.labels, batch.embeddings)
        total = self.total(batch)
        value = total / normaliser
        group = self.resolved_group()
        if group is not None:
            # DistributedDataParallel divides the summed gradients by the number of ranks, so this
            # rank's share is multiplied by it; the value is that of the global batch.
            share = value * world_size(group)
            value = share + (self.sum_over_ranks(value.detach()) - share.detach())
        return drop_model_axis(value, embeddings)

    def evaluate(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return values and gradients; see :meth:`EmbeddingLoss.evaluate`."""
        normaliser = self.normaliser(batch.labels, batch.embeddings)
        terms, gradient = self.terms_and_grad(batch)
        value = self.sum_over_ranks(self._weighted_sum(terms, batch)) / normaliser
        for weight in self._weights(batch):
            gradient = gradient * weight.unsqueeze(-1)
        return value, gradient / normaliser[:, None, None]

    def n_terms(self, batch_size: int) -> int:
        """Return one term per sample."""
        return check_integer(batch_size, "batch_size", minimum=0)

    @abstractmethod
    def terms(self, batch: Batch) -> Tensor:
        """Return the unweighted term of each sample, (K, n), differentiably."""

    @abstractmethod
    def terms_and_grad(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the unweighted terms (K, n) and their gradients (K, n, q) in closed form."""

    def total(self, batch: Batch) -> Tensor:
        """Return the weighted sum of this rank's terms, (K,), differentiably."""
        return self._weighted_sum(self.terms(batch), batch)

    def normaliser(self, labels: Tensor, like: Tensor) -> Tensor:
        """Return what the sum over all ranks is divided by, (K,), from labels (K, n) alone."""
        K, n = labels.shape
        alone = world_size(self.resolved_group()) == 1
        if alone and self.reduction == "sum" and n:
            return like.new_ones(K)
        if self.class_weight is None:
            mass = like.new_full((K,), n)
        else:
            mass = self._class_weight(like)[labels].sum(-1)
        mass = self.sum_over_ranks(mass)
        # One rank knows from the shape whether there are rows, without a look at the device.
        if n == 0 if alone else self.validate and not mass.all():
            raise CoCoError("the batch is empty: a loss needs at least one sample")
        return mass if self.reduction == "mean" else torch.ones_like(mass)

    def sum_over_ranks(self, values: Tensor) -> Tensor:
        """Return the sum over the process group, or the values themselves without one."""
        group = self.resolved_group()
        if group is not None:
            values = values.clone()
            distributed.all_reduce(values, group=group)
        return values

    def _class_weight(self, like: Tensor) -> Tensor:
        weight = self.class_weight
        assert weight is not None
        return self.constant("class_weight", lambda: weight, like)

    def _weights(self, batch: Batch) -> list[Tensor]:
        """Return the factors, (K, n) each, by which the terms are weighted."""
        weights = [] if batch.weight is None else [batch.weight]
        if self.class_weight is not None:
            weights.append(self._class_weight(batch.embeddings)[batch.labels])
        return weights

    def _weighted_sum(self, terms: Tensor, batch: Batch) -> Tensor:
        for weight in self._weights(batch):
            terms = terms * weight
        return terms.sum(-1)

    def _check_class_weight(self, class_weight: ArrayLike | Tensor) -> NDArray[np.float64]:
        check_class_order(class_weight, "class_weight")
        weight = as_float_array(class_weight, "class_weight")
        if weight.shape != (self.n_classes,):
            raise CoCoError(
                f"class_weight must have one value for each of the {self.n_classes} classes, "
                f"but has shape {weight.shape}"
            )
        if not ((weight > 0) & (weight < float("inf"))).all():
            raise CoCoError(f"class_weight must be positive and finite, but is {weight.tolist()}")
        return weight
