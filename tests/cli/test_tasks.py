"""Numbers and ordered levels on the command line: the same commands as for classes."""

import io
import json
import re

import numpy as np
import pandas as pd
import pytest

import cocoloss
from cocoloss.benchmark.numbers_and_levels import LEVELS, REGRESSORS, evaluate_task
from cocoloss.columns import settle_kinds
from cocoloss.tables import split_target

N = 120
QUICK = ("--model", "coco", "--model", "ridge")


@pytest.fixture(scope="module")
def houses():
    """Return houses as people write them down: euros, decimal commas, gaps, remarks."""
    rng = np.random.default_rng(0)
    area, quarter = rng.uniform(40, 200, N), rng.choice(["north", "south"], N)
    price = 1000 * area * (1 + 0.5 * (quarter == "north")) + rng.normal(0, 9000, N)
    state = np.where(price < 90_000, "poor", np.where(price < 180_000, "fair", "good"))
    texts = pd.Series(f"{p:,.2f} €".translate(str.maketrans(",.", ".,")) for p in price)
    texts[[3, 7, 11]] = ["", "k.A.", "sold"]
    return pd.DataFrame(
        {
            "number": range(1, N + 1),
            "area": [f"{a:.1f}".replace(".", ",") for a in area],
            "quarter": np.where(rng.random(N) < 0.1, "", quarter),
            "built": pd.date_range("1990-01-01", periods=N, freq="67D").strftime("%d.%m.%Y"),
            "state": state,
            "price": texts,
        }
    )


@pytest.fixture(scope="module")
def file(houses, tmp_path_factory):
    path = tmp_path_factory.mktemp("houses") / "houses.csv"
    houses.to_csv(path, index=False, sep=";")
    return path


@pytest.fixture(scope="module")
def prices(run, file, tmp_path_factory):
    """Return a model of numbers, and what the command printed."""
    path = tmp_path_factory.mktemp("models") / "prices.coco"
    return path, run("fit", file, "--target", "price", "--drop", "state", "--out", path)


def numbers_of(houses):
    frame = houses.drop(columns=["number", "state"], index=11)  # which is sold
    return split_target(frame, "price", missing="drop", task="numbers")


def test_prices_are_learnt_without_a_word_about_what_they_are(prices, houses):
    path, done = prices
    model = cocoloss.load(path)
    X, y = numbers_of(houses)
    assert type(model).__name__ == "CoCoRegressor"
    assert model.score(settle_kinds(X), y) > 0.9
    assert "price has 119 different values, and is taken for numbers; say --task" in done.stderr
    assert "other text such as 'sold', which is a gap; such rows are left out" in done.stderr
    assert "left out 3 rows whose price is not known" in done.stderr
    assert re.search(r"numbers   [\d,]+ to [\d,]+, mean [\d,]+\n", done.stdout)
    said = (
        r"quality   leave-one-out: R2 0\.9\d+ ± 0.\d+ \(guessing 0\.000\), RMSE [\d,]+ ± [\d,.]+ \("
    )
    assert re.search(said, done.stdout)


def test_what_is_said_of_rows_left_out_is_theirs(run, file, tmp_path, houses):
    out = tmp_path / "m.coco"
    asked = ("fit", file, "--target", "price", "--drop", "state", "--json")
    facts = json.loads(run(*asked, "--task", "numbers", "--out", out).stdout)
    X, y = numbers_of(houses)
    model = cocoloss.CoCoRegressor(random_state=0).fit(settle_kinds(X), y)
    assert facts["task"] == "numbers"
    assert facts["rows"] == N - 3
    assert facts["loo_r2"] == pytest.approx(model.loo_score_, abs=1e-3)
    rmse = np.sqrt(np.mean((model.loo_prediction_ - y) ** 2))
    assert facts["loo_rmse"] == pytest.approx(rmse, rel=1e-2)
    assert facts["numbers"]["deviation"] == pytest.approx(np.std(y))


