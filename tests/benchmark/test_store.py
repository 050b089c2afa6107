import math
import re
import sqlite3
import sys
import threading
import time
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from bench_helpers import at_once, fake_spec, merge, numbers, run_fake
from fake_tables import FakeTables

from cocoloss.benchmark.export import export, fold_table
from cocoloss.benchmark.plan import status_of
from cocoloss.benchmark.store import Database, Store, _went_away, meta, now
from cocoloss.benchmark.tasks import Environment, Finished, Result, Unit
from cocoloss.exceptions import CoCoError
from conftest import find_binaries, running_server

SPEC = fake_spec("good")
HERE = Environment({"host": "here", "cores": 2}, {"python": "3.11"})
BAD = Result(status="failed", error="ValueError: no")


@pytest.fixture
def store(where):
    with Store(where) as opened:
        yield opened


def unit_of(dataset="a", model="good", content=""):
    (info,) = FakeTables(content).infos([dataset])
    return Unit.of(SPEC, info, model, tasks=4, seconds=2.0)


def finished(result=None, **changes):
    result = result or Result({"score": 0.5}, [{"fold": 0, "score": 0.5}], {"x": 1}, {"n": "é"})
    return replace(Finished(result, 1.5, 2**40, HERE), **changes)


def record(store, task, done=None, unit=None):
    return store.record(unit or unit_of(), task, SPEC.hash, done or finished())


def test_a_result_is_found_by_its_key(store):
    task = unit_of().task("fold", 0)
    assert store.find([task.key]) == {}
    kept = record(store, task)
    assert store.find([task.key, "another"]) == {task.key: kept}
    (row,) = store.rows()
    assert row["seconds"] == 1.5
    assert row["peak_memory"] == 2**40
    assert row["spec_hash"] == SPEC.hash
    assert row["fingerprint"] == "content of a"
    assert now() - row["finished_at"] < timedelta(seconds=60)
    assert store.environments()[row["environment"]] == HERE


def test_a_result_is_never_replaced_and_a_failure_gives_way(store):
    task = unit_of().task("fold", 0)
    assert not record(store, task, finished(BAD, traceback="line 1", attempt=2)).ok
    (row,) = store.rows(failed_only=True)
    assert (row["attempt"], row["traceback"], row["error"]) == (2, "line 1", "ValueError: no")
    record(store, task, finished(BAD))
    first = record(store, task)
    assert first.ok
    (row,) = store.rows()
    assert (row["attempt"], row["status"], row["error"], row["traceback"]) == (4, "ok", "", "")
    assert not list(store.rows(failed_only=True))
    assert record(store, task, finished(Result({"score": 0.9}))) == first
    assert record(store, task, finished(BAD)) == first
    assert store.find([task.key])[task.key] == first


def test_numbers_and_texts_come_back_as_they_were(store):
    values = [math.nan, math.inf, -math.inf, 0.1 + 0.2, 5e-324, 1e308, -0.0]
    unit = unit_of("däta / 'set' %")
    task = unit.task("fold", 0)
    numbers = {str(value): value for value in values}
    texts = {"note": 'quotes " and \\ and \u2603', "list": [1, None, True, {"a": []}]}
    record(store, task, finished(Result(numbers, [{"fold": 0} | numbers], extra=texts)), unit)
    result = store.find([task.key])[task.key]
    assert repr(result.measures) == repr(numbers)  # NaN is not equal to itself
    assert repr(result.rows[0]) == repr({"fold": 0} | numbers)
    assert result.extra == texts


def test_many_keys_are_found_at_once(store):
    tasks = [unit_of().task("trial", n) for n in range(1203)]
    for task in tasks[::100]:
        record(store, task)
    assert set(store.find(task.key for task in tasks)) == {task.key for task in tasks[::100]}


def test_writers_at_once_leave_one_row_per_key(where, store):
    tasks = [unit_of().task("trial", n) for n in range(25)]
    kept = [{} for _ in range(4)]

    def write(number):
        with Store(where) as mine:
            for task in tasks:
                result = Result({"score": float(number)})
                kept[number][task.key] = record(mine, task, finished(result)).measures["score"]

    at_once(*[partial(write, number) for number in range(4)])
    rows = list(store.rows())
    assert len(rows) == 25
    # Whoever came second was told what the first had found.
    assert all(answers == kept[0] for answers in kept)
    assert {row["key"]: row["measures"]["score"] for row in rows} == kept[0]


