"""What weighing the classes gains, over their imbalance: every number against a plain oracle."""

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from statsmodels.regression.linear_model import OLS

from cocoloss.benchmark.tasks import load_experiment
from synthetic_store import PAPER

imbalance = load_experiment("imbalance", [PAPER])
BALANCED, PLAIN, MEASURES = imbalance.BALANCED, imbalance.PLAIN, imbalance.MEASURES
gains_of, gains_by_ratio = imbalance.gains_of, imbalance.gains_by_ratio
FEW = ["coco-s0.25", BALANCED]


def points_of(x, y):
    return pd.DataFrame({"class_ratio": x, "improvement": y}, dtype=float)


def trend_of(x, y):
    return imbalance.fit_trend(points_of(x, y), BALANCED, "balanced_accuracy")


def fans_out(seed, n=12):
    """Make gains that vary the more, the larger the ratio is."""
    rng = np.random.default_rng(seed)
    x = 1 + rng.exponential(4, size=n)
    return x, 0.002 * x + 0.003 * (x - 1) * rng.normal(size=n)


@given(st.integers(0, 10_000), st.integers(3, 40))
def test_slope_and_errors_are_those_of_statsmodels(seed, n):
    x, y = fans_out(seed, n)
    trend = trend_of(x, y)
    model = OLS(y, np.column_stack([np.ones(n), x]))
    plain, robust = model.fit(), model.fit(cov_type="HC3", use_t=True)
    assert [trend.intercept, trend.slope] == pytest.approx(plain.params.tolist())
    assert trend.slope_error == pytest.approx(plain.bse[1])
    assert trend.slope_p_value == pytest.approx(plain.pvalues[1])
    assert trend.hc3_error == pytest.approx(robust.bse[1])
    assert trend.hc3_p_value == pytest.approx(robust.pvalues[1])


@given(st.integers(0, 10_000), st.integers(3, 40))
def test_one_left_out_is_the_line_fitted_again(seed, n):
    x, y = fans_out(seed, n)
    slopes = [np.polyfit(np.delete(x, k), np.delete(y, k), 1)[0] for k in range(n)]
    assert trend_of(x, y).leave_one_out == pytest.approx((min(slopes), max(slopes)))


@pytest.mark.parametrize("seed", range(3))
def test_theil_sen_is_the_median_slope_of_pairs_with_sens_interval(seed):
    x, y = fans_out(seed)
    slopes = sorted((y[j] - y[i]) / (x[j] - x[i]) for i, j in combinations(range(12), 2))
    reach = norm.ppf(0.975) * math.sqrt(12 * 11 * (2 * 12 + 5) / 18)
    low = slopes[round((len(slopes) - reach) / 2) - 1]
    high = slopes[round((len(slopes) + reach) / 2)]
    trend = trend_of(x, y)
    assert trend.theil_sen == pytest.approx((slopes[32] + slopes[33]) / 2)
    assert trend.theil_sen_interval == pytest.approx((low, high))


def test_one_wild_dataset_bends_least_squares_and_not_the_median():
    x = np.arange(1.0, 21.0)
    y = 0.001 * x
    y[-1] = 1.0
    trend = trend_of(x, y)
    assert trend.slope > 0.01
    assert trend.theil_sen == pytest.approx(0.001)
    assert trend.leave_one_out[0] == pytest.approx(0.001)


def test_numbers_that_a_trend_cannot_have_are_missing():
    trend = trend_of([2, 2, 2, 2], [0.1, 0.2, 0.0, 0.1])  # over equal ratios
    numbers = [v for k, v in vars(trend).items() if k not in ("model", "measure", "points")]
    assert np.isnan(np.hstack(numbers)).all()
    trend = trend_of([1, 1, 1, 9], [0.1, 0.2, 0.0, 0.3])  # which hangs on one dataset
    assert trend.slope == pytest.approx(0.2 / 8)
    assert np.isnan([trend.hc3_error, trend.hc3_p_value, *trend.leave_one_out]).all()
    trend = trend_of([1, 2, 3, 5], [0.1] * 4)  # gains that are all the same
    assert [trend.slope, *trend.leave_one_out, trend.theil_sen] == pytest.approx([0] * 4)
    assert np.isnan([trend.hc3_p_value, trend.spearman, trend.p_value]).all()
    trend = trend_of([1, 2, 3, 4], [0, 1, 2, 3])  # points on one line leave no doubt
    assert [trend.slope, trend.hc3_error, trend.hc3_p_value] == pytest.approx([1, 0, 0], abs=1e-12)


def made_up_scores(seed=0, n=40):
    rng = np.random.default_rng(seed)
    scores = pd.DataFrame(
        {
            "class_ratio": rng.choice([1.0, 1.2, 1.5, 2.0, 3.0, 7.0], size=n),
            PLAIN: rng.choice([0.5, 0.6, 0.7], size=n),
            "coco-s0.25": rng.choice([0.5, 0.6, 0.7, np.nan], size=n),
            BALANCED: rng.choice([0.5, 0.6, 0.7], size=n),
        }
    )
    scores.loc[3, PLAIN] = np.nan
    return scores


