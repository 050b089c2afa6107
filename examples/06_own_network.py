"""A network of one's own: the same small CNN through CoCoClassifier, and in a plain PyTorch loop.

    python examples/06_own_network.py --out digits.png                  (about half a minute)

scikit-learn's digits are images of 8 x 8 pixels. A convolution knows that neighbouring pixels
belong together, which a table does not say. ``CoCoClassifier(module=...)`` trains any
``torch.nn.Module`` and adds what surrounds it: six members, held-out rows, calibration. The
loop below does the bare minimum by hand, and classifies by the nearest class mean.

Both divide embeddings by their norm, the classifier and the loss. CoCo learns fastest there: h = 0
is a saddle of the loss, and large norms are far away. The picture shows, of the digits that the
loop has not seen, those nearest to their class mean and those farthest from it: what the network
finds typical, and what strange.
"""

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from _gallery import GREY, INK, ORANGE, arguments, panels, save
from cocoloss import CoCoClassifier, CoCoLoss

SHOWN = 3  # typical digits of each class, and as many strange ones
PLATE = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5}


def make_cnn(n_features: int, embedding_dim: int) -> nn.Module:
    """Return a CNN for rows of 64 pixels; CoCoClassifier calls it once for each member."""
    side = round(n_features**0.5)
    return nn.Sequential(
        nn.Unflatten(1, (1, side, side)),
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * (side // 4) ** 2, embedding_dim)),
    )


def train(network: nn.Module, x: Tensor, y: Tensor, epochs: int) -> None:
    """Minimise CoCo: the loop is the usual one, and the loss is called like any other."""
    loss = CoCoLoss(n_classes=10)
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    for _ in range(epochs):
        for rows in torch.randperm(len(y)).split(64):
            optimiser.zero_grad()
            loss(network(x[rows]), y[rows]).backward()
            optimiser.step()
        schedule.step()


@torch.no_grad()
def distances(
    network: nn.Module, x_train: Tensor, y_train: Tensor, x: Tensor
) -> NDArray[np.float32]:
    """Return how far the rows of x are from each class mean of the training rows, (n, 10)."""
    known, new = (nn.functional.normalize(network(rows), dim=1) for rows in (x_train, x))
    means = torch.stack([known[y_train == c].mean(dim=0) for c in range(10)])
    return torch.cdist(new, means).numpy()


def draw(
    axis: Axes, images: NDArray[np.float32], y: NDArray[np.int64], far: NDArray[np.float32]
) -> None:
    """Draw a column per digit, from typical to strange, with a frame around the mistakes."""
    said = far.argmin(axis=1)
    for c in range(10):
        rows = np.flatnonzero(y == c)
        rows = rows[np.argsort(far[rows, c])]
        for line, row in enumerate(np.concatenate([rows[:SHOWN], rows[-SHOWN:]])):
            x, top = 1.2 * c, -1.2 * line - 0.5 * (line >= SHOWN)
            axis.imshow(images[row].reshape(8, 8), cmap="Greys", extent=(x, x + 1, top - 1, top))
            if said[row] != c:
                axis.add_patch(Rectangle((x, top - 1), 1, 1, fill=False, color=ORANGE, lw=2))
                axis.text(x + 0.95, top - 0.95, said[row], color=ORANGE, ha="right", bbox=PLATE)
    for line, name in ((SHOWN / 2, "typical"), (1.5 * SHOWN + 0.5, "strange")):
        axis.text(-0.3, -1.2 * line, name, rotation=90, ha="right", va="center", color=GREY)
    axis.set(xlim=(-0.7, 12), ylim=(-1.2 * 2 * SHOWN - 0.6, 0.1), aspect="equal")
    axis.set_axis_off()


def main() -> None:
    """Train the CNN both ways and the default network once; print accuracies, draw digits."""
    options = arguments(__doc__)
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        (X / 16).astype(np.float32), y, test_size=1 / 3, stratify=y, random_state=0
    )
    epochs = 6 if options.quick else 40
    settings = {"max_iter": epochs, "random_state": 0, "n_members": 2 if options.quick else 6}
    default = CoCoClassifier(**settings).fit(X_train, y_train)
    cnn = CoCoClassifier(module=make_cnn, preprocess=None, **settings).fit(X_train, y_train)

    torch.manual_seed(0)
    network = make_cnn(64, 16)
    x_train, labels = torch.from_numpy(X_train), torch.from_numpy(y_train)
    train(network, x_train, labels, epochs)
    far = distances(network, x_train, labels, torch.from_numpy(X_test))
    right = np.mean(far.argmin(axis=1) == y_test)

    print(f"CoCoClassifier, its own networks  {default.score(X_test, y_test):.3f}")
    print(f"CoCoClassifier(module=make_cnn)   {cnn.score(X_test, y_test):.3f}")
    print(f"the same CNN in a plain loop      {right:.3f}")

    if options.out:
        finding = f"What a CNN trained with CoCo finds typical, and what strange: {right:.1%} right"
        figure, (axis,) = panels(finding, 1, size=(8.4, 5.2))
        draw(axis, X_test, y_test, far)
        axis.set_title(
            "unseen digits; mistakes are framed, with what they were taken for", color=INK
        )
        save(figure, options.out)


if __name__ == "__main__":
    main()
