"""Training fits together: one fit, or all folds at once, in one stack of networks."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from cocoloss.estimators.jobs import Design, Job, Trained
from cocoloss.estimators.threads import WORTH_A_THREAD
from cocoloss.estimators.validation import HeldOutLoss
from cocoloss.networks import LockstepMLP, ModuleStack
from cocoloss.training import Callback, Outcome, TrainingData, train

SAMPLED = 256  # rows by which the norm at the start is judged


def train_jobs(jobs: Sequence[Job], callbacks: Sequence[Callback] = ()) -> list[Trained]:
    """Train all members of all jobs in lockstep; the jobs must share the shape of their design."""
    design = jobs[0].design
    offsets = np.cumsum([0, *(len(job.inputs) for job in jobs)])[:-1]

    def rows(which: Callable[[Job], list[NDArray[np.int64]]]) -> list[NDArray[np.int64]]:
        return [r + o for job, o in zip(jobs, offsets, strict=True) for r in which(job)]

    inputs = torch.from_numpy(np.concatenate([job.inputs for job in jobs])).to(design.device)
    labels = torch.from_numpy(np.concatenate([job.labels for job in jobs])).to(design.device)
    weights = None
    if any(job.weights is not None for job in jobs):
        parts = [
            np.ones(len(j.inputs), np.float32) if j.weights is None else j.weights for j in jobs
        ]
        weights = torch.from_numpy(np.concatenate(parts)).to(design.device)
    data = TrainingData(inputs, labels, weights, rows(lambda job: job.train), jobs[0].n_classes)
    seeds = [seed for job in jobs for seed in job.seeds]
    generators = [np.random.default_rng(seed) for seed in seeds]

    with _threads(design, len(seeds)):
        network = _make_network(design, jobs, data, seeds, generators)
        held_out = rows(lambda job: job.held_out)
        validate = None
        if all(len(r) for r in held_out):
            validate = HeldOutLoss(
                inputs, labels, data.rows, held_out, data.n_classes, logits=design.logits
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
    if modules is not None:
        for module, values in zip(modules, outcome.parameters, strict=True):
            torch.nn.utils.vector_to_parameters(values.clone(), module.parameters())
            module.eval()
    return _split(outcome, modules, [len(job.seeds) for job in jobs])


def _make_network(
    design: Design,
    jobs: Sequence[Job],
    data: TrainingData,
    seeds: list[int],
    generators: list[np.random.Generator],
) -> LockstepMLP | ModuleStack:
    network: LockstepMLP | ModuleStack
    if design.module is not None:
        network = ModuleStack(design.module, seeds, device=design.device)
    else:
        network = LockstepMLP(
            design.layer_sizes, generators, device=design.device, **design.network
        )
        if not design.logits:
            few = min(len(r) for r in data.rows)
            sample = np.stack(
                [r[np.linspace(0, len(r) - 1, min(few, 256)).astype(int)] for r in data.rows]
            )
            network.start_at_unit_norm(data.inputs[torch.from_numpy(sample)])
    start = [job.start for job in jobs]
    if all(s is not None for s in start):
        network.load(torch.from_numpy(np.concatenate(start)))  # type: ignore[arg-type]
    return network


def _split(
    outcome: Outcome, modules: list[torch.nn.Module] | None, sizes: list[int]
) -> list[Trained]:
    trained, stop = [], 0
    for size in sizes:
        part = slice(stop, stop + size)
        stop += size
        piece = Outcome(
            outcome.parameters[part],
            outcome.loss_curves[part],
            outcome.scores[part],
            outcome.best_epochs[part],
        )
        parameters = np.ascontiguousarray(piece.parameters.cpu().numpy())
        trained.append(Trained(piece, parameters, None if modules is None else modules[part]))
    return trained


@contextmanager
def _threads(design: Design, n_models: int) -> Iterator[None]:
    """Use one thread for small steps: a second one costs more than it gives."""
    before = torch.get_num_threads()
    work = sum(a * b for a, b in pairwise(design.layer_sizes))
    if n_models * design.schedule.batch_size * work < WORTH_A_THREAD:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
