"""How far a random embedding is from the solutions of each loss: one by one, and jointly."""

import numpy as np
import pytest
import torch
from scipy import special, stats

from cocoloss.geometry import simplex_frame
from cocoloss.losses import CoCoLoss, DotRegressionLoss


def mean_distance_to_hyperplane(s):
    """E|v.h - 1| for h ~ N(0, s^2 I) and a unit vector v."""
    return s * np.sqrt(2 / np.pi) * np.exp(-1 / (2 * s**2)) + special.erf(1 / (s * np.sqrt(2)))


def mean_distance_to_sphere(s, q):
    """E| |h| - 1 | for h ~ N(0, s^2 I_q): the norm is s times a chi variable."""
    mean = s * stats.chi(q).mean()
    below = stats.chi(q).cdf(1 / s) - mean * stats.chi(q + 1).cdf(1 / s)  # E max(0, 1 - |h|)
    return mean - 1 + 2 * below


def squared_distance_to_coco(h, targets):
    return (h**2).sum() + len(h) - 2 * np.linalg.norm(h.T @ targets, "nuc")


def squared_distance_to_dot_regression(h, targets):
    return (((h * targets).sum(1) - 1) ** 2).sum()


def distances(n_classes, q, n, s, n_draws=100):
    generator = np.random.default_rng(0)
    targets = simplex_frame(n_classes, q, random_state=0)[np.arange(n) % n_classes]
    draws = [s * generator.standard_normal((n, q)) for _ in range(n_draws)]
    coco = np.array([squared_distance_to_coco(h, targets) for h in draws])
    dot = np.array([squared_distance_to_dot_regression(h, targets) for h in draws])
    return coco, dot


def test_inside_the_unit_ball_the_sphere_is_nearer_than_the_hyperplane():
    generator = np.random.default_rng(0)
    h = generator.standard_normal((10_000, 3))
    h *= (generator.random(10_000) / np.linalg.norm(h, axis=1))[:, None]  # |h| < 1
    assert (np.abs(h[:, 0] - 1) >= np.abs(np.linalg.norm(h, axis=1) - 1)).all()


def test_outside_the_unit_ball_it_need_not_be():
    h = np.array([1.0, 3.0])  # v = (1, 0): on the hyperplane, far from the sphere
    assert abs(h[0] - 1) == 0
    assert abs(np.linalg.norm(h) - 1) > 2


@pytest.mark.parametrize(("s", "q"), [(1.0, 4), (1.0, 6), (0.5, 4)])
def test_closed_forms_are_the_averages_of_samples(s, q):
    h = s * np.random.default_rng(0).standard_normal((200_000, q))
    sphere = np.abs(np.linalg.norm(h, axis=1) - 1).mean()
    assert sphere == pytest.approx(mean_distance_to_sphere(s, q), rel=0.01)
    assert np.abs(h[:, 0] - 1).mean() == pytest.approx(mean_distance_to_hyperplane(s), rel=0.01)


def test_a_start_at_unit_norm_is_nearer_to_the_sphere_in_every_dimension():
    q = np.arange(1, 2001)
    s = q**-0.5
    assert (mean_distance_to_sphere(s, q) < mean_distance_to_hyperplane(s)).all()


def test_a_start_of_unit_variance_is_nearer_to_the_hyperplane_from_six_dimensions_on():
    q = np.arange(1, 2001)
    farther = mean_distance_to_sphere(1.0, q) > mean_distance_to_hyperplane(1.0)
    assert q[farther].tolist() == list(range(6, 2001))
    assert round(float(mean_distance_to_hyperplane(1.0)), 4) == 1.1666
    assert np.round(mean_distance_to_sphere(1.0, np.array([5, 6, 16])), 4).tolist() == [
        1.1413,
        1.3544,
        2.9380,
    ]


def test_the_procrustes_distance_ends_on_a_solution():
    generator = np.random.default_rng(0)
    y = np.arange(12) % 3
    targets = simplex_frame(3, 5, random_state=0)[y]
    h = generator.standard_normal((12, 5))
    left, _, right = np.linalg.svd(targets.T @ h)
    nearest = targets @ (left @ right)
    assert CoCoLoss(3, normalize=False)(torch.tensor(nearest), torch.tensor(y)) < 1e-20
    distance = squared_distance_to_coco(h, targets)
    assert ((h - nearest) ** 2).sum() == pytest.approx(distance)
    others = (targets @ np.linalg.qr(generator.standard_normal((5, 5)))[0] for _ in range(200))
    assert min(((h - other) ** 2).sum() for other in others) >= distance


def test_the_distance_to_dot_regression_ends_on_a_solution():
    h = np.random.default_rng(0).standard_normal((12, 5))
    y = torch.arange(12) % 3
    loss = DotRegressionLoss(3, 5, random_state=0).double()
    v = loss.prototypes[y].numpy()
    v = v / np.linalg.norm(v, axis=1, keepdims=True)  # the prototypes are kept in float32
    nearest = h - ((h * v).sum(1) - 1)[:, None] * v
    assert loss(torch.tensor(nearest), y) < 1e-12
    expected = squared_distance_to_dot_regression(h, v)
    assert ((h - nearest) ** 2).sum() == pytest.approx(expected)


@pytest.mark.parametrize("start", ["unit norm", "unit variance"])
@pytest.mark.parametrize(("n_classes", "q"), [(2, 4), (3, 16), (10, 16)])
def test_jointly_the_solutions_of_coco_are_farther_once_the_batch_is_large(n_classes, q, start):
    s = q**-0.5 if start == "unit norm" else 1.0
    threshold = 4 * q * (n_classes - 1) / ((q - 1) ** 2 * s**2)
    n = int(threshold) + 50
    coco, dot = distances(n_classes, q, n, s)
    assert coco.mean() > dot.mean()
    lower_bound = n * (1 + q * s**2) - 2 * s * np.sqrt(q * n * (n_classes - 1))
    assert coco.mean() > 0.98 * lower_bound  # of the expectation; these are a hundred draws
    assert dot.mean() == pytest.approx(n * (1 + s**2), rel=0.1)


def test_jointly_they_are_nearer_for_one_sample_per_class_at_unit_norm():
    coco, dot = distances(10, 16, 10, 16**-0.5)
    assert (coco < dot).all()


def test_the_joint_ratio_of_distances_tends_to_the_root_of_two_at_unit_norm():
    coco, dot = distances(3, 64, 4000, 64**-0.5, n_draws=3)
    assert np.sqrt(coco.mean() / dot.mean()) == pytest.approx(np.sqrt(2), rel=0.03)
