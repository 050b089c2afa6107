"""Float32 keeps its digits near collapse, where the expanded formula would go negative."""

import pytest
import torch

from cocoloss.geometry import simplex_frame
from cocoloss.losses import BalancedCoCoLoss, CoCoLoss, coco


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("noise", [1e-2, 1e-4])
@pytest.mark.parametrize(("C", "q"), [(2, 1), (3, 8), (10, 32)])
@pytest.mark.parametrize("n", [8, 64, 257, 5000, 200_000])
def test_float32_is_right_near_collapse(n, C, q, noise, seed):
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, C, (n,), generator=generator)
    corners = torch.tensor(simplex_frame(C, q, random_state=seed), dtype=torch.float32)
    h = corners[y] + noise * torch.randn(n, q, generator=generator)
    loss = CoCoLoss(C)
    value, gradient = loss.value_and_grad(h, y)
    expected, expected_gradient = loss.value_and_grad(h.double(), y)
    assert value >= 0
    torch.testing.assert_close(value.double(), expected, rtol=0.01, atol=0)
    error = (gradient.double() - expected_gradient).norm() / expected_gradient.norm()
    assert error < 0.01


@pytest.mark.parametrize("limit", [0, 10**9], ids=["moments", "pairwise"])
def test_is_never_negative_at_the_optimum_itself(limit, monkeypatch):
    monkeypatch.setattr(coco, "PAIRWISE_LIMIT", limit)
    y = torch.arange(500) % 10
    h = torch.tensor(simplex_frame(10, 32, random_state=0), dtype=torch.float32)[y]
    assert 0 <= CoCoLoss(10)(h, y) < 1e-12
    assert 0 <= BalancedCoCoLoss([0.1] * 10)(h, y) < 1e-12
