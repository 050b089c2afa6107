import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import special
from scipy.spatial.distance import cdist
from sklearn.linear_model import RidgeClassifier
from sklearn.svm import LinearSVC

from cocoloss.exceptions import CoCoError
from cocoloss.heads import CentroidHead, GaussianHead, ReadoutHead
from cocoloss.heads.fitted import (
    FittedLinear,
    head_from_state,
    log_softmax,
    logsumexp,
    pairwise_squares,
    softmax,
)

OURS = {softmax: special.softmax, log_softmax: special.log_softmax, logsumexp: special.logsumexp}
rows = hnp.array_shapes(min_dims=2, max_dims=2, max_side=9)
scores = rows.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=st.floats(-800, 800)))


@pytest.mark.parametrize("ours", OURS)
@given(scores=scores)
def test_scores_become_what_scipy_makes_of_them(ours, scores):
    expected = OURS[ours](scores, axis=1)
    np.testing.assert_allclose(ours(scores), expected, rtol=1e-14, atol=1e-300)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 40))
def test_squared_distances_are_those_of_each_pair(n, m, q):
    rng = np.random.default_rng([n, m, q])
    X, Z = 1e6 + rng.normal(size=(n, q)), 1e6 + rng.normal(size=(m, q))
    expected = cdist(X, Z, "sqeuclidean")
    np.testing.assert_allclose(pairwise_squares(X, Z), expected, rtol=1e-12)


def labelled(n_classes, dtype=np.float64, q=4):
    y = np.arange(60) % n_classes
    return (np.random.default_rng(0).normal(size=(60, q)) + y[:, None]).astype(dtype), y


@pytest.mark.parametrize("model", [RidgeClassifier(), LinearSVC(dual=False)], ids=str)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_linear_scores_are_those_of_scikit_learn_to_the_bit(model, intercept, n_classes, dtype):
    X, y = labelled(n_classes, dtype)
    model.set_params(fit_intercept=intercept).fit(X, y)
    for head in (FittedLinear.of(model), head_from_state(FittedLinear.of(model).to_state())):
        assert (head.n_classes, head.n_features) == (n_classes, 4)
        for rows in (X, X[:1]):
            scores, expected = head.decision_function(rows), model.decision_function(rows)
            assert scores.dtype == expected.dtype
            np.testing.assert_array_equal(scores, expected)
            np.testing.assert_array_equal(head.predict(rows), model.predict(rows))


X, Y = labelled(3)
STATES = {
    "gaussian": GaussianHead().fit(X, Y).fitted_.to_state(),
    "diag": GaussianHead("diag").fit(X, Y).fitted_.to_state(),
    "centroid": CentroidHead().fit(X, Y).fitted_.to_state(),
    "readout": ReadoutHead(np.eye(3, 4)).fit(X, Y).fitted_.to_state(),
    "linear": FittedLinear.of(RidgeClassifier().fit(X, Y)).to_state(),
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_a_state_with_any_part_missing_or_of_another_kind_is_refused(state):
    for name, value in state.items():
        others = [None, [1.0], {}, "other", 3, np.zeros((2, 2, 2)), np.array("a"), np.array(["a"])]
        if isinstance(value, np.ndarray):
            bad = value.copy()
            bad.flat[0] = np.nan
            others += [bad, value[:-1], value[None], value.astype(int), value + np.inf]
        elif isinstance(value, float):
            others += [np.nan, np.inf, -1.0, 0.0]
        for other in others:
            with pytest.raises(CoCoError, match=r"its .* must be|must hold|of a head"):
                head_from_state({**state, name: other})
        with pytest.raises(CoCoError):
            head_from_state({k: v for k, v in state.items() if k != name})
    with pytest.raises(CoCoError, match="must hold kind"):
        head_from_state({**state, "more": 1})


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("gaussian", {"prior": np.array([0.5, 0.5, 0.0])}),
        ("gaussian", {"covariance": "diag"}),
        ("gaussian", {"prior": np.ones(2) / 2, "share": np.ones(2) / 2}),
        ("diag", {"precisions_cholesky": -np.ones((3, 4))}),
        ("readout", {"learnt_share": np.array([1.0, 0.0, 1.0])}),
        ("readout", {"metric": "euclidean"}),
        ("linear", {"coef": np.ones((2, 4))}),
    ],
)
def test_a_state_whose_parts_do_not_fit_is_refused(kind, changes):
    with pytest.raises(CoCoError, match=r"of a head|its .* must be finite numbers"):
        head_from_state({**STATES[kind], **changes})


@pytest.mark.parametrize("state", [None, [], {}, {"kind": "tree"}])
def test_what_describes_no_head_is_refused(state):
    with pytest.raises(CoCoError, match="kind of a head must be one of"):
        head_from_state(state)


def test_an_embedding_that_is_not_finite_is_refused():
    head = head_from_state(STATES["gaussian"])
    with pytest.raises(CoCoError, match="the embedding of a row is not finite"):
        head.predict(np.full((1, 4), np.inf))
