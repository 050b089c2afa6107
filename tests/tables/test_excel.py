"""Workbooks: typed columns, the sheet that is read, what stands above the header, bad files."""

import datetime as dt
import sys
import warnings
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pytest

from cocoloss.exceptions import CoCoError
from cocoloss.tables import excel, iter_columns, iter_tables, open_table, read_table

HEADER = ["size", "share", "day", "at", "open", "city", "zip"]
ROWS = [
    [1, 0.25, dt.date(2024, 1, 31), dt.time(9, 30), True, "Bonn", "007"],
    [2.5, 0.5, dt.date(2024, 2, 1), dt.time(10, 0), False, "Köln", 43],
    [None, None, None, None, None, "NA", None],
]


def workbook(path, sheets):
    """Write rows under the names of sheets."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


@pytest.fixture
def saved(tmp_path):
    return lambda sheets, name="table.xlsx": workbook(tmp_path / name, sheets)


def test_cells_have_their_types(saved):
    path = saved({"Data": [HEADER, *ROWS]})
    frame = read_table(path)
    assert list(frame) == HEADER
    np.testing.assert_array_equal(frame["size"], [1, 2.5, np.nan])
    np.testing.assert_array_equal(frame["share"], [0.25, 0.5, np.nan])
    assert frame["day"].dtype.kind == "M"
    assert frame["day"][0] == pd.Timestamp("2024-01-31")
    assert frame["at"][0] == pd.Timedelta("9h30min")
    assert frame["open"].tolist() == [True, False, pd.NA]
    assert frame["city"].isna().tolist() == [False, False, True]  # NA is a gap, as in a CSV
    assert frame["zip"].tolist()[:2] == ["007", "43"]  # what is not all numbers is text


def test_a_percentage_is_a_fraction(saved):
    path = saved({"Data": [["a", "b"], [0.5, 1], [0.25, 2]]})
    book = openpyxl.load_workbook(path)
    for row in (2, 3):
        book["Data"].cell(row, 1).number_format = "0%"
    book.save(path)
    assert read_table(path)["a"].tolist() == [0.5, 0.25]


def test_chunks_joined_are_the_table(saved):
    path = saved({"Data": [["a", "b"], *([k, f"v{k}"] for k in range(7))]})
    parts = list(iter_tables(path, rows=3))
    assert [len(part) for part in parts] == [3, 3, 1]
    assert pd.concat(parts)["a"].tolist() == list(range(7))
    assert next(iter_columns(path, ["b"]))["b"][0] == "v0"


def test_columns_named_as_text_are_text(saved):
    path = saved({"Data": [["code", "b"], [7, 1], [8, 2]]})
    assert read_table(path, text=["code"])["code"].tolist() == ["7", "8"]


def test_a_class_is_what_stands_there(saved):
    path = saved({"Data": [["a", "kind"], *([k, "None" if k % 2 else "x"] for k in range(6))]})
    labels = open_table(path, labels=["kind"]).read()["kind"]
    assert labels.tolist() == ["x", "None"] * 3
    assert read_table(path)["kind"].isna().sum() == 3


def test_the_first_sheet_with_a_table_is_read_and_the_others_are_named(saved):
    path = saved({"About": [["about"]], "Data": [["a", "b"], [1, 2]], "Old": [["c", "d"], [3, 4]]})
    with pytest.warns(UserWarning, match=r"read the sheet 'Data'; there are also 'About', 'Old'"):
        assert list(read_table(path)) == ["a", "b"]
    assert list(read_table(path, sheet="Old")) == ["c", "d"]
    assert list(read_table(path, sheet=3)) == ["c", "d"]
    assert list(read_table(path, sheet="2")) == ["a", "b"]
    with pytest.raises(CoCoError, match=r"no sheet 'Dta'; did you mean 'Data'\?.*by their numbers"):
        read_table(path, sheet="Dta")


def test_a_hidden_sheet_is_not_taken_by_itself(saved):
    path = saved({"Hidden": [["x", "y"], [1, 2], [3, 4]], "Data": [["a", "b"], [1, 2], [3, 4]]})
    book = openpyxl.load_workbook(path)
    book["Hidden"].sheet_state = "hidden"
    book.save(path)
    with pytest.warns(UserWarning, match="read the sheet 'Data'"):
        assert list(read_table(path)) == ["a", "b"]


def test_titles_and_blank_rows_above_the_header_are_passed_over(saved):
    rows = [["Sales 2024"], [], [None, "name", "size", "kind"]]
    rows += [[None, f"n{k}", k, "u"] for k in range(4)]
    with pytest.warns(UserWarning, match=r"passed over 2 rows.*'Sales 2024'.*in row 3"):
        frame = read_table(saved({"Data": rows}))
    assert list(frame) == ["name", "size", "kind"]
    assert len(frame) == 4
    rows[0] = ["Sales " * 999]
    with pytest.warns(UserWarning, match="passed over 2 rows") as caught:
        read_table(saved({"Data": rows}))
    assert len(str(caught[0].message)) < 200


def test_blank_rows_below_are_no_rows(saved):
    frame = read_table(saved({"Data": [["a", "b"], [1, 2], [], [3, 4], [None, " "]]}))
    assert frame["a"].tolist() == [1, 3]


def test_rows_without_a_header_have_counted_names(saved):
    path = saved({"Data": [[5.5, 1], [2.5, 9]]})
    with pytest.raises(CoCoError, match="first row looks like data"):
        read_table(path)
    assert list(read_table(path, header=False)) == ["column_1", "column_2"]


def test_formulas_are_what_they_came_to_or_a_gap_that_is_told(saved):
    path = saved({"Data": [["a", "b"], [1, "=A2*2"], [2, "=A3*2"]]})  # nothing has computed them
    with pytest.warns(UserWarning, match=r"formulas without a stored result are gaps: b \(2\)"):
        assert read_table(path)["b"].isna().all()
    with zipfile.ZipFile(path) as archive:
        parts = {entry: archive.read(entry) for entry in archive.namelist()}
    sheet = parts["xl/worksheets/sheet1.xml"]
    for value in (b"2", b"4"):
        sheet = sheet.replace(b"<v></v>", b"<v>" + value + b"</v>", 1)
        sheet = sheet.replace(b"<v />", b"<v>" + value + b"</v>", 1)
        sheet = sheet.replace(b"<v/>", b"<v>" + value + b"</v>", 1)
    parts["xl/worksheets/sheet1.xml"] = sheet
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    assert read_table(path)["b"].tolist() == [2, 4]


def test_cells_with_an_error_are_gaps(saved):
    frame = read_table(saved({"Data": [["a", "b"], ["#DIV/0!", 1], [2, 2]]}))
    assert np.isnan(frame["a"][0])
    assert frame["a"][1] == 2


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "empty"),
        ([["a", "b"]], "a header but no rows"),
        ([["a", "a"], [1, 2]], "several columns named 'a'"),
    ],
)
def test_what_is_no_table_is_refused(saved, rows, message):
    with pytest.raises(CoCoError, match=message):
        read_table(saved({"Data": rows}))


def test_a_sheet_of_a_csv_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(CoCoError, match=r"a.csv is no workbook"):
        read_table(tmp_path / "a.csv", sheet=1)


def test_a_bomb_is_not_unpacked(saved, monkeypatch):
    monkeypatch.setattr(excel, "MOST_UNPACKED", 2**23)
    path = saved({"Data": [["a", "b"], [1, 2]]})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/media/1.bin", bytes(2**24))
    assert path.stat().st_size < 2**16
    with pytest.raises(CoCoError, match=r"unpacks to 16 MB, and 8 MB are the limit"):
        read_table(path)


def test_entities_and_damage_are_refused(saved):
    path = saved({"Data": [["a", "b"], [1, 2]]})
    whole = path.read_bytes()
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/x.xml", '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><a/>')
    with pytest.raises(CoCoError, match="declares entities"):
        read_table(path)
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(200):
        altered = bytearray(whole)
        for position in rng.integers(4, len(whole), 5):
            altered[position] = rng.integers(256)
        path.write_bytes(altered)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read_table(path)
        except CoCoError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused


def test_without_openpyxl_one_line_says_how_to_get_it(saved, monkeypatch):
    path = saved({"Data": [["a", "b"], [1, 2]]})
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(
        CoCoError, match=r"Excel needs openpyxl; run pip install 'cocoloss\[excel\]'"
    ):
        read_table(path)
