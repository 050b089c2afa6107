"""What a benchmark will do, how much of it is done, and what went wrong; nothing is run here."""

import math
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cocoloss._checks import counted
from cocoloss.benchmark.spec import GIVEN, Spec, what_there_is
from cocoloss.benchmark.store import Count, Store, labels_of, now, tables_left_out
from cocoloss.benchmark.tasks import (
    FAILED,
    OK,
    OPEN,
    TableInfo,
    Unit,
    check_options,
    experiment_of,
    properties_of,
    seed_of,
)
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    from cocoloss.tables import Table

KEPT_BYTES = 500_000_000  # tables that stay in memory together; larger ones are read again


class Tables:
    """The tables that a spec names, cut down to its row cap."""

    def __init__(self, spec: Spec) -> None:
        from cocoloss.tables import load_source  # noqa: PLC0415 - heavy

        self.spec = spec
        with spec.at("data.source"):
            source = resolved(spec.data.source, spec.folder)
            self._source = load_source(source, properties_of(spec.kind).task)
        self._fewest = rows_needed(spec)
        self._given: pd.DataFrame | None = None  # folds of a file, once it is read
        self.left_out: dict[str, str] = {}  # tables of a folder that cannot be used, and why
        self._infos: dict[str, TableInfo] = {}
        self._kept: dict[str, Table] = {}
        self._kept_bytes = 0

    def infos(self, on_table: Callable[[str], object] | None = None) -> list[TableInfo]:
        """Read every table and describe it; ``on_table`` is called with each name before.

        A folder may hold files that are no tables to learn from. Unless the spec names them, they
        are passed over; ``left_out`` then says which, and why.
        """
        there = self._source.names()
        names = list(self.spec.data.datasets) or there
        # The tables of a suite were chosen, as if each were named; those of a folder were not.
        may_leave_out = names is there and self.spec.data.source.startswith("folder:")
        # A name that is not there is refused before hours of reading those that are.
        for name in sorted(names, key=lambda name: name in there):
            if on_table is not None:
                on_table(name)
            try:
                self._read(name)
            except CoCoError as error:
                if not may_leave_out:
                    with self.spec.at("data.datasets" if self.spec.data.datasets else ""):
                        raise
                self.left_out[name] = self._said_of(name, error)
        if not self._infos:
            first, why = next(iter(self.left_out.items()))
            raise CoCoError(
                f"none of {counted(len(names), 'table')} of {self.spec.data.source} can be used; "
                f"{first}: {why}"
            )
        return [self._infos[name] for name in names if name in self._infos]

    def load(self, dataset: str) -> "Table":
        """Return a table by name."""
        return self._kept[dataset] if dataset in self._kept else self._read(dataset)

    def _said_of(self, name: str, error: CoCoError) -> str:
        """Return one line that reports may show: without the name of the table and its folder."""
        _, _, folder = resolved(self.spec.data.source, self.spec.folder).partition(":")
        line = " ".join(str(error).split()).replace(f"{folder}{os.sep}", "")
        return line.removeprefix(f"{name}: ")

    def _read(self, name: str) -> "Table":
        from cocoloss.tables import cap_rows  # noqa: PLC0415 - heavy

        table = self._source.load(name)
        if self.spec.folds.given_file:
            table = self._with_given_folds(table)
        if self.spec.data.max_rows:
            seed = seed_of(name, "rows", self.spec.folds.seed)
            table = cap_rows(table, self.spec.data.max_rows, seed)
        if table.n_rows < self._fewest:
            folds = self.spec.folds
            within = "" if table.n_rows < folds.outer else f" with folds.inner = {folds.inner} each"
            raise CoCoError(
                f"{name}: {table.n_rows} rows cannot be split into folds.outer = {folds.outer}"
                f"{within}; ask for fewer folds, or leave the table out"
            )
        has_classes = properties_of(self.spec.kind).task != "numbers"
        n_folds = n_special_folds(table, self.spec)
        info = TableInfo(
            table.name,
            table.n_rows,
            table.n_features - bool(n_folds),  # the column that splits is no feature
            table.n_classes if has_classes else 0,
            table.fingerprint,
            table.class_ratio if has_classes else math.nan,
            len(table.categorical) / max(table.n_features, 1),
            n_folds,
        )
        known = self._infos.setdefault(name, info)
        if known.fingerprint != info.fingerprint:
            raise CoCoError(f"table {name!r} has changed since the benchmark began; start again")
        size = int(table.X.memory_usage(deep=True).sum())
        if name not in self._kept and self._kept_bytes + size <= KEPT_BYTES:
            self._kept[name] = table
            self._kept_bytes += size
        return table

    def _with_given_folds(self, table: "Table") -> "Table":
        """Return a table with the folds of a file as a column, so that they are part of it."""
        if self._given is None:
            with self.spec.at("folds.given"):
                self._given = read_given(self.spec)
        given = self._given
        if "dataset" in given.columns:
            given = given[given["dataset"].astype(str) == table.name]
        where = f"{table.name}: folds.given = {self.spec.folds.given!r}"
        if table.n_left_out:
            raise CoCoError(
                f"{where} counts rows, but {table.n_left_out} rows without a target were left out; "
                f"drop them from the table, and count anew"
            )
        rows = given["row"].to_numpy()
        if not len(rows) or given["row"].duplicated().any() or rows.max() >= table.n_rows:
            raise CoCoError(
                f"{where} must name rows 0 to {table.n_rows - 1}, each once at most; it has "
                f"{len(rows)} lines for the table"
            )
        folds = pd.Series(np.nan, table.X.index, dtype=object)
        folds.iloc[rows] = given["fold"].to_numpy(dtype=object)
        return replace(table, X=table.X.assign(**{GIVEN: folds}))


