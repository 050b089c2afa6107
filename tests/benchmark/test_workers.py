import gc
import importlib
import json
import os
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from bench_helpers import fake_spec, numbers, run_fake
from distributed import Client
from fake_tables import FakeTables, NotedTable, NotedTables

from cluster import Processes
from cocoloss.benchmark import workers
from cocoloss.benchmark.plan import make_plan
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.tasks import SOURCE
from cocoloss.benchmark.workers import DaskPool, TooLongError, Watch
from cocoloss.exceptions import CoCoError

pytestmark = pytest.mark.cluster


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "results.sqlite") as opened:
        yield opened


def run_on(pool, spec, store, **options):
    try:
        return run_fake(spec, store, pool=pool, **options)
    finally:
        pool.close()


def in_this_process(spec, tmp_path):
    with Store(tmp_path / "here.sqlite") as store:
        run_fake(spec, store)
        return numbers(store, spec)


def test_workers_that_die_hang_or_fail_cost_their_tasks_and_nothing_else(
    store, tmp_path, monkeypatch
):
    monkeypatch.setattr(workers, "GRACE", 0.5)
    misfits = ("breaks", "kills-once", "kills-always", "hangs", "seizes")
    limits = {"seconds_per_task": 7}  # the good ones need less, however busy the machine
    spec = fake_spec("good", *misfits, folder=tmp_path, trials=1, outer=2, limits=limits)
    pool = DaskPool(spec, "test", workers=2)
    summary = run_on(pool, spec, store, datasets=["a"])
    assert summary.ran == {"ok": 14, "failed": 2, "timeout": 2}
    rows = {r["model"]: r for r in store.rows(spec_hash=spec.hash) if r["part"] == "1"}
    assert rows["breaks"]["error"] == "RuntimeError: fold 1 does not converge"
    # A worker that is killed costs a retry ...
    assert rows["kills-once"]["status"] == "ok"
    assert rows["kills-once"]["attempt"] >= 2
    # ... unless the task kills every worker that it gets.
    assert rows["kills-always"]["error"].startswith("WorkerDied: ")
    assert 3 <= rows["kills-always"]["attempt"] < 20  # and it gets only some
    for name in ("hangs", "seizes"):
        assert rows[name]["error"].startswith("TooLongError: took longer than 7 s")


def test_a_worker_elsewhere_that_can_answer_nobody_is_ended_while_others_work(
    store, monkeypatch, cluster
):
    monkeypatch.setattr(workers, "GRACE", 0.5)
    spec = fake_spec("seizes", "good", trials=9, outer=2, limits={"seconds_per_task": 7})
    pool = DaskPool(spec, "test", scheduler=cluster.address)
    wait, looks = pool.wait, [time.monotonic()]
    pool.wait = lambda seconds: looks.append(time.monotonic()) or wait(seconds)
    summary = run_on(pool, spec, store, datasets=["a"])
    assert summary.ran == {"ok": 21, "failed": 0, "timeout": 1}  # the call itself takes an hour
    assert max(np.diff(looks)) < 60  # and the driver does not wait for it


def begin_on(pool, spec, table):
    """Send a task on a table."""
    (unit,) = make_plan(spec, FakeTables().infos(["a"])).units
    pool.share("content of a", table)
    pool.submit(unit.task("fold", 1, {"x": 0.5}), "content of a")


def test_a_busy_machine_does_not_hide_why_a_run_ends(monkeypatch, cluster):
    close = Client.close

    def late(client, timeout):
        close(client)
        raise TimeoutError(f"timed out after {timeout} s.")

    monkeypatch.setattr(Client, "close", late)
    DaskPool(fake_spec("good"), "test", scheduler=cluster.address).close()


def test_a_pool_closes_though_a_worker_can_answer_nobody():
    spec = fake_spec("seizes")
    pool = DaskPool(spec, "test", workers=1)
    begin_on(pool, spec, FakeTables().load("a"))
    while not pool.running():
        pool.wait(0.05)
    time.sleep(0.2)  # it is in the call by now
    pool.close()  # which would take an hour


def ended_on(table, cluster):
    """Return how a task on a table ends."""
    spec = fake_spec("good")
    pool = DaskPool(spec, "test", scheduler=cluster.address)
    try:
        begin_on(pool, spec, table)
        ended, latest = [], time.monotonic() + 600
        while not ended and time.monotonic() < latest:
            ended = pool.wait(0.1)
        return ended[0][1]
    finally:
        pool.close()


