"""The posterior read off an embedding by its formula, beside calibrated heads.

    python bench/posteriors.py --data FOLDER [FOLDER ...]      (a quarter of an hour; resumes)

The pair loss has the conditional mean m of the simplex's vertices v as its minimiser, but for a
rotation, and p_c = ((C - 1) <m, v_c> + 1) / C (docs/theory.md, section 1). Small networks are
trained on twenty tables, cut to 2,000 rows: with ``CoCoLoss(normalize=False)`` at norm weights 0,
0.1 and 1 (the paper's), with the loss as it comes (on the sphere), and with cross-entropy beside
them. Each has C outputs, which is one to spare, or C + 8. The closed form, which needs no rotation,
and the networks of ``CoCoClassifier`` see the same rows.

The rotation is an orthogonal Procrustes fit of the embeddings of training rows to the vertices of
their classes; what is read is clipped to at least one over the number of training rows, and scaled
to sum to one. Beside it stand two heads under empirical priors: Gaussians, fitted to the embeddings
of the same rows, and, at C outputs, the matrix of ``MatrixHead``, fitted to rows that the network
has not seen.
64 % of the rows are trained on, 16 % choose the best of 60 epochs, for each way of reading by its
own log loss, and 20 % are scored. (The matrix is fitted to those 16 %, and takes the epoch at
which one temperature does best.) What is fitted by ``CoCoClassifier`` learns from 80 %, and leaves
or holds out rows by itself.

The first ten tables were chosen by hand. The ten others are of OpenML-CC18 and "choosing", with at
most 2,000 rows and 100 columns, at most 20 classes and at least 20 rows of each: five of the tables
with two classes and five of those with more, at evenly spaced places by number of rows.

Lines of JSON are appended to results/posteriors.jsonl: one per table, split, network and way; one
with the rows that are read as about .8; and those with the bins of reliability curves. Lines that
are there are not written again, and if they had to be computed again, it is said how far they are
apart (another processor rounds otherwise). ``python results/page.py`` makes
docs/results/posteriors.md of them.

The folders hold ``<name>.csv.gz`` files (class column ``target``) and ``schema.json``.
"""

import argparse
import itertools
import json
from collections.abc import Collection, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from cocoloss import CoCoClassifier
from cocoloss.columns import TablePreprocessor
from cocoloss.geometry import simplex_frame, target_points
from cocoloss.heads import GaussianHead
from cocoloss.heads.readout import matrix_readout
from cocoloss.losses import CoCoLoss, CrossEntropyLoss
from cocoloss.recording.measure import reliability_curve
from cocoloss.tables import FolderSource, Table
from timing import RESULTS

TABLES = (
    *("balance-scale", "blood-transfusion-service-center", "cmc", "credit-g", "diabetes"),
    *("heart-c", "mfeat-morphological", "phoneme", "vehicle", "waveform-5000"),
    *("lymph", "vote", "wdbc", "qsar-biodeg", "pc3"),
    *("tae", "eucalyptus", "vowel", "car", "mfeat-zernike"),
)
MOST_ROWS, SPLITS, EPOCHS, BATCH = 2000, 2, 60, 64
WEIGHTS = {"norm weight 0": 0.0, "norm weight 0.1": 0.1, "norm weight 1 (paper)": 1.0}
SPHERE, SOFTMAX = "on the sphere", "cross-entropy"
SPARE = (0, 8)  # outputs beyond C
FORMULA, GAUSSIANS, MATRIX = "formula", "gaussian head", "matrix head"
CLOSED, ALIKE = "closed form", "closed form, rows alike"
NETWORKS = "CoCoClassifier, solver network"
SURE = (0.75, 0.85)  # of a class in two, as norm weight 0 reads it
SHARPNESSES = np.geomspace(1, 60, 12)  # inverse temperatures, to choose an epoch by
# Whose reliability curves are kept, by the formula and by the matrix; networks at q = C.
CURVES = ("norm weight 0", "norm weight 1 (paper)", CLOSED)
STORE = RESULTS / "posteriors.jsonl"
KEY = ("table", "split", "spare", "trained", "read by")

