"""One store out of several: machines that worked apart, or a file that somebody sent."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from cocoloss.benchmark.export import read_tasks
from cocoloss.benchmark.keys import OK
from cocoloss.benchmark.runbook import UNIT, batches
from cocoloss.benchmark.schema import COLUMNS, results, runs, units
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.worker import Environment

FILES = (".csv", ".parquet")


class Merged(NamedTuple):
    """Results before and after."""

    before: int
    after: int


def merge(store: Store, source: str | os.PathLike[str]) -> Merged:
    """Take the results of another store, or of a file of tasks, into a store.

    What is in both stays as it is, but for failures of which the other knows a result.

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
        take_rows(store, read_tasks(os.fspath(source)))
    else:
        with Store(source, create=False) as other:
            places = other.environments()
            take_rows(store, ((row, places[row["environment"]]) for row in other.rows()))
            _take_runs_and_units(store, other)
    return Merged(before, _size(store))


def take_rows(store: Store, pairs: Iterable[tuple[dict[str, Any], Environment]]) -> None:
    """Take rows of results, each with where it ran; ours stay, but for failures."""
    statement = store.database.insert(results)
    new = statement.excluded
    change = {name: new[name] for name in COLUMNS}
    better = sa.and_(results.c.status != OK, new.status == OK)
    statement = statement.on_conflict_do_update(index_elements=["key"], set_=change, where=better)
    for some in batches(pairs):

        def write(
            connection: sa.Connection, some: list[tuple[dict[str, Any], Environment]] = some
        ) -> None:
            for place in {place.digest: place for _, place in some}.values():
                store.keep_environment(connection, place)
            connection.execute(statement, [row for row, _ in some])

        store.database.writing(write)


def _take_runs_and_units(store: Store, other: Store) -> None:
    with other.database.reading() as connection:
        their_runs = [dict(row) for row in connection.execute(sa.select(runs)).mappings()]
        their_units = [dict(row) for row in connection.execute(sa.select(units)).mappings()]
    for row in their_units:
        del row["id"]
    statement = store.database.insert(units)
    ended = {name: statement.excluded[name] for name in ("status", "error")}
    known_here = sa.and_(units.c.status != OK, units.c.key == statement.excluded.key)

    def write(connection: sa.Connection) -> None:
        if their_runs:
            connection.execute(store.database.insert(runs).on_conflict_do_nothing(), their_runs)
        if their_units:
            connection.execute(
                statement.on_conflict_do_update(index_elements=UNIT, set_=ended, where=known_here),
                their_units,
            )

    store.database.writing(write)


def _size(store: Store) -> int:
    with store.database.reading() as connection:
        return int(connection.scalar(sa.select(sa.func.count()).select_from(results)) or 0)
