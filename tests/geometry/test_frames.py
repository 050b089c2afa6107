import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.stats import ortho_group

from cocoloss.exceptions import CoCoError
from cocoloss.geometry import etf_distance, packing_frame, similarity, simplex_frame
from cocoloss.geometry.frames import _packing_frame, energy, largest_product, spread_vectors


@settings(deadline=None)
@given(n_classes=st.integers(2, 12), extra=st.integers(0, 20), seed=st.integers(0, 2**32 - 1))
def test_gram_matrix_of_the_simplex_frame_is_the_simplex_similarity(n_classes, extra, seed):
    frame = simplex_frame(n_classes, n_classes - 1 + extra, random_state=seed)
    assert frame.shape == (n_classes, n_classes - 1 + extra)
    np.testing.assert_allclose(frame @ frame.T, similarity("simplex", n_classes), atol=1e-13)


def test_two_classes_fit_on_the_line_either_way_round():
    firsts = {round(float(simplex_frame(2, 1, random_state=seed)[0, 0]), 12) for seed in range(20)}
    assert firsts == {-1.0, 1.0}
    np.testing.assert_allclose(np.sort(packing_frame(2, 1).ravel()), [-1, 1])


def test_rotation_is_haar_distributed():
    # Under Haar's law a vertex is uniform on the sphere: mean 0, second moments I / q.
    rng = np.random.default_rng(0)
    first = np.array([simplex_frame(3, 2, rng)[0] for _ in range(4000)])
    np.testing.assert_allclose(first.mean(axis=0), 0, atol=0.05)
    np.testing.assert_allclose(first.T @ first / len(first), np.eye(2) / 2, atol=0.03)
    orientation = [np.linalg.det(simplex_frame(3, 2, rng)[:2]) > 0 for _ in range(500)]
    assert 0.4 < np.mean(orientation) < 0.6  # reflections are as likely as rotations


def test_same_seed_gives_the_same_frame_and_another_seed_another():
    np.testing.assert_array_equal(simplex_frame(4, 6, 7), simplex_frame(4, 6, 7))
    assert not np.allclose(simplex_frame(4, 6, 7), simplex_frame(4, 6, 8))
    assert not np.allclose(simplex_frame(4, 6), simplex_frame(4, 6))


def test_global_seed_is_neither_read_nor_moved():
    np.random.seed(0)  # noqa: NPY002 - the global generator is the subject
    expected = np.random.random(3)  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    simplex_frame(4, 6)
    simplex_frame(4, 6, random_state=1)
    spread_vectors(7, 3)
    np.testing.assert_array_equal(np.random.random(3), expected)  # noqa: NPY002


@pytest.mark.parametrize(
    ("make", "numbers", "message"),
    [
        (simplex_frame, (3, 1), r">= n_classes - 1 = 2, .*packing"),
        (simplex_frame, (1, 3), "n_classes must be at least 2, but is 1"),
        (simplex_frame, ("three", 3), "n_classes must be a whole number"),
        (packing_frame, (2, 0), "embedding_dim must be at least 1, but is 0"),
        (packing_frame, (3, 1), r"only two unit vectors.*n_classes is 3.*at least 2"),
    ],
)
def test_numbers_that_have_no_frame_are_refused(make, numbers, message):
    with pytest.raises(CoCoError, match=message):
        make(*numbers)


@settings(deadline=None)
@given(n_classes=st.integers(2, 12), embedding_dim=st.integers(2, 12))
def test_packing_vectors_have_unit_length_and_do_not_coincide(n_classes, embedding_dim):
    frame = packing_frame(n_classes, embedding_dim)
    assert frame.shape == (n_classes, embedding_dim)
    np.testing.assert_allclose(np.linalg.norm(frame, axis=1), 1, rtol=1e-12)
    assert largest_product(frame) < np.cos(2 * np.pi / n_classes) + 1e-9  # the plane's polygon


@pytest.mark.parametrize(
    ("n_classes", "embedding_dim"),
    [(4, 2), (5, 3), (6, 3), (7, 5), (8, 5), (12, 8), (16, 8), (200, 100)],
)
def test_packing_meets_rankins_bound_up_to_twice_the_dimension(n_classes, embedding_dim):
    frame = packing_frame(n_classes, embedding_dim)
    gram = frame @ frame.T
    np.testing.assert_allclose(np.diag(gram), 1, rtol=1e-12)
    off = gram[~np.eye(n_classes, dtype=bool)]
    assert abs(off.max()) < 1e-14
    assert np.linalg.matrix_rank(frame) == embedding_dim


@pytest.mark.parametrize("n_classes", [5, 6, 17])
def test_packing_of_the_plane_is_the_regular_polygon(n_classes):
    frame = packing_frame(n_classes, 2)
    angles = np.sort(np.arctan2(frame[:, 1], frame[:, 0]) % (2 * np.pi))
    np.testing.assert_allclose(np.diff(angles), 2 * np.pi / n_classes, rtol=1e-12)


@pytest.mark.parametrize(("n_classes", "embedding_dim"), [(3, 4), (5, 3), (7, 2), (7, 3)])
def test_a_packing_is_the_same_again_whatever_was_written_into_it(n_classes, embedding_dim):
    expected = packing_frame(n_classes, embedding_dim)
    spoilt = packing_frame(n_classes, embedding_dim)
    spoilt[:] = 0
    np.testing.assert_array_equal(packing_frame(n_classes, embedding_dim), expected)
    _packing_frame.cache_clear()
    np.testing.assert_array_equal(packing_frame(n_classes, embedding_dim), expected)


