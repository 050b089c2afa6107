"""Losses with one term per sample: dot regression and cross-entropy."""

from abc import abstractmethod
from typing import Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, distributed, nn
from torch.nn import functional

from cocoloss._checks import RandomState, as_float_array, check_integer
from cocoloss.exceptions import CoCoError
from cocoloss.geometry import simplex_frame
from cocoloss.losses.base import (
    Batch,
    EmbeddingLoss,
    Labels,
    LossOptions,
    check_class_order,
    drop_model_axis,
    out_of_graph,
    world_size,
)
from cocoloss.losses.moments import without_autocast


@without_autocast
def product(rows: Tensor, matrix: Tensor) -> Tensor:
    """Return a matrix product in full precision."""
    return rows @ matrix.to(rows)


class SamplewiseLoss(EmbeddingLoss):
    """A weighted sum over samples, divided by the summed class weights if ``reduction="mean"``.

    Class weights are normalised as in :func:`torch.nn.functional.cross_entropy`; without them
    the divisor is the number of samples. Sample weights multiply the terms. Soft labels give the
    expected sum and the expected divisor.
    """

    embedding_dim: int

    def __init__(
        self,
        n_classes: int,
        embedding_dim: int,
        *,
        class_weight: ArrayLike | Tensor | None,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(n_classes, **options)
        self.embedding_dim = check_integer(embedding_dim, "embedding_dim", minimum=1)
        self.class_weight = None if class_weight is None else self._check_class_weight(class_weight)

    @out_of_graph
    def forward(
        self, embeddings: Tensor, labels: Labels, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Return the loss of a batch; see :meth:`EmbeddingLoss.forward`."""
        batch = self.check_batch(embeddings, labels, sample_weight)
        value = self.total(batch) / self.normaliser(batch.labels, batch.embeddings)
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
        batch = self._with_shares(batch)
        terms, gradient = self.terms_and_grad(batch)
        value = self.sum_over_ranks(self._weighted_sum(terms, batch)) / normaliser
        for weight in self._weights(batch):
            gradient = gradient * weight.unsqueeze(-1)
        return value, gradient / normaliser[:, None, None]

    @abstractmethod
    def terms(self, batch: Batch) -> Tensor:
        """Return the unweighted term of each sample, (K, n), differentiably.

        Soft labels are shares of classes, (K, n, C), with their weights: terms are linear in them.
        """

    @abstractmethod
    def terms_and_grad(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the unweighted terms (K, n) and their gradients (K, n, q) in closed form."""

    def n_terms(self, batch_size: int) -> int:
        """Return one term per sample."""
        return check_integer(batch_size, "batch_size", minimum=0)

    def total(self, batch: Batch) -> Tensor:
        """Return the weighted sum of this rank's terms, (K,), differentiably."""
        batch = self._with_shares(batch)
        return self._weighted_sum(self.terms(batch), batch)

    def normaliser(self, labels: Tensor, like: Tensor) -> Tensor:
        """Return what the sum over all ranks is divided by, (K,), from labels alone."""
        K, n = labels.shape[:2]
        alone = world_size(self.resolved_group()) == 1
        if alone and self.reduction == "sum" and n:
            return like.new_ones(K)
        if self.class_weight is None:
            mass = like.new_full((K,), n)
        elif labels.is_floating_point():
            mass = (labels.to(like) * self._class_weight(like)).sum((-2, -1))
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
        return self.constant("class_weight", lambda: weight, like.dtype, like.device)

    def _with_shares(self, batch: Batch) -> Batch:
        """Return soft labels in the dtype of the embeddings, times the weights of the classes."""
        if not batch.labels.is_floating_point():
            return batch
        shares = batch.labels.to(batch.embeddings)
        if self.class_weight is not None:
            shares = shares * self._class_weight(shares)
        return batch._replace(labels=shares)

    def _weights(self, batch: Batch) -> list[Tensor]:
        """Return the factors, (K, n) each, by which the terms are weighted."""
        weights = [] if batch.weight is None else [batch.weight]
        if self.class_weight is not None and not batch.labels.is_floating_point():
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


class DotRegressionLoss(SamplewiseLoss):
    r"""Half the mean squared difference between an embedding's dot product and one.

    .. math:: \frac{1}{2N} \sum_i (\langle h_i, v_{y_i}\rangle - 1)^2

    with fixed unit vectors :math:`v_c`, the vertices of a regular simplex.

    Parameters
    ----------
    n_classes : int
        Number of classes C.
    embedding_dim : int
        Columns q of the embeddings, at least C - 1.
    class_weight : array of shape (C,), optional
        Weight of each class.
    random_state : int, numpy generator or None
        Rotation of the simplex. The vertices are kept in ``state_dict``. With a process group all
        ranks must give the same one.
    **options
        ``reduction``, ``process_group`` and ``validate`` of :class:`EmbeddingLoss`.

    Attributes
    ----------
    prototypes : Tensor of shape (C, q)
        The vectors :math:`v_c`; classify by the largest inner product with them.

    Examples
    --------
    >>> import torch
    >>> from cocoloss import DotRegressionLoss
    >>> loss = DotRegressionLoss(n_classes=3, embedding_dim=8, random_state=0)
    >>> labels = torch.tensor([0, 2])
    >>> round(loss(2 * loss.prototypes[labels], labels).item(), 4)
    0.5
    """

    prototypes: Tensor

    def __init__(
        self,
        n_classes: int,
        embedding_dim: int,
        *,
        class_weight: ArrayLike | Tensor | None = None,
        random_state: RandomState = None,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(n_classes, embedding_dim, class_weight=class_weight, **options)
        if self.process_group is not None and random_state is None:
            raise CoCoError(
                "every rank would draw a simplex of its own; give DotRegressionLoss the same "
                "random_state on all ranks of the process_group"
            )
        frame = simplex_frame(self.n_classes, self.embedding_dim, random_state)
        self.register_buffer("prototypes", torch.tensor(frame, dtype=torch.get_default_dtype()))

    def terms(self, batch: Batch) -> Tensor:
        """Return (<h_i, v_{y_i}> - 1)^2 / 2."""
        if batch.labels.is_floating_point():
            return (batch.labels * self._residuals(batch.embeddings).square()).sum(-1) / 2
        residual, _ = self._residual(batch)
        return residual.square() / 2

    def terms_and_grad(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the terms and (<h_i, v_{y_i}> - 1) v_{y_i}."""
        if batch.labels.is_floating_point():
            residuals = self._residuals(batch.embeddings)
            shared = batch.labels * residuals
            return (shared * residuals).sum(-1) / 2, product(shared, self.prototypes)
        residual, v = self._residual(batch)
        return residual.square() / 2, residual.unsqueeze(-1) * v

    def _residuals(self, embeddings: Tensor) -> Tensor:
        return product(embeddings, self.prototypes.T) - 1  # (K, n, C)

    def _residual(self, batch: Batch) -> tuple[Tensor, Tensor]:
        v = self.prototypes.to(batch.embeddings)[batch.labels]  # (K, n, q)
        return (batch.embeddings * v).sum(-1) - 1, v  # not vecdot: autocast would halve its digits


class CrossEntropyLoss(SamplewiseLoss):
    r"""Mean negative log-likelihood of a softmax on a linear layer of the embeddings.

    .. math:: -\frac{1}{N} \sum_i \log \mathrm{softmax}(V h_i + b)_{y_i}

    Parameters
    ----------
    n_classes : int
        Number of classes C.
    embedding_dim : int or None
        Columns q of the embeddings, from which the loss's own ``output`` layer makes logits.
        None if the embeddings are logits already (q = C): the loss then has no parameters.
    class_weight : array of shape (C,), optional
        Weight of each class, normalised as :func:`torch.nn.functional.cross_entropy` does.
    **options
        ``reduction``, ``process_group`` and ``validate`` of :class:`EmbeddingLoss`.

    Attributes
    ----------
    output : torch.nn.Linear or None
        The layer; give its parameters to the optimiser, and wrap the loss in
        ``DistributedDataParallel`` too if there are several ranks.

    Examples
    --------
    >>> import torch
    >>> from cocoloss import CrossEntropyLoss
    >>> loss = CrossEntropyLoss(n_classes=10, embedding_dim=32)
    >>> sum(p.numel() for p in loss.parameters())
    330
    >>> logits = CrossEntropyLoss(n_classes=2, embedding_dim=None)
    >>> logits(torch.zeros(5, 2), torch.tensor([0, 1, 1, 0, 1]))
    tensor(0.6931)
    """

    def __init__(
        self,
        n_classes: int,
        embedding_dim: int | None,
        *,
        class_weight: ArrayLike | Tensor | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        n_columns = n_classes if embedding_dim is None else embedding_dim
        super().__init__(n_classes, n_columns, class_weight=class_weight, **options)
        self.output = None if embedding_dim is None else nn.Linear(self.embedding_dim, n_classes)

    def logits(self, embeddings: Tensor) -> Tensor:
        """Return the class scores of embeddings, (..., C); the largest one is the prediction."""
        if not embeddings.is_floating_point() or embeddings.shape[-1] != self.embedding_dim:
            raise CoCoError(
                f"embeddings must be floating-point numbers with {self.embedding_dim} columns, "
                f"but are {embeddings.dtype} of shape {tuple(embeddings.shape)}"
            )
        if self.output is None:
            return embeddings
        weight, bias = self.output.weight.to(embeddings), self.output.bias.to(embeddings)
        return functional.linear(embeddings, weight, bias)

    def terms(self, batch: Batch) -> Tensor:
        """Return the negative log-likelihood of each sample."""
        logits = self.logits(batch.embeddings)
        if batch.labels.is_floating_point():
            return -(batch.labels * torch.log_softmax(logits, dim=-1)).sum(-1)
        terms = functional.cross_entropy(
            logits.flatten(0, 1), batch.labels.flatten(), reduction="none"
        )
        return terms.view(batch.labels.shape)

    def terms_and_grad(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the terms and V^T (softmax - one-hot)."""
        log_p = torch.log_softmax(self.logits(batch.embeddings), dim=-1)  # (K, n, C)
        if batch.labels.is_floating_point():
            shares = batch.labels
            terms = -(shares * log_p).sum(-1)
            residual = log_p.exp() * shares.sum(-1, keepdim=True) - shares
        else:
            own = batch.labels.unsqueeze(-1)
            terms = -log_p.gather(-1, own).squeeze(-1)
            residual = log_p.exp().scatter_add_(-1, own, log_p.new_full((), -1).expand(own.shape))
        if self.output is not None:
            residual = residual @ self.output.weight.to(residual)
        return terms, residual
