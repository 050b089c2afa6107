"""The run report: one HTML file that shows what networks or kernels have learnt, and how.

Every number was measured before, see :class:`cocoloss.recording.RunRecord`. Here it is put into
the order in which ``templates/run.html`` writes it and ``assets/run.js`` draws it.
"""

import base64
import math
import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cocoloss._checks import counted
from cocoloss.files import write_whole
from cocoloss.json_text import json_value
from cocoloss.recording import NumbersRecord, RunRecord
from cocoloss.recording.record import Outcome, Reliability, rounded
from cocoloss.report.decisions_report import decisions_of, script_decisions
from cocoloss.report.document import visible
from cocoloss.report.numbers_report import numbers_report
from cocoloss.report.projection import Projection, project
from cocoloss.report.run_parts import kernels_of, render_run

SCRIPTS = (
    *("draw.js", "curves.js", "embedding.js", "reliability.js", "angles.js", "confusion.js"),
    *("run.js", "why.js", "decisions.js"),
)
BY_HEART = 0.1  # a gap between training and test rows that deserves a word
FEW_TEST_ROWS = 5  # of a class: fewer say little about it
OTHER_SHARES = 0.05  # a difference between class shares that is worth a word
SPHERE_SEEN = 1.08  # a circle of so many times the picture's extent is hardly cut off

MANY_CLASSES = 30  # more than this: the confusion matrix is a picture, angles a histogram
ROOMY = 4  # up to so many classes make a large confusion matrix
DENSE = 14  # more classes than this make a small confusion matrix
UPRIGHT = 6  # more classes than this, or longer names of more than a few, are written upwards
SHORT_NAME = 10  # characters
MISTAKES = 6  # how many kinds of mistakes are listed

FURTHEST = 4.0  # in widths of the picture: coordinates beyond are cut off
LARGEST = 32767
NOTHING = -32768  # a coordinate that is not a number


def write_run_report(
    record: RunRecord | NumbersRecord,
    path: str | os.PathLike[str],
    *,
    beside: Mapping[str, Sequence[float]] | None = None,
    verdict: str = "",
) -> Path:
    """Write the report of a run: one HTML file that fetches nothing.

    Parameters
    ----------
    record : RunRecord or NumbersRecord
        From :func:`cocoloss.recording.record_fit` or :func:`cocoloss.recording.record_numbers`.
    path : path
        The file; replaced if it exists.
    beside : mapping, optional
        Of a model of classes and of others, by name, the balanced accuracy of each fold of a
        cross-validation; that of the page comes first. They stand beside the heading.
    verdict : str
        What there is to say of that, in a sentence or two.

    Returns
    -------
    Path
        Where it is.

    Raises
    ------
    CoCoError
        If the place cannot be written to.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_wine
    >>> from cocoloss import CoCoClassifier
    >>> from cocoloss.recording import record_fit
    >>> X, y = load_wine(return_X_y=True)
    >>> record = record_fit(CoCoClassifier(max_iter=5, random_state=0), X, y, data_name="wine")
    >>> with TemporaryDirectory() as folder:
    ...     write_run_report(record, Path(folder) / "wine.html").stat().st_size > 10_000
    True
    """
    if isinstance(record, NumbersRecord):
        made = numbers_report(record)
    else:
        made = run_report(record, beside=beside, verdict=verdict)
    with write_whole(path) as aside:
        aside.write_bytes(made.encode())
    return Path(path)


