"""What the tables say is what was tested; where results are missing, nothing is compared."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import studentized_range

from cocoloss.benchmark.analysis import rank, read_findings
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.tasks import Result, load_experiment
from cocoloss.report.bench_rankings import (
    extremes_grid,
    pair_grids,
    ranks_grid,
    reference_grid,
    wins_grid,
)
from cocoloss.report.bench_sections import (
    about_blocks,
    accuracy_blocks,
    dataset_blocks,
    making_blocks,
    measures_grid,
    missing_blocks,
)
from cocoloss.report.document import MISSING, Heading, Text
from synthetic_store import PAPER, analyse, begin, fill_accuracy, infos_of, make_spec, put

imbalance = load_experiment("imbalance", [PAPER])
PLAIN, BALANCED = imbalance.PLAIN, imbalance.BALANCED
# Scores of two folds by dataset and model: rf has the worse tables, and is better on each.
SCORES = {
    ("table-00", "rf"): (0.78, 0.76),
    ("table-00", "picky"): (0.68, 0.66),
    ("table-01", "rf"): (0.48, 0.46),
    ("table-01", "endless"): (0.44, 0.46),
    ("table-02", "rf"): (0.97, 0.99),
    ("table-02", "picky"): (0.87, 0.85),
    ("table-02", "endless"): (0.99,),
}


def findings_of(folder, scores):
    models = list(dict.fromkeys(model for _, model in scores))
    spec = make_spec(models=models, folds=2)
    with Store(folder / "s.sqlite") as store:
        units = begin(store, spec, infos_of(len({dataset for dataset, _ in scores})))
        for key, values in scores.items():
            for k, value in enumerate(values):
                rows = [{"fold": k, "balanced_accuracy": value}]
                put(store, spec, units[key], "fold", str(k), Result(rows=rows))
        return read_findings(store)[0]


@pytest.fixture
def gappy(tmp_path):
    return analyse(findings_of(tmp_path, SCORES), "worst")


def column(grid, name):
    place = grid.columns.index(name)
    return {row[0].text: row[place] for row in grid.rows}


def test_too_few_whole_datasets_lead_to_the_option_that_helps(tmp_path):
    ranking = analyse(findings_of(tmp_path, SCORES)).rankings[-1]
    assert "3 of 3 datasets lack" in ranking.reason
    assert "endless lacks most (2 missing)" in ranking.reason
    assert "`bench report --missing worst`" in ranking.reason


def test_a_mean_difference_is_over_the_datasets_that_both_have(gappy):
    differences = column(reference_grid(gappy.rankings[-1]), "mean difference")
    assert differences["picky"].value == pytest.approx((0.10 + 0.12) / 2)
    assert differences["endless"].value == pytest.approx(0.02)


def test_models_without_a_common_dataset_have_no_mean_difference(tmp_path):
    halves = {("table-00", "a"): (0.5, 0.6), ("table-01", "b"): (0.5, 0.6)}
    analysis = analyse(findings_of(tmp_path, halves), "worst")
    assert column(reference_grid(analysis.rankings[-1]), "mean difference")["b"].text == MISSING


def test_no_mean_is_over_other_datasets_or_some_folds(gappy):
    means = column(ranks_grid(gappy.rankings[-1]), "mean balanced accuracy")
    measures = measures_grid(gappy)
    of_measures = column(measures, "balanced accuracy")
    assert means["picky"].text == of_measures["picky"].text == "0.7650"
    assert means["endless"].text == of_measures["endless"].text
    assert not any(cell.best for cell in [*means.values(), *of_measures.values()])
    counts = {model: cell.text for model, cell in column(measures, "datasets").items()}
    assert counts == {"rf": "3", "picky": "2", "endless": "1"}


def test_a_mean_of_some_folds_is_marked_and_not_the_best(gappy):
    (grid,) = dataset_blocks(gappy, "x")
    cell = column(grid, "endless")["table-02"]
    assert (cell.text, cell.best) == ("0.9900*", False)
    assert column(grid, "rf")["table-02"].best
    assert "* marks" in grid.caption


def test_tables_are_counted_whether_or_not_both_models_have_them(gappy):
    rows = [
        [cell.text for cell in row]
        for row in wins_grid(gappy.leads).rows
        if row[0].text[:5] == "rows:"
    ]
    assert rows == [
        ["rows: below 1,000", "1", "1 / 0 / 0", "0 / 0 / 0"],
        ["rows: 1,000 to under 10,000", "1", "0 / 0 / 0", "1 / 0 / 0"],
        ["rows: 10,000 or more", "1", "1 / 0 / 0", "0 / 0 / 0"],
    ]


def test_leads_leave_out_what_lacks_folds(gappy):
    cells = column(extremes_grid(gappy.leads, "endless"), "lead")
    assert {dataset: cell.text for dataset, cell in cells.items()} == {"table-01": "+0.020"}
    assert column(extremes_grid(gappy.leads, "endless"), "rows")["table-01"].text == "1,500"


def test_a_trend_leaves_out_what_lacks_folds(tmp_path):
    scores = {(f"table-0{k}", m): (0.5, 0.5 + k / 10) for k in range(5) for m in (PLAIN, BALANCED)}
    scores["table-02", PLAIN] = (0.9,)
    found = findings_of(tmp_path, scores)
    rows = found.rows.assign(class_ratio=found.rows["dataset"].str[-1].astype(float))
    (gains,) = analyse(replace(found, kind="imbalance", rows=rows)).gains
    (trend,) = gains.trends
    assert sorted(trend.points.index) == ["table-00", "table-01", "table-03", "table-04"]
    assert (trend.points["improvement"] == 0).all()


def test_means_that_read_the_same_stand_out_together(tmp_path):
    near = {"a": 0.80602, "b": 0.80600, "c": 0.80599, "d": 0.8}
    scores = {(f"table-0{k}", m): (near[m], near[m]) for k in range(3) for m in near}
    analysis = analyse(findings_of(tmp_path, scores))
    (datasets,) = dataset_blocks(analysis, "x")
    expected = {"a": True, "b": True, "c": True, "d": False}
    for cells in (
        column(ranks_grid(analysis.rankings[-1]), "mean balanced accuracy"),
        column(measures_grid(analysis), "balanced accuracy"),
        dict(zip(datasets.columns[1:], datasets.rows[0][1:], strict=True)),
    ):
        assert {model: cell.best for model, cell in cells.items()} == expected


def texts(blocks):
    return [block.text for block in blocks if isinstance(block, Text)]


def test_a_run_that_was_stopped_says_how_far_it_is(tmp_path):
    spec = make_spec(models=["a", "b", "c"])
    with Store(tmp_path / "s.sqlite") as store:
        units = begin(store, spec, infos_of(1))
        for n in range(3):
            put(store, spec, units["table-00", "a"], "trial", f"0/{n}", Result({"score": 0.5}))
        row = {"fold": 0, "balanced_accuracy": 0.5}
        put(store, spec, units["table-00", "b"], "fold", "0", Result(rows=[row]))
        (findings,) = read_findings(store)
    said = texts(about_blocks(findings, load_experiment("accuracy")))[-1]
    assert said.startswith("3 of 3 pairs of dataset and model are not finished yet;")
    (grid,) = missing_blocks(findings)
    states = {row[1].text: row[2].text for row in grid.rows}
    assert states == {"a": "begun: 3 trials", "b": "begun", "c": "not run"}


def test_what_went_wrong_is_told_from_what_is_to_come(tmp_path):
    lost = {"failed": {("table-00", "rf")}, "left_open": {("table-01", "rf"), ("table-01", "ce")}}
    with Store(tmp_path / "s.sqlite") as store:
        fill_accuracy(store, make_spec(), infos_of(2), **lost)
        (findings,) = read_findings(store)
    said = texts(about_blocks(findings, load_experiment("accuracy")))[-1]
    assert said.startswith("Something went wrong for 1 of 10 pairs of dataset and model, and 2 are")


def test_without_a_result_there_is_no_table_of_measures(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        begin(store, make_spec(), infos_of(2))
        (findings,) = read_findings(store)
    blocks = accuracy_blocks(findings, analyse(findings), "x")
    assert Heading("All measures") not in blocks
    assert "There is no result yet." in texts(blocks)


def test_fewer_tasks_than_planned_are_explained(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        fill_accuracy(store, make_spec(models=["rf"]), infos_of(2))  # three tasks of four each
        (findings,) = read_findings(store)
    said = making_blocks(findings)[0].items
    assert any(line.startswith("6 tasks of 8 planned ones were computed") for line in said)
    whole = making_blocks(replace(findings, n_planned=6))[0].items
    assert not any("planned" in line for line in whole)


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


@pytest.mark.parametrize(
    ("n_models", "n_folds", "said", "unsaid"),
    [
        (4, 10, "by Wilcoxon's test with Holm's correction, as in the paper;", "Bengio"),
        (11, 10, "by Nadeau and Bengio's corrected t-test", "as in the paper"),
        (4, 1, "Ranks are by mean scores.", "paper"),
    ],
)
def test_it_is_said_what_was_tested_and_by_which_test(n_models, n_folds, said, unsaid):
    ranking, by_folds = ranking_of(n_models, n_folds), n_folds > 1
    caption = ranks_grid(ranking).caption
    assert said in caption
    assert unsaid not in caption
    grid = reference_grid(ranking)
    assert {len(row) for row in grid.rows} == {len(grid.columns)}
    assert ("on those by means over folds" in grid.caption) == by_folds
    assert sum("Nemenyi" in name for name in grid.columns) == 1 + by_folds
    assert f"for all {n_models * (n_models - 1) // 2} pairs of models." in grid.caption
    assert "pairs" not in reference_grid(replace(ranking, pairs=None)).caption
    (first, *_) = (b for each in pair_grids(ranking) for b in getattr(each, "blocks", (each,)))
    assert ("not on those by means" in first.caption) == by_folds
