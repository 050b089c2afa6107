"""Early stopping: which rows a member does not train on, and how well it does on them.

The same rows calibrate its head.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from cocoloss.training import TrainingData

# Fewer held-out rows than this say too little about when to stop, or how sure to be: members then
# hold out rows in turn, until all have been.
FEWEST_HELD_OUT = 20
FEWEST_FOLDS = 3  # so that a single member keeps two thirds of its rows
# From this many different rows of a class on, how often they occur says how often rows recur.
ENOUGH_DIFFERENT = 50
SELDOM = 0.1  # the share of the different rows that occur most seldom
# More rows than this add nothing to class means and a covariance.
MOST_FITTED = 2000
TEMPERATURES = torch.logspace(-1, 2, 16)
TINY = 1e-30  # what a class without rows weighs, so that nothing is divided by zero
FLOOR = 1e-3  # of the variance, relative to the embedding's own


def split_held_out(
    labels: NDArray[np.int64],
    groups: NDArray[np.int64],
    fraction: float,
    generator: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows to train on and rows to hold out, with the class shares of both alike.

    Every class keeps at least two thirds of its rows, and classes of fewer than three rows keep
    all. If too few rows would be held out, none are: see :func:`deal_held_out`. How many are held
    out is not a matter of chance, so that the members of an ensemble take equally many steps.

    Equal rows stay together (but for the last ones chosen), so that a copy of a training row is no
    test. But a row that occurs so often that its share is a whole copy is in both parts: in a
    table of few different rows, the rows to come have been seen before. "Often" is relative to
    the rows of its class that occur most seldom: where even they occur ten times, somebody has
    multiplied the class, by weights or by oversampling, and new rows will be new. Equal rows have
    the same number in ``groups``, and stand side by side.
    """
    everything = np.arange(len(labels))
    counts = np.bincount(labels)
    wanted = _quotas(np.minimum(counts * fraction, counts // 3), generator)
    if wanted.sum() < FEWEST_HELD_OUT:
        return everything, everything[:0]
    places = _places(labels, groups, fraction, generator)
    order = np.lexsort((places, labels))  # class by class, those to be held out first
    rank = everything - np.repeat(np.cumsum(counts) - counts, counts)
    is_held_out = np.zeros(len(labels), dtype=bool)
    is_held_out[order] = rank < np.repeat(wanted, counts)
    return everything[~is_held_out], everything[is_held_out]


def deal_held_out(
    labels: NDArray[np.int64],
    groups: NDArray[np.int64],
    n_members: int,
    generator: np.random.Generator,
) -> list[NDArray[np.int64]]:
    """Return the rows that each of some members holds out, where rows are few.

    Every row is held out once, if there are three members or more, so that all of them say how sure
    to be; but the only row of a class never is. Equal rows stand together as far as possible.
    """
    n_folds = max(n_members, FEWEST_FOLDS)
    counts = np.bincount(labels)
    places = _places(labels, groups, 1 / n_folds, generator)
    order = np.lexsort((places, labels))  # class by class
    count = counts[labels[order]]
    rank = np.arange(len(labels)) - (np.cumsum(counts) - counts)[labels[order]]
    start = np.cumsum(counts) - counts  # so that small classes are not all in the first folds
    fold = (start[labels[order]] + rank * n_folds // count) % n_folds
    fold[count == 1] = n_folds
    return [np.sort(order[fold == k]) for k in range(n_members)]


def _quotas(shares: NDArray[np.float64], generator: np.random.Generator) -> NDArray[np.int64]:
    """Round shares to whole numbers, at random, with the same sum whatever is drawn.

    So the rows of a rare class are held out now and then instead of never.
    """
    total = int(shares.sum())
    if total == 0:
        return np.zeros(len(shares), dtype=np.int64)
    ends = np.cumsum(shares) * (total / shares.sum())
    ends[-1] = total
    steps = np.floor(ends + generator.random()).astype(np.int64)
    return np.asarray(np.diff(steps, prepend=0))


def _places(
    labels: NDArray[np.int64],
    groups: NDArray[np.int64],
    fraction: float,
    generator: np.random.Generator,
) -> NDArray[np.float64]:
    """Return a random place in [0, 1) for each row.

    That of a row without equals is uniform. Equal rows are all at one place if they are few, and
    at even distances if they are many.
    """
    sizes = np.bincount(groups)
    first = np.cumsum(sizes) - sizes
    draws = generator.random(len(sizes))[groups]
    size = sizes[groups]
    copy = np.arange(len(groups)) - first[groups]
    seldom = np.ones(labels.max() + 1)  # how often those rows of a class occur that are seldom
    for c in range(len(seldom)):
        of_class = sizes[labels[first] == c]
        if len(of_class) >= ENOUGH_DIFFERENT:
            seldom[c] = np.quantile(of_class, SELDOM, method="lower")
    often = size / seldom[labels]
    return np.where(often * fraction < 1, draws, (copy + draws) / size)


class HeldOutLoss:
    """Class-balanced log loss on held-out rows, at the temperature that suits it best.

    Embeddings are judged by Gaussians with one covariance fitted to training rows; logits are
    judged as they are. All models of a stack are judged at once.
    """

    def __init__(
        self,
        data: TrainingData,
        held_out: Sequence[NDArray[np.int64]],  # rows of each model
        *,
        logits: bool,
        weights: Tensor | None = None,  # (R,), how often each row counts
    ) -> None:
        self.n_classes, self.logits = data.n_classes, logits
        self.inputs, self.labels = data.inputs, data.labels
        if weights is None:
            weights = torch.ones(len(data.inputs), device=data.inputs.device)
        few = [np.linspace(0, len(r) - 1, min(len(r), MOST_FITTED)) for r in data.rows]
        train = [r[places.astype(np.int64)] for r, places in zip(data.rows, few, strict=True)]
        self.train, self.train_weights = _pad(train, weights)
        self.held_out, self.held_out_weights = _pad(held_out, weights)

    @torch.no_grad()
    def __call__(self, network: object, models: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the loss of each model."""
        which = torch.from_numpy(models)
        rows = self.held_out[which]
        scores = network.forward(self.inputs[rows])  # type: ignore[attr-defined]  # (K, n, q)
        if not self.logits:
            train = self.train[which]
            fitted = network.forward(self.inputs[train])  # type: ignore[attr-defined]
            weights = self.train_weights[which]
            scores = _log_likelihoods(fitted, self.labels[train], weights, scores, self.n_classes)
        return self._best_loss(scores, self.labels[rows], self.held_out_weights[which])

    def _best_loss(self, scores: Tensor, labels: Tensor, weights: Tensor) -> NDArray[np.float64]:
        one_hot = torch.nn.functional.one_hot(labels, self.n_classes).to(scores.dtype)
        one_hot *= weights.unsqueeze(-1)
        masses = one_hot.sum(1)  # (K, C)
        share = (1 / masses.clamp_min(TINY)) / (masses > 0).sum(-1, keepdim=True)
        weights = (one_hot * share.unsqueeze(1)).sum(-1)  # (K, n): every class weighs the same
        losses_at = []
        for temperature in TEMPERATURES.to(scores.device):
            log_p = torch.log_softmax(scores / temperature, dim=-1)
            own = log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
            losses_at.append(-(own * weights).sum(-1))
        losses = np.asarray(torch.stack(losses_at).amin(0).cpu(), dtype=np.float64)
        return np.where(np.isnan(losses), np.inf, losses)


def _log_likelihoods(h: Tensor, y: Tensor, weights: Tensor, z: Tensor, n_classes: int) -> Tensor:
    """Fit Gaussians with one covariance to (h, y), and return their log densities at z."""
    one_hot = torch.nn.functional.one_hot(y, n_classes).to(h.dtype)
    weighted = one_hot * weights.unsqueeze(-1)
    masses = weighted.sum(1).clamp_min(TINY)  # (K, C)
    means = torch.bmm(weighted.mT, h) / masses.unsqueeze(-1)
    d = h - torch.bmm(one_hot, means)
    total = masses.sum(-1)[:, None, None]
    covariance = torch.bmm((d * weights.unsqueeze(-1)).mT, d) / total  # (K, q, q)
    q = h.shape[-1]
    squares = torch.linalg.vecdot(h, h)  # (K, n)
    scale = ((squares * weights).sum(1) / total.flatten() / q).clamp_min(1e-12)[:, None, None]
    covariance += FLOOR * scale * torch.eye(q, device=h.device)
    covariance = torch.where(covariance.isfinite(), covariance, 0.0)  # of networks that diverged
    chol, _ = torch.linalg.cholesky_ex(covariance)
    white = torch.linalg.solve_triangular(chol, z.mT, upper=False).mT
    centres = torch.linalg.solve_triangular(chol, means.mT, upper=False).mT
    return -0.5 * torch.cdist(white, centres).square()


def _pad(rows: Sequence[NDArray[np.int64]], weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return rows as (K, n) and their weights, which are zero where there is no row."""
    index = pad_sequence([torch.from_numpy(r) for r in rows], batch_first=True)
    real = pad_sequence([torch.ones(len(r)) for r in rows], batch_first=True)
    chosen = index.to(weights.device)
    return chosen, weights[chosen] * real.to(weights.device)
