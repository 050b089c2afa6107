import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import fake
import pytest
import sqlalchemy as sa
from bench_helpers import at_once, fake_spec, numbers, run_fake, run_until
from fake_tables import FakeTables

from cocoloss.benchmark import plan, runner, workers
from cocoloss.benchmark.plan import Tables, failures_of, make_plan, remainder
from cocoloss.benchmark.runner import Progress, own_files, run_benchmark
from cocoloss.benchmark.spec import load_spec
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.tasks import Environment, Finished, Result
from cocoloss.benchmark.workers import HerePool
from cocoloss.cli.bench_texts import LineProgress
from cocoloss.exceptions import CoCoError


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "results.sqlite") as opened:
        yield opened


def failures(store, spec):
    rows = store.rows(spec_hash=spec.hash, failed_only=True)
    return {(row["dataset"], row["model"], row["part"]): row for row in rows}


def test_every_task_is_run_once_and_a_second_run_does_nothing(store):
    spec = fake_spec("good", "better")
    summary = run_fake(spec, store)
    assert summary.ran == {"ok": 24, "failed": 0, "timeout": 0}
    assert summary.units == {"ok": 4}
    rows = list(store.rows(spec_hash=spec.hash))
    assert len({row["key"] for row in rows}) == len(rows) == 24
    assert {row["attempt"] for row in rows} == {1}
    again = run_fake(spec, store)
    assert sum(again.ran.values()) == again.known == 0


def test_a_dataset_and_a_model_more_rerun_nothing(store):
    run_fake(fake_spec("good"), store, datasets=["a"])
    summary = run_fake(fake_spec("good", "better"), store, datasets=["a", "b"])
    assert summary.ran["ok"] == 18  # of 24


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """All that a run of two models on two tables finds."""
    spec = fake_spec("good", "better")
    with Store(tmp_path_factory.mktemp("whole") / "whole.sqlite") as store:
        run_fake(spec, store)
        return numbers(store, spec)


@pytest.mark.parametrize("after", [1, 5, 11])
def test_a_stopped_run_goes_on_as_if_it_had_never_stopped(store, undisturbed, after):
    spec = fake_spec("good", "better")
    run_until(spec, store, tasks=after)
    assert store.runs()[-1]["state"] == "stopped"
    assert len(list(store.rows())) == after
    assert run_fake(spec, store).ran["ok"] == 24 - after
    assert numbers(store, spec) == undisturbed


def test_a_failing_model_is_a_recorded_failure_and_run_again_when_asked_for(store, tmp_path):
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

    assert sum(run_fake(spec, store).ran.values()) == 0
    again = run_fake(spec, store, retry_failed=True)  # still broken
    assert again.ran == {"ok": 0, "failed": 2, "timeout": 0}
    (tmp_path / "mended").touch()
    mended = run_fake(spec, store, retry_failed=True)
    assert mended.ran == {"ok": 2, "failed": 0, "timeout": 0}
    assert mended.units == {"ok": 4}
    assert [row["attempt"] for row in store.rows() if row["attempt"] > 1] == [3, 3]
    assert not failures(store, spec)


@pytest.mark.parametrize(
    ("model", "status", "error"),
    [
        ("loops", "timeout", "TooLongError: took longer than 1 s"),
        ("hog", "failed", "TooMuchMemoryError: took .* MB of memory; the limit is 100 MB"),
        ("exits", "failed", "SystemExit: 3"),
        ("nonsense", "failed", "TypeError: a result holds a type, which JSON has not"),
        ("nothing", "failed", "TypeError: run must return a Result, not NoneType"),
    ],
)
def test_whatever_a_model_does_the_others_are_run(store, model, status, error):
    seconds = 1 if status == "timeout" else 60  # others shall not fail on a busy machine
    limits = {"seconds_per_task": seconds, "memory_per_task": 100_000_000}
    spec = fake_spec("good", model, limits=limits, trials=1, sleep=0.01)
    assert run_fake(spec, store, datasets=["a"]).ran["ok"] == 7
    (row,) = failures(store, spec).values()
    assert row["status"] == status
    assert re.fullmatch(error, row["error"])
    assert (row["peak_memory"] > 100_000_000) == (model == "hog")
    assert all(row["seconds"] >= 0.01 for row in store.rows() if row["status"] == "ok")


