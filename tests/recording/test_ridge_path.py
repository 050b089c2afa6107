"""The record of a closed form: its ridge path in plain loops, and what kernels know besides."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, log_loss

from cocoloss import CoCoClassifier
from cocoloss.exceptions import CoCoError
from cocoloss.kernels import closed_form, search
from cocoloss.metrics import dispersity
from cocoloss.recording import MEASURES, record_fit, watch
from cocoloss.recording.measure import film_ridges


def kernel(**arguments):
    return CoCoClassifier(solver="kernel", random_state=0, **arguments)


def kept_apart(y):
    labels = np.searchsorted(np.unique(y), y)
    return watch.split_test(labels, 0.2, np.random.default_rng(0))


@pytest.fixture(scope="module")
def run():
    """Three classes of 30, 20 and 10 rows with two useful columns, and what was recorded."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], [30, 20, 10])
    X = np.array([[0, 0, 0], [2, 0, 0], [0, 2, 0]])[y] + rng.normal(size=(60, 3))
    estimator = kernel(preprocess=None)
    return estimator, X, y, record_fit(estimator, X, y, n_snapshots=6, data_name="three")


def formula(kernel, x, z):
    """A kernel as docs/theory.md prints it."""
    squared = sum(m * (a - b) ** 2 for m, a, b in zip(kernel.metric, x, z, strict=True))
    city = sum(np.sqrt(m) * abs(a - b) for m, a, b in zip(kernel.metric, x, z, strict=True))
    return {
        "rbf": math.exp(-kernel.gamma * squared),
        "laplace": math.exp(-math.sqrt(2 * kernel.gamma * squared)),
        "laplace-l1": math.exp(-kernel.gamma * city),
    }[kernel.kind]


def by_the_nearest_corner(embedding, labels, corners):
    cosines = [[h @ v / np.linalg.norm(h) for v in corners] for h in embedding]
    return balanced_accuracy_score(labels, np.argmax(cosines, axis=1))


def test_every_frame_is_a_fit_and_leaving_out_is_a_fit_without_the_row(run):
    estimator, X, y, record = run
    train, test = kept_apart(y)
    X, labels, X_test = X[train].astype(np.float32), y[train], X[test].astype(np.float32)
    k, n, path = estimator.model_.networks.kernels[0], len(train), record.ridge_path
    K = np.array([[formula(k, x, z) for z in X] for x in X])
    K_test = np.array([[formula(k, x, z) for z in X] for x in X_test])
    w = n / 3 / np.bincount(labels)[labels]  # classes weigh the same
    V = path.corners[labels]
    for s, ridge in enumerate(path.ridges):
        if ridge < 1e-3:  # below, the rounding of a kernel to float32 is seen
            continue
        alpha = np.linalg.solve(K + np.diag(ridge / w), V)
        left_out = np.empty_like(V)
        for i in range(n):
            rest = np.arange(n) != i
            system = K[np.ix_(rest, rest)] + np.diag(ridge / w[rest])
            left_out[i] = K[i, rest] @ np.linalg.solve(system, V[rest])
        shown = record.embeddings[s]
        np.testing.assert_allclose(shown[record.is_test], K_test @ alpha, atol=2e-3)
        fitted = K @ alpha
        for c in range(3):  # rows are shown in another order
            np.testing.assert_allclose(
                np.sort(shown[(record.labels == c) & ~record.is_test], axis=0),
                np.sort(fitted[labels == c], axis=0),
                atol=2e-3,
            )
            mean = fitted[labels == c].mean(axis=0)
            np.testing.assert_allclose(record.class_means[s, c], mean, atol=2e-3)
        expected = {
            "error": sum(w * ((fitted - V) ** 2).sum(axis=1)) / sum(w),
            "left_out_error": sum(w * ((left_out - V) ** 2).sum(axis=1)) / sum(w),
            "left_out_dispersity": dispersity(left_out, labels),
            "test_dispersity": dispersity(K_test @ alpha, y[test]),
            "train_balanced_accuracy": by_the_nearest_corner(fitted, labels, path.corners),
            "left_out_balanced_accuracy": by_the_nearest_corner(left_out, labels, path.corners),
            "test_balanced_accuracy": by_the_nearest_corner(K_test @ alpha, y[test], path.corners),
        }
        found = {name: record.measures[name][s] for name in expected}
        assert found == pytest.approx(expected, rel=5e-3)


