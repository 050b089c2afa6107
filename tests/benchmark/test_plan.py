import json
import re
from pathlib import Path

import pandas as pd
import pytest
import sqlalchemy as sa
from bench_cli import FAILED, SPEC, bench, refusal
from click.testing import CliRunner

from cocoloss.benchmark.spec import load_spec
from cocoloss.benchmark.store import Store, results
from cocoloss.cli.root import main


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
    Path("tiny.toml").write_text(spec)
    for dataset in ("iris", "wine"):
        run = ("run", "tiny.toml", "--workers", 0, "--json", "--dataset", dataset)
        failures = json.loads(bench(*run, code=FAILED).stdout)["failures"]
        assert [(f["model"], f["dataset"], f["tasks"]) for f in failures] == [
            ("breaks", dataset, 1),
            ("broken", dataset, 6),
            ("exits", dataset, 1),
        ]


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
        took = sa.update(results).values(seconds=100.0)
        store.database.writing(lambda connection: connection.execute(took))
    planned = json.loads(bench("plan", "tiny.toml", "--json").stdout)
    assert planned["measured"]
    assert [round(unit["seconds"]) for unit in planned["units"]] == [600] * 4
    assert planned["core_seconds_left"] == pytest.approx(1200)
    assert re.search(r"^good +2 +12 +20 min$", bench("plan", "tiny.toml").stdout, re.MULTILINE)


@pytest.fixture
def two(folder):
    """Run two forms of one spec, and return what they are called."""
    called = []
    for outer in (3, 2):
        text = SPEC.replace("FOLDER", str(folder)).replace("outer = 3", f"outer = {outer}")
        Path("tiny.toml").write_text(text.replace('"good", "breaks"', '"good", "better"'))
        bench("run", "tiny.toml", "--workers", 0)
        called.append(f"tiny@{load_spec('tiny.toml').hash[:6]}")
    return called


def test_status_and_report_tell_them_apart_by_digits_of_the_hash(two):
    shown = bench("status", "tiny.sqlite").stdout
    bench("report", "tiny.sqlite", "--out", "both")
    page = Path("both/report.md").read_text()
    for name in two:
        assert f"{name} (fake): finished" in shown
        assert len(re.findall(rf"^#.*{name}", page, re.MULTILINE)) == 1
    bench("report", "tiny.sqlite", "--out", "one", "--name", two[1])
    (one,) = json.loads(Path("one/report.json").read_text())["benchmarks"]
    assert (one["label"], one["spec"]["folds"]["outer"]) == (two[1], 2)


def test_one_of_them_is_exported_by_its_name_and_hash(two):
    found = []
    for name in two:
        bench("export", "tiny.sqlite", "--out", "one.csv", "--name", name)
        found.append(pd.read_csv("one.csv")["fold"].max())
    assert found == [2, 1]
    bench("export", "tiny.sqlite", "--out", "both.csv", "--name", "tiny")
    assert len(pd.read_csv("both.csv")) == 2 * 2 * (3 + 2)
    said = CliRunner().invoke(main, ["compare", "both.csv"]).stderr
    assert f"rows of 2 benchmarks, {two[0]}, {two[1]}" in said
    bench("export", "tiny.sqlite", "--out", "tasks.csv", "--name", two[0], "--tasks")
    bench("merge", "tasks.csv", "--into", "other.sqlite")
    assert "tiny (fake): finished" in bench("status", "other.sqlite").stdout
    said = refusal("export", "tiny.sqlite", "--out", "x.csv", "--name", "tinny")
    assert said.endswith(f"tiny.sqlite has no benchmark 'tinny'; it has {', '.join(two)}")
