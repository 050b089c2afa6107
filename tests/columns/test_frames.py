"""Tables of every library, columns found again by name or position, and what is no table."""

import datetime as dt
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from cocoloss.columns import FloatConverter, TablePreprocessor, make_preprocessor
from cocoloss.exceptions import CoCoError

FRAME = pd.DataFrame(
    {
        "age": [31.0, np.nan, 45.0, 60.0],
        "city": ["Bern", "Oslo", "Rome", "Oslo"],
        "member": [True, False, True, True],
    }
)
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
KINDS = ["number", "number", "boolean", "category", "date", "date", "duration", "number"]
LONG = np.arange(5000.0)
DICTS = [{"a": x, "b": 2} for x in LONG]


def in_pandas():
    objects = ("boolean", "text", "date", "decimal", "nothing")
    return pd.DataFrame(
        {
            name: pd.Series(values, dtype=object if name in objects else None)
            for name, values in COLUMNS.items()
        }
    )


def test_a_polars_frame_is_read_as_the_same_pandas_frame_without_pyarrow(monkeypatch):
    pl = pytest.importorskip("polars")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    preprocessor = TablePreprocessor().fit(pl.DataFrame(COLUMNS))
    assert preprocessor.kinds_ == dict(zip(COLUMNS, KINDS, strict=False))
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


def test_polars_refusals_name_the_remedy():
    pl = pytest.importorskip("polars")
    for values in ([[1], [2]], [{"b": 1}, {"b": 2}], [{"b": 1, "c": 2}, {"b": 2, "c": 2}]):
        with pytest.raises(TypeError, match=r"must be a string or a number.*column 'a'"):
            TablePreprocessor().fit(pl.DataFrame({"a": values}))
    with pytest.raises(CoCoError, match="collect"):
        TablePreprocessor().fit(pl.LazyFrame({"a": [1, 2]}))
    with pytest.raises(
        CoCoError,
        match=r"one dimension.*Pass X\.to_frame\(\) if .*X\.to_frame\(\)\.T if it is a row",
    ):
        TablePreprocessor().fit(pl.Series([1, 2]))


def test_an_arrow_table_and_arrow_columns_are_read():
    pa = pytest.importorskip("pyarrow")
    table = pa.table(COLUMNS)
    expected = TablePreprocessor().fit_transform(in_pandas())
    np.testing.assert_allclose(TablePreprocessor().fit_transform(table), expected, atol=1e-6)
    columns = table.to_pandas(types_mapper=pd.ArrowDtype)
    np.testing.assert_allclose(TablePreprocessor().fit_transform(columns), expected, atol=1e-6)


def test_nullable_dtypes_are_read_as_numpy_ones():
    dtypes = {"integer": "Int64", "float": "Float64", "boolean": "boolean", "text": "string"}
    nullable = pd.DataFrame({name: pd.array(COLUMNS[name], dtypes[name]) for name in dtypes})
    preprocessor = TablePreprocessor().fit(nullable)
    assert list(preprocessor.kinds_.values()) == KINDS[:4]
    expected = TablePreprocessor().fit_transform(in_pandas()[[*dtypes]])
    np.testing.assert_array_equal(preprocessor.transform(nullable), expected)


def test_sparse_columns_of_a_frame_are_read():
    values = [0.0, 0.0, 1.5, 0.0]
    sparse = pd.DataFrame({"a": pd.arrays.SparseArray(values)})
    expected = TablePreprocessor().fit_transform(pd.DataFrame({"a": values}))
    np.testing.assert_array_equal(TablePreprocessor().fit_transform(sparse), expected)


def test_lists_of_rows_keep_their_numbers():
    preprocessor = TablePreprocessor().fit([[1.5, "x", True], [2, "y", True], [3, "z", False]])
    assert preprocessor.kinds_ == {"x0": "number", "x1": "category", "x2": "boolean"}


@pytest.mark.parametrize("dtype", ["U", "S", object])
def test_arrays_of_text_are_read_column_by_column(dtype):
    X = np.array([["1.5", "x"], ["2.5", "y"], ["nan", "z"]], dtype=dtype)
    names = TablePreprocessor().fit(X).get_feature_names_out().tolist()
    assert names == ["x0", "x0_missing", "x1_x", "x1_y", "x1_z"]


# columns found again


