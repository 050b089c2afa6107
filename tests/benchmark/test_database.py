import re
import shutil
import sqlite3
import sys
import tempfile
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa
from bench_helpers import fake_spec, numbers, run_fake

from cocoloss.benchmark import store
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.tasks import Result
from cocoloss.exceptions import CoCoError
from conftest import Server, find_binaries

SPEC = fake_spec("good")


def one_line_of(refusal):
    line = str(refusal.value)
    assert "\n" not in line
    return line


def test_a_full_disk_stops_with_one_line_and_loses_nothing_that_was_kept(tmp_path, monkeypatch):
    path = tmp_path / "results.sqlite"

    def nearly_full(connection, _):
        connection.execute("PRAGMA max_page_count = 40")

    with Store(path) as store:
        sa.event.listen(store.database.engine, "connect", nearly_full)
        store.database.engine.dispose()
        spec = fake_spec(*(f"model{n}" for n in range(9)), trials=20)
        with pytest.raises(CoCoError) as refusal:
            run_fake(spec, store)
    assert "results.sqlite: the disk is full; free some space" in one_line_of(refusal)
    with Store(path) as store:
        before = len(list(store.rows()))
        assert before > 0
        summary = run_fake(spec, store)
        assert sum(summary.ran.values()) == 2 * 9 * 23 - before


def test_a_read_only_place_is_refused(tmp_path):
    # /proc takes no files, not even from root.
    with pytest.raises(CoCoError, match="cannot be opened or made there; choose another place"):
        Store("/proc/results.sqlite")


def test_a_store_that_became_read_only_says_so(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        with store.database.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA query_only = ON")
        with pytest.raises(CoCoError, match="it is read-only; choose another place") as refusal:
            run_fake(SPEC, store)
        one_line_of(refusal)


def test_what_is_no_store_is_refused(tmp_path):
    (tmp_path / "text.sqlite").write_text("not a database at all, but a long text" * 50)
    with pytest.raises(CoCoError, match=r"text\.sqlite: it is no SQLite file"):
        Store(tmp_path / "text.sqlite")
    with pytest.raises(CoCoError, match="it is a folder"):
        Store(tmp_path)
    with pytest.raises(CoCoError, match="there is no folder"):
        Store(tmp_path / "none" / "results.sqlite")
    with pytest.raises(CoCoError, match=r"there is no store .*none"):
        Store(tmp_path / "none.sqlite", create=False)
    assert not (tmp_path / "none.sqlite").exists()
    sqlite3.connect(tmp_path / "other.sqlite").execute("CREATE TABLE cats (name)").close()
    with pytest.raises(CoCoError, match="holds no benchmark"):
        Store(tmp_path / "other.sqlite", create=False)


def test_a_damaged_file_is_told(tmp_path):
    path = tmp_path / "results.sqlite"
    with Store(path) as store:
        run_fake(SPEC, store)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\x5a" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(CoCoError, match="damaged") as refusal, Store(path) as store:
        run_fake(SPEC, store)
    one_line_of(refusal)


def test_tables_of_another_version_are_refused(where):
    with Store(where) as store:
        change = sa.update(store.meta).values(value="99")
        store.database.writing(lambda c: c.execute(change))
    with pytest.raises(CoCoError, match="another version of cocoloss"):
        Store(where)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://nobody@127.0.0.1:1/none", "no server answers there"),
        ("postgresql://nobody@no-such-host.invalid/none", "there is no such host"),
        ("mysql://me@here/db", "a store is a file or postgresql://"),
        ("postgresql://me@here:port/db", "no URL of a PostgreSQL database"),
    ],
)
def test_a_server_that_is_not_there_is_told_at_once(url, message):
    with pytest.raises(CoCoError, match=message) as refusal:
        Store(url)
    one_line_of(refusal)


def test_a_database_that_is_not_there_is_told(postgresql_server):
    url = re.sub(r"/postgres(\?|$)", r"/no_such_database\1", postgresql_server)
    with pytest.raises(CoCoError, match="there is no such database"):
        Store(url)


def test_the_password_is_not_shown():
    with pytest.raises(CoCoError, match="store") as refusal:
        Store("postgresql://me:secret@127.0.0.1:1/db")
    assert "secret" not in one_line_of(refusal)


def test_without_psycopg_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(CoCoError, match=r"pip install 'cocoloss\[postgresql\]'"):
        Store("postgresql://me@127.0.0.1/db")


def test_many_may_make_the_same_store_at_once(where):
    barrier = threading.Barrier(8)
    refusals = []

    def make():
        barrier.wait()
        try:
            Store(where).close()
        except CoCoError as error:
            refusals.append(error)

    makers = [threading.Thread(target=make) for _ in range(8)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert refusals == []
    with Store(where) as store:
        assert store.runs() == []


def test_a_store_is_read_from_a_read_only_disk(tmp_path):
    path = tmp_path / "results.sqlite"
    with Store(path) as store:
        run_fake(SPEC, store)
        expected = numbers(store, SPEC)
    opened = store.Database(path, create=False)
    opened.engine = opened._engine(read_only=True, immutable=True)  # noqa: SLF001 - as on a CD
    reader = Store(path, create=False)
    reader.database = opened
    assert numbers(reader, SPEC) == expected
    reader.close()


def test_a_server_that_is_restarted_costs_nothing(tmp_path):
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL binaries here")
    folder = Path(tempfile.mkdtemp(prefix="cocoloss-pg-"))
    server = Server(binaries, folder)
    server.make()
    server.start()
    try:
        with Store(server.url) as store:
            run_fake(SPEC, store, datasets=["a"])
            server.stop()
            back = threading.Timer(0.7, server.start)
            back.start()
            summary = run_fake(SPEC, store, datasets=["a", "b"])
            back.join()
            assert summary.ran["ok"] == 6
            server.stop()
            back = threading.Timer(0.7, server.start)
            back.start()
            assert len(list(store.rows())) == 12
            back.join()
    finally:
        server.stop()
        shutil.rmtree(folder)


def test_results_hold_nothing_that_a_database_has_not():
    with pytest.raises(TypeError, match="which JSON has not"):
        store.dump_json(Result(extra={"model": object()}).extra)


def test_a_server_is_called_as_the_user_wrote_it():
    told = r"the store postgresql://me@127\.0\.0\.1:1/none: no server"
    with pytest.raises(CoCoError, match=told):
        store.Database("postgresql://me@127.0.0.1:1/none", create=False)
