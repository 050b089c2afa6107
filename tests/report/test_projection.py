"""The plane that is looked at: classes apart, the target where it belongs, one for all epochs."""

import base64
import dataclasses
import warnings

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from cocoloss.geometry import similarity, simplex_frame
from cocoloss.report.projection import fit_target, project
from cocoloss.report.run_report import run_report, script_data


def fake(record, C, q, *, spread=0.05, S=3, n=120, target="simplex", centred=False, seed=0):
    """Return a record of C classes in q dimensions that collapse to a target."""
    rng = np.random.default_rng(seed)
    G = similarity(target, C, q)
    values, vectors = np.linalg.eigh(G)
    corners = (vectors * np.sqrt(np.clip(values, 0, None)))[:, -min(q, C) :]
    corners = np.pad(corners, ((0, 0), (0, q - corners.shape[1])))
    corners = corners @ np.linalg.qr(rng.normal(size=(q, q)))[0]
    if centred:
        corners = 7 * corners + 3
    labels = np.arange(n) % C
    scales = np.linspace(1, spread, S)
    embeddings = corners[labels] + scales[:, None, None] * rng.normal(size=(S, n, q))
    means = np.stack([[e[labels == c].mean(axis=0) for c in range(C)] for e in embeddings])
    return dataclasses.replace(
        record,
        class_names=tuple(map(str, range(C))),
        target=G,
        centred=centred,
        embeddings=embeddings.astype(np.float32),
        class_means=means,
        labels=labels,
        predicted=labels,
        is_test=labels < 0,
        epochs=np.arange(S),
        kept=S - 1,
        measures={name: np.ones(S) for name in record.measures},
        confusion=np.eye(C, dtype=int),
        test_counts=np.ones(C, dtype=int),
        train_counts=np.ones(C, dtype=int),
        prior=np.full(C, 1 / C),
    )


@pytest.mark.parametrize(("C", "q"), [(2, 1), (2, 2), (3, 2)])
def test_small_embeddings_are_drawn_as_they_are(digits, C, q):
    record = fake(digits.record, C, q)
    view = project(record)
    assert view.kind == ("line", "plane")[q - 1]
    np.testing.assert_allclose(view.points, record.embeddings, atol=1e-6)
    np.testing.assert_allclose(view.means, record.class_means, atol=1e-12)
    assert view.share == pytest.approx(1)


@pytest.mark.parametrize(("C", "q"), [(2, 8), (3, 3), (4, 8), (10, 10), (26, 40)])
def test_classes_do_not_hide_each_other(digits, C, q):
    view = project(fake(digits.record, C, q, n=20 * C))
    assert view.points.shape[2] == 3
    # Sides of a regular polygon: the best that a plane can do for a simplex.
    side = 2 * np.sin(np.pi / C) * np.sqrt(2 / (C - 1)) if C > 2 else 2.0
    assert pdist(view.means[-1, :, :2]).min() > 0.7 * side


@pytest.mark.parametrize(("C", "q"), [(2, 8), (3, 5), (5, 9)])
def test_axes_are_at_right_angles_and_keep_lengths(digits, C, q):
    record = fake(digits.record, C, q)
    view = project(record)
    lengths = np.linalg.norm(view.points, axis=-1)
    assert (lengths <= np.linalg.norm(record.embeddings, axis=-1) + 1e-5).all()
    axes, *_ = np.linalg.lstsq(
        record.embeddings.reshape(-1, q), view.points.reshape(-1, 3), rcond=None
    )
    np.testing.assert_allclose(axes.T @ axes, np.eye(3), atol=1e-4)


@pytest.mark.parametrize("kind", ["simplex", "orthoplex"])
def test_the_target_has_its_gram_matrix_and_lies_at_the_class_means(digits, kind):
    record = fake(digits.record, 4, 6, target=kind, spread=1e-3)
    means = record.class_means[-1]
    fitted = fit_target(record.target, means, record)
    np.testing.assert_allclose(fitted @ fitted.T, record.target, atol=1e-9)
    np.testing.assert_allclose(fitted, means, atol=5e-3)


def test_the_target_of_centred_means_has_their_scale(digits):
    record = fake(digits.record, 4, 6, centred=True, spread=1e-3)
    means = record.class_means[-1] - record.class_means[-1].mean(axis=0)
    fitted = fit_target(record.target, means, record)
    np.testing.assert_allclose(fitted, means, atol=5e-3)
    view = project(record)
    assert view.radius is None
    np.testing.assert_allclose(view.target, view.means[-1], atol=5e-3)


def test_a_target_that_cannot_be_reached_is_drawn_as_near_as_it_can_be(digits):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        record = fake(digits.record, 6, 3, target="welch")
    assert project(record).target.shape == (6, 3)


def test_outliers_do_not_make_the_picture_small(digits):
    record = fake(digits.record, 3, 2)
    wild = record.embeddings.copy()
    wild[0, 0] = 1e6
    assert project(dataclasses.replace(record, embeddings=wild)).extent < 3


def test_coordinates_survive_their_16_bits(digits):
    record = digits.record
    view = project(record)
    data = script_data(record, view)["view"]
    raw = np.frombuffer(base64.b64decode(data["points"]), dtype="<i2").reshape(view.points.shape)
    np.testing.assert_allclose(raw * data["scale"], view.points, atol=1e-3 * view.extent)


def test_a_thousand_points_at_forty_epochs_stay_small(digits):
    large = fake(digits.record, 10, 10, spread=1, S=40, n=1000)
    assert len(run_report(large).encode()) < 1_500_000


def test_a_snapshot_that_diverged_is_marked_not_drawn(digits):
    record = fake(digits.record, 3, 2)
    wild, means = record.embeddings.copy(), record.class_means.copy()
    wild[1] = np.nan
    means[1] = np.nan
    record = dataclasses.replace(record, embeddings=wild, class_means=means)
    data = script_data(record, project(record))
    raw = np.frombuffer(base64.b64decode(data["view"]["points"]), dtype="<i2").reshape(wild.shape)
    assert (raw[1] == -32768).all()
    assert (raw[[0, 2]] != -32768).all()
    assert data["angles"][1][0][1] is None


def test_a_simplex_frame_is_its_own_target(digits):
    record = digits.record
    frame = simplex_frame(10, 10, random_state=3)
    fitted = fit_target(similarity("simplex", 10), frame, record)
    np.testing.assert_allclose(fitted, frame, atol=1e-7)
