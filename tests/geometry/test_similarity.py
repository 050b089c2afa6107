import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cocoloss.exceptions import CoCoError, GeometryError, GeometryWarning
from cocoloss.geometry import (
    SIMILARITIES,
    nearest_reachable,
    similarity,
    target_points,
    validate_similarity,
)


def equiangular(n_classes, product):
    return np.array(
        [[1.0 if a == b else product for b in range(n_classes)] for a in range(n_classes)]
    )


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("extra", [None, 0, 1, 5])
def test_simplex_is_the_printed_formula_from_c_minus_one_dimensions_on(n_classes, extra):
    embedding_dim = None if extra is None else n_classes - 1 + extra
    G = similarity("simplex", n_classes, embedding_dim)
    assert G.dtype == np.float64
    np.testing.assert_array_equal(G, equiangular(n_classes, -1 / (n_classes - 1)))


@pytest.mark.parametrize(
    ("n_classes", "embedding_dim", "product"),
    [(4, 2, np.sqrt(2 / 6)), (10, 3, np.sqrt(7 / 27)), (6, 1, 1.0)],
)
def test_welch_is_the_printed_formula_and_warns(n_classes, embedding_dim, product):
    with pytest.warns(GeometryWarning, match=rf"rank {n_classes}, .*packing") as caught:
        G = similarity("welch", n_classes, embedding_dim)
    np.testing.assert_allclose(G, equiangular(n_classes, product), rtol=1e-15)
    assert caught[0].filename == __file__  # it points at the caller, not into the package


def test_orthoplex_is_the_identity_and_warns_below_c_dimensions():
    for embedding_dim in (None, 4, 7):
        np.testing.assert_array_equal(similarity("orthoplex", 4, embedding_dim), np.eye(4))
    with pytest.warns(GeometryWarning, match="rank 4, so no embedding in 3 dimensions") as caught:
        np.testing.assert_array_equal(similarity("orthoplex", 4, 3), np.eye(4))
    assert caught[0].filename == __file__


@settings(deadline=None)
@given(n_classes=st.integers(2, 9), embedding_dim=st.integers(2, 9))
def test_packing_is_reachable_and_the_simplex_where_that_fits(n_classes, embedding_dim):
    G = similarity("packing", n_classes, embedding_dim)
    if embedding_dim >= n_classes - 1:
        np.testing.assert_allclose(G, similarity("simplex", n_classes), atol=1e-14)
    np.testing.assert_array_equal(G, G.T)
    np.testing.assert_array_equal(np.diag(G), 1)
    eigenvalues = np.linalg.eigvalsh(G)
    assert eigenvalues[0] > -1e-12
    assert np.sum(eigenvalues > 1e-10) <= embedding_dim


@pytest.mark.parametrize(("n_classes", "embedding_dim"), [(4, 2), (5, 3), (12, 3), (9, 4)])
def test_packing_spreads_the_classes_further_than_the_printed_welch_value(n_classes, embedding_dim):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GeometryWarning)
        welch = similarity("welch", n_classes, embedding_dim)
    packing = similarity("packing", n_classes, embedding_dim)
    off = ~np.eye(n_classes, dtype=bool)
    assert packing[off].mean() < welch[off].mean()


@pytest.mark.parametrize("n_classes", [2, 3, 4, 7, 50])
def test_ordered_levels_are_as_alike_as_they_are_near(n_classes):
    ordinal, both = (similarity(kind, n_classes) for kind in ("ordinal", "ordinal-simplex"))
    for a in range(n_classes):
        for b in range(n_classes):
            apart = 1 - 2 * abs(a - b) / (n_classes - 1)
            assert ordinal[a, b] == apart
            simplex = 1 if a == b else -1 / (n_classes - 1)
            assert both[a, b] == pytest.approx((apart + simplex) / 2, abs=1e-15)


@pytest.mark.parametrize(("kind", "spare"), [("ordinal", 1), ("ordinal-simplex", 0)])
@pytest.mark.parametrize("n_classes", [*range(2, 13), 40, 150])
def test_ordered_levels_are_points_of_as_many_dimensions_as_they_need(kind, spare, n_classes):
    q = n_classes - spare if n_classes > 2 else 1
    G = similarity(kind, n_classes, q)
    eigenvalues = np.linalg.eigvalsh(G)
    assert eigenvalues[0] > -1e-12 * eigenvalues[-1]
    validate_similarity(G, n_classes, q)
    points = target_points(kind, n_classes)
    assert points.shape == (n_classes, q)
    np.testing.assert_allclose(points @ points.T, G, atol=1e-9)