def test_units_stand_open_until_they_end(store):
    one, two = unit_of("a"), unit_of("b")
    assert store.open_units([one, two], SPEC.hash) == {one.key: "open", two.key: "open"}
    store.end_unit(one, SPEC.hash, "", set())
    store.end_unit(two, SPEC.hash, "ValueError: no", set())
    assert store.open_units([one, two], SPEC.hash) == {one.key: "ok", two.key: "failed"}
    row = store.planned(SPEC.hash)[0]
    assert (row["dataset"], row["tasks"], row["info"]["n_rows"]) == ("a", 4, 100)
    assert store.open_units([one], SPEC.hash, retry_failed=True) == {
        one.key: "ok",
        two.key: "failed",  # it is not among those that are to be done
    }
    both = store.open_units([one, two], SPEC.hash, retry_failed=True)
    assert both == {one.key: "ok", two.key: "open"}


def test_rows_can_be_chosen(store):
    unit = unit_of()
    record(store, unit.task("trial", 0))
    record(store, unit.task("fold", 0))
    record(store, unit.task("fold", 1), finished(BAD))
    stages = [row["stage"] for row in store.rows(tuning=False, columns=["stage"])]
    assert stages == ["fold", "fold"]
    assert [row["part"] for row in store.rows(failed_only=True)] == ["1"]
    assert list(store.rows(spec_hash="another")) == []
    counts = {(c.stage, c.status): (c.tasks, c.seconds) for c in store.counts(SPEC.hash)}
    kinds = [("fold", "failed"), ("fold", "ok"), ("trial", "ok")]
    assert counts == dict.fromkeys(kinds, (1, 1.5))


def test_runs_are_noted_with_their_spec_and_their_end(store, monkeypatch):
    store.begin_run("run1", SPEC, HERE)
    store.sign_of_life("run1", {"done": 3})
    (run,) = store.runs()
    assert (run["state"], run["progress"], run["name"]) == ("running", {"done": 3}, "fake")
    assert run["spec"]["models"]["names"] == ["good"]
    (status,) = status_of(store)
    assert status["state"] == "running"
    with monkeypatch.context() as later:  # its driver has gone without a word
        later.setattr("cocoloss.benchmark.plan.now", lambda: now() + timedelta(minutes=5))
        (status,) = status_of(store)
    assert status["state"] == "broken"
    assert status["seconds_since_seen"] >= 300
    store.sign_of_life("run1", {"done": 4}, "finished")
    assert store.runs()[0]["state"] == "finished"


def test_a_store_is_read_without_being_made(where, store):
    run_fake(SPEC, store)
    before = numbers(store, SPEC)
    with Store(where, create=False) as reader:
        assert numbers(reader, SPEC) == before
        (status,) = status_of(reader)
    assert status["state"] == "finished"
    assert status["tasks"] == {"done": 12, "planned": 12, "ok": 12}
    assert status["units"] == {"ok": 2, "failed": 0, "open": 0}


def test_folds_are_exported_one_per_line(store, tmp_path):
    spec = fake_spec("good", "breaks", folder=tmp_path)
    run_fake(spec, store)
    table = fold_table(store)
    good = table[table["model"] == "good"]
    assert sorted(good["fold"]) == [0, 0, 1, 1, 2, 2]
    assert (good["log_loss"] == -good["balanced_accuracy"]).all()
    broken = table[table["status"] == "failed"]
    assert broken["fold"].isna().all()
    assert broken["error"].str.contains("does not converge").all()
    assert len(table) == 12


def test_stores_are_merged_and_nothing_is_run_again(store, tmp_path):
    with Store(tmp_path / "one.sqlite") as one, Store(tmp_path / "two.sqlite") as two:
        run_fake(SPEC, one, datasets=["a", "b"])
        run_fake(SPEC, two, datasets=["b", "c"])
    assert merge(store, tmp_path / "one.sqlite") == (0, 12)
    assert merge(store, tmp_path / "two.sqlite") == (12, 18)
    assert merge(store, tmp_path / "two.sqlite") == (18, 18)
    summary = run_fake(SPEC, store, datasets=["a", "b", "c"])
    assert (sum(summary.ran.values()), summary.known) == (0, 0)  # units were known to be done
    assert len({row["spec_hash"] for row in store.runs()}) == 1


