"""Two runs side by side: what shortcuts do to scores, and how noisy scores are; rows of bench/."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from cocoloss.benchmark.analysis import Findings
from cocoloss.benchmark.evaluation import NAMES
from cocoloss.fitting.objective import BALANCED_FROM
from cocoloss.report.document import (
    MISSING,
    Block,
    Cell,
    Grid,
    Items,
    fixed,
    number_of,
    signed,
    stand_out,
)
from verdicts import versus

PLAIN, BALANCED = "coco-plain", "coco-balanced"
AGAIN = "coco"  # plain below a class ratio of 3, balanced from it on
UNTUNED = "coco-networks"  # what is not tuned says how hard a fold is


def tuning_grid(first: Findings, each: Findings) -> Grid:
    """Return what tuning in every outer fold gives beside tuning in the first.

    The first fold is left out: both tune it on the same rows with the same random numbers.
    """
    folds = range(1, each.spec["folds"]["outer"])
    return _side_by_side(
        first,
        each,
        folds,
        title="Tuned on the first outer fold, and on each",
        names=("on the first", "on each"),
        caption=f"Mean balanced accuracy over outer folds {_from_to(folds)}, then over datasets. "
        f"Fold 0 is tuned alike in both. The standard error is that of the difference, over "
        f"datasets.",
    )


def epochs_grid(few: Findings, many: Findings) -> Grid:
    """Return what more epochs of training give, over all folds."""
    epochs = [findings.spec["training"]["epochs"] for findings in (few, many)]
    return _side_by_side(
        few,
        many,
        range(many.spec["folds"]["outer"]),
        title=f"Trained for {epochs[0]:,} epochs, and for {epochs[1]:,}",
        names=(f"{epochs[0]:,} epochs", f"{epochs[1]:,} epochs"),
        caption="Mean balanced accuracy over the outer folds, then over datasets. The standard "
        "error is that of the difference, over datasets.",
    )


def optimism_grid(findings: Findings) -> Grid | None:
    """Return by how much tuning on the first outer fold flatters the others.

    Its training rows hold the test rows of all other folds, which so have a say in the
    hyperparameters; its own test rows have none. How hard the first fold happens to be is seen by
    a model that is not tuned, and taken off.

    Returns
    -------
    Grid or None
        None if every fold is tuned by its own rows, or if there is no untuned model, or no other.
    """
    scores = fold_scores(findings)
    leads = (scores.drop(columns=0).mean(axis=1) - scores[0]).unstack("model")
    tuned = findings.rows.reindex(columns=["model", "inner_score"]).dropna()["model"].unique()
    models = [m for m in findings.spec["models"]["names"] if m in tuned and m in leads.columns]
    if findings.spec["tuning"]["mode"] != "first" or UNTUNED not in leads.columns:
        return None
    gains = leads[models].sub(leads[UNTUNED], axis=0).dropna(axis=1, how="all")
    if gains.empty:
        return None
    lines = {model: gains[model].dropna() for model in gains.columns}
    lines["mean of all"] = gains.dropna().mean(axis=1)
    others = _from_to(list(scores.columns)[1:])
    return Grid(
        "Does tuning on the first outer fold flatter the others?",
        ("model", "datasets", f"folds {others} less fold 0", "standard error"),
        tuple(
            (Cell(name), number_of(len(line)), signed(line.mean(), 4), _error(line))
            for name, line in lines.items()
        ),
        caption=f"Mean balanced accuracy of folds {others}, whose test rows are among those that "
        f"hyperparameters are tuned on, less that of fold 0, whose test rows are not; and less the "
        f"same of {UNTUNED}, which is not tuned. Above zero, tuning flatters. Means and standard "
        f"errors are over datasets; the last line over those that have all models.",
    )


def noise_grid(accuracy: Findings, imbalance: Findings) -> Grid:
    """Return how much the scores of CoCo differ between two experiments that run it alike.

    The folds are the same; the points of the tuning, the first weights and the batches are drawn
    anew.
    """
    again, first = (
        fold_scores(findings).mean(axis=1).unstack("model") for findings in (accuracy, imbalance)
    )
    first = first.reindex(columns=[PLAIN, BALANCED])
    rows = imbalance.rows.reindex(columns=["dataset", "class_ratio"])
    ratios = rows.groupby("dataset")["class_ratio"].first().reindex(first.index)
    same = first[PLAIN].where(ratios < BALANCED_FROM, first[BALANCED])
    apart = again.reindex(index=first.index, columns=[AGAIN])[AGAIN] - same
    groups = {
        f"below {BALANCED_FROM}: {PLAIN}": apart[ratios < BALANCED_FROM],
        f"{BALANCED_FROM} or more: {BALANCED}": apart[ratios >= BALANCED_FROM],
        "all": apart[ratios.notna()],
    }
    return Grid(
        "Two runs of the same model",
        (
            "class ratio",
            "datasets",
            "mean difference",
            "standard deviation",
            "mean absolute difference",
        ),
        tuple((Cell(label), *_cells(group.dropna())) for label, group in groups.items()),
        caption=f"{AGAIN} of {accuracy.name} minus the model of {imbalance.name} that it is the "
        f"same as: balanced accuracy, mean over the same outer folds, with random numbers of its "
        f"own for tuning and training. Means and the standard deviation are over datasets.",
    )


def untuned_grids(file: Path) -> dict[str, Grid]:
    """Return means, leads and memory of the models that ``bench/tables.py`` fits without tuning.

    Parameters
    ----------
    file : Path
        One line of JSON per table, model and fold.
    """
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    measures = ["balanced accuracy", "log loss", "fit seconds", "fit megabytes"]
    table = pd.DataFrame(lines).groupby(["table", "model"])[measures].mean().unstack()
    scores = table["balanced accuracy"].dropna().round(12)  # ties are ties in the last digit, too
    table = table.loc[scores.index]
    means = table.mean().unstack(level=0)
    means["average rank"] = scores.rank(axis=1, ascending=False).mean()
    means = means.sort_values("average rank")
    digits = {"average rank": 2, "balanced accuracy": 4, "log loss": 3}
    columns = [[fixed(value, places) for value in means[name]] for name, places in digits.items()]
    columns.append([fixed(value, 1) for value in means["fit seconds"]])
    for k, higher in ((0, False), (1, True), (2, False)):
        columns[k] = stand_out(columns[k], higher_is_better=higher)
    peers = [model for model in scores.columns if not model.startswith("coco")]
    over = {peer: scores["coco"] - scores[peer] for peer in peers}
    best = scores["coco"] - scores[peers].max(axis=1)
    found = versus(scores, peers, "coco")["verdict"]
    megabytes = table["fit megabytes"]
    return {
        "means": Grid(
            f"Means over {len(scores)} tables",
            ("model", *digits, "seconds a fit"),
            tuple((Cell(m), *cells) for m, *cells in zip(means.index, *columns, strict=True)),
        ),
        "leads": Grid(
            "coco against each other model",
            (
                *("against", "won", "tied", "lost", "mean lead in percentage points"),
                *("median lead", "verdict"),
            ),
            tuple(
                (Cell(name), *_won(lead), Cell(found.get(name, MISSING)))
                for name, lead in (over | {"the best of them": best}).items()
            ),
            caption="Verdicts by Wilcoxon's test over tables at 0.05, Holm's correction for "
            f"{len(peers)} comparisons.",
        ),
        "extremes": Grid(
            "coco against the best other model",
            ("table", "lead in percentage points"),
            tuple((Cell(name), signed(100 * x, 1)) for name, x in best.sort_values().items()),
        ),
        "memory": Grid(
            "Megabytes of a fit",
            ("model", "median table", "largest table"),
            tuple(
                (Cell(m), fixed(megabytes[m].median(), 0), fixed(megabytes[m].max(), 0))
                for m in megabytes
            ),
        ),
    }


def demo_parts(file: Path) -> dict[str, Block]:
    """Return what ``cocoloss demo --json`` printed: scores of each data set, and its last lines.

    Parameters
    ----------
    file : Path
        What it printed.
    """
    found = json.loads(file.read_text(encoding="utf-8"))
    kinds = {"balanced_accuracy": True, "log_loss": False}  # measure -> higher is better
    columns, cells = [], []
    for name, of_table in found.items():
        for measure, higher in kinds.items():
            values = [fixed(model[measure] or math.nan, 4) for model in of_table["models"]]
            cells.append(stand_out(values, higher_is_better=higher))
            columns.append(name if measure == "balanced_accuracy" else f"{name}, log loss")
    models = [NAMES[model["model"]] for model in next(iter(found.values()))["models"]]
    return {
        "tables": Grid(
            "Balanced accuracy and log loss",
            ("model", *columns),
            tuple((Cell(model), *line) for model, *line in zip(models, *cells, strict=True)),
            caption="Means of ten folds; all with default settings and class weights.",
        ),
        "verdicts": Items(
            tuple(f"{name}: {of_table['verdict']}" for name, of_table in found.items())
        ),
    }


def _won(lead: pd.Series) -> tuple[Cell, ...]:
    counts = (number_of(int(which.sum())) for which in (lead > 0, lead == 0, lead < 0))
    return (*counts, signed(100 * lead.mean(), 1), signed(100 * lead.median(), 1))


def fold_scores(findings: Findings) -> pd.DataFrame:
    """Return balanced accuracies: a line per dataset and model with all folds, a column per fold.

    Parameters
    ----------
    findings : Findings
        With one line per dataset, model and fold.
    """
    keys = ["dataset", "model", "fold"]
    rows = findings.rows.reindex(columns=[*keys, "balanced_accuracy"])
    table = rows.set_index(keys)["balanced_accuracy"].unstack("fold")
    return table.reindex(columns=range(findings.spec["folds"]["outer"])).dropna().astype(float)


def _side_by_side(
    one: Findings,
    other: Findings,
    folds: Sequence[int],
    *,
    title: str,
    names: tuple[str, str],
    caption: str,
) -> Grid:
    """Return the means of two benchmarks on the datasets that both have all folds of."""
    before, after = (
        fold_scores(findings)[list(folds)].mean(axis=1).unstack("model")
        for findings in (one, other)
    )
    rows = []
    for model in other.spec["models"]["names"]:
        if model not in before.columns or model not in after.columns:
            continue
        pair = pd.DataFrame({"before": before[model], "after": after[model]}).dropna()
        if not len(pair):
            continue
        gain = pair["after"] - pair["before"]
        rows.append(
            (
                Cell(model),
                number_of(len(pair)),
                fixed(pair["before"].mean(), 4),
                fixed(pair["after"].mean(), 4),
                signed(gain.mean(), 4),
                _error(gain),
                Cell(f"{gain.min():+.4f} to {gain.max():+.4f}"),
            )
        )
    columns = ("model", "datasets", *names, "difference", "standard error", "by dataset")
    return Grid(title, columns, tuple(rows), caption=caption)


def _error(values: pd.Series) -> Cell:
    """Return the standard error of a mean; a dash if there is one value only."""
    return fixed(float(values.std(ddof=1)) / len(values) ** 0.5, 4)


def _from_to(folds: Sequence[int]) -> str:
    return f"{folds[0]} to {folds[-1]}"


def _cells(apart: pd.Series) -> tuple[Cell, ...]:
    """Return the number of differences, their mean, standard deviation and mean absolute value."""
    return (
        number_of(len(apart)),
        signed(apart.mean(), 4),
        fixed(float(apart.std(ddof=1)), 4),
        fixed(float(apart.abs().mean()), 4),
    )
