"""The report of an evolution: panels of the embedding, as blocks."""

import numpy as np

from cocoloss.benchmark import printed
from cocoloss.benchmark.evolution_analysis import Evolution, EvolutionAnalysis
from cocoloss.report.charts import embedding_panel, legend
from cocoloss.report.document import Block, Cell, Grid, Heading, Picture, Text, fixed, slug
from cocoloss.report.figures import evolution_figure, files_of
from cocoloss.report.page import Markup, element, significant

MOST_NAMES = 12  # classes in a legend


def evolution_blocks(analysis: EvolutionAnalysis, prefix: str) -> list[Block]:
    """Return a row of panels and a table for each model and dataset."""
    if not analysis.runs:
        return [Text("There is no result yet.", "warning")]
    blocks: list[Block] = []
    for run in analysis.runs:
        blocks.append(Heading(f"{run.model} on {run.dataset}"))
        if run.embeddings.ndim == 3 and run.embeddings.shape[2] == 2:
            blocks.append(panels(run, prefix))
        else:
            width = run.embeddings.shape[-1]
            blocks.append(
                Text(f"The embedding has {width} dimensions; panels are drawn for two.", "warning")
            )
        blocks.append(measures_grid(run))
    return blocks


def panels(run: Evolution, prefix: str) -> Picture:
    """Return the embedding after each of the epochs, all in one scale."""
    extent = panel_extent(run)
    drawn = []
    for number, epoch in enumerate(run.epochs):
        cosine = run.measures["cosine"][number]
        panel = embedding_panel(
            run.embeddings[number],
            run.labels,
            run.centres[number],
            extent=extent,
            label=f"Embedding after {epoch} epochs, cosine of class centres {cosine:.3f}",
        )
        title = element("p", f"epoch {epoch}, cos = {cosine:.3f}", class_="small-title")
        drawn.append(element("div", title, panel))
    names = [(name, c) for c, name in enumerate(run.classes[:MOST_NAMES])]
    inline = Markup(legend(names) + element("div", drawn, class_="panels"))
    which = "the class centres" if len(run.classes) == 2 else "the closest two class centres"
    return Picture(
        f"{prefix}-{slug(run.dataset)}-{slug(run.model)}",
        "The embedding",
        inline,
        files_of(lambda: evolution_figure(run, extent)),
        caption=f"{len(run.labels):,} rows, the unit circle, and the class centres; cos is that of "
        f"the angle between {which}.",
        wide=True,
    )


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
                Cell(significant(values["dispersity"]), values["dispersity"]),
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
