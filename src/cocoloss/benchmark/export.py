"""Results as files, and back: what is analysed elsewhere, sent, committed and merged.

Two forms, both CSV or Parquet by the ending of the name. "folds" has one line per dataset, model
and fold, with a column per measure. "tasks" is everything that a store knows: one line per task,
trials too, one per unit, stage "unit", and one per start of a driver, stage "start", so that a
store that is filled from it knows what was planned, under which spec, and what is missing. Lines
are sorted by key, and the same store gives the same bytes.
"""

import itertools
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from cocoloss.benchmark.store import (
    COLUMNS,
    TUNING,
    UNIT_NAME,
    Store,
    batches,
    chosen_variants,
    mark_current,
    planned_units,
    results,
    runs,
    units,
)
from cocoloss.benchmark.tasks import FAILED, OK, OPEN, TIMEOUT, Environment
from cocoloss.exceptions import CoCoError
from cocoloss.files import write_whole
from cocoloss.json_text import dump_json, load_json

if TYPE_CHECKING:
    import pandas as pd

UNIT, START = "unit", "start"  # stages of lines that are no tasks
TEXTS = ("measures", "rows", "params", "extra")  # columns of JSON
ALL_COLUMNS = (*COLUMNS, "machine", "versions")
NOWHERE = Environment({}, {})  # where a unit ran: its tasks know
EMPTY: Mapping[str, Any] = {  # of lines that are no tasks
    **dict.fromkeys(("dataset", "model", "fingerprint", "part", "error", "traceback"), ""),
    "measures": {},
    "rows": [],
    "environment": "",
    **dict.fromkeys(("seconds", "peak_memory", "attempt"), 0),
    "current": True,
}
Reader = Callable[[dict[str, Any]], dict[str, Any]]  # of a line
STATUSES = {UNIT: (OPEN, OK, FAILED), START: ("running", "finished", "stopped", "broken")}
OF_LINE = (  # columns that hold a text in every line
    *("key", "spec_hash", "experiment", "dataset", "fingerprint", "model", "stage", "part"),
    *("status", "error", "traceback", "environment"),
)
OF_START = {  # what a run has -> the column of its line
    **{name: name for name in ("spec_hash", "environment")},
    "id": "part",
    "spec": "params",
    "state": "status",
    "seen_at": "finished_at",
}
OF_UNIT = ("key", "spec_hash", "experiment", "dataset", "fingerprint", "model", "status", "error")


class Placed(NamedTuple):
    """A row of a store's table, and where it was made."""

    row: dict[str, Any]
    place: Environment


class _StoreSource:
    """A store, read as a file of tasks is."""

    def __init__(self, store: Store) -> None:
        self.store, self.places = store, store.environments()

    def tasks(self) -> Iterator[Placed]:
        return (Placed(row, self.places[row["environment"]]) for row in self.store.rows())

    def units(self) -> list[dict[str, Any]]:
        return self.store.planned()

    def starts(self) -> list[Placed]:
        return [Placed(r, self.places.get(r["environment"], NOWHERE)) for r in self.store.runs()]


def whole_table(store: Store) -> "pd.DataFrame":
    """Return one line per task, per unit and per start of a driver, sorted by key."""
    import pandas as pd  # noqa: PLC0415 - heavy

    # Tasks are read last: a driver may be at work, and a unit that has ended has all its results.
    source = _StoreSource(store)
    starts = [_line(_of_start(run), place) for run, place in source.starts()]
    planned = [_line(_of_unit(unit), NOWHERE) for unit in source.units()]
    lines = [*starts, *planned, *itertools.starmap(_line, _StoreSource(store).tasks())]
    return pd.DataFrame(sorted(lines, key=lambda line: line["key"]), columns=[*ALL_COLUMNS])


def _of_unit(unit: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **EMPTY,
        **{name: unit[name] for name in OF_UNIT},
        "stage": UNIT,
        "params": {"tasks": unit["tasks"], "seconds": unit["seconds"]},
        "extra": unit["info"],
        "finished_at": None,
    }


def _of_start(run: Mapping[str, Any]) -> dict[str, Any]:
    started = run["started_at"].isoformat()
    return {
        **EMPTY,
        **{column: run[name] for name, column in OF_START.items()},
        "key": f"{START}/{run['id']}",
        "experiment": run["spec"]["kind"],
        "stage": START,
        "extra": {"name": run["name"], "started_at": started, "progress": run["progress"]},
    }


