"""What is to be done and who does it: the half of a store that holds no results."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Self, TypeVar

import sqlalchemy as sa

from cocoloss.benchmark.database import Database
from cocoloss.benchmark.environment import Environment
from cocoloss.benchmark.keys import FAILED, OK, OPEN, Unit
from cocoloss.benchmark.schema import environments, results, runs, units
from cocoloss.benchmark.spec import Spec

AT_ONCE = 500  # keys in one question
UNIT = ["spec_hash", "dataset", "model"]  # what tells units apart
Item = TypeVar("Item")


class RunBook:
    """Units of work, starts of drivers, and places where tasks ran.

    Parameters
    ----------
    where : str or path
        A file, or ``postgresql://user@host/name``.
    create : bool, default=True
        Make it if it is not there. Without, it is only read.
    """

    def __init__(self, where: str | os.PathLike[str], *, create: bool = True) -> None:
        self.database = Database(where, create=create)
        self.name = self.database.name
        self._environments: set[str] = set()  # digests known to be there

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database."""
        self.database.close()

    def open_units(
        self, planned: Sequence[Unit], spec_hash: str, *, retry_failed: bool = False
    ) -> dict[str, str]:
        """Say what is going to be done, and return how each unit stands, by key.

        A unit whose table or model has changed is open again, and what it found is not current.
        With ``retry_failed`` those with failures are open again too; the failures stay until they
        are replaced.
        """
        rows = [
            {
                "key": unit.key,
                "spec_hash": spec_hash,
                **{name: getattr(unit, name) for name in ("experiment", "dataset", "model")},
                "fingerprint": unit.info.fingerprint,
                "tasks": unit.tasks,
                "seconds": unit.seconds,
                "info": vars(unit.info),
                "status": OPEN,
                "error": "",
            }
            for unit in planned
        ]

        def write(connection: sa.Connection) -> None:
            statement = self.database.insert(units)
            new = statement.excluded
            change: dict[str, Any] = {
                name: new[name] for name in ("key", "fingerprint", "tasks", "seconds", "info")
            }
            for name in ("status", "error"):
                change[name] = sa.case((units.c.key == new.key, units.c[name]), else_=new[name])
            if rows:
                self._outdate(connection, rows, spec_hash)
                connection.execute(
                    statement.on_conflict_do_update(index_elements=UNIT, set_=change), rows
                )
            for some in batches(unit.key for unit in planned) if retry_failed else ():
                failed = sa.and_(units.c.key.in_(some), units.c.status == FAILED)
                connection.execute(sa.update(units).where(failed).values(status=OPEN, error=""))

        self.database.writing(write)
        return self.unit_states(spec_hash)

    def unit_states(self, spec_hash: str) -> dict[str, str]:
        """Return "open", "ok" or "failed" by key of unit."""
        return {row["key"]: row["status"] for row in self.planned(spec_hash)}

    def planned(self, spec_hash: str | None = None) -> list[dict[str, Any]]:
        """Return the units of a spec, or all: dataset, model, tasks, seconds, status and more."""
        with self.database.reading() as connection:
            return planned_units(connection, spec_hash)

    def end_unit(self, unit: Unit, spec_hash: str, error: str, keys: Collection[str]) -> None:
        """Remember that a unit has come to its end, and which results led there.

        Parameters
        ----------
        unit : Unit
        spec_hash : str
        error : str
            The first thing that failed, or nothing.
        keys : set of str
            Of the tasks that were gone through. Earlier results of the unit that are not among
            them are not current any more.
        """

        def write(connection: sa.Connection) -> None:
            ended = sa.update(units).where(units.c.key == unit.key)
            connection.execute(ended.values(status=FAILED if error else OK, error=error))
            mark_current(connection, (spec_hash, unit.dataset, unit.model), keys)

        self.database.writing(write)

    def _outdate(
        self, connection: sa.Connection, rows: list[dict[str, Any]], spec_hash: str
    ) -> None:
        """Mark what changed units found before."""
        query = sa.select(units.c.dataset, units.c.model, units.c.key)
        known = connection.execute(query.where(units.c.spec_hash == spec_hash))
        keys = {(dataset, model): key for dataset, model, key in known}
        for row in rows:
            if keys.get((row["dataset"], row["model"]), row["key"]) != row["key"]:
                mark_current(connection, tuple(row[name] for name in UNIT), ())

    def begin_run(
        self,
        run_id: str,
        spec: Spec,
        environment: Environment,
        progress: Mapping[str, Any] | None = None,
    ) -> None:
        """Note that a driver has started."""
        row = {
            "id": run_id,
            "name": spec.name,
            "spec_hash": spec.hash,
            "spec": spec.content(),
            "environment": environment.digest,
            "state": "running",
            "started_at": now(),
            "seen_at": now(),
            "progress": dict(progress or {}),
        }

        def write(connection: sa.Connection) -> None:
            self.keep_environment(connection, environment)
            connection.execute(self.database.insert(runs).values(row).on_conflict_do_nothing())

        self.database.writing(write)

    def sign_of_life(
        self, run_id: str, progress: Mapping[str, Any], state: str = "running"
    ) -> None:
        """Note that the driver is there, what it does, and at last how it ended."""
        change = sa.update(runs).where(runs.c.id == run_id)
        values = {"seen_at": now(), "progress": dict(progress), "state": state}
        self.database.writing(lambda c: c.execute(change.values(values)))

    def runs(self) -> list[dict[str, Any]]:
        """Return all starts of a driver, the earliest first; times are UTC."""
        order = (runs.c.started_at, runs.c.id)
        with self.database.reading() as connection:
            rows = connection.execute(sa.select(runs).order_by(*order)).mappings()
            return [dict(row) for row in rows]

    def environments(self) -> dict[str, Environment]:
        """Return where tasks ran, by digest."""
        query = sa.select(environments.c.machine, environments.c.versions)
        with self.database.reading() as connection:
            found = [Environment(*row) for row in connection.execute(query)]
        return {environment.digest: environment for environment in found}

    def keep_environment(self, connection: sa.Connection, environment: Environment) -> None:
        """Keep a place where something ran, as part of a transaction."""
        if environment.digest not in self._environments:
            statement = self.database.insert(environments).values(
                digest=environment.digest, **vars(environment)
            )
            connection.execute(statement.on_conflict_do_nothing(index_elements=["digest"]))


