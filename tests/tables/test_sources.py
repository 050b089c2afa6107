"""Folders, files and bundled tables as sources."""

import json
import re

import pandas as pd
import pytest

from cocoloss.exceptions import CoCoError
from cocoloss.tables import (
    BundledSource,
    FileSource,
    FolderSource,
    OpenMLSource,
    check_tables,
    load_source,
    make_table,
    write_table,
)

CODES = "zip,size,target\n7,1,None\n8,2,a\n7,,None\nNA,4,a\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "codes.csv").write_text(CODES)
    frame = pd.DataFrame({"x": [1.5, 2.5, 3.5], "target": [1, 2, 1]})
    write_table(frame, tmp_path / "more.parquet")
    write_table(frame, tmp_path / "zipped.csv.gz")
    for name in ("index.csv", "README.md", "notes"):
        (tmp_path / name).write_text("name,rows\n")
    schema = {"codes": {"categorical": ["zip"], "target_classes": {"None": 2, "a": 2}}}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    return tmp_path


def test_a_folder_lists_its_tables_but_not_files_on_their_way(folder):
    for name in (".b.1f.part.csv", "._a.csv"):
        (folder / name).write_text("size,target\n1,x\n2,y\n3,x\n")
    assert FolderSource(folder).names() == ["codes", "more", "zipped"]


def test_a_listed_table_is_read_to_the_letter(folder):
    table = FolderSource(folder).load("codes")
    assert table.y.tolist() == ["None", "a", "None", "a"]
    assert table.X["zip"].tolist() == ["7", "8", "7", "NA"]
    assert table.categorical == ("zip",)
    assert table.X["size"].isna().sum() == 1
    frame = table.X.assign(y=table.y)
    by_hand = make_table("codes", frame, "y", categorical=["zip"])
    assert table.fingerprint == by_hand.fingerprint


def test_other_tables_are_read_like_any_file(folder):
    source = FolderSource(folder)
    assert source.load("more").y.tolist() == [1, 2, 1]
    assert source.load("more").fingerprint == source.load("zipped").fingerprint


def test_a_schema_may_name_another_target(folder):
    (folder / "schema.json").write_text('{"codes": {"target": "zip"}}')
    table = FolderSource(folder).load("codes")
    assert table.y.tolist() == [7, 8, 7]
    assert table.n_left_out == 1
    assert list(table.X.columns) == ["size", "target"]


def test_naming_the_target_does_not_change_how_a_table_is_read(tmp_path):
    path = tmp_path / "q.csv"
    path.write_text("a,b,kind\n1.5,NA,x\n?,2,y\n3,4,x\n4,5,y\n")
    (tmp_path / "schema.json").write_text('{"q": {"target": "kind"}}')
    table = FolderSource(tmp_path).load("q")
    assert [dtype.kind for dtype in table.X.dtypes] == ["f", "f"]
    assert table.fingerprint == load_source(f"file:{path}#kind").load("q").fingerprint