def _line(row: Mapping[str, Any], place: Environment) -> dict[str, Any]:
    texts = {name: dump_json(row[name]) for name in TEXTS}
    texts |= {"machine": dump_json(place.machine), "versions": dump_json(place.versions)}
    return {**row, **texts}


class TaskFile:
    """A file of :func:`whole_table`, read back; every method refuses one that is damaged."""

    def __init__(self, path: str | Path) -> None:
        import pandas as pd  # noqa: PLC0415 - heavy

        self.path = Path(path)
        check_ending(self.path)
        try:
            if self.path.suffix == ".csv":
                table = pd.read_csv(self.path, dtype=str, keep_default_na=False)
            else:
                table = with_parquet(pd.read_parquet, self.path)
        except (OSError, ValueError) as error:
            raise CoCoError(f"cannot read {path}: {' '.join(str(error).split())}") from error
        lacking = [name for name in ALL_COLUMNS if name not in table.columns]
        if lacking:
            raise CoCoError(
                f"{path} has no column {lacking[0]!r}; export with --tasks what shall be merged"
            )
        self._table = table

    def tasks(self) -> Iterator[Placed]:
        """Give rows of results, each with where it ran."""
        others = self._table["stage"].isin([UNIT, START])
        return self._read(self._table[~others], _task_row)

    def units(self) -> list[dict[str, Any]]:
        """Return rows of units; none if the file was written before it held any."""
        return [row for row, _ in self._read(self._table[self._table["stage"] == UNIT], _unit_row)]

    def starts(self) -> list[Placed]:
        """Return rows of runs, each with where its driver ran."""
        return list(self._read(self._table[self._table["stage"] == START], _start_row))

    def _read(self, lines: Any, read: Reader) -> Iterator[Placed]:
        try:
            for line in lines.to_dict("records"):
                _check_texts(line)
                for name in (*TEXTS, "machine", "versions"):
                    line[name] = load_json(line[name])
                yield Placed(read(line), Environment(line["machine"], line["versions"]))
        except (ValueError, TypeError, KeyError, json.JSONDecodeError) as error:
            reason = " ".join(str(error).split())
            raise CoCoError(f"{self.path} is damaged: {reason}") from error


def _check_texts(line: dict[str, Any]) -> None:
    """Refuse a line whose names or status are none."""
    stage = line["stage"]
    named = ("key", "spec_hash", "experiment", *(() if stage == START else ("dataset", "model")))
    for name in OF_LINE:
        if not isinstance(line[name], str) or (name in named and not line[name]):
            raise ValueError(f"the line of {line['key'] or 'no key'!r} has no {name}")
    if line["status"] not in STATUSES.get(stage, (OK, FAILED, TIMEOUT)):
        raise ValueError(f"the line of {line['key']!r} has the status {line['status']!r}")


def _task_row(line: dict[str, Any]) -> dict[str, Any]:
    row = {name: line[name] for name in COLUMNS}
    row["seconds"] = float(row["seconds"])
    row["peak_memory"], row["attempt"] = int(row["peak_memory"]), int(row["attempt"])
    row["current"] = str(row["current"]) == "True"
    row["finished_at"] = _time(row["finished_at"])
    return row


def _unit_row(line: dict[str, Any]) -> dict[str, Any]:
    planned = {"tasks": int(line["params"]["tasks"]), "seconds": float(line["params"]["seconds"])}
    return {**{name: line[name] for name in OF_UNIT}, **planned, "info": line["extra"]}


def _start_row(line: dict[str, Any]) -> dict[str, Any]:
    extra = line["extra"]
    return {
        **{name: line[column] for name, column in OF_START.items()},
        **{name: extra[name] for name in ("name", "progress")},
        "started_at": datetime.fromisoformat(extra["started_at"]),
        "seen_at": _time(line["finished_at"]),
    }


def _time(value: Any) -> datetime:
    import pandas as pd  # noqa: PLC0415 - heavy

    if pd.isna(value) or not str(value):
        raise ValueError("a line has no finished_at")
    time: datetime = pd.Timestamp(value).to_pydatetime()
    return time


def check_ending(path: Path) -> None:
    """Refuse a file that is neither CSV nor Parquet by its name."""
    if path.suffix not in {".csv", ".parquet"}:
        raise CoCoError(f"{path}: the name must end in .csv or .parquet")


