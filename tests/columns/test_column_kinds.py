"""What kind a column is, what is left out, and what is warned of."""

import re

import numpy as np
import pandas as pd
import pytest

from cocoloss.columns import TablePreprocessor, make_preprocessor, settle_kinds
from cocoloss.exceptions import CoCoError

X = np.random.default_rng(0).normal(1000, 900, size=200).round(2)
MARKS = ["?", "-", "--", ".", "NA", "#N/A", "Unknown", " ? ", "k.A.", "\u2013"]


def frame_of(values):
    return pd.DataFrame({"a": pd.Series(values, dtype=object)})


def fit(values, **parameters):
    return TablePreprocessor(**parameters).fit(frame_of(values))


def with_gaps(values, positions):
    values = values.copy()
    values[positions] = np.nan
    return TablePreprocessor().fit_transform(values[:, np.newaxis])


def numbers_and(strays, n=400):
    text = np.random.default_rng(1).normal(size=n).round(1).astype(str).astype(object)
    text[: len(strays)] = strays
    return text


def notes(n=40):
    return [f"note number {i}" for i in range(n)]


def short_dates(n):
    return [f"{day:02}/{month:02}/2024" for day in range(1, 13) for month in range(1, 13)][:n]


COMMAS = [f"{x:.1f}".replace(".", ",") for x in np.linspace(10, 20, 400)]

DIFFERS = "dropped 'a' (text: nearly every value differs,"
GAPS = "read as numbers, with other text as gaps: 'a'"
POINTS = "read with points between thousands, as decimal marks are commas: 'a'"
TAKEN = "taken as categories: 'a'"
UNSURE = "they look like dates, but cannot be read for sure, such as '01/01/2024')"
MOSTLY = "most values are numbers, but not"
RARE = "dropped 'a' (too many categories, and none occurs twice)"
CALL = r"TablePreprocessor\((categorical_features=\['a'\]|(day_first|decimal|max_categories)=.*)\)"
CODES = [f"id{i}" for i in range(1000)]

# Values, the kind that they get, which sort of warning there is, and what it says.
WARNINGS = [
    (notes(), None, "text", f"{DIFFERS} such as 'note number 0')"),
    (CODES, None, "text", f"{DIFFERS} such as 'id0')"),
    ([*map(str, X[:40]), *"wxyz"], None, "text", f"{DIFFERS} and {MOSTLY} 'w')"),
    (short_dates(144), None, "dates", f"{DIFFERS} and {UNSURE}"),
    (short_dates(3), "category", "dates", f"{TAKEN} ({UNSURE}"),
    (numbers_and(["many"] * 20), "number", "strays", f"{GAPS} (such as 'many')"),
    (numbers_and(["many"] * 21), "category", "mixture", f"{TAKEN} ({MOSTLY} 'many')"),
    (numbers_and(["007"]), "category", "mixture", f"{TAKEN} ({MOSTLY} '007')"),
    ([*COMMAS, "many"], "category", "mixture", f"{TAKEN} ({MOSTLY} 'many')"),
    (pd.Categorical(CODES), None, "rare", RARE),
]
WARNINGS_IF_COMMA = [
    ([*COMMAS, "many"], "number", "strays", f"{GAPS} (such as 'many')"),
    (["7.730", "12"], "number", "thousands", f"{POINTS} (such as '7.730')"),
]


@pytest.mark.parametrize(
    ("decimal", "values", "kind", "about", "what"),
    [("auto", *row) for row in WARNINGS] + [(",", *row) for row in WARNINGS_IF_COMMA],
)
def test_what_is_doubtful_is_warned_of(decimal, values, kind, about, what):
    frame = pd.DataFrame({"a": values, "b": np.arange(len(values))})
    with pytest.warns(UserWarning, match="'a'") as caught:
        preprocessor = TablePreprocessor(decimal=decimal).fit(frame)
    (warning,) = caught
    assert (warning.message.about, warning.message.what) == (about, what)
    assert re.fullmatch(rf"{re.escape(what)}\. .* (by|them:) {CALL}", str(warning.message))
    assert warning.filename == __file__
    assert preprocessor.kinds_.get("a") == kind
    assert ("a" in preprocessor.dropped_columns_) == (kind is None)