def test_gains_by_ratio_are_counted_one_by_one():
    scores = made_up_scores()
    bounds = {
        "below 1.5": (0, 1.5),
        "1.5 to under 3": (1.5, 3),
        "3 or more": (3, 99),
        "all": (0, 99),
    }
    found = gains_by_ratio(scores)
    expected = [(label, model) for label in bounds for model in FEW]
    assert list(zip(found["ratio"], found["model"], strict=True)) == expected
    for line in found.itertuples():
        low, high = bounds[line.ratio]
        gains = []
        for _, dataset in scores.iterrows():
            gain = dataset[line.model] - dataset[PLAIN]
            if low <= dataset["class_ratio"] < high and not math.isnan(gain):
                gains.append(gain)
        n, mean = len(gains), sum(gains) / len(gains)
        variance = sum((gain - mean) ** 2 for gain in gains) / (n - 1)
        assert line.n_datasets == n
        assert line.mean == pytest.approx(mean)
        assert line.error == pytest.approx(math.sqrt(variance / n))
        assert line.wins == sum(gain > 1e-9 for gain in gains)
        assert line.losses == sum(gain < -1e-9 for gain in gains)
        assert line.ties == n - line.wins - line.losses > 0
    whole, parts = found[found["ratio"] == "all"], found[found["ratio"] != "all"]
    assert parts["n_datasets"].sum() == whole["n_datasets"].sum() < 2 * 39


def made_up_rows(models=(PLAIN, *FEW), n_datasets=6, n_folds=3, seed=0):
    rng = np.random.default_rng(seed)
    lines = [
        {
            "dataset": f"d{d}",
            "model": model,
            "fold": k,
            "class_ratio": 1.0 + d,
            "balanced_accuracy": rng.uniform(),
            "balanced_accuracy_uniform": rng.uniform(),
            "inner_score": rng.uniform(),
        }
        for model in models
        for d in range(n_datasets)
        for k in range(n_folds)
    ]
    return pd.DataFrame(lines)


def test_every_model_has_a_trend_of_every_measure_by_differences_of_means_over_folds():
    rows = made_up_rows()
    models = [BALANCED, PLAIN, "coco-s0.25", "coco-s1"]  # of the last one there is no row
    found = gains_of(rows, models)
    assert [gains.measure for gains in found] == list(MEASURES)
    for gains in found:
        assert [trend.model for trend in gains.trends] == [BALANCED, "coco-s0.25"]
        assert {trend.measure for trend in gains.trends} == {gains.measure}
        assert gains.paper is gains.trends[0]
        means = rows.groupby(["dataset", "model"])[gains.measure].mean()
        for trend in gains.trends:
            for dataset, point in trend.points.iterrows():
                plain, weighted = means[dataset, PLAIN], means[dataset, trend.model]
                expected = {"class_ratio": 1 + int(dataset[1:]), "plain": plain}
                expected |= {"weighted": weighted, "improvement": weighted - plain}
                assert point.to_dict() == pytest.approx(expected)


def where(rows, dataset, model, fold):
    return (rows["dataset"] == dataset) & (rows["model"] == model) & (rows["fold"] == fold)


def datasets_of(gains):
    return {trend.model: sorted(trend.points.index) for trend in gains.trends}


def test_datasets_without_all_folds_of_a_measure_do_not_count():
    rows = made_up_rows()
    lacking = where(rows, "d1", PLAIN, 0) | where(rows, "d2", BALANCED, 1)
    fewer = {"coco-s0.25": ["d0", "d2", "d3", "d4", "d5"], BALANCED: ["d0", "d3", "d4", "d5"]}
    for gains in gains_of(rows[~lacking], [PLAIN, *FEW]):
        assert datasets_of(gains) == fewer
        whole = gains.by_ratio.query("ratio == 'all'").set_index("model")["n_datasets"]
        assert whole.to_dict() == {model: len(datasets) for model, datasets in fewer.items()}
    rows.loc[where(rows, "d4", BALANCED, 2), "balanced_accuracy_uniform"] = np.nan
    outer, uniform, inner = gains_of(rows, [PLAIN, BALANCED])
    assert datasets_of(uniform) == {BALANCED: ["d0", "d1", "d2", "d3", "d5"]}
    assert datasets_of(outer) == datasets_of(inner) == {BALANCED: [f"d{k}" for k in range(6)]}


@pytest.mark.parametrize(
    "rows",
    [
        made_up_rows(models=FEW),
        made_up_rows(models=[PLAIN]),
        made_up_rows().drop(columns="class_ratio"),
        made_up_rows().drop(columns=list(MEASURES)),
        made_up_rows().assign(**dict.fromkeys(MEASURES, np.nan)),
        made_up_rows().head(0),
    ],
    ids=["no plain", "plain alone", "no ratio", "no measure", "nothing measured", "no row"],
)
def test_what_cannot_be_compared_has_no_gains(rows):
    assert gains_of(rows, [PLAIN, *FEW]) == ()


def test_gains_of_scores_that_tie_share_their_rank():
    plain = [0.3, 0.1 + 0.2, 0.3, 0.4, 0.4]
    weighted = [0.1 + 0.2, 0.3, 0.3, 0.5, 0.6]
    rows = pd.DataFrame(
        [
            (f"d{k}", model, 0, float(k + 1), scores[k])
            for model, scores in ((PLAIN, plain), (BALANCED, weighted))
            for k in range(5)
        ],
        columns=["dataset", "model", "fold", "class_ratio", "balanced_accuracy"],
    )
    (gains,) = gains_of(rows, [PLAIN, BALANCED])
    assert gains.paper.points["improvement"].tolist() == [0, 0, 0, 0.1, 0.2]
    assert gains.by_ratio.query("ratio == 'all'")["ties"].tolist() == [3]
    expected = np.corrcoef([1, 2, 3, 4, 5], [2, 2, 2, 4, 5])[0, 1]
    assert gains.paper.spearman == pytest.approx(expected)
