"""Numbers that come as text, in the forms that people and programs give them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocoloss.exceptions import CoCoError
from cocoloss.preprocessing import TablePreprocessor

X = np.random.default_rng(0).normal(1000, 900, size=200).round(2)
MARKS = ["?", "-", "--", ".", "NA", "n/a", "#N/A", "NULL", "None", "missing", "Unknown", " ? "]


def frame_of(values):
    return pd.DataFrame({"a": pd.Series(values, dtype=object)})


def fit(values):
    return TablePreprocessor().fit(frame_of(values))


def with_gaps(values, positions):
    values = values.copy()
    values[positions] = np.nan
    return TablePreprocessor().fit_transform(values[:, np.newaxis])


@pytest.mark.parametrize("mark", MARKS)
def test_marks_of_a_gap_are_gaps_among_numbers(mark):
    text = X.astype(str).astype(object)
    text[::10] = mark
    preprocessor = fit(text)
    assert preprocessor.get_feature_names_out().tolist() == ["a", "a_missing"]
    expected = with_gaps(X, slice(None, None, 10))
    np.testing.assert_array_equal(preprocessor.transform(frame_of(text)), expected)


@pytest.mark.parametrize("mark", MARKS)
def test_marks_of_a_gap_are_gaps_for_any_column_of_numbers_at_prediction(mark):
    preprocessor = TablePreprocessor().fit(pd.DataFrame({"a": [1.0, 2.0, 5.0]}))
    np.testing.assert_array_equal(preprocessor.transform(frame_of([mark, "2"])), [[0], [0]])


def test_marks_of_a_gap_are_categories_among_words():
    names = fit(["none", "some", "unknown", "?"] * 5).get_feature_names_out().tolist()
    assert names == ["a_?", "a_none", "a_some", "a_unknown"]


def test_a_column_of_marks_alone_is_a_category():
    assert fit(["?", "none"] * 5).kinds_ == {"a": "category"}


def test_marks_beside_numbers_that_are_no_text_are_gaps():
    result = TablePreprocessor().fit_transform(frame_of([1, 2, "?", 9, 2.5]))
    np.testing.assert_array_equal(result, with_gaps(np.array([1, 2, 0, 9, 2.5]), 2))


def write(x, form):
    """Return 1234.5 as the name of the form says."""
    text = f"{x:,.2f}" if "," in form else f"{x:.2f}"
    if "1.234,5" in form:
        text = text.translate(str.maketrans(",.", ".,"))
    if form.endswith("%"):
        return f"{text}%"
    sign = form[0] if form[0] in "$€£¥₹" else ""
    return text.replace("-", f"-{sign}") if x < 0 else sign + text


FORMS = ["1,234.5", "1.234,5", "$1234.5", "$1,234.5", "€1.234,5", "1234.5%", "1,234.5%"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_number_gives_the_same(form):
    text = [write(x, form) for x in X]
    preprocessor = fit(text)
    assert preprocessor.forms_ == {"a": form}
    expected = TablePreprocessor().fit_transform(X[:, np.newaxis])
    np.testing.assert_array_equal(preprocessor.transform(frame_of(text)), expected)


@pytest.mark.parametrize("form", FORMS)
def test_gaps_do_not_hide_a_form(form):
    text = np.array([write(x, form) for x in X], dtype=object)
    text[::10], text[5::10] = "n/a", None
    matrix = TablePreprocessor().fit_transform(frame_of(text))
    np.testing.assert_array_equal(matrix, with_gaps(X, slice(None, None, 5)))


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(-(10**9), 10**9), min_size=3, max_size=20), st.sampled_from(FORMS))
def test_whatever_is_read_as_a_number_is_that_number(cents, form):
    x = np.array([-123456.78, *(cent / 100 for cent in cents)])  # of which one shows the form
    text = frame_of([write(value, form) for value in x])
    preprocessor = TablePreprocessor().fit(text)
    assert preprocessor.kinds_ == {"a": "number"}
    expected = TablePreprocessor().fit_transform(x[:, np.newaxis])
    np.testing.assert_array_equal(preprocessor.transform(text), expected)


def test_a_form_takes_signs_on_either_side_and_blanks_between():
    expected = with_gaps(np.array([5.0, 6, -7, -8, 9]), [])
    written = ["$5", "6 $", "-$7", "$ -8", "+$9"]
    np.testing.assert_array_equal(TablePreprocessor().fit_transform(frame_of(written)), expected)


@pytest.mark.parametrize(
    "values",
    [
        ["5%", "0.05", "7%"],  # is it 5 or 0.05?
        ["$5", "€6", "$7"],
        ["$5", 6, "$7"],
        ["$5%", "$6%"],
        ["--5", "6"],
        ["-$-5", "$6"],
        ["1,2,3", "2,3"],
        ["12,34.5", "1,234.5"],
        ["1.5", "2,5"],
        ["1.234.567", "2"],
    ],
)
def test_numbers_in_no_common_form_are_categories(values):
    assert fit(values).kinds_ == {"a": "category"}


def test_thousands_are_told_from_decimal_commas():
    assert fit(["1,234", "950"]).forms_ == {"a": "1,234.5"}
    assert fit(["1,234", "0,512"]).forms_ == {"a": "1.234,5"}
    assert fit(["1,234", "51,2"]).forms_ == {"a": "1.234,5"}


def test_a_form_is_used_in_prediction_and_plain_numbers_with_it():
    preprocessor = fit(["$1,200", "$2,500", "$4,000"])
    expected = preprocessor.transform(pd.DataFrame({"a": [1200.0, 3.5, np.nan]}))
    np.testing.assert_array_equal(
        preprocessor.transform(frame_of(["$1,200", "3.5", "?"])), expected
    )
    with pytest.raises(CoCoError, match=r"numbers \(written as \$1,234.5\).*'€7'"):
        preprocessor.transform(frame_of(["€7"]))


def test_a_form_is_not_guessed_in_prediction():
    with pytest.raises(CoCoError, match="held numbers in training, but now holds '1,200'"):
        fit(["100", "250", "400"]).transform(frame_of(["1,200"]))


def numbers_and(strays, n=400):
    text = np.random.default_rng(1).normal(size=n).round(1).astype(str).astype(object)
    text[: len(strays)] = strays
    return text


def test_stray_text_among_numbers_is_a_gap_and_warned_of():
    text = numbers_and(["many", "few"] * 10)
    with pytest.warns(UserWarning, match=r"as gaps: 'a' \(such as 'many'\)\. Mend.*\['a'\]"):
        preprocessor = fit(text)
    assert preprocessor.get_feature_names_out().tolist() == ["a", "a_missing"]
    assert preprocessor.stray_columns_ == ["a"]
    np.testing.assert_array_equal(
        preprocessor.transform(frame_of(["many", "others", None])), [[0, 1]] * 3
    )


def test_stray_text_does_not_hide_thousands():
    text = [f"{x:,.2f}" for x in X[X > 0]]
    with pytest.warns(UserWarning, match="such as 'ask'"):
        preprocessor = fit([*text, "ask"])
    assert preprocessor.forms_ == {"a": "1,234.5"}


def test_text_in_a_column_that_was_clean_is_an_error_still():
    with pytest.raises(CoCoError, match=r"column 'a' held numbers in training.*'many'"):
        fit(numbers_and([])).transform(frame_of(["many"]))


def test_decimal_commas_with_other_text_are_left_alone():
    text = [f"{x:.1f}".replace(".", ",") for x in np.linspace(10, 20, 400)]
    with pytest.warns(UserWarning, match="most values are numbers, but not 'many'"):
        assert fit([*text, "many"]).kinds_ == {"a": "category"}


def test_more_text_among_numbers_makes_a_category_and_is_warned_of():
    with pytest.warns(UserWarning, match=r"taken as categories: 'a' \(most.* but not 'many'\)"):
        preprocessor = fit(numbers_and(["many"] * 21))
    assert preprocessor.kinds_ == {"a": "category"}


def test_the_share_of_text_counts_cells_and_gaps_do_not():
    cells = [*["many"] * 5, *["7", "8"] * 50]  # 1 of 3 values, but 1 of 21 cells
    with pytest.warns(UserWarning, match="such as 'many'"):
        fit([*cells, *[None] * 500])
    assert fit([*cells, "many"]).kinds_ == {"a": "category"}  # and few of them: no warning


def test_a_few_numbers_beside_text_are_no_column_of_numbers():
    assert fit([*map(str, range(19)), "x"]).kinds_ == {"a": "category"}


def test_a_listed_category_is_not_warned_of():
    listed = TablePreprocessor(categorical_features=["a"]).fit(frame_of(numbers_and(["many"] * 21)))
    assert listed.kinds_ == {"a": "category"}


def test_codes_with_leading_zeros_are_categories():
    assert fit(["01000", "20500", "90210"] * 5).get_feature_names_out().tolist() == [
        "a_01000",
        "a_20500",
        "a_90210",
    ]


@pytest.mark.parametrize("values", [["0", "10", "20"], ["0.5", "00.25", "1"], ["-05", "3", "4"]])
def test_a_zero_that_leads_nothing_or_a_fraction_or_a_negative_is_no_code(values):
    assert fit(values).kinds_ == {"a": "number"}


def test_one_code_among_many_fractions_is_warned_of():
    with pytest.warns(UserWarning, match="most values are numbers, but not '007'"):
        assert fit(numbers_and(["007"])).kinds_ == {"a": "category"}
