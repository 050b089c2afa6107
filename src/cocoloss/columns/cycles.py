"""Where a date stands in the day, the week and the year, as a point on a circle."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Days = NDArray[np.float64]  # since 1970-01-01, a Thursday


def _hour(days: Days) -> Days:
    return days - np.floor(days)


def _weekday(days: Days) -> Days:
    return (np.floor(days) + 3) % 7 / 7  # Monday is 0


def _month(days: Days) -> Days:
    months = np.floor(days).astype(np.int64).astype("datetime64[D]").astype("datetime64[M]")
    return months.astype(np.int64) % 12 / 12


CYCLES: dict[str, Callable[[Days], Days]] = {"hour": _hour, "weekday": _weekday, "month": _month}


def varying_cycles(days: Days) -> list[str]:
    """Return the names of the cycles in which the dates differ.

    Examples
    --------
    >>> import numpy as np
    >>> varying_cycles(np.array([0.0, 7.0, 364.0]))  # Thursdays at midnight
    ['month']
    """
    days = days[~np.isnan(days)]
    return [name for name, phase in CYCLES.items() if np.unique(phase(days)).size > 1]


def write_cycles(days: Days, cycles: Sequence[str], out: NDArray[np.float32]) -> None:
    """Write sine and cosine of each cycle; a gap is the centre of the circle.

    Parameters
    ----------
    days : ndarray of shape (n_rows,)
        Days since 1970, NaN in a gap.
    cycles : sequence of str
        Names of cycles.
    out : ndarray of shape (n_rows, 2 * len(cycles))
        Where the result goes.
    """
    is_gap = np.isnan(days)
    filled = np.where(is_gap, 0.0, days)
    for j, cycle in enumerate(cycles):
        angle = 2 * np.pi * CYCLES[cycle](filled)
        out[:, 2 * j] = np.where(is_gap, 0.0, np.sin(angle))
        out[:, 2 * j + 1] = np.where(is_gap, 0.0, np.cos(angle))


def cycle_names(name: str, cycles: Sequence[str]) -> list[str]:
    """Return the names of the columns that :func:`write_cycles` fills."""
    return [f"{name}_{cycle}_{part}" for cycle in cycles for part in ("sin", "cos")]
