"""Critical-difference diagrams (Demsar, 2006) of a finished comparison: SVG, PNG, PDF, TikZ."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cocoloss.exceptions import CoCoError
from cocoloss.files import write_whole
from cocoloss.report.cd_layout import AXIS_TITLE, Layout, caption_lines, lay_out, one_line
from cocoloss.report.cd_tikz import cd_diagram_tikz
from cocoloss.stats import Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["cd_diagram", "cd_diagram_tikz"]

FORMATS = (".svg", ".png", ".pdf")
# No date and no version: the same comparison gives the same bytes.
NO_DATE = {
    ".svg": {"Date": None, "Creator": None},
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
FIXED: dict[Any, Any] = {
    "pdf.fonttype": 42,  # text that can be searched
    "savefig.bbox": "standard",
    "svg.fonttype": "path",  # names look the same, whatever fonts the reader has
    "svg.hashsalt": "cocoloss",
}
FONT = "DejaVu Sans"  # comes with matplotlib, so that names have the same width everywhere
GREY = "0.4"
MARGIN = 0.08  # around everything, in inches
MEASURED = 720  # dots per inch at which the widths of names are taken


def cd_diagram(
    comparison: Comparison,
    path: str | os.PathLike[str] | None = None,
    *,
    axis_width: float = 4.5,
    font_size: float = 9.0,
    dpi: int = 200,
    caption: bool = True,
) -> "Figure":
    """Draw a critical-difference diagram.

    Rank 1, the best, is on the left. A thick bar joins models no two of which differ, and touches
    no other model's line. Where models do not differ though one between them does, which tests of
    single pairs can find, a dotted line has a dot on each of its members. Every pair that does
    not differ is joined by a bar or has its dots on one line; no other pair is.

    Parameters
    ----------
    comparison : Comparison
        From :func:`cocoloss.stats.compare`. Nothing is computed here.
    path : path, optional
        Where to write; .svg, .png or .pdf. The same comparison gives the same file.
    axis_width : float
        Length of the axis in inches; the names need more.
    font_size : float
        In points.
    dpi : int
        Dots per inch of a PNG.
    caption : bool
        Whether to say below which test was done, on how many datasets, and what Friedman's says.

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
    if target is not None and target.suffix.lower() not in FORMATS:
        raise CoCoError(f"cannot draw {target.name}: the name must end in {', '.join(FORMATS)}")
    if not font_size > 0:
        raise CoCoError(f"font_size must be a positive number of points, not {font_size!r}")
    layout = lay_out(comparison, axis_width=axis_width, row_step=1.6 * font_size / 72)
    figure = _Drawing(comparison, layout, font_size, dpi).figure(
        caption_lines(comparison, layout, about_test=caption)
    )
    if target is not None:
        import matplotlib as mpl  # noqa: PLC0415 - optional

        suffix = target.suffix.lower()
        with write_whole(target) as aside, mpl.rc_context(FIXED):
            figure.savefig(aside, format=suffix[1:], dpi=dpi, metadata=NO_DATE[suffix])
    return figure


class _Drawing:
    """Puts a layout on a matplotlib figure whose data coordinates are inches."""

    def __init__(self, comparison: Comparison, layout: Layout, font_size: float, dpi: int) -> None:
        try:
            from matplotlib.backends import backend_agg  # noqa: PLC0415 - optional
            from matplotlib.font_manager import FontProperties  # noqa: PLC0415
        except ImportError as error:
            raise CoCoError(
                "drawing needs matplotlib; install it, or cocoloss[benchmark], or use "
                "cd_diagram_tikz"
            ) from error
        self.comparison, self.layout, self.dpi = comparison, layout, dpi
        self.font = FontProperties(family=FONT, size=font_size)
        self.small = FontProperties(family=FONT, size=0.85 * font_size)
        self.line = font_size / 72  # height of a line of text
        renderer: Any = backend_agg.RendererAgg  # measures text
        self._renderer = renderer(16, 16, MEASURED)

    def figure(self, caption: list[str]) -> "Figure":
        from matplotlib.figure import Figure  # noqa: PLC0415 - optional

        layout, labels = self.layout, self._labels()
        left = layout.left - max(self._width(t) for t in labels[: layout.n_left])
        right = layout.right + max(self._width(t) for t in labels[layout.n_left :])
        distance = self.comparison.critical_distance
        ruler = 0.0 if distance is None else distance * layout.unit
        title = self._width(AXIS_TITLE, small=True)
        left = min(left, (layout.width - title) / 2)
        caption_width = max((self._width(t, small=True) for t in caption), default=0.0)
        right = max(right, ruler + 0.1, left + caption_width, (layout.width + title) / 2)
        top = 0.12 + 3.0 * self.line + (0.0 if distance is None else 2.2 * self.line)
        bottom = min(layout.rows) - 0.9 * self.line - 1.6 * self.line * len(caption)
        size = (right - left + 2 * MARGIN, top - bottom + 2 * MARGIN)
        figure = Figure(figsize=size, dpi=self.dpi, facecolor="white")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(left - MARGIN, right + MARGIN)
        axes.set_ylim(bottom - MARGIN, top + MARGIN)
        self._axis(axes, ruler)
        self._models(axes, labels)
        self._bars(axes)
        for number, line in enumerate(caption):
            y = min(layout.rows) - 0.9 * self.line - 1.6 * self.line * (number + 0.5)
            self._text(axes, left, y, line, ha="left", small=True)
        return figure

    def _axis(self, axes: Any, ruler: float) -> None:
        layout, line = self.layout, self.line
        self._draw(axes, [(0, 0), (layout.width, 0)], "axis", width=1.0)
        for x in layout.small_ticks:
            self._draw(axes, [(x, 0), (x, 0.03)], "tick", width=0.8)
        for x, rank in layout.ticks:
            self._draw(axes, [(x, 0), (x, 0.06)], "tick", width=1.0)
            self._text(axes, x, 0.08 + 0.6 * line, str(rank))
        self._text(axes, layout.width / 2, 0.1 + 2.1 * line, AXIS_TITLE, small=True)
        if ruler:
            y = 0.12 + 3.2 * line
            shape = [(0, y + 0.04), (0, y - 0.04), (0, y), (ruler, y), (ruler, y + 0.04)]
            self._draw(axes, [*shape, (ruler, y - 0.04)], "critical-distance", width=1.0)
            text = f"CD = {self.comparison.critical_distance:.3f}"
            middle = max(ruler, self._width(text, small=True)) / 2
            self._text(axes, middle, y + 0.95 * line, text, small=True)

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
            if bar.whole:
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
            name, padded = one_line(model), rank.rjust(widest, "\N{FIGURE SPACE}")
            texts.append(f"{name}  {rank}" if place < self.layout.n_left else f"{padded}  {name}")
        return texts

    def _width(self, text: str, *, small: bool = False) -> float:
        font = self.small if small else self.font
        width, _, _ = self._renderer.get_text_width_height_descent(text, font, ismath=False)
        return float(width) / MEASURED + 0.06

    def _text(
        self, axes: Any, x: float, y: float, text: str, *, ha: str = "center", small: bool = False
    ) -> None:
        axes.text(
            *(x, y, text),
            ha=ha,
            va="center",
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
