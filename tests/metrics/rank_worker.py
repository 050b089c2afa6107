"""Run under torchrun by test_streaming.py: every rank has a shard, and checks all rows' measures.

Shards are of unequal sizes, one may be empty, and no rank has all classes.
"""

import sys

import numpy as np
import torch
from torch import distributed

from cocoloss.exceptions import CoCoError
from cocoloss.metrics import (
    ClassMoments,
    NeuralCollapseMetric,
    dispersity,
    dispersity_of,
    neural_collapse,
    neural_collapse_of,
)


def close(a, b, what):
    np.testing.assert_allclose(a, b, rtol=1e-9, err_msg=what)


def check(sizes, offset):
    rank = distributed.get_rank()
    rng = np.random.default_rng(0)
    n, q, C = sum(sizes), 4, 5
    y = np.sort(rng.integers(0, C, n))  # so that shards hold different classes
    h = rng.normal(size=(C, q))[y] + rng.normal(size=(n, q)) + offset
    weights, bias = rng.normal(size=(C, q)), rng.normal(size=C)
    expected = neural_collapse(h, y, weights, bias)
    start = sum(sizes[:rank])
    mine = slice(start, start + sizes[rank])
    chunks = [(torch.from_numpy(h[mine][i : i + 3]), y[mine][i : i + 3]) for i in range(0, n, 3)]

    moments = ClassMoments()
    for chunk in chunks:
        moments.update(*chunk)
    ours = neural_collapse_of(moments, weights, bias, rows=chunks, process_group="world")
    close(ours, expected, f"collapse of all ranks at {offset}")
    whole, joined = ClassMoments().update(h, y), moments.reduce_over_ranks()
    for name in ("classes", "counts", "masses", "means", "within", "between", "global_mean"):
        close(getattr(joined, name), getattr(whole, name), name)
    close(dispersity_of(joined), dispersity(h, y), "dispersity")
    assert moments.n_samples == sizes[rank], "the accumulator itself was changed"

    metric = NeuralCollapseMetric()
    for chunk in chunks:
        metric.update(*chunk)
    close(metric.compute(weights, bias, rows=chunks), expected, "metric")
    if n / 2 < sizes[rank] < n:  # has several classes, and not all rows
        alone = NeuralCollapseMetric(sync_on_compute=False)
        alone.update(h[mine], y[mine])
        assert alone.compute().nc1 != expected.nc1, "ranks were added up unasked"


def check_refusals():
    rank = distributed.get_rank()
    assert ClassMoments().reduce_over_ranks().n_samples == 0
    for chunk, words in [
        ((np.eye(2 + rank), list(range(2 + rank))), "dimensions [2, 3]"),
        ((np.eye(2), ["a", "b"] if rank else [0, 1]), "cannot be sorted"),
    ]:
        try:
            ClassMoments().update(*chunk).reduce_over_ranks()
        except CoCoError as error:
            assert words in str(error), error
        else:
            raise AssertionError(f"{chunk} was taken")


if __name__ == "__main__":
    distributed.init_process_group("gloo")
    for text in sys.argv[1:]:
        for offset in (0.0, 1e5):
            check([int(size) for size in text.split(",")], offset)
    check_refusals()
    print(f"rank {distributed.get_rank()} agrees", flush=True)
    distributed.barrier()
    distributed.destroy_process_group()
