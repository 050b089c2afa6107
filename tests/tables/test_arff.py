"""ARFF: declared types, quotes, comments, sparse rows."""

import gzip
import io
import string

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal
from scipy.io import arff as scipy_arff

from cocoloss.exceptions import CoCoError
from cocoloss.tables import iter_tables, read_table
from cocoloss.tables.arff import _quick_columns

PLANTS = """% a comment
@RELATION plants

@attribute 'leaf length' NUMERIC
@ATTRIBUTE width real
@attribute count integer
@attribute kind {rose,'red oak', elm}
@attribute note string
@attribute seen date "yyyy-MM-dd"
@DATA
% another
1.5,2,3,'red oak',"it's, fine",2020-01-31
?, ?, ?, ?, ?, ?

-1e3, .5, 7, elm, plain, 1999-12-01
"""


def saved(tmp_path, content, name="table.arff"):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_every_declared_type_is_read(tmp_path):
    read = read_table(saved(tmp_path, PLANTS))
    assert read["leaf length"].tolist()[0::2] == [1.5, -1000]
    assert read["count"].dtype == "float64"
    assert read["kind"].tolist()[0::2] == ["red oak", "elm"]
    assert read["note"].tolist()[0::2] == ["it's, fine", "plain"]
    assert read["seen"].tolist()[0::2] == [pd.Timestamp("2020-01-31"), pd.Timestamp("1999-12-01")]
    assert read.iloc[1].isna().all()


def test_nominal_columns_have_no_order(tmp_path):
    dtype = read_table(saved(tmp_path, PLANTS))["kind"].dtype
    assert not dtype.ordered
    assert list(dtype.categories) == ["rose", "red oak", "elm"]


def test_packing_line_ends_marks_and_other_suffixes_change_nothing(tmp_path):
    plain = read_table(saved(tmp_path, PLANTS))
    for content, name in [
        (gzip.compress(PLANTS.encode()), "a.arff.gz"),
        (PLANTS.replace("\n", "\r\n"), "b.arff"),
        (PLANTS.encode("utf-8-sig"), "c.arff"),
        (PLANTS, "d.csv"),
        (PLANTS.encode("utf-16"), "e.arff"),
    ]:
        assert_frame_equal(read_table(saved(tmp_path, content, name)), plain)


def test_chunks_joined_are_the_whole(tmp_path):
    path = saved(tmp_path, PLANTS)
    assert_frame_equal(pd.concat(iter_tables(path, rows=2), ignore_index=True), read_table(path))


def test_columns_can_be_read_as_text(tmp_path):
    read = read_table(saved(tmp_path, PLANTS), text=["count", "kind"])
    assert read["count"].tolist()[0] == "3"
    assert read["kind"].tolist()[0] == "red oak"
    assert read["count"].isna().tolist() == [False, True, False]


def test_dense_files_are_read_as_scipy_reads_them(tmp_path):
    rng = np.random.default_rng(0)
    head = "@relation r\n@attribute a real\n@attribute b {x,y,z}\n@attribute c real\n@data\n"
    rows = [f"{a},{'xyz'[b]},{rng.normal()}\n" for a, b in rng.integers(0, 3, (50, 2))]
    content = head + "".join(rows)
    oracle = pd.DataFrame(scipy_arff.loadarff(io.StringIO(content))[0])
    oracle["b"] = oracle["b"].str.decode("ascii")
    read = read_table(saved(tmp_path, content))
    assert_frame_equal(read.astype({"b": object}), oracle.astype({"b": object}))


def test_sparse_rows_leave_out_zeros_and_first_values(tmp_path):
    head = "@relation r\n@attribute a real\n@attribute b {x,y}\n@attribute c string\n@data\n"
    read = read_table(saved(tmp_path, head + "{0 1.5, 2 'd e'}\n{}\n{1 y,0 ?}\n"))
    assert read["a"].tolist()[:2] == [1.5, 0]
    assert pd.isna(read["a"][2])
    assert read["b"].tolist() == ["x", "x", "y"]
    assert read["c"].tolist()[0] == "d e"


