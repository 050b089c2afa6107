"""Collapse and contrast, seen: three wines in two dimensions, epoch by epoch.

    python examples/02_collapse.py --out collapse.png                   (about five seconds)

A network embeds scikit-learn's wine data in the plane, where three classes can be 120 degrees
apart. CoCo does not say where on the circle: the dashed triangle is turned to fit the class means.
Dispersity is the spread within the classes over the spread between them; 0 is full collapse.
"""

import numpy as np
import torch
from matplotlib.axes import Axes
from numpy.typing import NDArray
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from torch import nn

from _gallery import BLUE, FAINT, GREEN, ORANGE, arguments, panels, save
from cocoloss import CoCoLoss
from cocoloss.geometry import simplex_frame
from cocoloss.metrics import dispersity

SHOWN = (0, 5, 20, 200)
COLOURS = (BLUE, ORANGE, GREEN)


def embeddings_by_epoch(
    x: torch.Tensor, y: torch.Tensor, shown: tuple[int, ...]
) -> dict[int, NDArray[np.float32]]:
    """Train on all rows at once and return the embedding at each epoch that is shown."""
    torch.manual_seed(4)
    network = nn.Sequential(nn.Linear(x.shape[1], 32), nn.Tanh(), nn.Linear(32, 2, bias=False))
    loss = CoCoLoss(n_classes=3, normalize=False)  # as printed: the norm is learnt as well
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-2)
    seen = {}
    for epoch in range(max(shown) + 1):
        h = network(x)
        if epoch in shown:
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


def draw(axis: Axes, h: NDArray[np.float32], y: NDArray[np.int64]) -> None:
    """Draw one embedding, the circle, and the triangle that fits it best."""
    angle = np.linspace(0, 2 * np.pi, 200)
    axis.plot(np.cos(angle), np.sin(angle), color=FAINT, linewidth=1)
    corners = fitted_simplex(h, y)
    axis.plot(*corners[[0, 1, 2, 0]].T, color=FAINT, linewidth=1, linestyle="--")
    for c, colour in enumerate(COLOURS):
        axis.scatter(*h[y == c].T, s=13, color=colour, alpha=0.7, linewidths=0, clip_on=False)
    axis.set(aspect="equal", xlim=(-1.5, 1.5), ylim=(-1.1, 1.65), xticks=[], yticks=[])
    axis.spines[:].set_visible(False)


def main() -> None:
    """Train, print the dispersity, draw."""
    options = arguments(__doc__)
    wine = load_wine()
    x = torch.tensor(StandardScaler().fit_transform(wine.data), dtype=torch.float32)
    shown = (0, 5, 20, 60) if options.quick else SHOWN
    seen = embeddings_by_epoch(x, torch.tensor(wine.target), shown)
    for epoch, h in seen.items():
        print(f"epoch {epoch:3}   dispersity {dispersity(h, wine.target):.3f}")

    if options.out:
        finding = "CoCo collapses three wines to points, and contrasts them to a triangle"
        figure, axes = panels(finding, len(seen), size=(11, 3.4))
        for axis, (epoch, h) in zip(axes, seen.items(), strict=True):
            draw(axis, h, wine.target)
            title = f"epoch {epoch}\ndispersity {dispersity(h, wine.target):.3f}"
            axis.set_title(title, loc="center")
        for c, (colour, name) in enumerate(zip(COLOURS, wine.target_names, strict=True)):
            mean = seen[shown[-1]][wine.target == c].mean(axis=0)
            label = f"wine {int(name[-1]) + 1}"  # class_0, class_1, class_2
            axes[-1].annotate(label, mean * 0.55, color=colour, ha="center", va="center")
        save(figure, options.out)


if __name__ == "__main__":
    main()
