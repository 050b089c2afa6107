"""Early convergence: balanced accuracy after so many terms of the loss.

The paper counts the terms that a loss sums: m for a batch of m rows with cross-entropy or dot
regression, m^2 with CoCo. At the same number of terms CoCo has taken an eighth of the steps, and
seen an eighth of the rows, at batches of eight.

The paper lets CoCo classify by Gaussians that are fitted to all training rows, and the others by
what they have learnt so far: head "paper". Beside it all losses have the same Gaussians, head
"gaussian", and all have the same nearest class means, head "centroid".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import printed
from numpy.typing import NDArray
from option_checks import check_counts, check_rate, check_whole
from sklearn.utils import _safe_indexing

from cocoloss.benchmark.accuracy import Steps, outer_folds
from cocoloss.benchmark.analysis import PAPER_LOSSES, Findings, NotRanked, Ranking, rank
from cocoloss.benchmark.spec import chosen_options
from cocoloss.benchmark.tasks import Result, TableInfo, Task, Unit, seed_of
from cocoloss.columns import TablePreprocessor
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.objective import BALANCED_FROM
from cocoloss.heads import CentroidHead, GaussianHead
from cocoloss.metrics import balanced_accuracy
from cocoloss.report.bench_rankings import diagram
from cocoloss.report.document import (
    Block,
    Cell,
    Folded,
    Grid,
    Heading,
    Items,
    Picture,
    Text,
    fixed,
)
from cocoloss.report.figures import COLOURS, new_figure, tidy
from cocoloss.tables import Fold

if TYPE_CHECKING:
    from first_steps import Beginner
    from matplotlib.figure import Figure

    from cocoloss.benchmark.spec import Spec

ABOUT = "Balanced accuracy in the first steps of training."
HEADS: Mapping[str, str] = {  # name -> what it is, in the order of the report
    "paper": "As in the paper: CoCo by Gaussians, the others by what they have learnt",
    "gaussian": "The same Gaussians for every loss",
    "centroid": "The same nearest class means for every loss",
}
PAIRWISE = {"coco": True, "dr": False, "ce": False}  # name -> whether the loss sums over pairs
USES_FOLDS = ("outer",)
DEFAULTS: dict[str, Any] = {
    "n_terms": [64, 128, 256, 512, 1024],
    "batch_size": 8,
    "learning_rate": 1e-4,
}


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that are unknown or out of range."""
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
    from first_steps import first_steps  # noqa: PLC0415 - torch, to train

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
    h = beginner.network.outputs(part.inputs)[0]
    test = beginner.network.outputs(part.test_inputs)[0]

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


@dataclass(frozen=True, eq=False)
class ConvergenceAnalysis:
    """Scores over the number of terms.

    Attributes
    ----------
    heads, models, datasets : tuple of str
    n_terms : tuple of int
    scores : DataFrame
        One line per head, dataset, model and n_terms: mean balanced accuracy over folds.
    means : DataFrame
        One line per head, model and n_terms: the mean over datasets, of which each model has the
        same, and ``n_datasets``.
    rankings : dict of (head, n_terms) to Ranking or NotRanked
    """

    heads: tuple[str, ...]
    models: tuple[str, ...]
    datasets: tuple[str, ...]
    n_terms: tuple[int, ...]
    scores: pd.DataFrame
    means: pd.DataFrame
    rankings: Mapping[tuple[str, int], Ranking | NotRanked]


