"""What went wrong is told: at the end of a run, by its exit status, in status and plan."""

import json
import re
from pathlib import Path

import pytest
import sqlalchemy as sa
from bench_cli import FAILED, bench
from bench_helpers import fake_spec, run_fake

from cocoloss.benchmark import schema
from cocoloss.benchmark.failures import failures_of
from cocoloss.benchmark.store import Store


def test_a_run_with_failures_tells_each_kind_once_and_where_the_traceback_is(folder):
    run = bench("run", "tiny.toml", "--workers", 0, code=FAILED)
    for dataset in ("iris", "wine"):
        line = f"failed: breaks on {dataset}: RuntimeError: fold 1 does not converge (1 task)"
        assert run.stderr.count(f"{line}\n") == 1
    assert "`cocoloss bench status tiny.sqlite --failures` shows their tracebacks" in run.stderr
    told = bench("status", "tiny.sqlite", "--failures").stdout
    assert told.count("    Traceback (most recent call last):") == 2
    assert '    raise RuntimeError("fold 1 does not\\nconverge")' in told
    assert "first: fake/iris/breaks/fold/1/" in told
    (status,) = json.loads(bench("status", "tiny.sqlite", "--failures", "--json").stdout)
    assert [failure["tasks"] for failure in status["failures"]] == [1, 1]
    assert "RuntimeError" in status["failures"][0]["traceback"]


def test_failures_that_are_alike_are_counted_and_others_are_not_mixed_in(folder):
    spec = Path("tiny.toml").read_text().replace('"breaks"', '"breaks", "exits", "broken"')
    Path("tiny.toml").write_text(spec.replace('"wine"', '"digits"'))
    one = ("run", "tiny.toml", "--workers", 0, "--json", "--dataset")
    failures = json.loads(bench(*one, "iris", code=FAILED).stdout)["failures"]
    assert [(f["model"], f["dataset"], f["tasks"]) for f in failures] == [
        ("breaks", "iris", 1),
        ("broken", "iris", 6),
        ("exits", "iris", 1),
    ]
    failures = json.loads(bench(*one, "digits", code=FAILED).stdout)["failures"]
    assert {failure["dataset"] for failure in failures} == {"digits"}


def test_a_task_over_its_limit_counts_as_failed(folder):
    text = Path("tiny.toml").read_text().replace('"breaks"', '"loops"')
    Path("tiny.toml").write_text(text)
    run = ("run", "tiny.toml", "--workers", 0, "--dataset", "iris", "--time-limit", "0.2")
    said = bench(*run, code=FAILED).stderr
    assert re.search(r"^timeout: loops on iris: .* \(1 task\)$", said, re.MULTILINE)
    told = bench("status", "tiny.sqlite", "--failures").stdout
    assert "no traceback: it was ended from outside" in told


def test_a_plan_says_what_failed_and_whose_times_it_shows(folder):
    plan = bench("plan", "tiny.toml").stdout
    assert "core time, a guess" in plan
    assert "failed" not in plan
    bench("run", "tiny.toml", "--workers", 0, code=FAILED)
    plan = bench("plan", "tiny.toml").stdout
    assert "core time, as measured" in plan
    assert "a guess" not in plan
    assert plan.endswith(
        "24 tasks, all done; 2 tasks failed, in 2 pairs of table and model: "
        "`bench run --retry-failed` does them again\n"
    )
    again = bench("run", "tiny.toml", "--workers", 0, "--retry-failed", code=FAILED).stdout
    assert "24 tasks, 22 of them done; about " in again


def test_the_times_of_a_plan_are_those_that_were_measured(folder):
    bench("run", "tiny.toml", "--workers", 0, "--dataset", "iris", code=FAILED)
    with Store("tiny.sqlite") as store:
        took = sa.update(schema.results).values(seconds=100.0)
        store.database.writing(lambda connection: connection.execute(took))
    planned = json.loads(bench("plan", "tiny.toml", "--json").stdout)
    assert planned["measured"]
    assert [round(unit["seconds"]) for unit in planned["units"]] == [600] * 4
    assert planned["core_seconds_left"] == pytest.approx(1200)
    assert re.search(r"^good +2 +12 +20 min$", bench("plan", "tiny.toml").stdout, re.MULTILINE)


def test_a_slip_of_the_experiment_itself_is_a_failure_without_tasks(folder, monkeypatch):
    def drive(unit, spec, parallel):
        raise ZeroDivisionError("a slip")
        yield

    monkeypatch.setattr("fake.drive", drive)
    spec = fake_spec("good")
    with Store(folder / "slip.sqlite") as store:
        run_fake(spec, store, datasets=["a"])
        (failure,) = failures_of(store, spec.hash)
    assert (failure.error, failure.tasks) == ("ZeroDivisionError: a slip", 0)
    told = bench("status", "slip.sqlite", "--failures").stdout
    assert "failed: good on a: ZeroDivisionError: a slip\n" in told
