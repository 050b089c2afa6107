"""The loop: what it draws, how it steps, when it stops."""

import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from cocoloss.exceptions import CoCoError
from cocoloss.losses import BalancedCoCoLoss, CoCoLoss, CrossEntropyLoss, DotRegressionLoss
from cocoloss.networks import LockstepMLP, ModuleStack
from cocoloss.training import BatchSampler, FlatAdamW, Schedule, TrainingData, train

D, Q, C, N = 5, 4, 3, 200


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    y = rng.integers(0, C, N)
    x = rng.normal(size=(N, D)).astype(np.float32)
    x[:, :C] += 3 * np.eye(C, dtype=np.float32)[y]
    return torch.from_numpy(x), torch.from_numpy(y)


def streams(n_models, salt=0):
    return [np.random.default_rng([k, salt]) for k in range(n_models)]


def data(table, n_models=1, rows=None, weights=None):
    rows = [np.arange(N)] * n_models if rows is None else rows
    return TrainingData(table[0], table[1], weights, rows, C)


def mlp(n_models=1, **options):
    return LockstepMLP((D, 16, Q), streams(n_models), **options)


def run(table, schedule, n_models=1, *, loss=None, weights=None, **options):
    """Train networks of two layers on the whole table."""
    loss = CoCoLoss(C, normalize=False) if loss is None else loss
    given = data(table, n_models, weights=weights)
    return train(mlp(n_models), loss, given, schedule, streams(n_models, 1), **options)


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "written out"])
@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_the_optimiser_is_torchs_adamw(fused, weight_decay):
    parameters = torch.randn(3, 50)
    expected = parameters.clone().requires_grad_()
    theirs = torch.optim.AdamW([expected], lr=0.01, weight_decay=weight_decay)
    ours = FlatAdamW(parameters, weight_decay)
    if not fused:
        ours._fused = None  # noqa: SLF001
    for step in range(10):
        gradient = torch.randn(3, 50)
        theirs.param_groups[0]["lr"] = 0.01 / (step + 1)
        expected.grad = gradient
        theirs.step()
        ours.step(gradient, 0.01 / (step + 1))
    torch.testing.assert_close(parameters, expected.detach())


@given(st.integers(1, 60), st.integers(1, 20), st.booleans(), st.integers(0, 100))
@settings(max_examples=50, deadline=None)
def test_every_row_is_drawn_once_an_epoch(n, n_classes, in_pairs, seed):
    rng = np.random.default_rng(seed)
    rows = rng.choice(1000, n, replace=False)
    sampler = BatchSampler(rows, rng.integers(0, n_classes, n), rng, in_pairs=in_pairs)
    assert sorted(sampler.draw()) == sorted(rows)


def test_batches_of_pairs_hold_every_class_twice_or_not_at_all_and_others_are_permutations():
    labels = np.repeat(np.arange(100), 4)
    sampler = BatchSampler(np.arange(400), labels, np.random.default_rng(0), in_pairs=True)
    for batch in sampler.draw().reshape(-1, 20):
        _, counts = np.unique(labels[batch], return_counts=True)
        assert counts.min() >= 2
    sampler = BatchSampler(np.arange(400), labels, np.random.default_rng(0))
    assert np.array_equal(sampler.draw(), np.random.default_rng(0).permutation(400))


LOSSES = {
    "coco": lambda: CoCoLoss(C, normalize=False),
    "balanced": lambda: BalancedCoCoLoss([0.5, 0.3, 0.2], normalize=False),
    "dot regression": lambda: DotRegressionLoss(C, Q, random_state=0),
}


@pytest.mark.parametrize("name", LOSSES)
def test_training_lowers_the_loss(table, name):
    outcome = run(table, Schedule(30, 32, 3e-3), loss=LOSSES[name]())
    (curve,) = outcome.loss_curves
    assert len(curve) == 30
    assert curve[-1] < 0.5 * curve[0]
    assert outcome.best_epochs.tolist() == [30]


def test_cross_entropy_trains_on_logits(table):
    network = LockstepMLP((D, 16, C), streams(1))
    outcome = train(
        network, CrossEntropyLoss(C, None), data(table), Schedule(30, 32, 3e-3), streams(1, 1)
    )
    network.load(outcome.parameters)
    predicted = network.forward(table[0].unsqueeze(0))[0].argmax(1)
    assert (predicted == table[1]).float().mean() > 0.9


