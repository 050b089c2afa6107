"""Cross-entropy on embeddings: a linear layer, a softmax and the negative log-likelihood."""

from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn import functional

from cocoloss.exceptions import CoCoError
from cocoloss.losses.batch import Batch
from cocoloss.losses.samplewise import SamplewiseLoss


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
    reduction : {"mean", "sum"}
        "sum" leaves out the division.
    process_group : ProcessGroup or "world", optional
        Make it the loss of the global batch.
    validate : bool
        Whether labels and weights of every batch are looked at; see :class:`EmbeddingLoss`.

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
        reduction: str = "mean",
        process_group: Any = None,
        validate: bool = True,
    ) -> None:
        super().__init__(
            n_classes,
            n_classes if embedding_dim is None else embedding_dim,
            class_weight=class_weight,
            reduction=reduction,
            process_group=process_group,
            validate=validate,
        )
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
        terms = functional.cross_entropy(
            logits.flatten(0, 1), batch.labels.flatten(), reduction="none"
        )
        return terms.view(batch.labels.shape)

    def terms_and_grad(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the terms and V^T (softmax - one-hot)."""
        log_p = torch.log_softmax(self.logits(batch.embeddings), dim=-1)  # (K, n, C)
        own = batch.labels.unsqueeze(-1)
        terms = -log_p.gather(-1, own).squeeze(-1)
        residual = log_p.exp().scatter_add_(-1, own, log_p.new_full((), -1).expand(own.shape))
        if self.output is not None:
            residual = residual @ self.output.weight.to(residual)
        return terms, residual
