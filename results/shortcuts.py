"""What the shortcuts of a small benchmark do to its scores: one tuning, and few epochs."""

from collections.abc import Sequence

import pandas as pd

from cocoloss.benchmark.findings import Findings
from cocoloss.report.document import Cell, Grid, counted, fixed

UNTUNED = "coco-default"  # what is not tuned says how hard a fold is


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
            (Cell(name), counted(len(line)), _signed(line.mean()), _error(line))
            for name, line in lines.items()
        ),
        caption=f"Mean balanced accuracy of folds {others}, whose test rows are among those that "
        f"hyperparameters are tuned on, less that of fold 0, whose test rows are not; and less the "
        f"same of {UNTUNED}, which is not tuned. Above zero, tuning flatters. Means and standard "
        f"errors are over datasets; the last line over those that have all models.",
    )


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
                counted(len(pair)),
                fixed(pair["before"].mean(), 4),
                fixed(pair["after"].mean(), 4),
                _signed(gain.mean()),
                _error(gain),
                Cell(f"{gain.min():+.4f} to {gain.max():+.4f}"),
            )
        )
    columns = ("model", "datasets", *names, "difference", "standard error", "by dataset")
    return Grid(title, columns, tuple(rows), caption=caption)


def _error(values: pd.Series) -> Cell:
    """Return the standard error of a mean; a dash if there is one value only."""
    return fixed(float(values.std(ddof=1)) / len(values) ** 0.5, 4)


def _signed(value: float) -> Cell:
    return Cell(f"{value:+.4f}", float(value))


def _from_to(folds: Sequence[int]) -> str:
    return f"{folds[0]} to {folds[-1]}"
