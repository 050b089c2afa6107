"""Which rows are held out, and the loss on them beside the same in plain loops."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cocoloss.fitting.early_stopping import (
    FLOOR,
    HeldOutLoss,
    deal_held_out,
    split_held_out,
)
from cocoloss.training import TrainingData

C = 3


def split(labels, groups=None, fraction=0.15, seed=0):
    labels = np.asarray(labels)
    groups = np.arange(len(labels)) if groups is None else np.asarray(groups)
    return split_held_out(labels, groups, fraction, np.random.default_rng(seed))


@given(
    st.lists(st.integers(1, 90), min_size=2, max_size=8),
    st.floats(0.05, 0.9),
    st.integers(0, 1000),
)
@settings(max_examples=80, deadline=None)
def test_every_row_is_in_one_part_and_every_class_keeps_two_thirds(counts, fraction, seed):
    labels = np.repeat(np.arange(len(counts)), counts)
    np.random.default_rng(seed).shuffle(labels)
    train, held_out = split(labels, fraction=fraction, seed=seed)
    assert sorted([*train, *held_out]) == list(range(len(labels)))
    kept = np.bincount(labels[train], minlength=len(counts))
    assert (3 * kept >= 2 * np.array(counts)).all()
    assert len(held_out) == 0 or len(held_out) >= 20


@given(st.lists(st.integers(1, 60), min_size=2, max_size=8), st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_chance_does_not_decide_how_many(counts, seed):
    labels = np.repeat(np.arange(len(counts)), counts)
    sizes = {len(split(labels, fraction=0.2, seed=seed + k)[1]) for k in range(5)}
    assert len(sizes) == 1


def test_fewer_than_twenty_are_none():
    assert len(split(np.arange(132) % 2)[1]) == 0
    assert len(split(np.arange(134) % 2)[1]) == 20


@given(
    st.lists(st.integers(1, 20), min_size=2, max_size=8), st.integers(1, 8), st.integers(0, 1000)
)
@settings(max_examples=80, deadline=None)
def test_of_few_rows_each_is_held_out_once_but_the_only_one_of_a_class(counts, members, seed):
    labels = np.repeat(np.arange(len(counts)), counts)
    np.random.default_rng(seed).shuffle(labels)
    generator = np.random.default_rng(seed)
    parts = deal_held_out(labels, np.arange(len(labels)), members, generator)
    often = np.bincount(np.concatenate(parts), minlength=len(labels))
    single = np.isin(labels, np.flatnonzero(np.array(counts) == 1))
    assert (often[single] == 0).all()
    assert (often[~single] <= 1).all()
    if members >= 3:
        assert (often[~single] == 1).all()
    for part in parts:
        kept = np.delete(labels, part)
        assert set(kept) == set(labels)
        assert len(part) <= len(labels) / 2


def test_a_rare_class_is_held_out_now_and_then():
    labels = np.repeat([0, 1], [200, 4])
    held = [np.bincount(labels[split(labels, seed=s)[1]], minlength=2)[1] for s in range(40)]
    assert set(held) == {0, 1}
    labels = np.repeat([0, 1], [200, 2])
    assert all((labels[split(labels, seed=s)[1]] == 0).all() for s in range(40))


def test_class_shares_are_alike():
    labels = np.repeat([0, 1, 2], [600, 300, 100])
    assert np.bincount(labels[split(labels)[1]]).tolist() == [90, 45, 15]


def test_a_few_equal_rows_stay_together():
    groups = np.repeat(np.arange(200), 3)
    _, held_out = split(np.zeros(600, dtype=int) + (groups >= 100), groups)
    copies = np.bincount(groups[held_out], minlength=200)
    assert len(held_out) == 90
    assert np.isin(copies, [1, 2]).sum() <= 2  # one at the border of each class


@pytest.mark.parametrize("fraction", [0.1, 0.2])
def test_many_equal_rows_are_shared_out(fraction):
    groups = np.repeat(np.arange(10), 100)
    for seed in range(5):
        _, held_out = split((groups >= 5).astype(int), groups, fraction, seed)
        copies = np.bincount(groups[held_out], minlength=10)
        assert np.abs(copies - 100 * fraction).max() <= 1


@pytest.mark.parametrize("times", [7, 20])
def test_rows_of_a_class_that_was_multiplied_stay_together(times):
    sizes = np.r_[np.ones(300, dtype=int), np.full(60, times)]
    groups = np.repeat(np.arange(360), sizes)
    _, held_out = split((groups >= 300).astype(int), groups)
    copies = np.bincount(groups[held_out], minlength=360)
    assert np.isin(copies[300:], [0, times]).sum() >= 59  # one at the border of the class
    assert copies[300:].sum() == 60 * times * 15 // 100


def test_rows_that_recur_beside_rows_that_do_not_are_shared_out():
    sizes = np.r_[np.ones(60, dtype=int), np.full(40, 20)]
    groups = np.repeat(np.arange(100), sizes)
    _, held_out = split(np.arange(len(groups)) * 0, groups)
    copies = np.bincount(groups[held_out], minlength=100)
    assert np.abs(copies[60:] - 3).max() <= 1


class Given:
    """A network that makes of each row what it is."""

    def forward(self, x):
        return x.clone()


def softmax_loss(scores, label, temperature):
    top = max(s / temperature for s in scores)
    total = sum(math.exp(s / temperature - top) for s in scores)
    return math.log(total) + top - scores[label] / temperature


def expected(scores, labels, weights):
    """Return the balanced log loss at the best temperature."""
    losses = []
    present = sorted(set(labels))
    for temperature in np.logspace(-1, 2, 16):
        loss = 0.0
        for c in present:
            rows = [i for i in range(len(labels)) if labels[i] == c]
            mass = sum(weights[i] for i in rows)
            for i in rows:
                own = softmax_loss(scores[i], labels[i], temperature)
                loss += weights[i] / mass * own / len(present)
        losses.append(loss)
    return min(losses)


def gaussian_scores(h, y, w, z):
    h, z = np.asarray(h, float), np.asarray(z, float)
    means = [sum(w[i] * h[i] for i in range(len(y)) if y[i] == c) for c in range(C)]
    means = [m / sum(w[i] for i in range(len(y)) if y[i] == c) for c, m in enumerate(means)]
    q = h.shape[1]
    covariance, square = np.zeros((q, q)), 0.0
    for i in range(len(y)):
        d = h[i] - means[y[i]]
        covariance += w[i] * np.outer(d, d) / sum(w)
        square += w[i] * h[i] @ h[i] / sum(w) / q
    inverse = np.linalg.inv(covariance + FLOOR * square * np.eye(q))
    return [[-0.5 * (row - m) @ inverse @ (row - m) for m in means] for row in z]


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    y = np.r_[np.arange(C), rng.choice(C, 57, p=[0.7, 0.2, 0.1])]
    x = rng.normal(size=(60, C)).astype(np.float32)
    x[np.arange(60), y] += 1
    # One with held-out rows of two classes, so that the shorter is padded with a row of class 0.
    held_out = [np.arange(30, 60), np.flatnonzero(y[:30] > 0)[:5]]
    train = [np.arange(30), np.setdiff1d(np.arange(60), held_out[1][1:])]
    return x, y, train, held_out


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("logits", [True, False])
def test_is_the_balanced_log_loss_at_the_best_temperature(table, logits, weighted):
    x, y, train, held_out = table
    w = np.random.default_rng(1).uniform(0.1, 3, 60) if weighted else np.ones(60)
    data = TrainingData(torch.from_numpy(x), torch.from_numpy(y), None, train, C)
    weights = torch.from_numpy(w.astype(np.float32)) if weighted else None
    loss = HeldOutLoss(data, held_out, logits=logits, weights=weights)
    found = loss(Given(), np.arange(2))
    for k in range(2):
        scores = x[held_out[k]].tolist()
        if not logits:
            scores = gaussian_scores(x[train[k]], y[train[k]], w[train[k]], x[held_out[k]])
        wanted = expected(scores, y[held_out[k]].tolist(), w[held_out[k]])
        assert found[k] == pytest.approx(wanted, rel=2e-4)
    assert loss(Given(), np.array([1])) == pytest.approx(found[1:])


def test_networks_that_diverged_are_worst(table):
    x, y, train, held_out = table
    x = np.full_like(x, np.nan)
    data = TrainingData(torch.from_numpy(x), torch.from_numpy(y), None, train, C)
    loss = HeldOutLoss(data, held_out, logits=False)
    assert loss(Given(), np.arange(2)).tolist() == [np.inf, np.inf]
