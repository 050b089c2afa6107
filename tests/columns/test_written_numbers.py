"""Numbers that come as text, in the forms that people and programs give them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocoloss.columns import TablePreprocessor, settle_kinds
from cocoloss.exceptions import CoCoError

X = np.random.default_rng(0).normal(1000, 900, size=200).round(2)
MARKS = [
    *("?", "-", "--", ".", "NA", "n/a", "#N/A", "NULL", "None", "missing", "Unknown", " ? "),
    *("n.a.", "k.A.", "unbekannt", "\u2013"),
]


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
    if form[0].isalpha():
        return f"{text} {form.partition(' ')[0]}"
    sign = form[0] if form[0] in "$€£¥₹" else ""
    return text.replace("-", f"-{sign}") if x < 0 else sign + text


FORMS = [
    *("1,234.5", "1.234,5", "$1234.5", "$1,234.5", "€1.234,5", "1234.5%", "1,234.5%"),
    *("CHF 1,234.5", "kr 1.234,5", "PLN 1234.5"),
]


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
    "written",
    [
        ["12,50 EUR", "13 EUR", "-1.234,50 EUR"],
        ["EUR 12,50", "eur 13", "EUR -1.234,50"],
        ["12,50EUR", "13 Euro", "-1.234,50 €"],  # the sign and the word are one
        ["12,50\u00a0€", "€\u202f13", "\u22121.234,50\u00a0EUR"],
        ["USD 12.50", "13 usd", "-$1,234.50"],
        ["CHF 12.50", "13 CHF", "Fr. -1,234.50"],
        ["CHF 12.50", "13 CHF", "CHF -1'234.50"],
        ["12,50 €", "13 €", "-1\u202f234,50 €"],
        ["12,50 kr", "kr. 13", "-1.234,50 kr"],
        ["12.50 GBP", "£13", "-1,234.50 GBP"],
    ],
)
def test_a_currency_may_be_a_word(written):
    expected = with_gaps(np.array([12.5, 13, -1234.5]), [])
    np.testing.assert_array_equal(TablePreprocessor().fit_transform(frame_of(written)), expected)


def test_thousands_may_stand_apart():
    expected = with_gaps(np.array([1234567.5, 13, -1234]), [])
    for written in (
        ["1'234'567.5", "13", "-1\u2019234"],
        ["1\u00a0234\u00a0567,5", "13", "-1\u202f234"],
    ):
        np.testing.assert_array_equal(
            TablePreprocessor().fit_transform(frame_of(written)), expected
        )
    assert fit(["170 123 456", "170 123 457"]).kinds_ == {"a": "category"}
    assert fit(["5'10", "6'2"]).kinds_ == {"a": "category"}


@pytest.mark.parametrize("values", [["5 EUR", "6 USD"], ["5 kg", "6 kg"], ["EUR", "5 EUR"]])
def test_other_words_and_two_currencies_are_no_numbers(values):
    assert fit(values).kinds_ == {"a": "category"}


def read_with(decimal, *columns):
    frame = pd.DataFrame({f"c{j}": values for j, values in enumerate(columns)}, dtype=object)
    settled = settle_kinds(frame, TablePreprocessor(decimal=decimal))
    return [settled[name].tolist() for name in frame.columns]


def test_points_are_thousands_where_the_decimal_mark_is_a_comma():
    with pytest.warns(UserWarning, match=r"points between thousands.*'c0' \(such as '7.730'\)"):
        assert read_with(",", ["7.730", "12"]) == [[7730, 12]]
    with pytest.warns(UserWarning, match=r"If they are decimal points, say so by .*decimal='\.'"):
        assert read_with(",", ["1.250 CHF", "12 CHF"]) == [[1250, 12]]
    assert read_with(",", ["1.234.567,5", "1.250"]) == [[1234567.5, 1250]]
    assert read_with(",", ["2.5", "12"]) == [[2.5, 12]]  # which no thousand is
    assert read_with("auto", ["7.730", "12"]) == [[7.73, 12]]
    assert read_with(".", ["1,234", "12"]) == [[1234, 12]]


def test_columns_of_text_agree_on_a_decimal_mark():
    with pytest.warns(UserWarning, match=r"points between thousands.*'c1'"):
        assert read_with("auto", ["1,5 %", "2 %"], ["1.250 EUR", "12 EUR"])[1] == [1250, 12]
    assert read_with("auto", ["1,5 %", "2 %"], ["1,234", "12"])[1] == [1.234, 12]
    columns = ["1,5 %", "2 %"], ["1.250 EUR", "12 EUR"], ["2.5 %", "12 %"]  # one has points
    assert read_with("auto", *columns)[1] == [1.25, 12]


def test_stray_text_is_a_gap_among_decimal_commas_that_are_known():
    text = [f"{x:.1f}".replace(".", ",") for x in np.linspace(10, 20, 400)]
    frame = frame_of([*text, "many"])
    with pytest.warns(UserWarning, match="such as 'many'"):
        preprocessor = TablePreprocessor(decimal=",").fit(frame)
    assert preprocessor.kinds_ == {"a": "number"}


def test_numbers_may_arrive_as_text_with_the_decimal_mark_of_the_table():
    preprocessor = TablePreprocessor(decimal=",").fit(pd.DataFrame({"a": [1.5, 7730.0, 2.0]}))
    expected = preprocessor.transform(pd.DataFrame({"a": [2.5, 7730.0]}))
    np.testing.assert_array_equal(preprocessor.transform(frame_of(["2,50", "7.730"])), expected)
    with pytest.raises(CoCoError, match=r"written as 1\.234,5.*'2\.50'"):
        preprocessor.transform(frame_of(["2.50"]))


def test_a_table_with_another_decimal_mark_can_be_announced():
    preprocessor = fit(["$1,200", "$2,500.5", "$4,000"])
    expected = preprocessor.transform(frame_of(["$1,200", "$2,500.5"]))
    preprocessor.expect_decimal(",")
    found = preprocessor.transform(frame_of(["1.200,00 $", "$ 2.500,5"]))
    np.testing.assert_array_equal(found, expected)
    preprocessor.expect_decimal(".")
    np.testing.assert_array_equal(preprocessor.transform(frame_of(["$1,200", "2500.5"])), expected)
    with pytest.raises(CoCoError, match="decimal"):
        preprocessor.expect_decimal("auto")


def test_a_decimal_mark_that_is_none_is_refused():
    with pytest.raises(CoCoError, match="decimal"):
        TablePreprocessor(decimal="'").fit([[1.0], [2.0]])


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
