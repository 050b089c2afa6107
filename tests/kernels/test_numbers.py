"""Numbers in closed form: target points, leave-one-out, powers, and intervals that hold."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import boxcox

from cocoloss.exceptions import CoCoError
from cocoloss.kernels.exact import solve
from cocoloss.kernels.intervals import NumberReadout, Response, Spread
from cocoloss.kernels.kernel import Kernel
from cocoloss.kernels.numbers import (
    NumberRows,
    SquaredError,
    _quantiles,
    merge,
    pose,
    solve_numbers,
)
from cocoloss.threads import threads_for


def fitted(X, y, weights=None, **how):
    y = np.asarray(y, dtype=float)
    weights = np.ones(len(y)) if weights is None else weights
    with threads_for(0):
        problem = pose(X.astype(np.float32), y.reshape(len(y), -1), weights, 0)
        solved = solve_numbers(problem, 0, **how)
        readout = problem.readout(solved.machine.kernels[0], solved.honest, solved.known, 0)
        honest = problem.numbers(readout, solved.honest)
        return SimpleNamespace(machine=solved.machine, readout=readout, honest=honest)


def some_rows(n=30, d=2, t=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    return X, rng.normal(size=(n, t)) + X[:, :1]


# Target points -----------------------------------------------------------------------------------


def response(power, *, origin=0.0, unit=1.0, ends=(-1e12, 1e12)):
    values = ([origin], [unit], [power], [0.5], [2.0])
    return Response(*map(np.array, values), np.array(ends)[:, None])


@pytest.mark.parametrize("power", [0.0, 0.3, 1.0])
def test_a_power_is_that_of_box_and_cox(power):
    y = np.array([0.0, 0.2, 4.0, 100.0])
    z = response(power).points(y[:, None])
    np.testing.assert_allclose(2 * z[:, 0] + 0.5, boxcox(1 + y, power))


@given(
    arrays(float, 12, elements=st.floats(0, 9)),
    st.floats(0, 1),
    st.floats(1e-9, 1e9),
    st.sampled_from([-1, 1]),
)
@settings(max_examples=60, deadline=None)
def test_numbers_come_back_from_their_points(u, power, unit, sign):
    how = response(power, origin=3 * unit, unit=sign * unit)
    y = 3 * unit + sign * unit * u
    back = how.numbers(how.points(y[:, None]))
    np.testing.assert_allclose(back[:, 0] / unit, y / unit, atol=1e-9)


@pytest.mark.parametrize("power", [0.0, 0.5])
def test_numbers_beyond_the_end_without_a_tail_count_as_that_end(power):
    how = response(power, origin=3.0)  # a block may hold what the sample of its table did not
    np.testing.assert_array_equal(
        how.points(np.array([[2.5], [-1e9]])), how.points(np.array([[3.0], [3.0]]))
    )


@pytest.mark.parametrize("power", [0.0, 0.5])
def test_undoing_a_power_stays_near_the_targets_of_the_fit(power):
    far = response(power, ends=(-5.0, 9.0)).numbers(np.array([[1e9], [-1e9]]))
    assert far[0, 0] == 9.0
    assert -5.0 <= far[1, 0] <= -1.0 + 1e-9  # the end of the power


# Rows and their numbers --------------------------------------------------------------------------


def test_equal_rows_are_one_with_the_mean_of_their_numbers():
    X = np.array([[0.0], [1.0], [0.0], [0.0]], dtype=np.float32)
    y, weights = np.array([[1.0], [5.0], [3.0], [1.0]]), np.array([1.0, 2.0, 1.0, 1.0])
    distinct, row, numbers, mass, pair = merge(X, y, weights)
    rows = NumberRows(distinct, row, numbers, mass)
    kept, targets, totals = rows.problem()
    for i in kept:  # the formula in loops
        same = [j for j in range(4) if X[j, 0] == distinct[i, 0]]
        assert totals[i] == sum(weights[j] for j in same)
        mean = sum(weights[j] * y[j, 0] for j in same) / totals[i]
        assert targets[i, 0] == pytest.approx(mean)
    np.testing.assert_array_equal(numbers[pair], y)
    assert mass[pair].tolist() == [2.0, 2.0, 1.0, 2.0]


@pytest.mark.parametrize("t", [1, 2])
def test_the_judge_leaves_each_row_out(t):
    X, y = some_rows(t=t)
    rows = NumberRows(X, np.arange(len(X)), y, np.ones(len(X)))
    kernel, ridge = Kernel("laplace", 0.3, np.ones(2, dtype=np.float32)), 0.1
    K = kernel(X).astype(float)
    error = 0.0
    for i in range(len(X)):  # by leaving it out
        rest = np.delete(np.arange(len(X)), i)
        alpha = np.linalg.solve(K[np.ix_(rest, rest)] + ridge * np.eye(len(rest)), y[rest])
        error += np.square(y[i] - K[i, rest] @ alpha).sum() / len(X) / t
    found = SquaredError(rows)(solve(K, y, np.ones(len(X)), ridge))
    assert found == pytest.approx(error, rel=1e-5)


def test_folds_hold_every_row_once():
    X, y = some_rows()
    rows = NumberRows(X, np.arange(len(X)), y, np.where(np.arange(len(X)) < 5, 7.0, 1.0))
    shares = rows.folds(np.random.default_rng(0))
    np.testing.assert_allclose(shares.sum(axis=1), rows.mass)
    assert ((shares > 0).sum(axis=1)[5:] == 1).all()
    assert ((shares > 0).sum(axis=1)[:5] == 5).all()  # more copies are in all folds


# Fits --------------------------------------------------------------------------------------------


def test_a_weight_of_two_is_the_row_twice():
    X, y = some_rows(60)
    times = np.random.default_rng(1).integers(1, 4, 60)
    weighted = fitted(X, y, times.astype(float))
    repeated = fitted(np.repeat(X, times, axis=0), np.repeat(y, times, axis=0))
    np.testing.assert_allclose(weighted.machine(X), repeated.machine(X), atol=1e-8)


def test_skewed_numbers_are_expected_without_bias():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3)).astype(np.float32)
    y = np.exp(1.2 * X[:, 0] + 0.5 * rng.normal(size=800))
    skewed = fitted(X[:500], y[:500])
    assert skewed.readout.response.powers[0] < 0.8
    z = skewed.machine(X[500:])
    mean = skewed.readout.mean(z, X[500:])[:, 0]
    truth = np.exp(1.2 * X[500:, 0] + 0.125)  # the mean of a log-normal
    assert mean.mean() == pytest.approx(truth.mean(), rel=0.08)
    undone = skewed.readout.response.numbers(z)[:, 0]  # without all that may be true
    assert undone.mean() < mean.mean()


@pytest.mark.parametrize("scale", [2.0**-440, 2.0**440])
def test_a_power_is_found_in_any_unit(scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3)).astype(np.float32)
    y = np.exp(2 * X[:, 0] + 0.2 * rng.normal(size=100))
    power = fitted(X, y).readout.response.powers
    assert power[0] < 0.8
    np.testing.assert_allclose(fitted(X, scale * y).readout.response.powers, power)


def test_even_numbers_keep_their_scale():
    X, y = some_rows(200)
    assert fitted(X, y).readout.response.powers.tolist() == [1.0]


def test_constant_numbers_are_predicted_as_they_are():
    X, _ = some_rows(30)
    found = fitted(X, np.full(30, 7.0))
    np.testing.assert_allclose(found.readout.mean(found.machine(X), X), 7.0)
    ends = found.readout.quantiles(found.machine(X), X, np.array([0.05, 0.95]))
    np.testing.assert_allclose(ends, 7.0, atol=1e-6)


# Intervals ---------------------------------------------------------------------------------------


def test_quantiles_of_few_values_leave_room_for_a_new_one():
    levels, found = _quantiles(np.arange(1.0, 10.0)[:, None], np.ones(9))
    for i in range(9):  # value i of n is at i / (n + 1)
        assert np.interp((i + 1) / 10, levels, found[:, 0]) == pytest.approx(i + 1)


def noisy(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2)).astype(np.float32)
    size = np.where(X[:, 0] > 0, 1.0, 0.1)
    return X, np.sin(3 * X[:, 1]) + size * rng.normal(size=n), size


def test_intervals_hold_and_are_wide_where_residuals_are_large():
    X, y, _ = noisy(600, 0)
    found = fitted(X, y)
    Z, truth, size = noisy(4000, 1)
    low, high = found.readout.quantiles(found.machine(Z), Z, np.array([0.05, 0.95]))[..., 0]
    held = (low <= truth) & (truth <= high)
    assert 0.86 < held.mean() < 0.94
    assert held[size == 1].mean() > 0.8  # one width for all would hold three of four here
    assert (high - low)[size == 1].mean() > 3 * (high - low)[size < 1].mean()


def test_far_from_all_rows_nothing_more_is_known_than_without_them():
    X, y = some_rows(200)
    found = fitted(X, y)
    far = np.full((1, 2), 1000.0, dtype=np.float32)
    assert found.readout.mean(found.machine(far), far)[0, 0] == pytest.approx(y.mean(), abs=0.05)
    assert found.readout.spread.size(far)[0, 0] > 1  # in target points, whose deviation is 1


def test_intervals_know_what_noise_columns_do():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 25)).astype(np.float32)
    y = X[:, 0] + rng.normal(size=700)
    found = fitted(X[:150], y[:150])
    low, high = found.readout.quantiles(found.machine(X), X, np.array([0.05, 0.95]))[..., 0]
    assert ((low <= y) & (y <= high))[150:].mean() > 0.83


def test_many_rows_go_by_landmarks_with_intervals_that_hold(monkeypatch):
    monkeypatch.setattr("cocoloss.kernels.closed_form.MOST_EXACT", 300)
    X, y, _ = noisy(1500, 0)
    found = fitted(X, y)
    assert len(found.machine.rows) < 1500
    Z, truth, _ = noisy(2000, 1)
    z = found.machine(Z)
    low, high = found.readout.quantiles(z, Z, np.array([0.05, 0.95]))[..., 0]
    assert 0.85 < ((low <= truth) & (truth <= high)).mean() < 0.95
    assert np.corrcoef(found.honest[:, 0], y)[0, 1] > 0.5


# Files of strangers ------------------------------------------------------------------------------


def test_a_readout_is_what_its_state_says():
    X, y = some_rows(40)
    readout = fitted(X, np.c_[y, y**2]).readout
    again = NumberReadout.from_state(readout.to_state())
    z = np.zeros((40, 2))
    np.testing.assert_array_equal(again.mean(z, X), readout.mean(z, X))


@pytest.mark.parametrize(
    "change",
    [
        {"near": 0.0},
        {"near": float("nan")},
        {"levels": np.array([0.5, 0.4])},
        {"log_size": np.zeros(2)},
        {"residuals": np.zeros((1, 1))},
    ],
    ids=str,
)
def test_a_spread_that_cannot_be_is_refused(change):
    X, y = some_rows(40)
    state = fitted(X, y).readout.spread.to_state()
    with pytest.raises(CoCoError):
        Spread.from_state(state | change)


@pytest.mark.parametrize(
    "change",
    [
        {"scale": np.zeros(1)},
        {"unit": np.zeros(1)},
        {"powers": np.full(1, 2.0)},
        {"ends": np.zeros((1, 1))},
    ],
    ids=str,
)
def test_a_response_that_cannot_be_is_refused(change):
    X, y = some_rows(40)
    state = fitted(X, y).readout.response.to_state()
    with pytest.raises(CoCoError):
        Response.from_state(state | change)
