"""Balanced against plain CoCo over class imbalance: the protocol of accuracy, and the class ratio.

The models are "coco-plain" and "coco-balanced", each tuned for itself, as the paper has it. Beside
them "coco-s0.25" and the like weigh the rows of a class by its share to the power of -0.25: plain
is 0, balanced is 0.5, and at 1 all classes have the same mass. "coco-balanced-printed" is balanced
without the normalisation of the plain loss.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import printed
from numpy.typing import NDArray

from cocoloss.benchmark import accuracy
from cocoloss.benchmark.accuracy import Steps
from cocoloss.benchmark.analysis import (
    ALPHA,
    AccuracyAnalysis,
    Findings,
    analyse_accuracy,
    bins_of,
    count,
    lead,
    models_of,
)
from cocoloss.benchmark.tasks import Result, TableInfo, Task, Unit
from cocoloss.report.bench_sections import accuracy_blocks
from cocoloss.report.document import (
    MISSING,
    Block,
    Cell,
    Folded,
    Grid,
    Heading,
    Picture,
    Text,
    brief,
    fixed,
    number_of,
    p_value,
    signed,
)
from cocoloss.report.figures import COLOURS, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cocoloss.benchmark.spec import Spec

ABOUT = "Plain and balanced CoCo, each tuned for itself, over the imbalance of classes."
TAKES_ALL_KEYS = True  # as cocoloss.benchmark.accuracy does
PLAIN, BALANCED = "coco-plain", "coco-balanced"  # the paper's pair
# Column -> what it is. The paper's "average test score across inner folds" may be the first or the
# last; the first one counts here, since the last is the largest of many.
MEASURES = {
    "balanced_accuracy": "on the test rows of the outer folds",
    "balanced_accuracy_uniform": "on the same rows by the same networks and Gaussians, had the "
    "classes been equally likely",
    "inner_score": "on the inner folds of the tuning, the largest of all trials: optimistic by "
    "selection",
}
FEWEST = 3  # datasets that a line is fitted to
CONFIDENCE = 0.95
NAN = float("nan")
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


def plan(spec: "Spec", infos: Sequence[TableInfo]) -> list[Unit]:
    """List every model on every table.

    All models of a table draw the same random numbers: the same points to begin with, the same
    first weights, the same batches. So what differs is the weight of the classes, and where the
    classes of the training rows are equally large, nothing does; the loss as printed excepted,
    which is normalised otherwise.
    """
    return [replace(unit, draws_as="any") for unit in accuracy.plan(spec, infos)]


def drive(unit: Unit, spec: "Spec", parallel: int = 1) -> Steps:
    """Tune and judge as :func:`cocoloss.benchmark.accuracy.drive` does."""
    return accuracy.drive(unit, spec, parallel)


def run(task: Task, table: Any, spec: "Spec") -> Result:
    """Compute a task of the protocol, and say how imbalanced the table is.

    NOTE[PAPER]: the improvement is "the difference in average test score across inner folds".
    The rows have the balanced accuracy on the test rows of the outer folds, and beside it
    "inner_score", the mean over the inner folds at the point that was chosen.
    """
    result = accuracy.run(task, table, spec)
    ratio = {"class_ratio": class_ratio(table.y)}
    return replace(
        result,
        measures={**result.measures, **ratio},
        rows=[row | ratio for row in result.rows],
    )


def class_ratio(y: NDArray[Any]) -> float:
    """Return how many times the rows of the smallest class the largest one has.

    NOTE[PAPER]: the "balanced ratio" of the experiment is not defined; it is the ratio by which
    the paper chooses between the losses.

    Examples
    --------
    >>> class_ratio(["a", "a", "a", "b"])
    3.0
    """
    counts = np.unique(np.asarray(y), return_counts=True)[1]
    return float(counts.max() / counts.min())


@dataclass(frozen=True, eq=False)
class Trend:
    """The gain of a model over plain CoCo, over the class ratio.

    Every number is NaN if all ratios are equal.

    Attributes
    ----------
    model, measure : str
        What gains, and the column of the rows in which.
    points : DataFrame
        One line per dataset: class_ratio, plain, weighted, improvement.
    slope, intercept : float
        Least squares, as in the paper.
    slope_error, slope_p_value : float
        Standard error of the slope, and p-value of its being zero, if the variance is the same at
        every ratio.
    hc3_error, hc3_p_value : float
        The same if it may differ; the p-value is by t with n - 2 degrees of freedom. NaN if all
        ratios but one are equal, the p-value also if all gains are.
    theil_sen : float
        Median of the slopes between two datasets.
    theil_sen_interval : (float, float)
        That holds the median slope with a confidence of 95 %.
    leave_one_out : (float, float)
        Least and largest ``slope`` when any one dataset is left out; NaN if all ratios but one
        are equal.
    spearman, p_value : float
        Rank correlation, and p-value of its being zero; NaN if all gains are equal.
    """

    model: str
    measure: str
    points: pd.DataFrame
    slope: float = NAN
    intercept: float = NAN
    slope_error: float = NAN
    slope_p_value: float = NAN
    hc3_error: float = NAN
    hc3_p_value: float = NAN
    theil_sen: float = NAN
    theil_sen_interval: tuple[float, float] = (NAN, NAN)
    leave_one_out: tuple[float, float] = (NAN, NAN)
    spearman: float = NAN
    p_value: float = NAN


@dataclass(frozen=True, eq=False)
class Gains:
    """What models gain over plain CoCo by one measure.

    Attributes
    ----------
    measure, about : str
        Column of the rows, and what it is.
    scores : DataFrame, datasets x ("class_ratio", models)
        Means over folds; NaN where a model lacks some.
    trends : tuple of Trend
        Of each model that has three datasets in common with plain CoCo.
    by_ratio : DataFrame
        See :func:`gains_by_ratio`.
    """

    measure: str
    about: str
    scores: pd.DataFrame
    trends: tuple[Trend, ...]
    by_ratio: pd.DataFrame

    @property
    def paper(self) -> Trend | None:
        """The trend of the paper's pair, balanced minus plain; None if there is none."""
        return next((trend for trend in self.trends if trend.model == BALANCED), None)


