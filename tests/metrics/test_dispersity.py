import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ortho_group

from cocoloss.exceptions import CoCoError
from cocoloss.metrics import NORMS, ClassMoments, dispersity, dispersity_of
from oracles import printed_moments

every_norm = pytest.mark.parametrize("norm", list(NORMS))


def imbalanced_rows(seed=0, sizes=(2, 9, 4, 15), q=3):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    embeddings = rng.normal(size=(len(sizes), q))[labels] + 0.3 * rng.normal(size=(len(labels), q))
    return embeddings, labels


def printed_dispersity(embeddings, labels, norm):
    """Compute the ratio as the paper prints it, one sample at a time."""
    moments = printed_moments(embeddings, labels)
    within, between = moments["within"], moments["between"]
    if norm == "fro":
        return np.sqrt((within**2).sum() / (between**2).sum())
    if norm == "spectral":
        return max(np.linalg.eigvalsh(within)) / max(np.linalg.eigvalsh(between))
    if norm == "trace":
        return np.trace(within) / np.trace(between)
    return np.trace(within @ np.linalg.pinv(between, rcond=1e-12, hermitian=True))


@every_norm
@pytest.mark.parametrize("q", [1, 3, 6])  # fewer than, as many as, more than C - 1
def test_is_the_printed_formula(norm, q):
    embeddings, labels = imbalanced_rows(q=q)
    expected = printed_dispersity(embeddings, labels, norm)
    assert dispersity(embeddings, labels, norm) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    ("norm", "expected"),
    [("fro", 4.25**0.5 / 4), ("spectral", 2 / 4), ("trace", 2.5 / 4), ("pinv", 0.5 / 4)],
)
def test_a_small_example_by_hand(norm, expected):
    # Means at (-2, 0) and (2, 0): Sigma_B = diag(4, 0). Around each, Sigma_W = diag(1/2, 2).
    cross = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    mean = np.array([2.0, 0.0])
    embeddings = np.vstack([cross - mean, cross + mean])
    assert dispersity(embeddings, [0] * 4 + [1] * 4, norm) == pytest.approx(expected)


def test_takes_the_frobenius_norm_by_default():
    embeddings, labels = imbalanced_rows()
    moments = ClassMoments().update(embeddings, labels)
    frobenius = printed_dispersity(embeddings, labels, "fro")
    assert dispersity(embeddings, labels) == pytest.approx(frobenius)
    assert dispersity_of(moments) == pytest.approx(frobenius)


@every_norm
@given(
    seed=st.integers(0, 1000),
    scale=st.floats(1e-3, 1e3),
    shift=st.sampled_from([0.0, 1.0, -1e5]),
)
def test_does_not_change_under_rotation_scale_and_shift(norm, seed, scale, shift):
    embeddings, labels = imbalanced_rows(seed)
    rotation = ortho_group.rvs(3, random_state=seed)
    moved = scale * (embeddings @ rotation) + shift
    # After a shift of 1e5 at scale 1e-3, the rows themselves keep eight digits.
    expected = pytest.approx(dispersity(embeddings, labels, norm), rel=1e-5)
    assert dispersity(moved, labels, norm) == expected


EXTREME = [1e-307, 1e-170, 1e-100, 1e-60, 1e80, 1e160, 1e300]


@every_norm
@pytest.mark.parametrize("scale", EXTREME)
def test_no_scale_is_too_small_or_too_large(norm, scale):
    embeddings, labels = imbalanced_rows()
    expected = dispersity(embeddings, labels, norm)
    assert dispersity(scale * embeddings, labels, norm) == pytest.approx(expected, rel=1e-10)
    beside = np.column_stack([scale * embeddings, np.ones(len(labels))])  # no offset sets the scale
    assert dispersity(beside, labels, norm) == pytest.approx(expected, rel=1e-10)


@every_norm
def test_a_row_of_weight_zero_does_not_set_the_scale(norm):
    embeddings, labels = imbalanced_rows()
    expected = dispersity(embeddings, labels, norm)
    far = np.vstack([np.full(3, 1e300), embeddings])
    weights = np.append(0.0, np.ones(len(labels)))
    ours = dispersity(far, [0, *labels], norm, sample_weight=weights)
    assert ours == pytest.approx(expected, rel=1e-12)


@every_norm
@pytest.mark.parametrize("scale", [1e-100, 1e80])
def test_moments_of_small_and_large_rows_have_a_dispersity(norm, scale):
    embeddings, labels = imbalanced_rows()
    moments = ClassMoments().update(scale * embeddings, labels)
    expected = dispersity(embeddings, labels, norm)
    assert dispersity_of(moments, norm) == pytest.approx(expected, rel=1e-10)


@every_norm
@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered")
def test_moments_that_are_infinite_are_refused(norm):
    embeddings, labels = imbalanced_rows()
    moments = ClassMoments().update(1e160 * embeddings, labels)
    with pytest.raises(CoCoError, match="covariances are infinite; divide"):
        dispersity_of(moments, norm)


