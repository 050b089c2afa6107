"""Early convergence: balanced accuracy after so many terms of the loss.

The paper counts the terms that a loss sums: m for a batch of m rows with cross-entropy or dot
regression, m^2 with CoCo. At the same number of terms CoCo has taken an eighth of the steps, and
seen an eighth of the rows, at batches of eight.

The paper lets CoCo classify by Gaussians that are fitted to all training rows, and the others by
what they have learnt so far: head "paper". Beside it all losses have the same Gaussians, head
"gaussian", and all have the same nearest class means, head "centroid".
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from cocoloss.benchmark.accuracy import Steps, outer_folds
from cocoloss.benchmark.folds import Fold
from cocoloss.benchmark.keys import Result, TableInfo, Task, Unit, seed_of
from cocoloss.benchmark.measures import balanced_accuracy
from cocoloss.benchmark.options import check_counts, check_rate, check_whole, chosen_options
from cocoloss.columns import TablePreprocessor
from cocoloss.estimators.objective import BALANCED_FROM
from cocoloss.exceptions import CoCoError
from cocoloss.heads import CentroidHead, GaussianHead

if TYPE_CHECKING:
    from cocoloss.benchmark.spec import Spec
    from cocoloss.estimators.first_steps import Beginner

PAIRWISE = {"coco": True, "dr": False, "ce": False}  # name -> whether the loss sums over pairs
USES_FOLDS = ("outer",)
DEFAULTS: dict[str, Any] = {
    "n_terms": [64, 128, 256, 512, 1024],
    "batch_size": 8,
    "learning_rate": 1e-4,
}


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that are unknown or out of range.

    Raises
    ------
    CoCoError
        If there is one; the message names it.

    Examples
    --------
    >>> check_options({"n_terms": [64, 1024]})
    """
    chosen = chosen_options(options, DEFAULTS)
    check_counts(chosen, "n_terms", minimum=0)
    check_whole(chosen, ["batch_size"])
    check_rate(chosen, "learning_rate", positive=True)


def hidden_units(n_features: int, n_classes: int) -> tuple[int, int]:
    """Return u_1 and u_2, the units of the hidden layer and of the embedding, as printed.

    Examples
    --------
    >>> hidden_units(4, 3), hidden_units(1776, 2)
    ((40, 8), (1024, 8))
    """
    u1 = min(max(10 * n_features, 4 * n_classes), 1024)
    u2 = max(min(3 * n_features, 2 * n_classes), 8)
    return u1, u2


def steps_within(n_terms: int, batch_size: int, *, pairwise: bool) -> int:
    """Return how many steps a loss takes until it has summed so many terms.

    Examples
    --------
    >>> steps_within(1024, 8, pairwise=True), steps_within(1024, 8, pairwise=False)
    (16, 128)
    """
    return n_terms // (batch_size**2 if pairwise else batch_size)


def plan(spec: "Spec", infos: Sequence[TableInfo]) -> list[Unit]:
    """List every loss on every table: one task each, all folds in lockstep."""
    with spec.at("models.names"):
        for name in spec.models.names:
            if name not in PAIRWISE:
                raise CoCoError(
                    f"the models of a convergence experiment are {', '.join(PAIRWISE)}, not "
                    f"{name!r}"
                )
    return [
        Unit.of(spec, info, name, tasks=1, seconds=_seconds(spec, info, name))
        for info in infos
        for name in spec.models.names
    ]


def drive(unit: Unit, spec: "Spec", parallel: int = 1) -> Steps:  # noqa: ARG001 - one task
    """Yield the one task of a unit."""
    yield [unit.task("curve", "all")]


class _Prepared(NamedTuple):
    """The training part and the test part of a fold as a network sees them."""

    inputs: NDArray[np.float32]
    labels: NDArray[np.int64]  # positions in classes
    classes: NDArray[Any]
    test_inputs: NDArray[np.float32]
    test_y: NDArray[Any]