@pytest.mark.parametrize("options", [{}, {"dropout": 0.3}, {"normalize": True}])
def test_a_model_in_a_stack_trains_as_it_would_alone(table, options):
    rows = [np.arange(N), np.arange(20, N), np.arange(0, N - 20)]
    schedule = Schedule(1, 20, 3e-3, weight_decay=0.01)

    def train_some(models):
        network = LockstepMLP((D, 16, Q), streams(3)[models], **options)
        given = data(table, rows=rows[models])
        loss = CoCoLoss(C, normalize=False)
        return train(network, loss, given, schedule, streams(3, 1)[models]).parameters

    stack = train_some(slice(None))
    for k in (1, 2):  # which have the fewest rows: the stack has as many steps as they
        alone = train_some(slice(k, k + 1))
        torch.testing.assert_close(stack[k], alone[0], rtol=1e-4, atol=1e-5)


def test_each_model_stops_for_itself_and_keeps_its_best(table):
    seen = []

    def validate(network, models):
        """Model 0 is best after epoch 2, model 1 goes on improving."""
        epoch = len(seen) + 1
        seen.append((models.tolist(), network.parameters.clone()))
        scores = {0: abs(epoch - 2), 1: -epoch}
        return np.array([scores[k] for k in models], dtype=float)

    outcome = run(table, Schedule(10, 32, 3e-3, patience=3), 2, validate=validate)
    assert [models for models, _ in seen] == [[0, 1]] * 5 + [[1]] * 5
    assert outcome.best_epochs.tolist() == [2, 10]
    assert outcome.scores.tolist() == [0, -10]
    assert [len(curve) for curve in outcome.loss_curves] == [5, 10]
    assert torch.equal(outcome.parameters[0], seen[1][1][0])
    assert torch.equal(outcome.parameters[1], seen[9][1][0])


def test_clipping_shortens_the_gradient_of_each_model_alone(table):
    class Scaled(CoCoLoss):
        def evaluate(self, batch):
            value, gradient = super().evaluate(batch)
            return value, gradient * torch.tensor([1e6, 1e-6])[:, None, None]

    norms = []

    def remember(epoch):
        norms.append(epoch.network.gradients.norm(dim=1))

    schedule = Schedule(1, 32, 3e-3, clip_norm=0.5)
    run(table, schedule, 2, loss=Scaled(C, normalize=False), callbacks=[remember])
    torch.testing.assert_close(norms[0][0], torch.tensor(0.5))
    assert norms[0][1] < 0.01


def test_the_cosine_falls_to_zero_and_the_constant_does_not():
    cosine, constant = Schedule(1, 1, 0.1), Schedule(1, 1, 0.1, decay="constant")
    assert cosine.rate_at(0, 10) == pytest.approx(0.1)
    assert cosine.rate_at(5, 10) == pytest.approx(0.05)
    assert cosine.rate_at(10, 10) == pytest.approx(0)
    assert constant.rate_at(10, 10) == 0.1


def test_rows_of_weight_zero_do_not_matter(table):
    weights = (torch.arange(N) < 100).float()
    changed = table[0].clone()
    changed[100:] = 7
    loss, schedule = DotRegressionLoss(C, Q, random_state=0), Schedule(2, 32, 3e-3)
    first, second = (
        run((x, table[1]), schedule, loss=loss, weights=weights) for x in (table[0], changed)
    )
    assert torch.equal(first.parameters, second.parameters)


def test_a_module_of_ones_own_trains_through_the_same_loop(table):
    def make(seed):
        with torch.random.fork_rng([]):
            torch.manual_seed(seed)
            return nn.Sequential(nn.Linear(D, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, Q))

    stack = ModuleStack(make, [0, 1])
    loss = CoCoLoss(C, normalize=False)
    outcome = train(stack, loss, data(table, 2), Schedule(20, 32, 3e-3), streams(2, 1))
    for curve in outcome.loss_curves:
        assert curve[-1] < 0.5 * curve[0]


