"""Delimited files: separators, quotes, encodings, headers, gaps."""

import csv
import gzip
import io
import string

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from cocoloss.tables import delimited, iter_tables, open_table, read_table
from cocoloss.tables.dialect import Sample, find_dialect
from cocoloss.tables.table_file import MISSING

ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1", "cp1252"]
# Words and sentences with whatever separates cells elsewhere, and quotes.
ALPHABET = string.ascii_letters + "äéß" + " ,;|\t\"'\n%#{}" + string.digits
MARKS = {mark.lower() for mark in MISSING}


def is_plain_text(text):
    """Tell whether a cell is text to every reader: no number, no gap, no truth value."""
    if text.strip() != text or text.lower() in MARKS | {"true", "false", "inf", "infinity"}:
        return False
    try:
        float(text.replace("_", "x").replace(",", "."))
    except ValueError:
        return True
    return False


NAMES = st.lists(
    st.text(string.ascii_lowercase + "ä_", min_size=1, max_size=8),
    min_size=2,
    max_size=5,
    unique=True,
)
TEXTS = st.text(ALPHABET, min_size=1, max_size=12).filter(is_plain_text)
FLOATS = st.floats(allow_nan=True, allow_infinity=False, width=64)
INTS = st.integers(-(2**53), 2**53)


@st.composite
def frames(draw):
    n_rows = draw(st.integers(2, 8))
    columns = {}
    for name in draw(NAMES):
        cells = draw(st.sampled_from([TEXTS, FLOATS, INTS, st.booleans()]))
        columns[name] = draw(st.lists(cells, min_size=n_rows, max_size=n_rows))
    return pd.DataFrame(columns)