def run_report(
    record: RunRecord, *, beside: Mapping[str, Sequence[float]] | None = None, verdict: str = ""
) -> str:
    """Return the report of a run as HTML; arguments are those of :func:`write_run_report`."""
    view = None
    if record.n_snapshots:
        with threadpool_limits(1, user_api="blas"):  # small products: threads only cost
            view = project(record)
    together, alone = _whose(record)
    calibration = _leading(record, record)
    return render_run(
        "run.html",
        record,
        SCRIPTS,
        script_data(record, view),
        view=view,
        together=together and {"kind": "together", "text": together},
        alone=alone and {"kind": "alone", "text": alone},
        guessing=_may_be_guessing(record),
        rarest=_rarest_class(record),
        by_heart=record.train_balanced_accuracy - record.balanced_accuracy > BY_HEART,
        guessing_loss=-(record.test_counts @ np.log(record.prior)) / record.test_counts.sum(),
        calibration_error=calibration.error if calibration else math.nan,
        at_kept={n: float(v[record.kept]) for n, v in record.measures.items()} if view else {},
        simplex=record.centred or _is_simplex(record.target),
        sphere_beyond=view and view.radius and view.radius * SPHERE_SEEN > view.extent,
        split=np.isfinite(record.measures["loss"]).any(),
        linear=np.isfinite(record.measures["nc3"]).any(),
        n_seen=int(record.is_test.sum()),
        judged=_judged_rows(record),
        decided=decisions_of(record),
        middle=_off_the_middle(record),
        majority=record.test_counts[record.train_counts.argmax()] / record.n_test,
        **_kernels(record),
        classes=_classes(record),
        n_untested=int(np.sum(record.test_counts == 0)),
        means=_means(record) if view else [],
        by_rows=record.n_classes <= MANY_CLASSES,
        common_angle=common_angle(record),
        beside=_beside(beside or {}),
        n_folds=max(map(len, (beside or {}).values()), default=0),
        verdict=verdict,
    )


def _beside(scores: Mapping[str, Sequence[float]]) -> list[tuple[str, float, float, bool]]:
    """Return name, mean and spread of the models, the best first, and which is that of the page."""
    rows = [
        (name, float(np.mean(of_folds)), float(np.std(of_folds)), place == 0)
        for place, (name, of_folds) in enumerate(scores.items())
    ]
    return sorted(rows, key=lambda row: -row[1])


def _kernels(record: RunRecord) -> dict[str, Any]:
    path = record.ridge_path
    settings = (path.tried, path.chosen, path.metrics) if path else ((), (), {})
    return kernels_of(record.importances, *settings, tried_by="Leave-one-out log loss")


def _whose(record: RunRecord) -> tuple[str, str]:
    """Return whose numbers a part of the page shows: those of the model, or of what is looked into.

    The model is all networks, or kernels, together; what is looked into, epoch by epoch or ridge by
    ridge, is the first. They must not be confused; both are empty where they are the same.
    """
    n, path = record.n_members, record.ridge_path
    together, alone = f"all {n} {record.member}s", f"{record.member} 1 of {n}"
    others = ["leaves"] if path is not None and path.is_sample else []
    others += [counted(record.n_networks, "network")] if record.n_networks else []
    if not record.n_snapshots or (n == 1 and not others):
        return "", ""
    if others:
        *first, last = [counted(n, "kernel"), *others]
        together = f"{', '.join(first)} and {last}"
    if path is not None and path.is_sample:
        alone = f"kernel 1, {path.n_rows:,} rows"
    return together, alone


# The heading: how the model does on rows that it has never seen.


def _may_be_guessing(record: RunRecord) -> bool:
    """Say whether balanced accuracy is within two standard errors of guessing."""
    counts = record.test_counts
    recall = np.diagonal(record.confusion)[counts > 0] / counts[counts > 0]
    spread = np.sqrt(np.sum(recall * (1 - recall) / counts[counts > 0])) / len(recall)
    return bool(record.balanced_accuracy - 2 * spread <= 1 / record.n_classes)


def _off_the_middle(record: RunRecord) -> float:
    """Return how many levels test rows are off the median of the training rows on average."""
    below = np.cumsum(record.train_counts)
    median = int(np.searchsorted(below, below[-1] / 2))
    return float(
        np.average(np.abs(np.arange(record.n_classes) - median), weights=record.test_counts)
    )


