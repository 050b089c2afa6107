"""A fit that waits to be trained, and what training left of it. No torch here: see stacking.py."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Design:
    """What is trained, the same for every fit of a stack.

    Attributes
    ----------
    layer_sizes : tuple of int
        Inputs, hidden units, outputs.
    loss : object
        Has ``evaluate``.
    schedule : cocoloss.training.Schedule
    network : dict
        Options of :class:`LockstepMLP`.
    logits : bool
        Whether the outputs are logits rather than embeddings.
    module : callable or None
        Gets a seed, makes a network of the user's own.
    device : str
    """

    layer_sizes: tuple[int, ...]
    loss: Any
    schedule: Any
    network: dict[str, Any]
    logits: bool
    module: Callable[[int], Any] | None
    device: str


@dataclass
class Job:
    """One fit: a table, and for each member of the ensemble its rows and its random numbers.

    Attributes
    ----------
    design : Design
    inputs : float32 array of shape (n, d)
    labels : int64 array of shape (n,)
    weights : float32 array of shape (n,) or None
        What the loss gets.
    n_classes : int
    train, held_out : lists of integer arrays
        Rows of each member.
    seeds : list of int
        One per member.
    row_weights : array of shape (n,)
        How often each row occurs: what the heads get.
    start : float32 array of shape (K, P) or None
        Parameters to go on from; all jobs of a stack have some, or none has.
    start_modules : list of modules or None
        The user's own, whose buffers go with them.
    """

    design: Design
    inputs: NDArray[np.float32]
    labels: NDArray[np.int64]
    weights: NDArray[np.float32] | None
    n_classes: int
    train: list[NDArray[np.int64]]
    held_out: list[NDArray[np.int64]]
    seeds: list[int]
    row_weights: NDArray[np.float64]
    start: NDArray[np.float32] | None = None
    start_modules: list[Any] | None = None


@dataclass(frozen=True)
class Trained:
    """What training left of one job: parameters (K, P), and the modules if they were the user's."""

    outcome: Any  # cocoloss.training.Outcome
    parameters: NDArray[np.float32]
    modules: list[Any] | None