@dataclass(frozen=True, eq=False)
class ImbalanceAnalysis(AccuracyAnalysis):
    """Models judged as in accuracy experiments, and their gains over plain CoCo by class ratio."""

    gains: tuple[Gains, ...] = ()


def analyse(findings: Findings, missing: str = "drop_datasets") -> ImbalanceAnalysis:
    """Rank the models, and compute what they gain over plain CoCo."""
    judged = analyse_accuracy(findings, missing)
    return ImbalanceAnalysis(**vars(judged), gains=gains_of(findings.rows, models_of(findings)))


def gains_of(rows: Any, models: Sequence[str]) -> tuple[Gains, ...]:
    """Compute what models gain over plain CoCo by each measure that there is.

    Parameters
    ----------
    rows : DataFrame
        With the columns dataset, model, fold, class_ratio and some of ``MEASURES``.
    models : sequence of str
        In the order in which they are shown; those without rows are left out.
    """
    if "class_ratio" not in rows.columns:
        return ()
    ratios = rows.groupby("dataset")["class_ratio"].first()
    found = []
    for measure, about in MEASURES.items():
        if measure not in rows.columns:
            continue
        means = _whole_means(rows, measure)
        there = [model for model in models if model in means.columns]
        scores = means.reindex(columns=["class_ratio", *there]).assign(class_ratio=ratios)
        scores = scores.sort_values("class_ratio", kind="stable")
        by_ratio = gains_by_ratio(scores)
        if len(by_ratio):
            found.append(Gains(measure, about, scores, _trends(scores, measure), by_ratio))
    return tuple(found)


