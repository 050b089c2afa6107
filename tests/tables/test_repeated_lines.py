"""One column of few values is written line by line, and to the byte as pandas writes it."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocoloss.tables import write_table
from cocoloss.tables.table_file import _repeated_lines

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
FAST = ["small integers", "booleans with gaps", "text", "categories"]


def repeated(column):
    """Return a frame long enough for lines to be made once."""
    order = np.random.default_rng(0).integers(len(column), size=N * len(column))
    return column.iloc[order].reset_index(drop=True).to_frame("kind")


def as_pandas_writes(frame, separator):
    return frame.to_csv(index=False, sep=separator, lineterminator="\n").encode()


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("name", COLUMNS)
def test_the_bytes_are_those_of_pandas(tmp_path, name, suffix):
    frame = repeated(COLUMNS[name])
    path = tmp_path / f"t{suffix}"
    assert write_table(frame, path) == len(frame)
    assert path.read_bytes() == as_pandas_writes(frame, "," if suffix == ".csv" else "\t")


@pytest.mark.parametrize("name", FAST)
def test_classes_are_written_the_fast_way(name):
    assert _repeated_lines(repeated(COLUMNS[name]), ",") is not None


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


def test_chunks_have_one_header_also_if_the_first_is_empty(tmp_path):
    frame = repeated(COLUMNS["text"])
    write_table([frame[:0], frame[:200], frame[200:]], tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_bytes() == as_pandas_writes(frame, ",")
