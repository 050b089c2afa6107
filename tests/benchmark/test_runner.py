import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import fake
import pytest
import sqlalchemy as sa
from bench_helpers import FakeTables, fake_spec, numbers, run_fake

from cocoloss.benchmark import plan, runner, workers
from cocoloss.benchmark.plan import Tables, make_plan, remainder
from cocoloss.benchmark.runner import Progress, Runner, own_files, prepare, run_benchmark
from cocoloss.benchmark.spec import load_spec
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.tasks import Environment, Finished, Result
from cocoloss.benchmark.workers import HerePool, Running
from cocoloss.cli.bench_progress import LineProgress
from cocoloss.exceptions import CoCoError


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "results.sqlite") as opened:
        yield opened


def failures(store, spec):
    rows = store.rows(spec_hash=spec.hash, failed_only=True)
    return {(row["dataset"], row["model"], row["part"]): row for row in rows}


def test_every_task_is_run_once(store):
    spec = fake_spec("good", "better")
    summary = run_fake(spec, store)
    assert summary.ran == {"ok": 24, "failed": 0, "timeout": 0}
    assert summary.units == {"ok": 4}
    rows = list(store.rows(spec_hash=spec.hash))
    assert len({row["key"] for row in rows}) == len(rows) == 24
    assert {row["attempt"] for row in rows} == {1}


def test_a_finished_benchmark_is_not_run_again(store):
    spec = fake_spec("good")
    run_fake(spec, store)
    summary = run_fake(spec, store)
    assert sum(summary.ran.values()) == summary.known == 0


def test_the_same_spec_gives_the_same_numbers(tmp_path):
    spec = fake_spec("good", "better")
    found = []
    for name in ("one", "two"):
        with Store(tmp_path / f"{name}.sqlite") as store:
            run_fake(spec, store)
            found.append(numbers(store, spec))
    assert found[0] == found[1]


def test_a_dataset_and_a_model_more_rerun_nothing(store):
    run_fake(fake_spec("good"), store, datasets=["a"])
    summary = run_fake(fake_spec("good", "better"), store, datasets=["a", "b"])
    assert summary.ran["ok"] == 18  # of 24


class Impatient(Progress):
    """Stops the run after so many tasks."""

    def __init__(self, after):
        super().__init__()
        self.after = after

    def task_ended(self, unit, task, finished):
        super().task_ended(unit, task, finished)
        self.after -= 1
        if self.after == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("after", [1, 2, 5, 11])
def test_a_stopped_run_goes_on_as_if_it_had_never_stopped(tmp_path, after):
    spec = fake_spec("good", "better")
    with Store(tmp_path / "whole.sqlite") as store:
        run_fake(spec, store)
        expected = numbers(store, spec)
    with Store(tmp_path / "stopped.sqlite") as store:
        tables = FakeTables()
        units = make_plan(spec, tables.infos(["a", "b"])).units
        runner = Runner(spec, units, tables, store, Impatient(after))
        with pytest.raises(KeyboardInterrupt):
            runner.run(HerePool(spec))
        assert store.runs()[-1]["state"] == "stopped"
        assert len(list(store.rows())) == after
        summary = run_fake(spec, store)
        assert summary.ran["ok"] == 24 - after
        assert numbers(store, spec) == expected


def test_a_failing_model_is_a_recorded_failure_and_not_a_stop(store, tmp_path):
    spec = fake_spec("good", "breaks", folder=tmp_path)
    summary = run_fake(spec, store)
    assert summary.ran == {"ok": 22, "failed": 2, "timeout": 0}
    assert summary.units == {"ok": 2, "failed": 2}
    found = failures(store, spec)
    assert set(found) == {("a", "breaks", "1"), ("b", "breaks", "1")}
    row = found["a", "breaks", "1"]
    assert row["error"] == "RuntimeError: fold 1 does not converge"
    assert 'raise RuntimeError("fold 1 does not' in row["traceback"]
    assert 'File "cocoloss/benchmark/workers.py"' in row["traceback"]
    assert str(Path(workers.__file__).parents[2]) not in row["traceback"]  # rows are shared
    assert row["params"]["x"] > 0