def gains_by_ratio(scores: Any) -> Any:
    """Average what each model gains over plain CoCo, by the class ratio of the datasets.

    Parameters
    ----------
    scores : DataFrame, datasets x ("class_ratio", models)

    Returns
    -------
    DataFrame
        With the columns ratio (the last group is "all"), model, n_datasets, mean, error (standard
        error of the mean over datasets; NaN of one), wins, ties, losses. Of datasets that both
        have; groups without one are left out.

    Examples
    --------
    >>> import pandas as pd
    >>> names = ["class_ratio", "coco-plain", "coco-balanced"]
    >>> scores = pd.DataFrame([[1.0, 0.5, 0.5], [4.0, 0.5, 0.75]], columns=names)
    >>> gains_by_ratio(scores)[["ratio", "n_datasets", "mean", "error", "wins", "ties"]]
           ratio  n_datasets   mean  error  wins  ties
    0  below 1.5           1  0.000    NaN     0     1
    1  3 or more           1  0.250    NaN     1     0
    2        all           2  0.125  0.125     1     1
    """
    ratios = scores["class_ratio"]
    groups = {**bins_of("class_ratio", ratios), "all": ratios.notna()}
    lines = []
    for label, inside in groups.items():
        for model, points in _pairs(scores[inside]).items():
            gain = points["improvement"]
            if len(gain):
                n, *counts = count(gain)
                lines.append([label, model, n, gain.mean(), gain.sem(), *counts])
    columns = ["ratio", "model", "n_datasets", "mean", "error", "wins", "ties", "losses"]
    return pd.DataFrame(lines, columns=columns)


def fit_trend(points: Any, model: str, measure: str) -> Trend:
    """Fit lines and a rank correlation to gains over class ratios.

    Parameters
    ----------
    points : DataFrame
        With the columns class_ratio and improvement, three lines or more.
    model, measure : str

    Examples
    --------
    >>> import pandas as pd
    >>> points = pd.DataFrame({"class_ratio": [1.0, 2, 3, 4], "improvement": [0, 0.1, 0.2, 0.7]})
    >>> trend = fit_trend(points, "coco-balanced", "balanced_accuracy")
    >>> round(trend.slope, 3), round(trend.theil_sen, 3), round(trend.spearman, 3)
    (0.22, 0.167, 1.0)
    >>> [round(slope, 3) for slope in trend.leave_one_out]
    [0.1, 0.3]
    """
    from scipy.stats import linregress, spearmanr, t, theilslopes  # noqa: PLC0415 - heavy

    x = points["class_ratio"].to_numpy(dtype=float)
    y = points["improvement"].to_numpy(dtype=float)
    if np.ptp(x) == 0:
        return Trend(model, measure, points)
    line: Any = linregress(x, y)
    left_out = _slopes_without_each(x, y)
    # HC3 is how far the slope moves when single datasets are left out.
    hc3 = float(np.linalg.norm(left_out - line.slope))
    median: Any = theilslopes(y, x, CONFIDENCE)
    hc3_p = rho = p_value = NAN
    if np.ptp(y) > 0:
        with np.errstate(divide="ignore"):  # points on one line
            hc3_p = 2 * float(t.sf(np.divide(abs(line.slope), hc3), len(x) - 2))
        correlation: Any = spearmanr(x, y)
        rho, p_value = float(correlation.statistic), float(correlation.pvalue)
    return Trend(
        model,
        measure,
        points,
        slope=float(line.slope),
        intercept=float(line.intercept),
        slope_error=float(line.stderr),
        slope_p_value=float(line.pvalue),
        hc3_error=hc3,
        hc3_p_value=hc3_p,
        theil_sen=float(median.slope),
        theil_sen_interval=(float(median.low_slope), float(median.high_slope)),
        leave_one_out=(float(left_out.min()), float(left_out.max())),
        spearman=rho,
        p_value=p_value,
    )


def _slopes_without_each(x: Any, y: Any) -> Any:
    """Return the slope of least squares without each of the points, by their leverages."""
    centred = x - x.mean()
    spread = centred @ centred
    slope = centred @ y / spread
    residuals = y - y.mean() - slope * centred
    left = 1 - 1 / len(x) - centred**2 / spread  # one minus leverage
    if np.isclose(left, 0).any():  # without that point all x are equal
        return np.full(len(x), NAN)
    return slope - centred * residuals / left / spread


def _whole_means(rows: Any, measure: str) -> Any:
    """Return means over folds, datasets x models; NaN unless there are all folds of the dataset."""
    measured = rows.dropna(subset=[measure]).groupby(["dataset", "model"], sort=False)
    n_folds = measured["fold"].nunique().unstack()
    means = measured[measure].mean().unstack()
    of_dataset = rows.groupby("dataset")["fold"].nunique().reindex(means.index)
    return means.where(n_folds.eq(of_dataset, axis=0))


