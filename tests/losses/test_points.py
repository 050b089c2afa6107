"""Target points and soft labels against the printed formula, in plain loops."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from cocoloss.exceptions import CoCoError
from cocoloss.geometry import similarity, simplex_frame
from cocoloss.losses import (
    BalancedCoCoLoss,
    CoCoLoss,
    CrossEntropyLoss,
    DotRegressionLoss,
    backward_in_chunks,
    moments,
)
from oracles import on_the_sphere, value_and_grad

TOLERANCE = {"rtol": 1e-10, "atol": 1e-13}
PRIORS = [0.5, 0.3, 0.15, 0.05]


def printed_points(h, v, w=None, norm_weight=1.0):
    n = len(v)
    w = [1.0] * n if w is None else w
    pairs = norms = h.sum() * 0
    for i in range(n):
        for j in range(i + 1, n):
            pairs = pairs + w[i] * w[j] * (h[i] @ h[j] - v[i] @ v[j]) ** 2
        norms = norms + w[i] ** 2 * (h[i] @ h[i] - v[i] @ v[i]) ** 2
    return 2 / (n * (n + 1)) * pairs + norm_weight / n * norms


def printed_expectation(h, p, g, w=None, norm_weight=1.0, class_weight=None):
    """Return the mean of the printed loss over labels drawn from p, each row by itself."""
    n, C = p.shape
    w = [1.0] * n if w is None else w
    c = [1.0] * C if class_weight is None else class_weight
    pairs = norms = h.sum() * 0
    for i in range(n):
        for a in range(C):
            norm = (h[i] @ h[i] - g[a][a]) ** 2
            norms = norms + p[i, a] * (w[i] * c[a]) ** 2 * norm
            for j in range(i + 1, n):
                for b in range(C):
                    pair = (h[i] @ h[j] - g[a][b]) ** 2
                    pairs = pairs + p[i, a] * p[j, b] * w[i] * c[a] * w[j] * c[b] * pair
    return 2 / (n * (n + 1)) * pairs + norm_weight / n * norms


def draw(n, q, p, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    h = torch.randn(n, q, dtype=dtype, generator=generator)
    v = torch.randn(n, p, dtype=dtype, generator=generator)
    return h, v, torch.rand(n, dtype=dtype, generator=generator)


def soft(n, C, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, C, dtype=torch.float64, generator=generator)
    return logits.softmax(-1)


@pytest.fixture(params=["whole", "blocks"])
def _cut(request, monkeypatch):
    if request.param == "blocks":
        monkeypatch.setattr(moments, "BLOCK", 5)


def assert_both_ways(loss, printed, h, *args):
    expected = value_and_grad(printed, h)
    torch.testing.assert_close(loss.value_and_grad(h, *args), expected, **TOLERANCE)
    torch.testing.assert_close(value_and_grad(loss, h, *args), expected, **TOLERANCE)
    torch.testing.assert_close(loss(h, *args), expected[0], **TOLERANCE)


SIZES = [(13, 4, 3), (13, 2, 6), (3, 5, 8), (1, 3, 2), (2, 4, 1)]


@pytest.mark.usefixtures("_cut")
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize(("normalize", "norm_weight"), [(False, 1.0), (False, 0.0), (True, 0.5)])
@pytest.mark.parametrize("sizes", SIZES)
def test_points_equal_the_double_loop(sizes, normalize, norm_weight, weighted):
    h, v, w = draw(*sizes)
    w = w if weighted else None
    loss = CoCoLoss(targets="points", normalize=normalize, norm_weight=norm_weight)

    def printed(h):
        return printed_points(on_the_sphere(h) if normalize else h, v, w, norm_weight)

    assert_both_ways(loss, printed, h, v, w)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_class_vertices_as_points_are_the_class_loss(reduction):
    h, _, w = draw(20, 6, 1)
    y = torch.arange(20) % 5
    v = torch.tensor(simplex_frame(5, 4, random_state=0))[y]
    for normalize in (False, True):
        options = {"normalize": normalize, "reduction": reduction}
        classes, points = CoCoLoss(5, **options), CoCoLoss(targets="points", **options)
        expected = classes.value_and_grad(h, y, w)
        torch.testing.assert_close(points.value_and_grad(h, v, w), expected, **TOLERANCE)


def test_one_hot_points_have_the_components_of_classes():
    h, _, w = draw(20, 6, 1)
    y = torch.arange(20) % 5
    classes, points = CoCoLoss(5, similarity=np.eye(5)), CoCoLoss(targets="points")
    expected = classes.components(h, y, w)
    found = points.components(h, nn.functional.one_hot(y, 5), w)
    torch.testing.assert_close(found, expected, **TOLERANCE)


@pytest.mark.usefixtures("_cut")
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("balanced", [False, True], ids=["plain classes", "balanced"])
@pytest.mark.parametrize(
    ("kind", "normalize", "norm_weight"),
    [("simplex", False, 1.0), ("simplex", True, 0.5), ("matrix", False, 0.0), ("matrix", False, 2)],
)
def test_soft_labels_give_the_expected_loss(kind, normalize, norm_weight, balanced, weighted):
    h, _, w = draw(8, 5, 1)
    w, p = w if weighted else None, soft(8, 4)
    g = similarity("simplex", 4)
    if kind == "matrix":
        g = g + torch.diag(torch.tensor([0.1, 0.2, 0.0, 0.5])).numpy()
    loss = CoCoLoss(
        4,
        similarity=g,
        normalize=normalize,
        norm_weight=norm_weight,
        priors=PRIORS if balanced else None,
    )
    c = [(4 * prior) ** -0.5 for prior in PRIORS] if balanced else None

    def printed(h):
        return printed_expectation(on_the_sphere(h) if normalize else h, p, g, w, norm_weight, c)

    assert_both_ways(loss, printed, h, p, w)


@pytest.mark.parametrize("make", [CoCoLoss, lambda _, **k: BalancedCoCoLoss(PRIORS, **k)])
@pytest.mark.parametrize("normalize", [False, True])
def test_certain_soft_labels_are_the_labels(make, normalize):
    h, _, w = draw(20, 6, 1)
    h[3] = 0  # which has no direction
    y = torch.arange(20) % 3  # one class is absent
    p = nn.functional.one_hot(y, 4).double()
    loss = make(4, normalize=normalize)
    expected = loss.value_and_grad(h, y, w)
    torch.testing.assert_close(loss.value_and_grad(h, p, w), expected, **TOLERANCE)
    components = loss.components(h, y, w)
    torch.testing.assert_close(loss.components(h, p, w), components, **TOLERANCE)


@pytest.mark.parametrize("make", [DotRegressionLoss, CrossEntropyLoss])
@pytest.mark.parametrize("class_weight", [None, [1.0, 2.0, 0.5, 3.0]])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_losses_of_one_term_a_sample_are_linear_in_soft_labels(make, class_weight, reduction):
    torch.manual_seed(0)
    h, _, w = draw(8, 5, 1)
    p = soft(8, 4)
    loss = make(4, 5, class_weight=class_weight, reduction=reduction).double()
    c = torch.ones(4).double() if class_weight is None else torch.tensor(class_weight).double()
    alone = make(4, 5, reduction="sum").double()
    alone.load_state_dict(loss.state_dict())

    def printed(h):
        total = sum(
            w[i] * p[i, a] * c[a] * alone(h[i : i + 1], torch.tensor([a]))
            for i in range(8)
            for a in range(4)
        )
        return total / (p @ c).sum() if reduction == "mean" else total

    assert_both_ways(loss, printed, h, p, w)
    certain = nn.functional.one_hot(torch.arange(8) % 4, 4).double()
    expected = loss.value_and_grad(h, torch.arange(8) % 4, w)
    torch.testing.assert_close(loss.value_and_grad(h, certain, w), expected, **TOLERANCE)
    network = nn.Linear(5, 5).double()
    value = backward_in_chunks(network, loss, h, p, 3, w)
    torch.testing.assert_close(value, loss(network(h), p, w).detach(), **TOLERANCE)


def test_cross_entropy_with_soft_labels_is_that_of_torch():
    h, p = torch.randn(9, 4), soft(9, 4).float()
    expected = nn.functional.cross_entropy(h, p)
    torch.testing.assert_close(CrossEntropyLoss(4, None)(h, p), expected)


def test_a_softmax_in_half_precision_has_soft_labels():
    generator = torch.Generator().manual_seed(0)
    p = torch.randn(1000, 4, generator=generator).softmax(-1)
    h = torch.randn(1000, 5, generator=generator)
    for dtype in (torch.float16, torch.bfloat16):
        rounded = p.to(dtype)
        exact = rounded.double() / rounded.double().sum(-1, keepdim=True)
        torch.testing.assert_close(CoCoLoss(4)(h, rounded), CoCoLoss(4)(h, exact))


TARGETS = {
    "points": lambda **k: (CoCoLoss(targets="points", **k), draw(17, 4, 3)[1]),
    "soft": lambda **k: (CoCoLoss(4, **k), soft(17, 4)),
    "balanced soft": lambda **k: (BalancedCoCoLoss(PRIORS, **k), soft(17, 4)),
}


@pytest.fixture(params=TARGETS)
def make(request):
    return TARGETS[request.param]


@pytest.mark.parametrize("normalize", [False, True])
def test_second_derivatives_are_right(make, normalize):
    loss, target = make(normalize=normalize, norm_weight=0.5)
    h, _, w = draw(17, 4, 3)
    x, t, w = h[:5].requires_grad_(), target[:5], w[:5]
    assert torch.autograd.gradcheck(lambda x: loss(x, t, w), x)
    assert torch.autograd.gradgradcheck(lambda x: loss(x, t, w), x)


def test_models_in_lockstep_are_the_models_one_by_one(make):
    loss, target = make()
    h = torch.stack([draw(17, 4, 3, seed)[0] for seed in range(3)])
    value, gradient = loss.value_and_grad(h, target)
    for k in range(3):
        alone = loss.value_and_grad(h[k], target)
        torch.testing.assert_close((value[k], gradient[k]), alone, **TOLERANCE)
    own = loss.value_and_grad(h, target.expand(3, -1, -1))
    torch.testing.assert_close(own, (value, gradient), **TOLERANCE)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("chunk_size", [1, 5, 100])
@pytest.mark.parametrize("normalize", [False, True])
def test_chunks_give_the_gradient_of_the_whole_batch(make, normalize, chunk_size, weighted):
    loss, target = make(normalize=normalize, norm_weight=0.5)
    x, _, w = draw(17, 6, 1)
    w = w if weighted else None
    network = nn.Linear(6, 4).double()
    value = loss(network(x), target, w)
    value.backward()
    expected = [p.grad.clone() for p in network.parameters()]
    network.zero_grad()
    found = backward_in_chunks(network, loss, x, target, chunk_size, w)
    torch.testing.assert_close(found, value.detach(), **TOLERANCE)
    torch.testing.assert_close([p.grad for p in network.parameters()], expected, **TOLERANCE)


def test_chunks_that_hardly_know_a_coordinate_lose_nothing():
    """The first chunk has next to nothing in one direction, the second has all of it."""
    h, v, _ = draw(20, 4, 3)
    v[:10, 2] *= 1e-9
    loss = CoCoLoss(targets="points", normalize=False)
    x = h.clone().requires_grad_()
    value = backward_in_chunks(nn.Identity(), loss, x, v, 10)
    expected, gradient = value_and_grad(lambda h: printed_points(h, v), h)
    torch.testing.assert_close(value, expected, **TOLERANCE)
    torch.testing.assert_close(x.grad, gradient, **TOLERANCE)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("n", [8, 300, 20_000])
def test_float32_keeps_four_digits_at_a_residual_of_1e_4(n, normalize):
    generator = torch.Generator().manual_seed(n)
    v = torch.randn(n, 3, generator=generator)
    v = nn.functional.normalize(v, dim=1) if normalize else v
    rotation = torch.linalg.qr(torch.randn(8, 8, generator=generator))[0][:3]
    h = v @ rotation + 1e-4 * torch.randn(n, 8, generator=generator)
    loss = CoCoLoss(targets="points", normalize=normalize, norm_weight=0)
    value, gradient = loss.value_and_grad(h, v)
    expected, exact = loss.value_and_grad(h.double(), v.double())
    assert (value.dtype, gradient.dtype) == (torch.float32, torch.float32)
    torch.testing.assert_close(value.double(), expected, rtol=1e-4, atol=0)
    assert (gradient.double() - exact).norm() < 1e-4 * exact.norm()
    if n <= 300:
        x = h.double()
        x = nn.functional.normalize(x, dim=1) if normalize else x
        off = (x @ x.T - v.double() @ v.double().T).square()
        pairs = (off.sum() - off.trace()) / (n * (n + 1))
        torch.testing.assert_close(value.double(), pairs, rtol=1e-4, atol=0)


def test_soft_labels_in_float32_keep_their_digits_near_collapse():
    y = torch.arange(500) % 10
    corners = torch.tensor(simplex_frame(10, 16, random_state=0), dtype=torch.float32)
    h = corners[y] + 1e-4 * torch.randn(500, 16, generator=torch.Generator().manual_seed(0))
    p = nn.functional.one_hot(y, 10).float()
    value, gradient = CoCoLoss(10).value_and_grad(h, p)
    expected, exact = CoCoLoss(10).value_and_grad(h.double(), y)
    torch.testing.assert_close(value.double(), expected, rtol=1e-4, atol=0)
    assert (gradient.double() - exact).norm() < 1e-4 * exact.norm()


@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 6), st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_points_may_be_rotated_repeated_and_padded(seed, n, q, p):
    h, v, w = draw(n, q, p, seed)
    loss = CoCoLoss(targets="points", normalize=False)
    expected = loss.value_and_grad(h, v, w)
    rotation = torch.linalg.qr(draw(p, p, 1, seed + 1)[0])[0]
    for same in (v @ rotation, torch.cat([v, 0 * v], 1), torch.cat([v, v], 1) / 2**0.5):
        torch.testing.assert_close(loss.value_and_grad(h, same, w), expected, rtol=1e-9, atol=1e-12)
    assert min(loss.components(h, v, w)) >= 0


def test_vanishes_on_the_points_with_zero_gradient():
    v = draw(30, 1, 4)[1]
    value, gradient = CoCoLoss(targets="points", normalize=False).value_and_grad(v, v)
    assert 0 <= value < 1e-26
    assert gradient.abs().max() < 1e-13


def test_numbers_of_any_kind_are_points():
    h, _, _ = draw(6, 3, 1)
    loss = CoCoLoss(targets="points", normalize=False)
    levels = [[0], [1], [2], [0], [1], [2]]
    torch.testing.assert_close(loss(h, levels), loss(h, torch.tensor(levels).double()))
    assert loss(h.half(), levels).dtype == torch.float32
    assert "targets='points'" in repr(loss)


H, V, W = draw(6, 5, 3)
P = soft(6, 4)
POINTS, CLASSES = CoCoLoss(targets="points"), CoCoLoss(4)
BAD = {
    "numbers without an axis": (POINTS, (H, V[:, 0]), r"have shape \(6,\).*y\[:, None\]"),
    "too few points": (POINTS, (H, V[:-1]), r"shape \(6, p\), but have shape \(5, 3\)"),
    "points of other models": (POINTS, (H, V.expand(2, 6, 3)), r"have shape \(2, 6, 3\)"),
    "infinite points": (POINTS, (H, V / 0), "must be finite, but row 0 has"),
    "missing points": (POINTS, (H, V.masked_fill(V[4, 1] == V, float("nan"))), "row 4 has"),
    "complex points": (POINTS, (H, V * 1j), "must be real numbers"),
    "points of names": (POINTS, (H, [["a"]] * 6), "target points must be numbers"),
    "points that learn": (POINTS, (H, V.clone().requires_grad_()), "detach"),
    "weights of points": (POINTS, (H, V, -W), "row 0 has -"),
    "too few probabilities": (CLASSES, (H, P[:, :3]), r"shape \(n_samples, 4\), not .*\(6, 3\)"),
    "too few soft rows": (CLASSES, (H, P[:-1]), r"shape \(6, 4\), but have shape \(5, 4\)"),
    "logits": (CLASSES, (H, P.log()), "row 0 has.*softmax for logits"),
    "counts": (CLASSES, (H, 3 * P), "with sum 3; divide counts"),
    "missing probabilities": (CLASSES, (H, P * float("nan")), "sum nan"),
    "negative": (CLASSES, (H, torch.tensor([1.2, -0.2, 0, 0]).expand(6, 4)), "not negative"),
    "soft labels that learn": (CLASSES, (H, P.clone().requires_grad_()), "detach"),
    "weights of soft labels": (CLASSES, (H, P, W / 0), "row 0 has inf"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_targets_are_a_clear_error(case):
    loss, args, message = BAD[case]
    with pytest.raises(CoCoError, match=message):
        loss(*args)
    if case != "points of other models":
        network = nn.Linear(5, 5).double()
        with pytest.raises(CoCoError):
            backward_in_chunks(network, loss, args[0], args[1], 4, *args[2:])
        assert network.weight.grad is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "n_classes is missing"),
        ({"targets": "numbers"}, "targets must be one of 'classes', 'points'"),
        ({"targets": "points", "n_classes": 3}, "leave them out"),
        ({"targets": "points", "priors": [0.5, 0.5]}, "leave them out"),
        ({"targets": "points", "similarity": "packing"}, "leave them out"),
    ],
)
def test_what_has_no_meaning_is_refused(options, message):
    with pytest.raises(CoCoError, match=message):
        CoCoLoss(**options)


def test_an_empty_batch_and_a_single_dimension_are_refused():
    with pytest.raises(CoCoError, match="the batch is empty"):
        POINTS(H[:0], V[:0])
    with pytest.raises(CoCoError, match="one dimension"):
        POINTS(H[:, :1], V)
