"""What the benchmark knows of a model, whoever made it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cocoloss.benchmark.spaces import Space

Factory = Callable[[int, int, Mapping[str, Any], int], Any]
"""Called with the number of columns that the model sees, of classes, arguments and a seed."""


@dataclass(frozen=True)
class ModelKind:
    """A model of the benchmark.

    Attributes
    ----------
    make : callable
        Makes an estimator that is not fitted.
    space : callable or None
        Its search space; None if it is not tuned.
    n_hyperparameters : int
        t of the rule "10 t trials".
    neural : bool
        Whether it is a classifier of cocoloss, whose folds train in lockstep.
    takes_epochs : bool
        Whether ``max_iter`` is the spec's number of epochs.
    weighted : bool
        Whether it counts classes alike.
    whose : str
        What messages call a model of the user's own; empty for ours.
    """

    make: Factory
    space: Space | None = None
    n_hyperparameters: int = 0
    neural: bool = False
    takes_epochs: bool = False
    weighted: bool = False
    whose: str = ""
