"""A fitted model of numbers as one frozen value: all that predicting and saving need to know.

It knows nothing of how it was trained, of scikit-learn or of torch.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cocoloss._checks import (
    as_float_array,
    check_integer,
    check_share,
    counted,
    require,
    state_array,
    state_part,
)
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.explain import Reference
from cocoloss.fitting.model import (
    EmbeddingModel,
    Networks,
    encoder_and_networks_of,
    machine_in,
    reference_of,
)
from cocoloss.kernels.intervals import NumberReadout
from cocoloss.kernels.machine import KernelMachine


@dataclass(frozen=True, eq=False)
class FittedRegression(EmbeddingModel):
    """An encoder of tables, what embeds rows, and a readout of numbers.

    Attributes
    ----------
    encoder : object with ``transform``
        Makes a float32 matrix of a table.
    networks : KernelMachine, Ensemble or Together
        Make embeddings of its rows, (K, n, q).
    mixing : array of shape (K, q, t)
        Makes target points of these: sums over all of them.
    readout : NumberReadout
        Makes numbers of target points, and says how far off they may be.
    one_column : bool
        Whether the target was a column, so that predictions are one, too, rather than a table.
    reference : Reference, optional
        What explanations know of the rows that its kernels hold, or those of its readout.
    """

    encoder: Any
    networks: Networks
    mixing: NDArray[np.float64]
    readout: NumberReadout
    one_column: bool = True
    reference: Reference | None = None

    task = "numbers"
    scale = "number"

    @property
    def n_rows_held(self) -> int:
        """Rows that it holds: those of its kernels, and some that tell how large residuals are."""
        return max(super().n_rows_held, len(self.readout.spread.machine.rows))

    def has(self, method: str) -> bool:
        """Return whether there is a method, such as ``"predict_proba"``."""
        return hasattr(self, method)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the expected number of each row, (n,), or its numbers, (n, t)."""
        return self._shaped(self.readout.mean(*self._points(X)))

    def predict_with_deviation(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return predictions, and the standard deviation of the truth around each."""
        known = self._points(X)
        mean, deviation = self.readout.mean(*known), self.readout.deviation(*known)
        return self._shaped(mean), self._shaped(deviation)

    def predict_with_interval(
        self, X: Any, coverage: float = 0.9
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return predictions, and the ends of :meth:`predict_interval`, in the time of one."""
        rest = (1 - check_share(coverage, "coverage")) / 2
        known = self._points(X)
        ends = self.readout.quantiles(*known, np.array([rest, 1 - rest]))
        return self._shaped(self.readout.mean(*known)), self._shaped(np.moveaxis(ends, 0, 1))

    def predict_quantiles(self, X: Any, levels: Sequence[float]) -> NDArray[np.float64]:
        """Return numbers that the truth is below with these probabilities, (n, levels[, t])."""
        asked = np.atleast_1d(as_float_array(levels, "quantiles"))
        if asked.ndim != 1 or not asked.size or not ((asked > 0) & (asked < 1)).all():
            raise CoCoError(f"quantiles must be numbers between 0 and 1, not {levels!r:.80}")
        found = self.readout.quantiles(*self._points(X), asked)
        return self._shaped(np.moveaxis(found, 0, 1))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> NDArray[np.float64]:
        """Return the ends of intervals that hold the truth so often, (n, 2[, t])."""
        return self.predict_with_interval(X, coverage)[1]

    def _odd_combinations(self, X: Any) -> NDArray[np.float64]:
        with self.threads():
            return self.held.outlier_score(self.inputs(X))

    @property
    def held(self) -> KernelMachine:
        """The kernels whose rows are training rows; networks have those that tell residuals."""
        return self.machine or self.readout.spread.machine

    def scores(self, inputs: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return what is explained of rows that the encoder has made: their numbers, (n, t)."""
        return self.readout.mean(self.points(inputs), inputs)

    def explained(
        self, scores: NDArray[np.float64], of: Any
    ) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """Return the number of each row that is to be explained, by position, and itself."""
        n, t = scores.shape
        if of is None and t > 1:
            raise CoCoError(f"each row has {t} numbers; say which to explain, such as of=0")
        chosen = check_integer(0 if of is None else of, "of", minimum=0)
        if chosen >= t:
            raise CoCoError(f"of={chosen} is beyond the {counted(t, 'number')} of a row")
        return np.full(n, chosen), scores[:, chosen]

    def as_targets(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return numbers in the shape of predictions."""
        return self._shaped(numbers)

    def points(self, inputs: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return predicted target points of rows that the encoder has made, (n, t)."""
        with self.threads():
            embeddings = self.networks.embeddings(inputs)
        return np.asarray(np.einsum("knq,kqt->nt", embeddings, self.mixing))

    def _points(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        inputs = self.inputs(X)
        return self.points(inputs), inputs

    def _shaped(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        return numbers[..., 0] if self.one_column else numbers

    def try_out(self) -> None:
        """Predict once, on a row of gaps, and refuse a model whose numbers are not finite."""
        with warnings.catch_warnings(), np.errstate(divide="raise", invalid="raise"):
            warnings.simplefilter("ignore")
            found = self.predict_interval(self.encoder.blank_row())
            if not np.isfinite(found).all():
                raise CoCoError("its predictions are not finite")

    def to_state(self) -> dict[str, Any]:
        """Return the model as nested dicts and lists of numbers, text and arrays."""
        return {
            "task": self.task,
            **self.encoder_and_networks(),
            "mixing": self.mixing,
            "readout": self.readout.to_state(),
            "one_column": self.one_column,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the model that :meth:`to_state` described.

        Raises
        ------
        CoCoError
            If a part is missing or impossible, or parts do not fit together: a stranger may have
            written the state.
        """
        encoder, networks = encoder_and_networks_of(state)
        readout = NumberReadout.from_state(state_part(state, "readout", dict))
        t = readout.n_targets
        shape = networks.n_networks, networks.width, t
        mixing = state_array(state, "mixing", np.float64, shape)
        fits = readout.spread.machine.n_inputs == networks.n_inputs
        require(fits, "its intervals are of other columns than its predictions")
        one_column = state_part(state, "one_column", bool)
        require(t == 1 or not one_column, "it has several numbers where one is said to be")
        held = machine_in(networks) or readout.spread.machine
        reference = reference_of(state, networks.n_inputs, held)
        if reference is not None and reference.targets is not None:
            state_array(state["reference"], "targets", np.float64, (None, t))
        return cls(encoder, networks, mixing, readout, one_column, reference)
