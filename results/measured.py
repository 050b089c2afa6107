"""What bench/few_labels.py and bench/learnt_metric.py measured, as tables and pictures."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from cocoloss._checks import counted
from cocoloss.report.document import (
    MISSING,
    Block,
    Cell,
    Grid,
    Picture,
    fixed,
    number_of,
    signed,
    stand_out,
)
from cocoloss.report.figures import COLOURS, new_figure, tidy
from verdicts import AHEAD, versus

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCORE, LOSS = "balanced accuracy", "log loss"

# Few labels. What is compared with what: each way with the supervised fit of its kind.
SOFT, IGNORE, NETWORKS = "soft", "ignore", "networks, ignore"
OTHERS = ("self-training", "label spreading", "label propagation")  # scikit-learn's
GAINS = {way: (way, IGNORE) for way in (SOFT, "kernels, soft", *OTHERS)} | {
    "networks, soft": ("networks, soft", NETWORKS)
}
LEADS = {way: (SOFT, way) for way in (*OTHERS, NETWORKS)}
GROUPS = {False: "others", True: "chose"}  # whether "soft" was developed on a table

# The learnt metric.
KERNELS, TREES = "closed form", "LightGBM"
ORDER = (KERNELS, "closed form, no metric", "networks", TREES, "random forest")
OWN, SHUFFLED = "own", "by shuffling"
COMPARED = {  # what is set beside what: a model, and whose importances
    "closed form: own, shuffled": ((KERNELS, OWN), (KERNELS, SHUFFLED)),
    "LightGBM: own, shuffled": ((TREES, OWN), (TREES, SHUFFLED)),
    "own of the closed form, LightGBM shuffled": ((KERNELS, OWN), (TREES, SHUFFLED)),
    "own of LightGBM, closed form shuffled": ((TREES, OWN), (KERNELS, SHUFFLED)),
    "shuffled: closed form, LightGBM": ((KERNELS, SHUFFLED), (TREES, SHUFFLED)),
}
AGAIN = {  # one split beside the other
    "closed form: own, one split and the other": (KERNELS, OWN),
    "closed form: shuffled, one split and the other": (KERNELS, SHUFFLED),
    "LightGBM: own, one split and the other": (TREES, OWN),
    "LightGBM: shuffled, one split and the other": (TREES, SHUFFLED),
}
TOP = 3


def rows_of(file: Path) -> pd.DataFrame:
    """Return what a file with one line of JSON per measurement holds."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return pd.DataFrame([json.loads(line) for line in lines])


def few_label_parts(file: Path) -> dict[str, Block]:
    """Return what rows without a label give, by number of labels and way.

    Parameters
    ----------
    file : Path
        One line of JSON per table, number of labels, draw and way.
    """
    rows = rows_of(file)
    parts: dict[str, Block] = {}
    groups = {name: on_same_draws(rows[rows["chose"] == chose]) for chose, name in GROUPS.items()}
    for name, some in groups.items():
        scores = by_table(some)
        n_draws = counted(some["draw"].nunique(), "draw")
        parts |= {
            f"few-labels/means-{name}": _score_grid(some, SCORE, n_draws),
            f"few-labels/losses-{name}": _score_grid(some, LOSS, n_draws),
            f"few-labels/gains-{name}": _difference_grid(
                "Gain over the supervised fit",
                scores,
                GAINS,
                f"Balanced accuracy minus that of a fit to the labelled rows alone (of networks: "
                f'of "{NETWORKS}"), mean over {n_draws},',
            ),
            f"few-labels/leads-{name}": _difference_grid(
                f'Lead of "{SOFT}" over other methods',
                scores,
                LEADS,
                f"Balanced accuracy minus that of the method, mean over {n_draws},",
            ),
            f"few-labels/tables-{name}": _table_grid("Gain over the supervised fit", scores, GAINS),
            f"few-labels/leads-tables-{name}": _table_grid(f'Lead of "{SOFT}"', scores, LEADS),
        }
    gains = differences(by_table(groups["others"]), GAINS)
    parts["few-labels/gains"] = Picture(
        "few-labels-gains",
        "Gains over the supervised fit, table by table",
        lambda: _draw_gains(gains),
        caption="Gain of balanced accuracy over a fit to the labelled rows alone: a dot for each "
        "table, mean over draws; bars are means and their standard errors.",
    )
    return parts