def test_predictions_have_intervals_and_outliers(run, prices, file, tmp_path):
    model, out = cocoloss.load(prices[0]), tmp_path / "p.csv"
    asked = ("predict", prices[0], file, "--interval", "0.8", "--outliers", "--keep", "number")
    run(*asked, "--out", out)
    found = pd.read_csv(out)
    assert list(found) == ["number", "prediction", "lower", "upper", "outlier_score"]
    X = pd.read_csv(file, sep=";", decimal=",")
    np.testing.assert_allclose(found["prediction"], model.predict(X), rtol=1e-9)
    ends = model.predict_interval(X, coverage=0.8)
    np.testing.assert_allclose(found[["lower", "upper"]], ends, rtol=1e-9)
    np.testing.assert_allclose(found["outlier_score"], model.outlier_score(X), rtol=1e-6)
    assert list(pd.read_csv(file, sep=";")["number"]) == list(found["number"])


def test_predictions_of_numbers_are_explained(run, prices, file):
    lines = run("predict", prices[0], file, "--interval", "0.8", "--explain", "2").stdout
    found = pd.read_csv(io.StringIO(lines))
    expected = cocoloss.load(prices[0]).explain(pd.read_csv(file, sep=";", decimal=",")).top(2)
    assert found["column_2"].tolist() == expected["column_2"].tolist()
    np.testing.assert_allclose(found["contribution_2"], expected["contribution_2"], rtol=1e-6)


def test_what_is_of_another_task_is_refused_in_one_line(refused, run, prices, model, table, file):
    line = refused("predict", prices[0], file, "--proba")
    assert "--proba is for classes, and" in line
    assert "predicts numbers; say --interval 0.9" in line
    assert "--interval is for numbers" in refused("predict", model, table, "--interval", "0.9")
    assert "--rule is for a model of levels" in refused("predict", model, table, "--rule", "mean")
    assert "1.5" in refused("predict", prices[0], file, "--interval", "1.5", code=2)
    assert "--explain" in refused("predict", prices[0], file, "--explain", "0", code=2)


@pytest.mark.parametrize("solver", ["network", "both"])
def test_networks_learn_numbers(run, file, tmp_path, solver):
    out = tmp_path / "m.coco"
    asked = ("fit", file, "--target", "price", "--drop", "state", "--out", out)
    said = run(*asked, "--solver", solver, "--epochs", 3, "--members", 2).stdout
    assert "2 networks" in said
    assert ("kernel" in said) == (solver == "both")
    assert "share it only with" in said  # rows that tell how large residuals are
    assert "lower" in run("predict", out, file, "--interval", 0.8).stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--priors", "uniform"], "--priors is for classes and levels, and the target is numbers"),
        (["--model", "ce"], "--model ce is for classes, not for numbers"),
        (["--tune", 2], "--tune is for networks"),
        (["--levels", "a,b"], "--levels is for levels, and --task is numbers"),
        (["--task", "classes"], "a quantity, whose task is numbers, not like classes"),
    ],
)
def test_options_of_classes_are_refused_for_numbers(run, file, tmp_path, options, words):
    out = tmp_path / "m.coco"
    asked = ("fit", file, "--target", "price", "--drop", "state", "--out", out)
    said = run(*asked, "--task", "numbers", *options, code=1).stderr
    assert words in said.splitlines()[-1]
    assert not out.exists()


def test_few_numbers_are_classes_and_that_is_said(run, tmp_path):
    rng = np.random.default_rng(1)
    grade = rng.integers(1, 6, N)
    path, out = tmp_path / "t.csv", tmp_path / "m.coco"
    pd.DataFrame({"x": grade + rng.normal(size=N), "grade": grade}).to_csv(path, index=False)
    done = run("fit", path, "--target", "grade", "--out", out)
    assert "5 different numbers, and is taken for classes; say --task levels" in done.stderr
    assert "classes   1 (" in done.stdout
    done = run("fit", path, "--target", "grade", "--task", "levels", "--out", out)
    assert "levels    1 (" in done.stdout
    assert " < 2 (" in done.stdout
    assert re.search(r"levels off \d\.\d+ ± 0\.\d+ \(\d\.\d+\), kappa 0\.\d+ ± ", done.stdout)
    assert type(cocoloss.load(out)).__name__ == "CoCoOrdinalClassifier"
    assert done.stderr == ""


