"""What models cost: quality over seconds, and how seconds and memory grow; rows of bench/."""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cocoloss.benchmark.analysis import Findings
from cocoloss.benchmark.tasks import OK
from cocoloss.report.document import Block, Cell, Grid, Picture, brief, fixed, number_of, stand_out
from cocoloss.report.figures import COLOURS, new_figure
from measured import rows_of
from verdicts import listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = {  # what pictures call models; others keep their names
    "coco-default": "CoCoClassifier()",
    "coco-kernel": "closed form alone",
    "coco-networks": "six CoCo networks",
    "coco-w": "CoCo network",
    "ce-w": "cross-entropy",
    "dr-w": "dot regression",
    "ksvm-w": "kernel SVM",
    "rf-w": "random forest",
    "hgb-w": "HistGradientBoosting",
    "hgb-raw-w": "HistGradientBoosting",
    "lightgbm-w": "LightGBM",
    "lightgbm-default": "LightGBM",
    "catboost-w": "CatBoost",
    "catboost-default": "CatBoost",
}
NOT_DRAWN = "coco-kernel"  # on these tables it is coco-default, but for random numbers
OURS = "coco"  # how the names of our models begin
SHARE = 0.9  # of the tables that a model must have, or it is left out rather than the tables
FEWEST_OF_SIZE = 3  # tables of a class that is drawn
SIZES = {"up to 5,000": 5_000, "5,000 to 15,000": 15_000, "more than 15,000": np.inf}
BLUE, GREY = COLOURS[0], "0.35"
WIDTH, FONT_SIZE = 6.0, 10.5  # inches, points
Box = tuple[float, float, float, float]  # left, low, right, high
HEIGHTS = (0.5, 0.0, 1.0)  # of a name that is below its point, beside it
SHIFTS = (0.5, 0.2, 0.8, 0.0, 1.0)  # of a name that is left of its point, above or below it
OUTSIDE, LESS_NICE = 9.0, 0.01  # what weighs so much as covering something
ORDERS, ROUNDS = 20, 4

# What grows in bench/scaling.py; slopes are taken from this size on: below, what is fixed shows.
AXES = {"rows": 10_000, "columns": 100, "classes": 10}
CONTENDERS = {
    "CoCoClassifier()": (COLOURS[0], "o"),
    "LightGBM": (COLOURS[1], "s"),
    "HistGradientBoosting": (COLOURS[2], "^"),
}
# Measures: what a table calls them, and decimal places
FITS = {"fit seconds": ("s", 2), "fit megabytes": ("MB", 0)}
ANSWERS = {
    "predict seconds": ("s", 2),
    "predict megabytes": ("MB", 0),
    "balanced accuracy": ("BA", 3),
}
TICKS = {
    "rows": {1_000: "1k", 10_000: "10k", 100_000: "100k", 1_000_000: "1M"},
    "columns": {10: "10", 100: "100", 1_000: "1,000"},
    "classes": {2: "2", 5: "5", 10: "10", 30: "30", 100: "100"},
}
UNITS = {"s": "seconds of a fit", "MB": "megabytes of a fit"}
LEAST = {"fit megabytes": 1.0}  # that can be told from nothing


def cost_parts(found: dict[str, Findings], measured: Path) -> dict[str, Block]:
    """Return what can be shown of costs, by name, of benchmarks and of the folder of bench/."""
    parts: dict[str, Block] = {
        f"scaling/{name}": block
        for name, block in scaling_parts(measured / "scaling.jsonl").items()
    }
    if "accuracy-lite" in found:
        costs = costs_of_one_table(found["accuracy-lite"], measured / "seconds.jsonl")
        if costs is not None:
            parts |= {
                "accuracy-lite/quality-over-seconds": over_seconds_picture(costs),
                "accuracy-lite/costs": costs_grid(costs),
            }
    if "accuracy-large" in found:
        by_size, notes = costs_by_size(found["accuracy-large"])
        if by_size:
            parts["accuracy-large/quality-over-seconds"] = by_size_picture(by_size, notes)
    return parts


# Quality over seconds.


