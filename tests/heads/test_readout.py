import numpy as np
import pytest
import torch
from scipy.special import logsumexp, softmax

from cocoloss import CrossEntropyLoss, DotRegressionLoss
from cocoloss.exceptions import CoCoError
from cocoloss.heads import ReadoutHead, fit_temperature
from cocoloss.heads.readout import matrix_readout, pool_weights


def rows(seed=0, n=50, q=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, q)).astype(np.float32), np.r_[0, 1, 2, rng.integers(0, 3, n - 3)]


def test_angular_predicts_what_dot_regression_aims_at():
    X, y = rows()
    loss = DotRegressionLoss(n_classes=3, embedding_dim=4, random_state=0)
    prototypes = loss.prototypes.clone()
    head = ReadoutHead(prototypes).fit(X, y)
    prototypes *= -1  # which does not reach a fitted head
    v = loss.prototypes.double().numpy()
    best = [max(range(3), key=lambda c: h @ v[c] / np.linalg.norm(h)) for h in X]
    np.testing.assert_array_equal(head.predict(X), best)


def test_rows_that_point_elsewhere_still_rank_the_classes_by_angle():
    v, y = np.eye(3), np.arange(30) % 3
    head = ReadoutHead(v).fit(-v[y], y)
    np.testing.assert_array_equal(head.predict(v), [0, 1, 2])
    assert head.predict_proba(v).max() < 0.34


def test_empirical_priors_leave_the_logits_of_cross_entropy_as_they_are():
    X, y = rows()
    torch.manual_seed(0)
    loss = CrossEntropyLoss(n_classes=3, embedding_dim=4)
    logits = loss.logits(torch.tensor(X)).detach().double().numpy()
    head = ReadoutHead(loss.output.weight, loss.output.bias, metric="dot", priors="empirical")
    np.testing.assert_allclose(head.fit(X, y).predict_proba(X), softmax(logits, axis=1), rtol=1e-5)


def test_other_priors_divide_the_training_shares_out():
    X, y = rows(q=3)
    share = np.bincount(y) / len(y)
    for priors, prior in [("uniform", np.full(3, 1 / 3)), ([0.2, 0.3, 0.5], [0.2, 0.3, 0.5])]:
        odds = np.exp(X.astype(float)) / share * prior
        np.testing.assert_allclose(
            ReadoutHead(metric="dot", priors=priors).fit(X, y).predict_proba(X),
            odds / odds.sum(axis=1, keepdims=True),
        )


def test_the_outlier_score_of_logits_is_their_energy():
    X, y = rows(q=3)
    score = ReadoutHead(metric="dot").fit(X, y).outlier_score(X)
    np.testing.assert_allclose(score, -logsumexp(X.astype(float), axis=1))


@pytest.mark.parametrize("temperature", [1.0, 7.0])
def test_the_smallest_angle_is_right_under_the_shares_that_were_learnt(temperature):
    X, y = rows()
    share = np.array([0.7, 0.2, 0.1])
    plain = ReadoutHead(np.eye(3, 4)).fit(X, y)
    for priors in (share, [1 / 3] * 3):
        head = ReadoutHead(np.eye(3, 4), priors=priors, learnt_share=share).fit(X, y)
        plain.temperature_ = head.temperature_ = temperature
        odds = plain.predict_proba(X) * priors / share
        np.testing.assert_allclose(head.predict_proba(X), odds / odds.sum(1, keepdims=True))


def test_the_temperature_of_angles_is_fitted_under_the_shares_that_were_learnt():
    X, y = rows(n=200)
    share = np.bincount(y) / len(y)
    head = ReadoutHead(np.eye(3, 4), learnt_share=share).fit(X, y).calibrate(X, y)
    expected = fit_temperature(head.log_likelihood(X), y)
    assert head.temperature_ == pytest.approx(expected)


def test_needs_a_column_for_each_class_where_no_vectors_are_given():
    with pytest.raises(CoCoError, match=r"prototypes must have shape \(3, 4\) .* by default"):
        ReadoutHead().fit(*rows())


def test_pooled_models_weigh_what_they_know():
    rng = np.random.default_rng(0)
    n, labels = 4000, rng.integers(0, 3, 4000)
    one_hot = np.eye(3)[labels]
    good = 2 * one_hot + rng.normal(size=(n, 3))  # the log likelihood of two is their sum
    other = one_hot + rng.normal(size=(n, 3))
    noise = rng.normal(size=(n, 3))
    scores = np.stack([2 * good, other, noise])  # likelihoods of unit variance: mean times value
    weights = pool_weights(scores, labels, np.ones(n))
    np.testing.assert_allclose(weights, [1, 1, 0], atol=0.12)
    assert (weights >= 0).all()
    twice = pool_weights(scores[:, :500], labels[:500], np.full(500, 2.0))
    copies = pool_weights(
        np.tile(scores[:, :500], (1, 2, 1)), np.tile(labels[:500], 2), np.ones(1000)
    )
    np.testing.assert_allclose(twice, copies, atol=1e-4)


def test_few_rows_leave_the_first_model_alone():
    weights = pool_weights(np.zeros((2, 1, 2)), np.array([0]), np.ones(1))
    np.testing.assert_allclose(weights, [1, 0])


@pytest.mark.parametrize("n", [1, 2, 3, 6])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_a_handful_of_rows_gives_a_matrix_without_a_warning(n, size):
    for seed in range(5):  # rows that are all in one fold, scores that a line search runs off with
        rng = np.random.default_rng(seed)
        scores, labels = size * rng.normal(size=(n, 3)), rng.integers(0, 3, n)
        made = matrix_readout(scores, labels, np.ones(n), np.eye(3), np.full(3, 1 / 3))
        assert np.isfinite(made.prototypes).all()


def test_no_matrix_turns_classes_round():
    """Of few rows each that is left out looks like the others, which says nothing of new ones."""
    rng = np.random.default_rng(0)
    labels = np.arange(20) % 2
    scores = np.where(labels == 0, -1.0, 1.0)[:, None] * np.array([[1.0, -1.0]])  # all wrong
    scores += 0.3 * rng.standard_normal(scores.shape)
    points = np.array([[1.0], [-1.0]])
    even = np.full(2, 0.5)
    readout = matrix_readout(scores, labels, np.ones(20), points, even)
    assert readout.predict_proba(np.array([[1.0]])).argmax() == 0  # at the point of the first class
    right = matrix_readout(-scores, labels, np.ones(20), points, even)
    assert right.predict_proba(np.array([[1.0]]))[0, 0] > 0.8
