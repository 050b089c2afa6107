import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cocoloss.exceptions import CoCoError
from cocoloss.stats import wilcoxon_paired
from cocoloss.stats.wilcoxon import signed_rank_tests

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


@settings(deadline=None, max_examples=20)  # SciPy tries every sign, slowly
@given(small_integers)
def test_splitting_zeros_gives_the_p_value_of_pratt(differences):
    # The share of the zeros is the same in both sums: it cannot decide between them.
    if not any(differences):
        return
    pratt = stats.wilcoxon(
        np.array(differences, dtype=float),
        zero_method="pratt",
        method=stats.PermutationMethod(n_resamples=np.inf),
    ).pvalue
    result = wilcoxon_paired(differences, np.zeros(len(differences)))
    assert result.p_value == pytest.approx(pratt, rel=1e-9)


@given(small_integers)
def test_rank_sums_add_up(differences):
    n = len(differences)
    result = wilcoxon_paired(differences, np.zeros(n))
    assert result.sum_first + result.sum_second == n * (n + 1) / 2


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


@pytest.mark.parametrize("n", [1, 2, 5])
def test_refuses_fewer_than_six_pairs(n):
    with pytest.raises(CoCoError, match=rf"over {n} pairs.*never reach p < 0\.05.*corrected t"):
        wilcoxon_paired(np.arange(n), np.zeros(n))


def test_six_pairs_reach_five_percent():
    assert wilcoxon_paired(np.arange(1, 7), np.zeros(6)).p_value == pytest.approx(1 / 32)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([0.1] * 6, [0.1] * 7, r"equal length.*\(6,\) and \(7,\)"),
        ([[0.1] * 6], [[0.1] * 6], "two lists"),
        ([0.1] * 5 + [np.nan], [0.1] * 6, "no number for row 5"),
        (["a"] * 6, [0.1] * 6, "first must hold numbers"),
        ([], [], "no row"),
    ],
)
def test_refuses_scores_that_are_not_pairs(first, second, message):
    with pytest.raises(CoCoError, match=message):
        wilcoxon_paired(first, second)


def test_refuses_an_unknown_way_with_zeros():
    with pytest.raises(CoCoError, match="zeros must be one of 'split', 'drop'"):
        wilcoxon_paired(range(6), range(6), zeros="pratt")


def test_the_least_scores_differ_as_others_do():
    found = wilcoxon_paired(np.arange(2, 8) * 1e-310, np.ones(6) * 1e-310)
    assert (found.p_value, found.n_zeros) == (0.03125, 0)


def test_differences_beyond_the_largest_float_are_ranked_without_a_warning():
    found = wilcoxon_paired([1e308] * 6, [-1e308] * 6)
    assert (found.p_value, found.sum_first) == (0.03125, 21)
