import math
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cocoloss.exceptions import CoCoError
from cocoloss.metrics import ClassMoments
from oracles import printed_moments

COVARIANCES = ("within", "between", "total")


def assert_close_in_norm(actual, desired, scale):
    rounding = 1e-28  # of the oracle, for a single row of order one that has no spread at all
    np.testing.assert_allclose(actual, desired, rtol=1e-10, atol=1e-10 * scale + rounding)


@st.composite
def labelled_rows(draw):
    n, q = draw(st.integers(1, 40)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    labels = rng.integers(0, draw(st.integers(1, 5)), n)
    embeddings = rng.normal(size=(n, q)) + 3 * labels[:, None]
    return embeddings, labels, rng.uniform(0.1, 3, n), rng


@given(labelled_rows())
def test_are_the_printed_formulas(rows):
    embeddings, labels, weights, _ = rows
    moments = ClassMoments().update(embeddings, labels, weights)
    expected = printed_moments(embeddings, labels, weights)
    scale = np.abs(expected["total"]).max()
    for name in COVARIANCES:
        assert_close_in_norm(getattr(moments, name), expected[name], scale)
    np.testing.assert_allclose(moments.means, expected["means"], atol=1e-12)
    np.testing.assert_allclose(moments.global_mean, expected["global_mean"], atol=1e-12)
    assert moments.classes.tolist() == sorted(set(labels))
    np.testing.assert_allclose(
        moments.masses, [weights[labels == c].sum() for c in moments.classes]
    )
    assert moments.n_samples == len(labels)


@given(labelled_rows(), st.sampled_from([0.0, 1e6, -1e6]), st.integers(1, 12))
def test_no_split_order_or_merge_tree_changes_the_result(rows, offset, n_chunks):
    embeddings, labels, weights, rng = rows
    embeddings = embeddings + offset
    # The offset is taken away without rounding, so the oracle sees the same rows, centred.
    expected = printed_moments(embeddings - offset, labels, weights)
    parts = [
        ClassMoments().update(embeddings[i], labels[i], weights[i])
        for i in np.array_split(rng.permutation(len(labels)), n_chunks)
    ]
    while len(parts) > 1:
        a = parts.pop(rng.integers(len(parts)))
        b = parts.pop(rng.integers(len(parts)))
        parts.append(a.merge(b))
    scale = np.abs(expected["total"]).max()
    for name in COVARIANCES:
        assert_close_in_norm(getattr(parts[0], name), expected[name], scale)
    assert_close_in_norm(parts[0].means, expected["means"] + offset, np.abs(embeddings).max())


def test_a_small_example_by_hand():
    moments = ClassMoments().update([[0.0], [2.0], [7.0]], ["b", "b", "a"])
    assert moments.classes.tolist() == ["a", "b"]
    assert moments.masses.tolist() == [1, 2]
    assert moments.means.tolist() == [[7.0], [1.0]]
    assert moments.global_mean.tolist() == [3.0]
    assert moments.within.item() == pytest.approx(2 / 3)  # 1 + 1 + 0, over 3
    assert moments.between.item() == pytest.approx(10)  # 16 + 4, over 2 classes
    assert moments.total.item() == pytest.approx(26 / 3)  # 9 + 1 + 16, over 3


def test_a_weight_is_a_number_of_copies():
    rng = np.random.default_rng(0)
    embeddings, labels = rng.normal(size=(12, 3)), np.arange(12) % 3
    copies = rng.integers(0, 4, 12)
    copies[labels == 2] = 0  # a class that is not there at all
    weighted = ClassMoments().update(embeddings, labels, copies)
    repeated = ClassMoments().update(embeddings.repeat(copies, axis=0), labels.repeat(copies))
    assert weighted.classes.tolist() == repeated.classes.tolist() == [0, 1]
    assert weighted.n_samples == np.count_nonzero(copies)
    np.testing.assert_allclose(weighted.masses, repeated.masses)
    for name in COVARIANCES:
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("label_dtype", [torch.int64, torch.uint8, torch.float32, torch.bfloat16])
def test_takes_tensors_of_every_type(dtype, label_dtype):
    values = [[200.0, 0.5], [-200.0, 2.0], [1.0, 1.0]]  # 200^2 overflows float16
    tensor = torch.tensor(values, dtype=dtype, requires_grad=True)
    moments = ClassMoments().update(
        tensor, torch.tensor([0, 0, 1], dtype=label_dtype), torch.ones(3, dtype=dtype)
    )
    expected = ClassMoments().update(values, [0, 0, 1])
    assert moments.classes.tolist() == [0, 1]
    np.testing.assert_array_equal(moments.within, expected.within)
    assert moments.within.dtype == np.float64


def test_a_tuple_can_be_a_label():
    labels = np.fromiter([("b", 1), ("a", 2), ("b", 1)], dtype=object, count=3)
    moments = ClassMoments().update([[1.0], [2.0], [3.0]], labels)
    assert moments.classes.tolist() == [("a", 2), ("b", 1)]
    assert moments.means.tolist() == [[2.0], [2.0]]


def test_an_empty_chunk_changes_nothing():
    moments = ClassMoments().update(np.zeros((0, 3)), [])
    assert moments.n_samples == 0
    moments.update([[1.0, 2.0]], [5]).update(np.zeros((0, 2)), []).merge(ClassMoments())
    assert (moments.n_samples, moments.means.tolist()) == (1, [[1.0, 2.0]])


def test_merging_with_itself_doubles_every_row():
    embeddings, labels = np.random.default_rng(2).normal(size=(9, 2)), np.arange(9) % 2
    single = ClassMoments().update(embeddings, labels)
    doubled = ClassMoments().merge(single)
    doubled.merge(doubled)
    assert (single.n_samples, doubled.n_samples) == (9, 18)
    expected = ClassMoments().update(np.tile(embeddings, (2, 1)), np.tile(labels, 2))
    np.testing.assert_allclose(doubled.masses, expected.masses)
    assert doubled.counts.tolist() == expected.counts.tolist()
    for name in ("means", *COVARIANCES):
        np.testing.assert_allclose(getattr(doubled, name), getattr(expected, name), atol=1e-14)


def test_the_rows_given_are_not_changed():
    embeddings, weights = np.random.default_rng(3).normal(size=(6, 2)), np.full(6, 2.0)
    before = embeddings.copy()
    moments = ClassMoments().update(embeddings, np.arange(6) % 2, weights)
    np.testing.assert_array_equal(embeddings, before)
    np.testing.assert_array_equal(weights, np.full(6, 2.0))
    means = moments.means
    embeddings[:] = 0  # a training loop reuses its buffers
    np.testing.assert_array_equal(moments.means, means)


def test_many_classes_need_no_table_of_rows_by_classes():
    n, n_classes = 20_000, 10_000  # such a table would take 1.6 GB
    embeddings, labels = np.ones((n, 2)), np.arange(n) % n_classes
    tracemalloc.start()
    try:
        ClassMoments().update(embeddings, labels)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20e6


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        (([1.0, 2.0], [0, 1]), r"embeddings must be a matrix .* shape \(2,\); reshape"),
        ((np.zeros((2, 0)), [0, 1]), r"embeddings must be a matrix .* shape \(2, 0\)"),
        (([["a"], ["b"]], [0, 1]), "embeddings must hold numbers only"),
        (([[1.0, 1.0], [np.nan, 1.0]], [0, 1]), "embeddings must be finite, but row 1 holds NaN"),
        (([[np.inf, 1.0]], [0]), "embeddings must be finite, but row 0"),
        (([[1.0, 1.0]], [0, 1]), "2 labels came with 1 embeddings; give one label each"),
        ((np.eye(2), np.eye(2)), r"labels must be a vector .* shape \(2, 2\).*argmax"),
        ((np.eye(2), [0.0, np.nan]), "labels hold NaN, NaT or None; drop"),
        ((np.eye(2), np.array(["2024-01-01", "NaT"], dtype="M8[D]")), "labels hold NaN, NaT or"),
        ((np.eye(2), np.array(["NaT", 5], dtype="m8[s]")), "labels hold NaN, NaT or"),
        ((np.eye(1, 2), np.array([None])), "labels hold NaN, NaT or None"),
        ((np.eye(1, 2), np.array([pd.NA])), "labels hold NaN, NaT or None"),
        ((np.eye(2), torch.tensor([0, 1]).to_sparse()), "labels must be a vector that numpy can"),
        ((np.eye(2), np.array([0, "a"], dtype=object)), "labels must be of one kind"),
        ((np.eye(2), ["a", "b"]), "new class 'a' cannot be sorted among .* such as 0"),
        ((np.eye(3), [0, 1, 1]), "embeddings of dimension 3 cannot join those of dimension 2"),
        ((np.eye(2), [0, 1], [1.0]), r"sample_weight has shape \(1,\) for 2 rows"),
        ((np.eye(2), [0, 1], [1.0, -2.0]), "not negative, but row 1 has -2"),
        ((np.eye(2), [0, 1], [np.nan, 1]), "must be finite and not negative, but row 0 has nan"),
    ],
)
def test_an_unusable_chunk_is_refused_and_leaves_no_trace(chunk, message):
    moments = ClassMoments().update([[1.0, 2.0], [4.0, 3.0]], [0, 0])
    with pytest.raises(CoCoError, match=message):
        moments.update(*chunk)
    assert moments.classes.tolist() == [0]
    assert moments.masses.tolist() == [2]
    assert moments.means.tolist() == [[2.5, 2.5]]
    assert moments.within.tolist() == [[2.25, 0.75], [0.75, 0.25]]


