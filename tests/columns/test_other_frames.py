import datetime as dt
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from cocoloss.columns import TablePreprocessor
from cocoloss.exceptions import CoCoError

COLUMNS = {
    "integer": [1, None, 3, 7],
    "float": [1.5, None, 2.0, 3.0],
    "boolean": [True, None, False, True],
    "text": ["x", None, "y", "z"],
    "date": [dt.date(2024, 1, 1), None, dt.date(2024, 1, 9), dt.date(2024, 5, 1)],
    "time": [dt.datetime(2024, 1, 1, h, tzinfo=dt.UTC) for h in (1, 5, 7, 9)],
    "duration": [dt.timedelta(hours=h) for h in (1, 2, 7, 5)],
    "decimal": [Decimal("1.5"), None, Decimal(3), Decimal(4)],
    "nothing": [None] * 4,
}
KINDS = {
    "integer": "number",
    "float": "number",
    "boolean": "boolean",
    "text": "category",
    "date": "date",
    "time": "date",
    "duration": "duration",
    "decimal": "number",
}


def in_pandas():
    objects = ("boolean", "text", "date", "decimal", "nothing")
    return pd.DataFrame(
        {
            name: pd.Series(values, dtype=object if name in objects else None)
            for name, values in COLUMNS.items()
        }
    )


def test_a_polars_frame_is_read_as_the_same_pandas_frame():
    pl = pytest.importorskip("polars")
    preprocessor = TablePreprocessor().fit(pl.DataFrame(COLUMNS))
    assert preprocessor.kinds_ == KINDS
    assert preprocessor.feature_names_in_.tolist() == list(COLUMNS)
    reference = TablePreprocessor().fit(in_pandas())
    assert preprocessor.get_feature_names_out().tolist() == (
        reference.get_feature_names_out().tolist()
    )
    expected = reference.transform(in_pandas())
    for frame in (pl.DataFrame(COLUMNS), in_pandas()):
        np.testing.assert_allclose(preprocessor.transform(frame), expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["Categorical", "Enum"])
def test_polars_categories_are_categories(kind):
    pl = pytest.importorskip("polars")
    dtype = pl.Categorical() if kind == "Categorical" else pl.Enum(["1", "2", "3"])
    frame = pl.DataFrame({"a": pl.Series(["1", "3", "2", None], dtype=dtype)})
    preprocessor = TablePreprocessor().fit(frame)
    assert preprocessor.get_feature_names_out().tolist() == ["a_1", "a_2", "a_3", "a_missing"]


def test_polars_containers_are_refused_by_column():
    pl = pytest.importorskip("polars")
    for values in ([[1], [2]], [{"b": 1}, {"b": 2}], [{"b": 1, "c": 2}, {"b": 2, "c": 2}]):
        with pytest.raises(TypeError, match=r"must be a string or a number.*column 'a'"):
            TablePreprocessor().fit(pl.DataFrame({"a": values}))


def test_a_lazy_polars_frame_must_be_collected():
    pl = pytest.importorskip("polars")
    with pytest.raises(CoCoError, match="collect"):
        TablePreprocessor().fit(pl.LazyFrame({"a": [1, 2]}))


def test_a_polars_series_is_no_table():
    pl = pytest.importorskip("polars")
    with pytest.raises(CoCoError, match=r"one dimension.*Pass X\.to_frame"):
        TablePreprocessor().fit(pl.Series([1, 2]))


def test_polars_is_read_without_pyarrow():
    pytest.importorskip("polars")
    code = """
import sys
sys.modules["pyarrow"] = None
import datetime, polars
from cocoloss.columns import TablePreprocessor
frame = polars.DataFrame({
    "a": [1, None, 2], "b": [True, None, False], "c": ["x", None, "y"],
    "d": [datetime.date(2024, 1, 1), None, datetime.date(2024, 2, 1)],
    "e": polars.Series(["x", None, "y"], dtype=polars.Categorical),
})
print(*TablePreprocessor().fit(frame).kinds_.values())
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.split() == ["number", "boolean", "category", "date"]


def test_polars_and_torch_are_not_imported_unasked():
    code = """
import sys
from cocoloss.columns import TablePreprocessor
TablePreprocessor().fit([[1, "x"], [2, "y"]])
print("polars" in sys.modules, "torch" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.split() == ["False", "False"]


def test_an_arrow_table_and_arrow_columns_are_read():
    pa = pytest.importorskip("pyarrow")
    table = pa.table(COLUMNS)
    expected = TablePreprocessor().fit_transform(in_pandas())
    np.testing.assert_allclose(TablePreprocessor().fit_transform(table), expected, atol=1e-6)
    columns = table.to_pandas(types_mapper=pd.ArrowDtype)
    np.testing.assert_allclose(TablePreprocessor().fit_transform(columns), expected, atol=1e-6)
