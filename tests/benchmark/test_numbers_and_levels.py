"""Benchmarks of numbers and of levels: folds, measures, and a report that ranks errors."""

import json

import numpy as np
import pandas as pd
import pytest
from bench_cli import bench, refusal

from cocoloss.benchmark.numbers_and_levels import TASKS, fit_fold, folds_of, measure_levels
from cocoloss.exceptions import CoCoError
from cocoloss.tables import load_source

SPEC = """
name = "{kind}"
kind = "{kind}"
[data]
source = "folder:tables"
max_rows = 80
[folds]
outer = 3
[models]
names = [{models}]
"""


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Write two tables whose target is a number, or the level that it is in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tables").mkdir()

    def write(kind, *models):
        rng = np.random.default_rng(0)
        for name, scale in (("one", 1.0), ("other", 1000.0)):
            X = rng.normal(size=(90, 3))
            y = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.1 * rng.normal(size=90)
            target = scale * y if kind == "regression" else np.digitize(y, [-0.3, 0.5, 1.2])
            frame = pd.DataFrame(X, columns=list("abc")).assign(target=target)
            frame.to_csv(tmp_path / "tables" / f"{name}.csv", index=False)
        names = ", ".join(f'"{model}"' for model in models)
        (tmp_path / "spec.toml").write_text(SPEC.format(kind=kind, models=names))
        return tmp_path

    return write


def test_folds_have_their_share_of_small_and_large_numbers():
    judge, y = TASKS["numbers"], np.random.default_rng(0).exponential(size=100)
    folds = folds_of(judge, y, 5, seed=0)
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(100))
    tenths = np.argsort(np.argsort(y)) // 10
    for fold in folds:
        assert np.bincount(tenths[fold.test]).tolist() == [2] * 10
    with pytest.raises(CoCoError, match="7 rows are too few for 5 folds"):
        folds_of(judge, y[:7], 5, seed=0)


@pytest.mark.parametrize("task", TASKS)
def test_every_model_fits_a_fold_and_is_measured(task):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"]).assign(c=["x", "y"] * 30)
    y = X["a"] if task == "numbers" else (X["a"] > 0).astype(int) + (X["a"] > 1)
    judge = TASKS[task]
    target = judge.target(y)
    fold = folds_of(judge, target, 3, seed=0)[0]
    for name, model in judge.models.items():
        fitted, seconds = fit_fold(model.make, X, target, fold, seed=0)
        found = judge.measure(model, fitted, X.iloc[fold.test], target[fold.test])
        assert set(found) == set(judge.measures), name
        assert found["mae"] < 0.5, name
        assert seconds > 0


def test_levels_are_measured_as_in_loops():
    class Fixed:
        def predict(self, _):
            return np.array([0.4, 2.6, 1.2, -0.7, 2.0])  # of a regressor: 0, 3, 1, 0, 2

    y = np.array([0, 2, 1, 1, 0])
    found = measure_levels(TASKS["levels"].models["hgb"], Fixed(), None, y)
    assert found["mae"] == (0 + 1 + 0 + 1 + 2) / 5
    assert found["balanced_accuracy"] == pytest.approx((1 / 2 + 1 / 2 + 0) / 3)
    seen, chance, said = 0.0, 0.0, [0, 3, 1, 0, 2]
    for i in range(5):
        seen += (y[i] - said[i]) ** 2 / 5
        for j in range(5):
            chance += (y[i] - said[j]) ** 2 / 25
    assert found["kappa"] == pytest.approx(1 - seen / chance)


@pytest.mark.parametrize(
    ("kind", "models", "measure", "workers"),
    [
        ("regression", ["coco", "ridge"], "relative_rmse", 1),
        ("ordinal", ["coco-median", "hgb"], "mae", 0),
    ],
)
def test_a_benchmark_runs_and_its_report_ranks_by_errors(tables, kind, models, measure, workers):
    folder = tables(kind, *models)
    bench("run", "spec.toml", "--workers", workers)
    bench("report", f"{kind}.sqlite", "--out", "report")
    scores = pd.read_csv(folder / "report" / f"{kind}-scores.csv")
    assert len(scores) == 2 * 2 * 3
    assert scores[measure].notna().all()
    means = scores.groupby(["dataset", "model"])[measure].mean().unstack()
    made = json.loads((folder / "report" / "report.json").read_text())
    analysis = made["benchmarks"][0]["analysis"]
    assert analysis["measure"] == measure
    assert not analysis["higher_is_better"]
    text = (folder / "report" / "report.md").read_text()
    for dataset, line in means.iterrows():  # the least error stands out
        row = next(row for row in text.splitlines() if row.startswith(f"| {dataset} |"))
        cells = dict(zip(models, row.split("|")[2:], strict=False))
        assert cells[line.idxmin()].strip().startswith("**")
        assert not cells[line.idxmax()].strip().startswith("**")
    assert r"\begin{tabular}" in (folder / "report" / "report.tex").read_text()
    if kind == "regression":
        assert (means < 1).all(axis=None)
        assert scores[scores["model"] == "coco"]["coverage"].notna().all()
        # Units do not matter: the tables differ by them alone, but for the rows drawn.
        assert means["coco"]["one"] == pytest.approx(means["coco"]["other"], abs=0.25)


def test_models_and_sources_of_classes_are_refused(tables):
    tables("regression", "coco", "ksvm")
    assert "there is no model 'ksvm'" in refusal("plan", "spec.toml")
    tables("regression", "coco", "ridge")
    line = refusal("plan", "spec.toml", "--data", "openml-cc18")
    assert "openml-cc18 has classes, not numbers" in line
    assert "1 table" in bench("plan", "spec.toml", "--data", "sklearn").stdout


def test_sources_give_what_they_are_asked_for(tables):
    folder = tables("regression", "coco")
    assert load_source("folder:tables", "numbers").load("one").y.dtype == np.float64
    assert load_source("sklearn", "numbers").load("diabetes").n_rows == 442
    one = load_source(f"file:{folder}/tables/one.csv#target", "numbers").load("one")
    assert one.y.nunique() == 90
    tables("ordinal", "coco")
    levels = load_source("folder:tables", "levels").load("one").y
    assert levels.cat.ordered
    assert levels.cat.categories.tolist() == [0, 1, 2, 3]
    with pytest.raises(CoCoError, match="no table of levels"):
        load_source("sklearn", "levels")
