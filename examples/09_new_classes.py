"""New classes: what a collapsed embedding forgets.

    python examples/09_new_classes.py --out new_classes.png             (about ten seconds)

``transform`` gives features, and it is tempting to use them for classes that came later. Here
networks learn 0 to 4; then a few labels of each of 5 to 9 must do, and a new digit gets the class
whose mean is nearest. An embedding that has collapsed keeps what tells 0 to 4 apart and little
else: the raw pixels do better, and cross-entropy, which collapses less, lies between.

So: use CoCo's embedding for the classes it has seen. If new classes will come, train again, or
keep the raw columns beside it.
"""

import numpy as np
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from _gallery import BLUE, GREY, ORANGE, arguments, panels, save
from cocoloss import CoCoClassifier, CrossEntropyClassifier

LABELS = (1, 2, 5, 10, 20, 50)


def few_shot(h: NDArray[np.float32], y: NDArray[np.int64], n_labels: int, n_draws: int) -> float:
    """Return the mean accuracy of the nearest class mean, of so many labels per class."""
    hits = []
    for draw in range(n_draws):
        rng = np.random.default_rng(draw)
        classes = np.unique(y)
        labelled = [rng.choice(np.flatnonzero(y == c), n_labels, replace=False) for c in classes]
        means = np.stack([h[rows].mean(axis=0) for rows in labelled])
        rest = np.setdiff1d(np.arange(len(y)), np.concatenate(labelled))
        distances = np.linalg.norm(h[rest, None] - means, axis=2)
        hits.append(np.mean(classes[distances.argmin(axis=1)] == y[rest]))
    return float(np.mean(hits))


def main() -> None:
    """Learn the old classes, try the new ones in each embedding, print and draw."""
    options = arguments(__doc__)
    X, y = load_digits(return_X_y=True)
    X, old = X / 16, y < 5
    settings = {"max_iter": 20 if options.quick else 60, "random_state": 0}
    coco = CoCoClassifier(**settings).fit(X[old], y[old])
    entropy = CrossEntropyClassifier(**settings).fit(X[old], y[old])
    features = {
        "pixels": X[~old],
        "cross-entropy embedding": entropy.transform(X[~old]),
        "CoCo embedding": coco.transform(X[~old]),
    }
    n_draws = 5 if options.quick else 30
    print("labels per new class    " + "".join(f"{n:7}" for n in LABELS))
    scores = {}
    for name, h in features.items():
        scores[name] = [few_shot(h, y[~old], n, n_draws) for n in LABELS]
        print(f"{name:24}" + "".join(f"{score:7.3f}" for score in scores[name]))

    if options.out:
        finding = "For classes it has never seen, an embedding that collapses forgets too much"
        figure, (axis,) = panels(finding, 1, size=(8, 4.2))
        for (name, score), colour in zip(scores.items(), (GREY, ORANGE, BLUE), strict=True):
            axis.plot(LABELS, score, color=colour, marker="o")
            axis.annotate(
                f" {name} {score[-1]:.0%}",
                (LABELS[-1], score[-1]),
                (6, 0),
                color=colour,
                va="center",
                textcoords="offset points",
            )
        axis.set(xscale="log", xlim=(0.9, 220), ylim=(0, 1), xticks=LABELS, xticklabels=LABELS)
        axis.minorticks_off()
        axis.spines["bottom"].set_bounds(LABELS[0], LABELS[-1])
        axis.yaxis.set_major_formatter(PercentFormatter(1))
        axis.set_xlabel("labels per new class (digits 5 to 9)", loc="left")
        axis.set_title("new digits recognised; the networks learnt 0 to 4")
        save(figure, options.out)


if __name__ == "__main__":
    main()
