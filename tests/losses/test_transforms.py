"""What torch.func, torch.compile and torch.export make of the losses."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, hessian, jvp, stack_module_state, vmap

from cocoloss.exceptions import CoCoError
from cocoloss.losses import BalancedCoCoLoss, CoCoLoss, CrossEntropyLoss, DotRegressionLoss

N, Q, C = 12, 5, 4
LOSSES = {
    "coco": lambda **k: CoCoLoss(C, **k),
    "printed": lambda **k: CoCoLoss(C, normalize=False, norm_weight=0.5, **k),
    "balanced": lambda **k: BalancedCoCoLoss([0.4, 0.3, 0.2, 0.1], **k),
    "soft": lambda **k: CoCoLoss(C, **k),
    "points": lambda **k: CoCoLoss(targets="points", normalize=False, **k),
    "points on the sphere": lambda **k: CoCoLoss(targets="points", **k),
    "dot regression": lambda **k: DotRegressionLoss(C, Q, random_state=0, **k),
    "cross-entropy": lambda **k: CrossEntropyLoss(C, Q, **k),
    "soft dot regression": lambda **k: DotRegressionLoss(C, Q, random_state=0, **k),
    "soft cross-entropy": lambda **k: CrossEntropyLoss(C, Q, **k),
}
every_loss = pytest.mark.parametrize("name", LOSSES)


def batch(name, seed=0):
    generator = torch.Generator().manual_seed(seed)
    h = torch.randn(N, Q, dtype=torch.float64, generator=generator)
    if "soft" in name:
        return h, torch.softmax(torch.randn(N, C, generator=generator).double(), 1)
    if "points" in name:
        v = torch.randn(N, 3, dtype=torch.float64, generator=generator)
        return h, nn.functional.normalize(v, dim=1)
    return h, torch.arange(N) % C


def plain_gradient(loss, h, y):
    h = h.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(h, y), h)
    return gradient


@every_loss
def test_grad_is_the_gradient(name):
    loss, (h, y) = LOSSES[name]().double(), batch(name)
    torch.testing.assert_close(grad(lambda x: loss(x, y))(h), plain_gradient(loss, h, y))
    w = torch.rand(N, dtype=torch.float64)
    x = h.clone().requires_grad_()
    (expected,) = torch.autograd.grad(loss(x, y, w), x)
    torch.testing.assert_close(grad(lambda x: loss(x, y, w))(h), expected)


@every_loss
def test_vmap_is_a_loop(name):
    loss = LOSSES[name]().double()
    batches = [batch(name, seed) for seed in range(3)]
    h, y = (torch.stack(part) for part in zip(*batches, strict=True))
    expected = torch.stack([loss(*one) for one in batches])
    torch.testing.assert_close(vmap(loss)(h, y), expected)
    torch.testing.assert_close(
        vmap(grad(loss))(h, y),
        torch.stack([plain_gradient(loss, *one) for one in batches]),
    )
    shared = torch.stack([loss(one, y[0]) for one in h])
    torch.testing.assert_close(vmap(loss, in_dims=(0, None))(h, y[0]), shared)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # by torch itself
@every_loss
def test_second_derivatives_and_tangents(name):
    loss, (h, y) = LOSSES[name]().double(), batch(name)
    expected = torch.autograd.functional.hessian(lambda x: loss(x, y), h)
    torch.testing.assert_close(hessian(lambda x: loss(x, y))(h), expected)
    direction = torch.randn(N, Q, dtype=torch.float64)
    _, slope = jvp(lambda x: loss(x, y), (h,), (direction,))
    torch.testing.assert_close(slope, (plain_gradient(loss, h, y) * direction).sum())


def test_an_ensemble_of_networks_trains_in_vmap():
    networks = [nn.Linear(7, Q).double() for _ in range(3)]
    parameters, buffers = stack_module_state(networks)
    x, y = torch.randn(N, 7, dtype=torch.float64), torch.arange(N) % C
    loss = CoCoLoss(C)

    def value(parameters, buffers):
        return loss(functional_call(networks[0], (parameters, buffers), (x,)), y)

    gradients = vmap(grad(value))(parameters, buffers)
    for place, network in enumerate(networks):
        loss(network(x), y).backward()
        torch.testing.assert_close(gradients["weight"][place], network.weight.grad)


def test_a_row_of_zeros_has_no_gradient_there_either():
    h, y = batch("coco")
    h[3] = 0
    gradient = grad(lambda x: CoCoLoss(C)(x, y))(h)
    assert gradient.isfinite().all()
    assert not gradient[3].any()


class Trained(nn.Module):
    """A network with its loss."""

    def __init__(self, loss):
        super().__init__()
        self.layer, self.loss = nn.Linear(Q, Q).double(), loss

    def forward(self, x, y):
        return self.loss(self.layer(x), y)


@pytest.fixture(autouse=True)
def new_graphs():
    yield
    torch.compiler.reset()


@pytest.mark.filterwarnings("ignore")  # of the compiler, about itself
@every_loss
def test_one_graph_holds_network_and_loss_if_nothing_is_looked_at(name):
    (x, y), module = batch(name), Trained(LOSSES[name](validate=False).double())
    module(x, y).backward()
    expected = module.layer.weight.grad.clone()
    value = module(x, y)
    module.zero_grad()
    whole = torch.compile(module, fullgraph=True, backend="aot_eager")(x, y)
    torch.testing.assert_close(whole, value)
    whole.backward()
    torch.testing.assert_close(module.layer.weight.grad, expected)


@pytest.mark.filterwarnings("ignore")
def test_a_loss_that_looks_at_labels_breaks_the_graph_and_says_what_to_do():
    (x, y), module = batch("coco"), Trained(CoCoLoss(C))
    with pytest.raises(Exception, match="validate=False"):
        torch.compile(module, fullgraph=True, backend="eager")(x, y)
    torch.compiler.reset()
    compiled = torch.compile(module, backend="eager")
    torch.testing.assert_close(compiled(x, y), module(x, y))
    with pytest.raises(CoCoError, match="labels must be from 0 to 3"):
        compiled(x, y + 1)


@pytest.mark.filterwarnings("ignore")
@every_loss
@pytest.mark.parametrize("validate", [True, False])
def test_an_exported_program_gives_the_loss(name, validate):
    (x, y), module = batch(name), Trained(LOSSES[name](validate=validate).double())
    program = torch.export.export(module, (x, y)).module()
    torch.testing.assert_close(program(x, y), module(x, y))
    other, _ = batch(name, seed=1)
    torch.testing.assert_close(program(other, y), module(other, y))


def test_ranks_and_transforms_do_not_go_together():
    h, y = batch("coco")
    loss = CoCoLoss(C, process_group="world")
    with pytest.raises(CoCoError, match=r"torch.func.*not available with a process_group; build"):
        grad(lambda x: loss(x, y))(h)
