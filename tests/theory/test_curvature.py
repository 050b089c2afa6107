"""Second derivatives at the optimum: which directions are curved, how evenly, which flat."""

import numpy as np
import pytest
import torch

from cocoloss.geometry import similarity, simplex_frame
from cocoloss.losses import BalancedCoCoLoss, CoCoLoss, DotRegressionLoss

SHAPES = [
    ([3, 3], 1),
    ([3, 3], 3),
    ([3, 3, 3], 2),
    ([3, 3, 3], 4),
    ([1, 2, 4], 2),
    ([1, 2, 3, 4], 5),
    ([2, 2, 2, 2, 2], 4),
]


def optimum(counts, q, seed=0):
    """Embeddings on the simplex, and their labels."""
    y = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    return torch.tensor(simplex_frame(len(counts), q, random_state=seed))[y], y


def joint_hessian(loss, h, y):
    hessian = torch.autograd.functional.hessian(lambda x: loss(x, y), h)
    return hessian.reshape(h.numel(), h.numel())


def diagonal_block(loss, h, y, i):
    """Curvature of the loss in one sample while the others are frozen."""
    return torch.autograd.functional.hessian(lambda x: loss(x, y), h)[i, :, i, :]


def nonzero(eigenvalues):
    return eigenvalues[eigenvalues > 1e-9 * eigenvalues[-1]]


def off_span(q, counts, seed):
    """Random displacements of every sample, orthogonal to all class vectors."""
    h, y = optimum(counts, q)
    generator = torch.Generator().manual_seed(seed)
    u = torch.randn(h.shape, generator=generator, dtype=torch.float64)
    return h, y, u - u @ torch.linalg.pinv(h) @ h


def test_dot_regression_bends_along_one_direction_per_sample():
    h, y = optimum([2, 3, 2], 4, seed=1)
    n, q = h.shape
    loss = DotRegressionLoss(3, q, random_state=0).double()
    v = loss.prototypes[y]
    for i in range(n):
        block = diagonal_block(loss, h, y, i)
        torch.testing.assert_close(block, torch.outer(v[i], v[i]) / n)
    eigenvalues = torch.linalg.eigvalsh(joint_hessian(loss, h, y))
    assert len(nonzero(eigenvalues)) == n  # so n (q - 1) flat directions
    # The condition number by the paper's own definition, over eigenvalues that are not zero.
    assert nonzero(eigenvalues)[-1] / nonzero(eigenvalues)[0] == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(("n_classes", "q"), [(2, 1), (2, 3), (3, 2), (3, 5), (5, 4), (5, 7)])
def test_frozen_curvature_is_a_multiple_of_the_projector_on_the_span(n_classes, q):
    h, y = optimum([3] * n_classes, q)
    n = len(y)
    # The sum over unordered pairs, with 8 h h^T from the norm term where the paper has 2 h h^T.
    block = diagonal_block(CoCoLoss(n_classes, reduction="sum", normalize=False), h, y, 0)
    printed = block - 6 * torch.outer(h[0], h[0])
    torch.testing.assert_close(printed, 2 * h.T @ h)
    projector = torch.linalg.pinv(h) @ h
    torch.testing.assert_close(printed, 2 * n / (n_classes - 1) * projector)
    isotropic = torch.allclose(printed, 2 * n / q * torch.eye(q, dtype=torch.float64))
    assert isotropic == (q == n_classes - 1)


def class_moment(masses, q):
    s = simplex_frame(len(masses), q, random_state=0)
    return np.linalg.eigvalsh((s.T * masses) @ s)[-(len(masses) - 1) :]


@pytest.mark.parametrize("masses", [[1, 1, 9], [1, 3, 9], [1, 2, 3, 4, 50], [7, 7, 7]])
def test_imbalanced_curvature_interlaces_with_the_class_masses(masses):
    n_classes = len(masses)
    values = class_moment(np.array(masses), n_classes + 1) * (n_classes - 1) / n_classes
    assert (values >= np.array(masses[:-1]) - 1e-9).all()
    assert (values <= np.array(masses[1:]) + 1e-9).all()
    assert values[-1] / values[0] <= masses[-1] / masses[0] + 1e-9


def test_the_ratio_of_class_masses_is_attained_by_twins_at_both_ends():
    values = class_moment(np.array([2, 2, 14, 14]), 3)
    assert values[-1] / values[0] == pytest.approx(7)


def test_balancing_replaces_the_ratio_of_classes_by_its_root():
    counts = np.array([4, 4, 64, 64])
    masses = counts * (len(counts) * counts / counts.sum()) ** -0.5
    values = class_moment(masses, 3)
    assert values[-1] / values[0] == pytest.approx(4)
    h, y = optimum(counts.tolist(), 3)
    weight = torch.tensor((len(counts) * counts / counts.sum()) ** -0.5)[y]
    balanced = BalancedCoCoLoss(counts / counts.sum(), normalize=False)
    torch.testing.assert_close(  # the masses above are those of the loss
        torch.as_tensor(balanced.summarise(balanced.check_batch(h, y, None)).mass[0]),
        torch.zeros(4, dtype=torch.float64).index_add(0, y, weight),
    )


