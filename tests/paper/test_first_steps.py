"""The first steps are those that autograd and torch's AdamW take."""

import numpy as np
import pytest
import torch
from torch import nn

from cocoloss.benchmark.tasks import load_experiment
from cocoloss.exceptions import CoCoError
from cocoloss.losses import CoCoLoss
from synthetic_store import PAPER

load_experiment("convergence", [PAPER])  # which finds what lies beside it

import first_steps as module  # noqa: E402
from first_steps import first_steps  # noqa: E402

N, D, Q, C = 12, 3, 5, 3
SIZES = (D, 7, Q)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, D)).astype(np.float32), np.arange(N) % C


def begin(loss, inputs, labels, steps, **options):
    options = {
        "layer_sizes": SIZES,
        "n_classes": C,
        "batch_size": N,
        "learning_rate": 1e-2,
    } | options
    return first_steps(loss, inputs, labels, steps, **options)


def as_module(beginner):
    layers = []
    for weight, bias in beginner.network.layers(0):
        linear = nn.Linear(*weight.shape)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weight.T))
            linear.bias.copy_(torch.from_numpy(bias))
        layers.append(linear)
    return nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.Tanh())


def loss_of(name, readout):
    """Return the loss as printed; ``readout`` (C, q) is fixed for dr and learnt for ce."""
    return {
        "coco": CoCoLoss(C, normalize=False),
        "dr": lambda h, y: ((h * readout[y]).sum(1) - 1).square().mean() / 2,
        "ce": lambda h, y: nn.functional.cross_entropy(h @ readout.T, y),
    }[name]


@pytest.mark.parametrize("name", ["coco", "dr", "ce"])
def test_whole_batches_give_what_autograd_gives(name, table):
    X, y = table
    ((start, *later),) = begin(name, [X], [y], [0, 1, 4])
    copy = as_module(start)
    readout = None if start.readout is None else torch.tensor(start.readout, dtype=torch.float32)
    learnt = list(copy.parameters())
    if name == "ce":
        readout.requires_grad_()
        learnt.append(readout)
    optimiser = torch.optim.AdamW(learnt, lr=1e-2, weight_decay=0.0)
    value = loss_of(name, readout)
    x, labels = torch.from_numpy(X), torch.from_numpy(y)
    expected = {}
    for step in range(1, 5):
        optimiser.zero_grad()
        value(copy(x), labels).backward()
        optimiser.step()
        expected[step] = copy(x).detach().numpy().copy()
    for beginner in later:
        np.testing.assert_allclose(
            beginner.network.outputs(X)[0], expected[beginner.n_steps], atol=2e-4
        )
    if name == "ce":
        np.testing.assert_allclose(later[-1].readout, readout.detach().numpy(), atol=2e-4)


def test_all_losses_start_alike_and_see_the_same_rows(table, monkeypatch):
    X, y = table
    stack, seen = module._stack, []  # noqa: SLF001
    monkeypatch.setattr(
        module, "_stack", lambda tables, rows: seen.append(np.stack(rows)) or stack(tables, rows)
    )
    starts, orders = [], []
    for name in ("coco", "dr", "ce"):
        seen.clear()
        starts.append(begin(name, [X], [y], [0, 6], seeds=[5], batch_size=4)[0][0])
        orders.append(np.concatenate(seen))
    for beginner, order in zip(starts, orders, strict=True):
        np.testing.assert_array_equal(beginner.network.parameters, starts[0].network.parameters)
        np.testing.assert_array_equal(order, orders[0])
    assert len(np.unique(orders[0][:6])) == N  # three steps of inputs and labels: every row


@pytest.mark.parametrize("name", ["coco", "dr", "ce"])
def test_a_table_in_a_stack_is_trained_as_if_alone(name, table):
    X, y = table
    other = X[::-1].copy() * 3, y[::-1].copy()
    stacked = begin(name, [other[0], X], [other[1], y], [3], seeds=[1, 1], batch_size=4)
    alone = begin(name, [X], [y], [3], seeds=[1], batch_size=4)
    np.testing.assert_allclose(
        stacked[1][0].network.parameters, alone[0][0].network.parameters, atol=1e-5
    )


def test_weights_weigh(table):
    X, y = table
    ones = [np.ones(N, dtype=np.float32)]
    twos = [np.where(y == 0, 2.0, 1.0).astype(np.float32)]
    plain, even, uneven = (
        begin("coco", [X], [y], [2], weights=w)[0][0].network.parameters for w in (None, ones, twos)
    )
    np.testing.assert_allclose(plain, even, atol=1e-6)
    assert np.abs(plain - uneven).max() > 1e-4


def test_batches_go_round_a_small_table_and_unknown_losses_are_refused(table):
    X, y = table
    ((beginner,),) = begin("dr", [X[:5]], [y[:5]], [10], batch_size=4)
    assert beginner.n_steps == 10
    assert np.isfinite(beginner.network.parameters).all()
    with pytest.raises(CoCoError, match="loss must be one of 'coco', 'dr', 'ce', not 'hinge'"):
        begin("hinge", [X], [y], [1])
