import os
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for fake.py and bench_helpers.py, here and in workers


@pytest.fixture(scope="session")
def postgresql_server():
    """Give the URL of a server: the one that is named, or one of our own."""
    named = os.environ.get("COCOLOSS_POSTGRESQL")
    if named:
        yield named
        return
    binaries = find_binaries()
    if binaries is None:
        if os.environ.get("COCOLOSS_POSTGRESQL_TESTS") == "1":
            pytest.fail("COCOLOSS_POSTGRESQL_TESTS=1, but neither a server nor its binaries")
        pytest.skip("no PostgreSQL here: set COCOLOSS_POSTGRESQL, or install the server")
    with running_server(binaries) as server:
        yield server.url


@pytest.fixture
def postgresql_url(postgresql_server):
    """Give the URL of a schema that is empty, and dropped afterwards."""
    import psycopg  # noqa: PLC0415 - optional

    schema = f"test_{uuid4().hex[:12]}"
    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    mark = "&" if "?" in postgresql_server else "?"
    yield f"{postgresql_server}{mark}options=-csearch_path%3D{schema}"
    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Enter an empty folder with the spec tiny.toml."""
    from bench_cli import write_spec  # noqa: PLC0415 - found by the path that is added above

    monkeypatch.chdir(tmp_path)
    write_spec(tmp_path)
    return tmp_path


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.cluster)])
def where(request, tmp_path):
    """Name a place for a store: a file, then a server."""
    if request.param == "sqlite":
        return str(tmp_path / "results.sqlite")
    return request.getfixturevalue("postgresql_url")


class Server:
    """A PostgreSQL server of our own, under an unprivileged user."""

    def __init__(self, binaries, folder):
        self.binaries, self.folder = binaries, folder
        # The server refuses to run for root.
        self.user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def make(self):
        if self.user:
            shutil.chown(self.folder, "postgres")
        self.call("initdb", "-U", "postgres", "-A", "trust", "-N", "-D", str(self.folder / "data"))

    def start(self):
        settings = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        log = ["-l", str(self.folder / "log")]
        self.call("pg_ctl", "-D", str(self.folder / "data"), *log, "-w", "-o", settings, "start")

    def stop(self):
        self.call("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop")

    def crash(self):
        self.call("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "restart")

    def call(self, program, *arguments):
        command = [*self.user, str(self.binaries / program), *arguments]
        # A server that inherits a pipe would keep us waiting for its end.
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder)


@contextmanager
def running_server(binaries):
    """Start a server in a folder of its own; stop it and remove the folder afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="cocoloss-pg-"))
    server = Server(binaries, folder)
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def find_binaries():
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    folders = [folder for folder in folders if (folder / "pg_ctl").exists()]
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        return None
    return folders[-1] if folders else None