def test_refuses_to_merge_other_dimensions_and_other_kinds_of_labels():
    moments = ClassMoments().update([[1.0, 2.0]], [0])
    with pytest.raises(CoCoError, match="dimension 1 cannot join those of dimension 2"):
        moments.merge(ClassMoments().update([[1.0]], [0]))
    with pytest.raises(CoCoError, match="'x' cannot be sorted"):
        moments.merge(ClassMoments().update([[1.0, 2.0]], ["x"]))
    with pytest.raises(CoCoError, match="only another ClassMoments can be merged, not int"):
        moments.merge(5)
    assert moments.n_samples == 1


@pytest.mark.parametrize("far", [1e4, 1e6, 1e10])
@pytest.mark.parametrize("alone", [True, False], ids=["of another class", "of the same class"])
def test_a_far_row_costs_no_digits_wherever_it_comes(far, alone):
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [200, 200, 1]) if alone else np.repeat([0, 1, 1], [200, 200, 1])
    embeddings = rng.normal(size=(401, 3))
    embeddings[-1] = far
    exact = [
        [math.fsum(column) / len(column) for column in embeddings[labels == c].T]
        for c in sorted(set(labels))
    ]
    for order in (np.arange(401), np.arange(401)[::-1], rng.permutation(401)):
        whole = ClassMoments().update(embeddings[order], labels[order])
        chunks, rows = ClassMoments(), ClassMoments()
        for part in np.array_split(order, 7):
            chunks.update(embeddings[part], labels[part])
        for row in order:
            rows.update(embeddings[[row]], labels[[row]])
        for moments in (whole, chunks, rows):
            np.testing.assert_allclose(moments.means, exact, rtol=1e-12)
            np.testing.assert_allclose(moments.within, whole.within, rtol=1e-10)


@pytest.mark.parametrize(
    "name", ["classes", "masses", "means", "global_mean", *COVARIANCES, "means_coincide"]
)
def test_has_no_results_before_the_first_row(name):
    moments = ClassMoments().update(np.zeros((0, 2)), [])
    with pytest.raises(CoCoError, match="no rows seen yet; call update"):
        getattr(moments, name)
