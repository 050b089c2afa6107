"""Standard input, workbooks, titles above headers, columns of text, drift, and describe."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from cocoloss.cli import main

FAST = ("--epochs", "2", "--members", "1")


def piped(content, *args, code=0):
    result = CliRunner().invoke(main, [str(arg) for arg in args], input=content)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def messy(tmp_path_factory):
    """Return a table of every kind of column as a CSV, and its frame."""
    rng = np.random.default_rng(0)
    words = ["rain", "sun", "wind", "cloud", "storm", "frost", "haze", "snow"]
    kind = rng.choice(["u", "v"], 120)
    frame = pd.DataFrame(
        {
            "order_id": rng.permutation(10**6)[:120],
            "size": (rng.normal(size=120) + 2 * (kind == "u")).round(3),
            "note": [" ".join(rng.choice(words, 5)) for _ in range(120)],
            "token": [f"{k:x}" for k in rng.integers(10**11, 10**12, 120)],
            "city": rng.choice(["Bern", "Oslo", "Rome"], 120),
            "flat": 1,
            "kind": kind,
        }
    )
    frame["code"] = frame["kind"].map({"u": "x", "v": "y"})
    frame["near"] = (kind == "u") * 9 + rng.normal(size=120).round(2)
    frame.loc[:9, "city"] = None
    path = tmp_path_factory.mktemp("messy") / "messy.csv"
    frame.to_csv(path, index=False)
    return path, frame


def test_standard_input_is_a_table(messy, tmp_path, run):
    path, _ = messy
    told = ("--target", "kind", *FAST)
    run("fit", path, *told, "--out", tmp_path / "a.coco")
    piped(path.read_bytes(), "fit", "-", *told, "--out", tmp_path / "b.coco")
    assert (tmp_path / "a.coco").read_bytes() == (tmp_path / "b.coco").read_bytes()
    expected = run("predict", tmp_path / "a.coco", path).stdout
    assert piped(path.read_bytes(), "predict", tmp_path / "a.coco", "-").stdout == expected
    assert run("predict", tmp_path / "a.coco", path, "--out", "-").stdout == expected


def test_what_is_wrong_with_standard_input_is_said_without_a_path():
    result = piped(b"", "describe", "-", "--target", "a", code=1)
    assert result.stderr == "error: standard input is empty; there is no table in it\n"


def test_a_workbook_serves_as_a_csv_does(messy, tmp_path, run):
    path, frame = messy
    book = tmp_path / "messy.xlsx"
    with pd.ExcelWriter(book) as writer:
        pd.DataFrame({"a": ["notes"]}).to_excel(writer, sheet_name="About", index=False)
        frame.to_excel(writer, sheet_name="Data", index=False, startrow=2)
        writer.sheets["Data"]["A1"] = "Weather"
    told = ("--target", "kind", *FAST)
    result = run("fit", book, *told, "--out", tmp_path / "a.coco")
    assert "note: messy.xlsx: read the sheet 'Data'; there are also 'About'" in result.stderr
    assert "passed over 2 rows above the header, 'Weather'" in result.stderr
    options = ("--sheet", "Data", "--keep", "order_id")
    by_book = run("predict", tmp_path / "a.coco", book, *options).stdout
    assert by_book == run("predict", tmp_path / "a.coco", path, "--keep", "order_id").stdout
    report = tmp_path / "r.html"
    run("report", book, "--sheet", 2, *told, "--out", report)
    assert "messy.xlsx" in report.read_text()


def test_a_title_above_the_header_of_a_csv_is_passed_over(messy, tmp_path, run):
    path, frame = messy
    titled = tmp_path / "titled.csv"
    titled.write_text("Weather 2024,,,,,,,,\nexported today\n\n" + path.read_text())
    result = run("describe", titled, "--target", "kind", "--json")
    assert "titled.csv: passed over 2 rows above the header, 'Weather 2024'" in result.stderr
    assert "the names are in line 4" in result.stderr
    assert json.loads(result.stdout)["rows"] == len(frame)
    broken = tmp_path / "broken.csv"
    broken.write_text(titled.read_text() + "1,2\n")
    line = run("describe", broken, "--target", "kind", code=1).stderr.splitlines()[-1]
    assert f"line {len(frame) + 5}: 2 cells" in line  # lines are those of the file


def test_a_long_line_above_the_header_is_cut_in_the_note(messy, tmp_path, run):
    path, _ = messy
    (tmp_path / "ruled.csv").write_text("%" * 20_000 + "\n" + path.read_text())
    said = run("describe", tmp_path / "ruled.csv", "--target", "kind", "--json").stderr
    [line] = [line for line in said.splitlines() if "above the header" in line]
    assert len(line) < 200


def test_describe_reads_as_fit_does(messy, tmp_path, run):
    path, _ = messy
    out = run("describe", path, "--target", "kind", "--json")
    facts = json.loads(out.stdout)
    fitted = json.loads(
        run("fit", path, "--target", "kind", *FAST, "--out", tmp_path / "m.coco", "--json").stdout
    )
    kinds = {c["column"]: c["kind"] for c in facts["columns"] if c["kind"]}
    assert kinds == fitted["kinds"]
    left_out = {c["column"] for c in facts["columns"] if not c["kind"]}
    assert left_out == set(fitted["dropped_columns"])
    assert facts["classes"] == fitted["classes"]
    columns = {c["column"]: c for c in facts["columns"]}
    assert columns["city"]["gaps"] == 10
    assert columns["city"]["distinct"] == 3
    assert columns["flat"]["remark"] == "constant"
    assert columns["code"]["remark"] == "is kind written again?"
    assert columns["near"]["remark"] == "predicts kind alone; is it known by then?"
    assert columns["near"]["alone"] > 0.95 > columns["city"]["alone"]
    assert columns["order_id"]["remark"] == "may only name the rows"
    assert columns["note"]["kind"] == "text"
    assert "each value of code goes with one class" in out.stderr


def test_describe_prints_a_line_for_each_column(messy, run):
    path, frame = messy
    out = run("describe", path, "--target", "kind", "--drop", "flat").stdout
    lines = out.splitlines()
    assert lines[0] == "rows      120"
    for name in frame.columns.drop("kind"):
        assert sum(name in line.split("│")[1:2][0] for line in lines if "│" in line) == 1
    size = next(line for line in lines if line.startswith("│ size"))
    low, high = frame["size"].min(), frame["size"].max()
    assert f"{low:.4g} to {high:.4g}, median {frame['size'].median():.4g}" in size


def test_describe_knows_numbers_and_levels(messy, run):
    path, frame = messy
    facts = json.loads(run("describe", path, "--target", "size", "--json").stdout)
    assert facts["task"] == "numbers"
    assert facts["numbers"]["median"] == pytest.approx(frame["size"].median())
    assert facts["alone"] == "R2"
    told = ("--target", "city", "--levels", "Rome,Oslo,Bern")
    facts = json.loads(run("describe", path, *told, "--json").stdout)
    assert list(facts["classes"]) == ["Rome", "Oslo", "Bern"]
    assert facts["rows_without_target"] == 10


def test_drift_is_noted_at_prediction(messy, tmp_path, run):
    path, frame = messy
    run("fit", path, "--target", "kind", *FAST, "--out", tmp_path / "m.coco")
    assert "training" not in run("predict", tmp_path / "m.coco", path).stderr
    new = frame.copy()
    new["size"] += 100
    new.loc[20:60, "city"] = "Atlantis"
    new.loc[70:, "near"] = None
    new.to_csv(tmp_path / "new.csv", index=False)
    notes = run("predict", tmp_path / "m.coco", tmp_path / "new.csv").stderr.splitlines()
    assert notes[0].startswith("note: values out of the range of training: size (120 of 120 rows")
    assert notes[1].startswith("note: categories that training had not: city (41 of 120 rows")
    assert notes[2] == "note: gaps where training had none: near (50 of 120 rows)"
    assert len(notes) == 3