def test_two_levels_are_two_classes():
    for kind in ("ordinal", "ordinal-simplex"):
        np.testing.assert_array_equal(similarity(kind, 2), similarity("simplex", 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("simplex", 5, 3),
            r"simplex of 5 classes needs .* = 4, but .* is 3; use .*packing",
        ),
        (("welch", 4, 3), r'simplex exists there.*use similarity="simplex"'),
        (("welch", 4), 'similarity="welch".*give embedding_dim'),
        (("packing", 4), 'similarity="packing".*give embedding_dim'),
        (("simplexx", 3), "one of 'simplex', 'welch', 'orthoplex', 'packing', .* not 'simplexx'"),
        (("ordinal", 5, 3), "5 ordered levels has rank 4, but .* is 3; .*half circle"),
        (("ordinal-simplex", 5, 4), "5 ordered levels has rank 5, but .* is 4"),
    ],
)
def test_what_has_no_similarity_is_refused(arguments, message):
    with pytest.raises(CoCoError, match=message):
        similarity(*arguments)


@pytest.mark.parametrize("kind", SIMILARITIES)
def test_every_kind_checks_its_numbers(kind):
    with pytest.raises(CoCoError, match="n_classes must be at least 2, but is 1"):
        similarity(kind, 1, 3)
    with pytest.raises(CoCoError, match="embedding_dim must be at least 1, but is 0"):
        similarity(kind, 3, 0)
    with pytest.raises(CoCoError, match=r"embedding_dim must be a whole number.*2\.5"):
        similarity(kind, 3, 2.5)


ORDINAL = [[1.0, 0.0, -1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 1.0]]  # rank 2
INDEFINITE = [[1.0, -2.0], [-2.0, 1.0]]  # eigenvalues 3 and -1
ACUTE = np.eye(3) + 1  # eigenvalues 4, 1, 1; the first along (1, 1, 1)


@pytest.mark.parametrize("convert", [list, np.array, torch.tensor])
def test_lists_arrays_and_tensors_come_back_as_float64(convert):
    G = validate_similarity(convert(ORDINAL), n_classes=3, embedding_dim=2)
    assert G.dtype == np.float64
    np.testing.assert_array_equal(G, ORDINAL)


def test_float32_gram_matrix_passes_in_its_own_dimension():
    vectors = np.random.default_rng(0).standard_normal((100, 20)).astype(np.float32)
    validate_similarity(vectors @ vectors.T, 100, 20)
    validate_similarity(similarity("simplex", 100).astype(np.float32), 100, 99)
    with pytest.raises(GeometryError, match="rank 20, but embedding_dim is 19"):
        validate_similarity(vectors @ vectors.T, 100, 19)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_rounding_asymmetry_is_averaged_away_at_any_scale(scale):
    G = scale * np.array([[1.0, 0.5], [0.5 + 1e-9, 1.0]])
    checked = validate_similarity(G)
    np.testing.assert_array_equal(checked, checked.T)
    assert checked[0, 1] == pytest.approx(scale * (0.5 + 5e-10), rel=1e-14)


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
        (np.ones((2, 3)), {}, r"square.*shape \(2, 3\)"),
        (np.ones((1, 1)), {}, r"square.*shape \(1, 1\)"),
        (np.ones((2, 2, 2)), {}, r"square.*shape \(2, 2, 2\)"),
        ([[1.0, 0.0], [np.nan, 1.0]], {}, r"entry \(1, 0\) is nan"),
        (ACUTE, {"embedding_dim": 1}, r"(?s)rank 3, but embedding_dim is 1(?!.*origin)"),
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


def test_target_points_may_have_spare_dimensions():
    points = target_points("simplex", 4, 6)
    assert points.shape == (4, 6)
    np.testing.assert_allclose(points @ points.T, similarity("simplex", 4), atol=1e-12)
    with pytest.raises(GeometryError, match="simplex of 4 classes needs embedding_dim >= "):
        target_points("simplex", 4, 2)
    with pytest.raises(GeometryError, match="span 3 dimensions, but embedding_dim is 2"):
        target_points(similarity("simplex", 4), 4, 2)