def test_failures_are_run_again_only_when_asked_for(store, tmp_path):
    spec = fake_spec("good", "breaks", folder=tmp_path)
    run_fake(spec, store)
    assert sum(run_fake(spec, store).ran.values()) == 0
    again = run_fake(spec, store, retry_failed=True)  # still broken
    assert again.ran == {"ok": 0, "failed": 2, "timeout": 0}
    (tmp_path / "mended").touch()
    mended = run_fake(spec, store, retry_failed=True)
    assert mended.ran == {"ok": 2, "failed": 0, "timeout": 0}
    assert mended.units == {"ok": 4}
    attempts = [row["attempt"] for row in store.rows() if row["attempt"] > 1]
    assert attempts == [3, 3]
    assert not failures(store, spec)


@pytest.mark.parametrize(
    ("model", "status", "error"),
    [
        ("loops", "timeout", "TooLongError: took longer than 3 s"),
        ("hog", "failed", "TooMuchMemoryError: took .* MB of memory; the limit is 100 MB"),
        ("exits", "failed", "SystemExit: 3"),
        ("nonsense", "failed", "TypeError: a result holds a type, which JSON has not"),
        ("nothing", "failed", "TypeError: run must return a Result, not NoneType"),
    ],
)
def test_whatever_a_model_does_the_others_are_run(store, model, status, error):
    seconds = 3 if status == "timeout" else 60  # others shall not fail on a busy machine
    limits = {"seconds_per_task": seconds, "memory_per_task": 100_000_000}
    spec = fake_spec("good", model, limits=limits, trials=1, outer=3)
    summary = run_fake(spec, store, datasets=["a"])
    assert summary.ran["ok"] == 7
    (row,) = failures(store, spec).values()
    assert row["status"] == status
    assert re.fullmatch(error, row["error"])


def test_a_model_that_spoils_its_task_spoils_nothing_else(store):
    spec = fake_spec("spoils")
    summary = run_fake(spec, store)
    assert summary.units == {"ok": 2}
    assert all(row["params"]["x"] > 0 for row in store.rows())


def test_peak_memory_and_seconds_are_measured(store):
    spec = fake_spec("hog", "good", trials=1, sleep=0.02)
    run_fake(spec, store, datasets=["a"])
    peaks = {(r["model"], r["stage"], r["part"]): r for r in store.rows()}
    assert peaks["hog", "fold", "1"]["peak_memory"] > 150_000_000
    assert peaks["good", "fold", "1"]["peak_memory"] < 50_000_000
    assert all(0.02 <= row["seconds"] < 5 for row in peaks.values())


def test_an_experiment_that_slips_ends_its_own_unit_only(store, monkeypatch):
    drive = fake.drive

    def slipping(unit, spec, parallel=1):
        if unit.dataset == "a":
            raise ZeroDivisionError("a slip")
        yield from drive(unit, spec, parallel)

    monkeypatch.setattr(fake, "drive", slipping)
    spec = fake_spec("good")
    summary = run_fake(spec, store)
    assert summary.units == {"failed": 1, "ok": 1}
    (failed,) = (unit for unit in store.planned(spec.hash) if unit["status"] == "failed")
    assert failed["error"] == "ZeroDivisionError: a slip"


