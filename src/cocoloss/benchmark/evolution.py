"""The evolution of an embedding: where the rows lie after some epochs.

The paper's figure: German credit in two dimensions, one hidden layer of 1024 units, after 50, 150,
250 and 500 epochs.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.benchmark.accuracy import Steps
from cocoloss.benchmark.keys import Result, TableInfo, Task, Unit
from cocoloss.benchmark.measures import balanced_accuracy
from cocoloss.benchmark.models import find_model
from cocoloss.benchmark.options import check_counts, check_rate, check_whole, chosen_options
from cocoloss.estimators.model import Ensemble
from cocoloss.exceptions import CoCoError
from cocoloss.heads import GaussianHead
from cocoloss.metrics import dispersity

if TYPE_CHECKING:
    from cocoloss.benchmark.spec import Spec
    from cocoloss.training import Epoch

MODELS = ("coco", "coco-plain", "coco-balanced", "dr")
USES_FOLDS: tuple[str, ...] = ()  # all rows are learnt
# NOTE[PAPER]: batch size, learning rate and weight decay of the figure are not said; with these
# the classes have parted at 500 epochs about as far as there.
DEFAULTS: dict[str, Any] = {
    "epochs": [50, 150, 250, 500],
    "hidden_units": 1024,
    "embedding_dim": 2,
    "batch_size": 128,
    "learning_rate": 1e-4,
    "weight_decay": 0.0,
    "max_points": 2000,
}
DIGITS = 4  # of the coordinates that are kept


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that are unknown or out of range.

    Raises
    ------
    CoCoError
        If there is one; the message names it.

    Examples
    --------
    >>> check_options({"epochs": [5, 50], "hidden_units": 64})
    """
    chosen = chosen_options(options, DEFAULTS)
    check_counts(chosen, "epochs", minimum=1)
    check_whole(chosen, ["hidden_units", "embedding_dim", "batch_size", "max_points"])
    for name in ("learning_rate", "weight_decay"):
        check_rate(chosen, name, positive=False)


def plan(spec: "Spec", infos: Sequence[TableInfo]) -> list[Unit]:
    """List every model on every table: one task each."""
    with spec.at("models.names"):
        for name in spec.models.names:
            if name not in MODELS:
                raise CoCoError(
                    f"the models of an evolution are {', '.join(MODELS)}, whose embedding is what "
                    f"is learnt, not {name!r}"
                )
    options = chosen_options(spec.options, DEFAULTS)
    return [
        Unit.of(spec, info, name, tasks=1, seconds=_seconds(options, info))
        for info in infos
        for name in spec.models.names
    ]


def drive(unit: Unit, spec: "Spec", parallel: int = 1) -> Steps:  # noqa: ARG001 - one task
    """Yield the one task of a unit."""
    yield [unit.task("run", "all")]


def run(task: Task, table: Any, spec: "Spec") -> Result:
    """Train on all rows, and return where they lie after each of the epochs.

    NOTE[PAPER]: which rows the figure shows is not said; all, and all of them are trained on.

    Returns
    -------
    Result
        ``rows``: for each epoch the cosine between class centres (the largest, of more than two
        classes), their smallest and largest norm, dispersity, and the balanced accuracy of
        Gaussians on the same rows. ``extra``: "epochs", "classes", "labels" (n,), "embeddings"
        (epochs, n, q) and "centres" (epochs, C, q).
    """
    options = chosen_options(spec.options, DEFAULTS)
    X, y = table.X, np.asarray(table.y)
    epochs = sorted(set(options["epochs"]))
    kept: dict[int, NDArray[np.float32]] = {}

    def keep(epoch: "Epoch") -> None:
        if epoch.number in epochs:
            kept[epoch.number] = epoch.network.parameters.detach().cpu().numpy().copy()

    params: dict[str, Any] = {
        "hidden_layer_sizes": (options["hidden_units"],),
        "embedding_dim": options["embedding_dim"],
        "batch_size": options["batch_size"],
        "learning_rate_init": options["learning_rate"],
        "weight_decay": options["weight_decay"],
        "max_iter": epochs[-1],
        "callbacks": [keep],
    }
    classes, labels = np.unique(y, return_inverse=True)
    if task.model != "dr" and options["embedding_dim"] < len(classes) - 1:
        params["similarity"] = "packing"  # there is no room for the simplex
    kind = find_model(task.model)
    classifier = kind.make(X.shape[1], len(classes), params, task.seed).fit(X, y)
    inputs = np.asarray(classifier.preprocessor_.transform(X), dtype=np.float32)
    shown = _spread_out(len(y), options["max_points"])
    rows, embeddings, centres = [], [], []
    for epoch in epochs:
        network = Ensemble(classifier.layer_sizes_, kept[epoch], classifier.output)
        h = network.embed(inputs)[0]
        means = np.stack([h[labels == c].mean(axis=0) for c in range(len(classes))])
        rows.append({"fold": 0, "epoch": epoch, **_geometry(h, labels, means)})
        embeddings.append(np.round(h[shown], DIGITS).tolist())
        centres.append(np.round(means, DIGITS).tolist())
    extra = {
        "epochs": epochs,
        "classes": [str(c) for c in classes],
        "labels": labels[shown].tolist(),
        "embeddings": embeddings,
        "centres": centres,
    }
    last = {name: value for name, value in rows[-1].items() if name not in ("fold", "epoch")}
    return Result(last, rows, {k: v for k, v in options.items() if k != "epochs"}, extra)


def _geometry(
    h: NDArray[np.float64], labels: NDArray[np.int64], means: NDArray[np.float64]
) -> dict[str, float]:
    norms = np.linalg.norm(means, axis=1)
    cosines = (means @ means.T) / np.outer(norms, norms)
    head = GaussianHead(priors="empirical").fit(h, labels)
    return {
        "cosine": float(cosines[np.triu_indices(len(means), 1)].max()),
        "smallest_norm": float(norms.min()),
        "largest_norm": float(norms.max()),
        "dispersity": float(dispersity(h, labels)),
        "train_balanced_accuracy": balanced_accuracy(labels, head.predict(h)),
    }


def _spread_out(n: int, most: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


def _seconds(options: Mapping[str, Any], info: TableInfo) -> float:
    steps = max(options["epochs"]) * max(1, info.n_rows // options["batch_size"])
    weights = options["hidden_units"] * (info.n_columns + options["embedding_dim"])
    return float(1 + steps * (2e-4 + 1e-9 * weights * options["batch_size"]))
