import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocoloss.exceptions import CoCoError, GeometryError, GeometryWarning
from cocoloss.geometry import SIMILARITIES, similarity


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


def test_simplex_that_does_not_fit_names_the_need_and_the_remedies():
    message = (
        r"simplex of 5 classes needs embedding_dim >= n_classes - 1 = 4, but embedding_dim is 3; "
        r'use a larger embedding_dim, or, where a similarity is asked for, "packing"'
    )
    with pytest.raises(GeometryError, match=message):
        similarity("simplex", 5, 3)


@pytest.mark.parametrize(
    ("n_classes", "embedding_dim", "product"),
    [(4, 2, np.sqrt(2 / 6)), (10, 3, np.sqrt(7 / 27)), (6, 1, 1.0)],
)
def test_welch_is_the_printed_formula_and_warns(n_classes, embedding_dim, product):
    with pytest.warns(GeometryWarning, match=rf"rank {n_classes}, .*packing") as caught:
        G = similarity("welch", n_classes, embedding_dim)
    np.testing.assert_allclose(G, equiangular(n_classes, product), rtol=1e-15)
    assert caught[0].filename == __file__  # it points at the caller, not into the package


@pytest.mark.parametrize("embedding_dim", [3, 4, 9])
def test_welch_refuses_where_the_simplex_exists(embedding_dim):
    with pytest.raises(GeometryError, match=r'simplex exists there.*use similarity="simplex"'):
        similarity("welch", 4, embedding_dim)


@pytest.mark.parametrize("kind", ["welch", "packing"])
def test_kinds_that_depend_on_the_dimension_ask_for_it(kind):
    with pytest.raises(GeometryError, match=f'similarity="{kind}".*give embedding_dim'):
        similarity(kind, 4)


@pytest.mark.parametrize("embedding_dim", [None, 4, 7])
def test_orthoplex_is_the_identity(embedding_dim):
    np.testing.assert_array_equal(similarity("orthoplex", 4, embedding_dim), np.eye(4))


@pytest.mark.parametrize("embedding_dim", [1, 3])
def test_orthoplex_warns_below_c_dimensions(embedding_dim):
    message = rf"rank 4, so no embedding in {embedding_dim} dimensions"
    with pytest.warns(GeometryWarning, match=message) as caught:
        G = similarity("orthoplex", 4, embedding_dim)
    np.testing.assert_array_equal(G, np.eye(4))
    assert caught[0].filename == __file__


@settings(deadline=None)
@given(n_classes=st.integers(2, 9), embedding_dim=st.integers(2, 9))
def test_packing_is_reachable(n_classes, embedding_dim):
    G = similarity("packing", n_classes, embedding_dim)
    np.testing.assert_array_equal(G, G.T)
    np.testing.assert_array_equal(np.diag(G), 1)
    eigenvalues = np.linalg.eigvalsh(G)
    assert eigenvalues[0] > -1e-12
    assert np.sum(eigenvalues > 1e-10) <= embedding_dim


@settings(deadline=None)
@given(n_classes=st.integers(2, 9), extra=st.integers(0, 3))
def test_packing_is_the_simplex_where_that_fits(n_classes, extra):
    np.testing.assert_allclose(
        similarity("packing", n_classes, n_classes - 1 + extra),
        similarity("simplex", n_classes),
        atol=1e-14,
    )


@pytest.mark.parametrize(("n_classes", "embedding_dim"), [(4, 2), (5, 3), (12, 3), (9, 4)])
def test_packing_spreads_the_classes_further_than_the_printed_welch_value(n_classes, embedding_dim):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GeometryWarning)
        welch = similarity("welch", n_classes, embedding_dim)
    packing = similarity("packing", n_classes, embedding_dim)
    off = ~np.eye(n_classes, dtype=bool)
    assert packing[off].mean() < welch[off].mean()


def test_unknown_kinds_are_answered_with_the_options():
    options = ", ".join(map(repr, SIMILARITIES))
    with pytest.raises(CoCoError, match=rf"similarity must be one of {options}, not 'simplexx'"):
        similarity("simplexx", 3)
    assert set(SIMILARITIES) == {"simplex", "welch", "orthoplex", "packing"}


@pytest.mark.parametrize("kind", SIMILARITIES)
def test_every_kind_checks_its_numbers(kind):
    with pytest.raises(CoCoError, match="n_classes must be at least 2, but is 1"):
        similarity(kind, 1, 3)
    with pytest.raises(CoCoError, match="embedding_dim must be at least 1, but is 0"):
        similarity(kind, 3, 0)
    with pytest.raises(CoCoError, match=r"embedding_dim must be a whole number.*2\.5"):
        similarity(kind, 3, 2.5)
