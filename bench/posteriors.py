"""The posterior read off an embedding by its formula, for several weights of the norm term.

    python bench/posteriors.py --data FOLDER [FOLDER ...]             (about six minutes)

The pair loss has the conditional mean m of the simplex's vertices v as its minimiser, but for a
rotation, and p_c = ((C - 1) <m, v_c> + 1) / C (docs/theory.md, section 8). Small networks are
trained on ten tables, cut to 2,000 rows: with ``CoCoLoss(normalize=False)`` at norm weights 0, 0.1
and 1 (the paper's), with the loss as it comes (on the sphere), and with cross-entropy beside them.
Each has C outputs, which is one to spare, or C + 8.

The rotation is an orthogonal Procrustes fit of the embeddings of training rows to the vertices of
their classes; what is read is clipped to at least one over the number of training rows, and scaled
to sum to one. Beside it stands a Gaussian head under empirical priors, fitted to the embeddings of
the same rows. 64 % of the rows are trained on, 16 % choose the best of 60 epochs, for each way of
reading by its own log loss, and 20 % are scored. One line of JSON per table, split, network and way
goes to results/posteriors.jsonl; ``python results/page.py`` makes docs/results/posteriors.md of it.

The folders hold ``<name>.csv.gz`` files (class column ``target``) and ``schema.json``.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from cocoloss.columns import TablePreprocessor
from cocoloss.files import write_whole
from cocoloss.geometry import simplex_frame
from cocoloss.heads import GaussianHead
from cocoloss.losses import CoCoLoss, CrossEntropyLoss
from cocoloss.recording.measure import reliability_curve
from cocoloss.tables import FolderSource
from timing import RESULTS

TABLES = (
    *("balance-scale", "blood-transfusion-service-center", "cmc", "credit-g", "diabetes"),
    *("heart-c", "mfeat-morphological", "phoneme", "vehicle", "waveform-5000"),
)
MOST_ROWS, SPLITS, EPOCHS, BATCH = 2000, 2, 60, 64
WEIGHTS = {"norm weight 0": 0.0, "norm weight 0.1": 0.1, "norm weight 1 (paper)": 1.0}
SPHERE, SOFTMAX = "on the sphere", "cross-entropy"
SPARE = (0, 8)  # outputs beyond C
SURE = (0.75, 0.85)  # of a class in two, as norm weight 0 reads it

Floats = NDArray[np.float64]


def prepared(
    source: FolderSource, name: str, seed: int
) -> tuple[list[Tensor], list[NDArray[np.int64]]]:
    """Return inputs and classes of the rows to train on, to choose by and to score."""
    table = source.load(name)
    y = np.unique(table.y.to_numpy(str), return_inverse=True)[1]
    rows = np.arange(len(y))
    if len(y) > MOST_ROWS:
        rows = train_test_split(rows, train_size=MOST_ROWS, stratify=y, random_state=0)[0]
    seen, test = train_test_split(rows, test_size=0.2, stratify=y[rows], random_state=seed)
    train, choose = train_test_split(seen, test_size=0.2, stratify=y[seen], random_state=seed)
    encoder = TablePreprocessor().fit(table.X.iloc[train], y[train])
    parts = (train, choose, test)
    x = [np.asarray(encoder.transform(table.X.iloc[part]), dtype=np.float32) for part in parts]
    return [torch.from_numpy(part) for part in x], [y[part] for part in parts]


def trained(
    loss: nn.Module, x: list[Tensor], y: NDArray[np.int64], q: int, seed: int
) -> Iterator[list[Tensor]]:
    """Yield the outputs of all parts after every second epoch."""
    torch.manual_seed(seed)
    network = nn.Sequential(
        *(nn.Linear(x[0].shape[1], 64), nn.ReLU()),
        *(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, q)),
    )
    parameters = [*network.parameters(), *loss.parameters()]
    optimiser = torch.optim.AdamW(parameters, lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, EPOCHS)
    labels = torch.from_numpy(y)
    for epoch in range(EPOCHS):
        for rows in torch.randperm(len(labels)).split(BATCH):
            optimiser.zero_grad()
            loss(network(x[0][rows]), labels[rows]).backward()
            optimiser.step()
        schedule.step()
        if epoch % 2:
            with torch.no_grad():
                yield [network(part) for part in x]


def read_off(h: list[Floats], y: NDArray[np.int64], n_classes: int) -> list[Floats]:
    """Return the posterior of all parts by the formula; ``y`` are the classes of the first."""
    vertices = simplex_frame(n_classes, h[0].shape[1], random_state=0)
    left, _, right = np.linalg.svd(h[0].T @ vertices[y])
    cosines = [part @ (left @ right) @ vertices.T for part in h]
    least = 1 / len(y)
    clipped = [np.clip(((n_classes - 1) * c + 1) / n_classes, least, 1) for c in cosines]
    return [p / p.sum(axis=1, keepdims=True) for p in clipped]


def by_gaussians(h: list[Floats], y: NDArray[np.int64]) -> list[Floats]:
    """Return the posterior of all parts by Gaussians fitted to the first."""
    head = GaussianHead(priors="empirical").fit(h[0], y)
    return [head.predict_proba(part) for part in h]


def scored(p: Floats, y: NDArray[np.int64]) -> dict[str, float]:
    """Return log loss, expected calibration error and accuracy."""
    labels = np.arange(p.shape[1])
    return {
        "log loss": float(log_loss(y, np.clip(p, 1e-15, 1), labels=labels)),
        "calibration error": reliability_curve(p, y).error,
        "accuracy": float(np.mean(p.argmax(axis=1) == y)),
    }


def readings(
    kind: str, outputs: list[Tensor], y: NDArray[np.int64], n_classes: int
) -> dict[str, list[Floats]]:
    """Return the posteriors of all parts, in each way that they can be read."""
    if kind == SOFTMAX:
        return {"softmax": [torch.softmax(part.double(), 1).numpy() for part in outputs]}
    if kind == SPHERE:
        outputs = [nn.functional.normalize(part, dim=1) for part in outputs]
    h = [part.double().numpy() for part in outputs]
    return {"formula": read_off(h, y, n_classes), "gaussian head": by_gaussians(h, y)}


def run(source: FolderSource, name: str, seed: int) -> Iterator[dict[str, Any]]:
    """Train all networks on one split, and yield a line for each and each way of reading it."""
    x, y = prepared(source, name, seed)
    C = int(y[0].max()) + 1
    losses: list[tuple[int, str, nn.Module]] = [(0, SOFTMAX, CrossEntropyLoss(C, None))]
    for spare in SPARE:
        losses += [
            (spare, kind, CoCoLoss(C, normalize=False, norm_weight=weight))
            for kind, weight in WEIGHTS.items()
        ]
        losses.append((spare, SPHERE, CoCoLoss(C)))
    read: dict[int, dict[str, Floats]] = {spare: {} for spare in SPARE}
    for spare, kind, loss in losses:
        best: dict[str, tuple[float, Floats]] = {}
        for outputs in trained(loss, x, y[0], C + spare, seed):
            for way, p in readings(kind, outputs, y[0], C).items():
                chosen_by = scored(p[1], y[1])["log loss"]
                if way not in best or chosen_by < best[way][0]:
                    best[way] = chosen_by, p[2]
        for way, (_, p) in best.items():
            line = {"table": name, "split": seed, "classes": C, "spare": spare}
            yield line | {"trained": kind, "read by": way} | scored(p, y[2])
            if way == "formula":
                read[spare][kind] = p
    for spare, found in read.items():
        if C == 2:
            line = {"table": name, "split": seed, "spare": spare}
            yield line | where_doubtful(found, y[2])


def where_doubtful(read: dict[str, Floats], y: NDArray[np.int64]) -> dict[str, Any]:
    """Return what all read, summed over the rows that norm weight 0 reads as about .8."""
    first = read[next(iter(WEIGHTS))]
    top, sure = first.argmax(axis=1), first.max(axis=1)
    rows = np.flatnonzero((sure >= SURE[0]) & (sure <= SURE[1]))
    sums = {kind: float(p[rows, top[rows]].sum()) for kind, p in read.items()}
    return {"rows": len(rows), "sums": sums | {"right": float(np.sum(y[rows] == top[rows]))}}


def main() -> None:
    """Train, score, and write results/posteriors.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="folders of tables")
    sources = [FolderSource(folder) for folder in parser.parse_args().data]
    where = {name: source for source in sources for name in source.names()}
    missing = [name for name in TABLES if name not in where]
    if missing:
        parser.error(f"no folder of --data has {', '.join(missing)}")
    torch.set_num_threads(1)
    lines = []
    for name in TABLES:
        for seed in range(SPLITS):
            lines += [json.dumps(line) for line in run(where[name], name, seed)]
            print(f"{name}, split {seed}", flush=True)
    with write_whole(RESULTS / "posteriors.jsonl") as aside:
        aside.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
