import baycomp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocoloss.stats import bayesian_correlated_t, bayesian_signed_rank

either_test = pytest.mark.parametrize("test", [bayesian_signed_rank, bayesian_correlated_t])


def scores(seed=0, n=15, gain=0.01):
    rng = np.random.default_rng(seed)
    second = rng.uniform(0.6, 0.9, n)
    return second + rng.normal(gain, 0.02, n), second


def as_tuple(answer):
    return (answer.first, answer.equal, answer.second)


def counted_votes(differences, rope, weights):
    """Let all pairs vote, one at a time, as printed."""
    z = [0.0, *differences]
    votes = [0.0, 0.0, 0.0]
    for i in range(len(z)):
        for j in range(len(z)):
            total = z[i] + z[j]
            side = 0 if total > 2 * rope else 2 if total < -2 * rope else 1
            votes[side] += weights[i] * weights[j]
    return votes


def test_the_signed_rank_test_is_the_printed_vote():
    first, second = scores()
    n_samples, rope = 4000, 0.005
    weights = np.random.default_rng(1).dirichlet([0.5] + [1] * 15, size=n_samples)
    wins = np.zeros(3)
    for draw in weights:
        wins[np.argmax(counted_votes(first - second, rope, draw))] += 1 / n_samples
    answer = bayesian_signed_rank(first, second, rope=rope)
    assert 0.05 < answer.equal < 0.95  # nothing is trivial here
    assert as_tuple(answer) == pytest.approx(wins, abs=0.03)


@pytest.mark.parametrize(("gain", "rope"), [(0.01, 0.005), (0.0, 0.01), (-0.02, 0.01)])
def test_both_tests_agree_with_baycomp(gain, rope):
    pair = scores(gain=gain)
    expected = baycomp.SignedRankTest.probs(*pair, rope=rope, random_state=0)
    assert as_tuple(bayesian_signed_rank(*pair, rope=rope)) == pytest.approx(expected, abs=0.015)
    pair = scores(gain=gain, n=10)
    expected = baycomp.CorrelatedTTest.probs(*pair, rope=rope, runs=1)
    assert as_tuple(bayesian_correlated_t(*pair, rope=rope)) == pytest.approx(expected, abs=1e-9)


@either_test
@settings(max_examples=20)
@given(seed=st.integers(0, 1000), rope=st.floats(0, 0.05))
def test_probabilities_sum_to_one(test, seed, rope):
    answer = test(*scores(seed), rope=rope)
    assert sum(as_tuple(answer)) == pytest.approx(1)
    assert min(as_tuple(answer)) >= 0


@either_test
def test_changing_sides_or_the_better_end_changes_sides(test):
    first, second = scores(gain=0.03)
    one = as_tuple(test(first, second))
    assert one[0] > 0.9
    for other in (test(second, first), test(first, second, higher_is_better=False)):
        assert as_tuple(other)[::-1] == pytest.approx(one, abs=0.01)


@either_test
def test_a_difference_of_exactly_the_rope_is_practically_equal(test):
    second = np.array([0.61, 0.72, 0.53, 0.64, 0.85, 0.76, 0.67])
    assert test(second + 0.01, second, rope=0.01).equal == 1
    assert test(second + 0.0101, second, rope=0.01).first > 0.9


def test_the_edge_of_the_rope_is_found_in_spite_of_rounding():
    # 0.1 + 0.2 is twice a rope of 0.15; as floats it is more.
    tenths = np.array([1, 2, 1, 2, 2, 1, 2])
    exact = bayesian_signed_rank(tenths, np.zeros(7), rope=1.5)
    assert exact.equal > 0.1
    assert bayesian_signed_rank(tenths / 10, np.zeros(7), rope=0.15) == exact


@either_test
def test_a_wider_rope_makes_equality_more_probable(test):
    answers = [test(*scores(), rope=rope).equal for rope in (0.0, 0.005, 0.01, 0.02, 0.1)]
    assert answers == sorted(answers)
    assert answers[-1] == pytest.approx(1, abs=1e-4)
    first, _ = scores()
    assert test(first, first, rope=0).equal == 1


def test_draws_are_the_same_every_time_unless_told():
    first, second = scores()
    again = {bayesian_signed_rank(first, second, n_samples=500) for _ in range(3)}
    seeded = {bayesian_signed_rank(first, second, n_samples=500, random_state=s) for s in range(5)}
    assert len(again) == 1
    assert len(seeded) > 1


def test_a_strong_prior_believes_in_equality():
    first, second = scores(gain=0.03)
    assert bayesian_signed_rank(first, second, prior_strength=1000).equal > 0.99
