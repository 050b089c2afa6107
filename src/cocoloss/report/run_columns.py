"""The columns of the table in the run report: how each was read, and which were left out."""

from collections.abc import Iterable, Mapping

from cocoloss.recording import RunRecord
from cocoloss.report.page import Markup, element, name, percent

SHORT = 12  # columns up to which a list is not folded
FEW = 3  # columns up to which those left out for one reason come first, and the reason after
PLURALS = {"category": "categories"}

Entry = tuple[list[str], list[str]]  # parts of a term, and of what is said about it


def columns(record: RunRecord) -> Markup:
    """Return what became of every column of the table."""
    kinds, dropped = record.column_kinds, record.dropped_columns
    if not kinds:
        text = (
            f"The {record.n_features:,} columns were read by a transformer of your own, the "
            f"argument preprocess."
        )
        return element("div", element("p", text), class_="panel columns")
    notes = {column: _note(record, column) for column in kinds}
    used = [
        (
            [_count(len(names), kind)],
            _with_commas(_named(column, notes) for column in names),
        )
        for kind, names in _grouped(kinds).items()
    ]
    left = [_left_out(names, why) for why, names in _grouped(dropped).items()]
    return element(
        "div",
        element("p", _in_words(record)),
        _listed(f"Left out ({len(dropped)})", left, len(dropped)) if dropped else None,
        _listed(f"How they were read ({len(kinds)})", used, len(kinds)),
        class_="panel columns",
    )


def _note(record: RunRecord, column: str) -> str:
    """Return how a column is written or encoded, and how many gaps it has."""
    gaps = record.column_gaps.get(column, 0)
    share = f"{gaps:,} gap{'' if gaps == 1 else 's'}" if gaps else ""
    return ", ".join(filter(None, [record.column_notes.get(column, ""), share]))


def _left_out(names: list[str], why: str) -> Entry:
    """Return columns that were left out for one reason: by name if they are few."""
    listed = _with_commas(_named(column, {}) for column in names)
    if len(names) <= FEW:
        return listed, [why]
    return [f"{len(names):,} columns"], [f"{why}: ", *listed]


def _in_words(record: RunRecord) -> str:
    kinds, dropped = record.column_kinds, record.dropped_columns
    counts = [_count(len(names), kind) for kind, names in _grouped(kinds).items()]
    inputs = record.layer_sizes[0]
    total = len(kinds) + len(dropped)
    used = f"{len(kinds):,} of {total:,}" if dropped else f"All {total:,}"
    return (
        f"{used} columns were learnt from: "
        f"{', '.join(counts)}. They make {inputs:,} input{'' if inputs == 1 else 's'} of a network."
        f"{_gaps_in_words(record)}"
    )


def _gaps_in_words(record: RunRecord) -> str:
    n_columns, n_gaps = len(record.column_gaps), sum(record.column_gaps.values())
    if not n_gaps:
        return " There are no gaps."
    where = "One of them has" if n_columns == 1 else f"{n_columns:,} of them have"
    cells = n_gaps / (len(record.column_kinds) * (record.n_train + record.n_test))
    return f" {where} gaps: {n_gaps:,} cells in all, {percent(cells)}."


def _listed(title: str, groups: list[Entry], n_columns: int) -> Markup:
    """Return groups of columns, folded if they are many."""
    items = [Markup(element("dt", first) + element("dd", second)) for first, second in groups]
    body = element("div", element("dl", items), class_="scroll")
    if n_columns > SHORT:
        return element("details", element("summary", title), body)
    return element("div", element("h3", title), body)


def _with_commas(names: Iterable[Markup]) -> list[str]:
    parts: list[str] = []
    for shown in names:
        parts += [", ", shown] if parts else [shown]
    return parts


def _named(column: str, notes: Mapping[str, str]) -> Markup:
    note = notes.get(column)
    remark = element("small", f" ({note})") if note else ""
    return Markup(name(column) + remark)


def _grouped(kinds: Mapping[str, str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for column, kind in kinds.items():
        groups.setdefault(kind, []).append(column)
    return groups


def _count(n: int, kind: str) -> str:
    return f"{n:,} {kind if n == 1 else PLURALS.get(kind, f'{kind}s')}"
