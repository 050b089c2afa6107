"""How near networks that are trained by pairs come to the closed form, as epochs grow.

    python bench/two_solvers.py --data FOLDER [FOLDER ...]              (some minutes; resumes)

The population minimiser of the pair loss and that of the closed form are one function m, but for a
rotation (docs/theory.md, sections 1 and 3), so that their kernels <h(x), h(x')> should be alike.
Each solver has its own way to be wrong about m: finite rows, steps and random starts here, a ridge
there.

Eight tables: those of bench/posteriors.py with 500 to 1,000 rows. 80 % of the rows are learnt from,
the others compared and scored (the split 0 of bench/posteriors.py). Networks are those of that
script, with C outputs, five of them from different starts at unit norm:
``CoCoLoss(normalize=False)`` with the norm weights 0 and 1 (the paper's), and on the sphere. AdamW
has a constant rate, so that every epoch is on one path, and nothing stops it. The closed form gets
the same inputs; rows weigh alike, as they do in the loss, and leave-one-out chooses kernels, metric
and ridge.

Compared are kernel matrices of test rows: the centred alignment, which is the cosine of centred
matrices, and the correlation of what is off the diagonal; of each network with the closed form, of
the mean kernel of all networks with it, of networks with each other, and of all with the kernel of
the classes of test rows: what good predictions have in common, whatever made them. Scores are those
of the posterior by the formula, the embedding turned to the vertices by its training rows. One line
of JSON per table, loss and epoch is appended to results/two_solvers.jsonl, and one for the closed
form; ``python results/page.py`` makes docs/results/two-solvers.md of them.
"""

import argparse
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score, log_loss
from torch import Tensor

from cocoloss.geometry import target_points
from cocoloss.kernels.classes import Lesson, fit_closed_form
from cocoloss.losses import CoCoLoss
from cocoloss.losses.base import Batch
from cocoloss.networks import LockstepMLP
from cocoloss.tables import FolderSource
from cocoloss.training.trainer import FlatAdamW
from posteriors import BATCH, CLOSED, SPHERE, WEIGHTS, by_formula, prepared, split_rows, turned
from timing import RESULTS

TABLES = (
    *("wdbc", "balance-scale", "eucalyptus", "blood-transfusion-service-center"),
    *("diabetes", "vehicle", "vowel", "credit-g"),
)
KINDS = {kind: weight for kind, weight in WEIGHTS.items() if weight in {0, 1}} | {SPHERE: 1.0}
EPOCHS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500)
MEMBERS, RATE, WEIGHT_DECAY = 5, 1e-3, 0.01
STORE = RESULTS / "two_solvers.jsonl"

Floats = NDArray[np.float64]


def alignment(K: Floats, L: Floats) -> float:
    """Return the cosine of two centred kernel matrices."""
    centred = [M - M.mean(axis=0) - M.mean(axis=1)[:, None] + M.mean() for M in (K, L)]
    return _cosine(*centred)


def correlation(K: Floats, L: Floats) -> float:
    """Return the correlation of two kernel matrices off the diagonal."""
    above = np.triu_indices(len(K), 1)
    return _cosine(*(M[above] - M[above].mean() for M in (K, L)))


def _cosine(a: Floats, b: Floats) -> float:
    return float(np.vdot(a, b) / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-300))


MEASURES: dict[str, Callable[[Floats, Floats], float]] = {
    "alignment": alignment,
    "correlation": correlation,
}


def kernels_of(h: Floats) -> Floats:
    """Return the kernel matrices of embeddings, (K, n, n)."""
    return np.asarray(h @ h.transpose(0, 2, 1))


def compared(kernels: Floats, closed: Floats, classes: Floats) -> dict[str, float]:
    """Return how alike kernels of networks are to two other ones and to each other."""
    pairs = list(itertools.combinations(kernels, 2))
    found = {}
    for name, measure in MEASURES.items():
        found[f"{name} with closed form"] = np.mean([measure(K, closed) for K in kernels])
        found[f"{name} with classes"] = np.mean([measure(K, classes) for K in kernels])
        found[f"{name} of the mean kernel"] = measure(kernels.mean(axis=0), closed)
        found[f"{name} with each other"] = np.mean([measure(K, L) for K, L in pairs])
    return {name: float(value) for name, value in found.items()}


def scores(p: Floats, y: NDArray[np.int64], share: Floats) -> dict[str, float]:
    """Return the log loss of posteriors, and the balanced accuracy of what is beyond its share."""
    return {
        "log loss": float(log_loss(y, p, labels=np.arange(len(share)))),
        "balanced accuracy": float(balanced_accuracy_score(y, (p / share).argmax(axis=1))),
    }


