"""The CoCo loss, plain and balanced: collapse each class to a point, contrast the classes."""

from numbers import Real
from typing import Any, Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from cocoloss._checks import (
    check_balance,
    check_integer,
    check_option,
    check_priors,
    check_truth,
)
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
    constant_in_graphs,
    drop_model_axis,
    is_traced,
    out_of_graph,
    read_points,
    world_size,
)
from cocoloss.losses.moments import (
    CALLS_IN_FEW_STEPS,
    CALLS_IN_STACKS,
    Components,
    Moments,
    Rows,
    gram_is_cheaper,
)
from cocoloss.losses.points import PointRows, SoftRows, in_full

TARGETS = ("classes", "points")


class CoCoLoss(EmbeddingLoss):
    r"""Squared difference between inner products of embeddings and target similarities.

    .. math:: \frac{2}{N(N+1)} \sum_{i<j} (\langle h_i, h_j\rangle - g_{y_i y_j})^2
              + \frac{1}{N} \sum_i (\langle h_i, h_i\rangle - g_{y_i y_i})^2

    of embeddings divided by their norm, :math:`h_i = x_i / |x_i|`. It is computed exactly at a cost
    that is linear in the batch size: see docs/theory.md. With ``normalize=False``, where
    :math:`h_i = x_i`, it is equation (coco-loss) of the paper.

    Parameters
    ----------
    n_classes : int
        Number of classes C; labels are 0, ..., C - 1, or soft: probabilities of shape (n, C), whose
        loss is the expected one under labels drawn from them. A batch may lack some classes. For
        points it is left out.
    targets : {"classes", "points"}
        What comes with the embeddings. "classes": labels. "points": any target points v, of shape
        (n, p), with :math:`\langle v_i, v_j\rangle` in place of :math:`g_{y_i y_j}`; with
        ``normalize=False`` unless they have norm one.
    similarity : {"simplex", "welch", "orthoplex", "packing"} or array of shape (C, C)
        Target similarity of each pair of classes. "simplex" is the paper's: 1 within a class and
        -1/(C-1) between classes, for embeddings of at least C - 1 dimensions; "packing" spreads
        the classes as well as fewer dimensions allow; "orthoplex" makes them orthogonal; a
        positive semi-definite matrix of your own says which classes are alike.
    priors : array of shape (C,), optional
        Share of each class in the training data. If given, the classes are balanced: a pair
        weighs :math:`(\pi_i \pi_j)^{-1/2}`, as in equation (balanced-coco-loss).
    normalize : bool, default=True
        Whether embeddings are divided by their norm first; gradients go through the division. A row
        of zeros has no direction, and no gradient. False is the paper's form, in which a network
        has to learn the norm: slow, and often wrong from a usual initialisation. Use it to repeat
        the paper, for a similarity whose diagonal is not one, for a single dimension, if the
        network divides by the norm itself, or with ``norm_weight=0``, to read posteriors.
    norm_weight : float, default=1.0
        What the second sum weighs: 1 is the paper's, and 0 leaves the pairs, whose minimiser is the
        conditional mean of the target points (docs/theory.md, section 1). Where norms are divided
        out the second sum is zero, whatever it weighs.
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
    >>> loss(5 * corners[labels], labels) < 1e-12  # zero on the simplex, whatever the norms
    tensor(True)
    >>> paper = CoCoLoss(n_classes=3, normalize=False)  # in which norms must be one
    >>> paper(corners[labels], labels) < 1e-12 < paper(5 * corners[labels], labels)
    tensor(True)
    >>> points = CoCoLoss(targets="points")  # the same, from the points themselves
    >>> points(5 * corners[labels], corners[labels]) < 1e-12
    tensor(True)
    """

    balance = 0.5  # exponent of the weights, where there are priors

    def __init__(
        self,
        n_classes: int | None = None,
        *,
        targets: str = "classes",
        similarity: str | ArrayLike | Tensor = "simplex",
        priors: ArrayLike | Tensor | None = None,
        normalize: bool = True,
        norm_weight: float = 1.0,
        **options: Unpack[LossOptions],
    ) -> None:
        self.targets = check_option(targets, "targets", TARGETS)
        if self.targets == "points":
            if n_classes is not None or priors is not None or not _is_simplex(similarity):
                raise CoCoError(
                    "target points come with each call, so that n_classes, similarity and priors "
                    "have no meaning for targets='points'; leave them out"
                )
        elif n_classes is None:
            raise CoCoError(
                "n_classes is missing: CoCoLoss(n_classes=10) takes labels from 0 to 9, and "
                "CoCoLoss(targets='points') takes target points"
            )
        super().__init__(n_classes, **options)
        self.similarity: str | NDArray[np.float64]
        if isinstance(similarity, str):
            self.similarity = check_option(similarity, "similarity", SIMILARITIES)
        else:
            self.similarity = validate_similarity(similarity, self.n_classes)
        check_class_order(priors, "priors")
        self.priors = None if priors is None else check_priors(priors, self.n_classes)
        self.normalize = check_truth(normalize, "normalize")
        if not isinstance(norm_weight, Real) or not 0 <= float(norm_weight) < np.inf:
            raise CoCoError(f"norm_weight must be a number at least 0, not {norm_weight!r}")
        self.norm_weight: float = float(norm_weight)
        lengths = 1.0 if isinstance(self.similarity, str) else self.similarity.diagonal()
        if self.normalize and not np.allclose(lengths, 1):
            raise CoCoError(
                "embeddings are divided by their norm, but the diagonal of the similarity asks for "
                "norms that are not one; use normalize=False, or a diagonal of ones"
            )

    @out_of_graph
    def forward(
        self, embeddings: Tensor, labels: Labels, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Return the loss of a batch; see :meth:`EmbeddingLoss.forward`.

        Sample weights multiply: a pair weighs w_i w_j, and N stays the number of samples.
        """
        if is_traced():
            return self._in_plain_steps(embeddings, labels, sample_weight)
        value: Tensor = _ClosedForm.apply(embeddings, self, labels, sample_weight)  # type: ignore[no-untyped-call]
        return value

    def _in_plain_steps(
        self, embeddings: Tensor, labels: Labels, sample_weight: Tensor | None
    ) -> Tensor:
        """Return the loss as steps that torch.func can transform and a compiler can trace.

        Numbers are not looked at. The moments are the same; autograd finds the gradient itself.
        """
        if self.process_group is not None:
            raise CoCoError(
                "torch.func, torch.export and a whole graph of torch.compile are not available "
                "with a process_group; build the loss without it for them"
            )
        batch = self.check_batch(embeddings, labels, sample_weight)
        if not batch.embeddings.shape[1]:
            raise CoCoError("the batch is empty: a loss needs at least one sample")
        value = self.value_of(self._rows(batch).moments())
        return drop_model_axis(value.to(batch.embeddings), embeddings)

    def evaluate(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return values and gradients; see :meth:`EmbeddingLoss.evaluate`.

        A batch of one model may come without its model axis; the answer then has none either.
        """
        if batch.labels.is_floating_point():  # points or soft labels
            if batch.embeddings.dim() == 2:
                value, gradient = self.evaluate(
                    Batch(*(None if x is None else x[None] for x in batch))  # type: ignore[arg-type]
                )
                return value[0], gradient[0]
            rows = self._rows(batch)
            summary = self.reduce_over_ranks(moments.batch_moments(rows))
            gradient = moments.gradient(rows, summary, *self._factors(summary.count))
            return self.value_of(summary).to(batch.embeddings), gradient.to(batch.embeddings)
        K = len(batch.embeddings) if batch.embeddings.dim() == 3 else 1
        n, q = batch.embeddings.shape[-2:]
        alone = self.process_group is None and n > 0
        plain = alone and batch.embeddings.dim() == 2
        weighted = batch.weight is not None or self.priors is not None
        few = plain and moments.few_steps_suffice(n, weighted=weighted)
        assert self.n_classes is not None
        calls = CALLS_IN_FEW_STEPS if few else CALLS_IN_STACKS
        by_gram = alone and gram_is_cheaper(K, n, q, self.n_classes, calls)
        if few or (plain and by_gram):
            return moments.in_few_steps(self._rows(batch), *self._factors(n), by_gram=by_gram)
        if batch.embeddings.dim() == 2:
            h, y, w = batch
            value, gradient = self.evaluate(Batch(h[None], y[None], None if w is None else w[None]))
            return value[0], gradient[0]
        rows = self._rows(batch)
        if by_gram:
            return moments.pairwise_value_and_grad(rows, *self._factors(n))
        summary = self.reduce_over_ranks(moments.batch_moments(rows))
        gradient = moments.gradient(rows, summary, *self._factors(summary.count))
        return self.value_of(summary), gradient

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
            scaled = ((factor * term).to(batch.embeddings) for term in terms)
            return Components(*(drop_model_axis(term, embeddings) for term in scaled))

    def read_targets(self, labels: Labels) -> Tensor:
        """Return labels or points; see :meth:`EmbeddingLoss.read_targets`."""
        return read_points(labels) if self.n_classes is None else super().read_targets(labels)

    def n_terms(self, batch_size: int) -> int:
        """Return the number of ordered pairs, samples with themselves included."""
        return check_integer(batch_size, "batch_size", minimum=0) ** 2

    def extra_repr(self) -> str:
        """Say what ``print(loss)`` shows."""
        kind = self.similarity if isinstance(self.similarity, str) else "a matrix"
        balanced = "" if self.priors is None else f", balance={self.balance:g}"
        what = f", similarity={kind!r}{balanced}" if self.targets == "classes" else ""
        return f"{super().extra_repr()}{what}, normalize={self.normalize}" + (
            "" if self.norm_weight == 1 else f", norm_weight={self.norm_weight:g}"
        )

    def summarise(self, batch: Batch) -> Moments:
        """Return the moments of this rank's rows: all that value and gradient need to know."""
        return moments.batch_moments(self._rows(batch))

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
        nc2, nc1_between, nc1_within = moments.pair_terms(summary, self._targets(summary.means))
        pairs = nc2 + nc1_between + nc1_within
        if summary.surplus is not None:
            pairs = pairs + summary.surplus
        return pair_factor * pairs + norm_factor * summary.diagonal

    def gradient_given(self, summary: Moments, batch: Batch) -> Tensor:
        """Return the gradient (K, n, q) for some rows of the batch that was summarised."""
        return moments.gradient(self._rows(batch), summary, *self._factors(summary.count))

    def differentiable_gradient(self, batch: Batch) -> Tensor:
        """Return the gradient as a function that autograd can differentiate again."""
        if self.process_group is not None:
            raise CoCoError(
                "second derivatives (create_graph=True) are not available with a process_group; "
                "build the loss without it for them"
            )
        factors = self._factors(batch.labels.shape[1])
        return moments.differentiable_gradient(self._rows(batch), *factors)

    def _rows(self, batch: Batch) -> Rows:
        """Return the batch as the formulas take it: class weights within those of the rows."""
        h, y, w = batch
        if y.is_floating_point():
            return self._rows_of_coordinates(batch)
        if self.priors is not None:
            class_weight = self._weight_of_classes(h.dtype, h.device)[y]
            w = class_weight if w is None else class_weight * w
        make = Rows.on_the_sphere if self.normalize else Rows
        return make(h, y, w, self._targets(h))

    def _rows_of_coordinates(self, batch: Batch) -> Rows:
        """Return points or soft labels as the formulas take them, in float64."""
        h, y, w = batch
        h = in_full(h)
        y, w = y.to(h), None if w is None else w.to(h)
        norms = None
        if self.normalize:
            on_the_sphere = Rows.on_the_sphere(h, y, w, y)
            h, norms = on_the_sphere.h, on_the_sphere.norms
        if self.targets == "points":
            return PointRows(h, y, w, self._targets(h, y.shape[-1]), norms)
        y = y / y.sum(-1, keepdim=True)  # which is one but for the digits of float32
        rows = SoftRows(h, y, w, self._targets(h), norms)
        if self.priors is None:
            return rows
        return rows.with_class_weight(self._weight_of_classes(h.dtype, h.device))

    def _targets(self, like: Tensor, n_coordinates: int | None = None) -> Tensor:
        """Return the target similarities G as a tensor (C, C); checked once per dimension.

        Points have their own inner product.
        """
        p = like.shape[-2] if n_coordinates is None else n_coordinates  # of moments: (K, p, q)
        p = p if self.targets == "points" else self.n_classes
        return self._target_matrix(p, like.shape[-1], like.dtype, like.device)

    @constant_in_graphs
    def _target_matrix(self, p: int, q: int, dtype: torch.dtype, device: torch.device) -> Tensor:
        def make() -> NDArray[np.float64]:
            if self.normalize and q == 1:
                raise CoCoError(
                    "in one dimension an embedding that is divided by its norm is a sign, which "
                    "has no gradient; give the network two outputs or more, or use normalize=False"
                )
            if self.targets == "points":
                return np.eye(p)
            if isinstance(self.similarity, str):
                return named_similarity(self.similarity, p, q)
            return validate_similarity(self.similarity, p, q)

        return self.constant(("similarity", p, q), make, dtype, device)

    @constant_in_graphs
    def _weight_of_classes(self, dtype: torch.dtype, device: torch.device) -> Tensor:
        return self.constant("class_weight", self._class_weight, dtype, device)

    def _class_weight(self) -> NDArray[np.float64]:
        # NOTE[PAPER]: the balanced loss is printed without normalisation. "sum" is as printed;
        # "mean" scales the weights so that uniform priors give the plain loss exactly.
        assert self.priors is not None
        assert self.n_classes is not None
        scale = self.n_classes if self.reduction == "mean" else 1
        return np.asarray((scale * self.priors) ** -self.balance)

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


def _is_simplex(similarity: object) -> bool:
    return isinstance(similarity, str) and similarity == "simplex"


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
        wanted = ctx.needs_input_grad[0]
        batch = loss.check_batch(embeddings, labels, sample_weight, model_axis=not wanted)
        if not wanted:
            summary = loss.reduce_over_ranks(loss.summarise(batch))
            return drop_model_axis(loss.value_of(summary).to(batch.embeddings), embeddings)
        value, gradient = loss.evaluate(batch)
        ctx.save_for_backward(embeddings, gradient, batch.labels, batch.weight)
        ctx.loss = loss
        return value

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None, None]:
        """Return the gradient, scaled by what comes from above."""
        embeddings, gradient, labels, weight = ctx.saved_tensors
        loss = ctx.loss
        if torch.is_grad_enabled():  # backward(create_graph=True)
            batch = loss.check_batch(embeddings, labels, weight, validate=False)
            gradient = loss.differentiable_gradient(batch).view(embeddings.shape)
        scale = grad_output[:, None, None] if grad_output.dim() else grad_output
        if loss.process_group is not None:
            # DistributedDataParallel divides the summed gradients by the number of ranks.
            scale = scale * world_size(loss.resolved_group())
        # Half precision comes last: a GradScaler's factor must meet the gradient in float32.
        return (gradient * scale).to(embeddings.dtype), None, None, None


