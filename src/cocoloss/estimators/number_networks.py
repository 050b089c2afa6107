"""Networks for numbers: trained onto the target points themselves, in lockstep.

The pair loss has the same minimiser up to a rotation, which would have to be read off afterwards;
fixed points spare that, and were measured to be better. Each network holds out a part of the rows,
so that every row has a prediction by one that has not seen it.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cocoloss.estimators.fit import training_settings
from cocoloss.estimators.jobs import one_thread_unless
from cocoloss.estimators.model import Ensemble
from cocoloss.losses.base import Batch
from cocoloss.networks import LockstepMLP
from cocoloss.training import Schedule, TrainingData, train

FEWEST_HELD_OUT = 5  # rows of a part; below, networks train on all rows, and know no better


class NumberNetworks(NamedTuple):
    """Trained networks, and what they say of rows that they have not seen."""

    ensemble: Ensemble
    honest: NDArray[np.float64]  # (n, t)
    loss_curves: list[list[float]]
    best_epochs: NDArray[np.int64]


class SquaredDistance:
    """The mean squared distance of outputs from target points, as the trainer wants a loss."""

    def evaluate(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return values (K,) and gradients (K, m, t)."""
        missed = batch.embeddings - batch.labels
        weighted = missed if batch.weight is None else missed * batch.weight.unsqueeze(-1)
        m = missed.shape[1]
        return (weighted * missed).sum((1, 2)) / m, weighted * (2 / m)


def train_networks(
    estimator: Any,
    inputs: NDArray[np.float32],
    points: NDArray[np.float64],
    weights: NDArray[np.float64],
    seed: int,
    seconds: float | None,
) -> NumberNetworks:
    """Train networks on rows and their target points, (n, d) and (n, t)."""
    n, d = inputs.shape
    K, t = estimator.n_members, points.shape[1]
    part = np.random.default_rng([seed, 1]).permutation(n) % K
    holds_out = K > 1 and n >= K * FEWEST_HELD_OUT
    everything = np.arange(n)
    rows = [everything[part != k] if holds_out else everything for k in range(K)]
    settings = training_settings(estimator, min(map(len, rows)))
    patience = settings["n_iter_no_change"]
    schedule = Schedule(
        n_epochs=settings["max_iter"],
        batch_size=settings["batch_size"],
        learning_rate=settings["learning_rate_init"],
        decay=settings["learning_rate"],
        weight_decay=estimator.weight_decay,
        patience=patience if holds_out else None,
        validate_every=1,
        seconds=seconds,
    )
    even, relative = np.ptp(weights) == 0, weights / weights.mean()
    device = estimator.device
    data = TrainingData(
        torch.from_numpy(inputs).to(device),
        torch.from_numpy(points.astype(np.float32)).to(device),
        None if even else torch.from_numpy(relative.astype(np.float32)).to(device),
        rows,
        n_classes=0,
    )
    generators = [np.random.default_rng(seed + k) for k in range(K)]
    hidden = np.atleast_1d(estimator.hidden_layer_sizes).tolist()
    sizes = (d, *map(int, hidden), t)
    with one_thread_unless(sizes, K * schedule.batch_size):
        activation = settings["activation"]
        network = LockstepMLP(sizes, generators, activation=activation, device=device)

        size = n // K  # parts differ by a row at most
        held_out = np.stack([np.flatnonzero(part == k)[:size] for k in range(K)])

        @torch.no_grad()
        def validate(network: Any, models: NDArray[np.int64]) -> NDArray[np.float64]:
            rows = torch.from_numpy(held_out[models]).to(device)  # (K, size)
            squares = (network.forward(data.inputs[rows]) - data.labels[rows]).square().sum(-1)
            if data.weights is not None:
                squares = squares * data.weights[rows]
            found = np.asarray(squares.mean(1).cpu(), dtype=np.float64)
            return np.where(np.isnan(found), np.inf, found)

        outcome = train(
            network,
            SquaredDistance(),
            data,
            schedule,
            generators,
            validate=validate if holds_out else None,
        )
    parameters = np.ascontiguousarray(outcome.parameters.cpu().numpy())
    ensemble = Ensemble(sizes, parameters, activation=activation)
    said = ensemble.outputs(inputs)  # (K, n, t)
    honest = said[part, everything] if holds_out else said.mean(axis=0)
    return NumberNetworks(ensemble, honest, outcome.loss_curves, outcome.best_epochs)
