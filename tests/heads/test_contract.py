"""What every head promises, run against every head."""

import pickle
import tracemalloc
from dataclasses import FrozenInstanceError
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import parametrize_with_checks

from cocoloss.exceptions import CoCoError
from cocoloss.geometry import simplex_frame
from cocoloss.heads import CentroidHead, GaussianHead, MatrixHead, ReadoutHead
from cocoloss.heads.fitted import head_from_state

Q, C = 3, 3
PROTOTYPES = simplex_frame(C, Q, random_state=0)
LEARNT = {
    "full": GaussianHead(),
    "tied": GaussianHead("tied"),
    "diag": GaussianHead("diag"),
    "euclidean": CentroidHead(),
    "angular": CentroidHead("angular"),
    "matrix": MatrixHead(),
}
HEADS = LEARNT | {
    "readout": ReadoutHead(PROTOTYPES),
    "logits": ReadoutHead(PROTOTYPES, [0.3, -0.2, 0.0], metric="dot"),
}
every_head = pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
with_temperature = {name: head for name, head in HEADS.items() if name != "matrix"}
every_head_with_a_temperature = pytest.mark.parametrize(
    "head", with_temperature.values(), ids=with_temperature
)
every_learnt_head = pytest.mark.parametrize("head", LEARNT.values(), ids=LEARNT)


def table(seed=0, n=60, spread=0.5, shares=(0.6, 0.3, 0.1)):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(C), rng.choice(C, n - C, p=shares)])
    return PROTOTYPES[y] + spread * rng.normal(size=(n, Q)), y


@parametrize_with_checks(
    [
        GaussianHead(),
        GaussianHead("tied", priors="empirical"),
        GaussianHead("diag"),
        CentroidHead(),
        CentroidHead("angular", priors="empirical"),
        MatrixHead(),
    ]
)
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@every_head
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([1e-8, 1.0, 1e8]), rounded=st.booleans()
)
def test_predicts_the_first_of_the_most_probable_classes(head, seed, scale, rounded):
    X, y = table(seed, n=20)
    X = np.round(X) if rounded else X  # rounded rows coincide, so classes collapse and tie
    head = clone(head).fit(scale * X, y)
    queries = scale * np.random.default_rng(seed).normal(size=(30, Q)).round(1)
    p = head.predict_proba(queries)
    np.testing.assert_array_equal(head.predict(queries), head.classes_[p.argmax(axis=1)])
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(np.exp(head.predict_log_proba(queries)), p, rtol=1e-9, atol=1e-300)


AWKWARD = {
    "collapsed classes": (np.repeat(PROTOTYPES, 4, axis=0), np.repeat(range(C), 4)),
    "one row per class": (PROTOTYPES, np.arange(C)),
    "a class of one row": (table()[0][:14], np.array([0] * 6 + [1] * 7 + [2])),
    "fewer rows than dimensions": (PROTOTYPES[[0, 0, 1, 2]] + np.eye(4, Q) / 9, [0, 0, 1, 2]),
    "duplicated rows": (np.repeat(table(n=9)[0], 2, axis=0), np.repeat(table(n=9)[1], 2)),
    "a constant dimension": (table()[0] * [1, 1, 0] + [0, 0, 5], table()[1]),
    "identical rows": (np.full((6, Q), 0.3), [0, 0, 1, 1, 2, 2]),
    "nothing but zeros": (np.zeros((6, Q)), [0, 0, 1, 1, 2, 2]),
    "a far offset": (table()[0] + 1e8, table()[1]),
}


@every_head
@pytest.mark.parametrize("rows", AWKWARD.values(), ids=AWKWARD)
def test_predictions_are_finite_on(head, rows):
    for scale, dtype in product([1e-8, 1.0, 1e8], [np.float32, np.float64]):
        X, y = (scale * rows[0]).astype(dtype), rows[1]
        fitted = clone(head).fit(X, y)
        queries = np.vstack([X, -2 * X, np.zeros((1, Q)), np.full((1, Q), 1e37)]).astype(dtype)
        for _ in range(2):
            p = fitted.predict_proba(queries)
            np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
            for method in ("predict_log_proba", "decision_function", "outlier_score"):
                assert np.isfinite(getattr(fitted, method)(queries)).all()
            fitted.calibrate(X, y)


@every_head
def test_rows_whose_distances_overflow_get_the_prior(head):
    head = clone(head).set_params(priors=[0.5, 0.3, 0.2]).fit(*table())
    far = np.full((1, Q), 1e300)
    p = head.predict_proba(far)
    assert np.isfinite([*p[0], *head.outlier_score(far)]).all()
    if isinstance(head, GaussianHead) or getattr(head, "metric", "") == "euclidean":
        np.testing.assert_allclose(p, [[0.5, 0.3, 0.2]])


