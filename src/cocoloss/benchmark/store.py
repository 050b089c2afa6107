"""Where results are kept: one row per finished task, written once.

Only the driver writes, one transaction per task. A result that is there is never replaced, a
failure is replaced by the next attempt; so two drivers on one store, or one that is killed and
started again, end with the same rows as one that was left alone.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from cocoloss.benchmark.keys import OK, OPEN, Result, Task, Unit
from cocoloss.benchmark.runbook import RunBook, batches, now
from cocoloss.benchmark.schema import COLUMNS, results
from cocoloss.benchmark.worker import Finished

__all__ = ["OPEN", "TUNING", "Count", "Store"]

TUNING = "trial"  # the stage that is not reported


class Count(NamedTuple):
    """How many tasks ended in which way, and how long they took together."""

    dataset: str
    model: str
    stage: str
    status: str
    tasks: int
    seconds: float


class Store(RunBook):
    """Results of benchmarks, in a SQLite file or a PostgreSQL database.

    Parameters
    ----------
    where : str or path
        A file, or ``postgresql://user@host/name``.
    create : bool, default=True
        Make it if it is not there. Without, it is only read.

    Raises
    ------
    CoCoError
        By every method, if the database refuses: a full or read-only disk, no server, no store.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, Store(Path(folder) / "results.sqlite") as store:
    ...     store.runs()
    []
    """

    def __init__(self, where: str | os.PathLike[str], *, create: bool = True) -> None:
        super().__init__(where, create=create)
        self._record = self._recording()

    def find(self, keys: Iterable[str]) -> dict[str, Result]:
        """Return what is known of these tasks, by key; failures too."""
        names = ("key", "measures", "rows", "params", "extra", "status", "error")
        query = sa.select(*(results.c[name] for name in names))
        found: dict[str, Result] = {}
        with self.database.reading() as connection:
            for some in batches(keys):
                for key, *values in connection.execute(query.where(results.c.key.in_(some))):
                    found[key] = Result(*values)
        return found

    def record(self, unit: Unit, task: Task, spec_hash: str, finished: Finished) -> Result:
        """Keep what a task found, and return what is kept: the earlier result if there was one."""
        result = finished.result
        row = {
            "key": task.key,
            "spec_hash": spec_hash,
            **{name: getattr(task, name) for name in ("experiment", "dataset", "model")},
            "fingerprint": unit.info.fingerprint,
            "stage": task.stage,
            "part": task.part,
            **vars(result),
            "traceback": finished.traceback,
            "seconds": finished.seconds,
            "peak_memory": finished.peak_memory,
            "environment": finished.environment.digest,
            "finished_at": now(),
            "attempt": finished.attempt,
            "current": True,
        }

        def write(connection: sa.Connection) -> bool:
            self.keep_environment(connection, finished.environment)
            return connection.execute(self._record, row).first() is not None

        kept = self.database.writing(write)
        self._environments.add(finished.environment.digest)
        return result if kept else self.find([task.key])[task.key]

    def _recording(self) -> Any:
        """Return an INSERT that only a failure gives way to; it answers with the key if it did."""
        statement = self.database.insert(results)
        change: dict[str, Any] = {name: statement.excluded[name] for name in COLUMNS}
        change["attempt"] = results.c.attempt + statement.excluded.attempt
        return statement.on_conflict_do_update(
            index_elements=["key"], set_=change, where=results.c.status != OK
        ).returning(results.c.key)

    def counts(self, spec_hash: str) -> list[Count]:
        """Count the tasks of a spec by dataset, model, stage and how they ended."""
        by = [results.c[name] for name in ("dataset", "model", "stage", "status")]
        total = sa.func.sum(results.c.seconds)
        query = sa.select(*by, sa.func.count(), total).where(*_current(spec_hash))
        with self.database.reading() as connection:
            found = connection.execute(query.group_by(*by).order_by(*by))
            return [Count(*tuple(row)) for row in found]

    def rows(
        self,
        *,
        spec_hash: str | None = None,
        tuning: bool = True,
        failed_only: bool = False,
        columns: Sequence[str] | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Give rows of results, in the order of dataset, model, stage and key.

        Parameters
        ----------
        spec_hash : str, optional
            Of one spec, and only what is current. Without, everything.
        tuning : bool, default=True
            The trials too, which are most of it.
        failed_only : bool, default=False
            Only what failed or took too long.
        columns : list of str, optional
            These only.
        """
        wanted = [results.c[name] for name in columns or COLUMNS]
        query = sa.select(*wanted)
        if spec_hash is not None:
            query = query.where(*_current(spec_hash))
        if failed_only:
            query = query.where(results.c.status != OK)
        with self.database.reading() as connection:
            if not tuning:
                stages = sa.select(results.c.stage).distinct()
                if spec_hash is not None:
                    stages = stages.where(*_current(spec_hash))
                others = [name for name in connection.scalars(stages) if name != TUNING]
                query = query.where(results.c.stage.in_(others))
            order = [results.c[name] for name in ("dataset", "model", "stage", "key")]
            streamed = connection.execution_options(yield_per=1000).execute(query.order_by(*order))
            yield from map(dict, streamed.mappings())


def _current(spec_hash: str) -> tuple[sa.ColumnElement[bool], ...]:
    return results.c.spec_hash == spec_hash, results.c.current.is_(True)
