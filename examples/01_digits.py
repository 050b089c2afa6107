"""Handwritten digits: a plain PyTorch loop with CoCoLoss, and how far the classes collapse.

    python examples/01_digits.py            (about ten seconds; --epochs to change that)

Two thirds of scikit-learn's digits train a small network; a new digit gets the class whose mean
embedding is nearest. The table shows the same measures before and after training.
"""

import argparse

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestCentroid
from torch import Tensor, nn

from cocoloss import CoCoLoss
from cocoloss.metrics import dispersity, neural_collapse

N_CLASSES, EMBEDDING_DIM, BATCH = 10, 16, 64


def load() -> list[Tensor]:
    """Return train inputs, test inputs, train labels and test labels as tensors."""
    digits = load_digits()
    parts = train_test_split(
        digits.data / 16, digits.target, test_size=1 / 3, stratify=digits.target, random_state=0
    )
    return [torch.tensor(part, dtype=torch.get_default_dtype()) for part in parts[:2]] + [
        torch.tensor(part) for part in parts[2:]
    ]


@torch.no_grad()
def make_network(x: Tensor) -> nn.Module:
    """Return a small network whose embeddings of ``x`` have norm one, on average.

    CoCo learns fastest from there: h = 0 is a saddle of the loss, and large norms are far away.
    """
    last = nn.Linear(128, EMBEDDING_DIM, bias=False)
    network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), last)
    last.weight /= network(x).norm(dim=1).mean()
    return network


def train(network: nn.Module, loss: CoCoLoss, x: Tensor, y: Tensor, epochs: int) -> None:
    """Minimise the loss, with a progress bar."""
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    columns = (
        TextColumn("training"),
        BarColumn(),
        TextColumn("epoch {task.completed}/{task.total}  loss {task.fields[loss]:.5f}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as progress:
        bar = progress.add_task("training", total=epochs, loss=float("nan"))
        for _ in range(epochs):
            total = 0.0
            for rows in torch.randperm(len(y)).split(BATCH):
                optimiser.zero_grad()
                value = loss(network(x[rows]), y[rows])
                value.backward()
                optimiser.step()
                total += value.item() * len(rows)
            schedule.step()
            progress.update(bar, advance=1, loss=total / len(y))


@torch.no_grad()
def measure(network: nn.Module, loss: CoCoLoss, data: list[Tensor]) -> dict[str, str]:
    """Return what the embedding looks like."""
    x_train, x_test, y_train, y_test = data
    h_train, h_test = network(x_train), network(x_test)
    nearest_mean = NearestCentroid().fit(h_train.numpy(), y_train.numpy())
    accuracy = balanced_accuracy_score(y_test, nearest_mean.predict(h_test.numpy()))
    collapse = neural_collapse(h_train, y_train)
    return {
        "balanced accuracy, test": f"{accuracy:.4f}",
        "CoCo loss, train": f"{loss(h_train, y_train):.5f}",
        "dispersity, train": f"{dispersity(h_train, y_train):.5f}",
        "dispersity, test": f"{dispersity(h_test, y_test):.5f}",
        "NC1 within-class spread": f"{collapse.nc1:.5f}",
        "NC2 distance from the simplex": f"{collapse.nc2:.5f}",
        "NC4 train rows not nearest their class": f"{collapse.nc4:.4f}",
    }


def main() -> None:
    """Train, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=60)
    epochs = parser.parse_args().epochs
    torch.manual_seed(0)
    torch.set_num_threads(1)  # a network this small only waits for a second thread
    data = load()
    network, loss = make_network(data[0]), CoCoLoss(N_CLASSES)
    before = measure(network, loss, data)
    train(network, loss, data[0], data[2], epochs)
    after = measure(network, loss, data)

    table = Table(title="scikit-learn's digits, nearest class mean", title_justify="left")
    table.add_column("")
    table.add_column("before", justify="right")
    table.add_column(f"after {epochs} epochs", justify="right")
    for name, value in before.items():
        table.add_row(name, value, after[name])
    Console().print(table)


if __name__ == "__main__":
    main()
