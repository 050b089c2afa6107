"""What a search finds, that a recipe can be fitted anew, and landmarks and leaves beside it."""

import numpy as np
import pytest

from cocoloss.exceptions import CoCoError
from cocoloss.kernels import (
    Kernel,
    KernelMachine,
    LandmarkPath,
    Landmarks,
    find_leaf_setting,
    find_recipe,
    fit_leaves,
    fit_recipe,
    grow,
    machine_of,
    solve,
)
from cocoloss.kernels.machine import Tree
from cocoloss.kernels.search import Setting


def wave(n, seed=0, noise=0.1):
    """Rows of which two of six columns matter, and two target points' coordinates."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 6)).astype(np.float32)
    V = np.c_[np.sin(4 * X[:, 0]), np.sign(X[:, 1])] + noise * rng.normal(size=(n, 2))
    return X, V, np.ones(n)


def mean_square(V, weights):
    def loss(solution):
        return float(np.square(V - solution.leave_one_out(V, weights)).mean())

    return loss


@pytest.fixture(scope="module")
def found():
    X, V, w = wave(250)
    return (X, V, w, *find_recipe(X, V, w, mean_square(V, w)))


def test_a_search_averages_the_best_few_and_finds_the_columns(found):
    X, V, _, recipe, members = found
    losses = [setting.loss for setting in recipe.members]
    assert 1 <= len(members) <= 4
    assert losses == sorted(losses)
    assert losses[-1] <= 1.1 * losses[0] + 0.005
    assert len({(s.kind, s.round) for s in recipe.members}) == len(members)
    metric = next(m.kernel.metric for m in members if m.setting.round > 0)
    assert metric[:2].min() > 5 * metric[2:].max()
    Z, truth, _ = wave(300, seed=1, noise=0.0)
    error = np.square(machine_of(X, members)(Z) - truth).mean()
    alone = Kernel("rbf", 0.5, np.ones(6, dtype=np.float32))
    plain = alone(Z, X) @ solve(alone(X), V, np.ones(250), 0.1).alpha
    assert error < 0.7 * np.square(plain - truth).mean()


def test_a_recipe_fitted_to_the_same_rows_is_what_was_found(found):
    X, V, w, recipe, members = found
    again = machine_of(X, fit_recipe(recipe, X, V, w))
    Z = wave(50, seed=2)[0]
    np.testing.assert_allclose(again(Z), machine_of(X, members)(Z), atol=2e-3)


def test_a_search_says_the_same_twice(found):
    X, V, w, recipe, _ = found
    assert find_recipe(X, V, w, mean_square(V, w))[0] == recipe


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_row_or_two_are_enough(n):
    X, V, w = wave(n)
    _, members = find_recipe(X, V, w, mean_square(V, w))
    assert np.isfinite(machine_of(X, members)(X)).all()


def test_constant_columns_do_no_harm():
    X, V, w = wave(40)
    X[:, 2:] = 7
    _, members = find_recipe(X, V, w, mean_square(V, w))
    assert np.isfinite(machine_of(X, members)(X)).all()


KERNEL = Kernel("laplace-l1", 0.5, np.ones(6, dtype=np.float32))


def test_all_rows_as_landmarks_are_the_exact_solution():
    X, V, _ = wave(120)
    w = np.random.default_rng(3).uniform(0.5, 2, size=120)
    landmarks = Landmarks.of(KERNEL, X)
    path = LandmarkPath.of(landmarks, landmarks.sums(X, V, w))
    exact = solve(KERNEL(X).astype(np.float64), V, w, 0.3)
    np.testing.assert_allclose(path.alpha(0.3), exact.alpha, atol=5e-3)
    solution = path.solution(X, 0.3)
    np.testing.assert_allclose(solution.fitted, exact.fitted, atol=1e-3)
    np.testing.assert_allclose(solution.leverage, exact.leverage, atol=1e-3)


def test_sums_over_blocks_are_the_sums_over_all(monkeypatch):
    X, V, w = wave(500)
    landmarks = Landmarks.of(KERNEL, X[:50])
    whole = landmarks.sums(X, V, w)
    halves = landmarks.sums(X[:123], V[:123], w[:123]) + landmarks.sums(X[123:], V[123:], w[123:])
    monkeypatch.setattr("cocoloss.heads.fitted.BLOCK_NUMBERS", 1000)
    small = landmarks.sums(X, V, w)
    for other in (halves, small):
        np.testing.assert_allclose(other.gram, whole.gram, atol=1e-6)
        np.testing.assert_allclose(other.cross, whole.cross, atol=1e-6)


@pytest.mark.parametrize(("n", "width"), [(400, 0.02), (1000, 1.0)])
def test_smooth_kernels_of_many_landmarks_in_one_dimension_can_be_solved(n, width):
    """Their matrix has eigenvalues below what float32 rounds away: some are negative."""
    x = np.random.default_rng(0).normal(size=(n, 1)).astype(np.float32)
    kernel = Kernel("rbf", width, np.ones(1, np.float32))
    assert np.linalg.eigvalsh(kernel(x).astype(np.float64))[0] < -1e-6
    landmarks = Landmarks.of(kernel, x)
    path = LandmarkPath.of(landmarks, landmarks.sums(x, np.sin(x), np.ones(n)))
    fitted = path.solution(x, 0.01).fitted
    assert np.corrcoef(fitted.ravel(), np.sin(x).ravel())[0, 1] > 0.8


@pytest.mark.parametrize("kind", ["rbf", "laplace"])
def test_landmarks_stay_exact_at_small_ridges(kind):
    """Float32 sums would not: the whitener of a smooth kernel magnifies their rounding."""
    X, V, w = wave(2000)
    kernel = Kernel(kind, 0.3, np.ones(6, dtype=np.float32))
    landmarks = Landmarks.of(kernel, X[:300])
    path = LandmarkPath.of(landmarks, landmarks.sums(X, V, w))
    solution = path.solution(X, 1e-3)
    left_out = solution.leave_one_out(V, w)
    assert np.square(V - solution.fitted).mean() < np.square(V - left_out).mean() < 0.5
    machine = KernelMachine(X[:300], (kernel,), solution.alpha[None].astype(np.float32))
    np.testing.assert_allclose(machine(X), solution.fitted, atol=2e-2)


def test_a_tree_puts_every_row_into_one_leaf_of_bounded_size():
    X, _, _ = wave(1000)
    X[:, 3] = X[:, 3] > 0.9  # a column whose median tells nothing apart
    tree = grow(X, np.ones(6, dtype=np.float32), np.random.default_rng(0), 120)
    parts = tree.parts(X)
    assert sorted(np.concatenate(parts)) == list(range(1000))
    assert max(map(len, parts)) <= 120
    assert len(parts) == len(tree.machines) == len(tree.children) + 1
    again = Tree.from_state({**tree.to_state(), "machines": [None] * len(parts)}, 6, 0)
    assert all(map(np.array_equal, again.parts(X), parts))


def test_equal_rows_are_one_leaf():
    ones = np.ones((50, 2), dtype=np.float32)
    (leaf,) = grow(ones, ones[0], np.random.default_rng(0), 10).parts(ones)
    assert len(leaf) == 50


def cyclic(children):
    children[-1, 0] = 0


def twice(children):
    children[0] = children[0, 0]


@pytest.mark.parametrize("damage", [cyclic, twice])
def test_a_strangers_tree_that_is_none_is_refused(damage):
    X, _, _ = wave(200)
    tree = grow(X, np.ones(6, dtype=np.float32), np.random.default_rng(0), 40)
    state = tree.to_state() | {"children": tree.children.copy()}
    damage(state["children"])
    with pytest.raises(CoCoError, match="the cuts of a tree are none"):
        Tree.from_state(state, 6, 0)


def test_leaves_mend_what_is_local():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(1500, 2)).astype(np.float32)
    V = np.sign(np.sin(9 * X[:, :1]) * np.sin(9 * X[:, 1:]))
    w = np.ones(1500)
    kernel = Kernel("laplace", 0.5, np.ones(2, dtype=np.float32))
    landmarks = Landmarks.of(kernel, X[:20])
    solution = LandmarkPath.of(landmarks, landmarks.sums(X, V, w)).solution(X, 0.1)
    left_out = solution.leave_one_out(V, w)
    cuts = grow(X, kernel.metric, np.random.default_rng(1), 400)
    setting = find_leaf_setting(kernel.metric, X, V - left_out, w, cuts, (0.03, 0.3))
    tree, added = fit_leaves(setting, kernel.metric, X, V - left_out, w, cuts)
    before, after = np.square(V - left_out).mean(), np.square(V - left_out - added).mean()
    assert after < 0.5 * before
    Z = rng.uniform(-1, 1, size=(500, 2)).astype(np.float32)
    truth = np.sign(np.sin(9 * Z[:, :1]) * np.sin(9 * Z[:, 1:]))
    alpha = solution.alpha[None].astype(np.float32)
    machine = KernelMachine(X[:20], (kernel,), alpha, (tree,))
    error = np.square(truth - machine(Z)).mean()
    again = KernelMachine.from_state(machine.to_state())
    np.testing.assert_array_equal(again(Z), machine(Z))
    assert error == pytest.approx(after, rel=0.3)
    held = {row.tobytes() for leaf in tree.machines if leaf for row in leaf.rows}
    assert machine.n_rows == len(held | {row.tobytes() for row in X[:20]}) > 1000


def test_leaves_that_do_not_help_stay_out():
    X, _, w = wave(300)
    V = np.random.default_rng(0).normal(size=(300, 1))  # nothing to learn
    setting = Setting("laplace", 0.3, 0.1, 0)
    metric = np.ones(6, dtype=np.float32)
    cuts = grow(X, metric, np.random.default_rng(0), 100)
    tree, added = fit_leaves(setting, metric, X, V, w, cuts)
    assert np.square(V - added).mean() <= np.square(V).mean()
    assert sum(machine is not None for machine in tree.machines) < len(tree.machines)


def test_solutions_of_several_ridges_are_those_of_each():
    X, V, w = wave(400)
    landmarks = Landmarks.of(Kernel("laplace", 0.5, np.ones(6, dtype=np.float32)), X[:50])
    path = LandmarkPath.of(landmarks, landmarks.sums(X, V, w))
    ridges = (0.01, 1.0, 100.0)
    for ridge, one in zip(ridges, path.solutions(X, ridges), strict=True):
        alone = path.solution(X, ridge)
        np.testing.assert_allclose(one.fitted, alone.fitted, atol=1e-4)
        np.testing.assert_allclose(one.leverage, alone.leverage, rtol=1e-3, atol=1e-6)
        np.testing.assert_array_equal(one.alpha, alone.alpha)


def test_a_search_ends_when_it_is_told_to():
    X, V, w = wave(100)
    heard = []

    def goes_on(setting):
        heard.append(setting)
        return len(heard) < 3

    recipe, members = find_recipe(X, V, w, mean_square(V, w), goes_on=goes_on)
    assert len(heard) == 3
    assert set(recipe.members) <= set(heard)
    assert recipe.path == ()
    assert len(members) == len(recipe.members)
