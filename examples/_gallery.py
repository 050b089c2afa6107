"""What the examples share: two arguments and one look for every picture."""

import argparse
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

# Okabe and Ito's colours, told apart by colour-blind eyes too.
BLUE, ORANGE, GREEN, PURPLE, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9"
INK, GREY, FAINT = "#222222", "#767676", "#c8c8c8"

STYLE = {
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "lines.linewidth": 2,
    "figure.facecolor": "white",
}


def arguments(story: str | None) -> argparse.Namespace:
    """Read ``--quick`` and ``--out``; the first line of the story is the help."""
    parser = argparse.ArgumentParser(description=(story or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small settings, a few seconds")
    parser.add_argument("--out", type=Path, help="where to draw the picture; without it, none")
    torch.set_num_threads(1)  # networks this small only wait for a second thread
    return parser.parse_args()


def panels(
    finding: str, n: int, *, size: tuple[float, float] = (9, 3.6), **options: object
) -> tuple[Figure, list[Axes]]:
    """Return a figure whose title states the finding, and its panels from left to right."""
    mpl.rcParams.update(STYLE)
    figure = Figure(figsize=size, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    figure.suptitle(finding, fontsize=12, fontweight="bold", x=0.01, ha="left")
    axes = figure.subplots(1, n, squeeze=False, **options)  # type: ignore[arg-type]
    return figure, list(axes[0])


def save(figure: Figure, out: Path) -> None:
    """Write the picture at twice the usual resolution, and say where it is."""
    drawn = BytesIO()
    figure.savefig(drawn, dpi=200)
    few_colours = Image.open(drawn).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    few_colours.save(out, optimize=True)  # a third of the bytes, and nobody sees it
    print(f"written: {out}")