def largest_in_loops(frame):
    return max(
        sum(x * y for x, y in zip(frame[a], frame[b], strict=True))
        for a in range(len(frame))
        for b in range(len(frame))
        if a != b
    )


@pytest.mark.parametrize(
    ("n_classes", "embedding_dim", "optimum"),
    [
        pytest.param(7, 3, np.cos(np.radians(77.8695)), id="7 in 3"),
        pytest.param(8, 3, np.cos(np.radians(74.8585)), id="square antiprism"),
        pytest.param(12, 3, 1 / np.sqrt(5), id="icosahedron"),
        pytest.param(10, 4, 1 / 6, id="Petersen code"),
        pytest.param(24, 4, 0.5, id="24-cell"),
        pytest.param(16, 5, 0.2, id="Clebsch code"),
        pytest.param(27, 6, 0.25, id="Schlaefli code"),
    ],
)
def test_packing_reaches_the_known_optimum(n_classes, embedding_dim, optimum):
    frame = packing_frame(n_classes, embedding_dim)
    assert largest_in_loops(frame) == pytest.approx(optimum, abs=1e-5)
    assert largest_product(frame) == pytest.approx(largest_in_loops(frame), rel=1e-12)


@pytest.mark.parametrize("n_classes", [5, 8, 13])
def test_search_finds_the_polygon_that_is_known_in_the_plane(n_classes):
    frame = spread_vectors(n_classes, 2)
    assert largest_product(frame) == pytest.approx(np.cos(2 * np.pi / n_classes), abs=1e-5)


def energy_in_loops(vectors, sharpness):
    unit = [v / np.sqrt(sum(x * x for x in v)) for v in vectors]
    total = 0.0
    for a in range(len(unit)):
        for b in range(len(unit)):
            if a != b:
                total += np.exp(sharpness * sum(unit[a] * unit[b]))
    return np.log(total) / sharpness


@settings(deadline=None)
@given(seed=st.integers(0, 10_000), sharpness=st.floats(0.1, 20))
def test_energy_is_the_formula_and_its_gradient(seed, sharpness):
    vectors = np.random.default_rng(seed).standard_normal((5, 3)) + 0.5
    value, gradient = energy(vectors.ravel(), 5, sharpness)
    assert value == pytest.approx(energy_in_loops(vectors, sharpness), rel=1e-10, abs=1e-10)
    numeric = approx_fprime(
        vectors.ravel(), lambda flat: energy_in_loops(flat.reshape(5, 3), sharpness), 1e-7
    )
    scale = 1 / np.linalg.norm(vectors, axis=1).min() ** 2  # curvature of the finite difference
    np.testing.assert_allclose(gradient, numeric, atol=2e-5 * max(1, scale))


def test_sharp_energy_neither_overflows_nor_leaves_the_maximum():
    vectors = np.random.default_rng(0).standard_normal((6, 3))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    value, gradient = energy(vectors.ravel(), 6, 1e7)
    assert value == pytest.approx(largest_in_loops(unit), abs=1e-6)
    assert np.all(np.isfinite(gradient))


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
def test_the_distance_from_a_simplex_is_the_formula_in_loops(seed, n_classes, dim):
    means = np.random.default_rng(seed).standard_normal((n_classes, dim))
    expected = distance_in_loops(means)
    assert etf_distance(means) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@settings(deadline=None)
@given(seed=SEEDS, n_classes=st.integers(2, 10), scale=st.sampled_from([1e-200, 1e-3, 1.0, 1e200]))
def test_the_distance_vanishes_on_the_simplex_of_any_scale_and_rotation(seed, n_classes, scale):
    frame = scale * simplex_frame(n_classes, n_classes + 1, random_state=seed)
    assert etf_distance(frame) < 1e-13
    assert etf_distance(frame / scale + 1) < 1e-13


@settings(deadline=None)
@given(seed=SEEDS)
def test_the_distance_is_unchanged_by_rotation_scale_and_shift(seed):
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((5, 4))
    turned = 3 * means @ ortho_group.rvs(4, random_state=rng) + rng.standard_normal(4)
    assert etf_distance(turned) == pytest.approx(etf_distance(means), rel=1e-9)


def test_distances_worked_by_hand():
    # Gram (1,0,-1)(1,0,-1)', norm 2; <., target> = tr / (2 sqrt(2)) = 1/sqrt(2).
    assert etf_distance([[-1.0], [0.0], [1.0]]) == pytest.approx(math.sqrt(2 - math.sqrt(2)))
    # Orthogonal means of equal length are a simplex around their mean.
    assert etf_distance(torch.eye(5, requires_grad=True)) < 1e-15
    nearly_merged = 1 + 1e-9 * simplex_frame(3, 2, random_state=0)  # few digits keep their shape
    assert etf_distance(nearly_merged) < 1e-6


@settings(deadline=None)
@given(seed=SEEDS, n_classes=st.integers(2, 8), dim=st.integers(1, 4))
def test_the_distance_stays_below_the_square_root_of_two(seed, n_classes, dim):
    means = np.random.default_rng(seed).standard_cauchy((n_classes, dim))
    bound = math.sqrt(2 - 2 / math.sqrt(n_classes - 1))  # reached by centred means of rank one
    assert etf_distance(means) <= bound + 1e-7


@settings(deadline=None)
@given(point=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=4), n_classes=st.integers(2, 40))
def test_coinciding_means_are_at_distance_one(point, n_classes):
    assert etf_distance([point] * n_classes) == 1.0
    assert etf_distance(np.zeros((n_classes, 2))) == 1.0


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
