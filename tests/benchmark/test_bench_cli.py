import gc
import json
import os
import pty
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pandas as pd
import pytest
import sqlalchemy as sa
from bench_cli import FAILED, SPEC, bench, refusal
from bench_helpers import numbers, wait_for_rows
from click.testing import CliRunner

from cocoloss.benchmark.runner import Session
from cocoloss.benchmark.spec import load_spec
from cocoloss.benchmark.store import Store, results
from cocoloss.cli.root import main

HERE = Path(__file__).parent
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}


def test_plan_run_status_and_export_follow_each_other(folder):
    plan = bench("plan", "tiny.toml", "--workers", 2).stdout
    assert re.search(r"^good +2 +12 ", plan, re.MULTILINE)
    assert "core time, a guess" in plan
    assert "24 tasks; about" in plan
    assert "failed" not in plan
    planned = json.loads(bench("plan", "tiny.toml", "--json").stdout)
    assert (planned["tasks"], planned["done"], len(planned["units"])) == (24, 0, 4)
    assert not Path("tiny.sqlite").exists()

    run = bench("run", "tiny.toml", "--workers", 0, code=FAILED)
    assert "2 models on 2 tables" in run.stdout
    assert "results: tiny.sqlite" in run.stdout
    assert re.search(r"ran 24 tasks in .*, 2 of them failed\n$", run.stdout)
    assert "2 of 4 pairs of table and model have failures" in run.stderr
    assert "wine / breaks FAILED: RuntimeError: fold 1 does not converge" in run.stderr
    for dataset in ("iris", "wine"):
        line = f"failed: breaks on {dataset}: RuntimeError: fold 1 does not converge (1 task)"
        assert run.stderr.count(f"{line}\n") == 1
    assert "`cocoloss bench status tiny.sqlite --failures` shows their tracebacks" in run.stderr
    plan = bench("plan", "tiny.toml").stdout
    assert "core time, as measured" in plan
    assert "a guess" not in plan
    assert plan.endswith(
        "24 tasks, all done; 2 tasks failed, in 2 pairs of table and model: "
        "`bench run --retry-failed` does them again\n"
    )

    status = bench("status", "tiny.sqlite").stdout
    assert "tiny (fake): finished" in status
    assert "24 of 24 tasks" in status
    assert "failed fake/iris/breaks/fold/1 (attempt 1): RuntimeError" in status
    (status,) = json.loads(bench("status", "tiny.sqlite", "--json").stdout)
    assert status["tasks"] == {"done": 24, "planned": 24, "ok": 22, "failed": 2}
    assert status["datasets"]["iris"] == {"ok": 1, "failed": 1, "open": 0}
    told = bench("status", "tiny.sqlite", "--failures").stdout
    assert told.count("    Traceback (most recent call last):") == 2
    assert '    raise RuntimeError("fold 1 does not\\nconverge")' in told
    assert "first: fake/iris/breaks/fold/1/" in told
    (status,) = json.loads(bench("status", "tiny.sqlite", "--failures", "--json").stdout)
    assert [failure["tasks"] for failure in status["failures"]] == [1, 1]
    assert "RuntimeError" in status["failures"][0]["traceback"]

    assert "12 results" in bench("export", "tiny.sqlite", "--out", "folds.csv").stdout
    table = pd.read_csv("folds.csv")
    assert table.groupby(["dataset", "model"])["balanced_accuracy"].count().tolist() == [2, 3, 2, 3]

    again = bench("run", "tiny.toml", "--workers", 0, "--retry-failed", code=FAILED).stdout
    assert "24 tasks, 22 of them done; about " in again
    (folder / "mended").touch()
    mended = json.loads(
        bench("run", "tiny.toml", "--workers", 0, "--retry-failed", "--json").stdout
    )
    assert mended["ran"] == {"ok": 2, "failed": 0, "timeout": 0}
    assert (mended["units"], mended["failures"]) == ({"ok": 4}, [])


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