def costs_of_one_table(findings: Findings, file: Path) -> pd.DataFrame | None:
    """Return quality and seconds of models: a line each, with ``n_tables`` among its attributes.

    Parameters
    ----------
    findings : Findings
        Whose balanced accuracies are taken, and how often a model was fitted to be tuned.
    file : Path
        Lines of JSON of ``bench/seconds.py``: seconds of one fit, per table and model.

    Returns
    -------
    DataFrame or None
        "quality", the mean over the tables that all these models have; "fit", the geometric mean
        of the seconds of one fit over those that were measured for all; "fits", the mean number
        of fits before it; and "seconds", the geometric mean of what all of them take. None if
        there are fewer than two models.
    """
    fits = rows_of(file).pivot(index="table", columns="model", values="fit seconds")
    quality, left_out = comparable(finished(findings)["balanced_accuracy"])
    models = [model for model in NAMES if model in quality and model in fits]
    if len(models) < 2:
        return None
    fits = fits[models].dropna()
    trials = findings.units.pivot(index="dataset", columns="model", values="n_trials")
    before = (trials * findings.spec["folds"]["inner"]).loc[fits.index, models]
    costs = pd.DataFrame(
        {
            "quality": quality[models].mean(),
            "fit": geometric_mean(fits),
            "fits": before.mean(),
            "seconds": geometric_mean(fits * (1 + before)),
        }
    )
    costs.attrs = {"n_tables": len(quality), "n_timed": len(fits), "left_out": left_out}
    return costs


def costs_by_size(findings: Findings) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Return quality and seconds of untuned models for each class of tables by training rows.

    Seconds are those of the rows: on one thread, as the spec has it. Only tables that all models
    have are counted; a class with fewer than three of them is left out.

    Returns
    -------
    dict of str to DataFrame
        By the name of the class: "quality" and "seconds" of each model, and ``n_tables``.
    list of str
        Sentences on tables and classes that are left out.
    """
    outer, means = findings.spec["folds"]["outer"], finished(findings)
    n_train = findings.characters["n_rows"].reindex(means.index) * (outer - 1) / outer
    models = [model for model in NAMES if model in means["balanced_accuracy"]]
    found, notes, least = {}, [], 0.0
    for name, most in SIZES.items():
        of_size = means[(n_train > least) & (n_train <= most)]
        least = most
        scores = of_size["balanced_accuracy"].reindex(columns=models)
        quality = scores.dropna()
        lacking = scores.index.difference(quality.index)
        left_out = f" ({listed(list(lacking))}: a model is missing)" if len(lacking) else ""
        if len(quality) < FEWEST_OF_SIZE or len(models) < 2:
            n = "one table has" if len(quality) == 1 else f"{len(quality)} tables have"
            notes.append(f"{name.capitalize()} rows: not drawn, {n} all models{left_out}.")
            continue
        if left_out:
            notes.append(f"{name.capitalize()} rows: some tables are left out{left_out}.")
        seconds = geometric_mean(of_size["seconds"].loc[quality.index, models])
        costs = pd.DataFrame({"quality": quality.mean(), "seconds": seconds})
        costs["fit"], costs["fits"] = costs["seconds"], 0.0
        costs.attrs = {"n_tables": len(quality)}
        found[name] = costs
    return found, notes


def finished(findings: Findings) -> pd.DataFrame:
    """Return means over folds, (measure, model) by table; NaN where a model lacks one.

    "seconds" are those of the processor, but for rows that were made before these were kept.
    """
    keys = ["dataset", "model"]
    units = findings.units[findings.units["status"] == OK]
    rows = findings.rows.merge(units[keys], on=keys)
    rows = rows.reindex(columns=[*keys, "balanced_accuracy", "processor_seconds", "fit_seconds"])
    rows["seconds"] = rows["processor_seconds"].fillna(rows["fit_seconds"])
    return rows.groupby(keys)[["balanced_accuracy", "seconds"]].mean().unstack("model")


def comparable(scores: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the tables that all models have, and which models had too few and were left out."""
    begun = scores.dropna(axis=1, how="all")
    enough = begun.notna().mean() >= SHARE
    return begun.loc[:, enough].dropna(), list(begun.columns[~enough])


def geometric_mean(values: pd.DataFrame) -> pd.Series:
    """Return the geometric mean of each column."""
    return np.exp(np.log(values).mean())