def test_a_model_that_was_never_judged_stays_as_it_is(table):
    seen = []

    def stop(epoch):
        seen.append(epoch.network.parameters.clone())
        return epoch.number == 3

    outcome = run(
        table,
        Schedule(50, 32, 3e-3, patience=1, validate_every=10),
        2,
        validate=lambda _, models: np.zeros(len(models)),
        callbacks=[stop],
    )
    assert outcome.best_epochs.tolist() == [3, 3]
    assert torch.equal(outcome.parameters, seen[-1])
    assert np.isnan(outcome.scores).all()


@pytest.mark.parametrize(("every", "patience", "n", "best"), [(4, 3, 8, 4), (1, 2, 3, 1)])
def test_training_ends_at_the_validation_that_exhausts_the_patience(
    table, every, patience, n, best
):
    outcome = run(
        table,
        Schedule(50, 32, 3e-3, patience=patience, validate_every=every),
        2,
        validate=lambda _, models: np.zeros(len(models)),
    )
    assert outcome.best_epochs.tolist() == [best] * 2
    assert [len(curve) for curve in outcome.loss_curves] == [n] * 2


@pytest.mark.parametrize(
    ("answer", "n"), [(True, 1), (np.True_, 1), (np.bool_(False), 4), (1, 4), ("yes", 4), (None, 4)]
)
def test_true_stops_and_nothing_else_does(table, answer, n):
    heard = []

    def callback(epoch):
        heard.append((epoch.number, epoch.n_epochs, epoch.loss.shape))
        return answer

    # A batch that is larger than the table is the table.
    outcome = run(table, Schedule(4, 10_000, 3e-3), callbacks=[callback])
    assert heard == [(number, 4, (1,)) for number in range(1, n + 1)]
    assert len(outcome.loss_curves[0]) == n


def test_a_callback_can_ask_what_would_be_left(table):
    asked, validated = [], []
    scores = iter([3.0, 1.0, 2.0])

    def ask(epoch):
        asked.append(epoch.outcome())
        validated.append(epoch.score is not None)

    outcome = run(
        table,
        Schedule(5, 32, 3e-3, validate_every=2),
        validate=lambda *_: np.array([next(scores)]),
        callbacks=[ask],
    )
    assert validated == [False, True, False, True, True]  # the last one always
    assert [int(each.best_epochs[0]) for each in asked] == [1, 2, 2, 4, 4]
    assert [len(each.loss_curves[0]) for each in asked] == [1, 2, 3, 4, 5]
    assert torch.equal(asked[3].parameters, outcome.parameters)
    assert not torch.equal(asked[0].parameters, outcome.parameters)


def test_a_score_that_is_never_finite_is_a_divergence(table):
    with pytest.raises(CoCoError, match="training diverged"):
        run(table, Schedule(2, 32, 3e-3), validate=lambda *_: np.array([np.inf]))


def test_models_that_go_on_keep_their_momentum():
    torch.manual_seed(0)
    parameters, gradients = torch.randn(3, 20), torch.randn(10, 3, 20)
    stack, alone = FlatAdamW(parameters.clone(), 0.1), FlatAdamW(parameters[1:].clone(), 0.1)
    for step, gradient in enumerate(gradients):
        if step == 5:
            stack.select(stack.parameters[1:].clone(), [1, 2])
        stack.step(gradient if step < 5 else gradient[1:], 0.01)
        alone.step(gradient[1:].contiguous(), 0.01)
    torch.testing.assert_close(stack.parameters, alone.parameters)