@pytest.mark.parametrize("schema", [None, "{}", '{"t": {"target": "target"}}'])
def test_text_counts_as_categorical_where_nothing_is_said(tmp_path, schema):
    rows = [f"{i},{'ab'[i % 2]},{i} EUR,0{i % 9 + 1}.12.2024,Note {i},{i % 2}" for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["size,city,price,day,note,target", *rows]))
    if schema is not None:
        (tmp_path / "schema.json").write_text(schema)
    table = FolderSource(tmp_path).load("t")
    assert table.categorical == ("city",)
    assert table.X["city"].tolist()[:2] == ["a", "b"]
    assert not isinstance(table.X["city"].dtype, pd.CategoricalDtype)
    assert table.rows([0, 1]).categorical == ("city",)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: (f / "codes.csv").write_text(CODES + "7,5,a\n"), "3 rows of class 'a' where"),
        (lambda f: (f / "codes.csv").write_text(CODES.replace("zip", "zap")), "no column 'zip'"),
        (lambda f: (f / "codes.csv").write_text(CODES + "7\n"), "line 6: 1 cell"),
        (lambda f: (f / "codes.csv").write_bytes(b"\x1f\x8b damaged"), "damaged or cut short"),
        (lambda f: (f / "codes.csv").unlink(), "no file"),
    ],
)
def test_a_damaged_table_gives_one_line_and_the_others_load(folder, change, said):
    source = FolderSource(folder)
    change(folder)
    checks = {check.name: check for check in check_tables(source)}
    assert said in checks["codes"].problem
    assert "\n" not in checks["codes"].problem
    assert checks["more"].problem is None
    assert checks["more"].n_rows == 3
    assert checks["more"].fingerprint == source.load("more").fingerprint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not readable as JSON"),
        ("[]", 'must look like {"TABLE": {"target": "COLUMN"}}'),
        ('{"codes": "kind"}', 'says "kind" of \'codes\'; it must look like {"TABLE": {"target"'),
        ('{"codes": {"categorical": "zip"}}', "'categorical' of 'codes' must be a list of columns"),
        ('{"codes": {"target": 3}}', "'target' of 'codes' must be the name of a column, got 3"),
        (
            '{"codes": {"targt": "zip"}}',
            "says 'targt' of 'codes', which means nothing; did you mea",
        ),
        ('{"codes": {"xyz": 1}}', "there are 'categorical', 'target', 'target_classes'"),
    ],
)
def test_a_schema_that_cannot_be_read_is_said(folder, text, said):
    (folder / "schema.json").write_text(text)
    with pytest.raises(CoCoError, match=re.escape(said)) as caught:
        FolderSource(folder)
    assert str(folder / "schema.json") in str(caught.value)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (lambda folder: FolderSource(folder / "nowhere"), "there is no folder"),
        (lambda folder: (folder / "empty").mkdir() or FolderSource(folder / "empty"), "no tables"),
        (
            lambda folder: (folder / "codes.tsv").write_text("a") and FolderSource(folder),
            "several tables named 'codes'",
        ),
        (lambda folder: FolderSource(folder).load("code"), "no table 'code'; did you mean 'codes'"),
        (lambda _: BundledSource().load("digit"), "did you mean 'digits'"),
        (lambda folder: FileSource(folder / "codes.csv", "zip").load("x"), "no table 'x'"),
        (lambda _: load_source("openml-cc81"), "did you mean 'openml-cc18'"),
        (lambda _: load_source("somewhere"), "say 'folder:PATH', 'file:PATH#TARGET'"),
        (lambda _: load_source("file:table.csv"), "say file:table.csv#TARGET"),
    ],
)
def test_what_is_not_there_is_said(folder, source, said):
    with pytest.raises(CoCoError, match=said):
        source(folder)


def test_a_table_without_target_is_to_be_listed(folder):
    (folder / "plain.csv").write_text("a,b\n1,x\n2,y\n3,x\n")
    shape = '{"plain": {"target": "COLUMN"}}; the columns are \'a\', \'b\''
    said = f"plain has no column 'target'; say which one has its classes in {folder}/schema.json: "
    with pytest.raises(CoCoError, match=re.escape(said + shape)):
        FolderSource(folder).load("plain")


def test_bundled_tables_have_named_classes():
    source = BundledSource()
    tables = {name: source.load(name) for name in source.names()}
    assert set(tables["breast_cancer"].y) == {"malignant", "benign"}
    assert set(tables["digits"].y) == {str(d) for d in range(10)}
    assert [table.n_rows for table in tables.values()] == [150, 178, 569, 1797]


def test_sources_are_named_in_text(folder):
    assert isinstance(load_source("sklearn"), BundledSource)
    assert isinstance(load_source("openml-cc18"), OpenMLSource)
    assert load_source(f"folder:{folder}").names() == ["codes", "more", "zipped"]
    assert load_source(f"file:{folder}/zipped.csv.gz#target").load("zipped").n_rows == 3


def test_rows_without_a_class_are_left_out_and_counted(tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text("a,target\n1,x\n2,\n3,y\n4,x\n5,?\n")
    for source in (f"file:{path}#target", f"folder:{tmp_path}"):
        (check,) = check_tables(load_source(source))
        assert (check.n_rows, check.n_left_out, check.problem) == (3, 2, None)


def test_a_table_that_is_read_to_the_letter_has_a_class_in_every_row(tmp_path):
    (tmp_path / "gaps.csv").write_text("a,target\n1,x\n2,\n3,y\n4,x\n")
    (tmp_path / "schema.json").write_text('{"gaps": {"categorical": []}}')
    (check,) = check_tables(load_source(f"folder:{tmp_path}"))
    assert "has no class in 1 of 4 rows" in check.problem
