"""Run under torchrun by test_distributed.py: every rank checks the loss of the global batch.

All ranks know the whole batch; each trains on its own shard, whose sizes are given. The gradient
that DistributedDataParallel averages must be the gradient of the loss of the whole batch in one
process.
"""

import copy
import itertools
import os
import sys

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from cocoloss.exceptions import CoCoError
from cocoloss.losses import (
    BalancedCoCoLoss,
    CoCoLoss,
    CrossEntropyLoss,
    DotRegressionLoss,
    backward_in_chunks,
)

C, D = 5, 6
PRIORS = [0.4, 0.3, 0.1, 0.1, 0.1]
SUM = {"reduction": "sum"}


def losses(q):
    yield "coco", lambda **k: CoCoLoss(C, normalize=False, **k)
    yield "packing", lambda **k: CoCoLoss(C, similarity="packing", **k)
    yield "sum", lambda **k: CoCoLoss(C, **SUM, normalize=False, **k)
    yield "sphere", lambda **k: CoCoLoss(C, norm_weight=0.5, **k)
    yield "balanced", lambda **k: BalancedCoCoLoss(PRIORS, **k)
    yield "dot regression", lambda **k: DotRegressionLoss(C, q, random_state=0, **k)
    yield "sum of dot regression", lambda **k: DotRegressionLoss(C, q, random_state=0, **SUM, **k)
    yield "cross-entropy", lambda **k: CrossEntropyLoss(C, q, class_weight=[1, 2, 3, 4, 5], **k)


def gradients(*modules):
    return torch.cat([p.grad.flatten() for m in modules for p in m.parameters()])


def close(a, b, what):
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-14, msg=lambda m: f"{what}: {m}")


def compare(name, make, network, data, mine, *, weighted):
    network = copy.deepcopy(network)  # a wrapped network keeps its hooks: one wrapper each
    x, y, w = data if weighted else (*data[:2], None)
    shard = [None if part is None else part[mine] for part in (x, y, w)]

    torch.manual_seed(1)  # cross-entropy's own layer
    alone = make().double()
    expected = alone(network(x), y, w)
    network.zero_grad()
    expected.backward()
    expected_gradient = gradients(network, alone).clone()

    torch.manual_seed(1)
    loss = make(process_group="world").double()
    has_layer = bool(list(loss.parameters()))
    # A loss with a layer of its own trains inside the wrapped module.
    parallel = DistributedDataParallel(network)
    wrapped_loss = DistributedDataParallel(loss) if has_layer else loss
    network.zero_grad()
    value = wrapped_loss(parallel(shard[0]), *shard[1:])
    value.backward()
    close(value.detach(), expected.detach(), f"{name} value")
    close(gradients(network, loss), expected_gradient, f"{name} gradient")

    _, gradient = loss.value_and_grad(network(shard[0]).detach(), *shard[1:])
    _, whole = alone.value_and_grad(network(x).detach(), y, w)
    close(gradient, whole[mine], f"{name} closed form")

    network.zero_grad()
    loss.zero_grad()
    value = backward_in_chunks(parallel, loss, shard[0], shard[1], 3, shard[2])
    close(value, expected.detach(), f"{name} value in chunks")
    close(gradients(network, loss), expected_gradient, f"{name} gradient in chunks")
    if isinstance(loss, CoCoLoss):
        ours = loss.components(network(shard[0]), *shard[1:])
        close(list(ours), list(alone.components(network(x), y, w)), f"{name} components")


def numbers_sent(loss, h, y):
    """Count what goes through all_reduce during one forward and backward pass."""
    sent = []
    original = distributed.all_reduce

    def counting(tensor, *args, **kwargs):
        sent.append(tensor.numel())
        return original(tensor, *args, **kwargs)

    distributed.all_reduce = counting
    try:
        loss(h.requires_grad_(), y).backward()
    finally:
        distributed.all_reduce = original
    return sum(sent)


def refuse_a_batch_that_is_empty_on_all_ranks(q):
    network, x, y = nn.Linear(D, q), torch.zeros(0, D), torch.zeros(0, dtype=torch.long)
    named = [(name, make) for name, make in losses(q) if "sum" not in name]
    for (name, make), reduction in itertools.product(named, ("mean", "sum")):
        loss = make(reduction=reduction, process_group="world")
        for call in (
            lambda loss=loss: loss(network(x), y),
            lambda loss=loss: loss.value_and_grad(network(x), y),
            lambda loss=loss: backward_in_chunks(network, loss, x, y, 3),
        ):
            try:
                call()
            except CoCoError as error:
                assert "empty" in str(error), error
            else:
                raise AssertionError(f"{name}, {reduction}: an empty batch was taken")


def keep_earlier_gradients_when_a_chunk_fails(q):
    """A network that fails must not cost the layer of the loss what it had learnt before."""
    loss = CrossEntropyLoss(C, q, process_group="world")
    loss(torch.ones(2, q), torch.tensor([0, 1])).backward()
    before = gradients(loss).clone()
    assert before.any()
    network = nn.Linear(D + 1, q)  # which does not fit the inputs
    try:
        backward_in_chunks(network, loss, torch.zeros(4, D), torch.zeros(4, dtype=torch.long), 3)
    except RuntimeError:
        close(gradients(loss), before, "earlier gradients")
    else:
        raise AssertionError("the network took what it cannot take")


