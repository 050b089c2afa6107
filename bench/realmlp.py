"""The default CoCoClassifier beside pytabkit's default RealMLP, on scikit-learn's digits.

    make bench-realmlp            (several minutes; an environment of its own: pytabkit is heavy)

Both with two threads, in turns, on the same ten splits.
"""

import statistics
import time
import warnings

import torch
from pytabkit import RealMLP_TD_Classifier
from sklearn.datasets import load_digits
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split

from cocoloss import CoCoClassifier
from timing import save

SPLITS = 10  # one of 450 test rows is 0.2 points: fewer say little


def main() -> None:
    """Measure, print, and write results/realmlp.json."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    X, y = load_digits(return_X_y=True)
    models = {
        "CoCoClassifier": lambda seed: CoCoClassifier(random_state=seed),
        "RealMLP_TD_Classifier": lambda seed: RealMLP_TD_Classifier(
            random_state=seed, n_threads=2, device="cpu"
        ),
    }
    seconds: dict[str, list[float]] = {name: [] for name in models}
    accuracy: dict[str, list[float]] = {name: [] for name in models}
    for seed in range(SPLITS):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, stratify=y, random_state=seed, test_size=0.25
        )
        for name, make in models.items():
            started = time.perf_counter()
            model = make(seed).fit(X_train, y_train)
            seconds[name].append(time.perf_counter() - started)
            accuracy[name].append(balanced_accuracy_score(y_test, model.predict(X_test)))
            print(f"{name}, split {seed}: {seconds[name][-1]:.1f} s, {accuracy[name][-1]:.4f}")
    ours, theirs = (statistics.median(seconds[name]) for name in models)
    gap = [statistics.mean(accuracy[name]) for name in models]
    print(f"{theirs / ours:.1f} times faster (target: 10)")
    print(f"balanced accuracy {gap[0]:.4f} against {gap[1]:.4f} (target: ahead)")
    save("realmlp", {"seconds": seconds, "balanced accuracy": accuracy, "speedup": theirs / ours})


if __name__ == "__main__":
    main()