def test_the_film_goes_from_everything_alike_to_collapse_past_the_chosen_ridge(run):
    _, _, _, record = run
    path, measures = record.ridge_path, record.measures
    assert record.member == "kernel"
    assert len(record.epochs) == len(record.loss_curve) == record.n_epochs == 0
    assert record.n_snapshots == len(path.ridges) == 6
    assert path.ridges[record.kept] == path.chosen[0].ridge
    assert np.abs(record.embeddings[0]).max() < 0.15
    assert (np.diff(path.ridges) < 0).all()
    assert (np.diff(measures["error"]) < 0).all()
    assert measures["dispersity"][-1] < 0.6 * measures["dispersity"][0]
    assert set(measures) == set(MEASURES)
    assert np.isnan(measures["loss"]).all()  # CoCo's own loss is not what is minimised
    assert measures["left_out_log_loss"][record.kept] == pytest.approx(
        path.chosen[0].loss, rel=0.02
    )
    assert not path.is_sample
    assert path.n_rows == record.n_train == 48
    np.testing.assert_allclose(path.corners @ path.corners.T, record.target)


@given(st.floats(1e-3, 1e2), st.floats(0.5, 1e6), st.integers(2, 80))
def test_the_chosen_ridge_is_among_those_of_a_film(chosen, largest, n):
    ridges, kept = film_ridges(chosen, largest, n)
    assert len(ridges) == n
    assert ridges[kept] == chosen
    assert (np.diff(ridges) < 0).all()
    assert ridges[0] >= 10 * largest
    if n > 2:
        assert ridges[-1] <= 1e-5 * (1 + 1e-9)


def test_the_kept_frame_is_the_embedding_of_a_single_kernel(monkeypatch):
    monkeypatch.setattr(search, "MOST_MEMBERS", 1)
    X, y = load_wine(return_X_y=True)
    estimator = kernel()
    record = record_fit(estimator, X, y, n_snapshots=4)
    assert record.n_members == 1
    _, test = kept_apart(y)
    shown = record.embeddings[record.kept, record.is_test]
    np.testing.assert_allclose(shown, estimator.transform(X[test]), atol=5e-3)


def test_the_fit_is_the_one_it_would_be_without_a_look(run):
    estimator, X, y, _ = run
    train, _ = kept_apart(y)
    alone = clone(estimator).fit(X[train], y[train])
    assert np.array_equal(estimator.predict_proba(X), alone.predict_proba(X))
    assert np.array_equal(estimator.loo_proba_, alone.loo_proba_)


def test_rows_left_out_and_rows_kept_apart_are_judged_as_scikit_learn_does(run):
    estimator, X, y, record = run
    train, test = kept_apart(y)
    probabilities = {"train": estimator.loo_proba_, "test": estimator.predict_proba(X[test])}
    for outcome, rows, p in (
        (record.left_out, train, probabilities["train"]),
        (record, test, probabilities["test"]),
    ):
        predicted = p.argmax(axis=1)
        assert outcome.log_loss == pytest.approx(log_loss(y[rows], p))
        assert outcome.accuracy == pytest.approx((predicted == y[rows]).mean())
        assert outcome.balanced_accuracy == pytest.approx(
            balanced_accuracy_score(y[rows], predicted)
        )
        assert np.array_equal(outcome.confusion, confusion_matrix(y[rows], predicted))
        assert outcome.reliability.counts.sum() == len(rows)
    assert record.left_out.accuracy == pytest.approx(estimator.loo_score_)


