import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group

from cocoloss.exceptions import CoCoError
from cocoloss.geometry import etf_distance, simplex_frame

SEEDS = st.integers(0, 10_000)


def distance_in_loops(means):
    n_classes, dim = len(means), len(means[0])
    middle = [sum(row[k] for row in means) / n_classes for k in range(dim)]
    rows = [[row[k] - middle[k] for k in range(dim)] for row in means]
    gram = [[sum(x * y for x, y in zip(a, b, strict=True)) for b in rows] for a in rows]
    norm = math.sqrt(sum(entry**2 for row in gram for entry in row))
    total = 0.0
    for a in range(n_classes):
        for b in range(n_classes):
            target = ((a == b) - 1 / n_classes) / math.sqrt(n_classes - 1)
            total += (gram[a][b] / norm - target) ** 2
    return math.sqrt(total)


@settings(deadline=None)
@given(seed=SEEDS, n_classes=st.integers(2, 6), dim=st.integers(1, 6))
def test_agrees_with_the_formula_in_loops(seed, n_classes, dim):
    means = np.random.default_rng(seed).standard_normal((n_classes, dim))
    expected = distance_in_loops(means)
    assert etf_distance(means) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@settings(deadline=None)
@given(seed=SEEDS, n_classes=st.integers(2, 10), scale=st.sampled_from([1e-200, 1e-3, 1.0, 1e200]))
def test_vanishes_on_the_simplex_of_any_scale_and_rotation(seed, n_classes, scale):
    frame = scale * simplex_frame(n_classes, n_classes + 1, random_state=seed)
    assert etf_distance(frame) < 1e-13
    assert etf_distance(frame / scale + 1) < 1e-13


@settings(deadline=None)
@given(seed=SEEDS)
def test_is_unchanged_by_rotation_scale_and_shift(seed):
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((5, 4))
    turned = 3 * means @ ortho_group.rvs(4, random_state=rng) + rng.standard_normal(4)
    assert etf_distance(turned) == pytest.approx(etf_distance(means), rel=1e-9)


def test_orthogonal_means_of_equal_length_are_a_simplex_around_their_mean():
    assert etf_distance(torch.eye(5, requires_grad=True)) < 1e-15


def test_three_means_on_a_line_have_the_value_worked_by_hand():
    # Gram (1,0,-1)(1,0,-1)', norm 2; <., target> = tr / (2 sqrt(2)) = 1/sqrt(2).
    value = etf_distance([[-1.0], [0.0], [1.0]])
    assert value == pytest.approx(math.sqrt(2 - math.sqrt(2)))


@settings(deadline=None)
@given(seed=SEEDS, n_classes=st.integers(2, 8), dim=st.integers(1, 4))
def test_stays_below_the_square_root_of_two(seed, n_classes, dim):
    means = np.random.default_rng(seed).standard_cauchy((n_classes, dim))
    bound = math.sqrt(2 - 2 / math.sqrt(n_classes - 1))  # reached by centred means of rank one
    assert etf_distance(means) <= bound + 1e-7


@settings(deadline=None)
@given(point=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=4), n_classes=st.integers(2, 40))
def test_coinciding_means_are_at_distance_one(point, n_classes):
    assert etf_distance([point] * n_classes) == 1.0
    assert etf_distance(np.zeros((n_classes, 2))) == 1.0


def test_means_that_differ_in_few_digits_keep_their_shape():
    nearly_merged = 1 + 1e-9 * simplex_frame(3, 2, random_state=0)
    assert etf_distance(nearly_merged) < 1e-6


@pytest.mark.parametrize(
    ("means", "message"),
    [
        ([1.0, 2.0], r"shape \(n_classes, embedding_dim\), but has shape \(2,\)"),
        (np.ones((3, 0)), r"shape \(n_classes, embedding_dim\), but has shape \(3, 0\)"),
        ([[1.0, 2.0]], "at least two classes, but has 1"),
        ([[1.0, 2.0], [0.0, np.nan]], "finite, but the mean of class 1 is not"),
        ([[1.0, 2.0], [0.0, -np.inf]], "finite, but the mean of class 1 is not"),
        ([["a"], ["b"]], "class_means must hold numbers only"),
    ],
)
def test_refuses_what_is_no_matrix_of_means(means, message):
    with pytest.raises(CoCoError, match=message):
        etf_distance(means)


def test_without_centring_a_simplex_beside_the_origin_is_distant():
    triangle = np.array([[0.0, 2.0], [np.sqrt(3), -1.0], [-np.sqrt(3), -1.0]])
    assert etf_distance(triangle, center=False) == pytest.approx(0, abs=1e-12)
    assert etf_distance(triangle + 5, center=False) > 0.5
