"""Critical-difference diagrams for pages: SVG in the page's own colours and fonts.

The drawing of :mod:`cocoloss.report.cd_diagram`, from the same layout, but without styles of its
own: a page's security policy forbids them, and its reader may prefer it dark.
"""

from cocoloss.report.cd_layout import AXIS_TITLE, Bar, Layout, caption_lines, lay_out, one_line
from cocoloss.report.page import Markup, element
from cocoloss.stats import Comparison

INCH = 96.0  # pixels
LETTER = 0.078  # width of a letter in inches, rather too much
LONGEST = 28  # letters of a name


def cd_diagram_svg(comparison: Comparison) -> Markup:
    """Return a diagram for wide screens and one for narrow ones, of which a page shows one.

    Parameters
    ----------
    comparison : Comparison
        From :func:`cocoloss.stats.compare`. Nothing is computed here.

    Examples
    --------
    >>> from cocoloss.stats import compare
    >>> "CD = " in cd_diagram_svg(compare({"a": [0.9, 0.8, 0.7], "b": [0.6, 0.5, 0.4]}))
    True
    """
    wide = _draw(comparison, lay_out(comparison, axis_width=5.2, row_step=0.23), LONGEST)
    narrow = _draw(comparison, lay_out(comparison, axis_width=1.5, row_step=0.23), 12)
    return Markup(
        element("div", wide, class_="for-wide") + element("div", narrow, class_="for-narrow")
    )


def diagram_note(comparison: Comparison) -> str:
    """Return how to read the diagram, in words."""
    layout = lay_out(comparison, axis_width=5.2, row_step=0.23)
    joined = (
        "Every pair differs."
        if not comparison.cliques
        else "A bar joins models that do not differ significantly."
    )
    return " ".join([joined, *caption_lines(comparison, layout, about_test=True)]) + "."


def _draw(comparison: Comparison, layout: Layout, longest: int) -> Markup:
    labels = [_short(one_line(model), longest) for model in comparison.models]
    widths = [LETTER * (len(label) + 6) for label in labels]
    left = min(layout.left - max(widths[: layout.n_left]), 0.0)
    right = max(
        [layout.right + w for w in widths[layout.n_left :]], default=layout.right
    )  # there are two models or more
    distance = comparison.critical_distance
    ruler = 0.0 if distance is None else distance * layout.unit
    right = max(right, ruler + 0.1, LETTER * 12)
    top, bottom = (0.95 if ruler else 0.55), min(layout.rows) - 0.14
    parts = [*_axis(comparison, layout, ruler)]
    for place, model in enumerate(comparison.models):
        parts += _model(comparison, layout, place, labels[place], model)
    for bar in layout.bars:
        parts += _bar(layout, bar)
    picture = element(
        "svg",
        parts,
        class_="cd",
        viewBox=f"{left * INCH:.1f} {-top * INCH:.1f} "
        f"{(right - left) * INCH:.1f} {(top - bottom) * INCH:.1f}",
        width=f"{(right - left) * INCH:.0f}",
        role="img",
        aria_label=_in_words(comparison),
    )
    return element("div", picture, class_="scroll-x")


def _in_words(comparison: Comparison) -> str:
    ranks = ", ".join(f"{model} {rank:.2f}" for model, rank in comparison.average_ranks.items())
    groups = "; ".join(", ".join(group) for group in comparison.cliques) or "none"
    return f"Average ranks: {ranks}. Groups that do not differ: {groups}."


def _line(*points: tuple[float, float], class_: str = "") -> Markup:
    path = "L".join(f"{x * INCH:.1f},{-y * INCH:.1f}" for x, y in points)
    return element("path", d=f"M{path}", class_=f"cd-line {class_}".strip())


def _text(x: float, y: float, text: str, anchor: str, class_: str = "") -> Markup:
    return element(
        "text",
        text,
        x=f"{x * INCH:.1f}",
        y=f"{-y * INCH:.1f}",
        text_anchor=anchor,
        class_=class_ or None,
    )


def _axis(comparison: Comparison, layout: Layout, ruler: float) -> list[Markup]:
    parts = [_line((0, 0), (layout.width, 0))]
    parts += [_line((x, 0), (x, 0.04)) for x in layout.small_ticks]
    for x, rank in layout.ticks:
        parts += [_line((x, 0), (x, 0.07)), _text(x, 0.11, str(rank), "middle")]
    # The title would meet the ruler in a narrow diagram; its caption says it too.
    parts.append(_text(layout.width / 2, 0.32, AXIS_TITLE, "middle", "quiet"))
    if ruler:
        parts += [
            _line((0, 0.6), (ruler, 0.6)),
            _line((0, 0.56), (0, 0.64)),
            _line((ruler, 0.56), (ruler, 0.64)),
            _text(0, 0.71, f"CD = {comparison.critical_distance:.3f}", "start", "quiet"),
        ]
    return parts


def _model(
    comparison: Comparison, layout: Layout, place: int, label: str, model: str
) -> list[Markup]:
    on_left = place < layout.n_left
    rank = f"{comparison.average_ranks.iloc[place]:.2f}"
    x = layout.left - 0.05 if on_left else layout.right + 0.05
    number = element("tspan", rank, class_="quiet")
    words = [f"{label} ", number] if on_left else [number, f" {label}"]
    text = element(
        "text",
        words,
        element("title", model),
        x=f"{x * INCH:.1f}",
        y=f"{(-layout.rows[place] + 0.04) * INCH:.1f}",
        text_anchor="end" if on_left else "start",
        class_="cd-name",
    )
    return [_line(*layout.path(place), class_="cd-model"), text]


def _bar(layout: Layout, bar: Bar) -> list[Markup]:
    ends = (bar.left, bar.y), (bar.right, bar.y)
    if bar.whole:
        return [_line(*ends, class_="cd-bar")]
    dots = [
        element(
            "circle",
            cx=f"{layout.lanes[place] * INCH:.1f}",
            cy=f"{-bar.y * INCH:.1f}",
            r=3,
            class_="cd-dot",
        )
        for place in bar.members
    ]
    return [_line(*ends, class_="cd-dotted"), *dots]


def _short(name: str, longest: int) -> str:
    return name if len(name) <= longest else name[: longest - 1] + "…"
