import numpy as np
import pandas as pd
import pytest

from cocoloss.columns import TablePreprocessor
from cocoloss.exceptions import CoCoError

FRAME = pd.DataFrame(
    {
        "age": [31.0, np.nan, 45.0, 60.0],
        "city": ["Bern", "Oslo", "Rome", "Oslo"],
        "member": [True, False, True, True],
    }
)


def test_columns_are_found_by_name_in_any_order():
    preprocessor = TablePreprocessor().fit(FRAME)
    shuffled = FRAME[["member", "age", "city"]]
    np.testing.assert_array_equal(preprocessor.transform(shuffled), preprocessor.transform(FRAME))


def test_columns_of_numbers_are_found_by_name_in_any_order():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 4)), columns=[*"abcd"])
    preprocessor = TablePreprocessor().fit(frame)
    expected = preprocessor.transform(frame)
    np.testing.assert_array_equal(preprocessor.transform(frame[[*"dbca"]]), expected)


def test_columns_labelled_by_numbers_are_found_by_label():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 3)))
    preprocessor = TablePreprocessor().fit(frame)
    assert not hasattr(preprocessor, "feature_names_in_")
    expected = preprocessor.transform(frame)
    np.testing.assert_array_equal(preprocessor.transform(frame[[2, 0, 1]]), expected)
    np.testing.assert_array_equal(preprocessor.transform(frame.to_numpy()), expected)


def test_further_columns_are_ignored():
    preprocessor = TablePreprocessor().fit(FRAME)
    wider = FRAME.assign(target=[0, 1, 0, 1], note=[{}, {}, {}, {}])
    np.testing.assert_array_equal(preprocessor.transform(wider), preprocessor.transform(FRAME))


def test_columns_that_lack_are_named():
    preprocessor = TablePreprocessor().fit(FRAME)
    with pytest.raises(CoCoError, match=r"X lacks columns .*: 'age', 'member'; it has 'city'"):
        preprocessor.transform(FRAME[["city"]])


def test_columns_that_were_dropped_need_not_be_there():
    preprocessor = TablePreprocessor().fit(FRAME.assign(constant=1))
    assert preprocessor.transform(FRAME).shape == (4, preprocessor.n_features_out_)


def test_an_array_must_have_as_many_columns_as_in_fit():
    preprocessor = TablePreprocessor().fit([[1, 2], [3, 4]])
    message = "X has 3 features, but TablePreprocessor is expecting 2 features as input"
    with pytest.raises(CoCoError, match=message):
        preprocessor.transform([[1, 2, 3]])


def test_names_on_one_side_only_are_warned_of_as_in_scikit_learn():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [5.0, 3.0]})
    by_name, by_position = TablePreprocessor().fit(frame), TablePreprocessor().fit(frame.to_numpy())
    with pytest.warns(UserWarning, match="X does not have valid feature names") as caught:
        first = by_name.transform(frame.to_numpy())
    assert caught[0].filename == __file__  # where the names were left out
    with pytest.warns(UserWarning, match="fitted without feature names"):
        second = by_position.transform(frame)
    np.testing.assert_array_equal(first, second)


def test_knows_its_columns_by_number_and_name():
    preprocessor = TablePreprocessor().fit(FRAME)
    assert preprocessor.n_features_in_ == 3
    assert preprocessor.feature_names_in_.tolist() == ["age", "city", "member"]
    assert preprocessor.feature_names_in_.dtype == object
    assert preprocessor.n_features_out_ == len(preprocessor.get_feature_names_out()) == 6
    preprocessor.fit([[1, 2], [3, 4]])
    assert not hasattr(preprocessor, "feature_names_in_")


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
    X = np.array([[1.0, 5.0], [2.0, 4.0], [3.0, 3.0], [4.0, 2.0], [5.0, 1.0]])
    assert TablePreprocessor().fit(X).dropped_columns_ == {}


def test_a_table_of_useless_columns_is_refused():
    with pytest.raises(CoCoError, match=r"no column is left.*'x0' \(constant\); 'x1' \(no value"):
        TablePreprocessor().fit([[1.0, np.nan], [1.0, np.nan]])


def notes(n=40):
    return [f"note number {i}" for i in range(n)]


def test_free_text_is_dropped_with_a_warning():
    frame = pd.DataFrame({"note": notes(), "b": range(40)})
    with pytest.warns(UserWarning, match=r"dropped 'note' \(text.*'note number 0'\).*categorical"):
        preprocessor = TablePreprocessor().fit(frame)
    assert preprocessor.transform(frame).shape == (40, 1)


def test_text_that_is_mostly_numbers_names_the_odd_value():
    frame = pd.DataFrame({"a": [*(f"{i}.123" for i in range(40)), *"wxyz"], "b": range(44)})
    with pytest.warns(UserWarning, match=r"dropped 'a' .*most values are numbers, but not 'w'"):
        TablePreprocessor().fit(frame)


