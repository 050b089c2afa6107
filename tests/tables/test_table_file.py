"""A table file is looked at once, whatever is read from it."""

import gzip
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from cocoloss.exceptions import CoCoError
from cocoloss.tables import (
    iter_columns,
    open_table,
    read_table,
    table_file,
    write_table,
)

CELLS = ["007", "43", "43.0", "NA", "", "?", "1e5", " x", "2,50", 'say "x"', "True", "0x1F"]
ROWS = "".join(f"{i:05d};{1 + i % 900}.730;{i},5;x{i}\n" for i in range(3000))
TABLE = "zip;size;price;kind\n" + ROWS  # more than the sample that is looked at


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    return path


@pytest.fixture
def counts(monkeypatch):
    """Count how often a file is opened and a dialect is found."""
    counts = {"opened": 0, "dialects": 0}
    find_dialect, opened = table_file.find_dialect, Path.open

    def counted_dialect(*arguments, **options):
        counts["dialects"] += 1
        return find_dialect(*arguments, **options)

    def counted_open(self, *arguments, **options):
        counts["opened"] += 1
        return opened(self, *arguments, **options)

    monkeypatch.setattr(table_file, "find_dialect", counted_dialect)
    monkeypatch.setattr(Path, "open", counted_open)
    return counts


@pytest.mark.parametrize("packed", [False, True])
def test_chunks_copies_and_the_whole_share_one_look(path, counts, packed):
    if packed:
        path.write_bytes(gzip.compress(TABLE.encode()))
    counts["opened"] = 0
    table = open_table(path)
    assert counts == {"opened": 1, "dialects": 1}
    table = table.with_options(text=["zip", "kind"], decimal=table.decimal)
    chunks = table.chunks(1000, columns=["size", "price"])
    copies = table.verbatim(["zip"], 1000)
    for chunk, copy in zip(chunks, copies, strict=True):
        assert chunk.index.equals(copy.index)
    assert copy["zip"].iloc[-1] == "02999"
    assert len(table.read()) == 3000
    assert counts == {"opened": 4, "dialects": 1}


def test_what_is_found_does_not_count_columns_that_are_text(path):
    table = open_table(path)
    assert table.column_names == ("zip", "size", "price", "kind")
    assert (table.decimal, table.codes) == (",", ("zip",))
    other = table.with_options(text=["price", "zip"])
    assert (other.decimal, other.codes, other.text) == (None, (), ("price", "zip"))
    assert other.with_options(decimal=".").decimal == "."
    assert (table.decimal, table.text) == (",", ())  # nothing is changed in place


@pytest.mark.parametrize("name", ["table.parquet", "table.arff"])
def test_every_format_keeps_the_contract(tmp_path, name):
    path = tmp_path / name
    frame = pd.DataFrame({"a": [1.0, 2.0, None], "b": ["x", "y", "x"]})
    if name.endswith("parquet"):
        frame.to_parquet(path)
    else:
        path.write_text(
            "@relation r\n@attribute a real\n@attribute b {x,y}\n@data\n1,x\n2,y\n?,x\n"
        )
    table = open_table(path, decimal=",")
    assert (table.column_names, table.decimal, table.codes) == (("a", "b"), None, ())
    assert table.with_options(text=["a"], decimal=",").read()["a"].tolist()[:2] == ["1", "2"]
    assert [len(chunk) for chunk in table.chunks(2)] == [2, 1]
    assert [list(chunk["a"]) for chunk in table.chunks(1, columns=["a"])][:2] == [[1], [2]]
    copies = pd.concat(table.verbatim(["b"], 2), ignore_index=True)
    assert copies["b"].tolist() == ["x", "y", "x"]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("rows", [1, 5, 100])
def test_every_cell_is_copied_to_the_letter(tmp_path, separator, rows):
    path = tmp_path / "t.csv"
    frame = pd.DataFrame({"id": CELLS, "size": range(len(CELLS)), "other": CELLS[::-1]})
    frame.to_csv(path, index=False, sep=separator)
    copied = pd.concat(iter_columns(path, ["other", "id"], rows=rows), ignore_index=True)
    assert_frame_equal(copied, frame[["other", "id"]])


