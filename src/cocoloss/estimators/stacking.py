"""Training fits together: one fit, or all folds at once, in one stack of networks."""

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cocoloss.estimators.jobs import Design, Job, Trained
from cocoloss.estimators.threads import WORTH_A_THREAD, OneThread
from cocoloss.estimators.validation import HeldOutLoss
from cocoloss.networks import LockstepMLP, ModuleStack, flat_buffers, load_flat
from cocoloss.training import Callback, Epoch, Outcome, TrainingData, train

SAMPLED = 256  # rows of each network by which its norm at the start is judged


def train_jobs(jobs: Sequence[Job], callbacks: Sequence[Callback] = ()) -> list[Trained]:
    """Train all members of all jobs in lockstep; the jobs must share the shape of their design."""
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

    with _threads(design, len(seeds)):
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
        outcome = train(
            network,
            design.loss,
            data,
            design.schedule,
            generators,
            validate=validate,
            callbacks=callbacks,
        )
    return _split(outcome, _loaded(modules, outcome), [len(job.seeds) for job in jobs])


def trained_so_far(epoch: Epoch) -> Trained:
    """Return what a fit that is trained alone would be left with if it stopped after an epoch."""
    outcome = epoch.outcome()
    modules = None
    if isinstance(epoch.network, ModuleStack):
        modules = [copy.deepcopy(epoch.network.modules[0]) for _ in outcome.parameters]
    (trained,) = _split(outcome, _loaded(modules, outcome), [len(outcome.parameters)])
    return trained


def _loaded(modules: list[nn.Module] | None, outcome: Outcome) -> list[nn.Module] | None:
    """Return the modules with the weights of the outcome, ready to predict."""
    for k, module in enumerate(modules or []):
        load_flat(module, outcome.parameters[k].clone(), outcome.buffers[k].clone())
        for parameter in module.parameters():
            parameter.grad = None
        module.eval()
    return modules


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


def _make_network(
    design: Design,
    jobs: Sequence[Job],
    data: TrainingData,
    seeds: list[int],
    generators: list[np.random.Generator],
) -> LockstepMLP | ModuleStack:
    network: LockstepMLP | ModuleStack
    if design.module is not None:
        normalize = design.network["normalize"]
        network = ModuleStack(design.module, seeds, normalize=normalize, device=design.device)
    else:
        network = LockstepMLP(
            design.layer_sizes, generators, device=design.device, **design.network
        )
        if not design.logits:
            # As many of each, so that no network starts otherwise because of its neighbours.
            sample = np.stack(
                [r[np.linspace(0, len(r) - 1, SAMPLED).astype(int)] for r in data.rows]
            )
            network.start_at_unit_norm(data.inputs[torch.from_numpy(sample)])
    start = [job.start for job in jobs if job.start is not None]
    if start:
        parameters = torch.from_numpy(np.concatenate(start))
        if isinstance(network, ModuleStack):
            earlier = [module for job in jobs for module in job.start_modules or []]
            network.load(parameters, torch.stack([flat_buffers(module) for module in earlier]))
        else:
            network.load(parameters)
    return network


def _split(outcome: Outcome, modules: list[nn.Module] | None, sizes: list[int]) -> list[Trained]:
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


# Every thread has a number of its own, but a new thread starts with the one that was set last.
_one_thread = OneThread(torch.get_num_threads, torch.set_num_threads, per_thread=True)


def _threads(design: Design, n_models: int) -> AbstractContextManager[None]:
    """Use one thread for small steps: a second one costs more than it gives."""
    work = sum(a * b for a, b in pairwise(design.layer_sizes))
    small = n_models * design.schedule.batch_size * work < WORTH_A_THREAD
    return _one_thread.held() if small else nullcontext()
