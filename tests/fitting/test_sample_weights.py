"""A weight is a number of copies, and every copy counts; a row is what it says."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from cocoloss import CoCoClassifier, CoCoRegressor, CrossEntropyClassifier
from cocoloss.fitting import targets as module
from cocoloss.fitting.fit import prepare_job
from cocoloss.fitting.targets import make_copies, row_codes


def content(X, y, copies):
    """Return the rows with their classes and weights, in the order of the copies."""
    return [
        (*X[i].tolist(), int(y[i]), float(w))
        for i, w in zip(copies.rows, copies.weights, strict=True)
    ]


@given(st.integers(1, 30), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_weighted_rows_are_repeated_rows_in_any_order(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, 2)).astype(float)
    y, weights = rng.integers(0, 2, n), rng.integers(0, 4, n).astype(float)
    weights[0] = 1
    times = weights.astype(int)
    order = rng.permutation(times.sum())
    X2, y2 = np.repeat(X, times, axis=0)[order], np.repeat(y, times)[order]
    weighted = make_copies(X, y, weights)
    repeated = make_copies(X2, y2, np.ones(len(y2)))
    assert content(X, y, weighted) == content(X2, y2, repeated)
    assert weighted.groups.tolist() == repeated.groups.tolist()


def test_equal_rows_of_a_class_are_a_group_and_stand_side_by_side():
    X, y = np.array([[1.0], [2.0], [1.0], [1.0]]), np.array([0, 0, 1, 0])
    copies = make_copies(X, y, np.ones(4))
    found = [(X[i, 0], y[i]) for i in copies.rows]
    assert len(set(zip(found, copies.groups, strict=True))) == 3
    assert copies.groups.tolist() == sorted(copies.groups)


@pytest.mark.parametrize("scale", [1e-9, 1 / 7, 1.5])
def test_weights_that_are_no_counts_are_relative(scale):
    X, y = np.arange(6.0)[:, None], np.arange(6) % 2
    weights = np.array([1, 1, 1, 1, 1, 4]) * scale
    copies = make_copies(X, y, weights)
    mass = np.bincount(copies.rows, weights=copies.weights)
    np.testing.assert_allclose(mass, weights / weights.mean())
    assert np.bincount(copies.rows).tolist() == [1, 1, 1, 1, 1, 3]
    np.testing.assert_allclose(make_copies(X, y, np.full(6, scale)).weights, 1, rtol=1e-12)


def test_very_many_copies_are_thinned_out_evenly(monkeypatch):
    monkeypatch.setattr(module, "MOST_COPIES", 100)
    monkeypatch.setattr(module, "MOST_OF_EACH", 10)
    X, y = np.arange(3.0)[:, None], np.array([0, 1, 1])
    copies = make_copies(X, y, np.array([3e6, 6e6, 1.0]))
    assert np.bincount(copies.rows).tolist() == [33, 67, 1]
    np.testing.assert_allclose(np.bincount(copies.rows, weights=copies.weights), [3e6, 6e6, 1])
    weights = np.arange(1.0, 51) * 40  # of a larger table, ten copies of a row on average
    copies = make_copies(np.arange(50.0)[:, None], np.arange(50) % 2, weights)
    assert len(copies.rows) == pytest.approx(500, abs=10)
    np.testing.assert_allclose(np.bincount(copies.rows, weights=copies.weights), weights)


def test_a_table_of_which_every_row_occurs_thrice_is_the_table():
    X, y = np.arange(60.0)[:, None] // 2, np.arange(60) % 2
    once = make_copies(X, y, np.ones(60), in_lowest_terms=True)
    thrice = make_copies(X, y, np.full(60, 3.0), in_lowest_terms=True)
    repeated = make_copies(np.tile(X, (3, 1)), np.tile(y, 3), np.ones(180), in_lowest_terms=True)
    mixed = make_copies(
        np.tile(X, (2, 1)), np.tile(y, 2), np.repeat([2.0, 4.0], 60), in_lowest_terms=True
    )
    assert len(once.rows) == 60
    for same in (thrice, repeated, mixed):
        assert (same.rows % 60).tolist() == once.rows.tolist()
        assert same.weights.tolist() == once.weights.tolist()
        assert same.groups.tolist() == once.groups.tolist()


def test_counts_of_few_outcomes_stay_counts():
    X, y = np.arange(4.0)[:, None], np.arange(4) % 2
    copies = make_copies(X, y, np.full(4, 100.0), in_lowest_terms=True)
    assert np.bincount(copies.rows).tolist() == [100] * 4


NUMBERS = np.array([[0.0, 1.0], [2.0, 3.0], [-0.0, 1.0]])


@pytest.mark.parametrize(
    "same",
    [
        NUMBERS.astype(np.float32),
        NUMBERS.astype(np.longdouble),
        NUMBERS.astype(int),
        pd.DataFrame(NUMBERS, columns=["a", "b"]),
        pd.DataFrame(NUMBERS.astype(int)).astype("Int64"),
        pd.DataFrame(NUMBERS).map(lambda number: Decimal(int(number))),
    ],
)
def test_codes_know_what_is_said_and_not_how_it_is_stored(same):
    plain = row_codes(NUMBERS, "me")
    assert plain[0] == plain[2] != plain[1]
    assert np.array_equal(row_codes(same, "me"), plain)


DAYS = [dt.datetime(2020, 1, 1), dt.datetime(1999, 12, 31, 12), None]  # noqa: DTZ001


@pytest.mark.parametrize(
    ("values", "dtypes"),
    [
        ([True, False, None], ["boolean", "bool[pyarrow]"]),
        ([1.5, -2.0, None], ["float64", "Float64", "double[pyarrow]"]),
        (["u", None, "v"], ["str", "category"]),
        (DAYS, ["M8[us]", "M8[ns]", "timestamp[us][pyarrow]"]),
        (
            [dt.timedelta(days=2), dt.timedelta(seconds=-5), None],
            ["m8[us]", "m8[ns]", "duration[us][pyarrow]"],
        ),
        ([dt.date(9999, 12, 31), dt.date(1, 1, 1), None], []),  # beyond what pandas counts
    ],
)
def test_cells_are_the_same_in_every_library(values, dtypes):
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    objects = pd.Series(values, dtype=object)
    plain = row_codes(pd.DataFrame({"a": objects}), "me")
    assert len(set(plain)) == 3
    for dtype in dtypes:
        frame = pd.DataFrame({"a": objects.astype(dtype)})
        assert np.array_equal(row_codes(frame, "me"), plain), dtype
    if dtypes:
        assert np.array_equal(row_codes(polars.DataFrame({"a": values}), "me"), plain)


def test_a_time_is_one_in_every_zone():
    here = pd.DataFrame({"a": pd.to_datetime(["2020-01-01 12:00"]).tz_localize("UTC")})
    there = here.assign(a=here["a"].dt.tz_convert("Asia/Tokyo"))
    assert np.array_equal(row_codes(here, "me"), row_codes(there, "me"))


# Fits of tables in which rows repeat.


def quick(make=CoCoClassifier, **arguments):
    return make(**({"max_iter": 20, "n_members": 2, "random_state": 0} | arguments))


@pytest.fixture(scope="module")
def cities():
    """Sixty cities and a flag; nine rows of ten follow the city."""
    rng = np.random.default_rng(0)
    city = rng.integers(0, 60, 3000)
    likely = np.where(rng.random(60)[city] > 0.5, 0.9, 0.1)
    y = (rng.random(3000) < likely).astype(int)
    names = np.array([f"city {i}" for i in range(60)])[city]
    return pd.DataFrame({"city": names, "flag": rng.integers(0, 2, 3000)}), y


@pytest.mark.parametrize("make", [CoCoClassifier, CrossEntropyClassifier])
def test_a_column_of_noise_is_no_gain(make, cities):
    X, y = cities
    noisy = X.assign(noise=np.random.default_rng(1).normal(size=len(X)))
    dummies = pd.get_dummies(X)
    train = np.arange(len(X)) < 2000
    linear = LogisticRegression().fit(dummies[train], y[train])
    losses = {"linear": log_loss(y[~train], linear.predict_proba(dummies[~train]))}
    for name, table in (("plain", X), ("noisy", noisy)):
        classifier = quick(make, priors="empirical", n_members=6).fit(table[train], y[train])
        losses[name] = log_loss(y[~train], classifier.predict_proba(table[~train]))
    assert losses["plain"] < losses["noisy"] + 0.02
    assert losses["plain"] < losses["linear"] + 0.02


def test_values_of_many_copies_are_frequent():
    z = np.random.default_rng(0).integers(0, 20, 800)
    X = pd.DataFrame({"zip": pd.Series(z).astype("category")})
    assert quick().fit(X, z % 2).score(X, z % 2) == 1


def test_the_preprocessing_counts_copies():
    X = np.r_[np.zeros(900), 1 + np.arange(100)][:, None]
    y = np.arange(1000) % 2
    for classifier in (
        quick(max_iter=1).fit(X, y),
        quick(max_iter=1).fit(X[898:], y[898:], sample_weight=[450, 450] + [1] * 100),
    ):
        assert classifier.preprocessor_.scaler_.center.tolist() == [0]


def test_balanced_class_weights_count_copies():
    X = np.r_[np.repeat(np.arange(4.0), 250), np.linspace(0, 1, 8)][:, None]
    y = np.repeat([0, 1], [1000, 8])
    job = prepare_job(quick(class_weight="balanced", loss="coco"), X, y)
    masses = np.bincount(job.labels, weights=job.weights)
    assert masses[0] == pytest.approx(masses[1], rel=1e-5)
    halves = prepare_job(quick(class_weight="balanced", loss="coco"), X, y, np.full(len(y), 0.5))
    np.testing.assert_array_equal(halves.weights, job.weights)


def test_an_epoch_passes_over_every_copy():
    X = np.repeat(np.arange(4.0), 100)[:, None]
    y = np.arange(400) % 2
    job = prepare_job(quick(), X, y)
    assert [len(rows) for rows in job.train] == [340, 340]
    assert [len(rows) for rows in job.held_out] == [60, 60]


@pytest.mark.parametrize("make", [CoCoClassifier, CrossEntropyClassifier])
def test_a_contingency_table_is_its_rows(make):
    cells = pd.DataFrame({"sex": ["m", "m", "f", "f"], "class": ["1", "2", "1", "2"]})
    died, survived = np.array([118, 154, 4, 13]), np.array([62, 25, 141, 93])
    X = pd.concat([cells, cells], ignore_index=True)
    y, weights = np.repeat([0, 1], 4), np.r_[died, survived]
    weighted = quick(make, priors="empirical").fit(X, y, sample_weight=weights)
    rows = X.loc[np.repeat(np.arange(8), weights)]
    repeated = quick(make, priors="empirical").fit(rows, np.repeat(y, weights))
    np.testing.assert_array_equal(weighted.predict_proba(X), repeated.predict_proba(X))
    share = survived / (died + survived)
    np.testing.assert_allclose(weighted.predict_proba(cells)[:, 1], share, atol=0.2)


def test_only_the_ratios_of_fractions_matter():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(200, 3)), rng.uniform(0.5, 2, 200)
    y = (X[:, 0] > 0).astype(int)
    large = quick(max_iter=3).fit(X, y, sample_weight=weights)
    small = quick(max_iter=3).fit(X, y, sample_weight=weights * 1e-9)
    plain = quick(max_iter=3).fit(X, y)
    np.testing.assert_allclose(small.predict_proba(X), large.predict_proba(X), atol=1e-5)
    assert not np.allclose(large.predict_proba(X), plain.predict_proba(X), atol=1e-5)


def test_a_row_of_relative_weight_is_left_out_whole():
    """It is one row, however much it weighs: no part of it stays and knows its class."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), np.arange(200) % 2  # nothing to learn
    weights = np.where(np.arange(200) < 100, 0.2, 1.8)
    fitted = CoCoClassifier(solver="kernel", random_state=0).fit(X, y, sample_weight=weights)
    assert fitted.loo_score_ < 0.6
    twice = CoCoClassifier(solver="kernel", random_state=0).fit(
        np.tile(X, (2, 1)), np.tile(y, 2), sample_weight=np.tile(weights, 2) / 7
    )
    assert twice.loo_score_ > 0.7  # the other one stays
    numbers = CoCoRegressor(solver="kernel", random_state=0)
    assert numbers.fit(X, rng.normal(size=200), sample_weight=weights).loo_score_ < 0.1
