"""What weighing the classes gains over plain CoCo, over their imbalance, as blocks."""

import math
from collections.abc import Sequence
from typing import Any

from cocoloss.benchmark import printed
from cocoloss.benchmark.imbalance_analysis import BALANCED, PLAIN, Gains, Trend
from cocoloss.benchmark.rankings import ALPHA
from cocoloss.report.charts import scatter_chart
from cocoloss.report.document import (
    Block,
    Cell,
    Folded,
    Grid,
    Heading,
    Picture,
    Text,
    counted,
    fixed,
    p_value,
)
from cocoloss.report.figures import files_of, trend_figure
from cocoloss.report.page import MISSING, significant

TITLES = {  # measure -> what tables call it
    "balanced_accuracy": "balanced accuracy",
    "balanced_accuracy_uniform": "balanced accuracy under uniform priors",
    "inner_score": "score of the tuning",
}
SLOPES = (  # what is said of each model
    "model",
    "datasets",
    "slope",
    "HC3 error",
    "p of slope",
    "Theil-Sen",
    "95 % interval",
    "one left out",
    "Spearman",
    "p of rho",
)
DIGITS = 5  # decimal places of a slope; the printed one has four
FIRST = "balanced_accuracy"  # what the question is decided by
TUNING = "inner_score"
UNPRINTED = frozenset({"balanced_accuracy_uniform"})  # the paper has nothing of the kind
NO_TREND = (
    f"There is no trend over the class ratio yet: it needs results of {PLAIN} and of another model "
    f"on three datasets or more."
)
MODELS = (
    f"A row is weighed by the share of its class to the power of -s: {PLAIN} has s = 0, {BALANCED} "
    f"s = 0.5, as in the paper, coco-s1 and the like the s of their name. coco-balanced-printed is "
    f"{BALANCED} without the normalisation of the plain loss, as the formula is printed."
)
EITHER = (
    "The paper's “average test score across inner folds” may be that of the outer test rows, which "
    "come first, or that of the tuning, which is folded away below: the largest of all trials is "
    "optimistic by selection."
)
BY_CONSTRUCTION = (
    "Where the classes of the training rows are equally large, the gain is exactly 0 by "
    "construction: all models draw the same random numbers, so every s gives the same network "
    "bit for bit (coco-balanced-printed does not)."
)


def imbalance_blocks(gains: Sequence[Gains], prefix: str) -> list[Block]:
    """Return the section: test rows first, priors beside them, and what tuning saw folded away."""
    blocks: list[Block] = []
    if not any(each.trends for each in gains):
        blocks.append(Text(NO_TREND, "warning"))
    if not gains:
        return blocks
    blocks += [Heading("What weighing the classes gains, over their imbalance"), Text(MODELS)]
    if {FIRST, TUNING} <= {each.measure for each in gains}:
        blocks.append(Text(EITHER))
    for each in gains:
        heading = f"Balanced accuracy {each.about}"
        if each.measure == FIRST:
            blocks += [Heading(heading, 3), *trend_blocks(each, prefix), gains_grid(each)]
        elif each.measure in UNPRINTED:
            blocks += [Heading(heading, 3), gains_grid(each)]
            trends = tuple(trend_blocks(each, prefix))
            blocks += [Folded(f"Trends of {TITLES[each.measure]}", trends)] if trends else []
        else:
            blocks.append(Folded(heading, (*trend_blocks(each, prefix), gains_grid(each))))
    return blocks


def trend_blocks(gains: Gains, prefix: str) -> list[Block]:
    """Return the paper's pair, then the slopes of all models; what there is of them."""
    blocks: list[Block] = []
    if gains.paper is not None:
        blocks += [scatter(gains.paper, prefix), trend_grid(gains.paper)]
    if gains.trends:
        blocks.append(slopes_grid(gains))
    return blocks