def compare_all(n, mine, dimensions):
    for q in dimensions:
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(D, 8), nn.Tanh(), nn.Linear(8, q)).double()
        network.register_buffer("state", torch.zeros(3))  # which wrapped networks exchange
        data = torch.randn(n, D).double(), torch.randint(0, C, (n,)), torch.rand(n).double()
        for name, make in losses(q):
            for weighted in (False, True):
                compare(name, make, network, data, mine, weighted=weighted)

    # Two dimensions leave no room for N and D in the symmetric W: the numbers still agree.
    h, y = torch.randn(n, 2).double(), torch.randint(0, 3, (n,))
    value, _ = CoCoLoss(3, process_group="world", normalize=False).value_and_grad(h[mine], y[mine])
    close(value, CoCoLoss(3, normalize=False)(h, y), "two dimensions")

    # A stack of models, in float32, with the group itself instead of its name.
    h, y = torch.randn(2, n, 4), torch.randint(0, 3, (2, n))
    loss = CoCoLoss(3, process_group=distributed.group.WORLD)
    ours, gradient = loss.value_and_grad(h[:, mine], y[:, mine])
    expected, whole = CoCoLoss(3).value_and_grad(h, y)
    torch.testing.assert_close(ours, expected)
    torch.testing.assert_close(gradient, whole[:, mine])


def compare_points_and_soft_labels(n, mine, q):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(D, 8), nn.Tanh(), nn.Linear(8, q)).double()
    x, w = torch.randn(n, D).double(), torch.rand(n).double()
    points, soft = torch.randn(n, 3).double(), torch.randn(n, C).double().softmax(-1)
    similar = {"similarity": "packing"}  # which any dimension can hold
    cases = [
        ("points", points, lambda **k: CoCoLoss(targets="points", normalize=False, **k)),
        ("points on the sphere", points, lambda **k: CoCoLoss(targets="points", **k)),
        ("soft", soft, lambda **k: CoCoLoss(C, normalize=False, norm_weight=0.5, **similar, **k)),
        ("soft and balanced", soft, lambda **k: BalancedCoCoLoss(PRIORS, **similar, **k)),
    ]
    for name, targets, make in cases:
        for weighted in (False, True):
            compare(name, make, network, (x, targets, w), mine, weighted=weighted)


def count_what_is_sent():
    for n_classes, q in ((2, 1), (3, 2), (C, 4), (C, 32)):
        for m in (1, 1000):
            loss = CoCoLoss(n_classes, process_group="world", normalize=False)
            sent = numbers_sent(loss, torch.randn(m, q), torch.randint(0, n_classes, (m,)))
            room_for_two_more = 0 if q >= 3 else 2
            assert sent == n_classes * (q + 1) + q * q + room_for_two_more, (q, m, sent)


def refuse_a_rank_outside_the_group(rank):
    """It is told so, instead of getting a gradient of its own."""
    only_first = distributed.new_group([0])
    refused = False
    try:
        loss = CoCoLoss(3, process_group=only_first)
        loss.value_and_grad(torch.randn(5, 4), torch.arange(5) % 3)
    except CoCoError:
        refused = True
    assert refused == (rank != 0)
    if rank == 0:  # a group of one rank has nothing to exchange, and nothing to wait for
        assert numbers_sent(loss, torch.randn(5, 4), torch.arange(5) % 3) == 0
        for name, make in losses(4):  # what the sum is divided by needs no look at the device
            assert not times_asked(make(process_group=only_first)), name


def times_asked(loss):
    """Count how often a step asks a tensor whether it is true, for which a GPU is waited for."""
    asked, original = [], torch.Tensor.__bool__
    torch.Tensor.__bool__ = lambda tensor: asked.append(tensor) or original(tensor)
    try:
        loss(torch.randn(5, 4, requires_grad=True), torch.arange(5)).backward()
    finally:
        torch.Tensor.__bool__ = original
    return len(asked)


def main():
    distributed.init_process_group("gloo")
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    for case, text in enumerate(sys.argv[1:]):
        sizes = [int(size) for size in text.split(",")]
        assert len(sizes) == ranks
        start = sum(sizes[:rank])
        mine = slice(start, start + sizes[rank])
        compare_all(sum(sizes), mine, (4,) if case else (4, 7))
        for q in (2, 4):
            compare_points_and_soft_labels(sum(sizes), mine, q)
    count_what_is_sent()
    refuse_a_batch_that_is_empty_on_all_ranks(4)
    keep_earlier_gradients_when_a_chunk_fails(4)
    refuse_a_rank_outside_the_group(rank)
    print(f"rank {rank} of {ranks} agrees", flush=True)
    distributed.barrier()
    os._exit(0)  # gloo's own threads abort a normal exit now and then, about once in forty


if __name__ == "__main__":
    main()
