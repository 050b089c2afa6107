"""The written-out backward pass against autograd, and a model in a stack against itself alone."""

import numpy as np
import pytest
import torch
from torch import nn

from cocoloss.exceptions import CoCoError
from cocoloss.networks import TINY_NORM, LockstepMLP, ModuleStack
from cocoloss.training import FlatAdamW

D, Q, M = 5, 3, 11


def generators(n_models):
    return [np.random.default_rng(k) for k in range(n_models)]


def make(n_models=3, hidden=(7, 6), **options):
    return LockstepMLP((D, *hidden, Q), generators(n_models), **options)


def inputs(n_models=3):
    return torch.randn(n_models, M, D, generator=torch.Generator().manual_seed(0))


def reference(network, x, mask=None, *, linear_hidden=False):
    """Run the same network with autograd; return embeddings and its leaf parameters."""
    flat = network.parameters.detach().clone().requires_grad_()
    weights, biases = network._views(flat)  # noqa: SLF001
    a = x
    for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        if mask is not None and layer == network.dropout_layer:
            a = a * mask
        a = a @ weight + bias
        if layer < len(weights) - 1 and not (linear_hidden and layer == len(weights) - 2):
            a = a * torch.sigmoid(a) if network.activation == "silu" else a.relu()
    if network.output == "tanh":
        a = a.tanh()
    if network.normalize:
        norms = a.norm(dim=-1, keepdim=True)
        a = a / torch.where(norms > TINY_NORM, norms, torch.inf)
    return a, flat


def assert_agrees_with_autograd(network, x, *, linear_hidden=False):
    embeddings = network.forward(x, training=True)
    mask = network._mask if network.dropout else None  # noqa: SLF001
    expected, flat = reference(network, x, mask, linear_hidden=linear_hidden)
    torch.testing.assert_close(embeddings, expected.detach())
    gradient = torch.randn(embeddings.shape)
    network.backward(gradient)
    expected.backward(gradient)
    torch.testing.assert_close(network.gradients, flat.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n_models", [1, 4])
@pytest.mark.parametrize("hidden", [(), (7,), (7, 6), (4, 8, 5)])
@pytest.mark.parametrize("output", ["identity", "tanh"])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("linear_hidden", [False, True])
@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_backward_is_what_autograd_says(
    n_models, hidden, output, normalize, linear_hidden, activation
):
    options = {"output": output, "normalize": normalize, "linear_hidden": linear_hidden}
    options["activation"] = activation
    network = make(n_models, hidden, **options)
    assert_agrees_with_autograd(network, inputs(n_models), linear_hidden=linear_hidden)


@pytest.mark.parametrize("linear_hidden", [False, True])
@pytest.mark.parametrize("layer", [0, 1, 2, -1])
@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_backward_is_right_under_dropout_which_is_for_training_only(
    layer, linear_hidden, activation
):
    options = {"linear_hidden": linear_hidden, "activation": activation}
    network = make(dropout=0.4, dropout_layer=layer, **options)
    x = inputs()
    assert_agrees_with_autograd(network, x, linear_hidden=linear_hidden)
    assert 0.3 < (network._mask == 0).float().mean() < 0.5  # noqa: SLF001
    undropped, _ = reference(network, x, linear_hidden=linear_hidden)
    torch.testing.assert_close(network.forward(x), undropped.detach())
    with pytest.raises(CoCoError, match="0 to 2"):
        make(dropout_layer=3)


def test_a_model_in_a_stack_draws_what_it_would_alone():
    stack = make(3, dropout=0.5)
    x = inputs()
    stack.forward(x, training=True)
    for k in range(3):
        alone = LockstepMLP((D, 7, 6, Q), [np.random.default_rng(k)], dropout=0.5)
        assert torch.equal(stack.parameters[k], alone.parameters[0])
        alone.forward(x[k : k + 1], training=True)
        assert torch.equal(stack._mask[k], alone._mask[0])  # noqa: SLF001


def test_starts_at_unit_norm():
    network = make()
    x = inputs()
    network.start_at_unit_norm(x)
    norms = network.forward(x).norm(dim=-1).mean(dim=1)
    torch.testing.assert_close(norms, torch.ones(3))


def test_selected_models_go_on_unchanged():
    network = make(3)
    x = inputs()
    before = network.forward(x)
    network.select([2, 0])
    assert network.n_models == 2
    torch.testing.assert_close(network.forward(x[[2, 0]]), before[[2, 0]])
    network.parameters.zero_()
    assert not network.weights[0].any()  # layers are views of the buffer


@pytest.mark.parametrize("output", ["identity", "tanh"])
def test_a_row_of_zeros_has_no_gradient_on_the_sphere_and_changes_no_other(output):
    network = make(normalize=True, output=output)  # its biases are zero
    x = inputs()
    gradient = torch.randn(3, M, Q)
    network.forward(x[:, 1:], training=True)
    network.backward(gradient[:, 1:])
    expected = network.gradients.clone()
    x[:, 0] = 0
    embeddings = network.forward(x, training=True)
    network.backward(gradient)
    assert not embeddings[:, 0].any()
    torch.testing.assert_close(network.gradients, expected)


def module(seed):
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(D, 7), nn.Tanh(), nn.Linear(7, Q))


