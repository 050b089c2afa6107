"""One drawing for every place: matplotlib figures as files for papers, and as SVG for pages.

Without pyplot: no global state, no screen needed. The same drawing gives the same bytes.
"""

import re
import xml.etree.ElementTree as ET
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal

from markupsafe import Markup

from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEEDS_MATPLOTLIB = "drawing needs matplotlib; install it, or cocoloss[benchmark]"
# The colours of the pages on a light ground; readable for the colour-blind.
COLOURS = ["#0072b2", "#d55e00", "#04a67e", "#9162f5", "#59570d"]
COLOURS += ["#c78ccc", "#650018", "#392dbb", "#a0446e", "#441866"]
SUFFIXES = (".svg", ".png", ".pdf")
DPI = 200
# No date and no version.
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

SVG = "http://www.w3.org/2000/svg"
PIXELS = 4 / 3 * 1.15  # of a page, for a point of the drawing
# A colour of the drawing -> of the page, which may be dark.
ON_A_PAGE = {colour: f"var(--c{k})" for k, colour in enumerate(COLOURS)}
ON_A_PAGE |= {"#000000": "currentColor", "#ffffff": "var(--surface)", "#666666": "var(--muted)"}
ON_A_PAGE |= dict.fromkeys(("#999999", "#bfbfbf", "#e6e6e6"), "var(--line)")
NARROWER = 0.94  # the page's font may be wider than that of the drawing
FONT_SIZE = re.compile(r"([\d.]+)px")


def new_figure(
    size: tuple[float, float], layout: Literal["constrained"] | None = "constrained"
) -> "Figure":
    """Return an empty figure of so many inches."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - optional
    except ImportError as error:
        raise CoCoError(NEEDS_MATPLOTLIB) from error
    return Figure(figsize=size, dpi=DPI, facecolor="white", layout=layout)


def tidy(axes: Any, *, legend: bool = False) -> None:
    """Give axes the look of our charts."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9", lw=0.8)
    axes.set_axisbelow(True)
    if legend:
        for text in axes.legend(frameon=False, fontsize=8).get_texts():
            text.set_parse_math(False)  # a dollar in a name is a dollar


def figure_bytes(figure: "Figure", suffix: str) -> bytes:
    """Return a drawing as the content of a file: .svg, .png or .pdf."""
    return _saved(figure, suffix, FIXED, dpi=DPI)


def page_svg(figure: "Figure", label: str) -> Markup:
    """Return a drawing as SVG for a page, in the page's colours and fonts.

    A page's security policy forbids styles but its own, so those of the drawing become attributes.
    Parts to which the drawing gave a name have a class; ``label`` is for those who cannot see it.
    """
    content = _saved(figure, ".svg", FIXED | {"svg.fonttype": "none"}, transparent=True)
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ET.fromstring(content)  # noqa: S314 - we have just written it
    for parent in root.iter():
        for child in [c for c in parent if c.tag.endswith(("metadata", "}style"))]:
            parent.remove(child)
    for element in root.iter():
        name = element.attrib.pop("id", "") if element.tag == f"{{{SVG}}}g" else ""
        if "-" in name:  # ours; matplotlib's have an underscore
            element.set("class", f"drawing-{name.partition('-')[0]}")
        for part in element.attrib.pop("style", "").split(";"):
            key, _, value = (text.strip() for text in part.partition(":"))
            if key in {"font", "font-size"} and (size := FONT_SIZE.search(value)):
                key, value = "font-size", f"{NARROWER * float(size[1]):.2f}px"
            if key and key != "font-family":
                element.set(key, ON_A_PAGE.get(value, value))
    width = float(root.attrib["width"].removesuffix("pt"))
    del root.attrib["height"]
    root.attrib |= {"width": f"{width * PIXELS:.0f}", "fill": "currentColor", "class": "drawing"}
    root.attrib |= {"role": "img", "aria-label": label}
    return Markup(ET.tostring(root, encoding="unicode"))  # noqa: S704 - written by a serialiser


def _saved(figure: "Figure", suffix: str, style: dict[Any, Any], **options: Any) -> bytes:
    import matplotlib as mpl  # noqa: PLC0415 - optional

    buffer = BytesIO()
    with mpl.rc_context(style):
        figure.savefig(buffer, format=suffix[1:], metadata=NO_DATE[suffix], **options)
    return buffer.getvalue()
