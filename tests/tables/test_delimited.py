"""Delimited files: separators, quotes, encodings, headers, gaps."""

import csv
import gzip
import string
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from cocoloss.tables import iter_tables, read_table
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


@settings(deadline=None, max_examples=60)
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


@settings(deadline=None, max_examples=40)
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


@pytest.mark.parametrize("encoding", ["koi8-r", "utf-16-le", "utf-8-sig"])
def test_an_encoding_can_be_named(saved, encoding):
    path = saved("a,b\nЖ,1\n".encode(encoding))
    named = encoding.removesuffix("-sig")  # a mark is no letter, whatever is named
    assert read_table(path, encoding=named).to_dict("list") == {"a": ["Ж"], "b": [1]}


@pytest.mark.parametrize(
    ("first", "names"),
    [
        (", b ,", ["column_1", "b", "column_3"]),
        *((first, first.split(",")) for first in ("0,1,2", "1,2,3", "id,2019,2020")),
        ("1100.5,1200.5,class", ["1100.5", "1200.5", "class"]),
        ("sep=;\na;b;c", ["a", "b", "c"]),  # a hint to Excel
        ("sep=,a,b", ["sep=", "a", "b"]),
    ],
)
def test_names_are_stripped_numbered_or_taken_as_they_are(saved, first, names):
    assert list(read_table(saved(f"{first}\n{'7;8;9' if ';' in first else '7,8,9'}\n"))) == names


def test_a_file_without_header_is_read_when_told(saved):
    path = saved("5.1,3.5,setosa\n4.9,3.0,other\n")
    read = read_table(path, header=False)
    assert list(read.columns) == ["column_1", "column_2", "column_3"]
    assert len(read) == 2
    assert_frame_equal(pd.concat(iter_tables(path, header=False)), read)
    assert list(read_table(path, header=True).columns) == ["5.1", "3.5", "setosa"]


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ("a,b\nx, y\nz,w\n", {"a": ["x", "z"], "b": [" y", "w"]}),  # after some separators
        (
            'age, work\n39, "State, gov"\n50, ?\n',
            {"age": [39, 50], "work": ["State, gov", None]},
        ),
        (
            '  id  size name\n   1   1.5 "a b"\n  20    NA c\n',
            {"id": [1, 20], "size": [1.5, None], "name": ["a b", "c"]},
        ),
        *(
            (f"a,b{end}{end}1,x{end}2,y{end}{end}", {"a": [1, 2], "b": ["x", "y"]})
            for end in ("\n", "\r\n", "\r")
        ),
        ("a,b\r\r,x\r1,y\r", {"a": [None, 1], "b": ["x", "y"]}),  # which pandas gets wrong
    ],
)
def test_spaces_and_line_ends(saved, content, columns):
    path = saved(content)
    expected = pd.DataFrame(columns)
    assert_frame_equal(read_table(path), expected)
    assert_frame_equal(next(iter_tables(path)), expected, check_dtype=False)


def test_every_mark_of_a_gap_is_one_and_marks_can_be_chosen(saved):
    path = saved("a,b\n1,x\n" + "".join(f"{mark},{mark}\n" for mark in MISSING))
    read = read_table(path)
    assert read["a"].dtype == "float64"
    assert read.isna().sum().tolist() == [len(MISSING)] * 2
    read = read_table(path, missing=["", "?"])
    assert read["b"].isna().sum() == 2


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


@pytest.mark.parametrize(
    ("row", "late", "said"),
    [
        *(("1,True\n", f"1,{late}\n", f"'{late}.*but true and false") for late in ("maybe", "2.5")),
        ("1,2\n", "1,True\n" * 5, "'True', but numbers up to there"),
        ("1,5;2,5\n", "1,5;abc\n", "'abc', but numbers up to there"),
    ],
)
def test_a_column_that_turns_into_something_else_is_said(saved, row, late, said):
    path = saved(("a;b\n" if ";" in row else "a,b\n") + row * 10 + late)
    with pytest.raises(ValueError, match=rf"row 11 .* 'b' holds {said}"):
        list(iter_tables(path, rows=5))


def test_a_column_that_is_empty_at_first_may_hold_anything_later(saved):
    path = saved("a,b\n" + "1,\n" * 10 + "1,seldom\n")
    chunks = list(iter_tables(path, rows=5))
    assert len({str(chunk["b"].dtype) for chunk in chunks}) == 1
    assert chunks[-1]["b"].tolist() == ["seldom"]


def test_thousands_of_columns_are_read(saved):
    names = [f"a_rather_long_name_{j}" for j in range(4000)]  # more than are looked at first
    frame = pd.DataFrame(np.arange(12_000).reshape(3, -1), columns=names)
    path = saved(frame.to_csv(index=False))
    assert_frame_equal(read_table(path), frame)
    assert sum(len(chunk) for chunk in iter_tables(path)) == 3


def test_short_rows_are_told_from_gaps_at_the_end(saved):
    # Beyond the sample, with gaps in the last column: quotes and separators are looked at again.
    rows = ["a,b", *['"x,y",'] * 10_000, '"x",1']
    path = saved("\n".join(rows))
    assert read_table(path)["b"].isna().sum() == 10_000
    rows[9_000] = "x"
    with pytest.raises(ValueError, match="line 9001: 1 cell"):
        read_table(saved("\n".join(rows)))


@pytest.mark.parametrize("hint", ["sep=;", '"sep=;"', "SEP=;", "sep=;;"])
def test_a_hint_to_excel_is_no_row(saved, hint):
    for end, encoding in product(["\n", "\r\n", "\r"], ["utf-8", "utf-8-sig", "utf-16"]):
        path = saved(end.join([hint, "a;b", "1,5;ä", "2,5;y", ""]).encode(encoding))
        for read in (read_table(path), *iter_tables(path)):
            assert read.to_dict("list") == {"a": [1.5, 2.5], "b": ["ä", "y"]}
