"""Dot regression: pull each embedding onto the fixed simplex vertex of its class."""

from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from cocoloss._checks import RandomState
from cocoloss.exceptions import CoCoError
from cocoloss.geometry import simplex_frame
from cocoloss.losses.batch import Batch
from cocoloss.losses.samplewise import SamplewiseLoss


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
    reduction : {"mean", "sum"}
        "sum" leaves out 1/N.
    process_group : ProcessGroup or "world", optional
        Make it the loss of the global batch.
    validate : bool
        Whether labels and weights of every batch are looked at; see :class:`EmbeddingLoss`.

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
        reduction: str = "mean",
        process_group: Any = None,
        validate: bool = True,
    ) -> None:
        super().__init__(
            n_classes,
            embedding_dim,
            class_weight=class_weight,
            reduction=reduction,
            process_group=process_group,
            validate=validate,
        )
        if self.process_group is not None and random_state is None:
            raise CoCoError(
                "every rank would draw a simplex of its own; give DotRegressionLoss the same "
                "random_state on all ranks of the process_group"
            )
        frame = simplex_frame(self.n_classes, self.embedding_dim, random_state)
        self.register_buffer("prototypes", torch.tensor(frame, dtype=torch.get_default_dtype()))

    def terms(self, batch: Batch) -> Tensor:
        """Return (<h_i, v_{y_i}> - 1)^2 / 2."""
        residual, _ = self._residual(batch)
        return residual.square() / 2

    def terms_and_grad(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the terms and (<h_i, v_{y_i}> - 1) v_{y_i}."""
        residual, v = self._residual(batch)
        return residual.square() / 2, residual.unsqueeze(-1) * v

    def _residual(self, batch: Batch) -> tuple[Tensor, Tensor]:
        v = self.prototypes.to(batch.embeddings)[batch.labels]  # (K, n, q)
        return (batch.embeddings * v).sum(-1) - 1, v  # not vecdot: autocast would halve its digits
