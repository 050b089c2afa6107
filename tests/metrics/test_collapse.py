import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ortho_group

from cocoloss.exceptions import CoCoError
from cocoloss.metrics import NeuralCollapse, neural_collapse, rows
from oracles import printed_moments


def simplex(n_classes, embedding_dim):
    """Return unit vectors with equal angles, written down without the package's own frames."""
    centred = np.eye(n_classes, embedding_dim) - np.eye(n_classes, embedding_dim).mean(axis=0)
    return centred / np.linalg.norm(centred[0])


def imbalanced_rows(seed=0, sizes=(2, 9, 4, 15), q=3, noise=0.5):
    """Return rows, labels, and a classifier that agrees with the class means on many rows."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    centres = rng.normal(size=(len(sizes), q))
    embeddings = centres[labels] + noise * rng.normal(size=(len(labels), q))
    weights = centres + 0.7 * rng.normal(size=centres.shape)
    return embeddings, labels, weights, 0.3 * rng.normal(size=len(sizes))


def printed_neural_collapse(embeddings, labels, weights, bias):
    """Compute every quantity as its definition reads, one sample and one pair at a time."""
    moments = printed_moments(embeddings, labels)
    means, within, between = moments["means"], moments["within"], moments["between"]
    n, n_classes = len(labels), len(means)
    nc1 = np.trace(within @ np.linalg.pinv(between, rcond=1e-12, hermitian=True)) / n_classes

    centred = means - means.mean(axis=0)
    gram = centred @ centred.T
    target = (np.eye(n_classes) - 1 / n_classes) / np.sqrt(n_classes - 1)
    nc2 = np.linalg.norm(gram / np.linalg.norm(gram) - target)
    norms = [np.sqrt(m @ m) for m in centred]
    angles = [
        abs(centred[a] @ centred[b] / (norms[a] * norms[b]) + 1 / (n_classes - 1))
        for a in range(n_classes)
        for b in range(a)
    ]
    nc3 = np.linalg.norm(weights / np.linalg.norm(weights) - centred / np.linalg.norm(centred)) ** 2
    differ = 0
    for h in embeddings:
        nearest = min(range(n_classes), key=lambda c: np.linalg.norm(h - means[c]))
        decided = max(range(n_classes), key=lambda c: h @ weights[c] + bias[c])
        differ += nearest != decided
    return NeuralCollapse(
        nc1, nc2, np.std(norms) / np.mean(norms), np.mean(angles), nc3, differ / n
    )


@pytest.mark.parametrize("q", [2, 3, 6])  # fewer than, as many as, more than C - 1
@pytest.mark.parametrize("seed", range(3))
def test_are_the_definitions(q, seed):
    rows = imbalanced_rows(seed, q=q)
    expected = printed_neural_collapse(*rows)
    assert 0 < expected.nc4 < 1
    assert neural_collapse(*rows) == pytest.approx(expected, rel=1e-9)


def hand_example():
    """Return class means (3, 0), (-3, 0), (0, 3), whose centre is (0, 1), each plus (+-1, 0)."""
    means = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 3.0]])
    step = np.array([1.0, 0.0])
    embeddings = np.vstack([means + step, means - step])
    return embeddings, [0, 1, 2, 0, 1, 2], [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]


def test_a_small_example_by_hand():
    # Centred means (3, -1), (-3, -1), (0, 2): Sigma_B = diag(6, 2), Sigma_W = diag(1, 0).
    result = neural_collapse(*hand_example())
    assert result.nc1 == pytest.approx(1 / 18)
    assert result.nc2 == pytest.approx(np.sqrt(2 - 48 / np.sqrt(720)))
    assert result.nc2_norms == pytest.approx(np.sqrt(2) * (10**0.5 - 2) / (2 * 10**0.5 + 2))
    assert result.nc2_angles == pytest.approx((0.3 + 2 * (0.5 - 10**-0.5)) / 3)
    assert result.nc3 == pytest.approx(2 - 16 / np.sqrt(72))
    assert result.nc4 == 0
    # A bias of 3 draws (2, 0) and (-2, 0) to the third class, and leaves (4, 0) and (-4, 0).
    result = neural_collapse(*hand_example(), bias=[0.0, 0.0, 3.0])
    assert result.nc4 == pytest.approx(2 / 6)


def test_without_a_classifier_the_labels_are_compared_and_nothing_is_aligned():
    embeddings, labels, *_ = imbalanced_rows(noise=1.0)
    means = np.array([embeddings[labels == c].mean(axis=0) for c in range(4)])
    wrong = [
        np.argmin([np.linalg.norm(h - mean) for mean in means]) != y
        for h, y in zip(embeddings, labels, strict=True)
    ]
    result = neural_collapse(embeddings, labels)
    assert result.nc3 is None
    assert result.nc4 == pytest.approx(np.mean(wrong))
    assert 0 < result.nc4 < 1


@pytest.mark.parametrize(("n_classes", "q"), [(2, 2), (3, 3), (5, 8)])
@pytest.mark.parametrize("with_classifier", [True, False])
def test_all_vanish_on_a_collapsed_simplex_however_imbalanced(n_classes, q, with_classifier):
    vertices = simplex(n_classes, q)
    labels = np.repeat(np.arange(n_classes), 3 ** np.arange(n_classes))
    embeddings = 0.3 * vertices[labels] + 1.5  # off centre, which the bias takes back
    weights = 7 * vertices if with_classifier else None
    bias = -1.5 * weights.sum(axis=1) if with_classifier else None
    result = neural_collapse(embeddings, labels, weights, bias)
    assert result.nc1 == pytest.approx(0, abs=1e-25)
    assert [result.nc2, result.nc2_norms, result.nc2_angles] == pytest.approx([0] * 3, abs=1e-12)
    assert result.nc3 == (pytest.approx(0, abs=1e-25) if with_classifier else None)
    assert result.nc4 == 0


@given(seed=st.integers(0, 1000), shift=st.sampled_from([0.0, 1.0, -1e4]))
def test_do_not_change_under_rotation_and_shift(seed, shift):
    embeddings, labels, weights, bias = imbalanced_rows(seed)
    rotation = ortho_group.rvs(3, random_state=seed)
    moved = embeddings @ rotation + shift
    turned = weights @ rotation
    result = neural_collapse(moved, labels, turned, bias - shift * turned.sum(axis=1))
    assert result == pytest.approx(neural_collapse(embeddings, labels, weights, bias), rel=1e-6)


@pytest.mark.parametrize("scale", [1e-307, 1e-100, 1e80, 1e160, 1e300])
def test_no_scale_is_too_small_or_too_large(scale):
    embeddings, labels, weights, bias = imbalanced_rows()
    expected = neural_collapse(embeddings, labels, weights, bias)
    scaled = neural_collapse(scale * embeddings, labels, weights / scale, bias)
    assert scaled == pytest.approx(expected, rel=1e-9)


def test_more_rows_of_one_class_do_not_change_the_shape_of_the_means():
    embeddings, labels, weights, _ = imbalanced_rows()
    copies = np.where(labels == 1, 10, 1)
    result = neural_collapse(embeddings, labels, weights)
    more = neural_collapse(embeddings.repeat(copies, axis=0), labels.repeat(copies), weights)
    assert more[1:5] == pytest.approx(result[1:5], rel=1e-10)  # nc2 to nc3
    assert more.nc1 != pytest.approx(result.nc1, rel=1e-3)


def test_rows_of_the_weights_follow_the_sorted_classes():
    embeddings, labels, weights, bias = imbalanced_rows()
    names = np.array(["dog", "ant", "fox", "cat"])
    order = np.argsort(names)
    renamed = neural_collapse(embeddings, names[labels], weights[order], bias[order])
    expected = neural_collapse(embeddings, labels, weights, bias)
    assert renamed == pytest.approx(expected, rel=1e-10)


def test_a_row_between_two_means_goes_to_the_lowest_class():
    # Means at -1 and 1; the row at 0 is of class 1 and goes to class 0.
    embeddings, labels = [[-1.0], [0.0], [2.0], [1.0]], [0, 1, 1, 1]
    assert neural_collapse(embeddings, labels).nc4 == 1 / 4
    # A classifier without an opinion takes the lowest class too: it differs on 1 and 2.
    assert neural_collapse(embeddings, labels, [[0.0], [0.0]]).nc4 == 2 / 4


@pytest.mark.parametrize("at_once", [1, 2, 5, 16])  # of the 30 rows
def test_blocks_of_rows_leave_no_seam(monkeypatch, at_once):
    given = imbalanced_rows(noise=1.0)
    expected = neural_collapse(*given)
    monkeypatch.setattr(rows, "ROW_NUMBERS", 1)
    monkeypatch.setattr(rows, "FEWEST_ROWS", at_once)
    monkeypatch.setattr(rows, "TABLE_NUMBERS", 4 * at_once)
    assert neural_collapse(*given) == pytest.approx(expected, rel=1e-12)
    assert neural_collapse(*given[:2]).nc1 == pytest.approx(expected.nc1, rel=1e-12)


def test_many_rows_need_no_table_of_all_distances():
    n, n_classes, q = 50_000, 200, 4  # such a table would take 80 MB
    rng = np.random.default_rng(0)
    embeddings, labels = rng.normal(size=(n, q)), np.arange(n) % n_classes
    tracemalloc.start()
    try:
        neural_collapse(embeddings, labels, rng.normal(size=(n_classes, q)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40e6


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_takes_tensors(dtype):
    embeddings, labels, weights = hand_example()
    result = neural_collapse(
        torch.tensor(embeddings, dtype=dtype, requires_grad=True),
        torch.tensor(labels),
        torch.nn.Parameter(torch.tensor(weights, dtype=dtype)),
        torch.zeros(3, dtype=dtype),
    )
    assert result == neural_collapse(embeddings, labels, weights)
    assert all(isinstance(value, float) for value in result)


def test_class_means_that_coincide_have_no_shape():
    result = neural_collapse([[-1.0], [1.0], [-1.0], [1.0]], [0, 0, 1, 1], [[1.0], [-1.0]])
    assert result.nc1 == np.inf
    assert result.nc2 == 1
    assert np.isnan([result.nc2_norms, result.nc2_angles, result.nc3]).all()
    assert result.nc4 == 0.5  # all rows tie and go to class 0; the classifier splits them
    half = np.random.default_rng(0).normal(size=(50, 3)) + 0.1
    embeddings = np.vstack([half, 2 * half.mean(axis=0) - half])  # equal means up to rounding
    result = neural_collapse(embeddings, np.repeat([0, 1], 50))
    assert (result.nc1, result.nc2, result.nc3) == (np.inf, 1, None)
    assert np.isnan([result.nc2_norms, result.nc2_angles]).all()
    assert np.isnan(neural_collapse([[0.0], [1.0]], [0, 1], [[0.0], [0.0]]).nc3)  # no direction
    # A mean at the centre counts as orthogonal: cos = -1 for the outer two, and 0 for the others.
    result = neural_collapse([[-1.0], [0.0], [1.0]], [0, 1, 2])
    assert result.nc2_angles == pytest.approx(0.5)


ROWS = [[0.0, 1.0], [1.0, 0.0]], ["a", "b"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            (*ROWS, [[1.0, 0.0]]),
            r"weights must have shape \(2, 2\).* 'a' to 'b'.*shape \(1, 2\).*-w and w",
        ),
        ((*ROWS, [1.0, 2.0]), r"weights must have shape \(2, 2\).*but has shape \(2,\)"),
        ((*ROWS, [[1.0, np.nan], [0.0, 0.0]]), "weights must be finite, but row 0"),
        ((*ROWS, np.eye(2), [1.0]), r"bias must have shape \(2,\), but has shape \(1,\)"),
        ((*ROWS, np.eye(2), [1.0, np.inf]), "bias must be finite, but row 1"),
        ((*ROWS, None, [1.0, 2.0]), "bias came without weights"),
        (([[1.0], [2.0]], [3, 3]), "all rows are of class 3.*at least two classes"),
        (([1.0, 2.0], [0, 1]), "embeddings must be a matrix"),
        (([[1.0], [2.0]], [0]), "1 labels came with 2 embeddings"),
        ((np.zeros((0, 2)), []), "no rows seen yet"),
    ],
)
def test_refuses_what_it_cannot_use(given, message):
    with pytest.raises(CoCoError, match=message):
        neural_collapse(*given)
