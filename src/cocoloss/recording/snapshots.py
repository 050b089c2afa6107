"""Snapshots of the first network of a fit, taken while it trains."""

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cocoloss.estimators.jobs import Design, Job, Trained, train_jobs
from cocoloss.estimators.model import TINY_NORM, Ensemble

if TYPE_CHECKING:
    from cocoloss.training import Epoch


class Snapshot(NamedTuple):
    """What the network made of the rows."""

    embedding: NDArray[np.float32]  # (n, q)
    outputs: NDArray[np.float32]  # (n, p): the embedding, or the logits of cross-entropy
    weights: NDArray[np.float64] | None  # (C, q), the linear classifier on the embedding
    bias: NDArray[np.float64] | None  # (C,)


def snapshot_epochs(n_epochs: int, n_snapshots: int) -> list[int]:
    """Return the epochs to look at, 0 first and the last one last: dense early, sparse later.

    Examples
    --------
    >>> snapshot_epochs(100, 8)
    [0, 2, 8, 18, 33, 51, 73, 100]
    >>> snapshot_epochs(3, 8)
    [0, 1, 2, 3]
    """
    if n_snapshots > n_epochs:
        return list(range(n_epochs + 1))
    epochs = [0]
    for k in range(1, n_snapshots):
        planned = round(n_epochs * (k / (n_snapshots - 1)) ** 2)
        epochs.append(max(epochs[-1] + 1, planned))
    return epochs


class Reader(Protocol):
    """Copies the weights of one network of a stack, and embeds the rows by such a copy."""

    def copy(self, network: Any, place: int) -> Any:
        """Return the weights of the network at a place of the stack."""

    def copy_trained(self, trained: Trained) -> Any:
        """Return the weights that the first network was left with."""

    def look(self, weights: Any) -> Snapshot:
        """Embed the rows."""


@dataclass(frozen=True)
class LockstepReader:
    """Reads networks of our own, by numpy alone."""

    design: Design
    inputs: NDArray[np.float32]

    def copy(self, network: Any, place: int) -> NDArray[np.float32]:
        """Return the weights of the network at a place of the stack."""
        weights: NDArray[np.float32] = network.parameters[place].detach().cpu().numpy().copy()
        return weights

    def copy_trained(self, trained: Trained) -> NDArray[np.float32]:
        """Return the weights that the first network was left with."""
        weights: NDArray[np.float32] = trained.parameters[0]
        return weights

    def look(self, weights: NDArray[np.float32]) -> Snapshot:
        """Embed the rows."""
        options = self.design.network
        ensemble = Ensemble(
            self.design.layer_sizes,
            weights[None],
            options["output"],
            options["normalize"],
            options["linear_hidden"],
        )
        with np.errstate(over="ignore", invalid="ignore"):  # a run that diverged is shown as such
            outputs = ensemble.embed(self.inputs)[0].astype(np.float32)
            if not self.design.logits:
                return Snapshot(outputs, outputs, *_prototypes(self.design))
            hidden = ensemble.embed(self.inputs, hidden=True)[0].astype(np.float32)
        *_, (last, bias) = ensemble.layers(0)
        return Snapshot(hidden, outputs, last.T, bias)


@dataclass(frozen=True)
class ModuleReader:
    """Reads modules of the user's own; ``scratch`` is one of the same kind to load them into."""

    design: Design
    inputs: NDArray[np.float32]
    scratch: Any

    def copy(self, network: Any, place: int) -> dict[str, Any]:
        """Return parameters and buffers of the module at a place of the stack."""
        return _state(network.modules[place])

    def copy_trained(self, trained: Trained) -> dict[str, Any]:
        """Return what the first module was left with."""
        assert trained.modules is not None
        return _state(trained.modules[0])

    def look(self, weights: dict[str, Any]) -> Snapshot:
        """Embed the rows."""
        import torch  # noqa: PLC0415 - the module's own

        self.scratch.load_state_dict(weights)
        self.scratch.eval()
        with torch.no_grad():
            outputs = self.scratch(torch.from_numpy(self.inputs).to(self.design.device))
            if self.design.network["normalize"]:
                outputs = torch.nn.functional.normalize(outputs, dim=-1, eps=TINY_NORM)
        rows = outputs.cpu().numpy().astype(np.float32)
        return Snapshot(rows, rows, *_prototypes(self.design))


class Recorder:
    """A listener that takes snapshots of the first network at chosen epochs.

    Parameters
    ----------
    job : Job
        What is going to be trained.
    inputs : float32 array of shape (n, d)
        The rows to embed.
    n_snapshots : int
        How many snapshots, about: the last epoch and the one that is kept come on top.

    Attributes
    ----------
    snapshots : dict of int to Snapshot
        By epoch; 0 is before training.
    seconds : float
        What the looking has cost the fit.
    """

    def __init__(self, job: Job, inputs: NDArray[np.float32], n_snapshots: int) -> None:
        started = time.perf_counter()
        before = _untrained(job)
        self._reader = _make_reader(job.design, inputs, before)
        self.snapshots = {0: self._reader.look(self._reader.copy_trained(before))}
        self._epochs = set(snapshot_epochs(job.design.schedule.n_epochs, n_snapshots))
        self._latest: tuple[int, Any] | None = None
        self.seconds = time.perf_counter() - started

    def __call__(self, epoch: "Epoch") -> None:
        """Look at the first network, if it still trains."""
        place = np.flatnonzero(epoch.models == 0)
        if not len(place):
            return
        started = time.perf_counter()
        # Nobody knows whether the next epoch comes, so the weights of this one are kept.
        self._latest = epoch.number, self._reader.copy(epoch.network, int(place[0]))
        if epoch.number in self._epochs:
            self.snapshots[epoch.number] = self._reader.look(self._latest[1])
        self.seconds += time.perf_counter() - started

    def finish(self, trained: Trained) -> int:
        """Add the last epoch and the one that was kept; return the latter."""
        if self._latest is not None:
            number, weights = self._latest
            if number not in self.snapshots:
                self.snapshots[number] = self._reader.look(weights)
        kept = int(trained.outcome.best_epochs[0])
        self.snapshots[kept] = self._reader.look(self._reader.copy_trained(trained))
        self.snapshots = dict(sorted(self.snapshots.items()))
        return kept


def _make_reader(design: Design, inputs: NDArray[np.float32], before: Trained) -> Reader:
    if before.modules is None:
        return LockstepReader(design, inputs)
    return ModuleReader(design, inputs, before.modules[0])


def _untrained(job: Job) -> Trained:
    """Return the networks as they are before the first step: a training of no epochs."""
    schedule = replace(job.design.schedule, n_epochs=0)
    (trained,) = train_jobs([replace(job, design=replace(job.design, schedule=schedule))])
    return trained


def _state(module: Any) -> dict[str, Any]:
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


def _prototypes(design: Design) -> tuple[NDArray[np.float64] | None, None]:
    """Return the class vectors of dot regression, which are its linear classifier."""
    prototypes = getattr(design.loss, "prototypes", None)
    return (None if prototypes is None else prototypes.cpu().numpy().astype(np.float64)), None
