r"""Rows whose targets are not one-hot: points of any kind, and soft labels.

Both have coordinates for each row, and give the same moments as classes do. With points
:math:`v_i`, :math:`F = \sum w v v^T`, :math:`M = (\sum w h v^T) F^+` and :math:`r = h - M v`,

.. math:: \sum_{ij} w_i w_j (\langle h_i, h_j\rangle - \langle v_i, v_j\rangle)^2
          = tr[(M^T M - I) F (M^T M - I) F] + 2\,tr(BR) + tr(RR)

with :math:`R = \sum w r r^T` and :math:`B = M F M^T`: the form of the classes, whose F is diagonal.
Soft labels are classes that count in parts. All of it is summed in float64 (:func:`in_full`), which
costs a pass and keeps seven digits of float32 embeddings near collapse.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from cocoloss.losses.moments import Moments, Rows, at_least_tiny, pseudo_inverse


def in_full(h: Tensor) -> Tensor:
    """Return embeddings in float64, except where a device does not know it."""
    return h if h.device.type == "mps" else h.double()


@dataclass(frozen=True)
class PointRows(Rows):
    """Rows whose targets are points, y of shape (K, n, p); G is the identity."""

    def pick(self, table: Tensor) -> Tensor:
        """Return v_i^T of a table (K, p, q)."""
        return self.y @ table

    def add_up(self, values: Tensor) -> Tensor:
        """Return sum_i v_i x_i^T, (K, p, q)."""
        return self.y.mT @ values

    def weighted(self, x: Tensor) -> Tensor:
        """Return w_i x_i."""
        return x if self.w is None else x * self.w.unsqueeze(-1)

    def squares(self) -> Tensor:
        """Return |h_i|^2, (K, n): one where it was divided out."""
        return self.h.square().sum(-1) if self.norms is None else torch.ones_like(self.h[..., 0])

    def norm_force(self, squares: Tensor, _pair_factor: float, norm_factor: float) -> Tensor:
        """Return w_i (|h_i|^2 - |v_i|^2), times its factor."""
        r = squares - self.y.square().sum(-1)
        return norm_factor * (r if self.w is None else r * self.w)

    def add_norm_force_(self, grad: Tensor, _pair_factor: float, norm_factor: float) -> None:
        """Add 4 c_i h_i to the gradient of each row."""
        force = self.norm_force(self.squares(), _pair_factor, norm_factor)
        grad.addcmul_(self.h, force.unsqueeze(-1), value=4)

    def moments(self) -> Moments:
        """Regress the embeddings on the points, and summarise what is left."""
        h, v = self.h, self.y
        weighted = self.weighted(v)
        F, T = weighted.mT @ v, weighted.mT @ h
        inverse = pseudo_inverse(F)
        M = inverse @ T  # (K, p, q)
        r = h - v @ M
        again = inverse @ (weighted.mT @ r)  # a second projection takes what rounding left
        r = r - v @ again
        own = self.norm_force(self.squares(), 1.0, 1.0)
        return Moments(F, M + again, T, r.mT @ self.weighted(r), own.square().sum(-1), h.shape[1])


@dataclass(frozen=True)
class SoftRows(PointRows):
    """Rows with soft labels, y of shape (K, n, C): probabilities that sum to one.

    With labels a drawn from them, independently for each row, everything is an expectation. The
    pairs are those of classes in which row i counts with w_i p_ia. For a row with itself there is
    but one label: D sums w_i^2 E_a (|h_i|^2 - g_aa)^2, while P, summed by moments, has
    w_i^2 E_a E_b (|h_i|^2 - g_ab)^2 in its diagonal. The difference of the two is the surplus.
    """

    # (K, n, C): what the norm of row i weighs as one of class a, beside w_i^2. It is p_ia, unless
    # classes have weights of their own, which count once in a pair and twice in a norm.
    own: Tensor | None = None

    def with_class_weight(self, class_weight: Tensor) -> "SoftRows":
        """Let class a weigh c_a: row i counts with w_i p_ia c_a."""
        share = self.y * class_weight
        total = share.sum(-1, keepdim=True)  # not zero: probabilities sum to one
        own = share * class_weight / total.square()
        weight = total.squeeze(-1)
        weight = weight if self.w is None else self.w * weight
        return replace(self, y=share / total, w=weight, own=own)

    def blocks(self) -> Iterator[Rows]:
        """Cut the rows, and what their norms weigh."""
        start = 0
        for block in super().blocks():
            stop = start + block.h.shape[1]
            yield block if self.own is None else replace(block, own=self.own[:, start:stop])  # type: ignore[call-arg]
            start = stop

    def norm_force(self, squares: Tensor, _pair_factor: float, norm_factor: float) -> Tensor:
        """Return that of the norms, and of the surplus, which goes with the pairs."""
        own = self.y if self.own is None else self.own
        as_one = squares * own.sum(-1) - own @ self.G.diagonal()
        as_two = squares - ((self.y @ self.G) * self.y).sum(-1)
        force = (_pair_factor + norm_factor) * as_one - _pair_factor * as_two
        return force if self.w is None else force * self.w

    def moments(self) -> Moments:
        """Summarise the rows as classes in which each counts in parts."""
        h, p, G = self.h, self.y, self.G
        weighted = self.weighted(p)  # w_i p_ia
        mass = weighted.sum(1)
        sums = weighted.mT @ h
        means = sums / at_least_tiny(mass).unsqueeze(-1)
        # Rows stray from the mean of the class means under their own label, and the class means
        # from that: sum_i w_i (diag(p_i) - p_i p_i^T) has rows that sum to zero, so its diagonal
        # is known from the rest, and small where labels are nearly hard.
        d = h - p @ means
        mixed = weighted.mT @ p
        mixed = mixed - torch.diag_embed(mixed.diagonal(dim1=1, dim2=2))
        spread = torch.diag_embed(mixed.sum(-1)) - mixed
        W = d.mT @ self.weighted(d) + means.mT @ spread @ means

        s = self.squares().unsqueeze(-1)
        own = p if self.own is None else self.own
        as_one = (own * (s - G.diagonal()).square()).sum(-1)
        g = ((p @ G) * p).sum(-1)  # E_a E_b g_ab
        variance = ((p @ G.square()) * p).sum(-1) - g.square()
        as_two = (s.squeeze(-1) - g).square() + variance
        square = 1.0 if self.w is None else self.w.square()
        D, S = (square * as_one).sum(-1), (square * (as_one - as_two)).sum(-1)
        return Moments(mass, means, sums, W, D, h.shape[1], S)
