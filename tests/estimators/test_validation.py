"""The held-out loss, beside the same in plain loops."""

import math

import numpy as np
import pytest
import torch

from cocoloss.estimators.validation import FLOOR, HeldOutLoss

C = 3


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
    loss = HeldOutLoss(
        torch.from_numpy(x),
        torch.from_numpy(y),
        train,
        held_out,
        C,
        logits=logits,
        weights=torch.from_numpy(w.astype(np.float32)) if weighted else None,
    )
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
    loss = HeldOutLoss(torch.from_numpy(x), torch.from_numpy(y), train, held_out, C, logits=False)
    assert loss(Given(), np.arange(2)).tolist() == [np.inf, np.inf]