def test_an_estimator_is_told_where_the_arguments_for_columns_go():
    by = r"by preprocess=TablePreprocessor\(categorical_features=\['a'\]\) \(from cocoloss.columns"
    with pytest.warns(UserWarning, match=by):
        make_preprocessor("auto", "CoCoClassifier").fit(
            pd.DataFrame({"a": notes(), "b": range(40)})
        )


@pytest.mark.parametrize("values", [notes(), numbers_and(["many"] * 21), numbers_and(["007"])])
def test_a_listed_category_is_kept_without_a_warning(values):
    assert fit(values, categorical_features=["a"]).kinds_ == {"a": "category"}
    by_dtype = TablePreprocessor().fit(frame_of(values).astype("category"))
    assert by_dtype.kinds_ == {"a": "category"}


@pytest.mark.parametrize(
    "values",
    [
        notes(20),  # a few
        (notes(30) * 2)[:40],  # that repeat
        [f"c{i}" for i in range(40)],  # short codes
        ["?", "none"] * 5,  # marks of gaps alone
        ["01000", "20500", "90210"] * 5,
        [*map(str, range(19)), "x"],
        ["5 EUR", "6 USD"],
        ["5 kg", "6 kg"],
        ["1,2,3", "2,3"],
        ["170 123 456", "170 123 457"],
        pd.cut([1, 2, 3], [0, 1, 2, 3]),
    ],
)
def test_a_category(values):
    assert fit(values).kinds_ == {"a": "category"}


@pytest.mark.parametrize(
    "values",
    [
        ["0", "10", "20"],
        ["0.5", "00.25", "1"],
        ["-05", "3", "4"],
        ["$5", "6 $", "-$7"],
        [1, "?", 2],
    ],
)
def test_a_number(values):
    assert fit(values).kinds_ == {"a": "number"}


@pytest.mark.parametrize("mark", MARKS)
def test_marks_of_a_gap_are_gaps_among_numbers(mark):
    text = X.astype(str).astype(object)
    text[::10] = mark
    expected = with_gaps(X, slice(None, None, 10))
    np.testing.assert_array_equal(TablePreprocessor().fit_transform(frame_of(text)), expected)
    numbers = TablePreprocessor().fit(pd.DataFrame({"a": [1.0, 2.0, 5.0]}))
    np.testing.assert_array_equal(numbers.transform(frame_of([mark, "2"])), [[0], [0]])


def test_marks_of_a_gap_are_categories_among_words():
    names = fit(["none", "some", "unknown", "?"] * 5).get_feature_names_out().tolist()
    assert names == ["a_?", "a_none", "a_some", "a_unknown"]


def test_the_share_of_text_counts_cells_and_gaps_do_not():
    cells = [*["many"] * 5, *["7", "8"] * 50]  # 1 of 3 values, but 1 of 21 cells
    with pytest.warns(UserWarning, match="such as 'many'"):
        preprocessor = fit([*cells, *[None] * 500])
    assert preprocessor.stray_columns_ == ["a"]
    np.testing.assert_array_equal(
        preprocessor.transform(frame_of(["few", "others", None]))[:, 1], 1
    )
    assert fit([*cells, "many"]).kinds_ == {"a": "category"}  # and few of them: no warning


def test_a_form_is_kept_for_prediction_and_not_guessed_there():
    preprocessor = fit(["$1,200", "$2,500", "$4,000"])
    assert preprocessor.forms_ == {"a": "$1,234.5"}
    expected = preprocessor.transform(pd.DataFrame({"a": [1200.0, 3.5, np.nan]}))
    found = preprocessor.transform(frame_of(["$1,200", "3.5", "?"]))
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(CoCoError, match=r"numbers \(written as \$1,234.5\).*'€7'"):
        preprocessor.transform(frame_of(["€7"]))
    with pytest.raises(CoCoError, match="held numbers in training, but now holds '1,200'"):
        fit(["100", "250", "400"]).transform(frame_of(["1,200"]))


def test_numbers_may_arrive_as_text_with_the_decimal_mark_of_the_table():
    preprocessor = TablePreprocessor(decimal=",").fit(pd.DataFrame({"a": [1.5, 7730.0, 2.0]}))
    expected = preprocessor.transform(pd.DataFrame({"a": [2.5, 7730.0]}))
    np.testing.assert_array_equal(preprocessor.transform(frame_of(["2,50", "7.730"])), expected)
    with pytest.raises(CoCoError, match=r"written as 1\.234,5.*'2\.50'"):
        preprocessor.transform(frame_of(["2.50"]))