def on_same_draws(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of those draws of which there is most: that every table and way has."""
    n = rows.groupby("draw").size()
    return rows[rows["draw"].isin(n.index[n == n.max()])]


def by_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean balanced accuracies over draws: a line for each number of labels and table."""
    return rows.pivot_table(index=["labels", "table"], columns="way", values=SCORE)


def differences(scores: pd.DataFrame, pairs: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """Return by how much one way is better than another, a column for each pair that there is."""
    found = {
        name: scores[way] - scores[other]
        for name, (way, other) in pairs.items()
        if way in scores and other in scores
    }
    return pd.DataFrame(found, index=scores.index).dropna(how="all")


def _score_grid(rows: pd.DataFrame, measure: str, n_draws: str) -> Grid:
    """Return the mean of a measure, of the ways that all tables have it of."""
    scores = rows.pivot_table(index=["labels", "table"], columns="way", values=measure)
    whole = rows.assign(there=rows[measure].notna()).groupby("way")["there"].all()
    ways = [way for way in (IGNORE, NETWORKS, *GAINS) if whole.get(way, default=False)]
    ways = [way for way in ways if scores[way].notna().all()]
    means, errors = (scores[ways].groupby(level="labels").agg(how) for how in ("mean", "sem"))
    columns = [
        stand_out(
            [_with_error(means.loc[n, way], errors.loc[n, way], 3) for way in ways],
            higher_is_better=measure == SCORE,
        )
        for n in means.index
    ]
    seconds = rows.groupby("way")["seconds"].median()
    return Grid(
        f"{measure.capitalize()}, {scores.index.unique('table').size} tables",
        ("method", *(f"{n} labels per class" for n in means.index), "seconds"),
        tuple(
            (Cell(way), *cells, fixed(seconds[way], 2))
            for way, *cells in zip(ways, *columns, strict=True)
        ),
        caption=f"Means over tables ± standard error, {n_draws} of rows and labels. Processor "
        "seconds of the median fit.",
    )


def _difference_grid(
    title: str, scores: pd.DataFrame, pairs: Mapping[str, tuple[str, str]], caption: str
) -> Grid:
    """Return means of differences, on how many tables they are above zero, and verdicts."""
    pairs = {name: pair for name, pair in pairs.items() if set(pair) <= set(scores.columns)}
    found = {n: versus(scores.loc[n], pairs) for n in scores.index.unique("labels")}
    columns = [
        part
        for n in found
        for part in (f"{n} labels per class", f"better at {n}", f"verdict at {n}")
    ]
    return Grid(
        f"{title}, {scores.index.unique('table').size} tables",
        ("method", *columns),
        tuple(
            (Cell(way), *(cell for of in found.values() for cell in _gained(of.loc[way])))
            for way in pairs
        ),
        caption=f"{caption} then over tables ± standard error. Verdicts by Wilcoxon's test over "
        f"tables at 0.05, Holm's correction for the {len(pairs)} comparisons of a column.",
    )


def _gained(line: pd.Series) -> tuple[Cell, Cell, Cell]:
    return (
        _with_error(line["difference"], line["error"], 3, sign=True),
        Cell(f"{line['wins']} of {line['n']}", float(line["wins"])),
        Cell(line["verdict"], best=line["verdict"] == AHEAD),
    )


def _table_grid(title: str, scores: pd.DataFrame, pairs: Mapping[str, tuple[str, str]]) -> Grid:
    """Return differences table by table, of the ways that all tables have."""
    lines = differences(scores, pairs).unstack("labels").dropna(axis=1)
    return Grid(
        f"{title}, table by table",
        ("table", *(f"{way}, {n}" for way, n in lines)),
        tuple((Cell(name), *(signed(x, 3) for x in line)) for name, line in lines.iterrows()),
        caption="Balanced accuracy, mean over draws, by the number of labels per class.",
    )


def _draw_gains(gains: pd.DataFrame) -> "Figure":
    figure = new_figure((7.2, 3.4))
    axes = figure.add_subplot()
    axes.axhline(0, color="0.6", lw=0.8, ls="--")
    labels = gains.index.unique("labels")
    for k, n in enumerate(labels):
        some = gains.loc[n]
        x = np.arange(some.shape[1]) + 0.24 * (k - (len(labels) - 1) / 2)
        axes.plot(x, some.T, "o", ms=3.5, mew=0, color=COLOURS[k], alpha=0.5)
        axes.errorbar(
            x,
            some.mean(),
            some.sem(),
            fmt="_",
            ms=11,
            mew=2,
            lw=1.5,
            color=COLOURS[k],
            label=f"{n} labels per class",
        )
    axes.set_xticks(range(gains.shape[1]), gains.columns)
    axes.set_ylabel("gain of balanced accuracy")
    tidy(axes, legend=True)
    return figure


def metric_parts(file: Path) -> dict[str, Block]:
    """Return what importances agree on, and what columns of noise cost.

    Parameters
    ----------
    file : Path
        One line of JSON per table, number of added columns, split and model.
    """
    rows = rows_of(file)
    rows = rows.sort_values("model", key=lambda names: names.map(ORDER.index), kind="stable")
    said = complete(rows.dropna(subset=[OWN]))
    n_added = rows.groupby("table")["added"].nunique()
    curves = complete(rows[rows["table"].isin(n_added.index[n_added > 1])])
    as_it_is = complete(rows[~rows["table"].isin({*said["table"], *curves["table"]})])
    measures = {SCORE: 3, LOSS: 3, "fit seconds": 1}
    parts: dict[str, Block] = {
        f"learnt-metric/noise-{measure.replace(' ', '-')}": _curve_grid(curves, measure, digits)
        for measure, digits in measures.items()
    }
    parts |= importance_grids(said)
    parts["learnt-metric/noise-tables"] = _ends_grid(curves)
    shares = curves.dropna(subset=["share of noise"])
    parts["learnt-metric/share-of-noise"] = _curve_grid(shares, "share of noise", 2)
    parts["learnt-metric/as-it-is"] = _model_grid(as_it_is, measures)
    parts["learnt-metric/curves"] = Picture(
        "learnt-metric-noise",
        "Scores over added columns of noise",
        lambda: _draw_curves(curves, as_it_is),
        caption=f"Left and middle: means over {curves['table'].nunique()} tables. Right: "
        f"{', '.join(as_it_is['table'].unique())} as it is, a dot for each "
        "split.",
    )
    return parts


def complete(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of added columns that a split has of all, and of splits with all of these."""
    everything = len(rows[["table", "model"]].drop_duplicates())
    done = rows.groupby(["split", "added"]).size().unstack("added") == everything
    done = done.loc[:, done.any()]
    splits = done.index[done.all(axis=1)]
    if splits.empty:  # the first has come furthest
        splits, done = done.index[:1], done.loc[:, done.iloc[0]]
    kept = rows["added"].isin(done.columns) & rows["split"].isin(splits)
    return rows[kept].sort_values("added", kind="stable")


def importance_grids(said: pd.DataFrame) -> dict[str, Grid]:
    """Return how alike importances rank columns, and how many of the first three they share.

    Parameters
    ----------
    said : DataFrame
        A line for each table, split and model, with lists of importances.
    """
    found: dict[tuple[str, int], dict[tuple[str, str], Sequence[float]]] = {}
    for line in said.to_dict("records"):
        both = {(line["model"], whose): line[whose] for whose in (OWN, SHUFFLED)}
        found.setdefault((line["table"], line["split"]), {}).update(both)
    alike = {
        (name, *key): _alike(of[one], of[other])
        for key, of in found.items()
        for name, (one, other) in COMPARED.items()
    }
    alike |= {
        (name, table, 0): _alike(found[table, 0][one], found[table, 1][one])
        for table in said["table"].unique()
        for name, one in AGAIN.items()
        if (table, 1) in found
    }
    index = pd.MultiIndex.from_tuples(alike, names=["compared", "table", "split"])
    table = pd.DataFrame(list(alike.values()), index, columns=["correlation", "shared"])
    means = table.groupby(level=["compared", "table"], sort=False).mean()
    n_columns = said.groupby("table")["columns"].first()
    seconds = said.groupby("model", sort=False)[["fit seconds", "shuffling seconds"]].mean()
    return {
        "learnt-metric/importance-seconds": Grid(
            "Seconds of a fit, and of its permutation importances",
            ("model", *seconds),
            tuple((Cell(name), *(fixed(x, 1) for x in line)) for name, line in seconds.iterrows()),
        ),
        "learnt-metric/importances": Grid(
            f"How alike importances are, {len(n_columns)} tables",
            ("compared", "rank correlation", "least of a table", f"shared of the top {TOP}"),
            tuple(
                (
                    Cell(name),
                    _with_error(of["correlation"].mean(), of["correlation"].sem(), 2),
                    fixed(of["correlation"].min(), 2),
                    _with_error(of["shared"].mean(), of["shared"].sem(), 2),
                )
                for name, of in means.groupby(level="compared", sort=False)
            ),
            caption="Spearman's correlation over the columns of a table, mean over splits, then "
            "over tables ± standard error.",
        ),
        "learnt-metric/importances-tables": Grid(
            "Rank correlations table by table",
            ("table", "columns", *COMPARED),
            tuple(
                (
                    Cell(name),
                    number_of(int(n)),
                    *(fixed(means.loc[(how, name), "correlation"], 2) for how in COMPARED),
                )
                for name, n in n_columns.items()
            ),
        ),
    }


def _alike(one: Sequence[float], other: Sequence[float]) -> tuple[float, int]:
    """Return the rank correlation of importances, and how many of the first three are the same."""
    first, second = (set(np.argsort(each, kind="stable")[-TOP:]) for each in (one, other))
    return float(spearmanr(one, other).statistic), len(first & second)


def _curve_grid(rows: pd.DataFrame, measure: str, digits: int) -> Grid:
    """Return the mean of a measure over added columns, and what the most of them change."""
    by_table = rows.groupby(["model", "table", "added"], sort=False)[measure].mean().unstack()
    of_models = by_table.groupby(level="model", sort=False)
    means = of_models.mean()
    heads = ["model", *map(str, means.columns)]
    higher = measure == SCORE
    columns = [
        stand_out([fixed(value, digits) for value in means[n]], higher_is_better=higher)
        for n in means
    ]
    if 0 in means:
        most = means.columns[-1]
        change = (by_table[most] - by_table[0]).groupby(level="model")
        heads.append(f"0 to {most}")
        columns.append(
            [
                _with_error(change.mean()[model], change.sem()[model], digits, sign=True)
                for model in means.index
            ]
        )
    return Grid(
        f"{measure.capitalize()}, mean over {rows['table'].nunique()} tables",
        tuple(heads),
        tuple((Cell(model), *cells) for model, *cells in zip(means.index, *columns, strict=True)),
        caption=f"By the number of added columns; {counted(rows['split'].nunique(), 'split')}."
        + " The last column is the change, ± standard error over tables." * (0 in means),
    )


def _ends_grid(rows: pd.DataFrame) -> Grid:
    """Return the scores of each table without noise and with most of it."""
    by_table = rows.groupby(["table", "model", "added"], sort=False)[SCORE].mean()
    ends = by_table.unstack("added")
    first, last = ends.columns[[0, -1]]
    models = list(rows["model"].unique())
    return Grid(
        f"Balanced accuracy without added columns, and with {last}",
        ("table", *models),
        tuple(
            (Cell(table), *(_from_to(*ends.loc[(table, m), [first, last]]) for m in models))
            for table in rows["table"].unique()
        ),
    )


def _model_grid(rows: pd.DataFrame, measures: Mapping[str, int]) -> Grid:
    """Return the means of several measures, a line for each model."""
    means = rows.groupby("model", sort=False)[list(measures)].mean()
    columns = [
        stand_out(
            [fixed(value, digits) for value in means[measure]],
            higher_is_better=measure == SCORE,
        )
        for measure, digits in measures.items()
    ]
    names = ", ".join(rows["table"].unique())
    return Grid(
        f"{names}, {rows['columns'].max()} columns, {counted(rows['split'].nunique(), 'split')}",
        ("model", *measures),
        tuple((Cell(name), *cells) for name, *cells in zip(means.index, *columns, strict=True)),
    )


def _draw_curves(rows: pd.DataFrame, as_it_is: pd.DataFrame) -> "Figure":
    figure = new_figure((8.4, 3.4))
    left, middle, right = figure.subplots(1, 3, width_ratios=[3, 3, 2])
    models = list(rows["model"].unique())
    for axes, measure in ((left, SCORE), (middle, LOSS)):
        means = rows.groupby(["model", "added", "table"])[measure].mean()
        means = means.groupby(level=["model", "added"]).mean().unstack("added")
        places = range(means.shape[1])
        for k, model in enumerate(models):
            axes.plot(places, means.loc[model], "o-", ms=4, lw=1.4, color=COLOURS[k], label=model)
        axes.set_xticks(places, means.columns)
        axes.set_xlabel("columns of noise added")
        axes.set_ylabel(measure)
        tidy(axes, legend=axes is left)
    for k, model in enumerate(models):
        scores = as_it_is.loc[as_it_is["model"] == model, SCORE]
        right.plot([k] * len(scores), scores, "o", ms=4, color=COLOURS[k], alpha=0.6)
        right.plot(k, scores.mean(), "_", ms=14, mew=2, color=COLOURS[k])
    right.set_xticks(range(len(models)), [""] * len(models))
    right.set_xlim(-0.7, len(models) - 0.3)
    right.set_xlabel(", ".join(as_it_is["table"].unique()))
    tidy(right)
    return figure


def _from_to(first: float, last: float) -> Cell:
    return Cell(f"{first:.3f} to {last:.3f}", last - first)


def _with_error(mean: float, error: float, digits: int, *, sign: bool = False) -> Cell:
    """Return a mean with its standard error."""
    cell = signed(mean, digits) if sign else fixed(mean, digits)
    spread = MISSING if np.isnan(error) else f"{error:.{digits}f}"
    return replace(cell, text=f"{cell.text} ± {spread}")