@pytest.mark.parametrize(("counts", "q"), SHAPES)
def test_joint_curvature_vanishes_off_the_span_and_along_rotations_only(counts, q):
    h, y = optimum(counts, q)
    n, r = len(y), len(counts) - 1
    eigenvalues = torch.linalg.eigvalsh(joint_hessian(CoCoLoss(r + 1, normalize=False), h, y))
    assert eigenvalues[0] > -1e-12
    nullity = len(eigenvalues) - len(nonzero(eigenvalues))
    assert nullity == n * (q - r) + r * (r - 1) // 2


def test_a_batch_without_some_class_follows_the_rank_of_its_own_vectors():
    h, y = optimum([3, 2, 0, 0], 5)
    eigenvalues = torch.linalg.eigvalsh(joint_hessian(CoCoLoss(4, normalize=False), h, y))
    assert len(eigenvalues) - len(nonzero(eigenvalues)) == 5 * (5 - 2) + 1


def test_two_classes_leave_as_many_flat_directions_as_dot_regression():
    h, y = optimum([3, 3], 4)
    coco = torch.linalg.eigvalsh(joint_hessian(CoCoLoss(2, normalize=False), h, y))
    dot = DotRegressionLoss(2, 4, random_state=0).double()
    dot_regression = torch.linalg.eigvalsh(joint_hessian(dot, h, y))
    assert len(nonzero(coco)) == len(nonzero(dot_regression)) == 6


@pytest.mark.parametrize(("n_classes", "q"), [(3, 2), (3, 4), (4, 3), (5, 6)])
def test_joint_condition_number_is_twice_the_number_of_classes(n_classes, q):
    h, y = optimum([2] * n_classes, q)
    n = len(y)
    loss = CoCoLoss(n_classes, normalize=False)
    values = nonzero(torch.linalg.eigvalsh(joint_hessian(loss, h, y)))
    unit = 4 / ((n + 1) * (n_classes - 1))
    C = n_classes
    root = (4 * C**2 - 4 * C - 7) ** 0.5
    expected = {1, 2 * C - 1, 2 * C, (2 * C + 1 - root) / 2, (2 * C + 1 + root) / 2}
    expected |= {2} if C > 3 else set()
    found = np.unique((values / unit).numpy().round(6))
    np.testing.assert_allclose(found, sorted(expected), rtol=1e-5)


@pytest.mark.parametrize("q", [1, 3])
def test_joint_condition_number_of_two_classes_is_four_thirds(q):
    h, y = optimum([3, 3], q)
    values = nonzero(torch.linalg.eigvalsh(joint_hessian(CoCoLoss(2, normalize=False), h, y)))
    assert values[-1] / values[0] == pytest.approx(4 / 3)


@pytest.mark.parametrize(("n_classes", "q"), [(3, 2), (4, 5), (5, 4)])
def test_the_pair_sum_alone_has_two_curvatures_one_twice_the_other(n_classes, q):
    h, y = optimum([2] * n_classes, q)
    G = torch.tensor(similarity("simplex", n_classes))[y][:, y]
    hessian = torch.autograd.functional.hessian(lambda x: (x @ x.T - G).square().sum(), h)
    values = nonzero(torch.linalg.eigvalsh(hessian.reshape(h.numel(), -1)))
    unit = 4 * len(y) / (n_classes - 1)
    np.testing.assert_allclose(np.unique((values / unit).numpy().round(6)), [1, 2])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("counts", "q"), [([3, 3], 3), ([1, 2, 4], 5)])
def test_off_the_span_the_loss_is_exactly_a_fourth_power(counts, q, seed):
    h, y, u = off_span(q, counts, seed)
    n = len(y)
    gram = (u @ u.T).square()
    coefficient = gram.sum() / (n * (n + 1)) + gram.diagonal().sum() / (n + 1)
    for size in (0.01, 0.1, 1.0, 10.0):
        value = CoCoLoss(len(counts), normalize=False)(h + size * u, y)
        assert value.item() == pytest.approx(coefficient.item() * size**4, rel=1e-6)


def test_dot_regression_does_not_grow_at_all_off_its_vectors():
    h, y, u = off_span(5, [2, 2, 2], seed=0)
    loss = DotRegressionLoss(3, 5, random_state=0).double()
    loss.prototypes = torch.tensor(simplex_frame(3, 5, random_state=0))
    assert loss(h + 100 * u, y) < 1e-20


def test_gradient_descent_is_linear_on_the_span_and_sublinear_off_it():
    def losses_after(h, y, steps):
        loss = CoCoLoss(3, normalize=False)
        rate = (len(y) + 1) * 2 / 24  # one over the largest curvature
        values = []
        for step in range(max(steps) + 1):
            value, gradient = loss.value_and_grad(h, y)
            if step in steps:
                values.append(value.item())
            h = h - rate * gradient
        return values

    h, y, u = off_span(4, [2, 2, 2], seed=0)
    early, late = losses_after(h + 0.3 * u, y, [1500, 6000])
    assert early / late == pytest.approx(4**2, rel=0.05)  # loss ~ 1 / steps^2
    generator = torch.Generator().manual_seed(0)
    h, y = optimum([2, 2, 2], 2)
    start = h + 0.1 * torch.randn(h.shape, generator=generator, dtype=torch.float64)
    assert losses_after(start, y, [400])[0] < 1e-25
