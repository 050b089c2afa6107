"""``cocoloss fit`` of several files, of a folder, and of a large file: one table in blocks."""

import json

import pytest

from cocoloss.cli import options


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    """The table in three files, of which one lacks two classes; and a file that is no table."""
    place = tmp_path_factory.mktemp("parts")
    unknown = frame.copy()
    unknown.loc[[3, 140], "kind"] = None
    unknown[:50].to_csv(place / "a.csv", index=False)
    unknown[50:100].to_csv(place / "b.csv", index=False)
    (place / "deeper").mkdir()
    unknown[100:].to_parquet(place / "deeper" / "c.parquet", index=False)
    (place / "notes.md").write_text("no table")
    return place


def facts(result):
    return json.loads(result.stdout)


def test_several_files_and_a_folder_are_one_table(run, folder, frame, tmp_path):
    arguments = ["--target", "kind", "--drop", "id", "--solver", "kernel", "--json"]
    files = [folder / "a.csv", folder / "b.csv", folder / "deeper" / "c.parquet"]
    several = run("fit", *files, *arguments, "--out", tmp_path / "m.coco")
    assert several.stderr.count("left out 2 rows whose kind is not known") == 1
    whole = run("fit", folder, *arguments, "--out", tmp_path / "n.coco")
    assert facts(several)["rows"] == facts(whole)["rows"] == 148
    known = frame.drop([3, 140])
    assert facts(whole)["classes"] == known.kind.value_counts().sort_index().to_dict()
    assert facts(several)["loo_accuracy"] == facts(whole)["loo_accuracy"] > 0.6
    frame.to_csv(tmp_path / "new.csv", index=False)
    predicted = run("predict", tmp_path / "m.coco", tmp_path / "new.csv")
    assert len(predicted.stdout.splitlines()) == len(frame) + 1


def test_a_pattern_names_its_files(run, refused, folder, tmp_path):
    """Where the shell has left it as it is."""
    arguments = ["--target", "kind", "--drop", "id", "--out", tmp_path / "m.coco", "--json"]
    assert facts(run("fit", folder / "*.csv", *arguments))["rows"] == 99
    assert facts(run("fit", folder / "**" / "*[bc].*", *arguments))["rows"] == 99
    assert "there is no file" in refused("fit", folder / "*.tsv", *arguments)


def test_a_large_file_is_read_in_blocks(run, refused, table, tmp_path, monkeypatch):
    monkeypatch.setattr(options, "LARGE_FILE", 100)
    monkeypatch.setattr(options, "BLOCK_ROWS", 40)
    arguments = ["--target", "kind", "--drop", "id", "--out", tmp_path / "m.coco"]
    result = run("fit", table, *arguments, "--landmarks", "kmeans")
    assert "rows      150" in result.stdout
    assert "it contains means of rows, and no row" in result.stdout
    assert "networks need all rows at once" in refused("fit", table, *arguments, "--epochs", 2)
    assert "there is no column 'knd'; did you mean 'kind'" in refused(
        "fit", table, "--target", "knd", "--drop", "id", "--out", tmp_path / "x.coco"
    )
    assert "leave it out, or name one file" in refused("fit", table, *arguments, "--tune", 2)


def test_a_folder_without_tables_is_refused(refused, tmp_path):
    (tmp_path / "empty").mkdir()
    line = refused("fit", tmp_path / "empty", "--target", "y", "--out", tmp_path / "m.coco")
    assert "is a folder without tables" in line
