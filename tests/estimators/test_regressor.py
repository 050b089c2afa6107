"""The regressor: scikit-learn's contract, any table, any shape of y, files, clear refusals."""

import pickle
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_predict
from sklearn.utils.estimator_checks import parametrize_with_checks

from cocoloss import CoCoClassifier, CoCoRegressor, load
from cocoloss.estimators import load_model
from cocoloss.estimators.model_file import read_state, write_state
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.model import Ensemble, Together
from cocoloss.kernels import KernelMachine

X, Y = load_diabetes(return_X_y=True, as_frame=True)


def regressor(**arguments):
    return CoCoRegressor(random_state=0, **arguments)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([regressor(), regressor(max_iter=15, n_members=2)])
def test_keeps_scikit_learns_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def diabetes():
    return regressor().fit(X, Y)


# What it predicts --------------------------------------------------------------------------------


def test_scores_itself_honestly(diabetes):
    assert diabetes.loo_prediction_.shape == (442,)
    assert diabetes.loo_score_ == pytest.approx(r2_score(Y, diabetes.loo_prediction_))
    crossed = cross_val_predict(regressor(), X, Y, cv=5)
    assert diabetes.loo_score_ == pytest.approx(r2_score(Y, crossed), abs=0.05)


def test_quantiles_are_in_order_around_the_mean(diabetes):
    low, middle, high = diabetes.predict_quantiles(X, [0.1, 0.5, 0.9]).T
    assert (low < middle).all()
    assert (middle < high).all()
    ends = diabetes.predict_interval(X, coverage=0.8)
    np.testing.assert_array_equal(ends, np.c_[low, high])
    mean, deviation = diabetes.predict(X, return_std=True)
    np.testing.assert_array_equal(mean, diabetes.predict(X))
    assert ((low < mean) & (mean < high)).all()
    assert (deviation > 0).all()


def test_importances_say_which_columns_matter(diabetes):
    assert diabetes.feature_importances_.sum() == pytest.approx(1)
    best = X.columns[diabetes.feature_importances_.argmax()]
    assert best in ("bmi", "s5")


def test_strange_rows_are_strange(diabetes):
    assert (diabetes.outlier_score(X + 1) > diabetes.outlier_score(X)).mean() > 0.99


def test_the_learnt_kernel_serves_others(diabetes):
    K = diabetes.kernel(X)
    np.testing.assert_allclose(np.diag(K), 1)
    assert np.linalg.eigvalsh(K).min() > -1e-5
    embedding = diabetes.transform(X)
    assert embedding.shape == (442, 1)
    GaussianProcessRegressor().fit(embedding, Y)


def test_several_columns_are_predicted_at_once():
    both = np.c_[Y, -Y, np.ones(len(Y))]
    fitted = regressor().fit(X, both)
    predicted = fitted.predict(X)
    assert predicted.shape == (442, 3)
    np.testing.assert_allclose(predicted[:, 0], -predicted[:, 1])
    np.testing.assert_allclose(predicted[:, 2], 1)
    assert fitted.predict_interval(X).shape == (442, 2, 3)
    assert fitted.loo_prediction_.shape == (442, 3)
    assert regressor().fit(X, pd.DataFrame({"y": Y})).predict(X).shape == (442, 1)


def test_takes_a_table_with_gaps_categories_and_dates():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "size": np.where(rng.random(300) < 0.1, np.nan, rng.normal(100, 20, 300)),
            "town": rng.choice(["here", "there", None], 300),
            "sold": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 300), "D"),
            "new": rng.random(300) < 0.5,
        }
    )
    price = 1000 * (table["size"].fillna(100) + 30 * (table["town"] == "here") + 10 * table["new"])
    fitted = regressor().fit(table, price)
    assert fitted.loo_score_ > 0.8
    assert fitted.feature_importances_.shape == (4,)
    assert fitted.feature_names_in_.tolist() == list(table)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_units_do_not_matter(scale, diabetes):
    scaled = regressor().fit(X, scale * Y)
    np.testing.assert_allclose(scaled.predict(X) / scale, diabetes.predict(X), rtol=1e-4)
    np.testing.assert_allclose(
        scaled.predict_interval(X) / scale, diabetes.predict_interval(X), rtol=1e-3, atol=0.1
    )


