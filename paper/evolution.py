"""The evolution of an embedding: where the rows lie after some epochs.

The paper's figure: German credit in two dimensions, one hidden layer of 1024 units, after 50, 150,
250 and 500 epochs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import printed
from numpy.typing import NDArray
from option_checks import check_counts, check_rate, check_whole

from cocoloss.benchmark.accuracy import Steps
from cocoloss.benchmark.analysis import Findings
from cocoloss.benchmark.models import find_model
from cocoloss.benchmark.spec import chosen_options
from cocoloss.benchmark.tasks import Result, TableInfo, Task, Unit
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.model import Ensemble
from cocoloss.heads import GaussianHead
from cocoloss.metrics import balanced_accuracy, dispersity
from cocoloss.report.document import (
    Block,
    Cell,
    Grid,
    Heading,
    Picture,
    Text,
    brief,
    fixed,
    slug,
)
from cocoloss.report.figures import COLOURS, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cocoloss.benchmark.spec import Spec
    from cocoloss.training import Epoch

ABOUT = "The embedding in the plane, epoch by epoch."
MEASURES = ("cosine", "smallest_norm", "largest_norm", "dispersity", "train_balanced_accuracy")
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
    """Refuse options that are unknown or out of range."""
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
    classifier = find_model(task.model).make(X.shape[1], params, task.seed)
    if task.model != "dr" and options["embedding_dim"] < len(classes) - 1:
        # There is no room for the simplex.
        classifier.objective = replace(classifier.objective, similarity="packing")
    classifier.fit(X, y)
    inputs = np.asarray(classifier.preprocessor_.transform(X), dtype=np.float32)
    shown = _spread_out(len(y), options["max_points"])
    rows, embeddings, centres = [], [], []
    for epoch in epochs:
        network = Ensemble(classifier.layer_sizes_, kept[epoch], classifier.output)
        h = network.outputs(inputs)[0]
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


@dataclass(frozen=True, eq=False)
class Evolution:
    """One model on one dataset.

    Attributes
    ----------
    dataset, model : str
    epochs : tuple of int
    classes : tuple of str
    labels : ndarray of shape (n,)
        Places in ``classes``.
    embeddings : ndarray of shape (n_epochs, n, q)
    centres : ndarray of shape (n_epochs, C, q)
        Of all rows, not only of those that are kept to be shown.
    measures : dict of str to ndarray of shape (n_epochs,)
        "cosine" between class centres (the largest, of more than two classes), their
        "smallest_norm" and "largest_norm", "dispersity", "train_balanced_accuracy".
    """

    dataset: str
    model: str
    epochs: tuple[int, ...]
    classes: tuple[str, ...]
    labels: NDArray[np.int64]
    embeddings: NDArray[np.float64]
    centres: NDArray[np.float64]
    measures: Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class EvolutionAnalysis:
    """The evolution of every model on every dataset."""

    runs: tuple[Evolution, ...]


def analyse(findings: Findings, _missing: str = "drop_datasets") -> EvolutionAnalysis:
    """Put together what each run kept, and what was measured at its epochs."""
    rows = findings.rows
    runs = []
    for (dataset, model), extra in sorted(findings.extras.items()):
        epochs = tuple(int(e) for e in extra["epochs"])
        own = rows[(rows["dataset"] == dataset) & (rows["model"] == model)]
        own = own.set_index("epoch").reindex(index=epochs, columns=list(MEASURES))
        runs.append(
            Evolution(
                dataset,
                model,
                epochs,
                tuple(str(c) for c in extra["classes"]),
                np.asarray(extra["labels"], dtype=np.int64),
                np.asarray(extra["embeddings"], dtype=np.float64),
                np.asarray(extra["centres"], dtype=np.float64),
                {name: own[name].to_numpy(dtype=np.float64) for name in MEASURES},
            )
        )
    return EvolutionAnalysis(tuple(runs))


def blocks(_findings: Findings, analysis: EvolutionAnalysis, prefix: str) -> list[Block]:
    """Return a row of panels and a table for each model and dataset."""
    if not analysis.runs:
        return [Text("There is no result yet.", "warning")]
    found: list[Block] = []
    for run in analysis.runs:
        found.append(Heading(f"{run.model} on {run.dataset}"))
        if run.embeddings.ndim == 3 and run.embeddings.shape[2] == 2:
            found.append(panels(run, prefix))
        else:
            width = run.embeddings.shape[-1]
            found.append(
                Text(f"The embedding has {width} dimensions; panels are drawn for two.", "warning")
            )
        found.append(measures_grid(run))
    return found


def panels(run: Evolution, prefix: str) -> Picture:
    """Return the embedding after each of the epochs, all in one scale."""
    which = "the class centres" if len(run.classes) == 2 else "the closest two class centres"
    cosines = ", ".join(
        f"{cosine:.3f} after {epoch} epochs"
        for epoch, cosine in zip(run.epochs, run.measures["cosine"], strict=True)
    )
    return Picture(
        f"{prefix}-{slug(run.dataset)}-{slug(run.model)}",
        "The embedding",
        lambda: _draw_panels(run),
        caption=f"{len(run.labels):,} rows, the unit circle, and the class centres; cos is that of "
        f"the angle between {which}.",
        label=f"The embedding in the plane; cosine of class centres {cosines}",
    )


def _draw_panels(run: Evolution) -> "Figure":
    figure = new_figure((2.5 * len(run.epochs), 2.8))
    extent, angles = panel_extent(run), np.linspace(0, 2 * np.pi, 200)
    colours = [COLOURS[c % len(COLOURS)] for c in range(len(run.classes))]
    for number, epoch in enumerate(run.epochs):
        axes = figure.add_subplot(1, len(run.epochs), number + 1)
        axes.plot(np.cos(angles), np.sin(angles), color="0.75", lw=0.8)
        for c, colour in enumerate(colours):
            own = run.embeddings[number][run.labels == c]
            # As pixels also in an SVG: thousands of dots would make it large.
            (dots,) = axes.plot(own[:, 0], own[:, 1], ".", ms=3, color=colour, alpha=0.5)
            dots.set_rasterized(True)
        for c, (x, y) in enumerate(run.centres[number]):
            axes.plot([0, x], [0, y], color="black", lw=0.8)
            axes.plot(x, y, "o", ms=7, mec="white", color=colours[c], gid=f"centre-{number}-{c}")
        axes.set(xlim=(-extent, extent), ylim=(-extent, extent), aspect="equal")
        axes.set_title(f"epoch {epoch}, cos = {run.measures['cosine'][number]:.3f}", fontsize=9)
        axes.tick_params(labelsize=7)
    return figure


def panel_extent(run: Evolution) -> float:
    """Return half the width of the panels: nearly all rows, and the unit circle."""
    sizes = np.abs(run.embeddings[np.isfinite(run.embeddings)])
    widest = float(np.quantile(sizes, 0.998)) if sizes.size else 1.0
    return 1.08 * max(1.0, widest)


def measures_grid(run: Evolution) -> Grid:
    """Return what was measured after each of the epochs."""
    theirs = printed.EVOLUTION
    beside = theirs.epoch if run.dataset == theirs.dataset else None
    rows = []
    for number, epoch in enumerate(run.epochs):
        values = {name: float(v[number]) for name, v in run.measures.items()}
        rows.append(
            (
                Cell(f"epoch {epoch}", float(epoch)),
                fixed(values["cosine"], 3),
                *((Cell(f"{theirs.cosine:.3f}" if epoch == beside else ""),) if beside else ()),
                fixed(values["smallest_norm"], 3),
                fixed(values["largest_norm"], 3),
                brief(values["dispersity"]),
                fixed(values["train_balanced_accuracy"], 4),
            )
        )
    columns = ["", "cosine of centres", "smallest norm", "largest norm", "dispersity"]
    columns.append("balanced accuracy, training")
    if beside:
        columns.insert(2, "printed cosine")
    return Grid(
        "The class centres",
        tuple(columns),
        tuple(rows),
        caption=f"Printed: {theirs.place}." if beside else "",
    )
