import weakref
from collections import UserDict
from dataclasses import dataclass
from typing import NamedTuple

import pytest
import torch
from torch import nn

from cocoloss.exceptions import CoCoError
from cocoloss.losses import (
    BalancedCoCoLoss,
    CoCoLoss,
    CrossEntropyLoss,
    DotRegressionLoss,
    backward_in_chunks,
)

C, Q, N = 3, 4, 50
LOSSES = {
    "coco": lambda: CoCoLoss(C, normalize=False),
    "sum": lambda: CoCoLoss(C, reduction="sum", normalize=False),
    "sphere": lambda: CoCoLoss(C),
    "balanced": lambda: BalancedCoCoLoss([0.5, 0.3, 0.2]),
    "dot regression": lambda: DotRegressionLoss(C, Q, random_state=0),
    "cross-entropy": lambda: CrossEntropyLoss(C, Q, class_weight=[1.0, 2.0, 3.0]),
}


@pytest.fixture
def data():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N, 6, dtype=torch.float64, generator=generator)
    y = torch.randint(0, C, (N,), generator=generator)
    return x, y, torch.rand(N, dtype=torch.float64, generator=generator)


def make_network(*extra):
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), *extra, nn.Linear(8, Q)).double()


def gradients(*modules):
    return [p.grad for module in modules for p in module.parameters()]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("chunk_size", [1, 7, 50, 1000])
@pytest.mark.parametrize("name", LOSSES)
def test_is_the_gradient_of_the_whole_batch(data, name, chunk_size, weighted):
    x, y, w = data
    w = w if weighted else None
    network, loss = make_network(), LOSSES[name]().double()
    expected = loss(network(x), y, w)
    expected.backward()
    expected_gradients = [g.clone() for g in gradients(network, loss)]
    network.zero_grad()
    loss.zero_grad()

    value = backward_in_chunks(network, loss, x, y, chunk_size, w)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-10, atol=1e-14)
    assert not value.requires_grad
    torch.testing.assert_close(gradients(network, loss), expected_gradients, rtol=1e-10, atol=1e-14)
    backward_in_chunks(network, loss, x, y, 9, w)  # adds to what is there, as backward does
    twice = [2 * g for g in expected_gradients]
    torch.testing.assert_close(gradients(network, loss), twice, rtol=1e-10, atol=1e-14)


def test_dropout_draws_the_same_mask_in_both_passes(data):
    x, y, _ = data
    network, loss = make_network(nn.Dropout(0.5)), CoCoLoss(C)
    torch.manual_seed(3)
    value = backward_in_chunks(network, loss, x, y, 7)
    got = [g.clone() for g in gradients(network)]
    after = torch.get_rng_state()
    network.zero_grad()

    torch.manual_seed(3)
    embeddings = torch.cat([network(part) for part in x.split(7)])
    expected = loss(embeddings, y)
    expected.backward()
    torch.testing.assert_close(value, expected.detach())
    torch.testing.assert_close(got, gradients(network))
    assert torch.equal(after, torch.get_rng_state())  # as if the network had run once


def test_inputs_may_be_an_array_or_anything_that_can_be_sliced(data):
    x, y, _ = data

    class FromDisk:
        def __getitem__(self, rows):
            return torch.from_numpy(x.numpy()[rows])

    network, loss = make_network(), CoCoLoss(C)
    for inputs in (FromDisk(), x.numpy()):
        value = backward_in_chunks(network, loss, inputs, y, 7)
        torch.testing.assert_close(value, loss(network(x), y).detach())
    with torch.no_grad(), pytest.raises(CoCoError, match="gradients are switched off"):
        backward_in_chunks(network, loss, x, y, 7)