def test_columns_are_found_by_name_in_any_order_and_others_ignored():
    preprocessor = TablePreprocessor().fit(FRAME.assign(constant=1))  # which need not be there
    expected = preprocessor.transform(FRAME)
    other = FRAME[["member", "age", "city"]].assign(note=[{}, {}, {}, {}])
    np.testing.assert_array_equal(preprocessor.transform(other), expected)
    with pytest.raises(CoCoError, match=r"X lacks columns .*: 'age', 'member'; it has 'city'"):
        preprocessor.transform(FRAME[["city"]])


def test_columns_are_found_by_labels_that_are_no_text():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 4)))
    preprocessor = TablePreprocessor().fit(frame)
    assert not hasattr(preprocessor, "feature_names_in_")
    expected = preprocessor.transform(frame)
    np.testing.assert_array_equal(preprocessor.transform(frame[[3, 2, 1, 0]]), expected)


def test_names_on_one_side_only_are_warned_of_as_in_scikit_learn():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [5.0, 3.0]})
    by_name, by_position = TablePreprocessor().fit(frame), TablePreprocessor().fit(frame.to_numpy())
    with pytest.warns(UserWarning, match="X does not have valid feature names") as caught:
        first = by_name.transform(frame.to_numpy())
    assert caught[0].filename == __file__  # where the names were left out
    with pytest.warns(UserWarning, match="fitted without feature names"):
        second = by_position.transform(frame)
    np.testing.assert_array_equal(first, second)
    message = "X has 3 features, but TablePreprocessor is expecting 2 features as input"
    with pytest.raises(CoCoError, match=message):
        by_position.transform([[1, 2, 3]])


# what is no table


@pytest.mark.parametrize("transformer", [TablePreprocessor(), FloatConverter()])
@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.array([(1, "x")], dtype=[("a", int), ("b", "U1")]), CoCoError, "structured array"),
        (LONG, CoCoError, r"one dimension \(shape=\(5000,\)\).*Reshape your data"),
        (LONG.tolist(), CoCoError, r"one dimension \(shape=\(5000,\)\).*Reshape your data"),
        (["x"] * 5000, CoCoError, "Reshape your data"),
        (pd.Series(LONG), CoCoError, r"one dimension.*Pass X\.to_frame\(\)"),
        (np.zeros((2, 2, 2)), CoCoError, r"3 dimensions \(shape=\(2, 2, 2\)\)"),
        ([[[1], [2]], [[3], [4]]], CoCoError, "dim 3"),
        ([[1], [2, 3]], CoCoError, "inhomogeneous: row 0 has 1 cells, row 1 has 2 cells"),
        ([[1], 2], CoCoError, "row 1 has no cells but a value"),
        (np.array([[1j], [2]]), CoCoError, "Complex data not supported"),
        ([], CoCoError, r"0 sample\(s\)"),
        (np.empty((0, 3)), CoCoError, r"0 sample\(s\)"),
        (pd.DataFrame({"a": []}), CoCoError, r"0 sample\(s\) \(shape=\(0, 1\)\)"),
        (pd.DataFrame(index=[0, 1]), CoCoError, r"0 feature\(s\) \(shape=\(2, 0\)\)"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), CoCoError, "come twice: 'a'; rename"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), CoCoError, "come twice: '1'; rename"),
        (None, CoCoError, "X is None, but .* needs a table"),
        ("rows.csv", CoCoError, "X is a str, but .* needs a table"),
        (3.5, CoCoError, "X is a float, but .* needs a table"),
        ({"a": LONG, "b": LONG}, CoCoError, r"X is a dict; pass pandas\.DataFrame\(X\)"),
        (DICTS, CoCoError, r"X is a list of dicts; pass pandas\.DataFrame\(X\)"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(X, error, message, transformer):
    with pytest.raises(error, match=message) as caught:
        transformer.fit(X)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("preprocess", ["auto", None, TablePreprocessor()])
def test_the_estimator_speaks_in_the_messages(preprocess):
    preprocessor = make_preprocessor(preprocess, "CoCoClassifier")
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [5.0, 3.0]})
    refused = [
        (preprocessor.fit, None, "but CoCoClassifier needs a table"),
        (preprocessor.fit, np.empty((3, 0)), "required by CoCoClassifier"),
        (preprocessor.fit(frame).transform, np.eye(3), "but CoCoClassifier is expecting 2"),
        (preprocessor.transform, LONG, r"Reshape your data.*one row$"),
    ]
    for method, X, message in refused:
        with pytest.raises(CoCoError, match=message):
            method(X)
    with pytest.warns(UserWarning, match="but CoCoClassifier was fitted with feature names"):
        preprocessor.transform(frame.to_numpy())
