"""Critical-difference diagrams in the fonts of a LaTeX document: TikZ code, nothing to install."""

from cocoloss.report.cd_layout import AXIS_TITLE, caption_lines, lay_out, one_line
from cocoloss.stats import Comparison

_ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        **{character: f"\\{character}" for character in "{}$&#%_"},
    }
)


def cd_diagram_tikz(
    comparison: Comparison, *, axis_width: float = 4.0, caption: bool = True
) -> str:
    r"""Return a critical-difference diagram as a ``tikzpicture``.

    The same picture as :func:`cd_diagram`, in the fonts of the document. It needs
    ``\usepackage{tikz}`` and nothing else; names are escaped.

    Parameters
    ----------
    comparison : Comparison
        From :func:`cocoloss.stats.compare`.
    axis_width : float
        Length of the axis in inches; the names need more.
    caption : bool
        Whether to say below which test was done.

    Examples
    --------
    >>> from cocoloss.report.cd_diagram import cd_diagram_tikz
    >>> from cocoloss.stats import compare
    >>> code = cd_diagram_tikz(compare({"a_1": [0.9, 0.8, 0.7], "b": [0.6, 0.5, 0.4]}))
    >>> r"a\_1" in code
    True
    """
    layout = lay_out(comparison, axis_width=axis_width, row_step=0.2)
    lines = [r"\begin{tikzpicture}[x=1in, y=1in, every node/.style={font=\footnotesize}]"]

    def draw(*points: tuple[float, float], style: str = "") -> None:
        path = " -- ".join(f"({x:.4f},{y:.4f})" for x, y in points)
        lines.append(rf"  \draw[{style}] {path};")

    def node(x: float, y: float, anchor: str, text: str) -> None:
        lines.append(rf"  \node[anchor={anchor}, inner sep=1pt] at ({x:.4f},{y:.4f}) {{{text}}};")

    draw((0, 0), (layout.width, 0))
    for x in layout.small_ticks:
        draw((x, 0), (x, 0.03))
    for x, rank in layout.ticks:
        draw((x, 0), (x, 0.06))
        node(x, 0.07, "south", str(rank))
    node(layout.width / 2, 0.23, "south", AXIS_TITLE)
    if comparison.critical_distance is not None:
        end = comparison.critical_distance * layout.unit
        draw((0, 0.47), (end, 0.47), style="|-|")
        node(end / 2, 0.51, "south", f"CD = {comparison.critical_distance:.3f}")
    for place, (model, rank) in enumerate(comparison.average_ranks.items()):
        left = place < layout.n_left
        draw(*layout.path(place))
        name = _escape(one_line(model))
        text = rf"{name}~~{rank:.2f}" if left else rf"{rank:.2f}~~{name}"
        edge, anchor = (layout.left, "east") if left else (layout.right, "west")
        node(edge, layout.rows[place], anchor, text)
    for bar in layout.bars:
        style = "line width=2pt" if bar.whole else "dotted, thick"
        draw((bar.left, bar.y), (bar.right, bar.y), style=style)
        for place in () if bar.whole else bar.members:
            dot = f"({layout.lanes[place]:.4f},{bar.y:.4f})"
            lines += [rf"  \fill {dot} circle[radius=1.6pt];"]
    for number, line in enumerate(caption_lines(comparison, layout, about_test=caption)):
        node(layout.left, min(layout.rows) - 0.3 - 0.17 * number, "west", _escape(line))
    return "\n".join([*lines, r"\end{tikzpicture}", ""])


def _escape(text: str) -> str:
    """Return text that LaTeX prints as it is."""
    return text.translate(_ESCAPES)
