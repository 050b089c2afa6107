r"""The pair sum from class moments: exact, at linear cost, on any number of chunks or machines.

With the mass :math:`m_a` and the weighted mean :math:`\mu_a` of each class,
:math:`W = \sum_i w_i (h_i - \mu_{y_i})(h_i - \mu_{y_i})^T` and
:math:`B = \sum_a m_a \mu_a \mu_a^T`,

.. math:: \sum_{ij} w_i w_j (\langle h_i, h_j\rangle - g_{y_i y_j})^2
          = \sum_{ab} m_a m_b (\langle\mu_a, \mu_b\rangle - g_{ab})^2 + 2\,tr(BW) + tr(WW).

Every term is non-negative, so nothing cancels when the classes have nearly collapsed.
The derivation is in docs/theory.md. For small batches the Gram matrix of the batch is cheaper, so
the sum is here in that form, too. This module knows the formulas, and no loss by name.

Classes are target points that are one-hot, in the metric G: their second moment is the diagonal of
the masses, and the class means are the regression of the embeddings on them. Only
:func:`class_moments`, :func:`merge` and the rows of G that :func:`gradient` picks rely on that.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce, wraps
from itertools import repeat
from typing import Any, NamedTuple, ParamSpec, TypeVar

import torch
from torch import Tensor, distributed

from cocoloss.networks import TINY_NORM

# Rows that are worked on at once: a block of embeddings then stays in the cache between the steps,
# 2x faster at a million rows.
BLOCK = 8192

# Rows whose class means are right to 1e-6 in float32 by a plain running sum. More rows that are
# nearly equal round the same way at every step, which moved the means by as much as the samples
# stray from them. Samples that differ by 1e-4 break the habit for a while, equal weights do not.
LONG_SUM = 2048
LONG_WEIGHTED_SUM = 128

P = ParamSpec("P")
R = TypeVar("R")


def without_autocast(function: Callable[P, R]) -> Callable[P, R]:
    """Run a formula in full precision, on the device of its first argument.

    Products in half would undo the sums in float32; wrapped formulas let no caller forget it.
    """

    @wraps(function)
    def in_full_precision(*args: P.args, **kwargs: P.kwargs) -> R:
        device = args[0].device.type  # type: ignore[attr-defined]
        if not torch.is_autocast_enabled(device):
            return function(*args, **kwargs)
        with torch.autocast(device, enabled=False):
            return function(*args, **kwargs)

    return in_full_precision


@dataclass(frozen=True)
class Moments:
    """All that the loss and its gradient need to know about a batch, for each of K models."""

    mass: Tensor  # (K, C)     summed weights of a class
    means: Tensor  # (K, C, q)  zero where a class is absent
    scatter: Tensor  # (K, q, q)  W
    diagonal: Tensor  # (K,)       D = sum_i w_i^2 (|h_i|^2 - g_ii)^2
    count: int  # N, rows

    @property
    def device(self) -> torch.device:
        """Where the batch was."""
        return self.mass.device

    @cached_property
    def sums(self) -> Tensor:
        """Weighted sums of the classes, m_a mu_a, (K, C, q)."""
        return self.mass.unsqueeze(-1) * self.means

    @cached_property
    def between(self) -> Tensor:
        """B = sum_a m_a mu_a mu_a^T, (K, q, q)."""
        return torch.bmm(self.means.mT, self.sums)


class Components(NamedTuple):
    """What the pair sum is made of; each of shape (K,), or () for one model.

    :meth:`CoCoLoss.components` gives them on the scale of the loss. The rest of the loss,
    ``loss - sum(components)``, is D / (N + 1): the norms of single samples.
    """

    nc2: Tensor  # the class means do not have the target Gram matrix yet
    nc1_between: Tensor  # 2 tr(BW): samples stray from their mean along the class means
    nc1_within: Tensor  # tr(WW): samples stray from their mean at all


@without_autocast
def class_moments(h: Tensor, y: Tensor, w: Tensor | None, G: Tensor) -> Moments:
    """Summarise a batch h (K, n, q) with labels y (K, n) and weights w (K, n), None for ones.

    Of the target similarities G (C, C) only the diagonal is needed here.
    """
    return reduce(merge, (_block_moments(*block, G) for block in _blocks(h, y, w)))


def _block_moments(h: Tensor, y: Tensor, w: Tensor | None, G: Tensor) -> Moments:
    K, n, q = h.shape
    C = G.shape[0]
    rows = _model_rows(y, C)
    weights = h.new_ones(1).expand(K * n) if w is None else w.reshape(-1)
    weighted = h if w is None else h * w.unsqueeze(-1)
    mass = h.new_zeros(K * C).index_add_(0, rows, weights)
    divisor = _at_least_tiny(mass).unsqueeze(-1)
    sums = h.new_zeros(K * C, q).index_add_(0, rows, weighted.reshape(-1, q))
    means = sums / divisor
    d = means.index_select(0, rows).view(K, n, q).sub_(h)
    weighted = d if w is None else d * w.unsqueeze(-1)
    W = torch.bmm(d.mT, weighted)
    if n > (LONG_SUM if w is None else LONG_WEIGHTED_SUM):
        # What the d of a class sum to is how far its mean is off. They are small, so that this
        # sum is right, and W about the true means is W less m (mean - mu)(mean - mu)^T.
        left = h.new_zeros(K * C, q).index_add_(0, rows, weighted.reshape(-1, q))
        off = left / divisor
        means = means - off
        W = torch.baddbmm(W, off.view(K, C, q).mT, left.view(K, C, q), alpha=-1)
    r = _norm_residual(h, y, w, G)
    return Moments(mass.view(K, C), means.view(K, C, q), W, torch.linalg.vecdot(r, r), n)


@without_autocast
def merge(a: Moments, b: Moments) -> Moments:
    """Return the moments of two batches together (the pairwise update of Chan et al.)."""
    mass = a.mass + b.mass
    share = (b.mass / _at_least_tiny(mass)).unsqueeze(-1)  # (K, C, 1); 0 where a class is absent
    delta = b.means - a.means
    between = (a.mass.unsqueeze(-1) * share) * delta
    return Moments(
        mass,
        torch.addcmul(a.means, share, delta),
        torch.baddbmm(a.scatter + b.scatter, delta.mT, between),
        a.diagonal + b.diagonal,
        a.count + b.count,
    )


@without_autocast
def all_reduce(local: Moments, group: Any) -> Moments:
    """Return the moments of the global batch, in C (q + 1) + q^2 numbers per model.

    (Two more if q < 3, where the symmetric W leaves no room for N and D.)
    The class sums travel first, because the scatter must be taken about the global means. One rank
    has nothing to exchange, and then N need not be read back from the device.
    """
    if distributed.get_world_size(group) == 1:
        return local
    K, _, q = local.means.shape
    sums = torch.cat([local.mass.unsqueeze(-1), local.sums], dim=-1)
    distributed.all_reduce(sums, group=group)
    mass = sums[..., 0]
    means = sums[..., 1:] / _at_least_tiny(mass).unsqueeze(-1)

    away = local.means - means
    scatter = local.scatter + away.mT @ (local.mass.unsqueeze(-1) * away)
    # W is symmetric, so half of its q^2 places are free: they carry N and D.
    message = scatter.triu()
    scalars = torch.stack([torch.full_like(local.diagonal, local.count), local.diagonal], dim=-1)
    spare = torch.tril_indices(q, q, -1, device=scatter.device)[:, :2]  # q < 3 has not two of them
    if spare.shape[1] == scalars.shape[-1]:
        message[:, spare[0], spare[1]] = scalars
        distributed.all_reduce(message, group=group)
        scalars = message[:, spare[0], spare[1]]
    else:
        flat = torch.cat([message.view(K, -1), scalars], dim=-1)
        distributed.all_reduce(flat, group=group)
        message, scalars = flat[:, :-2].view(K, q, q), flat[:, -2:]
    upper = message.triu()
    scatter = upper + upper.triu(1).mT
    return Moments(mass, means, scatter, scalars[:, 1], round(float(scalars[0, 0])))


@without_autocast
def pair_terms(m: Moments, G: Tensor) -> Components:
    """Return the three parts of the pair sum P."""
    off_target = torch.baddbmm(G.expand(m.mass.shape[0], -1, -1), m.means, m.means.mT, beta=-1)
    nc2 = torch.bmm(off_target.square_(), m.mass.unsqueeze(-1)).squeeze(-1)  # (K, C)
    W, B = m.scatter.flatten(1), m.between.flatten(1)
    vecdot = torch.linalg.vecdot
    # tr(BW) is not negative, but its rounding can be when W lies off the span of the classes.
    return Components(vecdot(nc2, m.mass), (2 * vecdot(B, W)).clamp_min_(0), vecdot(W, W))


@without_autocast
def gradient(
    h: Tensor,
    y: Tensor,
    w: Tensor | None,
    G: Tensor,
    m: Moments,
    pair_factor: float,
    norm_factor: float,
) -> Tensor:
    """Return the gradient of ``pair_factor * P + norm_factor * D`` for rows of the batch of ``m``.

    dP/dh_i = 4 w_i (A h_i - t_{y_i}) with A = W + B and t_c = sum_b g_cb m_b mu_b, and
    dD/dh_i = 4 w_i^2 (|h_i|^2 - g_ii) h_i: a row needs its own embedding and no other.
    """
    q = h.shape[-1]
    A = m.scatter + m.between  # (K, q, q)
    t = torch.matmul(G, m.sums).view(-1, q)  # (K * C, q)
    out = torch.empty_like(h)
    for (block, labels, weight), grad in zip(_blocks(h, y, w), _split(out), strict=True):
        target = t.index_select(0, _model_rows(labels, G.shape[0])).view(block.shape)
        torch.baddbmm(target, block, A, beta=-4 * pair_factor, alpha=4 * pair_factor, out=grad)
        r = _norm_residual(block, labels, weight, G)
        grad.addcmul_(block, r.unsqueeze(-1), value=4 * norm_factor)
        if weight is not None:
            grad.mul_(weight.unsqueeze(-1))
    return out


@without_autocast
def differentiable_gradient(
    h: Tensor, y: Tensor, w: Tensor | None, G: Tensor, pair_factor: float, norm_factor: float
) -> Tensor:
    """Return the same gradient as a function of ``h`` that autograd can differentiate again."""
    K, _, q = h.shape
    weight = h.new_ones(()) if w is None else w.unsqueeze(-1)  # (K, n, 1)
    weighted = weight * h
    rows = _model_rows(y, G.shape[0])
    sums = h.new_zeros(K * G.shape[0], q)
    sums = sums.index_add(0, rows, weighted.reshape(-1, q)).view(K, -1, q)
    t = (G @ sums).reshape(-1, q)[rows].view_as(h)
    r = h.square().sum(-1, keepdim=True) - G.diagonal()[y].unsqueeze(-1)
    of_pairs: Tensor = pair_factor * (h @ (h.mT @ weighted) - t)
    return 4 * weight * (of_pairs + norm_factor * weight * r * h)


def directions(h: Tensor) -> tuple[Tensor, Tensor]:
    """Return embeddings (..., q) divided by their norms, and one over these, (..., 1).

    A row of zeros has no direction: both are zero there.
    """
    norms = torch.linalg.vector_norm(h, dim=-1, keepdim=True)
    inverse = torch.where(norms > TINY_NORM, 1 / norms.clamp_min(TINY_NORM), 0.0)
    return h * inverse, inverse


def _norm_residual(h: Tensor, y: Tensor, w: Tensor | None, G: Tensor) -> Tensor:
    """Return w_i (|h_i|^2 - g_ii), (K, n)."""
    r: Tensor = torch.linalg.vector_norm(h, dim=-1).square_()  # in one pass, unlike a dot product
    r.sub_(G.diagonal().expand(len(y), -1).gather(1, y))
    return r if w is None else r.mul_(w)


def _model_rows(y: Tensor, n_classes: int) -> Tensor:
    """Return where each sample's class stands in a table of all models' classes, (K * n,)."""
    K = y.shape[0]
    if K > 1:
        y = y + n_classes * torch.arange(K, device=y.device).unsqueeze(-1)
    return y.reshape(-1)


def _split(x: Tensor) -> tuple[Tensor, ...]:
    """Cut (K, n, ...) into blocks of rows."""
    step = max(1, BLOCK // x.shape[0])
    return (x,) if x.shape[1] <= step else x.split(step, dim=1)  # type: ignore[no-untyped-call]


def _blocks(
    h: Tensor, y: Tensor, w: Tensor | None
) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
    weights = repeat(None) if w is None else _split(w)
    return zip(_split(h), _split(y), weights, strict=False)  # None goes on for ever


def _at_least_tiny(mass: Tensor) -> Tensor:
    """Return a divisor that leaves an absent class at zero instead of NaN."""
    return mass.clamp_min(torch.finfo(mass.dtype).tiny)


def gram_is_cheaper(n_models: int, n: int, q: int, n_classes: int) -> bool:
    """Say whether the Gram matrix of the batch costs less than its moments.

    Multiplications and passes over memory, weighed as bench/losses.py finds them; the moments
    also take about twice as many calls, whatever the size.
    """
    gram = n_models * n**2 * (q + 22)
    by_moments = n_models * (n * q * (q + 45) + n_classes**2 * (q / 2 + 15)) + 3.5e6
    return gram < by_moments


@without_autocast
def pairwise_value_and_grad(
    h: Tensor, y: Tensor, w: Tensor | None, G: Tensor, pair_factor: float, norm_factor: float
) -> tuple[Tensor, Tensor]:
    """Return ``pair_factor * P + norm_factor * D`` and its gradient.

    P sums w_i w_j M_ij^2 over all ordered pairs and D sums w_i^2 M_ii^2, with
    M_ij = <h_i, h_j> - g_{y_i y_j}. Shapes are those of :func:`class_moments`.
    """
    M = torch.baddbmm(_target_gram(G, y), h, h.mT, beta=-1)  # (K, n, n)
    ratio = norm_factor / pair_factor
    if w is None:
        flat, own = M.flatten(1), M.diagonal(dim1=1, dim2=2)
        P, D = torch.linalg.vecdot(flat, flat), torch.linalg.vecdot(own, own)
        own *= 1 + ratio  # in place: the diagonal counts in P and in D
        return torch.add(P, D, alpha=ratio).mul_(pair_factor), torch.bmm(M, h).mul_(4 * pair_factor)
    weighted = M * w.unsqueeze(1)
    P = torch.linalg.vecdot(w, torch.linalg.vecdot(M, weighted))
    own = weighted.diagonal(dim1=1, dim2=2)
    D = torch.linalg.vecdot(own, own)
    own *= 1 + ratio
    gradient = torch.bmm(weighted, h).mul_(w.unsqueeze(-1)).mul_(4 * pair_factor)
    return torch.add(P, D, alpha=ratio).mul_(pair_factor), gradient


def _target_gram(G: Tensor, y: Tensor) -> Tensor:
    """Return g_{y_i y_j} for every pair of a batch, (K, n, n)."""
    K, n = y.shape
    if K == 1:
        return G.index_select(0, y[0]).index_select(1, y[0]).unsqueeze(0)
    # A product with a one-hot matrix picks the same numbers 5x faster than indexing does.
    one_hot = G.new_zeros(K, n, G.shape[0]).scatter_(2, y.unsqueeze(-1), 1)
    return torch.bmm(G.index_select(0, y.reshape(-1)).view(K, n, -1), one_hot.mT)
