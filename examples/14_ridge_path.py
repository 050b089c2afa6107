"""The ridge path: from all rows alike to collapse, and where to stop between.

    python examples/14_ridge_path.py --out ridge_path.png           (about fifteen seconds)

The closed form has one knob that says how far classes collapse: the ridge. A large one leaves
every row in the middle, where all classes are equally likely. A small one pulls each training row
to the corner of its class, as far as the kernel can tell rows apart. Both ends say nothing of new
rows. Between them a row lies where its class probabilities put it: doubtful ones between corners.

Leaving rows out shows where to stop, and it is free: one eigendecomposition gives the predictions
of every row by the fit without it, at every ridge. Beside the picture a film of the whole path is
written, with the same name and the ending .gif.

Wines, as in example 02, but by alcohol and malic acid alone, so that some cannot be told apart.
"""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from _gallery import BLUE, FAINT, GREEN, GREY, INK, ORANGE, arguments, panels, save
from cocoloss import CoCoClassifier
from cocoloss.kernels import RidgePath

COLOURS = np.array([BLUE, ORANGE, GREEN])
LARGEST, LEAST = 300.0, 1e-4
TURNS = np.pi / 2 + 2 * np.pi * np.arange(3) / 3
CORNERS = np.stack([np.cos(TURNS), np.sin(TURNS)], axis=1)  # of the simplex, (3, 2)
# What is drawn: rows as fitted, each by the fit without it, and rows that were kept apart.
KINDS = {"training rows": GREY, "left out": BLUE, "test rows": ORANGE}


class Still(NamedTuple):
    """What one ridge makes of the rows."""

    ridge: float
    fitted: NDArray[np.float64]  # (n, 2), training rows
    test: NDArray[np.float64]  # (m, 2)
    errors: dict[str, float]  # mean squared distance to the corner of the class
    accuracies: dict[str, float]


