"""How much balanced CoCo gains over plain CoCo, over the imbalance of the classes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

PLAIN, BALANCED = "coco-plain", "coco-balanced"
MEASURES = {  # column -> what it is
    "balanced_accuracy": "on the test rows of the outer folds",
    "inner_score": "on the inner folds of the tuning, as the paper words it",
}


@dataclass(frozen=True, eq=False)
class Trend:
    """Improvement over class ratio: points, a line, and a rank correlation.

    Attributes
    ----------
    measure, about : str
        Column of the rows, and what it is.
    points : DataFrame
        One line per dataset: class_ratio, plain, balanced, improvement.
    slope, intercept : float
        Least squares; NaN if all ratios are equal.
    slope_error, slope_p_value : float
        Standard error of the slope, and p-value of its being zero.
    spearman, p_value : float
        Rank correlation, and p-value of its being zero; NaN if either is constant.
    """

    measure: str
    about: str
    points: "pd.DataFrame"
    slope: float
    intercept: float
    slope_error: float
    slope_p_value: float
    spearman: float
    p_value: float


def analyse_trends(rows: Any) -> tuple[Trend, ...]:
    """Compute the trend of each measure that there are three datasets for.

    Parameters
    ----------
    rows : DataFrame
        With the columns dataset, model, class_ratio and balanced_accuracy or inner_score.
    """
    if "class_ratio" not in rows.columns:
        return ()
    found = []
    for measure, about in MEASURES.items():
        if measure not in rows.columns:
            continue
        means = rows.groupby(["dataset", "model"], sort=False)[measure].mean().unstack()
        if not {PLAIN, BALANCED} <= set(means.columns):
            continue
        points = means[[PLAIN, BALANCED]].rename(columns={PLAIN: "plain", BALANCED: "balanced"})
        points.insert(0, "class_ratio", rows.groupby("dataset")["class_ratio"].first())
        points = points.dropna()
        points["improvement"] = points["balanced"] - points["plain"]
        if len(points) >= 3:
            found.append(fit_trend(points.sort_values("class_ratio"), measure, about))
    return tuple(found)


def fit_trend(points: Any, measure: str, about: str) -> Trend:
    """Fit a line and a rank correlation to improvements over class ratios.

    Examples
    --------
    >>> import pandas as pd
    >>> points = pd.DataFrame({"class_ratio": [1.0, 2.0, 3.0], "improvement": [0.0, 0.1, 0.2]})
    >>> trend = fit_trend(points, "balanced_accuracy", "")
    >>> round(trend.slope, 3), round(trend.spearman, 3)
    (0.1, 1.0)
    """
    from scipy.stats import linregress, spearmanr  # noqa: PLC0415 - heavy

    x, y = points["class_ratio"].to_numpy(), points["improvement"].to_numpy()
    slope = intercept = error = slope_p = rho = p_value = float("nan")
    if np.ptp(x) > 0:
        line = linregress(x, y)
        slope, intercept = float(line.slope), float(line.intercept)
        error, slope_p = float(line.stderr), float(line.pvalue)
        if np.ptp(y) > 0:
            correlation: Any = spearmanr(x, y)
            rho, p_value = float(correlation.statistic), float(correlation.pvalue)
    return Trend(measure, about, points, slope, intercept, error, slope_p, rho, p_value)
