"""What a store knows of one benchmark, as frames: read once, aggregated where the rows are.

Trials are most of a store. They are only counted, and that in the database; what is read row by
row are the folds that the report is made of.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from cocoloss.benchmark.store import TUNING, Store, chosen_variants, labels_of, tables_left_out
from cocoloss.benchmark.tasks import OK, OPEN
from cocoloss.exceptions import CoCoError
from cocoloss.json_text import storable

if TYPE_CHECKING:
    import pandas as pd

READ = ["dataset", "model", "stage", "status", "error", "rows", "params", "extra"]
READ += ["seconds", "peak_memory", "environment", "attempt"]
CHARACTER = ("n_rows", "n_columns", "n_classes", "class_ratio", "categorical_share")


@dataclass(frozen=True, eq=False)
class Findings:
    """One benchmark of a store.

    Attributes
    ----------
    name, kind, spec_hash : str
    spec : dict
        As it was run last.
    state : str
        Of the last run.
    started_at, seen_at : datetime
        First start, and last sign of life; UTC.
    rows : DataFrame
        One line per dataset, model, fold (and whatever else an experiment tells apart), with
        measures as columns; of finished tasks only.
    units : DataFrame
        One line per dataset and model: status, error, params (a list, one entry unless folds
        have their own), seconds of the final fits, tuning_seconds, n_trials, n_failed_trials,
        peak_memory, n_folds.
    missing : DataFrame
        One line per dataset and model where something is missing or went wrong: status ("failed",
        "timeout" or "open"), reason, attempts, and n_folds that there are nevertheless.
    left_out : dict of str to str
        Tables that could not be used, and why.
    characters : DataFrame
        One line per dataset: rows, columns, classes, class ratio, share of categorical columns;
        NaN where a store does not know.
    extras : dict of (dataset, model) to dict
        What an experiment kept beside its measures.
    places : tuple of dict
        Machines and versions that took part.
    core_seconds : float
        Of all tasks, trials too.
    n_tasks : int
        That are done.
    n_planned : int
        That there can be at most: points of the tuning that come up again are computed once.
    label : str
        What tells it apart from the others of the store: its name, with digits of its hash where
        another has the same.
    """

    name: str
    kind: str
    spec_hash: str
    spec: Mapping[str, Any]
    state: str
    started_at: datetime
    seen_at: datetime
    rows: "pd.DataFrame"
    units: "pd.DataFrame"
    missing: "pd.DataFrame"
    left_out: Mapping[str, str]
    characters: "pd.DataFrame"
    extras: Mapping[tuple[str, str], Mapping[str, Any]]
    places: tuple[Mapping[str, Any], ...]
    core_seconds: float
    n_tasks: int
    n_planned: int
    label: str = ""


def read_findings(store: Store, names: tuple[str, ...] = ()) -> list[Findings]:
    """Read the benchmarks of a store, the one that was started first at the beginning.

    Parameters
    ----------
    store : Store
    names : tuple of str
        Only these, NAME or NAME@HASH; all if empty.

    Raises
    ------
    CoCoError
        If there is none, or none of a name.
    """
    runs: dict[str, list[dict[str, Any]]] = {}
    for run in store.runs():
        runs.setdefault(run["spec_hash"], []).append(run)
    if not runs:
        raise CoCoError(f"{store.name} is empty: no benchmark was run yet; see `bench run`")
    everything = [run for of_spec in runs.values() for run in of_spec]
    labels = labels_of(everything)
    return [
        _read(store, runs[spec_hash], labels[spec_hash])
        for spec_hash in chosen_variants(everything, names, store.name)
    ]


def _read(store: Store, runs: list[dict[str, Any]], label: str) -> Findings:
    import pandas as pd  # noqa: PLC0415 - heavy

    last = runs[-1]
    spec_hash, kind = last["spec_hash"], last["spec"]["kind"]
    kept = [name for name in READ if name not in ("rows", "extra", "params")]
    lines: list[dict[str, Any]] = []
    tasks: list[dict[str, Any]] = []
    extras = {}
    params: dict[tuple[str, str], dict[str, Any]] = {}
    for row in store.rows(spec_hash=spec_hash, tuning=False, columns=READ):
        lines += _lines(row)
        if row["extra"]:
            extras[row["dataset"], row["model"]] = row["extra"]
        if row["status"] == OK:
            of_unit = params.setdefault((row["dataset"], row["model"]), {})
            of_unit[repr(row["params"])] = storable(row["params"])
        tasks.append({name: row[name] for name in kept})
    counts = pd.DataFrame(
        store.counts(spec_hash), columns=["dataset", "model", "stage", "status", "n", "seconds"]
    )
    planned = pd.DataFrame(
        store.planned(spec_hash), columns=["dataset", "model", "tasks", "status", "error", "info"]
    )
    task_frame = pd.DataFrame(tasks, columns=kept)
    rows = pd.DataFrame(lines, columns=list(dict.fromkeys(n for line in lines for n in line)))
    for name in ("dataset", "model", "fold"):
        if name not in rows.columns:
            rows[name] = pd.Series(dtype=object)
    units = _units(planned, task_frame, counts, rows)
    units["params"] = [list(params.get(key, {}).values()) for key in _keys(units)]
    used = set(task_frame["environment"]) | {run["environment"] for run in runs}
    places = store.environments()
    return Findings(
        name=last["name"],
        label=label,
        kind=kind,
        spec_hash=spec_hash,
        spec=last["spec"],
        state=last["state"],
        started_at=runs[0]["started_at"],
        seen_at=max(run["seen_at"] for run in runs),
        rows=rows,
        units=units,
        missing=_missing(units, task_frame),
        left_out=tables_left_out(runs),
        characters=_characters(planned, rows),
        extras=extras,
        places=tuple(vars(places[digest]) for digest in sorted(used) if digest in places),
        core_seconds=float(counts["seconds"].sum()),
        n_tasks=int(counts["n"].sum()),
        n_planned=int(planned["tasks"].sum()),
    )


def _lines(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Give the folds of a finished task; what it took is shared among them."""
    if row["status"] != OK:
        return
    of_task = {name: row[name] for name in ("dataset", "model", "stage")}
    share = row["seconds"] / max(1, len(row["rows"]))
    for measures in row["rows"]:
        yield {**of_task, **measures, "task_seconds": share}