def test_levels_of_text_have_the_order_that_is_given(run, refused, file, tmp_path):
    out = tmp_path / "m.coco"
    asked = ("fit", file, "--target", "state", "--drop", "price", "--out", out)
    line = run(*asked, "--task", "levels", code=1).stderr.splitlines()[-1]
    assert "'fair', 'good', 'poor', whose order nobody knows" in line
    run(*asked, "--levels", "poor,fair,good,splendid")
    model = cocoloss.load(out)
    assert model.classes_.tolist() == ["poor", "fair", "good"]
    X = pd.read_csv(file, sep=";", decimal=",")
    for rule in ("mode", "median", "mean"):
        found = run("predict", out, file, "--rule", rule).stdout.splitlines()[1:]
        assert found == model.predict(X, rule=rule).tolist()
    assert run("predict", out, file).stdout.splitlines()[1:] == model.predict(X).tolist()
    assert "is not among" in run(*asked, "--levels", "poor,good", code=1).stderr


def test_levels_keep_their_order_where_some_rows_have_none(run, file, houses, tmp_path):
    path, out = tmp_path / "gaps.csv", tmp_path / "m.coco"
    few = houses.drop(columns="price").assign(state=houses["state"].where(houses.index % 5 == 0))
    few.to_csv(path, index=False)
    asked = ("fit", path, "--target", "state", "--levels", "poor,fair,good,splendid", "--out", out)
    facts = json.loads(run(*asked, "--unlabelled", "soft", "--json").stdout)
    model = cocoloss.load(out)
    assert model.classes_.tolist() == list(facts["classes"]) == ["poor", "fair", "good"]
    assert facts["unlabelled_rows"] == few["state"].isna().sum()
    assert 0 <= facts["loo_mae"] < 0.5  # of rows that have a label


def test_evaluate_judges_numbers_by_how_far_off_they_are(run, file, houses):
    asked = ("evaluate", file, "--target", "price", "--drop", "state", "--folds", 3)
    found = json.loads(run(*asked, *QUICK, "--json").stdout)
    X, y = numbers_of(houses)
    expected = evaluate_task(settle_kinds(X), y, "numbers", ["coco", "ridge"], n_folds=3)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours["model"] == theirs.model
        for measure in ("rmse", "mae", "r2"):
            assert ours[measure] == pytest.approx(theirs.mean(measure), rel=1e-6)
    assert found[0]["coverage"] > 0.7
    assert found[1]["coverage"] is None
    printed = run(*asked, *QUICK).stdout
    for words in ("RMSE", "MAE", "R2", "in 90% intervals", "s/fit", "CoCo", "ridge", "3 folds."):
        assert words in printed
    line = run(*asked, "--model", "ksvm", code=1).stderr.splitlines()[-1]
    assert "--model ksvm is not for numbers; there are coco, " in line


def test_measures_are_those_of_their_formulas(houses):
    X, y = numbers_of(houses)
    X = settle_kinds(X)
    (found,) = evaluate_task(X, y, "numbers", ["ridge"], n_folds=4, seed=2)
    assert found.folds["rmse"].shape == (4,)
    assert (found.folds["rmse"] >= found.folds["mae"]).all()
    levels = pd.Series(pd.Categorical(houses["state"], ["poor", "fair", "good"], ordered=True))
    X = settle_kinds(houses[["area", "quarter"]])
    by_median, by_mode = evaluate_task(X, levels, "levels", ["coco-median", "coco"], n_folds=3)
    assert by_median.seconds == by_mode.seconds  # one fit, read off twice
    assert by_mode.mean("mae") < 0.3
    assert by_mode.mean("kappa") > 0.8
    assert set(REGRESSORS) >= {"coco", "hgb", "rf", "svr", "ridge"}
    assert set(LEVELS) >= {"coco", "coco-median", "rf", "hgb"}