def test_an_experiment_that_slips_ends_its_own_unit_only(store, monkeypatch):
    drive = fake.drive

    def slipping(unit, spec, parallel=1):
        if unit.dataset == "a":
            raise ZeroDivisionError("a slip")
        yield from drive(unit, spec, parallel)

    monkeypatch.setattr(fake, "drive", slipping)
    spec = fake_spec("good")
    assert run_fake(spec, store).units == {"failed": 1, "ok": 1}
    (failure,) = failures_of(store, spec.hash)
    assert (failure.dataset, failure.error, failure.tasks) == ("a", "ZeroDivisionError: a slip", 0)


def test_three_drivers_on_one_store_leave_every_row_once(where, undisturbed):
    spec = fake_spec("good", "better")
    errors = []

    def drive():
        try:
            with Store(where) as store:
                run_fake(spec, store)
        except Exception as error:  # noqa: BLE001 - whatever it is fails the test
            errors.append(error)

    at_once(*[drive] * 3)
    assert errors == []
    with Store(where) as store:
        assert numbers(store, spec) == undisturbed
        assert set(store.unit_states(spec.hash).values()) == {"ok"}


def test_a_changed_table_is_computed_anew_and_what_it_found_before_is_kept(where):
    spec = fake_spec("good")
    with Store(where) as store:
        run_fake(spec, store)
        before = numbers(store, spec)
        assert run_fake(spec, store, tables=FakeTables(" v2")).ran["ok"] == 12
        after = numbers(store, spec)
        assert len(after) == 12
        assert not set(after) & set(before)
        assert run_fake(spec, store).ran["ok"] == 0
        assert numbers(store, spec) == before


def test_a_mended_trial_that_changes_the_best_point_outdates_the_folds(where, monkeypatch):
    run, broken = fake.run, True

    def moody(task, table, spec):
        if broken and task.stage == "trial" and task.part == "0":
            raise RuntimeError("moody")
        return run(task, table, spec)

    monkeypatch.setattr(fake, "run", moody)
    spec = fake_spec("good", trials=1)
    with Store(where) as store:
        run_fake(spec, store, datasets=["a"])
        broken = False
        summary = run_fake(spec, store, datasets=["a"], retry_failed=True)
        assert summary.ran["ok"] == 4  # the trial, and folds with the point that it found
        assert len(list(store.rows(spec_hash=spec.hash))) == 4
        assert sum(count.tasks for count in store.counts(spec.hash)) == 4
        assert len(list(store.rows())) == 7


def noting(pool, method):
    """Return a list that gets the first argument of each call of a method."""
    noted, original = [], getattr(pool, method)
    setattr(pool, method, lambda first, *rest: noted.append(first) or original(first, *rest))
    return noted


def test_trials_run_side_by_side_when_the_spec_says_so(store):
    spec = fake_spec("good", trials=4, tuning={"parallel": 4})
    pool = HerePool(spec)
    asked = noting(pool, "submit")
    run_fake(spec, store, datasets=["a"], pool=pool)
    params = [task.params["x"] for task in asked if task.stage == "trial"]
    assert params == pytest.approx([0.45, 0.46, 0.47, 0.48])  # none knew of another's score


def test_tables_are_read_once_and_dropped_when_done_with(store):
    spec = fake_spec("good", "better")
    tables, pool = FakeTables(), HerePool(spec)
    forgotten = noting(pool, "forget")
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


def test_the_models_of_a_table_stay_together():
    units = make_plan(fake_spec("good", "better"), FakeTables().infos([*"abc"])).units
    assert [unit.dataset for unit in units] == [*"aabbcc"]


def test_options_that_the_experiment_does_not_know_are_refused():
    spec = fake_spec("good", options={"colour": "red"})
    with pytest.raises(CoCoError, match=r"options\.colour"):
        make_plan(spec, FakeTables().infos(["a"]))
    with pytest.raises(CoCoError, match="nothing to do"):
        make_plan(fake_spec("good"), [])


