import math
from dataclasses import replace
from functools import partial

import fake
import pandas as pd
import pytest
from bench_helpers import fake_spec, merge, numbers, run_fake, run_until
from fake_tables import FakeTables

from cocoloss.benchmark.analysis import read_findings
from cocoloss.benchmark.export import TaskFile, export, fold_table, merge_into, whole_table
from cocoloss.benchmark.plan import make_plan, remainder, status_of
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.tasks import Environment, Finished, Result, Unit
from cocoloss.exceptions import CoCoError

ENDINGS = pytest.mark.parametrize("ending", ["csv", "parquet"])
HERE = Environment({"host": "here", "cores": 2}, {"python": "3.11"})


@pytest.fixture
def spec(tmp_path):
    return fake_spec("good", "breaks", folder=tmp_path, deviations=["none of it is real"])


@pytest.fixture
def store(where, spec):
    """Two tables are done, with failures; a third one is planned and has one result."""
    with Store(where) as opened:
        run_fake(spec, opened)
        run_until(spec, opened, datasets=["a", "b", "c"], tasks=1)
        yield opened


def refill(store, path):
    """Return a new store that knows what a file of the other one says."""
    export(store, path, tasks=True)
    new = Store(path.with_suffix(".sqlite"))
    merge(new, path)
    return new


def of_tasks(table):
    return table[~table["stage"].isin(["unit", "start"])].reset_index(drop=True)


def timeless(status):
    return [{k: v for k, v in one.items() if k != "seconds_since_seen"} for one in status]


@ENDINGS
def test_a_refilled_store_stands_where_the_first_one_stood(store, spec, tmp_path, ending):
    tables = [*"abc"]
    plan = make_plan(spec, FakeTables().infos(tables))
    with refill(store, tmp_path / f"first.{ending}") as new:
        export(new, tmp_path / f"second.{ending}", tasks=True)
        first, second = (tmp_path / f"{name}.{ending}" for name in ("first", "second"))
        assert first.read_bytes() == second.read_bytes()
        assert timeless(status_of(new)) == timeless(status_of(store))
        assert remainder(plan, new) == remainder(plan, store)
        (theirs,), (ours,) = read_findings(store), read_findings(new)
        assert (ours.name, ours.spec["deviations"]) == ("fake", ["none of it is real"])
        assert len(ours.missing) == 4  # two failures, two units that are open
        for name, value in vars(theirs).items():
            if isinstance(value, pd.DataFrame):
                pd.testing.assert_frame_equal(getattr(ours, name), value)
            else:
                assert getattr(ours, name) == value, name
        # It goes on and computes nothing twice.
        summary = run_fake(spec, new, datasets=tables)
        assert sum(summary.ran.values()) == 36 - 25
        assert summary.units == {"ok": 3, "failed": 3}
        run_fake(spec, store, datasets=tables)
        assert numbers(new, spec) == numbers(store, spec)


def test_lines_are_sorted_by_key_and_hold_tasks_units_and_starts(store, tmp_path):
    assert export(store, tmp_path / "tasks.parquet", tasks=True) == 25
    table = pd.read_parquet(tmp_path / "tasks.parquet")
    assert table["key"].is_monotonic_increasing
    assert table["key"].is_unique
    assert sorted(of_tasks(table)["key"]) == sorted(row["key"] for row in store.rows())
    assert (table["stage"] == "unit").sum() == 6
    assert (table["stage"] == "start").sum() == 2


def test_a_unit_that_ends_while_it_is_exported_is_not_taken_for_done(where, spec, monkeypatch):
    with Store(where) as store:
        run_until(spec, store, tasks=8)
        read = store.rows

        def rows_then_the_rest(**options):
            found = list(read(**options))
            with Store(where) as driver:
                run_fake(spec, driver)
            return found

        monkeypatch.setattr(store, "rows", rows_then_the_rest)
        table = whole_table(store)
    units = table[table["stage"] == "unit"]
    assert units["status"].tolist() == ["open"] * 4
    assert len(table) == 1 + 4 + 8