@pytest.mark.parametrize(
    ("name", "lines"), [("t.parquet", 'id\n43\n""\n7\n'), ("t.arff", 'id\n43\n""\n7\n')]
)
def test_whole_numbers_with_gaps_are_copied_without_points(tmp_path, name, lines):
    frame = pd.DataFrame({"id": pd.array([43, None, 7], dtype="Int64"), "size": [1.5, 2, 3]})
    if name == "t.parquet":
        frame.to_parquet(tmp_path / name)
    else:
        head = "@relation t\n@attribute id numeric\n@attribute x numeric\n@data\n"
        (tmp_path / name).write_text(f"{head}43,1.5\n?,2\n7,3\n")
    copied = pd.concat(iter_columns(tmp_path / name, ["id"], rows=2))
    assert copied.to_csv(index=False) == lines


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_copies_come_in_the_chunks_of_the_table(tmp_path, monkeypatch, name):
    monkeypatch.setattr("cocoloss.tables.delimited.MOST_CELLS", 12)
    write_table(pd.DataFrame({"id": range(20), "size": 1.5, "other": "x"}), tmp_path / name)
    table = open_table(tmp_path / name)
    lengths = [len(chunk) for chunk in table.chunks(7)]
    assert lengths == [len(chunk) for chunk in table.verbatim(["id"], 7)] == [4] * 5
    with pytest.raises(CoCoError, match="no column 'idd'; did you mean 'id'"):
        table.verbatim(["idd"], 7)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_a_table_is_written_as_the_file_is(saved, tmp_path, separator, encoding, decimal):
    rows = [("size", "city"), (f"1{decimal}5", "Köln"), ("-2", "x y"), ("NA", "")]
    lines = [separator.join(f'"{cell}"' for cell in row) for row in rows]
    table = open_table(saved("\n".join(lines).encode(encoding)))
    other = tmp_path / "other.csv.gz"
    assert table.write(table.chunks(2), other) == 3
    assert_frame_equal(read_table(other), table.read())
    header, first, *_ = gzip.decompress(other.read_bytes()).decode(encoding).splitlines()
    assert header.replace('"', "") == f"size{separator}city"
    assert first.replace('"', "") == f"1{decimal}5{separator}Köln"


def test_what_is_written_has_a_header_and_marks_of_gaps_as_the_file_has(saved):
    path = saved("1;x\n-9;y\n")
    table = open_table(path, header=False, missing=["-9"])
    assert table.write(table.read(), path) == 2  # in its own place
    assert path.read_text() == "1.0;x\n-9;y\n"


def test_the_encoding_is_that_of_the_file_though_its_first_umlaut_is_late(saved, tmp_path):
    path = saved(("a,b\n" + "1,x\n" * 200_000 + "2,ö\n").encode("latin-1"))
    table = open_table(path)
    table.write(pd.DataFrame({"a": ["ö"]}), tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_bytes() == b"a\n\xf6\n"
    with pytest.raises(CoCoError, match="cp1252 has no '東'; write UTF-8 instead"):
        table.write(pd.DataFrame({"a": ["東京"]}), tmp_path / "b.csv")


def test_parquet_is_written_as_parquet_and_nothing_under_a_false_name(saved, tmp_path):
    frame = pd.DataFrame({"a": [1.5, 2], "b": ["x", "y"]})
    write_table(frame, tmp_path / "a.parquet")
    table = open_table(tmp_path / "a.parquet")
    assert table.write(table.chunks(1), tmp_path / "b") == 2
    assert_frame_equal(pd.read_parquet(tmp_path / "b"), frame)
    with pytest.raises(CoCoError, match="would not be what its name says, but parquet"):
        table.write(frame, tmp_path / "b.csv")
    with pytest.raises(CoCoError, match="would not be what its name says, but delimited"):
        open_table(saved("a,b\n1,x\n")).write(frame, tmp_path / "b.parquet")
    arff = saved("@relation r\n@attribute a real\n@data\n1\n2\n", "a.arff")
    assert open_table(arff).write(frame, tmp_path / "c.tsv") == 2
    assert_frame_equal(read_table(tmp_path / "c.tsv"), frame)


# The peak beyond that of the imports, in MB, of reading a file in chunks.
MEMORY = """
import re, sys
from pathlib import Path
from cocoloss.tables import iter_tables

def peak():  # not ru_maxrss, which a child inherits from its parent
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

before = peak()
print(sum(map(len, iter_tables(sys.argv[1], rows=20_000))), peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read there")
def test_chunks_of_a_long_file_take_the_memory_of_a_few_chunks(saved):
    row = ",".join(f"0.{j}" for j in range(20)) + "\n"
    path = saved(row.replace("0.", "x") + row * 500_000)  # 76 MB of numbers
    command = [sys.executable, "-c", MEMORY, str(path)]
    result = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    n_rows, peak = map(float, result.stdout.split())
    assert n_rows == 500_000
    assert peak < 38
