import tracemalloc

import numpy as np
import pytest
from scipy.stats import chi2, multivariate_normal
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)

from cocoloss.exceptions import CoCoError
from cocoloss.heads import GaussianHead
from oracles import printed_moments

KINDS = ("full", "tied", "diag")


def rows(q=3, sizes=(40, 25, 15), seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(range(len(sizes)), sizes)
    mixing = rng.normal(size=(len(sizes), q, q))
    X = np.einsum("nq,nqr->nr", rng.normal(size=(len(y), q)), mixing[y])
    return X + rng.normal(size=(len(sizes), q))[y], y


def as_used(covariance, mass, kind):
    pooled = sum(mass[c] * covariance[c] for c in mass) / sum(mass.values())
    if kind == "tied":
        return dict.fromkeys(mass, pooled)
    if kind == "diag":
        return {c: np.diag(np.diag(covariance[c])) for c in mass}
    return covariance


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_is_the_printed_posterior(kind, weighted):
    X, y = rows()
    weights = np.random.default_rng(1).uniform(0.2, 3, len(y)) if weighted else np.ones(len(y))
    moments = printed_moments(X, y, weights)
    mass, mean = moments["mass"], moments["means"]
    covariance = as_used(moments["covariances"], mass, kind)
    head = GaussianHead(kind, shrinkage=0, covariance_floor=0, priors="empirical")
    head.fit(X, y, weights if weighted else None)
    total = sum(mass.values())
    density = np.array(
        [[multivariate_normal.pdf(h, mean[c], covariance[c]) for c in mass] for h in X]
    )
    joint = density * [mass[c] / total for c in mass]
    np.testing.assert_allclose(head.log_likelihood(X), np.log(density), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        head.predict_proba(X), joint / joint.sum(axis=1, keepdims=True), rtol=1e-9
    )


@pytest.mark.parametrize("kind", KINDS)
def test_covariances_are_maximum_likelihood_shrunk_and_floored_as_documented(kind):
    X, y = rows()
    moments = printed_moments(X, y)
    mass, covariance = moments["mass"], moments["covariances"]
    used = as_used(covariance, mass, kind)
    pooled = as_used(covariance, mass, "tied")[0]
    pooled = np.diag(np.diag(pooled)) if kind == "diag" else pooled
    scale = np.mean([np.mean((X[:, j] - X[:, j].mean()) ** 2) for j in range(X.shape[1])])
    head = GaussianHead(kind, shrinkage=5, covariance_floor=0.1).fit(X, y)
    for c, size in mass.items():
        expected = (size * used[c] + 5 * pooled) / (size + 5) + 0.1 * scale * np.eye(3)
        found = head.covariances_ if kind == "tied" else head.covariances_[c]
        np.testing.assert_allclose(np.diag(found) if kind == "diag" else found, expected)


def test_precisions_are_the_cholesky_factors_of_the_inverse_covariances():
    X, y = rows()
    head = GaussianHead().fit(X, y)
    P = head.precisions_cholesky_
    np.testing.assert_array_equal(P, np.triu(P))
    np.testing.assert_allclose(P @ P.transpose(0, 2, 1), np.linalg.inv(head.covariances_))


def test_agrees_with_quadratic_discriminant_analysis_up_to_its_denominator():
    X, y = rows(sizes=(30, 30, 30))
    ours = GaussianHead(shrinkage=0, covariance_floor=0, priors="empirical").fit(X, y)
    theirs = QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, y)
    ratio = theirs.covariance_[0][0, 0] / ours.covariances_[0, 0, 0]
    assert ratio == pytest.approx(1) or ratio == pytest.approx(30 / 29)  # older scikit-learn
    ours.precisions_cholesky_ = ours.precisions_cholesky_ / np.sqrt(ratio)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-8)


def test_agrees_with_linear_discriminant_analysis():
    X, y = rows()
    ours = GaussianHead("tied", covariance_floor=0, priors="empirical").fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-6)


def test_auto_shrinkage_counts_as_the_rows_that_determine_a_covariance():
    X, y = rows()
    for kind, rows_needed in [("full", 4), ("diag", 2)]:
        chosen = GaussianHead(kind, shrinkage=rows_needed).fit(X, y)
        np.testing.assert_array_equal(
            GaussianHead(kind).fit(X, y).covariances_, chosen.covariances_
        )


