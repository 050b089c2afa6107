"""One's own class similarity: choose which mistakes you would rather have.

    python examples/05_own_similarity.py --out families.png             (about ten seconds)

Some mistakes are worse than others. Here a digit may be taken for one that looks alike, a loop for
a loop, but rather not for one of another family. A simplex treats all pairs of classes alike; any
positive semi-definite matrix can take its place: 1 on the diagonal, 0.5 within a family, -0.25
between families.

With a hundred digits to learn from there are mistakes enough to count. The learnt similarity of
unseen digits follows the matrix, and more of the mistakes stay in the family. Nothing is free:
digits that are asked to be alike are also mixed up more often.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from _gallery import BLUE, GREY, INK, arguments, panels, save
from cocoloss import CoCoClassifier

FAMILIES = {"loops": (0, 6, 8, 9), "strokes": (1, 4, 7), "curves": (2, 3, 5)}
ORDER = np.concatenate(list(FAMILIES.values()))
FAMILY = np.empty(10, dtype=int)
for number, digits in enumerate(FAMILIES.values()):
    FAMILY[list(digits)] = number
TARGET = np.where(np.equal.outer(FAMILY, FAMILY), 0.5, -0.25)
np.fill_diagonal(TARGET, 1)


def mean_similarity(kernel: NDArray[np.float64], y: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the mean of the kernel between the rows of any two classes."""
    member = np.equal.outer(np.arange(10), y)
    member = member / member.sum(axis=1, keepdims=True)  # (C, n)
    return member @ kernel @ member.T


def draw_matrix(axis: Axes, gram: NDArray[np.float64]) -> None:
    """Draw a similarity of the digits, family by family."""
    axis.imshow(gram[np.ix_(ORDER, ORDER)], cmap="PuOr_r", vmin=-1, vmax=1)
    start = -0.5
    for name, digits in FAMILIES.items():
        end = start + len(digits)
        axis.plot([start, start, end, end, start], [start, end, end, start, start], color=INK, lw=1)
        axis.text(10, (start + end) / 2, name, rotation=270, va="center", ha="center", fontsize=9)
        start = end
    axis.set(xticks=range(10), yticks=range(10), xticklabels=ORDER, yticklabels=ORDER)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)


def draw_shares(axis: Axes, shares: dict[str, float]) -> None:
    """Draw the share of mistakes within the family, one bar per target."""
    for row, ((name, share), colour) in enumerate(zip(shares.items(), (GREY, BLUE), strict=True)):
        axis.barh(row, share, color=colour, height=0.55)
        axis.text(0.01, row - 0.4, name, va="bottom", color=colour)
        axis.text(share + 0.01, row, f"{share:.0%}", va="center", color=colour)
    axis.set(yticks=[], ylim=(1.9, -0.9), xlim=(0, max(shares.values()) * 1.25))
    axis.xaxis.set_major_formatter(PercentFormatter(1))
    axis.spines["left"].set_visible(False)


def main() -> None:
    """Train with both targets on several draws, print what they get wrong, draw it."""
    options = arguments(__doc__)
    X, y = load_digits(return_X_y=True)
    targets = {"simplex": "simplex", "families": TARGET}
    scores: dict[str, list[tuple[float, float, float]]] = {name: [] for name in targets}
    epochs, n_draws = (30, 2) if options.quick else (60, 8)
    for seed in range(n_draws):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, train_size=100, stratify=y, random_state=seed
        )
        for name, target in targets.items():
            classifier = CoCoClassifier(
                similarity=target, early_stopping=False, max_iter=epochs, random_state=seed
            ).fit(X_train, y_train)
            said = classifier.predict(X_test)
            wrong, kin = said != y_test, FAMILY[said] == FAMILY[y_test]
            scores[name].append((np.mean(~wrong), np.mean(kin), np.mean(kin[wrong])))
    learnt = mean_similarity(classifier.kernel(X_test), y_test)

    print(f"{'target':10}{'digit right':>13}{'family right':>14}{'mistakes in the family':>24}")
    means = {name: np.mean(rows, axis=0) for name, rows in scores.items()}
    for name, (digit, family, within) in means.items():
        print(f"{name:10}{digit:13.3f}{family:14.3f}{within:24.3f}")
    agreement = np.corrcoef(learnt.flat, TARGET.flat)[0, 1]
    print(f"correlation of learnt and target similarity: {agreement:.3f}")

    if options.out:
        finding = "Told which digits are kin, CoCo keeps more of its mistakes in the family"
        figure, axes = panels(finding, 3, size=(10.5, 4.1), width_ratios=(1, 1, 0.8))
        draw_matrix(axes[0], TARGET)
        draw_matrix(axes[1], learnt)
        draw_shares(axes[2], {f"{name} as target": row[2] for name, row in means.items()})
        axes[0].set_title("target similarity")
        axes[1].set_title("learnt, on unseen digits")
        axes[2].set_title("mistakes within the family")
        save(figure, options.out)


if __name__ == "__main__":
    main()