def test_a_table_that_workers_died_with_is_sent_again(tmp_path, cluster):
    # Dask gives a table up after four deaths, whoever is their cause.
    finished = ended_on(NotedTable("content of a", tmp_path, deaths=4), cluster)
    assert (finished.result.status, finished.attempt) == ("ok", 1)


class BrokenTable:
    def __reduce__(self):
        return workers.readable_time, ("no number",)


def test_what_goes_wrong_on_the_way_to_a_task_is_kept_with_its_traceback(cluster):
    finished = ended_on(BrokenTable(), cluster)
    assert finished.result.status == "failed"
    assert "in readable_time" in finished.traceback


def test_a_task_that_never_began_is_told_from_one_that_killed_its_workers(
    tmp_path, monkeypatch, cluster
):
    monkeypatch.setattr(workers, "SENDS", 1)
    ended = ended_on(NotedTable("content of a", tmp_path, deaths=4), cluster)
    assert ended.result.status == "failed"
    assert "workers died before it began, 1 times: for lack of memory" in ended.result.error


def test_a_table_is_sent_once_to_each_worker(cluster, store, tmp_path):
    spec = fake_spec("one", "two", "three", trials=4)
    pool = DaskPool(spec, "test", scheduler=cluster.address)
    run_on(pool, spec, store, tables=NotedTables(tmp_path))
    unpacked = [path.read_text().split("\n")[:-1] for path in tmp_path.glob("unpacked-*")]
    assert 1 <= len(unpacked) <= 2
    for of_worker in unpacked:
        assert len(of_worker) == len(set(of_worker))
    assert numbers(store, spec) == in_this_process(spec, tmp_path)