def test_tables_are_read_from_where_one_says(folder):
    (folder / "elsewhere").mkdir()
    Path("tables").mkdir()
    Path("tables/mine.csv").write_text("a,b,target\n" + "1,2,x\n3,4,y\n" * 10)
    Path("tiny.toml").rename("elsewhere/tiny.toml")
    spec = Path("elsewhere/tiny.toml")
    spec.write_text(spec.read_text().replace('datasets = ["iris", "wine"]', ""))
    planned = json.loads(bench("plan", spec, "--data", "folder:tables", "--json").stdout)
    assert {unit["dataset"] for unit in planned["units"]} == {"mine"}
    assert planned["spec_hash"] == load_spec(spec).hash


def test_a_model_of_ones_own_is_found_in_the_current_folder(folder):
    Path("my_own_models.py").write_text("def make():\n    return 'a model'\n")
    one = ("run", "tiny.toml", "--workers", 0, "--dataset", "iris", "--json")
    result = bench(*one, "--model", "mine=my_own_models:make", code=FAILED)
    assert json.loads(result.stdout)["units"] == {"ok": 2, "failed": 1}


def test_stores_are_merged(folder):
    one = ("run", "tiny.toml", "--workers", 0, "--dataset")
    bench(*one, "iris", "--store", "one.sqlite", code=FAILED)
    bench(*one, "wine", "--store", "two.sqlite", code=FAILED)
    bench("export", "two.sqlite", "--tasks", "--out", "two.parquet")
    merged = bench("merge", "one.sqlite", "two.parquet", "--into", "both.sqlite").stdout
    assert "two.parquet: 12 new, 24 in all" in merged
    whole = ("run", "tiny.toml", "--workers", 0, "--store", "both.sqlite", "--json")
    result = bench(*whole, code=FAILED)
    assert sum(json.loads(result.stdout)["ran"].values()) == 0


def test_stores_are_merged_all_or_not_at_all(folder):
    bench("run", "tiny.toml", "--workers", 0, "--store", "good.sqlite", code=FAILED)
    assert "there is no store none.sqlite" in refusal(
        "merge", "good.sqlite", "none.sqlite", "--into", "new.sqlite"
    )
    bench("export", "good.sqlite", "--tasks", "--out", "damaged.csv")
    lines = Path("damaged.csv").read_text().splitlines(keepends=True)
    Path("damaged.csv").write_text("".join(lines[:-1]) + lines[-1].replace("{", "["))
    damaged = ("merge", "good.sqlite", "damaged.csv", "--into")
    assert "damaged.csv is damaged" in refusal(*damaged, "new.sqlite")
    Store("old.sqlite").close()
    assert "damaged.csv is damaged" in refusal(*damaged, "old.sqlite")
    assert "is empty" in bench("status", "old.sqlite").stdout
    names = {path.name for path in folder.iterdir()}
    assert names == {"tiny.toml", "good.sqlite", "damaged.csv", "old.sqlite"}


WRONG = {
    "run none.toml": "there is no spec none.toml",
    "run broken.toml": "broken.toml: not valid TOML",
    "run bad.toml": "bad.parquet",
    "run tiny.toml --dataset irs": "has no table 'irs'; did you mean 'iris'?",
    "run tiny.toml --store no.sqlite": "no.sqlite: it is no SQLite file",
    "run tiny.toml --time-limit soon": "--time-limit must be a number of seconds",
    "run tiny.toml --model mine=nothing": "models.own.mine must be 'package.module:factory'",
    "status none.sqlite": "there is no store none.sqlite",
    "export empty.sqlite --out x.txt": "must end in .csv or .parquet",
}


def test_what_is_wrong_is_one_line(folder):
    Path("broken.toml").write_text("name = ")
    Path("bad.parquet").write_bytes(b"PAR1 and nothing more")
    text = SPEC.replace('"sklearn"', '"file:bad.parquet#y"')
    Path("bad.toml").write_text(text.replace('["iris", "wine"]', "[]"))
    Path("no.sqlite").write_text("no database" * 1000)
    Store("empty.sqlite").close()
    for command, told in WRONG.items():
        assert told in refusal(*command.split()), command
    assert not Path("tiny.sqlite").exists()
    assert "is empty" in bench("status", "empty.sqlite").stdout


