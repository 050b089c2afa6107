import copy
import inspect
import math
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch

from cluster import run_on_ranks
from cocoloss.exceptions import CoCoError
from cocoloss.metrics import (
    ClassMoments,
    NeuralCollapseMetric,
    dispersity,
    neural_collapse,
    neural_collapse_of,
    rows,
    scatter,
)

WORKER = Path(__file__).with_name("rank_worker.py")


def labelled(n=300, q=6, n_classes=4, seed=0, noise=0.8, dtype=np.float64):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    h = (rng.normal(size=(n_classes, q))[y] + noise * rng.normal(size=(n, q))).astype(dtype)
    return h, y, rng.normal(size=(n_classes, q)), rng.normal(size=n_classes)


def cut(h, y, size):
    return [(h[i : i + size], y[i : i + size]) for i in range(0, len(y), size)]


def streamed(chunks):
    moments = ClassMoments()
    for chunk in chunks:
        moments.update(*chunk)
    return moments


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 7, 300])
def test_moments_of_chunks_have_the_collapse_of_all_rows(size, dtype):
    h, y, weights, bias = labelled(dtype=dtype)
    expected = neural_collapse(h, y, weights, bias)
    chunks = cut(h, y, size)
    ours = neural_collapse_of(streamed(chunks), weights, bias, rows=chunks)
    assert ours == pytest.approx(expected, rel=1e-11)
    assert 0 < ours.nc4 < 1


def test_a_large_common_offset_costs_no_digits():
    h, y, *_ = labelled()
    far = h + 2.0**20  # rounds the rows, so these are the rows
    near = far - 2.0**20
    expected = neural_collapse(near, y)
    chunks = cut(far.astype(np.float64), y, 11)
    for ours in (neural_collapse(far, y), neural_collapse_of(streamed(chunks), rows=chunks)):
        assert ours[:4] == pytest.approx(expected[:4], rel=1e-9)
        assert ours.nc4 == expected.nc4


def test_without_a_second_look_nc4_is_not_known():
    h, y, weights, _ = labelled()
    ours, expected = neural_collapse_of(streamed(cut(h, y, 50))), neural_collapse(h, y)
    assert ours.nc3 is None
    assert ours.nc4 is None
    assert ours[:4] == pytest.approx(expected[:4], rel=1e-11)
    nc3 = neural_collapse(h, y, weights).nc3
    assert neural_collapse_of(streamed(cut(h, y, 50)), weights).nc3 == pytest.approx(nc3)


def test_the_nearest_mean_is_that_of_squared_differences_also_among_a_thousand():
    # Classes of one row: each is its own mean, and neighbours differ in the last digits.
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(500, 8))
    h = np.vstack([centres, centres * (1 + 1e-15), centres + 1e-14])
    y = np.arange(1500)
    means = np.array([[math.fsum(column) for column in h[y == c].T] for c in y])
    wrong = sum(((h[i] - means) ** 2).sum(axis=1).argmin() != i for i in range(1500))
    assert neural_collapse(h, y).nc4 == wrong / 1500


@pytest.mark.parametrize("n_classes", [2, 10])
def test_memory_is_a_tenth_of_a_centred_copy_in_float32(n_classes):
    h, y, *_ = labelled(40_000, 256, n_classes, dtype=np.float32)
    neural_collapse(h[:100], y[:100])
    peaks = []
    for given in (h, torch.from_numpy(h), torch.from_numpy(h).bfloat16()):
        tracemalloc.start()
        try:
            neural_collapse(given, y)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert max(peaks) < h.nbytes / 10  # today's float64 copies were eight times the input