def run(task: Task, table: Any, spec: "Spec") -> Result:
    """Train all folds for the first steps; return a row per fold, number of terms and head."""
    from cocoloss.estimators.first_steps import first_steps  # noqa: PLC0415 - torch, to train

    options = chosen_options(spec.options, DEFAULTS)
    X, y = table.X, np.asarray(table.y)
    pairwise, batch_size = PAIRWISE[task.model], options["batch_size"]
    counts = sorted(set(options["n_terms"]))
    steps = [steps_within(n, batch_size, pairwise=pairwise) for n in counts]
    folds = [_prepare(X, y, fold) for fold in outer_folds(task.dataset, y, spec)]
    rows: list[dict[str, Any]] = []
    for together in _alike(folds):
        parts = [folds[k] for k in together]
        # NOTE[PAPER]: d is the width of what the network sees, so after categories are encoded.
        # Optimiser and start of the weights are not said: AdamW without decay, He's weights.
        d, n_classes = parts[0].inputs.shape[1], len(parts[0].classes)
        trained = first_steps(
            task.model,
            [part.inputs for part in parts],
            [part.labels for part in parts],
            steps,
            layer_sizes=(d, *hidden_units(d, n_classes)),
            n_classes=n_classes,
            weights=_weights(task.model, parts),
            batch_size=batch_size,
            learning_rate=options["learning_rate"],
            # The same start and the same rows for every loss: the loss's name has no part in it.
            seeds=[seed_of(task.dataset, "start", k, spec.folds.seed) for k in together],
        )
        for k, part, beginners in zip(together, parts, trained, strict=True):
            for n_terms, beginner in zip(counts, beginners, strict=True):
                for head, score in _scores(beginner, part).items():
                    rows.append(
                        {"fold": k, "n_terms": n_terms, "head": head, "balanced_accuracy": score}
                    )
    rows.sort(key=lambda row: (row["fold"], row["n_terms"], row["head"]))
    return Result(_summary(rows), rows, {}, {"steps": steps, "n_terms": counts})


def _prepare(X: Any, y: NDArray[Any], fold: Fold) -> _Prepared:
    preprocessor = TablePreprocessor().fit(_safe_indexing(X, fold.train))
    classes, labels = np.unique(y[fold.train], return_inverse=True)
    return _Prepared(
        preprocessor.transform(_safe_indexing(X, fold.train)),
        labels.astype(np.int64),
        classes,
        preprocessor.transform(_safe_indexing(X, fold.test)),
        y[fold.test],
    )


def _alike(folds: Sequence[_Prepared]) -> list[list[int]]:
    """Group folds whose networks have one shape."""
    groups: dict[tuple[int, int], list[int]] = {}
    for k, fold in enumerate(folds):
        groups.setdefault((fold.inputs.shape[1], len(fold.classes)), []).append(k)
    return list(groups.values())


def _weights(model: str, parts: Sequence[_Prepared]) -> list[NDArray[np.float32]] | None:
    """Return weights of rows: pi^-1/2 where CoCo is balanced, as in the other experiments."""
    # NOTE[PAPER]: whether "CoCo" is here too the balanced loss from a class ratio of 3 on is not
    # said; the rule is taken from the description of the model.
    if model != "coco":
        return None
    shares = [np.bincount(part.labels) / len(part.labels) for part in parts]
    if all(share.max() / share.min() < BALANCED_FROM for share in shares):
        return None
    weights = [
        share**-0.5 if share.max() / share.min() >= BALANCED_FROM else np.ones(len(share))
        for share in shares
    ]
    of_rows = [w[part.labels] for w, part in zip(weights, parts, strict=True)]
    return [(w / w.mean()).astype(np.float32) for w in of_rows]


def _scores(beginner: "Beginner", part: _Prepared) -> dict[str, float]:
    """Return the balanced accuracy on the test part by head."""
    h = beginner.network.embed(part.inputs)[0]
    test = beginner.network.embed(part.test_inputs)[0]

    def score(positions: NDArray[Any]) -> float:
        return balanced_accuracy(part.test_y, part.classes[positions])

    # NOTE[PAPER]: at so few steps CoCo's result is mostly that of Gaussians on features that are
    # hardly trained, while the others use classifiers that are hardly trained. Hence the two
    # heads beside the paper's, which are the same for all.
    gaussian = score(GaussianHead(priors="empirical").fit(h, part.labels).predict(test))
    centroid = score(CentroidHead().fit(h, part.labels).predict(test))
    own = gaussian
    if beginner.readout is not None:
        own = score((test @ beginner.readout.T).argmax(axis=1))
    return {"paper": own, "gaussian": gaussian, "centroid": centroid}


def _summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the mean over folds for each head and number of terms."""
    scores: dict[str, list[float]] = {}
    for row in rows:
        name = f"balanced_accuracy_{row['head']}_{row['n_terms']}"
        scores.setdefault(name, []).append(row["balanced_accuracy"])
    return {name: float(np.mean(values)) for name, values in scores.items()}


def _seconds(spec: "Spec", info: TableInfo, name: str) -> float:
    """Return roughly how long a loss takes: steps of all folds, and embeddings of the rows."""
    options = chosen_options(spec.options, DEFAULTS)
    u1, u2 = hidden_units(info.n_columns, info.n_classes)
    weights = info.n_columns * u1 + u1 * u2
    most = max(options["n_terms"])
    steps = steps_within(most, options["batch_size"], pairwise=PAIRWISE[name])
    looks = len(options["n_terms"])
    training = steps * (2e-4 + 3e-9 * weights)
    looking = looks * info.n_rows * (1e-10 * weights + 2e-10 * info.n_classes * u2 * u2)
    return spec.folds.outer * (0.1 + training + looking)
