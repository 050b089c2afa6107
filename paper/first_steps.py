"""The first steps of training, table by table in lockstep: what early convergence is measured on.

The training loop proper looks at networks after every epoch. Here they are looked at after single
steps, and none is ever finished.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cocoloss._checks import check_option
from cocoloss.fitting.model import Ensemble
from cocoloss.losses import CoCoLoss, CrossEntropyLoss, DotRegressionLoss
from cocoloss.losses.base import Batch
from cocoloss.networks import LockstepMLP
from cocoloss.training import FlatAdamW

# name -> loss of (n_classes, embedding_dim, seed); cross-entropy gets logits
LOSSES: dict[str, Callable[[int, int, int], Any]] = {
    "coco": lambda C, q, seed: CoCoLoss(C, normalize=False),  # noqa: ARG005
    "dr": lambda C, q, seed: DotRegressionLoss(C, q, random_state=seed),
    "ce": lambda C, q, seed: CrossEntropyLoss(C, None),  # noqa: ARG005
}


@dataclass(frozen=True)
class Beginner:
    """A network after some steps.

    Attributes
    ----------
    n_steps : int
        How many.
    network : Ensemble
        Of this one network: ``network.outputs(inputs)[0]`` is the embedding, (n, q).
    readout : array of shape (C, q) or None
        What classifies the embedding by the largest inner product: the vertices of dot
        regression, the linear layer of cross-entropy; CoCo has none.
    """

    n_steps: int
    network: Ensemble
    readout: NDArray[np.float64] | None


def first_steps(
    loss: str,
    inputs: Sequence[NDArray[np.float32]],
    labels: Sequence[NDArray[np.int64]],
    steps: Sequence[int],
    *,
    layer_sizes: Sequence[int],
    n_classes: int,
    weights: Sequence[NDArray[np.float32]] | None = None,
    batch_size: int = 8,
    learning_rate: float = 1e-4,
    seeds: Sequence[int] | None = None,
) -> list[list[Beginner]]:
    """Train one network on each of several tables, and return each after chosen steps.

    The networks are h(x) = tanh(W_2 relu(W_1 x + w_1) + w_2), or deeper. For cross-entropy a
    linear layer without bias makes logits of h, and is trained as well.

    Parameters
    ----------
    loss : {"coco", "dr", "ce"}
        What is minimised, by AdamW without weight decay.
    inputs, labels : sequences of arrays of shape (n, d) and (n,)
        The tables, such as the training parts of folds.
    steps : sequence of int
        After how many steps; 0 is before the first.
    layer_sizes : sequence of int
        Of h: inputs, hidden units, embedding.
    n_classes : int
        Number of classes C; labels are 0, ..., C - 1.
    weights : sequence of arrays of shape (n,), optional
        Weights of the rows.
    batch_size : int
        Rows of a step, drawn in random order; all are seen before one is seen again.
    learning_rate : float
        The same at every step.
    seeds : sequence of int, optional
        One for each table; its position if None. Starting weights and the order of rows follow
        from it alone: they are the same for every loss.

    Returns
    -------
    list of lists of Beginner
        For each table, one for each of ``steps``.

    Examples
    --------
    >>> X = np.array([[-1.0], [1.0]] * 8, dtype=np.float32)
    >>> y = np.array([0, 1] * 8)
    >>> ((start, later),) = first_steps(
    ...     "coco", [X], [y], [0, 200], layer_sizes=(1, 8, 2), n_classes=2, learning_rate=1e-2
    ... )
    >>> a, b = later.network.outputs(X[:2])[0]
    >>> bool(a @ b < -0.8)
    True
    """
    check_option(loss, "loss", LOSSES)
    q = layer_sizes[-1]
    seeds = range(len(inputs)) if seeds is None else seeds
    generators = [np.random.default_rng(seed) for seed in seeds]
    network = LockstepMLP(layer_sizes, generators, output="tanh")
    last = max(steps, default=0)
    orders = [
        _rows(len(y), last * batch_size, generator)
        for y, generator in zip(labels, generators, strict=True)
    ]
    objective = LOSSES[loss](n_classes, q, seeds[0])
    top = _Top(loss, objective, generators, n_classes, q)
    learning: list[Any] = [network] if top.weights is None else [network, top]
    optimisers = [FlatAdamW(part.parameters, 0.0) for part in learning]

    tables = [torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32)) for x in inputs]
    targets = [torch.from_numpy(np.asarray(y, dtype=np.int64)) for y in labels]
    scales = None if weights is None else [torch.from_numpy(w) for w in weights]
    seen: dict[int, list[Beginner]] = {}
    for step in range(last + 1):
        if step in steps:
            seen[step] = _look(step, network, top)
        if step == last:
            break
        rows = [order[step * batch_size : (step + 1) * batch_size] for order in orders]
        x, y = _stack(tables, rows), _stack(targets, rows)
        w = None if scales is None else _stack(scales, rows)
        h = network.forward(x, training=True)
        network.backward(top.gradient(h, y, w))
        for part, optimiser in zip(learning, optimisers, strict=True):
            optimiser.step(part.gradients, learning_rate)
    return [[seen[step][k] for step in steps] for k in range(len(inputs))]


class _Top:
    """What stands on the embedding: the loss, and for cross-entropy a linear layer per model."""

    def __init__(
        self,
        name: str,
        objective: Any,
        generators: Sequence[np.random.Generator],
        n_classes: int,
        q: int,
    ) -> None:
        self.objective = objective
        self.weights: Tensor | None = None
        if name == "ce":
            draws = [g.standard_normal((n_classes, q), dtype=np.float32) for g in generators]
            self.weights = torch.from_numpy(np.stack(draws) / np.float32(np.sqrt(q)))  # (K, C, q)
            self.parameters = self.weights.view(len(generators), -1)
            self.gradients = torch.zeros_like(self.parameters)

    def gradient(self, h: Tensor, y: Tensor, w: Tensor | None) -> Tensor:
        """Return the gradient of the embedding (K, m, q); keep that of the linear layer."""
        if self.weights is None:
            gradient: Tensor = self.objective.evaluate(Batch(h, y, w))[1]
            return gradient
        logits = torch.bmm(h, self.weights.mT)
        _, dz = self.objective.evaluate(Batch(logits, y, w))
        torch.bmm(dz.mT, h, out=self.gradients.view_as(self.weights))
        return torch.bmm(dz, self.weights)

    def readout(self, k: int) -> NDArray[np.float64] | None:
        """Return what classifies the embedding of model k."""
        if self.weights is not None:
            return self.weights[k].numpy().astype(np.float64)
        prototypes = getattr(self.objective, "prototypes", None)
        return None if prototypes is None else prototypes.numpy().astype(np.float64)


def _look(step: int, network: LockstepMLP, top: _Top) -> list[Beginner]:
    parameters = network.parameters.numpy().copy()
    return [
        Beginner(
            step,
            Ensemble(network.layer_sizes, parameters[k : k + 1], output="tanh"),
            top.readout(k),
        )
        for k in range(network.n_models)
    ]


def _rows(n: int, length: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return random orders of n rows, one after the other, so many rows in all."""
    passes = -(-length // n)
    return np.concatenate([generator.permutation(n) for _ in range(max(1, passes))])[:length]


def _stack(tables: Sequence[Tensor], rows: Sequence[NDArray[np.int64]]) -> Tensor:
    return torch.stack([t[torch.from_numpy(r)] for t, r in zip(tables, rows, strict=True)])
