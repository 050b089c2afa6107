"""Few labels: what rows without one are good for.

    python examples/12_few_labels.py --out few_labels.png               (about a minute)

Six hundred digits, of which a handful has a label. ``unlabelled="ignore"`` learns from these alone,
``unlabelled="soft"`` from the others, too: teachers say what they think of them, and a student
learns from all. Judged are the other 1,197 digits, over some draws of the labels.

Beside it: scikit-learn's label spreading, which hands labels on from neighbour to neighbour. Digits
are made for it, since neighbours nearly always are of one class: up to five labels of each it is
ahead, and from ten on it is not.
"""

import warnings

import numpy as np
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.semi_supervised import LabelSpreading

from _gallery import BLUE, GREY, ORANGE, arguments, panels, save
from cocoloss import CoCoClassifier

LABELS = (1, 2, 5, 10, 20)
N_ROWS = 600
COLOURS = {"soft": BLUE, "ignore": GREY, "label spreading": ORANGE}


def accuracies(
    X: NDArray[np.float64], y: NDArray[np.int64], n_labels: int, seed: int
) -> dict[str, float]:
    """Return how many of the other digits are recognised, of so many labels of each class."""
    rng = np.random.default_rng(seed)
    train, test = np.split(rng.permutation(len(y)), [N_ROWS])
    labels = np.full(N_ROWS, -1)
    for digit in range(10):
        chosen = rng.choice(np.flatnonzero(y[train] == digit), n_labels, replace=False)
        labels[chosen] = digit
    classifiers = {
        "soft": CoCoClassifier(unlabelled="soft", random_state=0),
        "ignore": CoCoClassifier(unlabelled="ignore", random_state=0),
        "label spreading": LabelSpreading(kernel="knn"),
    }
    return {
        name: classifier.fit(X[train], labels).score(X[test], y[test])
        for name, classifier in classifiers.items()
    }


def main() -> None:
    """Fit for each number of labels, print and draw."""
    options = arguments(__doc__)
    X, y = load_digits(return_X_y=True)
    numbers, n_draws = ((2, 20), 1) if options.quick else (LABELS, 3)
    print("labels per class        " + "".join(f"{n:7}" for n in numbers))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows without a near label, in spreading
        draws = [
            [accuracies(X, y, n, seed) for seed in range(n_draws)] for n in numbers
        ]  # of each number of labels
    scores = {name: [np.mean([d[name] for d in each]) for each in draws] for name in COLOURS}
    for name, score in scores.items():
        print(f"{name:24}" + "".join(f"{value:7.3f}" for value in score))

    if options.out:
        k = len(numbers) // 2
        gain = 100 * (scores["soft"][k] - scores["ignore"][k])
        finding = (
            f"With {numbers[k]} labels of each digit, those without one are worth {gain:.0f} points"
        )
        figure, (axis,) = panels(finding, 1, size=(8, 4.2))
        for name, score in scores.items():
            axis.plot(numbers, score, color=COLOURS[name], marker="o")
        ends = sorted(scores, key=lambda name: scores[name][-1])
        lowest = min(scores[name][-1] for name in ends)
        for place, name in enumerate(ends):
            at = (numbers[-1] * 1.1, lowest - 0.01 + 0.035 * place)
            axis.text(*at, f"{name} {scores[name][-1]:.0%}", color=COLOURS[name], va="center")
        axis.set(xscale="log", xticks=numbers, xticklabels=numbers)
        axis.set_xlim(numbers[0] * 0.92, numbers[-1] * 2.2)
        axis.minorticks_off()
        axis.spines["bottom"].set_bounds(numbers[0], numbers[-1])
        axis.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axis.set_xlabel(f"labels per class, of {N_ROWS} rows", loc="left")
        axis.set_title("other digits recognised")
        save(figure, options.out)


if __name__ == "__main__":
    main()