def test_the_place_of_a_driver_that_ran_no_task_is_kept(store, tmp_path):
    elsewhere = Environment({"host": "login node"}, {"python": "3.11"})
    store.begin_run("later", fake_spec("good"), elsewhere)
    with refill(store, tmp_path / "tasks.csv") as new, Store(tmp_path / "third.sqlite") as third:
        assert elsewhere in new.environments().values()
        merge(third, tmp_path / "tasks.sqlite")
        assert third.environments() == new.environments()


@ENDINGS
def test_any_text_and_any_number_survives(where, tmp_path, ending):
    spec = fake_spec("good")
    (info,) = FakeTables().infos(["a"])
    unit = Unit.of(spec, replace(info, class_ratio=math.inf), "good", tasks=2, seconds=0.1 + 0.2)
    bad = Result(status="failed", error="a \"quoted\", line; 'é' NaN")
    trace = 'one\r\ntwo\rthree\n\n"four", five\t\\n'
    odd = Result({"score": math.nan, "loss": -math.inf, "tiny": 5e-324}, extra={"text": "NA"})
    with Store(where) as store:
        store.open_units([unit], spec.hash)
        done = Finished(bad, 1 / 3, 2**40, HERE, traceback=trace)
        store.record(unit, unit.task("fold", 0), spec.hash, done)
        store.record(unit, unit.task("fold", 1), spec.hash, Finished(odd, 0.1, 0, HERE))
        with refill(store, tmp_path / f"tasks.{ending}") as new:
            for one, other in zip(new.rows(), store.rows(), strict=True):
                assert repr(one) == repr(other)  # NaN is not equal to itself
            assert repr(new.planned()) == repr(store.planned())
        read = TaskFile(tmp_path / f"tasks.{ending}")
        rows, places = zip(*read.tasks(), strict=True)
        assert (repr([*rows]), places) == (repr([*store.rows()]), (HERE, HERE))
        assert [each["key"] for each in read.units()] == [unit.key]
        assert read.starts() == []


def test_a_file_from_before_it_held_units_is_taken_all_the_same(store, spec, tmp_path):
    of_tasks(whole_table(store)).to_csv(tmp_path / "old.csv", index=False)
    with Store(tmp_path / "new.sqlite") as new:
        assert merge(new, tmp_path / "old.csv") == (0, 25)
        assert (new.runs(), new.planned()) == ([], [])
        assert sum(run_fake(spec, new).ran.values()) == 0


