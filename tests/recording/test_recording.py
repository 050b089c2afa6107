"""Looking changes nothing, and what is recorded is what was there."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, log_loss
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from torch import nn

from cocoloss import CoCoClassifier, CrossEntropyClassifier, DotRegressionClassifier
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.fit import head_weights
from cocoloss.metrics import dispersity, neural_collapse
from cocoloss.recording import MEASURES, record_fit, watch
from cocoloss.recording.measure import SnapshotMeasure
from oracles import printed_coco

KINDS = (CoCoClassifier, DotRegressionClassifier, CrossEntropyClassifier)
SMALL = {"hidden_layer_sizes": (16,), "n_members": 2, "max_iter": 6, "random_state": 0}


@pytest.fixture(scope="session")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(scope="session")
def runs(wine):
    """A fitted classifier of each kind, and what was recorded of its fit."""

    def run(make):
        estimator = make(**SMALL)
        return estimator, record_fit(estimator, *wine, n_snapshots=4, data_name="wine")

    return {make: run(make) for make in KINDS}


def kept_apart(y, seed=0):
    labels = np.searchsorted(np.unique(y), y)
    return watch.split_test(labels, 0.2, np.random.default_rng(seed))


@pytest.mark.parametrize("make", KINDS)
def test_the_fit_is_the_one_it_would_be_without_a_look(wine, runs, make):
    X, y = wine
    estimator, record = runs[make]
    train, _ = kept_apart(y)
    alone = clone(estimator).fit(X[train], y[train])
    assert np.array_equal(estimator.parameters_, alone.parameters_)
    assert np.array_equal(estimator.predict_proba(X), alone.predict_proba(X))
    assert record.loss_curve.tolist() == alone.loss_curve_
    assert record.target.shape == (3, 3)
    linear = make is not CoCoClassifier  # which have a third measure, but not CoCo's loss
    assert np.isfinite(record.measures["nc3"]).all() == linear
    assert np.isnan(record.measures["loss"]).all() == linear


def test_test_results_are_scikit_learns(wine, runs):
    X, y = wine
    estimator, record = runs[CoCoClassifier]
    _, test = kept_apart(y)
    predicted = estimator.predict(X[test])
    assert record.balanced_accuracy == pytest.approx(balanced_accuracy_score(y[test], predicted))
    assert record.accuracy == pytest.approx((predicted == y[test]).mean())
    assert record.log_loss == pytest.approx(log_loss(y[test], estimator.predict_proba(X[test])))
    assert np.array_equal(record.confusion, confusion_matrix(y[test], predicted))
    assert record.test_counts.tolist() == np.bincount(y[test]).tolist()
    assert record.n_test + record.n_train == len(y)
    assert np.array_equal(record.predicted[record.is_test], predicted)
    assert (record.predicted[~record.is_test] == -1).all()


def test_test_rows_are_never_learnt_from(wine, runs):
    X, y = wine
    _, test = kept_apart(y)
    other = X.copy()
    other[test] = -5 * other[test]
    estimator = CoCoClassifier(**SMALL)
    record_fit(estimator, other, y, n_snapshots=2)
    assert np.array_equal(estimator.parameters_, runs[CoCoClassifier][0].parameters_)


def test_the_first_snapshot_is_before_training_and_the_kept_one_is_the_estimators(wine):
    X, y = wine
    options = SMALL | {"n_members": 1, "n_iter_no_change": 1, "max_iter": 49}
    estimator = CoCoClassifier(**options)
    record = record_fit(estimator, X, y, n_snapshots=5)
    _, test = kept_apart(y)
    rows = record.embeddings[:, record.is_test]
    np.testing.assert_allclose(rows[record.kept], estimator.transform(X[test]), atol=1e-5)
    assert record.epochs[0] == 0
    assert record.epochs[record.kept] == estimator.best_epochs_[0]
    assert record.epochs[-1] == len(estimator.loss_curve_) < 49
    assert (np.diff(record.epochs) > 0).all()
    assert not np.allclose(rows[0], rows[record.kept], atol=0.01)


def test_measures_are_those_of_the_embedding(wine):
    X, y = wine
    estimator = CoCoClassifier(loss="coco", normalize=False, **SMALL)
    record = record_fit(estimator, X[::3], y[::3], n_snapshots=3)
    labels = record.labels[~record.is_test]
    for s in range(len(record.epochs)):
        h = record.embeddings[s, ~record.is_test].astype(float)
        found = {name: record.measures[name][s] for name in MEASURES}
        collapse = neural_collapse(h, labels)
        expected = {
            "dispersity": dispersity(h, labels),
            "nc1": collapse.nc1,
            "nc2": collapse.nc2,
            "nc4": collapse.nc4,
            "loss": float(printed_coco(h, labels, record.target)),
        }
        assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-4)
        assert math.isnan(found["nc3"])
        parts = found["nc1_part"] + found["nc2_part"] + found["norm_part"]
        assert found["loss"] == pytest.approx(parts)
        means = np.stack([h[labels == c].mean(axis=0) for c in range(3)])
        np.testing.assert_allclose(record.class_means[s], means, atol=1e-6)


def lopsided(n=600):
    """Return a table of three classes, one of them rare, that no line parts."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [n // 2, n // 2 - n // 20, n // 20])
    return rng.normal(size=(3, 4))[y] * 0.8 + rng.normal(size=(n, 4)), y


