"""The record of numbers and of levels: honest numbers, checked against loops of their own."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes

from cocoloss import CoCoClassifier, CoCoOrdinalClassifier, CoCoRegressor
from cocoloss.exceptions import CoCoError
from cocoloss.recording import record_fit, record_numbers

X, Y = load_diabetes(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def fitted():
    estimator = CoCoRegressor(random_state=0)
    record = record_numbers(estimator, X, Y, data_name="diabetes", random_state=3)
    order = np.random.default_rng(3).permutation(len(Y))
    test, train = np.sort(order[:88]), np.sort(order[88:])
    return estimator, record, train, test


def test_what_is_better_is_better_in_any_unit():
    for y in (1e100 * Y, 1e-100 * Y):
        assert record_numbers(CoCoRegressor(random_state=0), X, y).is_better


def test_the_estimator_is_that_of_fit_on_the_rows_to_learn_from(fitted):
    estimator, record, train, test = fitted
    again = clone(estimator).fit(X.iloc[train], Y.iloc[train])
    np.testing.assert_array_equal(again.predict(X), estimator.predict(X))
    np.testing.assert_array_equal(record.test.true, Y.iloc[test])
    np.testing.assert_allclose(record.test.predicted, again.predict(X.iloc[test]))
    np.testing.assert_allclose(record.left_out.predicted, again.loo_prediction_)
    assert record.left_out.r2 == pytest.approx(again.loo_score_)
    assert (record.n_train, record.n_test, record.n_features) == (354, 88, 10)


def test_errors_are_those_of_loops(fitted):
    _, record, train, test = fitted
    squares = absolutes = guess_squares = guess_absolutes = held = width = 0.0
    mean = sum(Y.iloc[train]) / len(train)
    rows = zip(Y.iloc[test], record.test.predicted, record.lower, record.upper, strict=True)
    for truth, predicted, low, high in rows:
        squares += (truth - predicted) ** 2
        absolutes += abs(truth - predicted)
        guess_squares += (truth - mean) ** 2
        guess_absolutes += abs(truth - mean)
        held += low <= truth <= high
        width += high - low
    n = len(test)
    assert record.test.rmse == pytest.approx((squares / n) ** 0.5)
    assert record.test.mae == pytest.approx(absolutes / n)
    assert record.guessing_rmse == pytest.approx((guess_squares / n) ** 0.5)
    assert record.guessing_mae == pytest.approx(guess_absolutes / n)
    assert record.coverage[0.9] == pytest.approx((held / n, width / n))
    assert record.is_better
    groups = record.by_width
    assert sum(group.count for group in groups) == n
    assert sum(group.count * group.share for group in groups) == pytest.approx(held)
    assert all(a.widest <= b.narrowest for a, b in pairwise(groups))
    shares = [found for found, _ in record.coverage.values()]
    assert shares == sorted(shares)


def test_kernels_and_columns_are_told(fitted):
    _, record, _, _ = fitted
    assert set(record.chosen) <= set(record.tried)
    assert sum(record.importances.values()) == pytest.approx(1)
    assert set(record.metrics) == set(X.columns)
    for shares in zip(*record.metrics.values(), strict=True):
        assert sum(shares) == pytest.approx(1)
    assert json.dumps(record.to_dict(), allow_nan=False)


def test_noise_is_not_better_than_guessing():
    rng = np.random.default_rng(0)
    record = record_numbers(
        CoCoRegressor(random_state=0), rng.normal(size=(200, 3)), rng.random(200)
    )
    assert not record.is_better


@pytest.mark.parametrize(
    ("estimator", "y", "said"),
    [
        (CoCoClassifier(), Y, "record_fit is for classifiers"),
        (CoCoRegressor(), np.stack([Y, Y], axis=1), "y has 2 columns; a record is of one"),
    ],
)
def test_what_cannot_be_recorded_is_refused(estimator, y, said):
    with pytest.raises(CoCoError, match=said):
        record_numbers(estimator, X, y)
    assert not hasattr(estimator, "model_")
    with pytest.raises(CoCoError, match="4 rows are too few for a record; it needs 5"):
        record_numbers(CoCoRegressor(), X[:4], Y[:4])


def test_a_regressor_is_sent_to_its_own_record():
    with pytest.raises(CoCoError, match="a CoCoRegressor to record_numbers"):
        record_fit(CoCoRegressor(), X, Y)


def test_levels_keep_their_order_and_say_how_far_off_they_are():
    names = ["mild", "some", "severe"]  # which is not the order of letters
    y = pd.Series(pd.cut(Y, [0, 100, 200, 400], labels=names))
    estimator = CoCoOrdinalClassifier(random_state=0)
    record = record_fit(estimator, X, y, n_snapshots=4)
    assert record.class_names == ("mild", "some", "severe")
    assert estimator.classes_.tolist() == names
    counts = record.confusion
    off = sum(abs(a - b) * counts[a, b] for a in range(3) for b in range(3)) / counts.sum()
    assert record.levels_off == pytest.approx(off)
    chance = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    weights = np.square(np.subtract.outer(range(3), range(3)))
    assert record.kappa == pytest.approx(1 - (weights * counts).sum() / (weights * chance).sum())
    assert record.left_out.levels_off < 1
    assert record.balanced_accuracy > 0.45
    plain = record_fit(
        CoCoClassifier(solver="kernel", random_state=0), X, y.astype(str), n_snapshots=0
    )
    assert np.isnan([plain.levels_off, plain.kappa]).all()
