"""Charts as files for papers and slides: SVG and PNG by matplotlib, without pyplot."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from cocoloss.benchmark.evolution_analysis import Evolution
from cocoloss.benchmark.imbalance_analysis import Trend
from cocoloss.exceptions import CoCoError
from cocoloss.report.cd_diagram import FIXED, NO_DATE, cd_diagram, cd_diagram_tikz
from cocoloss.report.charts import Line
from cocoloss.stats import Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The colours of the pages on a light ground; readable for the colour-blind.
COLOURS = ["#0072b2", "#d55e00", "#04a67e", "#9162f5", "#59570d"]
COLOURS += ["#c78ccc", "#650018", "#392dbb", "#a0446e", "#441866"]
DPI = 200
Files = Mapping[str, Callable[[], bytes]]


def figure_bytes(figure: "Figure", suffix: str) -> bytes:
    """Return a drawing in the format of a suffix; the same drawing gives the same bytes."""
    import matplotlib as mpl  # noqa: PLC0415 - optional

    buffer = BytesIO()
    with mpl.rc_context(FIXED):
        figure.savefig(buffer, format=suffix[1:], dpi=DPI, metadata=NO_DATE[suffix])
    return buffer.getvalue()


def files_of(draw: Callable[[], "Figure"]) -> Files:
    """Return what gives the files of a drawing, made when it is asked for."""
    drawn: list[Figure] = []

    def give(suffix: str) -> bytes:
        if not drawn:
            drawn.append(draw())
        return figure_bytes(drawn[0], suffix)

    return {suffix: partial(give, suffix) for suffix in (".svg", ".png")}


def cd_files(comparison: Comparison) -> Files:
    """Return what gives the files of a critical-difference diagram: SVG, PNG and TikZ."""
    drawing = files_of(lambda: cd_diagram(comparison))
    return {**drawing, ".tex": lambda: cd_diagram_tikz(comparison).encode()}


def line_figure(
    lines: Sequence[Line], *, x_title: str, y_title: str, x_ticks: Sequence[float]
) -> "Figure":
    """Draw lines over ticks at even distances."""
    place = {tick: number for number, tick in enumerate(x_ticks)}
    figure = _figure((4.6, 3.2))
    axes = figure.add_subplot()
    for line in lines:
        xs, ys = zip(*((place[x], y) for x, y in line.points), strict=True)
        axes.plot(
            xs, ys, marker="o", ms=4, color=COLOURS[line.colour % len(COLOURS)], label=line.name
        )
    axes.set_xticks(list(place.values()), [f"{tick:g}" for tick in place])
    axes.set_xlabel(x_title)
    axes.set_ylabel(y_title)
    _plain(axes)
    _legend(axes)
    return figure


def trend_figure(trend: Trend, y_title: str) -> "Figure":
    """Draw the improvement over the class ratio with its regression line."""
    figure = _figure((5.2, 3.4))
    axes = figure.add_subplot()
    x = trend.points["class_ratio"].to_numpy()
    axes.axhline(0, color="0.6", lw=0.8, ls="--")
    axes.plot(x, trend.points["improvement"], "o", ms=5, color=COLOURS[0], alpha=0.75)
    if np.isfinite(trend.slope):
        ends = np.array([x.min(), x.max()])
        axes.plot(ends, trend.slope * ends + trend.intercept, color=COLOURS[1])
    axes.set_xlabel("class ratio: largest / smallest")
    axes.set_ylabel(y_title)
    _plain(axes)
    return figure


def evolution_figure(run: Evolution, extent: float) -> "Figure":
    """Draw the embedding after each of the epochs, in one scale."""
    figure = _figure((2.5 * len(run.epochs), 2.8))
    angles = np.linspace(0, 2 * np.pi, 200)
    for number, epoch in enumerate(run.epochs):
        axes = figure.add_subplot(1, len(run.epochs), number + 1)
        axes.plot(np.cos(angles), np.sin(angles), color="0.75", lw=0.8)
        for c, name in enumerate(run.classes):
            own = run.embeddings[number][run.labels == c]
            colour = COLOURS[c % len(COLOURS)]
            # As pixels also in an SVG: thousands of dots would make it large.
            (dots,) = axes.plot(
                own[:, 0], own[:, 1], ".", ms=3, color=colour, alpha=0.5, label=name
            )
            dots.set_rasterized(True)
        for c, centre in enumerate(run.centres[number]):
            axes.plot([0, centre[0]], [0, centre[1]], color="black", lw=0.8)
            axes.plot(*centre, "o", ms=7, mec="white", color=COLOURS[c % len(COLOURS)])
        axes.set(xlim=(-extent, extent), ylim=(-extent, extent), aspect="equal")
        axes.set_title(f"epoch {epoch}, cos = {run.measures['cosine'][number]:.3f}", fontsize=9)
        axes.tick_params(labelsize=7)
    return figure


def _figure(size: tuple[float, float]) -> "Figure":
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - optional
    except ImportError as error:
        raise CoCoError("drawing needs matplotlib; install it, or cocoloss[benchmark]") from error
    return Figure(figsize=size, dpi=DPI, facecolor="white", layout="constrained")


def _plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9", lw=0.8)
    axes.set_axisbelow(True)


def _legend(axes: Any) -> None:
    legend = axes.legend(frameon=False, fontsize=8)
    for text in legend.get_texts():
        text.set_parse_math(False)  # a dollar in a name is a dollar
