"""Where results are kept, a SQLite file or a PostgreSQL database: one row per task, written once.

Only the driver writes, one transaction per task. A result that is there is never replaced, a
failure is replaced by the next attempt; so two drivers on one store, or one that is killed and
started again, end with the same rows as one that was left alone.
"""

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc

from cocoloss._checks import listed
from cocoloss.benchmark.spec import Spec
from cocoloss.benchmark.tasks import FAILED, OK, OPEN, Environment, Finished, Result, Task, Unit
from cocoloss.exceptions import CoCoError
from cocoloss.json_text import dump_json, load_json

SCHEMA_VERSION = 1
METADATA = sa.MetaData()


def _columns(kind: Any, *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, nullable=False) for name in names]


meta = sa.Table(
    "cocoloss_meta",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    *_columns(sa.Text, "value"),
)

# Where tasks ran: packages and machine, once each.
environments = sa.Table(
    "environments",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False, unique=True),
    *_columns(sa.JSON, "machine", "versions"),
)

# One row per start of a driver. Times are UTC.
runs = sa.Table(
    "runs",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    *_columns(sa.Text, "name", "spec_hash"),
    *_columns(sa.JSON, "spec"),
    *_columns(sa.Text, "environment"),  # digest of the driver's
    *_columns(sa.Text, "state"),  # running, finished, stopped, broken
    *_columns(sa.DateTime, "started_at", "seen_at"),  # seen: last sign of life
    *_columns(sa.JSON, "progress"),  # what runs, how much is left, left_out
)

# What a run means to do: one row per dataset and model. The key changes with the table's content
# and with the user's model, and then the unit is open again.
units = sa.Table(
    "units",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    *_columns(sa.Text, "key", "spec_hash", "experiment", "dataset", "fingerprint", "model"),
    *_columns(sa.Integer, "tasks"),
    *_columns(sa.Float, "seconds"),  # as planned
    *_columns(sa.JSON, "info"),  # what is known of the table
    *_columns(sa.Text, "status", "error"),  # open, ok, failed
    sa.UniqueConstraint("spec_hash", "dataset", "model"),
)

# What tasks found: one row per key, for ever.
results = sa.Table(
    "results",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    *_columns(sa.Text, "spec_hash", "experiment", "dataset", "fingerprint", "model"),
    *_columns(sa.Text, "stage", "part"),
    *_columns(sa.Text, "status", "error", "traceback"),  # ok, failed, timeout
    *_columns(sa.JSON, "measures", "rows", "params", "extra"),
    *_columns(sa.Float, "seconds"),
    *_columns(sa.BigInteger, "peak_memory"),
    *_columns(sa.Text, "environment"),  # digest
    *_columns(sa.DateTime, "finished_at"),
    *_columns(sa.Integer, "attempt"),
    # False for what a later walk through the unit did not need: folds of parameters that are no
    # longer the best, results of a table or a model that has changed.
    *_columns(sa.Boolean, "current"),
)
COLUMNS = tuple(column.name for column in results.c if column.name != "id")
# What a unit has found. Counting, and leaving out the trials, which are most, touch this only.
COUNTED = ("spec_hash", "dataset", "model", "stage", "status", "current", "seconds")
sa.Index("results_of_unit", *(results.c[name] for name in COUNTED))


BUSY_SECONDS = 30  # how long a writer waits for another one
PATIENCE = (0.5, 1, 2, 4, 8, 16)  # seconds between attempts to reach a server that went away
SERVERS = ("postgresql", "postgres", "postgresql+psycopg")
GONE = ("57P01", "57P02", "57P03")  # shut down by hand, crashed, not yet up: SQLSTATE
CONNECTION_LOST = "08"  # the class of such states
LOCK = 7_026_163  # any number: two drivers that make the tables at once take turns

REMEDIES = {  # part of the database's message -> what to do
    "disk is full": "the disk is full; free some space, then run the same command to go on",
    "readonly database": "it is read-only; choose another place for the store",
    "unable to open database": "it cannot be opened or made there; choose another place",
    "not a database": "it is no SQLite file; choose another name",
    "malformed": "the file is damaged; take a copy, or merge what `sqlite3 .recover` saves of it",
    "database is locked": f"another process has held it for {BUSY_SECONDS} s; try again",
    "disk I/O error": "the disk has an error, or its quota is used up",
    "No space left": "the disk of the server is full; free some space there",
    "Connection refused": "no server answers there; start it, or correct the URL",
    "could not translate host": "there is no such host; correct the URL",
    "failed to resolve host": "there is no such host; correct the URL",
    "password authentication failed": "the server does not accept the password",
    "does not exist": "there is no such database; make it with createdb, or correct the URL",
    "permission denied": "the server does not permit it; ask for the right to make tables",
}
Answer = TypeVar("Answer")


