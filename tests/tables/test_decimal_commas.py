"""Decimal commas, and points between thousands beside them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from cocoloss.tables import iter_tables, open_table, read_table

SWAP = str.maketrans(",.", ".,")


def test_points_are_thousands_in_a_file_with_decimal_commas_and_that_is_said(saved):
    path = saved("a;b\n7.730;1,5\n1.250;2,5\n12;3\n")
    with pytest.warns(UserWarning, match=r"thousands.* 'a' \(such as 7\.730\)\. Say decimal='\.'"):
        read = read_table(path)
    assert read["a"].tolist() == [7730, 1250, 12]
    assert read["a"].dtype == "int64"
    assert read["b"].tolist() == [1.5, 2.5, 3]


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ("a;b\n1,5;x\n-0,25;y\n", [1.5, -0.25]),
        ("a;b\n7.730;x\n1.234,50;y\n12;z\n-1.234.567,5;z\n", [7730, 1234.5, 12, -1234567.5]),
        ('a,b\n"2,50",x\n"1.003,25",y\n4,z\n', [2.5, 1003.25, 4]),  # in quotes
        ("a;b\n7.730;1,5\n-;2,5\n1.250,5;3,5\n", [7730, np.nan, 1250.5]),  # a dash is a gap
        ("a;b\n7.730;1\n1.250;2\n", [7.73, 1.25]),  # no comma says otherwise
    ],
)
def test_numbers_are_read_as_they_are_meant(saved, content, values):
    path = saved(content)
    for read in (read_table(path), next(iter_tables(path))):
        np.testing.assert_array_equal(read["a"], values)


def test_what_was_told_need_not_be_said(saved):
    path = saved("a;b\n7.730;1,5\n1.250;2,5\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_table(path, decimal=",")["a"].tolist() == [7730, 1250]
        assert read_table(path, decimal=".")["a"].tolist() == [7.73, 1.25]
        assert read_table(path, decimal=".")["b"].tolist() == ["1,5", "2,5"]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
@pytest.mark.parametrize("cells", [["1,234", "2,500"], ["1,234", "-", "?"], ["12", "3,456,789"]])
def test_commas_that_may_be_decimal_or_stand_between_thousands_are_said(saved, cells, separator):
    lines = ["a;b\n", *(f"{cell};x\n" for cell in cells)]
    path = saved("".join(lines).replace(";", separator))
    ambiguous = "3,456,789" not in cells  # which only has thousands
    for read in (read_table, lambda path: list(iter_tables(path))):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            read(path)
        said = [str(warning.message) for warning in caught]
        assert len(said) == ambiguous
        assert all("'a' (such as 1,234). Say decimal=',' (--decimal ,)" in text for text in said)


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("a;b\n1,234;x\n", {"decimal": "."}),
        ("a;b\n1,234;x\n", {"text": ["a"]}),
        ("a;b\n1,234;0,5\n", {}),
        ("a;b\n1,234;2.5\n", {}),
        ('a,b\n"1,234",x\n', {}),
    ],
)
def test_commas_are_not_doubted_where_something_tells(saved, content, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(saved(content), **options)


@pytest.mark.parametrize(
    "cells",
    [
        ["31.12.2024", "01.02.2023"],
        ["192.168.100.200", "10.0.0.1"],
        ["0.125", "7.730"],
        ["01000", "-"],
        ["7.730", "on request"],
    ],
)
def test_what_only_resembles_thousands_stays_text(saved, cells):
    rows = "".join(f"{cell};{number}\n" for cell, number in zip(cells, ["1,5", "2,5"], strict=True))
    path = saved(f"a;b\n{rows}")
    assert read_table(path, decimal=",")["a"].tolist() == cells


@pytest.mark.parametrize(
    ("content", "decimal"),
    [
        ("a;b\n€ 1.012,50;1\n", ","),
        ("a\tb\n1,5\t?\n", ","),
        ('a,b\n"2,50",1\n"3,25",2\n', ","),  # in quotes, beside the same separator
        ("a,b\n1,5\n", None),
        ("a;b\n1,5;x\nn/a;y\nbad;z\n", None),  # the column is not numbers
        ('a,b\n"1,234",2.5\n', "."),
        ("a;b\n1,5;2.5\n", None),  # each column by itself
        ("a;b\n1,5 EUR;1.234\n", ","),
        ("a;b\n1.234;12\n", None),
        ("a;b\n1.234.567;2\n", None),  # it may be the number of a version
    ],
)
def test_the_decimal_mark_is_found_where_columns_agree_on_it(saved, content, decimal):
    assert open_table(saved(content)).decimal == decimal


def test_thousands_that_come_late_are_numbers_in_every_chunk(saved):
    path = saved("a;b\n" + "1,5;2\n" * 10 + "7.730;1.250\n" * 5 + "1.234,5;3\n")
    chunks = list(iter_tables(path, rows=5))
    assert {str(t) for chunk in chunks for t in chunk.dtypes} == {"float64"}
    joined = pd.concat(chunks, ignore_index=True)
    assert joined["a"].tolist() == [1.5] * 10 + [7730] * 5 + [1234.5]
    assert joined["b"].tolist() == [2] * 10 + [1250] * 5 + [3]


@settings(deadline=None, max_examples=60)
@given(
    cents=st.lists(st.integers(-(10**11), 10**11), min_size=1, max_size=12),
    separator=st.sampled_from(";,\t|"),
    rows=st.integers(1, 5),
)
def test_what_is_written_with_thousands_and_decimal_commas_is_read_as_it_was(
    tmp_path_factory, cents, separator, rows
):
    frame = pd.DataFrame({"a": [0.5, *(cent / 100 for cent in cents)]})
    written = [f"{x:,.2f}".translate(SWAP) for x in frame["a"]]
    path = tmp_path_factory.mktemp("commas") / "a.csv"
    pd.DataFrame({"a": written, "b": "x"}).to_csv(path, index=False, sep=separator)
    assert_frame_equal(read_table(path)[["a"]], frame)
    joined = pd.concat(iter_tables(path, rows=rows), ignore_index=True)
    assert_frame_equal(joined[["a"]], frame)


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        (["01067", "10115"], True),
        (["01067", "", "?"], True),
        (["0", "10"], False),
        (["0.5", "05"], False),
        (["01067", "A1"], False),
    ],
)
def test_digits_that_begin_with_zero_are_found(saved, cells, found):
    table = open_table(saved("a;b\n" + "".join(f"{cell};x\n" for cell in cells)))
    assert table.codes == ("a",) * found
    assert table.with_options(text=["a"]).codes == ()