class Ticks:
    """A clock that moves on by a hundredth of a second whenever somebody looks."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 0.01
        return self.now


@pytest.fixture
def rates(monkeypatch):
    """Let time go by ticks, and write down the learning rate of every step."""
    taken = []
    step = FlatAdamW.step

    def noted(self, gradients, learning_rate):
        taken.append(learning_rate)
        step(self, gradients, learning_rate)

    monkeypatch.setattr(FlatAdamW, "step", noted)
    monkeypatch.setattr("cocoloss.training.trainer.time.perf_counter", Ticks())
    return taken


def test_the_rate_comes_down_until_the_time_is_up_and_the_best_is_kept(table, rates):
    judged = []

    def validate(network, models):
        judged.append(len(rates))
        return np.array([-1.0 * len(rates)])

    schedule = Schedule(1000, 32, 3e-3, seconds=1.0, validate_every=1000)
    outcome = run(table, schedule, validate=validate)
    assert 80 < len(rates) <= 101  # of 6,000 steps
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > 0.99 * 3e-3
    assert rates[-1] == pytest.approx(0, abs=1e-9)
    assert judged == [len(rates)]  # the last epoch, though it is not whole
    assert outcome.best_epochs.tolist() == [len(outcome.loss_curves[0])]
    *_, before, last = outcome.loss_curves[0]
    assert last == pytest.approx(before, rel=0.5)  # the mean of the steps that it took


def test_steps_bring_the_rate_down_where_there_is_time(table, rates):
    run(table, Schedule(4, 32, 3e-3, seconds=1000.0))
    in_time = rates.copy()
    rates.clear()
    run(table, Schedule(4, 32, 3e-3))
    assert in_time == pytest.approx(rates)
    assert len(rates) == 4 * (N // 32)


def test_a_constant_rate_stays_and_a_moment_is_one_step(table, rates):
    run(table, Schedule(1000, 32, 3e-3, decay="constant", seconds=0.5))
    assert set(rates) == {3e-3}
    rates.clear()
    run(table, Schedule(1000, 32, 3e-3, seconds=1e-9))
    assert len(rates) == 1


def test_a_time_limit_is_kept(table):
    start, worked = time.perf_counter(), time.process_time()
    run(table, Schedule(10**6, 32, 3e-3, seconds=0.3))
    assert time.perf_counter() - start > 0.25
    assert time.process_time() - worked < 0.6  # which others that keep the machine busy add none to


def test_the_average_is_that_of_the_last_steps():
    parameters = torch.zeros(2, 3)
    optimiser = FlatAdamW(parameters, 0.0, averaged_steps=4)
    expected, way = torch.zeros(2, 3), []
    for step in range(1, 11):
        optimiser.step(torch.randn(2, 3), 0.1)
        way.append(parameters.clone())
        expected += (parameters - expected) / min(step, 4)
        torch.testing.assert_close(optimiser.average, expected)
        if step == 4:
            torch.testing.assert_close(expected, torch.stack(way).mean(0))
    optimiser.select(parameters[1:].clone(), [1])
    torch.testing.assert_close(optimiser.average, expected[1:])
    assert FlatAdamW(parameters, 0.0).average is parameters


def test_averaged_weights_are_judged_shown_and_kept_while_the_others_go_on(table):
    schedule = Schedule(4, 32, 3e-3, decay="averaged")
    judged, shown = [], []

    def validate(network, models):
        judged.append(network.parameters.clone())
        return np.full(len(models), -1.0 * len(judged))

    def look(epoch):
        shown.append((epoch.network.parameters.clone(), epoch.outcome().parameters))

    kept = run(table, schedule, 2, validate=validate, callbacks=[look]).parameters
    assert torch.equal(kept, judged[-1])
    for expected, (seen, left) in zip(judged, shown, strict=True):
        assert torch.equal(seen, expected)
        assert torch.equal(left, expected)
    unjudged = run(table, schedule, 2).parameters
    assert torch.equal(unjudged, kept)  # to be judged or looked at changes nothing
    latest = run(table, Schedule(4, 32, 3e-3, decay="constant"), 2).parameters
    assert not torch.allclose(latest, kept)  # which is their mean over the last steps


def test_models_that_stop_keep_their_own_average(table):
    def validate(network, models):
        epoch = next(counter)
        return np.array([{0: abs(epoch - 1), 1: -epoch}[k] for k in models], dtype=float)

    counter = iter(range(1, 100))
    schedule = Schedule(4, 32, 3e-3, decay="averaged", patience=2)
    outcome = run(table, schedule, 2, validate=validate)
    assert outcome.best_epochs.tolist() == [1, 4]
    alone = run(table, Schedule(4, 32, 3e-3, decay="averaged"), 2)
    torch.testing.assert_close(outcome.parameters[1], alone.parameters[1], rtol=1e-4, atol=1e-5)
