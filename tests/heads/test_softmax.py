import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import special
from scipy.spatial.distance import cdist

from cocoloss.heads._softmax import log_softmax, logsumexp, softmax
from cocoloss.heads.likelihoods import pairwise_squares

OURS = {softmax: special.softmax, log_softmax: special.log_softmax, logsumexp: special.logsumexp}
rows = hnp.array_shapes(min_dims=2, max_dims=2, max_side=9)
scores = rows.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=st.floats(-800, 800)))


@pytest.mark.parametrize("ours", OURS)
@given(scores=scores)
def test_scores_become_what_scipy_makes_of_them(ours, scores):
    expected = OURS[ours](scores, axis=1)
    np.testing.assert_allclose(ours(scores), expected, rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("top", [np.inf, -np.inf, np.nan])
def test_a_sum_whose_largest_term_is_not_finite_is_that_term(top):
    assert logsumexp(np.array([[top, top], [0.0, 0.0]])).tolist() == pytest.approx(
        [top, np.log(2)], nan_ok=True
    )


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 40))
def test_squared_distances_are_those_of_each_pair(n, m, q):
    rng = np.random.default_rng([n, m, q])
    X, Z = 1e6 + rng.normal(size=(n, q)), 1e6 + rng.normal(size=(m, q))
    expected = cdist(X, Z, "sqeuclidean")
    np.testing.assert_allclose(pairwise_squares(X, Z), expected, rtol=1e-12)
