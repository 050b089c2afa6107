"""Outlier scores: digits that the classifier was never shown.

    python examples/08_outliers.py --out outliers.png                   (about five seconds)

A classifier is trained on 0 to 6 and then meets a 7, an 8 and a 9. It must answer with one of
the classes it knows, but ``outlier_score`` says how strange the row is: the squared Mahalanobis
distance to the nearest class, in the embedding. Known digits were not trained on either.

Beside it: how unsure the probabilities are, which is free with any classifier, and an isolation
forest on the pixels, which does not know the classes. The area under the curve is the chance that
a new digit scores higher than a known one.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import train_test_split

from _gallery import BLUE, FAINT, GREEN, GREY, ORANGE, arguments, panels, save
from cocoloss import CoCoClassifier

UNSEEN = (7, 8, 9)


def draw_scores(axis: Axes, scores: NDArray[np.float64], new: NDArray[np.bool_]) -> None:
    """Draw how the scores of known and of new digits are distributed."""
    bins = np.geomspace(scores.min(), scores.max(), 40)
    for who, colour, name in ((~new, BLUE, "0 to 6"), (new, ORANGE, "7, 8, 9: never shown")):
        counts, _, _ = axis.hist(scores[who], bins, color=colour, alpha=0.75)
        peak = bins[np.argmax(counts)]
        axis.text(peak, counts.max() * 1.03, name, color=colour, ha="center", va="bottom")
    axis.set(xscale="log", xlabel="outlier score", yticks=[])
    axis.set_title("digits that were not trained on")
    axis.margins(y=0.12)
    axis.spines["left"].set_visible(False)


def draw_curve(
    axis: Axes, new: NDArray[np.bool_], scores: NDArray[np.float64], **look: str
) -> None:
    """Draw one receiver operating characteristic."""
    false, true, _ = roc_curve(new, scores)
    axis.plot(false, true, **look)


def main() -> None:
    """Train on the known digits, score all that were held back, print and draw."""
    options = arguments(__doc__)
    X, y = load_digits(return_X_y=True)
    unseen = np.isin(y, UNSEEN)
    X_train, X_known, y_train, _ = train_test_split(
        X[~unseen], y[~unseen], test_size=0.5, stratify=y[~unseen], random_state=0
    )
    rows = np.concatenate([X_known, X[unseen]])
    new = np.arange(len(rows)) >= len(X_known)

    classifier = CoCoClassifier(max_iter=20 if options.quick else 100, random_state=0)
    classifier.fit(X_train, y_train)
    forest = IsolationForest(random_state=0).fit(X_train)
    scores = {
        "outlier score": classifier.outlier_score(rows),
        "unsure probabilities": 1 - classifier.predict_proba(rows).max(axis=1),
        "isolation forest": -forest.score_samples(rows),
    }
    areas = {name: roc_auc_score(new, score) for name, score in scores.items()}
    for name, area in areas.items():
        print(f"{name:22} area under the curve {area:.3f}")

    if options.out:
        area = areas["outlier score"]
        finding = f"Digits that were never shown stand out: area under the curve {area:.2f}"
        figure, (left, right) = panels(finding, 2, size=(9.5, 4), width_ratios=(1.3, 1))
        draw_scores(left, scores["outlier score"], new)
        right.plot([0, 1], [0, 1], color=FAINT, linewidth=1)
        for row, (name, colour) in enumerate(zip(scores, (BLUE, GREEN, GREY), strict=True)):
            draw_curve(right, new, scores[name], color=colour)
            right.text(
                0.98, 0.24 - 0.09 * row, f"{name} {areas[name]:.2f}", color=colour, ha="right"
            )
        right.set(aspect="equal", xlabel="known digits called new", title="new digits found")
        for side in (right.xaxis, right.yaxis):
            side.set_major_formatter(PercentFormatter(1))
        save(figure, options.out)


if __name__ == "__main__":
    main()