def test_evaluate_judges_levels_by_how_many_they_are_off(run, file):
    asked = ("evaluate", file, "--target", "state", "--levels", "poor,fair,good", "--drop", "price")
    printed = run(*asked, "--folds", 2, "--model", "coco", "--model", "hgb").stdout
    for words in ("balanced accuracy", "levels off", "weighted kappa", "boosted trees, rounded"):
        assert words in printed


def test_the_page_of_prices_is_one_command(run, file, tmp_path):
    out = tmp_path / "prices.html"
    asked = ("report", file, "--target", "price", "--drop", "state", "--out", out)
    facts = json.loads(run(*asked, "--json").stdout)
    assert facts["model"] == "CoCoRegressor"
    assert facts["n_train"] + facts["n_test"] == N - 3
    assert facts["rmse"] < facts["guessing_rmse"]
    assert 0.5 < facts["coverage"]["0.9"] <= 1
    assert facts["dropped_columns"] == {"number": "counts the rows"}
    page = out.read_text()
    for words in ("Predicted against true", "Residuals", "observed coverage", "Importances"):
        assert words in page
    assert "without a number were left out" in page
    assert "(written as 1.234,5)" in page
    done = run(*asked, "--embedding-dim", 2, code=1)
    assert "--embedding-dim is for classes and levels" in done.stderr.splitlines()[-1]


def test_the_page_of_levels_says_how_far_off_they_are(run, file, tmp_path):
    out = tmp_path / "states.html"
    asked = ("report", file, "--target", "state", "--levels", "poor,fair,good", "--drop", "price")
    facts = json.loads(run(*asked, "--out", out, "--json").stdout)
    assert facts["levels_off"] < 0.5
    assert facts["kappa"] > 0.5
    assert "Weighted kappa" in out.read_text()


def test_several_files_of_numbers_are_one_table(run, houses, file, tmp_path):
    parts = [tmp_path / f"{k}.csv" for k in range(2)]
    for k, part in enumerate(parts):
        half = houses.iloc[k * N // 2 : (k + 1) * N // 2].drop(columns="number")
        half.to_csv(part, index=False, sep=";")
    whole, joined = tmp_path / "whole.coco", tmp_path / "joined.coco"
    asked = ("--target", "price", "--drop", "state", "--json")
    one = json.loads(run("fit", file, *asked, "--out", whole).stdout)
    two = json.loads(run("fit", *parts, *asked, "--out", joined).stdout)
    assert two["rows"] == one["rows"] == N - 3
    assert two["loo_r2"] == pytest.approx(one["loo_r2"], abs=1e-3)


def test_an_order_that_is_in_the_file_is_hinted_at(run, houses, tmp_path):
    path, out = tmp_path / "t.parquet", tmp_path / "m.coco"
    state = pd.Categorical(houses["state"], ["poor", "fair", "good"], ordered=True)
    houses[["area", "quarter"]].assign(state=state).to_parquet(path)
    done = run("fit", path, "--target", "state", "--out", out)
    assert "the values of state have an order; say --task levels" in done.stderr
    assert type(cocoloss.load(out)).__name__ == "CoCoClassifier"
    run("fit", path, "--target", "state", "--task", "levels", "--out", out)
    assert cocoloss.load(out).classes_.tolist() == ["poor", "fair", "good"]


def test_data_check_knows_tables_of_numbers(run, tmp_path):
    numbers = np.random.default_rng(0).normal(size=50)
    pd.DataFrame({"x": numbers, "target": 2 * numbers}).to_csv(tmp_path / "t.csv", index=False)
    done = run("data", "check", f"folder:{tmp_path}", "--task", "numbers")
    assert "50 rows, 1 columns, 50 different numbers" in done.stdout
    assert "quantity" in run("data", "check", f"folder:{tmp_path}", code=1).stdout