def test_batch_normalisation_is_refused_in_training_only(data):
    x, y, _ = data
    network = make_network(nn.BatchNorm1d(8))
    with pytest.raises(CoCoError, match=r"layer '2' normalises over the batch.*LayerNorm"):
        backward_in_chunks(network, CoCoLoss(C), x, y, 7)
    network.eval()
    backward_in_chunks(network, CoCoLoss(C), x, y, 7)
    network = make_network(nn.BatchNorm1d(8, track_running_stats=False)).eval()
    with pytest.raises(CoCoError, match="normalises over the batch"):
        backward_in_chunks(network, CoCoLoss(C), x, y, 7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"chunk_size": 0}, "chunk_size must be at least 1"),
        ({"inputs": torch.zeros(9, 6)}, "inputs has 9 rows, but there are 50 labels"),
        ({"sample_weight": torch.ones(9)}, "sample_weight must have one value per sample"),
        ({"sample_weight": -torch.ones(50)}, "row 0 has -1.0"),
        ({"sample_weight": ["a"] * 50}, "sample_weight must be numbers"),
        ({"inputs": None}, "can be sliced by rows"),
        ({"network": torch.tanh}, "must be a torch.nn.Module"),
        ({"network": nn.Unflatten(1, (2, 3))}, "must give embeddings of shape"),
        ({"labels": torch.zeros(2, 50).long()}, r"labels must have shape \(n_samples,\)"),
        ({"labels": torch.full((50,), 3)}, "go from 3 to 3"),
        ({"loss": nn.MSELoss()}, "needs a loss of cocoloss, not MSELoss"),
        ({"inputs": torch.zeros(0, 6).double(), "labels": []}, "the batch is empty"),
    ],
)
def test_bad_input_is_a_clear_error(data, change, message):
    x, y, _ = data
    call = {"network": make_network(), "loss": CoCoLoss(C), "inputs": x, "labels": y}
    with pytest.raises(CoCoError, match=message):
        backward_in_chunks(**(call | {"chunk_size": 7} | change))


class Watched(nn.Module):
    """Remembers how many rows it saw at once, and whether a graph was kept."""

    def __init__(self):
        super().__init__()
        self.layer = make_network()[2]
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.seen = []

    def forward(self, x):
        self.calls += 1
        self.seen.append((len(x), torch.is_grad_enabled()))
        return self.layer(x.repeat(1, 2)[:, :8]) * (1 + self.calls / 10)


@pytest.mark.parametrize("name", LOSSES)
def test_only_one_chunk_is_in_memory(data, name):
    x, y, _ = data
    network = Watched()
    live = []

    def pack(tensor):
        live.append(len(tensor) if tensor.dim() else 0)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        backward_in_chunks(network, LOSSES[name]().double(), x, y, 7)
    first, second = network.seen[:-8], network.seen[-8:]
    assert second == [(7, True)] * 7 + [(1, True)]
    assert first in ([], [(7, False)] * 7 + [(1, False)])
    assert max(live) <= max(7, 6, Q)  # rows of a chunk, or a weight


def test_the_graph_of_a_chunk_is_freed_before_the_next(data):
    x, y, _ = data
    alive, most = set(), 0

    class Output(torch.autograd.Function):
        @staticmethod
        def forward(ctx, h):
            ctx.token = object()
            ctx.save_for_backward(h)
            return h.clone()

        @staticmethod
        def backward(_, gradient):
            return gradient

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, Q).double()

        def forward(self, x):
            nonlocal most
            h = Output.apply(self.layer(x))
            if h.requires_grad:
                alive.add(weakref.ref(h.grad_fn))
                most = max(most, sum(ref() is not None for ref in alive))
            return h

    backward_in_chunks(Counting(), CoCoLoss(C), x, y, 7)
    assert most <= 2  # this chunk's, and the last one's until its name is reused


def test_buffers_that_change_are_the_same_in_both_passes(data):
    x, y, _ = data
    network = Watched()
    value = backward_in_chunks(network, CoCoLoss(C), x, y, 7)
    got = [g.clone() for g in gradients(network)]
    assert network.calls == 8  # as if the network had run once over the chunks
    network = Watched()
    expected = CoCoLoss(C)(torch.cat([network(part) for part in x.split(7)]), y)
    expected.backward()
    torch.testing.assert_close(value, expected.detach())
    torch.testing.assert_close(got, gradients(network))


def test_a_first_pass_that_fails_leaves_the_buffers_as_they_were(data):
    x, y, _ = data

    class Failing(Watched):
        def forward(self, x):
            if self.calls == 3:
                raise RuntimeError("the fourth chunk is too much")
            return super().forward(x)

    network = Failing()
    before = [buffer.clone() for buffer in network.buffers()]
    with pytest.raises(RuntimeError, match="the fourth chunk"):
        backward_in_chunks(network, CoCoLoss(C), x, y, 7)
    torch.testing.assert_close(list(network.buffers()), before)
    assert all(gradient is None for gradient in gradients(network))


def test_weights_are_held_against_the_precision_of_the_embeddings(data):
    x, y, _ = data
    w = torch.full((N,), 1e300, dtype=torch.float64)
    loss = DotRegressionLoss(C, Q, random_state=0)
    assert backward_in_chunks(make_network(), loss, x, y, 7, w) > 1e290
    network = make_network().float()
    with pytest.raises(CoCoError, match=r"row 0 has 1e\+300, which is too large for torch.float32"):
        backward_in_chunks(network, loss, x.float(), y, 7, w)
    assert all(gradient is None for gradient in gradients(network))


