"""Files that are no tables, or broken ones: each gives one clear line."""

import gzip
import pickle
import re
import zipfile

import numpy as np
import pandas as pd
import pytest

from cocoloss.exceptions import CoCoError
from cocoloss.tables import iter_tables, read_table

# More than the sample that is looked at first.
LONG = "a,b,c\n" + "1,2,3\n" * 12_000
LETTER = """Dear all
this is not a table, it is a letter, of course.
It has lines; some of them are long, some short.
A table, in contrast, has cells, rows, columns.

Regards
"""


def complaint(path, **options):
    """Return what both readers say of a file, having checked that they agree and are brief."""
    with pytest.raises(CoCoError) as whole:
        read_table(path, **options)
    with pytest.raises(CoCoError) as chunked:
        list(iter_tables(path, rows=5000, **options))
    assert str(whole.value) == str(chunked.value)
    assert "\n" not in str(whole.value)
    assert str(path.name) in str(whole.value)
    return str(whole.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("a,b\n", "header but no rows"),
        ("a, a\n1, 2\n", "several columns named 'a'"),
        ("a,b\n1,2\n1,2,3\n", "line 3: 3 cells where the first row has 2"),
        ("a,b\n1,2\n1\n1,2\n", "line 3: 1 cell where the first row has 2"),
        ('a,b\n"1\n1",2\n1,2,3\n', "line 4: 3 cells"),
        (LONG + "1,2,3,4\n", "line 12002: 4 cells where the first row has 3"),
        (LONG + "1,2\n", "line 12002: 2 cells where the first row has 3"),
        (LONG + "1,2,\n" + "1,2\n", "line 12003: 2 cells where the first row has 3"),
        (LONG + '"1",2\n', "line 12002: 2 cells where the first row has 3"),
        (LONG.replace(",", " ") + "1 2\n1 2 NA\n", "line 12002: 2 cells"),
        (LONG + '1,2,"3\n1,2,3\n', "quotation mark"),
        ('a,b\n1,"2\n3,4\n', "quotation mark|line"),
        (LONG + "1,2,\0\n", "NUL byte"),
        ("a,b\n1,\0\n", "binary data"),
        ("1,2,5\n3,4,9\n", "looks like data.*header to False"),
        ("5.1,3.5,1.4,setosa\n4.9,3.0,1.4,setosa\n", "looks like data.*--no-header"),
        ("<!DOCTYPE html><html><body>404</body></html>", "web page"),
        ('{"a": [1, 2]}', "JSON"),
        ("a;b;c\n" + "1;2;3\n" * 5 + "1,2,3,4;x\n", "line 7: 2 cells"),  # the outlier is not asked
        ("sep=;\na;b\n1;2\n3\n", "line 4: 1 cell"),  # a hint to Excel shifts no numbers of lines
        ("a:b:c\n1:2:3\n4:5:6\n", "separated by ':'"),
        (LETTER, "does not look like a table"),
        ("%PDF-1.7 ...", "PDF"),
        (b"\x89PNG\r\n\x1a\n\0\0", "a picture"),
        (bytes(range(256)) * 20, "binary data"),
        ("a,b\n1,2\n".encode("utf-16-le"), "UTF-16 without its mark"),
        (b"a,b\n\xc3\xa4,1\n\xe4,2\n", "not in utf-8 throughout"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Excel.*save it as CSV"),
        (b"BZh91AY", "bzip2"),
    ],
)
def test_a_bad_file_gives_one_clear_line(saved, content, said):
    assert re.search(said, complaint(saved(content)))


def test_what_is_no_file_is_said(saved, tmp_path):
    saved("a,b\n1,2\n", "customers.csv")
    assert "did you mean 'customers.csv'" in complaint(tmp_path / "costumers.csv")
    assert "no folder" in complaint(tmp_path / "nowhere" / "x.csv")
    assert "is a folder" in complaint(tmp_path)


