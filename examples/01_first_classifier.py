"""A first classifier: a table with gaps and a category, three lines, honest probabilities.

    python examples/01_first_classifier.py --out reliability.png        (about half a minute)

scikit-learn's diabetes patients: does the disease progress faster than in half of them? One cell
in ten is deleted first, because real tables have gaps. Neither classifier gets any preparation.

A probability is honest if of all patients who are told 70 %, 70 % do progress fast. Each patient
is told by a model that has not seen them; the picture sets what was said beside what happened.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from _gallery import BLUE, FAINT, GREY, ORANGE, arguments, panels, save
from cocoloss import CoCoClassifier

GROUPS = 6


def load() -> tuple[pd.DataFrame, NDArray[np.bool_]]:
    """Return the table with its gaps, and who progresses fast."""
    diabetes = load_diabetes(as_frame=True, scaled=False)
    table = diabetes.data.assign(sex=diabetes.data.sex.map({1.0: "a", 2.0: "b"}).astype("category"))
    gaps = np.random.default_rng(0).random(table.shape) < 0.1
    return table.mask(gaps), (diabetes.target > diabetes.target.median()).to_numpy()


def draw(axis: Axes, said: NDArray[np.float64], fast: NDArray[np.bool_], colour: str) -> None:
    """Draw, for groups of equal size, what was said and how often it came true."""
    axis.plot([0, 1], [0, 1], color=FAINT, linewidth=1, zorder=0)
    axis.text(0.47, 0.53, "as said", color=GREY, rotation=45, ha="center", va="center", fontsize=9)
    axis.plot(said, np.full(len(said), -0.04), "|", color=colour, alpha=0.4, markersize=7)
    for group in np.array_split(np.argsort(said), GROUPS):
        x, y = said[group].mean(), fast[group].mean()
        error = np.sqrt(y * (1 - y) / len(group))  # of a share, one standard error
        axis.plot([x, x], [y - error, y + error], color=colour, linewidth=1.5)
        axis.scatter(x, y, s=55, color=colour, zorder=3)
    axis.set(xlim=(-0.02, 1.02), ylim=(-0.08, 1.02), aspect="equal", xlabel="probability said")
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_formatter(PercentFormatter(1))


def main() -> None:
    """Cross-validate both classifiers, print how they do, draw how far they can be believed."""
    options = arguments(__doc__)
    table, fast = load()
    classifiers = {
        "CoCoClassifier": CoCoClassifier(random_state=0, max_iter=10 if options.quick else 100),
        "gradient boosting": HistGradientBoostingClassifier(
            categorical_features="from_dtype", random_state=0
        ),
    }
    folds = StratifiedKFold(3 if options.quick else 10, shuffle=True, random_state=0)
    said, losses = {}, {}
    for name, classifier in classifiers.items():
        answers = cross_val_predict(classifier, table, fast, cv=folds, method="predict_proba")
        said[name] = answers[:, 1]
        losses[name] = log_loss(fast, answers)
        accuracy = accuracy_score(fast, said[name] > 0.5)
        print(f"{name:18} accuracy {accuracy:.3f}   log loss {losses[name]:.3f}")

    if options.out:
        finding = "CoCo is about as sure as it should be; gradient boosting is too sure"
        figure, axes = panels(finding, 2, size=(8, 4.4), sharey=True)
        for axis, name, colour in zip(axes, said, (BLUE, ORANGE), strict=True):
            draw(axis, said[name], fast, colour)
            axis.set_title(f"{name}: log loss {losses[name]:.2f}", color=colour)
        axes[0].set_ylabel("share that did progress fast")
        save(figure, options.out)


if __name__ == "__main__":
    main()
