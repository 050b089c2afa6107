"""Which rows are kept apart, which are looked at, and when."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocoloss.exceptions import CoCoError
from cocoloss.recording.rows import split_test, stratified_sample
from cocoloss.recording.snapshots import snapshot_epochs


@given(st.integers(1, 2000), st.integers(2, 60))
def test_snapshots_are_early_and_late_and_not_too_many(n_epochs, n_snapshots):
    epochs = snapshot_epochs(n_epochs, n_snapshots)
    assert epochs[0] == 0
    assert epochs[-1] == n_epochs
    assert len(epochs) == min(n_snapshots, n_epochs + 1)
    steps = np.diff(epochs)
    assert (steps > 0).all()
    assert (np.diff(steps) >= -1).all()  # but for rounding, steps grow


@given(st.lists(st.integers(0, 5), min_size=2, max_size=80), st.floats(0.01, 0.99))
def test_every_class_is_learnt_and_tested_if_it_can_be(labels, test_size):
    labels = np.array(labels)
    counts = np.bincount(labels)
    if counts.max() < 2:
        with pytest.raises(CoCoError, match="single row"):
            split_test(labels, test_size, np.random.default_rng(0))
        return
    train, test = split_test(labels, test_size, np.random.default_rng(0))
    assert sorted([*train, *test]) == list(range(len(labels)))
    for c in np.unique(labels):
        assert (labels[train] == c).any()
        assert (labels[test] == c).any() == (counts[c] > 1)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=80), st.integers(2, 50))
def test_a_sample_has_two_rows_of_each_class(labels, most):
    labels = np.array(labels)
    rows = np.arange(len(labels))
    chosen = stratified_sample(labels, rows, most, np.random.default_rng(0))
    assert len(set(chosen)) == len(chosen) <= most + 2 * 6
    for c in np.unique(labels):
        assert (labels[chosen] == c).sum() >= min(2, (labels == c).sum())