@pytest.mark.parametrize("name", ["id{}", "{}x"])
def test_short_identifiers_are_dropped_with_the_warning_for_text(name):
    frame = pd.DataFrame({"d": [name.format(i) for i in range(1000)], "b": range(1000)})
    with pytest.warns(UserWarning, match="dropped 'd' .*nearly every value differs, such as"):
        preprocessor = TablePreprocessor().fit(frame)
    assert [*preprocessor.dropped_columns_] == ["d"]


def test_short_codes_are_kept_where_there_is_room_for_them():
    frame = pd.DataFrame({"d": [f"id{i}" for i in range(90)]})
    assert TablePreprocessor(max_categories=100).fit(frame).n_features_out_ == 90


def test_too_many_categories_that_the_user_asks_for_are_dropped_with_a_warning():
    frame = pd.DataFrame({"d": pd.Categorical([f"id{i}" for i in range(90)]), "b": range(90)})
    message = r"dropped 'd' \(too many categories.*Raise max_cat.*TablePreprocessor\(max_categories"
    with pytest.warns(UserWarning, match=message):
        preprocessor = TablePreprocessor().fit(frame)
    assert preprocessor.kinds_ == {"b": "number"}


def test_free_text_alone_is_refused():
    with pytest.raises(CoCoError, match="no column is left"):
        TablePreprocessor().fit(pd.DataFrame({"note": notes()}))


def test_text_is_kept_where_the_user_says_it_is_a_category():
    frame = pd.DataFrame({"note": notes(), "b": range(40)})
    listed = TablePreprocessor(categorical_features=["note"]).fit(frame)
    by_dtype = TablePreprocessor().fit(frame.astype({"note": "category"}))
    assert listed.n_features_out_ == by_dtype.n_features_out_ == 41


def test_a_few_long_words_are_categories_even_if_all_differ():
    assert TablePreprocessor().fit(pd.DataFrame({"note": notes(20)})).n_features_out_ == 20


def test_words_that_repeat_and_short_codes_are_categories():
    frame = pd.DataFrame(
        {
            "word": (notes(30) * 2)[:40],
            "code": [f"c{i}" for i in range(40)],
        }
    )
    assert set(TablePreprocessor().fit(frame).kinds_.values()) == {"category"}


def test_lists_of_rows_keep_their_numbers():
    preprocessor = TablePreprocessor().fit([[1.5, "x", True], [2, "y", True], [3, "z", False]])
    assert preprocessor.kinds_ == {"x0": "number", "x1": "category", "x2": "boolean"}


@pytest.mark.parametrize("dtype", ["U", "S", object])
def test_arrays_of_text_are_read_column_by_column(dtype):
    X = np.array([["1.5", "x"], ["2.5", "y"], ["nan", "z"]], dtype=dtype)
    preprocessor = TablePreprocessor().fit(X)
    assert preprocessor.get_feature_names_out().tolist() == [
        "x0",
        "x0_missing",
        "x1_x",
        "x1_y",
        "x1_z",
    ]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(
            {
                "i": pd.array([1, None, 3], "Int64"),
                "f": pd.array([1.5, 2.5, None], "Float64"),
                "b": pd.array([True, None, False], "boolean"),
                "s": pd.array(["x", None, "y"], "string"),
            }
        ),
        pd.DataFrame({"i": [1, None, 3], "f": [1.5, 2.5, None]}).assign(
            b=pd.Series([True, None, False], dtype=object),
            s=pd.Series(["x", None, "y"], dtype=object),
        ),
    ],
    ids=["nullable", "plain"],
)
def test_nullable_dtypes_are_read_as_plain_ones(frame):
    preprocessor = TablePreprocessor().fit(frame)
    assert list(preprocessor.kinds_.values()) == ["number", "number", "boolean", "category"]
    np.testing.assert_allclose(
        preprocessor.transform(frame)[:2],
        [[-1.23032, -1.23032, 0, 0, 1, 0, 0, 0], [0, 1.23032, 1, 0, 0.5, 1, 0.5, 1]],
        atol=1e-5,
    )


def test_sparse_columns_of_a_frame_are_read():
    values = [0.0, 0.0, 1.5, 0.0]
    sparse = pd.DataFrame({"a": pd.arrays.SparseArray(values)})
    expected = TablePreprocessor().fit_transform(pd.DataFrame({"a": values}))
    np.testing.assert_array_equal(TablePreprocessor().fit_transform(sparse), expected)


def test_intervals_are_categories():
    frame = pd.DataFrame({"a": pd.cut([1, 2, 3], [0, 1, 2, 3])})
    assert TablePreprocessor().fit(frame).get_feature_names_out()[0] == "a_(0, 1]"