def analyse(findings: Findings, missing: str = "drop_datasets") -> ConvergenceAnalysis:
    """Compute curves and ranks.

    Parameters
    ----------
    findings : Findings
        Whose rows have the columns dataset, model, fold, n_terms, head and balanced_accuracy.
    missing : {"drop_datasets", "worst"}
        What becomes of datasets that lack a loss, in the ranks. The means are over datasets that
        have all of them.
    """
    needed = ["dataset", "model", "fold", "n_terms", "head", "balanced_accuracy"]
    rows = findings.rows.reindex(columns=needed).dropna(subset=needed)
    by = ["head", "dataset", "model", "n_terms"]
    scores = rows.groupby(by, sort=False)["balanced_accuracy"].mean().reset_index()
    scores["n_terms"] = scores["n_terms"].astype(int)
    models = _in_order(rows["model"], PAPER_LOSSES)
    heads = _in_order(rows["head"], tuple(HEADS))
    n_terms = tuple(sorted(int(n) for n in rows["n_terms"].unique()))
    n_cells = scores.groupby("dataset")["model"].size()
    full = n_cells.index[n_cells == len(heads) * len(models) * len(n_terms)]
    complete = scores[scores["dataset"].isin(full)]
    means = complete.groupby(["head", "model", "n_terms"], sort=False)["balanced_accuracy"]
    groups = dict(iter(rows.groupby(["head", "n_terms"], sort=False)))
    empty = pd.DataFrame(columns=needed)
    return ConvergenceAnalysis(
        heads=heads,
        models=models,
        datasets=tuple(sorted(scores["dataset"].unique())),
        n_terms=n_terms,
        scores=scores,
        means=means.agg(balanced_accuracy="mean", n_datasets="size").reset_index(),
        rankings={
            (head, n): rank(
                groups.get((head, n), empty),
                models,
                name=f"{head}-{n}",
                title=f"{n} terms",
                missing=missing,
                printed=printed.CONVERGENCE.get(n) if head == "paper" else None,
                rope=None,
                by_pairs=False,
            )
            for head in heads
            for n in n_terms
        },
    )


def _in_order(names: Any, known: tuple[str, ...]) -> tuple[str, ...]:
    """Return names without repeats: known ones in their order, then the others."""
    found = list(dict.fromkeys(names))
    return (*(n for n in known if n in found), *sorted(n for n in found if n not in known))


def blocks(_findings: Findings, analysis: ConvergenceAnalysis, prefix: str) -> list[Block]:
    """Return the sections of the report, one per head."""
    if not analysis.datasets:
        return [Text("There is no result yet.", "warning")]
    found: list[Block] = [
        Text(
            "A batch of m rows has m terms with cross-entropy and dot regression, and m² with "
            "CoCo; so at the same number of terms CoCo has taken fewer steps and seen fewer rows. "
            "In the paper's form CoCo classifies by Gaussians fitted to all training rows, which "
            "helps it before anything is learnt; the other two forms give every loss the same head."
        )
    ]
    for head in analysis.heads:
        found += _head_blocks(analysis, head, prefix)
    return found


def _head_blocks(analysis: ConvergenceAnalysis, head: str, prefix: str) -> list[Block]:
    rankings = [analysis.rankings[head, n] for n in analysis.n_terms]
    ranked = [r for r in rankings if isinstance(r, Ranking)]
    found: list[Block] = [Heading(HEADS.get(head, head))]
    if len(analysis.means):
        found += [curves(analysis, head, prefix), mean_grid(analysis, head)]
    if ranked:
        found += [rank_grid(analysis, head), rank_grid(analysis, head, by_mean=True)]
    notes = dict.fromkeys(note for r in ranked for note in r.notes)
    notes |= dict.fromkeys(f"{r.title}: {r.reason}" for r in rankings if isinstance(r, NotRanked))
    found += [Items(tuple(notes))] if notes else []
    if head == "paper" and ranked:
        diagrams = [
            part for r in ranked for part in (Heading(r.title, 3), diagram(r, f"{prefix}-terms"))
        ]
        found.append(Folded("Critical-difference diagrams", tuple(diagrams)))
    return [*found, Folded("Dataset by dataset", (dataset_grid(analysis, head),))]


def curves(analysis: ConvergenceAnalysis, head: str, prefix: str) -> Picture:
    """Return the mean curves of all losses; those of all heads are in one scale."""
    n_datasets = int(analysis.means["n_datasets"].max())
    return Picture(
        f"{prefix}-{head}-curves",
        "Balanced accuracy over terms",
        lambda: _draw_curves(analysis, head),
        caption=f"Mean over {n_datasets} datasets and their folds.",
        label=f"Mean balanced accuracy over terms, {HEADS.get(head, head)}",
    )


