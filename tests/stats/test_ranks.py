import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from cocoloss.exceptions import CoCoError
from cocoloss.stats import (
    cliques,
    corrected_t,
    holm,
    rank_models,
    significance_ranks,
    wilcoxon_paired,
)

score_tables = arrays(float, (5, 4), elements=st.integers(0, 5).map(float))


def close_models(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(10, 5)) * 0.02 + rng.uniform(0.7, 0.8, 5)


def printed_ranks(folds, alpha=0.05):
    """Rank as the paper says: 1 plus the number of models that are significantly better."""
    n_models = folds.shape[1]
    pairs = [(i, j) for i in range(n_models) for j in range(i + 1, n_models)]
    raw = [stats.wilcoxon(folds[:, i] - folds[:, j], method="exact").pvalue for i, j in pairs]
    p_value = dict(zip(pairs, holm(raw), strict=True))
    ranks = []
    for i in range(n_models):
        better = 0
        for j in range(n_models):
            if i != j and p_value[min(i, j), max(i, j)] < alpha:
                better += folds[:, j].mean() > folds[:, i].mean()
        ranks.append(1 + better)
    return ranks


@given(score_tables)
def test_rank_counts_the_better_models_and_half_the_equal_ones(scores):
    average = [[0.5 + sum(row > x) + sum(row == x) / 2 for x in row] for row in scores]
    assert rank_models(scores).tolist() == average
    competition = [[1 + sum(row > x) for x in row] for row in scores]
    assert rank_models(scores, ties="competition").tolist() == competition


@pytest.mark.parametrize("ties", ["average", "competition"])
@given(score_tables)
def test_lower_is_better_turns_the_order_round(ties, scores):
    lower = rank_models(scores, higher_is_better=False, ties=ties)
    assert lower.tolist() == rank_models(-scores, ties=ties).tolist()


@pytest.mark.parametrize(
    ("scores", "ranks"),
    [
        ([0.1 + 0.2, 0.3, 0.1], [1.5, 1.5, 3]),  # 0.1 + 0.2 is not 0.3
        ([0.3 + 1e-10, 0.3, 0.1], [1, 2, 3]),
        ([1.0, np.inf, -np.inf, np.inf], [3, 1.5, 4, 1.5]),
    ],
)
def test_scores_that_differ_by_rounding_only_tie_and_infinite_ones_are_ranked(scores, ranks):
    assert rank_models([scores]).tolist() == [ranks]


@pytest.mark.parametrize("seed", range(20))
def test_significance_ranks_are_the_printed_ones(seed):
    assert significance_ranks(close_models(seed)).tolist() == printed_ranks(close_models(seed))


def test_a_rank_counts_better_models_and_not_places():
    # The first and the second tie, the second and the third tie, the first beats the third.
    rng = np.random.default_rng(0)
    base = rng.normal(size=(20, 1))
    folds = base + rng.normal(size=(20, 3)) * [0.3, 0.9, 0.3] + [1.0, 0.7, 0.5]
    assert significance_ranks(folds).tolist() == [1, 1, 2]
    assert significance_ranks(folds, ties="average").tolist() == [1.5, 1.5, 3]


@given(st.integers(0, 300))
def test_average_ranks_over_folds_always_have_the_same_sum(seed):
    folds = np.random.default_rng(seed).normal([0, 1, 1, 2, 2], size=(10, 5))
    assert significance_ranks(folds, ties="average").sum() == 15


def test_models_that_never_differ_are_all_first():
    folds = np.repeat(np.linspace(0, 1, 10)[:, None], 4, axis=1)
    assert significance_ranks(folds).tolist() == [1, 1, 1, 1]
    assert significance_ranks(folds, ties="average").tolist() == [2.5] * 4


def test_lower_is_better_over_folds():
    folds = np.random.default_rng(0).normal(size=(10, 3)) * 0.01 + [0.1, 0.2, 0.3]
    assert significance_ranks(folds).tolist() == [3, 2, 1]
    assert significance_ranks(folds, higher_is_better=False).tolist() == [1, 2, 3]


def test_the_corrected_t_test_may_decide_and_takes_five_folds():
    folds = np.random.default_rng(0).normal(size=(5, 2)) * 0.01 + [0.9, 0.8]
    assert corrected_t(*folds.T).p_value < 0.05
    assert significance_ranks(folds, test="corrected_t").tolist() == [1, 2]
    # With half of all rows tested in each fold the same scores say much less.
    assert significance_ranks(folds, test="corrected_t", test_fraction=0.98).tolist() == [1, 1]


