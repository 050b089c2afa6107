import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocoloss.exceptions import CoCoError
from cocoloss.stats import cliques


@st.composite
def relations(draw):
    k = draw(st.integers(2, 12))
    upper = draw(st.lists(st.booleans(), min_size=k * k, max_size=k * k))
    upper = np.triu(np.array(upper).reshape(k, k), k=1)
    return upper | upper.T


def by_distance(ranks, distance):
    return np.abs(np.subtract.outer(ranks, ranks)) > distance


@given(relations())
def test_no_two_of_a_group_differ(different):
    for group in cliques(different):
        assert not any(different[i, j] for i, j in itertools.combinations(group, 2))


@given(relations())
def test_every_pair_that_does_not_differ_is_in_a_group(different):
    groups = [set(group) for group in cliques(different)]
    for i, j in itertools.combinations(range(len(different)), 2):
        assert any({i, j} <= group for group in groups) == (not different[i, j])


@given(relations())
def test_runs_cannot_be_longer_and_groups_with_gaps_not_larger(different):
    k = len(different)
    for group in cliques(different):
        run = list(group) == list(range(group[0], group[-1] + 1))
        more = [group[0] - 1, group[-1] + 1] if run else set(range(k)) - set(group)
        for other in more:
            if 0 <= other < k:
                assert different[other, list(group)].any()


@given(relations())
def test_no_group_comes_twice_and_none_is_a_single_model(different):
    groups = cliques(different)
    assert len(set(groups)) == len(groups)
    assert all(len(group) >= 2 for group in groups)


@given(st.lists(st.floats(1, 10), min_size=2, max_size=15), st.floats(0.01, 9))
def test_with_a_distance_all_groups_are_runs(ranks, distance):
    for group in cliques(by_distance(sorted(ranks), distance)):
        assert list(group) == list(range(group[0], group[-1] + 1))


def test_the_papers_groups():
    # CoCo, DR and KSVM; DR, KSVM and RF; CE alone.
    different = by_distance([1.97, 2.65, 2.65, 3.20, 4.53], 0.719)
    assert cliques(different) == ((0, 1, 2), (1, 2, 3))


def test_all_differ():
    assert cliques(~np.eye(4, dtype=bool)) == ()


def test_none_differs():
    assert cliques(np.zeros((4, 4))) == ((0, 1, 2, 3),)


def test_a_hundred_models_are_no_trouble():
    # The number of all largest groups can grow as 3^(k / 3); ours is at most that of the pairs.
    different = np.random.default_rng(0).random((100, 100)) < 0.3
    different = np.triu(different, k=1)
    different |= different.T
    assert 100 < len(cliques(different)) < 100 * 99 / 2


@pytest.mark.parametrize("matrix", [[0, 1], [[0, 1], [0, 0]]])
def test_refuses_what_is_no_relation(matrix):
    with pytest.raises(CoCoError, match="symmetric matrix"):
        cliques(matrix)
