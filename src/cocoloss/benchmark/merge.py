"""One store out of several: machines that worked apart, or a file that somebody sent."""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import sqlalchemy as sa

from cocoloss.benchmark.environment import Environment
from cocoloss.benchmark.keys import OK, OPEN
from cocoloss.benchmark.runbook import UNIT, batches, mark_current, planned_units
from cocoloss.benchmark.schema import COLUMNS, results, runs, units
from cocoloss.benchmark.store import TUNING, Store
from cocoloss.benchmark.task_file import NOWHERE, Placed, TaskFile
from cocoloss.files import write_whole

FILES = (".csv", ".parquet")
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

    Parameters
    ----------
    into : str or path
        Made if it is not there.
    sources : list of str or path
        As :func:`merge` has it.

    Returns
    -------
    list of Merged
        For each source, results before and after it.

    Raises
    ------
    CoCoError
        If one of the sources cannot be read. Nothing is written then.
    """
    with ExitStack() as stack:
        opened = [stack.enter_context(_opened(source)) for source in sources]
        where = os.fspath(into)
        if "://" not in where and not Path(where).exists():
            where = os.fspath(stack.enter_context(write_whole(where)))
        store = stack.enter_context(Store(where))
        store.name = store.database.name = os.fspath(into)  # in messages, though it is aside yet
        return _merge_all(store, opened)


def merge(store: Store, source: str | os.PathLike[str]) -> Merged:
    """Take the results of another store, or of a file of tasks, into a store: all, or none.

    What is in both stays as it is, but for failures of which the other knows a result. A model
    that both have finished on a table keeps the folds that it has here; those of the other are
    kept as results that are not current.

    Parameters
    ----------
    store : Store
        That is written to.
    source : str or path
        A store, or a file written by ``bench export --tasks``.

    Raises
    ------
    CoCoError
        If the source is neither, or is damaged.
    """
    with _opened(source) as opened:
        return _merge_all(store, [opened])[0]


def take_rows(store: Store, pairs: Iterable[tuple[dict[str, Any], Environment]]) -> None:
    """Take rows of results, each with where it ran; ours stay, but for failures."""
    for some in batches(pairs):
        store.database.writing(partial(_put, store, some))


class _Source(Protocol):
    """What is merged: a :class:`TaskFile`, or a store."""

    def tasks(self) -> Iterator[Placed]: ...

    def units(self) -> list[dict[str, Any]]: ...

    def starts(self) -> list[Placed]: ...


class _StoreSource:
    """A store, asked as a file of tasks is."""

    def __init__(self, store: Store) -> None:
        self.store, self.places = store, store.environments()

    def tasks(self) -> Iterator[Placed]:
        return (Placed(row, self.places[row["environment"]]) for row in self.store.rows())

    def units(self) -> list[dict[str, Any]]:
        return self.store.planned()

    def starts(self) -> list[Placed]:
        return [Placed(r, self.places.get(r["environment"], NOWHERE)) for r in self.store.runs()]


@contextmanager
def _opened(source: str | os.PathLike[str]) -> Iterator[_Source]:
    if Path(os.fspath(source)).suffix in FILES:
        yield TaskFile(os.fspath(source))
        return
    with Store(source, create=False) as store:
        yield _StoreSource(store)


def _merge_all(store: Store, sources: Sequence[_Source]) -> list[Merged]:
    def write(connection: sa.Connection) -> list[Merged]:
        sizes = [_size(connection)]
        for source in sources:
            _take(store, connection, source)
            sizes.append(_size(connection))
        return [Merged(*pair) for pair in pairwise(sizes)]

    return store.database.writing(write)


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


def _take(store: Store, connection: sa.Connection, source: _Source) -> None:
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
    return statement.on_conflict_do_update(index_elements=UNIT, set_=change, where=known_here)


def _keep_places(store: Store, connection: sa.Connection, places: Iterable[Environment]) -> None:
    for place in {place.digest: place for place in places if place != NOWHERE}.values():
        store.keep_environment(connection, place)


def _current(connection: sa.Connection, unit: Name) -> Stages:
    of_unit = (results.c[name] == value for name, value in zip(UNIT, unit, strict=True))
    query = sa.select(results.c.key, results.c.stage).where(*of_unit, results.c.current.is_(True))
    return {row.key: row.stage for row in connection.execute(query)}


def _name(row: dict[str, Any]) -> Name:
    return tuple(row[name] for name in UNIT)


def _size(connection: sa.Connection) -> int:
    return int(connection.scalar(sa.select(sa.func.count()).select_from(results)) or 0)
