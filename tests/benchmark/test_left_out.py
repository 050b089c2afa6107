"""A folder with files that are no tables to learn from: they are told, and the others are run."""

import json
from pathlib import Path

import fake
import pytest
from bench_cli import bench, refusal
from bench_helpers import fake_spec, merge

from cocoloss.benchmark.analysis import read_findings
from cocoloss.benchmark.plan import Tables
from cocoloss.benchmark.store import Store
from cocoloss.exceptions import CoCoError
from cocoloss.report.bench_sections import about_blocks, missing_blocks
from cocoloss.report.document import Document
from cocoloss.report.markup import as_markdown
from cocoloss.tables import OpenMLSource

GOOD = "a,b,target\n" + "1,2,x\n3,4,y\n" * 10
BAD = {
    "aimless.csv": "a,b\n1,2\n3,4\n",
    "broken.parquet": "PAR1 and nothing more",
    "single.csv": "a,target\n1,x\n2,x\n",
}
ALL = ["aimless", "broken", "single"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("tables").mkdir()
    for name, content in ({"good.csv": GOOD, "other.csv": GOOD} | BAD).items():
        Path("tables", name).write_text(content)
    Path("mine.toml").write_text(
        'name = "mine"\nkind = "fake"\ndata = { source = "folder:tables" }\n'
        'folds = { outer = 3 }\nmodels = { names = ["good"] }\n'
    )


RUN = ("run", "mine.toml", "--workers", 0)


def test_unusable_tables_are_told_by_every_command_and_the_others_run():
    plan = bench("plan", "mine.toml")
    assert plan.stderr.count("left out: ") == 3
    assert "on 2 tables" in plan.stdout
    assert list(json.loads(bench("plan", "mine.toml", "--json").stdout)["left_out"]) == ALL

    run = bench(*RUN)
    lines = [line for line in run.stderr.split("\n") if line.startswith("left out: ")]
    assert [line.split(": ")[1] for line in lines] == ALL
    assert "left out: aimless: aimless has no column 'target'" in run.stderr
    assert "has its classes in schema.json" in run.stderr  # others may see it: no path of ours
    assert "1 model on 2 tables" in run.stdout
    assert "0 of them failed; 3 tables were left out\n" in run.stdout
    told = json.loads(bench(*RUN, "--json").stdout)["left_out"]
    assert list(told) == ALL
    assert told["single"].startswith("column 'target' holds one class only")
    assert "  left out: broken: " in bench("status", "mine.sqlite").stdout


def test_report_and_export_name_them():
    bench(*RUN)
    with Store("mine.sqlite", create=False) as store:
        (findings,) = read_findings(store)
    assert list(findings.left_out) == ALL
    blocks = (*about_blocks(findings, fake), *missing_blocks(findings))
    text = as_markdown(Document("mine", blocks, {}), "figures")
    assert "3 unusable tables were left out" in text
    assert "aimless has no column" in text
    assert "every model has a result on every dataset that is not left out" in text
    bench("export", "mine.sqlite", "--tasks", "--out", "tasks.csv")
    with Store("copy.sqlite") as store:
        merge(store, "tasks.csv")
        assert list(read_findings(store)[0].left_out) == ALL


def left_out():
    (status,) = json.loads(bench("status", "mine.sqlite", "--json").stdout)
    return list(status["left_out"])


def test_a_table_that_is_mended_is_left_out_no_more():
    bench(*RUN)
    bench(*RUN, "--dataset", "good")
    assert left_out() == ALL  # of those it did not speak
    Path("tables/aimless.csv").write_text(GOOD)
    bench(*RUN, "--dataset", "aimless")
    assert left_out() == ["broken", "single"]
    Path("tables/broken.parquet").unlink()
    bench(*RUN)
    assert left_out() == ["single"]


def test_a_table_that_is_named_or_the_only_one_must_be_usable():
    assert "aimless has no column 'target'" in refusal(*RUN, "--dataset", "aimless")
    spec = Path("mine.toml").read_text()
    named = spec.replace('tables" }', 'tables", datasets = ["good", "single"] }')
    Path("named.toml").write_text(named)
    assert "one class only" in refusal("run", "named.toml", "--workers", 0)
    for name in ("good.csv", "other.csv"):
        Path("tables", name).unlink()
    said = refusal(*RUN)
    assert "none of 3 tables of folder:tables can be used; aimless: aimless has no" in said
    assert not Path("mine.sqlite").exists()


def test_tables_of_a_suite_are_all_meant(monkeypatch):
    def fails(source, name):
        raise CoCoError(f"no network for {name}")

    monkeypatch.setattr(OpenMLSource, "load", fails)
    with pytest.raises(CoCoError, match="no network for"):
        Tables(fake_spec("good", data={"source": "openml-cc18"})).infos()