class BalancedCoCoLoss(CoCoLoss):
    r"""CoCo loss in which a pair of samples weighs :math:`(\pi_i \pi_j)^{-s}`, by default s = 1/2.

    Equation (balanced-coco-loss) of the paper: rare classes count as much as frequent ones.
    With ``reduction="mean"`` and uniform priors it is :class:`CoCoLoss`.

    Parameters
    ----------
    priors : array of shape (C,)
        Share of each class in the training data (not in the batch), in the order 0, ..., C - 1.
    balance : float, default=0.5
        The exponent s: 0 is :class:`CoCoLoss`, 0.5 the paper's, and at 1 all classes have the same
        mass. What lies between buys nothing (docs/results/mixture.md).
    similarity, normalize, norm_weight, **options
        As for :class:`CoCoLoss`.

    Examples
    --------
    >>> import torch
    >>> from cocoloss import BalancedCoCoLoss
    >>> loss = BalancedCoCoLoss(priors=[0.9, 0.1])
    >>> loss(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1]))
    tensor(0.5556)
    """

    def __init__(
        self,
        priors: ArrayLike | Tensor,
        *,
        balance: float = 0.5,
        similarity: str | ArrayLike | Tensor = "simplex",
        normalize: bool = True,
        norm_weight: float = 1.0,
        **options: Unpack[LossOptions],
    ) -> None:
        self.balance = check_balance(balance)
        super().__init__(
            len(check_priors(priors)),
            similarity=similarity,
            priors=priors,
            normalize=normalize,
            norm_weight=norm_weight,
            **options,
        )
