"""The closed form beside a kernel SVM and our networks: seconds of a fit and of predictions.

    python bench/kernels.py [--rounds 3]

Made-up tables of 20 columns, of which three matter, one thread, in turns; medians. The SVM is
scikit-learn's, tuned over nine settings by three folds, as one would have to.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from cocoloss import CoCoClassifier
from cocoloss.columns import TablePreprocessor

GRID = {"svc__C": [1, 10, 100], "svc__gamma": [0.005, 0.02, 0.1]}
MODELS: dict[str, Callable[[], Any]] = {
    "kernel": lambda: CoCoClassifier(solver="kernel", random_state=0),
    "network": lambda: CoCoClassifier(solver="network", random_state=0),
    "tuned SVC": lambda: GridSearchCV(
        make_pipeline(TablePreprocessor(), SVC(class_weight="balanced")), GRID, cv=3
    ),
}


def table(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20))
    return X, (X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n) / 2 > 0).astype(int)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    X_test, y_test = table(20_000, 1)
    print("| rows | model | fit, s | 20,000 predictions, s | balanced accuracy |")
    print("|---|---|---|---|---|")
    for make in MODELS.values():
        make().fit(*table(60, 0))  # imports
    for n in (300, 1000, 5000):
        X, y = table(n, 0)
        taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in MODELS}
        for _ in range(rounds):
            for name, make in MODELS.items():
                start = time.process_time()
                model = make().fit(X, y)
                fitted = time.process_time()
                predicted = model.predict(X_test)
                seconds = fitted - start, time.process_time() - fitted
                taken[name].append((*seconds, balanced_accuracy_score(y_test, predicted)))
        for name, measured in taken.items():
            fit, predict, score = map(statistics.median, zip(*measured, strict=True))
            print(f"| {n:,} | {name} | {fit:.2f} | {predict:.2f} | {score:.4f} |", flush=True)


if __name__ == "__main__":
    main()