def test_the_order_of_the_rows_does_not_matter(diabetes):
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = regressor().fit(X.iloc[order], Y.iloc[order])
    np.testing.assert_allclose(shuffled.predict(X), diabetes.predict(X), rtol=1e-6)


def test_whole_weights_are_copies_and_zeros_are_no_rows():
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = regressor().fit(X, Y, sample_weight=weights)
    rows = np.repeat(np.arange(len(X)), weights)
    repeated = regressor().fit(X.iloc[rows], Y.iloc[rows])
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
    unseen = np.flatnonzero(weights == 0)
    np.testing.assert_allclose(weighted.loo_prediction_[unseen], weighted.predict(X)[unseen])


@pytest.mark.parametrize("values", [[0, 1], [3, 3, 3, 9]], ids=["two", "rare"])
def test_few_different_numbers_are_numbers(values):
    y = np.resize(values, 100)
    rows = np.c_[y, np.random.default_rng(0).normal(size=100)]
    fitted = regressor().fit(rows, y)
    np.testing.assert_allclose(fitted.predict(rows), y, atol=0.3)
    assert np.isfinite(fitted.predict_interval(rows)).all()


@pytest.mark.parametrize("n", [2, 3, 7])
def test_a_few_rows_are_enough_for_an_answer(n):
    ends = regressor().fit(X[:n], Y[:n]).predict_interval(X)
    assert np.isfinite(ends).all()
    assert (ends[:, 0] <= ends[:, 1]).all()


def test_keeps_to_its_time_and_says_what_was_left_out():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(6000, 30))
    regressor().fit(rows[:50], rows[:50, 0])  # imports
    start = time.perf_counter()
    with pytest.warns(UserWarning, match="left out"):
        regressor(time_limit=1.0).fit(rows, rows[:, 0] * rows[:, 1])
    assert time.perf_counter() - start < 20  # machines are busy at times


@pytest.mark.parametrize("cls", [CoCoClassifier, CoCoRegressor])
def test_epochs_that_there_was_no_time_for_are_said(cls):
    slow = {"hidden_layer_sizes": (1024, 1024), "max_iter": 10**6}
    hurried = cls(solver="network", time_limit=0.01, random_state=0, **slow)
    with pytest.warns(UserWarning, match=r"left out \d+ of 1000000 epochs of networks"):
        hurried.fit(X, (Y > 150).astype(int))


def test_means_of_rows_take_the_place_of_rows():
    fitted = regressor(landmarks="kmeans").fit(X, Y)
    made = fitted.model_.inputs(X)
    for machine in (fitted.model_.machine, fitted.model_.readout.spread.machine):
        assert not (machine.rows[:, None] == made[None]).all(axis=-1).any()
    assert fitted.loo_score_ > 0.4


# Networks ----------------------------------------------------------------------------------------

FEW_STEPS = {"hidden_layer_sizes": (16,), "max_iter": 30, "n_members": 3}


def test_networks_predict_and_are_honest():
    fitted = regressor(solver="network", **FEW_STEPS).fit(X, Y)
    assert isinstance(fitted.model_.networks, Ensemble)
    assert 0.3 < fitted.loo_score_ < fitted.score(X, Y)
    low, high = fitted.predict_interval(X).T
    assert np.mean((low <= Y) & (high >= Y)) > 0.85
    assert fitted.outlier_score(X).shape == (442,)
    with pytest.raises(AttributeError, match="solver='kernel'"):
        _ = fitted.feature_importances_


