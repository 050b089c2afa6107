"""Jobs: fits that wait to be trained, and training them together in one stack of networks.

One job is one fit; the folds of a cross-validation are jobs that are trained at once. Nothing here
reads tables or estimators: see fit.py.
"""

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cocoloss.estimators.early_stopping import HeldOutLoss
from cocoloss.estimators.model import Ensemble, ModuleNetworks
from cocoloss.estimators.objective import Objective
from cocoloss.estimators.threads import WORTH_A_THREAD, OneThread
from cocoloss.exceptions import CoCoError
from cocoloss.metrics import dispersity
from cocoloss.networks import LockstepMLP, ModuleStack, flat_buffers, load_flat
from cocoloss.training import (
    Callback,
    Epoch,
    Outcome,
    ProgressBar,
    Schedule,
    TrainingData,
    train,
)

SAMPLED = 256  # rows of each network by which its norm at the start is judged
SHOWN = 500  # rows by which the progress bar measures dispersity


@dataclass(frozen=True)
class Design:
    """What is trained, the same for every job of a stack but for its class weights.

    Attributes
    ----------
    objective : Objective
    layer_sizes : tuple of int
        Inputs, hidden units, outputs.
    loss : object
        Has ``evaluate``.
    schedule : cocoloss.training.Schedule
    network : dict
        Options of :class:`cocoloss.networks.LockstepMLP`.
    head : str or classifier
        The name of a head, none of them "auto", or one of the user's own.
    module : callable or None
        Gets a seed, makes a network of the user's own.
    device : str
    """

    objective: Objective
    layer_sizes: tuple[int, ...]
    loss: Any
    schedule: Schedule
    network: dict[str, Any]
    head: Any
    module: Callable[[int], Any] | None
    device: str

    @property
    def logits(self) -> bool:
        """Whether the outputs are logits rather than embeddings."""
        return self.objective.logits


@dataclass(frozen=True)
class Job:
    """One fit: a table, and for each member of the ensemble its rows and its random numbers.

    Attributes
    ----------
    design : Design
    classes : array of shape (C,)
    prior : array of shape (C,)
        Under which classes are predicted.
    preprocessor : transformer
        Fitted; has made the inputs.
    inputs : float32 array of shape (n, d)
    labels : int64 array of shape (n,)
        Positions in the classes.
    weights : float32 array of shape (n,) or None
        What each row weighs in the loss; None if all weigh the same.
    row_weights : array of shape (n,)
        How often each row occurs: what the heads get.
    train, held_out : lists of integer arrays
        Rows of each member.
    seed : int
        What everything random follows from.
    seeds : list of int
        One per member.
    start : Ensemble, ModuleNetworks or None
        Networks to go on from; all jobs of a stack have some, or none has.
    """

    design: Design
    classes: NDArray[Any]
    prior: NDArray[np.float64]
    preprocessor: Any
    inputs: NDArray[np.float32]
    labels: NDArray[np.int64]
    weights: NDArray[np.float32] | None
    row_weights: NDArray[np.float64]
    train: list[NDArray[np.int64]]
    held_out: list[NDArray[np.int64]]
    seed: int
    seeds: list[int]
    start: Ensemble | ModuleNetworks | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes, C."""
        return len(self.classes)


@dataclass(frozen=True)
class Trained:
    """What training left of one job: parameters (K, P), and the modules if they were the user's."""

    outcome: Outcome
    parameters: NDArray[np.float32]
    modules: list[Any] | None