@every_norm
def test_falls_with_the_square_of_the_width_of_the_classes(norm):
    embeddings, labels = imbalanced_rows()
    means = ClassMoments().update(embeddings, labels).means[labels]
    wide = dispersity(embeddings, labels, norm)
    narrow = dispersity(means + 1e-3 * (embeddings - means), labels, norm)
    assert narrow == pytest.approx(1e-6 * wide, rel=1e-9)


@every_norm
def test_vanishes_when_every_class_is_a_point(norm):
    _, labels = imbalanced_rows()
    points = np.array([[1.0, 0.1], [-0.3, 0.7], [0.2, -1.1], [0.5, 0.5]])[labels]
    assert dispersity(points, labels, norm) == pytest.approx(0, abs=1e-28)


@every_norm
def test_is_infinite_when_the_class_means_coincide(norm):
    rng = np.random.default_rng(0)
    half = 0.1 + rng.normal(size=(50, 3))
    centre = half.mean(axis=0)
    embeddings = np.vstack([half, 2 * centre - half])  # equal means up to rounding, not exactly
    assert dispersity(embeddings, np.repeat([0, 1], 50), norm) == np.inf


@every_norm
def test_is_infinite_when_all_rows_are_one_point(norm):
    assert dispersity(np.full((7, 2), 0.1), [0, 0, 0, 1, 1, 2, 2], norm) == np.inf


@every_norm
def test_stays_finite_for_class_means_that_barely_differ(norm):
    spread = np.array([[-1.0], [1.0]])
    embeddings = np.vstack([spread, spread + 1e-6])  # Sigma_W = 1, Sigma_B = (5e-7)^2
    assert dispersity(embeddings, [0, 0, 1, 1], norm) == pytest.approx(4e12, rel=1e-6)


def test_the_pseudo_inverse_leaves_out_directions_made_by_rounding():
    # Four classes on a line have one real direction; C - 1 = 3 would let two false ones in.
    rng = np.random.default_rng(4)
    labels = np.arange(40) % 4
    line = rng.normal(size=(4, 1)) @ rng.normal(size=(1, 5))  # (C, q)
    embeddings = line[labels] + rng.normal(size=(10, 5)).repeat(4, axis=0)
    axis = line[0] / np.linalg.norm(line[0])
    along = embeddings @ axis[:, None]  # the same noise in every class keeps the means on a line
    expected = dispersity(along, labels, "trace")
    assert dispersity(embeddings, labels, "pinv") == pytest.approx(expected, rel=1e-9)


def test_the_pseudo_inverse_keeps_one_direction_less_than_there_are_classes():
    # Wide classes, 1e-8 apart: rounding moves mu_G off the line between the two means by more
    # than the cut-off allows, and only the count of classes tells that direction is false.
    noise = 1e3 * np.random.default_rng(6).uniform(0, 1, size=(50, 3))
    embeddings = np.vstack([noise, noise[:20] - noise[:20].mean(axis=0) + noise.mean(axis=0)])
    embeddings[50:, 0] += 1e-8
    labels = np.repeat([0, 1], [50, 20])
    moments = ClassMoments().update(embeddings, labels)
    expected = moments.within[0, 0] / np.trace(moments.between)
    assert dispersity(embeddings, labels, "pinv") == pytest.approx(expected, rel=1e-3)


@every_norm
def test_a_weight_is_a_number_of_copies(norm):
    embeddings, labels = imbalanced_rows()
    copies = np.random.default_rng(5).integers(1, 4, len(labels))
    weighted = dispersity(embeddings, labels, norm, sample_weight=copies)
    repeated = dispersity(embeddings.repeat(copies, axis=0), labels.repeat(copies), norm)
    assert weighted == pytest.approx(repeated, rel=1e-12)
    assert weighted != pytest.approx(dispersity(embeddings, labels, norm), rel=1e-3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_takes_tensors(dtype):
    embeddings = torch.tensor([[-3.0], [-1.0], [1.0], [3.0]], dtype=dtype, requires_grad=True)
    result = dispersity(embeddings, torch.tensor([0, 0, 1, 1]))
    assert result == 0.25
    assert isinstance(result, float)


@pytest.mark.parametrize(
    ("chunk", "norm", "message"),
    [
        (([[1.0], [2.0]], ["a", "a"]), "fro", "all rows are of class 'a'.*at least two classes"),
        ((np.zeros((0, 2)), []), "fro", "no rows seen yet"),
        (([[1.0], [2.0]], [0, 1]), "nuclear", "one of 'fro', 'spectral', 'trace', 'pinv', not"),
        (([[1.0], [2.0]], [0, 1]), None, "norm must be one of"),
    ],
)
def test_refuses_what_has_no_dispersity(chunk, norm, message):
    with pytest.raises(CoCoError, match=message):
        dispersity(*chunk, norm)
    with pytest.raises(CoCoError, match=message):
        dispersity_of(ClassMoments().update(*chunk), norm)
