"""The pair sum from the Gram matrix of the batch: cheaper than the moments for small batches."""

import torch
from torch import Tensor

from cocoloss.losses.precision import without_autocast


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
    M_ij = <h_i, h_j> - g_{y_i y_j}.

    Parameters
    ----------
    h : Tensor of shape (K, n, q)
    y : Tensor of shape (K, n)
    w : Tensor of shape (K, n) or None for ones
    G : Tensor of shape (C, C)
    pair_factor, norm_factor : float
        Factors of the two sums.

    Returns
    -------
    value : Tensor of shape (K,)
    gradient : Tensor of shape (K, n, q)
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
