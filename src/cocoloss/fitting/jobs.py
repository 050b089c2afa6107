"""Jobs: fits that wait to be solved, and the solver that trains networks for them.

One job is one fit; the folds of a cross-validation are jobs that are trained at once, in one stack
of networks. Nothing here reads tables or estimators: see fit.py.
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

from cocoloss.exceptions import CoCoError
from cocoloss.fitting.early_stopping import FEWEST_HELD_OUT, HeldOutLoss
from cocoloss.fitting.model import (
    Ensemble,
    ModuleNetworks,
    Networks,
)
from cocoloss.fitting.objective import Objective
from cocoloss.metrics import dispersity
from cocoloss.networks import LockstepMLP, ModuleStack, flat_buffers, load_flat
from cocoloss.threads import WORTH_A_THREAD, OneThread
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
    """What is trained, the same for every job of a stack."""

    objective: Objective
    layer_sizes: tuple[int, ...]  # inputs, hidden units, outputs
    loss: Any  # has ``evaluate``
    schedule: Schedule
    network: dict[str, Any]  # options of cocoloss.networks.LockstepMLP
    head: Any  # the name of a head, none of them "auto", or a classifier of the user's own
    module: Callable[[int], Any] | None  # makes a network of the user's own from a seed
    device: str

    @property
    def logits(self) -> bool:
        """Whether the outputs are logits rather than embeddings."""
        return self.objective.logits

    def make_networks(self, parameters: NDArray[np.float32], modules: list[Any] | None) -> Networks:
        """Return trained networks as what predicts: by numpy, unless they are the user's own."""
        normalize = self.network["normalize"]
        if modules is not None:
            return ModuleNetworks(modules, self.layer_sizes, parameters, normalize, self.device)
        return Ensemble(
            self.layer_sizes,
            parameters,
            self.network["output"],
            normalize=normalize,
            linear_hidden=self.network["linear_hidden"],
            logits=self.logits,
            activation=self.network["activation"],
        )


@dataclass(frozen=True)
class Job:
    """One fit: a table, and for each member of the ensemble its rows and its random numbers."""

    design: Design
    classes: NDArray[Any]  # (C,)
    prior: NDArray[np.float64]  # (C,), under which classes are predicted
    preprocessor: Any  # fitted; has made the inputs
    inputs: NDArray[np.float32]  # (n, d)
    labels: NDArray[np.int64]  # (n,), positions in the classes
    weights: NDArray[np.float32] | None  # (n,), in the loss; None if all rows weigh the same
    row_weights: NDArray[np.float64]  # (n,), how often each row occurs: what the heads get
    train: list[NDArray[np.int64]]  # rows of each member
    held_out: list[NDArray[np.int64]]
    seed: int  # what everything random follows from
    seeds: list[int]  # one per member
    start: Any = None  # networks to go on from; all jobs of a stack have some, or none has

    @property
    def n_classes(self) -> int:
        """Number of classes, C."""
        return len(self.classes)

    @property
    def can_stop_early(self) -> bool:
        """Whether each member holds out enough rows to say when to stop."""
        return min(map(len, self.held_out)) >= FEWEST_HELD_OUT


@dataclass(frozen=True)
class Trained:
    """What a solver leaves of one job."""

    networks: Networks
    loss_curves: list[list[float]]  # of each member, epoch by epoch
    best_epochs: NDArray[np.int64]  # (K,), the epoch that each member keeps


def train_jobs(
    jobs: Sequence[Job], callbacks: Sequence[Callback] = (), *, verbose: bool = False
) -> list[Trained]:
    """Train all members of all jobs in lockstep, with the loss and the schedule of the first job.

    Their designs must have one shape. Callbacks get a :class:`cocoloss.training.Epoch` of the
    members of all jobs after each epoch.
    """
    design = jobs[0].design
    offsets = np.cumsum([0, *(len(job.inputs) for job in jobs)])[:-1]

    def rows(part: str) -> list[NDArray[np.int64]]:
        return [r + o for job, o in zip(jobs, offsets, strict=True) for r in getattr(job, part)]

    inputs = torch.from_numpy(np.concatenate([job.inputs for job in jobs])).to(design.device)
    labels = torch.from_numpy(np.concatenate([job.labels for job in jobs])).to(design.device)
    weights = _joined([job.weights for job in jobs], jobs)
    data = TrainingData(inputs, labels, weights, rows("train"), jobs[0].n_classes)
    seeds = [seed for job in jobs for seed in job.seeds]
    generators = [np.random.default_rng(seed) for seed in seeds]

    n_rows = len(seeds) * design.schedule.batch_size
    with one_thread_unless(design.layer_sizes, n_rows), ExitStack() as stack:
        network = _make_network(design, jobs, data, seeds, generators)
        held_out = rows("held_out")
        validate = None
        if all(job.can_stop_early for job in jobs):
            uneven = [None if np.ptp(job.row_weights) == 0 else job.row_weights for job in jobs]
            counts = _joined(uneven, jobs)
            validate = HeldOutLoss(data, held_out, logits=design.logits, weights=counts)
        modules = list(network.modules) if isinstance(network, ModuleStack) else None
        if verbose:
            callbacks = [*callbacks, stack.enter_context(_progress_bar(jobs[0]))]
        how: dict[str, Any] = {"validate": validate, "callbacks": callbacks}
        outcome = train(network, design.loss, data, design.schedule, generators, **how)
    return _shared_out(jobs, outcome, modules)