@settings(deadline=None, max_examples=100)
@given(
    frame=frames(),
    separator=st.sampled_from([",", ";", "\t", "|"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    encoding=st.sampled_from(ENCODINGS),
    line_end=st.sampled_from(["\n", "\r\n"]),
    packed=st.booleans(),
)
def test_what_pandas_writes_is_read_as_it_was(
    tmp_path_factory, frame, separator, quoting, encoding, line_end, packed
):
    content = frame.to_csv(index=False, sep=separator, quoting=quoting, lineterminator=line_end)
    content = content.encode(encoding)
    path = tmp_path_factory.mktemp("round") / ("a.csv.gz" if packed else "a.txt")
    path.write_bytes(gzip.compress(content) if packed else content)
    assert_frame_equal(read_table(path), frame)
    assert_frame_equal(read_table(path, separator=separator, decimal="."), frame)


@settings(deadline=None, max_examples=60)
@given(frame=frames(), rows=st.integers(1, 5), packed=st.booleans())
def test_chunks_joined_are_the_whole(tmp_path_factory, frame, rows, packed):
    path = tmp_path_factory.mktemp("chunks") / ("a.csv.gz" if packed else "a.csv")
    frame.to_csv(path, index=False)
    whole = read_table(path)
    # Later chunks may hold gaps where the first has none, so numbers and truth are wider.
    wider = {"i": "float64", "b": "boolean"}
    whole = whole.astype(
        {name: wider[t.kind] for name, t in whole.dtypes.items() if t.kind in wider}
    )
    chunks = list(iter_tables(path, rows=rows))
    assert [len(chunk) for chunk in chunks[:-1]] == [rows] * (len(chunks) - 1)
    assert 0 < len(chunks[-1]) <= rows
    empty = whole.columns[whole[:rows].isna().all()]
    for chunk in chunks:
        assert_frame_equal(chunk[:0], chunks[0][:0])
    joined = pd.concat(chunks, ignore_index=True)
    rest = [name for name in whole.columns if name not in empty]
    assert_frame_equal(joined[rest], whole[rest])
    assert joined[empty].astype(float).equals(whole[empty])


@pytest.mark.parametrize(
    ("content", "separator"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1;2\n", ";"),
        ("a\tb\n1\t2\n", "\t"),
        ("a|b\n1|2\n", "|"),
        ("a b\n1 2\n", r"\s+"),
        ("  a   b\n  1   2\n 10  20\n", r"\s+"),
        ("a;b\n1,5;2,5\n", ";"),
        ("a;b\n1,5;x, y and z\n2,5;y\n", ";"),
        ('a,b\n"x;y;z",1\n"x;y",2\n', ","),
        ('a,b\n"1;2",1\n"3;4",2\n', ","),
        ("first name,age\nBob Dylan,3\nAnn Lee,4\n", ","),
        ("when,value\n2020-01-01 10:00,5\n2020-01-01 11:00,6\n", ","),
        ("a\tb\nx, y\tz, w\n1, 2\t3, 4\n", "\t"),
        ('"a","b"\n"line\nbreak, and comma",2\n3,4\n', ","),
        ("a\n1\n2\n", ","),
        ("city\nNew York\nBonn\n", ","),
    ],
)
def test_the_separator_is_found(content, separator):
    assert find_dialect("a.csv", Sample(content, is_complete=True)).separator == separator


def test_an_outlier_row_does_not_mislead_the_search():
    content = "a;b;c\n" + "1;2;3\n" * 5 + "1,2,3,4;x\n"
    with pytest.raises(ValueError, match="line 7: 2 cells"):
        find_dialect("a.csv", Sample(content, is_complete=True))


@pytest.mark.parametrize(
    ("content", "decimal"),
    [
        ("a;b\n1,5;x\n", ","),
        ("a;b\n1,5;2\n-3;2\n", ","),
        ("a\tb\n1,5\t?\n", ","),
        ("a;b\n1,5;2.5\n", "."),  # a point speaks against it
        ("a;b\n1,5;x\nn/a;y\nbad;z\n", "."),  # the column is not numbers
        ("a;b\n1,234;x\n5,678;y\n", "."),  # thousands, perhaps
        ("a;b\n1,234;0,5\n", ","),
        ("a,b\n1,5\n", "."),
    ],
)
def test_a_decimal_comma_is_taken_only_where_it_is_sure(saved, content, decimal):
    assert (open_table(saved(content)).decimal or ".") == decimal


def test_decimal_commas_are_read_as_numbers(saved):
    path = saved("a;b\n1,5;x\n-0,25;y\n")
    assert read_table(path)["a"].tolist() == [1.5, -0.25]
    assert read_table(path, decimal=".")["a"].tolist() == ["1,5", "-0,25"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_encoding_is_found(saved, encoding):
    path = saved("größe,ort\n1,Köln\n".encode(encoding))
    assert read_table(path).to_dict("list") == {"größe": [1], "ort": ["Köln"]}


# Also across the ends of the first blocks, of 2**14 bytes and 2**18 more.
@pytest.mark.parametrize("n_before", [3, 2**14 - 7, 2**14 - 6, 2**18 + 2**14 - 7])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_the_encoding_is_found_wherever_the_first_umlaut_stands(saved, n_before, encoding):
    content = "a,b\n" + "1,x\n" * (n_before // 4) + "1" * (n_before % 4 + 1) + ",öäüß\n"
    path = saved(content.encode(encoding))
    assert read_table(path)["b"].iloc[-1] == "öäüß"
    *_, last = iter_tables(path, rows=10_000)
    assert last["b"].iloc[-1] == "öäüß"


def test_every_byte_of_windows_1252_is_a_character(saved):
    content = b"a,b\n" + bytes(b for b in range(128, 256)) + b",1\n"
    text = read_table(saved(content))["a"][0]
    assert len(text) == 128
    assert "€" in text


def test_an_encoding_can_be_named(saved):
    path = saved("a,b\nЖ,1\n".encode("koi8-r"))
    assert read_table(path, encoding="koi8-r")["a"][0] == "Ж"
    path = saved("a,b\nЖ,1\n".encode("utf-16-le"))
    assert read_table(path, encoding="utf-16-le")["a"][0] == "Ж"
    path = saved("a,b\nЖ,1\n".encode("utf-8-sig"))
    assert list(read_table(path, encoding="utf-8").columns) == ["a", "b"]


def test_headers_are_stripped_and_blank_ones_numbered(saved):
    path = saved(", b ,\n1,2,3\n")
    assert list(read_table(path).columns) == ["column_1", "b", "column_3"]


def test_counted_columns_and_years_are_names(saved):
    for first in ("0,1,2", "1,2,3", "id,2019,2020", "1100.5,1200.5,class"):
        path = saved(f"{first}\n7,8,9\n")
        assert list(read_table(path).columns) == first.split(",")


def test_a_file_without_header_is_read_when_told(saved):
    path = saved("5.1,3.5,setosa\n4.9,3.0,other\n")
    read = read_table(path, header=False)
    assert list(read.columns) == ["column_1", "column_2", "column_3"]
    assert len(read) == 2
    assert_frame_equal(pd.concat(iter_tables(path, header=False)), read)
    assert list(read_table(path, header=True).columns) == ["5.1", "3.5", "setosa"]


def test_spaces_after_every_separator_mean_nothing(saved):
    path = saved('age, work, pay\n39, "State, gov", <=50K\n50, ?, >50K\n')
    assert read_table(path).to_dict("list") == {
        "age": [39, 50],
        "work": ["State, gov", np.nan],
        "pay": ["<=50K", ">50K"],
    }


def test_spaces_after_some_separators_are_kept(saved):
    assert read_table(saved("a,b\nx, y\nz,w\n"))["b"].tolist() == [" y", "w"]


@pytest.mark.parametrize("mark", MISSING)
def test_every_mark_of_a_gap_is_one(saved, mark):
    path = saved(f"a,b\n1,x\n{mark},{mark}\n")
    read = read_table(path)
    assert read["a"].dtype == "float64"
    assert read.isna().to_numpy().tolist() == [[False, False], [True, True]]


def test_marks_of_gaps_can_be_chosen(saved):
    path = saved("a,b\n1,None\n,x\n-9,y\n")
    read = read_table(path, missing=["", "-9"])
    assert read["b"].tolist() == ["None", "x", "y"]
    assert read["a"].isna().tolist() == [False, True, True]


def test_columns_named_as_text_keep_their_spelling(saved):
    path = saved("id,x\n007,1\n8,2\n,3\n")
    for read in (read_table(path, text=["id"]), *iter_tables(path, text=["id"])):
        assert read["id"].tolist()[:2] == ["007", "8"]
        assert pd.isna(read["id"][2])


def test_types_found_late_are_types_of_the_whole_column(saved):
    # Beyond the blocks in which pandas guesses types.
    n = 300_000
    path = saved("a,b,c\n" + "1,1,True\n" * n + "x,,\n")
    read = read_table(path)
    assert read["a"].map(type).eq(str).all()
    assert read["b"].dtype == "float64"
    assert read["c"].dtype == "boolean"


def test_gaps_fractions_and_huge_numbers_may_come_late(saved):
    path = saved("a,b,c\n" + "1,True,7\n" * 10 + ",,\n2.5,False,1e300\n" + "9" * 30 + ",,\n")
    chunks = list(iter_tables(path, rows=5))
    for chunk in chunks:
        assert list(map(str, chunk.dtypes)) == ["float64", "boolean", "float64"]
    assert chunks[-1]["a"].tolist()[-1] == 1e30


@pytest.mark.parametrize("late", ["maybe", "1", "2.5"])
def test_truth_that_turns_into_something_else_is_said(saved, late):
    path = saved("a,b\n" + "1,True\n" * 10 + f"1,{late}\n")
    with pytest.raises(ValueError, match=rf"row 11 .* 'b' holds '{late}.*but true and false"):
        list(iter_tables(path, rows=5))


def test_numbers_that_turn_into_truth_are_said(saved):
    path = saved("a,b\n" + "1,2\n" * 10 + "1,True\n" * 5)
    with pytest.raises(ValueError, match=r"row 11 .* 'b' holds 'True', but numbers"):
        list(iter_tables(path, rows=5))


def test_the_stray_cell_is_named_among_decimal_commas(saved):
    path = saved("a;b\n" + "1,5;2,5\n" * 10 + "1,5;3,5\n1,5;abc\n")
    with pytest.raises(ValueError, match=r"row 12 .* 'b' holds 'abc'"):
        list(iter_tables(path, rows=5))


def test_a_column_that_is_empty_at_first_may_hold_anything_later(saved):
    path = saved("a,b\n" + "1,\n" * 10 + "1,seldom\n")
    chunks = list(iter_tables(path, rows=5))
    assert len({str(chunk["b"].dtype) for chunk in chunks}) == 1
    assert chunks[-1]["b"].tolist() == ["seldom"]


def test_line_ends_of_all_systems_are_read(saved):
    for end in ("\n", "\r\n", "\r"):
        path = saved(f"a,b{end}{end}1,x{end}2,y{end}{end}")
        assert read_table(path).to_dict("list") == {"a": [1, 2], "b": ["x", "y"]}


def test_ten_thousand_columns_are_read(saved):
    names = [f"a_rather_long_name_{j}" for j in range(10_000)]
    frame = pd.DataFrame(np.arange(30_000).reshape(3, -1), columns=names)
    content = io.StringIO()
    frame.to_csv(content, index=False)
    path = saved(content.getvalue())
    assert_frame_equal(read_table(path), frame)
    assert sum(len(chunk) for chunk in iter_tables(path)) == 3


def test_a_wide_table_comes_in_shorter_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "MOST_CELLS", 1000)
    path = tmp_path / "wide.csv"
    pd.DataFrame(np.zeros((55, 50), dtype=int)).to_csv(path, index=False)
    assert [len(chunk) for chunk in iter_tables(path)] == [20, 20, 15]


def test_short_rows_are_told_from_gaps_at_the_end(saved):
    # Beyond the sample, with gaps in the last column: quotes and separators are looked at again.
    rows = ["a,b", *['"x,y",'] * 10_000, '"x",1']
    path = saved("\n".join(rows))
    assert read_table(path)["b"].isna().sum() == 10_000
    rows[9_000] = "x"
    with pytest.raises(ValueError, match="line 9001: 1 cell"):
        read_table(saved("\n".join(rows)))


def test_white_space_of_any_length_separates(saved):
    path = saved('  id  size name\n   1   1.5 "a b"\n  20    NA c\n')
    for read in (read_table(path), *iter_tables(path)):
        assert read["name"].tolist() == ["a b", "c"]
        assert read["size"].tolist()[0] == 1.5
        assert read["size"].isna().tolist() == [False, True]


def test_old_mac_files_keep_rows_that_begin_with_a_gap(saved):
    path = saved("a,b\r\r,x\r1,y\r")
    assert read_table(path)["b"].tolist() == ["x", "y"]


@pytest.mark.parametrize("hint", ["sep=;", '"sep=;"', "SEP=;", "sep=;;"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_hint_to_excel_is_no_row(saved, hint, end, encoding):
    path = saved(end.join([hint, "a;b", "1,5;ä", "2,5;y", ""]).encode(encoding))
    for read in (read_table(path), *iter_tables(path)):
        assert read.to_dict("list") == {"a": [1.5, 2.5], "b": ["ä", "y"]}


def test_a_hint_to_excel_does_not_shift_the_numbers_of_lines(saved):
    with pytest.raises(ValueError, match="line 4: 1 cell"):
        read_table(saved("sep=;\na;b\n1;2\n3\n"))
    assert read_table(saved("sep=;a\n1;2\n")).columns.tolist() == ["sep=", "a"]
