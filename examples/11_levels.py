"""Levels: classes that have an order, and mistakes that are small or large.

    python examples/11_levels.py --out levels.png                       (about ten seconds)

The progress of diabetes, cut into five levels of equal size. A classifier that knows nothing of
their order takes a mistake by one level for as bad as one by four. ``CoCoOrdinalClassifier`` makes
neighbours alike, and its median answers with the level that half of the probability is below.

Both learn from the same half of the patients and are judged on the other, in some random splits;
so is a random forest. Ten measurements do not say much about the year to come: all of them are
often wrong, but not by equally much. Most of the difference is the median, not what is learnt: the
most probable level, the mode, is hardly nearer than without an order. The price is that the median
keeps away from the ends, and is exactly right less often.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import cohen_kappa_score, confusion_matrix
from sklearn.model_selection import train_test_split

from _gallery import BLUE, GREY, INK, ORANGE, SKY, arguments, panels, save
from cocoloss import CoCoClassifier, CoCoOrdinalClassifier

LEVELS = ("least", "little", "some", "much", "most")
COLOURS = {"levels, median": BLUE, "levels, mode": SKY, "classes": ORANGE, "forest": GREY}


def answers(X: NDArray[np.float64], y: NDArray[np.int64], seed: int) -> dict[str, NDArray]:
    """Return the true levels of one half of the patients, and what is said of them."""
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=seed
    )
    levels = CoCoOrdinalClassifier(random_state=0).fit(X_train, y_train)
    forest = RandomForestClassifier(class_weight="balanced", random_state=0)
    return {
        "truth": y_test,
        "levels, median": levels.predict(X_test, rule="median"),
        "levels, mode": levels.predict(X_test),
        "classes": CoCoClassifier(random_state=0).fit(X_train, y_train).predict(X_test),
        "forest": forest.fit(X_train, y_train).predict(X_test),
    }


def draw_confusion(axis: Axes, truth: NDArray[np.int64], said: NDArray[np.int64]) -> None:
    """Draw how often each level is taken for which."""
    shares = confusion_matrix(truth, said, normalize="true")
    axis.imshow(shares, cmap="Blues", vmin=0, vmax=0.8)
    for (row, column), share in np.ndenumerate(shares):
        colour = "white" if share > 0.45 else INK
        axis.text(column, row, f"{share:.0%}", color=colour, ha="center", va="center", fontsize=8)
    at = range(len(LEVELS))
    axis.set(xticks=at, yticks=at, xticklabels=LEVELS, yticklabels=LEVELS, xlabel="predicted")
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)


def main() -> None:
    """Fit, compare, print and draw."""
    options = arguments(__doc__)
    X, progress = load_diabetes(return_X_y=True)
    cuts = np.quantile(progress, np.arange(1, len(LEVELS)) / len(LEVELS))
    y = np.digitize(progress, cuts)
    splits = [answers(X, y, seed) for seed in range(2 if options.quick else 10)]
    said = {name: np.concatenate([split[name] for split in splits]) for name in splits[0]}
    truth = said.pop("truth")
    off = {name: np.abs(answer - truth) for name, answer in said.items()}
    for name, answer in said.items():
        kappa = cohen_kappa_score(truth, answer, weights="quadratic")
        print(
            f"{name:16} off by {off[name].mean():.3f} levels, right {np.mean(off[name] == 0):.3f}, "
            f"by two or more {np.mean(off[name] > 1):.3f}, kappa {kappa:.3f}"
        )

    if options.out:
        by_order, without = (off[name].mean() for name in ("levels, median", "classes"))
        finding = (
            f"The median of five ordered levels is off by {by_order:.2f} of them, "
            f"the class without an order by {without:.2f}"
        )
        figure, axes = panels(finding, 3, size=(12.5, 4), width_ratios=(1, 1, 1.05))
        for axis, name in zip(axes, ("classes", "levels, median"), strict=False):
            draw_confusion(axis, truth, said[name])
            title = {"classes": "classes without an order", "levels, median": "levels, the median"}
            axis.set_title(title[name])
        axes[0].set_ylabel("true level")
        for k, (name, colour) in enumerate(COLOURS.items()):
            shares = np.bincount(off[name], minlength=len(LEVELS)) / len(truth)
            axes[2].bar(np.arange(len(LEVELS)) + 0.2 * (k - 1.5), shares, 0.18, color=colour)
            label = f"{name}: {off[name].mean():.2f} on average"
            axes[2].text(4.4, 0.56 - 0.04 * k, label, color=colour, ha="right")
        axes[2].set(
            ylim=(0, 0.6), xlabel="levels between prediction and truth", title="how far off"
        )
        axes[2].yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        save(figure, options.out)


if __name__ == "__main__":
    main()
