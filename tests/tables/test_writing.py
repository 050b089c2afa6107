"""Tables written and read back, whole or in chunks, and what is special to Parquet."""

import datetime as dt
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from cocoloss.exceptions import CoCoError
from cocoloss.tables import iter_tables, read_table, write_table
from cocoloss.tables.parquet_and_arff import import_pyarrow

SUFFIXES = [".csv", ".tsv", ".txt", ".csv.gz", ".TSV.GZ", ".parquet", ".pq"]
FRAME = pd.DataFrame(
    {
        "size": [1.5, np.nan, -1e300, 0.1 + 0.2],
        "count": [1, 2, 3, 4],
        "name": ["a,b", 'say "x"', "Köln", "line\nbreak"],
        "true": [True, False, True, True],
    }
)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_table_is_read_as_it_was_written_at_once_or_in_chunks(tmp_path, suffix):
    paths = [tmp_path / f"{name}{suffix}" for name in "ab"]
    for path in paths:
        for frames in (FRAME, (FRAME[start : start + 3] for start in (0, 3))):
            assert write_table(frames, path) == 4
            assert_frame_equal(read_table(path), FRAME)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert (paths[0].read_bytes()[:2] == b"\x1f\x8b") == suffix.lower().endswith(".gz")


@pytest.mark.parametrize("name", ["table.xlsx", "table", "table.gz", "table.parquet.gz"])
def test_a_name_that_says_no_format_is_refused(tmp_path, name):
    with pytest.raises(CoCoError, match=r"end it in one of \.csv"):
        write_table(FRAME, tmp_path / name)


@pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
def test_a_failure_on_the_way_leaves_the_file_as_it_was(tmp_path, name):
    path = tmp_path / name
    write_table(FRAME[:1], path)
    before = path.read_bytes()

    def broken():
        yield FRAME
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_table(broken(), path)
    with pytest.raises(CoCoError, match="same columns"):
        write_table([FRAME, FRAME[["size"]]], path)
    with pytest.raises(CoCoError, match="not one chunk"):
        write_table([], path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_columns_that_parquet_cannot_hold_are_said(tmp_path):
    with pytest.raises(CoCoError, match=r"cannot write .* as Parquet"):
        write_table(pd.DataFrame({"a": [1, "x", object()]}), tmp_path / "a.parquet")


def test_parquet_chunks_have_one_type_throughout(tmp_path):
    pa = import_pyarrow("test")
    path = tmp_path / "a.parquet"
    table = pa.table(
        {
            "whole": pa.array([1, 2, 3, None], pa.int32()),
            "truth": pa.array([True, False, None, None]),
            "kind": pa.array(["x", "y", None, "z"]).dictionary_encode(),
            "when": pa.array([0, 1, 2, None], pa.timestamp("ms")),
        }
    )
    pa.parquet.write_table(table, path, row_group_size=3)
    chunks = list(iter_tables(path, rows=2))
    assert [len(chunk) for chunk in chunks] == [2, 1, 1]  # groups end
    for chunk in chunks:
        names = ["float64", "boolean", "category", "datetime64[ms]"]
        assert list(map(str, chunk.dtypes)) == names
        assert chunk.index.equals(pd.RangeIndex(len(chunk)))
    joined = pd.concat([chunk.astype({"kind": object}) for chunk in chunks], ignore_index=True)
    whole = read_table(path).astype({"kind": object, "truth": "boolean"})
    assert_frame_equal(joined, whole)


def test_parquet_is_known_by_its_content_and_a_saved_index_is_no_column(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    FRAME.set_index("count").to_parquet(path)
    assert_frame_equal(read_table(path), FRAME.drop(columns="count"))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(CoCoError, match=r"cocoloss\[parquet\]"):
        read_table(path)


# One column of few values is written line by line, and to the byte as pandas writes it.
N = 200


def as_objects(*values):
    return pd.Series(values, dtype=object)


COLUMNS = {  # beside what hypothesis draws
    "small integers": pd.Series([3, 1], dtype="uint8"),
    "integers with gaps": pd.Series([3, None], dtype="Int64"),
    "floats": pd.Series([0.1, 1e300, np.nan, np.inf, 0.0, -0.0]),
    "booleans with gaps": pd.Series([True, None], dtype="boolean"),
    "text": pd.Series(["a", 'say "x"', "a,b", "a\tb", "a\nb", "\r\n", "", " a ", "東京", None]),
    "objects with gaps": as_objects("a", None, np.nan, pd.NA, pd.NaT, ""),
    "one and true": as_objects(1, True, 1.0, "1", 0.0, -0.0),
    "categories": pd.Series(["a", "b,c", None], dtype="category"),
    "categories of numbers": pd.Series([1, 2, None], dtype="category"),
    "categories of zeros": pd.Series(pd.Categorical.from_codes([0, 0], [-0.0])),
    "dates with times": pd.Series([pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-01 09:30")]),
    "dates as objects": as_objects(
        dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=dt.UTC), None
    ),
    "durations": pd.to_timedelta(pd.Series([1, 25]), unit="h"),
}


def repeated(column):
    """Return a frame long enough for lines to be made once."""
    order = np.random.default_rng(0).integers(len(column), size=N * len(column))
    return column.iloc[order].reset_index(drop=True).to_frame("kind")


def as_pandas_writes(frame, separator):
    return frame.to_csv(index=False, sep=separator, lineterminator="\n").encode()


@pytest.mark.parametrize("name", COLUMNS)
def test_the_bytes_are_those_of_pandas(tmp_path, name):
    frame = repeated(COLUMNS[name])
    for suffix, separator in [(".csv", ","), (".tsv", "\t")]:
        path = tmp_path / f"t{suffix}"
        write_table([frame[:0], frame[:200], frame[200:]], path)  # one header, first or not
        assert path.read_bytes() == as_pandas_writes(frame, separator)


@settings(deadline=None, max_examples=100)
@given(
    values=st.lists(
        st.one_of(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
            *(st.none(), st.just(float("nan")), st.booleans(), st.integers(-3, 3)),
            st.sampled_from([0.0, -0.0, 1.0, 2.5]),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_whatever_stands_in_a_column_the_bytes_are_those_of_pandas(tmp_path_factory, values):
    frame = repeated(as_objects(*values))
    path = tmp_path_factory.mktemp("lines") / "t.csv"
    write_table(frame, path)
    assert path.read_bytes() == as_pandas_writes(frame, ",")
