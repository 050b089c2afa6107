import re

import pytest
import sqlalchemy as sa
from bench_helpers import FakeTables, fake_spec, run_fake

from cocoloss.benchmark import plan, runner, workers
from cocoloss.benchmark.plan import Tables, make_plan
from cocoloss.benchmark.runner import LineProgress, Progress, own_files, prepare, run_benchmark
from cocoloss.benchmark.spec import load_spec
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.tasks import Environment, Finished, Result
from cocoloss.benchmark.workers import HerePool, Running
from cocoloss.exceptions import CoCoError


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
        def __init__(self, module, spec, run_id, **options):
            super().__init__(module, spec)
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
