"""The pair loss estimates the conditional mean of the target points; what the norms cost."""

import numpy as np
import pytest
from scipy.optimize import minimize

from cocoloss.geometry import simplex_frame
from cocoloss.kernels import Kernel, LandmarkPath, Landmarks, solve

POSTERIORS = np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.95])  # of the second class, at six equal x


def population_minimiser(m, q, norm_weight):
    """Minimise E(<h,h'> - <m,m'>)^2 + norm_weight E(|h|^2 - 1)^2 over h at each x, (x, q)."""
    n = len(m)

    def value_and_gradient(flat):
        H = flat.reshape(n, q)
        pairs = H @ H.T - m @ m.T
        norms = np.square(H).sum(axis=1) - 1
        value = np.square(pairs).mean() + norm_weight * np.square(norms).mean()
        gradient = 4 * pairs @ H / n**2 + 4 * norm_weight * norms[:, None] * H / n
        return value, gradient.ravel()

    rng = np.random.default_rng(0)
    runs = [
        minimize(
            value_and_gradient,
            rng.normal(size=n * q) / 2,
            jac=True,
            method="BFGS",
            options={"gtol": 1e-10},
        )
        for _ in range(5)
    ]
    return min(runs, key=lambda run: run.fun).x.reshape(n, q)


def read_posteriors(H, m):
    """Read (h + 1) / 2 along the direction in which the embedding goes with the classes."""
    direction = H.T @ m[:, 0]
    return (H @ direction / np.linalg.norm(direction) + 1) / 2


@pytest.mark.parametrize(
    ("q", "norm_weight", "read"),
    [
        (1, 0.0, POSTERIORS),
        (8, 0.0, POSTERIORS),
        (2, 0.1, [0.05, 0.17, 0.38, 0.62, 0.83, 0.95]),
        (2, 1.0, [0.03, 0.07, 0.36, 0.64, 0.93, 0.97]),
        (8, 1.0, [0.05, 0.15, 0.37, 0.63, 0.85, 0.95]),
    ],
)
def test_the_norm_term_makes_the_posterior_overconfident(q, norm_weight, read):
    m = (2 * POSTERIORS - 1)[:, None]
    H = population_minimiser(m, q, norm_weight)
    np.testing.assert_allclose(read_posteriors(H, m), read, atol=6e-3)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_the_minimiser_of_the_pairs_is_a_rotated_conditional_mean(n_classes):
    rng = np.random.default_rng(n_classes)
    posteriors = rng.dirichlet(np.ones(n_classes), size=9)
    frame = simplex_frame(n_classes, n_classes)
    m = posteriors @ frame
    H = population_minimiser(m, n_classes + 1, 0.0)
    np.testing.assert_allclose(H @ H.T, m @ m.T, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_posteriors_are_read_off_the_mean_point(n_classes):
    posteriors = np.random.default_rng(0).dirichlet(np.ones(n_classes), size=5)
    frame = simplex_frame(n_classes, n_classes)
    m = posteriors @ frame
    read = ((n_classes - 1) * m @ frame.T + 1) / n_classes
    np.testing.assert_allclose(read, posteriors, atol=1e-12)


def test_the_closed_form_finds_the_posterior_of_a_known_distribution():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(3000, 1))
    posterior = 0.5 + 0.4 * np.sin(2 * x[:, 0])
    y = (rng.random(3000) < posterior).astype(int)
    frame = simplex_frame(2, 1)
    kernel = Kernel("rbf", 1.0, np.ones(1, dtype=np.float32))
    alpha = solve(kernel(x), frame[y], np.ones(3000), 3.0).alpha
    grid = np.linspace(-0.9, 0.9, 19)[:, None]
    read = (kernel(grid, x) @ alpha @ frame[1] + 1) / 2
    np.testing.assert_allclose(read, 0.5 + 0.4 * np.sin(2 * grid[:, 0]), atol=0.08)


def test_the_leverage_form_is_leaving_a_row_out_of_the_sums():
    """Landmarks stay where they are; a row leaves the sums."""
    rng = np.random.default_rng(1)
    X, V, w = rng.normal(size=(60, 2)), rng.normal(size=(60, 2)), rng.uniform(0.5, 2, size=60)
    landmarks = Landmarks.of(Kernel("laplace", 0.5, np.ones(2, dtype=np.float32)), X[:20])
    path = LandmarkPath.of(landmarks, landmarks.sums(X, V, w))
    left_out = path.solution(X, 0.3).leave_one_out(V, w)
    for i in (0, 7, 41):
        rest = np.arange(60) != i
        without = LandmarkPath.of(landmarks, landmarks.sums(X[rest], V[rest], w[rest]))
        expected = landmarks.kernel(X[i : i + 1], landmarks.rows) @ without.alpha(0.3)
        np.testing.assert_allclose(left_out[i], expected[0], atol=1e-3)
