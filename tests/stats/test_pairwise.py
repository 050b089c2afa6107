import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from cocoloss.stats import corrected_t, holm, pairwise_p_values, wilcoxon_paired
from cocoloss.stats.pairwise import signed_rank_tests

small_integers = st.lists(st.integers(-4, 4), min_size=6, max_size=10)  # many ties and zeros


def counted_p_value(differences, zeros):
    """Count all signs of the non-zero differences whose rank sum is as far from the middle."""
    differences = np.asarray(differences, dtype=float)
    if zeros == "drop":
        differences = differences[differences != 0]
    ranks = stats.rankdata(np.abs(differences))[differences != 0]
    signs = np.sign(differences[differences != 0])
    seen = abs(sum(r * s for r, s in zip(ranks, signs, strict=True)))
    as_far = total = 0
    for choice in itertools.product([-1, 1], repeat=len(ranks)):
        total += 1
        as_far += abs(sum(r * s for r, s in zip(ranks, choice, strict=True))) >= seen - 1e-9
    return as_far / total


@pytest.mark.parametrize("zeros", ["split", "drop"])
@given(differences=small_integers)
def test_counts_every_sign_with_ties_and_zeros(zeros, differences):
    result = wilcoxon_paired(differences, np.zeros(len(differences)), zeros=zeros)
    assert result.exact
    assert result.p_value == pytest.approx(counted_p_value(differences, zeros), rel=1e-12)


@given(st.lists(st.integers(1, 10**6), min_size=6, max_size=50, unique=True), st.randoms())
def test_agrees_with_scipy_without_ties(magnitudes, random):
    differences = [m * random.choice([-1, 1]) for m in magnitudes]
    expected = stats.wilcoxon(differences, method="exact").pvalue
    result = wilcoxon_paired(differences, np.zeros(len(differences)))
    assert result.p_value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("zeros", "scipys"), [("split", "pratt"), ("drop", "wilcox")])
@given(seed=st.integers(0, 1000), n=st.integers(51, 300))
def test_agrees_with_scipys_normal_approximation_beyond_50(zeros, scipys, seed, n):
    differences = np.random.default_rng(seed).integers(-9, 12, n)
    expected = stats.wilcoxon(differences, zero_method=scipys, method="asymptotic").pvalue
    result = wilcoxon_paired(differences, np.zeros(n), zeros=zeros)
    assert not result.exact
    assert result.p_value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n", [6, 10, 50, 51, 500])
@pytest.mark.parametrize("zeros", ["split", "drop"])
def test_equal_scores_have_p_of_one_and_no_warning(n, zeros):
    scores = np.linspace(0, 1, n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert wilcoxon_paired(scores, scores, zeros=zeros).p_value == 1.0


@given(small_integers, st.integers(0, 100))
def test_changing_sides_changes_only_the_sides(differences, seed):
    second = np.random.default_rng(seed).normal(size=len(differences)).round(3)
    first = second + differences
    one, other = wilcoxon_paired(first, second), wilcoxon_paired(second, first)
    assert one.p_value == other.p_value
    assert (one.sum_first, one.sum_second) == (other.sum_second, other.sum_first)
    assert one.sum_first + one.sum_second == len(first) * (len(first) + 1) / 2


@given(st.lists(small_integers.filter(lambda d: len(d) == 8), min_size=2, max_size=6))
def test_a_pair_is_tested_by_itself(rows):
    # SciPy chooses the method by all rows at once, so that one row changes another's p-value.
    together = signed_rank_tests(np.array(rows, dtype=float))[2]
    alone = [signed_rank_tests(np.array([row], dtype=float))[2][0] for row in rows]
    assert together.tolist() == alone


def test_ties_are_found_in_spite_of_rounding():
    # 0.3 - 0.2 and 0.2 - 0.1 differ in the last bit; as decimals they tie.
    first = np.array([0.3, 0.2, 0.9, 0.5, 0.6, 0.7])
    second = np.array([0.2, 0.1, 0.8, 0.6, 0.7, 0.8])
    exact = wilcoxon_paired([1, 1, 1, -1, -1, -1], np.zeros(6))
    assert len(set(np.abs(first - second))) > 1
    assert wilcoxon_paired(first, second) == exact


@given(st.integers(-250, 250))
def test_the_unit_of_the_scores_does_not_matter(power):
    unit = 10.0**power
    first = np.array([0.31, 0.22, 0.93, 0.54, 0.65, 0.76, 0.5])
    second = np.array([0.21, 0.12, 0.83, 0.65, 0.72, 0.81, 0.5])
    assert wilcoxon_paired(first * unit, second * unit) == wilcoxon_paired(first, second)


def test_a_diverged_score_does_not_blur_the_others():
    first, second = np.linspace(0.5, 0.6, 8), np.linspace(0.5, 0.6, 8) - 1e-6
    second[0] = -1e9
    assert wilcoxon_paired(first, second).p_value == 2 / 2**8


def test_infinite_scores_are_beyond_all_others_and_equal_to_each_other():
    inf = np.inf
    first = [inf, inf, 1, 2, 3, 4, 5]
    second = [inf, 0, 2, 4, 6, 8, 10]
    finite = wilcoxon_paired([0, 100, -1, -2, -3, -4, -5], np.zeros(7))
    assert wilcoxon_paired(first, second) == finite


def test_differences_beyond_the_largest_float_are_ranked_without_a_warning():
    found = wilcoxon_paired([1e308] * 6, [-1e308] * 6)
    assert (found.p_value, found.sum_first) == (0.03125, 21)


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
    assert holm([]).shape == (0,)


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
    # 2 runs of 10 folds: without the share of rows the scores would pass for independent.
    assert corrected_t(first, second, test_fraction=0.1).p_value > plain.pvalue


@pytest.mark.parametrize(("difference", "p_value"), [(0.0, 1.0), (0.1, 0.0)])
def test_constant_differences_are_certain_one_way_or_the_other(difference, p_value):
    second = np.array([0.61, 0.72, 0.53, 0.64])
    assert corrected_t(second + difference, second).p_value == p_value


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
