"""A SQLite file or a PostgreSQL server, opened alike; what it refuses becomes one clear line."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc

from cocoloss.benchmark.json_text import dump_json, load_json
from cocoloss.benchmark.schema import METADATA, SCHEMA_VERSION, meta
from cocoloss.exceptions import CoCoError

BUSY_SECONDS = 30  # how long a writer waits for another one
PATIENCE = (0.5, 1, 2, 4, 8, 16)  # seconds between attempts to reach a server that went away
SERVERS = ("postgresql", "postgres", "postgresql+psycopg")
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
    """Where rows are kept.

    Parameters
    ----------
    where : str or path
        A file, or ``postgresql://user@host/name``.
    create : bool
        Whether it may be made, and written to.

    Raises
    ------
    CoCoError
        If it cannot be opened, or holds no benchmark and ``create`` is false.
    """

    def __init__(self, where: str | os.PathLike[str], *, create: bool) -> None:
        self.url = _url(where)
        self.is_file = self.url.get_backend_name() == "sqlite"
        as_given = self.url.set(drivername="postgresql")  # without what we add, and the password
        self.name = str(self.url.database) if self.is_file else as_given.render_as_string()
        if self.is_file:
            self._check_place(create)
        self.engine = self._engine(read_only=not create)
        self._patience: tuple[float, ...] = ()  # a wrong URL is told at once
        try:
            self._open(create)
        except BaseException:
            self.close()
            raise
        self._patience = PATIENCE

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Give a connection to read with."""
        with self._explained(), self._again(self.engine.connect) as connection:
            yield connection

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
            self.writing(self._make_tables)
        try:
            with self.reading() as connection:
                version = _schema_version(connection)
        except CoCoError:
            # A file in WAL mode on a read-only disk can be read only if it is said not to change.
            if create or not self.is_file or Path(f"{self.url.database}-wal").exists():
                raise
            self.close()
            self.engine = self._engine(read_only=True, immutable=True)
            with self.reading() as connection:
                version = _schema_version(connection)
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
        METADATA.create_all(connection)
        row = {"name": "schema", "value": str(SCHEMA_VERSION)}
        connection.execute(self.insert(meta).values(**row).on_conflict_do_nothing())

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (exc.StatementError, exc.TimeoutError) as error:
            reason = " ".join(str(getattr(error, "orig", None) or error).split())
            said = next((do for part, do in REMEDIES.items() if part in reason), reason)
            line = f"cannot use the store {self.name}: {said}"
            if not self.is_file and _went_away(error, reason):
                raise _ServerGoneError(line) from error
            raise StoreError(line) from error


class StoreError(CoCoError):
    """A database that refuses."""


class _ServerGoneError(StoreError):
    """A server that may come back."""


def _went_away(error: Exception, reason: str) -> bool:
    if not isinstance(error, exc.OperationalError | exc.InterfaceError):
        return False
    signs = ("Connection refused", "closed the connection", "shutting down", "starting up")
    return error.connection_invalidated or any(sign in reason for sign in signs)


def _url(where: str | os.PathLike[str]) -> sa.URL:
    text = os.fspath(where)
    scheme, colon, rest = text.partition("://")
    if not colon:
        return sa.URL.create("sqlite", database=text)
    if scheme == "sqlite":
        return sa.URL.create("sqlite", database=rest.removeprefix("/"))
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
    there is: somebody writes, or was killed, and what reads shall leave that as it is.
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