def over_seconds_picture(costs: pd.DataFrame) -> Picture:
    """Return the picture of models that may be tuned: quality over what one table takes."""
    n_tables, n_timed = costs.attrs["n_tables"], costs.attrs["n_timed"]
    drawn = costs.drop(index=NOT_DRAWN, errors="ignore")
    where = f"{n_tables} tables of OpenML-CC18"
    timed = "" if n_timed == n_tables else f" over {n_timed} of them, all but the slowest"
    return Picture(
        "quality-over-seconds",
        "Quality over seconds",
        lambda: draw_over_seconds({"": drawn}, "processor seconds to tune and fit one table"),
        caption=f"Mean balanced accuracy over {where}, cut to 1,000 rows, over processor seconds "
        f"to tune and fit one table (geometric mean{timed}, one thread). A tuned model takes its "
        f"trials times the inner folds times the fit that was measured, and then that fit; all "
        f"are class-weighted. {_without(costs)}".rstrip(),
        label=f"Balanced accuracy over seconds of {len(drawn)} models on {where}",
    )


def by_size_picture(by_size: dict[str, pd.DataFrame], notes: Sequence[str]) -> Picture:
    """Return the picture of untuned models on large tables, a panel for each class of sizes."""
    panels = {
        f"{name} training rows: {costs.attrs['n_tables']} tables": costs
        for name, costs in by_size.items()
    }
    return Picture(
        "quality-over-seconds-large",
        "Quality over seconds on larger tables",
        lambda: draw_over_seconds(panels, "processor seconds of a fit"),
        caption="Mean balanced accuracy over processor seconds of a fit (geometric mean, one "
        "thread), one split of each table, all models untuned and class-weighted. "
        + " ".join(notes),
    )


def _without(costs: pd.DataFrame) -> str:
    names = [NAMES[name] for name in costs.attrs["left_out"] if name in NAMES]
    said = f"Left out, with more than a tenth of the tables missing: {', '.join(names)}."
    return said if names else ""


def costs_grid(costs: pd.DataFrame) -> Grid:
    """Return the numbers of the picture."""
    costs = costs.sort_values("quality", ascending=False)
    quality = stand_out([fixed(value, 3) for value in costs["quality"]])
    return Grid(
        "Quality and seconds of one table",
        ("model", "balanced accuracy", "seconds of one fit", "fits to tune", "seconds in all"),
        tuple(
            (
                Cell(f"{NAMES[name]} ({name})"),
                score,
                brief(line["fit"]),
                number_of(round(line["fits"])),
                brief(line["seconds"]),
            )
            for (name, line), score in zip(costs.iterrows(), quality, strict=True)
        ),
        caption=f"Balanced accuracy: mean over {costs.attrs['n_tables']} tables; seconds: "
        f"geometric means over {costs.attrs['n_timed']} of them, of the processor, on one thread.",
    )