@every_head
def test_a_larger_prior_draws_rows_to_its_class(head):
    X, y = table(spread=1.0, n=300)
    before = clone(head).fit(X, y).predict_proba(X)
    after = clone(head).set_params(priors=[0.1, 0.1, 0.8]).fit(X, y)
    odds = (before / before[:, :1]) * [1, 1, 8]  # Bayes: posterior odds times prior odds
    np.testing.assert_allclose(
        after.predict_proba(X), odds / odds.sum(axis=1, keepdims=True), rtol=1e-7, atol=1e-12
    )
    assert (after.predict(X) == 2).sum() > (before.argmax(axis=1) == 2).sum()


@every_head
def test_empirical_priors_are_the_weighted_shares_of_the_rows(head):
    X, y = table()
    w = np.random.default_rng(1).uniform(0.1, 2, len(y))
    head = clone(head).set_params(priors="empirical").fit(X, y, w)
    np.testing.assert_allclose(head.class_prior_, [w[y == c].sum() / w.sum() for c in range(C)])
    np.testing.assert_allclose(head.set_params(priors="uniform").fit(X, y, w).class_prior_, 1 / C)


@every_head
def test_a_weight_is_a_repetition_and_zero_an_absence(head):
    X, y = table()
    w = np.random.default_rng(2).integers(0, 4, len(y))
    w[:C] = 1
    weighted = clone(head).set_params(priors="empirical").fit(X, y, w).calibrate(X, y, w)
    repeated = clone(head).set_params(priors="empirical")
    repeated.fit(X.repeat(w, axis=0), y.repeat(w)).calibrate(X.repeat(w, axis=0), y.repeat(w))
    np.testing.assert_allclose(weighted.temperature_, repeated.temperature_, rtol=1e-7)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-6)


@every_head
def test_a_row_of_no_weight_may_be_anywhere(head):
    X, y = table()
    expected = clone(head).fit(X, y).calibrate(X, y)
    wild, labels, w = np.vstack([np.full((1, Q), 1e200), X]), np.r_[0, y], np.r_[0, np.ones(len(y))]
    found = clone(head).fit(wild, labels, w).calibrate(wild, labels, w)
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), rtol=1e-9)
    assert found.calibrate(X, y, np.zeros(len(y))).temperature_ == 1


@every_learnt_head
def test_decides_between_two_classes_by_the_log_odds_of_the_second(head):
    X, y = table()
    head = clone(head).set_params(priors=[0.3, 0.7]).fit(X, y > 0)
    log_p = head.predict_log_proba(X)
    np.testing.assert_allclose(head.decision_function(X), log_p[:, 1] - log_p[:, 0], rtol=1e-9)


@every_head
def test_a_stranger_scores_higher_whatever_priors_and_temperature(head):
    X, y = table(spread=0.1)
    head = clone(head).fit(X, y)
    # Away from the classes in distance, in direction and in every logit at once.
    strange = -PROTOTYPES[:1] * 4 if head.get_params().get("metric") != "dot" else 0 * X[:1]
    scores = head.outlier_score(X)
    assert head.outlier_score(strange)[0] > np.quantile(scores, 0.9)
    head.set_params(priors=[0.2, 0.2, 0.6]).fit(X, y).calibrate(X, y)
    np.testing.assert_allclose(head.outlier_score(X), scores)


@every_head
def test_the_temperature_scales_the_likelihood_and_leaves_the_prior(head):
    X, y = table()
    head = clone(head).set_params(priors=[0.5, 0.3, 0.2]).fit(X, y)
    head.temperature_ = 7.0
    joint = np.log([0.5, 0.3, 0.2]) + head.log_likelihood(X) / 7
    expected = np.exp(joint - joint.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(head.predict_proba(X), expected, rtol=1e-9)


@every_head_with_a_temperature
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), spread=st.floats(0.05, 2))
def test_calibration_never_worsens_the_log_loss_of_its_rows(head, seed, spread):
    X, y = table(seed, spread=spread, n=40)
    held_out, labels = table(seed + 1, spread=2 * spread, n=30)
    head = clone(head).set_params(priors="empirical").fit(X, y)
    before = log_loss(labels, head.predict_proba(held_out))
    after = log_loss(labels, head.calibrate(held_out, labels).predict_proba(held_out))
    assert after <= before + 1e-9
    assert head.fit(X, y).temperature_ == 1


@every_head_with_a_temperature
def test_calibration_does_not_depend_on_the_priors(head):
    X, y = table()
    held_out, labels = table(1, spread=1.0)
    uniform = clone(head).set_params(priors="uniform").fit(X, y).calibrate(held_out, labels)
    chosen = clone(head).set_params(priors=[0.1, 0.1, 0.8]).fit(X, y).calibrate(held_out, labels)
    assert uniform.temperature_ == chosen.temperature_ != 1


@every_head
def test_calibration_lacks_a_class_but_not_the_other_way_round(head):
    X, y = table()
    head = clone(head)
    with pytest.raises(NotFittedError):
        head.calibrate(X, y)
    head.fit(X, y).calibrate(X[y < 2], y[y < 2])
    assert np.isfinite(head.temperature_)
    with pytest.raises(CoCoError, match="class 7 was not in the rows"):
        head.calibrate(X, np.where(y == 2, 7, y))


