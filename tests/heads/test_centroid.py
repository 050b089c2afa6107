import numpy as np
import pytest

from cocoloss.heads import CentroidHead


def rows(seed=0, n=90, q=4):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(3, q))[y] + 0.6 * rng.normal(size=(n, q)), y


def class_means(X, y):
    return [sum(X[y == c]) / sum(y == c) for c in range(3)]


def distance(h, mean):
    return np.linalg.norm(h - mean)


def angle(h, mean):
    return np.arccos(h @ mean / np.linalg.norm(h) / np.linalg.norm(mean))


@pytest.mark.parametrize(("metric", "apart"), [("euclidean", distance), ("angular", angle)])
def test_is_the_nearest_class_mean(metric, apart):
    X, y = rows()
    means = class_means(X, y)
    nearest = [min(range(3), key=lambda c: apart(h, means[c])) for h in X]
    np.testing.assert_array_equal(CentroidHead(metric).fit(X, y).predict(X), nearest)


def test_euclidean_probabilities_come_from_the_within_class_variance():
    X, y = rows()
    means = class_means(X, y)
    variance = np.mean([(X[i, j] - means[y[i]][j]) ** 2 for i in range(len(X)) for j in range(4)])
    weight = np.array([[np.exp(-((h - m) @ (h - m)) / (2 * variance)) for m in means] for h in X])
    expected = weight / weight.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(CentroidHead().fit(X, y).predict_proba(X), expected, rtol=1e-9)


def test_concentration_recovers_that_of_nearly_gaussian_directions():
    # Close to its centre, a von Mises-Fisher distribution is a Gaussian of variance 1 / kappa.
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 6000)
    X = np.eye(6)[y] + rng.normal(size=(6000, 6)) / np.sqrt(400)
    head = CentroidHead("angular").fit(X, y)
    assert head.concentration_ == pytest.approx(400, rel=0.05)


@pytest.mark.parametrize("metric", ["euclidean", "angular"])
def test_outlier_score_is_measured_in_units_of_the_spread(metric):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 3000)
    near = CentroidHead(metric).fit(np.eye(3)[y] + 0.02 * rng.normal(size=(3000, 3)), y)
    wide = CentroidHead(metric).fit(np.eye(3)[y] + 0.1 * rng.normal(size=(3000, 3)), y)
    query = np.array([[1.0, 0.3, 0.0]])
    assert near.outlier_score(query) > wide.outlier_score(query) > 0


def test_the_two_metrics_differ_where_norms_do():
    X, y = [[1.0, 0.0], [0.1, 0.1]], ["long", "short"]
    query = [[0.2, 0.0]]
    assert CentroidHead().fit(X, y).predict(query) == ["short"]
    assert CentroidHead("angular").fit(X, y).predict(query) == ["long"]
