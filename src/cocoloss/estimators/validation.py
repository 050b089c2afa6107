"""When to stop: how well a stack of networks does on the rows that it holds out."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# More rows than this add nothing to class means and a covariance.
MOST_FITTED = 2000
TEMPERATURES = torch.logspace(-1, 2, 16)
FLOOR = 1e-3  # of the variance, relative to the embedding's own


class HeldOutLoss:
    """Class-balanced log loss on held-out rows, at the temperature that suits it best.

    Embeddings are judged by Gaussians with one covariance fitted to training rows; logits are
    judged as they are. All models of a stack are judged at once.

    Parameters
    ----------
    inputs, labels : Tensor of shape (R, d) and (R,)
        The table of the stack.
    train, held_out : sequence of K integer arrays
        Rows of each model.
    n_classes : int
    logits : bool
        Whether the networks give logits.
    """

    def __init__(
        self,
        inputs: Tensor,
        labels: Tensor,
        train: Sequence[NDArray[np.int64]],
        held_out: Sequence[NDArray[np.int64]],
        n_classes: int,
        *,
        logits: bool,
    ) -> None:
        self.n_classes, self.logits = n_classes, logits
        self.inputs, self.labels = inputs, labels
        rows = [_thin(r, MOST_FITTED) for r in train]
        self.train, self.train_mask = _pad(rows, inputs.device)
        self.held_out, self.held_out_mask = _pad(held_out, inputs.device)

    @torch.no_grad()
    def __call__(self, network: object, models: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the loss of each model."""
        which = torch.from_numpy(models)
        rows = self.held_out[which]
        scores = network.forward(self.inputs[rows])  # type: ignore[attr-defined]  # (K, n, q)
        if not self.logits:
            train = self.train[which]
            fitted = network.forward(self.inputs[train])  # type: ignore[attr-defined]
            mask = self.train_mask[which].to(fitted.dtype)
            scores = _log_likelihoods(fitted, self.labels[train], mask, scores, self.n_classes)
        return self._best_loss(scores, self.labels[rows], self.held_out_mask[which])

    def _best_loss(self, scores: Tensor, labels: Tensor, mask: Tensor) -> NDArray[np.float64]:
        one_hot = torch.nn.functional.one_hot(labels, self.n_classes).to(scores.dtype)
        one_hot *= mask.unsqueeze(-1)
        counts = one_hot.sum(1)  # (K, C)
        share = (1 / counts.clamp_min(1)) / (counts > 0).sum(-1, keepdim=True)
        weights = (one_hot * share.unsqueeze(1)).sum(-1)  # (K, n): every class weighs the same
        best = None
        for temperature in TEMPERATURES.to(scores.device):
            log_p = torch.log_softmax(scores / temperature, dim=-1)
            own = log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
            loss = -(own * weights).sum(-1)
            best = loss if best is None else torch.minimum(best, loss)
        assert best is not None
        return np.nan_to_num(np.asarray(best.cpu(), dtype=np.float64), nan=np.inf)


def _log_likelihoods(h: Tensor, y: Tensor, mask: Tensor, z: Tensor, n_classes: int) -> Tensor:
    """Fit Gaussians with one covariance to (h, y), and return their log densities at z."""
    one_hot = torch.nn.functional.one_hot(y, n_classes).to(h.dtype) * mask.unsqueeze(-1)
    counts = one_hot.sum(1).clamp_min(1)  # (K, C)
    means = torch.bmm(one_hot.mT, h) / counts.unsqueeze(-1)
    d = (h - torch.bmm(one_hot, means)) * mask.unsqueeze(-1)
    total = counts.sum(-1)[:, None, None]
    covariance = torch.bmm(d.mT, d) / total  # (K, q, q)
    q = h.shape[-1]
    scale = (h.square().sum((1, 2)) / total.flatten() / q).clamp_min(1e-12)[:, None, None]
    covariance += FLOOR * scale * torch.eye(q, device=h.device)
    covariance = torch.where(covariance.isfinite(), covariance, 0.0)  # of networks that diverged
    chol, _ = torch.linalg.cholesky_ex(covariance)
    white = torch.linalg.solve_triangular(chol, z.mT, upper=False).mT
    centres = torch.linalg.solve_triangular(chol, means.mT, upper=False).mT
    return -0.5 * torch.cdist(white, centres).square()


def _thin(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


def _pad(rows: Sequence[NDArray[np.int64]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return rows as (K, n) and which of them are real."""
    longest = max(len(r) for r in rows)
    index = np.zeros((len(rows), longest), dtype=np.int64)
    mask = np.zeros((len(rows), longest), dtype=bool)
    for k, r in enumerate(rows):
        index[k, : len(r)] = r
        mask[k, : len(r)] = True
    return torch.from_numpy(index).to(device), torch.from_numpy(mask).to(device)