def test_moments_of_many_rows_stay_small():
    h, y, *_ = labelled(20_000, 64, dtype=np.float32)
    tracemalloc.start()
    try:
        ClassMoments().update(h, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5e6


@pytest.fixture
def as_if_on_a_gpu(monkeypatch):
    """Let tensors be worked on by torch, as those on other devices are."""
    stays = rows.is_tensor
    monkeypatch.setattr(rows, "stays_on_device", stays)
    monkeypatch.setattr(scatter, "stays_on_device", stays)
    monkeypatch.setattr(rows, "DEVICE_FACTOR", 1)
    monkeypatch.setattr(rows, "ROW_NUMBERS", 200)
    monkeypatch.setattr(rows, "FEWEST_ROWS", 10)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.usefixtures("as_if_on_a_gpu")
def test_tensors_of_a_device_are_worked_on_there(monkeypatch, dtype):
    h, y, weights, bias = labelled()
    tensor, labels = torch.tensor(h, dtype=dtype), torch.tensor(y)
    on_host = tensor.double().numpy()
    expected = neural_collapse(on_host, y, weights, bias)
    monkeypatch.setattr(torch.Tensor, "numpy", only_small(torch.Tensor.numpy))
    ours = neural_collapse(tensor, labels, torch.tensor(weights), torch.tensor(bias))
    assert ours == pytest.approx(expected, rel=1e-11)
    chunks = cut(tensor, labels, 70)
    moments = streamed(chunks)
    assert isinstance(moments.class_means.means, torch.Tensor)
    assert neural_collapse_of(moments, weights, bias, rows=chunks) == pytest.approx(
        expected, rel=1e-11
    )
    assert dispersity(tensor, labels) == pytest.approx(dispersity(on_host, y), rel=1e-11)
    moments.merge(ClassMoments().update(on_host, y))  # from the host to where the moments are
    twice = ClassMoments().update(on_host, y).update(on_host, y)
    np.testing.assert_allclose(moments.within, twice.within, rtol=1e-11)


def only_small(numpy):
    """Refuse to make an array of as many rows as came in."""

    def checked(self, **options):
        assert self.dim() < 2 or len(self) < 50, "rows went to the host"
        return numpy(self, **options)

    return checked


@pytest.mark.usefixtures("as_if_on_a_gpu")
def test_a_row_that_ties_is_asked_again_on_a_device_too():
    h, y = torch.tensor([[-1.0], [0.0], [2.0], [1.0]]), torch.tensor([0, 1, 1, 1])
    assert neural_collapse(h, y).nc4 == 1 / 4


def test_moments_move_between_devices():
    h, y, *_ = labelled()
    moments = ClassMoments().update(h, y)
    means = moments.means
    assert moments.to("cpu") is moments
    np.testing.assert_array_equal(moments.means, means)
    assert ClassMoments().to("cpu").n_samples == 0


@pytest.mark.parametrize(
    ("chunk", "options", "message"),
    [
        (([[0.0], [1.0]], [0, 0]), {}, "all rows are of class 0"),
        (([[0.0], [1.0]], [0, 1]), {"weights": [[1.0]]}, r"weights must have shape \(2, 1\)"),
        (([[0.0], [1.0]], [0, 1]), {"rows": [([[1.0]], [2])]}, "class 2, which the moments have"),
        (([[0.0], [1.0]], [0, 1]), {"rows": []}, "rows held none.*not a generator"),
        (([[0.0], [1.0]], [0, 1]), {"rows": [([[np.nan]], [1])]}, "finite, but row 0"),
        (([[0.0], [1.0]], [0, 1]), {"process_group": "world"}, "not initialised; call"),
        ((np.zeros((0, 1)), []), {}, "no rows seen yet"),
    ],
)
def test_refuses_what_it_cannot_use(chunk, options, message):
    with pytest.raises(CoCoError, match=message):
        neural_collapse_of(ClassMoments().update(*chunk), **options)


def test_the_metric_sees_an_epoch_and_forgets_it():
    h, y, weights, bias = labelled()
    metric = NeuralCollapseMetric()
    for epoch in range(2):
        for chunk in cut(h + epoch, y, 64):
            metric.update(*chunk)
        expected = neural_collapse(h + epoch, y, weights, bias)
        assert metric.compute(weights, bias, rows=cut(h + epoch, y, 64)) == pytest.approx(expected)
        metric.reset()
    with pytest.raises(CoCoError, match="no rows seen yet"):
        metric.compute()


def test_metrics_of_two_workers_merge_and_travel():
    h, y, *_ = labelled()
    first, second = NeuralCollapseMetric(), NeuralCollapseMetric().to("cpu")
    first.update(h[:100], y[:100])
    second.update(torch.tensor(h[100:]), torch.tensor(y[100:]))
    first.merge_state(copy.deepcopy(second))
    assert first.compute()[:4] == pytest.approx(neural_collapse(h, y)[:4], rel=1e-11)
    with pytest.raises(CoCoError, match="only another NeuralCollapseMetric"):
        first.merge_state({"state": 1})


def test_a_call_adds_a_batch_and_measures_it():
    h, y, *_ = labelled()
    metric = NeuralCollapseMetric()
    assert metric(h[:100], y[:100]) == neural_collapse(h[:100], y[:100])
    metric(h[100:], y[100:])
    assert metric.compute().nc1 == pytest.approx(neural_collapse(h, y).nc1, rel=1e-11)


def test_has_the_methods_of_torchmetrics():
    torchmetrics = pytest.importorskip("torchmetrics", reason="torchmetrics is not installed")
    theirs = torchmetrics.Metric
    for name in ("update", "compute", "reset", "forward", "merge_state", "to"):
        assert callable(getattr(theirs, name))
        assert callable(getattr(NeuralCollapseMetric, name))
    for name in ("is_differentiable", "higher_is_better", "full_state_update"):
        assert hasattr(theirs, name)
        assert hasattr(NeuralCollapseMetric, name)
    arguments = inspect.signature(NeuralCollapseMetric).parameters
    assert {"process_group", "sync_on_compute"} == set(arguments)  # both of torchmetrics' names


def test_all_ranks_have_the_collapse_of_all_rows():
    printed = run_on_ranks(WORKER, 2, "31,7", "40,0", "0,25")
    assert "rank 0 agrees" in printed
    assert "rank 1 agrees" in printed
