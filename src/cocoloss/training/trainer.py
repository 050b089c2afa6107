"""The training loop: K networks step together, each stops for itself, and callbacks listen.

It knows no loss, no network and no head by name.
"""

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cocoloss.exceptions import CoCoError
from cocoloss.losses.base import Batch

# From this many samples per class on, a batch holds pairs of one class anyway.
ENOUGH_PER_CLASS = 4
# Inputs of several steps are gathered at once, up to this many numbers: fewer, larger copies.
GATHERED = 1_000_000
# Weights are averaged over the last epoch, and over some more in small tables, whose epochs are
# a few steps.
FEWEST_AVERAGED = 25
FUSED_DEVICES = ("cpu", "cuda")
BETA1, BETA2 = 0.9, 0.999  # decay of the running mean and of the running square of the gradient
EPS = 1e-8  # added to the root of the running square


class Networks(Protocol):
    """What the loop needs of the networks that it trains."""

    parameters: Tensor  # (K, P)
    gradients: Tensor  # (K, P)
    buffers: Tensor  # (K, B), what changes with the parameters but is not trained

    def forward(self, x: Tensor, *, training: bool = False) -> Tensor:
        """Return embeddings (K, m, q) of inputs (K, m, d)."""

    def backward(self, gradient: Tensor) -> None:
        """Write the gradients of the parameters, given those of the embeddings."""

    def select(self, models: Sequence[int]) -> None:
        """Keep only these models."""