Floats = NDArray[np.float64]


def split_rows(
    source: FolderSource, name: str, seed: int
) -> tuple[Table, NDArray[np.int64], list[NDArray[np.intp]]]:
    """Return a table, its classes, and the rows to train on, to choose by and to score."""
    table = source.load(name)
    y = np.unique(table.y.to_numpy(str), return_inverse=True)[1]
    rows = np.arange(len(y))
    if len(y) > MOST_ROWS:
        rows = train_test_split(rows, train_size=MOST_ROWS, stratify=y, random_state=0)[0]
    seen, test = train_test_split(rows, test_size=0.2, stratify=y[rows], random_state=seed)
    train, choose = train_test_split(seen, test_size=0.2, stratify=y[seen], random_state=seed)
    return table, y, [train, choose, test]


def prepared(
    table: Table, y: NDArray[np.int64], parts: Sequence[NDArray[np.intp]]
) -> tuple[list[Tensor], list[NDArray[np.int64]]]:
    """Return inputs and classes of some parts; the preprocessing is learnt from the first."""
    encoder = TablePreprocessor().fit(table.X.iloc[parts[0]], y[parts[0]])
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


def turned(h: Sequence[Floats], y: NDArray[np.int64], n_classes: int) -> list[Floats]:
    """Return <h, v> of all parts, turned to the vertices; ``y`` are the classes of the first."""
    vertices = simplex_frame(n_classes, h[0].shape[1], random_state=0)
    left, _, right = np.linalg.svd(h[0].T @ vertices[y])
    return [part @ (left @ right) @ vertices.T for part in h]


def by_formula(scores: Floats, n_rows: int) -> Floats:
    """Return the posterior that <h, v> says; ``n_rows`` were trained on."""
    C = scores.shape[1]
    clipped = np.clip(((C - 1) * scores + 1) / C, 1 / n_rows, 1)
    return np.asarray(clipped / clipped.sum(axis=1, keepdims=True))


def under_shares(p: Floats, share: Floats) -> Floats:
    """Return posteriors under uniform priors as they are under class shares."""
    joint = p * share
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def by_matrix(scores: Sequence[Floats], y: Sequence[NDArray[np.int64]], share: Floats) -> Floats:
    """Return the posterior of the last part by the matrix that the part before it calibrates."""
    seen, C = y[-2], len(share)
    head = matrix_readout(scores[-2], seen, np.ones(len(seen)), np.eye(C), share)
    return np.asarray(head.predict_proba(scores[-1]))


def loss_at_best_temperature(scores: Floats, y: NDArray[np.int64], share: Floats) -> float:
    """Return the log loss of a softmax of <h, v>, as sharp as is best."""
    rows = np.arange(len(y))
    return min(
        -float(log_softmax(sharp * scores + np.log(share), axis=1)[rows, y].mean())
        for sharp in SHARPNESSES
    )


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


def embedded(kind: str, outputs: list[Tensor]) -> list[Floats]:
    """Return the embeddings that a network's outputs are."""
    if kind == SPHERE:
        outputs = [nn.functional.normalize(part, dim=1) for part in outputs]
    return [part.double().numpy() for part in outputs]


def ways_of(kind: str, spare: int) -> tuple[str, ...]:
    """Return the ways in which a network is read; the matrix is for networks at q = C."""
    if kind == SOFTMAX:
        return ("softmax",)
    return (FORMULA, GAUSSIANS) if spare else (FORMULA, GAUSSIANS, MATRIX)