def test_shrinkage_helps_classes_of_few_rows():
    rng = np.random.default_rng(0)
    means = 1.5 * rng.normal(size=(4, 8))
    y, y_new = np.repeat(range(4), 10), np.repeat(range(4), 500)
    X, X_new = (means[labels] + rng.normal(size=(len(labels), 8)) for labels in (y, y_new))
    plain = GaussianHead(shrinkage=0, covariance_floor=1e-6).fit(X, y).score(X_new, y_new)
    assert GaussianHead().fit(X, y).score(X_new, y_new) > plain + 0.05


def test_is_the_nearest_mean_where_every_class_has_collapsed():
    means = np.random.default_rng(0).normal(size=(5, 4))
    queries = np.random.default_rng(1).normal(size=(200, 4))
    head = GaussianHead().fit(np.repeat(means, 3, axis=0), np.repeat(range(5), 3))
    nearest = np.linalg.norm(queries[:, None] - means, axis=2).argmin(axis=1)
    np.testing.assert_array_equal(head.predict(queries), nearest)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_do_not_depend_on_unit_or_origin(kind, scale):
    X, y = rows()
    expected = GaussianHead(kind).fit(X, y).predict_proba(X)
    moved = scale * (X + 100)
    np.testing.assert_allclose(
        GaussianHead(kind).fit(moved, y).predict_proba(moved), expected, rtol=1e-8
    )


def test_full_and_tied_turn_with_the_embedding():
    X, y = rows()
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    for kind in ("full", "tied"):
        expected = GaussianHead(kind).fit(X, y).predict_proba(X)
        turned = GaussianHead(kind).fit(X @ rotation, y).predict_proba(X @ rotation)
        np.testing.assert_allclose(turned, expected, rtol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_floor_it_names_the_singular_class_and_the_remedy(kind):
    X, y = rows(sizes=(20, 20))
    X[y == 1] *= [1, 1, 0]
    X[y == 0] *= [1, 1, 0] if kind == "tied" else [1, 1, 1]
    who = "pooled covariance" if kind == "tied" else "covariance of class .*1.*"
    with pytest.raises(CoCoError, match=f"the {who} has rank 2 of 3; raise covariance_floor"):
        GaussianHead(kind, shrinkage=0, covariance_floor=0).fit(X, y)


@pytest.mark.parametrize(
    "parameters",
    [
        *({"shrinkage": bad} for bad in (-1, np.nan, None, "some")),
        *({"covariance_floor": bad} for bad in (-1, np.nan)),
        {"covariance": "round"},
    ],
)
def test_refuses_parameters_that_mean_nothing(parameters):
    with pytest.raises(CoCoError, match=f"{next(iter(parameters))} must"):
        GaussianHead(**parameters).fit(*rows())


def test_says_when_squares_overflow():
    X, y = rows()
    with pytest.raises(CoCoError, match="overflow"):
        GaussianHead().fit(1e200 * X, y)


def test_outlier_scores_of_gaussian_rows_follow_the_chi_square_distribution():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 4000)
    X = rng.normal(size=(8000, 5)) @ rng.normal(size=(5, 5)) + 1000 * y[:, None]
    scores = GaussianHead(covariance_floor=0).fit(X, y).outlier_score(X)
    for level in (0.1, 0.5, 0.9):
        assert np.quantile(scores, level) == pytest.approx(chi2(5).ppf(level), rel=0.05)


def test_identical_rows_have_no_variance_not_even_from_rounding():
    head = GaussianHead(covariance_floor=0.5).fit(np.full((14, 2), 0.1), np.arange(14) % 2)
    np.testing.assert_allclose(head.covariances_, np.broadcast_to(0.005 * np.eye(2), (2, 2, 2)))


def test_many_classes_share_one_covariance_in_bounded_memory():
    rng = np.random.default_rng(0)
    n_classes = q = 300
    y = np.repeat(np.arange(n_classes), 2)
    X = 5 * np.eye(q)[y] + 0.1 * rng.normal(size=(len(y), q))
    tracemalloc.start()
    head = GaussianHead().fit(X, y)
    assert head.score(X, y) == 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert head.covariance_ == "tied"
    assert peak < 40 * 2**20  # of 300 matrices it would be 216 MB
    assert GaussianHead().fit(X[:20], y[:20]).covariance_ == "full"
