"""What holds where the loss is zero, and which other points can hold an optimiser."""

import numpy as np
import pytest
import torch

from cocoloss.geometry import similarity, simplex_frame
from cocoloss.losses import BalancedCoCoLoss, CoCoLoss
from cocoloss.metrics import neural_collapse
from oracles import minimise


def labels_of(counts):
    return torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))


def unit_start(n, q, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, q, generator=generator, dtype=torch.float64) / q**0.5


def smallest_eigenvalues(loss, h, y):
    hessian = torch.autograd.functional.hessian(lambda x: loss(x, y), h)
    return torch.linalg.eigvalsh(hessian.reshape(h.numel(), h.numel()))


def class_means(h, y):
    return torch.stack([h[y == c].mean(0) for c in range(int(y.max()) + 1)])


@pytest.mark.parametrize("counts", [[4, 4], [2, 9], [4, 4, 4], [2, 3, 6], [4] * 5, [2, 2, 3, 3, 6]])
def test_neural_collapse_is_complete_where_the_loss_vanishes_without_spare_dimensions(counts):
    n_classes, y = len(counts), labels_of(counts)
    loss = CoCoLoss(n_classes, normalize=False)
    h = minimise(lambda x: loss(x, y), unit_start(len(y), n_classes - 1, seed=0))
    assert loss(h, y) < 1e-16
    result = neural_collapse(h, y, weights=3 * class_means(h, y))
    assert max(result.nc1, result.nc2, result.nc2_norms, result.nc2_angles, result.nc3) < 1e-7
    assert result.nc4 == 0


@pytest.mark.parametrize("counts", [[4, 4], [2, 9], [2, 3, 6], [2, 2, 3, 3, 6]])
def test_neural_collapse_is_approached_slowly_with_spare_dimensions(counts):
    n_classes, y = len(counts), labels_of(counts)
    loss = CoCoLoss(n_classes, normalize=False)
    h = minimise(lambda x: loss(x, y), unit_start(len(y), n_classes + 2, seed=0))
    assert 1e-16 < loss(h, y) < 1e-5  # the same optimiser and steps as above
    result = neural_collapse(h, y, weights=class_means(h, y))
    assert max(result.nc1, result.nc2, result.nc2_norms, result.nc2_angles, result.nc3) < 1e-2
    assert result.nc4 == 0


@pytest.mark.parametrize("seed", range(3))
def test_nearest_mean_and_largest_product_agree_everywhere_on_the_simplex(seed):
    generator = np.random.default_rng(seed)
    means = simplex_frame(5, 7, random_state=seed)
    anywhere = 10 * generator.standard_normal((1000, 7))
    distances = np.linalg.norm(anywhere[:, None] - means, axis=-1)
    assert (distances.argmin(1) == (anywhere @ means.T).argmax(1)).all()


@pytest.mark.parametrize(("counts", "dual"), [([6, 6, 6], True), ([2, 4, 12], False)])
def test_a_fitted_ridge_classifier_is_self_dual_for_balanced_classes_only(counts, dual):
    y = labels_of(counts)
    h = simplex_frame(3, 2, random_state=0)[y]
    one_hot = np.eye(3)[y]
    centred = h - h.mean(0)
    weights = np.linalg.solve(
        centred.T @ centred + 5 * np.eye(2), centred.T @ (one_hot - one_hot.mean(0))
    ).T
    assert (neural_collapse(h, y, weights).nc3 < 1e-12) == dual


def test_the_induced_kernel_is_positive_semi_definite():
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3)
    ).double()
    with torch.no_grad():
        h = network(torch.randn(50, 4, dtype=torch.float64))
    eigenvalues = torch.linalg.eigvalsh(h @ h.T)
    assert eigenvalues[0] >= -1e-12 * eigenvalues[-1]
    assert (eigenvalues > 1e-12 * eigenvalues[-1]).sum() == 3  # rank q, not N


@pytest.mark.parametrize("merged", [[0, 0, 0], [0, 0, 1]], ids=["all at zero", "two merged"])
def test_zero_and_merged_classes_are_strict_saddles_of_balanced_batches(merged):
    y = labels_of([3, 3, 3])
    loss = CoCoLoss(3, normalize=False)
    if merged == [0, 0, 0]:
        h = torch.zeros(9, 3, dtype=torch.float64)
    else:
        line = torch.tensor([[-0.6, 0.0, 0.0], [0.9, 0.0, 0.0]], dtype=torch.float64)
        h = minimise(lambda x: loss(x, y), line[torch.tensor(merged)[y]])  # stays on the line
    _, gradient = loss.value_and_grad(h, y)
    assert gradient.norm() < 1e-7
    assert loss(h, y) > 0.1
    assert smallest_eigenvalues(loss, h, y)[0] < -0.01


