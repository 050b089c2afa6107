"""A fit in three steps: start, train, finish. The middle one may be shared with other fits."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cocoloss.estimators.jobs import Job, Trained
from cocoloss.metrics import dispersity

if TYPE_CHECKING:
    from cocoloss.training import Callback, Epoch

SHOWN = 500  # rows by which the progress bar measures dispersity


@dataclass(frozen=True)
class Fitting:
    """A fit that has started.

    Attributes
    ----------
    estimator : classifier of cocoloss
        Whose preprocessing and classes are known by now.
    job : Job
        What is to be trained.
    finish : callable
        Gets what training left, and makes the estimator a fitted one.
    """

    estimator: Any
    job: Job
    finish: Callable[[Trained], Any]


def train_together(
    fittings: Sequence[Fitting], listeners: "Sequence[Callback]" = ()
) -> list[Trained]:
    """Train fits of one shape in one stack, and finish them.

    Callbacks and progress bar are those of the first fit, beside further listeners.
    """
    from cocoloss.estimators.stacking import train_jobs  # noqa: PLC0415 - torch, to train

    first = fittings[0]
    with ExitStack() as stack:
        heard = [*(first.estimator.callbacks or []), *listeners]
        if first.estimator.verbose:
            heard.append(stack.enter_context(_progress_bar(first.job)))
        trained = train_jobs([fitting.job for fitting in fittings], heard)
    for fitting, left in zip(fittings, trained, strict=True):
        fitting.finish(left)
    return trained


def _progress_bar(job: Job) -> Any:
    import torch  # noqa: PLC0415

    from cocoloss.training import ProgressBar  # noqa: PLC0415

    sample = np.linspace(0, len(job.inputs) - 1, min(len(job.inputs), SHOWN)).astype(int)

    def measure(epoch: "Epoch") -> float:
        x = torch.from_numpy(job.inputs[sample]).to(job.design.device)
        x = x.expand(len(epoch.models), -1, -1)
        h = epoch.network.forward(x)[0].cpu().numpy()
        return dispersity(h, job.labels[sample])

    return ProgressBar(job.design.schedule.n_epochs, measure)