def train_jobs(
    jobs: Sequence[Job], callbacks: Sequence[Callback] = (), *, verbose: bool = False
) -> list[Trained]:
    """Train all members of all jobs in lockstep.

    Parameters
    ----------
    jobs : sequence of Job
        Their designs must have one shape; loss and schedule are those of the first.
    callbacks : sequence of callables
        Get an :class:`cocoloss.training.Epoch` of the members of all jobs after each epoch.
    verbose : bool
        Whether to show a progress bar on a terminal.
    """
    design = jobs[0].design
    offsets = np.cumsum([0, *(len(job.inputs) for job in jobs)])[:-1]

    def rows(which: Callable[[Job], list[NDArray[np.int64]]]) -> list[NDArray[np.int64]]:
        return [r + o for job, o in zip(jobs, offsets, strict=True) for r in which(job)]

    inputs = torch.from_numpy(np.concatenate([job.inputs for job in jobs])).to(design.device)
    labels = torch.from_numpy(np.concatenate([job.labels for job in jobs])).to(design.device)
    weights = _joined([job.weights for job in jobs], jobs)
    data = TrainingData(inputs, labels, weights, rows(lambda job: job.train), jobs[0].n_classes)
    seeds = [seed for job in jobs for seed in job.seeds]
    generators = [np.random.default_rng(seed) for seed in seeds]

    with _threads(design, len(seeds)), ExitStack() as stack:
        network = _make_network(design, jobs, data, seeds, generators)
        held_out = rows(lambda job: job.held_out)
        validate = None
        if all(len(r) for r in held_out):
            validate = HeldOutLoss(
                inputs,
                labels,
                data.rows,
                held_out,
                data.n_classes,
                logits=design.logits,
                weights=_joined([_uneven(job.row_weights) for job in jobs], jobs),
            )
        modules = list(network.modules) if isinstance(network, ModuleStack) else None
        if verbose:
            callbacks = [*callbacks, stack.enter_context(_progress_bar(jobs[0]))]
        outcome = train(
            network,
            design.loss,
            data,
            design.schedule,
            generators,
            validate=validate,
            callbacks=callbacks,
        )
    return _split_outcome(outcome, _loaded(modules, outcome), [len(job.seeds) for job in jobs])


def trained_so_far(epoch: Epoch) -> Trained:
    """Return what a job that is trained alone would be left with if it stopped after an epoch."""
    outcome = epoch.outcome()
    modules = None
    if isinstance(epoch.network, ModuleStack):
        modules = [copy.deepcopy(epoch.network.modules[0]) for _ in outcome.parameters]
    (trained,) = _split_outcome(outcome, _loaded(modules, outcome), [len(outcome.parameters)])
    return trained


def _make_network(
    design: Design,
    jobs: Sequence[Job],
    data: TrainingData,
    seeds: list[int],
    generators: list[np.random.Generator],
) -> LockstepMLP | ModuleStack:
    start: list[Any] = [job.start for job in jobs if job.start is not None]
    if design.module is not None:
        normalize = design.network["normalize"]
        stack = ModuleStack(design.module, seeds, normalize=normalize, device=design.device)
        if start:
            buffers = [flat_buffers(module) for earlier in start for module in earlier.modules]
            stack.load(_parameters(start), torch.stack(buffers))
        return stack
    network = LockstepMLP(design.layer_sizes, generators, device=design.device, **design.network)
    if not design.logits:
        # As many of each, so that no network starts otherwise because of its neighbours.
        sample = np.stack([r[np.linspace(0, len(r) - 1, SAMPLED).astype(int)] for r in data.rows])
        network.start_at_unit_norm(data.inputs[torch.from_numpy(sample)])
    if start:
        network.load(_parameters(start))
    return network


def _parameters(networks: Sequence[Any]) -> Tensor:
    return torch.from_numpy(np.concatenate([each.parameters for each in networks]))


def _loaded(modules: list[nn.Module] | None, outcome: Outcome) -> list[nn.Module] | None:
    """Return the modules with the weights of the outcome, ready to predict."""
    for k, module in enumerate(modules or []):
        load_flat(module, outcome.parameters[k].clone(), outcome.buffers[k].clone())
        for parameter in module.parameters():
            parameter.grad = None
        module.eval()
    return modules