def _pairs(scores: Any) -> dict[str, Any]:
    """Return the points of each model beside plain CoCo, on the datasets that both have."""
    found = {}
    for model in scores.columns.drop("class_ratio"):
        if model != PLAIN and PLAIN in scores.columns:
            points = scores[["class_ratio", PLAIN, model]].dropna()
            points.columns = ["class_ratio", "plain", "weighted"]
            found[model] = points.assign(improvement=lead(points, "weighted", "plain"))
    return found


def _trends(scores: Any, measure: str) -> tuple[Trend, ...]:
    return tuple(
        fit_trend(points, model, measure)
        for model, points in _pairs(scores).items()
        if len(points) >= FEWEST
    )


def blocks(findings: Findings, analysis: ImbalanceAnalysis, prefix: str) -> list[Block]:
    """Return the sections of the report: gains first, then the ranks of all models."""
    return [*gain_blocks(analysis.gains, prefix), *accuracy_blocks(findings, analysis, prefix)]


def gain_blocks(gains: Sequence[Gains], prefix: str) -> list[Block]:
    """Return the section: test rows first, priors beside them, and what tuning saw folded away."""
    found: list[Block] = []
    if not any(each.trends for each in gains):
        found.append(Text(NO_TREND, "warning"))
    if not gains:
        return found
    found += [Heading("What weighing the classes gains, over their imbalance"), Text(MODELS)]
    if {FIRST, TUNING} <= {each.measure for each in gains}:
        found.append(Text(EITHER))
    for each in gains:
        heading = f"Balanced accuracy {each.about}"
        if each.measure == FIRST:
            found += [Heading(heading, 3), *trend_blocks(each, prefix), gains_grid(each)]
        elif each.measure in UNPRINTED:
            found += [Heading(heading, 3), gains_grid(each)]
            trends = tuple(trend_blocks(each, prefix))
            found += [Folded(f"Trends of {TITLES[each.measure]}", trends)] if trends else []
        else:
            found.append(Folded(heading, (*trend_blocks(each, prefix), gains_grid(each))))
    return found


def trend_blocks(gains: Gains, prefix: str) -> list[Block]:
    """Return the paper's pair, then the slopes of all models; what there is of them."""
    found: list[Block] = []
    if gains.paper is not None:
        found += [scatter(gains.paper, prefix), trend_grid(gains.paper)]
    if gains.trends:
        found.append(slopes_grid(gains))
    return found


def scatter(trend: Trend, prefix: str) -> Picture:
    """Return the improvement over the class ratio, a point for each dataset."""
    label = (
        f"Improvement of {trend.model} over {PLAIN} in {TITLES[trend.measure]} on "
        f"{len(trend.points)} datasets over their class ratio"
    )
    return Picture(
        f"{prefix}-imbalance-{trend.measure.replace('_', '-')}",
        "Improvement over class ratio",
        lambda: _draw_trend(trend),
        caption=f"{label}, with the line of least squares. {BY_CONSTRUCTION}",
        label=label,
    )


def _draw_trend(trend: Trend) -> "Figure":
    figure = new_figure((5.2, 3.4))
    axes = figure.add_subplot()
    x = trend.points["class_ratio"].to_numpy()
    axes.axhline(0, color="0.6", lw=0.8, ls="--")
    y = trend.points["improvement"]
    axes.plot(x, y, "o", ms=5, color=COLOURS[0], alpha=0.75, gid="points-0")
    if np.isfinite(trend.slope):
        ends = np.array([x.min(), x.max()])
        axes.plot(ends, trend.slope * ends + trend.intercept, color=COLOURS[1])
    axes.set_xlabel("class ratio: largest / smallest")
    axes.set_ylabel(f"gain in {TITLES[trend.measure]}")
    tidy(axes)
    return figure


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
        (Cell(title), brief(ours), Cell("" if paper is None else f"{paper:g}"))
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
            number_of(len(trend.points)),
            signed(trend.slope, DIGITS),
            fixed(trend.hc3_error, DIGITS),
            p_value(trend.hc3_p_value, ALPHA),
            signed(trend.theil_sen, DIGITS),
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


def _range(ends: tuple[float, float]) -> Cell:
    low, high = (signed(end, DIGITS) for end in ends)
    return Cell(MISSING if MISSING in (low.text, high.text) else f"{low.text} to {high.text}")