def test_arguments_that_contradict_each_other_are_refused(folder):
    both = ("run", "tiny.toml", "--workers", 1, "--scheduler", "tcp://127.0.0.1:1")
    assert "give one" in bench(*both, code=2).stderr
    assert "NAME=MODULE:FACTORY" in bench("run", "tiny.toml", "--model", "mine", code=2).stderr


def slow_spec(folder, sleep):
    path = folder / "slow.toml"
    path.write_text(SPEC.replace("FOLDER", str(folder)) + f"sleep = {sleep}\n")
    return path


def launched(*arguments, **options):
    command = [sys.executable, str(HERE / "launch.py"), "bench", *map(str, arguments)]
    return subprocess.Popen(command, env=ENVIRONMENT, text=True, **options)


@pytest.mark.cluster
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_a_stopped_run_says_how_to_go_on_and_goes_on(folder, how):
    spec = slow_spec(folder, 0.03)
    run = ("run", spec, "--workers", 0 if how == signal.SIGTERM else 1)
    driver = launched(*run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    wait_for_rows(driver, folder / "tiny.sqlite", 3)
    os.killpg(driver.pid, how) if how == signal.SIGINT else driver.send_signal(how)
    _, said = driver.communicate()
    assert driver.returncode == (130 if how == signal.SIGINT else 143)
    last = said.strip().split("\n")[-1]
    assert re.match(r"stopped: \d+ of 24 tasks are in tiny.sqlite; go on with: cocoloss", last)
    assert "Traceback" not in said
    with Store("tiny.sqlite") as store:
        assert store.runs()[-1]["state"] == "stopped"
        done = len(list(store.rows()))
    assert "stopped; run the same command to go on" in bench("status", "tiny.sqlite").stdout
    rest = json.loads(bench("run", spec, "--workers", 0, "--json", code=FAILED).stdout)
    assert sum(rest["ran"].values()) == 24 - done
    with Store("whole.sqlite") as whole, Store("tiny.sqlite") as stopped:
        bench("run", spec, "--workers", 0, "--store", "whole.sqlite", code=FAILED)
        assert numbers(stopped, load_spec(spec)) == numbers(whole, load_spec(spec))


def test_what_was_begun_and_dropped_at_ctrl_c_says_nothing(folder, monkeypatch):
    async def begun():
        """Do what nobody waits for."""

    def stopped(*_, **__):
        begun()
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "run", stopped)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        bench("run", "tiny.toml", "--workers", 0, code=130)
        gc.collect()
    assert not warned


def test_a_terminal_shows_what_is_running_and_how_long_it_will_take(folder):
    ours, theirs = pty.openpty()
    driver = launched("run", slow_spec(folder, 0.03), "--workers", 0, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 4096)
        except OSError:
            break
    os.close(ours)
    assert driver.wait() == FAILED
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    assert re.search(r"\d+/24 tasks.* gone, about .* left · 1 worker", text)
    assert re.search(r"^fake/(iris|wine)/(good|breaks)/(trial|fold)/\d ", text, re.MULTILINE)
    assert "failed iris / breaks: RuntimeError: fold 1 does not converge" in text
    assert "ran 24 tasks" in text


def test_the_help_comes_without_anything_heavy():
    code = "import sys, cocoloss.cli.bench; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "numpy", "sqlalchemy", "distributed"} & set(done.stdout.split())


def test_threads_and_device_reach_the_tasks_and_change_no_key(folder, monkeypatch):
    seen = []
    monkeypatch.setattr("cocoloss.benchmark.workers.use_threads", seen.append)
    bench("run", "tiny.toml", "--workers", 0, "--threads", 3, code=FAILED)
    assert set(seen) == {3}
    spec = load_spec("tiny.toml")
    other = spec.changed(threads=3, device="cuda")
    assert (other.limits.threads, other.limits.device) == (3, "cuda")
    assert other.hash == spec.hash
    assert "24 tasks, all done" in bench("run", "tiny.toml", "--workers", 0, code=FAILED).stdout
    line = refusal("run", "tiny.toml", "--device", "abacus")
    assert "device 'abacus' cannot be used here" in line
