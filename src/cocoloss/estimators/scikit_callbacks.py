"""scikit-learn's own callbacks, where the installed version has them (1.9 and later)."""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cocoloss.estimators.jobs import Job

if TYPE_CHECKING:
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

    Callbacks that ask for a fitted estimator get what ``fit`` would leave if training stopped after
    the epoch, heads and all: that costs what the end of a fit costs, every epoch.

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

    def __call__(self, epoch: "Epoch") -> bool:
        """Report an epoch; True if a callback wants to stop."""
        context = self.root.subcontext(task_name="epoch")
        context.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        return bool(
            context.call_on_fit_task_end(
                estimator=self.estimator,
                reconstruction_attributes=lambda: self._attributes(epoch),
                **self.data,
            )
        )

    def _attributes(self, epoch: "Epoch") -> dict[str, Any]:
        """Return what the estimator would have learnt by now."""
        from cocoloss.estimators.stacking import trained_so_far  # noqa: PLC0415 - torch, to train

        twin = copy.copy(self.estimator)
        return dict(vars(twin._finish(self.job, trained_so_far(epoch))))  # noqa: SLF001

    def finish(self) -> None:
        """Report the end of ``fit``."""
        self.root.call_on_fit_task_end(
            estimator=self.estimator, reconstruction_attributes={}, **self.data
        )
