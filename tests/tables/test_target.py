"""The column to learn, taken out of a table."""

import numpy as np
import pandas as pd
import pytest

from cocoloss.exceptions import CoCoError
from cocoloss.tables import split_target


def table(y):
    return pd.DataFrame({"x": range(len(y)), "y": y})


def test_rows_without_a_class_are_counted_or_dropped():
    frame = table(["a", None, "b", " ", "a"])
    with pytest.raises(CoCoError, match="no class in 2 of 5 rows, the first of them row 2"):
        split_target(frame, "y")
    X, y = split_target(frame, "y", missing="drop")
    assert list(X.columns) == ["x"]
    assert X["x"].tolist() == [0, 2, 4]
    assert y.tolist() == ["a", "b", "a"]
    assert list(X.index) == list(y.index) == [0, 1, 2]


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        ([" a", "a ", "b"], ["a", "a", "b"]),
        ([0.0, 1.0, 0.0], [0, 1, 0]),
        ([0.5, 1.0, 0.5], ["0.5", "1.0", "0.5"]),
        ([True, False, True], [True, False, True]),
        (pd.array([True, False, True], "boolean"), [True, False, True]),
        (pd.Categorical(["u", "v", "u"], categories=["v", "w", "u"]), ["u", "v", "u"]),
        (pd.Categorical([3, 1, 3]), [3, 1, 3]),
        ([1, "x", "x"], ["1", "x", "x"]),
    ],
)
def test_classes_are_plain_values(values, classes):
    y = split_target(table(values), "y")[1]
    assert y.tolist() == classes
    assert [type(value) for value in y.tolist()] == [type(value) for value in classes]
    assert not isinstance(y.dtype, pd.CategoricalDtype)


@pytest.mark.parametrize("values", [pd.Categorical([3, None, 1, 3]), [3, None, 1, 3]])
def test_whole_numbers_stay_whole_beside_gaps(values):
    assert split_target(table(values), "y", missing="drop")[1].tolist() == [3, 1, 3]


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (table(["a", "b"]).rename(columns={"y": "species"}), "the columns are 'x', 'species'"),
        (table(["a", "b"]).rename(columns={"y": "Y2"}), "did you mean 'Y2'"),
        (pd.DataFrame({"y": ["a", "b"]}), "no column beside 'y'"),
        (table([None, None]), "is empty"),
        (table(["", " "]), "is empty"),
        (table(["a", "a "]), "one class only, 'a', in all 2 rows"),
        (table([1.0, 1.0, 1.0]), "one class only"),
        (table(["a", "b", "c"]), "a different value in each of its 3 rows"),
        (table(np.linspace(0, 1, 50).repeat(5)), "50 different numbers in 250 rows.*quantity"),
        (table([*range(60), *range(40)]), "60 different numbers in 100 rows.*quantity"),
        (table([1.0, np.inf, 1.0]), "holds inf"),
    ],
)
def test_a_target_that_cannot_be_learnt_is_refused(frame, said):
    with pytest.raises(CoCoError, match=said) as error:
        split_target(frame, "y")
    assert "\n" not in str(error.value)


def test_few_numbers_and_rare_classes_are_classes():
    assert split_target(table(np.arange(100.0) % 20 / 4), "y")[1].nunique() == 20
    assert split_target(table(list(range(100)) * 3), "y")[1].nunique() == 100
    assert split_target(table(["a", "a", "b"]), "y")[1].nunique() == 2