def draw_over_seconds(panels: dict[str, pd.DataFrame], x_label: str) -> "Figure":
    """Draw quality over seconds, a panel under the other, with a name beside every point."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - as new_figure has it

    height = 4.3 if len(panels) == 1 else 0.5 + 2.5 * len(panels)
    figure = new_figure((WIDTH, height))
    all_axes = figure.subplots(len(panels), sharex=True, squeeze=False)[:, 0]
    for axes, (title, costs) in zip(all_axes, panels.items(), strict=True):
        for model, line in costs.iterrows():
            colour = BLUE if str(model).startswith(OURS) else GREY
            look = {"marker": "D", "ms": 6, "mfc": "white"} if line["fits"] else {"marker": "o"}
            axes.plot(
                line["seconds"], line["quality"], color=colour, **{"ms": 8, "mew": 1.6} | look
            )
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.margins(y=0.12)
        axes.yaxis.set_major_locator(MaxNLocator(6))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="0.93", lw=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(labelsize=FONT_SIZE - 1)
        axes.set_ylabel("balanced accuracy", fontsize=FONT_SIZE)
        axes.set_title(title, fontsize=FONT_SIZE, loc="left")
        if costs["fits"].any():
            for marker, face, label in (("o", "k", "untuned"), ("D", "w", "tuned")):
                axes.plot([], [], marker, mfc=face, mec="k", ms=6, mew=1.2, label=label)
            axes.legend(frameon=False, fontsize=FONT_SIZE - 1, handletextpad=0.2, loc="lower left")
    everything = pd.concat(panels.values())
    least, most = everything["seconds"].min(), everything["seconds"].max()
    span = most / least
    all_axes[-1].set_xlim(least / span**0.08, most * span**0.3)  # with room for names
    all_axes[-1].set_xlabel(x_label, fontsize=FONT_SIZE)
    figure.draw_without_rendering()  # from here on points have their places
    figure.set_layout_engine("none")
    for axes, costs in zip(all_axes, panels.values(), strict=True):
        name_points(axes, costs)
    return figure


def name_points(axes: Any, costs: pd.DataFrame) -> None:
    """Write the name of each model beside its point, where it covers least."""
    points = 72 / axes.figure.dpi  # of a pixel
    room = 6.5 / points  # that a point takes to each side
    ends = axes.transData.transform(costs[["seconds", "quality"]].to_numpy(float))
    taken = [(x - room, y - room, x + room, y + room) for x, y in ends]
    if axes.get_legend() is not None:
        taken.append(tuple(axes.get_legend().get_window_extent().extents))
    texts = [
        axes.annotate(
            NAMES.get(model, model),
            costs.loc[model, ["seconds", "quality"]],
            (0, 0),
            textcoords="offset points",
            va="bottom",
            fontsize=FONT_SIZE,
            color=BLUE if model.startswith(OURS) else "0.2",
            fontweight="bold" if model == "coco-default" else "normal",
        )
        for model in costs.index
    ]
    sizes = [text.get_window_extent().size for text in texts]
    boxes = places_beside(ends, sizes, taken, axes.get_window_extent().extents, room)
    for text, (x, y), box in zip(texts, ends, boxes, strict=True):
        text.set_position((points * (box[0] - x), points * (box[1] - y)))


def places_beside(
    points: NDArray[np.float64],
    sizes: Sequence[tuple[float, float]],
    taken: Sequence[Box],
    panel: Box,
    room: float,
) -> list[Box]:
    """Return a box beside each point, so that they cover each other and what is taken least.

    In some order each takes the best of its places, given those of the others, a few times over;
    the best of several orders counts. The first places are the nicest.
    """
    choices = []
    for (x, y), (w, h) in zip(points, sizes, strict=True):
        corners = [(left, y - up * h) for up in HEIGHTS for left in (x + room, x - room - w)]
        corners += [(x - left * w, y + up) for left in SHIFTS for up in (room, -room - h)]
        choices.append([(left, low, left + w, low + h) for left, low in corners])

    def costs_of(k: int, boxes: list[Box]) -> list[float]:
        others = [*taken, *boxes[:k], *boxes[k + 1 :]]
        return [
            sum(_shared(box, other) for other in others)
            + OUTSIDE * (_shared(box, box) - _shared(box, panel))
            + LESS_NICE * place * _shared(box, box)
            for place, box in enumerate(choices[k])
        ]

    best, least, rng = [of_point[0] for of_point in choices], np.inf, np.random.default_rng(0)
    for _ in range(ORDERS):
        boxes, found = [of_point[0] for of_point in choices], [0.0] * len(choices)
        for k in [*rng.permutation(len(choices))] * ROUNDS:
            costs = costs_of(k, boxes)
            boxes[k], found[k] = choices[k][int(np.argmin(costs))], min(costs)
        if sum(found) < least:
            best, least = boxes, sum(found)
    return best


def _shared(one: Box, other: Box) -> float:
    """Return the area of what two boxes share."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(width, 0.0) * max(height, 0.0)


# Scaling.


def scaling_parts(file: Path) -> dict[str, Block]:
    """Return what fits and predictions take as tables grow: numbers, slopes, and a picture.

    Parameters
    ----------
    file : Path
        Lines of JSON of ``bench/scaling.py``, one per table and model.
    """
    frame = rows_of(file)
    return {
        "fit": growth_grid(frame, FITS, "A fit"),
        "predict": growth_grid(frame, ANSWERS, "10,000 predictions"),
        "ratios": ratios_grid(frame),
        "slopes": slopes_grid(frame),
        "growth": growth_picture(frame),
    }


def growth_grid(frame: pd.DataFrame, measures: Mapping[str, tuple[str, int]], title: str) -> Grid:
    """Return a line for each table, and a column for each measure and model."""
    table = frame.pivot(index=["axis", "size"], columns="model", values=list(measures))
    models = [model for model in CONTENDERS if model in set(frame["model"])]
    columns = list(product(measures, models))
    return Grid(
        title,
        ("table", *(f"{measures[measure][0]}: {model}" for measure, model in columns)),
        tuple(
            (
                Cell(f"{size:,} {axis}"),
                *(fixed(table.loc[(axis, size), c], measures[c[0]][1]) for c in columns),
            )
            for axis in AXES
            for size in table.loc[axis].index
        ),
    )


