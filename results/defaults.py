"""Our defaults beside their peers: classes by balanced accuracy and log loss, numbers, levels."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cocoloss.benchmark.analysis import AccuracyAnalysis, Findings, Leads, Ranking, rank
from cocoloss.report import bench_rankings
from cocoloss.report.document import Block, Cell, Grid, Text, fixed, number_of, stand_out
from measured import rows_of

DEFAULT = "coco-default"
PEERS = (  # of the default, all of which count classes alike
    *("ksvm-w", "hgb-w", "rf-w", "ce-w", "lightgbm-w", "hgb-raw-w", "catboost-w"),
    *("lightgbm-default", "catboost-default", "realmlp-default", "xrfm-default"),
)
OF_NUMBERS = "coco"
PLAIN = ("ksvm", "rf", "hgb", "ce", "coco")  # peers that count rows as they come


def parts_of_default(findings: Findings, analysis: AccuracyAnalysis) -> Iterator[tuple[str, Block]]:
    """Yield how the default does beside its peers, by balanced accuracy and by log loss."""
    rows, scores = findings.rows, analysis.scores
    models = [DEFAULT, *(model for model in PEERS if model in scores.columns)]
    by_loss: dict[str, Any] = {"measure": "log_loss", "higher_is_better": False, "rope": None}
    for what, options in (("default", {}), ("default-log-loss", by_loss)):
        ranking = rank(rows, models, name=what, title="The default beside its peers", **options)
        where = f"{findings.name}/{what}"
        if not isinstance(ranking, Ranking):
            continue
        yield f"{where}/words", Text(bench_rankings.in_words(ranking))
        yield f"{where}/ranks", bench_rankings.ranks_grid(ranking)
        yield f"{where}/reference", bench_rankings.reference_grid(ranking)
        for picture in bench_rankings.diagrams(ranking, findings.name):
            which = picture.name.removeprefix(f"{findings.name}-{what}").lstrip("-")
            yield f"{where}/{which or 'diagram'}", picture
    complete = scores.mask(analysis.partial)[models].dropna()
    best = complete[models[1:]].max(axis=1)
    leads = Leads(DEFAULT, complete[[DEFAULT]].assign(best=best), findings.characters)
    yield f"{findings.name}/default/wins", bench_rankings.wins_grid(leads)
    yield f"{findings.name}/default/tendencies", bench_rankings.tendencies_grid(leads)
    yield f"{findings.name}/default/extremes", bench_rankings.extremes_grid(leads, "best", 8)


def parts_of_numbers(findings: Findings, analysis: AccuracyAnalysis) -> Iterator[tuple[str, Block]]:
    """Yield ratios of the root mean squared error to that of each peer, and every table."""
    errors = analysis.scores.mask(analysis.partial)
    peers = [model for model in errors.columns if model != OF_NUMBERS]
    ratios = errors[[OF_NUMBERS]].to_numpy() / errors[peers]
    yield (
        f"{findings.name}/ratios",
        Grid(
            "Root mean squared error over that of each peer",
            ("peer", "datasets", "geometric mean", "wins", "best", "worst"),
            tuple(
                (
                    Cell(peer),
                    number_of(int(there.size)),
                    fixed(float(np.exp(np.log(there).mean())), 3),
                    number_of(int((there < 1).sum())),
                    Cell(f"{there.min():.2f} ({there.idxmin()})"),
                    Cell(f"{there.max():.2f} ({there.idxmax()})"),
                )
                for peer, there in ((peer, ratios[peer].dropna()) for peer in peers)
            ),
            caption=f"Of {OF_NUMBERS}, by means over folds; below 1 it is better.",
        ),
    )
    mean = findings.rows.groupby(["model", "dataset"])[["relative_rmse", "coverage"]].mean()
    ours = mean.loc[OF_NUMBERS]
    yield (
        f"{findings.name}/tables",
        Grid(
            f"{OF_NUMBERS}, table by table",
            ("dataset", "relative RMSE", "within intervals of 0.9", *(f"over {p}" for p in peers)),
            tuple(
                (
                    Cell(dataset),
                    fixed(line["relative_rmse"], 3),
                    fixed(line["coverage"], 3),
                    *(fixed(value, 2) for value in ratios.loc[dataset]),
                )
                for dataset, line in ours.iterrows()
            ),
            caption="The relative RMSE is over that of guessing the mean of the training rows.",
        ),
    )


def plain_grid(findings: Findings, file: Path) -> Grid:
    """Return accuracy and log loss where everybody counts rows as they come.

    Parameters
    ----------
    findings : Findings
        With the peers, of which the same folds are taken.
    file : Path
        Lines of JSON of ``bench/empirical.py``.
    """
    ours = rows_of(file).query("model == 'default'")
    ours = ours.rename(columns={"table": "dataset", "log loss": "log_loss"})
    ours["model"] = 'CoCoClassifier(priors="empirical")'
    rows = findings.rows[findings.rows["fold"].isin(ours["fold"].unique())]
    both = pd.concat([ours, rows[rows["model"].isin([*PLAIN, DEFAULT])]])
    means = both.groupby(["model", "dataset"])[["accuracy", "log_loss"]].mean()
    means = means.groupby("model").mean().sort_values("accuracy", ascending=False)
    columns = [
        stand_out([fixed(x, digits) for x in means[measure]], higher_is_better=higher)
        for measure, digits, higher in (("accuracy", 4, True), ("log_loss", 3, False))
    ]
    return Grid(
        "Rows as they come",
        ("model", "accuracy", "log loss"),
        tuple((Cell(model), *cells) for model, *cells in zip(means.index, *columns, strict=True)),
        caption=f"Means over {ours['dataset'].nunique()} tables, of the first "
        f"{ours['fold'].nunique()} of ten folds.",
    )