@pytest.mark.parametrize(
    "estimator",
    [
        CoCoClassifier(embedding_dim=1),  # of two classes
        CoCoClassifier(embedding_dim=2, normalize=False, output="tanh"),
        CoCoClassifier(embedding_dim=3, head="centroid"),
        CoCoClassifier(head="ridge", priors="empirical"),
        CoCoClassifier(head=DecisionTreeClassifier(random_state=0)),
        CoCoClassifier(head=KNeighborsClassifier(3)),  # which takes no weights
        CoCoClassifier(class_weight="balanced", early_stopping=False, dropout=0.2),
        CrossEntropyClassifier(embedding_dim=2),
        CrossEntropyClassifier(class_weight="balanced"),
        CrossEntropyClassifier(class_weight={0: 1, 1: 5, 2: 20}, priors="empirical"),
        CrossEntropyClassifier(head="gaussian"),
        DotRegressionClassifier(),
    ],
    ids=str,
)
def test_the_kept_epoch_is_judged_by_the_head_that_the_fit_made(estimator):
    estimator = clone(estimator).set_params(**(SMALL | {"n_members": 1}))
    X, y = lopsided()
    rows = y < (2 if estimator.embedding_dim == 1 else 3)
    record = record_fit(estimator, X[rows], y[rows], n_snapshots=2)
    at_the_end = record.measures["test_balanced_accuracy"][record.kept]
    assert at_the_end == pytest.approx(record.balanced_accuracy)
    assert record.embeddings.shape[:2] == (len(record.epochs), len(record.labels))
    assert (record.reliability is None) == (not hasattr(estimator, "predict_proba"))
    json.dumps(record.to_dict(), allow_nan=False)


@pytest.mark.parametrize("normalize", [False, True])
def test_a_network_of_ones_own_is_recorded(wine, normalize):
    X, y = wine

    def make(n_features, q):
        return nn.Sequential(
            nn.Linear(n_features, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, q)
        )

    options = {"module": make, "normalize": normalize, "max_iter": 8, "n_members": 2}
    estimator = CoCoClassifier(random_state=0, **options)
    record = record_fit(estimator, X, y, n_snapshots=4)
    train, test = kept_apart(y)
    alone = CoCoClassifier(random_state=0, **options).fit(X[train], y[train])
    assert np.array_equal(estimator.parameters_, alone.parameters_)
    first = estimator.transform(X[test])[:, : record.embedding_dim] * math.sqrt(2)
    np.testing.assert_allclose(
        record.embeddings[record.kept, record.is_test], first, rtol=1e-4, atol=1e-5
    )
    assert record.measures["dispersity"][0] > record.measures["dispersity"][-1]
    assert record.arguments["module"] == "make"
    assert record.normalized == normalize