def trained_so_far(job: Job, epoch: Epoch) -> Trained:
    """Return what a job that is trained alone would be left with if it stopped after an epoch."""
    outcome = epoch.outcome()
    modules = None
    if isinstance(epoch.network, ModuleStack):
        modules = [copy.deepcopy(epoch.network.modules[0]) for _ in outcome.parameters]
    (trained,) = _shared_out([job], outcome, modules)
    return trained


def _shared_out(
    jobs: Sequence[Job], outcome: Outcome, modules: list[nn.Module] | None
) -> list[Trained]:
    """Share what the stack has learnt out among the jobs; modules take over their weights."""
    for k, module in enumerate(modules or []):
        load_flat(module, outcome.parameters[k].clone(), outcome.buffers[k].clone())
        for parameter in module.parameters():
            parameter.grad = None
        module.eval()
    trained, start = [], 0
    for job in jobs:
        part = slice(start, start + len(job.seeds))
        start = part.stop
        parameters = np.ascontiguousarray(outcome.parameters[part].cpu().numpy())
        networks = job.design.make_networks(parameters, None if modules is None else modules[part])
        trained.append(Trained(networks, outcome.loss_curves[part], outcome.best_epochs[part]))
    return trained


def _make_network(
    design: Design,
    jobs: Sequence[Job],
    data: TrainingData,
    seeds: list[int],
    generators: list[np.random.Generator],
) -> LockstepMLP | ModuleStack:
    start = [job.start for job in jobs if job.start is not None]
    if start:
        weights = torch.from_numpy(np.concatenate([each.parameters for each in start]))
    if design.module is not None:
        normalize = design.network["normalize"]
        stack = ModuleStack(design.module, seeds, normalize=normalize, device=design.device)
        if start:
            buffers = [flat_buffers(module) for earlier in start for module in earlier.modules]
            stack.load(weights, torch.stack(buffers))
        return stack
    network = LockstepMLP(design.layer_sizes, generators, device=design.device, **design.network)
    if not design.logits:
        # As many of each, so that no network starts otherwise because of its neighbours.
        sample = np.stack([r[np.linspace(0, len(r) - 1, SAMPLED).astype(int)] for r in data.rows])
        network.start_at_unit_norm(data.inputs[torch.from_numpy(sample)])
    if start:
        network.load(weights)
    return network


def _joined(parts: Sequence[NDArray[Any] | None], jobs: Sequence[Job]) -> Tensor | None:
    """Return weights of the rows of all jobs, ones where a job has none; None if no job has any."""
    if all(part is None for part in parts):
        return None
    filled = [
        np.ones(len(job.inputs), np.float32) if part is None else part.astype(np.float32)
        for part, job in zip(parts, jobs, strict=True)
    ]
    return torch.from_numpy(np.concatenate(filled)).to(jobs[0].design.device)


# Every thread has a number of its own, but a new thread starts with the one that was set last.
_one_thread = OneThread(torch.get_num_threads, torch.set_num_threads, per_thread=True)


def one_thread_unless(layer_sizes: Sequence[int], n_rows: int) -> AbstractContextManager[None]:
    """Use one thread, unless steps of so many rows are large: a second one costs more else."""
    work = sum(a * b for a, b in pairwise(layer_sizes))
    return _one_thread.held() if n_rows * work < WORTH_A_THREAD else nullcontext()


def _progress_bar(job: Job) -> ProgressBar:
    sample = np.linspace(0, len(job.inputs) - 1, min(len(job.inputs), SHOWN)).astype(int)

    def measure(epoch: Epoch) -> float:
        x = torch.from_numpy(job.inputs[sample]).to(job.design.device)
        x = x.expand(len(epoch.models), -1, -1)
        h = epoch.network.forward(x)[0].cpu().numpy()
        return dispersity(h, job.labels[sample])

    return ProgressBar(job.design.schedule.n_epochs, measure)


def module_factory(module: Any, n_features: int, width: int) -> Callable[[int], nn.Module]:
    """Return what makes a network of the user's own from a seed, or refuse what cannot.

    The copies of a module are drawn anew by ``reset_parameters`` of their parts; a function gets
    the number of inputs and of outputs.
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