def _rarest_class(record: RunRecord) -> dict[str, str] | None:
    """Return the class with fewest test rows, if they are too few to say much."""
    tested = np.where(record.test_counts > 0, record.test_counts, record.n_test)
    rarest = int(tested.argmin())
    if tested[rarest] >= FEW_TEST_ROWS:
        return None
    rows = "one test row" if tested[rarest] == 1 else f"{tested[rarest]} test rows"
    return {"name": record.class_names[rarest], "rows": rows}


# The test rows, rows that were left out, and the classes.


def _judged_rows(record: RunRecord) -> dict[str, dict[str, Any]]:
    """Return what is written of predictions on test rows, and by leave-one-out."""
    outcomes: dict[str, RunRecord | Outcome] = {"test rows": record}
    if record.left_out is not None:
        outcomes["leave-one-out"] = record.left_out
    return {
        rows: {
            "rows": rows,
            "outcome": outcome,
            "n": int(outcome.confusion.sum()),
            "confusion": _confusion(record, outcome.confusion),
            "mistakes": _mistakes(record, outcome.confusion),
            "reliability": _reliability(_leading(record, outcome)),
            "leading": _leading(record, outcome),
            "as_answered": outcome.reliability if prior_differs(record, outcome) else None,
        }
        for rows, outcome in outcomes.items()
    }


def _confusion(record: RunRecord, counts: NDArray[np.int64]) -> dict[str, Any]:
    """Return how a confusion matrix is written; without cells it is a picture."""
    C = record.n_classes
    longest = max(map(len, record.class_names))
    tenths = np.ceil(10 * counts / np.maximum(counts.sum(axis=1), 1)[:, None])
    cells = np.stack([counts, tenths.astype(int)], axis=-1)  # (C, C, 2)
    return {
        "size": "roomy" if C <= ROOMY else "dense" if C > DENSE else "even",
        "upright": C > UPRIGHT or (C > ROOMY and longest > SHORT_NAME),
        "cells": [] if C > MANY_CLASSES else cells.tolist(),
    }


def _mistakes(record: RunRecord, counts: NDArray[np.int64]) -> list[tuple[str, str, int, float]]:
    """Return the most frequent mistakes: true and predicted class, rows, share of the class."""
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:MISTAKES]
    names = record.class_names
    return [
        (names[a], names[b], int(wrong[a, b]), wrong[a, b] / counts[a].sum())
        for a, b in zip(*np.unravel_index(order, wrong.shape), strict=True)
        if wrong[a, b]
    ]


def _leading(record: RunRecord, outcome: RunRecord | Outcome) -> Reliability | None:
    """Return the reliability curve of probabilities that are meant for class shares as they come.

    Answers under another prior are not wrong where they differ from what happens to these rows.
    """
    if outcome.reliability is None or not prior_differs(record, outcome):
        return outcome.reliability
    return outcome.reliability_at_shares


def _reliability(curve: Reliability | None) -> list[tuple[str, int, float, float]]:
    """Return the bins of the reliability curve that hold rows; none without probabilities."""
    if curve is None:
        return []
    ranges = [f"{low:.0%} to {high:.0%}" for low, high in pairwise(curve.edges)]
    rows = zip(ranges, curve.counts.tolist(), curve.confidence, curve.accuracy, strict=True)
    return [row for row in rows if row[1]]


def prior_differs(record: RunRecord, outcome: RunRecord | Outcome) -> bool:
    """Say whether the predictions are meant for other class shares than these rows have."""
    share = outcome.confusion.sum(axis=1) / outcome.confusion.sum()
    return bool(np.abs(share - record.prior).max() > OTHER_SHARES)


def _classes(record: RunRecord) -> list[tuple[int, int, float, float]]:
    """Return for each class the rows learnt from and tested on, recall and precision."""
    right, predicted = np.diagonal(record.confusion), record.confusion.sum(axis=0)
    with np.errstate(invalid="ignore"):
        shares = (right / record.test_counts, right / predicted)  # NaN where there is no row
    counts = (record.train_counts.tolist(), record.test_counts.tolist())
    return list(zip(*counts, *shares, strict=True))