def test_refuses_so_many_models_that_nothing_could_be_significant():
    perfect = np.arange(10.0)[:, None] * 0.001 + np.arange(8.0)
    with pytest.raises(CoCoError, match=r"8 models and 10 folds.*0\.0547.*Use 11 or more folds"):
        significance_ranks(perfect)
    assert significance_ranks(perfect[:, :7]).tolist() == [7, 6, 5, 4, 3, 2, 1]
    eleven = np.arange(11.0)[:, None] * 0.001 + np.arange(8.0)
    assert significance_ranks(eleven).tolist() == [8, 7, 6, 5, 4, 3, 2, 1]


def test_refuses_fold_scores_without_a_mean():
    folds = np.random.default_rng(0).normal(size=(10, 2))
    folds[0, 0], folds[1, 0] = np.inf, -np.inf
    with pytest.raises(CoCoError, match="infinite with both signs"):
        significance_ranks(folds)


def test_of_two_models_with_equal_means_none_is_better():
    second = np.zeros(20)
    first = np.r_[np.ones(19), -19.0]  # better on nearly all folds, and as much worse on one
    assert wilcoxon_paired(first, second).p_value < 0.01
    assert significance_ranks(np.stack([first, second], axis=1)).tolist() == [1.0, 1.0]


def test_a_level_that_the_smallest_p_value_only_reaches_is_refused():
    folds = np.stack([np.arange(1.0, 7.0), np.zeros(6)], axis=1)
    assert significance_ranks(folds, alpha=0.0313).tolist() == [1.0, 2.0]
    with pytest.raises(CoCoError, match="no difference can ever be significant"):
        significance_ranks(folds, alpha=2.0**-5)


@pytest.mark.parametrize("unit", [1e-250, 1e-10, 1.0, 1e10, 1e300])
def test_ranks_do_not_depend_on_the_unit_of_the_scores(unit):
    scores = np.array([[3.0, 1.0, 2.0], [2.0, 2.0, 5.0]]) * unit
    assert rank_models(scores).tolist() == [[1, 3, 2], [2.5, 2.5, 1]]
    nearly = [[unit, unit * (1 + 1e-15)]]
    assert rank_models(nearly).tolist() == [[1.5, 1.5]]


@st.composite
def relations(draw):
    k = draw(st.integers(2, 12))
    upper = draw(st.lists(st.booleans(), min_size=k * k, max_size=k * k))
    upper = np.triu(np.array(upper).reshape(k, k), k=1)
    return upper | upper.T


def by_distance(ranks, distance):
    return np.abs(np.subtract.outer(ranks, ranks)) > distance


@given(relations())
def test_groups_hold_every_pair_that_does_not_differ_and_no_other(different):
    groups = cliques(different)
    assert len(set(groups)) == len(groups)
    assert all(len(group) >= 2 for group in groups)
    for i, j in itertools.combinations(range(len(different)), 2):
        assert any({i, j} <= set(group) for group in groups) == (not different[i, j])


@given(relations())
def test_runs_cannot_be_longer_and_groups_with_gaps_not_larger(different):
    k = len(different)
    for group in cliques(different):
        run = list(group) == list(range(group[0], group[-1] + 1))
        more = [group[0] - 1, group[-1] + 1] if run else set(range(k)) - set(group)
        for other in more:
            if 0 <= other < k:
                assert different[other, list(group)].any()


@given(st.lists(st.floats(1, 10), min_size=2, max_size=15), st.floats(0.01, 9))
def test_with_a_distance_all_groups_are_runs(ranks, distance):
    for group in cliques(by_distance(sorted(ranks), distance)):
        assert list(group) == list(range(group[0], group[-1] + 1))


def test_the_papers_groups():
    # CoCo, DR and KSVM; DR, KSVM and RF; CE alone.
    different = by_distance([1.97, 2.65, 2.65, 3.20, 4.53], 0.719)
    assert cliques(different) == ((0, 1, 2), (1, 2, 3))


def test_a_hundred_models_are_no_trouble():
    # The number of all largest groups can grow as 3^(k / 3); ours is at most that of the pairs.
    different = np.random.default_rng(0).random((100, 100)) < 0.3
    different = np.triu(different, k=1)
    different |= different.T
    assert 100 < len(cliques(different)) < 100 * 99 / 2
