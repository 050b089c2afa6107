import math
import re
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from bench_helpers import FakeTables, fake_spec, numbers, run_fake

from cocoloss.benchmark.export import export, fold_table, merge, task_table
from cocoloss.benchmark.plan import status_of
from cocoloss.benchmark.store import Database, Store, _went_away, now
from cocoloss.benchmark.tasks import Environment, Finished, Result, Unit
from cocoloss.exceptions import CoCoError
from conftest import Server, find_binaries

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


def test_a_result_is_never_replaced(store):
    task = unit_of().task("fold", 0)
    first = record(store, task)
    second = record(store, task, finished(Result({"score": 0.9})))
    assert second == first
    assert record(store, task, finished(BAD)) == first
    assert store.find([task.key])[task.key] == first


def test_a_failure_gives_way_and_attempts_are_counted(store):
    task = unit_of().task("fold", 0)
    assert not record(store, task, finished(BAD, traceback="line 1", attempt=2)).ok
    (row,) = store.rows(failed_only=True)
    assert (row["attempt"], row["traceback"], row["error"]) == (2, "line 1", "ValueError: no")
    record(store, task, finished(BAD))
    assert record(store, task).ok
    (row,) = store.rows()
    assert (row["attempt"], row["status"], row["error"], row["traceback"]) == (4, "ok", "", "")
    assert not list(store.rows(failed_only=True))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.1 + 0.2, 5e-324, 1e308, -0.0])
def test_every_number_comes_back_as_it_was(store, value):
    task = unit_of().task("fold", 0)
    record(store, task, finished(Result({"m": value}, [{"fold": 0, "m": value}])))
    result = store.find([task.key])[task.key]
    for found in (result.measures["m"], result.rows[0]["m"]):
        assert repr(found) == repr(value)


def test_texts_come_back_as_they_were(store):
    task = unit_of("däta / 'set' %").task("fold", 0)
    odd = Result(extra={"note": 'quotes " and \\ and \u2603', "list": [1, None, True, {"a": []}]})
    record(store, task, finished(odd), unit_of("däta / 'set' %"))
    assert store.find([task.key])[task.key].extra == odd.extra


def test_many_keys_are_found_at_once(store):
    unit = unit_of()
    tasks = [unit.task("trial", n) for n in range(1203)]
    for task in tasks[::50]:
        record(store, task)
    assert set(store.find(task.key for task in tasks)) == {task.key for task in tasks[::50]}


def test_writers_at_once_leave_one_row_per_key(where, store):
    tasks = [unit_of().task("trial", n) for n in range(25)]
    kept = [{} for _ in range(4)]

    def write(number):
        with Store(where) as mine:
            for task in tasks:
                result = Result({"score": float(number)})
                kept[number][task.key] = record(mine, task, finished(result)).measures["score"]

    writers = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
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


def test_a_changed_table_opens_its_unit_and_outdates_what_it_found(store):
    before, after = unit_of(), unit_of(content=" changed")
    store.open_units([before], SPEC.hash)
    old = before.task("fold", 0)
    record(store, old, unit=before)
    store.end_unit(before, SPEC.hash, "", {old.key})
    assert store.open_units([after], SPEC.hash) == {after.key: "open"}
    assert list(store.rows(spec_hash=SPEC.hash)) == []
    assert len(list(store.rows())) == 1  # it is kept all the same
    store.open_units([before], SPEC.hash)
    store.end_unit(before, SPEC.hash, "", {old.key})
    assert [row["key"] for row in store.rows(spec_hash=SPEC.hash)] == [old.key]


def test_results_that_no_longer_lead_to_the_end_are_not_current(store):
    unit = unit_of()
    store.open_units([unit], SPEC.hash)
    tasks = [unit.task("fold", 0, {"x": x}) for x in range(3)]
    for task in tasks:
        record(store, task)
    store.end_unit(unit, SPEC.hash, "", {tasks[2].key})
    assert [row["key"] for row in store.rows(spec_hash=SPEC.hash)] == [tasks[2].key]
    assert sum(count.tasks for count in store.counts(SPEC.hash)) == 1


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


def test_runs_are_noted_with_their_spec_and_their_end(store):
    store.begin_run("run1", SPEC, HERE)
    store.sign_of_life("run1", {"done": 3})
    (run,) = store.runs()
    assert (run["state"], run["progress"], run["name"]) == ("running", {"done": 3}, "fake")
    assert run["spec"]["models"]["names"] == ["good"]
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