def test_two_drivers_on_one_store_leave_every_row_once(tmp_path, where):
    spec = fake_spec("good", "better", sleep=0.005)
    with Store(tmp_path / "alone.sqlite") as alone:
        run_fake(spec, alone)
        expected = numbers(alone, spec)
    errors = []

    def drive():
        try:
            with Store(where) as store:
                run_fake(spec, store)
        except Exception as error:  # noqa: BLE001 - whatever it is fails the test
            errors.append(error)

    drivers = [threading.Thread(target=drive) for _ in range(3)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert errors == []
    with Store(where) as store:
        assert numbers(store, spec) == expected
        assert set(store.unit_states(spec.hash).values()) == {"ok"}


def test_a_changed_table_is_computed_anew(store):
    spec = fake_spec("good")
    run_fake(spec, store)
    before = numbers(store, spec)
    summary = run_fake(spec, store, tables=FakeTables(" v2"))
    assert summary.ran["ok"] == 12
    after = numbers(store, spec)
    assert len(after) == 12
    assert not set(after) & set(before)
    back = run_fake(spec, store)
    assert back.ran["ok"] == 0
    assert numbers(store, spec) == before


def test_a_mended_trial_that_changes_the_best_point_outdates_the_folds(store, monkeypatch):
    run, broken = fake.run, True

    def moody(task, table, spec):
        if broken and task.stage == "trial" and task.part == "0":
            raise RuntimeError("moody")
        return run(task, table, spec)

    monkeypatch.setattr(fake, "run", moody)
    spec = fake_spec("good", trials=1)
    run_fake(spec, store, datasets=["a"])
    broken = False
    summary = run_fake(spec, store, datasets=["a"], retry_failed=True)
    rows = list(store.rows(spec_hash=spec.hash))
    assert summary.ran["ok"] == 4  # the trial, and folds with the point that it found
    assert len(rows) == 4
    assert len(list(store.rows())) == 7


def test_trials_run_side_by_side_when_the_spec_says_so(store):
    spec = fake_spec("good", trials=4, tuning={"parallel": 4})
    asked = []
    pool = HerePool(spec)
    submit = pool.submit
    pool.submit = lambda task, fingerprint: asked.append(task) or submit(task, fingerprint)
    run_fake(spec, store, datasets=["a"], pool=pool)
    params = [task.params["x"] for task in asked if task.stage == "trial"]
    assert len(params) == 4
    assert params == pytest.approx([0.45, 0.46, 0.47, 0.48])  # none knew of another's score


def test_tables_are_read_once_and_dropped_when_done_with(store):
    spec = fake_spec("good", "better")
    tables, pool = FakeTables(), HerePool(spec)
    forgotten = []
    forget = pool.forget
    pool.forget = lambda fingerprint: forgotten.append(fingerprint) or forget(fingerprint)
    run_fake(spec, store, tables=tables, pool=pool)
    assert sorted(forgotten) == ["content of a", "content of b"]
    assert sorted(tables.loads) == ["a", "b"]


def test_the_plan_counts_what_is_left(store):
    spec = fake_spec("good", sleep=0.01)
    infos = FakeTables().infos(["a", "b"])
    plan = make_plan(spec, infos)
    assert (plan.n_tasks, plan.seconds) == (12, pytest.approx(0.12))
    assert remainder(plan, store).done == 0
    assert not remainder(plan, store).measured
    run_fake(spec, store, datasets=["a"])
    left = remainder(plan, store)
    assert (left.done, left.measured) == (6, True)
    measured = sum(row["seconds"] for row in store.rows())
    assert left.seconds == pytest.approx(measured)  # the other half takes as long
    assert measured >= 0.06
    run_fake(spec, store)
    assert remainder(plan, store).seconds == 0


def test_the_longest_begins_first_and_tables_stay_together():
    spec = fake_spec("good", "better")
    infos = FakeTables().infos(["a", "b", "c"])
    datasets = [unit.dataset for unit in make_plan(spec, infos).units]
    assert datasets == ["a", "a", "b", "b", "c", "c"]


def test_options_that_the_experiment_does_not_know_are_refused():
    spec = fake_spec("good", options={"colour": "red"})
    with pytest.raises(CoCoError, match=r"options\.colour"):
        make_plan(spec, FakeTables().infos(["a"]))
    with pytest.raises(CoCoError, match="nothing to do"):
        make_plan(fake_spec("good"), [])


@pytest.mark.parametrize(
    ("model", "error"),
    [
        ("half-a-letter", r"ValueError: caf\udce9 in it"),
        ("nul", r"ValueError: nul \x00 in it"),
        ("mutters", "MutterError: (its message fails with RuntimeError)"),
        ("leaves", "GeneratorExit: "),
    ],
)
def test_whatever_a_model_raises_is_a_failure_like_any_other(where, model, error):
    spec = fake_spec(model, "good")
    with Store(where) as store:
        summary = run_fake(spec, store, datasets=["a"])
        row = failures(store, spec)["a", model, "1"]
    assert summary.units == {"ok": 1, "failed": 1}
    assert row["error"] == error.strip()
    assert error.split(":")[0] in row["traceback"]
    assert "\x00" not in row["traceback"]


def test_odd_texts_of_a_result_are_kept_as_every_file_takes_them(where):
    spec = fake_spec("odd-texts")
    with Store(where) as store:
        assert run_fake(spec, store, datasets=["a"]).units == {"ok": 1}
        notes = {row["extra"]["note"] for row in store.rows() if row["stage"] == "fold"}
    assert notes == {r"\x00 and \udce9"}


def test_threads_that_warm_up_take_turns(monkeypatch):
    within, most = [], []

    def slow(name, _folders):
        within.append(name)
        most.append(len(within))
        time.sleep(0.05)
        within.remove(name)

    monkeypatch.setattr(workers, "load_experiment", slow)
    specs = [fake_spec("good").changed(own={f"m{k}": "os:getcwd"}) for k in range(4)]
    threads = [threading.Thread(target=workers.warm_up, args=(spec,)) for spec in specs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]


def bundled(*datasets, **data):
    source = {"source": "sklearn", "datasets": list(datasets), **data}
    return fake_spec("good", data=source)


def test_a_benchmark_runs_from_spec_to_summary(tmp_path):
    summary = run_benchmark(bundled("iris", "wine"), tmp_path / "results.sqlite", workers=0)
    assert summary.ran["ok"] == 12
    with Store(tmp_path / "results.sqlite", create=False) as store:
        infos = {unit["dataset"]: unit["info"] for unit in store.planned(bundled().hash)}
    assert infos["wine"]["n_columns"] == 13
    assert infos["wine"]["class_ratio"] == pytest.approx(71 / 48)
    assert infos["wine"]["categorical_share"] == 0


def test_tables_are_described_and_cut_down_the_same_every_time():
    spec = bundled("iris", "digits", max_rows=200)
    seen = []
    iris, digits = Tables(spec).infos(seen.append)
    assert sorted(seen) == ["digits", "iris"]
    assert (iris.n_rows, iris.n_columns, iris.n_classes) == (150, 4, 3)
    assert (digits.n_rows, digits.n_classes) == (200, 10)
    again = Tables(spec)
    assert again.infos() == [iris, digits]
    assert again.load("digits").fingerprint == digits.fingerprint
    other = bundled("digits", max_rows=201)
    assert Tables(other).infos()[0].fingerprint != digits.fingerprint


def test_all_tables_of_a_source_are_taken_if_none_is_named():
    names = [info.name for info in Tables(fake_spec("good")).infos()]
    assert names == ["iris", "wine", "breast_cancer", "digits"]


def test_a_misspelt_table_is_refused_before_any_is_read():
    seen = []
    with pytest.raises(CoCoError, match="has no table 'irs'; did you mean 'iris'"):
        Tables(bundled("wine", "irs")).infos(seen.append)
    assert seen == ["irs"]


def test_paths_begin_where_the_spec_lies(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "toy.csv").write_text("size,kind\n" + "1,a\n2,b\n" * 5)
    (tmp_path / "there" / "toy.toml").write_text(
        'name = "toy"\nkind = "fake"\ndata = {source = "file:toy.csv#kind"}\n'
        'models = {names = ["good"]}\n'
    )
    monkeypatch.chdir(tmp_path)
    (info,) = Tables(load_spec("there/toy.toml")).infos()
    assert (info.name, info.n_rows) == ("toy", 10)


def test_large_tables_are_read_again_and_may_not_have_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "KEPT_BYTES", 0)
    path = tmp_path / "toy.csv"
    path.write_text("size,kind\n" + "1,a\n2,b\n" * 5)
    source = {"source": f"file:{path}#kind"}
    found = Tables(fake_spec("good", data=source))
    (info,) = found.infos()
    assert found.load("toy").fingerprint == info.fingerprint
    path.write_text("size,kind\n" + "1,a\n3,b\n" * 5)
    with pytest.raises(CoCoError, match="'toy' has changed since the benchmark began"):
        found.load("toy")


