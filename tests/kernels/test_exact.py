"""Kernel ridge regression: the formula as printed, leave-one-out as leaving one out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocoloss.kernels import KERNELS, Kernel, RidgePath, learnt_metric, solve
from cocoloss.kernels.kernel import distances


def rows(n, d=3, q=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, q)), rng.uniform(0.2, 3, size=n)


def kernel_in_loops(kind, gamma, metric, x, z):
    """The kernels as docs/theory.md prints them."""
    squared = sum(m * (a - b) ** 2 for m, a, b in zip(metric, x, z, strict=True))
    city = sum(np.sqrt(m) * abs(a - b) for m, a, b in zip(metric, x, z, strict=True))
    return {
        "rbf": np.exp(-gamma * squared),
        "laplace": np.exp(-np.sqrt(2 * gamma * squared)),
        "laplace-l1": np.exp(-gamma * city),
    }[kind]


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("other", [False, True])
def test_kernels_are_the_formulas(kind, other):
    X, _, _ = rows(6)
    Z = rows(4, seed=1)[0] if other else X
    metric = np.array([0.5, 2.0, 0.0])
    K = Kernel(kind, 0.7, metric)(X, Z if other else None)
    expected = [[kernel_in_loops(kind, 0.7, metric, x, z) for z in Z] for x in X]
    assert K.dtype == np.float32
    np.testing.assert_allclose(K, expected, rtol=2e-6)


@pytest.mark.parametrize("kind", KERNELS)
def test_equal_rows_far_from_the_origin_are_equal(kind):
    X = np.array([[1e3, -1e3], [1e3, -1e3], [1e3 + 1, -1e3]], dtype=np.float32)
    K = Kernel(kind, 1.0, np.ones(2))(X, X.copy())
    assert K[0, 1] == pytest.approx(1, abs=1e-3)
    assert K[0, 2] < 0.4


def fit_by_the_definition(K, V, weights, ridge):
    """Minimise sum w |K alpha - V|^2 + ridge alpha' K alpha, by its normal equations."""
    W = np.diag(weights)
    return np.linalg.solve(K @ W @ K + ridge * K, K @ W @ V)


@pytest.mark.parametrize("ridge", [0.01, 1.0, 30.0])
def test_alpha_minimises_what_it_should(ridge):
    X, V, w = rows(12)
    K = Kernel("laplace", 0.5, np.ones(3))(X)
    expected = fit_by_the_definition(K.astype(np.float64), V, w, ridge)
    np.testing.assert_allclose(solve(K, V, w, ridge).alpha, expected, rtol=2e-3, atol=1e-4)
    path = RidgePath.of(K, V, w)
    np.testing.assert_allclose(path.solution(ridge).alpha, expected, rtol=2e-3, atol=1e-4)


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(2, 25),
    ridge=st.sampled_from([1e-3, 0.1, 3.0]),
    kind=st.sampled_from(sorted(KERNELS)),
    seed=st.integers(0, 99),
)
def test_leave_one_out_is_leaving_one_out(n, ridge, kind, seed):
    X, V, w = rows(n, seed=seed)
    K = Kernel(kind, 0.8, np.ones(3))(X).astype(np.float64)
    expected = np.empty_like(V)
    for i in range(n):
        rest = np.arange(n) != i
        system = K[np.ix_(rest, rest)] + np.diag(ridge / w[rest])
        expected[i] = K[i, rest] @ np.linalg.solve(system, V[rest])
    for solution in (solve(K, V, w, ridge), RidgePath.of(K, V, w).solution(ridge)):
        np.testing.assert_allclose(solution.leave_one_out(V, w), expected, rtol=1e-3, atol=2e-4)


def test_a_weight_of_two_is_the_row_twice():
    X, V, _ = rows(8)
    kernel = Kernel("rbf", 0.5, np.ones(3))
    twice = np.r_[0, np.arange(8)]
    w = np.ones(8)
    w[0] = 2
    once = solve(kernel(X), V, w, 0.3).alpha
    doubled = solve(kernel(X[twice]), V[twice], np.ones(9), 0.3).alpha
    Z = rows(5, seed=3)[0]
    np.testing.assert_allclose(kernel(Z, X) @ once, kernel(Z, X[twice]) @ doubled, atol=1e-5)


def test_a_row_that_stands_for_several_can_lose_one():
    X, V, _ = rows(7)
    kernel = Kernel("laplace", 0.5, np.ones(3))
    targets = np.r_[V[:1], V[:1] + 1, V[:1] + 2]  # three rows at X[0], of different targets
    merged = np.r_[targets.mean(axis=0, keepdims=True), V[1:]]
    w = np.r_[3, np.ones(6)]
    one_less = solve(kernel(X), merged, w, 0.2).without(np.zeros(3, int), targets, np.ones(3))
    for k in range(3):
        kept = np.delete(targets, k, axis=0)
        Z, T = np.r_[X[[0, 0]], X[1:]], np.r_[kept, V[1:]]
        expected = kernel(X[:1], Z) @ solve(kernel(Z), T, np.ones(8), 0.2).alpha
        np.testing.assert_allclose(one_less[k], expected[0], atol=1e-4)


