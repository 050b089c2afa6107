"""The CoCo loss, plain and balanced: collapse each class to a point, contrast the classes."""

from numbers import Real
from typing import Any, Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from cocoloss._checks import check_integer, check_option, check_priors
from cocoloss.exceptions import CoCoError
from cocoloss.geometry import SIMILARITIES, validate_similarity
from cocoloss.geometry import similarity as named_similarity
from cocoloss.losses import moments
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
from cocoloss.losses.moments import Components, Moments, gram_is_cheaper, pairwise_value_and_grad


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
    normalize : bool, default=False
        Whether embeddings are divided by their norm first; gradients go through the division. False
        is the paper's form, in which a network has to learn the norm: slow, and wrong from a usual
        initialisation. A row of zeros has no direction, and no gradient.
    norm_weight : float, default=1.0
        What the second sum weighs: 1 is the paper's, and 0 leaves the pairs, whose minimiser is the
        conditional mean of the target points (docs/theory.md, section 8).
    **options
        ``reduction``, ``process_group`` and ``validate`` of :class:`EmbeddingLoss`. "mean" is the
        normalisation above; with ``priors``, "sum" is the balanced loss as printed.

    Examples
    --------
    >>> import torch
    >>> from cocoloss import CoCoLoss
    >>> loss = CoCoLoss(n_classes=3)
    >>> corners = torch.tensor([[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]])
    >>> labels = torch.tensor([0, 1, 2, 1])
    >>> loss(corners[labels], labels) < 1e-12  # zero on the simplex
    tensor(True)
    >>> CoCoLoss(n_classes=3, normalize=True)(5 * corners[labels], labels) < 1e-12
    tensor(True)
    """

    def __init__(
        self,
        n_classes: int,
        *,
        similarity: str | ArrayLike | Tensor = "simplex",
        priors: ArrayLike | Tensor | None = None,
        normalize: bool = False,
        norm_weight: float = 1.0,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(n_classes, **options)
        self.similarity: str | NDArray[np.float64]
        if isinstance(similarity, str):
            self.similarity = check_option(similarity, "similarity", SIMILARITIES)
        else:
            self.similarity = validate_similarity(similarity, self.n_classes)
        check_class_order(priors, "priors")
        self.priors = None if priors is None else check_priors(priors, self.n_classes)
        self.normalize = bool(normalize)
        if not isinstance(norm_weight, Real) or not 0 <= float(norm_weight) < np.inf:
            raise CoCoError(f"norm_weight must be a number at least 0, not {norm_weight!r}")
        self.norm_weight: float = float(norm_weight)
        lengths = 1.0 if isinstance(self.similarity, str) else self.similarity.diagonal()
        if self.normalize and not np.allclose(lengths, 1):
            raise CoCoError(
                "normalize=True gives every embedding a norm of one, but the diagonal of the "
                "similarity asks for others; use normalize=False, or a diagonal of ones"
            )

    @out_of_graph
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
        K, n, q = batch.embeddings.shape
        if self.process_group is None and n > 0 and gram_is_cheaper(K, n, q, self.n_classes):
            value, gradient = pairwise_value_and_grad(*self._weigh(batch), *self._factors(n))
            return value, self._through_the_norm(gradient, batch.embeddings)
        summary = self.reduce_over_ranks(self.summarise(batch))
        return self.value_of(summary), self.gradient_given(summary, batch)

    def components(
        self, embeddings: Tensor, labels: Labels, sample_weight: Tensor | None = None
    ) -> Components:
        """Return what remains to be learnt: of the class geometry (NC2), of the collapse (NC1).

        Returns
        -------
        Components
            Each of shape () or (K,), without graph.
        """
        with torch.no_grad():
            batch = self.check_batch(embeddings, labels, sample_weight)
            summary = self.reduce_over_ranks(self.summarise(batch))
            terms = moments.pair_terms(summary, self._targets(summary.means))
            factor, _ = self._factors(summary.count)
            return Components(*(drop_model_axis(factor * term, embeddings) for term in terms))

    def n_terms(self, batch_size: int) -> int:
        """Return the number of ordered pairs, samples with themselves included."""
        return check_integer(batch_size, "batch_size", minimum=0) ** 2

    def extra_repr(self) -> str:
        """Say what ``print(loss)`` shows."""
        kind = self.similarity if isinstance(self.similarity, str) else "a matrix"
        balanced = "" if self.priors is None else ", balanced"
        sphere = ", normalize=True" if self.normalize else ""
        return f"{super().extra_repr()}, similarity={kind!r}{balanced}{sphere}"

    def summarise(self, batch: Batch) -> Moments:
        """Return the moments of this rank's rows: all that value and gradient need to know."""
        return moments.class_moments(*self._weigh(batch))

    def reduce_over_ranks(self, local: Moments) -> Moments:
        """Return the moments of the global batch from those of this rank."""
        group = self.resolved_group()
        summary = local if group is None else moments.all_reduce(local, group)
        if summary.count == 0:
            raise CoCoError("the batch is empty: a loss needs at least one sample")
        return summary

    def value_of(self, summary: Moments) -> Tensor:
        """Return the loss of the batch that was summarised, (K,)."""
        pair_factor, norm_factor = self._factors(summary.count)
        terms = moments.pair_terms(summary, self._targets(summary.means))
        return pair_factor * sum(terms) + norm_factor * summary.diagonal

    def gradient_given(self, summary: Moments, batch: Batch) -> Tensor:
        """Return the gradient (K, n, q) for some rows of the batch that was summarised."""
        gradient = moments.gradient(*self._weigh(batch), summary, *self._factors(summary.count))
        return self._through_the_norm(gradient, batch.embeddings)

    def differentiable_gradient(self, batch: Batch) -> Tensor:
        """Return the gradient as a function that autograd can differentiate again."""
        if self.process_group is not None:
            raise CoCoError(
                "second derivatives (create_graph=True) are not available with a process_group; "
                "build the loss without it for them"
            )
        factors = self._factors(batch.labels.shape[1])
        gradient = moments.differentiable_gradient(*self._weigh(batch), *factors)
        return self._through_the_norm(gradient, batch.embeddings)

    def _through_the_norm(self, gradient: Tensor, embeddings: Tensor) -> Tensor:
        """Return the gradient by embeddings, given that by what was made of them.

        d(h/|h|): only what is orthogonal to the direction counts, divided by the norm.
        """
        if not self.normalize:
            return gradient
        directions, inverse_norms = moments.directions(embeddings)
        along = torch.linalg.vecdot(gradient, directions).unsqueeze(-1)
        across: Tensor = gradient - along * directions
        return across * inverse_norms

    def _weigh(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
        """Return embeddings, labels, weights with those of the classes in them, and G."""
        h, y, w = batch
        if self.normalize:
            h, _ = moments.directions(h)
        if self.priors is not None:
            class_weight = self.constant("class_weight", self._class_weight, h)[y]
            w = class_weight if w is None else class_weight * w
        return h, y, w, self._targets(h)

    def _targets(self, like: Tensor) -> Tensor:
        """Return the target similarities G as a tensor (C, C); checked once per dimension."""
        q = like.shape[-1]

        def make() -> NDArray[np.float64]:
            if isinstance(self.similarity, str):
                return named_similarity(self.similarity, self.n_classes, q)
            return validate_similarity(self.similarity, self.n_classes, q)

        return self.constant(("similarity", q), make, like)

    def _class_weight(self) -> NDArray[np.float64]:
        # NOTE[PAPER]: the balanced loss is printed without normalisation. "sum" is as printed;
        # "mean" scales the weights so that uniform priors give the plain loss exactly.
        assert self.priors is not None
        scale = self.n_classes if self.reduction == "mean" else 1
        return np.asarray((scale * self.priors) ** -0.5)

    def _factors(self, n: int) -> tuple[float, float]:
        """Return the factors of P and D.

        (P - D) / (N (N+1)) + D / N = P / (N (N+1)) + D / (N+1), and likewise for the sum over
        unordered pairs, (P - D) / 2 + D = P / 2 + D / 2. Where the norms weigh more or less than
        one, the difference is another part of D / N or of D.
        """
        more = self.norm_weight - 1
        # NOTE[PAPER]: 2 / (N (N+1)) over N (N-1) / 2 pairs, as printed.
        # NOTE[PAPER]: of the two "equivalent" losses, the definition: (|h|^2 - 1)^2 in D.
        if self.reduction == "sum":
            return 0.5, 0.5 + more
        return 1 / (n * (n + 1)), 1 / (n + 1) + more / n


class _ClosedForm(torch.autograd.Function):
    """Lets autograd use the gradient that is known in closed form, and that comes with the value.

    Second derivatives differentiate the same formula, written without in-place steps.
    """

    @staticmethod
    def forward(
        ctx: Any,
        embeddings: Tensor,
        loss: CoCoLoss,
        labels: Labels,
        sample_weight: Tensor | None,
    ) -> Tensor:
        """Return the value, and keep the gradient if somebody will ask for it."""
        batch = loss.check_batch(embeddings, labels, sample_weight)
        if not ctx.needs_input_grad[0]:
            summary = loss.reduce_over_ranks(loss.summarise(batch))
            return drop_model_axis(loss.value_of(summary), embeddings)
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
            batch = loss.check_batch(embeddings, labels, weight, validate=False)
            gradient = loss.differentiable_gradient(batch)
        # DistributedDataParallel divides the summed gradients by the number of ranks.
        scale = grad_output.reshape(-1, 1, 1) * world_size(loss.resolved_group())
        # Half precision comes last: a GradScaler's factor must meet the gradient in float32.
        scaled = (gradient * scale).view(embeddings.shape)
        return scaled.to(embeddings.dtype), None, None, None


class BalancedCoCoLoss(CoCoLoss):
    r"""CoCo loss in which a pair of samples weighs :math:`(\pi_i \pi_j)^{-1/2}`.

    Equation (balanced-coco-loss) of the paper: rare classes count as much as frequent ones.
    With ``reduction="mean"`` and uniform priors it is :class:`CoCoLoss`.

    Parameters
    ----------
    priors : array of shape (C,)
        Share of each class in the training data (not in the batch), in the order 0, ..., C - 1.
    similarity, normalize, norm_weight, **options
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
        normalize: bool = False,
        norm_weight: float = 1.0,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(
            len(check_priors(priors)),
            similarity=similarity,
            priors=priors,
            normalize=normalize,
            norm_weight=norm_weight,
            **options,
        )
