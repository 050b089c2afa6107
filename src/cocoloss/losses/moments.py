r"""The pair sum from class moments: exact, at linear cost, on any number of chunks or machines.

With the mass :math:`m_a` and the weighted mean :math:`\mu_a` of each class,
:math:`W = \sum_i w_i (h_i - \mu_{y_i})(h_i - \mu_{y_i})^T` and
:math:`B = \sum_a m_a \mu_a \mu_a^T`,

.. math:: \sum_{ij} w_i w_j (\langle h_i, h_j\rangle - g_{y_i y_j})^2
          = \sum_{ab} m_a m_b (\langle\mu_a, \mu_b\rangle - g_{ab})^2 + 2\,tr(BW) + tr(WW).

Every term is non-negative, so nothing cancels when the classes have nearly collapsed.
The derivation is in docs/theory.md. For small batches the Gram matrix of the batch is cheaper, so
the sum is here in that form, too. This module knows the formulas, and no loss by name.

Classes are target points that are one-hot, in the metric G: their second moment F is the diagonal
of the masses, and the class means are the regression of the embeddings on them. So one class of
moments serves any target points; those that are not one-hot are in :mod:`cocoloss.losses.points`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce, wraps
from itertools import repeat
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar

import torch
from torch import Tensor, distributed

from cocoloss.networks import NO_DIRECTION, TINY_NORM

# Rows that are worked on at once: a block of embeddings then stays in the cache between the steps,
# 2x faster at a million rows.
BLOCK = 8192

# Rows whose class means are right to 1e-6 in float32 by a plain running sum. More rows that are
# nearly equal round the same way at every step, which moved the means by as much as the samples
# stray from them. Samples that differ by 1e-4 break the habit for a while, equal weights do not.
LONG_SUM = 2048
LONG_WEIGHTED_SUM = 128

# What the calls that moments take beyond those of a Gram matrix cost, in multiplications: in stacks
# of models, and in :func:`in_few_steps`.
CALLS_IN_STACKS, CALLS_IN_FEW_STEPS = 3.5e6, 1.2e6

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


def remembered(function: Callable[[Any], Tensor]) -> Any:
    """Compute a property once: cached_property without its lock, which no compiler can enter."""
    name = f"_{function.__name__}"

    @wraps(function)
    def get(self: Any) -> Tensor:
        if torch.compiler.is_compiling():
            return function(self)
        known = self.__dict__
        if name not in known:
            known[name] = function(self)
        found: Tensor = known[name]
        return found

    return property(get)


@dataclass(frozen=True)
class Rows:
    """Rows of a batch as the formulas take them: K models, n rows, q dimensions, C classes."""

    h: Tensor  # (K, n, q)
    y: Tensor  # (K, n)
    w: Tensor | None  # (K, n)     None for ones
    G: Tensor  # (C, C)     target similarities
    # (K, n, 1) if h was divided by it: gradients are then those by what h was before, and the norms
    # of rows are no part of what is summed, because they are one.
    norms: Tensor | None = None

    @classmethod
    def on_the_sphere(cls, h: Tensor, y: Tensor, w: Tensor | None, G: Tensor) -> Self:
        """Divide rows by their norms; a row of zeros, which has no direction, stays zero."""
        norms = torch.linalg.vector_norm(h, dim=-1, keepdim=True)
        norms = torch.threshold(norms, TINY_NORM, NO_DIRECTION)
        return cls(h / norms, y, w, G, norms)

    @property
    def device(self) -> torch.device:
        """Where the batch is."""
        return self.h.device

    @remembered
    def classes(self) -> Tensor:
        """Where each row's class stands in a table of all models' classes, (K * n,)."""
        y, K = self.y, len(self.y)
        if K > 1:
            y = y + self.G.shape[0] * torch.arange(K, device=y.device).unsqueeze(-1)
        return y.reshape(-1)

    @remembered
    def norm_residual(self) -> Tensor:
        """w_i (|h_i|^2 - g_ii), (K, n)."""
        lengths: Tensor = torch.linalg.vector_norm(self.h, dim=-1)  # one pass, unlike a product
        r = lengths.square()  # not in place: torch.func may ask for the gradient
        r.sub_(self.G.diagonal().expand(len(self.y), -1).gather(1, self.y))
        return r if self.w is None else r.mul_(self.w)

    def pick(self, table: Tensor) -> Tensor:
        """Return for each row what a table (K, C, q) holds for its class, (K, n, q)."""
        q = table.shape[-1]
        picked: Tensor = table.view(-1, q).index_select(0, self.classes)
        return picked.view(*self.y.shape, q)  # q, not -1: a shard may be empty

    def add_up(self, values: Tensor) -> Tensor:
        """Return the sums of values (K, n, q) over each class, (K, C, q), differentiably."""
        K, _, q = values.shape
        sums = values.new_zeros(K * self.G.shape[0], q)
        return sums.index_add(0, self.classes, values.reshape(-1, q)).view(K, -1, q)

    def norm_force(self, squares: Tensor, _pair_factor: float, norm_factor: float) -> Tensor:
        """Return c_i, (K, n), of the gradient 4 w_i c_i h_i by the norms, given |h_i|^2."""
        r = squares - self.G.diagonal()[self.y]
        return norm_factor * (r if self.w is None else r * self.w)

    def add_norm_force_(self, grad: Tensor, _pair_factor: float, norm_factor: float) -> None:
        """Add 4 c_i h_i to the gradient of each row."""
        grad.addcmul_(self.h, self.norm_residual.unsqueeze(-1), value=4 * norm_factor)

    def moments(self) -> "Moments":
        """Summarise the rows, all at once."""
        return _block_moments(self)

    def blocks(self) -> Iterator["Rows"]:
        """Cut the rows, so that a block stays in the cache between the steps."""
        if len(_split(self.y)) == 1:
            yield self
            return
        parts = [repeat(None) if x is None else _split(x) for x in (self.w, self.norms)]
        for h, y, w, norms in zip(_split(self.h), _split(self.y), *parts, strict=False):
            yield replace(self, h=h, y=y, w=w, norms=norms)  # None goes on for ever


@dataclass(frozen=True)
class Moments:
    """All that the loss and its gradient need to know about a batch, for each of K models.

    For points, which are not one-hot, the mass is a matrix, F = sum_i w_i v_i v_i^T, and the means
    are the regression of the embeddings on the points, F^+ T.
    """

    mass: Tensor  # (K, C)     summed weights of a class; or F, (K, p, p)
    means: Tensor  # (K, C, q)  zero where a class is absent
    sums: Tensor  # (K, C, q)  T = sum_i w_i v_i h_i^T: m_a mu_a for classes
    scatter: Tensor  # (K, q, q)  W
    diagonal: Tensor  # (K,)       D = sum_i w_i^2 (|h_i|^2 - g_ii)^2
    count: int  # N, rows
    # (K,) for soft labels: D less the diagonal of P, where a row meets a copy of another label
    surplus: Tensor | None = None

    @property
    def device(self) -> torch.device:
        """Where the batch was."""
        return self.mass.device

    @remembered
    def between(self) -> Tensor:
        """B = sum_a m_a mu_a mu_a^T, (K, q, q)."""
        return torch.bmm(self.means.mT, weigh(self.mass, self.means))

    def scatter_about(self, means: Tensor) -> Tensor:
        """Return W about other means: the rows stray by what they did and by (mean - other) v."""
        away = self.means - means
        weighed = weigh(self.mass, away)
        if self.mass.dim() == 2:
            return self.scatter + away.mT @ weighed
        # F^+ leaves directions out in which hardly a row has anything: there the residuals are not
        # orthogonal to the points.
        rest = self.sums - self.mass @ self.means
        cross = away.mT @ rest
        return self.scatter + away.mT @ weighed + cross + cross.mT


def weigh(mass: Tensor, x: Tensor) -> Tensor:
    """Return F x for x of shape (K, C, q)."""
    return mass.unsqueeze(-1) * x if mass.dim() == 2 else mass @ x


def means_of(mass: Tensor, sums: Tensor) -> Tensor:
    """Return F^+ T: for classes the mean, zero where a class is absent."""
    if mass.dim() == 2:
        return sums / at_least_tiny(mass).unsqueeze(-1)
    return pseudo_inverse(mass) @ sums


def pseudo_inverse(F: Tensor) -> Tensor:
    """Return F^+ of symmetric matrices (K, p, p), without directions that are but rounding."""
    on_apple = F.device.type == "mps"  # which knows neither float64 nor eigenvalues
    values, vectors = torch.linalg.eigh((F.cpu() if on_apple else F).double())
    tolerance = 1e-6 if on_apple else 1e-13  # of the largest, by the precision F was summed in
    kept = values > tolerance * values[..., -1:]
    inverse = torch.where(kept, 1 / torch.where(kept, values, 1), 0)
    inverted: Tensor = (vectors * inverse.unsqueeze(-2)) @ vectors.mT
    return inverted.to(F.dtype).to(F.device)


class Components(NamedTuple):
    """What the pair sum is made of; each of shape (K,), or () for one model.

    :meth:`CoCoLoss.components` gives them on the scale of the loss. The rest of the loss,
    ``loss - sum(components)``, is D / (N + 1): the norms of single samples.
    """

    nc2: Tensor  # the class means do not have the target Gram matrix yet
    nc1_between: Tensor  # 2 tr(BW): samples stray from their mean along the class means
    nc1_within: Tensor  # tr(WW): samples stray from their mean at all


@without_autocast
def batch_moments(rows: Rows) -> Moments:
    """Summarise rows. Of the target similarities only the diagonal is needed here."""
    return reduce(merge, (block.moments() for block in rows.blocks()))


def _block_moments(rows: Rows) -> Moments:
    h, w, classes = rows.h, rows.w, rows.classes
    K, n, q = h.shape
    C = rows.G.shape[0]
    weights = h.new_ones(1).expand(K * n) if w is None else w.reshape(-1)
    weighted = h if w is None else h * w.unsqueeze(-1)
    mass = h.new_zeros(K * C).index_add_(0, classes, weights)
    divisor = at_least_tiny(mass).unsqueeze(-1)
    sums = h.new_zeros(K * C, q).index_add_(0, classes, weighted.reshape(-1, q))
    means = sums / divisor
    d = means.index_select(0, classes).view(K, n, q).sub_(h)
    weighted = d if w is None else d * w.unsqueeze(-1)
    W = torch.bmm(d.mT, weighted)
    if n > (LONG_SUM if w is None else LONG_WEIGHTED_SUM):
        # What the d of a class sum to is how far its mean is off. They are small, so that this
        # sum is right, and W about the true means is W less m (mean - mu)(mean - mu)^T.
        left = h.new_zeros(K * C, q).index_add_(0, classes, weighted.reshape(-1, q))
        off = left / divisor
        means = means - off
        W = torch.baddbmm(W, off.view(K, C, q).mT, left.view(K, C, q), alpha=-1)
    if rows.norms is not None:
        diagonal = h.new_zeros(K)
    else:
        diagonal = torch.linalg.vecdot(rows.norm_residual, rows.norm_residual)
    mass, means = mass.view(K, C), means.view(K, C, q)
    return Moments(mass, means, weigh(mass, means), W, diagonal, n)


@without_autocast
def merge(a: Moments, b: Moments) -> Moments:
    """Return the moments of two batches together (the pairwise update of Chan et al.)."""
    mass = a.mass + b.mass
    diagonal, count = a.diagonal + b.diagonal, a.count + b.count
    surplus = None if a.surplus is None or b.surplus is None else a.surplus + b.surplus
    if mass.dim() == 3:
        sums = a.sums + b.sums
        means = means_of(mass, sums)
        scatter = a.scatter_about(means) + b.scatter_about(means)
        return Moments(mass, means, sums, scatter, diagonal, count, surplus)
    share = (b.mass / at_least_tiny(mass)).unsqueeze(-1)  # (K, C, 1); 0 where a class is absent
    delta = b.means - a.means
    between = (a.mass.unsqueeze(-1) * share) * delta
    means = torch.addcmul(a.means, share, delta)
    scatter = torch.baddbmm(a.scatter + b.scatter, delta.mT, between)
    return Moments(mass, means, weigh(mass, means), scatter, diagonal, count, surplus)


@without_autocast
def all_reduce(local: Moments, group: Any) -> Moments:
    """Return the moments of the global batch, in C (q + 1) + q^2 numbers per model.

    (Two or three more if q < 3, where the symmetric W leaves no room for N and D. Points of p
    coordinates take p (q + p) + q^2.)
    The class sums travel first, because the scatter must be taken about the global means. One rank
    has nothing to exchange, and then N need not be read back from the device.
    """
    if distributed.get_world_size(group) == 1:
        return local
    K, _, q = local.means.shape
    one_hot = local.mass.dim() == 2
    mass = local.mass.unsqueeze(-1) if one_hot else local.mass
    both = torch.cat([mass, local.sums], dim=-1)
    distributed.all_reduce(both, group=group)
    mass, sums = both[..., :-q], both[..., -q:]
    mass = mass.squeeze(-1) if one_hot else mass
    means = means_of(mass, sums)
    scatter = local.scatter_about(means)
    # W is symmetric, so half of its q^2 places are free: they carry N and D.
    message = scatter.triu()
    few = [torch.full_like(local.diagonal, local.count), local.diagonal]
    if local.surplus is not None:
        few.append(local.surplus)
    scalars = torch.stack(few, dim=-1)
    n_few = len(few)
    spare = torch.tril_indices(q, q, -1, device=scatter.device)[:, :n_few]  # q < 3 has too few
    if spare.shape[1] == scalars.shape[-1]:
        message[:, spare[0], spare[1]] = scalars
        distributed.all_reduce(message, group=group)
        scalars = message[:, spare[0], spare[1]]
    else:
        flat = torch.cat([message.view(K, -1), scalars], dim=-1)
        distributed.all_reduce(flat, group=group)
        message, scalars = flat[:, :-n_few].view(K, q, q), flat[:, -n_few:]
    upper = message.triu()
    scatter = upper + upper.triu(1).mT
    if one_hot:
        sums = weigh(mass, means)
    surplus = None if local.surplus is None else scalars[:, 2]
    return Moments(mass, means, sums, scatter, scalars[:, 1], round(float(scalars[0, 0])), surplus)


@without_autocast
def pair_terms(m: Moments, G: Tensor) -> Components:
    """Return the three parts of the pair sum P."""
    off_target = torch.baddbmm(G.expand(m.mass.shape[0], -1, -1), m.means, m.means.mT, beta=-1)
    vecdot = torch.linalg.vecdot
    if m.mass.dim() == 2:
        nc2 = torch.bmm(off_target.square(), m.mass.unsqueeze(-1)).squeeze(-1)  # (K, C)
        nc2 = vecdot(nc2, m.mass)
    else:  # tr(E F E F), which is not negative, but whose rounding can be
        weighed = off_target @ m.mass
        nc2 = vecdot(weighed.flatten(1), weighed.mT.flatten(1)).clamp_min_(0)
    W, B = m.scatter.flatten(1), m.between.flatten(1)
    # tr(BW) is not negative, but its rounding can be when W lies off the span of the classes.
    return Components(nc2, (2 * vecdot(B, W)).clamp_min_(0), vecdot(W, W))


@without_autocast
def gradient(rows: Rows, m: Moments, pair_factor: float, norm_factor: float) -> Tensor:
    """Return the gradient of ``pair_factor * P + norm_factor * D`` for rows of the batch of ``m``.

    dP/dh_i = 4 w_i (A h_i - t_{y_i}) with A = W + B and t_c = sum_b g_cb m_b mu_b, and
    dD/dh_i = 4 w_i^2 (|h_i|^2 - g_ii) h_i: a row needs its own embedding and no other.
    """
    A = m.scatter + m.between  # (K, q, q)
    t = torch.matmul(rows.G, m.sums)  # (K, C, q)

    def of(block: Rows) -> Tensor:
        grad = block.pick(t)
        grad.baddbmm_(block.h, A, beta=-4 * pair_factor, alpha=4 * pair_factor)
        if block.norms is None:
            block.add_norm_force_(grad, pair_factor, norm_factor)
        if block.w is not None:
            grad.mul_(block.w.unsqueeze(-1))
        return grad if block.norms is None else _before_the_division_(grad, block.h, block.norms)

    first, *others = rows.blocks()
    if not others:
        return of(first)
    out = torch.empty_like(rows.h)
    for block, place in zip((first, *others), _split(out), strict=True):
        place.copy_(of(block))
    return out


@without_autocast
def differentiable_gradient(rows: Rows, pair_factor: float, norm_factor: float) -> Tensor:
    """Return the same gradient as a function of the rows that autograd can differentiate again."""
    h = rows.h
    weight = h.new_ones(()) if rows.w is None else rows.w.unsqueeze(-1)  # (K, n, 1)
    weighted = weight * h
    t = rows.pick(rows.G @ rows.add_up(weighted))
    of_pairs: Tensor = pair_factor * (h @ (h.mT @ weighted) - t)
    if rows.norms is not None:
        grad = 4 * weight * of_pairs
        across: Tensor = grad - (grad * h).sum(-1, keepdim=True) * h
        return across / rows.norms
    force = rows.norm_force(h.square().sum(-1), pair_factor, norm_factor)
    return 4 * weight * (of_pairs + force.unsqueeze(-1) * h)


def _before_the_division_(grad: Tensor, h: Tensor, norms: Tensor) -> Tensor:
    """Turn the gradient by h = x / |x| into that by x, in place.

    Only what is orthogonal to the direction counts, divided by the norm.
    """
    along = (grad * h).sum(-1, keepdim=True)
    return grad.addcmul_(h, along, value=-1).div_(norms)


def _split(x: Tensor) -> tuple[Tensor, ...]:
    """Cut (K, n, ...) into blocks of rows."""
    step = max(1, BLOCK // x.shape[0])
    return (x,) if x.shape[1] <= step else x.split(step, dim=1)  # type: ignore[no-untyped-call]


def at_least_tiny(mass: Tensor) -> Tensor:
    """Return a divisor that leaves an absent class at zero instead of NaN."""
    return mass.clamp_min(torch.finfo(mass.dtype).tiny)


def gram_is_cheaper(n_models: int, n: int, q: int, n_classes: int, calls: float) -> bool:
    """Say whether the Gram matrix of the batch costs less than its moments.

    Multiplications and passes over memory, weighed as bench/losses.py finds them; ``calls`` is what
    the more calls of the moments cost, whatever the size.
    """
    gram = n_models * n**2 * (q + 22)
    by_moments = n_models * (n * q * (q + 45) + n_classes**2 * (q / 2 + 15))
    return gram < by_moments + calls


@without_autocast
def pairwise_value_and_grad(
    rows: Rows, pair_factor: float, norm_factor: float
) -> tuple[Tensor, Tensor]:
    """Return ``pair_factor * P + norm_factor * D`` and its gradient.

    P sums w_i w_j M_ij^2 over all ordered pairs and D sums w_i^2 M_ii^2, with
    M_ij = <h_i, h_j> - g_{y_i y_j}.
    """
    h, w = rows.h, rows.w
    M = torch.baddbmm(_target_gram(rows.G, rows.y), h, h.mT, beta=-1)  # (K, n, n)
    if w is None:
        weighted, flat = M, M.flatten(1)
        value = torch.linalg.vecdot(flat, flat)
    else:
        weighted = M * w.unsqueeze(1)
        value = torch.linalg.vecdot(w, torch.linalg.vecdot(M, weighted))
    if rows.norms is None:
        own, ratio = weighted.diagonal(dim1=1, dim2=2), norm_factor / pair_factor
        value = torch.add(value, torch.linalg.vecdot(own, own), alpha=ratio)
        own *= 1 + ratio  # in place: the diagonal counts in P and in D
    grad = torch.bmm(weighted, h)
    if w is not None:
        grad.mul_(w.unsqueeze(-1))
    grad.mul_(4 * pair_factor)
    if rows.norms is not None:
        grad = _before_the_division_(grad, h, rows.norms)
    return value.mul_(pair_factor), grad


def few_steps_suffice(n: int, *, weighted: bool) -> bool:
    """Say whether moments keep their digits :func:`in_few_steps`, which adds up in plain sums."""
    return n <= (LONG_WEIGHTED_SUM if weighted else LONG_SUM)


@without_autocast
def in_few_steps(
    rows: Rows, pair_factor: float, norm_factor: float, *, by_gram: bool
) -> tuple[Tensor, Tensor]:
    """Return ``pair_factor * P + norm_factor * D`` and its gradient for one model, (n, q).

    What a plain training loop asks for. A step of torch costs some microseconds, more than what it
    computes in small batches, so the formulas are here once more: on matrices instead of stacks of
    one, and without the parts that several chunks, ranks or models need.
    """
    h, y, w, G, norms = rows.h, rows.y, rows.w, rows.G, rows.norms
    if by_gram:
        M = torch.addmm(G.index_select(0, y).index_select(1, y), h, h.T, beta=-1)
        weighted = M if w is None else M * w
        flat = weighted.view(-1)
        P = torch.dot(flat, flat if w is None else weighted.T.reshape(-1))
        if norms is None:
            own = weighted.diagonal()
            D = torch.dot(own, own)
            own *= 1 + norm_factor / pair_factor  # in place: the diagonal counts in P and in D
        grad = torch.addmm(h, weighted, h, beta=0, alpha=4 * pair_factor)
    else:
        weights = h.new_ones(len(y)) if w is None else w
        weighted = h if w is None else h * w.unsqueeze(-1)
        mass = h.new_zeros(len(G)).index_add_(0, y, weights)
        sums = h.new_zeros(len(G), h.shape[1]).index_add_(0, y, weighted)
        means = sums / at_least_tiny(mass).unsqueeze(-1)
        d = means.index_select(0, y).sub_(h)
        W = torch.mm(d.T, d if w is None else d * w.unsqueeze(-1))
        B = torch.mm(means.T, sums)
        # With E = <mu_a, mu_b> - g_ab, P = sum_ab m_a m_b E_ab^2 + tr(W (W + 2B)).
        E = torch.addmm(G, means, means.T, beta=-1).mul_(mass.unsqueeze(-1))
        P = (E * E.T).sum().add_((torch.add(W, B, alpha=2) * W).sum())
        P.clamp_min_(0)  # it is not negative, but its rounding can be
        grad = torch.mm(G, sums).index_select(0, y)
        grad.addmm_(h, W.add_(B), beta=-4 * pair_factor, alpha=4 * pair_factor)
        if norms is None:
            r = torch.linalg.vector_norm(h, dim=-1).square_().sub_(G.diagonal().index_select(0, y))
            if w is not None:
                r.mul_(w)
            D = torch.dot(r, r)
            grad.addcmul_(h, r.unsqueeze(-1), value=4 * norm_factor)
    if w is not None:
        grad.mul_(w.unsqueeze(-1))
    value = P.mul_(pair_factor)
    if norms is None:
        return value.add_(D, alpha=norm_factor), grad
    return value, _before_the_division_(grad, h, norms)


def _target_gram(G: Tensor, y: Tensor) -> Tensor:
    """Return g_{y_i y_j} for every pair of a batch, (K, n, n)."""
    K, n = y.shape
    if K == 1:
        labels = y[0]
        return G.index_select(0, labels).index_select(1, labels).unsqueeze(0)
    # A product with a one-hot matrix picks the same numbers 5x faster than indexing does.
    one_hot = G.new_zeros(K, n, G.shape[0]).scatter_(2, y.unsqueeze(-1), 1)
    return torch.bmm(G.index_select(0, y.reshape(-1)).view(K, n, -1), one_hot.mT)