def _draw_curves(analysis: ConvergenceAnalysis, head: str) -> "Figure":
    figure = new_figure((4.6, 3.2))
    axes = figure.add_subplot()
    means = analysis.means.pivot(
        index="n_terms", columns=["head", "model"], values="balanced_accuracy"
    )
    ticks = range(len(means))
    for number, model in enumerate(analysis.models):
        if (head, model) in means:
            axes.plot(
                ticks,
                means[head, model],
                marker="o",
                ms=4,
                color=COLOURS[number % len(COLOURS)],
                label=model,
                gid=f"curve-{number}",
            )
    low, high = means.min(axis=None), means.max(axis=None)
    axes.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    axes.set_xticks(ticks, [f"{n:g}" for n in means.index])
    axes.set(xlabel="terms of the loss so far", ylabel="balanced accuracy")
    tidy(axes, legend=True)
    return figure


def mean_grid(analysis: ConvergenceAnalysis, head: str) -> Grid:
    """Return mean balanced accuracies by number of terms: the curves as numbers."""
    own = analysis.means[analysis.means["head"] == head]
    table = own.pivot(index="model", columns="n_terms", values="balanced_accuracy")
    rows = tuple(
        (
            Cell(model),
            *(
                fixed(table.loc[model, n], 4, best=table.loc[model, n] == table[n].max())
                for n in table
            ),
        )
        for model in analysis.models
        if model in table.index
    )
    return Grid(
        "Mean balanced accuracy",
        ("loss", *(f"{n:,}" for n in table.columns)),
        rows,
        caption="By number of terms, over datasets that have all losses.",
    )


def rank_grid(analysis: ConvergenceAnalysis, head: str, *, by_mean: bool = False) -> Grid:
    """Return average ranks by number of terms, with the printed ones beside.

    NOTE[PAPER]: ranks are said to count what is significant, but the printed averages of a column
    sum to 6, as ranks without ties do. So ranks by means over folds are shown too.
    """
    theirs = printed.CONVERGENCE
    how = "by means over folds" if by_mean else "by what is significant over folds"
    rows = []
    for model in analysis.models:
        cells = [Cell(model)]
        for n in analysis.n_terms:
            ranking = analysis.rankings[head, n]
            if not isinstance(ranking, Ranking) or model not in ranking.comparison.models:
                cells.append(fixed(None, 2))
                continue
            ranked = ranking.by_score if by_mean else ranking.comparison
            rank = float(ranked.average_ranks[model])
            spread = float(ranked.rank_spread[model])
            best = ranked.average_ranks.min()
            cells.append(Cell(f"{rank:.2f} ± {spread:.2f}", rank, rank <= best))
        rows.append(tuple(cells))
    for model in analysis.models if head == "paper" else ():
        if all(model in ranks.ranks for ranks in theirs.values()):
            cells = [Cell(f"{model}, printed")]
            for n in analysis.n_terms:
                pair = theirs[n].ranks[model] if n in theirs else None
                cells.append(Cell(f"{pair[0]:.1f} ± {pair[1]:.1f}", pair[0]) if pair else Cell(""))
            rows.append(tuple(cells))
    distances = [Cell("critical distance")]
    for n in analysis.n_terms:
        ranking = analysis.rankings[head, n]
        distances.append(
            fixed(ranking.comparison.critical_distance if isinstance(ranking, Ranking) else None, 2)
        )
    rows.append(tuple(distances))
    place = f" Printed: {next(iter(theirs.values())).place}." if head == "paper" else ""
    return Grid(
        f"Average ranks {how}",
        ("loss", *(f"{n:,}" for n in analysis.n_terms)),
        tuple(rows),
        caption=f"By number of terms; 1 is best.{place}",
    )


def dataset_grid(analysis: ConvergenceAnalysis, head: str) -> Grid:
    """Return the scores of every dataset after the fewest and the most terms."""
    own = analysis.scores[analysis.scores["head"] == head]
    table = own.pivot(index="dataset", columns=["model", "n_terms"], values="balanced_accuracy")
    shown = [(m, n) for m in analysis.models for n in (analysis.n_terms[0], analysis.n_terms[-1])]
    return Grid(
        "Balanced accuracy after the fewest and the most terms",
        ("dataset", *(f"{model}, {n}" for model, n in shown)),
        tuple(
            (Cell(str(dataset)), *(fixed(line.get(place), 3) for place in shown))
            for dataset, line in table.iterrows()
        ),
        sortable=True,
    )