def with_parquet(work: Callable[..., Any], path: Path, **options: Any) -> Any:
    """Read or write a Parquet file, or say what that needs."""
    try:
        return work(path, **options)
    except ImportError as error:
        raise CoCoError(
            "Parquet needs pyarrow, which is not installed; pip install 'cocoloss[parquet]'"
        ) from error


FIRST = ("spec", "experiment", "dataset", "model", "stage", "part", "fold")
LAST = (
    *("status", "error", "params", "task_seconds", "peak_memory", "attempt", "finished_at"),
    *("host", "versions", "fingerprint", "spec_hash", "key"),
)


def fold_table(store: Store, *, names: Sequence[str] = ()) -> "pd.DataFrame":
    """Return one line per dataset, model and fold, with measures as columns.

    A task that failed is a line without a fold. Trials of the tuning are not part of it.

    Parameters
    ----------
    store : Store
    names : sequence of str
        Only benchmarks of these names, NAME or NAME@HASH; all if empty.
    """
    import pandas as pd  # noqa: PLC0415 - heavy

    runs = store.runs()
    called = {run["spec_hash"]: run["name"] for run in runs}
    places = store.environments()
    lines: list[dict[str, Any]] = []
    for spec_hash in chosen_variants(runs, names, store.name):
        for row in store.rows(spec_hash=spec_hash, tuning=False):
            lines += _fold_lines(row, called[spec_hash], places)
    measures = dict.fromkeys(name for line in lines for name in line)
    middle = [name for name in measures if name not in FIRST + LAST]
    table = pd.DataFrame(lines, columns=[*FIRST, *middle, *LAST])
    return table.astype({"fold": "Int64"})


def export(
    store: Store, path: str | Path, *, tasks: bool = False, names: Sequence[str] = ()
) -> int:
    """Write results to a file, .csv or .parquet; return how many there are, tasks or folds.

    The same store gives the same file, byte for byte, with the same version of pandas. With
    ``tasks``, everything is written, and what was planned. ``names`` are NAME or NAME@HASH.
    """
    path = Path(path)
    check_ending(path)
    wanted = chosen_variants(store.runs(), names, store.name)
    with write_whole(path) as aside:
        table = whole_table(store) if tasks else fold_table(store, names=names)
        table = table[table["spec_hash"].isin(wanted)] if names else table
        if path.suffix == ".csv":
            table.to_csv(aside, index=False)
        else:
            with_parquet(table.to_parquet, aside, index=False, compression="zstd")
    return int((~table["stage"].isin([UNIT, START])).sum())


def _fold_lines(
    row: Mapping[str, Any], spec: str, places: Mapping[str, Environment]
) -> Iterator[dict[str, Any]]:
    place = places[row["environment"]]
    common = {name: row[name] for name in row if name in FIRST + LAST}
    common |= {
        "spec": spec,
        "params": dump_json(row["params"]),
        "task_seconds": row["seconds"],
        "host": place.machine.get("host", ""),
        "versions": dump_json(place.versions),
    }
    for measures in row["rows"] or [row["measures"]]:
        yield {"fold": None, **measures, **common}


Name = tuple[str, ...]  # spec_hash, dataset and model of a unit
Stages = dict[str, str]  # stage by key of a result


class Merged(NamedTuple):
    """Results before and after."""

    before: int
    after: int


def merge_into(
    into: str | os.PathLike[str], sources: Sequence[str | os.PathLike[str]]
) -> list[Merged]:
    """Take the results of other stores, or of files of tasks, into a store: of all, or of none.

    What is in both stays as it is, but for failures of which the other knows a result. A model
    that both have finished on a table keeps the folds that it has here; those of the other are
    kept as results that are not current.

    Parameters
    ----------
    into : str or path
        Made if it is not there.
    sources : list of str or path
        Stores, or files written by ``bench export --tasks``.

    Returns
    -------
    list of Merged
        For each source, results before and after it.

    Raises
    ------
    CoCoError
        If one of the sources cannot be read. Nothing is written then.
    """

    def write(connection: sa.Connection) -> list[Merged]:
        sizes = [_size(connection)]
        for source in opened:
            _take(store, connection, source)
            sizes.append(_size(connection))
        return [Merged(*pair) for pair in itertools.pairwise(sizes)]

    with ExitStack() as stack:
        opened = [stack.enter_context(_opened(source)) for source in sources]
        where = os.fspath(into)
        if "://" not in where and not Path(where).exists():
            where = os.fspath(stack.enter_context(write_whole(where)))
        store = stack.enter_context(Store(where))
        store.name = store.database.name = os.fspath(into)  # in messages, though it is aside yet
        return store.database.writing(write)


