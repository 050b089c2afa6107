"""Numbers too small to matter cost no time, and their loss changes no weight."""

from contextlib import nullcontext, suppress

import numpy as np
import pytest
import torch

from cocoloss.losses import CoCoLoss
from cocoloss.networks import LockstepMLP
from cocoloss.training import FlatAdamW, Schedule, TrainingData, train, trainer
from cocoloss.training.trainer import flushed_subnormals

SMALLEST_NORMAL = torch.finfo(torch.float32).tiny


def is_flushed():
    return bool(torch.tensor(1e-39) * 1 == 0)


def fall_silent(monkeypatch, callbacks=()):
    """Train a network whose inputs stop after the first epoch, so that its momentum runs out."""
    moments = []
    step = FlatAdamW.step

    def spy(self, gradients, learning_rate):
        if self.n_steps >= 4:
            gradients = torch.zeros_like(gradients)
        step(self, gradients, learning_rate)
        moments[:] = [self.mean.clone(), self.square.clone()]

    monkeypatch.setattr(FlatAdamW, "step", spy)
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(64, 5)).astype(np.float32))
    y = torch.from_numpy(rng.integers(0, 3, 64))
    data = TrainingData(x, y, None, [np.arange(64)], 3)
    network = LockstepMLP((5, 16, 4), [rng])
    schedule = Schedule(240, 16, 3e-3, weight_decay=0.01)
    loss = CoCoLoss(3, normalize=False)
    outcome = train(network, loss, data, schedule, [rng], callbacks=callbacks)
    return outcome.parameters, torch.cat(moments)


def n_subnormal(numbers):
    return int(((numbers != 0) & (numbers.abs() < SMALLEST_NORMAL)).sum())


def test_momentum_that_runs_out_leaves_no_subnormal_numbers(monkeypatch):
    _, moments = fall_silent(monkeypatch)
    assert n_subnormal(moments) == 0


def test_the_weights_are_bit_for_bit_those_of_full_arithmetic(monkeypatch):
    flushed, _ = fall_silent(monkeypatch)
    monkeypatch.undo()
    monkeypatch.setattr(trainer, "flushed_subnormals", nullcontext)
    kept, moments = fall_silent(monkeypatch)
    assert n_subnormal(moments) > 0
    assert torch.equal(flushed, kept)


def test_callbacks_and_validation_see_the_numbers_of_everybody_else(monkeypatch):
    seen = []
    fall_silent(monkeypatch, callbacks=[lambda _: seen.append(is_flushed())])
    assert seen == [False] * 240


@pytest.mark.parametrize("before", [True, False])
def test_afterwards_all_is_as_before(before):
    torch.set_flush_denormal(before)
    try:
        with suppress(KeyError), flushed_subnormals():
            assert is_flushed()
            raise KeyError
        assert is_flushed() == before
    finally:
        torch.set_flush_denormal(False)
