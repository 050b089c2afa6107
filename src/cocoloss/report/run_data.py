"""What the scripts of the run report get: plain numbers, and coordinates in 16 bits each."""

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.recording.reliability import Reliability
from cocoloss.recording.run_record import RunRecord, plain
from cocoloss.report.page import visible
from cocoloss.report.projection import Projection

MANY = 30  # more classes than this: the confusion matrix is a picture, angles a histogram
FURTHEST = 4.0  # in widths of the picture: coordinates beyond are cut off, for nobody sees them
OTHER_SHARES = 0.05  # a difference between class shares that is worth a word
LARGEST = 32767
NOTHING = -32768  # a coordinate that is not a number


def run_data(record: RunRecord, projection: Projection) -> dict[str, Any]:
    """Return the data of the page, as JSON knows it."""
    many = record.n_classes > MANY
    snapshots = [record.kept] if many else range(len(record.epochs))
    cells = np.argwhere(record.confusion) if many else ()
    return {
        "classes": [visible(name) for name in record.class_names],
        "epochs": record.epochs.tolist(),
        "kept": record.kept,
        "normalized": record.normalized,
        "members": record.n_members,
        "together": plain(record.balanced_accuracy),
        "measures": plain(record.measures),
        "loss_curve": plain(record.loss_curve),
        "labels": record.labels.tolist(),
        "tests": record.is_test.astype(int).tolist(),
        "predicted": record.predicted.tolist(),
        "view": _view(projection),
        "reliability": _curve(record.reliability),
        "reliability_at_prior": _curve(record.reliability_at_prior)
        if prior_differs(record)
        else None,
        "angles": [plain(np.round(record.angles(s), 1)) for s in snapshots],
        "angles_by_rows": not many,
        "target_angles": None if many else plain(record.target_angles()),
        "common_angle": common_angle(record),
        "confusion_cells": [[int(a), int(b), int(record.confusion[a, b])] for a, b in cells],
        "test_counts": record.test_counts.tolist(),
    }


def prior_differs(record: RunRecord) -> bool:
    """Say whether the predictions are meant for other class shares than the test rows have."""
    share = record.test_counts / record.test_counts.sum()
    return bool(np.abs(share - record.prior).max() > OTHER_SHARES)


def common_angle(record: RunRecord) -> float | None:
    """Return the target angle in degrees if all pairs of classes share it."""
    angles = record.target_angles()
    if angles is None:
        return None
    pairs = angles[~np.eye(record.n_classes, dtype=bool)]
    return float(pairs[0]) if np.ptp(pairs) < 1e-3 else None


def _curve(reliability: Reliability | None) -> dict[str, Any] | None:
    if reliability is None:
        return None
    names = ("edges", "counts", "confidence", "accuracy")
    return {name: plain(getattr(reliability, name)) for name in names}


def _view(projection: Projection) -> dict[str, Any]:
    scale = FURTHEST * projection.extent / LARGEST
    return {
        "kind": projection.kind,
        "dims": projection.points.shape[2],
        "points": _as_text(projection.points / scale),
        "means": _as_text(projection.means / scale),
        "scale": scale,
        "target": plain(projection.target),
        "radius": projection.radius,
        "extent": projection.extent,
    }


def _as_text(values: NDArray[np.float64]) -> str:
    """Return numbers as 16-bit integers, little end first, in base64."""
    whole = np.round(np.clip(np.nan_to_num(values), -LARGEST, LARGEST))
    whole[~np.isfinite(values)] = NOTHING
    return base64.b64encode(whole.astype("<i2").tobytes()).decode()