def test_a_module_of_ones_own_gets_its_gradients_from_autograd():
    stack = ModuleStack(module, [1, 2])
    x = inputs(2)
    embeddings = stack.forward(x, training=True)
    gradient = torch.randn(embeddings.shape)
    stack.backward(gradient)
    for k, seed in enumerate([1, 2]):
        alone = module(seed)
        output = alone(x[k])
        torch.testing.assert_close(embeddings[k], output.detach())
        output.backward(gradient[k])
        expected = torch.cat([p.grad.flatten() for p in alone.parameters()])
        torch.testing.assert_close(stack.gradients[k], expected)


def test_a_module_is_normalised_as_torch_does_it_but_zeros_have_no_gradient():
    def plain(seed):
        return nn.Sequential(module(seed), nn.Linear(Q, Q, bias=False))

    stack = ModuleStack(plain, [1], normalize=True)
    x = inputs(1)
    gradient = torch.randn(1, M, Q)
    embeddings = stack.forward(x, training=True)
    stack.backward(gradient)
    alone = plain(1)
    with torch.no_grad():
        alone.load_state_dict(stack.modules[0].state_dict())
    output = nn.functional.normalize(alone(x[0]), dim=-1)
    assert torch.equal(embeddings[0], output.detach())
    output.backward(gradient[0])
    expected = torch.cat([p.grad.flatten() for p in alone.parameters()])
    torch.testing.assert_close(stack.gradients[0], expected)
    stack.modules[0][-1].weight.data.zero_()
    assert not stack.forward(x, training=True).any()
    stack.backward(gradient)
    assert not stack.gradients.any()


def test_what_needs_no_gradient_stays_as_it_is():
    def half_frozen(seed):
        made = module(seed)
        made[0].requires_grad_(False)
        return made

    stack = ModuleStack(half_frozen, [1, 2, 3])
    stack.select([2, 0])
    n_trained = 7 * Q + Q
    assert stack.parameters.shape == (2, n_trained)
    optimiser = FlatAdamW(stack.parameters, weight_decay=0.5)
    x = inputs(2)
    before = stack.forward(x, training=True)
    stack.backward(torch.ones_like(before))
    optimiser.step(stack.gradients, 0.1)
    for made, seed in zip(stack.modules, [3, 1], strict=True):
        fresh = module(seed)
        assert torch.equal(made[0].weight, fresh[0].weight)
        assert torch.equal(made[0].bias, fresh[0].bias)
        assert not torch.isclose(made[2].weight, fresh[2].weight).any()
        assert [p.requires_grad for p in made.parameters()] == [False, False, True, True]
    assert not torch.equal(stack.forward(x), before)
    stack.parameters.zero_()
    assert not stack.modules[0][2].weight.any()  # the modules are views of the buffer
    with pytest.raises(CoCoError, match="no parameters to train"):
        ModuleStack(lambda seed: module(seed).requires_grad_(False), [0])


def test_a_module_of_the_wrong_shape_is_a_clear_error():
    stack = ModuleStack(lambda _: nn.Sequential(nn.Linear(D, 2), nn.Flatten(0)), [0])
    with pytest.raises(CoCoError, match="must map inputs"):
        stack.forward(inputs(1))
    with pytest.raises(CoCoError, match="no parameters"):
        ModuleStack(lambda _: nn.Identity(), [0])
