"""The CoCo loss, plain and balanced: collapse each class to a point, contrast the classes."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from cocoloss._validation import check_n_classes, check_option, check_priors
from cocoloss.exceptions import CoCoError
from cocoloss.geometry import SIMILARITIES, validate_similarity
from cocoloss.geometry import similarity as named_similarity
from cocoloss.losses import moments
from cocoloss.losses.base import Batch, EmbeddingLoss, Labels, drop_model_axis, world_size
from cocoloss.losses.moments import Moments
from cocoloss.losses.pairwise import pairwise_value_and_grad

# Up to this batch size the Gram matrix of the batch is cheaper than the moments (bench/losses.py).
PAIRWISE_LIMIT = 256


class Components(NamedTuple):
    """What the loss is made of, on the loss's own scale.

    The rest of the loss, ``loss - sum(components)``, is D / (N + 1): the norms of single samples.
    """

    nc2: Tensor  # class means that do not have the target Gram matrix
    nc1_between: Tensor  # spread of the samples along the class means, 2 tr(BW)
    nc1_within: Tensor  # spread of the samples around their class mean, tr(WW)


class CoCoLoss(EmbeddingLoss):
    r"""Squared difference between inner products of embeddings and target similarities.

    .. math:: \frac{2}{N(N+1)} \sum_{i<j} (\langle h_i, h_j\rangle - g_{y_i y_j})^2
              + \frac{1}{N} \sum_i (\langle h_i, h_i\rangle - g_{y_i y_i})^2

    which is equation (coco-loss) of the paper. It is computed exactly at a cost that is linear in
    the batch size: see docs/theory.md.

    Parameters
    ----------
    n_classes : int
        Number of classes C; labels are 0, ..., C - 1. A batch may lack some of them.
    similarity : {"simplex", "welch", "orthoplex", "packing"} or array of shape (C, C)
        Target similarity of each pair of classes. "simplex" is the paper's: 1 within a class and
        -1/(C-1) between classes, for embeddings of at least C - 1 dimensions; "packing" spreads
        the classes as well as fewer dimensions allow; "orthoplex" makes them orthogonal; a
        positive semi-definite matrix of your own says which classes are alike.
    priors : array of shape (C,), optional
        Share of each class in the training data. If given, the classes are balanced: a pair
        weighs :math:`(\pi_i \pi_j)^{-1/2}`, as in equation (balanced-coco-loss).
    reduction : {"mean", "sum"}
        "mean" is the normalisation above. "sum" leaves it out, which with ``priors`` is the
        balanced loss as printed.
    process_group : ProcessGroup or "world", optional
        Make it the loss of the global batch over these ranks, and its exact gradient under
        ``DistributedDataParallel``.

    Examples
    --------
    >>> import torch
    >>> from cocoloss import CoCoLoss
    >>> loss = CoCoLoss(n_classes=3)
    >>> corners = torch.tensor([[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]])
    >>> labels = torch.tensor([0, 1, 2, 1])
    >>> loss(corners[labels], labels) < 1e-12  # zero on the simplex
    tensor(True)
    """

    def __init__(
        self,
        n_classes: int,
        *,
        similarity: str | ArrayLike | Tensor = "simplex",
        priors: ArrayLike | Tensor | None = None,
        reduction: str = "mean",
        process_group: Any = None,
    ) -> None:
        super().__init__(n_classes, reduction=reduction, process_group=process_group)
        self.similarity: str | NDArray[np.float64]
        if isinstance(similarity, str):
            self.similarity = check_option(similarity, "similarity", SIMILARITIES)
        else:
            self.similarity = validate_similarity(similarity, self.n_classes)
        self.priors = None if priors is None else check_priors(priors, self.n_classes)

    def forward(
        self, embeddings: Tensor, labels: Labels, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Return the loss of a batch; see :meth:`EmbeddingLoss.forward`.

        Sample weights multiply: a pair weighs w_i w_j, and N stays the number of samples.
        """
        value: Tensor = _ClosedForm.apply(embeddings, self, labels, sample_weight)  # type: ignore[no-untyped-call]
        return value

    def evaluate(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return values and gradients; see :meth:`EmbeddingLoss.evaluate`."""
        value, gradient = self._evaluate(batch, with_gradient=True)
        assert gradient is not None
        return value, gradient

    def components(
        self, embeddings: Tensor, labels: Labels, sample_weight: Tensor | None = None
    ) -> Components:
        """Return what remains to be learnt: of the class geometry (NC2), of the collapse (NC1).

        Returns
        -------
        Components
            ``nc2``, ``nc1_between`` and ``nc1_within``, each of shape () or (K,), without graph.
        """
        summary = self.reduce_over_ranks(self.summarise_locally(embeddings, labels, sample_weight))
        G = self._targets(embeddings.shape[-1], summary.means)
        pairs, _ = self._factors(summary.count)
        terms = moments.pair_terms(summary, G)
        return Components(*(drop_model_axis(pairs * term, embeddings) for term in terms))

    def n_terms(self, batch_size: int) -> int:
        """Return the number of ordered pairs, samples with themselves included."""
        return batch_size**2

    def extra_repr(self) -> str:
        """Say what ``print(loss)`` shows."""
        kind = self.similarity if isinstance(self.similarity, str) else "a matrix"
        balanced = "" if self.priors is None else ", balanced"
        return f"{super().extra_repr()}, similarity={kind!r}{balanced}"

    def summarise_locally(
        self, embeddings: Tensor, labels: Labels, sample_weight: Tensor | None = None
    ) -> Moments:
        """Return the moments of this rank's rows: all that value and gradient need to know."""
        with torch.no_grad():
            batch, G = self._weigh(self.check_batch(embeddings, labels, sample_weight))
            with _full_precision(embeddings):
                return moments.class_moments(*batch, G)

    def reduce_over_ranks(self, local: Moments) -> Moments:
        """Return the moments of the global batch from those of this rank."""
        group = self.resolved_group()
        summary = local if group is None else moments.all_reduce(local, group)
        if summary.count == 0:
            raise CoCoError("the batch is empty: a loss needs at least one sample")
        return summary

    def value_of(self, summary: Moments) -> Tensor:
        """Return the loss of the batch that was summarised, (K,)."""
        G = self._targets(summary.means.shape[-1], summary.means)
        pairs, norms = self._factors(summary.count)
        return pairs * sum(moments.pair_terms(summary, G)) + norms * summary.diagonal

    def gradient_given(
        self,
        summary: Moments,
        embeddings: Tensor,
        labels: Labels,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """Return the gradient for some rows of the batch that was summarised."""
        with torch.no_grad():
            batch, G = self._weigh(self.check_batch(embeddings, labels, sample_weight))
            with _full_precision(embeddings):
                gradient = moments.gradient(*batch, G, summary, *self._factors(summary.count))
        return gradient.view(embeddings.shape).to(embeddings.dtype)

    def _evaluate(self, batch: Batch, *, with_gradient: bool) -> tuple[Tensor, Tensor | None]:
        n = batch.labels.shape[1]
        batch, G = self._weigh(batch)
        with _full_precision(batch.embeddings):
            if self.process_group is None and 0 < n <= PAIRWISE_LIMIT:
                return pairwise_value_and_grad(*batch, G, *self._factors(n))
            summary = self.reduce_over_ranks(moments.class_moments(*batch, G))
            value, gradient = self.value_of(summary), None
            if with_gradient:
                factors = self._factors(summary.count)
                gradient = moments.gradient(*batch, G, summary, *factors)
        return value, gradient

    def _differentiable_gradient(
        self, embeddings: Tensor, labels: Labels, sample_weight: Tensor | None
    ) -> Tensor:
        if self.process_group is not None:
            raise CoCoError(
                "second derivatives (create_graph=True) are not available with a process_group; "
                "build the loss without it for them"
            )
        batch, G = self._weigh(self.check_batch(embeddings, labels, sample_weight))
        factors = self._factors(batch.labels.shape[1])
        gradient = moments.differentiable_gradient(*batch, G, *factors)
        return gradient.view(embeddings.shape)

    def _weigh(self, batch: Batch) -> tuple[Batch, Tensor]:
        """Return the batch, class weights multiplied in, and the target similarities G."""
        h, y, w = batch
        if self.priors is not None:
            class_weight = self.constant("class_weight", self._class_weight, h)[y]
            batch = Batch(h, y, class_weight if w is None else class_weight * w)
        return batch, self._targets(h.shape[-1], h)

    def _targets(self, embedding_dim: int, like: Tensor) -> Tensor:
        """Return the target similarities G as a tensor (C, C); checked once per dimension."""

        def make() -> NDArray[np.float64]:
            if isinstance(self.similarity, str):
                return named_similarity(self.similarity, self.n_classes, embedding_dim)
            return validate_similarity(self.similarity, self.n_classes, embedding_dim)

        return self.constant(("similarity", embedding_dim), make, like)

    def _class_weight(self) -> NDArray[np.float64]:
        # NOTE[PAPER]: the balanced loss is printed without normalisation. "sum" is as printed;
        # "mean" scales the weights so that uniform priors give the plain loss exactly.
        assert self.priors is not None
        scale = self.n_classes if self.reduction == "mean" else 1
        return np.asarray((scale * self.priors) ** -0.5)

    def _factors(self, n: int) -> tuple[float, float]:
        """Return the factors of P and D.

        (P - D) / (N (N+1)) + D / N = P / (N (N+1)) + D / (N+1), and likewise for the sum over
        unordered pairs, (P - D) / 2 + D = P / 2 + D / 2.
        """
        # NOTE[PAPER]: 2 / (N (N+1)) over N (N-1) / 2 pairs, as printed.
        # NOTE[PAPER]: of the two "equivalent" losses, the definition: (|h|^2 - 1)^2 in D.
        if self.reduction == "sum":
            return 0.5, 0.5
        return 1 / (n * (n + 1)), 1 / (n + 1)


class BalancedCoCoLoss(CoCoLoss):
    r"""CoCo loss in which a pair of samples weighs :math:`(\pi_i \pi_j)^{-1/2}`.

    Equation (balanced-coco-loss) of the paper: rare classes count as much as frequent ones.
    With ``reduction="mean"`` and uniform priors it is :class:`CoCoLoss`.

    Parameters
    ----------
    priors : array of shape (C,)
        Share of each class in the training data (not in the batch).
    similarity, reduction, process_group
        As for :class:`CoCoLoss`.

    Examples
    --------
    >>> import torch
    >>> from cocoloss import BalancedCoCoLoss
    >>> loss = BalancedCoCoLoss(priors=[0.9, 0.1])
    >>> loss(torch.tensor([[0.5], [-1.0]]), torch.tensor([0, 1]))
    tensor(0.2951)
    """

    def __init__(
        self,
        priors: ArrayLike | Tensor,
        *,
        similarity: str | ArrayLike | Tensor = "simplex",
        reduction: str = "mean",
        process_group: Any = None,
    ) -> None:
        priors = check_priors(priors)
        super().__init__(
            check_n_classes(priors.size),
            similarity=similarity,
            priors=priors,
            reduction=reduction,
            process_group=process_group,
        )


class _ClosedForm(torch.autograd.Function):
    """Lets autograd use the gradient that is known in closed form.

    The gradient is computed with the value, while the batch is at hand; ``backward`` only scales
    it. Second derivatives differentiate the same formula, written without in-place steps.
    """

    @staticmethod
    def forward(
        ctx: Any,
        embeddings: Tensor,
        loss: CoCoLoss,
        labels: Labels,
        sample_weight: Tensor | None,
    ) -> Tensor:
        with_gradient = ctx.needs_input_grad[0]
        batch = loss.check_batch(embeddings, labels, sample_weight)
        value, gradient = loss._evaluate(batch, with_gradient=with_gradient)  # noqa: SLF001 - two halves of one thing
        ctx.save_for_backward(embeddings, gradient)
        ctx.call = (loss, labels, sample_weight)
        return drop_model_axis(value, embeddings)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None, None]:
        embeddings, gradient = ctx.saved_tensors
        loss, labels, sample_weight = ctx.call
        if torch.is_grad_enabled():  # backward(create_graph=True)
            gradient = loss._differentiable_gradient(embeddings, labels, sample_weight)  # noqa: SLF001
        if embeddings.dim() == 3:
            grad_output = grad_output[:, None, None]
        # DistributedDataParallel divides the summed gradients by the number of ranks.
        scale = grad_output * world_size(loss.resolved_group())
        return gradient.view(embeddings.shape).to(embeddings.dtype) * scale, None, None, None


def _full_precision(embeddings: Tensor) -> AbstractContextManager[object]:
    """Keep autocast out: products in half precision would undo the accumulation in float32."""
    device = embeddings.device.type
    if torch.is_autocast_enabled(device):
        return torch.autocast(device, enabled=False)
    return nullcontext()
