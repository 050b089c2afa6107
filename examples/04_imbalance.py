"""Imbalance: what rare classes lose, and what the balanced loss gives back.

    python examples/04_imbalance.py --out imbalance.png                 (about ten seconds)

scikit-learn's digits, but of 5 to 9 only ten rows each are left to train on, a tenth of the
others. Plain CoCo then has little to gain from parting the rare digits, and some of them share a
corner: their class means point the same way. The balanced loss weighs pairs by their rarity and
parts them. How many rare digits are recognised follows the angles.

Where so few rows are left, collapsing them has a price: cross-entropy, which collapses less, still
recognises more of the rare digits here, under the same uniform priors.
"""

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.metrics import recall_score
from sklearn.model_selection import train_test_split

from _gallery import GREY, INK, arguments, panels, save
from cocoloss import CoCoClassifier, CrossEntropyClassifier

RARE = np.arange(10) >= 5
ROWS = 10  # of each rare digit
PLATE = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 1}


def load() -> list[NDArray[np.float64]]:
    """Return train inputs, test inputs, train labels and test labels; rare digits only to train."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X / 16, y, test_size=0.4, stratify=y, random_state=0
    )
    keep = [np.flatnonzero(y_train == c)[: ROWS if RARE[c] else None] for c in range(10)]
    rows = np.concatenate(keep)
    return [X_train[rows], X_test, y_train[rows], y_test]


def cosines(h: NDArray[np.float32], y: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the cosine between any two class means, seen from their centre."""
    means = np.stack([h[y == c].mean(axis=0) for c in range(10)])
    means -= means.mean(axis=0)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return means @ means.T


def draw(axis: Axes, gram: NDArray[np.float64]) -> None:
    """Draw the cosines, with a frame around the rare digits."""
    axis.imshow(gram, cmap="PuOr_r", vmin=-1, vmax=1)
    axis.plot([4.5, 4.5, 9.5, 9.5, 4.5], [4.5, 9.5, 9.5, 4.5, 4.5], color=INK, linewidth=1.5)
    axis.text(7, 4.3, "rare digits", ha="center", va="bottom", fontsize=9, bbox=PLATE)
    axis.set(xticks=range(10), yticks=range(10))
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)


def main() -> None:
    """Train with each loss, print recall and angles, draw the angles."""
    options = arguments(__doc__)
    X_train, X_test, y_train, y_test = load()
    settings = {
        "preprocess": None,
        "n_members": 1,
        "early_stopping": False,  # a rare digit has no rows to spare
        "max_iter": 40,
    }
    classifiers = {
        "cross-entropy": CrossEntropyClassifier(**settings),
        "plain CoCo": CoCoClassifier(loss="coco", **settings),
        "balanced CoCo": CoCoClassifier(loss="balanced", **settings),
    }
    grams, rare = {}, {}
    print(f"{'':15}{'recall, frequent':>17}{'recall, rare':>14}{'nearest rare pair':>20}")
    for name, classifier in classifiers.items():
        recalls, angles = [], []
        for seed in range(2 if options.quick else 10):
            classifier.set_params(random_state=seed).fit(X_train, y_train)
            recalls.append(recall_score(y_test, classifier.predict(X_test), average=None))
            grams[name] = cosines(classifier.transform(X_train), y_train)
            angles.append(np.rad2deg(np.arccos(np.max(grams[name][5:, 5:] - 2 * np.eye(5)))))
        frequent, rare[name] = (np.mean(np.array(recalls)[:, who]) for who in (~RARE, RARE))
        print(f"{name:15}{frequent:17.3f}{rare[name]:14.3f}{np.mean(angles):12.0f} degrees")

    if options.out:
        finding = "Plain CoCo lets rare digits share a corner; the balanced loss parts them"
        figure, axes = panels(finding, 3, size=(10.5, 4.1))
        for axis, (name, gram) in zip(axes, grams.items(), strict=True):
            draw(axis, gram)
            axis.set_title(f"{name}\nrecall of rare digits {rare[name]:.0%}")
        bar = figure.colorbar(axes[0].images[0], ax=axes, shrink=0.7, ticks=[-1, 0, 1])
        bar.outline.set_visible(False)
        bar.set_label("cosine between class means", color=GREY)
        save(figure, options.out)


if __name__ == "__main__":
    main()
