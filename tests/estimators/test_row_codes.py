"""A row is what it says, whatever it is stored in."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from cocoloss.estimators.row_codes import row_codes


def test_codes_know_what_is_said_and_not_how_it_is_stored():
    polars = pytest.importorskip("polars")
    numbers = np.array([[0.0, 1.0], [2.0, 3.0], [-0.0, 1.0]])
    plain = row_codes(numbers, "me")
    assert plain[0] == plain[2] != plain[1]
    for same in (
        numbers.astype(np.float32),
        numbers.astype(np.longdouble),
        numbers.astype(int),
        pd.DataFrame(numbers, columns=["a", "b"]),
        pd.DataFrame(numbers.astype(int)).astype("Int64"),
        polars.DataFrame(numbers, schema=["a", "b"]),
    ):
        assert np.array_equal(row_codes(same, "me"), plain)
    texts = ["u", None, "v"]
    as_object = row_codes(pd.DataFrame({"a": pd.Series(texts, dtype=object)}), "me")
    for dtype in ("str", "category"):
        frame = pd.DataFrame({"a": pd.Series(texts, dtype=dtype)})
        assert np.array_equal(row_codes(frame, "me"), as_object)
    assert np.array_equal(row_codes(polars.DataFrame({"a": texts}), "me"), as_object)
    days = pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02", None]))
    dates = row_codes(pd.DataFrame({"a": days}), "me")
    assert np.array_equal(row_codes(polars.DataFrame({"a": days.to_numpy()}), "me"), dates)
    assert len(set(dates)) == 3


TRUTHS = [True, False, None]
NUMBERS = [1.5, -2.0, None]
DAYS = [dt.datetime(2020, 1, 1), dt.datetime(1999, 12, 31, 12), None]  # noqa: DTZ001
LENGTHS = [dt.timedelta(days=2), dt.timedelta(seconds=-5), None]


@pytest.mark.parametrize(
    ("values", "dtypes"),
    [
        (TRUTHS, ["boolean", "bool[pyarrow]"]),
        (NUMBERS, ["float64", "Float64", "double[pyarrow]"]),
        (DAYS, ["M8[us]", "M8[ns]", "timestamp[us][pyarrow]"]),
        (LENGTHS, ["m8[us]", "m8[ns]", "duration[us][pyarrow]"]),
    ],
)
def test_truths_numbers_and_times_are_the_same_in_every_library(values, dtypes):
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    plain = row_codes(pd.DataFrame({"a": pd.Series(values, dtype=object)}), "me")
    assert len(set(plain)) == 3
    for dtype in dtypes:
        frame = pd.DataFrame({"a": pd.Series(values, dtype=object).astype(dtype)})
        assert np.array_equal(row_codes(frame, "me"), plain), dtype
    assert np.array_equal(row_codes(polars.DataFrame({"a": values}), "me"), plain)


def test_decimals_are_numbers_and_a_time_is_one_in_every_zone():
    numbers = pd.DataFrame({"a": [1.5, 2.0]})
    decimals = pd.DataFrame({"a": [Decimal("1.5"), Decimal(2)]})
    assert np.array_equal(row_codes(decimals, "me"), row_codes(numbers, "me"))
    here = pd.DataFrame({"a": pd.to_datetime(["2020-01-01 12:00"]).tz_localize("UTC")})
    there = here.assign(a=here["a"].dt.tz_convert("Asia/Tokyo"))
    assert np.array_equal(row_codes(here, "me"), row_codes(there, "me"))


def test_days_beyond_what_pandas_counts_still_have_codes():
    days = [dt.date(9999, 12, 31), dt.date(1, 1, 1)]
    codes = row_codes(pd.DataFrame({"a": pd.Series(days, dtype=object)}), "me")
    assert codes[0] != codes[1]
