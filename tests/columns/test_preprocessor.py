import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from cocoloss.columns import FloatConverter, TablePreprocessor, make_preprocessor
from cocoloss.exceptions import CoCoError


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([TablePreprocessor(), FloatConverter()])
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def test_builds_a_preprocessor_a_converter_or_a_clone():
    assert type(make_preprocessor("auto")) is TablePreprocessor
    assert type(make_preprocessor(None)) is FloatConverter
    theirs = make_pipeline(StandardScaler()).fit([[1.0], [2.0]])
    ours = make_preprocessor(theirs)
    assert ours is not theirs
    assert not hasattr(ours[0], "scale_")


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


@pytest.mark.parametrize("preprocess", ["standard", 3, StandardScaler, object()])
def test_anything_else_is_refused(preprocess):
    with pytest.raises(CoCoError, match="preprocess"):
        make_preprocessor(preprocess)


def test_a_failed_fit_leaves_it_unfitted():
    preprocessor = TablePreprocessor()
    with pytest.raises(CoCoError):
        preprocessor.fit([[1.0], [1.0]])
    assert not [name for name in vars(preprocessor) if name.endswith("_")]


def test_names_can_be_given_to_the_columns_of_an_array():
    preprocessor = TablePreprocessor().fit([[1.0, "u"], [2.0, "v"], [None, "w"]])
    names = preprocessor.get_feature_names_out(["a", "c"]).tolist()
    assert names == ["a", "a_missing", "c_u", "c_v", "c_w"]
    with pytest.raises(CoCoError, match="length equal to number of features"):
        preprocessor.get_feature_names_out(["a"])
    preprocessor.fit(pd.DataFrame({"a": [1, 2]}))
    with pytest.raises(CoCoError, match="not equal to feature_names_in_"):
        preprocessor.get_feature_names_out(["b"])


def test_useless_columns_are_dropped_silently_and_say_why():
    frame = pd.DataFrame(
        {
            "number": [1.0, 2.0, np.nan],
            "same number": [1.0, 2.0, np.nan],
            "constant": 7,
            "empty": np.nan,
            "infinite": np.inf,
            "nothing": None,
            "word": ["x", "y", "z"],
            "same word": pd.Categorical(["x", "y", "z"]),
            "one word": "x",
            "no word": pd.Categorical([None] * 3, categories=["x"]),
            "truth": True,
        }
    )
    preprocessor = TablePreprocessor().fit(frame)
    assert preprocessor.kinds_ == {"number": "number", "word": "category"}
    assert preprocessor.dropped_columns_ == {
        "same number": "duplicate of 'number'",
        "constant": "constant",
        "empty": "no value",
        "infinite": "no finite value",
        "nothing": "no value",
        "same word": "duplicate of 'word'",
        "one word": "constant",
        "no word": "no value",
        "truth": "constant",
    }


@pytest.mark.parametrize("first", ["day", "date"])
def test_a_date_is_no_duplicate_of_the_number_of_its_day(first):
    day = np.arange(60) * 9.0
    date = pd.Timestamp("1970-01-01") + pd.to_timedelta(day, "D")
    frame = pd.DataFrame({"day": day, "date": date, "same": date})
    frame = frame[sorted(frame, key=lambda name: name != first)]
    preprocessor = TablePreprocessor().fit(frame)
    assert preprocessor.dropped_columns_ == {"same": "duplicate of 'date'"}
    assert {"date_weekday_sin", "date_month_cos"} < set(preprocessor.get_feature_names_out())


def test_columns_of_equal_statistics_are_no_duplicates():
    X = np.column_stack([np.arange(5), np.arange(5)[::-1]])
    assert TablePreprocessor().fit(X).dropped_columns_ == {}


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0, np.nan], [1.0, np.nan]], r"learn from: 'x0' \(constant\); 'x1' \(no value\)$"),
        (np.ones((1, 1)), "no column is left to learn from, as there is but one sample: 'x0'"),
        (np.ones((3, 500)), r"'x7' \(constant\) and 492 more$"),
        (
            [[f"note number {i}"] for i in range(40)],
            "no column is left.*nearly every value differs",
        ),
    ],
)
def test_a_table_of_useless_columns_is_refused(X, message):
    with pytest.raises(CoCoError, match=message):
        TablePreprocessor().fit(X)
