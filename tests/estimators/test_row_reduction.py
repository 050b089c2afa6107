"""Rows that stand for others: real ones, of the same class, near in the learnt metric."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_wine

from cocoloss import CoCoClassifier, reduce_rows
from cocoloss.estimators import row_reduction as module
from cocoloss.exceptions import CoCoError
from cocoloss.geometry import simplex_frame

X, Y = load_wine(return_X_y=True, as_frame=True)


def test_rows_are_real_and_weights_count_the_rows_of_each_class():
    rows, weights, radius = reduce_rows(X, Y, 20, random_state=0)
    assert len(rows) == len(set(rows)) <= 20
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(np.bincount(Y[rows], weights=weights), np.bincount(Y))
    assert radius > 0
    again = reduce_rows(X, Y, 20, random_state=0)
    np.testing.assert_array_equal(rows, again.rows)


def test_more_rows_stand_nearer_and_all_rows_stand_for_themselves():
    radii = [reduce_rows(X, Y, n, random_state=0).radius for n in (3, 20, 80)]
    assert radii == sorted(radii, reverse=True)
    everything = reduce_rows(X, Y, 1000, random_state=0)
    np.testing.assert_array_equal(everything.rows, np.arange(len(Y)))
    assert (everything.weights == 1).all()
    assert everything.radius == 0


def test_twins_are_one_row_that_weighs_two():
    twice = pd.concat([X, X], ignore_index=True)
    rows, weights, radius = reduce_rows(twice, np.r_[Y, Y], 1000, random_state=0)
    assert len(rows) == len(X)
    assert (weights == 2).all()
    assert radius == 0


def test_categories_and_gaps_stay_as_they_are():
    table = X.assign(colour=np.where(Y == 1, "white", None), when=pd.Timestamp("2024-01-01"))
    rows, weights, _ = reduce_rows(table, Y, 12, random_state=0)
    small = CoCoClassifier(random_state=0).fit(table.iloc[rows], Y[rows], sample_weight=weights)
    assert small.score(table, Y) > 0.9


@pytest.mark.parametrize("n", [10, 60, 300])
def test_losses_of_the_chosen_rows_are_within_the_bound(n, monkeypatch):
    """The inequalities of the docstring, with sums as printed, for embeddings of any slope."""
    digits, y = load_digits(return_X_y=True)
    digits, y = digits[:500].astype(np.float64), y[:500]
    seen = {}
    in_metric = module.in_metric
    monkeypatch.setattr(
        module, "in_metric", lambda A, metric: seen.setdefault("A", in_metric(A, metric))
    )
    rows, weights, radius = reduce_rows(digits, y, n, random_state=0)
    A = seen["A"].astype(np.float64)  # plain distances are those in the metric
    generator, v, N = np.random.default_rng(0), simplex_frame(10, 9), len(y)
    for scale in (0.01, 0.1, 1.0):
        M = generator.normal(size=(A.shape[1], v.shape[1]))
        M *= scale / np.linalg.norm(M, 2)
        h = np.sin(A @ M) / np.sqrt(v.shape[1])  # a sine moves by at most as much
        lipschitz, B = scale / np.sqrt(v.shape[1]), np.linalg.norm(h, axis=1).max()
        g = v @ v.T
        R = sum(np.square(h[i] - v[y[i]]).sum() for i in range(N)) / N
        chosen = list(zip(rows, weights, strict=True))
        R_small = sum(w * np.square(h[i] - v[y[i]]).sum() for i, w in chosen) / N
        P = sum((h[i] @ h[j] - g[y[i], y[j]]) ** 2 for i in range(N) for j in range(N)) / N**2
        P_small = (
            sum(w * u * (h[i] @ h[j] - g[y[i], y[j]]) ** 2 for i, w in chosen for j, u in chosen)
            / N**2
        )
        assert abs(np.sqrt(R) - np.sqrt(R_small)) <= lipschitz * radius
        assert abs(np.sqrt(P) - np.sqrt(P_small)) <= 2 * B * lipschitz * radius


def test_fewer_rows_than_classes_are_refused():
    with pytest.raises(CoCoError, match="n is 2, but y has 3 classes"):
        reduce_rows(X, Y, 2)
