"""Columns of new rows that tell a model nothing."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from cocoloss.columns import TablePreprocessor
from cocoloss.columns.encoder import Coverage

TABLE = pd.DataFrame(
    {
        "city": ["Bern", "Oslo", "Rome", None],
        "member": [True, False, True, True],
        "age": [31.0, 45, 60, np.nan],
        "day": ["2024-01-01", "2024-02-01", "2024-03-05", "2024-01-09"],
    }
)


@pytest.fixture
def coverage():
    return Coverage(TablePreprocessor().fit(TABLE))


def test_rows_of_training_are_known(coverage):
    coverage.see(TABLE)
    assert (coverage.n_rows, coverage.empty, coverage.unknown) == (4, [], {})


def test_gaps_in_every_row_are_empty(coverage):
    coverage.see(pd.DataFrame([dict.fromkeys(TABLE)] * 2))
    assert coverage.empty == list(TABLE)


def test_categories_are_unknown_until_one_is_known(coverage):
    coverage.see(TABLE.assign(city=None))
    assert (coverage.empty, coverage.unknown) == (["city"], {})
    coverage.see(TABLE.assign(city="Atlantis"))
    assert (coverage.empty, coverage.unknown) == ([], {"city": "Atlantis"})
    coverage.see(TABLE.assign(city=None))
    assert (coverage.empty, coverage.unknown) == ([], {"city": "Atlantis"})
    coverage.see(TABLE)
    assert (coverage.empty, coverage.unknown) == ([], {})
    assert coverage.n_rows == 16


def test_values_may_come_in_a_later_part(coverage):
    coverage.see(TABLE.assign(age=np.nan, day=None))
    assert coverage.empty == ["age", "day"]
    coverage.see(TABLE.assign(day=None))
    assert coverage.empty == ["day"]


def test_rare_categories_are_not_called_unknown():
    names = pd.DataFrame({"name": [*("ab" * 5), *"cdef"], "size": range(14)})
    coverage = Coverage(TablePreprocessor(max_categories=3).fit(names))
    coverage.see(names.assign(name="f"))
    assert (coverage.empty, coverage.unknown) == ([], {})


def test_of_other_transformers_nothing_is_said():
    coverage = Coverage(StandardScaler())
    coverage.see(TABLE)
    assert (coverage.empty, coverage.unknown) == ([], {})