def read_best(
    kind: str,
    epochs: Iterator[list[Tensor]],
    y: list[NDArray[np.int64]],
    n_classes: int,
) -> dict[str, Floats]:
    """Return the posteriors of the last part, in each way from the epoch that suits it best."""
    share = np.bincount(y[0]) / len(y[0])
    best: dict[str, tuple[float, Floats]] = {}

    def offer(way: str, chosen_by: float, p: Any) -> None:
        if way not in best or chosen_by < best[way][0]:
            best[way] = chosen_by, p

    matrix: tuple[float, list[Floats]] = np.inf, []
    for outputs in epochs:
        if kind == SOFTMAX:
            read = {"softmax": [torch.softmax(part.double(), 1).numpy() for part in outputs]}
        else:
            h = embedded(kind, outputs)
            scores = turned(h, y[0], n_classes)
            formula = [by_formula(part, len(y[0])) for part in scores]
            read = {FORMULA: formula, GAUSSIANS: by_gaussians(h, y[0])}
            loss = loss_at_best_temperature(scores[1], y[1], share)
            matrix = min(matrix, (loss, scores), key=itemgetter(0))
        for way, p in read.items():
            offer(way, scored(p[1], y[1])["log loss"], p[2])
    found = {way: p for way, (_, p) in best.items()}
    return found | ({MATRIX: by_matrix(matrix[1], y, share)} if matrix[1] else {})


def read_estimators(
    table: Table, y: NDArray[np.int64], parts: list[NDArray[np.intp]], seed: int
) -> Iterator[tuple[str, str, Floats]]:
    """Yield what is fitted to all rows but those to score, how it is read, and the posterior."""
    seen, test = np.concatenate(parts[:2]), parts[2]
    X, X_test = table.X.iloc[seen], table.X.iloc[test]
    counts = np.bincount(y[seen]).astype(float)
    vertices = target_points("simplex", len(counts))
    # Classes weigh alike in the first, so that it has learnt the posterior under uniform priors.
    # Weights by class shares undo that, and are the priors of the second.
    settings: dict[str, dict[str, Any]] = {
        CLOSED: {"priors": "empirical"},
        ALIKE: {"class_weight": dict(enumerate(counts))},
    }
    for kind, arguments in settings.items():
        classifier = CoCoClassifier(solver="kernel", random_state=seed, **arguments)
        classifier.fit(X, y[seen])
        f = classifier.transform(X_test).astype(np.float64)
        p = by_formula(f @ vertices.T, len(seen))
        yield kind, FORMULA, under_shares(p, counts / len(seen)) if kind == CLOSED else p
        yield kind, MATRIX, classifier.predict_proba(X_test)
    networks = CoCoClassifier(solver="network", priors="empirical", random_state=seed)
    yield NETWORKS, MATRIX, networks.fit(X, y[seen]).predict_proba(X_test)


