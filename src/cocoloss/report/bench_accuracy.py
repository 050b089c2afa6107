"""The report of an accuracy or an imbalance experiment, as blocks."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cocoloss.benchmark.analysis import AccuracyAnalysis
from cocoloss.benchmark.findings import Findings
from cocoloss.report.bench_imbalance import imbalance_blocks
from cocoloss.report.bench_leads import lead_blocks
from cocoloss.report.bench_rankings import ranking_blocks, stand_out
from cocoloss.report.document import Block, Cell, Grid, Heading, Text, counted, fixed
from cocoloss.report.page import significant

COLUMNS = {  # measure -> (heading, decimal places)
    "balanced_accuracy": ("balanced accuracy", 4),
    "accuracy": ("accuracy", 4),
    "log_loss": ("log loss", 4),
    "dispersity": ("dispersity, test", 3),
    "train_dispersity": ("dispersity, training", 3),
    "fit_seconds": ("seconds a fit", 3),
}
COSTS = frozenset({"fit_seconds"})  # they depend on the machine: nothing stands out
HIGHER = frozenset({"balanced_accuracy", "accuracy"})
FOLD_COLUMNS = ("balanced_accuracy", "accuracy", "log_loss", "dispersity", "fit_seconds")
PARTIAL = "*"
SHOWN_ROWS = 2000  # of the table of datasets on a page; more are in the files


def accuracy_blocks(findings: Findings, analysis: AccuracyAnalysis, prefix: str) -> list[Block]:
    """Return the sections of the report."""
    blocks: list[Block] = []
    if findings.kind == "imbalance":
        blocks += imbalance_blocks(analysis.gains, prefix)
    blocks.append(Heading("Balanced accuracy"))
    for ranking in analysis.rankings:
        blocks += ranking_blocks(ranking, prefix)
    if analysis.dispersity:
        blocks += [
            Heading("Dispersity"),
            Text(
                "How wide the classes are in the embedding of the test rows, in units of how far "
                "apart they are; lower is better, 0 is collapse."
            ),
        ]
        for ranking in analysis.dispersity:
            blocks += ranking_blocks(ranking, prefix)
    if len(analysis.measures):
        blocks += [Heading("All measures"), measures_grid(analysis)]
    blocks += [Heading("Dataset by dataset"), *dataset_blocks(analysis, prefix)]
    if analysis.leads is not None:
        blocks += lead_blocks(analysis.leads)
    return blocks


def measures_grid(analysis: AccuracyAnalysis) -> Grid:
    """Return the mean of each measure by model; the best stands out where they are comparable."""
    frame = analysis.measures
    whole = analysis.scores.notna() & ~analysis.partial
    shown = [m for m in COLUMNS if m in frame.columns and frame[m].notna().any()]
    columns = [[counted(int(n)) for n in frame["n_datasets"]]]
    for measure in shown:
        cells = [_mean(value, measure) for value in frame[measure]]
        on = whole.loc[:, frame[measure].notna()]
        # Means over different datasets cannot be compared, nor can times on different machines.
        if measure not in COSTS and on.eq(on.iloc[:, 0], axis=0).all(axis=None):
            cells = stand_out(cells, higher_is_better=measure in HIGHER)
        columns.append(cells)
    rows = [(Cell(m), *cells) for m, *cells in zip(frame.index, *columns, strict=True)]
    caption = (
        "Each model over the datasets on which it has all folds. The best is bold, where all have "
        "the same datasets."
    )
    if "fit_seconds" in shown:
        caption += (
            " Networks train all folds at once, which takes less than one after the other; their "
            "seconds are a fold's share."
        )
    return Grid(
        "Means over folds, then datasets",
        ("model", "datasets", *(COLUMNS[m][0] for m in shown)),
        tuple(rows),
        caption=caption,
        sortable=True,
    )


def dataset_blocks(analysis: AccuracyAnalysis, prefix: str) -> list[Block]:
    """Return the table of datasets; on a page its rows open."""
    scores = analysis.scores
    if not len(scores):
        return [Text("There is no result yet.", "warning")]
    models = list(scores.columns)
    rows = tuple(
        (Cell(dataset), *_of_dataset(scores.loc[dataset], analysis.partial.loc[dataset]))
        for dataset in scores.index[:SHOWN_ROWS]
    )
    more = len(scores) - SHOWN_ROWS
    caption = "Mean balanced accuracy over the outer folds; the best of a dataset is bold."
    if analysis.partial.any(axis=None):
        caption += f" {PARTIAL} marks the mean of some folds: others are missing."
    if more > 0:
        caption += f" {more:,} more datasets are in the files of scores."
    return [
        Grid(
            "Balanced accuracy by dataset",
            ("dataset", *models),
            rows,
            caption=caption,
            sortable=True,
            drill=prefix,
        )
    ]


def _of_dataset(scores: Any, partial: Any) -> list[Cell]:
    """Return the means on a dataset; what lacks folds is marked, and never the best."""
    cells = stand_out([_mean(value, "balanced_accuracy") for value in scores.mask(partial)])
    return [
        Cell(f"{value:.4f}{PARTIAL}", float(value)) if lacks else cell
        for cell, value, lacks in zip(cells, scores, partial, strict=True)
    ]


def _mean(value: float, measure: str) -> Cell:
    if measure not in HIGHER and measure != "log_loss" and np.isfinite(value):
        return Cell(significant(value), float(value))
    return fixed(value, COLUMNS[measure][1])


def fold_data(findings: Findings, analysis: AccuracyAnalysis) -> dict[str, Any]:
    """Return what a page needs to open a dataset: folds, arguments, time and memory."""
    rows = findings.rows
    measures = [m for m in FOLD_COLUMNS if m in rows.columns]
    folds: dict[str, dict[str, list[Any]]] = {}
    kept = rows[["dataset", "model", "fold", *measures]].sort_values("fold", kind="stable")
    numbers = kept[measures].round(4).astype(object).where(kept[measures].notna(), None)
    numbers = numbers.mask(np.isinf(kept[measures].astype(float)), "Infinity")  # JSON has none
    columns = zip(*(numbers[m] for m in measures), strict=True)
    for dataset, model, values in zip(kept["dataset"], kept["model"], columns, strict=True):
        folds.setdefault(dataset, {}).setdefault(model, []).append(values)
    units: dict[str, dict[str, Any]] = {}
    for unit in findings.units.itertuples():
        units.setdefault(unit.dataset, {})[unit.model] = {
            "params": [_brief(params) for params in unit.params],
            "seconds": round(unit.seconds, 3),
            "tuning": round(unit.tuning_seconds, 3),
            "trials": unit.n_trials,
            "memory": unit.peak_memory,
            "error": unit.error,
        }
    known = findings.characters.reindex(analysis.scores.index)
    characters = {
        dataset: {n: v for n, v in line.items() if np.isfinite(v)}
        for dataset, line in known.to_dict("index").items()
    }
    shown = set(analysis.scores.index[:SHOWN_ROWS])
    return {
        "measures": [COLUMNS[m][0] for m in measures],
        "models": list(analysis.scores.columns),
        "folds": {d: f for d, f in folds.items() if d in shown},
        "units": {d: u for d, u in units.items() if d in shown},
        "characters": {d: c for d, c in characters.items() if d in shown and c},
    }


def _brief(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with numbers that can be read."""
    return {
        name: float(f"{value:.4g}") if isinstance(value, float) and np.isfinite(value) else value
        for name, value in params.items()
    }