class Sentences(nn.Module):
    """A network with named inputs and several outputs, as Hugging Face's have them."""

    def __init__(self, answer):
        super().__init__()
        with torch.random.fork_rng([]):
            torch.manual_seed(0)
            self.words, self.last = nn.Embedding(20, 5).double(), nn.Linear(5, Q).double()
        self.answer = answer

    def forward(self, input_ids, attention_mask=None, return_dict=True):
        states = self.words(input_ids)  # (n, length, 5)
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        mean = (states * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
        assert return_dict
        return self.answer(states, self.last(mean))


class Answer(NamedTuple):
    states: torch.Tensor
    pooled: torch.Tensor


@dataclass
class DataAnswer:
    states: torch.Tensor
    pooled: torch.Tensor


ANSWERS = {
    "a tensor": lambda _, pooled: pooled,
    "a tuple": lambda states, pooled: (states, pooled),
    "a dict": lambda states, pooled: {"states": states, "pooled": pooled},
    "a named tuple": Answer,
    "a dataclass": DataAnswer,
}


@pytest.fixture
def sentences():
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, 20, (N, 6), generator=generator)
    mask = (torch.arange(6) < torch.randint(1, 7, (N, 1), generator=generator)).long()
    return {"input_ids": ids, "attention_mask": mask}, torch.arange(N) % C


@pytest.mark.parametrize("name", ["sphere", "cross-entropy"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_inputs_by_name_and_several_outputs(sentences, answer, name):
    inputs, y = sentences
    network, loss = Sentences(ANSWERS["a tensor"]), LOSSES[name]().double()
    expected = loss(network(**inputs), y)
    expected.backward()
    wanted = [g.clone() for g in gradients(network, loss)]
    network.answer = ANSWERS[answer]
    arrays = {key: x.numpy() for key, x in inputs.items()}
    for given in (
        inputs | {"return_dict": True},  # goes to every chunk
        UserDict(arrays),
        (inputs["input_ids"], inputs["attention_mask"]),
    ):
        network.zero_grad()
        loss.zero_grad()
        value = backward_in_chunks(network, loss, given, y, 7)
        torch.testing.assert_close(value, expected.detach(), rtol=1e-10, atol=1e-14)
        torch.testing.assert_close(gradients(network, loss), wanted, rtol=1e-10, atol=1e-14)


def test_the_output_that_is_meant_can_be_named(sentences):
    inputs, y = sentences
    network = Sentences(lambda _, pooled: {"pooled": pooled, "other": 2 * pooled})
    value = backward_in_chunks(network, CoCoLoss(C, normalize=False), inputs, y, 7, output="other")
    pooled = network(**inputs)["pooled"]
    expected = CoCoLoss(C, normalize=False)(2 * pooled, y).detach()
    torch.testing.assert_close(value, expected)
    network.answer = lambda states, pooled: (states, 2 * pooled, pooled)
    value = backward_in_chunks(network, CoCoLoss(C, normalize=False), inputs, y, 7, output=1)
    torch.testing.assert_close(value, expected)


@pytest.mark.parametrize(
    ("changes", "answer", "output", "message"),
    [
        (
            {"attention_mask": torch.ones(9, 6)},
            "a tensor",
            None,
            r"\['attention_mask'\] has 9 rows",
        ),
        (
            {"more": (torch.ones(3),)},
            "a tensor",
            None,
            r"inputs\['more'\]\[0\] has 3 rows, but .* 50",
        ),
        (
            {},
            "a dict",
            "pooler",
            r"'states' \(7, 6, 5\), 'pooled' \(7, 4\); output='pooler' is none",
        ),
        ({}, "nothing", None, "the network gave a NoneType with no tensor; say which"),
        ({}, "two", None, r"a tuple with 0 \(7, 4\), 1 \(7, 4\); say which one .* by output="),
    ],
)
def test_refuses_inputs_and_outputs_that_do_not_fit(sentences, changes, answer, output, message):
    inputs, y = sentences
    others = {"nothing": lambda *_: None, "two": lambda _, pooled: (pooled, 2 * pooled)}
    network = Sentences((ANSWERS | others)[answer])
    with pytest.raises(CoCoError, match=message):
        backward_in_chunks(network, CoCoLoss(C), inputs | changes, y, 7, output=output)
    with pytest.raises(CoCoError, match="dict or a tuple of such things, not dict"):
        backward_in_chunks(network, CoCoLoss(C), {"a": None}, y, 7)
    assert all(gradient is None for gradient in gradients(network))