def read_given(spec: Spec) -> "pd.DataFrame":
    """Read a file of folds: the columns row (from 0), fold, and dataset if there are several."""
    places = [folder / spec.folds.given_file for folder in (spec.folder, *spec.experiments)]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise CoCoError(f"there is no file {places[0]}")
    try:
        given = pd.read_csv(path)
        lacking = [name for name in ("row", "fold") if name not in given.columns]
        if lacking:
            raise CoCoError(f"{path.name} has no column {lacking[0]!r}; it needs row and fold")
        return given.astype({"row": np.int64})
    except (OSError, ValueError) as error:
        if isinstance(error, CoCoError):
            raise
        raise CoCoError(f"cannot read {path.name}: {' '.join(str(error).split())}") from error


def n_special_folds(table: "Table", spec: Spec) -> int:
    """Return how many outer folds a table has that is not split at random; 0 if it is.

    What cannot be split so is refused here, before anything runs.
    """
    from cocoloss.tables import forward_folds, given_folds, times_of  # noqa: PLC0415 - heavy

    how, column = spec.folds.split
    if not how:
        return 0
    where = f"{table.name}: folds.{how}"
    if column not in table.X.columns:
        names = [str(name) for name in table.X.columns]
        raise CoCoError(f"{where}: there is no column {column!r}{what_there_is(column, names)}")
    if table.n_features == 1:
        raise CoCoError(f"{where}: there is no column beside {column!r} to learn from")
    by, outer = table.X[column], spec.folds.outer
    try:
        if how == "given":
            return len(given_folds(by))
        if how == "time":
            return len(forward_folds(times_of(by), outer))
    except CoCoError as error:
        raise CoCoError(f"{where}: {error}") from error
    if by.isna().any() or by.nunique() < outer:
        gaps = f"{by.isna().sum()} gaps" if by.isna().any() else f"{by.nunique()} groups"
        raise CoCoError(
            f"{where}: column {column!r} has {gaps}; folds.outer = {outer} needs a group for each "
            f"row, and as many groups as folds"
        )
    return outer * spec.folds.repeats