class Loss(Protocol):
    """What the loop needs of a loss."""

    def evaluate(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return values (K,) and gradients (K, m, q) of a batch that is known to be sound."""


@dataclass(frozen=True)
class TrainingData:
    """A table of rows that all models share; each model trains on some of them."""

    inputs: Tensor  # (R, d)
    labels: Tensor  # (R,), or (R, t) for target points
    weights: Tensor | None  # (R,)
    rows: Sequence[NDArray[np.int64]]  # K arrays: the training rows of each model
    n_classes: int


@dataclass(frozen=True)
class Schedule:
    """How long and how fast."""

    n_epochs: int  # at most
    batch_size: int  # samples per step and model
    learning_rate: float  # at the start
    # "cosine": to zero. "constant". "averaged": constant, and weights are averaged over an epoch.
    decay: str = "cosine"
    weight_decay: float = 0.0  # of AdamW
    clip_norm: float | None = None  # longer gradients of a model are scaled down
    patience: int | None = None  # epochs without a better score after which a model stops
    validate_every: int = 1  # epochs between validations; the last epoch has one, too
    pair_rows: bool = False  # whether batches small for the number of classes are pairs of one
    seconds: float | None = None  # at most: a cosine is at zero by then, and what is best is kept

    def is_validated(self, epoch: int) -> bool:
        """Return whether an epoch, from 1, ends with a validation."""
        return epoch == self.n_epochs or epoch % self.validate_every == 0

    def rate_at(self, step: int, n_steps: int, *, time_gone: float = 0.0) -> float:
        """Return the learning rate of a step, by steps or by the share of the time that is gone."""
        if self.decay != "cosine":
            return self.learning_rate
        at_step = math.pi * step / n_steps
        return self.learning_rate * 0.5 * (1 + math.cos(max(at_step, math.pi * time_gone)))


class Clock:
    """How much of the time is gone that a schedule has, from 0 at the start to 1."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds, self._start = seconds, time.perf_counter()

    def time_gone(self) -> float:
        """Return the share; 0 where there is no end."""
        if self._seconds is None:
            return 0.0
        return min(1.0, (time.perf_counter() - self._start) / self._seconds)


class BatchSampler:
    """Orders of the training rows of one model, by a generator of its own: alone as in a stack.

    With ``in_pairs`` rows travel in pairs of one class: a loss that learns from pairs would find
    hardly any in a small batch of many classes.

    Examples
    --------
    >>> labels = np.arange(100) % 50
    >>> sampler = BatchSampler(np.arange(100), labels, np.random.default_rng(0), in_pairs=True)
    >>> batch = sampler.draw()[:10]
    >>> len(set(labels[batch]))  # ten samples of fifty classes, and still each has a partner
    5
    """

    def __init__(
        self,
        rows: NDArray[np.int64],
        labels: NDArray[np.int64],
        generator: np.random.Generator,
        *,
        in_pairs: bool = False,
    ) -> None:
        self.rows, self.labels, self.generator, self.in_pairs = rows, labels, generator, in_pairs

    def draw(self) -> NDArray[np.int64]:
        """Return the rows in a new order; each occurs once."""
        order = self.generator.permutation(len(self.rows))
        if self.in_pairs:
            order = self._side_by_side(order)
        return self.rows[order]

    def _side_by_side(self, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """Bring rows of a class together in twos, and shuffle the twos."""
        by_class = order[np.argsort(self.labels[order], kind="stable")]
        labels = self.labels[by_class]
        rank = np.arange(len(labels)) - np.searchsorted(labels, labels)  # within its class
        pair = np.cumsum(rank % 2 == 0) - 1
        place = self.generator.permutation(pair[-1] + 1)
        return by_class[np.argsort(place[pair], kind="stable")]


class FlatAdamW:
    """AdamW for parameters (K, P) of K models that step together; they are updated in place.

    ``average`` is the mean of the parameters over the last ``averaged_steps`` steps or so, each
    weighing less than the one after it; the parameters themselves if there are none. At a constant
    rate it is where a falling rate would lead to, and is to be had after every step.

    ``torch.optim.AdamW.step`` spends many times as long in Python as in the update when there is
    one small tensor. So its fused kernel is called directly where there is one, and the update is
    written out elsewhere; tests hold both equal to torch's.
    """

    def __init__(
        self, parameters: Tensor, weight_decay: float, *, averaged_steps: int | None = None
    ) -> None:
        self.parameters = parameters
        self.weight_decay = weight_decay  # decoupled, as a share of the learning rate
        self.mean = torch.zeros_like(parameters)
        self.square = torch.zeros_like(parameters)
        self.n_steps = 0
        self.averaged_steps = averaged_steps
        self.average = parameters if averaged_steps is None else parameters.clone()
        self._step_number = torch.zeros((), device=parameters.device)
        # The kernel behind torch.optim.AdamW(fused=True) has no public name of its own.
        fused = getattr(torch, "_fused_adamw_", None)
        self._fused = fused if parameters.device.type in FUSED_DEVICES else None

    def step(self, gradients: Tensor, learning_rate: float) -> None:
        """Move the parameters once."""
        self.n_steps += 1
        if self._fused is None:
            self._step_written_out(gradients, learning_rate)
        else:
            self._step_fused(gradients, learning_rate)
        if self.averaged_steps is not None:
            # At first the mean of all steps, so that it forgets where it began.
            self.average.lerp_(self.parameters, max(1 / self.averaged_steps, 1 / self.n_steps))

    def _step_fused(self, gradients: Tensor, learning_rate: float) -> None:
        assert self._fused is not None
        self._fused(
            [self.parameters],
            [gradients],
            [self.mean],
            [self.square],
            [],
            [self._step_number.fill_(self.n_steps)],
            lr=learning_rate,
            beta1=BETA1,
            beta2=BETA2,
            weight_decay=self.weight_decay,
            eps=EPS,
            amsgrad=False,
            maximize=False,
        )

    def _step_written_out(self, gradients: Tensor, learning_rate: float) -> None:
        self.mean.lerp_(gradients, 1 - BETA1)
        self.square.mul_(BETA2).addcmul_(gradients, gradients, value=1 - BETA2)
        correction1 = 1 - BETA1**self.n_steps
        correction2 = 1 - BETA2**self.n_steps
        if self.weight_decay:
            self.parameters.mul_(1 - learning_rate * self.weight_decay)
        denominator = self.square.sqrt().div_(math.sqrt(correction2)).add_(EPS)
        self.parameters.addcdiv_(self.mean, denominator, value=-learning_rate / correction1)

    def select(self, parameters: Tensor, models: Sequence[int]) -> None:
        """Go on with these models only, whose parameters are now ``parameters``."""
        averaged = self.averaged_steps is not None
        self.average = self.average[list(models)].clone() if averaged else parameters
        self.parameters = parameters
        self.mean = self.mean[list(models)].clone()
        self.square = self.square[list(models)].clone()


@dataclass(frozen=True)
class Outcome:
    """What training leaves behind: each model at its best score, or as it ended if it has none."""

    parameters: Tensor  # (K, P)
    buffers: Tensor  # (K, B), those that belong to the parameters
    loss_curves: list[list[float]]  # mean training loss of each model in each epoch it trained
    scores: NDArray[np.float64]  # (K,), best validation score; NaN if there is none
    best_epochs: NDArray[np.int64]  # (K,), epoch of that score, from 1; else the last one


class BestSoFar:
    """Early stopping: the best parameters of each model so far, and which models still improve."""

    def __init__(self, network: Networks) -> None:
        self._parameters = network.parameters.clone()
        self._buffers = network.buffers.clone()
        self.scores = np.full(len(self._parameters), np.nan)  # (K,), NaN before the first judgement
        self.epochs = np.zeros(len(self._parameters), dtype=np.int64)  # (K,), 0 likewise

    def judge(
        self,
        network: Networks,
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

    def outcome(
        self, network: Networks, active: NDArray[np.int64], curves: Sequence[Sequence[float]]
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
        Returns the :class:`Outcome` that training would have if it stopped now.
    """

    number: int
    n_epochs: int
    loss: NDArray[np.float64]
    models: NDArray[np.int64]
    score: NDArray[np.float64] | None
    network: Any
    outcome: Callable[[], Outcome]


Callback = Callable[[Epoch], object]
"""Called with an :class:`Epoch`; training stops after it if it returns True."""


def train(
    network: Networks,
    loss: Loss,
    data: TrainingData,
    schedule: Schedule,
    generators: Sequence[np.random.Generator],
    *,
    validate: Callable[[Networks, NDArray[np.int64]], NDArray[np.float64]] | None = None,
    callbacks: Sequence[Callback] = (),
) -> Outcome:
    """Train K models in lockstep.

    Parameters
    ----------
    network, loss, data, schedule
        What is trained, on what, and how; the network is changed.
    generators : sequence of K numpy generators
        One per model, for the order of its rows.
    validate : callable, optional
        Gets the network and which models it still holds, returns a score for each: the lower the
        better. The parameters of the best score are kept.
    callbacks : sequence of callables
        Called after every epoch; training stops if one returns True.
    """
    K = len(data.rows)
    batch_size = min(schedule.batch_size, *(len(rows) for rows in data.rows))
    n_batches = max(1, min(len(rows) for rows in data.rows) // batch_size)
    labels = data.labels.cpu().numpy()
    in_pairs = schedule.pair_rows and batch_size < ENOUGH_PER_CLASS * data.n_classes
    samplers = [
        BatchSampler(rows, labels[rows], generator, in_pairs=in_pairs)
        for rows, generator in zip(data.rows, generators, strict=True)
    ]
    averaged_steps = max(n_batches, FEWEST_AVERAGED) if schedule.decay == "averaged" else None
    optimiser = FlatAdamW(network.parameters, schedule.weight_decay, averaged_steps=averaged_steps)
    clock = Clock(schedule.seconds)
    active = np.arange(K)
    best = BestSoFar(network)
    curves: list[list[float]] = [[] for _ in range(K)]

    def outcome() -> Outcome:
        return best.outcome(network, active, curves)

    for epoch in range(1, schedule.n_epochs + 1):
        orders = np.stack([samplers[k].draw()[: n_batches * batch_size] for k in active])
        with flushed_subnormals():
            losses = _run_epoch(network, loss, data, schedule, optimiser, clock, orders, batch_size)
        time_is_up = clock.time_gone() >= 1
        for k, value in zip(active, losses, strict=True):
            curves[k].append(float(value))

        score = None
        with averaged(network, optimiser):  # what is judged, shown and kept
            if validate is not None and (time_is_up or schedule.is_validated(epoch)):
                score = validate(network, active)
                best.judge(network, active, score, epoch)
            report = Epoch(epoch, schedule.n_epochs, losses, active, score, network, outcome)
            returned = [callback(report) for callback in callbacks]
        if time_is_up or any(isinstance(stop, bool | np.bool_) and stop for stop in returned):
            break
        if score is not None and schedule.patience is not None:
            going_on = np.flatnonzero(epoch - best.epochs[active] < schedule.patience)
            if len(going_on) == 0:
                break
            if len(going_on) < len(active):
                network.select(going_on.tolist())
                optimiser.select(network.parameters, going_on.tolist())
                active = active[going_on]

    with averaged(network, optimiser):
        left = outcome()
    _check_converged(left)
    return left


@contextmanager
def averaged(network: Networks, optimiser: FlatAdamW) -> Iterator[None]:
    """Let networks have the averaged weights for a while, if there are any."""
    if optimiser.averaged_steps is None:
        yield
        return
    latest = network.parameters.clone()
    network.parameters.copy_(optimiser.average)
    try:
        yield
    finally:
        network.parameters.copy_(latest)


def _check_converged(outcome: Outcome) -> None:
    """Refuse weights that are no numbers, or that never had a score."""
    finite = torch.isfinite(outcome.parameters).all(dim=1).cpu().numpy()
    for k in np.flatnonzero(~finite | np.isinf(outcome.scores)):
        curve = outcome.loss_curves[k]
        if not curve:  # no epochs were asked for
            continue
        first = int(np.argmin(np.isfinite(curve)))
        raise CoCoError(
            f"training diverged: the loss is {curve[first]} in epoch {first + 1}; lower the "
            f"learning rate, or clip the gradients"
        )


def _run_epoch(
    network: Networks,
    loss: Loss,
    data: TrainingData,
    schedule: Schedule,
    optimiser: FlatAdamW,
    clock: Clock,
    orders: NDArray[np.int64],
    batch_size: int,
) -> NDArray[np.float64]:
    """Take one step per batch while there is time, and return the mean loss of each model."""
    K = len(orders)
    n_batches = orders.shape[1] // batch_size
    done = optimiser.n_steps
    total = torch.zeros(K, device=data.inputs.device)
    order = torch.from_numpy(orders).to(data.inputs.device)
    numbers = K * batch_size * data.inputs.shape[1]
    at_once = max(1, GATHERED // max(1, numbers))
    for start in range(0, n_batches, at_once):
        index = order[:, start * batch_size : (start + at_once) * batch_size]
        flat = index.reshape(-1)
        x = data.inputs.index_select(0, flat).view(*index.shape, -1)  # (K, n, d)
        y = data.labels.index_select(0, flat).view(*index.shape, *data.labels.shape[1:])
        w = None if data.weights is None else data.weights.index_select(0, flat).view(index.shape)
        for first in range(0, index.shape[1], batch_size):
            rows = slice(first, first + batch_size)
            embeddings = network.forward(x[:, rows], training=True)
            batch = Batch(embeddings, y[:, rows], None if w is None else w[:, rows])
            value, gradient = loss.evaluate(batch)
            network.backward(gradient)
            if schedule.clip_norm is not None:
                _clip(network.gradients, schedule.clip_norm)
            gone = clock.time_gone()
            n_steps = schedule.n_epochs * n_batches
            rate = schedule.rate_at(optimiser.n_steps, n_steps, time_gone=gone)
            optimiser.step(network.gradients, rate)
            total += value
            if gone >= 1:
                return _mean_loss(total, optimiser.n_steps - done)
    return _mean_loss(total, n_batches)


def _mean_loss(total: Tensor, n_steps: int) -> NDArray[np.float64]:
    return np.asarray((total / n_steps).cpu(), dtype=np.float64)


def _clip(gradients: Tensor, longest: float) -> None:
    """Scale down the gradient of each model that is longer than this."""
    norms = torch.linalg.vector_norm(gradients, dim=1, keepdim=True)
    gradients.mul_((longest / norms.clamp_min(torch.finfo(norms.dtype).tiny)).clamp_max_(1))


@contextmanager
def flushed_subnormals() -> Iterator[None]:
    """Let this thread and torch's take subnormal numbers for zero; afterwards all is as before.

    When units die or a loss is learnt, Adam's running means shrink by a tenth with every step, and
    after some eight hundred steps they are subnormal: processors take up to fifty times as long
    for those. Beside weights, and beside the 1e-8 in Adam's denominator, they are nothing: the
    weights come out bit for bit the same.
    """
    before = sys.float_info.min / 2 == 0  # torch can set it, but not read it
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


class ProgressBar:
    """A rich progress bar with loss, dispersity as ``measure`` finds it, and time left.

    Shown on a terminal only: in a notebook's log or a file it would be a line per epoch. The
    measure gets the :class:`Epoch`, a few times a second at most.
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
        )
        self._task = self._progress.add_task("", total=n_epochs, loss="...", dispersity="...")
        self._measure = measure
        self._shown = 0.0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, epoch: Epoch) -> None:
        """Move the bar."""
        fields: dict[str, Any] = {"loss": f"{epoch.loss.mean():.5f}"}
        now = self._progress.get_time()
        if self._measure is not None and not self._progress.disable and now - self._shown > 0.5:
            fields["dispersity"] = f"{self._measure(epoch):.4f}"
            self._shown = now
        self._progress.update(self._task, completed=epoch.number, **fields)