def test_files_of_own_models_are_found_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine_here.py").write_text("")
    own = {"a": "mine_here:f", "b": "mine_here:g", "c": "sklearn.tree:T", "d": "json:J"}
    assert own_files(fake_spec("good").changed(own=own)) == [str(tmp_path / "mine_here.py")]


def test_there_is_a_worker_for_every_core(monkeypatch):
    monkeypatch.setattr(runner.os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    assert runner.default_workers() == 3


def test_a_session_knows_what_is_left(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        run_benchmark(bundled("iris"), tmp_path / "results.sqlite", workers=0)
        left = prepare(bundled("iris", "wine"), store).left
    assert (left.done, left.measured) == (6, True)


def test_no_worker_is_started_when_nothing_is_left(tmp_path, monkeypatch):
    (tmp_path / "broken").mkdir()
    source = {"source": "sklearn", "datasets": ["iris"]}
    spec = fake_spec("breaks", folder=tmp_path / "broken", data=source)
    path = tmp_path / "results.sqlite"
    assert run_benchmark(spec, path, workers=0).ran["failed"] == 1
    started = []

    class Started(HerePool):
        def __init__(self, spec, run_id, **options):
            super().__init__(spec)
            started.append(options["scheduler"])

    monkeypatch.setattr(runner, "DaskPool", Started)
    for options in ({"workers": 2}, {"scheduler": "tcp://10.0.0.1:8786"}):
        assert run_benchmark(spec, path, **options).units == {"failed": 1}
    assert started == []
    run_benchmark(spec, path, workers=2, retry_failed=True)
    assert started == [None]


def test_progress_learns_from_the_time_that_tasks_take():
    spec = fake_spec("fast", "slow", trials=7, sleep=1)
    units = make_plan(spec, FakeTables().infos(["a"])).units  # ten tasks of a second each
    by_model = {unit.model: unit for unit in units}
    progress = Progress()
    progress.begin(units, {})
    assert progress.seconds_left() == pytest.approx(20)
    place = Environment({}, {})
    for model, seconds in (("fast", 0.1), ("slow", 2.0)):
        task = by_model[model].task("trial", 0)
        progress.task_ended(by_model[model], task, Finished(Result(), seconds, 0, place))
    progress.tick([], 3)
    assert progress.seconds_left() == pytest.approx((9 * 0.1 + 9 * 2.0) / 3)
    progress.unit_ended(by_model["fast"], "failed", "gave up")
    assert progress.state()["done"] == 11
    assert progress.seconds_left() == pytest.approx(6)


def test_a_log_says_when_nobody_is_there_to_work():
    said = []
    progress = LineProgress(said.append)
    for n_workers in (0, 0, 2, 0):
        progress.tick([Running("a/b", "w", 1.0)], n_workers)
    assert said == ["waiting for workers: the cluster has none"] * 2


def test_a_large_store_opens_resumes_and_reports_at_once(tmp_path):
    # The million is in bench/runner.py; here it is the use of the indexes that counts.
    spec = fake_spec(*(f"m{n}" for n in range(10)), trials=10)
    path = tmp_path / "results.sqlite"
    with Store(path) as store:
        run_fake(spec, store)
    plans = []
    with Store(path) as store:

        @sa.event.listens_for(store.database.engine, "before_cursor_execute")
        def explain(connection, cursor, statement, parameters, *_):
            if statement.startswith("SELECT") and "FROM results" in statement:
                cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
                plans.append(cursor.fetchall()[0][-1])

        assert sum(run_fake(spec, store).ran.values()) == 0
        assert plans == []  # units that are done are not gone through
        store.find(["a"])
        store.counts(spec.hash)
        list(store.rows(spec_hash=spec.hash, tuning=False))
    assert [re.sub(r" \(.*", "", plan) for plan in plans] == [
        "SEARCH results USING INDEX sqlite_autoindex_results_1",
        "SEARCH results USING COVERING INDEX results_of_unit",
        "SEARCH results USING COVERING INDEX results_of_unit",  # which stages are there
        "SEARCH results USING INDEX results_of_unit",
    ]


def test_a_scheduler_that_does_not_answer_leaves_no_store_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "CONNECT_SECONDS", 1)
    spec = bundled("iris")
    new, old = tmp_path / "new.sqlite", tmp_path / "old.sqlite"
    Store(old).close()
    for path in (new, old):
        with pytest.raises(CoCoError, match="no Dask scheduler answers"):
            run_benchmark(spec, path, scheduler="tcp://127.0.0.1:1")
    assert [path.name for path in tmp_path.iterdir()] == ["old.sqlite"]


def test_a_run_that_is_broken_off_keeps_its_new_store(tmp_path, monkeypatch):
    spec = bundled("iris")
    monkeypatch.setattr(Progress, "task_ended", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_benchmark(spec, tmp_path / "new.sqlite", workers=0)
    with Store(tmp_path / "new.sqlite", create=False) as store:
        assert store.runs()[0]["state"] == "stopped"


def interrupt(*_):
    raise KeyboardInterrupt


def test_a_script_without_a_main_guard_is_told_at_once(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text("from cocoloss.benchmark.workers import start_cluster\nstart_cluster(2)\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "call run_benchmark under `if __name__ ==" in done.stderr.strip().split("\n")[-1]
