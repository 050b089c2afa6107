"""Numbers read off an embedding: on the scale of the table, and how far the truth may be.

Values alone, in numpy: what fits them is :mod:`cocoloss.kernels.numbers`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cocoloss._checks import require, state_array, state_part
from cocoloss.heads.fitted import blocks
from cocoloss.kernels.machine import KernelMachine

GRID = (np.arange(50) + 0.5) / 50  # levels of quantiles that means and deviations are taken over
LARGEST = 700.0  # exponent that float64 holds
LEAST = -1 + np.finfo(np.float64).eps
LOG = 1e-9  # powers below are the logarithm, but for rounding


@dataclass(frozen=True, eq=False)
class Response:
    """How numbers of the table, (n, t), become target points of mean 0 and variance 1, and back.

    With u = (y - origin) / unit, a power below 1 makes ((1 + u)^power - 1) / power of skewed
    numbers, and the logarithm if it is 0 (Box and Cox); a power of 1 leaves u as it is.
    """

    origin: NDArray[np.float64]  # (t,)
    unit: NDArray[np.float64]  # (t,), negative where the long tail is that of small numbers
    powers: NDArray[np.float64]  # (t,), from 0 to 1
    center: NDArray[np.float64]  # (t,)
    scale: NDArray[np.float64]  # (t,), positive
    ends: NDArray[np.float64]  # (2, t), between which numbers lie that a power is undone for

    def points(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return numbers as target points."""
        columns = zip(((y - self.origin) / self.unit).T, self.powers.tolist(), strict=True)
        raised = np.stack([_power(column, power) for column, power in columns], axis=1)
        raised *= np.sign(self.unit)  # the larger, the larger
        return np.asarray((raised - self.center) / self.scale)

    def log_slopes(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log of how fast target points grow with the numbers, (n, t)."""
        u = np.where(self.powers == 1, 0, (y - self.origin) / self.unit)
        return np.asarray((self.powers - 1) * np.log1p(u) - np.log(np.abs(self.unit) * self.scale))

    def numbers(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what target points (..., t) are as numbers.

        Undoing a power makes much of little, and of some points nothing: hence the ends.
        """
        z = (z * self.scale + self.center) * np.sign(self.unit)
        roots = [_root(z[..., j], power) for j, power in enumerate(self.powers.tolist())]
        numbers = np.stack(roots, axis=-1) * self.unit + self.origin
        return np.where(self.powers == 1, numbers, np.clip(numbers, *self.ends))

    def to_state(self) -> dict[str, Any]:
        """Return the value as a dict of arrays."""
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the value that :meth:`to_state` described, or refuse it with a CoCoError."""
        t = len(state_array(state, "origin", np.float64, (None,)))
        names = ("origin", "unit", "powers", "center", "scale")
        origin, unit, powers, center, scale = (
            state_array(state, name, np.float64, (t,)) for name in names
        )
        possible = (unit != 0).all() and (scale > 0).all() and ((powers >= 0) & (powers <= 1)).all()
        require(possible, "its numbers have no possible scale")
        ends = state_array(state, "ends", np.float64, (2, t))
        return cls(origin, unit, powers, center, scale, ends)


@dataclass(frozen=True, eq=False)
class Spread:
    """How far the truth is from a prediction, in target points.

    Residuals of rows that were left out, divided by their usual size there, which a kernel machine
    tells, are taken to be alike everywhere. Beyond the rows of the fit the size grows to that of
    the targets themselves, as the deviation of a Gaussian process does.
    """

    machine: KernelMachine  # log of the usual size, less its mean: of t columns
    log_size: NDArray[np.float64]  # (t,), that mean
    near: float  # the kernel of a row to the nearest other one; only in one of twenty it is less
    levels: NDArray[np.float64]  # (l,), increasing
    residuals: NDArray[np.float64]  # (l, t), the quantiles of relative residuals at these levels

    def size(self, X: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the usual size of residuals at rows, (n, t)."""
        usual = np.exp(self.machine(X) + self.log_size)
        unknown = 1 - np.minimum(1, nearest(self.machine, X) / self.near) ** 2
        return np.asarray(np.sqrt(np.square(usual) + unknown[:, None]))

    def quantile(self, level: float) -> NDArray[np.float64]:
        """Return what share ``level`` of the relative residuals are below, (t,)."""
        return np.array([np.interp(level, self.levels, each) for each in self.residuals.T])

    def to_state(self) -> dict[str, Any]:
        """Return the value as nested dicts of numbers and arrays."""
        return dict(vars(self)) | {"machine": self.machine.to_state()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the value that :meth:`to_state` described, or refuse it with a CoCoError."""
        machine = KernelMachine.from_state(state_part(state, "machine", dict))
        near = state_part(state, "near", float)
        require(0 < near < np.inf, "its nearest kernel is none")
        levels = state_array(state, "levels", np.float64, (None,))
        residuals = state_array(state, "residuals", np.float64, (len(levels), machine.width))
        increase = (np.diff(levels) > 0).all() and (np.diff(residuals, axis=0) >= 0).all()
        require(len(levels) and increase, "its residuals do not increase")
        size = state_array(state, "log_size", np.float64, (machine.width,))
        return cls(machine, size, near, levels, residuals)


@dataclass(frozen=True, eq=False)
class NumberReadout:
    """Reads numbers off target points that were predicted for rows."""

    response: Response
    spread: Spread

    @property
    def n_targets(self) -> int:
        """Numbers of a row, t."""
        return len(self.response.center)

    def mean(self, z: NDArray[np.float64], X: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the expected numbers, (n, t): a power is undone for all that may be true."""
        if (self.response.powers == 1).all():
            return self.response.numbers(z)
        return np.asarray(self._possible(z, X).mean(axis=0))

    def deviation(self, z: NDArray[np.float64], X: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the standard deviation of the numbers, (n, t)."""
        return np.asarray(self._possible(z, X).std(axis=0))

    def quantiles(
        self, z: NDArray[np.float64], X: NDArray[np.float32], levels: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return quantiles of the numbers, (levels, n, t)."""
        size = self.spread.size(X)
        steps = (self.spread.quantile(level) * size for level in levels.tolist())
        return np.stack([self.response.numbers(z + step) for step in steps])

    def _possible(self, z: NDArray[np.float64], X: NDArray[np.float32]) -> NDArray[np.float64]:
        return self.quantiles(z, X, GRID)

    def to_state(self) -> dict[str, Any]:
        """Return the value as nested dicts."""
        return {"response": self.response.to_state(), "spread": self.spread.to_state()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the value that :meth:`to_state` described, or refuse it with a CoCoError."""
        response = Response.from_state(state_part(state, "response", dict))
        spread = Spread.from_state(state_part(state, "spread", dict))
        fits = len(response.center) == len(spread.log_size)
        require(fits, "its intervals are not those of its numbers")
        return cls(response, spread)


def nearest(machine: KernelMachine, X: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the kernel of each row to the nearest row of a machine, (n,)."""
    near = np.empty(len(X))
    for part in blocks(len(X), len(machine.rows)):
        near[part] = machine.kernel(X[part], machine.rows).max(axis=1)
    return near


def _power(u: NDArray[np.float64], power: float) -> NDArray[np.float64]:
    """Return Box and Cox's power of 1 + u; below 0, where no row of the sample was, that of 0."""
    if power == 1:
        return u
    log = np.log1p(np.maximum(u, 0))
    return np.asarray(log if power < LOG else np.expm1(power * log) / power)


def _root(z: NDArray[np.float64], power: float) -> NDArray[np.float64]:
    """Undo :func:`_power`; below its range is its end."""
    if power == 1:
        return z
    log = z if power < LOG else np.log1p(np.maximum(power * z, LEAST)) / power
    return np.asarray(np.expm1(np.minimum(log, LARGEST)))
