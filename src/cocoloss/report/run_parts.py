"""What every run page has, whatever was learnt: columns, kernels, importances, arguments."""

from collections.abc import Mapping, Sequence
from typing import Any

from cocoloss._checks import counted
from cocoloss.kernels.search import Setting
from cocoloss.recording import NumbersRecord, RunRecord

Record = RunRecord | NumbersRecord

STYLES = ("page.css", "run.css")
IMPORTANT = 12  # so many columns are ranked in the open, the others folded
PLURALS = {"category": "categories"}


def arguments_of(record: Record) -> list[tuple[str, str]]:
    """Return the arguments, those first that are not the default."""
    return sorted(record.arguments.items(), key=lambda item: item[0] not in record.changed)


def kernels_of(
    importances: Mapping[str, float],
    tried: Sequence[Setting],
    chosen: Sequence[Setting],
    metrics: Mapping[str, tuple[float, ...]],
    *,
    tried_by: str,
) -> dict[str, Any]:
    """Return what ``run_kernels.html`` writes; kernels were tried by a loss of this name."""
    rounds = _rounds(tried)
    return {
        "ranking": _ranking(importances, metrics),
        "rounds": rounds,
        "tried": _tried(tried, chosen, len(rounds)),
        "tried_by": tried_by,
    }


def _ranking(
    importances: Mapping[str, float], metrics: Mapping[str, tuple[float, ...]]
) -> dict[str, Any]:
    """Return columns by importance, the largest first, with their share of each round's metric."""
    ranked = [
        (name, share, metrics.get(name, ()))
        for name, share in sorted(importances.items(), key=lambda item: -item[1])
    ]
    return {
        "open": ranked[:IMPORTANT],
        "folded": ranked[IMPORTANT:],
        "largest": max(importances.values(), default=0.0),
        "largest_by_metric": max((max(shares) for shares in metrics.values()), default=0.0),
        "n_metrics": len(ranked[0][2]) if ranked else 0,
    }


def _rounds(tried: Sequence[Setting]) -> list[str]:
    """Return what the rounds are called in which metrics were learnt; the first has none."""
    last = max((setting.round for setting in tried), default=0)
    return ["as it is", *(f"round {r}" for r in range(1, last + 1))]


def _tried(
    tried: Sequence[Setting], chosen: Sequence[Setting], n_rounds: int
) -> list[tuple[str, list[tuple[float, bool] | None]]]:
    """Return the loss of each kernel that was tried, by round, and whether the model has it."""
    rows: dict[str, list[tuple[float, bool] | None]] = {}
    for setting in tried:
        row = rows.setdefault(f"{setting.kind}, width {setting.width:g}", [None] * n_rounds)
        row[setting.round] = setting.loss, setting in chosen
    return list(rows.items())


def columns_of(record: Record) -> dict[str, Any]:
    """Return the columns in groups: those in use by kind, others by why they were left out."""
    kinds, dropped = record.column_kinds, record.dropped_columns
    total = len(kinds) + len(dropped)
    n_gaps = sum(record.column_gaps.values())
    used = {
        counted(len(names), kind, PLURALS.get(kind, "")): names
        for kind, names in _grouped(kinds).items()
    }
    return {
        "how_many": f"{len(kinds):,} of {total:,}" if dropped else f"All {total:,}",
        "used": used,
        "notes": {name: _column_note(record, name) for name in kinds},
        "dropped": _grouped(dropped),
        "n_gaps": n_gaps,
        "gap_share": n_gaps / max(1, len(kinds) * (record.n_train + record.n_test)),
    }


def _column_note(record: Record, column: str) -> str:
    """Return how a column is written or encoded, and how many gaps it has."""
    gaps = record.column_gaps.get(column, 0)
    notes = [record.column_notes.get(column, ""), counted(gaps, "gap") if gaps else ""]
    return ", ".join(filter(None, notes))


def _grouped(kinds: Mapping[str, str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for column, kind in kinds.items():
        groups.setdefault(kind, []).append(column)
    return groups