def quoted(text):
    for plain, escaped in [("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("\t", "\\t")]:
        text = text.replace(plain, escaped)
    return f"'{text}'"


TEXTS = st.text(string.ascii_letters + "äé ,;'\"\\\n\t%{}?", min_size=1, max_size=8)


@settings(deadline=None, max_examples=100)
@given(
    names=st.lists(TEXTS, min_size=3, max_size=3, unique=True),
    values=st.lists(TEXTS.map(str.strip).filter(bool), min_size=1, max_size=4, unique=True),
    data=st.data(),
)
def test_a_file_says_what_was_written(tmp_path_factory, names, values, data):
    row = st.tuples(
        st.none() | st.floats(allow_nan=False, allow_infinity=False),
        st.none() | st.sampled_from(values),
        st.none() | TEXTS,
    )
    rows = data.draw(st.lists(row, min_size=1, max_size=5))
    declared = ["real", "{" + ",".join(map(quoted, values)) + "}", "string"]
    lines = ["@relation 'r'"]
    lines += [
        f"@attribute {quoted(name)} {kind}" for name, kind in zip(names, declared, strict=True)
    ]
    lines += ["@data"]
    for number, value, text in rows:
        cells = [repr(number), quoted(str(value)), quoted(str(text))]
        gaps = [cell is None for cell in (number, value, text)]
        lines.append(", ".join("?" if gap else c for gap, c in zip(gaps, cells, strict=True)))
    path = tmp_path_factory.mktemp("arff") / "a.arff"
    path.write_text("\n".join(lines), encoding="utf-8", newline="")
    read = read_table(path)
    assert list(read.columns) == names
    found = read.astype(object).where(read.notna(), None).to_numpy().tolist()
    assert found == [list(r) for r in rows]


def test_plain_rows_take_the_quick_way():
    kinds = [type("A", (), {"type": kind}) for kind in ("numeric", "nominal")]
    assert _quick_columns("1,a\n?,'b c'\n", kinds) is not None
    for odd in ("{0 1}\n", "1,a\\,b\n", "1,'a'\n2,\"b\"\n", "1,'?'\n", "1\n2,a\n", "1,a,b\n2,a\n"):
        assert _quick_columns(odd, kinds) is None


HEAD = "@relation r\n@attribute a real\n@attribute b {x,y}\n@data\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("@relation r\n@attribute a real\n", "without @data"),
        ("@relation r\n@data\n1\n", "no @attribute"),
        (HEAD, "no rows"),
        (HEAD + "% only this\n", "no rows"),
        (HEAD + "1,x\n1\n", "line 6: 1 cells where 2 columns"),
        (HEAD + "1,x,3\n1,x\n", "line 5: 3 cells where 2 columns"),
        (HEAD + "1,x\n1,x,3\n", "line 6: 3 cells"),
        (HEAD + "1,x\none,x\n", "row 2 below @data: column 'a' holds 'one', which is not a number"),
        (HEAD + "1,z\n", "holds 'z', which is not one of 'x', 'y'"),
        (HEAD + "{0 1, 2 x}\n", "column numbers below 2"),
        (HEAD + "{a b}\n", "column numbers below 2"),
        (
            "@relation r\n@attribute a real\n@attribute a real\n@data\n1,2\n",
            "several columns named",
        ),
        ("@relation r\n@attribute a relational\n@data\n1\n", "type 'relational'"),
        ("@relation r\n@attribute a {x,y\n@data\nx\n", "no closing brace"),
        ("@relation r\nattribute a real\n@data\nx\n", "line 2: expected @attribute"),
        ("@relation r\n@attribute a date\n@data\n2020-31-01\n", "not a date like yyyy"),
    ],
)
def test_a_bad_file_gives_one_clear_line(tmp_path, content, said):
    path = saved(tmp_path, content)
    for read in (read_table, lambda path: list(iter_tables(path))):
        with pytest.raises(CoCoError) as error:
            read(path)
        assert said in str(error.value)
        assert "table.arff" in str(error.value)
        assert "\n" not in str(error.value)


def test_dates_in_letters_unknown_here_stay_text(tmp_path):
    content = "@relation r\n@attribute a date 'EEE, d MMM'\n@data\n'Mon, 3 May'\n"
    assert read_table(saved(tmp_path, content))["a"].tolist() == ["Mon, 3 May"]
