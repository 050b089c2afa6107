"""A table file is looked at once, whatever is read from it."""

import gzip
from pathlib import Path

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from cocoloss.tables import iter_columns, iter_tables, open_table, read_table, table_file

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


def test_reading_looks_once_and_then_reads(path, counts):
    table = open_table(path)
    assert counts == {"opened": 1, "dialects": 1}
    table = table.with_options(text=["zip"], decimal=",")
    assert len(table.read()) == 3000
    assert counts == {"opened": 2, "dialects": 1}


def test_chunks_and_copies_of_one_file_share_the_look(path, counts):
    table = open_table(path)
    table = table.with_options(text=["zip", "kind"], decimal=table.decimal)
    chunks = table.chunks(1000, columns=["size", "price"])
    copies = table.verbatim(["zip"], 1000)
    for chunk, copy in zip(chunks, copies, strict=True):
        assert chunk.index.equals(copy.index)
    assert copy["zip"].iloc[-1] == "02999"
    assert counts == {"opened": 3, "dialects": 1}  # the look, the numbers, the copies


def test_packed_files_are_opened_no_more_often(tmp_path, counts):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(TABLE.encode()))
    counts["opened"] = 0
    open_table(path, decimal=",").read()
    assert counts == {"opened": 2, "dialects": 1}


def test_what_is_found_does_not_count_columns_that_are_text(path):
    table = open_table(path)
    assert table.column_names == ("zip", "size", "price", "kind")
    assert (table.decimal, table.codes) == (",", ("zip",))
    other = table.with_options(text=["price", "zip"])
    assert (other.decimal, other.codes, other.text) == (None, (), ("price", "zip"))
    assert other.with_options(decimal=".").decimal == "."
    assert (table.decimal, table.text) == (",", ())  # nothing is changed in place


def test_the_functions_are_the_methods(path):
    table = open_table(path, decimal=",", text=["zip"])
    options = {"decimal": ",", "text": ["zip"]}
    assert_frame_equal(table.read(), read_table(path, **options))
    for ours, theirs in zip(table.chunks(700), iter_tables(path, rows=700, **options), strict=True):
        assert_frame_equal(ours, theirs)
    pairs = zip(table.verbatim(["kind"], 700), iter_columns(path, ["kind"], rows=700), strict=True)
    for ours, theirs in pairs:
        assert_frame_equal(ours, theirs)


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
