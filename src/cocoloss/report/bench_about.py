"""What a benchmark was, what is missing of it, and how it was made, as blocks."""

from collections.abc import Mapping
from typing import Any

from cocoloss.benchmark.amounts import readable_time
from cocoloss.benchmark.findings import Findings
from cocoloss.benchmark.store import OPEN
from cocoloss.report.document import Block, Cards, Cell, Folded, Grid, Items, Text

KINDS = {
    "accuracy": "Models tuned on inner folds and judged on outer ones.",
    "imbalance": "Plain and balanced CoCo, each tuned for itself, over the imbalance of classes.",
    "convergence": "Balanced accuracy in the first steps of training.",
    "evolution": "The embedding in the plane, epoch by epoch.",
}
SHOWN_MISSING = 500


def about_blocks(findings: Findings) -> list[Block]:
    """Return what comes first: the kind, how far it is, and the deviations from the paper."""
    units, missing = findings.units, findings.missing
    n_ok = int((units["status"] == "ok").sum())
    n_models, n_datasets = units["model"].nunique(), units["dataset"].nunique()
    folds = findings.spec["folds"]
    cards = (
        ("Datasets", f"{n_datasets:,}", ""),
        ("Models", f"{n_models:,}", ""),
        ("Complete", f"{n_ok:,} of {len(units):,}", "pairs of dataset and model"),
        ("Core time", readable_time(findings.core_seconds), f"{findings.n_tasks:,} tasks"),
    )
    blocks: list[Block] = [Text(KINDS.get(findings.kind, ""), "lead"), Cards(cards)]
    if findings.kind != "evolution":
        blocks.append(Text(_protocol(findings, folds)))
    deviations = tuple(findings.spec["deviations"])
    if deviations:
        blocks += [Text("Differs from the paper:"), Items(deviations)]
    if len(missing):
        blocks.append(Text(_what_is_missing(missing, len(units)), "warning"))
    if findings.left_out:
        n = len(findings.left_out)
        tables = "1 unusable table was" if n == 1 else f"{n:,} unusable tables were"
        blocks.append(Text(f"{tables} left out; see “What is missing” below.", "warning"))
    return blocks


def _what_is_missing(missing: Any, n_units: int) -> str:
    """Say how many pairs went wrong and how many are still to come, which is no fault."""
    n_open = int((missing["status"] == OPEN).sum())
    n_wrong = len(missing) - n_open
    pairs = f"of {n_units:,} pairs of dataset and model"
    are = "is" if n_open == 1 else "are"
    if not n_wrong:
        said = f"{n_open:,} {pairs} {are} not finished yet"
    else:
        said = f"Something went wrong for {n_wrong:,} {pairs}"
        said += f", and {n_open:,} {are} not finished yet" if n_open else ""
    return f"{said}; see “What is missing” below."


def _protocol(findings: Findings, folds: Mapping[str, Any]) -> str:
    spec = findings.spec
    said = f"{folds['outer']} outer folds"
    if findings.kind in {"accuracy", "imbalance"}:
        trials = spec["tuning"]["trials_per_hyperparameter"]
        which = "the first outer fold" if spec["tuning"]["mode"] == "first" else "every outer fold"
        tuned = (
            f"{trials} trials per hyperparameter on {folds['inner']} inner folds of {which}"
            if trials
            else "no tuning"
        )
        said += f"; {tuned}; {spec['training']['epochs']:,} epochs"
    cap = spec["data"]["max_rows"]
    rows = f"; at most {cap:,} rows of a table" if cap else ""
    return f"Tables from {spec['data']['source']}; {said}{rows}; seed {folds['seed']}."


def missing_blocks(findings: Findings) -> list[Block]:
    """Return the list of what is missing, with the reasons."""
    missing = findings.missing
    left_out = _left_out(findings.left_out)
    if not len(missing):
        others = " that is not left out" if left_out else ""
        nothing = Text(f"Nothing: every model has a result on every dataset{others}.")
        return [*left_out, nothing]
    said = {"failed": "failed", "timeout": "took too long"}
    units = findings.units
    keys = zip(units["dataset"], units["model"], strict=True)
    n_trials = dict(zip(keys, units["n_trials"], strict=True))
    rows = tuple(
        (
            Cell(line.dataset),
            Cell(line.model),
            Cell(said.get(line.status) or _progress(line, n_trials[line.dataset, line.model])),
            Cell(line.reason),
            Cell(str(line.n_folds), float(line.n_folds)),
            Cell(str(line.attempts) if line.attempts else "", float(line.attempts)),
        )
        for line in missing.head(SHOWN_MISSING).itertuples()
    )
    more = len(missing) - SHOWN_MISSING
    return [
        *left_out,
        Grid(
            "Missing results",
            ("dataset", "model", "state", "reason", "folds there are", "attempts"),
            rows,
            caption=f"And {more:,} more." if more > 0 else "",
            n_names=4,
            sortable=True,
        ),
    ]


def _left_out(tables: Mapping[str, str]) -> list[Block]:
    """Return the list of tables that could not be used."""
    rows = tuple((Cell(name), Cell(why)) for name, why in tables.items())
    caption = "Tables of the folder that could not be used."
    columns = ("table", "reason")
    return [Grid("Tables left out", columns, rows, caption=caption, n_names=2)] if rows else []


def _progress(line: Any, n_trials: int) -> str:
    """Say how far a pair is that is not finished."""
    if line.n_folds:
        return "begun"
    if n_trials:
        return f"begun: {n_trials:,} {'trial' if n_trials == 1 else 'trials'}"
    return "not run"


def making_blocks(findings: Findings) -> list[Block]:
    """Return when and where it ran, with which versions, and the spec."""
    started = findings.started_at.isoformat(sep=" ", timespec="minutes")
    seen = findings.seen_at.isoformat(sep=" ", timespec="minutes")
    state = {"running": "running, or broken off", "broken": "broken off"}.get(
        findings.state, findings.state
    )
    lines = [f"Started {started}, last seen {seen} (UTC); {state}."]
    if findings.n_tasks < findings.n_planned and not len(findings.missing):
        lines.append(
            f"{findings.n_tasks:,} tasks of {findings.n_planned:,} planned ones were computed: "
            f"points of the tuning that come up again are not computed twice."
        )
    for place in findings.places:
        machine, versions = place["machine"], place["versions"]
        packages = ", ".join(f"{name} {version}" for name, version in versions.items())
        gigabytes = machine.get("memory", 0) / 1e9
        lines.append(
            f"{machine.get('system', 'unknown system')}, {machine.get('cores', '?')} cores, "
            f"{gigabytes:.0f} GB: {packages}."
        )
    rows = tuple((Cell(key), Cell(str(value))) for key, value in _spec_lines(findings.spec))
    spec = Grid("", ("key", "value"), rows, n_names=2)
    lines.append(f"Hash of the spec: {findings.spec_hash[:16]}.")
    return [Items(tuple(lines)), Folded("The spec", (spec,))]


def _spec_lines(spec: Mapping[str, Any]) -> list[tuple[str, Any]]:
    lines: list[tuple[str, Any]] = []
    for key, value in spec.items():
        if key == "deviations":
            continue
        if isinstance(value, Mapping):
            lines += [(f"{key}.{inner}", _short(item)) for inner, item in value.items()]
        else:
            lines.append((key, _short(value)))
    return lines


def _short(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "all"
    return str(value)
