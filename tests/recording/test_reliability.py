import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocoloss.recording.reliability import reliability_curve


@given(st.integers(2, 5), st.integers(1, 40), st.integers(0, 50))
def test_reliability_is_the_definition_in_a_loop(C, n, seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(C), n)
    labels, weights = rng.integers(0, C, n), rng.random(n) + 0.1
    curve = reliability_curve(p, labels, weights)
    error = 0.0
    for b in range(10):
        inside = [i for i in range(n) if b / 10 < p[i].max() <= (b + 1) / 10]
        assert curve.counts[b] == len(inside)
        if not inside:
            assert math.isnan(curve.accuracy[b])
            continue
        mass = weights[inside].sum()
        sure = sum(weights[i] * p[i].max() for i in inside) / mass
        right = sum(weights[i] * (p[i].argmax() == labels[i]) for i in inside) / mass
        assert curve.confidence[b] == pytest.approx(sure)
        assert curve.accuracy[b] == pytest.approx(right)
        error += mass / weights.sum() * abs(sure - right)
    assert curve.error == pytest.approx(error)
