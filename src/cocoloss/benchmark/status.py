"""What a store says of the benchmarks in it, running or finished."""

from collections.abc import Sequence
from typing import Any

from cocoloss.benchmark.keys import FAILED, OK, OPEN
from cocoloss.benchmark.runbook import now, tables_left_out
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.variants import labels_of

ALIVE = 120.0  # seconds since the last sign of life of a driver that is taken to be there
FAILURES = 20  # that are listed


def status_of(store: Store) -> list[dict[str, Any]]:
    """Describe each benchmark of a store, the one that was started last at the end.

    Returns
    -------
    list of dict
        name, spec_hash, label (the name, with digits of the hash where a name occurs twice), kind;
        state: "running", "finished", "stopped" (by Ctrl-C) or "broken" (by
        an error, or there is no sign of the driver); tasks done, planned and by how they ended;
        units by how they stand; the sum of seconds; failures; tables that could not be used; and of
        a running one what runs, and seconds left.
    """
    runs: dict[str, list[dict[str, Any]]] = {}
    for run in store.runs():
        earlier = runs.pop(run["spec_hash"], [])
        runs[run["spec_hash"]] = [*earlier, run]
    labels = labels_of([run for of_spec in runs.values() for run in of_spec])
    return [_describe(store, runs[spec_hash], labels[spec_hash]) for spec_hash in runs]


def _describe(store: Store, runs: list[dict[str, Any]], label: str) -> dict[str, Any]:
    run = runs[-1]
    spec_hash = run["spec_hash"]
    counts, planned = store.counts(spec_hash), store.planned(spec_hash)
    found: dict[tuple[str, str], int] = {}
    tasks: dict[str, int] = {}
    for count in counts:
        found[count[:2]] = found.get(count[:2], 0) + count.tasks
        tasks[count.status] = tasks.get(count.status, 0) + count.tasks
    done = 0
    for unit in planned:
        here = min(found.get((unit["dataset"], unit["model"]), 0), unit["tasks"])
        done += here if unit["status"] == OPEN else unit["tasks"]
    quiet = (now() - run["seen_at"]).total_seconds()
    state = run["state"] if run["state"] != "running" or quiet < ALIVE else "broken"
    progress = run["progress"]
    return {
        "name": run["name"],
        "label": label,
        "kind": run["spec"]["kind"],
        "spec_hash": spec_hash,
        "state": state,
        "started_at": run["started_at"].isoformat(timespec="seconds") + "Z",
        "seen_at": run["seen_at"].isoformat(timespec="seconds") + "Z",
        "seconds_since_seen": quiet,
        "deviations": run["spec"]["deviations"],
        "tasks": {"done": done, "planned": sum(unit["tasks"] for unit in planned), **tasks},
        "units": {name: _number(planned, name) for name in (OK, FAILED, OPEN)},
        "core_seconds": sum(count.seconds for count in counts),
        "running": progress.get("running", []) if state == "running" else [],
        "workers": progress.get("workers") if state == "running" else None,
        "seconds_left": progress.get("seconds_left") if state == "running" else None,
        "failures": _failures(store, spec_hash),
        "left_out": tables_left_out(runs),
        "models": _by(planned, "model"),
        "datasets": _by(planned, "dataset"),
    }


def _failures(store: Store, spec_hash: str) -> list[dict[str, Any]]:
    names = ("key", "dataset", "model", "stage", "status", "error", "attempt")
    found = store.rows(spec_hash=spec_hash, failed_only=True, columns=names)
    return [row for row, _ in zip(found, range(FAILURES), strict=False)]


def _number(planned: Sequence[dict[str, Any]], status: str) -> int:
    return sum(unit["status"] == status for unit in planned)


def _by(planned: Sequence[dict[str, Any]], name: str) -> dict[str, dict[str, int]]:
    """Count units by model, or by dataset, and by how they stand."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for unit in planned:
        groups.setdefault(unit[name], []).append(unit)
    return {
        group: {status: _number(of_group, status) for status in (OK, FAILED, OPEN)}
        for group, of_group in sorted(groups.items())
    }