def scatter(trend: Trend, prefix: str) -> Picture:
    """Return the improvement over the class ratio, a point for each dataset."""
    label = (
        f"Improvement of {trend.model} over {PLAIN} in {TITLES[trend.measure]} on "
        f"{len(trend.points)} datasets over their class ratio"
    )
    points = [
        (
            float(p.class_ratio),
            float(p.improvement),
            f"{p.Index}: ratio {p.class_ratio:.3g}, {p.improvement:+.4f}",
        )
        for p in trend.points.itertuples()
    ]
    return Picture(
        f"{prefix}-imbalance-{trend.measure.replace('_', '-')}",
        "Improvement over class ratio",
        scatter_chart(
            points,
            line=(trend.slope, trend.intercept),
            x_title="class ratio: largest / smallest",
            label=label,
        ),
        files_of(lambda: trend_figure(trend, f"gain in {TITLES[trend.measure]}")),
        caption=f"{label}, with the line of least squares. {BY_CONSTRUCTION}",
        wide=True,
    )


def trend_grid(trend: Trend) -> Grid:
    """Return the numbers of the paper's pair beside the printed ones."""
    theirs = printed.IMBALANCE
    numbers = (
        ("slope of the line", trend.slope, theirs.slope),
        ("standard error of the slope", trend.slope_error, None),
        ("p-value of the slope", trend.slope_p_value, None),
        ("Spearman's rho", trend.spearman, theirs.spearman),
        ("p-value of rho", trend.p_value, theirs.p_value),
    )
    rows = tuple(
        (Cell(title), Cell(significant(ours), ours), Cell("" if paper is None else f"{paper:g}"))
        for title, ours, paper in numbers
    )
    caption = f"{trend.model} minus {PLAIN}, on {len(trend.points)} datasets. "
    caption += f"Printed: {theirs.place}"
    caption += ", with class shares as priors." if trend.measure in UNPRINTED else "."
    return Grid("The trend, beside the printed one", ("", "ours", "printed"), rows, caption=caption)


def slopes_grid(gains: Gains) -> Grid:
    """Return how gains go with the class ratio, in ways that outliers bend more or less."""
    rows = tuple(
        (
            Cell(trend.model),
            counted(len(trend.points)),
            _slope(trend.slope),
            fixed(trend.hc3_error, DIGITS),
            p_value(trend.hc3_p_value, ALPHA),
            _slope(trend.theil_sen),
            _range(trend.theil_sen_interval),
            _range(trend.leave_one_out),
            fixed(trend.spearman, 2),
            p_value(trend.p_value, ALPHA),
        )
        for trend in gains.trends
    )
    return Grid(
        f"Slopes by weight: {TITLES[gains.measure]}",
        SLOPES,
        rows,
        caption=f"Gain over {PLAIN} {gains.about}, over the class ratio. The slope is that of "
        f"least squares, as in the paper; its HC3 error and p-value allow for gains that vary more "
        f"on imbalanced tables. Theil-Sen is the median slope between two datasets, with its "
        f"interval. “One left out” is the least and the largest slope of least squares when any "
        f"one dataset is left out. p-values below {ALPHA:g} are bold; they are not corrected for "
        f"the number of models.",
    )


def gains_grid(gains: Gains) -> Grid:
    """Return what each model gains on tables of low, middle and high class ratio, and on all."""
    lines = {(line.model, line.ratio): line for line in gains.by_ratio.itertuples()}
    ratios = list(dict.fromkeys(gains.by_ratio["ratio"]))
    models = [name for name in gains.scores.columns if (name, ratios[-1]) in lines]
    rows = tuple(
        (Cell(model), *(_gain(lines.get((model, ratio))) for ratio in ratios)) for model in models
    )
    return Grid(
        f"Gains by class ratio: {TITLES[gains.measure]}",
        ("model", *ratios),
        rows,
        caption=f"Gain over {PLAIN} {gains.about}, by class ratio, on the datasets on which both "
        f"have all folds: mean ± standard error over datasets, and how many of them are won / tied "
        f"/ lost.",
    )


def _gain(line: Any) -> Cell:
    if line is None:
        return Cell(MISSING)
    error = f" ± {line.error:.4f}" if math.isfinite(line.error) else ""
    counts = f"{line.wins} / {line.ties} / {line.losses}"
    return Cell(f"{line.mean:+.4f}{error} ({counts})", float(line.mean))


def _slope(value: float) -> Cell:
    """Return a slope with as many decimal places as any other, to be compared at a glance."""
    return Cell(f"{value:+.{DIGITS}f}", value) if math.isfinite(value) else Cell(MISSING)


def _range(ends: tuple[float, float]) -> Cell:
    low, high = map(_slope, ends)
    return Cell(MISSING if MISSING in (low.text, high.text) else f"{low.text} to {high.text}")
