"""What every run page has, whatever was learnt: columns, kernels, importances, arguments."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cocoloss._checks import amount, counted
from cocoloss.kernels.search import Setting
from cocoloss.recording import NumbersRecord, RunRecord
from cocoloss.recording.why import WhyRow
from cocoloss.report.document import significant, visible
from cocoloss.report.markup import render

Record = RunRecord | NumbersRecord

IMPORTANT = 12  # so many columns are ranked in the open, the others folded
PLURALS = {"category": "categories"}


def render_run(
    template: str, record: Record, scripts: Sequence[str], data: Mapping[str, Any], **context: Any
) -> str:
    """Return the page of a run by its template, with what both kinds of run have."""
    why = why_of(record)
    drawn = {} if why is None else {"why": [row["drawn"] for row in why["rows"]]}
    return render(
        template,
        title=f"{record.model} on {record.data_name}" if record.data_name else record.model,
        styles=("page.css", "run.css"),
        scripts=scripts,
        data={**data, **drawn},
        record=record,
        why=why,
        columns=columns_of(record),
        # Those first that are not the default.
        arguments=sorted(record.arguments.items(), key=lambda item: item[0] not in record.changed),
        **context,
    )


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
    return ["unweighted", *(f"step {r}" for r in range(1, last + 1))]


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


def why_of(record: Record) -> dict[str, Any] | None:
    """Return what ``run_why.html`` writes of explanations, and ``why.js`` draws; None if none."""
    why = record.why
    if why is None:
        return None
    write = amount if why.scale == "number" else significant
    ranked = [(name, size, write(size)) for name, size in why.sizes.items()]
    rows = [_why_row(row, write) for row in why.rows]
    return {
        "of": why.scale if why.scale == "number" else f"{why.scale} of the predicted class",
        "sizes": ranked[:IMPORTANT],
        "n_more": len(ranked[IMPORTANT:]),
        "largest": max(why.sizes.values(), default=0.0),
        "n_rows": why.n_rows,
        "note": why.note,
        "rows": rows,
    }


def _why_row(row: WhyRow, write: Callable[[float], str]) -> dict[str, Any]:
    """Return the sum of a row with its numbers as text."""

    def signed(value: float) -> str:
        return f"{'+' if value >= 0 else '-'}{write(abs(value))}"

    parts = [(part.column, part.cell, part.added) for part in row.parts]
    parts += [("all others", "", row.rest)] if row.rest else []
    sums = [(column, cell, signed(added)) for column, cell, added in parts]
    ends = [("base value", "", write(row.base))], [("prediction", "", write(row.value))]
    drawn = {
        "base": row.base,
        "base_text": write(row.base),
        "value_text": write(row.value),
        "parts": [
            {"column": visible(c), "cell": visible(cell), "added": added, "text": signed(added)}
            for c, cell, added in parts
        ],
    }
    return {**vars(row), "sums": [*ends[0], *sums, *ends[1]], "drawn": drawn}
