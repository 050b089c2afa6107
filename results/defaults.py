"""Our defaults and their peers: classification by balanced accuracy and log loss, regression."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cocoloss._checks import counted
from cocoloss.benchmark.analysis import AccuracyAnalysis, Findings, Leads, Ranking, rank
from cocoloss.benchmark.tasks import FAILED, OK, OPEN, TIMEOUT
from cocoloss.report import bench_rankings
from cocoloss.report.document import (
    MISSING,
    Block,
    Cell,
    Grid,
    Text,
    fixed,
    number_of,
    stand_out,
)
from measured import SCORE, rows_of
from verdicts import (
    SAID,
    in_words,
    listed,
    of_ranking,
    ranks_grid,
    reference_grid,
    versus,
    versus_grid,
)

DEFAULT = "coco-default"
PEERS = (  # of the default, all of them class-weighted
    *("ksvm-w", "hgb-w", "rf-w", "ce-w", "lightgbm-w", "hgb-raw-w", "catboost-w"),
    *("lightgbm-default", "catboost-default", "realmlp-default", "xrfm-default"),
)
OF_NUMBERS = "coco"
PLAIN = ("ksvm", "rf", "hgb", "ce", "coco")  # peers without class weights
EMPIRICAL = 'CoCoClassifier(priors="empirical")'
CLASSIFIER, REGRESSOR = "CoCoClassifier()", "CoCoRegressor()"  # as bench/ calls them
MEANS = {  # measure: (heading, digits, whether higher is better; None for costs)
    "balanced_accuracy": ("balanced accuracy", 4, True),
    "accuracy": ("accuracy", 4, True),
    "log_loss": ("log loss", 4, False),
    "fit_seconds": ("seconds", 1, None),
    "processor_seconds": ("processor seconds", 1, None),
}


def parts_of_default(
    findings: Findings, analysis: AccuracyAnalysis, spec: Mapping[str, Any]
) -> Iterator[tuple[str, Block]]:
    """Yield how the default compares with its peers, over the tables that all of them have.

    Parameters
    ----------
    findings : Findings
        What there is so far.
    analysis : AccuracyAnalysis
        Its scores.
    spec : mapping
        What is planned: all its datasets, of which a store may have begun some.
    """
    scores = analysis.scores.mask(analysis.partial)
    models = [DEFAULT, *(model for model in PEERS if model in scores.columns)]
    complete = scores[models].dropna()
    rows = findings.rows[findings.rows["dataset"].isin(complete.index)]
    by_loss: dict[str, Any] = {"measure": "log_loss", "higher_is_better": False, "rope": None}
    for what, options in (("default", {}), ("default-log-loss", by_loss)):
        ranking = rank(rows, models, name=what, title="The default and its peers", **options)
        where = f"{findings.name}/{what}"
        if not isinstance(ranking, Ranking):
            continue
        yield f"{where}/words", Text(in_words(ranking))
        yield f"{where}/ranks", ranks_grid(ranking)
        yield f"{where}/reference", reference_grid(ranking)
        for picture in bench_rankings.diagrams(ranking, findings.name):
            which = picture.name.removeprefix(f"{findings.name}-{what}").lstrip("-")
            yield f"{where}/{which or 'diagram'}", picture
        if what == "default":
            yield f"{findings.name}/complete", summary_grid(findings, ranking)
    best = complete[models[1:]].max(axis=1)
    leads = Leads(DEFAULT, complete[[DEFAULT]].assign(best=best), findings.characters)
    yield f"{findings.name}/default/wins", bench_rankings.wins_grid(leads)
    yield f"{findings.name}/default/tendencies", bench_rankings.tendencies_grid(leads)
    extremes = bench_rankings.extremes_grid(leads, "best", 8)
    yield f"{findings.name}/default/extremes", with_best(extremes, complete[models[1:]])
    yield f"{findings.name}/progress", Text(progress(findings, models, spec))


def with_best(grid: Grid, scores: pd.DataFrame) -> Grid:
    """Return a table of datasets with the name of the model that has the best score on each."""
    best = scores.idxmax(axis=1)
    place = grid.columns.index("best") + 1
    return replace(
        grid,
        columns=(*grid.columns[:place], "best model", *grid.columns[place:]),
        rows=tuple((*r[:place], Cell(best[r[0].text]), *r[place:]) for r in grid.rows),
    )


def progress(findings: Findings, models: Sequence[str], spec: Mapping[str, Any]) -> str:
    """Say which of the planned tables have results of all models, and why the others have not."""
    planned = list(spec["data"].get("datasets", findings.units["dataset"].unique()))
    status = findings.units.pivot(index="dataset", columns="model", values="status")
    status = status.reindex(index=planned, columns=models).fillna(OPEN)
    done = int((status == OK).all(axis=1).sum())
    said = f"All {done} tables have results of all models."
    if done < len(planned):
        to_come = int((status == OPEN).any(axis=1).sum())
        said = f"{done} of the {len(planned)} tables have results of all models, and only these"
        said += " are compared."
        if to_come:
            said += f" Some models have not run yet on {counted(to_come, 'table')}."
    limit = str(spec["limits"]["seconds_per_task"]).replace("m", " minutes")
    lost = findings.missing[findings.missing["model"].isin(models)]
    for how, words in {TIMEOUT: f"took longer than {limit}", FAILED: "failed"}.items():
        for model, cells in lost[lost["status"] == how].groupby("model"):
            name = _capital(SAID.get(str(model), str(model)))
            said += f" {name} {words} on {listed(list(cells['dataset']))}."
    return said


def summary_grid(findings: Findings, ranking: Ranking) -> Grid:
    """Return the means of all measures over the tables of a ranking, with wins and costs.

    Models that are not ranked are there if they have all of these tables.
    """
    tables, reference = list(ranking.by_score.scores.index), ranking.reference
    measures = [m for m in MEANS if m in findings.rows.columns]
    rows = findings.rows[findings.rows["dataset"].isin(tables)]
    by_table = rows.groupby(["dataset", "model"])[measures].mean()
    units = findings.units[findings.units["status"] == OK].set_index(["dataset", "model"])
    by_table["peak_memory"] = units["peak_memory"].reindex(by_table.index) / 1e6
    n_tables = by_table.groupby("model").size()
    models = [m for m in findings.spec["models"]["names"] if n_tables.get(m, 0) == len(tables)]
    models += [m for m in ranking.comparison.models if m not in models]
    means = by_table.groupby("model").mean().loc[models]
    means = means.sort_values("balanced_accuracy", ascending=False)
    most = by_table["peak_memory"].groupby("model").max()
    against, verdicts = ranking.by_score, of_ranking(ranking)["verdict"]
    counts = []
    for model in means.index:
        if model == reference or model not in verdicts:
            counts.append([Cell(MISSING), Cell(MISSING)])
            continue
        n = [int(c.loc[reference, model]) for c in (against.wins, against.ties, against.losses)]
        counts.append([Cell("{} / {} / {}".format(*n), n[0] - n[2]), Cell(verdicts[model])])
    columns = []
    for measure in measures:
        _, digits, higher = MEANS[measure]
        cells = [fixed(value, digits) for value in means[measure]]
        columns.append(cells if higher is None else stand_out(cells, higher_is_better=higher))
    memory = [[fixed(kind[m], 0) for m in means.index] for kind in (means["peak_memory"], most)]
    balanced, *others = columns
    return Grid(
        f"Means over the {len(tables)} tables that all models have",
        (
            *("model", "balanced accuracy", f"{reference} won / tied / lost", f"{reference} is"),
            *(MEANS[measure][0] for measure in measures[1:]),
            *("peak MB, mean", "peak MB, most"),
        ),
        tuple(
            (Cell(str(name)), score, *counts, *cells)
            for name, score, counts, *cells in zip(
                means.index, balanced, counts, *others, *memory, strict=True
            )
        ),
        caption="Seconds are of one fit. Peak memory is that of a fit and its predictions, beyond "
        "the table and the libraries.",
    )


def large_parts(file: Path) -> dict[str, Block]:
    """Return the default and boosted trees on the tables of ``bench/large.py``.

    Parameters
    ----------
    file : Path
        Lines of JSON, one per table and model.
    """
    rows = rows_of(file)
    scores = rows.pivot(index="table", columns="model", values=SCORE)
    seconds = rows.pivot(index="table", columns="model", values="fit seconds").loc[scores.index]
    n = rows.groupby("table")["rows"].max().sort_values()
    models = [CLASSIFIER, *(m for m in scores.columns if m != CLASSIFIER)]
    found = versus(scores, models[1:], CLASSIFIER)
    geometric = np.exp(np.log(seconds).mean())
    lines = [(name, n[name], scores.loc[name, models]) for name in n.index]
    means = scores[models].mean()
    return {
        "large/tables": Grid(
            f"Balanced accuracy on {len(n)} tables",
            ("table", "training rows", *models),
            (
                *(
                    (Cell(name), number_of(int(size)), *stand_out(_fixed(line, 3)))
                    for name, size, line in lines
                ),
                (Cell("mean"), Cell(""), *stand_out(_fixed(means, 3))),
                (Cell("seconds of a fit"), Cell(""), *_fixed(geometric[models], 1)),
            ),
            caption="Seconds by the clock; geometric mean.",
        ),
        "large/versus": versus_grid(found, f"{CLASSIFIER} against each other model"),
    }


def ordinal_parts(findings: Findings) -> dict[str, Block]:
    """Return ordinal regression against its peers, by the two measures that matter."""
    parts: dict[str, Block] = {}
    for measure, (reference, higher, title) in {
        "mae": ("coco-median", False, "Mean absolute error in levels"),
        "balanced_accuracy": ("coco", True, "Balanced accuracy"),
    }.items():
        scores = findings.rows.groupby(["dataset", "model"])[measure].mean().unstack()
        others = [m for m in findings.spec["models"]["names"] if m != reference and m in scores]
        found = versus(scores, others, reference, higher_is_better=higher)
        parts[f"ordinal/{measure}"] = versus_grid(
            found, f"{title}: {reference} against each other model"
        )
    return parts


def full_size_parts(file: Path) -> dict[str, Block]:
    """Return ratios of errors of regression at 1,500 rows and at full size, on other splits.

    Parameters
    ----------
    file : Path
        Lines of JSON of ``bench/regression.py``.
    """
    rows = rows_of(file)
    lines = []
    for cap, some in rows.groupby("cap"):
        errors = some.pivot_table(index="table", columns="model", values="rmse")
        for peer in [m for m in errors.columns if m != REGRESSOR]:
            ratio = (errors[REGRESSOR] / errors[peer]).dropna()
            lines.append(
                (
                    Cell(f"{peer}, {cap:,}"),
                    number_of(len(ratio)),
                    fixed(float(np.exp(np.log(ratio).mean())), 3),
                    number_of(int((ratio < 1).sum())),
                    Cell(f"{ratio.min():.2f} ({ratio.idxmin()})"),
                    Cell(f"{ratio.max():.2f} ({ratio.idxmax()})"),
                )
            )
    return {
        "regression/full": Grid(
            "Other splits, at most 1,500 and at most 20,000 training rows",
            ("against, most rows", "tables", "geometric mean", "wins", "best", "worst"),
            tuple(lines),
            caption=f"Root mean squared error of {REGRESSOR}, mean over splits (two at 1,500 rows, "
            "one at 20,000), divided by that of the other model; below 1 it is better.",
        )
    }


def _fixed(values: Iterable[float], digits: int) -> list[Cell]:
    return [fixed(float(value), digits) for value in values]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def parts_of_numbers(findings: Findings, analysis: AccuracyAnalysis) -> Iterator[tuple[str, Block]]:
    """Yield ratios of the root mean squared error to that of each peer, and every table."""
    errors = analysis.scores.mask(analysis.partial)
    peers = [model for model in errors.columns if model != OF_NUMBERS]
    ratios = errors[[OF_NUMBERS]].to_numpy() / errors[peers]
    yield (
        f"{findings.name}/ratios",
        Grid(
            "Root mean squared error relative to each other model",
            ("against", "datasets", "geometric mean", "wins", "best", "worst"),
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
            caption=f"The error of {OF_NUMBERS} divided by that of the other model, means over "
            "folds; below 1 it is better. Wins count tables.",
        ),
    )
    mean = findings.rows.groupby(["model", "dataset"])[["relative_rmse", "coverage"]].mean()
    ours = mean.loc[OF_NUMBERS]
    yield (
        f"{findings.name}/tables",
        Grid(
            f"{OF_NUMBERS}, table by table",
            ("dataset", "relative RMSE", "coverage", *(f"relative to {p}" for p in peers)),
            tuple(
                (
                    Cell(dataset),
                    fixed(line["relative_rmse"], 3),
                    fixed(line["coverage"], 3),
                    *(fixed(value, 2) for value in ratios.loc[dataset]),
                )
                for dataset, line in ours.iterrows()
            ),
            caption="The relative RMSE is divided by that of predicting the mean of the training "
            "rows; coverage is the share of test rows within their 90 % interval.",
        ),
    )


def plain_parts(findings: Findings, file: Path) -> dict[str, Block]:
    """Return accuracy and log loss of models with the class shares of the data as priors.

    Parameters
    ----------
    findings : Findings
        With the peers, of which the same folds are taken.
    file : Path
        Lines of JSON of ``bench/empirical.py``.
    """
    ours = rows_of(file).query("model == 'default'")
    ours = ours.rename(columns={"table": "dataset", "log loss": "log_loss"})
    ours["model"] = EMPIRICAL
    rows = findings.rows[findings.rows["fold"].isin(ours["fold"].unique())]
    both = pd.concat([ours, rows[rows["model"].isin([*PLAIN, DEFAULT])]])
    by_table = both.groupby(["model", "dataset"])[["accuracy", "log_loss"]].mean()
    means = by_table.groupby("model").mean().sort_values("accuracy", ascending=False)
    columns = [
        stand_out([fixed(x, digits) for x in means[measure]], higher_is_better=higher)
        for measure, digits, higher in (("accuracy", 4, True), ("log_loss", 3, False))
    ]
    grid = Grid(
        "Accuracy without class weights",
        ("model", "accuracy", "log loss"),
        tuple((Cell(model), *cells) for model, *cells in zip(means.index, *columns, strict=True)),
        caption=f"Means over {ours['dataset'].nunique()} tables, of the first "
        f"{ours['fold'].nunique()} of ten folds.",
    )
    scores = by_table["accuracy"].unstack("model")
    others = [model for model in means.index if model != EMPIRICAL]
    return {
        "accuracy-lite/plain": grid,
        "accuracy-lite/plain-versus": versus_grid(
            versus(scores, others, EMPIRICAL), f"Accuracy: {EMPIRICAL} against each other model"
        ),
    }
