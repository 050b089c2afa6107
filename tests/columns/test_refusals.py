"""What is no table is refused in one line, whoever asks."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, dok_array

from cocoloss.columns import FloatConverter, TablePreprocessor, make_preprocessor
from cocoloss.exceptions import CoCoError

LONG = np.arange(5000.0)
DICTS = [{"a": x, "b": 2} for x in LONG]


@pytest.mark.parametrize("transformer", [TablePreprocessor(), FloatConverter()])
@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (csr_array(np.eye(3)), TypeError, r"[Ss]parse.*toarray"),
        (dok_array(np.eye(3)), TypeError, r"[Ss]parse.*toarray"),
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


def test_a_row_for_prediction_is_refused_in_one_line():
    for transformer in (TablePreprocessor(), FloatConverter()):
        transformer.fit(np.eye(3))
        with pytest.raises(CoCoError, match=r"Reshape your data.*one row$"):
            transformer.transform(LONG)


def test_an_object_that_becomes_an_array_is_looked_at_as_one():
    class Wrapped:
        def __init__(self, values):
            self.values = values

        def __array__(self, dtype=None, copy=None):
            return np.asarray(self.values, dtype=dtype)

    assert TablePreprocessor().fit(Wrapped(np.eye(3))).n_features_in_ == 3
    with pytest.raises(CoCoError, match="one dimension"):
        TablePreprocessor().fit(Wrapped(LONG))


@pytest.mark.parametrize("preprocess", ["auto", None, TablePreprocessor()])
def test_the_estimator_speaks_in_the_messages(preprocess):
    preprocessor = make_preprocessor(preprocess, "CoCoClassifier")
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [5.0, 3.0]})
    refused = [
        (preprocessor.fit, None, "but CoCoClassifier needs a table"),
        (preprocessor.fit, np.empty((3, 0)), "required by CoCoClassifier"),
        (preprocessor.fit(frame).transform, np.eye(3), "but CoCoClassifier is expecting 2"),
    ]
    for method, X, message in refused:
        with pytest.raises(CoCoError, match=message):
            method(X)
    with pytest.warns(UserWarning, match="but CoCoClassifier was fitted with feature names"):
        preprocessor.transform(frame.to_numpy())


def test_an_estimator_is_told_where_the_arguments_for_columns_go():
    frame = pd.DataFrame({"note": [f"note number {i}" for i in range(40)], "b": range(40)})
    own = r"by TablePreprocessor\(categorical_features=\['note'\]\)$"
    with pytest.warns(UserWarning, match=own):
        make_preprocessor("auto").fit(frame)
    by_estimator = (
        r"preprocess=TablePreprocessor\(categorical_features=\['note'\]\) "
        r"\(from cocoloss.columns\)"
    )
    with pytest.warns(UserWarning, match=by_estimator):
        make_preprocessor("auto", "CoCoClassifier").fit(frame)


def test_a_table_of_many_useless_columns_is_refused_in_one_line():
    with pytest.raises(CoCoError, match=r"'x7' \(constant\) and 492 more$"):
        TablePreprocessor().fit(np.ones((3, 500)))


def test_no_number_of_rows_is_told_but_one():
    with pytest.raises(CoCoError, match="learn from: 'x0'"):
        TablePreprocessor().fit(np.ones((3, 1)))
    with pytest.raises(CoCoError, match="but one sample: 'x0'"):
        TablePreprocessor().fit(np.ones((1, 1)))


def test_many_columns_that_lack_are_told_in_one_line():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(5, 500)))
    preprocessor = TablePreprocessor().fit(frame)
    with pytest.raises(CoCoError, match=r"'8' and 491 more; it has '0'$"):
        preprocessor.transform(frame[[0]])
