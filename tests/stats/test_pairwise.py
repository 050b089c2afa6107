import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from cocoloss.exceptions import CoCoError
from cocoloss.stats import corrected_t, holm, pairwise_p_values, wilcoxon_paired

p_value_lists = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def printed_holm(p_values, alpha):
    """Say which hypotheses fall: step by step, from the smallest p-value, until one stays."""
    rejected = [False] * len(p_values)
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    for step, i in enumerate(order):
        if p_values[i] * (len(p_values) - step) >= alpha:
            break
        rejected[i] = True
    return rejected


@given(p_value_lists, st.floats(0.001, 0.5))
def test_holm_rejects_what_the_procedure_rejects_step_by_step(p_values, alpha):
    assert (holm(p_values) < alpha).tolist() == printed_holm(p_values, alpha)


@pytest.mark.parametrize("seed", range(5))
def test_holm_agrees_with_statsmodels(seed):
    p_values = np.random.default_rng(seed).uniform(0, 0.2, 30) ** 2
    expected = multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(expected, rel=1e-12)


def test_holm_is_not_a_division_of_alpha_by_the_number_of_models():
    # Three models, three pairs. Alpha / (k - 1) = 0.025 would reject the second; Holm does not.
    assert (holm([0.001, 0.0245, 0.0250]) < 0.05).tolist() == [True, True, True]
    assert (holm([0.020, 0.0245, 0.9]) < 0.05).tolist() == [False, False, False]


def test_holm_keeps_the_order_given():
    assert holm([0.9, 0.001, 0.5]).tolist() == pytest.approx([1.0, 0.003, 1.0])


def test_holm_of_nothing_is_nothing():
    assert holm([]).shape == (0,)


@pytest.mark.parametrize("bad", [np.nan, -0.1, 1.1, np.inf])
def test_holm_refuses_what_is_no_p_value(bad):
    with pytest.raises(CoCoError, match="between 0 and 1, but number 1"):
        holm([0.1, bad, 0.2])


def test_holm_refuses_a_matrix():
    with pytest.raises(CoCoError, match=r"must be a list.*\(2, 2\)"):
        holm([[0.1, 0.2], [0.3, 0.4]])


def test_the_corrected_t_test_is_the_printed_formula():
    rng = np.random.default_rng(0)
    first, second = rng.normal(0.8, 0.02, 10), rng.normal(0.79, 0.02, 10)
    differences = first - second
    n_train, n_test, n = 90, 10, 10
    variance = sum((d - sum(differences) / n) ** 2 for d in differences) / (n - 1)
    t = sum(differences) / n / np.sqrt((1 / n + n_test / n_train) * variance)
    result = corrected_t(first, second)
    assert result.statistic == pytest.approx(t, rel=1e-9)
    assert result.p_value == pytest.approx(2 * stats.t.sf(abs(t), 9), rel=1e-9)
    assert result.df == 9


def test_without_shared_rows_it_is_the_plain_t_test():
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=20), rng.normal(size=20)
    plain = stats.ttest_rel(first, second)
    result = corrected_t(first, second, test_fraction=1e-12)
    assert result.p_value == pytest.approx(plain.pvalue, rel=1e-6)
    assert corrected_t(first, second).p_value > plain.pvalue


def test_repeated_folds_are_no_more_certain_than_the_rows_allow():
    # 10 runs of 10 folds: without the share of rows, 100 scores would pass for independent.
    rng = np.random.default_rng(2)
    first, second = rng.normal(0.02, 0.05, 100), np.zeros(100)
    ten_by_ten = corrected_t(first, second, test_fraction=0.1)
    assert ten_by_ten.p_value > 20 * stats.ttest_rel(first, second).pvalue


@pytest.mark.parametrize(("difference", "p_value"), [(0.0, 1.0), (0.1, 0.0)])
def test_constant_differences_are_certain_one_way_or_the_other(difference, p_value):
    second = np.array([0.61, 0.72, 0.53, 0.64])
    assert corrected_t(second + difference, second).p_value == p_value


def test_the_corrected_t_test_refuses_infinite_scores():
    with pytest.raises(CoCoError, match="corrected t-test needs finite scores"):
        corrected_t([np.inf, 0.1, 0.2], [0.1, 0.1, 0.2])


def test_the_corrected_t_test_refuses_a_single_fold():
    with pytest.raises(CoCoError, match="two folds or more"):
        corrected_t([0.1], [0.2])


@pytest.mark.parametrize("fraction", [0, 1, -0.1, 1.5, np.nan, True, "0.1"])
def test_the_corrected_t_test_refuses_an_impossible_share(fraction):
    with pytest.raises(CoCoError, match="test_fraction must be a number between 0 and 1"):
        corrected_t([0.1, 0.2], [0.2, 0.1], test_fraction=fraction)


@pytest.mark.parametrize("test", ["wilcoxon", "corrected_t"])
def test_all_pairs_are_single_pairs_and_holm(test):
    scores = np.random.default_rng(3).normal([0, 0.3, 0.9, 2.0], size=(12, 4)).round(1)
    single = {"wilcoxon": wilcoxon_paired, "corrected_t": corrected_t}[test]
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    raw = [single(scores[:, i], scores[:, j]).p_value for i, j in pairs]
    plain = pairwise_p_values(scores, test, adjust=False)
    adjusted = pairwise_p_values(scores, test)
    for (i, j), p_value, corrected in zip(pairs, raw, holm(raw), strict=True):
        assert plain[i, j] == plain[j, i] == p_value
        assert adjusted[i, j] == adjusted[j, i] == corrected
    assert np.diag(adjusted).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("block", [1, 30, 35, 10**6])
def test_pairs_are_the_same_however_many_are_in_memory(monkeypatch, block):
    scores = np.random.default_rng(4).normal(size=(10, 5))
    expected = pairwise_p_values(scores)
    monkeypatch.setattr("cocoloss.stats.pairwise.BLOCK", block)
    assert (pairwise_p_values(scores) == expected).all()


def test_pairs_of_few_rows_are_refused():
    with pytest.raises(CoCoError, match="over 5 folds can never reach"):
        pairwise_p_values(np.random.default_rng(0).normal(size=(5, 3)), unit="folds")


def test_pairs_refuse_an_unknown_test():
    with pytest.raises(CoCoError, match="test must be one of 'wilcoxon', 'corrected_t'"):
        pairwise_p_values(np.zeros((6, 2)), "anova")
