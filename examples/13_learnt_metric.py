"""The learnt metric: columns that do not matter fade.

    python examples/13_learnt_metric.py --out learnt_metric.png         (about twenty seconds)

Kernels compare rows column by column, and a column of noise counts as much as any other: this is
what ruins a support vector machine here. ``CoCoClassifier`` learns what each column weighs: by how
much the fitted function goes with it, twice, and fits again. What comes out is
``feature_importances_``, too.

Two classes that four columns decide, two by their product, one by its square, one by a straight
line, and more and more columns of noise. Trees choose their columns, so noise costs them less. Up
to thirty columns of noise the learnt metric is ahead of them. Among a hundred, with 500 rows to
learn from, the first fit no longer sees the product, so its two columns fade with the noise, and
the trees are ahead.
"""

from collections.abc import Iterator

import numpy as np
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from _gallery import BLUE, FAINT, GREEN, GREY, ORANGE, arguments, panels, save
from cocoloss import CoCoClassifier

NOISE = (0, 3, 10, 30, 100)
USEFUL = ("product 1", "product 2", "square", "line")
SHOWN = 10  # columns of noise whose importances are drawn
COLOURS = {"CoCo": BLUE, "boosted trees": GREEN, "random forest": ORANGE, "kernel SVM": GREY}


def draw_rows(
    rng: np.random.Generator, n: int, n_noise: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return four columns that decide the class, and columns that do not."""
    X = rng.normal(size=(n, 4 + n_noise))
    return X, X[:, 0] * X[:, 1] + 0.5 * (X[:, 2] ** 2 - 1) + X[:, 3] > 0


def fitted(X: NDArray[np.float64], y: NDArray[np.bool_]) -> Iterator[tuple[str, ClassifierMixin]]:
    """Fit each model."""
    models = {
        "CoCo": CoCoClassifier(random_state=0),
        "boosted trees": HistGradientBoostingClassifier(random_state=0),
        "random forest": RandomForestClassifier(random_state=0),
        "kernel SVM": make_pipeline(StandardScaler(), SVC()),
    }
    for name, model in models.items():
        yield name, model.fit(X, y)


def main() -> None:
    """Fit with more and more noise, print and draw."""
    options = arguments(__doc__)
    numbers, n_draws = ((0, 10, 30), 1) if options.quick else (NOISE, 5)
    hits: dict[str, list[float]] = {name: [] for name in COLOURS}
    importances = []  # of each draw
    for n_noise in numbers:
        right: dict[str, list[float]] = {name: [] for name in COLOURS}
        for draw in range(n_draws):
            rng = np.random.default_rng(draw)
            X, y = draw_rows(rng, 500, n_noise)
            X_test, y_test = draw_rows(rng, 2000, n_noise)
            for name, model in fitted(X, y):
                right[name].append(model.score(X_test, y_test))
                if name == "CoCo" and n_noise == SHOWN:
                    importances.append(model.feature_importances_)
        for name, share in right.items():
            hits[name].append(float(np.mean(share)))
    weights = np.mean(importances, axis=0)
    print("columns of noise        " + "".join(f"{n:7}" for n in numbers))
    for name, share in hits.items():
        print(f"{name:24}" + "".join(f"{value:7.3f}" for value in share))
    print(f"share of the importances that {SHOWN} columns of noise have: {weights[4:].sum():.3f}")

    if options.out:
        k = numbers.index(SHOWN)
        finding = (
            f"Among {SHOWN} columns of noise the learnt metric is right {hits['CoCo'][k]:.0%}, "
            f"a kernel without one {hits['kernel SVM'][k]:.0%}"
        )
        figure, (left, right_axis) = panels(finding, 2, size=(10, 4), width_ratios=(1, 1.4))
        left.barh(range(len(weights)), weights, color=[BLUE] * 4 + [FAINT] * SHOWN, height=0.75)
        left.set_yticks(range(4), USEFUL)
        left.text(weights.max() / 3, 3.5 + SHOWN / 2, f"{SHOWN} columns of noise", color=GREY)
        left.invert_yaxis()
        left.set(title="importances")
        left.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        ends = sorted(hits, key=lambda name: hits[name][-1])
        below = -np.inf
        for name in ends:
            right_axis.plot(range(len(numbers)), hits[name], color=COLOURS[name], marker="o")
            below = max(hits[name][-1], below + 0.022)
            at = (len(numbers) - 0.85, below)
            right_axis.text(*at, f"{name} {hits[name][-1]:.0%}", color=COLOURS[name], va="center")
        right_axis.set_xticks(range(len(numbers)), numbers)
        right_axis.set_xlim(-0.1, len(numbers) + 0.3)
        right_axis.spines["bottom"].set_bounds(0, len(numbers) - 1)
        right_axis.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        right_axis.set_xlabel("columns of noise beside four that decide", loc="left")
        right_axis.set_title("new rows recognised; 500 rows to learn from")
        save(figure, options.out)


if __name__ == "__main__":
    main()
