"""Moments of parts, put together, are the moments of the whole."""

from functools import reduce

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cocoloss.geometry import similarity
from cocoloss.losses.moments import class_moments, merge

C, Q = 4, 3
G = torch.tensor(similarity("simplex", C))


@given(st.lists(st.integers(0, 12), min_size=1, max_size=6), st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_merging_chunks_in_any_order_is_one_pass(sizes, seed):
    generator = torch.Generator().manual_seed(seed)
    n = sum(sizes)
    h = torch.randn(2, n, Q, dtype=torch.float64, generator=generator) + 100
    y = torch.randint(0, C, (2, n), generator=generator)
    w = torch.rand(2, n, dtype=torch.float64, generator=generator)
    parts = [
        class_moments(*(x.contiguous() for x in part), G)
        for part in zip(h.split(sizes, 1), y.split(sizes, 1), w.split(sizes, 1), strict=True)
    ]
    whole = class_moments(h, y, w, G)
    for order in (parts, parts[::-1]):
        merged = reduce(merge, order)
        assert merged.count == whole.count
        for name in ("mass", "means", "scatter", "diagonal"):
            a, b = getattr(merged, name), getattr(whole, name)
            torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)
