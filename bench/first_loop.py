"""The loss as a new user tries it: a plain PyTorch loop on scikit-learn's digits.

    python bench/first_loop.py                                        (about a minute)

A multilayer perceptron and a small CNN with torch's own initialisation, 20 epochs of Adam at two
learning rates, batches of 64. ``CoCoLoss()`` as it comes, and the paper's form. Two thirds of the
digits are trained on; the others are classified by the nearest class mean.
"""

import itertools
import statistics

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from cocoloss import CoCoLoss
from timing import save, show

EPOCHS, BATCH, SEEDS, Q = 20, 64, 5, 16
RATES = (1e-3, 1e-2)


def perceptron() -> nn.Module:
    """Return a network of two hidden layers for rows of 64 pixels."""
    hidden = (nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU())
    return nn.Sequential(*hidden, nn.Linear(128, Q))


def cnn() -> nn.Module:
    """Return two convolutions and a linear layer for the same rows."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(128, Q)),
    )


def accuracy(network: nn.Module, loss: CoCoLoss, rate: float, data: list[Tensor]) -> float:
    """Train, and return the share of new digits that are nearest to the mean of their class."""
    x, x_new, y, y_new = data
    optimiser = torch.optim.Adam(network.parameters(), lr=rate)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(y)).split(BATCH):
            optimiser.zero_grad()
            loss(network(x[rows]), y[rows]).backward()
            optimiser.step()
    with torch.no_grad():
        known, new = network(x), network(x_new)
        if loss.normalize:
            known, new = (nn.functional.normalize(h, dim=1) for h in (known, new))
        means = torch.stack([known[y == c].mean(0) for c in range(10)])
        return (torch.cdist(new, means).argmin(1) == y_new).float().mean().item()


def main() -> None:
    """Measure, print, and write results/first_loop.json."""
    torch.set_num_threads(1)
    X, y = load_digits(return_X_y=True)
    found = {}
    for make, rate, normalize in itertools.product((perceptron, cnn), RATES, (True, False)):
        reached = []
        for seed in range(SEEDS):
            parts = train_test_split(X / 16, y, test_size=1 / 3, stratify=y, random_state=seed)
            data = [torch.tensor(part) for part in parts]
            torch.manual_seed(seed)
            loss = CoCoLoss(10, normalize=normalize)
            data[:2] = [part.float() for part in data[:2]]
            reached.append(accuracy(make(), loss, rate, data))
        found[f"{make.__name__}, rate {rate:g}, normalize={normalize}"] = reached
    rows = [
        [name, f"{statistics.mean(reached):.3f}", f"{min(reached):.3f}"]
        for name, reached in found.items()
    ]
    show("accuracy on new digits", ["network and loss", "mean", "worst"], rows)
    save("first_loop", {"accuracy": found})


if __name__ == "__main__":
    main()
