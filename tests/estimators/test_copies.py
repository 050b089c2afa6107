"""A weight is a number of copies."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocoloss.estimators import copies as module
from cocoloss.estimators.copies import make_copies


def content(X, y, copies):
    """Return the rows with their classes and weights, in the order of the copies."""
    return [
        (*X[i].tolist(), int(y[i]), float(w))
        for i, w in zip(copies.rows, copies.weights, strict=True)
    ]


@given(st.integers(1, 30), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_weighted_rows_are_repeated_rows_in_any_order(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, 2)).astype(float)
    y, weights = rng.integers(0, 2, n), rng.integers(0, 4, n).astype(float)
    weights[0] = 1
    times = weights.astype(int)
    order = rng.permutation(times.sum())
    X2, y2 = np.repeat(X, times, axis=0)[order], np.repeat(y, times)[order]
    weighted = make_copies(X, y, weights)
    repeated = make_copies(X2, y2, np.ones(len(y2)))
    assert content(X, y, weighted) == content(X2, y2, repeated)
    assert weighted.groups.tolist() == repeated.groups.tolist()


def test_equal_rows_of_a_class_are_a_group_and_stand_side_by_side():
    X, y = np.array([[1.0], [2.0], [1.0], [1.0]]), np.array([0, 0, 1, 0])
    copies = make_copies(X, y, np.ones(4))
    found = [(X[i, 0], y[i]) for i in copies.rows]
    assert len(set(zip(found, copies.groups, strict=True))) == 3
    assert copies.groups.tolist() == sorted(copies.groups)


@pytest.mark.parametrize("scale", [1e-9, 1 / 7, 1.5])
def test_weights_that_are_no_counts_are_relative(scale):
    X, y = np.arange(6.0)[:, None], np.arange(6) % 2
    weights = np.array([1, 1, 1, 1, 1, 4]) * scale
    copies = make_copies(X, y, weights)
    mass = np.bincount(copies.rows, weights=copies.weights)
    np.testing.assert_allclose(mass, weights / weights.mean())
    assert np.bincount(copies.rows).tolist() == [1, 1, 1, 1, 1, 3]


def test_equal_fractions_are_no_weights():
    X, y = np.arange(6.0)[:, None], np.arange(6) % 2
    copies = make_copies(X, y, np.full(6, 1 / 6))
    assert copies.weights.tolist() == [1.0] * 6


def test_very_many_copies_are_thinned_out_evenly(monkeypatch):
    monkeypatch.setattr(module, "MOST_COPIES", 100)
    monkeypatch.setattr(module, "MOST_OF_EACH", 10)
    X, y = np.arange(3.0)[:, None], np.array([0, 1, 1])
    copies = make_copies(X, y, np.array([3e6, 6e6, 1.0]))
    assert np.bincount(copies.rows).tolist() == [33, 67, 1]
    np.testing.assert_allclose(np.bincount(copies.rows, weights=copies.weights), [3e6, 6e6, 1])


def test_a_large_table_has_at_most_ten_copies_of_a_row_on_average(monkeypatch):
    monkeypatch.setattr(module, "MOST_COPIES", 100)
    weights = np.arange(1.0, 51) * 40
    copies = make_copies(np.arange(50.0)[:, None], np.arange(50) % 2, weights)
    assert len(copies.rows) == pytest.approx(500, abs=10)
    np.testing.assert_allclose(np.bincount(copies.rows, weights=copies.weights), weights)


def test_a_table_of_which_every_row_occurs_thrice_is_the_table():
    X, y = np.arange(60.0)[:, None] // 2, np.arange(60) % 2
    once = make_copies(X, y, np.ones(60), in_lowest_terms=True)
    thrice = make_copies(X, y, np.full(60, 3.0), in_lowest_terms=True)
    repeated = make_copies(np.tile(X, (3, 1)), np.tile(y, 3), np.ones(180), in_lowest_terms=True)
    mixed = make_copies(
        np.tile(X, (2, 1)), np.tile(y, 2), np.repeat([2.0, 4.0], 60), in_lowest_terms=True
    )
    assert len(once.rows) == 60
    for same in (thrice, repeated, mixed):
        assert (same.rows % 60).tolist() == once.rows.tolist()
        assert same.weights.tolist() == once.weights.tolist()
        assert same.groups.tolist() == once.groups.tolist()


def test_counts_of_few_outcomes_stay_counts():
    X, y = np.arange(4.0)[:, None], np.arange(4) % 2
    copies = make_copies(X, y, np.full(4, 100.0), in_lowest_terms=True)
    assert np.bincount(copies.rows).tolist() == [100] * 4