@pytest.mark.parametrize("n", [8, 20])
def test_networks_of_a_few_rows_are_honest_too(n):
    fitted = regressor(solver="network").fit(X[:n], Y[:n])
    assert fitted.loo_score_ < 0.9  # they know these rows by heart
    low, high = fitted.predict_interval(X).T
    assert np.mean((low <= Y) & (high >= Y)) > 0.5
    assert fitted.quality_.n_rows == n


@pytest.mark.parametrize("n", [2, 3, 20])
def test_a_few_rows_do_not_weigh_networks_against_kernels(n):
    fitted = regressor(solver="both").fit(X[:n], Y[:n])
    np.testing.assert_array_equal(fitted.predict(X), regressor().fit(X[:n], Y[:n]).predict(X))


def test_a_network_alone_holds_rows_out():
    fitted = regressor(solver="network", n_members=1, max_iter=60).fit(X[:300], Y[:300])
    low, high = fitted.predict_interval(X[300:]).T
    assert np.mean((low <= Y[300:]) & (high >= Y[300:])) > 0.8
    assert fitted.quality_.n_rows == 50
    with pytest.raises(AttributeError, match=r"no loo_score_: kernels have it.*quality_"):
        _ = fitted.loo_score_
    few = regressor(solver="network", n_members=1, max_iter=60).fit(X[:20], Y[:20])
    low, high = few.predict_interval(X).T
    assert np.mean((low <= Y) & (high >= Y)) > 0.5
    with pytest.raises(AttributeError, match="a network alone holds rows out if there are 30"):
        _ = few.quality_


@pytest.mark.parametrize("number", [0.0, 5.0, 1e-9])
@pytest.mark.filterwarnings("ignore:no column is left")
def test_networks_predict_a_constant_as_it_is(number):
    fitted = regressor(solver="network", **FEW_STEPS).fit(X, np.full(len(X), number))
    np.testing.assert_allclose(fitted.predict(X), number, atol=1e-300)
    np.testing.assert_allclose(fitted.predict_interval(X), number, atol=1e-300)
    one_row = regressor(solver="network").fit(np.ones((5, 2)), np.full(5, number))
    np.testing.assert_allclose(one_row.predict(np.ones((2, 2))), number)


def test_an_argument_of_networks_asks_for_them():
    assert isinstance(regressor(**FEW_STEPS).fit(X, Y).model_.networks, Ensemble)


def test_both_are_weighted_by_rows_that_neither_has_seen(tmp_path):
    fitted = regressor(solver="both", **FEW_STEPS).fit(X, np.c_[Y, -Y])
    kernels, *networks = fitted.model_.mixing
    assert (kernels >= 0).all()
    assert len(networks) == 3
    assert fitted.loo_score_ > 0.4
    fitted.save(tmp_path / "model.coco")
    np.testing.assert_array_equal(load(tmp_path / "model.coco").predict(X), fitted.predict(X))


def test_many_rows_are_for_both(monkeypatch):
    monkeypatch.setattr("cocoloss.fitting.fit_numbers.MOST_EXACT", 300)
    assert isinstance(regressor().fit(X, Y).model_.networks, Together)
    assert isinstance(regressor().fit(X[:200], Y[:200]).model_.networks, KernelMachine)


def test_weights_of_networks_are_ratios():
    halves = regressor(**FEW_STEPS).fit(X, Y, sample_weight=np.where(Y > 150, 0.2, 1.0))
    assert halves.predict(X).mean() < regressor(**FEW_STEPS).fit(X, Y).predict(X).mean()


# Files -------------------------------------------------------------------------------------------


def test_a_file_predicts_as_the_regressor_did(diabetes, tmp_path):
    diabetes.save(tmp_path / "model.coco")
    for other in (CoCoRegressor.load, load, load_model):
        again = other(tmp_path / "model.coco")
        np.testing.assert_array_equal(again.predict(X), diabetes.predict(X))
        np.testing.assert_array_equal(again.predict_interval(X), diabetes.predict_interval(X))
    copied = pickle.loads(pickle.dumps(diabetes))  # noqa: S301 - our own
    np.testing.assert_array_equal(copied.predict(X), diabetes.predict(X))
    with pytest.raises(CoCoError, match="CoCoRegressor, not a CoCoClassifier"):
        CoCoClassifier.load(tmp_path / "model.coco")