def ratios_grid(frame: pd.DataFrame) -> Grid:
    """Return how many times as long CoCo takes as boosted trees, to fit and to predict."""
    ours, *others = [model for model in CONTENDERS if model in set(frame["model"])]
    table = frame.pivot(index=["axis", "size"], columns="model")
    measures = {"fit seconds": "fit", "predict seconds": "predict"}
    columns = [
        (f"{words}: {other}", table[measure][ours] / table[measure][other])
        for measure, words in measures.items()
        for other in others
    ]
    return Grid(
        "Seconds of CoCoClassifier() relative to boosted trees",
        ("table", *(name for name, _ in columns)),
        tuple(
            (
                Cell(f"{size:,} {axis}"),
                *(fixed(ratio[axis, size], 1) for _, ratio in columns),
            )
            for axis in AXES
            for size in table.loc[axis].index
        ),
        caption="Below 1 CoCoClassifier() is faster.",
    )


def slopes_grid(frame: pd.DataFrame) -> Grid:
    """Return the powers of what grows by which seconds and megabytes of a fit grow."""
    models = [model for model in CONTENDERS if model in set(frame["model"])]
    columns = list(product(FITS, AXES))
    return Grid(
        "Growth of a fit",
        ("model", *(f"{FITS[measure][0]} over {axis}" for measure, axis in columns)),
        tuple(
            (Cell(model), *(fixed(slope(frame, model, *column), 2) for column in columns))
            for model in models
        ),
        caption="Slopes of least squares in logarithms, from "
        + ", ".join(f"{least:,} {axis}" for axis, least in AXES.items())
        + " on: 1 is proportional to the size, 2 quadratic.",
    )


def slope(frame: pd.DataFrame, model: str, measure: str, axis: str) -> float:
    """Return the power of the size by which a measure grows; NaN if there are too few sizes."""
    some = frame[(frame["model"] == model) & (frame["axis"] == axis)]
    some = some[some["size"] >= AXES[axis]]
    if len(some) < 2:
        return np.nan
    values = some[measure].clip(lower=LEAST.get(measure, 0))
    return float(np.polyfit(np.log(some["size"]), np.log(values), 1)[0])


def growth_picture(frame: pd.DataFrame) -> Picture:
    """Return seconds and megabytes of a fit over rows, columns and classes."""
    return Picture(
        "scaling",
        "Seconds and memory of a fit",
        lambda: draw_growth(frame),
        caption="Processor seconds of a fit on one thread, and megabytes at its peak beyond table "
        "and libraries, over rows (20 columns, 2 classes), columns (2,000 rows, 2 classes) and "
        "classes (5,000 rows, 20 columns) of made-up tables; defaults of all. Both axes are "
        "logarithmic.",
    )


def draw_growth(frame: pd.DataFrame) -> "Figure":
    """Draw a panel for each measure of a fit and each thing that grows."""
    figure = new_figure((7.6, 4.8))
    panels = figure.subplots(len(FITS), len(AXES), sharex="col", sharey="row")
    for (measure, (unit, _)), row in zip(FITS.items(), panels, strict=True):
        for axis, axes in zip(AXES, row, strict=True):
            some = frame[frame["axis"] == axis].sort_values("size")
            for model, (colour, marker) in CONTENDERS.items():
                of_model = some[some["model"] == model]
                values = of_model[measure].clip(lower=LEAST.get(measure, 0))
                look = {"color": colour, "marker": marker, "ms": 5}
                axes.loglog(of_model["size"], values, **look, label=model)
            axes.grid(color="0.93", lw=0.8)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(labelsize=9)
            axes.set_xticks(list(TICKS[axis]), TICKS[axis].values())
            axes.set_xlim(min(TICKS[axis]) / 1.5, max(TICKS[axis]) * 1.5)
            axes.minorticks_off()
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        row[0].set_ylabel(UNITS[unit], fontsize=10)
    for axis, axes in zip(AXES, panels[-1], strict=True):
        axes.set_xlabel(axis, fontsize=10)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize=10
    )
    return figure