def test_many_classes_are_recorded():
    C, rng = 200, np.random.default_rng(0)
    y = np.arange(3 * C) % C
    X = rng.normal(size=(C, 6))[y] + 0.4 * rng.normal(size=(3 * C, 6))
    options = SMALL | {"max_iter": 2, "embedding_dim": 8, "head": "centroid"}
    record = record_fit(
        CoCoClassifier(similarity="packing", **options), X, y, n_snapshots=2, max_points=50
    )
    assert record.confusion.shape == (C, C)
    assert set(record.labels[~record.is_test]) == set(range(C))  # each class is seen


def test_classes_of_one_and_two_rows_are_learnt(wine):
    X, y = wine
    X, y = np.r_[X, X[:3] + 9], np.r_[y, [3, 4, 4]]
    record = record_fit(CoCoClassifier(**SMALL), X, y, n_snapshots=2)
    assert record.test_counts[3:].tolist() == [0, 1]
    assert record.train_counts[3:].tolist() == [1, 1]
    assert 0 <= record.balanced_accuracy <= 1


def test_listeners_hear_every_epoch_and_can_stop(wine):
    X, y = wine
    own, given = [], []
    estimator = CoCoClassifier(callbacks=[lambda e: own.append(e.number)], **SMALL)

    def stop(epoch):
        given.append(epoch.number)
        return epoch.number == 3

    record = record_fit(estimator, X, y, callbacks=[stop])
    assert own == given == [1, 2, 3]
    assert record.epochs[-1] == 3


def test_an_epoch_that_diverged_is_shown_as_such(wine):
    def break_down(epoch):
        if epoch.number == 4:
            epoch.network.parameters.fill_(float("nan"))

    options = {"n_members": 1, "early_stopping": True, "learning_rate": "cosine"}
    estimator = CoCoClassifier(**(SMALL | options))
    record = record_fit(estimator, *wine, n_snapshots=8, callbacks=[break_down])
    lost = np.isnan(record.embeddings).all(axis=(1, 2))
    assert lost.tolist() == [epoch > 4 for epoch in record.epochs]
    assert record.epochs[record.kept] == 4  # validated before it broke down
    assert np.isnan(record.measures["dispersity"]).tolist() == lost.tolist()
    json.dumps(record.to_dict(), allow_nan=False)


def test_angles_are_in_degrees_and_the_target_is_the_simplex(wine, runs):
    _, record = runs[CoCoClassifier]
    a, b = record.class_means[record.kept, :2]
    expected = math.degrees(math.acos(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))
    assert record.angles(record.kept)[0, 1] == pytest.approx(expected)
    assert record.target_angles()[0, 1] == pytest.approx(120)
    assert np.isnan(np.diagonal(record.angles(0))).all()
    own = CoCoClassifier(similarity=[[1, 0, -1], [0, 1, 0], [-1, 0, 1]], **SMALL)
    assert record_fit(own, *wine, n_snapshots=2).target_angles()[0].tolist()[1:] == [90, 180]


def test_the_dictionary_has_rounded_numbers_and_no_nan(runs):
    _, record = runs[CoCoClassifier]
    known = json.loads(json.dumps(record.to_dict(), allow_nan=False))
    assert known["data_name"] == "wine"
    assert known["measures"]["nc3"] == [None] * len(record.epochs)
    assert known["accuracy"] == pytest.approx(record.accuracy, rel=1e-5)
    assert known["confusion"] == record.confusion.tolist()
    assert known["changed"] == ["hidden_layer_sizes", "max_iter", "n_members", "random_state"]
    assert "embeddings" not in known
    assert known["reliability"]["counts"] == record.reliability.counts.tolist()