def rows_needed(spec: Spec) -> int:
    """Return how many rows a table must have to be split as a spec says.

    Every outer fold tests a row at least, and its training rows are split into the inner folds if
    anything is tuned.
    """
    used = getattr(experiment_of(spec), "USES_FOLDS", ("outer", "inner"))
    outer, inner = spec.folds.outer, spec.folds.inner
    if spec.folds.given:
        return 0
    if spec.tunes and "inner" in used:  # of n rows the largest test part has ceil(n / outer)
        return max(outer, -(-inner * outer // (outer - 1)))
    return outer if used else 0


def resolved(source: str, folder: Path) -> str:
    """Return a source whose path begins where the spec lies.

    >>> resolved("folder:tables", Path("/home/me/bench")), resolved("sklearn", Path("/home/me"))
    ('folder:/home/me/bench/tables', 'sklearn')
    """
    kind, colon, path = source.partition(":")
    if not colon or kind not in {"folder", "file"}:
        return source
    return f"{kind}:{folder / Path(path).expanduser()}"


@dataclass(frozen=True)
class Plan:
    """What a benchmark will do."""

    spec: Spec
    infos: Sequence[TableInfo]
    units: Sequence[Unit]  # in the order in which they will begin
    left_out: Mapping[str, str] = field(default_factory=dict)  # tables that cannot be used, and why

    @property
    def n_tasks(self) -> int:
        """How many tasks there are."""
        return sum(unit.tasks for unit in self.units)

    @property
    def seconds(self) -> float:
        """Roughly, of all tasks on one core."""
        return sum(unit.seconds for unit in self.units)


@dataclass
class Pace:
    """How long tasks take beside what was planned, by model; as planned until some have run."""

    took: dict[str, float] = field(default_factory=dict)
    planned: dict[str, float] = field(default_factory=dict)

    def add(self, model: str, took: float, planned: float) -> None:
        """Learn from tasks of a model."""
        for name in (model, ""):  # "" is all of them
            self.took[name] = self.took.get(name, 0.0) + took
            self.planned[name] = self.planned.get(name, 0.0) + planned

    def ratio(self, model: str) -> float:
        """Return how many times longer tasks of a model take; of all models if it is new."""
        known = model if model in self.planned else ""
        planned = self.planned.get(known, 0.0)
        return self.took[known] / planned if planned > 0 else 1.0


@dataclass(frozen=True)
class Remainder:
    """What of a plan is left."""

    done: int  # tasks in the store; those that failed too, unless they are to be done again
    seconds: float  # roughly, of those that are not, on one core
    pace: Pace = field(default_factory=Pace)  # of those that are
    failed: int = 0  # tasks in the store that failed or took too long
    failed_units: int = 0  # pairs of table and model with failures

    @property
    def measured(self) -> bool:
        """Whether tasks that have run say how long the others take."""
        return bool(self.pace.planned)

    def seconds_of(self, unit: Unit) -> float:
        """Return how long a unit takes on one core: as planned, or as tasks like it took."""
        return unit.seconds * self.pace.ratio(unit.model)


def make_plan(
    spec: Spec, infos: Sequence[TableInfo], left_out: Mapping[str, str] | None = None
) -> Plan:
    """List what a benchmark will do.

    Units of one table follow each other, so that it is sent once and dropped when it is done with;
    what takes longest begins first, so that the workers end together.
    """
    experiment = experiment_of(spec)
    with spec.at():
        check_options(experiment, spec.kind, spec.options)
        _refuse_idle_keys(experiment, spec)
    units = experiment.plan(spec, infos)
    if not units:
        raise CoCoError(f"{spec.name}: nothing to do; no dataset, or no model that suits one")
    total: dict[str, float] = defaultdict(float)
    for unit in units:
        total[unit.dataset] += unit.seconds
    units = sorted(units, key=lambda u: (-total[u.dataset], u.dataset, -u.seconds, u.model))
    return Plan(spec, infos, units, left_out or {})


def _refuse_idle_keys(experiment: Any, spec: Spec) -> None:
    """Refuse keys that an experiment does not look at: they would change its name and nothing else.

    One that does, such as "accuracy" or what is built on it, says ``TAKES_ALL_KEYS = True``.
    """
    if getattr(experiment, "TAKES_ALL_KEYS", False):
        return
    folds = spec.folds
    used = {
        "measures": spec.measures,
        "optimise": spec.optimise,
        "folds.repeats": folds.repeats > 1,
    }
    used |= {"keep_predictions": spec.keep_predictions, f"folds.{folds.split[0]}": folds.split[0]}
    idle = [key for key, value in used.items() if value]
    if idle:
        raise CoCoError(f"{idle[0]}: an experiment of kind {spec.kind!r} does not use it")


def remainder(plan: Plan, store: "Store | None", *, retry_failed: bool = False) -> Remainder:
    """Return what of a plan is left to do, with times as measured where something has run."""
    if store is None:
        return Remainder(0, plan.seconds)
    states = store.unit_states(plan.spec.hash)
    found = _tally(store.counts(plan.spec.hash))
    pace = Pace()
    for unit in plan.units:
        here = found[unit.dataset, unit.model]
        if here.tasks and unit.seconds > 0:
            pace.add(unit.model, here.seconds, unit.seconds * here.tasks / unit.tasks)
    done, failed, left = 0, 0, 0.0
    for unit in plan.units:
        here = found[unit.dataset, unit.model]
        of_unit = unit.tasks
        if states.get(unit.key, OPEN) == OPEN:
            of_unit = min(here.tasks, unit.tasks)
        if retry_failed:
            of_unit = max(0, of_unit - here.failed)
        done += of_unit
        failed += here.failed
        left += unit.seconds * pace.ratio(unit.model) * (1 - of_unit / max(unit.tasks, 1))
    failed_units = sum(states.get(unit.key) == FAILED for unit in plan.units)
    return Remainder(done, left, pace, failed, failed_units)


@dataclass
class _Tally:
    """Tasks of a model on a table that have ended."""

    tasks: int = 0
    failed: int = 0
    seconds: float = 0.0


def _tally(counts: Sequence[Count]) -> defaultdict[tuple[str, str], _Tally]:
    """Add up what has ended, by dataset and model."""
    found: defaultdict[tuple[str, str], _Tally] = defaultdict(_Tally)
    for count in counts:
        here = found[count.dataset, count.model]
        here.tasks += count.tasks
        here.failed += count.tasks * (count.status != OK)
        here.seconds += count.seconds
    return found


ALIVE = 120.0  # seconds since the last sign of life of a driver that is taken to be there
FAILURES = 20  # that are listed


def status_of(store: Store) -> list[dict[str, Any]]:
    """Describe each benchmark of a store, the one that was started last at the end.

    Returns
    -------
    list of dict
        name, spec_hash, label (the name, with digits of the hash where a name occurs twice), kind;
        state: "running", "finished", "stopped" (by Ctrl-C) or "broken" (by an error, or there is
        no sign of the driver); tasks done, planned and by how they ended; units by how they
        stand; the sum of seconds; failures; tables that could not be used; and of a running one
        what runs, and seconds left.
    """
    runs = store.runs()
    labels = labels_of(runs)
    latest_first = dict.fromkeys(run["spec_hash"] for run in reversed(runs))
    return [
        _describe(store, [run for run in runs if run["spec_hash"] == spec_hash], labels[spec_hash])
        for spec_hash in reversed(latest_first)
    ]


def _describe(store: Store, runs: list[dict[str, Any]], label: str) -> dict[str, Any]:
    run = runs[-1]
    spec_hash = run["spec_hash"]
    counts, planned = store.counts(spec_hash), store.planned(spec_hash)
    found = _tally(counts)
    tasks: Counter[str] = Counter()
    for count in counts:
        tasks[count.status] += count.tasks
    done = 0
    for unit in planned:
        here = found[unit["dataset"], unit["model"]].tasks
        done += min(here, unit["tasks"]) if unit["status"] == OPEN else unit["tasks"]
    quiet = (now() - run["seen_at"]).total_seconds()
    state = run["state"] if run["state"] != "running" or quiet < ALIVE else "broken"
    progress = run["progress"] if state == "running" else {}
    names = ("key", "dataset", "model", "stage", "status", "error", "attempt")
    failures = store.rows(spec_hash=spec_hash, failed_only=True, columns=names)
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
        "units": _by_status(planned),
        "core_seconds": sum(count.seconds for count in counts),
        "running": progress.get("running", []),
        "workers": progress.get("workers"),
        "seconds_left": progress.get("seconds_left"),
        "failures": list(islice(failures, FAILURES)),
        "left_out": tables_left_out(runs),
        "models": _by(planned, "model"),
        "datasets": _by(planned, "dataset"),
    }


def _by_status(planned: Iterable[dict[str, Any]]) -> dict[str, int]:
    found = Counter(unit["status"] for unit in planned)
    return {status: found[status] for status in (OK, FAILED, OPEN)}


def _by(planned: Sequence[dict[str, Any]], name: str) -> dict[str, dict[str, int]]:
    """Count units by model, or by dataset, and by how they stand."""
    groups = sorted({unit[name] for unit in planned})
    return {group: _by_status(u for u in planned if u[name] == group) for group in groups}


READ = ("key", "dataset", "model", "status", "error", "traceback")


@dataclass(frozen=True)
class Failure:
    """Tasks of a model on a table that failed with the same words."""

    model: str
    dataset: str
    status: str  # "failed" or "timeout"
    error: str  # one line
    tasks: int  # how many; 0 if it was no task that failed but what brings them forth
    key: str  # of the first
    # of the first; empty if it was ended from outside, at its limit or with its worker
    traceback: str


def failures_of(store: Store, spec_hash: str) -> list[Failure]:
    """Return what went wrong in a benchmark, those of a model together, the most frequent first.

    Parameters
    ----------
    store : Store
    spec_hash : str
        Of the benchmark.
    """
    found: dict[tuple[str, ...], Failure] = {}
    for row in store.rows(spec_hash=spec_hash, failed_only=True, columns=READ):
        alike = tuple(row[name] for name in ("model", "dataset", "status", "error"))
        found.setdefault(alike, Failure(**row, tasks=0))
        found[alike] = replace(found[alike], tasks=found[alike].tasks + 1)
    of_tasks = {(failure.model, failure.dataset) for failure in found.values()}
    for unit in store.planned(spec_hash):
        pair = unit["model"], unit["dataset"]
        if unit["status"] == FAILED and pair not in of_tasks:
            found[pair] = Failure(*pair, FAILED, unit["error"], 0, unit["key"], "")
    return sorted(found.values(), key=lambda f: (f.model, f.dataset, -f.tasks, f.error))
