"""Which plane of the embedding is looked at: one for all frames, so that the movie does not jump.

It is the plane in which the closest two classes of the kept network are farthest apart, among a
few that are natural. A simplex of many classes has no principal axes, all are equal; but it has a
plane in which its vertices are a regular polygon.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from cocoloss.recording import RunRecord

ROOM = 1.15  # around what is drawn
FURTHEST = 1.35  # how much wider than the kept network's embedding the picture may become
FLAT = 1e-6  # of a frame: what is left of it outside the plane
INNER = 98  # percentile: a few outliers must not make the picture small


@dataclass(frozen=True)
class Projection:
    """The embedding as it is drawn, in d = 1, 2 or 3 coordinates.

    The origin is that of the embedding, or for centred class means their centre.
    """

    kind: str  # "line" or "plane" as it is, "projected" from more dimensions
    points: NDArray[np.float64]  # (S, n, d)
    means: NDArray[np.float64]  # (S, C, d)
    target: NDArray[np.float64] | None  # (C, d), turned to lie closest to the means of a network
    radius: float | None  # of the circle that unit vectors lie on or in; None if norms mean nothing
    extent: float  # half the width of a picture that shows nearly all points
    share: float  # of the variance of the kept network's embedding in the first two coordinates


def project(record: RunRecord) -> Projection:
    """Choose the axes by the kept network, and project every snapshot on them."""
    means = record.class_means[record.kept]  # (C, q)
    kept = record.embeddings[record.kept].astype(np.float64)
    centre = means.mean(axis=0) if record.centred else np.zeros(record.embedding_dim)
    target = None if record.target is None else fit_target(record.target, means - centre, record)
    if record.ridge_path is not None:  # which has its corners where they are
        target = record.ridge_path.corners
    q = record.embedding_dim
    axes = np.eye(q) if q <= 2 else _best_axes(means - centre, target, kept - kept.mean(axis=0))
    points = (record.embeddings - centre) @ axes
    drawn_target = None if target is None else target @ axes
    radius = None if record.centred else 1.0
    return Projection(
        ("line", "plane")[q - 1] if q <= 2 else "projected",
        points,
        (record.class_means - centre) @ axes,
        drawn_target,
        radius,
        _extent(points, record.kept, drawn_target),
        _share(kept, axes[:, :2]),
    )


def fit_target(
    gram: NDArray[np.float64], means: NDArray[np.float64], record: RunRecord
) -> NDArray[np.float64]:
    """Return vectors with a Gram matrix, turned to lie closest to the class means, (C, q).

    If the class means are centred ones, whose norms mean nothing, the vectors are scaled, too.
    """
    values, vectors = np.linalg.eigh(gram)  # ascending
    kept = min(means.shape[1], len(gram))
    frame = vectors[:, -kept:] * np.sqrt(np.clip(values[-kept:], 0, None))
    frame = np.pad(frame, ((0, 0), (0, means.shape[1] - kept)))
    left, singular, right = np.linalg.svd(frame.T @ means)  # orthogonal Procrustes
    scale = singular.sum() / np.sum(frame**2) if record.centred else 1.0
    return np.asarray(scale * frame @ left @ right)


def _best_axes(
    means: NDArray[np.float64], target: NDArray[np.float64] | None, rows: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return three orthonormal axes, (q, 3); the first two span the plane that is seen first."""
    frames = [means - means.mean(axis=0)]
    if target is not None:
        frames.insert(0, target - target.mean(axis=0))
    if len(means) == 2:  # a line joins them; what crosses it is left to the rows
        plane = _extend(_principal(frames[0], 1), rows)
    else:
        planes = [plane for frame in frames for plane in (_polygon(frame), _principal(frame, 2))]
        planes.append(_principal(rows, 2))
        plane = max(planes, key=lambda axes: float(pdist(means @ axes).min()))
    beyond = frames[0] - frames[0] @ plane @ plane.T
    flat = np.linalg.norm(beyond) < FLAT * np.linalg.norm(frames[0])
    return _extend(plane, rows if flat else frames[0])


def _extend(axes: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add the axis along which the rows vary most, apart from the axes there are."""
    further = _principal(rows - rows @ axes @ axes.T, 1)
    basis, _ = np.linalg.qr(np.column_stack([axes, further]))
    return np.column_stack([axes, basis[:, -1]])


def _polygon(frame: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the plane in which the vertices of a simplex are a regular polygon, (q, 2)."""
    angles = 2 * np.pi * np.arange(len(frame)) / len(frame)
    axes, _ = np.linalg.qr(frame.T @ np.column_stack([np.cos(angles), np.sin(angles)]))
    return np.asarray(axes)


def _principal(rows: NDArray[np.float64], n_axes: int) -> NDArray[np.float64]:
    """Return the axes of greatest variance, (q, n_axes)."""
    _, _, axes = np.linalg.svd(rows, full_matrices=len(rows) < n_axes)
    return np.asarray(axes[:n_axes].T)


def _extent(points: NDArray[np.float64], kept: int, target: NDArray[np.float64] | None) -> float:
    radii = np.linalg.norm(points[..., :2], axis=-1)  # (S, n)
    final = float(np.percentile(radii[kept], INNER))
    if target is not None:
        final = max(final, float(np.linalg.norm(target[:, :2], axis=1).max()))
    widest = [float(np.percentile(r, INNER)) for r in radii if np.isfinite(r).all()]
    return ROOM * max(final, min(max(widest), FURTHEST * final), 1e-9)


def _share(rows: NDArray[np.float64], plane: NDArray[np.float64]) -> float:
    centred = rows - rows.mean(axis=0)
    total = float(np.sum(centred**2))
    return float(np.sum((centred @ plane) ** 2) / total) if total > 0 else 1.0
