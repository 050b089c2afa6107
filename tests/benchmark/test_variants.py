"""Two benchmarks of one name in one store are told apart, and each can be asked for."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from bench_cli import SPEC, bench, refusal

from cocoloss.benchmark.spec import load_spec
from cocoloss.cli.root import main


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


def test_status_shows_digits_of_the_hash_only_where_a_name_occurs_twice(two):
    shown = bench("status", "tiny.sqlite").stdout
    for name in two:
        assert f"{name} (fake): finished" in shown
    Path("tiny.sqlite").unlink()
    bench("run", "tiny.toml", "--workers", 0)
    assert "tiny (fake): finished" in bench("status", "tiny.sqlite").stdout


def test_the_report_tells_them_apart(two):
    bench("report", "tiny.sqlite", "--out", "both")
    page = Path("both/report.md").read_text()
    for name in two:
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
    bench("export", "tiny.sqlite", "--out", "tasks.csv", "--name", two[0], "--tasks")
    bench("merge", "tasks.csv", "--into", "other.sqlite")
    assert "tiny (fake): finished" in bench("status", "other.sqlite").stdout
    said = refusal("export", "tiny.sqlite", "--out", "x.csv", "--name", "tinny")
    assert said.endswith(f"tiny.sqlite has no benchmark 'tinny'; it has {', '.join(two)}")


def test_a_table_of_both_is_not_compared_as_one(two):
    from click.testing import CliRunner  # noqa: PLC0415

    bench("export", "tiny.sqlite", "--out", "both.csv")
    said = CliRunner().invoke(main, ["compare", "both.csv"]).stderr
    assert f"rows of 2 benchmarks, {two[0]}, {two[1]}" in said
