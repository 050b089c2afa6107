"""What the tables of a ranking say is what was tested, and by which test."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import studentized_range

from cocoloss.benchmark.analysis import rank
from cocoloss.report.bench_rankings import ranks_grid, reference_grid


def rows_of(models, n_datasets=12, n_folds=10):
    """Make up scores: a model is better by little than the next, and on every dataset."""
    rng = np.random.default_rng(0)
    lines = []
    for d in range(n_datasets):
        for k in range(n_folds):
            for place, model in enumerate(models):
                # In a fold models differ by far more than their lead; in the mean that is gone.
                swing = 0.05 * place * (-1) ** k if n_folds > 1 else 0.0
                lines.append((f"d{d}", model, k, 0.5 - 0.01 * place + swing + 1e-4 * rng.random()))
    return pd.DataFrame(lines, columns=["dataset", "model", "fold", "balanced_accuracy"])


def ranking_of(n_models, n_folds=10):
    models = ["coco", *(f"m{j}" for j in range(1, n_models))]
    return rank(rows_of(models, n_folds=n_folds), models, name="all", title="All")


def column(grid, name):
    place = grid.columns.index(name)
    return {row[0].text: row[place] for row in grid.rows}


def nemenyi_by_mean(rows, one, other):
    """Return Nemenyi's p-value on ranks of means, as printed in textbooks."""
    models, datasets = sorted(set(rows["model"])), sorted(set(rows["dataset"]))
    sums = dict.fromkeys(models, 0.0)
    for dataset in datasets:
        means = {}
        for model in models:
            chosen = rows[(rows["dataset"] == dataset) & (rows["model"] == model)]
            means[model] = sum(chosen["balanced_accuracy"]) / len(chosen)
        for model in models:
            sums[model] += 1 + sum(means[m] > means[model] for m in models)
    k, n = len(models), len(datasets)
    gap = abs(sums[one] - sums[other]) / n
    return studentized_range.sf(gap / np.sqrt(k * (k + 1) / (12 * n)), k, np.inf)


def test_p_values_by_mean_stand_beside_those_by_what_is_significant():
    ranking = ranking_of(4)
    grid = reference_grid(ranking)
    by_folds, by_mean = column(grid, "p Nemenyi"), column(grid, "p Nemenyi, by mean")
    rows = rows_of(["coco", "m1", "m2", "m3"])
    for other in ("m1", "m2", "m3"):
        assert by_folds[other].value == pytest.approx(1.0)  # over folds, all tie
        assert by_mean[other].value == pytest.approx(nemenyi_by_mean(rows, "coco", other), rel=1e-6)
    assert by_mean["m3"].best
    assert not by_mean["m1"].best


def test_the_correction_is_for_all_pairs():
    ranking = ranking_of(4, n_folds=10)
    assert "for all 6 pairs of models." in reference_grid(ranking).caption
    assert "pairs" not in reference_grid(replace(ranking, pairs=None)).caption


def test_ranks_by_scores_have_one_p_value():
    grid = reference_grid(ranking_of(4, n_folds=1))
    assert [name for name in grid.columns if "Nemenyi" in name] == ["p Nemenyi"]
    assert "Nemenyi" not in grid.caption


@pytest.mark.parametrize(
    ("n_models", "n_folds", "said", "unsaid"),
    [
        (4, 10, "by Wilcoxon's test with Holm's correction, as in the paper;", "Bengio"),
        (11, 10, "by Nadeau and Bengio's corrected t-test", "as in the paper"),
        (4, 1, "Ranks are by mean scores.", "paper"),
    ],
)
def test_the_test_that_ranks_is_named(n_models, n_folds, said, unsaid):
    caption = ranks_grid(ranking_of(n_models, n_folds)).caption
    assert said in caption
    assert unsaid not in caption
