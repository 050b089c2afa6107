"""scikit-learn's own callbacks, where the installed version has them (1.9 and later)."""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cocoloss.estimators.jobs import Job

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cocoloss.training import Epoch

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9: nobody can have set callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "EpochReporter", "with_callbacks"]


class EpochReporter:
    """Tells scikit-learn's callbacks of an estimator about every epoch.

    Callbacks that ask for a fitted estimator get one as if training had stopped after the epoch,
    with heads fitted to its networks: that costs what the end of a fit costs, every epoch.

    Parameters
    ----------
    estimator : estimator
        Being fitted.
    job : Job
        What is being trained.
    X, y, sample_weight
        What ``fit`` was given.
    """

    def __init__(self, estimator: Any, job: Job, X: Any, y: Any, sample_weight: Any) -> None:
        self.estimator, self.job = estimator, job
        self.data = {"X": X, "y": y}
        if sample_weight is not None:  # what callbacks pass on to their scorers
            self.data["metadata"] = {"sample_weight": sample_weight}
        n_epochs = job.design.schedule.n_epochs
        self.root = estimator._init_callback_context(max_subtasks=n_epochs)  # noqa: SLF001 - its authors' way
        self.root.call_on_fit_task_begin(estimator=estimator, **self.data)
        self.latest: dict[int, NDArray[np.float32]] = {}  # member -> its weights

    def __call__(self, epoch: "Epoch") -> bool:
        """Report an epoch; True if a callback wants to stop."""
        context = self.root.subcontext(task_name="epoch")
        context.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        attributes = None
        if self.job.design.module is None:
            weights = epoch.network.parameters.detach().cpu().numpy()
            self.latest |= {int(k): w.copy() for k, w in zip(epoch.models, weights, strict=True)}
            attributes = self._attributes
        return bool(
            context.call_on_fit_task_end(
                estimator=self.estimator, reconstruction_attributes=attributes, **self.data
            )
        )

    def _attributes(self) -> dict[str, Any]:
        """Return what the estimator would have learnt by now."""
        twin = copy.copy(self.estimator)
        weights = np.stack([self.latest[k] for k in range(len(self.job.seeds))])
        twin._adopt(self.job, weights, None)  # noqa: SLF001 - one of the estimator's own files
        return vars(twin)

    def finish(self) -> None:
        """Report the end of ``fit``."""
        self.root.call_on_fit_task_end(
            estimator=self.estimator, reconstruction_attributes={}, **self.data
        )
