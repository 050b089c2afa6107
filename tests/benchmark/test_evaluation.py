import re

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss as their_log_loss
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC

from cocoloss import CoCoClassifier, CrossEntropyClassifier
from cocoloss.benchmark.evaluation import (
    NAMES,
    auc,
    evaluate_folds,
    evaluate_models,
    log_loss,
    measure,
    rarer_class,
    score_folds,
)
from cocoloss.benchmark.models import ModelKind
from cocoloss.columns import TablePreprocessor
from cocoloss.exceptions import CoCoError
from cocoloss.metrics import dispersity
from cocoloss.tables import stratified_folds


class Fixed:
    """Predicts the same, whatever it is asked."""

    def __init__(self, predicted):
        self.predicted = predicted

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.predicted(len(X))


class Probable(Fixed):
    """Has probabilities, too."""

    def predict(self, X):
        return np.zeros(len(X), dtype=int)

    def predict_proba(self, X):
        return self.predicted(len(X))


def scores(predicted, model=Fixed):
    kind = ModelKind(lambda *_: model(predicted), whose="model 'm'")
    X, y = load_iris(return_X_y=True)
    folds = dict(enumerate(stratified_folds(y, 3, 0)))
    return evaluate_folds(kind, {}, X, y, folds, 0)


NO_CLASSES = {
    "-1": lambda n: np.where(np.arange(n) == 2, -1, 1),
    "3": lambda n: np.full(n, 3),
    "0.97": lambda n: np.full(n, 0.97),
    "nan": lambda n: np.full(n, np.nan),
    "'0'": lambda n: np.array(["0"] * n),
    "None": lambda n: np.array([None] * n),
    "an array of shape (7,) for 50 rows": lambda n: np.zeros(7, dtype=int),
    "an array of shape (50, 1) for 50 rows": lambda n: np.zeros((n, 1), dtype=int),
}
NO_PROBABILITIES = {
    "an array of float64 of shape (50, 2)": lambda n: np.full((n, 2), 0.5),
    "an array of float64 of shape (50,)": lambda n: np.full(n, 0.5),
    "an array of <U3 of shape (50, 3)": lambda n: np.full((n, 3), "0.3"),
    "nan": lambda n: np.full((n, 3), np.nan),
    "-2.0": lambda n: np.full((n, 3), [3.0, -2.0, 0.0])[:, [1, 0, 2]],
    "a row that sums to 3": lambda n: np.ones((n, 3)),
    "a row that sums to 0": lambda n: np.zeros((n, 3)),
}


def test_what_is_no_class_or_no_probability_is_told_and_not_scored():
    for what, predicted in NO_CLASSES.items():
        told = f"model 'm' predicted {what}; classes are numbered 0 to 2"
        with pytest.raises(CoCoError, match=re.escape(told)):
            scores(predicted)
    for what, predicted in NO_PROBABILITIES.items():
        with pytest.raises(CoCoError, match=re.escape(f"model 'm': predict_proba gave {what}")):
            scores(predicted, Probable)


@pytest.mark.parametrize("kind", [int, np.uint8, np.float32, bool, object])
def test_numbers_are_taken_in_any_type(kind):
    (first, *_) = scores(lambda n: np.ones(n, dtype=kind))
    assert first["balanced_accuracy"] == pytest.approx(1 / 3)
    thirds = np.array([0.2, 0.3, 0.5], dtype=np.float32)
    (first, *_) = scores(lambda n: np.tile(thirds, (n, 1)), Probable)
    assert first["log_loss"] == pytest.approx(-np.log(thirds.astype(float)).mean(), abs=0.02)


def test_log_loss_is_scikit_learns():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], size=50)
    y = rng.choice(["a", "b", "c"], 50)
    classes = np.array(["a", "b", "c"])
    assert log_loss(y, p, classes) == pytest.approx(their_log_loss(y, p, labels=classes))