def planned_units(connection: sa.Connection, spec_hash: str | None = None) -> list[dict[str, Any]]:
    """Return the units of a spec, or all, as part of a transaction."""
    query = sa.select(*(column for column in units.c if column.name != "id"))
    if spec_hash is not None:
        query = query.where(units.c.spec_hash == spec_hash)
    rows = connection.execute(query.order_by(*(units.c[name] for name in UNIT))).mappings()
    return [dict(row) for row in rows]


def tables_left_out(runs: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return which tables the runs of a spec could not use, and why.

    Parameters
    ----------
    runs : iterable of dict
        From :meth:`RunBook.runs`, the earliest first.

    Examples
    --------
    >>> whole = {"spec": {"data": {"datasets": []}}, "progress": {"left_out": {"a": "is empty"}}}
    >>> tables_left_out([whole])
    {'a': 'is empty'}
    >>> tables_left_out([whole, {"spec": {"data": {"datasets": ["a"]}}, "progress": {}}])
    {}
    """
    left_out: dict[str, str] = {}
    for run in runs:
        named = run["spec"]["data"]["datasets"]
        if not named:  # it went through all that there were
            left_out = dict(run["progress"].get("left_out", {}))
        for name in named:  # it would not have begun without
            left_out.pop(name, None)
    return left_out


def mark_current(connection: sa.Connection, unit: tuple[str, ...], keys: Collection[str]) -> None:
    """Make these results of a unit, ``(spec_hash, dataset, model)``, current, and no others."""
    of_unit = (results.c[name] == value for name, value in zip(UNIT, unit, strict=True))
    known = connection.execute(sa.select(results.c.key, results.c.current).where(*of_unit))
    wrong = [key for key, current in known if current != (key in keys)]
    for some in batches(wrong):
        flipped = sa.update(results).where(results.c.key.in_(some))
        connection.execute(flipped.values(current=sa.not_(results.c.current)))


def batches(items: Iterable[Item], size: int = AT_ONCE) -> Iterator[list[Item]]:
    """Give lists of so many items each.

    Examples
    --------
    >>> list(batches("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC).replace(tzinfo=None)