@every_head
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_takes_tensors(head, dtype):
    X, y = table()
    tensor = torch.tensor(X, dtype=dtype, requires_grad=True)
    array = tensor.detach().double().numpy()
    from_tensor = clone(head).fit(tensor, torch.tensor(y))
    from_array = clone(head).fit(array, y)
    np.testing.assert_allclose(
        from_tensor.predict_proba(tensor), from_array.predict_proba(array), rtol=1e-10
    )


@every_head
def test_what_was_learnt_is_a_small_value_that_knows_the_classes_by_position(head):
    X, y = table()
    words = np.array(["ant", "bee", "cat"])[y]
    head = clone(head).fit(X, words).calibrate(X, words)
    stored = pickle.dumps(head)
    assert len(stored) < 4000
    np.testing.assert_array_equal(pickle.loads(stored).predict(X), head.predict(X))  # noqa: S301
    assert {type(v) for v in vars(head.fitted_).values()} <= {np.ndarray, float, int, str}
    fitted = head_from_state(head.fitted_.to_state())
    assert type(fitted) is type(head.fitted_)
    assert (fitted.n_classes, fitted.n_features) == (C, Q)
    np.testing.assert_array_equal(head.classes_[fitted.predict(X)], head.predict(X))
    for method in (
        *("predict_proba", "predict_log_proba", "decision_function"),
        *("log_likelihood", "outlier_score"),
    ):
        np.testing.assert_array_equal(getattr(fitted, method)(X), getattr(head, method)(X))
    with pytest.raises(FrozenInstanceError):
        fitted.temperature = 2.0


@every_head
def test_blocks_of_rows_do_not_show(head, monkeypatch):
    X, y = table(n=500)
    whole = clone(head).fit(X, y)
    expected = whole.predict_proba(X)
    for module in ("cocoloss.heads.fitted", "cocoloss.metrics.scatter"):
        monkeypatch.setattr(f"{module}.BLOCK_NUMBERS", 1)
        monkeypatch.setattr(f"{module}.MIN_BLOCK_ROWS", 7)
    np.testing.assert_allclose(whole.predict_proba(X), expected, rtol=1e-10)
    np.testing.assert_allclose(clone(head).fit(X, y).predict_proba(X), expected, rtol=1e-8)


@every_learnt_head
def test_memory_beyond_the_rows_is_bounded(head):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 20, 20_000)
    X = rng.normal(size=(20_000, 20)).astype(np.float32) + y[:, None]
    head = clone(head)
    tracemalloc.start()
    head.fit(X, y)
    head.predict(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30e6  # all deviations at once would be 64 MB in float64


X60, Y60 = table()


@pytest.mark.parametrize(
    ("head", "y", "weights", "message"),
    [
        (GaussianHead(), Y60, [1.0], "shape"),
        (GaussianHead(), Y60, -np.ones(60), "not negative"),
        (CentroidHead(), Y60, np.full(60, np.nan), "finite"),
        (CentroidHead(), Y60, Y60 != 2, "every row of class 2 has zero sample_weight"),
        (CentroidHead(), np.zeros(60), None, "at least two classes"),
        (GaussianHead(priors="flat"), Y60, None, "'uniform', 'empirical'"),
        (GaussianHead(priors=[0.5, 0.5]), Y60, None, "2 values for 3"),
        (CentroidHead(priors=[1, 1, 1]), Y60, None, "sum to one"),
        *(
            (GaussianHead(**{name: bad}), Y60, None, f"{name} must be a number that is not")
            for name in ("shrinkage", "covariance_floor")
            for bad in (-1, np.nan, None)
        ),
        (GaussianHead(shrinkage="some"), Y60, None, "shrinkage must be one of 'auto'"),
        (GaussianHead("round"), Y60, None, "'auto', 'full', 'tied', 'diag', not 'round'"),
        (CentroidHead("taxi"), Y60, None, "'euclidean', 'angular', not 'taxi'"),
        *(
            (ReadoutHead(**parameters), Y60, None, message)
            for parameters, message in [
                ({"prototypes": np.eye(2, 3)}, r"has \(2, 3\)"),
                ({"prototypes": np.full((3, 3), np.nan)}, "finite"),
                ({"bias": [1, 2]}, 'no meaning for metric="angular"'),
                ({"bias": [1, 2], "metric": "dot"}, "bias must have shape"),
                ({"metric": "cosine"}, "'angular', 'dot'"),
                ({"learnt_share": [1, 2, 3]}, "learnt_share must sum to one"),
                ({"metric": "dot", "learnt_share": [0.5, 0.5]}, "learnt_share is for metric="),
            ]
        ),
    ],
)
def test_refuses_what_it_cannot_learn_from(head, y, weights, message):
    with pytest.raises(CoCoError, match=message):
        head.fit(X60, y, weights)
