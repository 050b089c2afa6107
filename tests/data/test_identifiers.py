"""Columns of whole numbers that seem to name the rows."""

import numpy as np
import pandas as pd
import pytest

from cocoloss.data.identifiers import find_identifiers, is_named_like_identifier


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
