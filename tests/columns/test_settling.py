"""Kinds that are settled for a whole table are the same in each of its parts."""

import numpy as np
import pandas as pd
import pytest

from cocoloss.columns import TablePreprocessor, settle_kinds

N = 60
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "size": RNG.normal(size=N),
        "price": [f"{x:.2f} EUR".replace(".", ",") for x in RNG.normal(20, 4, N)],
        "day": pd.date_range("2024-01-01", periods=N).strftime("%d/%m/%Y"),
        "when": pd.date_range("2024-01-01", periods=N, freq="7h").strftime("%Y-%m-%d %H:%M"),
        "city": RNG.choice(["Bonn ", "Bonn", "Genf", "?"], N),
        "member": RNG.choice([True, False], N),
    }
)


def kinds_of_parts(frame):
    """Return the kinds that a preprocessor finds in the first, the middle and the last rows."""
    return [TablePreprocessor().fit(frame[i : i + 20]).kinds_ for i in (0, 20, 40)]


def test_a_settled_table_gives_the_same_matrix():
    X = TABLE.assign(gaps=[None if i % 7 == 0 else f"{i}%" for i in range(N)])
    expected = TablePreprocessor().fit_transform(X)
    np.testing.assert_array_equal(TablePreprocessor().fit_transform(settle_kinds(X)), expected)


def test_every_part_has_the_kinds_of_the_whole():
    X = TABLE.assign(
        mixed=["7.5", *(f"{i % 9},5" for i in range(1, N))],  # no number, but in two parts
        amount=["1,5", *(f"1,{200 + i}" for i in range(1, N))],  # decimal commas, says one cell
        code=["007", *(str(100 + i % 9) for i in range(1, N))],  # no number, says one cell
    )
    whole = TablePreprocessor().fit(X).kinds_
    settled = settle_kinds(X)
    assert kinds_of_parts(settled) == [whole] * 3
    assert kinds_of_parts(X) != [whole] * 3
    assert settled["amount"].tolist() == [1.5, *((1200 + i) / 1000 for i in range(1, N))]


def test_a_column_of_many_names_is_kept_in_every_part():
    X = TABLE.assign(name=[f"customer {i if i < 40 else i % 2}" for i in range(N)])
    assert TablePreprocessor().fit(X).kinds_["name"] == "category"
    with pytest.warns(UserWarning, match="dropped 'name'"):
        TablePreprocessor().fit(X[:42])
    assert TablePreprocessor().fit(settle_kinds(X)[:42]).kinds_["name"] == "category"


def test_text_is_left_out_with_a_warning_and_small_parts_do_not_bring_it_back():
    X = TABLE.assign(note=[f"note number {i}" for i in range(N)])
    with pytest.warns(UserWarning, match=r"dropped 'note' \(text"):
        settled = settle_kinds(X)
    assert "note" not in settled
    assert "note" in TablePreprocessor().fit(X[:20]).kinds_


def test_stray_text_is_a_gap_in_every_part():
    X = TABLE.assign(a=[*map(str, range(N - 1)), "many"])
    with pytest.warns(UserWarning, match="such as 'many'"):
        settled = settle_kinds(X)
    assert settled["a"].tolist()[:-1] == list(range(N - 1))
    assert np.isnan(settled["a"].iloc[-1])


def test_the_arguments_of_a_preprocessor_are_heeded():
    X = pd.DataFrame({"zip": [7, 8, 7], "day": ["01/02/2024", "02/02/2024", "03/02/2024"]})
    settled = settle_kinds(X, TablePreprocessor(categorical_features=["zip"], day_first=False))
    assert str(settled["zip"].dtype) == "category"
    assert settled["day"].tolist() == list(
        pd.to_datetime(["2024-01-02", "2024-02-02", "2024-03-02"])
    )


def test_what_is_no_text_stays_as_it_is():
    X = TABLE[["size", "member"]]
    assert settle_kinds(X) is X


def test_a_table_of_nothing_but_text_is_left_for_fit_to_refuse():
    X = pd.DataFrame({"note": [f"note number {i}" for i in range(N)]})
    with pytest.warns(UserWarning, match="dropped 'note'"):
        assert list(settle_kinds(X).columns) == ["note"]
