import numpy as np
import pandas as pd
import pytest

from cocoloss.columns import TablePreprocessor
from cocoloss.exceptions import CoCoError

FRAME = pd.DataFrame({"a": [1, 2, 4], "b": [1, 2, 3], "c": ["u", "v", "w"]})


def fit(values, **parameters):
    """Fit on one column, of Python objects unless it comes with a dtype."""
    if isinstance(values, list | str):
        values = pd.Series([*values], dtype=object)
    frame = pd.DataFrame({"a": values})
    preprocessor = TablePreprocessor(**parameters).fit(frame)
    return preprocessor, preprocessor.get_feature_names_out().tolist(), frame


@pytest.mark.parametrize(
    ("values", "names", "matrix"),
    [
        ("xzyx", ["a_x", "a_y", "a_z"], [[1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]),
        (["no", "yes", "no"], ["a_yes"], [[0], [1], [0]]),
        (["no", None, "yes"], ["a_yes", "a_missing"], [[0, 0], [0.5, 1], [1, 0]]),
        (["x", None, "x"], ["a_missing"], [[0], [1], [0]]),
        ([1, "x", 2.5, b"y"], ["a_1", "a_2.5", "a_x", "a_y"], np.eye(4)[[0, 2, 1, 3]]),
        (["bad", "good", "good ", " bad", b"bad\n"], ["a_good"], [[0], [1], [1], [0], [0]]),
        ([True, False, True], ["a_True"], [[1], [0], [1]]),
        (np.array([True, False, True]), ["a_True"], [[1], [0], [1]]),
        (
            pd.array([True, None, False], "boolean"),
            ["a_True", "a_missing"],
            [[1, 0], [0.5, 1], [0, 0]],
        ),
        ([True, None, False], ["a_True", "a_missing"], [[1, 0], [0.5, 1], [0, 0]]),
        ([True, None, True], ["a_missing"], [[0], [1], [0]]),
        (pd.Categorical(["y", "x"], categories=["y", "x", "z"]), ["a_y"], [[1], [0]]),
        (pd.Categorical([1, 3, 2], ordered=True), ["a_1", "a_2", "a_3"], np.eye(3)[[0, 2, 1]]),
        *(
            (["x", "y", "z", gap], ["a_x", "a_y", "a_z", "a_missing"], np.eye(4))
            for gap in (None, np.nan, pd.NA, "", " ")
        ),
    ],
)
def test_categories_are_one_hot_two_are_one_column_and_gaps_are_marked(values, names, matrix):
    preprocessor, found, frame = fit(values)
    assert found == names
    np.testing.assert_array_equal(preprocessor.transform(frame), matrix)


def test_an_unseen_category_is_zero_throughout_and_in_between_where_there_are_two():
    preprocessor = TablePreprocessor().fit([["x", "no"], ["y", "yes"], ["z", "no"]])
    expected = [[0, 0, 0, 0.5]] * 2
    np.testing.assert_array_equal(preprocessor.transform([["w", "perhaps"], [None] * 2]), expected)


@pytest.mark.parametrize(
    ("values", "most", "names", "new", "rows"),
    [
        ("pppppqqqqrrst", 3, "pq", ["p", "r", "never seen", None], [0, 2, 2, 2]),
        ([*"pppppqqqqrrs", None], 3, ["p", "q", "infrequent", "missing"], ["s", None], [2, 3]),
        ("pppppqrstuvw", 5, "p", ["p", "q"], [0, 1]),  # those seen once are never kept
    ],
)
def test_the_rarest_of_too_many_share_a_column_with_the_unseen(values, most, names, new, rows):
    names = [*names, "infrequent"] if isinstance(names, str) else names
    preprocessor, found, _ = fit(values, max_categories=most)
    assert found == [f"a_{name}" for name in names]
    matrix = preprocessor.transform(pd.DataFrame({"a": new}))
    np.testing.assert_array_equal(matrix, np.eye(len(names))[rows])


def test_the_default_keeps_a_column_of_many_categories_narrow():
    draws = np.random.default_rng(0).integers(0, 200, size=5000)
    assert len(fit([f"c{i}" for i in draws])[1]) == 64


@pytest.mark.parametrize("listed", [["b"], [1], (1,), np.array([1]), [False, True, False]])
def test_categories_can_be_listed_by_name_position_or_mask(listed):
    preprocessor = TablePreprocessor(categorical_features=listed).fit(FRAME)
    assert preprocessor.kinds_ == {"a": "number", "b": "category", "c": "category"}
    numbers = FRAME[["a", "b"]].to_numpy()
    preprocessor = TablePreprocessor(categorical_features=[1]).fit(numbers)
    assert preprocessor.get_feature_names_out().tolist() == ["x0", "x1_1", "x1_2", "x1_3"]


@pytest.mark.parametrize("listed", ["b", ["z"], [3], [-1], [1.5], [True, False]])
def test_a_list_of_categories_that_fits_no_column_is_refused(listed):
    with pytest.raises(CoCoError, match="categorical_features"):
        TablePreprocessor(categorical_features=listed).fit(FRAME)


def test_codes_are_the_same_category_as_integer_float_and_text():
    preprocessor = TablePreprocessor(categorical_features=["b"]).fit(FRAME[["b"]])
    for arriving in ([2], [2.0], ["2 "], pd.Categorical([" 2"]), pd.array([2], "Int64")):
        result = preprocessor.transform(pd.DataFrame({"b": arriving}))
        np.testing.assert_array_equal(result, [[0, 1, 0]])


def test_booleans_may_arrive_as_numbers_or_text():
    preprocessor = TablePreprocessor().fit(np.array([[True], [False]]))
    for arriving in ([[1], [0]], [[1.0], [0.0]], [["TRUE"], ["false"]], [[True], [False]]):
        np.testing.assert_array_equal(preprocessor.transform(arriving), [[1], [0]])
    with pytest.raises(CoCoError, match=r"column 'x0' held true and false.*'perhaps'"):
        preprocessor.transform([["perhaps"]])


@pytest.mark.parametrize("value", [{"a": 1}, [1, 2], (1, 2), {1}, np.arange(2)])
def test_containers_are_refused_by_type_and_column(value):
    message = f"argument must be a string or a number, not '{type(value).__name__}': column 'a'"
    with pytest.raises(TypeError, match=message):
        fit([value, "x"])
