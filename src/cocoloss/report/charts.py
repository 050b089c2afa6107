"""Charts for pages: lines, points and panels as SVG in the page's own colours, without scripts.

The numbers come from results that were computed before. The same pictures as files, for papers,
are in :mod:`cocoloss.report.figures`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cocoloss.report.page import Markup, element

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
    right: float = 20
    top: float = 10
    bottom: float = 40

    def x(self, value: float) -> float:
        """Return the place of a number from the left."""
        low, high = self.x_range
        share = (value - low) / ((high - low) or 1.0)
        return self.left + share * (self.width - self.left - self.right)

    def y(self, value: float) -> float:
        """Return the place of a number from the top."""
        low, high = self.y_range
        share = (value - low) / ((high - low) or 1.0)
        return self.height - self.bottom - share * (self.height - self.top - self.bottom)


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
    >>> chart = line_chart([Line("a", 0, [(1, 0.5), (2, 0.7)])], x_title="n", label="A", x_ticks=[1, 2])
    >>> chart.count("<circle")
    2
    """  # noqa: E501 - an example
    values = [y for line in lines for _, y in line.points if math.isfinite(y)]
    y_range = y_range or widened(values)
    place = {tick: float(number) for number, tick in enumerate(x_ticks)}
    axes = Axes(*size, (0.0, max(1.0, len(place) - 1.0)), y_range)
    parts = axis_parts(axes, x_title, x_ticks=[(at, f"{tick:g}") for tick, at in place.items()])
    for line in lines:
        colour = f"var(--c{line.colour % N_COLOURS})"
        places = [(axes.x(place[x]), axes.y(y)) for x, y in line.points if math.isfinite(y)]
        path = "L".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(element("path", d=f"M{path}", class_="curve", stroke=colour))
        for (x, y), (px, py) in zip(
            [p for p in line.points if math.isfinite(p[1])], places, strict=True
        ):
            note = element("title", f"{line.name}, {x:g}: {y:.4f}")
            parts.append(
                element("circle", note, cx=f"{px:.1f}", cy=f"{py:.1f}", r=3.4, fill=colour)
            )
    chart = _svg(parts, size, label)
    return Markup(legend([(line.name, line.colour) for line in lines]) + chart) if keys else chart


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
    marks = [(value, f"{value:g}") for value in ticks(*axes.x_range, 7)]
    parts = axis_parts(axes, x_title, x_ticks=marks)
    zero = axes.y(0.0)
    parts.append(
        element(
            "line",
            class_="kept",
            x1=axes.left,
            x2=axes.width - axes.right,
            y1=f"{zero:.1f}",
            y2=f"{zero:.1f}",
        )
    )
    for x, y, title in points:
        note = element("title", title)
        parts.append(
            element(
                "circle", note, cx=f"{axes.x(x):.1f}", cy=f"{axes.y(y):.1f}", r=4.5, class_="point"
            )
        )
    if line is not None and all(map(math.isfinite, line)):
        ends = [(x, line[0] * x + line[1]) for x in (min(xs), max(xs))]
        path = "L".join(f"{axes.x(x):.1f},{axes.y(y):.1f}" for x, y in ends)
        parts.append(element("path", d=f"M{path}", class_="curve", stroke="var(--bad)"))
    return _svg(parts, size, label)


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
    unit = size / 2 / extent
    middle = size / 2

    def place(point: NDArray[np.float64]) -> tuple[float, float]:
        return middle + unit * float(point[0]), middle - unit * float(point[1])

    parts = [
        element("circle", cx=middle, cy=middle, r=f"{unit:.1f}", class_="circle"),
    ]
    for c in range(len(centres)):
        # A path of dots is a tenth of as many circles.
        own = [place(p) for p in embedding[labels == c]]
        dots = "".join(f"M{x:.1f},{y:.1f}h0" for x, y in own)
        parts.append(element("path", d=dots or "M0,0", class_="dots", stroke=_colour(c)))
    for c, centre in enumerate(centres):
        x, y = place(centre)
        parts += [
            element("path", d=f"M{middle},{middle}L{x:.1f},{y:.1f}", class_="spoke"),
            element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=6, class_="centre", fill=_colour(c)),
        ]
    return _svg(parts, (size, size), label)


def axis_parts(axes: Axes, x_title: str, *, x_ticks: Sequence[tuple[float, str]]) -> list[Markup]:
    """Return rules, numbers and the title of the x axis."""
    right, bottom = axes.width - axes.right, axes.height - axes.bottom
    parts = []
    for value in ticks(*axes.y_range):
        y = axes.y(value)
        parts += [
            element("line", class_="rule", x1=axes.left, x2=right, y1=f"{y:.1f}", y2=f"{y:.1f}"),
            element("text", f"{value:g}", x=axes.left - 8, y=f"{y + 4:.1f}", text_anchor="end"),
        ]
    parts.append(element("line", class_="axis", x1=axes.left, x2=right, y1=bottom, y2=bottom))
    parts += [
        element("text", text, x=f"{axes.x(v):.1f}", y=bottom + 17, text_anchor="middle")
        for v, text in x_ticks
    ]
    parts.append(element("text", x_title, x=right, y=bottom + 34, text_anchor="end"))
    return parts


def legend(names: Sequence[tuple[str, int]]) -> Markup:
    """Return a list of names with their colours."""
    items = [
        element(
            "li",
            element(
                "svg",
                element("path", d="M1,4H21", class_="curve", stroke=_colour(colour)),
                viewBox="0 0 22 8",
                aria_hidden="true",
            ),
            name,
        )
        for name, colour in names
    ]
    return element("ul", items, class_="keys")


def widened(values: Sequence[float], share: float = 0.06) -> tuple[float, float]:
    """Return a range that holds all values with some room at both ends."""
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    room = (high - low) * share or abs(high) * share or 0.5
    return low - room, high + room


def _colour(k: int) -> str:
    return f"var(--c{k % N_COLOURS})"


def _svg(parts: Sequence[Markup], size: tuple[float, float], label: str) -> Markup:
    return element(
        "svg",
        parts,
        class_="chart",
        viewBox=f"0 0 {size[0]:g} {size[1]:g}",
        role="img",
        aria_label=label,
    )