def test_a_merged_result_replaces_a_failure_and_nothing_else(store, tmp_path):
    task, other, third = (unit_of().task("fold", fold) for fold in range(3))
    record(store, task, finished(BAD))
    kept = record(store, other)
    record(store, third, finished(BAD))
    with Store(tmp_path / "one.sqlite") as one:
        record(one, task)
        record(one, other, finished(Result({"score": 0.1})))
        record(one, third, finished(replace(BAD, error="ValueError: another")))
    merge(store, tmp_path / "one.sqlite")
    assert store.find([task.key])[task.key].ok
    assert store.find([other.key])[other.key] == kept
    assert store.find([third.key])[third.key].error == BAD.error


def test_only_stores_and_exported_tasks_can_be_merged(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        run_fake(SPEC, store)
        export(store, tmp_path / "folds.csv")
        (tmp_path / "other.csv").write_bytes(b"\x00\xff\x00")
        for name, message in {
            "folds.csv": "export with --tasks",
            "other.csv": r"other\.csv",
            "none.sqlite": "there is no store",
        }.items():
            with pytest.raises(CoCoError, match=message):
                merge(store, tmp_path / name)


NO_STORE = {
    "/proc/results.sqlite": "cannot be opened or made there; choose another place",  # even for root
    "text.sqlite": r"text\.sqlite: it is no SQLite file",
    ".": "it is a folder",
    "none/results.sqlite": "there is no folder",
    "notes.sqlite": r"holds the tables of another program \(notes\); choose",
    "mysql://me@here/db": "a store is a file or postgresql://",
    "postgresql://me@here:port/db": "no URL of a PostgreSQL database",
    "postgresql://me:secret@127.0.0.1:1/no": r"store postgresql://me:\*+@127\S+: no server",
    "postgresql://me@no-such-host.invalid/none": "there is no such host",
}


@pytest.fixture
def not_stores(tmp_path, monkeypatch):
    """Enter a folder with files that are no stores."""
    monkeypatch.chdir(tmp_path)
    Path("text.sqlite").write_text("not a database at all, but a long text" * 50)
    with closing(sqlite3.connect("notes.sqlite")) as connection:
        connection.execute("CREATE TABLE notes (text)")
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(("where", "message"), NO_STORE.items(), ids=NO_STORE)
def test_what_is_no_store_is_told_in_one_line_and_stays_as_it_is(not_stores, where, message):
    before = contents(not_stores)
    with pytest.raises(CoCoError, match=message) as refusal:
        Store(where)
    assert "\n" not in str(refusal.value)
    assert "secret" not in str(refusal.value)
    assert contents(not_stores) == before


def test_what_is_only_read_must_be_there(not_stores):
    before = contents(not_stores)
    with pytest.raises(CoCoError, match=r"there is no store none"):
        Store("none.sqlite", create=False)
    with pytest.raises(CoCoError, match="holds no benchmark"):
        Store("notes.sqlite", create=False)
    assert contents(not_stores) == before


@pytest.mark.cluster
def test_a_database_that_is_not_there_is_told(postgresql_server):
    url = re.sub(r"/postgres(\?|$)", r"/no_such_database\1", postgresql_server)
    with pytest.raises(CoCoError, match="there is no such database"):
        Store(url)


def test_a_full_disk_stops_with_one_line_and_loses_nothing_that_was_kept(tmp_path):
    path = tmp_path / "results.sqlite"

    def nearly_full(connection, _):
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 6}")

    spec = fake_spec("good", "better", "best", trials=12)
    with Store(path) as store:
        sa.event.listen(store.database.engine, "connect", nearly_full)
        store.database.engine.dispose()
        with pytest.raises(CoCoError, match=r"results\.sqlite: the disk is full; free some space"):
            run_fake(spec, store)
    with Store(path) as store:
        before = len(list(store.rows()))
        assert before > 0
        assert sum(run_fake(spec, store).ran.values()) == 2 * 3 * 15 - before