def embeddings_at(
    kind: str, x: Sequence[Tensor], y: NDArray[np.int64], epochs: Sequence[int]
) -> Iterator[tuple[int, list[Floats]]]:
    """Train networks side by side; yield epochs with the embeddings of all parts, (K, n, q)."""
    C, n = int(y.max()) + 1, len(y)
    draws = [np.random.default_rng(seed) for seed in range(MEMBERS)]
    sizes = x[0].shape[1], 64, 64, C
    network = LockstepMLP(sizes, draws, normalize=kind == SPHERE)
    network.start_at_unit_norm(x[0].expand(MEMBERS, -1, -1))
    loss = CoCoLoss(C, normalize=False, norm_weight=KINDS[kind])
    optimiser = FlatAdamW(network.parameters, WEIGHT_DECAY)
    labels = torch.from_numpy(y)
    for epoch in range(max(epochs) + 1):
        if epoch:
            order = torch.from_numpy(np.stack([draw.permutation(n) for draw in draws]))
            for rows in order.split(BATCH, dim=1):
                h = network.forward(x[0][rows], training=True)
                network.backward(loss.evaluate(Batch(h, labels[rows], None))[1])
                optimiser.step(network.gradients, RATE)
        if epoch in epochs:
            parts = [part.expand(MEMBERS, -1, -1) for part in x]
            yield epoch, [network.forward(part).double().numpy() for part in parts]


def closed_form(x: Sequence[Tensor], y: NDArray[np.int64]) -> Floats:
    """Return the embedding of the last part by the closed form that the first is given to."""
    counts = np.bincount(y).astype(float)
    points = target_points("simplex", len(counts))
    # Classes would weigh alike: weights by class shares make rows do so.
    lesson = Lesson(x[0].numpy(), y, np.ones(len(y)), counts, points, counts / len(y))
    return fit_closed_form(lesson, 0).machine(x[-1].numpy())


def run(
    source: FolderSource, name: str, kinds: Sequence[str], epochs: Sequence[int] = EPOCHS
) -> Iterator[dict[str, Any]]:
    """Yield a line for the closed form, and for each loss a line per epoch."""
    table, classes, (train, choose, test) = split_rows(source, name, 0)
    x, y = prepared(table, classes, [np.concatenate([train, choose]), test])
    C, share = int(y[0].max()) + 1, np.bincount(y[0]) / len(y[0])
    f = closed_form(x, y[0])
    points = target_points("simplex", C)
    p = by_formula(f @ points.T, len(y[0]))
    closed, true = f @ f.T, points[y[1]] @ points[y[1]].T
    line = {"table": name, "rows": len(y[0]), "classes": C}
    norm = float(np.trace(closed)) / len(f)
    with_classes = {f"{of} with classes": measure(closed, true) for of, measure in MEASURES.items()}
    of_closed = {"trained": CLOSED, "squared norm": norm}
    yield line | of_closed | with_classes | scores(p, y[1], share)
    for kind in kinds:
        for epoch, h in embeddings_at(kind, x, y[0], epochs):
            kernels = kernels_of(h[1])
            read = [turned(each, y[0], C)[1] for each in zip(*h, strict=True)]
            p = np.stack([by_formula(each, len(y[0])) for each in read])
            each = [scores(of_one, y[1], share) for of_one in p]
            together = scores(p.mean(axis=0), y[1], share)
            norm = float(np.trace(kernels.mean(axis=0))) / len(y[1])
            yield (
                line
                | {"trained": kind, "epoch": epoch, "squared norm": norm}
                | compared(kernels, closed, true)
                | {measure: float(np.mean([of[measure] for of in each])) for measure in together}
                | {f"{measure} of the mean": value for measure, value in together.items()}
            )


def main() -> None:
    """Compute what is missing in results/two_solvers.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="folders of tables")
    sources = [FolderSource(folder) for folder in parser.parse_args().data]
    where = {name: source for source in sources for name in source.names()}
    torch.set_num_threads(1)
    lines = STORE.read_text(encoding="utf-8").splitlines() if STORE.exists() else []
    done = {(line["table"], line["trained"]) for line in map(json.loads, lines)}
    for name in TABLES:
        kinds = [kind for kind in KINDS if (name, kind) not in done]
        if not kinds:
            continue
        made = list(run(where[name], name, kinds))
        with STORE.open("a", encoding="utf-8") as file:
            for line in made:
                if (name, line["trained"]) not in done:
                    file.write(json.dumps(line) + "\n")
        print(f"{name}: {', '.join(kinds)}", flush=True)


if __name__ == "__main__":
    main()