@pytest.fixture
def merged_minority():
    """Two classes of one sample each, beside a class of thirty: the two have merged."""
    y = labels_of([1, 1, 30])
    places = torch.tensor([[0.5, 0.8], [0.5, 0.8], [-1.0, 0.0]], dtype=torch.float64)
    loss = CoCoLoss(3, normalize=False)
    return loss, minimise(lambda x: loss(x, y), places[y]), y


def test_rare_classes_can_merge_for_good_without_a_spare_dimension(merged_minority):
    loss, h, y = merged_minority
    _, gradient = loss.value_and_grad(h, y)
    torch.testing.assert_close(h[0], h[1])
    assert gradient.norm() < 1e-7
    assert round(loss(h, y).item(), 5) == 0.00414
    rotation, *others = smallest_eigenvalues(loss, h, y)
    assert abs(rotation) < 1e-7
    assert min(others) > 1e-3  # a minimum, and not the global one


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize(("ratio", "stable"), [(1, False), (4, False), (5, True), (10, True)])
def test_merging_becomes_stable_when_the_large_class_is_five_times_the_small_ones(n, ratio, stable):
    y = labels_of([n, n, ratio * n])
    places = torch.tensor([[0.5, 0.8], [0.5, 0.8], [-1.0, 0.0]], dtype=torch.float64)
    loss = CoCoLoss(3, normalize=False)
    h = minimise(lambda x: loss(x, y), places[y])
    torch.testing.assert_close(h[0], h[n])
    assert loss.value_and_grad(h, y)[1].norm() < 1e-6
    assert (smallest_eigenvalues(loss, h, y)[0] > -1e-6) == stable


def test_the_pair_sum_alone_has_no_such_minimum(merged_minority):
    _, h, y = merged_minority
    G = torch.tensor(similarity("simplex", 3))[y][:, y]
    start = h + 1e-3 * unit_start(*h.shape, seed=0)
    found = minimise(lambda x: (x @ x.T - G).square().mean(), start)
    assert (found @ found.T - G).square().mean() < 1e-16


def test_balancing_makes_it_rarer_and_does_not_remove_it(merged_minority):
    plain, h, y = merged_minority
    balanced = BalancedCoCoLoss([1 / 32, 1 / 32, 30 / 32], normalize=False)
    stuck = minimise(lambda x: balanced(x, y), h)
    rotation, *others = smallest_eigenvalues(balanced, stuck, y)
    assert balanced(stuck, y) > 0.04
    assert abs(rotation) < 1e-7
    assert min(others) > 1e-3

    def n_stuck(loss):
        ends = (minimise(lambda x: loss(x, y), unit_start(32, 2, seed), 80) for seed in range(5))
        return sum(loss(end, y).item() > 1e-3 for end in ends)

    assert n_stuck(balanced) < n_stuck(plain)


def test_one_spare_dimension_lets_merged_classes_part(merged_minority):
    loss, h, y = merged_minority
    flat = torch.cat([h, torch.zeros(len(y), 1, dtype=torch.float64)], dim=1)
    assert smallest_eigenvalues(loss, flat, y)[0] < -1e-4
    found = minimise(lambda x: loss(x, y), flat + 1e-3 * unit_start(*flat.shape, seed=0))
    assert loss(found, y) < 1e-5


def test_off_span_curvature_is_the_residual_matrix():
    generator = torch.Generator().manual_seed(0)
    y = labels_of([2, 3, 4])
    h = torch.randn(9, 2, generator=generator, dtype=torch.float64)
    flat = torch.cat([h, torch.zeros(9, 1, dtype=torch.float64)], dim=1)
    hessian = torch.autograd.functional.hessian(lambda x: CoCoLoss(3, normalize=False)(x, y), flat)
    residual = h @ h.T - torch.tensor(similarity("simplex", 3))[y][:, y]
    R = residual / (9 * 10) + residual.diagonal().diag() / 10
    torch.testing.assert_close(hessian[:, 2, :, 2], 4 * R)
    torch.testing.assert_close(CoCoLoss(3, normalize=False).value_and_grad(h, y)[1], 4 * R @ h)
