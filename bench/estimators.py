"""The classifiers beside scikit-learn's MLPClassifier and a plain torch loop, one thread.

    python bench/estimators.py            (about two minutes)

Same data (1000 rows, 20 columns), same architecture (20-64-64-q), same epochs (100) and batch (64).
"""

import warnings

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits
from torch import nn

from cocoloss import CoCoClassifier, CoCoLoss
from cocoloss.estimators import cross_validate_lockstep
from timing import interleaved, readable, save, show

HIDDEN, EPOCHS, BATCH, Q = (64, 64), 100, 64, 16
X, Y = make_classification(1000, 20, n_informative=10, n_classes=4, class_sep=1.5, random_state=0)
MANY = np.tile(X, (100, 1))
PLAIN = {
    "hidden_layer_sizes": HIDDEN,
    "embedding_dim": Q,
    "max_iter": EPOCHS,
    "batch_size": BATCH,
    "n_members": 1,
    "early_stopping": False,
    "normalize": False,
    "random_state": 0,
}


def theirs() -> MLPClassifier:
    """Return scikit-learn's network, told not to stop before its time."""
    return MLPClassifier(
        HIDDEN, batch_size=BATCH, max_iter=EPOCHS, tol=0, n_iter_no_change=EPOCHS, random_state=0
    )


def torch_loop() -> None:
    """Train the same network as one would by hand."""
    torch.manual_seed(0)
    x, y = torch.tensor(X, dtype=torch.float32), torch.tensor(Y)
    x = (x - x.mean(0)) / x.std(0)
    layers = [nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, Q)]
    network, loss = nn.Sequential(*layers), CoCoLoss(4, normalize=False)
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3, fused=True)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(y)).split(BATCH):
            optimiser.zero_grad()
            loss(network(x[rows]), y[rows]).backward()
            optimiser.step()


def main() -> None:
    """Measure, print, and write results/estimators.json."""
    warnings.simplefilter("ignore")  # MLPClassifier says that it has not converged
    torch.set_num_threads(1)
    with threadpool_limits(1):
        ours, mlp = CoCoClassifier(**PLAIN).fit(X, Y), theirs().fit(X, Y)
        sphere = PLAIN | {"normalize": True}
        times = interleaved(
            {
                "fit": lambda: CoCoClassifier(**PLAIN).fit(X, Y),
                "fit on the sphere": lambda: CoCoClassifier(**sphere).fit(X, Y),
                "MLPClassifier fit": lambda: theirs().fit(X, Y),
                "torch loop": torch_loop,
                "ten folds": lambda: cross_validate_lockstep(CoCoClassifier(**PLAIN), X, Y, cv=10),
                "predict 100,000": lambda: ours.predict(MANY),
                "MLPClassifier predict 100,000": lambda: mlp.predict(MANY),
            },
            seconds=60,
        )
    targets = [
        ("one fit / MLPClassifier", times["fit"] / times["MLPClassifier fit"], 0.6),
        (
            "one fit on the sphere / MLPClassifier",
            times["fit on the sphere"] / times["MLPClassifier fit"],
            0.6,
        ),
        ("one fit / plain torch loop", times["fit"] / times["torch loop"], 0.35),
        (
            "ten folds / ten MLPClassifier fits",
            times["ten folds"] / (10 * times["MLPClassifier fit"]),
            0.25,
        ),
        (
            "predict 100,000 rows / MLPClassifier",
            times["predict 100,000"] / times["MLPClassifier predict 100,000"],
            1.5,
        ),
    ]
    show("seconds", list(times), [[readable(t) for t in times.values()]])
    for name, ratio, limit in targets:
        print(f"{name}: {ratio:.3f} (at most {limit}: {'met' if ratio <= limit else 'MISSED'})")
    record = {"seconds": times, "ratios": {name: ratio for name, ratio, _ in targets}}
    print(f"written: {save('estimators', record).name}")


if __name__ == "__main__":
    main()
