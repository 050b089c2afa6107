"""How good honest predictions are: measures by definition, errors by drawing rows again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import cohen_kappa_score, log_loss, r2_score, roc_auc_score

from cocoloss import CoCoClassifier
from cocoloss.metrics import balanced_accuracy
from cocoloss.metrics.quality import (
    SHARED,
    Measure,
    Quality,
    auc,
    class_measures,
    number_measures,
    with_shared_rows,
)


def auc_by_pairs(scores, is_positive, weights):
    won = total = 0.0
    for a in range(len(scores)):
        for b in range(len(scores)):
            if is_positive[a] and not is_positive[b]:
                pair = weights[a] * weights[b]
                won += pair * ((scores[a] > scores[b]) + 0.5 * (scores[a] == scores[b]))
                total += pair
    return won / total


@given(st.data(), st.integers(2, 12))
def test_the_area_is_the_share_of_pairs_in_order(data, n):
    scores = data.draw(arrays(np.float64, n, elements=st.sampled_from([0.1, 0.2, 0.5, 0.9])))
    truth = np.array(
        [True, False, *data.draw(st.lists(st.booleans(), min_size=n - 2, max_size=n - 2))]
    )
    weights = data.draw(arrays(np.float64, n, elements=st.sampled_from([0.5, 1.0, 3.0])))
    value, moved = auc(scores, truth, weights)
    assert value == pytest.approx(auc_by_pairs(scores, truth, weights))
    assert weights @ moved == pytest.approx(0, abs=1e-9)


def classes(n=240, C=3, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.choice(C, n, p=np.arange(1, C + 1) / np.arange(1, C + 1).sum())
    logits = rng.normal(size=(n, C)) + 1.5 * np.eye(C)[labels]
    proba = np.exp(logits)
    return labels, proba / proba.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("C", [2, 3])
def test_measures_of_classes_are_those_of_scikit_learn(C):
    labels, proba = classes(C=C)
    found = class_measures(labels, proba, np.ones(len(labels)), None)
    assert list(found) == ["balanced accuracy", "log loss", "AUC"]
    shares = np.bincount(labels) / len(labels)
    assert found["balanced accuracy"].value == balanced_accuracy(labels, proba.argmax(axis=1))
    assert found["balanced accuracy"].guess == 1 / C
    assert found["log loss"].value == pytest.approx(log_loss(labels, proba))
    assert found["log loss"].guess == pytest.approx(-shares @ np.log(shares))
    scores = proba[:, 1] if C == 2 else proba
    expected = roc_auc_score(labels, scores, multi_class="ovr", average="macro")
    assert found["AUC"].value == pytest.approx(expected)
    assert found["AUC"].guess == 0.5


def test_log_loss_is_that_of_rows_which_have_the_prior_of_the_probabilities():
    labels, proba = classes()
    found = class_measures(labels, proba, np.ones(len(labels)), np.full(3, 1 / 3))
    by_class = [
        log_loss(labels[labels == c], proba[labels == c], labels=range(3)) for c in range(3)
    ]
    assert found["log loss"].value == pytest.approx(np.mean(by_class))
    assert found["log loss"].guess == pytest.approx(np.log(3))


def test_a_weight_of_two_is_the_row_twice():
    labels, proba = classes()
    weights = np.random.default_rng(1).integers(1, 3, len(labels)).astype(float)
    twice = np.repeat(np.arange(len(labels)), weights.astype(int))
    for ordered in (False, True):
        once = class_measures(labels, proba, weights, np.full(3, 1 / 3), ordered=ordered)
        more = class_measures(
            labels[twice], proba[twice], np.ones(len(twice)), np.full(3, 1 / 3), ordered=ordered
        )
        for name, measure in once.items():
            assert measure.value == pytest.approx(more[name].value)
            assert measure.guess == pytest.approx(more[name].guess)


def test_levels_have_distances_and_kappa():
    labels, proba = classes(C=4)
    found = class_measures(labels, proba, np.ones(len(labels)), None, ordered=True)
    predicted = proba.argmax(axis=1)
    assert list(found) == ["balanced accuracy", "levels off", "kappa"]
    assert found["levels off"].value == pytest.approx(np.abs(labels - predicted).mean())
    assert found["levels off"].guess == min(np.abs(labels - c).mean() for c in range(4))
    kappa = cohen_kappa_score(labels, predicted, weights="quadratic")
    assert found["kappa"].value == pytest.approx(kappa)


def test_numbers_have_their_own():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(100, 2)) * [1, 5]
    predicted = y + rng.normal(size=(100, 2))
    found = number_measures(y, predicted, np.ones(100))
    assert found["R2"].value == pytest.approx(r2_score(y, predicted))
    rmse = np.sqrt(np.square(y - predicted).mean(axis=0)).mean()
    assert found["RMSE"].value == pytest.approx(rmse)
    assert found["RMSE"].guess == pytest.approx(y.std(axis=0).mean())
    equal = np.full((200, 1), 3.7)  # whose mean is 3.7 but for rounding
    assert list(number_measures(equal, equal - 1e-13, np.ones(200))) == ["RMSE"]


@pytest.mark.parametrize("ordered", [False, True])
def test_errors_are_what_drawing_rows_again_gives(ordered):
    labels, proba = classes(n=400)
    rng, ones = np.random.default_rng(2), np.ones(400)
    found = class_measures(labels, proba, ones, None, ordered=ordered)
    drawn = []
    for _ in range(400):
        rows = rng.integers(400, size=400)
        again = class_measures(labels[rows], proba[rows], ones, None, ordered=ordered)
        drawn.append([measure.value for measure in again.values()])
    spread = np.std(drawn, axis=0)
    for measure, expected in zip(found.values(), spread, strict=True):
        assert measure.error == pytest.approx(expected, rel=0.15)


def test_errors_of_numbers_are_what_drawing_rows_again_gives():
    rng = np.random.default_rng(3)
    y = rng.gamma(2, size=(400, 1))
    predicted = y + rng.standard_t(6, size=(400, 1))
    found = number_measures(y, predicted, np.ones(400))
    drawn = []
    for _ in range(400):
        rows = rng.integers(400, size=400)
        again = number_measures(y[rows], predicted[rows], np.ones(400))
        drawn.append([measure.value for measure in again.values()])
    for measure, expected in zip(found.values(), np.std(drawn, axis=0), strict=True):
        assert measure.error == pytest.approx(expected, rel=0.15)


def test_all_rows_right_is_no_certainty():
    labels = np.array([0, 0, 0, 1, 1, 1])
    found = class_measures(labels, np.eye(2)[labels], np.ones(6), None)
    for name in ("balanced accuracy", "AUC"):
        assert found[name].value == 1
        assert 0.1 < found[name].error < 0.3, name


def test_errors_grow_where_a_class_has_few_rows():
    before = {"R2": Measure(0.5, 0.03, 0.0)}
    few, many = (with_shared_rows(before, n)["R2"] for n in (SHARED / 3, 1e9))
    assert few == (0.5, pytest.approx(0.06), 0.0)
    assert many == pytest.approx(before["R2"])


def test_two_errors_hold_what_other_rows_have():
    rng, within = np.random.default_rng(0), []
    for _ in range(12):
        y = rng.integers(2, size=1040)
        X = rng.normal(size=(1040, 5)) + 0.7 * y[:, None] * np.eye(5)[0]
        fit = CoCoClassifier(random_state=0).fit(X[:40], y[:40])
        found = class_measures(y[40:], fit.predict_proba(X[40:]), np.ones(1000), None)
        within += [
            abs(fit.quality_[name].value - value) <= 2 * np.hypot(fit.quality_[name].error, error)
            for name, (value, error, _) in found.items()
        ]
    assert np.mean(within) >= 0.9


def test_it_is_said_in_one_line():
    measures = {"R2": Measure(0.5, 0.031, 0.0), "RMSE": Measure(1234.5, 17.23, 1500.0)}
    said = "leave-one-out: R2 0.500 ± 0.031 (guessing 0.000), RMSE 1,234 ± 17.23 (1,500)"
    assert str(Quality("left out", 10, measures)) == said
