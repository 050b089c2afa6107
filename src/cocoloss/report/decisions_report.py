"""Decisions on a run page: every threshold of one class against the others, and what it costs.

Here is what ``templates/run_decisions.html`` writes and ``assets/decisions.js`` moves.
"""

import math
from typing import Any

import numpy as np

from cocoloss.recording import RunRecord
from cocoloss.recording.decisions import THRESHOLDS, Against
from cocoloss.report.document import visible

AT = 0.5  # the threshold that a page opens with
LISTED = tuple(np.arange(1, 10) / 10)  # those in the table of numbers
# What is measured at a threshold, and what it is called.
MEASURES = {
    "recall": "recall",
    "precision": "precision",
    "alarms": "false positive rate",
    "f1": "F1",
    "balanced_accuracy": "balanced accuracy",
    "accuracy": "accuracy",
    "cost": "cost per row",
}


def decisions_of(record: RunRecord) -> dict[str, Any] | None:
    """Return what the template writes of decisions; None if nothing can be decided."""
    decisions = record.decisions
    if decisions is None or not decisions.against["test rows"]:
        return None
    names = record.class_names
    parts = {
        rows: {part.label: part for part in every} for rows, every in decisions.against.items()
    }
    positive = decisions.positive
    if positive not in parts["test rows"]:
        positive = min(parts["test rows"])
    known = {rows: every[positive] for rows, every in parts.items() if positive in every}
    k = _place(AT)
    costs = _costs(record, positive)
    measures = {key: name for key, name in MEASURES.items() if key != "cost" or costs}
    first = known["test rows"]
    return {
        "positive": positive,
        "classes": sorted(parts["test rows"]),
        "n_more": record.n_classes - len(parts["test rows"]),
        "measures": measures,
        "rows": list(known),
        "n_thresholds": len(THRESHOLDS),
        "at": k,
        "now": {rows: measures_at(part, k, costs) for rows, part in known.items()},
        "guess": measures_at(first, k, costs, guess=True),
        "cells": cells_at(first, k),
        "other": names[1 - positive] if record.n_classes == 2 else None,
        "listed": [
            (THRESHOLDS[j], *(measures_at(first, j, costs, guess=guess) for guess in (False, True)))
            for j in map(_place, LISTED)
        ],
        "areas": [
            (c, part.auc, part.average_precision, part.n_of_class / part.n)
            for c, part in parts["test rows"].items()
        ],
        "paid": decisions.paid,
    }


def measures_at(
    part: Against, k: int, costs: list[list[float]] | None, *, guess: bool = False
) -> dict[str, float]:
    """Return what is measured at a threshold.

    Of guessing it is what would be if as many rows were taken for the class at random.
    """
    found, alarmed = float(part.found[k]), float(part.alarmed[k])
    n, mine = part.n, part.n_of_class
    if guess:
        taken = found + alarmed
        found, alarmed = taken * mine / n, taken * (n - mine) / n
    missed, silent = mine - found, n - mine - alarmed
    recall, alarms = found / mine, alarmed / (n - mine)
    measures = {
        "recall": recall,
        "precision": found / (found + alarmed) if found + alarmed else math.nan,
        "alarms": alarms,
        "f1": 2 * found / (2 * found + alarmed + missed),
        "balanced_accuracy": (recall + 1 - alarms) / 2,
        "accuracy": (found + silent) / n,
    }
    if costs:
        (right, alarm), (miss, hit) = costs
        total = silent * right + alarmed * alarm + missed * miss + found * hit
        measures["cost"] = total / n
    return measures


def cells_at(part: Against, k: int) -> list[list[int]]:
    """Return the confusion at a threshold: the class and others, taken for it and for others."""
    found, alarmed = int(part.found[k]), int(part.alarmed[k])
    return [
        [found, part.n_of_class - found],
        [alarmed, part.n - part.n_of_class - alarmed],
    ]


def _place(threshold: float) -> int:
    return int(np.abs(THRESHOLDS - threshold).argmin())


def _costs(record: RunRecord, positive: int) -> list[list[float]] | None:
    """Return costs of two classes, with the positive one second."""
    assert record.decisions is not None
    costs = record.decisions.costs
    if costs is None or record.n_classes != 2:
        return None
    turn = [1 - positive, positive]
    return [[float(costs[a, b]) for b in turn] for a in turn]


def script_decisions(record: RunRecord) -> dict[str, Any]:
    """Return what ``decisions.js`` gets; nothing if there is nothing to decide."""
    written = decisions_of(record)
    if written is None:
        return {}
    assert record.decisions is not None
    names = [visible(name) for name in record.class_names]
    both = [_costs(record, c) for c in (0, 1)] if record.n_classes == 2 else None
    return {
        "decisions": {
            "positive": written["positive"],
            "names": names,
            "thresholds": THRESHOLDS,
            "against": record.decisions.against,
            "costs": both if both and both[0] else None,
        }
    }