def take_rows(store: Store, pairs: Iterable[tuple[dict[str, Any], Environment]]) -> None:
    """Take rows of results, each with where it ran; ours stay, but for failures."""
    for some in batches(pairs):
        store.database.writing(partial(_put, store, some))


@contextmanager
def _opened(source: str | os.PathLike[str]) -> Iterator[TaskFile | _StoreSource]:
    if Path(os.fspath(source)).suffix in (".csv", ".parquet"):
        yield TaskFile(os.fspath(source))
        return
    with Store(source, create=False) as store:
        yield _StoreSource(store)


def _put(
    store: Store, some: Sequence[tuple[dict[str, Any], Environment]], connection: sa.Connection
) -> None:
    statement = store.database.insert(results)
    new = statement.excluded
    change = {name: new[name] for name in COLUMNS if name != "current"}
    better = sa.and_(results.c.status != OK, new.status == OK)
    statement = statement.on_conflict_do_update(index_elements=["key"], set_=change, where=better)
    _keep_places(store, connection, (place for _, place in some))
    connection.execute(statement, [row for row, _ in some])


def _take(store: Store, connection: sa.Connection, source: TaskFile | _StoreSource) -> None:
    ours = {_name(unit): unit for unit in planned_units(connection)}
    both: dict[Name, tuple[Stages, Stages]] = {}  # current results of units that are here too

    def noted() -> Iterator[Placed]:
        for row, place in source.tasks():
            name = _name(row)
            if name not in ours:
                yield Placed(row, place)
                continue
            if name not in both:
                both[name] = _current(connection, name), {}  # before any of theirs is written
            if row["current"]:
                both[name][1][row["key"]] = row["stage"]
            # Which of both count is decided below, when all of theirs are known.
            yield Placed({**row, "current": False}, place)

    for some in batches(noted()):
        _put(store, some, connection)
    their_units, starts = source.units(), source.starts()
    theirs = {_name(unit): unit for unit in their_units}
    for name, (here, there) in both.items():
        mark_current(connection, name, _chosen(ours[name], here, theirs.get(name), there))
    _keep_places(store, connection, (place for _, place in starts))
    if starts:
        new_runs = store.database.insert(runs).on_conflict_do_nothing()
        connection.execute(new_runs, [run for run, _ in starts])
    if their_units:
        connection.execute(_unit_statement(store), their_units)


def _chosen(
    our_unit: dict[str, Any], here: Stages, their_unit: dict[str, Any] | None, there: Stages
) -> Collection[str]:
    """Return the keys of a unit's results that count: of one walk through it, not of two."""
    if their_unit is not None:
        if our_unit["key"] != their_unit["key"]:  # another table, or another model of that name
            return here
        if our_unit["status"] != OK and their_unit["status"] == OK:
            return there
    if our_unit["status"] == OK:
        return here
    judged = any(stage != TUNING for stage in here.values())
    return {*here, *(key for key, stage in there.items() if stage == TUNING or not judged)}


def _unit_statement(store: Store) -> Any:
    """Return an INSERT of units; one that is here learns only that it has ended."""
    statement = store.database.insert(units)
    new = statement.excluded
    ended = sa.or_(new.status == OK, units.c.status == OPEN)
    known_here = sa.and_(units.c.key == new.key, units.c.status != OK, ended)
    change = {name: new[name] for name in ("status", "error")}
    return statement.on_conflict_do_update(index_elements=UNIT_NAME, set_=change, where=known_here)


def _keep_places(store: Store, connection: sa.Connection, places: Iterable[Environment]) -> None:
    for place in {place.digest: place for place in places if place != NOWHERE}.values():
        store.keep_environment(connection, place)


def _current(connection: sa.Connection, unit: Name) -> Stages:
    of_unit = (results.c[name] == value for name, value in zip(UNIT_NAME, unit, strict=True))
    query = sa.select(results.c.key, results.c.stage).where(*of_unit, results.c.current.is_(True))
    return {row.key: row.stage for row in connection.execute(query)}


def _name(row: dict[str, Any]) -> Name:
    return tuple(row[name] for name in UNIT_NAME)


def _size(connection: sa.Connection) -> int:
    return int(connection.scalar(sa.select(sa.func.count()).select_from(results)) or 0)
