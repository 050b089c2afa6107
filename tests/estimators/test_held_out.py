"""Which rows are held out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocoloss.estimators.held_out import split_held_out


def split(labels, groups=None, fraction=0.15, seed=0):
    labels = np.asarray(labels)
    groups = np.arange(len(labels)) if groups is None else np.asarray(groups)
    return split_held_out(labels, groups, fraction, np.random.default_rng(seed))


@given(
    st.lists(st.integers(1, 90), min_size=2, max_size=8),
    st.floats(0.05, 0.9),
    st.integers(0, 1000),
)
@settings(max_examples=80, deadline=None)
def test_every_row_is_in_one_part_and_every_class_keeps_two_thirds(counts, fraction, seed):
    labels = np.repeat(np.arange(len(counts)), counts)
    np.random.default_rng(seed).shuffle(labels)
    train, held_out = split(labels, fraction=fraction, seed=seed)
    assert sorted([*train, *held_out]) == list(range(len(labels)))
    kept = np.bincount(labels[train], minlength=len(counts))
    assert (3 * kept >= 2 * np.array(counts)).all()
    assert len(held_out) == 0 or len(held_out) >= 20


@given(st.lists(st.integers(1, 60), min_size=2, max_size=8), st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_chance_does_not_decide_how_many(counts, seed):
    labels = np.repeat(np.arange(len(counts)), counts)
    sizes = {len(split(labels, fraction=0.2, seed=seed + k)[1]) for k in range(5)}
    assert len(sizes) == 1


def test_fewer_than_twenty_are_none():
    assert len(split(np.arange(132) % 2)[1]) == 0
    assert len(split(np.arange(134) % 2)[1]) == 20


def test_a_rare_class_is_held_out_now_and_then():
    labels = np.repeat([0, 1], [200, 4])
    held = [np.bincount(labels[split(labels, seed=s)[1]], minlength=2)[1] for s in range(40)]
    assert set(held) == {0, 1}
    labels = np.repeat([0, 1], [200, 2])
    assert all((labels[split(labels, seed=s)[1]] == 0).all() for s in range(40))


def test_class_shares_are_alike():
    labels = np.repeat([0, 1, 2], [600, 300, 100])
    assert np.bincount(labels[split(labels)[1]]).tolist() == [90, 45, 15]


def test_a_few_equal_rows_stay_together():
    groups = np.repeat(np.arange(200), 3)
    _, held_out = split(np.zeros(600, dtype=int) + (groups >= 100), groups)
    copies = np.bincount(groups[held_out], minlength=200)
    assert len(held_out) == 90
    assert np.isin(copies, [1, 2]).sum() <= 2  # one at the border of each class


@pytest.mark.parametrize("fraction", [0.1, 0.2])
def test_many_equal_rows_are_shared_out(fraction):
    groups = np.repeat(np.arange(10), 100)
    for seed in range(5):
        _, held_out = split((groups >= 5).astype(int), groups, fraction, seed)
        copies = np.bincount(groups[held_out], minlength=10)
        assert np.abs(copies - 100 * fraction).max() <= 1


@pytest.mark.parametrize("times", [7, 20])
def test_rows_of_a_class_that_was_multiplied_stay_together(times):
    sizes = np.r_[np.ones(300, dtype=int), np.full(60, times)]
    groups = np.repeat(np.arange(360), sizes)
    _, held_out = split((groups >= 300).astype(int), groups)
    copies = np.bincount(groups[held_out], minlength=360)
    assert np.isin(copies[300:], [0, times]).sum() >= 59  # one at the border of the class
    assert copies[300:].sum() == 60 * times * 15 // 100


def test_rows_that_recur_beside_rows_that_do_not_are_shared_out():
    sizes = np.r_[np.ones(60, dtype=int), np.full(40, 20)]
    groups = np.repeat(np.arange(100), sizes)
    _, held_out = split(np.arange(len(groups)) * 0, groups)
    copies = np.bincount(groups[held_out], minlength=100)
    assert np.abs(copies[60:] - 3).max() <= 1