def test_a_file_predicts_without_scikit_learn_and_torch(diabetes, tmp_path):
    diabetes.save(tmp_path / "model.coco")
    X.to_csv(tmp_path / "rows.csv", index=False)
    code = (
        "import sys, pandas; from cocoloss.estimators.model_file import load_model; "
        f"model = load_model({str(tmp_path / 'model.coco')!r}); "
        f"model.predict_interval(pandas.read_csv({str(tmp_path / 'rows.csv')!r})); "
        "sys.exit('torch' in sys.modules or 'sklearn' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "change",
    [
        {"mixing": np.ones((1, 2, 1))},
        {"mixing": np.full((1, 1, 1), np.nan)},
        {"one_column": "yes"},
        {"readout": {}},
        {"task": "classes"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_file_that_cannot_be_is_refused(diabetes, tmp_path, change):
    diabetes.save(tmp_path / "model.coco")
    state = read_state(tmp_path / "model.coco")
    state["model"] |= change
    write_state(tmp_path / "crafted.coco", state, writer="somebody")
    with pytest.raises(CoCoError, match="not a usable model file"):
        load(tmp_path / "crafted.coco")


# Refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["dear", "cheap"] * 221, "must hold numbers.*'dear'.*CoCoClassifier"),
        (Y.where(Y < 300), "NaN.*14 of 442 rows"),
        (Y.astype("Float64").where(Y < 300), "NaN.*14 of 442 rows"),
        (np.r_[np.inf, Y[1:]], "infinity: row 0"),
        (Y[:5], "442 rows, but y has 5"),
        (np.zeros((442, 2, 2)), "shape"),
        (pd.Series(pd.date_range("2020", periods=442)), "datetime64"),
        (None, "requires y"),
        (1e200 * Y, "as large as 3.46e\\+202, whose squares floats do not hold"),
        (1e-200 * Y, "as large as 3.46e-198"),
    ],
    ids=["text", "gaps", "NA", "infinite", "short", "cube", "dates", "none", "large", "small"],
)
def test_a_target_that_is_no_number_is_refused(y, message):
    with pytest.raises(CoCoError, match=message):
        regressor().fit(X, y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"solver": "svm"}, "solver must be one of"),
        ({"landmarks": "some"}, "landmarks must be one of"),
        ({"time_limit": -1}, "time_limit must be"),
        ({"random_state": -1}, "random_state"),
        ({"max_iter": 0}, "max_iter must be at least 1, but is 0"),
        ({"max_iter": 2.5}, "max_iter must be a whole number"),
        ({"batch_size": "all"}, "batch_size must be a whole number"),
        ({"hidden_layer_sizes": (8, 0)}, "each of hidden_layer_sizes must be at least 1"),
        ({"device": "abacus"}, "device 'abacus' cannot be used here"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_an_argument_that_cannot_be_is_refused(arguments, message):
    with pytest.raises(CoCoError, match=message):
        CoCoRegressor(**arguments).fit(X, Y)


@pytest.mark.parametrize("levels", [[], [0.0], [1.5], ["a"], 2])
def test_quantiles_are_between_0_and_1(levels, diabetes):
    with pytest.raises(CoCoError, match="quantiles"):
        diabetes.predict_quantiles(X, levels)


def test_a_failed_fit_leaves_the_regressor_as_it_was(diabetes):
    fitted = regressor().fit(X, Y)
    before = fitted.predict(X)
    with pytest.raises(CoCoError):
        fitted.fit(X, Y.where(Y < 300))
    np.testing.assert_array_equal(fitted.predict(X), before)