@pytest.mark.parametrize("head", ["auto", "ridge"])
def test_a_sample_weighs_as_much_as_all_rows_of_its_class(monkeypatch, head):
    masses = []

    class Spy(SnapshotMeasure):
        def __init__(self, job, fitted, drawn, test_labels):
            super().__init__(job, fitted, drawn, test_labels)
            weights, labels = (a[job.train[0]] for a in (head_weights(job), job.labels))
            masses.append(np.bincount(labels, weights))
            masses.append(np.bincount(self.labels, self.head_weights))

    monkeypatch.setattr(watch, "SnapshotMeasure", Spy)
    estimator = CrossEntropyClassifier(class_weight="balanced", head=head, **SMALL)
    record = record_fit(estimator, *lopsided(), n_snapshots=2, max_points=20)
    assert (~record.is_test).sum() < 25
    np.testing.assert_allclose(*masses)


class BrokenError(Exception):
    pass


def test_a_failure_leaves_the_estimator_as_it_was(wine, monkeypatch):
    X, y = wine

    def fail(*args):
        raise BrokenError

    estimator = CoCoClassifier(**SMALL).fit(X, y)
    before, predictions = dict(vars(estimator)), estimator.predict_proba(X)
    with pytest.raises(BrokenError):
        record_fit(estimator, X[:, :5], y, callbacks=[lambda e: e.number == 3 and fail()])
    assert vars(estimator) == before
    assert np.array_equal(estimator.predict_proba(X), predictions)
    monkeypatch.setattr(watch, "about", fail)  # after the fit
    unfitted = clone(estimator)
    with pytest.raises(BrokenError):
        record_fit(unfitted, *wine)
    assert not unfitted.__sklearn_is_fitted__()


def test_columns_are_recorded_with_how_they_were_read():
    n = 90
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "price": [f"${k},000.50" for k in range(1, n + 1)],
            "city": rng.choice(["Bern", "Oslo", "Rome"], n),
            "seen": [f"{d:02}/{m:02}/2024" for d, m in rng.integers(1, 13, (n, 2))],
            "member": rng.random(n) > 0.5,
            "unit": "kg",
        }
    )
    table.loc[0, "seen"] = "31/01/2024"
    table.loc[:6, "size"] = np.nan
    table.loc[80:, "city"] = ""
    table["again"] = table["size"]
    fitted = CoCoClassifier(**SMALL)
    y = np.where(np.arange(n) % 2, "low", "high")
    record = record_fit(fitted, table, y, n_snapshots=2, n_left_out=4, class_names=["H", "L"])
    assert record.class_names == ("H", "L")
    assert record.n_features == table.shape[1]
    kinds = ("number", "number", "category", "date", "boolean")
    assert record.column_kinds == dict(zip(table.columns[:5], kinds, strict=True))
    assert record.column_notes == {
        "price": "written as $1,234.5",
        "city": "3 values",
        "seen": "day first",
        "member": "2 values",
    }
    assert record.dropped_columns == {"unit": "constant", "again": "duplicate of 'size'"}
    assert record.column_gaps == {"size": 7, "city": 10}
    assert record.n_left_out == 4
    known = record.to_dict()
    assert known["dropped_columns"] == record.dropped_columns
    assert known["column_gaps"] == record.column_gaps


def test_of_a_transformer_of_ones_own_no_columns_are_known(wine):
    record = record_fit(CoCoClassifier(preprocess=StandardScaler(), **SMALL), *wine, n_snapshots=2)
    assert record.column_kinds == {}
    assert record.column_gaps == {}
    plain = record_fit(CoCoClassifier(preprocess=None, **SMALL), *wine, n_snapshots=2)
    assert set(plain.column_kinds.values()) == {"number"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test_size": 1.5}, "test_size must be a number between"),
        ({"test_size": 5}, "test_size must be a number between"),
        ({"n_snapshots": 1}, "n_snapshots must be at least 2"),
        ({"max_points": 0}, "max_points must be at least 2"),
        ({"class_names": ["a"]}, "class_names has 1 names, but y has 3"),
        ({"n_left_out": -1}, "n_left_out"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(wine, options, message):
    with pytest.raises(CoCoError, match=message):
        record_fit(CoCoClassifier(**SMALL), *wine, **options)
    with pytest.raises(CoCoError, match="DecisionTreeClassifier"):
        record_fit(DecisionTreeClassifier(), *wine)