@pytest.mark.parametrize("unseen", ["0", "b", "z"])
def test_a_class_that_was_never_seen_costs_as_much_as_an_impossible_one(unseen):
    p = np.array([[0.5, 0.5]])
    assert log_loss(np.array([unseen]), p, np.array(["a", "c"])) == pytest.approx(-np.log(1e-15))
    certain = np.array([[0.0, 1.0]])
    assert log_loss(np.array(["a"]), certain, np.array(["a", "c"])) == pytest.approx(-np.log(1e-15))


def test_each_model_has_the_measures_that_it_can_have():
    X, y = load_iris(return_X_y=True)
    train, test = np.arange(0, 150, 2), np.arange(1, 150, 2)

    def measures(model, *rows):
        return set(measure(model.fit(X[train], y[train]), X, y, test, *rows))

    basic = {"balanced_accuracy", "accuracy"}
    assert measures(LinearSVC()) == basic
    assert measures(KNeighborsClassifier()) == basic | {"log_loss"}
    network = CoCoClassifier(max_iter=2, n_members=2, random_state=0)
    of_networks = basic | {"log_loss", "dispersity", "train_dispersity"}
    assert measures(network, train) == of_networks
    # Of which an average of posteriors says nothing.
    alone = network.set_params(n_members=1)
    assert measures(alone, train) == of_networks | {"balanced_accuracy_uniform"}


def test_had_the_classes_been_equally_likely_the_answer_is_that_of_uniform_priors():
    rng = np.random.default_rng(0)
    y = np.array(["a"] * 80 + ["b"] * 20 + ["c"] * 5)
    X = rng.normal(size=(105, 2)) + np.array([0, 1, 2]).repeat([80, 20, 5])[:, None]
    options = {"max_iter": 3, "n_members": 1, "early_stopping": False, "random_state": 0}
    found = {
        priors: measure(CoCoClassifier(priors=priors, **options).fit(X, y), X, y, np.arange(105))
        for priors in ("empirical", "uniform")
    }
    alike = found["uniform"]["balanced_accuracy"]
    assert found["empirical"]["balanced_accuracy"] < alike
    assert found["empirical"]["balanced_accuracy_uniform"] == alike
    assert found["uniform"]["balanced_accuracy_uniform"] == alike


def test_dispersity_is_that_of_the_first_members_features_and_one_class_has_none():
    X, y = load_iris(return_X_y=True)
    network = CrossEntropyClassifier((5,), max_iter=2, n_members=3, random_state=0).fit(X, y)
    expected = dispersity(network.transform(X)[:, :5], y)  # of three members, five units each
    found = measure(network, X, y, np.arange(150))
    assert found["dispersity"] == pytest.approx(expected, rel=1e-4)
    of_one_class = measure(network, X, y, np.arange(50))
    assert np.isnan(of_one_class["dispersity"])
    assert 0 <= of_one_class["balanced_accuracy"] <= 1


def area_by_pairs(y, score, label):
    """Return how often a row of a class scores above another one, ties half, pair by pair."""
    won, n = 0.0, 0
    for i in range(len(y)):
        for j in range(len(y)):
            if y[i] == label != y[j]:
                won += (score[i] > score[j]) + 0.5 * (score[i] == score[j])
                n += 1
    return won / n


@pytest.mark.parametrize("n_classes", [2, 4])
def test_auc_is_that_of_pairs_in_a_loop(n_classes):
    rng = np.random.default_rng(n_classes)
    classes = np.array(["a", "b", "c", "d"])[:n_classes]
    y = rng.choice(classes, 60)
    p = rng.dirichlet(np.ones(n_classes), size=60).round(1)  # with ties
    expected = np.mean([area_by_pairs(y, p[:, k], classes[k]) for k in range(n_classes)])
    assert auc(y, p, classes) == pytest.approx(expected)
    if n_classes == 2:
        assert auc(y, p[:, 1], classes) == pytest.approx(area_by_pairs(y, p[:, 1], "b"))


