"""What a record says of decisions: thresholds, what mistakes cost, and the rows that went worst."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import (
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from cocoloss.heads.decisions import conventional_position
from cocoloss.recording.why import cell_text

# Of a slider: fine steps at both ends, where rare classes are.
ENDS = np.array([0.001, 0.002, 0.005])
THRESHOLDS = np.r_[0, ENDS, np.arange(1, 100) / 100, 1 - ENDS[::-1], 1]
MOST_CLASSES = 30  # one against the others; of more those that are told apart worst
MOST_POINTS = 200  # of a curve
WORST = 10  # rows
SHOWN = 6  # columns of each


@dataclass(frozen=True)
class Against:
    """One class against the others, on some rows, at every threshold.

    Attributes
    ----------
    label, n, n_of_class : int
        Position of the class, rows, and those of the class.
    auc, average_precision : float
        Areas under both curves; guessing has 1/2, and the share of the class.
    roc, precision_recall : arrays of shape (m, 2)
        False alarms and recall; recall and precision.
    found, alarmed : integer arrays of shape (G,)
        Rows taken for the class at each of ``THRESHOLDS``: of the class, and of others.
    """

    label: int
    n: int
    n_of_class: int
    auc: float
    average_precision: float
    roc: NDArray[np.float64]
    precision_recall: NDArray[np.float64]
    found: NDArray[np.int64]
    alarmed: NDArray[np.int64]


@dataclass(frozen=True)
class DecisionRecord:
    """Decisions on test rows, and on rows that were left out.

    Attributes
    ----------
    positive : int
        The class to show first: of two the one that its name says is positive, else the rarest.
    against : dict of str to tuple of Against
        "test rows", and "leave-one-out" if there are some: each class against the others.
    costs : array of shape (C, C), optional
        What it costs to take a class, by row, for another, by column.
    paid : dict of str to float
        What a test row costs on average: by least expected cost, by the most probable class, and
        by the one answer to all rows that was cheapest for the training rows.
    """

    positive: int
    against: dict[str, tuple[Against, ...]]
    costs: NDArray[np.float64] | None
    paid: dict[str, float]


class WorstRow(NamedTuple):
    """A test row of which little was understood."""

    row: str  # its place in the table, or its name there
    true: str
    predicted: str
    measure: float  # probability of the true class; how far a number is off
    values: tuple[str, ...]  # of the columns that are shown


@dataclass(frozen=True)
class WorstRows:
    """The test rows that were predicted worst, the worst first, with some of their values."""

    columns: tuple[str, ...]
    n_columns: int  # of the table
    rows: tuple[WorstRow, ...]


def decision_record(
    judged: dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]],
    classes: NDArray[Any],
    train_counts: NDArray[np.int64],
    costs: NDArray[np.float64] | None,
    cheapest: NDArray[np.int64] | None,
) -> DecisionRecord:
    """Return what there is to decide.

    Parameters
    ----------
    judged : dict of str to (labels, probabilities)
        Test rows first.
    classes, train_counts : arrays of shape (C,)
    costs : array of shape (C, C), optional
    cheapest : integer array of shape (n_test,), optional
        Test rows by least expected cost, if there are costs.
    """
    against = {}
    test_labels, test_proba = judged["test rows"]
    chosen = _chosen(test_labels, test_proba)
    for rows, (labels, proba) in judged.items():
        parts = [
            _against(labels, proba[:, c], c)
            for c in chosen
            if 0 < np.sum(labels == c) < len(labels)
        ]
        against[rows] = tuple(parts)
    place = conventional_position(classes) if len(classes) == 2 else None
    rarest = min(chosen, key=lambda c: (train_counts[c], c)) if chosen else 0
    paid = {}
    if costs is not None and cheapest is not None:
        one = int((train_counts @ costs).argmin())
        answers = {
            "least expected cost": cheapest,
            "most probable class": test_proba.argmax(axis=1),
            f"always {classes.tolist()[one]}": np.full(len(test_labels), one),
        }
        paid = {name: float(costs[test_labels, c].mean()) for name, c in answers.items()}
    return DecisionRecord(int(rarest if place is None else place), against, costs, paid)


def _chosen(labels: NDArray[np.int64], proba: NDArray[np.float64]) -> list[int]:
    """Return the classes that have a curve: all, or those that are told apart worst."""
    present = [c for c in range(proba.shape[1]) if 0 < np.sum(labels == c) < len(labels)]
    if len(present) <= MOST_CLASSES:
        return present
    worst = sorted(present, key=lambda c: roc_auc_score(labels == c, proba[:, c]))[:MOST_CLASSES]
    return sorted(worst)


def _against(labels: NDArray[np.int64], scores: NDArray[np.float64], c: int) -> Against:
    mine = labels == c
    fpr, tpr, _ = roc_curve(mine, scores)
    precision, recall, _ = precision_recall_curve(mine, scores, drop_intermediate=True)
    taken = scores[:, None] >= THRESHOLDS
    return Against(
        label=c,
        n=len(labels),
        n_of_class=int(mine.sum()),
        auc=float(roc_auc_score(mine, scores)),
        average_precision=float(average_precision_score(mine, scores)),
        roc=_some(np.stack([fpr, tpr], axis=1)),
        precision_recall=_some(np.stack([recall, precision], axis=1)),
        found=taken[mine].sum(axis=0),
        alarmed=taken[~mine].sum(axis=0),
    )


def _some(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the points of a curve, evenly drawn if there are many; both ends stay."""
    n = len(points)
    return np.asarray(points[np.unique(np.linspace(0, n - 1, min(n, MOST_POINTS)).astype(int))])


def worst_rows(
    table: Any,
    places: NDArray[np.int64],
    order: NDArray[np.intp],
    remarks: list[tuple[str, str, float]],
    importances: dict[str, float],
) -> WorstRows:
    """Return rows of a table in an order, the worst first, with what is shown beside each.

    Places are those of its rows in the whole table, which frames of pandas know by themselves.
    Columns are shown by importance, if that is known, else as they come.
    """
    frame = table
    if hasattr(table, "to_pandas"):
        frame = table.to_pandas().set_axis(places)
    elif not isinstance(frame, pd.DataFrame):
        array = np.asarray(frame)
        frame = pd.DataFrame(array, places, [f"x{j}" for j in range(array.shape[1])])
    names = {str(name): j for j, name in enumerate(frame.columns)}
    ranked = sorted((n for n in importances if n in names), key=lambda n: -importances[n])
    shown = (ranked or list(names))[:SHOWN]
    part = frame.iloc[order, [names[name] for name in shown]]
    rows = tuple(
        WorstRow(str(label), *of_row, tuple(map(_shown, values)))
        for label, of_row, values in zip(
            part.index, remarks, part.itertuples(index=False, name=None), strict=True
        )
    )
    return WorstRows(tuple(shown), len(names), rows)


def _shown(value: Any) -> str:
    """Return a value as a table shows it."""
    gap = pd.api.types.is_scalar(value) and pd.isna(value)
    return "–" if gap else cell_text(value)  # noqa: RUF001 - as pages write a gap
