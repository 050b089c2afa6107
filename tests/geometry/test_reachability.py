import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cocoloss.exceptions import CoCoError, GeometryError
from cocoloss.geometry import nearest_reachable, similarity, validate_similarity

ORDINAL = [[1.0, 0.0, -1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 1.0]]  # rank 2
INDEFINITE = [[1.0, -2.0], [-2.0, 1.0]]  # eigenvalues 3 and -1
ACUTE = np.eye(3) + 1  # eigenvalues 4, 1, 1; the first along (1, 1, 1)


@pytest.mark.parametrize("convert", [list, np.array, torch.tensor])
def test_lists_arrays_and_tensors_come_back_as_float64(convert):
    G = validate_similarity(convert(ORDINAL), n_classes=3, embedding_dim=2)
    assert G.dtype == np.float64
    np.testing.assert_array_equal(G, ORDINAL)


@pytest.mark.parametrize("n_classes", [2, 5, 100])
def test_float32_simplex_passes_in_its_own_dimension(n_classes):
    G = similarity("simplex", n_classes).astype(np.float32)
    validate_similarity(G, n_classes, n_classes - 1)


def test_float32_gram_matrix_passes_in_its_own_dimension():
    vectors = np.random.default_rng(0).standard_normal((100, 20)).astype(np.float32)
    validate_similarity(vectors @ vectors.T, 100, 20)
    with pytest.raises(GeometryError, match="rank 20, but embedding_dim is 19"):
        validate_similarity(vectors @ vectors.T, 100, 19)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_rounding_asymmetry_is_averaged_away_at_any_scale(scale):
    G = scale * np.array([[1.0, 0.5], [0.5 + 1e-9, 1.0]])
    checked = validate_similarity(G)
    np.testing.assert_array_equal(checked, checked.T)
    assert checked[0, 1] == pytest.approx(scale * (0.5 + 5e-10), rel=1e-14)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (1, 1), (0, 0), (2, 2, 2)])
def test_what_is_not_a_square_matrix_is_refused_with_its_shape(shape):
    for check in (validate_similarity, nearest_reachable):
        with pytest.raises(GeometryError, match=rf"square.*shape {re.escape(str(shape))}"):
            check(np.ones(shape))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_entry_that_is_not_finite_is_located(bad):
    G = np.eye(3)
    G[1, 2] = bad
    for check in (validate_similarity, nearest_reachable):
        with pytest.raises(GeometryError, match=rf"entry \(1, 2\) is {bad}"):
            check(G)


@pytest.mark.parametrize(("lengths", "rank"), [([1, 0], 1), ([0, 2, 3], 2), ([1, -1e-9], 1)])
def test_a_class_may_sit_at_the_origin(lengths, rank):
    G = np.diag(lengths)
    np.testing.assert_array_equal(validate_similarity(G, len(G), rank), G)


@settings(deadline=None)
@given(
    entries=st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0]), min_size=9, max_size=9),
    embedding_dim=st.sampled_from([None, 1, 2, 3]),
)
def test_whatever_is_offered_is_accepted(entries, embedding_dim):
    G = np.reshape(entries, (3, 3))
    try:
        validate_similarity(G, embedding_dim=embedding_dim)
    except GeometryError as error:
        if "returns the nearest" in str(error):
            validate_similarity(nearest_reachable(G, embedding_dim), embedding_dim=embedding_dim)


def test_origin_is_not_mentioned_when_every_class_keeps_a_length():
    with pytest.raises(GeometryError, match="rank 3, but embedding_dim is 1") as caught:
        validate_similarity(ACUTE, embedding_dim=1)
    assert "origin" not in str(caught.value)


@pytest.mark.parametrize(("n_classes", "printed"), [(6, True), (7, False)])
def test_only_small_matrices_are_printed(n_classes, printed):
    G = np.full((n_classes, n_classes), -1.0) + 2 * np.eye(n_classes)
    with pytest.raises(GeometryError, match="smallest eigenvalue") as caught:
        validate_similarity(G)
    assert ("\n" in str(caught.value)) == printed


@settings(deadline=None)
@given(seed=st.integers(0, 10_000), n_classes=st.integers(2, 6), embedding_dim=st.integers(1, 7))
def test_nearest_is_reachable_and_no_other_gram_matrix_is_nearer(seed, n_classes, embedding_dim):
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((n_classes, n_classes))
    nearest = nearest_reachable(G, embedding_dim)
    np.testing.assert_array_equal(nearest, nearest.T)
    eigenvalues = np.linalg.eigvalsh(nearest)
    assert eigenvalues[0] > -1e-12
    assert np.sum(eigenvalues > 1e-10) <= embedding_dim
    distance = np.linalg.norm(G - nearest)
    # Rivals near the optimum: its own factor, disturbed, stays a Gram matrix of C vectors in R^q.
    values, vectors = np.linalg.eigh(nearest)
    factor = (vectors * np.sqrt(np.clip(values, 0, None)))[:, ::-1][:, :embedding_dim]
    for size in (1e-3, 1e-1, 1.0):
        rival = factor + size * rng.standard_normal(factor.shape)
        assert np.linalg.norm(G - rival @ rival.T) >= distance - 1e-9


@settings(deadline=None)
@given(seed=st.integers(0, 10_000), extra=st.integers(0, 3))
def test_reachable_matrix_is_its_own_nearest(seed, extra):
    vectors = np.random.default_rng(seed).standard_normal((5, 3))
    gram = vectors @ vectors.T
    np.testing.assert_allclose(nearest_reachable(gram, 3 + extra), gram, atol=1e-12)
    np.testing.assert_allclose(nearest_reachable(gram), gram, atol=1e-12)


@pytest.mark.parametrize(
    ("matrix", "options", "message"),
    [
        (ORDINAL, {"n_classes": 4}, "is for 3 classes, but n_classes is 4"),
        (ORDINAL, {"embedding_dim": 0}, "embedding_dim must be at least 1, but is 0"),
        ([["a", "b"], ["b", "a"]], {}, "similarity matrix must hold numbers only"),
        (np.zeros((3, 3)), {}, "all classes at the origin"),
        (-np.eye(3), {}, "nearest reachable one is zero"),
        ([[0.0, 1.0], [-1.0, 0.0]], {}, "nearest reachable one is zero"),
        ([[1.0, 0.5], [0.5, 0.0]], {}, "not positive semi-definite.*smallest eigenvalue"),
        (
            [[1, 0, 0], [0, 1, -0.5], [0, 0.25, 1]],
            {},
            r"entry \(1, 2\) is -0\.5 and entry \(2, 1\) is 0\.25; nearest_reach",
        ),
        (
            [[1, 0], [0, -1]],
            {},
            r"is -1; nearest_reach.* 0\.707, but it puts class 1 at the origin.*\n\[\[1\. 0\.\]\n",
        ),
        (  # Kept: 3 of (3, -1), with eigenvector (1, -1)/sqrt(2); distance 1 / |G| = 1 / sqrt(10).
            INDEFINITE,
            {},
            r"is -1; nearest_reachable\(matrix\) returns .* 0\.316:\n\[\[ 1\.5 -1\.5\]\n",
        ),
        (
            ORDINAL,
            {"embedding_dim": 1},
            r'rank 2, but .* at least 2.*\(matrix, 1\) .* 0\.447, but it puts class 1.*"packing"',
        ),
    ],
)
def test_what_no_embedding_reaches_is_refused_with_the_reason_and_the_nearest(
    matrix, options, message
):
    with pytest.raises(CoCoError, match=message):
        validate_similarity(matrix, **options)