def _keys(frame: Any) -> Iterator[tuple[str, str]]:
    return zip(frame["dataset"], frame["model"], strict=True)


def _units(planned: Any, tasks: Any, counts: Any, rows: Any) -> Any:
    """Return one line per dataset and model: how it stands, and what it took."""
    keys = ["dataset", "model"]
    done = tasks[tasks["status"] == OK]
    final = done.groupby(keys, sort=False).agg(
        seconds=("seconds", "sum"), peak_memory=("peak_memory", "max")
    )
    trials = counts[counts["stage"] == TUNING]
    tuning = trials.groupby(keys, sort=False).agg(
        n_trials=("n", "sum"), tuning_seconds=("seconds", "sum")
    )
    failed = trials[trials["status"] != OK].groupby(keys, sort=False)["n"].sum()
    folds = rows.drop_duplicates([*keys, "fold"]).groupby(keys, sort=False).size()
    units = planned[[*keys, "status", "error"]].join(final, on=keys).join(tuning, on=keys)
    units = units.join(failed.rename("n_failed_trials"), on=keys)
    units = units.join(folds.rename("n_folds"), on=keys)
    zeros = ("seconds", "tuning_seconds", "n_trials", "n_failed_trials", "n_folds", "peak_memory")
    whole = ("n_trials", "n_failed_trials", "n_folds", "peak_memory")
    units[list(zeros)] = units[list(zeros)].astype(float).fillna(0.0)
    return units.astype(dict.fromkeys(whole, int))


def _missing(units: Any, tasks: Any) -> Any:
    """Return one line per dataset and model that is not ok, with the reason."""
    import pandas as pd  # noqa: PLC0415 - heavy

    keys = ["dataset", "model"]
    bad = tasks[tasks["status"] != OK].drop_duplicates(keys)
    first_bad = dict(zip(_keys(bad), bad.itertuples(), strict=True))
    lines = []
    for unit in units[units["status"] != OK].itertuples():
        status, reason, attempts = unit.status, unit.error, 0
        task = first_bad.get((unit.dataset, unit.model))
        if task is not None:
            status, reason, attempts = task.status, task.error, task.attempt
        elif status == OPEN:
            reason = "not finished yet"
        lines.append([unit.dataset, unit.model, status, reason, attempts, unit.n_folds])
    return pd.DataFrame(lines, columns=[*keys, "status", "reason", "attempts", "n_folds"])


def _characters(planned: Any, rows: Any) -> Any:
    """Return what is known of the tables, one line each."""
    import pandas as pd  # noqa: PLC0415 - heavy

    known: dict[str, dict[str, Any]] = {}
    for unit in planned.itertuples():
        info = unit.info if isinstance(unit.info, Mapping) else {}
        known[unit.dataset] = {name: info.get(name) for name in CHARACTER}
    frame = pd.DataFrame.from_dict(known, orient="index", columns=list(CHARACTER), dtype=float)
    if "class_ratio" in rows.columns:  # some experiments measure it
        frame["class_ratio"] = frame["class_ratio"].fillna(
            rows.groupby("dataset")["class_ratio"].first()
        )
    return frame
