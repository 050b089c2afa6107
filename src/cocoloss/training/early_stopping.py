"""Early stopping: the best parameters of each model so far, and which models still improve."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class Outcome:
    """What training leaves behind: each model at its best score, or as it ended if it has none."""

    parameters: Tensor  # (K, P)
    buffers: Tensor  # (K, B), those that belong to the parameters
    loss_curves: list[list[float]]  # mean training loss of each model in each epoch it trained
    scores: NDArray[np.float64]  # (K,), best validation score; NaN if there is none
    best_epochs: NDArray[np.int64]  # (K,), epoch of that score, from 1; else the last one


class BestSoFar:
    """The best parameters of each model, by its validation scores.

    A network has ``parameters`` (K, P) and ``buffers`` (K, B) of the models that still train.
    """

    def __init__(self, network: Any) -> None:
        self._parameters = network.parameters.clone()
        self._buffers = network.buffers.clone()
        self.scores = np.full(len(self._parameters), np.nan)  # (K,), NaN before the first judgement
        self.epochs = np.zeros(len(self._parameters), dtype=np.int64)  # (K,), 0 likewise

    def judge(
        self,
        network: Any,
        active: NDArray[np.int64],
        scores: NDArray[np.float64],
        epoch: int,
    ) -> None:
        """Keep those of the active models that are better than ever; lower is better."""
        best = np.where(np.isnan(self.scores[active]), np.inf, self.scores[active])
        better = scores < best
        self.scores[active] = np.where(better, scores, best)
        self.epochs[active[better]] = epoch
        self._parameters[active[better]] = network.parameters[torch.from_numpy(better)]
        self._buffers[active[better]] = network.buffers[torch.from_numpy(better)]

    def improving(self, active: NDArray[np.int64], epoch: int, patience: int) -> NDArray[np.int64]:
        """Return positions of the active models that got better within the last epochs."""
        return np.flatnonzero(epoch - self.epochs[active] < patience)

    def outcome(
        self, network: Any, active: NDArray[np.int64], curves: Sequence[Sequence[float]]
    ) -> Outcome:
        """Return what is left if training stops now: models never judged stay as they are."""
        parameters, buffers = self._parameters.clone(), self._buffers.clone()
        epochs = self.epochs.copy()
        unjudged = np.isnan(self.scores[active])
        parameters[active[unjudged]] = network.parameters[torch.from_numpy(unjudged)]
        buffers[active[unjudged]] = network.buffers[torch.from_numpy(unjudged)]
        epochs[active[unjudged]] = [len(curves[k]) for k in active[unjudged]]
        copies = [list(curve) for curve in curves]
        return Outcome(parameters, buffers, copies, self.scores.copy(), epochs)
