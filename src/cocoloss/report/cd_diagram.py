"""Critical-difference diagrams (Demsar, 2006) of a finished comparison, by matplotlib.

The layout comes first, in inches, and knows no drawing library. The axis is at height 0 and runs
from rank 1 at x = 0 to rank k. Each model leaves the axis at its rank and goes straight down past
the bars, which span ranks. Below them the lines part into lanes, so that models of (nearly) equal
rank stay apart, and turn outwards to the names, the better half to the left.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cocoloss.exceptions import CoCoError
from cocoloss.files import write_whole
from cocoloss.report.figures import NEEDS_MATPLOTLIB, SUFFIXES, figure_bytes, new_figure
from cocoloss.stats import Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["cd_diagram"]

AXIS_WIDTH = 4.5  # inches, as all lengths
FONT_SIZE = 9.0  # points
LINE = FONT_SIZE / 72  # height of a line of text
ROW_STEP = 1.6 * FONT_SIZE / 72  # distance of two names on the same side
LANE = 0.11  # least distance of two lanes
NEAR = 0.03  # ranks this close look the same
SHORTEST = 0.08  # length of a bar that can be seen
FAN = 0.2  # height in which lines part into lanes, if ranks are too close
BAR_STEP = 0.09  # distance of two rows of bars
PAD = 0.12  # between the outermost lane and the names
MOST_TICKS = 12
AXIS_TITLE = "average rank (1 is best)"
DOTTED_NOTE = "Dotted lines join only the models with a dot."
FONT = "DejaVu Sans"  # comes with matplotlib, so that names have the same width everywhere
GREY = "0.4"
MARGIN = 0.08  # around everything
MEASURED = 720  # dots per inch at which the widths of names are taken


def cd_diagram(
    comparison: Comparison,
    path: str | os.PathLike[str] | None = None,
    *,
    axis_width: float = AXIS_WIDTH,
    caption: bool = True,
    longest_name: int | None = None,
) -> "Figure":
    """Draw a critical-difference diagram.

    Rank 1, the best, is on the left. A thick bar spans from the first to the last rank of models
    no two of which differ, and touches no other model's line. Where a bar could not say that -
    because a model between them differs, which tests of single pairs can find, or because ranks
    are too close to be told apart - a dotted line below has a dot on each of its members. Every
    pair that does not differ is joined by a bar or has its dots on one line; no other pair is.

    Parameters
    ----------
    comparison : Comparison
        From :func:`cocoloss.stats.compare`. Nothing is computed here.
    path : path, optional
        Where to write; .svg, .png or .pdf. The same comparison gives the same file.
    axis_width : float
        Length of the axis in inches; the names need more.
    caption : bool
        Whether to say below which test was done, on how many datasets, and what Friedman's says.
    longest_name : int, optional
        Letters of a name; longer ones are cut.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: no global state, no screen needed.

    Raises
    ------
    CoCoError
        If matplotlib is missing, or the path cannot be written or has another suffix.

    Examples
    --------
    >>> from cocoloss.report.cd_diagram import cd_diagram
    >>> from cocoloss.stats import compare
    >>> figure = cd_diagram(compare({"a": [0.9, 0.8, 0.7], "b": [0.6, 0.5, 0.4]}))
    """
    target = None if path is None else Path(path)
    if target is not None and target.suffix.lower() not in SUFFIXES:
        raise CoCoError(f"cannot draw {target.name}: the name must end in {', '.join(SUFFIXES)}")
    layout = lay_out(comparison, axis_width)
    lines = caption_lines(comparison, layout, about_test=caption)
    figure = _Drawing(comparison, layout, longest_name).figure(lines)
    if target is not None:
        with write_whole(target) as aside:
            aside.write_bytes(figure_bytes(figure, target.suffix.lower()))
    return figure


@dataclass(frozen=True)
class Bar:
    """A group of models that do not differ."""

    members: tuple[int, ...]  # places of the models, best first
    dotted: bool  # whether it joins the lanes that have a dot; else it spans ranks
    left: float
    right: float
    y: float


@dataclass(frozen=True)
class Layout:
    """Positions of a diagram, in inches."""

    width: float  # length of the axis
    unit: float  # of one rank on it
    ticks: list[tuple[float, int]]  # (x, rank) where the axis has numbers
    small_ticks: list[float]  # the ranks between them, if they are not too many
    starts: list[float]  # where each model leaves the axis
    lanes: list[float]  # where its lane is
    parting: tuple[float, float]  # between which heights lines go from their ranks to their lanes
    bars: list[Bar]  # groups, without overlaps
    rows: list[float]  # height at which each lane turns outwards
    n_left: int  # how many models, the better ones, have their names on the left
    left: float  # where the names begin
    right: float

    def path(self, place: int) -> list[tuple[float, float]]:
        """Return the line of a model: from its rank down to its lane and out to its name."""
        start, lane, row = self.starts[place], self.lanes[place], self.rows[place]
        above, below = self.parting
        edge = self.left if place < self.n_left else self.right
        return [(start, 0.0), (start, above), (lane, below), (lane, row), (edge, row)]


def lay_out(comparison: Comparison, axis_width: float = AXIS_WIDTH) -> Layout:
    """Place axis, lines, bars and names; the axis is longer if lanes or numbers need it."""
    if not axis_width > 0:
        raise CoCoError(f"axis_width must be a positive number of inches, not {axis_width!r}")
    k = comparison.n_models
    labelled = rank_ticks(k)
    closest = min(b - a for a, b in pairwise(labelled))
    # Room for the lanes, and for numbers of three digits beside each other.
    unit = max(axis_width, 1.25 * LANE * k) / (k - 1)
    unit = max(unit, 1.5 * ROW_STEP / closest)
    width = unit * (k - 1)
    starts = [(rank - 1) * unit for rank in comparison.average_ranks]
    lanes = spread(starts, LANE)
    place = {model: number for number, model in enumerate(comparison.models)}
    groups = [tuple(place[model] for model in clique) for clique in comparison.cliques]
    on_ranks = [group for group in groups if _is_clear(group, starts)]
    on_lanes = [group for group in groups if group not in on_ranks]
    bars = _stack(on_ranks, starts, -0.14, dotted=False)
    above = min([bar.y for bar in bars], default=0.02) - 0.06
    below = above if np.allclose(starts, lanes, rtol=0, atol=1e-9) else above - FAN
    bars += _stack(on_lanes, lanes, below - 0.1, dotted=True)
    first_row = min([below, *(bar.y for bar in bars)]) - 0.16
    return Layout(
        width=width,
        unit=unit,
        ticks=[((rank - 1) * unit, rank) for rank in labelled],
        small_ticks=[j * unit for j in range(k)] if unit > 0.1 else [],
        starts=starts,
        lanes=lanes,
        parting=(above, below),
        bars=bars,
        rows=[first_row - ROW_STEP * min(j, k - 1 - j) for j in range(k)],
        n_left=(k + 1) // 2,
        left=min(0.0, lanes[0]) - PAD,
        right=max(width, lanes[-1]) + PAD,
    )


def spread(positions: Sequence[float], gap: float) -> list[float]:
    """Move sorted positions as little as possible so that neighbours are a gap apart."""
    from sklearn.isotonic import isotonic_regression  # noqa: PLC0415 - heavy

    # With y_j = x_j - j gap the wish is y_1 <= y_2 <= ..., and the least squares way is isotonic.
    offsets = gap * np.arange(len(positions))
    moved = isotonic_regression(np.asarray(positions, dtype=np.float64) - offsets) + offsets
    return [float(x) for x in moved]


def rank_ticks(k: int) -> list[int]:
    """Return round ranks between 1 and k, few enough to be read, both ends among them."""
    if k <= MOST_TICKS:
        return list(range(1, k + 1))
    step = next(
        s * 10**power for power in range(9) for s in (5, 10, 20) if k / (s * 10**power) < 10
    )
    round_ones = [rank for rank in range(step, k, step) if k - rank >= 0.6 * step]
    return [1, *round_ones, k]


def _is_clear(members: tuple[int, ...], starts: list[float]) -> bool:
    """Say whether a bar over the ranks of models can be seen, and touches no other model."""
    left, right = starts[members[0]], starts[members[-1]]
    touched = [j for j, x in enumerate(starts) if left - NEAR <= x <= right + NEAR]
    return right - left >= SHORTEST and touched == list(members)


def _stack(
    groups: list[tuple[int, ...]], positions: list[float], top: float, *, dotted: bool
) -> list[Bar]:
    """Give every group the highest row in which there is room for it."""
    bars = []
    ends: list[list[tuple[float, float]]] = []  # what is taken, row by row
    for members in groups:
        left, right = positions[members[0]], positions[members[-1]]
        row = next(
            (
                number
                for number, taken in enumerate(ends)
                if all(right + LANE < a or b + LANE < left for a, b in taken)
            ),
            len(ends),
        )
        if row == len(ends):
            ends.append([])
        ends[row].append((left, right))
        bars.append(Bar(members, dotted, left, right, top - BAR_STEP * row))
    return bars


def caption_lines(comparison: Comparison, layout: Layout, *, about_test: bool) -> list[str]:
    """Return the caption of the diagram: how to read it, and which test was done."""
    lines = [DOTTED_NOTE] if any(bar.dotted for bar in layout.bars) else []
    if about_test:
        test = {"nemenyi": "Nemenyi", "wilcoxon": "Wilcoxon-Holm"}[comparison.test]
        lines.append(
            f"{test}, alpha = {comparison.alpha:g}, {comparison.n_datasets} datasets; "
            f"{comparison.describe_friedman()}"
        )
    return lines


def diagram_note(comparison: Comparison) -> str:
    """Return how to read the diagram, in words."""
    joined = "A bar joins models that do not differ significantly."
    lines = caption_lines(comparison, lay_out(comparison), about_test=True)
    return " ".join([joined if comparison.cliques else "Every pair differs.", *lines]) + "."


def diagram_label(comparison: Comparison) -> str:
    """Return what the diagram shows, for those who cannot see it."""
    ranks = ", ".join(f"{model} {rank:.2f}" for model, rank in comparison.average_ranks.items())
    groups = "; ".join(", ".join(group) for group in comparison.cliques) or "none"
    return f"Average ranks: {ranks}. Groups that do not differ: {groups}."


class _Drawing:
    """Puts a layout on a matplotlib figure whose data coordinates are inches."""

    def __init__(self, comparison: Comparison, layout: Layout, longest_name: int | None) -> None:
        try:
            from matplotlib.backends import backend_agg  # noqa: PLC0415 - optional
            from matplotlib.font_manager import FontProperties  # noqa: PLC0415
        except ImportError as error:
            raise CoCoError(NEEDS_MATPLOTLIB) from error
        self.comparison, self.layout, self.longest_name = comparison, layout, longest_name
        self.font = FontProperties(family=FONT, size=FONT_SIZE)
        self.small = FontProperties(family=FONT, size=0.85 * FONT_SIZE)
        renderer: Any = backend_agg.RendererAgg  # measures text
        self._renderer = renderer(16, 16, MEASURED)

    def figure(self, caption: list[str]) -> "Figure":
        layout, labels = self.layout, self._labels()
        left = layout.left - max(self._width(t) for t in labels[: layout.n_left])
        right = layout.right + max(self._width(t) for t in labels[layout.n_left :])
        distance = self.comparison.critical_distance
        ruler = 0.0 if distance is None else distance * layout.unit
        title = self._width(AXIS_TITLE, small=True)
        left = min(left, (layout.width - title) / 2)
        caption_width = max((self._width(t, small=True) for t in caption), default=0.0)
        right = max(right, ruler + 0.1, left + caption_width, (layout.width + title) / 2)
        top = 0.12 + 3.0 * LINE + (0.0 if distance is None else 2.2 * LINE)
        bottom = min(layout.rows) - 0.9 * LINE - 1.6 * LINE * len(caption)
        figure = new_figure((right - left + 2 * MARGIN, top - bottom + 2 * MARGIN), layout=None)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(left - MARGIN, right + MARGIN)
        axes.set_ylim(bottom - MARGIN, top + MARGIN)
        self._axis(axes, ruler)
        self._models(axes, labels)
        self._bars(axes)
        for number, line in enumerate(caption):
            y = min(layout.rows) - 0.9 * LINE - 1.6 * LINE * (number + 0.5)
            self._text(axes, left, y, line, ha="left", small=True, gid=f"caption-{number}")
        return figure

    def _axis(self, axes: Any, ruler: float) -> None:
        layout = self.layout
        self._draw(axes, [(0, 0), (layout.width, 0)], "axis", width=1.0)
        for x in layout.small_ticks:
            self._draw(axes, [(x, 0), (x, 0.03)], "tick", width=0.8)
        for x, rank in layout.ticks:
            self._draw(axes, [(x, 0), (x, 0.06)], "tick", width=1.0)
            self._text(axes, x, 0.08 + 0.6 * LINE, str(rank))
        self._text(axes, layout.width / 2, 0.1 + 2.1 * LINE, AXIS_TITLE, small=True)
        if ruler:
            y = 0.12 + 3.2 * LINE
            shape = [(0, y + 0.04), (0, y - 0.04), (0, y), (ruler, y), (ruler, y + 0.04)]
            self._draw(axes, [*shape, (ruler, y - 0.04)], "critical-distance", width=1.0)
            text = f"CD = {self.comparison.critical_distance:.3f}"
            middle = max(ruler, self._width(text, small=True)) / 2
            self._text(axes, middle, y + 0.95 * LINE, text, small=True)

    def _models(self, axes: Any, labels: list[str]) -> None:
        layout = self.layout
        for place, label in enumerate(labels):
            left = place < layout.n_left
            self._draw(axes, layout.path(place), f"model-{place}", width=0.8)
            x = layout.left - 0.04 if left else layout.right + 0.04
            self._text(axes, x, layout.rows[place], label, ha="right" if left else "left")

    def _bars(self, axes: Any) -> None:
        for number, bar in enumerate(self.layout.bars):
            ends = [(bar.left, bar.y), (bar.right, bar.y)]
            if not bar.dotted:
                self._draw(axes, ends, f"bar-{number}", width=3.0)
                continue
            self._draw(axes, ends, f"dotted-{number}", width=1.0, linestyle=(0, (1, 1.5)))
            dots = [(self.layout.lanes[place], bar.y) for place in bar.members]
            self._draw(axes, dots, f"dots-{number}", width=0, marker="o", markersize=4)

    def _labels(self) -> list[str]:
        ranks = [f"{rank:.2f}" for rank in self.comparison.average_ranks]
        widest = max(map(len, ranks))
        texts = []
        for place, (model, rank) in enumerate(zip(self.comparison.models, ranks, strict=True)):
            name, padded = self._name(model), rank.rjust(widest, "\N{FIGURE SPACE}")
            texts.append(f"{name}  {rank}" if place < self.layout.n_left else f"{padded}  {name}")
        return texts

    def _name(self, model: str) -> str:
        """Return a name on one line, of what can be printed, cut if it is too long."""
        name = " ".join("".join(c if c.isprintable() else " " for c in model).split())
        most = self.longest_name
        return name if most is None or len(name) <= most else name[: most - 1] + "…"

    def _width(self, text: str, *, small: bool = False) -> float:
        font = self.small if small else self.font
        width, _, _ = self._renderer.get_text_width_height_descent(text, font, ismath=False)
        return float(width) / MEASURED + 0.06

    def _text(
        self, axes: Any, x: float, y: float, text: str, *, small: bool = False, **style: Any
    ) -> None:
        axes.text(
            *(x, y, text),
            **{"ha": "center", "va": "center", **style},
            color=GREY if small else "black",
            fontproperties=self.small if small else self.font,
            parse_math=False,  # a dollar in a name is a dollar
            usetex=False,
        )

    @staticmethod
    def _draw(
        axes: Any, points: list[tuple[float, float]], gid: str, *, width: float, **style: Any
    ) -> None:
        xs, ys = zip(*points, strict=True)
        style = {"color": "black", "solid_capstyle": "butt", **style}
        axes.plot(xs, ys, linewidth=width, gid=gid, scalex=False, scaley=False, **style)
