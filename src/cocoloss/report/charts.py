"""Charts that stand still: places in pixels, which ``templates/charts.html`` writes as SVG.

The numbers come from results that were computed before. The same pictures as files, for papers,
are in :mod:`cocoloss.report.figures`; what moves is drawn by the scripts of a page.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from cocoloss.report.templates import macro

N_COLOURS = 10


@dataclass(frozen=True)
class Line:
    """A line of a chart: its name, the number of its colour, and its points."""

    name: str
    colour: int
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Axes:
    """Where numbers go in a box of so many pixels."""

    width: float
    height: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    left: float = 46
    margins: tuple[float, float, float] = (10, 20, 40)  # top, right, bottom

    @property
    def right(self) -> float:
        """Where the box ends."""
        return self.width - self.margins[1]

    @property
    def bottom(self) -> float:
        """Where the x axis is."""
        return self.height - self.margins[2]

    def x(self, value: float) -> float:
        """Return the place of a number from the left."""
        return self.left + _share(value, self.x_range) * (self.right - self.left)

    def y(self, value: float) -> float:
        """Return the place of a number from the top."""
        return self.bottom - _share(value, self.y_range) * (self.bottom - self.margins[0])

    def frame(self, x_title: str, x_ticks: Sequence[tuple[float, str]]) -> dict[str, Any]:
        """Return what is drawn around the numbers."""
        return {
            "left": self.left,
            "right": self.right,
            "bottom": self.bottom,
            "x_title": x_title,
            "x_ticks": [(self.x(value), text) for value, text in x_ticks],
            "y_ticks": [(self.y(value), f"{value:g}") for value in ticks(*self.y_range)],
        }


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Return round numbers between two numbers.

    Examples
    --------
    >>> ticks(0.61, 0.93)
    [0.7, 0.8, 0.9]
    """
    if not high > low:
        return [low]
    raw = (high - low) / max(1, wanted)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def line_chart(
    lines: Sequence[Line],
    *,
    x_title: str,
    label: str,
    x_ticks: Sequence[float],
    size: tuple[float, float] = (520, 300),
    y_range: tuple[float, float] | None = None,
    keys: bool = True,
) -> Markup:
    """Return a line chart over ticks at even distances; points carry their numbers as titles.

    Examples
    --------
    >>> line = Line("a", 0, [(1, 0.5), (2, 0.7)])
    >>> line_chart([line], x_title="n", label="A", x_ticks=[1, 2]).count("<circle")
    2
    """
    known = [[p for p in line.points if math.isfinite(p[1])] for line in lines]
    y_range = y_range or widened([y for points in known for _, y in points])
    place = {tick: float(number) for number, tick in enumerate(x_ticks)}
    axes = Axes(*size, (0.0, max(1.0, len(place) - 1.0)), y_range)
    drawn = []
    for line, points in zip(lines, known, strict=True):
        places = [(axes.x(place[x]), axes.y(y)) for x, y in points]
        titles = [f"{line.name}, {x:g}: {y:.4f}" for x, y in points]
        marks = list(zip(places, titles, strict=True))
        drawn.append({"points": places, "marks": marks, "colour": _colour(line.colour)})
    frame = axes.frame(x_title, [(at, f"{tick:g}") for tick, at in place.items()])
    chart = _draw("lines", size, label, axes=frame, lines=drawn)
    return legend([(line.name, line.colour) for line in lines]) + chart if keys else chart


def scatter_chart(
    points: Sequence[tuple[float, float, str]],
    *,
    line: tuple[float, float] | None,
    x_title: str,
    label: str,
    size: tuple[float, float] = (520, 300),
) -> Markup:
    """Return points with their names as titles, and a straight line (slope, intercept)."""
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    axes = Axes(*size, widened(xs), widened([*ys, 0.0]), left=58)
    ends = []
    if line is not None and all(map(math.isfinite, line)):
        ends = [(axes.x(x), axes.y(line[0] * x + line[1])) for x in (min(xs), max(xs))]
    return _draw(
        "scatter",
        size,
        label,
        axes=axes.frame(x_title, [(value, f"{value:g}") for value in ticks(*axes.x_range, 7)]),
        zero=axes.y(0.0),
        marks=[((axes.x(x), axes.y(y)), title) for x, y, title in points],
        line=ends,
    )


def embedding_panel(
    embedding: NDArray[np.float64],
    labels: NDArray[np.int64],
    centres: NDArray[np.float64],
    *,
    extent: float,
    label: str,
    size: float = 260,
) -> Markup:
    """Return rows in the plane, the unit circle, and the class centres with lines to the origin."""
    middle = size / 2
    unit = middle / extent

    def places(points: NDArray[np.float64]) -> list[tuple[float, float]]:
        return [(middle + unit * float(p[0]), middle - unit * float(p[1])) for p in points]

    dots = []
    for c in range(len(centres)):
        # A path of dots is a tenth of as many circles.
        own = "".join(f"M{x:.1f},{y:.1f}h0" for x, y in places(embedding[labels == c]))
        dots.append((own or "M0,0", _colour(c)))
    return _draw(
        "panel",
        (size, size),
        label,
        middle=middle,
        radius=unit,
        dots=dots,
        centres=[(place, _colour(c)) for c, place in enumerate(places(centres))],
    )


def legend(names: Sequence[tuple[str, int]]) -> Markup:
    """Return a list of names with their colours."""
    return macro("charts.html", "legend", [(name, _colour(colour)) for name, colour in names])


def widened(values: Sequence[float], share: float = 0.06) -> tuple[float, float]:
    """Return a range that holds all values with some room at both ends."""
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    room = (high - low) * share or abs(high) * share or 0.5
    return low - room, high + room


def _share(value: float, within: tuple[float, float]) -> float:
    low, high = within
    return (value - low) / ((high - low) or 1.0)


def _colour(k: int) -> str:
    return f"var(--c{k % N_COLOURS})"


def _draw(kind: str, size: tuple[float, float], label: str, **parts: Any) -> Markup:
    width, height = (f"{side:g}" for side in size)
    return macro("charts.html", kind, {"size": (width, height), "label": label, **parts})
