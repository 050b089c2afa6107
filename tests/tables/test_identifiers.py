"""Columns of whole numbers that seem to name the rows."""

import numpy as np
import pandas as pd
import pytest

from cocoloss.tables.table import find_counters, find_identifiers, is_named_like_identifier


@pytest.mark.parametrize(
    "name",
    ["id", "ID", "Kunden-Nr", "customerId", "CustomerID", "row no.", "KEY_1", "order_number"],
)
def test_names_of_identifiers_are_known(name):
    assert is_named_like_identifier(name)


@pytest.mark.parametrize("name", ["width", "Idee", "nose", "encoded", "", "42", "monkey"])
def test_other_names_are_not(name):
    assert not is_named_like_identifier(name)


@pytest.mark.parametrize(
    "values", [[7, 8, 9, 10], [7.0, np.nan, 9.0, 10.0], pd.array([7, None, 9, 10], dtype="Int64")]
)
def test_whole_numbers_that_all_differ_are_identifiers(values):
    assert find_identifiers(pd.DataFrame({"id": values, "width": [1, 2, 3, 4]})) == ["id"]


@pytest.mark.parametrize(
    "values",
    [[7, 7, 9, 10], [7.5, 8, 9, 10], list("abcd"), [True, False, True, True], [np.nan] * 4],
)
def test_other_columns_are_not(values):
    assert find_identifiers(pd.DataFrame({"id": values})) == []


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("name", ["Unnamed: 0", "column_1", "row", "day"])
def test_columns_that_count_the_rows_are_found(name, first):
    counted = np.arange(12) + first
    for values in (counted, counted.astype(float), pd.array(counted, dtype="Int64")):
        assert find_counters(pd.DataFrame({name: values, "width": counted + 2})) == [name]


@pytest.mark.parametrize(
    "values",
    [
        [*range(11), 12],
        [*range(11), None],
        [*range(11, -1, -1)],
        [0.5 + i for i in range(12)],
        [str(i) for i in range(12)],
        [1.0] * 12,
    ],
)
def test_other_columns_do_not_count_the_rows(values):
    assert find_counters(pd.DataFrame({"column_1": values})) == []


def test_few_rows_may_be_counted_by_chance_unless_the_column_has_no_name():
    frame = pd.DataFrame({"Unnamed: 0": [0, 1, 2], "size": [1, 2, 3]})
    assert find_counters(frame) == ["Unnamed: 0"]
    assert find_counters(frame[:2]) == []