class Database:
    """A SQLite file, or ``postgresql://user@host/name``; made and written to if ``create``."""

    def __init__(self, where: str | os.PathLike[str], *, create: bool) -> None:
        self.url = _url(where)
        self.is_file = self.url.get_backend_name() == "sqlite"
        as_given = self.url.set(drivername="postgresql")  # without what we add, and the password
        self.name = str(self.url.database) if self.is_file else as_given.render_as_string()
        if self.is_file:
            self._check_place(create)
        self.engine = self._engine(read_only=not create)
        self._patience: tuple[float, ...] = ()  # a wrong URL is an error at once
        try:
            self._open(create)
        except BaseException:
            self.close()
            raise
        self._patience = PATIENCE

    @contextmanager
    def streaming(self) -> Iterator[sa.Connection]:
        """Give a connection to read many rows with, one after the other."""
        with self._explained(), self._again(self.engine.connect) as connection:
            yield connection

    def reading(self, work: Callable[[sa.Connection], Answer]) -> Answer:
        """Read something; again, from its beginning, if a server goes away in the middle."""

        def read() -> Answer:
            with self.engine.connect() as connection:
                return work(connection)

        return self._again(read)

    def writing(self, work: Callable[[sa.Connection], Answer]) -> Answer:
        """Do something in one transaction: all of it, or nothing.

        The work may be done again if a server goes away in the middle, so it must be such that
        doing it twice is doing it once.
        """

        def write() -> Answer:
            with self.engine.execution_options(writes=True).begin() as connection:
                return work(connection)

        return self._again(write)

    def insert(self, table: sa.Table) -> Any:
        """Return an INSERT that has ``on_conflict_do_nothing`` and ``on_conflict_do_update``."""
        from sqlalchemy.dialects import postgresql, sqlite  # noqa: PLC0415 - one of them

        return (sqlite if self.is_file else postgresql).insert(table)

    def close(self) -> None:
        """Let go of it."""
        self.engine.dispose()

    def _again(self, work: Callable[[], Answer]) -> Answer:
        """Do something, again and again while a server that we had is away."""
        for pause in self._patience:
            try:
                with self._explained():
                    return work()
            except _ServerGoneError:
                time.sleep(pause)
        with self._explained():
            return work()

    def _check_place(self, create: bool) -> None:
        path = Path(str(self.url.database))
        if path.is_dir():
            raise CoCoError(f"cannot open {path}: it is a folder; give a file")
        if not path.exists() and not create:
            raise CoCoError(f"there is no store {path}; `cocoloss bench run` makes one")
        if not path.parent.is_dir():
            raise CoCoError(f"cannot make {path}: there is no folder {path.parent}")

    def _engine(self, *, read_only: bool, immutable: bool = False) -> sa.Engine:
        url = self.url
        options: dict[str, Any] = {}
        if self.is_file:
            options = {"connect_args": {"timeout": BUSY_SECONDS}}
            if read_only:
                path = Path(str(url.database)).resolve()
                query = "mode=ro&immutable=1" if immutable else f"mode={_reading_mode(path)}"
                query = f"{path.as_uri()}?{query}"
                url = sa.URL.create("sqlite", database=query, query={"uri": "true"})
        else:
            options = {"pool_pre_ping": True, "connect_args": {"connect_timeout": 10}}
        try:
            engine = sa.create_engine(
                url, json_serializer=dump_json, json_deserializer=load_json, **options
            )
        except ImportError as error:
            raise CoCoError(
                "PostgreSQL needs psycopg, which is not installed; "
                "pip install 'cocoloss[postgresql]'"
            ) from error
        if self.is_file:
            _set_up_sqlite(engine, read_only=read_only)
        return engine

    def _open(self, create: bool) -> None:
        if create:
            if self.is_file and Path(str(self.url.database)).exists():
                looking = self._engine(read_only=True)  # before anything is written to it
                try:
                    with self._explained(), looking.connect() as connection:
                        _refuse_foreign(self.name, sa.inspect(connection).get_table_names())
                finally:
                    looking.dispose()
            self.writing(self._make_tables)
        try:
            version = self.reading(_schema_version)
        except CoCoError:
            # A file in WAL mode on a read-only disk can only be read as immutable.
            if create or not self.is_file or Path(f"{self.url.database}-wal").exists():
                raise
            self.close()
            self.engine = self._engine(read_only=True, immutable=True)
            version = self.reading(_schema_version)
        if version is None:
            raise CoCoError(f"{self.name} holds no benchmark; `cocoloss bench run` makes a store")
        if version != SCHEMA_VERSION:
            raise CoCoError(
                f"{self.name} was written by another version of cocoloss (form {version} of its "
                f"tables, here {SCHEMA_VERSION}); use that version, or a new store"
            )

    def _make_tables(self, connection: sa.Connection) -> None:
        if not self.is_file:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
            there = sa.inspect(connection).get_table_names()
            _refuse_foreign(self.name, set(there) & set(METADATA.tables))
        METADATA.create_all(connection)
        row = {"name": "schema", "value": str(SCHEMA_VERSION)}
        connection.execute(self.insert(meta).values(**row).on_conflict_do_nothing())

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (exc.StatementError, exc.TimeoutError) as error:
            reason = " ".join(str(getattr(error, "orig", None) or error).split())
            remedy = next((do for part, do in REMEDIES.items() if part in reason), reason)
            line = f"cannot use the store {self.name}: {remedy}"
            if not self.is_file and _went_away(error):
                raise _ServerGoneError(line) from error
            raise StoreError(line) from error


