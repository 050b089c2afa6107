"""scikit-learn's own callbacks, where the installed version has them (1.9 and later)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

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

    Parameters
    ----------
    estimator : estimator
        Being fitted.
    n_epochs : int
        Epochs planned.
    X, y
        What ``fit`` was given.
    """

    def __init__(self, estimator: Any, n_epochs: int, X: Any, y: Any) -> None:
        self.estimator, self.data = estimator, {"X": X, "y": y}
        self.root = estimator._init_callback_context(max_subtasks=n_epochs)  # noqa: SLF001 - its authors' way
        self.root.call_on_fit_task_begin(estimator=estimator, **self.data)

    def __call__(self, epoch: "Epoch") -> bool:
        """Report an epoch; True if a callback wants to stop."""
        context = self.root.subcontext(task_name="epoch")
        facts = {"loss": float(epoch.loss.mean()), "epoch": epoch.number}
        context.call_on_fit_task_begin(estimator=self.estimator, metadata=facts, **self.data)
        return bool(
            context.call_on_fit_task_end(estimator=self.estimator, metadata=facts, **self.data)
        )

    def finish(self) -> None:
        """Report the end of ``fit``."""
        self.root.call_on_fit_task_end(estimator=self.estimator, **self.data)