@pytest.mark.parametrize("n", [50, 400])
def test_float32_keeps_enough_digits(n):
    X, V, w = rows(n)
    K = Kernel("rbf", 0.2, np.ones(3))(X)
    for ridge in (0.003, 1.0):
        fast = solve(K, V, w, ridge)
        slow = RidgePath.of(K.astype(np.float64), V, w).solution(ridge)
        off = fast.leave_one_out(V, w) - slow.leave_one_out(V, w)
        assert np.abs(off).max() < 5e-3 * np.abs(V).max()


def test_many_equal_rows_have_a_solution():
    X = np.ones((200, 2))
    V = np.tile([[1.0], [-1.0]], (100, 1))
    solution = solve(Kernel("rbf", 1.0, np.ones(2))(X), V, np.ones(200), 1e-3)
    assert np.isfinite(solution.alpha).all()
    np.testing.assert_allclose(solution.leave_one_out(V, np.ones(200)), -V / 199, atol=1e-3)


@pytest.mark.parametrize("kind", ["rbf", "laplace"])
def test_the_metric_is_the_mean_squared_gradient(kind):
    X, _, _ = rows(9)
    alpha = np.random.default_rng(5).normal(size=(9, 2))
    kernel = Kernel(kind, 0.6, np.array([0.5, 1.0, 2.0], dtype=np.float32))
    step = 1e-4

    def f(x):
        values = [kernel_in_loops(kind, 0.6, kernel.metric, x, row) for row in X]
        return np.asarray(values) @ alpha

    squares = np.zeros(3)
    for i, x in enumerate(X):
        for j in range(3):
            shift = np.eye(3)[j] * step
            others = np.arange(9) != i  # the Laplace kernel has a kink at the row itself
            ahead, behind = (
                np.asarray(
                    [kernel_in_loops(kind, 0.6, kernel.metric, x + s, row) for row in X[others]]
                )
                @ alpha[others]
                for s in (shift, -shift)
            )
            squares[j] += np.square((ahead - behind) / (2 * step)).sum() / 9
    np.testing.assert_allclose(learnt_metric(kernel, X, alpha), squares / squares.mean(), rtol=1e-3)
    assert f(X[0]).shape == (2,)


def test_a_column_of_noise_weighs_little():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    V = np.sign(X[:, :1])
    kernel = Kernel("rbf", 0.1, np.ones(5, dtype=np.float32))
    metric = learnt_metric(kernel, X, solve(kernel(X), V, np.ones(300), 0.3).alpha)
    assert metric[0] > 4
    assert metric[1:].max() < 0.4


def test_every_second_row_says_enough_of_a_metric():
    X, _, _ = rows(1001)
    alpha = np.random.default_rng(5).normal(size=(1001, 2))
    kernel = Kernel("rbf", 0.6, np.ones(3, dtype=np.float32))
    some = np.zeros(3)
    for x in X[::2].astype(np.float64):
        values = np.exp(-0.6 * np.square(x - X).sum(axis=1))
        slopes = -1.2 * values[:, None, None] * (x - X)[:, :, None] * alpha[:, None]  # (n, d, q)
        some += np.square(slopes.sum(axis=0)).sum(axis=1)
    np.testing.assert_allclose(learnt_metric(kernel, X, alpha), some / some.mean(), rtol=1e-3)


def test_a_constant_function_keeps_the_metric():
    kernel = Kernel("rbf", 1.0, np.ones(2, dtype=np.float32))
    assert (learnt_metric(kernel, np.ones((4, 2)), np.ones((4, 1))) == 1).all()


def test_city_distances_of_categories_are_those_of_plain_loops():
    rng = np.random.default_rng(0)
    A = np.c_[rng.normal(size=(30, 3)), rng.integers(0, 2, (30, 20))].astype(np.float32)
    B = np.c_[rng.normal(size=(40, 3)), 0.7 * rng.integers(0, 2, (40, 20))].astype(np.float32)
    A[:5, 5], B[:, 7] = 0.3, 0.25  # a value that B has not, and a constant
    pairs = (A, B), (B, None), (B[:, :3], None), (B[:1], None), (A[:1], B), (A[:, 3:], B[:, 3:])
    for left, right in pairs:
        other = left if right is None else right
        expected = [
            [sum(abs(float(a) - float(b)) for a, b in zip(x, z, strict=True)) for z in other]
            for x in left
        ]
        np.testing.assert_allclose(distances("city", left, right), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(distances("city", A[4:5], B), distances("city", A, B)[4:5])


@pytest.mark.parametrize("kind", ["rbf", "laplace-l1"])
def test_on_one_hot_columns_a_kernel_is_a_product_with_indicators_of_categories(kind):
    rng = np.random.default_rng(0)
    numbers, levels = rng.normal(size=(30, 2)), rng.integers(0, 4, size=30)
    metric, gamma = rng.uniform(0.2, 2, size=6).astype(np.float32), 0.7
    whole = Kernel(kind, gamma, metric)(np.hstack([numbers, np.eye(4)[levels]]))
    of_numbers = Kernel(kind, gamma, metric[:2])(numbers)
    weight = metric[2:] if kind == "rbf" else np.sqrt(metric[2:])
    a, b = levels[:, None], levels[None, :]
    differs = np.exp(-gamma * (weight[a] + weight[b]))
    np.testing.assert_allclose(whole, of_numbers * np.where(a == b, 1, differs), atol=1e-6)
