"""ARFF through liac-arff: declared types, sparse rows, and files that it cannot read."""

import gzip
import io
import sys
import time

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from scipy.io import arff as scipy_arff

from cocoloss.exceptions import CoCoError
from cocoloss.tables import read_table

PLANTS = """% a comment
@RELATION plants

@attribute 'leaf length' NUMERIC
@ATTRIBUTE\twidth\treal
@attribute count integer
@attribute kind {rose,'red oak', elm}
@attribute note string
@DATA
% another
1.5,2,3,'red oak',"it's, fine"
?, ?, ?, ?, ?

-1e3, .5, 7, elm, plain
"""
HEAD = "@relation r\n@attribute a real\n@attribute b {x,y}\n@data\n"
MANY = ",".join(f"x{i}" for i in range(40))


def test_every_declared_type_is_read(saved):
    read = read_table(saved(PLANTS, "table.arff"))
    assert read["leaf length"].tolist()[0::2] == [1.5, -1000]
    assert read["width"].tolist()[0::2] == [2, 0.5]
    assert read["count"].dtype == "float64"
    assert read["kind"].tolist()[0::2] == ["red oak", "elm"]
    assert read["note"].tolist()[0::2] == ["it's, fine", "plain"]
    assert read.iloc[1].isna().all()
    dtype = read["kind"].dtype
    assert (list(dtype.categories), dtype.ordered) == (["rose", "red oak", "elm"], False)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (gzip.compress(PLANTS.encode()), "a.arff.gz"),
        (PLANTS.replace("\n", "\r\n"), "b.arff"),
        (PLANTS.encode("utf-8-sig"), "c.arff"),
        (PLANTS, "d.csv"),
        (PLANTS.encode("utf-16"), "e.arff"),
    ],
)
def test_packing_line_ends_marks_and_other_suffixes_change_nothing(saved, content, name):
    assert_frame_equal(read_table(saved(content, name)), read_table(saved(PLANTS, "table.arff")))


def test_dense_files_are_read_as_scipy_reads_them(saved):
    rng = np.random.default_rng(0)
    head = "@relation r\n@attribute a real\n@attribute b {x,y,z}\n@attribute c real\n@data\n"
    rows = [f"{a},{'xyz'[b]},{rng.normal()}\n" for a, b in rng.integers(0, 3, (50, 2))]
    content = head + "".join(rows)
    oracle = pd.DataFrame(scipy_arff.loadarff(io.StringIO(content))[0])
    oracle["b"] = oracle["b"].str.decode("ascii")
    read = read_table(saved(content, "table.arff"))
    assert_frame_equal(read.astype({"b": object}), oracle.astype({"b": object}))


def test_sparse_rows_leave_out_zeros_and_first_values(saved):
    read = read_table(saved(HEAD + "{0 1.5}\n{}\n{1 y,0 ?}\n"))
    assert read["a"].tolist()[:2] == [1.5, 0]
    assert pd.isna(read["a"][2])
    assert read["b"].tolist() == ["x", "x", "y"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("@relation r\n@attribute a real\n", "cannot be read as ARFF: Invalid layout"),
        (HEAD + "% only this\n", "no rows"),
        (HEAD + "1,x\n1\n", "line 6"),
        (HEAD + "1,x\n1,x,3%d\n", "cannot be read as ARFF"),
        (HEAD + "1,x\none,x\n", "at line 6"),
        (HEAD + "1,z\n", "Data value z not found"),
        ("@relation r\n@attribute a real\n@attribute a real\n@data\n1,2\n", "line 3"),
        ("@relation r\n@attribute a date 'yyyy'\n@data\n2020\n", "declare it as string"),
        ("@relation r\n@attribute a {x,y\n@data\nx\n", "line 2: the values of a cannot be read"),
        ("@relation r\n@attribute a {" + MANY + ", New York}\n@data\nx1\n", "into quotes"),
    ],
)
def test_a_bad_file_gives_one_clear_line(saved, content, said):
    path = saved(content, "table.arff")
    with pytest.raises(CoCoError) as error:
        read_table(path)
    assert said in str(error.value)
    assert "table.arff" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("line", ["\n", "%\n", " % a comment\r\n"])
@pytest.mark.parametrize("rest", ["a,b\n1,x\n2,y\n", HEAD + "1,x\n2,y\n"])
def test_many_blank_lines_or_comments_before_a_table_take_no_time(saved, line, rest):
    path = saved(line * 2000 + rest, "table.csv")
    before = time.process_time()  # others may keep the machine busy
    try:
        n_rows = len(read_table(path))
    except CoCoError:
        assert "%" in line  # which is no comment in a delimited file
    else:
        assert n_rows == 2
    assert time.process_time() - before < 5


def test_without_the_extra_one_line_says_how_to_get_it(saved, monkeypatch):
    monkeypatch.setitem(sys.modules, "arff", None)
    with pytest.raises(CoCoError, match=r"needs liac-arff; run pip install 'cocoloss\[arff\]'"):
        read_table(saved(PLANTS, "table.arff"))
