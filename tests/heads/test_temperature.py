import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax

from cocoloss.exceptions import CoCoError
from cocoloss.heads import fit_temperature
from cocoloss.heads.base import MAX_TEMPERATURE, MIN_TEMPERATURE


def printed_log_loss(scores, y, weights, temperature, offset=0.0):
    return -sum(
        w * log_softmax(offset + s / temperature)[c]
        for s, c, w in zip(scores, y, weights, strict=True)
    )


def drawn(temperature, n=20_000, n_classes=4, seed=0, offset=0.0):
    """Scores, and labels drawn with the probabilities that a temperature makes of them."""
    rng = np.random.default_rng(seed)
    scores = 3 * rng.normal(size=(n, n_classes))
    p = softmax(offset + scores / temperature, axis=1)
    return scores, (p.cumsum(axis=1) < rng.uniform(size=(n, 1))).sum(axis=1)


@pytest.mark.parametrize("offset", [np.zeros(4), np.log([0.7, 0.1, 0.1, 0.1])])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 5.0])
def test_recovers_the_temperature_that_made_the_labels(temperature, offset):
    scores, y = drawn(temperature, offset=offset)
    assert fit_temperature(scores, y, offset=offset) == pytest.approx(temperature, rel=0.05)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 30),
    scale=st.sampled_from([1e-6, 1e-2, 1.0, 1e2, 1e6]),
)
def test_no_other_temperature_within_bounds_is_better(seed, n, scale):
    rng = np.random.default_rng(seed)
    scores, y = scale * rng.normal(size=(n, 3)), rng.integers(0, 3, n)
    weights, offset = rng.uniform(0.1, 3, n), rng.normal(size=3)
    found = fit_temperature(scores, y, weights, offset=offset)
    best = printed_log_loss(scores, y, weights, found, offset)
    separable = all(s.argmax() == c for s, c in zip(scores, y, strict=True))
    others = [1.0] if separable else np.geomspace(MIN_TEMPERATURE, MAX_TEMPERATURE, 25)
    for other in others:
        assert best <= printed_log_loss(scores, y, weights, other, offset) * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize(
    ("scores", "y", "weights", "expected"),
    [
        ([[5.0, 0.0], [0.0, 0.1]], [0, 1], None, 1),  # no mistake says nothing
        (np.zeros((3, 2)), [0, 1, 1], None, 1),
        (np.zeros((0, 3)), np.zeros(0, dtype=int), None, 1),
        ([[0.0, 5.0]], [0], [0.0], 1),
        ([[1.0, 0.0], [1.0, 0.0]], [1, 1], None, MAX_TEMPERATURE),  # worse than none
        (1e-6 * np.array([[1.0, 0.0]] * 9), [0] * 8 + [1], None, MIN_TEMPERATURE),
        (1e300 * np.array([[1, -1], [-1, 1], [1, -1]]), [0, 1, 1], None, MAX_TEMPERATURE),
    ],
)
def test_rows_that_determine_no_temperature(scores, y, weights, expected):
    assert fit_temperature(scores, y, weights) == expected


def test_weights_count_as_repetitions():
    scores, y = drawn(2.0, n=200)
    w = np.random.default_rng(1).integers(0, 4, len(y))
    repeated = fit_temperature(scores.repeat(w, axis=0), y.repeat(w))
    assert fit_temperature(scores, y, w) == pytest.approx(repeated, rel=1e-8)


@pytest.mark.parametrize(
    ("scores", "y", "weights", "message"),
    [
        ([1.0, 2.0], [0, 1], None, "n_samples, n_classes"),
        ([[1.0, 2.0]], [0, 1], None, "one label per row"),
        ([[1.0, -np.inf]], [0], None, "finite"),
        ([[1.0, 2.0]], [2], None, "from 0 to 1"),
        ([[1.0, 2.0]], [-1], None, "from 0 to 1"),
        ([[1.0, 2.0]], [0.5], None, "column numbers"),
        ([[1.0, 2.0]], [0], [-1.0], "not negative"),
    ],
)
def test_refuses_what_it_cannot_use(scores, y, weights, message):
    with pytest.raises(CoCoError, match=message):
        fit_temperature(scores, y, weights)