class StoreError(CoCoError):
    """A database that refuses."""


class _ServerGoneError(StoreError):
    """A server that may come back."""


def _went_away(error: Exception) -> bool:
    """Say whether a server is not there; without a state it had no chance to say anything."""
    if not isinstance(error, exc.OperationalError | exc.InterfaceError):
        return False
    state = getattr(error.orig, "sqlstate", None)
    return state is None or state in GONE or state.startswith(CONNECTION_LOST)


def _refuse_foreign(name: str, tables: Collection[str]) -> None:
    if tables and meta.name not in tables:
        raise CoCoError(
            f"{name} holds the tables of another program ({listed(sorted(tables), quoted=False)}); "
            f"choose another place for the store"
        )


def _url(where: str | os.PathLike[str]) -> sa.URL:
    text = os.fspath(where)
    scheme, colon, rest = text.partition("://")
    if not colon:
        return sa.URL.create("sqlite", database=text)
    if scheme not in SERVERS:
        raise CoCoError(
            f"a store is a file or postgresql://user@host/name, not one of {scheme!r}: {text!r}"
        )
    try:
        return sa.make_url(f"postgresql+psycopg://{rest}")
    except (exc.ArgumentError, ValueError) as error:
        raise CoCoError(f"no URL of a PostgreSQL database: {error}") from error


def _schema_version(connection: sa.Connection) -> int | None:
    if not sa.inspect(connection).has_table(meta.name):
        return None
    value = connection.scalar(sa.select(meta.c.value).where(meta.c.name == "schema"))
    return None if value is None else int(value)


def _reading_mode(path: Path) -> str:
    """Return how SQLite shall open a file that is only read, so that nothing is left beside it.

    A reader of a file in WAL mode needs two more, -wal and -shm, and makes them if they are not
    there. The last one to go removes them, after it has moved what the -wal holds into the file
    itself; but one with "ro" can do neither. So "rw" where there is nothing to move, and "ro" where
    there is: a writer is at work, or was killed, and a reader must leave that as it is.
    """
    wal = Path(f"{path}-wal")
    return "ro" if wal.exists() and wal.stat().st_size else "rw"