def test_a_table_with_another_decimal_mark_can_be_announced():
    encoder = fit(["$1,200", "$2,500.5", "$4,000"]).encoder_
    expected = encoder.transform(frame_of(["$1,200", "$2,500.5"]))
    with_comma = encoder.with_decimal(",")
    found = with_comma.transform(frame_of(["1.200,00 $", "$ 2.500,5"]))
    np.testing.assert_array_equal(found, expected)
    again = with_comma.with_decimal(".").transform(frame_of(["$1,200", "2500.5"]))
    np.testing.assert_array_equal(again, expected)


@pytest.mark.parametrize("name", ["decimal", "max_categories", "categorical_features"])
def test_arguments_are_checked_in_fit(name):
    with pytest.raises(CoCoError, match=name):
        fit([1.0, 2.0], **{name: "'"})
    with pytest.raises(CoCoError, match="decimal"):
        fit([1.0, 2.0]).encoder_.with_decimal("auto")


# settle_kinds: kinds that are decided for a table are the same in each of its parts

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


def settled_columns(decimal, *columns):
    frame = pd.DataFrame({f"c{j}": values for j, values in enumerate(columns)}, dtype=object)
    settled = settle_kinds(frame, TablePreprocessor(decimal=decimal))
    return [settled[name].tolist() for name in frame.columns]


def test_a_settled_table_gives_the_same_matrix():
    X = TABLE.assign(gaps=[None if i % 7 == 0 else f"{i}%" for i in range(N)])
    expected = TablePreprocessor().fit_transform(X)
    np.testing.assert_array_equal(TablePreprocessor().fit_transform(settle_kinds(X)), expected)


def test_every_part_has_the_kinds_of_the_table():
    X = TABLE.assign(
        mixed=["7.5", *(f"{i % 9},5" for i in range(1, N))],  # no number, but in two parts
        amount=["1,5", *(f"1,{200 + i}" for i in range(1, N))],  # decimal commas, says one cell
        code=["007", *(str(100 + i % 9) for i in range(1, N))],  # no number, says one cell
        name=[f"customer {i if i < 40 else i % 2}" for i in range(N)],
    )
    kinds = TablePreprocessor().fit(X).kinds_
    settled = settle_kinds(X)
    assert kinds_of_parts(settled) == [kinds] * 3
    assert kinds_of_parts(X) != [kinds] * 3
    assert settled["amount"].tolist() == [1.5, *((1200 + i) / 1000 for i in range(1, N))]


def test_text_is_left_out_and_stray_text_is_a_gap_in_every_part():
    X = TABLE.assign(note=notes(N), a=[*map(str, range(N - 1)), "many"])
    with pytest.warns(UserWarning, match=r"dropped 'note'|such as 'many'"):
        settled = settle_kinds(X)
    assert "note" not in settled
    assert "note" in TablePreprocessor().fit(X[:20]).kinds_
    assert settled["a"].tolist()[:-1] == list(range(N - 1))
    assert np.isnan(settled["a"].iloc[-1])


def test_columns_of_text_agree_on_a_decimal_mark():
    with pytest.warns(UserWarning, match=r"points between thousands.*'c1'"):
        assert settled_columns("auto", ["1,5 %", "2 %"], ["1.250 EUR", "12 EUR"])[1] == [1250, 12]
    assert settled_columns("auto", ["1,5 %", "2 %"], ["1,234", "12"])[1] == [1.234, 12]
    columns = ["1,5 %", "2 %"], ["1.250 EUR", "12 EUR"], ["2.5 %", "12 %"]  # one has points
    assert settled_columns("auto", *columns)[1] == [1.25, 12]
    assert settled_columns(",", ["1.234.567,5", "1.250"]) == [[1234567.5, 1250]]
    assert settled_columns(".", ["1,234", "12"]) == [[1234, 12]]


def test_a_listed_category_is_one_in_every_part():
    settled = settle_kinds(
        pd.DataFrame({"zip": [7, 8]}), TablePreprocessor(categorical_features=[0])
    )
    assert str(settled["zip"].dtype) == "category"


def test_what_cannot_be_settled_stays_as_it_is():
    X = TABLE[["size", "member"]]
    assert settle_kinds(X) is X
    with pytest.warns(UserWarning, match="dropped 'note'"):  # it is for fit to refuse it
        assert list(settle_kinds(pd.DataFrame({"note": notes(N)})).columns) == ["note"]
