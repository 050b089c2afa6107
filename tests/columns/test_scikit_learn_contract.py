import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from cocoloss.columns import FloatConverter, TablePreprocessor, make_preprocessor
from cocoloss.exceptions import CoCoError


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([TablePreprocessor(), FloatConverter()])
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def test_auto_builds_a_table_preprocessor():
    assert type(make_preprocessor("auto")) is TablePreprocessor


def test_none_builds_a_converter_that_only_converts():
    X = np.array([[1.0, 200.0], [3.0, 400.0]])
    result = make_preprocessor(None).fit_transform(X)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, X)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, r"gaps \(NaN\), such as in column 'x1'; use preprocess='auto'"),
        (np.inf, "infinite values.* column 'x1'; use preprocess='auto'"),
        (1e300, "too large for float32"),
        ("many", "column 'x1' holds 'many', which is no number; use preprocess='auto'"),
        (pd.Timestamp("2024-01-01"), "column 'x1' holds Timestamp.*which is no number"),
    ],
)
def test_the_converter_refuses_what_is_no_finite_number(value, message):
    X = np.array([[1.0, 2.0], [3.0, value]], dtype=object)
    with pytest.raises(CoCoError, match=message):
        make_preprocessor(None).fit(X)
    with pytest.raises(CoCoError, match=message):
        make_preprocessor(None).fit([[1.0, 3.0], [2.0, 3.0]]).transform(X)


def test_the_converter_finds_and_names_its_columns_as_they_came():
    frame = pd.DataFrame({"a": [1, 2], "b": [True, False], "c": ["1.5", "3"]})
    converter = FloatConverter().fit(frame)
    assert converter.get_feature_names_out().tolist() == ["a", "b", "c"]
    expected = [[1, 1, 1.5], [2, 0, 3]]
    np.testing.assert_array_equal(converter.transform(frame), expected)
    np.testing.assert_array_equal(converter.transform(frame[["c", "a", "b"]]), expected)
    numbers = frame[["a", "b"]].astype(float)
    swapped = FloatConverter().fit(numbers).transform(numbers[["b", "a"]])
    np.testing.assert_array_equal(swapped, numbers)


def test_a_transformer_is_cloned():
    theirs = make_pipeline(StandardScaler()).fit([[1.0], [2.0]])
    ours = make_preprocessor(theirs)
    assert ours is not theirs
    assert not hasattr(ours[0], "scale_")


@pytest.mark.parametrize("preprocess", ["standard", 3, StandardScaler, object()])
def test_anything_else_is_refused(preprocess):
    with pytest.raises(CoCoError, match="preprocess"):
        make_preprocessor(preprocess)


def test_set_output_gives_named_columns():
    frame = pd.DataFrame({"a": [1.0, 2.0, None], "c": ["x", "y", "z"]}, index=[5, 6, 7])
    result = TablePreprocessor().set_output(transform="pandas").fit_transform(frame)
    assert result.columns.tolist() == ["a", "a_missing", "c_x", "c_y", "c_z"]
    assert result.index.tolist() == [5, 6, 7]


def test_a_clone_carries_the_parameters_and_nothing_else():
    fitted = TablePreprocessor(categorical_features=[0], max_categories=5).fit([[1, 2], [3, 4]])
    fresh = clone(fitted)
    assert fresh.get_params() == {
        "categorical_features": [0],
        "max_categories": 5,
        "decimal": "auto",
        "day_first": None,
    }
    assert not hasattr(fresh, "n_features_out_")


def test_a_failed_fit_leaves_it_unfitted():
    preprocessor = TablePreprocessor()
    with pytest.raises(CoCoError):
        preprocessor.fit([[1.0], [1.0]])
    assert not [name for name in vars(preprocessor) if name.endswith("_")]


def test_names_can_be_given_to_the_columns_of_an_array():
    preprocessor = TablePreprocessor().fit([[1.0, "u"], [2.0, "v"], [None, "w"]])
    assert preprocessor.get_feature_names_out(["a", "c"]).tolist() == [
        "a",
        "a_missing",
        "c_u",
        "c_v",
        "c_w",
    ]
    with pytest.raises(CoCoError, match="length equal to number of features"):
        preprocessor.get_feature_names_out(["a"])


def test_other_names_than_those_of_fit_are_refused():
    preprocessor = TablePreprocessor().fit(pd.DataFrame({"a": [1, 2]}))
    with pytest.raises(CoCoError, match="not equal to feature_names_in_"):
        preprocessor.get_feature_names_out(["b"])


def is_plain(value):
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iufb" or all(isinstance(item, str) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_plain(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(is_plain, value))
    if hasattr(value, "__dataclass_fields__"):
        return is_plain(vars(value))
    return value is None or type(value) in {str, int, float, bool}


def test_fitted_state_is_plain():
    frame = pd.DataFrame(
        {
            "number": [1.0, None, 3.0],
            "category": pd.Categorical([1, 2, 3]),
            "boolean": [True, False, None],
            "date": pd.to_datetime(["2020-01-01", "2020-02-05", "2020-03-01"]),
            "form": ["$1,200", "$3", "?"],
        }
    )
    state = vars(make_preprocessor("auto", "CoCoClassifier").fit(frame))
    assert {name for name, value in state.items() if not is_plain(value)} == set()


def test_the_target_changes_nothing():
    X = np.random.default_rng(0).normal(size=(20, 3))
    without = TablePreprocessor().fit(X).transform(X)
    np.testing.assert_array_equal(TablePreprocessor().fit(X, np.arange(20)).transform(X), without)