def test_a_store_that_became_read_only_says_so(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        with store.database.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA query_only = ON")
        with pytest.raises(CoCoError, match="it is read-only; choose another place"):
            run_fake(SPEC, store)


def test_a_damaged_file_is_told(tmp_path):
    path = tmp_path / "results.sqlite"
    with Store(path) as store:
        run_fake(SPEC, store)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\x5a" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(CoCoError, match="damaged"), Store(path) as store:
        run_fake(SPEC, store)


def test_tables_of_another_version_are_refused(where):
    with Store(where) as store:
        change = sa.update(meta).values(value="99")
        store.database.writing(lambda c: c.execute(change))
    with pytest.raises(CoCoError, match="another version of cocoloss"):
        Store(where)


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

    at_once(*[make] * 8)
    assert refusals == []
    with Store(where) as store:
        assert store.runs() == []


def test_a_store_is_read_from_a_read_only_disk(tmp_path):
    path = tmp_path / "results.sqlite"
    with Store(path) as store:
        run_fake(SPEC, store)
        expected = numbers(store, SPEC)
    opened = Database(path, create=False)
    opened.engine = opened._engine(read_only=True, immutable=True)  # noqa: SLF001 - as on a CD
    reader = Store(path, create=False)
    reader.database = opened
    assert numbers(reader, SPEC) == expected
    reader.close()


@pytest.fixture(scope="module")
def own_server():
    """Give a server that tests may stop and crash."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL binaries here")
    with running_server(binaries) as server:
        yield server


@contextmanager
def away_for_a_moment(server):
    server.stop()
    back = threading.Timer(0.3, server.start)
    back.start()
    yield
    back.join()


@pytest.mark.cluster
def test_a_server_that_is_restarted_costs_nothing(own_server):
    with Store(own_server.url) as store:
        run_fake(SPEC, store, datasets=["a"])
        with away_for_a_moment(own_server):
            assert run_fake(SPEC, store, datasets=["a", "b"]).ran["ok"] == 6
        with away_for_a_moment(own_server):
            assert len(list(store.rows(spec_hash=SPEC.hash))) == 12


@pytest.mark.cluster
def test_tables_of_another_program_on_a_server_are_not_ours(postgresql_url):
    engine = sa.create_engine(postgresql_url.replace("postgresql:", "postgresql+psycopg:", 1))
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE notes (text text)"))
    Store(postgresql_url).close()  # beside others' tables
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE cocoloss_meta"))
    engine.dispose()
    with pytest.raises(CoCoError, match="holds the tables of another program"):
        Store(postgresql_url)


def test_a_server_that_restarts_is_told_from_one_that_refuses_by_its_state():
    psycopg = pytest.importorskip("psycopg")
    gone = ["57P01", "57P02", "57P03", "08000", "08006", None]  # none if nobody answered
    for state in [*gone, "53100", "42501", "40001"]:
        kind = psycopg.errors.lookup(state) if state else psycopg.OperationalError
        error = sa.exc.OperationalError("SELECT 1", {}, kind("Connection refused, says the disk"))
        assert _went_away(error) == (state in gone), state


@pytest.mark.cluster
@pytest.mark.parametrize("said", ["not yet accepting connections", "in recovery mode"])
def test_a_server_that_recovers_from_a_crash_is_waited_for(own_server, said):
    psycopg = pytest.importorskip("psycopg")
    refusals = [psycopg.OperationalError(f"FATAL:  the database system is {said}")] * 3

    def refuse(*_):
        if refusals:
            raise refusals.pop()

    with Store(own_server.url) as store:
        store.database.engine.dispose()
        sa.event.listen(store.database.engine, "do_connect", refuse)
        store.runs()
    assert refusals == []


@pytest.mark.cluster
def test_a_server_that_crashes_again_and_again_is_waited_for(own_server):
    spec = fake_spec("good", trials=30, sleep=0.02)
    with Store(own_server.url) as store:
        crashes = threading.Thread(
            target=lambda: [(time.sleep(0.2), own_server.crash()) for _ in range(3)]
        )
        crashes.start()
        summary = run_fake(spec, store, datasets=["a", "b"])
        crashes.join()
        assert summary.ran == {"ok": 66, "failed": 0, "timeout": 0}
