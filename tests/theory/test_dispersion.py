"""What a small loss says about the width of the classes: nothing for one, a bound for the other."""

import numpy as np
import pytest
import torch

from cocoloss.geometry import simplex_frame
from cocoloss.losses import CoCoLoss, DotRegressionLoss
from cocoloss.metrics import ClassMoments, dispersity


@pytest.fixture
def dot_regression():
    loss = DotRegressionLoss(3, 5, random_state=0).double()
    loss.prototypes = torch.tensor(simplex_frame(3, 5, random_state=0))  # all digits
    return loss


def spread_at_zero_loss(loss, size):
    """Embeddings h = v + anything orthogonal to v."""
    y = torch.arange(300) % 3
    v = loss.prototypes[y]
    generator = torch.Generator().manual_seed(0)
    u = torch.randn(v.shape, generator=generator, dtype=torch.float64)
    u = u - (u * v).sum(1, keepdim=True) * v
    return v + size * u, y


def test_dot_regression_is_content_with_classes_of_any_width(dot_regression):
    widths = []
    for size in (0.1, 1.0, 10.0):
        h, y = spread_at_zero_loss(dot_regression, size)
        assert dot_regression(h, y) < 1e-20
        widths.append(dispersity(h, y))
    assert widths[0] < widths[1] < widths[2]
    assert widths[2] > 10
    assert CoCoLoss(3, normalize=False)(h, y) > 100


def test_zero_dot_regression_loss_does_not_even_mean_the_right_class(dot_regression):
    y = torch.tensor([0, 1, 2])
    v = dot_regression.prototypes
    wrong = v[(y + 1) % 3]
    h = v[y] + 4 * (wrong - (wrong * v[y]).sum(1, keepdim=True) * v[y])
    assert dot_regression(h, y) < 1e-20
    assert (h @ v.T).argmax(1).tolist() == [1, 2, 0]


def test_two_classes_are_safe_from_that():
    loss = DotRegressionLoss(2, 5, random_state=0).double()
    y = torch.arange(100) % 2
    v = loss.prototypes[y]
    u = torch.randn(v.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    h = v + 100 * (u - (u * v).sum(1, keepdim=True) * v)
    assert (h @ loss.prototypes.T).argmax(1).equal(y)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", [1e-3, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("counts", [[5, 5, 5], [2, 3, 20]])
def test_coco_bounds_the_scatter_within_classes(counts, noise, seed):
    generator = torch.Generator().manual_seed(seed)
    y = torch.repeat_interleave(torch.arange(3), torch.tensor(counts))
    h = torch.tensor(simplex_frame(3, 4, random_state=seed))[y]
    h = h + noise * torch.randn(h.shape, generator=generator, dtype=torch.float64)
    n = len(y)
    within = np.linalg.norm(ClassMoments().update(h, y).within)
    assert within <= np.sqrt((1 + 1 / n) * CoCoLoss(3, normalize=False)(h, y).item())


def test_the_bound_has_the_right_order_off_the_span():
    n = 3000
    y = torch.arange(n) % 3
    h = torch.zeros(n, 3, dtype=torch.float64)
    h[:, :2] = torch.tensor(simplex_frame(3, 2, random_state=0))[y]
    h[:, 2] = 0.1 * (-1.0) ** (torch.arange(n) // 3)  # spread along the spare direction only
    within = np.linalg.norm(ClassMoments().update(h, y).within)
    bound = np.sqrt((1 + 1 / n) * CoCoLoss(3, normalize=False)(h, y).item())
    assert within == pytest.approx(bound / np.sqrt(2), rel=0.01)  # P and N D are equal here


def test_the_dispersity_vanishes_with_coco():
    y = torch.arange(30) % 3
    corners = torch.tensor(simplex_frame(3, 4, random_state=0))[y]
    u = torch.randn(30, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    widths, bounds = [], []
    for noise in (1e-1, 1e-2, 1e-3):
        h = corners + noise * u
        widths.append(dispersity(h, y))
        # |Sigma_B| is 1 / sqrt(C - 1) on the simplex and, to first order, near it.
        bounds.append(np.sqrt(2 * (1 + 1 / 30) * CoCoLoss(3, normalize=False)(h, y).item()))
    assert widths[0] > widths[1] > widths[2]
    assert all(width < bound for width, bound in zip(widths, bounds, strict=True))
    assert widths[2] < 1e-5
