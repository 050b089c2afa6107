import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from cocoloss.geometry import packing_frame
from cocoloss.geometry.frames import energy, largest_product, spread_vectors


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


@settings(deadline=None)
@given(seed=st.integers(0, 10_000), n_classes=st.integers(2, 6))
def test_largest_product_looks_at_every_pair_but_no_vector_with_itself(seed, n_classes):
    frame = np.random.default_rng(seed).standard_normal((n_classes, 3))
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
