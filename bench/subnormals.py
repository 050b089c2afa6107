"""What subnormal numbers would cost in training, and that flushing them changes no weight.

    python bench/subnormals.py                   (about six minutes)

Three networks of three layers of 256 units, 100 epochs on 569 rows, with small batches and a high
rate: units die, and Adam's moments run out. Fitted with subnormal numbers kept and flushed in turn.
"""

from contextlib import nullcontext
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer

from cocoloss import CoCoClassifier, CrossEntropyClassifier, DotRegressionClassifier
from cocoloss.training import trainer
from timing import interleaved, readable, save, show

CLASSES = {
    "CoCo": CoCoClassifier,
    "dot regression": DotRegressionClassifier,
    "cross-entropy": CrossEntropyClassifier,
}
X, Y = load_breast_cancer(return_X_y=True)


class Fits:
    """Fits of one classifier, and the weights that came out."""

    def __init__(self, name: str, batch_size: int) -> None:
        self.weights: list[Any] = []
        self.model = CLASSES[name](
            (256, 256, 256),
            batch_size=batch_size,
            max_iter=100,
            n_members=3,
            learning_rate_init=5e-3,
            learning_rate="constant",
            early_stopping=False,
            random_state=0,
        )

    def fit(self, *, flushed: bool) -> None:
        """Fit once more."""
        context = trainer.flushed_subnormals if flushed else nullcontext
        with patch.object(trainer, "flushed_subnormals", context):
            self.weights.append(self.model.fit(X, Y).parameters_)

    def agree(self) -> bool:
        """Tell whether all fits came to the same weights, bit for bit."""
        return all(np.array_equal(self.weights[0], other) for other in self.weights)


def main() -> None:
    """Measure, print, and keep the numbers."""
    torch.set_num_threads(1)
    rows, record = [], {}
    for name in CLASSES:
        for batch_size in (16, 64):
            fits = Fits(name, batch_size)
            ways = {way: partial(fits.fit, flushed=way == "flushed") for way in ("kept", "flushed")}
            times = interleaved(ways, seconds=0, least=3)
            ratio, same = times["kept"] / times["flushed"], fits.agree()
            record[f"{name}, {batch_size}"] = {**times, "ratio": ratio, "same weights": same}
            shown = [readable(times["kept"]), readable(times["flushed"]), f"{ratio:.1f}x"]
            rows.append([name, str(batch_size), *shown, "yes" if same else "NO"])
    columns = ["loss", "batch", "kept", "flushed", "faster", "same weights"]
    show("A fit with subnormal numbers kept and flushed", columns, rows)
    print(save("subnormals", {"fits": record}))


if __name__ == "__main__":
    main()