def lines_of(line: dict[str, Any], p: Floats, y: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    """Yield a line with the scores of a posterior, and for some one with its reliability curve."""
    yield line | scored(p, y)
    if line["trained"] in CURVES and line["read by"] != GAUSSIANS and not line.get("spare"):
        curve = reliability_curve(p, y)
        shares = np.column_stack([curve.confidence, curve.accuracy])
        sums = np.nan_to_num(shares * curve.counts[:, None]).round(4)
        bins = np.column_stack([curve.counts, sums]).tolist()  # rows, surety, rows that are right
        yield {name: line[name] for name in KEY if name in line} | {"bins": bins}


def run(
    source: FolderSource, name: str, seed: int, there: Collection[tuple[Any, ...]] = ()
) -> Iterator[dict[str, Any]]:
    """Train networks on one split, and yield a line for each and each way of reading it.

    Those of which all lines are there are left out.
    """
    table, classes, parts = split_rows(source, name, seed)
    x, y = prepared(table, classes, parts)
    C = int(y[0].max()) + 1
    losses: list[tuple[int, str, nn.Module]] = [(0, SOFTMAX, CrossEntropyLoss(C, None))]
    for spare in SPARE:
        losses += [
            (spare, kind, CoCoLoss(C, normalize=False, norm_weight=weight))
            for kind, weight in WEIGHTS.items()
        ]
        losses.append((spare, SPHERE, CoCoLoss(C)))
    formula: dict[int, dict[str, Floats]] = {spare: {} for spare in SPARE}
    about = {"table": name, "split": seed, "classes": C}
    for spare, kind, loss in losses:
        ways = ways_of(kind, spare)
        if {(name, seed, spare, kind, way, False) for way in ways} <= set(there):
            continue
        read = read_best(kind, trained(loss, x, y[0], C + spare, seed), y, C)
        for way in ways:
            line = about | {"spare": spare, "trained": kind, "read by": way}
            yield from lines_of(line, read[way], y[2])
        if FORMULA in read:
            formula[spare][kind] = read[FORMULA]
    for kind, way, p in read_estimators(table, classes, parts, seed):
        yield from lines_of(about | {"trained": kind, "read by": way}, p, y[2])
    for spare, found in formula.items():
        if C == 2 and len(found) == len(WEIGHTS) + 1:
            line = {"table": name, "split": seed, "spare": spare}
            yield line | where_doubtful(found, y[2])


def where_doubtful(read: dict[str, Floats], y: NDArray[np.int64]) -> dict[str, Any]:
    """Return what all read, summed over the rows that norm weight 0 reads as about .8."""
    first = read[next(iter(WEIGHTS))]
    top, sure = first.argmax(axis=1), first.max(axis=1)
    rows = np.flatnonzero((sure >= SURE[0]) & (sure <= SURE[1]))
    sums = {kind: float(p[rows, top[rows]].sum()) for kind, p in read.items()}
    return {"rows": len(rows), "sums": sums | {"right": float(np.sum(y[rows] == top[rows]))}}


def key_of(line: dict[str, Any]) -> tuple[Any, ...]:
    """Return what tells a line from others."""
    return (*(line.get(name) for name in KEY), "bins" in line)


def planned(name: str, seed: int) -> set[tuple[Any, ...]]:
    """Return the keys of all scores of one split."""
    networks = [(spare, kind) for spare in SPARE for kind in (*WEIGHTS, SPHERE)]
    read = [(spare, kind, way) for spare, kind in networks for way in ways_of(kind, spare)]
    read += [(0, SOFTMAX, way) for way in ways_of(SOFTMAX, 0)]
    read += [(None, kind, way) for kind in (CLOSED, ALIKE) for way in (FORMULA, MATRIX)]
    return {(name, seed, *each, False) for each in [*read, (None, NETWORKS, MATRIX)]}


def main() -> None:
    """Compute what is missing in results/posteriors.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="folders of tables")
    sources = [FolderSource(folder) for folder in parser.parse_args().data]
    where = {name: source for source in sources for name in source.names()}
    missing = [name for name in TABLES if name not in where]
    if missing:
        parser.error(f"no folder of --data has {', '.join(missing)}")
    torch.set_num_threads(1)
    lines = STORE.read_text(encoding="utf-8").splitlines() if STORE.exists() else []
    there = {key_of(line): line for line in map(json.loads, lines)}
    for name, seed in itertools.product(TABLES, range(SPLITS)):
        if planned(name, seed) <= set(there):
            continue
        made = list(run(where[name], name, seed, there))
        new = [line for line in made if key_of(line) not in there]
        apart = [
            abs(line["log loss"] - there[key_of(line)]["log loss"])
            for line in made
            if "log loss" in line and key_of(line) in there
        ]
        with STORE.open("a", encoding="utf-8") as file:
            file.write("".join(f"{json.dumps(line)}\n" for line in new))
        said = f", {len(apart)} again, log loss at most {max(apart):.1e} apart" if apart else ""
        print(f"{name}, split {seed}: {len(new)} new lines{said}", flush=True)


if __name__ == "__main__":
    main()
