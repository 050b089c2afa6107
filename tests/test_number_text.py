"""Numbers written as text: one parser, whoever asks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocoloss.exceptions import CoCoError
from cocoloss.number_text import (
    find_form,
    has_decimal,
    parse_numbers,
    split_unit,
)

FORMS = ["1,234.5", "1.234,5", "$1,234.5", "€1.234,5", "1,234.5%", "1.234,5%", "CHF 1,234.5"]


def write(x, form):
    """Return a number as the form has 1234.5."""
    text = f"{x:,.2f}"
    if "1.234,5" in form:
        text = text.translate(str.maketrans(",.", ".,"))
    if form.endswith("%"):
        return f"{text}%"
    if form[0].isalpha():
        return f"{text} {form.partition(' ')[0]}"
    sign = form[0] if form[0] in "$€" else ""
    return text.replace("-", f"-{sign}") if x < 0 else sign + text


def found_form(values, decimal="auto"):
    form, fits = find_form(np.array(values, dtype=object), np.ones(len(values), int), decimal)
    return form if fits.all() else None


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1), st.sampled_from(FORMS))
def test_whatever_is_written_in_a_form_is_read_as_that_number(cents, form):
    x = np.array([-123456.78, *(cent / 100 for cent in cents)])  # of which one shows the form
    text = [write(value, form) for value in x]
    assert found_form(text) == form
    np.testing.assert_array_equal(parse_numbers(text, form), x)


@pytest.mark.parametrize(
    ("text", "unit", "digits"),
    [
        ("1234.5", "", "1234.5"),
        (" -1.5e-3 ", "", "-1.5e-3"),
        ("$5", "$", "5"),
        ("6 $", "$", "6"),
        ("-$7", "$", "-7"),
        ("$ -8", "$", "-8"),
        ("12,50 EUR", "€", "12,50"),
        ("eur 13", "€", "13"),
        ("12,50\u00a0€", "€", "12,50"),
        ("\u22121.234,50\u202fEUR", "€", "-1.234,50"),
        ("13 usd", "$", "13"),
        ("12.50 GBP", "£", "12.50"),
        ("CHF -1'234.50", "CHF", "-1234.50"),
        ("1\u00a0234\u00a0567,5", "", "1234567,5"),
        ("51.2 %", "%", "51.2"),
        *((text, "", "") for text in ("5 kg", "EUR", "$5%", "--5", "-$-5", "170 123 456", "5'10")),
    ],
)
def test_a_unit_is_told_from_the_digits(text, unit, digits):
    assert split_unit(text) == (unit, digits)


@pytest.mark.parametrize(
    ("digits", "marks"),
    [
        *((digits, ".,") for digits in ("1234", "1.234", "1,234")),
        *((digits, ",") for digits in ("0,512", "51,2", "1.234,5", "1.234.567", "1,5e3")),
        *((digits, ".") for digits in ("1,234.5", ".5")),
        *((digits, "") for digits in ("1,2,3", "12,34.5", "01.234,5", "")),
    ],
)
def test_thousands_come_in_threes_and_decimals_once(digits, marks):
    assert {mark for mark in ".," if has_decimal(digits, mark)} == set(marks)


@pytest.mark.parametrize(
    ("values", "decimal", "form"),
    [
        (["7.5", "8"], "auto", ""),
        (["1,234", "950"], "auto", "1,234.5"),
        (["1,234", "51,2"], "auto", "1.234,5"),
        (["7.730", "12"], ",", "1.234,5"),
        (["2.5", "12"], ",", ""),  # which no thousand is
        (["1,234", "12"], ".", "1,234.5"),
        (["$5", "6 USD"], "auto", "$1,234.5"),
        (["5%", "0.05"], "auto", None),  # is it 5 or 0.05?
        (["$5", "€6"], "auto", None),
        (["$5", 6], "auto", None),
        (["1.5", "2,5"], "auto", None),
        (["1.234.567", "2"], "auto", None),  # a version?
    ],
)
def test_a_column_has_the_form_that_all_its_numbers_have(values, decimal, form):
    assert found_form(values, decimal) == form


def test_what_is_not_in_the_form_is_no_number():
    values = ["$1,200", "3.5", 8, "€7", "many", None, 10**400, "1.200,5"]
    expected = [1200, 3.5, 8, np.nan, np.nan, np.nan, np.inf, np.nan]
    np.testing.assert_array_equal(parse_numbers(values, "$1,234.5"), expected)
    with pytest.raises(CoCoError, match="no form"):
        parse_numbers([], "$1234")
