"""Collapse and contrast, seen: three wines in two dimensions, epoch by epoch.

    python examples/02_collapse.py --out collapse.png

A network embeds scikit-learn's wine data in the plane, where three classes can be 120 degrees
apart. CoCo does not say where on the circle: the dashed triangle is turned to fit the class means.
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from torch import nn

from cocoloss import CoCoLoss
from cocoloss.geometry import simplex_frame
from cocoloss.metrics import dispersity

mpl.use("Agg")
from matplotlib import pyplot as plt

SHOWN = (0, 5, 20, 200)
COLOURS = ("#0072b2", "#d55e00", "#009e73")  # told apart by colour-blind eyes, too
INK, FAINT = "#333333", "#bbbbbb"


def embeddings_by_epoch(x: torch.Tensor, y: torch.Tensor) -> dict[int, NDArray[np.float32]]:
    """Train on all rows at once and return the embedding at each epoch that is shown."""
    torch.manual_seed(4)
    torch.set_num_threads(1)
    network = nn.Sequential(nn.Linear(x.shape[1], 32), nn.Tanh(), nn.Linear(32, 2, bias=False))
    loss = CoCoLoss(n_classes=3)
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-2)
    seen = {}
    for epoch in range(max(SHOWN) + 1):
        h = network(x)
        if epoch in SHOWN:
            seen[epoch] = h.detach().numpy()
        optimiser.zero_grad()
        loss(h, y).backward()
        optimiser.step()
    return seen


def fitted_simplex(h: NDArray[np.float32], y: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the simplex, turned (or mirrored) to lie closest to the class means."""
    means = np.stack([h[y == c].mean(axis=0) for c in range(3)])
    simplex = simplex_frame(3, 2, random_state=0)
    left, _, right = np.linalg.svd(simplex.T @ means)  # orthogonal Procrustes
    return simplex @ left @ right


def draw(seen: dict[int, NDArray[np.float32]], y: NDArray[np.int64], out: Path) -> None:
    """Draw one panel per epoch."""
    figure, axes = plt.subplots(1, len(seen), figsize=(11, 3.15), layout="constrained")
    for axis, (epoch, h) in zip(axes, seen.items(), strict=True):
        angle = np.linspace(0, 2 * np.pi, 200)
        axis.plot(np.cos(angle), np.sin(angle), color=FAINT, linewidth=1)
        corners = fitted_simplex(h, y)
        axis.plot(*corners[[0, 1, 2, 0]].T, color=FAINT, linewidth=1, linestyle="--")
        for c, colour in enumerate(COLOURS):
            axis.scatter(*h[y == c].T, s=13, color=colour, alpha=0.7, linewidths=0)
        axis.set_title(f"epoch {epoch}\ndispersity {dispersity(h, y):.3f}", fontsize=10, color=INK)
        axis.set(aspect="equal", xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    figure.savefig(out, dpi=150)


def main() -> None:
    """Train, draw, and say where the picture is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("collapse.png"))
    out = parser.parse_args().out
    wine = load_wine()
    x = torch.tensor(StandardScaler().fit_transform(wine.data), dtype=torch.float32)
    draw(embeddings_by_epoch(x, torch.tensor(wine.target)), wine.target, out)
    print(f"written: {out}")


if __name__ == "__main__":
    main()