def test_whatever_a_model_raises_or_writes_is_kept_as_every_file_takes_it(where):
    errors = {
        "half-a-letter": r"ValueError: caf\udce9 in it",
        "nul": r"ValueError: nul \x00 in it",
        "mutters": "MutterError: (its message fails with RuntimeError)",
        "leaves": "GeneratorExit:",
    }
    spec = fake_spec(*errors, "odd-texts", trials=1)
    with Store(where) as store:
        summary = run_fake(spec, store, datasets=["a"])
        rows = failures(store, spec)
        notes = {row["extra"].get("note") for row in store.rows() if row["model"] == "odd-texts"}
    assert summary.units == {"ok": 1, "failed": 4}
    assert {model: row["error"] for (_, model, _), row in rows.items()} == errors
    for (_, model, _), row in rows.items():
        assert errors[model].split(":")[0] in row["traceback"]
        assert "\x00" not in row["traceback"]
    assert notes == {None, r"\x00 and \udce9"}  # of a trial, of folds


def test_threads_that_warm_up_take_turns(monkeypatch):
    within, most = [], []

    def slow(name, _folders):
        within.append(name)
        most.append(len(within))
        time.sleep(0.02)
        within.remove(name)

    monkeypatch.setattr(workers, "load_experiment", slow)
    specs = [fake_spec("good").changed(own={f"m{k}": "os:getcwd"}) for k in range(4)]
    at_once(*[partial(workers.warm_up, spec) for spec in specs])
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
    iris, digits = Tables(spec).infos()
    assert (iris.n_rows, iris.n_columns, iris.n_classes) == (150, 4, 3)
    assert (digits.n_rows, digits.n_classes) == (200, 10)
    again = Tables(spec)
    assert again.infos() == [iris, digits]
    assert again.load("digits").fingerprint == digits.fingerprint
    others = Tables(bundled(max_rows=201)).infos()  # none named: all of them
    assert [info.name for info in others] == ["iris", "wine", "breast_cancer", "digits"]
    assert others[3].fingerprint != digits.fingerprint


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


def test_no_worker_is_started_when_nothing_is_left(tmp_path, monkeypatch):
    source = {"source": "sklearn", "datasets": ["iris"]}
    spec = fake_spec("breaks", folder=tmp_path, data=source)
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


def test_progress_learns_from_the_time_that_tasks_take_and_says_when_nobody_is_there():
    spec = fake_spec("fast", "slow", trials=7, sleep=1)
    units = make_plan(spec, FakeTables().infos(["a"])).units  # ten tasks of a second each
    by_model = {unit.model: unit for unit in units}
    said = []
    progress = LineProgress(said.append)
    progress.begin(units, {})
    assert progress.seconds_left() == pytest.approx(20)
    place = Environment({}, {})
    for model, seconds in (("fast", 0.1), ("slow", 2.0)):
        task = by_model[model].task("trial", 0)
        progress.task_ended(by_model[model], task, Finished(Result(), seconds, 0, place))
    for n_workers in (0, 0, 2, 0, 3):
        progress.tick([], n_workers)
    assert said == ["waiting for workers: the cluster has none"] * 2
    assert progress.seconds_left() == pytest.approx((9 * 0.1 + 9 * 2.0) / 3)
    progress.unit_ended(by_model["fast"], "failed", "gave up")
    assert progress.state()["done"] == 11
    assert progress.seconds_left() == pytest.approx(6)


def test_a_store_uses_its_indexes(tmp_path):
    spec = fake_spec("good", "better")
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
    monkeypatch.setattr(workers, "CONNECT_SECONDS", 0.2)
    Store(tmp_path / "old.sqlite").close()
    for name in ("new.sqlite", "old.sqlite"):
        with pytest.raises(CoCoError, match="no Dask scheduler answers"):
            run_benchmark(bundled("iris"), tmp_path / name, scheduler="tcp://127.0.0.1:1")
    assert [path.name for path in tmp_path.iterdir()] == ["old.sqlite"]


def test_a_run_that_is_broken_off_keeps_its_new_store(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "task_ended", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_benchmark(bundled("iris"), tmp_path / "new.sqlite", workers=0)
    with Store(tmp_path / "new.sqlite", create=False) as store:
        assert store.runs()[0]["state"] == "stopped"


@pytest.mark.cluster
def test_the_path_of_a_spec_is_no_spec(tmp_path):
    with pytest.raises(CoCoError, match=r"such as load_spec\(path\) returns, not 'mine.toml'"):
        run_benchmark("mine.toml", tmp_path / "mine.sqlite")
    assert not any(tmp_path.iterdir())


def test_a_script_without_a_main_guard_is_told_at_once(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text("from cocoloss.benchmark.workers import start_cluster\nstart_cluster(2)\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "call run_benchmark under `if __name__ ==" in done.stderr.strip().split("\n")[-1]