def test_archives_workbooks_pickles_and_json_are_named(saved, tmp_path):
    for name, said in [
        ("xl/workbook.xml", "damaged Excel file"),
        ("xl/workbook.bin", "Office file; save it as .xlsx"),
        ("a.csv", "zip archive; unpack"),
    ]:
        with zipfile.ZipFile(tmp_path / "book", "w") as archive:
            archive.writestr(name, "a,b\n1,2\n")
        assert said in complaint(tmp_path / "book")
    for orient in ("records", "columns", "split"):
        text = pd.DataFrame({"a": [1, 2]}).to_json(orient=orient)
        assert "JSON" in complaint(saved(text, "table.json"))
    assert "runs code" in complaint(saved(pickle.dumps(text), "table.pkl"))


@pytest.mark.parametrize("keep", [15, 60, -1, -6])
def test_a_gzip_file_that_is_cut_short_or_altered_is_damaged(saved, keep):
    numbers = np.random.default_rng(0).normal(size=(5000, 3))
    packed = gzip.compress(pd.DataFrame(numbers, columns=[*"abc"]).to_csv(index=False).encode())
    assert "damaged or cut short" in complaint(saved(packed[:keep], "table.csv.gz"))
    flipped = packed[:20_000] + bytes([packed[20_000] ^ 0xFF]) + packed[20_001:]
    assert "table.csv.gz" in complaint(saved(flipped, "table.csv.gz"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"separator": ";"}, "has no ';' between its cells; it looks separated by ','"),
        ({"separator": "tab"}, "has no tab between its cells"),
        ({"text": ["d"]}, "no column 'd'"),
        ({"separator": "ab"}, "one character"),
        ({"separator": "§"}, "ASCII"),
        ({"separator": '"'}, "one character"),
        ({"encoding": "utf-9"}, "no encoding 'utf-9'"),
        ({"header": "no"}, "True, False or 'auto'"),
        ({"decimal": "x"}, "decimal must be one of"),
        ({"text": "a"}, r"say \['a'\]"),
    ],
)
def test_options_that_mean_nothing_or_do_not_fit_the_file_are_said(saved, options, said):
    with pytest.raises(CoCoError, match=said):
        read_table(saved("a,b\n1,2\n"), **options)


def test_a_byte_outside_the_named_encoding_is_shown(saved):
    path = saved("a,b\nä,2\n".encode("latin-1"))
    assert "byte 0xe4" in complaint(path, encoding="utf-8")
    assert read_table(path)["a"][0] == "ä"


def test_parquet_that_is_cut_short_is_damaged(saved, tmp_path):
    path = tmp_path / "table.parquet"
    pd.DataFrame({"a": range(1000), "b": 1.0}).to_parquet(path)
    whole = path.read_bytes()
    assert "damaged Parquet" in complaint(saved(whole[:-20], "cut.parquet"))
    middle = whole[:100] + bytes(2000) + whole[2100:]
    assert "Parquet" in complaint(saved(middle, "hole.parquet"))
    assert "is none" in complaint(saved("a,b\n1,2\n", "text.parquet"))
    packed = gzip.compress(whole)
    assert "Parquet inside gzip" in complaint(saved(packed, "table.parquet.gz"))
    pd.DataFrame({"a": []}).to_parquet(path)
    assert "no rows" in complaint(path)


def test_a_number_column_that_turns_to_text_late_is_said_when_chunks_are_out(saved):
    path = saved(LONG + "1,seven,3\n")
    chunks = iter_tables(path, rows=5000)
    assert (next(chunks).dtypes == "float64").all()
    with pytest.raises(CoCoError, match=r"row 12001 below the header: column 'b' holds 'seven'"):
        list(chunks)
    whole = read_table(path)
    assert whole["b"].tolist() == ["2"] * 12_000 + ["seven"]
    as_text = pd.concat(iter_tables(path, rows=5000, text=["b"]), ignore_index=True)
    assert as_text["b"].tolist() == whole["b"].tolist()


@pytest.mark.parametrize("name", ["x\0y", "x" * 300])
def test_names_that_no_file_has_are_told(tmp_path, name):
    with pytest.raises(CoCoError, match=r"there is no file|cannot read"):
        read_table(tmp_path / name)