def _split_outcome(
    outcome: Outcome, modules: list[nn.Module] | None, sizes: list[int]
) -> list[Trained]:
    """Share what the stack has learnt out among jobs of so many members."""
    trained, stop = [], 0
    for size in sizes:
        part = slice(stop, stop + size)
        stop += size
        piece = Outcome(
            outcome.parameters[part],
            outcome.buffers[part],
            outcome.loss_curves[part],
            outcome.scores[part],
            outcome.best_epochs[part],
        )
        parameters = np.ascontiguousarray(piece.parameters.cpu().numpy())
        trained.append(Trained(piece, parameters, None if modules is None else modules[part]))
    return trained


def _joined(parts: Sequence[NDArray[Any] | None], jobs: Sequence[Job]) -> Tensor | None:
    """Return weights of the rows of all jobs, ones where a job has none; None if no job has any."""
    if all(part is None for part in parts):
        return None
    filled = [
        np.ones(len(job.inputs), np.float32) if part is None else part.astype(np.float32)
        for part, job in zip(parts, jobs, strict=True)
    ]
    return torch.from_numpy(np.concatenate(filled)).to(jobs[0].design.device)


def _uneven(weights: NDArray[np.float64]) -> NDArray[np.float64] | None:
    return None if np.all(weights == weights[0]) else weights


# Every thread has a number of its own, but a new thread starts with the one that was set last.
_one_thread = OneThread(torch.get_num_threads, torch.set_num_threads, per_thread=True)


def _threads(design: Design, n_models: int) -> AbstractContextManager[None]:
    """Use one thread for small steps: a second one costs more than it gives."""
    work = sum(a * b for a, b in pairwise(design.layer_sizes))
    small = n_models * design.schedule.batch_size * work < WORTH_A_THREAD
    return _one_thread.held() if small else nullcontext()


def _progress_bar(job: Job) -> ProgressBar:
    sample = np.linspace(0, len(job.inputs) - 1, min(len(job.inputs), SHOWN)).astype(int)

    def measure(epoch: Epoch) -> float:
        x = torch.from_numpy(job.inputs[sample]).to(job.design.device)
        x = x.expand(len(epoch.models), -1, -1)
        h = epoch.network.forward(x)[0].cpu().numpy()
        return dispersity(h, job.labels[sample])

    return ProgressBar(job.design.schedule.n_epochs, measure)


def module_factory(module: Any, n_features: int, width: int) -> Callable[[int], nn.Module]:
    """Return what makes a new network of the user's own from a seed.

    Parameters
    ----------
    module : torch.nn.Module or callable
        A network, whose copies are drawn anew by ``reset_parameters`` of their parts; or what
        makes one of the number of inputs and of outputs.
    n_features, width : int
        Those numbers.

    Raises
    ------
    CoCoError
        If it is neither; and, when a network is made, if that is none or of another shape.
    """
    if not callable(module):  # which a network is, too
        raise CoCoError(
            f"module must be a torch.nn.Module, or a function that makes one of the number of "
            f"inputs and of outputs, not {module!r:.80}"
        )

    def make(seed: int) -> nn.Module:
        with torch.random.fork_rng([]):
            torch.manual_seed(seed)
            if isinstance(module, nn.Module):
                made = copy.deepcopy(module)
                for part in made.modules():
                    getattr(part, "reset_parameters", lambda: None)()
            else:
                made = module(n_features, width)
        _check_module(made, n_features, width)
        return made

    return make


def _check_module(module: Any, n_features: int, width: int) -> None:
    """Let two rows through; the state of the module stays."""
    if not isinstance(module, nn.Module):
        raise CoCoError(f"module must make a torch.nn.Module, but made {module!r:.80}")
    training = module.training
    try:
        with torch.no_grad():
            outputs = module.eval()(torch.zeros(2, n_features))
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise CoCoError(
            f"module cannot take rows of {n_features} numbers, which is what the preprocessing "
            f"makes of the table: {reason}"
        ) from error
    finally:
        module.train(training)
    if getattr(outputs, "shape", None) != (2, width):
        raise CoCoError(
            f"module makes {list(getattr(outputs, 'shape', []))} of two rows, but [2, {width}] is "
            f"wanted; give it {width} outputs, or set embedding_dim to what it has"
        )