def _set_up_sqlite(engine: sa.Engine, *, read_only: bool) -> None:
    @sa.event.listens_for(engine, "connect")
    def _connected(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions are begun below
        if read_only:
            connection.execute("PRAGMA query_only = ON")
        else:
            # Readers never wait for the writer, and a killed process loses nothing committed.
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")

    @sa.event.listens_for(engine, "begin")
    def _begun(connection: sa.Connection) -> None:
        # A writer takes its turn at once: one that begins by reading can no longer wait.
        writes = connection.get_execution_options().get("writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


SHOWN = 6  # digits of a hash; enough to tell a handful apart


def labels_of(runs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return what each benchmark is called, by the hash of its spec, the first started first.

    The runs are the earliest first; the last name of a spec counts.

    >>> labels_of([{"spec_hash": "ab12cd34", "name": "mine"}])
    {'ab12cd34': 'mine'}
    >>> labels_of([{"spec_hash": text, "name": "mine"} for text in ("ab12cd34", "0123456789")])
    {'ab12cd34': 'mine@ab12cd', '0123456789': 'mine@012345'}
    """
    names = {run["spec_hash"]: str(run["name"]) for run in runs}
    given = list(names.values())
    return {
        spec_hash: f"{name}@{spec_hash[:SHOWN]}" if given.count(name) > 1 else name
        for spec_hash, name in names.items()
    }


def chosen_variants(
    runs: Sequence[Mapping[str, Any]], wanted: Collection[str], store: str
) -> list[str]:
    """Return the hashes of the benchmarks that are named, the first started first.

    NAME is all benchmarks of that name, of NAME@HASH the first digits will do; none named is all
    of them.
    """
    names = {run["spec_hash"]: str(run["name"]) for run in runs}
    found: set[str] = set()
    for each in wanted:
        name, _, digits = each.rpartition("@")
        here = {h for h, own in names.items() if own == each}
        here |= {h for h, own in names.items() if own == name and h.startswith(digits) and digits}
        if not here:
            there = ", ".join(dict.fromkeys(labels_of(runs).values()))
            raise CoCoError(f"{store} has no benchmark {each!r}; it has {there or 'none'}")
        found |= here
    return [spec_hash for spec_hash in names if spec_hash in found or not wanted]


AT_ONCE = 500  # keys in one question
UNIT_NAME = ["spec_hash", "dataset", "model"]  # what tells units apart
Item = TypeVar("Item")


def planned_units(connection: sa.Connection, spec_hash: str | None = None) -> list[dict[str, Any]]:
    """Return the units of a spec, or all, as part of a transaction."""
    query = sa.select(*(column for column in units.c if column.name != "id"))
    if spec_hash is not None:
        query = query.where(units.c.spec_hash == spec_hash)
    rows = connection.execute(query.order_by(*(units.c[name] for name in UNIT_NAME))).mappings()
    return [dict(row) for row in rows]


def tables_left_out(runs: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return which tables the runs of a spec, the earliest first, could not use, and why."""
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
    of_unit = (results.c[name] == value for name, value in zip(UNIT_NAME, unit, strict=True))
    known = connection.execute(sa.select(results.c.key, results.c.current).where(*of_unit))
    wrong = [key for key, current in known if current != (key in keys)]
    for some in batches(wrong):
        flipped = sa.update(results).where(results.c.key.in_(some))
        connection.execute(flipped.values(current=sa.not_(results.c.current)))


def batches(items: Iterable[Item], size: int = AT_ONCE) -> Iterator[list[Item]]:
    """Give lists of so many items each."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC).replace(tzinfo=None)


TUNING = "trial"  # the stage that is not reported


class Count(NamedTuple):
    """How many tasks ended in which way, and how long they took together."""

    dataset: str
    model: str
    stage: str
    status: str
    tasks: int
    seconds: float


class Store:
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
        self.database = Database(where, create=create)
        self.name = self.database.name
        self._environments: set[str] = set()  # digests known to be there
        self._record = self._recording()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database."""
        self.database.close()

    def find(self, keys: Iterable[str]) -> dict[str, Result]:
        """Return what is known of these tasks, by key; failures too."""
        names = ("key", "measures", "rows", "params", "extra", "status", "error")
        query = sa.select(*(results.c[name] for name in names))
        asked = list(batches(keys))

        def read(connection: sa.Connection) -> dict[str, Result]:
            answers = (connection.execute(query.where(results.c.key.in_(some))) for some in asked)
            return {key: Result(*values) for rows in answers for key, *values in rows}

        return self.database.reading(read)

    def record(self, unit: Unit, task: Task, spec_hash: str, finished: Finished) -> Result:
        """Keep what a task found, and return what is kept: the earlier result if there was one."""
        result = finished.result
        of_task = ("key", "experiment", "dataset", "model", "stage", "part")
        of_end = ("traceback", "seconds", "peak_memory", "attempt")
        row = {
            "spec_hash": spec_hash,
            "fingerprint": unit.info.fingerprint,
            **{name: getattr(task, name) for name in of_task},
            **{name: value for name, value in vars(result).items() if name != "predictions"},
            **{name: getattr(finished, name) for name in of_end},
            "environment": finished.environment.digest,
            "finished_at": now(),
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

    def amend(
        self, changed: Mapping[str, tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]]
    ) -> None:
        """Give finished tasks other measures and rows, by key; all of them, or none."""

        def write(connection: sa.Connection) -> None:
            for key, (measures, rows) in changed.items():
                change = sa.update(results).where(results.c.key == key, results.c.status == OK)
                connection.execute(change.values(measures=dict(measures), rows=list(rows)))

        self.database.writing(write)

    def counts(self, spec_hash: str) -> list[Count]:
        """Count the tasks of a spec by dataset, model, stage and how they ended."""
        by = [results.c[name] for name in ("dataset", "model", "stage", "status")]
        total = sa.func.sum(results.c.seconds)
        query = sa.select(*by, sa.func.count(), total).where(*_current(spec_hash))
        query = query.group_by(*by).order_by(*by)
        return self.database.reading(lambda c: [Count(*tuple(row)) for row in c.execute(query)])

    def rows(
        self,
        *,
        spec_hash: str | None = None,
        tuning: bool = True,
        failed_only: bool = False,
        columns: Sequence[str] | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Give rows of results, in the order of dataset, model, stage and key.

        With ``spec_hash`` those of one spec, and only what is current; else everything. Without
        ``tuning`` no trials, which are most of it. ``failed_only`` is what failed or took too long.
        """
        query = sa.select(*(results.c[name] for name in columns or COLUMNS))
        of_spec = () if spec_hash is None else _current(spec_hash)
        query = query.where(*of_spec)
        if failed_only:
            query = query.where(results.c.status != OK)
        with self.database.streaming() as connection:
            if not tuning:  # an index knows the stages: quicker than to look at every row
                stages = connection.scalars(sa.select(results.c.stage).distinct().where(*of_spec))
                query = query.where(results.c.stage.in_([s for s in stages if s != TUNING]))
            order = [results.c[name] for name in ("dataset", "model", "stage", "key")]
            streamed = connection.execution_options(yield_per=1000).execute(query.order_by(*order))
            yield from map(dict, streamed.mappings())

    def open_units(
        self, planned: Sequence[Unit], spec_hash: str, *, retry_failed: bool = False
    ) -> dict[str, str]:
        """Say what is going to be done, and return how each unit stands, by key.

        A unit whose table or model has changed is open again, and what it found is not current.
        With ``retry_failed`` those with failures are open again too; the failures stay until they
        are replaced.
        """
        names = ("key", "experiment", "dataset", "model", "tasks", "seconds")
        rows: list[dict[str, Any]] = [
            {
                **{name: getattr(unit, name) for name in names},
                "spec_hash": spec_hash,
                "fingerprint": unit.info.fingerprint,
                "info": vars(unit.info),
                "status": OPEN,
                "error": "",
            }
            for unit in planned
        ]

        def write(connection: sa.Connection) -> None:
            known = {(u["dataset"], u["model"]): u for u in planned_units(connection, spec_hash)}
            for row in rows:
                before = known.get((row["dataset"], row["model"]), row)
                if before["key"] != row["key"]:
                    mark_current(connection, (spec_hash, row["dataset"], row["model"]), ())
            statement = self.database.insert(units)
            new = statement.excluded
            change: dict[str, Any] = {
                name: new[name] for name in ("key", "fingerprint", "tasks", "seconds", "info")
            }
            for name in ("status", "error"):
                change[name] = sa.case((units.c.key == new.key, units.c[name]), else_=new[name])
            opened = statement.on_conflict_do_update(index_elements=UNIT_NAME, set_=change)
            if rows:
                connection.execute(opened, rows)
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
        return self.database.reading(lambda c: planned_units(c, spec_hash))

    def end_unit(self, unit: Unit, spec_hash: str, error: str, keys: Collection[str]) -> None:
        """Remember that a unit has come to its end, with its first error if it had one.

        Earlier results of the unit that are not among the ``keys`` of the tasks that were gone
        through are not current any more.
        """

        def write(connection: sa.Connection) -> None:
            ended = sa.update(units).where(units.c.key == unit.key)
            connection.execute(ended.values(status=FAILED if error else OK, error=error))
            mark_current(connection, (spec_hash, unit.dataset, unit.model), keys)

        self.database.writing(write)

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
        query = sa.select(runs).order_by(runs.c.started_at, runs.c.id)
        return self.database.reading(lambda c: [dict(row) for row in c.execute(query).mappings()])

    def environments(self) -> dict[str, Environment]:
        """Return where tasks ran, by digest."""
        query = sa.select(environments.c.machine, environments.c.versions)
        found = self.database.reading(lambda c: [Environment(*row) for row in c.execute(query)])
        return {environment.digest: environment for environment in found}

    def keep_environment(self, connection: sa.Connection, environment: Environment) -> None:
        """Keep a place where something ran, as part of a transaction."""
        if environment.digest not in self._environments:
            statement = self.database.insert(environments).values(
                digest=environment.digest, **vars(environment)
            )
            connection.execute(statement.on_conflict_do_nothing(index_elements=["digest"]))


def _current(spec_hash: str) -> tuple[sa.ColumnElement[bool], ...]:
    return results.c.spec_hash == spec_hash, results.c.current.is_(True)
