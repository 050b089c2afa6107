import numpy as np
import pandas as pd
import pytest

from cocoloss.columns import TablePreprocessor
from cocoloss.exceptions import CoCoError


def encode(values, **parameters):
    """Fit on one column and return names and matrix."""
    frame = pd.DataFrame({"a": values})
    preprocessor = TablePreprocessor(**parameters).fit(frame)
    return preprocessor.get_feature_names_out().tolist(), preprocessor.transform(frame)


@pytest.mark.parametrize(
    ("values", "names", "matrix"),
    [
        ("xzyx", ["a_x", "a_y", "a_z"], [[1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]),
        (["no", "yes", "no"], ["a_yes"], [[0], [1], [0]]),
        (["no", None, "yes"], ["a_yes", "a_missing"], [[0, 0], [0.5, 1], [1, 0]]),
        (["x", None, "x"], ["a_missing"], [[0], [1], [0]]),
        ([1, "x", 2.5, b"y"], ["a_1", "a_2.5", "a_x", "a_y"], np.eye(4)[[0, 2, 1, 3]]),
        ([True, False, True], ["a_True"], [[1], [0], [1]]),
        ([True, None, False], ["a_True", "a_missing"], [[1, 0], [0.5, 1], [0, 0]]),
        ([True, None, True], ["a_missing"], [[0], [1], [0]]),
        *(
            (["x", "y", "z", gap], ["a_x", "a_y", "a_z", "a_missing"], np.eye(4))
            for gap in (None, np.nan, pd.NA, "", " ")
        ),
    ],
)
def test_categories_are_one_hot_two_are_one_column_and_gaps_are_marked(values, names, matrix):
    found, result = encode(pd.Series([*values], dtype=object))
    assert found == names
    np.testing.assert_array_equal(result, matrix)


@pytest.mark.parametrize("dtype", [bool, "boolean"])
def test_booleans_of_any_dtype_are_one_column(dtype):
    names, matrix = encode(pd.Series([True, False, True], dtype=dtype))
    assert names == ["a_True"]
    np.testing.assert_array_equal(matrix, [[1], [0], [1]])


def test_an_unseen_category_is_zero_throughout_and_in_between_where_there_are_two():
    preprocessor = TablePreprocessor().fit([["x", "no"], ["y", "yes"], ["z", "no"]])
    expected = [[0, 0, 0, 0.5]] * 2
    np.testing.assert_array_equal(preprocessor.transform([["w", "perhaps"], [None] * 2]), expected)


def test_rare_categories_share_a_column_with_the_unseen():
    values = [*["p"] * 5, *["q"] * 4, *["r"] * 2, "s", "t"]
    frame = pd.DataFrame({"a": values})
    preprocessor = TablePreprocessor(max_categories=3).fit(frame)
    assert preprocessor.get_feature_names_out().tolist() == ["a_p", "a_q", "a_infrequent"]
    new = pd.DataFrame({"a": ["p", "r", "t", "never seen", None]})
    infrequent = [0, 0, 1]
    np.testing.assert_array_equal(preprocessor.transform(new), [[1, 0, 0], *[infrequent] * 4])


def test_gaps_are_not_infrequent_where_they_have_a_column():
    values = [*["p"] * 5, *["q"] * 4, *["r"] * 2, "s", None]
    names, matrix = encode(values, max_categories=3)
    assert names == ["a_p", "a_q", "a_infrequent", "a_missing"]
    np.testing.assert_array_equal(matrix[-2:], [[0, 0, 1, 0], [0, 0, 0, 1]])


def test_categories_seen_once_are_never_kept_among_too_many():
    names, _ = encode([*["p"] * 5, *"qrstuvw"], max_categories=5)
    assert names == ["a_p", "a_infrequent"]


def test_the_default_keeps_a_column_of_many_categories_narrow():
    rng = np.random.default_rng(0)
    values = [f"c{i}" for i in rng.integers(0, 200, size=5000)]
    names, _ = encode(values)
    assert len(names) == 64


def test_a_categorical_dtype_is_never_read_as_ordinal():
    ordered = pd.Categorical(["mid", "low", "top"], categories=["low", "mid", "top"], ordered=True)
    names, matrix = encode(ordered)
    assert names == ["a_low", "a_mid", "a_top"]
    np.testing.assert_array_equal(matrix, [[0, 1, 0], [1, 0, 0], [0, 0, 1]])


def test_categories_that_no_row_has_take_no_column():
    names, _ = encode(pd.Categorical(["x", "y", "x"], categories=["x", "y", "z"]))
    assert names == ["a_y"]


def test_integers_of_categorical_dtype_are_categories_and_others_numbers():
    frame = pd.DataFrame({"a": pd.Categorical([1, 2, 3]), "b": [1, 2, 4]})
    assert TablePreprocessor().fit(frame).kinds_ == {"a": "category", "b": "number"}


@pytest.mark.parametrize("listed", [["b"], [1], (1,), np.array([1]), [False, True, False]])
def test_categories_can_be_listed_by_name_position_or_mask(listed):
    frame = pd.DataFrame({"a": [1, 2, 4], "b": [1, 2, 3], "c": ["u", "v", "w"]})
    preprocessor = TablePreprocessor(categorical_features=listed).fit(frame)
    assert preprocessor.kinds_ == {"a": "number", "b": "category", "c": "category"}


@pytest.mark.parametrize("listed", ["b", ["z"], [3], [-1], [1.5], [True, False]])
def test_a_list_of_categories_that_fits_no_column_is_refused(listed):
    frame = pd.DataFrame({"a": [1, 2, 4], "b": [1, 2, 3], "c": ["u", "v", "w"]})
    with pytest.raises(CoCoError, match="categorical_features"):
        TablePreprocessor(categorical_features=listed).fit(frame)


def test_listed_columns_of_an_array_of_numbers_are_categories():
    X = np.array([[1.5, 7.0], [2.5, 8.0], [9.5, 9.0]])
    preprocessor = TablePreprocessor(categorical_features=[1]).fit(X)
    assert preprocessor.get_feature_names_out().tolist() == ["x0", "x1_7", "x1_8", "x1_9"]


def test_codes_are_the_same_category_as_integer_float_and_text():
    preprocessor = TablePreprocessor(categorical_features=["a"])
    preprocessor.fit(pd.DataFrame({"a": [1, 2, 3]}))
    for arriving in ([2], [2.0], ["2"], pd.Categorical(["2"]), pd.array([2], "Int64")):
        result = preprocessor.transform(pd.DataFrame({"a": arriving}))
        np.testing.assert_array_equal(result, [[0, 1, 0]])


def test_white_space_around_a_category_does_not_count():
    names, matrix = encode(["good", "good ", " bad", "fair", b"fair\n"])
    assert names == ["a_bad", "a_fair", "a_good"]
    np.testing.assert_array_equal(matrix.argmax(axis=1), [2, 2, 0, 1, 1])
    preprocessor = TablePreprocessor().fit(pd.DataFrame({"a": ["x", "y", "z"]}))
    new = pd.DataFrame({"a": pd.Categorical([" y"])})
    np.testing.assert_array_equal(preprocessor.transform(new), [[0, 1, 0]])


def test_booleans_may_arrive_as_numbers_or_text():
    preprocessor = TablePreprocessor().fit(np.array([[True], [False]]))
    for arriving in ([[1], [0]], [[1.0], [0.0]], [["TRUE"], ["false"]], [[True], [False]]):
        np.testing.assert_array_equal(preprocessor.transform(arriving), [[1], [0]])
    with pytest.raises(CoCoError, match=r"column 'x0' held true and false.*'perhaps'"):
        preprocessor.transform([["perhaps"]])


@pytest.mark.parametrize("value", [{"a": 1}, [1, 2], (1, 2), {1}, np.arange(2)])
def test_containers_are_refused_by_type_and_column(value):
    frame = pd.DataFrame({"a": pd.Series([value, "x"], dtype=object), "b": [1, 2]})
    message = f"argument must be a string or a number, not '{type(value).__name__}': column 'a'"
    with pytest.raises(TypeError, match=message):
        TablePreprocessor().fit(frame)


@pytest.mark.parametrize("number", [1, 2.5])
def test_max_categories_must_be_a_whole_number_of_at_least_two(number):
    with pytest.raises(CoCoError, match="max_categories"):
        TablePreprocessor(max_categories=number).fit([["x"], ["y"]])
