"""What weighing the classes gains over plain CoCo, and how that goes with their imbalance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cocoloss.benchmark.characters import bins_of, count, lead

if TYPE_CHECKING:
    import pandas as pd

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
    points: "pd.DataFrame"
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
    scores: "pd.DataFrame"
    trends: tuple[Trend, ...]
    by_ratio: "pd.DataFrame"

    @property
    def paper(self) -> Trend | None:
        """The trend of the paper's pair, balanced minus plain; None if there is none."""
        return next((trend for trend in self.trends if trend.model == BALANCED), None)


def analyse_gains(rows: Any, models: Sequence[str]) -> tuple[Gains, ...]:
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
    import pandas as pd  # noqa: PLC0415 - heavy

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
