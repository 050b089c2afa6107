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


def test_a_folder_lists_its_tables(folder):
    assert FolderSource(folder).names() == ["codes", "more", "zipped"]


def test_a_listed_table_is_read_to_the_letter(folder):
    table = FolderSource(folder).load("codes")
    assert table.y.tolist() == ["None", "a", "None", "a"]
    assert table.X["zip"].tolist() == ["7", "8", "7", "NA"]
    assert table.categorical == ("zip",)
    assert table.X["size"].isna().sum() == 1


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
        (
            lambda f: (f / "codes.csv").write_text(CODES.replace("target", "y")),
            "no column 'target'",
        ),
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
        ('{"codes": []}', "says [] of 'codes'"),
        ('{"codes": "kind"}', 'says "kind" of \'codes\'; it must look like {"TABLE": {"target"'),
        ('{"codes": {"categorical": "zip"}}', "'categorical' of 'codes' must be a list of columns"),
        ('{"codes": {"target": 3}}', "'target' of 'codes' must be the name of a column, got 3"),
        ('{"codes": {"target_classes": []}}', "must be each class with its number of rows"),
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


def test_a_folder_that_is_none_is_said(tmp_path):
    with pytest.raises(CoCoError, match="there is no folder"):
        FolderSource(tmp_path / "nowhere")
    with pytest.raises(CoCoError, match="has no tables; they end in"):
        FolderSource(tmp_path)


def test_one_name_for_two_files_is_said(folder):
    (folder / "codes.tsv").write_text("a\tb\n")
    with pytest.raises(CoCoError, match="several tables named 'codes'"):
        FolderSource(folder)


def test_unknown_names_are_guessed(folder):
    with pytest.raises(CoCoError, match="no table 'code'; did you mean 'codes'"):
        FolderSource(folder).load("code")
    with pytest.raises(CoCoError, match="did you mean 'digits'"):
        BundledSource().load("digit")
    with pytest.raises(CoCoError, match="no table 'x'"):
        FileSource(folder / "codes.csv", "target").load("x")


def test_a_table_without_target_is_to_be_listed(folder):
    (folder / "plain.csv").write_text("a,b\n1,x\n2,y\n3,x\n")
    shape = '{"plain": {"target": "COLUMN"}}; the columns are \'a\', \'b\''
    said = f"plain has no column 'target'; say which one has its classes in {folder}/schema.json: "
    with pytest.raises(CoCoError, match=re.escape(said + shape)):
        FolderSource(folder).load("plain")


def test_a_file_is_a_source_of_one(folder):
    source = FileSource(folder / "zipped.csv.gz", "target", categorical=["x"])
    assert source.names() == ["zipped"]
    table = source.load("zipped")
    assert table.X["x"].tolist() == ["1.5", "2.5", "3.5"]
    assert table.categorical == ("x",)
    with pytest.raises(CoCoError, match="there is no file"):
        FileSource(folder / "nothing.csv", "target")


@pytest.mark.parametrize(
    ("name", "shape", "classes"),
    [
        ("iris", (150, 4), {"setosa", "versicolor", "virginica"}),
        ("wine", (178, 13), {"class_0", "class_1", "class_2"}),
        ("breast_cancer", (569, 30), {"malignant", "benign"}),
        ("digits", (1797, 64), {str(d) for d in range(10)}),
    ],
)
def test_bundled_tables_have_named_classes(name, shape, classes):
    table = BundledSource().load(name)
    assert table.X.shape == shape
    assert set(table.y) == classes


def test_sources_are_named_in_text(folder):
    assert isinstance(load_source("sklearn"), BundledSource)
    assert isinstance(load_source("openml-cc18"), OpenMLSource)
    assert load_source(f"folder:{folder}").names() == ["codes", "more", "zipped"]
    assert load_source(f"file:{folder}/zipped.csv.gz#target").load("zipped").n_rows == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("openml-cc81", "did you mean 'openml-cc18'"),
        ("somewhere", "say 'folder:PATH', 'file:PATH#TARGET'"),
        ("folder:", "is not a source"),
        ("file:table.csv", "say file:table.csv#TARGET"),
    ],
)
def test_a_text_that_names_no_source_is_said(text, said):
    with pytest.raises(CoCoError, match=said):
        load_source(text)


def test_categories_are_read_alike_from_folder_and_frame(folder):
    frame = pd.DataFrame(
        {"zip": ["7", "8", "7", "NA"], "size": [1, 2, None, 4], "y": ["None", "a", "None", "a"]}
    )
    by_hand = make_table("codes", frame, "y", categorical=["zip"])
    assert FolderSource(folder).load("codes").fingerprint == by_hand.fingerprint


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


def test_files_on_their_way_are_no_tables_of_a_folder(tmp_path):
    for name in ("a.csv", ".b.1f.part.csv", "._a.csv"):
        (tmp_path / name).write_text("size,target\n1,x\n2,y\n3,x\n")
    assert FolderSource(tmp_path).names() == ["a"]
