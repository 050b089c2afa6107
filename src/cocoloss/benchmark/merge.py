"""One store out of several: machines that worked apart, or a file that somebody sent."""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from cocoloss.benchmark.keys import OK
from cocoloss.benchmark.runbook import OPEN, UNIT, batches, mark_current
from cocoloss.benchmark.schema import COLUMNS, results, runs, units
from cocoloss.benchmark.store import TUNING, Store
from cocoloss.benchmark.task_file import NOWHERE, Placed, TaskFile
from cocoloss.benchmark.worker import Environment

FILES = (".csv", ".parquet")
Name = tuple[str, ...]  # spec_hash, dataset and model of a unit
Stages = dict[str, str]  # stage by key of a result


class Merged(NamedTuple):
    """Results before and after."""

    before: int
    after: int


def merge(store: Store, source: str | os.PathLike[str]) -> Merged:
    """Take the results of another store, or of a file of tasks, into a store.

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
        If the source is neither.
    """
    before = _size(store)
    if Path(os.fspath(source)).suffix in FILES:
        file = TaskFile(os.fspath(source))
        _take(store, file.tasks(), file.units(), file.starts())
    else:
        with Store(source, create=False) as other:
            places = other.environments()
            tasks = (Placed(row, places[row["environment"]]) for row in other.rows())
            starts = [Placed(run, places.get(run["environment"], NOWHERE)) for run in other.runs()]
            _take(store, tasks, other.planned(), starts)
    return Merged(before, _size(store))


def take_rows(store: Store, pairs: Iterable[tuple[dict[str, Any], Environment]]) -> None:
    """Take rows of results, each with where it ran; ours stay, but for failures."""
    statement = store.database.insert(results)
    new = statement.excluded
    change = {name: new[name] for name in COLUMNS if name != "current"}
    better = sa.and_(results.c.status != OK, new.status == OK)
    statement = statement.on_conflict_do_update(index_elements=["key"], set_=change, where=better)
    for some in batches(pairs):

        def write(
            connection: sa.Connection, some: list[tuple[dict[str, Any], Environment]] = some
        ) -> None:
            _keep_places(store, connection, (place for _, place in some))
            connection.execute(statement, [row for row, _ in some])

        store.database.writing(write)


def _take(
    store: Store,
    tasks: Iterable[Placed],
    their_units: Sequence[dict[str, Any]],
    starts: Sequence[Placed],
) -> None:
    ours = {_name(unit): unit for unit in store.planned()}
    both: dict[Name, tuple[Stages, Stages]] = {}  # current results of units that are here too

    def noted() -> Iterator[Placed]:
        for row, place in tasks:
            name = _name(row)
            if name not in ours:
                yield Placed(row, place)
                continue
            if name not in both:
                both[name] = _current(store, name), {}  # before any of theirs is written
            if row["current"]:
                both[name][1][row["key"]] = row["stage"]
            # Should all end here, none of theirs counts beside ours.
            yield Placed({**row, "current": False}, place)

    take_rows(store, noted())
    theirs = {_name(unit): unit for unit in their_units}

    def write(connection: sa.Connection) -> None:
        for name, (here, there) in both.items():
            mark_current(connection, name, _chosen(ours[name], here, theirs.get(name), there))
        _keep_places(store, connection, (place for _, place in starts))
        if starts:
            new_runs = store.database.insert(runs).on_conflict_do_nothing()
            connection.execute(new_runs, [run for run, _ in starts])
        if their_units:
            connection.execute(_unit_statement(store), list(their_units))

    store.database.writing(write)


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


def _current(store: Store, unit: Name) -> Stages:
    of_unit = (results.c[name] == value for name, value in zip(UNIT, unit, strict=True))
    query = sa.select(results.c.key, results.c.stage).where(*of_unit, results.c.current.is_(True))
    with store.database.reading() as connection:
        return {row.key: row.stage for row in connection.execute(query)}


def _name(row: dict[str, Any]) -> Name:
    return tuple(row[name] for name in UNIT)


def _size(store: Store) -> int:
    with store.database.reading() as connection:
        return int(connection.scalar(sa.select(sa.func.count()).select_from(results)) or 0)
