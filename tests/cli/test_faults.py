"""Wrong arguments, bad files, faults: one clear line, a non-zero exit, nothing half-written."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

TABLES = {
    "duplicate headers": (b"a,b,b\n1,2,x\n3,4,y\n", "b"),
    "no header": (b"1.5,2.5,3\n4.5,5.5,6\n7.5,8.5,9\n", "header"),
    "ragged rows": (b"a,b,y\n1,2,x\n3,4\n5,6,y\n", "line 3"),
    "only a header": (b"a,b,y\n", "row"),
    "empty": (b"", "empty"),
    "a web page": (b"<!DOCTYPE html><html><body>404</body></html>", "web page|HTML"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "not a table|picture|PNG"),
    "a pickle": (
        b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00]\x94(K\x01K\x02e.",
        "not a table|pickle",
    ),
    "a workbook": (b"PK\x03\x04" + bytes(100), "zip|workbook|archive"),
    "no such target": (b"a,b\n1,x\n2,z\n", "no column 'y'"),
    "one class": (b"a,y\n1,x\n2,x\n3,x\n", "one class|only"),
    "a target without a value": (b"a,y\n1,\n2,\n", "empty"),
    "nothing but the target": (b"y\nx\nz\nx\n", "column"),
}


@pytest.mark.parametrize(
    ("name", "command"),
    [
        *((name, "fit") for name in TABLES),
        *(("ragged rows", c) for c in ("evaluate", "report")),
    ],
)
def test_files_that_cannot_be_learnt_from_are_one_clear_line(refused, tmp_path, name, command):
    content, words = TABLES[name]
    path, out = tmp_path / "t.csv", tmp_path / ("out.html" if command == "report" else "out.coco")
    path.write_bytes(content)
    args = [] if command == "evaluate" else ["--out", out]
    line = refused(command, path, "--target", "y", *args)
    assert pd.Series([line]).str.contains(words).all(), line
    assert not out.exists()


def test_constant_columns_leave_class_shares_and_it_is_said(run, tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "m.coco"
    path.write_bytes(b"a,b,y\n1,1,x\n1,1,z\n1,1,z\n1,1,z\n")
    said = run("fit", path, "--target", "y", "--out", out, "--priors", "empirical").stderr
    assert "no column is left to learn from: 'a' (constant); 'b' (constant)" in said
    assert "all rows are predicted alike" in said
    proba = run("predict", out, path, "--proba").stdout.splitlines()
    assert len(set(proba[1:])) == 1


@pytest.mark.parametrize(
    "content",
    [
        "\ufeffa,b,y\n1,Zürich,x\n2,Genf,z\n3,Bern,x\n4,Genf,z\n".encode(),
        "a;b;y\n1,5;Zürich;x\n2;Genf;z\n3;Bern;x\n4;Genf;z\n".encode("latin-1"),
        b"a\tb\ty\n1\tu\tx\n2\tv\tz\n3\tu\tx\n4\tv\tz\n",
        "a|b|y\n1|u|x\n2|v|z\n3|u|x\n4|v|z\n".encode("utf-16"),
    ],
)
def test_marks_encodings_and_separators_are_found(run, tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    output = run("fit", path, "--target", "y", "--out", tmp_path / "m.coco", "--epochs", 1).output
    assert "rows      4" in output
    assert "x (2), z (2)" in output


def test_thousands_of_columns_are_learnt(run, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(20, 2000)).round(2)).add_prefix("c")
    frame.assign(y=["a", "b"] * 10).to_csv(tmp_path / "t.csv", index=False)
    args = ("fit", tmp_path / "t.csv", "--target", "y", "--out", tmp_path / "m.coco")
    assert "2,000 used" in run(*args, "--epochs", 1, "--members", 1).output


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["fti", "t.csv"], "no command 'fti'; did you mean 'fit'?"),
        (["fit", "t.csv"], "Missing option '--target'"),
        (["fit", "t.csv", "--target", "y", "--target", "z"], "was given 2 times: y, z"),
        (["fit", "t.csv", "--targte", "y"], "Did you mean '--target'?"),
        (["fit"], "Missing argument 'FILES...'"),
        (["fit", "t.csv", "--target", "y", "--out", "m", "--epochs", "many"], "'many'"),
        (["fit", "t.csv", "--target", "y", "--out", "m", "--epochs", "0"], "0"),
        (["fit", "t.csv", "--target", "y", "--out", "m", "--model", "svm"], "svm"),
        (["evaluate", "t.csv", "--target", "y", "--folds", "1"], "1"),
    ],
)
def test_wrong_arguments_are_one_clear_line(refused, args, words):
    line = refused(*args, code=2)
    assert words in line
    assert "--help)" in line


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("predict {tmp}/no.coco {table}", "there is no file"),
        ("predict {model} {tmp}/no.csv", "there is no file"),
        ("predict {table} {table}", "not a cocoloss model file"),
        ("predict {model} {model}", "the model is first"),
        ("evaluate {model} --target kind", "is a model, not a table"),
        ("predict {model} {tmp}", "folder"),
        ("predict {model} {table} --out {table}", "which is being read; choose another name"),
        ("fit {table} --target kind --out {table}", "which is being read"),
        ("report {table} --target kind --out {table}", "which is being read"),
        ("report {table} --target kind --out {tmp}/x.pdf", "must end in .html or .htm"),
        ("fit {table} --target kind --drop kind --out {tmp}/m.coco", "that is the target"),
        ("fit {table} --target kind --out {tmp}/x.csv", "call a model something like model.coco"),
    ],
)
def test_files_that_do_not_fit_the_command_are_told_and_stay(
    refused, table, model, tmp_path, command, words
):
    copy = tmp_path / "t.csv"
    copy.write_bytes(table.read_bytes())
    places = {"table": copy, "model": model, "tmp": tmp_path}
    assert words in refused(*(part.format(**places) for part in command.split()))
    assert copy.read_bytes() == table.read_bytes()
    assert os.listdir(tmp_path) == ["t.csv"]


def test_columns_that_lack_or_have_another_type_are_named(refused, frame, model, tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "p.csv"
    frame.drop(columns=["size", "city"]).to_csv(path, index=False)
    line = refused("predict", model, path, "--out", out)
    assert "lacks columns that the model needs: 'size', 'city'" in line
    frame.assign(size="large").to_csv(path, index=False)
    assert "'size'" in refused("predict", model, path, "--out", out)
    assert not out.exists()


def test_what_a_head_has_not_is_told_before_the_work(refused, table, tmp_path):
    from cocoloss import CoCoClassifier  # noqa: PLC0415

    frame = pd.read_csv(table)
    linear = CoCoClassifier(head="ridge", max_iter=1).fit(frame[["size"]], frame["kind"])
    linear.save(tmp_path / "m.coco")
    assert "--proba is not for this model" in refused(
        "predict", tmp_path / "m.coco", table, "--proba"
    )


@pytest.mark.parametrize("command", ["fit", "report", "predict", "embed"])
def test_places_that_cannot_be_written_are_told_before_the_work(
    refused, table, model, tmp_path, command, monkeypatch
):
    monkeypatch.setattr("cocoloss.tables.open_table", lambda *_, **__: 1 / 0)
    first = [model, table] if command in {"predict", "embed"} else [table, "--target", "kind"]
    suffix = {"fit": ".coco", "report": ".html"}.get(command, ".csv")
    assert "it is a folder" in refused(command, *first, "--out", tmp_path)
    assert "make it first" in refused(command, *first, "--out", tmp_path / "no" / f"x{suffix}")
    locked = tmp_path / f"locked{suffix}"
    locked.write_text("old")
    real = os.access
    monkeypatch.setattr(os, "access", lambda p, mode: Path(p) != locked and real(p, mode))
    assert "read-only" in refused(command, *first, "--out", locked)
    assert locked.read_text() == "old"


@pytest.mark.parametrize("command", ["fit", "predict", "report"])
def test_a_full_disk_is_told_and_leaves_nothing(
    refused, table, model, tmp_path, command, monkeypatch
):
    def full(fd):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    learning = [table, "--target", "kind", "--drop", "id", "--epochs", 1]
    first = [model, table] if command == "predict" else learning
    suffix = {"fit": ".coco", "report": ".html"}.get(command, ".csv")
    line = refused(command, *first, "--out", tmp_path / f"x{suffix}")
    assert "the disk is full" in line
    assert os.listdir(tmp_path) == []


def test_ctrl_c_stops_at_once_and_leaves_nothing(table, tmp_path):
    options = ["--target", "kind", "--drop", "id", "--epochs", "1000000"]
    args = ["fit", str(table), *options, "--out", str(tmp_path / "m.coco")]
    code = (
        "import sys, cocoloss.training.trainer as t\n"
        "run = t._run_epoch\n"
        "def told(*a, **k):\n    print('epoch', flush=True)\n    return run(*a, **k)\n"
        "t._run_epoch = told\n"
        "from cocoloss.cli import main\nmain(sys.argv[1:])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"epoch\n"
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert errors.decode().strip() == "stopped; nothing was left half-written"
    assert time.monotonic() - started < 120  # of days; machines are busy at times
    assert os.listdir(tmp_path) == []


def test_sigterm_stops_like_ctrl_c_and_leaves_nothing(table, model, tmp_path):
    code = (
        "import sys, time\nfrom cocoloss.fitting.model import FittedModel\n"
        "def slow(self, X):\n    print('predicting', flush=True)\n    time.sleep(3600)\n"
        "FittedModel.predict = slow\n"
        "from cocoloss.cli import main\nmain(sys.argv[1:])"
    )
    args = ["predict", str(model), str(table), "--out", str(tmp_path / "p.csv")]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"predicting\n"
    assert len(os.listdir(tmp_path)) == 1
    process.terminate()
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 143
    assert errors.decode().strip() == "stopped; nothing was left half-written"
    assert os.listdir(tmp_path) == []


def test_kept_columns_that_the_answers_have_are_told_before_the_work(
    refused, run, frame, model, tmp_path, monkeypatch
):
    names = {"prediction": 1, "probability_ant": 2, "outlier_score": 3, "embedding_0": 4}
    path = tmp_path / "t.csv"
    frame.assign(**names).to_csv(path, index=False)
    kept = run("predict", model, path, "--keep", "probability_ant", "--keep", "outlier_score")
    assert kept.stdout.startswith("probability_ant,outlier_score,prediction\n2,3,")
    monkeypatch.setattr("cocoloss.tables.open_table", lambda *_, **__: 1 / 0)
    for name in names:
        command = ["embed"] if name == "embedding_0" else ["predict", "--proba", "--outliers"]
        line = refused(*command, model, path, "--keep", name)
        assert f"--keep {name}: a column of the result has that name" in line


def test_a_reader_that_has_seen_enough_is_no_error(table, model):
    command = [sys.executable, "-m", "cocoloss", "predict", str(model), str(table), "--proba"]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    writer.stdout.close()
    errors = writer.stderr.read()
    writer.stderr.close()
    assert writer.wait() == 1  # as click ends it, without a word
    assert errors == b""


@pytest.mark.parametrize("name", ["header=True.csv", "separator=';'.csv", "name its encoding.csv"])
def test_words_of_the_user_come_back_as_they_are(refused, tmp_path, name):
    line = refused("fit", tmp_path / name, "--target", "kind", "--out", tmp_path / "m.coco")
    assert name in line


def test_what_nobody_foresaw_is_one_line_too(refused, table, monkeypatch):
    monkeypatch.setattr("cocoloss.tables.open_table", lambda *_, **__: 1 / 0)
    line = refused("evaluate", table, "--target", "kind")
    assert "ZeroDivisionError: division by zero (COCOLOSS_TRACEBACK=1 shows where" in line