def _means(record: RunRecord) -> list[tuple[float, int | None, float]]:
    """Return norm, nearest class and the angle to it of each class mean of the kept network."""
    norms = np.linalg.norm(record.class_means[record.kept], axis=1)
    rows: list[tuple[float, int | None, float]] = []
    for norm, angles in zip(norms, record.angles(record.kept), strict=True):
        nearest = int(np.nanargmin(angles)) if np.isfinite(angles).any() else None
        rows.append((norm, nearest, math.nan if nearest is None else angles[nearest]))
    return rows


def common_angle(record: RunRecord) -> float | None:
    """Return the target angle in degrees if all pairs of classes share it."""
    angles = record.target_angles()
    if angles is None:
        return None
    pairs = angles[~np.eye(record.n_classes, dtype=bool)]
    return float(pairs[0]) if np.ptp(pairs) < 1e-3 else None


def _is_simplex(gram: NDArray[np.float64] | None) -> bool:
    if gram is None:
        return False
    C = len(gram)
    return bool(np.allclose(gram, np.eye(C) * C / (C - 1) - 1 / (C - 1), atol=1e-5))


# What the scripts get.


def script_data(record: RunRecord, view: Projection | None) -> dict[str, Any]:
    """Return the data of the scripts: numbers, and coordinates in 16 bits each."""
    data: dict[str, Any] = {
        "classes": [visible(name) for name in record.class_names],
        "judged": {
            rows: {
                "reliability": judged["leading"],
                "as_answered": judged["as_answered"],
                "confusion": _confusion_cells(record, judged["outcome"].confusion),
            }
            for rows, judged in _judged_rows(record).items()
        },
    }
    data |= script_decisions(record)
    known: dict[str, Any] = json_value(data, number=rounded)
    return known if view is None else known | _script_film(record, view)


def _confusion_cells(record: RunRecord, counts: NDArray[np.int64]) -> dict[str, Any]:
    """Return what is drawn of a confusion matrix that is a picture."""
    cells = np.argwhere(counts) if record.n_classes > MANY_CLASSES else ()
    return {"cells": [[a, b, counts[a, b]] for a, b in cells], "totals": counts.sum(axis=1)}


def _script_film(record: RunRecord, view: Projection) -> dict[str, Any]:
    """Return what moves with the slider."""
    many = record.n_classes > MANY_CLASSES
    snapshots = [record.kept] if many else range(record.n_snapshots)
    scale = FURTHEST * view.extent / LARGEST
    path = record.ridge_path
    data = {
        "frames": {
            "word": "epoch" if path is None else "ridge",
            "values": record.epochs if path is None else path.ridges,
            "log": path is not None,
        },
        "kept": record.kept,
        "normalized": record.normalized,
        "model": {"name": _whose(record)[0], "balanced_accuracy": record.balanced_accuracy},
        "measures": record.measures,
        "loss_curve": record.loss_curve,
        "labels": record.labels,
        "tests": record.is_test.astype(int),
        "predicted": record.predicted,
        "angles": [np.round(record.angles(s), 1) for s in snapshots],
        "angles_by_rows": not many,
        "target_angles": None if many else record.target_angles(),
    }
    exact = {
        "common_angle": common_angle(record),
        "view": {
            "kind": view.kind,
            "dims": view.points.shape[2],
            "points": _as_text(view.points / scale),
            "means": _as_text(view.means / scale),
            "scale": scale,
            "target": json_value(view.target, number=rounded),
            "radius": view.radius,
            "extent": view.extent,
        },
    }
    return {**json_value(data, number=rounded), **exact}


def _as_text(values: NDArray[np.float64]) -> str:
    """Return numbers as 16-bit integers, little end first, in base64."""
    integers = np.round(np.clip(np.nan_to_num(values), -LARGEST, LARGEST))
    integers[~np.isfinite(values)] = NOTHING
    return base64.b64encode(integers.astype("<i2").tobytes()).decode()
