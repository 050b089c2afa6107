"""Where everything in a critical-difference diagram goes, in inches; knows no drawing library.

The axis is at height 0 and runs from rank 1 at x = 0 to rank k. Each model leaves the axis at its
rank and goes down in a lane of its own, so that models of (nearly) equal rank stay apart; bars
join lanes; below the bars, lanes turn outwards to the names, the better half to the left.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from sklearn.isotonic import isotonic_regression

from cocoloss.exceptions import CoCoError
from cocoloss.stats import Comparison

LANE = 0.11  # least distance of two lanes
OVERHANG = 0.035  # of a bar beyond its outer lanes; less than half a lane, so it touches no other
FAN = 0.2  # height in which lanes part, if ranks are too close
BAR_STEP = 0.09  # distance of two rows of bars
PAD = 0.12  # between the outermost lane and the names
MOST_TICKS = 12
AXIS_TITLE = "average rank (1 is best)"
DOTTED_NOTE = "Dotted lines join only the models with a dot."


@dataclass(frozen=True)
class Bar:
    """A group of models that do not differ.

    Attributes
    ----------
    members : tuple of int
        Places of the models, best first.
    whole : bool
        Whether all models between the first and the last are members. If not, only lanes with a
        dot are.
    left, right, y : float
        Where it is.
    """

    members: tuple[int, ...]
    whole: bool
    left: float
    right: float
    y: float


@dataclass(frozen=True)
class Layout:
    """Positions of a diagram, in inches.

    Attributes
    ----------
    width, unit : float
        Length of the axis, and of one rank on it.
    ticks : list of (x, rank)
        Where the axis has numbers.
    small_ticks : list of float
        Where it has the ranks between them, if they are not too many.
    starts, lanes : list of float
        Where each model leaves the axis, and where its lane is.
    fan : float
        Height at which all are in their lanes; 0 if they are from the start.
    bars : list of Bar
        Groups, without overlaps.
    rows : list of float
        Height at which each lane turns outwards.
    n_left : int
        How many models, the better ones, have their names on the left.
    left, right : float
        Where the names begin.
    """

    width: float
    unit: float
    ticks: list[tuple[float, int]]
    small_ticks: list[float]
    starts: list[float]
    lanes: list[float]
    fan: float
    bars: list[Bar]
    rows: list[float]
    n_left: int
    left: float
    right: float

    def path(self, place: int) -> list[tuple[float, float]]:
        """Return the line of a model: from its rank down its lane and out to its name."""
        start, lane, row = self.starts[place], self.lanes[place], self.rows[place]
        edge = self.left if place < self.n_left else self.right
        parting = [(start, self.fan * 0.3), (lane, self.fan)] if self.fan else []
        return [(start, 0.0), *parting, (lane, row), (edge, row)]


def lay_out(comparison: Comparison, *, axis_width: float, row_step: float) -> Layout:
    """Place axis, lanes, bars and names.

    Parameters
    ----------
    comparison : Comparison
        What is to be shown.
    axis_width : float
        Length of the axis in inches; more if lanes or numbers need it.
    row_step : float
        Distance of two names on the same side.
    """
    if not axis_width > 0:
        raise CoCoError(f"axis_width must be a positive number of inches, not {axis_width!r}")
    k = comparison.n_models
    labelled = ticks(k)
    closest = min(b - a for a, b in pairwise(labelled))
    # Room for the lanes, and for numbers of three digits beside each other.
    unit = max(axis_width, 1.25 * LANE * k) / (k - 1)
    unit = max(unit, 1.5 * row_step / closest)
    width = unit * (k - 1)
    starts = [(rank - 1) * unit for rank in comparison.average_ranks]
    lanes = spread(starts, LANE)
    fan = 0.0 if np.allclose(starts, lanes, rtol=0, atol=1e-9) else -FAN
    place = {model: number for number, model in enumerate(comparison.models)}
    groups = [tuple(place[model] for model in clique) for clique in comparison.cliques]
    bars = _stack(groups, lanes, fan - 0.14)
    below = min([bar.y for bar in bars], default=fan - 0.02)
    n_left = (k + 1) // 2
    first_row = below - 0.16
    rows = [first_row - row_step * min(j, k - 1 - j) for j in range(k)]
    return Layout(
        width=width,
        unit=unit,
        ticks=[((rank - 1) * unit, rank) for rank in labelled],
        small_ticks=[j * unit for j in range(k)] if unit > 0.1 else [],
        starts=starts,
        lanes=lanes,
        fan=fan,
        bars=bars,
        rows=rows,
        n_left=n_left,
        left=min(0.0, lanes[0]) - PAD,
        right=max(width, lanes[-1]) + PAD,
    )


def spread(positions: Sequence[float], gap: float) -> list[float]:
    """Move sorted positions as little as possible so that neighbours are a gap apart.

    Examples
    --------
    >>> from cocoloss.report.cd_layout import spread
    >>> [round(x, 2) for x in spread([1.0, 2.0, 2.0, 4.0], 0.5)]
    [1.0, 1.75, 2.25, 4.0]
    """
    # With y_j = x_j - j gap the wish is y_1 <= y_2 <= ..., and the least squares way is isotonic.
    offsets = gap * np.arange(len(positions))
    moved = isotonic_regression(np.asarray(positions, dtype=np.float64) - offsets) + offsets
    return [float(x) for x in moved]


def ticks(k: int) -> list[int]:
    """Return round ranks between 1 and k, few enough to be read, both ends among them.

    Examples
    --------
    >>> from cocoloss.report.cd_layout import ticks
    >>> ticks(5), ticks(20), ticks(23)
    ([1, 2, 3, 4, 5], [1, 5, 10, 15, 20], [1, 5, 10, 15, 20, 23])
    """
    if k <= MOST_TICKS:
        return list(range(1, k + 1))
    step = next(
        s * 10**power for power in range(9) for s in (5, 10, 20) if k / (s * 10**power) < 10
    )
    round_ones = [rank for rank in range(step, k, step) if k - rank >= 0.6 * step]
    return [1, *round_ones, k]


def _stack(groups: list[tuple[int, ...]], lanes: list[float], top: float) -> list[Bar]:
    """Give every group the highest row in which there is room for it; whole runs come first."""
    bars = []
    ends: list[list[tuple[float, float]]] = []  # what is taken, row by row
    for members in groups:
        left, right = lanes[members[0]] - OVERHANG, lanes[members[-1]] + OVERHANG
        row = next(
            (
                number
                for number, taken in enumerate(ends)
                if all(right + LANE / 2 < a or b + LANE / 2 < left for a, b in taken)
            ),
            len(ends),
        )
        if row == len(ends):
            ends.append([])
        ends[row].append((left, right))
        whole = len(members) == members[-1] - members[0] + 1
        bars.append(Bar(members, whole, left, right, top - BAR_STEP * row))
    return bars


def caption_lines(comparison: Comparison, layout: Layout, *, about_test: bool) -> list[str]:
    """Return what is said below the diagram: how to read it, and which test was done."""
    lines = [] if all(bar.whole for bar in layout.bars) else [DOTTED_NOTE]
    if about_test:
        test = {"nemenyi": "Nemenyi", "wilcoxon": "Wilcoxon-Holm"}[comparison.test]
        lines.append(
            f"{test}, alpha = {comparison.alpha:g}, {comparison.n_datasets} datasets; "
            f"{comparison.describe_friedman()}"
        )
    return lines


def one_line(name: str) -> str:
    """Return a name without line breaks and other wide spaces."""
    return " ".join(name.split())
