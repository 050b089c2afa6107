"""Float32 keeps its digits near collapse, where the expanded formula would go negative."""

import itertools

import pytest
import torch

from cocoloss.geometry import simplex_frame
from cocoloss.losses import (
    BalancedCoCoLoss,
    CoCoLoss,
    CrossEntropyLoss,
    backward_in_chunks,
    coco,
)


def assert_right_in_float32(loss, h, y):
    value, gradient = loss.value_and_grad(h.float(), y)
    expected, expected_gradient = loss.value_and_grad(h.float().double(), y)
    assert (value >= 0).all()
    torch.testing.assert_close(value.double(), expected, rtol=0.01, atol=0)
    assert (gradient.double() - expected_gradient).norm() < 0.01 * expected_gradient.norm()


# The loss of two classes on the sphere is of the fourth order in the noise, 1e-16 at 1e-4, where
# the square of float32's last digit is larger.
NEAR = [
    *itertools.product([(2, 1), (3, 8), (10, 32)], [False], [1e-2, 1e-4]),
    *itertools.product([(3, 8), (10, 32)], [True], [1e-2, 1e-4]),
    ((2, 2), True, 3e-2),
]


@pytest.mark.parametrize(("sizes", "normalize", "noise"), NEAR)
@pytest.mark.parametrize(
    ("n", "seed"), [(8, 0), (8, 1), (64, 0), (64, 1), (257, 0), (257, 1), (5000, 0), (200_000, 0)]
)
def test_float32_is_right_near_collapse(n, sizes, normalize, noise, seed):
    C, q = sizes
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, C, (n,), generator=generator)
    corners = torch.tensor(simplex_frame(C, q, random_state=seed), dtype=torch.float32)
    h = corners[y] + noise * torch.randn(n, q, generator=generator)
    assert_right_in_float32(CoCoLoss(C, normalize=normalize), h, y)


@pytest.mark.parametrize("priors", [None, [0.95, 0.05], [0.7, 0.3]], ids=["plain", "95", "70"])
@pytest.mark.parametrize("share", [1.0, 0.9])
@pytest.mark.parametrize("n", [300, 2048, 8192, 60_000])
def test_float32_is_right_when_one_class_fills_most_of_the_batch(n, share, priors, monkeypatch):
    """Thousands of nearly equal rows must not all round the same way."""
    monkeypatch.setattr(coco, "gram_is_cheaper", lambda *_: False)
    loss = CoCoLoss(2, priors=priors, normalize=False)
    for seed in range(5):  # rotations: each has other digits to round
        generator = torch.Generator().manual_seed(seed)
        y = (torch.rand(n, generator=generator) >= share).long()
        corners = torch.tensor(simplex_frame(2, 2, random_state=seed))
        h = corners[y] + 1e-4 * torch.randn(n, 2, generator=generator)
        assert_right_in_float32(loss, h, y)


@pytest.mark.parametrize("n_models", [1, 2])
def test_float32_is_right_in_three_dimensions_and_for_several_models(n_models):
    loss, y = CoCoLoss(3, normalize=False), torch.zeros(n_models, 8192, dtype=torch.long)
    for seed in range(10):
        generator = torch.Generator().manual_seed(seed)
        corners = torch.tensor(simplex_frame(3, 3, random_state=seed))
        h = corners[y] + 1e-4 * torch.randn(n_models, 8192, 3, generator=generator)
        assert_right_in_float32(loss, h, y)


@pytest.mark.parametrize("by_gram", [False, True], ids=["moments", "gram"])
def test_is_never_negative_at_the_optimum_itself(by_gram, monkeypatch):
    monkeypatch.setattr(coco, "gram_is_cheaper", lambda *_: by_gram)
    y = torch.arange(500) % 10
    h = torch.tensor(simplex_frame(10, 32, random_state=0), dtype=torch.float32)[y]
    for normalize in (False, True):
        assert 0 <= CoCoLoss(10, normalize=normalize)(h, y) < 1e-12
        assert 0 <= BalancedCoCoLoss([0.1] * 10, normalize=normalize)(h, y) < 1e-12


@pytest.mark.parametrize("seed", range(20))
def test_no_component_is_negative(seed):
    """Off the span of the classes tr(BW) is zero but for rounding, which has either sign."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(300) % 3
    h = torch.zeros(300, 8)
    h[:, :2] = torch.tensor(simplex_frame(3, 2, random_state=seed), dtype=torch.float32)[y]
    h[:, 2:] = torch.randn(300, 6, generator=generator)
    rotation = torch.linalg.qr(torch.randn(8, 8, generator=generator))[0]
    for normalize in (False, True):
        assert min(CoCoLoss(3, normalize=normalize).components(h @ rotation, y)) >= 0


def near_collapse(n, noise, seed=0):
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 10, (n,), generator=generator)
    corners = torch.tensor(simplex_frame(10, 16, random_state=0), dtype=torch.float32)
    return corners[y] + noise * torch.randn(n, 16, generator=generator), y


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_reaches_neither_components_nor_chunks(dtype):
    h, y = near_collapse(5000, 1e-4)
    loss, network = CoCoLoss(10), torch.nn.Identity()
    expected = loss.components(h, y)
    h = h.requires_grad_()
    value = backward_in_chunks(network, loss, h, y, 700)
    gradient, h.grad = h.grad, None
    with torch.autocast("cpu", dtype=dtype):
        torch.testing.assert_close(loss.components(h, y), expected)
        torch.testing.assert_close(backward_in_chunks(network, loss, h, y, 700), value)
    torch.testing.assert_close(h.grad, gradient)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_scaled_loss_keeps_small_gradients_in_half_precision(chunked):
    """What GradScaler is for: the factor must meet the gradient before it is rounded to half."""
    h, y = near_collapse(20_000, 1e-3)
    h = h.half().requires_grad_()
    exact = CoCoLoss(10).value_and_grad(h.detach().double(), y)[1]
    scale = 2.0**20
    if chunked:
        backward_in_chunks(torch.nn.Identity(), CoCoLoss(10), h, y, 3000, scale=scale)
    else:
        (CoCoLoss(10)(h, y) * scale).backward()
    error = (h.grad.double() / scale - exact).norm() / exact.norm()
    assert error < 0.01


def test_an_infinite_loss_stays_infinite():
    logits = torch.tensor([[0.0, -torch.inf], [0.0, 1.0]])
    assert CrossEntropyLoss(2, None)(logits, torch.tensor([1, 1])) == torch.inf


def test_what_was_seen_in_inference_mode_can_be_trained_later():
    h, y = near_collapse(50, 0.1)
    loss = CoCoLoss(10, priors=[0.1] * 10)
    with torch.inference_mode():
        loss(h, y)
    h.requires_grad_()
    (gradient,) = torch.autograd.grad(loss(h, y), h, create_graph=True)
    gradient.square().sum().backward()
    assert h.grad.isfinite().all()
