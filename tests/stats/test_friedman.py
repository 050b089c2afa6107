import itertools
import warnings

import numpy as np
import pytest
import scikit_posthocs
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate, stats

from cocoloss.stats import critical_distance, friedman, nemenyi, rank_models


def test_reproduces_the_papers_critical_distances():
    assert round(critical_distance(5, 72), 3) == 0.719  # printed 0.72
    assert round(critical_distance(3, 70), 3) == 0.396


@pytest.mark.parametrize("n_models", [2, 3, 10, 50, 100, 150])
@pytest.mark.parametrize("alpha", [0.1, 0.05, 0.001])
def test_the_critical_distance_is_the_quantile_of_the_range(n_models, alpha):
    def density(z, q):
        inside = stats.norm.cdf(z) - stats.norm.cdf(z - q)
        return n_models * stats.norm.pdf(z) * inside ** (n_models - 1)

    n_datasets = 30
    scale = np.sqrt(n_models * (n_models + 1) / (12 * n_datasets))
    q = critical_distance(n_models, n_datasets, alpha) / scale
    within = integrate.quad(density, -8, 12, args=(q,), epsabs=1e-12, limit=500)[0]
    assert 1 - within == pytest.approx(alpha, rel=1e-6)


@pytest.mark.parametrize("k", [3, 5, 10])
def test_nemenyi_agrees_with_scikit_posthocs(k):
    scores = np.random.default_rng(k).normal(size=(30, k)) + np.linspace(0, 1, k)
    expected = scikit_posthocs.posthoc_nemenyi_friedman(scores).to_numpy()
    average = rank_models(scores).mean(axis=0)
    assert nemenyi(average, 30) == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.floats(1, 9), min_size=2, max_size=9), st.integers(2, 100))
def test_nemenyi_differs_where_the_distance_does(ranks, n_datasets):
    gaps = np.abs(np.subtract.outer(ranks, ranks))
    distance = critical_distance(len(ranks), n_datasets)
    clear = np.abs(gaps - distance) > 1e-6
    assert ((nemenyi(ranks, n_datasets) < 0.05) == (gaps > distance))[clear].all()


def test_small_p_values_keep_their_digits():
    # Two models: the p-value is that of a normal variable, z = gap * sqrt(N).
    gaps = np.array([0.1, 0.3, 0.5, 0.9])
    p_values = [nemenyi([1.0, 1.0 + gap], 1000)[0, 1] for gap in gaps]
    assert p_values == pytest.approx(2 * stats.norm.sf(gaps * np.sqrt(1000)), rel=1e-9)
    assert 0 < min(p_values) < 1e-170
    assert nemenyi([2.0, 2.0, 2.0], 10) == pytest.approx(np.ones((3, 3)))


def test_many_models_keep_their_digits_too():
    # Far out, the range exceeds q if one of the k (k - 1) / 2 pairs does: Bonferroni is sharp.
    k, n = 100, 1000
    gap = 15.0
    ranks = np.full(k, 50.0)
    ranks[0] += gap
    z = gap / np.sqrt(k * (k + 1) / (6 * n))
    bonferroni = k * (k - 1) / 2 * 2 * stats.norm.sf(z)
    assert nemenyi(ranks, n)[0, 1] == pytest.approx(bonferroni, rel=0.05)
    assert bonferroni < 1e-25


@given(arrays(float, (8, 4), elements=st.integers(0, 3).map(float)))
def test_friedman_agrees_with_scipy_with_ties(scores):
    ranks = rank_models(scores)
    result = friedman(ranks)
    if (ranks == 2.5).all():
        assert (result.chi2, result.p_value) == (0, 1)
        return
    expected = stats.friedmanchisquare(*scores.T)
    assert result.chi2 == pytest.approx(expected.statistic, abs=1e-9)
    assert result.p_value == pytest.approx(expected.pvalue, rel=1e-6)


def test_iman_davenport_is_the_analysis_of_variance_of_the_ranks():
    ranks = rank_models(np.random.default_rng(0).integers(0, 4, (9, 4)))
    n, k = ranks.shape
    models, total = ranks.mean(axis=0), ((ranks - (k + 1) / 2) ** 2).sum()
    between = n * ((models - (k + 1) / 2) ** 2).sum()
    f = (between / (k - 1)) / ((total - between) / ((k - 1) * (n - 1)))
    result = friedman(ranks)
    assert result.f == pytest.approx(f)
    assert result.f_p_value == pytest.approx(stats.f.sf(f, k - 1, (k - 1) * (n - 1)))


def test_competition_ranks_count_as_the_mean_places_they_stand_for():
    scores = np.random.default_rng(0).integers(0, 3, (12, 5))
    assert friedman(rank_models(scores, ties="competition")) == friedman(rank_models(scores))


@pytest.mark.parametrize("n_models", [2, 3, 6])
def test_all_models_equal_have_p_of_one_and_no_warning(n_models):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = friedman(np.ones((7, n_models)))
    assert (result.chi2, result.p_value, result.f, result.f_p_value) == (0, 1, 0, 1)


def share_of_orders_that_agree(row, n):
    """Count the ways to order the models of n - 1 further datasets, ties where the first has."""
    orders = list(itertools.permutations(row))
    return (orders.count(tuple(row)) / len(orders)) ** (n - 1)


@pytest.mark.parametrize("row", [(1, 2, 3), (1, 2, 3, 4), (1, 2.5, 2.5, 4), (1.5, 1.5, 3)])
def test_full_agreement_has_the_probability_of_a_coincidence(row):
    result = friedman(np.array([row] * 4))
    assert result.f == np.inf
    assert result.f_p_value == pytest.approx(share_of_orders_that_agree(row, 4))


@pytest.mark.parametrize(
    ("ranks", "n", "printed"),
    [
        ([1.97, 2.65, 2.65, 3.20, 4.53], 72, 2.17e-19),
        ([1.32, 1.92, 2.76], 70, 4.76e-9),
    ],
)
def test_the_papers_friedman_p_values_are_larger_than_its_ranks_give(ranks, n, printed):
    k = len(ranks)
    chi2 = 12 * n / (k * (k + 1)) * (sum(r**2 for r in ranks) - k * (k + 1) ** 2 / 4)
    assert stats.chi2.sf(chi2, k - 1) < printed / 100  # and the correction for ties lowers it
