"""Who listens to training: called after every epoch with what happened."""

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Epoch:
    """What happened in an epoch.

    Attributes
    ----------
    number : int
        Epochs done so far, from 1.
    n_epochs : int
        Epochs planned.
    loss : array of shape (K,)
        Mean training loss of each model that still trains.
    models : array of shape (K,)
        Which models these are.
    score : array of shape (K,) or None
        Validation score of each (lower is better), if one was taken.
    network : object
        The networks, to measure what one likes; only to be read.
    outcome : callable
        Returns the :class:`cocoloss.training.Outcome` that training would have if it stopped now.
    """

    number: int
    n_epochs: int
    loss: NDArray[np.float64]
    models: NDArray[np.int64]
    score: NDArray[np.float64] | None
    network: Any
    outcome: Callable[[], Any]


Callback = Callable[[Epoch], object]
"""Called with an :class:`Epoch`; training stops after it if it returns True."""


class ProgressBar:
    """A rich progress bar with loss, a measure of one's own, and time left.

    Shown on a terminal only: in a notebook's log or a file it would be a line per epoch.

    Parameters
    ----------
    n_epochs : int
        Length of the bar.
    measure : callable, optional
        Gets the :class:`Epoch`, returns a number to show as dispersity; called a few times a
        second at most.
    """

    def __init__(self, n_epochs: int, measure: Callable[[Epoch], float] | None = None) -> None:
        from rich.console import Console  # noqa: PLC0415 - not everyone wants a bar
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        console = Console(stderr=True)
        self._progress = Progress(
            BarColumn(),
            TextColumn("epoch {task.completed}/{task.total}"),
            TextColumn("loss {task.fields[loss]}"),
            TextColumn("dispersity {task.fields[dispersity]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=False,
        )
        self._task = self._progress.add_task("", total=n_epochs, loss="...", dispersity="...")
        self._measure = measure
        self._shown = 0.0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def __call__(self, epoch: Epoch) -> None:
        """Move the bar."""
        fields: dict[str, Any] = {"loss": f"{epoch.loss.mean():.5f}"}
        now = self._progress.get_time()
        if self._measure is not None and not self._progress.disable and now - self._shown > 0.5:
            fields["dispersity"] = f"{self._measure(epoch):.4f}"
            self._shown = now
        self._progress.update(self._task, completed=epoch.number, **fields)
