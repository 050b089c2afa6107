"""Neural collapse over an epoch, in the shape of torchmetrics' metrics; that is not needed here."""

from collections.abc import Iterable
from typing import Any, Self

from cocoloss.exceptions import CoCoError
from cocoloss.metrics.collapse import NeuralCollapse, neural_collapse, neural_collapse_of
from cocoloss.metrics.ranks import ranks_are_there
from cocoloss.metrics.scatter import ClassMoments


class NeuralCollapseMetric:
    """Neural collapse of all batches since ``reset``, of all ranks.

    Has the methods of torchmetrics' ``Metric``: ``update``, ``compute``, ``reset``, ``forward``,
    ``merge_state``, ``to``. Between batches it keeps class moments, C q + q^2 numbers, in float64.

    Parameters
    ----------
    process_group : torch.distributed.ProcessGroup, optional
        Whose ranks ``compute`` adds up; all of them by default, if there are any. Every rank of
        the group must call ``compute``, also one without rows.
    sync_on_compute : bool, default=True
        Whether ranks are added up at all.

    Attributes
    ----------
    moments : ClassMoments
        What this rank has seen.

    Examples
    --------
    >>> from cocoloss.metrics import NeuralCollapseMetric
    >>> metric = NeuralCollapseMetric()
    >>> metric.update([[-3.0], [1.0]], [0, 1])
    >>> metric.update([[-1.0], [3.0]], [0, 1])
    >>> round(metric.compute().nc1, 12)
    0.125
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False

    def __init__(self, *, process_group: Any = None, sync_on_compute: bool = True) -> None:
        self.process_group = process_group
        self.sync_on_compute = sync_on_compute
        self.moments = ClassMoments()
        self._device: Any = None

    def update(self, embeddings: Any, labels: Any) -> None:
        """Add a batch: embeddings (n, q) and labels (n,), tensors or arrays."""
        self.moments.update(embeddings, labels)
        if self._device is not None:
            self.moments.to(self._device)

    def compute(
        self, weights: Any = None, bias: Any = None, rows: Iterable[tuple[Any, Any]] | None = None
    ) -> NeuralCollapse:
        """Return the collapse of all that was seen; see :func:`neural_collapse_of`.

        Parameters
        ----------
        weights, bias : array-like or tensor of shape (C, q) and (C,), optional
            The classifier at this moment, for NC3 and NC4.
        rows : iterable of (embeddings, labels), optional
            This rank's batches once more, for NC4.
        """
        group = None
        if self.sync_on_compute and ranks_are_there():
            group = "world" if self.process_group is None else self.process_group
        return neural_collapse_of(self.moments, weights, bias, rows=rows, process_group=group)

    def forward(self, embeddings: Any, labels: Any) -> NeuralCollapse:
        """Add a batch, and return the collapse of this batch alone."""
        self.update(embeddings, labels)
        return neural_collapse(embeddings, labels)

    __call__ = forward

    def merge_state(self, incoming_state: "NeuralCollapseMetric") -> None:
        """Add what another metric has seen."""
        if not isinstance(incoming_state, NeuralCollapseMetric):
            raise CoCoError(
                f"only another NeuralCollapseMetric can be merged, not "
                f"{type(incoming_state).__name__}; give rows and labels to update"
            )
        self.moments.merge(incoming_state.moments)

    def reset(self) -> None:
        """Forget all batches."""
        self.moments = ClassMoments()

    def to(self, device: Any) -> Self:
        """Keep the moments on a device of torch; without it they are where the first batch was."""
        self._device = device
        self.moments.to(device)
        return self
