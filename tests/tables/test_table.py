"""A table, its target and fingerprint, and the columns that only name or count its rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocoloss.exceptions import CoCoError
from cocoloss.tables import Table, guess_task, make_table, read_table, split_target, write_table
from cocoloss.tables.table import find_counters, find_identifiers

FRAME = pd.DataFrame(
    {
        "size": [1.5, np.nan, 3.0, -2.0],
        "count": [1, 2, 3, 4],
        "city": ["Köln", "Bonn", None, "Köln"],
        "open": [True, False, True, True],
        "kind": ["a", "b", "a", "b"],
    }
)


def fingerprint(frame, **options):
    return make_table("t", frame, "kind", **options).fingerprint


def test_listed_columns_become_unordered_categories():
    ordered = pd.Categorical([1, 2, 3, 1], categories=[3, 1, 2], ordered=True)
    table = make_table("t", FRAME.assign(rank=ordered), "kind", categorical=["rank", "count"])
    assert table.categorical == ("rank", "count")
    assert not table.X["rank"].cat.ordered
    assert not table.X["count"].cat.ordered
    assert make_table("t", FRAME.assign(rank=ordered), "kind").categorical == ("city", "rank")
    assert not make_table("t", FRAME.assign(rank=ordered), "kind").X["rank"].cat.ordered


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: make_table("toy", FRAME, "kin"), "no column 'kin'; did you mean 'kind'"),
        (lambda: make_table("toy", FRAME, "kind", categorical=["x"]), "'x' to be categorical"),
        (lambda: Table("toy", FRAME, FRAME["kind"][:3]), "4 rows of features, 3 classes"),
        (lambda: Table("toy", FRAME, FRAME["city"]), "some rows have no class"),
    ],
)
def test_errors_name_the_table(make, said):
    with pytest.raises(CoCoError, match=f"toy: .*{said}"):
        make()


@pytest.mark.parametrize("suffix", [".csv", ".tsv.gz", ".parquet"])
def test_the_fingerprint_does_not_depend_on_the_format(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    write_table(FRAME, path)
    assert fingerprint(read_table(path)) == fingerprint(FRAME)


def test_the_fingerprint_does_not_depend_on_arff_or_csv(tmp_path):
    (tmp_path / "t.arff").write_text(
        "@relation r\n@attribute a real\n@attribute b {v,u}\n@attribute kind {y,x}\n"
        "@data\n1,u,x\n?,?,y\n2.5,v,x\n"
    )
    (tmp_path / "t.csv").write_text("a,b,kind\n1,u,x\n,,y\n2.5,v,x\n")
    arff, text = (read_table(tmp_path / name) for name in ("t.arff", "t.csv"))
    assert fingerprint(arff) == fingerprint(text)


def test_the_fingerprint_ignores_what_a_learner_cannot_see():
    same = fingerprint(FRAME)
    assert fingerprint(FRAME.set_index(pd.Index([9, 7, 5, 3]))) == same
    assert fingerprint(FRAME.astype({"count": float, "city": "category"})) == same
    assert make_table("u", FRAME.rename(columns={"kind": "y"}), "y").fingerprint == same
    assert fingerprint(FRAME.assign(size=FRAME["size"].mask(FRAME["size"].isna()))) == same
    zero, minus = FRAME.assign(count=0.0), FRAME.assign(count=-0.0)
    assert fingerprint(zero) == fingerprint(minus)


@pytest.mark.parametrize(
    "changed",
    [
        FRAME[::-1],
        FRAME[:3],
        FRAME.rename(columns={"size": "sizes"}),
        FRAME[["count", "size", "city", "open", "kind"]],
        FRAME.assign(size=[1.5, 0, 3.0, -2.0]),
        FRAME.assign(city=["Köln", "Bonn", "", "Köln"]),
        FRAME.assign(city=["Köln", None, "Bonn", "Köln"]),
        FRAME.assign(kind=["a", "b", "a", "a"]),
        FRAME.assign(kind=["b", "a", "b", "a"]),
        FRAME.astype({"count": "category"}),
    ],
)
def test_the_fingerprint_sees_every_change(changed):
    assert fingerprint(changed) != fingerprint(FRAME)


@given(st.lists(st.text(min_size=1, max_size=3), min_size=2, max_size=6), st.data())
def test_names_run_together_are_told_apart(values, data):
    other = data.draw(st.permutations(values))
    kinds = ["a", "b"] * len(values)
    first, second = (
        pd.DataFrame({"x": (v * 2)[: len(values)], "kind": kinds[: len(values)]})
        for v in (values, other)
    )
    tables = [Table("t", frame[["x"]], frame["kind"]) for frame in (first, second)]
    assert (tables[0].fingerprint == tables[1].fingerprint) == (values == other)


def test_dates_count_by_the_moment_they_mean():
    moments = pd.to_datetime(["2020-01-01", "2020-01-02", None, "2020-01-03"])
    plain = FRAME.assign(when=moments)
    seconds = FRAME.assign(when=moments.astype("datetime64[s]"))
    zoned = FRAME.assign(when=moments.tz_localize("UTC").tz_convert("Asia/Tokyo"))
    assert fingerprint(plain) == fingerprint(seconds) == fingerprint(zoned)
    assert fingerprint(FRAME.assign(when=moments + pd.Timedelta("1ns"))) != fingerprint(plain)


def test_the_fingerprint_is_pinned():
    # A change here makes every stored result look as if it came from another table.
    assert fingerprint(FRAME)[:16] == "6d20591fda52b9b4"


def test_rows_are_taken_by_position():
    taken = make_table("t", FRAME, "kind").rows([3, 0])
    assert taken.X["count"].tolist() == [4, 1]
    assert taken.y.tolist() == ["b", "a"]


DIFFERENT = [7, 8, 9, 10]


@pytest.mark.parametrize(
    ("name", "values", "found"),
    [
        *((name, DIFFERENT, True) for name in ("id", "Kunden-Nr", "customerId", "CustomerID")),
        *((name, DIFFERENT, True) for name in ("row no.", "KEY_1", "order_number")),
        *((name, DIFFERENT, False) for name in ("width", "Idee", "nose", "encoded", "42")),
        ("id", [7.0, np.nan, 9.0, 10.0], True),
        ("id", pd.array([7, None, 9, 10], dtype="Int64"), True),
        *(("id", values, False) for values in ([7, 7, 9, 10], [7.5, 8, 9, 10], list("abcd"))),
        *(("id", values, False) for values in ([True, False, True, True], [np.nan] * 4)),
    ],
)
def test_whole_numbers_that_differ_under_the_name_of_an_identifier_are_found(name, values, found):
    assert find_identifiers(pd.DataFrame({name: values})) == [name] * found


COUNTED = np.arange(12)


@pytest.mark.parametrize("name", ["Unnamed: 0", "column_1", "row", "day"])
@pytest.mark.parametrize(
    ("values", "found"),
    [
        *((COUNTED + first, True) for first in (0, 1)),
        (COUNTED.astype(float), True),
        (pd.array(COUNTED, dtype="Int64"), True),
        (COUNTED + 2, False),
        ([*range(11), 12], False),
        ([*range(11), None], False),
        (COUNTED[::-1], False),
        (COUNTED + 0.5, False),
        ([str(i) for i in range(12)], False),
    ],
)
def test_columns_that_count_the_rows_are_found(name, values, found):
    assert find_counters(pd.DataFrame({name: values})) == [name] * found


def test_few_rows_may_be_counted_by_chance_unless_the_column_has_no_name():
    frame = pd.DataFrame({"Unnamed: 0": [0, 1, 2], "size": [1, 2, 3]})
    assert find_counters(frame) == ["Unnamed: 0"]
    assert find_counters(frame[:2]) == []


# the column to learn


def frame_of(y):
    return pd.DataFrame({"x": range(len(y)), "y": y})


def test_rows_without_a_class_are_counted_or_dropped():
    frame = frame_of(["a", None, "b", " ", "a"])
    with pytest.raises(CoCoError, match="no class in 2 of 5 rows, the first of them row 2"):
        split_target(frame, "y")
    X, y = split_target(frame, "y", missing="drop")
    assert list(X.columns) == ["x"]
    assert X["x"].tolist() == [0, 2, 4]
    assert y.tolist() == ["a", "b", "a"]
    assert list(X.index) == list(y.index) == [0, 1, 2]
    X, y = split_target(frame, "y", missing="keep")
    assert X["x"].tolist() == [0, 1, 2, 3, 4]
    assert y.fillna("gap").tolist() == ["a", "gap", "b", "gap", "a"]


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
    y = split_target(frame_of(values), "y")[1]
    assert y.tolist() == classes
    assert [type(value) for value in y.tolist()] == [type(value) for value in classes]
    assert not isinstance(y.dtype, pd.CategoricalDtype)


@pytest.mark.parametrize("values", [pd.Categorical([3, None, 1, 3]), [3, None, 1, 3]])
def test_whole_numbers_stay_whole_beside_gaps(values):
    assert split_target(frame_of(values), "y", missing="drop")[1].tolist() == [3, 1, 3]


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (
            frame_of(["a", "b"]).rename(columns={"y": "species"}),
            "the columns are 'x', 'species'",
        ),
        (frame_of(["a", "b"]).rename(columns={"y": "Y2"}), "did you mean 'Y2'"),
        (pd.DataFrame({"y": ["a", "b"]}), "no column beside 'y'"),
        (frame_of([None, None]), "is empty"),
        (frame_of(["", " "]), "is empty"),
        (frame_of(["a", "a "]), "one class only, 'a', in all 2 rows"),
        (frame_of([1.0, 1.0, 1.0]), "one class only"),
        (frame_of(["a", "b", "c"]), "a different value in each of its 3 rows"),
        (
            frame_of(np.linspace(0, 1, 50).repeat(5)),
            "50 different numbers in 250 rows.*quantity",
        ),
        (frame_of([*range(60), *range(40)]), "60 different numbers in 100 rows.*quantity"),
        (frame_of([1.0, np.inf, 1.0]), "holds inf"),
    ],
)
def test_a_target_that_cannot_be_learnt_is_refused(frame, said):
    with pytest.raises(CoCoError, match=said) as error:
        split_target(frame, "y")
    assert "\n" not in str(error.value)


def test_few_numbers_and_rare_classes_are_classes():
    assert split_target(frame_of(np.arange(100.0) % 20 / 4), "y")[1].nunique() == 20
    assert split_target(frame_of(list(range(100)) * 3), "y")[1].nunique() == 100
    assert split_target(frame_of(["a", "a", "b"]), "y")[1].nunique() == 2


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        ([3, 1, 2], [3.0, 1.0, 2.0]),
        (["$1,200.50", "$900", " $7 "], [1200.5, 900.0, 7.0]),
        (["1.200,50 €", "3,5 €", "7 €"], [1200.5, 3.5, 7.0]),
        (["1.5", "?", "2.5", ""], [1.5, 2.5]),
        (pd.Categorical([2, 1, 2]), [2.0, 1.0, 2.0]),
    ],
)
def test_numbers_are_read_as_those_of_any_column(values, numbers):
    y = split_target(frame_of(values), "y", task="numbers", missing="drop")[1]
    assert y.dtype == np.float64
    assert y.tolist() == numbers


def test_text_among_many_numbers_is_a_gap_with_a_warning():
    values = [f"{k},5" for k in range(30)] + ["sold"]
    with pytest.warns(UserWarning, match="other text such as 'sold', which is a gap"):
        X, y = split_target(frame_of(values), "y", task="numbers", missing="drop")
    assert y.tolist() == [k + 0.5 for k in range(30)]
    assert X["x"].tolist() == list(range(30))


@pytest.mark.parametrize(
    ("values", "options", "said"),
    [
        (["a", "b", "c"], {"task": "numbers"}, "written alike, but 'a', 'b', 'c'; mend"),
        ([True, False], {"task": "numbers"}, "holds truths, not numbers"),
        ([1.0, np.inf], {"task": "numbers"}, "holds inf"),
        ([None, None], {"task": "numbers"}, "empty; there is no number to learn"),
        ([1.0, None], {"task": "numbers"}, "has no number in 1 of 2 rows"),
        (["a", "b", "a"], {"task": "levels"}, "'a', 'b', whose order nobody knows"),
        (["a", "b", "a"], {"task": "levels", "levels": "b"}, "'a' is not among the levels 'b'"),
        (["a", "b", "a"], {"task": "levels", "levels": "baa"}, "one is twice among"),
        (["a", "b", "a"], {"task": "ranks"}, "task"),
    ],
)
def test_numbers_and_levels_that_are_none_are_refused(values, options, said):
    with pytest.raises(CoCoError, match=said):
        split_target(frame_of(values), "y", **options)


@pytest.mark.parametrize(
    ("values", "levels", "order"),
    [
        (["c", "a", "b", "a"], "cba", ["c", "b", "a"]),
        (["c", "a", "c"], ["c", "b", "a"], ["c", "a"]),
        ([10, 9, 10, 2], None, [2, 9, 10]),
        ([1.5, 0.5, 10.0, 0.5], None, ["0.5", "1.5", "10.0"]),
        ([3, 1, 2, 1], ["3", "2", "1.0"], [3, 2, 1]),
        (pd.Categorical(list("abca"), list("cba"), ordered=True), None, ["c", "b", "a"]),
    ],
)
def test_levels_are_an_ordered_categorical(values, levels, order):
    y = split_target(frame_of(values), "y", task="levels", levels=levels)[1]
    assert y.dtype == pd.CategoricalDtype(order, ordered=True)


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (list("abcab"), "classes"),
        ([f"person {k}" for k in range(50)], "classes"),
        ([0, 1, 1, 0] * 30, "classes"),
        ([True, False] * 30, "classes"),
        (list(range(20)) * 9, "classes"),
        (list(range(21)) * 9, "numbers"),
        ([k + 0.5 for k in range(12)], "numbers"),
        ([1.5, 2.5, 3.5], "classes"),
        ([f"{k},50 €" for k in range(30)], "numbers"),
        ([f"{k:03d}" for k in range(30)] * 2, "classes"),
        (range(1, 31), "classes"),
    ],
)
def test_many_different_numbers_are_guessed_to_be_numbers(values, task):
    assert guess_task(pd.Series(values, name="y")) == task