@pytest.fixture
def by_hand(tmp_path):
    """A scheduler without workers; a test may do to it what it likes."""
    processes = Processes(tmp_path)
    yield processes
    processes.stop()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A scheduler and two workers, of which a nanny starts a new one where one is ended."""
    processes = Processes(tmp_path_factory.mktemp("cluster"))
    processes.start_workers(2)
    yield processes
    processes.stop()


def test_a_cluster_started_by_hand_gives_the_same_numbers(cluster, store, tmp_path, monkeypatch):
    (tmp_path / "own_model.py").write_text("def make():\n    return 'made here'\n")
    spec = fake_spec("good", "marks", folder=tmp_path, trials=4, sleep=0.02)
    spec = spec.changed(own={"mine": "own_model:make"})
    files = [str(tmp_path / "own_model.py")]
    summary = run_on(DaskPool(spec, "test", scheduler=cluster.address, files=files), spec, store)
    assert summary.units == {"ok": 6}
    worked = [path.name for path in tmp_path.glob("worked-*")]
    assert worked  # by one of them or both: who gets which task is for Dask to say
    assert f"worked-{os.getpid()}" not in worked
    monkeypatch.syspath_prepend(str(tmp_path))
    assert numbers(store, spec) == in_this_process(spec, tmp_path)


def test_a_scheduler_that_goes_ends_the_run_with_one_line(by_hand, store, tmp_path):
    by_hand.start_workers()
    spec = fake_spec("good", "stops-scheduler", folder=tmp_path, trials=50, sleep=0.05)
    pool = DaskPool(spec, "test", scheduler=by_hand.address)

    def stop(*_):
        by_hand.all[0].kill()

    pool._on_start = stop  # noqa: SLF001
    pool._client.subscribe_topic(pool._topic, stop)  # noqa: SLF001
    with pytest.raises(CoCoError, match=r"lost the scheduler at .*; run the same command"):
        run_on(pool, spec, store)
    assert store.runs()[-1]["state"] == "broken"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("tcp://127.0.0.1:1", "no Dask scheduler answers at tcp://127.0.0.1:1; start"),
        ("nonsense", "'nonsense' is no address .* like tcp://10.0.0.1:8786"),
        ("http://x", "'http://x' is no address .* like tcp://10.0.0.1:8786"),
    ],
)
def test_an_address_without_a_scheduler_is_told_quietly(address, message, capfd, monkeypatch):
    monkeypatch.setattr(workers, "CONNECT_SECONDS", 0.2)
    with pytest.raises(CoCoError, match=message):
        DaskPool(fake_spec("good"), "test", scheduler=address)
    gc.collect()  # a client that was dropped would say so now
    assert capfd.readouterr().err == ""


def test_without_dask_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(CoCoError, match=r"pip install 'cocoloss\[benchmark\]'"):
        DaskPool(fake_spec("good"), "test")


def answering(**versions):
    """Return a client of one worker that has other versions."""

    def run(asked):
        here = asked()
        return {"tcp://10.0.0.7:1": replace(here, versions=here.versions | versions)}

    return SimpleNamespace(run=run)


def without_cocoloss(asked):
    raise ModuleNotFoundError("No module named 'cocoloss'")


@pytest.mark.parametrize(
    ("client", "message"),
    [
        (answering(cocoloss="0.0.1"), r"7:1 has cocoloss 0\.0\.1 .*, here is .*; install"),
        (answering(**{SOURCE: "abc"}), r"\(source abc\), here is .* \(source [0-9a-f]{12}\); inst"),
        (SimpleNamespace(run=without_cocoloss), "of here cannot import cocoloss .*; install the"),
    ],
)
def test_workers_with_another_version_or_none_are_refused(client, message):
    with pytest.raises(CoCoError, match=message):
        workers.check_workers(client, "here")


def test_a_worker_that_dies_as_it_is_asked_what_it_has_does_not_end_a_run():
    lost = iter([OSError("in <TCP (closed) Scheduler Broadcast>: Stream is closed")])

    def run(asked):
        for error in lost:
            raise error
        return {"tcp://10.0.0.7:1": asked()}

    workers.check_workers(SimpleNamespace(run=run, nthreads=dict), "here")


def test_a_worker_of_several_threads_runs_one_task_at_a_time_if_it_comes_later_and_is_refused(
    by_hand, store, tmp_path
):
    spec = fake_spec("alone", "alone-too", folder=tmp_path, trials=4)
    pool = DaskPool(spec, "test", scheduler=by_hand.address)
    by_hand.start_workers(threads=3)
    pool._client.wait_for_workers(1)  # noqa: SLF001
    assert run_on(pool, spec, store).units == {"ok": 4}
    told = r"has 3 threads, .* `dask worker tcp://\S+ --nthreads 1 --nworkers auto`"
    with pytest.raises(CoCoError, match=told):
        DaskPool(spec, "test", scheduler=by_hand.address)


def test_a_limit_waits_for_the_end_of_an_import(tmp_path, monkeypatch):
    (tmp_path / "slow_to_import.py").write_text(
        "import time\n\nfor _ in range(30):\n    time.sleep(0.01)\ncomplete = True\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    imported = []

    def work():
        imported.append(importlib.import_module("slow_to_import"))
        while True:
            pass

    with pytest.raises(TooLongError):
        Watch(seconds=0.1).call(work)
    assert imported[0].complete


def test_all_is_imported_when_the_clock_of_the_first_task_starts(tmp_path):
    (tmp_path / "own_slow.py").write_text(
        "from sklearn.tree import DecisionTreeClassifier as make\n"
    )
    script = """
        import json, sys
        from types import SimpleNamespace
        from cocoloss.benchmark import workers
        from cocoloss.benchmark.tasks import TableInfo, Unit
        from cocoloss.benchmark.spec import Spec
        from sklearn.datasets import load_iris

        spec = Spec.from_dict({
            "name": "cold",
            "kind": "accuracy",
            "data": {"source": "sklearn"},
            "models": {"names": ["coco-default"], "own": {"mine": "own_slow:make"}},
            "folds": {"outer": 2},
        })
        X, y = load_iris(return_X_y=True)
        table = SimpleNamespace(X=X[::5], y=y[::5])
        info = TableInfo("iris", 30, 4, 3, "")
        at_start = []
        call = workers.Watch.call

        def noting(watch, work):
            at_start.append(set(sys.modules))
            return call(watch, work)

        workers.Watch.call = noting
        for model, stage in (("coco-default", "folds"), ("mine", "fold")):
            unit = Unit.of(spec, info, model, tasks=1, seconds=1.0)
            task = unit.task(stage, "0", {"point": {}})
            done = workers.run_task(task, table, spec)
            assert done.result.ok, done.traceback
        late = {name.partition(".")[0] for name in set(sys.modules) - at_start[0]}
        print(json.dumps(sorted(late)))
    """
    answer = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        check=True,
    )
    heavy = {"torch", "sklearn", "scipy", "optuna", "pandas", "cocoloss", "own_slow"}
    assert heavy & set(json.loads(answer.stdout)) == set()