def test_columns_of_the_table_have_importances_and_a_share_of_every_metric():
    rng = np.random.default_rng(0)
    n = 200
    colour = rng.choice(["red", "green", "blue"], size=n)
    table = pd.DataFrame({"noise": rng.normal(size=n), "colour": colour, "flat": 1.0})
    table["size"] = rng.normal(size=n)
    y = (colour == "red") ^ (table["size"] > 0)
    estimator = kernel()
    record = record_fit(estimator, table, y, n_snapshots=3)
    assert list(record.importances) == ["noise", "colour", "size"]  # not what was left out
    assert sum(record.importances.values()) == pytest.approx(1)
    assert record.importances["size"] > 3 * record.importances["noise"]
    path = record.ridge_path
    rounds = max(setting.round for setting in path.chosen) + 1
    assert rounds > 1  # or there is nothing to test
    assert all(len(shares) == rounds for shares in path.metrics.values())
    assert {setting.round for setting in path.tried} == {0, 1, 2}
    assert set(path.chosen) <= set(path.tried)
    model = estimator.model_
    X = model.networks.rows.astype(np.float64)
    for r, metric in (
        (0, np.ones(X.shape[1])),
        *(
            (setting.round, k.metric)
            for setting, k in zip(path.chosen, model.networks.kernels, strict=True)
        ),
    ):
        share = metric * X.var(axis=0)
        expected = model.by_column(share / share.sum())
        found = {name: shares[r] for name, shares in path.metrics.items()}
        assert found == pytest.approx({name: expected[name] for name in found}, rel=0.02, abs=1e-4)


def test_rows_that_are_equal_are_shown_as_often_as_they_are():
    X = np.repeat([[0.0], [1.0], [2.0]], [30, 30, 2], axis=0)
    y = np.r_[np.arange(30) % 3 == 0, np.ones(30), 0, 0].astype(int)
    record = record_fit(kernel(preprocess=None), X, y, n_snapshots=3, test_size=0.3)
    assert np.bincount(record.labels[~record.is_test]).tolist() == record.train_counts.tolist()
    assert record.ridge_path.n_rows == 3
    assert not record.ridge_path.is_sample
    json.dumps(record.to_dict(), allow_nan=False)


@pytest.mark.parametrize("table", [np.ones((30, 2)), np.arange(30)[:, None] % 2 * 1.0])
def test_a_table_that_says_nothing_has_a_film(table):
    record = record_fit(kernel(preprocess=None), table, np.arange(30) % 2, n_snapshots=3)
    assert np.isfinite(record.embeddings).all()
    json.dumps(record.to_dict(), allow_nan=False)


def test_of_many_rows_the_path_is_that_of_the_sample_that_found_the_kernels(monkeypatch):
    for name, value in (("MOST_EXACT", 100), ("SAMPLE", 80), ("LANDMARKS", 60)):
        monkeypatch.setattr(closed_form, name, value)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 2))
    record = record_fit(kernel(), X, (X[:, 0] > X[:, 1]).astype(int), n_snapshots=3)
    path = record.ridge_path
    assert path.is_sample
    assert path.n_rows == (~record.is_test).sum() == 80
    assert len(path.chosen) == record.n_members
    assert record.left_out.confusion.sum() == record.n_train == 240


def test_without_snapshots_there_is_no_film_but_all_else(run):
    estimator, X, y, record = run
    blind = record_fit(clone(estimator), X, y, n_snapshots=0)
    assert blind.n_snapshots == 0
    assert blind.ridge_path is None
    assert blind.importances == record.importances
    assert blind.left_out.log_loss == record.left_out.log_loss
    assert blind.log_loss == record.log_loss
    assert blind.to_dict()["angles"] is None
    network = CoCoClassifier(max_iter=2, n_members=2, random_state=0)
    blind, seen = (record_fit(clone(network), X, y, n_snapshots=n) for n in (0, 2))
    assert blind.log_loss == seen.log_loss
    assert blind.layer_sizes == seen.layer_sizes
    assert blind.left_out is None


def test_networks_beside_kernels_are_counted():
    X, y = load_wine(return_X_y=True)
    estimator = CoCoClassifier(solver="both", max_iter=5, random_state=0)
    record = record_fit(estimator, X, y, n_snapshots=3)
    assert record.member == "kernel"
    assert record.n_networks == len(estimator.heads_) - 1
    assert record.n_members == len(estimator.model_.machine.kernels)
    assert record.ridge_path.corners.shape == (3, record.embedding_dim)


def test_ctrl_c_leaves_the_estimator_as_it_was(run, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    estimator, X, y, _ = run
    before = dict(vars(estimator))
    monkeypatch.setattr(watch, "make_film", interrupt)
    with pytest.raises(KeyboardInterrupt):
        record_fit(estimator, X[:40], y[:40])
    assert vars(estimator) == before


def test_callbacks_are_of_networks(run):
    _, X, y, _ = run
    with pytest.raises(CoCoError, match="kernels have none; leave them out"):
        record_fit(kernel(), X, y, callbacks=[print])
