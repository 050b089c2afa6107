"""Which rows are kept apart, which are looked at and when, and what probabilities are worth."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocoloss.exceptions import CoCoError
from cocoloss.recording.decisions import worst_rows
from cocoloss.recording.measure import reliability_curve
from cocoloss.recording.watch import snapshot_epochs, split_test, stratified_sample


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


@given(st.integers(2, 5), st.integers(1, 40), st.integers(0, 50))
def test_reliability_is_the_definition_in_a_loop(C, n, seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(C), n)
    labels, weights = rng.integers(0, C, n), rng.random(n) + 0.1
    curve = reliability_curve(p, labels, weights)
    error = 0.0
    for b in range(10):
        inside = [i for i in range(n) if b / 10 < p[i].max() <= (b + 1) / 10]
        assert curve.counts[b] == len(inside)
        if not inside:
            assert math.isnan(curve.accuracy[b])
            continue
        mass = weights[inside].sum()
        sure = sum(weights[i] * p[i].max() for i in inside) / mass
        right = sum(weights[i] * (p[i].argmax() == labels[i]) for i in inside) / mass
        assert curve.confidence[b] == pytest.approx(sure)
        assert curve.accuracy[b] == pytest.approx(right)
        error += mass / weights.sum() * abs(sure - right)
    assert curve.error == pytest.approx(error)


def test_worst_rows_show_values_as_people_write_them():
    frame = pd.DataFrame(
        {
            "since": [pd.Timestamp("2024-08-30"), pd.Timestamp("2025-06-30 12:30")],
            "fee": [29.490000001, np.nan],
            "tariff": ["Flat", "x " * 40],
        }
    )
    told = [("no", "yes", 0.2), ("yes", "no", 0.3)]
    found = worst_rows(frame, np.arange(2), np.arange(2), told, {})
    assert found.rows[0].values == ("2024-08-30", "29.49", "Flat")
    later, gap, long = found.rows[1].values
    assert (later, gap) == ("2025-06-30 12:30:00", "–")  # noqa: RUF001
    assert len(long) <= 40