@ENDINGS
@pytest.mark.parametrize("stage", ["fold", "unit", "start"])
def test_an_empty_cell_or_half_a_value_is_told_with_the_file_and_nothing_else(
    where, tmp_path, ending, stage
):
    with Store(where) as store:
        run_fake(fake_spec("good"), store, datasets=["a"])
        table = whole_table(store)
    row = table.index[table["stage"] == stage][0]
    path = tmp_path / f"broken.{ending}"
    broken = {"status": None, "key": None, "finished_at": None, "params": '{"tasks": '}
    if stage == "unit":
        del broken["finished_at"]  # which is empty
    for column, value in broken.items():
        changed = table.astype({column: object})
        changed.loc[row, column] = value
        (changed.to_csv if ending == "csv" else changed.to_parquet)(path, index=False)
        for into in (tmp_path / "new.sqlite", where):
            with pytest.raises(CoCoError, match=rf"broken\.{ending} is damaged: ") as refusal:
                merge_into(into, [path])
            assert "SQL" not in str(refusal.value)
            assert ".part" not in str(refusal.value)
        assert not (tmp_path / "new.sqlite").exists()


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Name a store in which the same units ended with other points and other numbers."""
    usual = fake.number_from
    with monkeypatch.context() as there, Store(tmp_path / "elsewhere.sqlite") as other:
        # As on a machine that rounds differently.
        there.setattr(fake, "number_from", lambda *names: usual(*names, "there"))
        run_fake(fake_spec("good"), other)
    return tmp_path / "elsewhere.sqlite"


def current_keys(store, spec):
    return {row["key"] for row in store.rows(spec_hash=spec.hash)}


def test_two_walks_through_a_unit_are_not_mixed(where, tmp_path, elsewhere):
    spec = fake_spec("good")
    with Store(where) as store:
        run_fake(spec, store)
        before = numbers(store, spec)
        merged = merge(store, elsewhere)
        assert merged.after > 12  # folds of other points
        assert numbers(store, spec) == before
        assert not fold_table(store).duplicated(["dataset", "model", "fold"]).any()
        assert merge(store, elsewhere) == (merged.after, merged.after)
        assert numbers(store, spec) == before
        assert sum(run_fake(spec, store).ran.values()) == 0


def test_a_merge_that_is_broken_off_changes_nothing_and_can_be_done_again(
    where, tmp_path, monkeypatch
):
    def interrupt(*_):
        raise KeyboardInterrupt

    def everything(store):
        return list(store.rows()), store.planned(), store.runs()

    mended = tmp_path / "mended.sqlite"
    spec = fake_spec("good", "breaks", folder=tmp_path)
    with Store(where) as store, Store(mended) as other:
        run_fake(spec, store)
        (tmp_path / "mended").touch()
        run_fake(spec, other)
        before = everything(store)
        with monkeypatch.context() as power:
            power.setattr("cocoloss.benchmark.export.mark_current", interrupt)
            with pytest.raises(KeyboardInterrupt):
                merge(store, mended)
        assert everything(store) == before
        merge(store, mended)
        assert status_of(store)[0]["units"] == {"ok": 4, "failed": 0, "open": 0}


def test_a_unit_that_ended_elsewhere_is_taken_from_there(where, elsewhere):
    spec = fake_spec("good")
    with Store(where) as store:
        run_until(spec, store, tasks=8)  # all trials, and the first folds
        merge(store, elsewhere)
        with Store(elsewhere, create=False) as other:
            assert current_keys(store, spec) == current_keys(other, spec)
        assert status_of(store)[-1]["units"] == {"ok": 2, "failed": 0, "open": 0}
        assert sorted(fold_table(store)["fold"]) == [0, 0, 1, 1, 2, 2]


def test_of_two_walks_that_did_not_end_the_folds_are_those_that_were_here(where, elsewhere):
    spec = fake_spec("good")
    with Store(where) as store, Store(elsewhere) as other:
        run_until(spec, store, tasks=8)  # all trials, and the first folds
        ours = set(fold_table(store)["key"])
        for unit in make_plan(spec, FakeTables().infos(["a", "b"])).units:
            other.end_unit(unit, spec.hash, "a trial failed", current_keys(other, spec))
        merge(store, elsewhere)
        folds = fold_table(store)
        assert len(ours) == 2
        assert ours <= set(folds["key"])
        assert not folds.duplicated(["dataset", "model", "fold"]).any()
        summary = run_fake(spec, store, retry_failed=True)
        assert summary.units == {"ok": 2}
        assert sorted(fold_table(store)["fold"]) == [0, 0, 1, 1, 2, 2]


def test_a_failure_that_is_known_here_is_not_forgotten_for_a_unit_that_is_open_there(
    where, tmp_path
):
    spec = fake_spec("good", "breaks", folder=tmp_path)
    with Store(tmp_path / "open.sqlite") as other:
        run_until(spec, other, tasks=1)
    with Store(where) as store:
        run_fake(spec, store)
        merge(store, tmp_path / "open.sqlite")
        assert status_of(store)[0]["units"] == {"ok": 2, "failed": 2, "open": 0}


@pytest.mark.parametrize("run", [run_fake, partial(run_until, tasks=8)], ids=["ended", "open"])
def test_results_of_another_table_of_that_name_are_not_current(where, tmp_path, run):
    spec = fake_spec("good")
    with Store(tmp_path / "changed.sqlite") as other:
        run_fake(spec, other, tables=FakeTables("changed"))
    with Store(where) as store:
        run(spec, store)
        before, planned = numbers(store, spec), store.planned()
        merge(store, tmp_path / "changed.sqlite")
        assert numbers(store, spec) == before
        assert store.planned() == planned
