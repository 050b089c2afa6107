"""The report of a convergence experiment, as blocks."""

from typing import Any

from cocoloss.benchmark import printed
from cocoloss.benchmark.convergence_analysis import HEADS, ConvergenceAnalysis
from cocoloss.benchmark.rankings import Ranking
from cocoloss.report.bench_rankings import diagram
from cocoloss.report.charts import Line, line_chart, widened
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
from cocoloss.report.figures import files_of, line_figure
from cocoloss.report.page import Markup, element

X_TITLE = "terms of the loss so far"
SHOWN_DATASETS = 200  # with a small chart each


def convergence_blocks(analysis: ConvergenceAnalysis, prefix: str) -> list[Block]:
    """Return the sections of the report, one per head."""
    if not analysis.datasets:
        return [Text("There is no result yet.", "warning")]
    blocks: list[Block] = [
        Text(
            "A batch of m rows has m terms with cross-entropy and dot regression, and m² with "
            "CoCo; so at the same number of terms CoCo has taken fewer steps and seen fewer rows. "
            "In the paper's form CoCo classifies by Gaussians fitted to all training rows, which "
            "helps it before anything is learnt; the other two forms give every loss the same head."
        )
    ]
    for head in analysis.heads:
        blocks += _head_blocks(analysis, head, prefix)
    return blocks


def _head_blocks(analysis: ConvergenceAnalysis, head: str, prefix: str) -> list[Block]:
    rankings = [analysis.rankings[head, n] for n in analysis.n_terms]
    ranked = [r for r in rankings if isinstance(r, Ranking)]
    blocks: list[Block] = [Heading(HEADS.get(head, head))]
    pictures: list[Block] = []
    if len(analysis.means):
        pictures += [curves(analysis, head, prefix), mean_grid(analysis, head)]
    if ranked:
        pictures += [rank_grid(analysis, head), rank_grid(analysis, head, by_mean=True)]
    blocks += pictures
    notes = dict.fromkeys(note for r in ranked for note in r.notes)
    notes |= dict.fromkeys(f"{r.title}: {r.reason}" for r in rankings if not isinstance(r, Ranking))
    if notes:
        blocks.append(Items(tuple(notes)))
    if head == "paper" and ranked:
        blocks.append(
            Folded(
                "Critical-difference diagrams",
                tuple(
                    block
                    for r in ranked
                    for block in (Heading(r.title, 3), diagram(r, f"{prefix}-terms"))
                ),
            )
        )
    blocks.append(Folded("Dataset by dataset", tuple(_per_dataset(analysis, head))))
    return blocks


def curves(analysis: ConvergenceAnalysis, head: str, prefix: str) -> Picture:
    """Return the mean curves of all losses; those of all heads are in one scale."""
    lines = mean_lines(analysis, head)
    n_datasets = int(analysis.means["n_datasets"].max())
    ticks = [float(n) for n in analysis.n_terms]
    return Picture(
        f"{prefix}-{head}-curves",
        "Balanced accuracy over terms",
        line_chart(
            lines,
            x_title=X_TITLE,
            label=f"Mean balanced accuracy over terms, {HEADS.get(head, head)}",
            x_ticks=ticks,
            y_range=widened(analysis.means["balanced_accuracy"].tolist()),
        ),
        files_of(
            lambda: line_figure(lines, x_title=X_TITLE, y_title="balanced accuracy", x_ticks=ticks)
        ),
        caption=f"Mean over {n_datasets} datasets and their folds.",
        wide=True,
    )


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


def mean_lines(analysis: ConvergenceAnalysis, head: str) -> list[Line]:
    """Return the mean curve of each loss."""
    own = analysis.means[analysis.means["head"] == head]
    return [
        Line(model, number, _points(own[own["model"] == model]))
        for number, model in enumerate(analysis.models)
        if (own["model"] == model).any()
    ]


def _points(frame: Any) -> list[tuple[float, float]]:
    ordered = frame.sort_values("n_terms")
    return list(zip(ordered["n_terms"].astype(float), ordered["balanced_accuracy"], strict=True))


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


def _per_dataset(analysis: ConvergenceAnalysis, head: str) -> list[Block]:
    own = analysis.scores[analysis.scores["head"] == head]
    charts = []
    groups = dict(iter(own.groupby("dataset", sort=True)))
    for dataset in analysis.datasets[:SHOWN_DATASETS]:
        part = groups.get(dataset)
        if part is None:
            continue
        lines = [
            Line(model, number, _points(part[part["model"] == model]))
            for number, model in enumerate(analysis.models)
            if (part["model"] == model).any()
        ]
        chart = line_chart(
            lines,
            x_title="",
            label=f"Balanced accuracy over terms on {dataset}",
            x_ticks=[float(n) for n in analysis.n_terms],
            size=(260, 170),
            keys=False,
        )
        charts.append(element("div", element("p", dataset, class_="small-title"), chart))
    last = analysis.n_terms[-1]
    grid = own.pivot(index="dataset", columns=["model", "n_terms"], values="balanced_accuracy")
    rows = tuple(
        (
            Cell(str(dataset)),
            *(
                fixed(line.get((model, n)), 3)
                for model in analysis.models
                for n in (analysis.n_terms[0], last)
            ),
        )
        for dataset, line in grid.iterrows()
    )
    columns = [f"{m}, {n}" for m in analysis.models for n in (analysis.n_terms[0], last)]
    picture = Picture("", "", Markup(element("div", charts, class_="small-charts")), {}, wide=True)
    return [
        picture,
        Grid(
            "Balanced accuracy after the fewest and the most terms",
            ("dataset", *columns),
            rows,
            sortable=True,
        ),
    ]
