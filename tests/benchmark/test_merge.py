"""What two stores know of the same units is joined, and two walks through one are not mixed."""

import fake
import pytest
from bench_helpers import FakeTables, fake_spec, numbers, run_fake, run_until

from cocoloss.benchmark.export import fold_table
from cocoloss.benchmark.merge import merge
from cocoloss.benchmark.plan import make_plan
from cocoloss.benchmark.status import status_of
from cocoloss.benchmark.store import Store


def other_numbers(monkeypatch):
    """Let trials have other scores, as on a machine that rounds differently."""
    usual = fake.number_from
    monkeypatch.setattr(fake, "number_from", lambda *names: usual(*names, "there"))


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Name a store in which the same units ended with other points and other numbers."""
    spec = fake_spec("good")
    with Store(tmp_path / "here.sqlite") as here:
        run_fake(spec, here)
        ours = set(fold_table(here)["key"])
    with monkeypatch.context() as there, Store(tmp_path / "elsewhere.sqlite") as other:
        other_numbers(there)
        run_fake(spec, other)
        assert ours.isdisjoint(fold_table(other)["key"])
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


def test_a_merge_that_is_broken_off_mixes_nothing_and_can_be_done_again(
    where, elsewhere, monkeypatch
):
    spec = fake_spec("good")
    with Store(where) as store:
        run_fake(spec, store)
        before = everything(store)
        break_off_a_merge(store, elsewhere, monkeypatch)
        assert everything(store) == before
        before = numbers(store, spec)
        merge(store, elsewhere)
        assert numbers(store, spec) == before


def test_a_broken_merge_replaces_no_failure(where, tmp_path, monkeypatch):
    spec = fake_spec("good", "breaks", folder=tmp_path)
    with Store(where) as store, Store(tmp_path / "mended.sqlite") as other:
        run_fake(spec, store)
        (tmp_path / "mended").touch()
        run_fake(spec, other)
        before = everything(store)
        break_off_a_merge(store, tmp_path / "mended.sqlite", monkeypatch)
        assert everything(store) == before
        merge(store, tmp_path / "mended.sqlite")
        assert status_of(store)[0]["units"] == {"ok": 4, "failed": 0, "open": 0}


def everything(store):
    return list(store.rows()), store.planned(), store.runs()


def break_off_a_merge(store, source, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as power:
        power.setattr("cocoloss.benchmark.merge.mark_current", interrupt)
        with pytest.raises(KeyboardInterrupt):
            merge(store, source)


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


@pytest.mark.parametrize("ended", [True, False])
def test_results_of_another_table_of_that_name_are_not_current(where, tmp_path, ended):
    spec = fake_spec("good")
    with Store(tmp_path / "changed.sqlite") as other:
        run_fake(spec, other, tables=FakeTables("changed"))
    with Store(where) as store:
        if ended:
            run_fake(spec, store)
        else:
            run_until(spec, store, tasks=8)
        before, planned = numbers(store, spec), store.planned()
        merge(store, tmp_path / "changed.sqlite")
        assert numbers(store, spec) == before
        assert store.planned() == planned