def walk(n_ridges: int) -> tuple[list[Still], NDArray[np.int64], NDArray[np.int64]]:
    """Learn a kernel of one half of the wines, and follow its path over the ridges."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X[["alcohol", "malic_acid"]]
    X_train, X_test, y_train, y_test = train_test_split(
        X, y.to_numpy(), test_size=0.5, stratify=y, random_state=0
    )
    classifier = CoCoClassifier(solver="kernel", random_state=0).fit(X_train, y_train)
    V, weights = CORNERS[y_train], np.ones(len(y_train))
    path = RidgePath.of(classifier.kernel(X_train).astype(np.float64), V, weights)
    to_test = classifier.kernel(X_test, X_train).astype(np.float64)
    stills = []
    for ridge in np.geomspace(LARGEST, LEAST, n_ridges):
        solution = path.solution(ridge)
        left_out, test = solution.leave_one_out(V, weights), to_test @ solution.alpha
        said = dict(zip(KINDS, (solution.fitted, left_out, test), strict=True))
        true = dict(zip(KINDS, (y_train, y_train, y_test), strict=True))
        errors = {k: np.square(said[k] - CORNERS[true[k]]).sum(axis=1).mean() for k in KINDS}
        right = {k: np.mean((said[k] @ CORNERS.T).argmax(axis=1) == true[k]) for k in KINDS}
        stills.append(Still(ridge, solution.fitted, test, errors, right))
    return stills, y_train, y_test


def draw_rows(
    axis: Axes, still: Still, y_train: NDArray[np.int64], y_test: NDArray[np.int64]
) -> None:
    """Draw the triangle, training rows as dots and test rows as rings."""
    axis.plot(*CORNERS[[0, 1, 2, 0]].T, color=FAINT, linewidth=1, linestyle="--")
    look = {"linewidths": 0.8, "clip_on": False}
    axis.scatter(*still.test.T, s=16, facecolors="none", edgecolors=COLOURS[y_test], **look)
    axis.scatter(*still.fitted.T, s=13, color=COLOURS[y_train], alpha=0.75, **look)
    axis.set(aspect="equal", xlim=(-1.35, 1.35), ylim=(-0.85, 1.35), xticks=[], yticks=[])
    axis.spines[:].set_visible(False)


def draw_errors(axis: Axes, stills: list[Still], at: Still) -> None:
    """Draw how far rows are from their corners along the path, and where on it we are."""
    ridges = [still.ridge for still in stills]
    for kind, colour in KINDS.items():
        axis.plot(ridges, [still.errors[kind] for still in stills], color=colour)
        axis.plot(at.ridge, at.errors[kind], "o", color=colour, clip_on=False)
    for (kind, colour), height in zip(KINDS.items(), (0.12, 0.93, 0.85), strict=True):
        axis.text(1, height, kind, color=colour, transform=axis.transAxes, ha="right")
    axis.axvline(at.ridge, color=FAINT, linewidth=1, zorder=0)
    axis.set(xscale="log", xlim=(LARGEST, LEAST), ylim=(0, 1), xlabel="ridge")
    axis.set_title("squared distance to its corner")


def short(number: float) -> str:
    """Return two digits of a number, without an exponent."""
    return f"{float(f'{number:.2g}'):g}"


def frames(
    stills: list[Still], y_train: NDArray[np.int64], y_test: NDArray[np.int64]
) -> Iterator[Image.Image]:
    """Draw the path ridge by ridge."""
    for still in stills:
        finding = f"ridge {short(still.ridge)}: " + ", ".join(
            f"{kind} {still.accuracies[kind]:.0%}" for kind in KINDS
        )
        figure, (left, right) = panels(finding + " right", 2, size=(7.2, 3.4))
        draw_rows(left, still, y_train, y_test)
        draw_errors(right, stills, still)
        drawn = BytesIO()
        figure.savefig(drawn, dpi=100)
        yield Image.open(drawn).convert("RGB")


def save_film(images: list[Image.Image], out: Path) -> None:
    """Write the frames one after the other, with the colours of a middle one."""
    colours = images[len(images) // 2].quantize(160, Image.Quantize.MAXCOVERAGE)
    first, *rest = (image.quantize(palette=colours, dither=Image.Dither.NONE) for image in images)
    milliseconds = [700, *[150] * (len(rest) - 1), 2000]
    first.save(out, save_all=True, append_images=rest, duration=milliseconds, loop=0)
    print(f"written: {out}")


def main() -> None:
    """Follow the path, print it, draw some of it, and film all of it."""
    options = arguments(__doc__)
    stills, y_train, y_test = walk(14 if options.quick else 40)
    best = min(stills, key=lambda still: still.errors["left out"])
    shown = (stills[0], next(s for s in stills if s.ridge < 20), best, stills[-1])
    for still in shown:
        errors, right = still.errors, still.accuracies
        of_kinds = (f"{kind} {errors[kind]:.3f} ({right[kind]:.0%} right)" for kind in KINDS)
        print(f"ridge {short(still.ridge):6}   " + ", ".join(of_kinds))

    if options.out:
        finding = "A large ridge leaves all wines alike, a small one learns the rows by heart"
        figure, axes = panels(finding, 5, size=(11.5, 3.1), width_ratios=(1, 1, 1, 1, 1.2))
        for axis, still in zip(axes, shown, strict=False):
            draw_rows(axis, still, y_train, y_test)
            chosen = ", chosen" if still is best else ""
            found = f"{still.accuracies['test rows']:.0%} of test rows right"
            axis.set_title(f"ridge {short(still.ridge)}{chosen}\n{found}", loc="center")
        axes[0].text(0, -1.0, "dots: training rows\nrings: test rows", color=INK, ha="center")
        draw_errors(axes[-1], stills, best)
        save(figure, options.out)
        save_film(list(frames(stills, y_train, y_test)), options.out.with_suffix(".gif"))


if __name__ == "__main__":
    main()