def test_the_driver_that_has_gone_without_a_word_is_noticed(store, monkeypatch):
    store.begin_run("run1", SPEC, HERE)
    monkeypatch.setattr("cocoloss.benchmark.plan.now", lambda: now() + timedelta(minutes=5))
    (status,) = status_of(store)
    assert status["state"] == "broken"
    assert status["seconds_since_seen"] >= 300


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


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_a_new_store_starts_from_exported_tasks(store, tmp_path, name):
    spec = fake_spec("good", "breaks", folder=tmp_path)
    run_fake(spec, store)
    assert export(store, tmp_path / name, tasks=True) == 24
    with Store(tmp_path / "new.sqlite") as new:
        assert merge(new, tmp_path / name) == (0, 24)
        summary = run_fake(spec, new)
        assert (sum(summary.ran.values()), summary.known) == (0, 0)  # the units are done
        assert numbers(new, spec) == numbers(store, spec)
        assert task_table(new).to_csv() == task_table(store).to_csv()


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


def test_only_exported_tasks_can_be_merged(store, tmp_path):
    run_fake(SPEC, store)
    export(store, tmp_path / "folds.csv")
    with pytest.raises(CoCoError, match="export with --tasks"):
        merge(store, tmp_path / "folds.csv")
    (tmp_path / "other.csv").write_bytes(b"\x00\xff\x00")
    with pytest.raises(CoCoError, match=r"other\.csv"):
        merge(store, tmp_path / "other.csv")
    with pytest.raises(CoCoError, match="there is no store"):
        merge(store, tmp_path / "none.sqlite")
    with pytest.raises(CoCoError, match=r"must end in \.csv or \.parquet"):
        export(store, tmp_path / "rows.xlsx")


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
    opened = Database(path, create=False)
    opened.engine = opened._engine(read_only=True, immutable=True)  # noqa: SLF001 - as on a CD
    reader = Store(path, create=False)
    reader.database = opened
    assert numbers(reader, SPEC) == expected
    reader.close()


@pytest.fixture
def own_server():
    """Give a server that a test may stop and crash."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL binaries here")
    folder = Path(tempfile.mkdtemp(prefix="cocoloss-pg-"))
    server = Server(binaries, folder)
    server.make()
    server.start()
    yield server
    server.stop()
    shutil.rmtree(folder)


@pytest.mark.cluster
def test_a_server_that_is_restarted_costs_nothing(own_server):
    with Store(own_server.url) as store:
        run_fake(SPEC, store, datasets=["a"])
        own_server.stop()
        back = threading.Timer(0.7, own_server.start)
        back.start()
        summary = run_fake(SPEC, store, datasets=["a", "b"])
        back.join()
        assert summary.ran["ok"] == 6
        own_server.stop()
        back = threading.Timer(0.7, own_server.start)
        back.start()
        assert len(list(store.rows())) == 12
        back.join()


def test_results_hold_nothing_that_a_database_has_not():
    with pytest.raises(TypeError, match="which JSON has not"):
        store.dump_json(Result(extra={"model": object()}).extra)


def test_a_server_is_called_as_the_user_wrote_it():
    told = r"the store postgresql://me@127\.0\.0\.1:1/none: no server"
    with pytest.raises(CoCoError, match=told):
        Database("postgresql://me@127.0.0.1:1/none", create=False)


def foreign_file(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE notes (text)")
    connection.close()
    return path.read_bytes()


def test_the_database_of_another_program_stays_as_it_is(tmp_path):
    before = foreign_file(tmp_path / "notes.sqlite")
    with pytest.raises(CoCoError, match=r"holds the tables of another program \(notes\); choose"):
        Store(tmp_path / "notes.sqlite")
    assert (tmp_path / "notes.sqlite").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["notes.sqlite"]


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


def refused(state, words="as a server says it"):
    """Return an error as SQLAlchemy hands it on; without a state if nobody answered."""
    psycopg = pytest.importorskip("psycopg")
    kind = psycopg.errors.lookup(state) if state else psycopg.OperationalError
    return sa.exc.OperationalError("SELECT 1", {}, kind(words))


@pytest.mark.parametrize("state", ["57P01", "57P02", "57P03", "08000", "08006", None])
def test_a_server_that_restarts_is_known_by_its_state(state):
    assert _went_away(refused(state, "the database system is in recovery mode"))


@pytest.mark.parametrize("state", ["53100", "42501", "40001"])
def test_a_server_that_refuses_has_not_gone(state):
    assert not _went_away(refused(state, "Connection refused, says the disk"))


@pytest.mark.cluster
def test_a_server_that_crashes_again_and_again_is_waited_for(own_server):
    spec = fake_spec("good", trials=30, sleep=0.02)
    with Store(own_server.url) as store:
        crashes = threading.Thread(
            target=lambda: [(time.sleep(0.4), own_server.crash()) for _ in range(3)]
        )
        crashes.start()
        summary = run_fake(spec, store, datasets=["a", "b"])
        crashes.join()
        assert summary.ran == {"ok": 66, "failed": 0, "timeout": 0}
