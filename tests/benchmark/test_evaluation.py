import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss as their_log_loss
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from cocoloss import CoCoClassifier, CrossEntropyClassifier
from cocoloss.benchmark.evaluation import evaluate_folds, log_loss, measure
from cocoloss.benchmark.models import ModelKind
from cocoloss.exceptions import CoCoError
from cocoloss.metrics import balanced_accuracy, dispersity
from cocoloss.tables import stratified_folds


class Fixed:
    """Answers the same, whatever it is asked."""

    def __init__(self, answer):
        self.answer = answer

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.answer(len(X))


class Probable(Fixed):
    """Has probabilities, too."""

    def predict(self, X):
        return np.zeros(len(X), dtype=int)

    def predict_proba(self, X):
        return self.answer(len(X))


def scores(answer, model=Fixed):
    kind = ModelKind(lambda *_: model(answer), whose="model 'm'")
    X, y = load_iris(return_X_y=True)
    folds = dict(enumerate(stratified_folds(y, 3, 0)))
    return evaluate_folds(kind, {}, X, y, folds, 0)


WRONG = {
    "-1": lambda n: np.where(np.arange(n) == 2, -1, 1),
    "3": lambda n: np.full(n, 3),
    "0.97": lambda n: np.full(n, 0.97),
    "nan": lambda n: np.full(n, np.nan),
    "'0'": lambda n: np.array(["0"] * n),
    "None": lambda n: np.array([None] * n),
    "an array of shape (7,) for 50 rows": lambda n: np.zeros(7, dtype=int),
    "an array of shape (50, 1) for 50 rows": lambda n: np.zeros((n, 1), dtype=int),
}


@pytest.mark.parametrize(("said", "answer"), WRONG.items(), ids=WRONG)
def test_what_is_no_number_of_a_class_is_told_and_not_scored(said, answer):
    told = f"model 'm' predicted {said}; classes are numbered 0 to 2"
    with pytest.raises(CoCoError, match=re.escape(told)):
        scores(answer)


@pytest.mark.parametrize("kind", [int, np.uint8, np.float32, bool, object])
def test_numbers_of_classes_are_taken_in_any_type(kind):
    (first, *_) = scores(lambda n: np.ones(n, dtype=kind))
    assert first["balanced_accuracy"] == pytest.approx(1 / 3)


NO_PROBABILITIES = {
    "gave an array of float64 of shape (50, 2)": lambda n: np.full((n, 2), 0.5),
    "gave an array of float64 of shape (50,)": lambda n: np.full(n, 0.5),
    "gave an array of <U3 of shape (50, 3)": lambda n: np.full((n, 3), "0.3"),
    "gave nan": lambda n: np.full((n, 3), np.nan),
    "gave -2.0": lambda n: np.full((n, 3), [3.0, -2.0, 0.0])[:, [1, 0, 2]],
    "gave a row that sums to 3": lambda n: np.ones((n, 3)),
    "gave a row that sums to 0": lambda n: np.zeros((n, 3)),
}


@pytest.mark.parametrize(("said", "answer"), NO_PROBABILITIES.items(), ids=NO_PROBABILITIES)
def test_what_are_no_probabilities_is_told_and_not_scored(said, answer):
    with pytest.raises(CoCoError, match=re.escape(f"model 'm': predict_proba {said}")):
        scores(answer, Probable)


def test_probabilities_of_float32_are_taken():
    thirds = np.array([0.2, 0.3, 0.5], dtype=np.float32)
    (first, *_) = scores(lambda n: np.tile(thirds, (n, 1)), Probable)
    assert first["log_loss"] == pytest.approx(-np.log(thirds.astype(float)).mean(), abs=0.02)


LABELS = st.integers(0, 3)


@given(st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=30))
def test_balanced_accuracy_is_the_mean_recall(pairs):
    y, predicted = (np.array(column) for column in zip(*pairs, strict=True))
    recalls = [
        sum(p == c for t, p in pairs if t == c) / sum(t == c for t, _ in pairs) for c in set(y)
    ]
    assert balanced_accuracy(y, predicted) == pytest.approx(sum(recalls) / len(recalls))


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
    rows = np.arange(0, 150, 2), np.arange(1, 150, 2)
    network = CoCoClassifier(max_iter=2, n_members=2, random_state=0).fit(X[::2], y[::2])
    found = measure(network, X, y, rows[1], rows[0])
    assert set(found) == {
        "balanced_accuracy",
        "accuracy",
        "log_loss",
        "dispersity",
        "train_dispersity",
    }
    alone = CoCoClassifier(max_iter=2, n_members=1, random_state=0).fit(X[::2], y[::2])
    more = {"balanced_accuracy_uniform"}  # of which an average of posteriors says nothing
    assert set(measure(alone, X, y, rows[1], rows[0])) == set(found) | more
    neighbours = KNeighborsClassifier().fit(X[::2], y[::2])
    assert set(measure(neighbours, X, y, rows[1])) == {"balanced_accuracy", "accuracy", "log_loss"}
    assert set(measure(LinearSVC().fit(X[::2], y[::2]), X, y, rows[1])) == {
        "balanced_accuracy",
        "accuracy",
    }


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


def test_dispersity_is_that_of_the_first_members_features():
    X, y = load_iris(return_X_y=True)
    test = np.arange(150)
    network = CrossEntropyClassifier((5,), max_iter=2, n_members=3, random_state=0).fit(X, y)
    hidden = network._outputs(network._inputs(X), hidden=True)[0]  # noqa: SLF001
    expected = dispersity(hidden, y)
    assert measure(network, X, y, test)["dispersity"] == pytest.approx(expected, rel=1e-4)


def test_one_class_has_no_dispersity():
    X, y = load_iris(return_X_y=True)
    network = CoCoClassifier(max_iter=2, n_members=1, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = measure(network, X, y, np.arange(50))
    assert np.isnan(found["dispersity"])
    assert 0 <= found["balanced_accuracy"] <= 1