def test_auc_leaves_out_classes_that_are_not_there():
    y, p = np.array(["a", "a", "b", "z"]), np.random.default_rng(0).dirichlet([1, 1, 1], size=4)
    classes = np.array(["a", "b", "c"])  # of training: z is not among them, c not in the test
    expected = np.mean([area_by_pairs(y, p[:, k], classes[k]) for k in (0, 1)])
    assert auc(y, p, classes) == pytest.approx(expected)
    assert np.isnan(auc(np.array(["a", "a"]), p[:2], classes))


def f1_by_counting(y, predicted, label):
    hits = misses = false_alarms = 0
    for truth, said in zip(y, predicted, strict=True):
        hits += truth == said == label
        misses += truth == label != said
        false_alarms += said == label != truth
    return 2 * hits / (2 * hits + misses + false_alarms)


@pytest.mark.parametrize("labels", [("no", "yes"), ("ant", "bee", "cow")])
def test_f1_is_counted(labels):
    rng = np.random.default_rng(0)
    y = rng.choice(labels, 120, p=[0.7, 0.3] if len(labels) == 2 else [0.5, 0.3, 0.2])
    X = rng.normal(size=(120, 2)) + np.unique(y, return_inverse=True)[1][:, None]
    (found,) = evaluate_models(X, y, ["ksvm"], n_folds=3)
    counted = ["yes"] if len(labels) == 2 else labels
    for k, fold in enumerate(stratified_folds(y, 3, 0)):
        codes = SVC(C=10, class_weight="balanced")
        inputs = TablePreprocessor().fit(X[fold.train])
        codes.fit(inputs.transform(X[fold.train]), y[fold.train])
        predicted = codes.predict(inputs.transform(X[fold.test]))
        expected = np.mean([f1_by_counting(y[fold.test], predicted, c) for c in counted])
        assert found.folds["f1"][k] == pytest.approx(expected)


def test_the_rarer_of_two_classes_is_the_one_that_f1_is_of():
    assert rarer_class(np.array([0, 0, 1])) == 1
    assert rarer_class(np.array([0, 1, 1])) == 0
    assert rarer_class(np.array(["b", "a"])) == "b"
    assert rarer_class(np.array([0, 1, 2])) is None


def test_every_model_has_its_first_fold_first_and_all_folds_in_the_end():
    X, y = load_iris(return_X_y=True)
    how = {"n_folds": 3, "network_options": {"max_iter": 1, "n_members": 1}}
    found = list(score_folds(X, y, ["ce", "ksvm", "coco"], **how))
    assert [one.model for one in found] == 3 * ["ce", "ksvm", "coco"]
    assert {one.n_folds for one in found} == {3}
    for evaluation in evaluate_models(X, y, ["ce", "ksvm"], **how):
        assert evaluation.n_folds == 3
        assert evaluation.n_train == 100
        assert np.isfinite(evaluation.folds["auc"]).all()


def test_folds_that_are_fitted_side_by_side_have_the_same_scores_in_the_same_order():
    X, y = load_iris(return_X_y=True)
    how = {"n_folds": 3, "network_options": {"max_iter": 1, "n_members": 1}}
    one, two = (list(score_folds(X, y, ["ce", "ksvm", "hgb"], workers=n, **how)) for n in (1, 2))
    assert [each.model for each in two] == 3 * ["ce", "ksvm", "hgb"]
    for alone, beside in zip(one, two, strict=True):
        assert alone.measures == pytest.approx(beside.measures, nan_ok=True)


def test_boosted_trees_weigh_classes_as_the_priors_say():
    rng = np.random.default_rng(0)
    y = np.repeat(["rare", "usual"], [40, 360])
    X = rng.normal(size=(400, 2)) + 0.8 * (y == "rare")[:, None]
    (alike,), (as_they_occur,) = (
        evaluate_models(X, y, ["hgb"], n_folds=3, priors=priors)
        for priors in ("uniform", "empirical")
    )
    assert alike.mean("balanced_accuracy") > as_they_occur.mean("balanced_accuracy") + 0.03
    assert NAMES["hgb"] == "boosted trees"
