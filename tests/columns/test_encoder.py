"""What was learnt of columns as a value: its states, and new rows that it knows nothing of."""

import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest

from cocoloss.columns import FloatConverter, TablePreprocessor, make_preprocessor
from cocoloss.columns.encoder import Coverage, FloatEncoder, TableEncoder
from cocoloss.exceptions import CoCoError

TABLE = pd.DataFrame(
    {
        "city": ["Bern", "Oslo", "Rome", None],
        "member": [True, False, True, True],
        "age": [31.0, 45, 60, np.nan],
        "day": ["2024-01-01", "2024-02-01", "2024-03-05", "2024-01-09"],
    }
)


@pytest.fixture(scope="module")
def encoder():
    frame = TABLE.assign(price=["$1,200", "$3", "?", "$7"], took=pd.to_timedelta([1, 2, 4, 8], "h"))
    return make_preprocessor("auto", "CoCoClassifier").fit(frame.assign(constant=1)).encoder_


def in_json(state):
    """Return a state after JSON, with its arrays as they were."""
    arrays = {}

    def keep(array):
        arrays[str(len(arrays))] = array
        return {"array": str(len(arrays) - 1)}

    text = json.dumps(state, default=keep)
    return json.loads(text, object_hook=lambda d: arrays[d["array"]] if [*d] == ["array"] else d)


def test_a_state_gives_the_same_encoder_back(encoder):
    row = encoder.blank_row()
    assert row.shape == (1, 7)
    again = TableEncoder.from_state(in_json(encoder.to_state()))
    frame = TABLE.assign(price=["$5", "7", None, "$1"], took="1h")
    for X in (row, frame):
        np.testing.assert_array_equal(again.transform(X), encoder.transform(X))
    assert again.feature_names_out().tolist() == encoder.feature_names_out().tolist()
    assert (again.kinds, again.forms) == (encoder.kinds, encoder.forms)
    assert again.dropped_columns == {"constant": "constant"}
    assert again.reader == "CoCoClassifier"
    with_comma = again.with_decimal(",").transform(frame.assign(price=["$5,0", "7", None, "1"]))
    np.testing.assert_array_equal(with_comma, encoder.transform(frame))


@pytest.mark.parametrize("X", [np.eye(3), pd.DataFrame(np.eye(3), columns=[*"abc"])])
def test_a_state_of_a_converter_gives_the_same_converter_back(X):
    encoder = FloatConverter().fit(X).encoder_
    again = FloatEncoder.from_state(in_json(encoder.to_state()))
    np.testing.assert_array_equal(again.transform(X), X)
    assert again.transform(again.blank_row()).tolist() == [[0, 0, 0]]
    for part in ("header", "reader"):
        with pytest.raises(CoCoError, match=part):
            FloatEncoder.from_state(encoder.to_state() | {part: 3})


BAD = [None, 3, "x", [], {}, [3], {"city": 3}, {"city": []}, {"other": ["number"] * 5}, [["a"]]]


@pytest.mark.parametrize("bad", BAD, ids=str)
@pytest.mark.parametrize("part", ["header", "columns", "scaler", "cycles", "one_hots", "decimal"])
def test_a_state_with_another_part_is_refused(encoder, part, bad):
    with pytest.raises(CoCoError):
        TableEncoder.from_state(encoder.to_state() | {part: bad})
    with pytest.raises(CoCoError):
        TableEncoder.from_state(bad)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("header.names", ["a", "a"]),
        ("header.named", 1),
        ("columns.age", ["number", "", "", "constant"]),
        ("columns.age", ["number", "$1234", "", "", ""]),
        ("columns.age", ["text", "", "", "", ""]),
        ("columns.age", ["category", "", "", "", ""]),
        ("columns.day", ["date", "%y", "", "", ""]),
        ("columns.constant", ["number", "", "", "", ""]),
        ("scaler.center", np.zeros(3)),
        ("scaler.center", np.full(4, np.nan)),
        ("scaler.center", np.array(["x"] * 4)),
        ("scaler.scale", np.zeros(4)),
        ("scaler.scale", np.ones((4, 1))),
        ("scaler.value_columns", np.array([9])),
        ("scaler.value_columns", np.array([-1])),
        ("scaler.gap_columns", np.array([0.5])),
        ("scaler.gap_columns", np.array([[0]])),
        ("cycles.day", ["minute"]),
        ("cycles.day", [[]]),
        ("cycles.age", []),
        ("one_hots.city.categories", ["Bern", "Bern"]),
        ("one_hots.city.categories", [1, 2]),
        ("one_hots.member.categories", ["a", "b", "c"]),
        ("one_hots.member.has_missing", "no"),
        ("one_hots.age", {"categories": [], "has_infrequent": False, "has_missing": False}),
    ],
)
def test_a_state_whose_parts_do_not_fit_together_is_refused(encoder, path, value):
    state = copy.deepcopy(encoder.to_state())
    *where, last = path.split(".")
    part = state
    for name in where:
        part = part[name]
    part[last] = value
    with pytest.raises(CoCoError):
        TableEncoder.from_state(state)


def test_stray_text_of_training_is_not_kept():
    frame = pd.DataFrame({"a": [*map(str, range(99)), "confidential"]})
    with pytest.warns(UserWarning, match="such as 'confidential'"):
        encoder = TablePreprocessor().fit(frame).encoder_
    assert encoder.stray_columns == ["a"]
    assert b"confidential" not in pickle.dumps(encoder)


def test_gaps_are_counted_by_column(encoder):
    frame = TABLE.assign(price=["$1", "$2", "?", None], took=pd.to_timedelta([1, 2, 4, None], "h"))
    gaps = {"city": 1, "age": 1, "price": 2, "took": 1}
    assert encoder.n_gaps(frame) == gaps
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert encoder.n_gaps(frame.assign(constant=1).to_numpy()) == gaps


# What rows hold in turn, and then: columns without a value, and categories that are not known.
PARTS = [
    ([{}], [], {}),
    ([dict.fromkeys(TABLE)], [*TABLE], {}),
    ([{"age": np.nan, "day": None}], ["age", "day"], {}),
    ([{"age": np.nan, "day": None}, {"day": None}], ["day"], {}),
    ([{"city": None}, {"city": "Atlantis"}], [], {"city": "Atlantis"}),
    ([{"city": "Atlantis"}, {"city": None}, {"city": "Eden"}], [], {"city": "Atlantis"}),
    ([{"city": "Atlantis"}, {}], [], {}),
]


@pytest.mark.parametrize(("parts", "empty", "unknown"), PARTS)
def test_a_column_is_empty_or_unknown_until_a_known_value_comes(parts, empty, unknown):
    coverage = Coverage(TablePreprocessor().fit(TABLE).encoder_)
    for changes in parts:
        coverage.see(TABLE.assign(**changes))
    assert (coverage.empty, coverage.unknown) == (empty, unknown)
    assert coverage.n_rows == 4 * len(parts)


def test_rare_categories_are_not_called_unknown():
    names = pd.DataFrame({"name": [*("ab" * 5), *"cdef"], "size": range(14)})
    coverage = Coverage(TablePreprocessor(max_categories=3).fit(names).encoder_)
    coverage.see(names.assign(name="f"))
    assert (coverage.empty, coverage.unknown) == ([], {})


@pytest.mark.parametrize("X", [np.eye(3), pd.DataFrame(np.eye(3), columns=[*"abc"])])
def test_of_converters_nothing_is_said(X):
    coverage = Coverage(FloatConverter().fit(X).encoder_)
    coverage.see(TABLE)
    assert (coverage.empty, coverage.unknown) == ([], {})


# Ranks ------------------------------------------------------------------------------------------


def mid_rank(value, column):
    """Return the share of values below one, equals counted by half: the definition."""
    below = sum(other < value for other in column)
    equal = sum(other == value for other in column)
    return (below + equal / 2) / len(column)


def test_ranks_are_even_whatever_the_scale():
    rng = np.random.default_rng(0)
    heavy = np.round(np.exp(5 * rng.normal(size=120)), 2)
    heavy[:20] = heavy[0]  # equals
    table = pd.DataFrame({"heavy": heavy, "few": np.arange(120) % 4, "text": ["a", "b"] * 60})
    preprocessor = TablePreprocessor(ranks=True).fit(table)
    names = preprocessor.get_feature_names_out().tolist()
    assert names == ["heavy", "few", "heavy_rank", "text_b"]  # of four values ranks say nothing
    made = preprocessor.transform(table)[:, 2]
    expected = [(mid_rank(value, heavy) - 0.5) * np.sqrt(12) for value in heavy]
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-6)
    assert preprocessor.encoder_.origins == ["heavy", "few", "heavy", "text"]


def test_gaps_and_infinities_have_ranks_too():
    column = np.r_[np.arange(30.0), np.nan, np.inf, -np.inf]
    encoder = TablePreprocessor(ranks=True).fit(pd.DataFrame({"x": column})).encoder_
    made = encoder.transform(pd.DataFrame({"x": [np.nan, np.inf, 29.0, -np.inf, 0.0, 1e9, 14.5]}))
    assert encoder.feature_names_out().tolist() == ["x", "x_missing", "x_rank"]
    ranks = made[:, 2]
    assert ranks[0] == 0  # the middle
    assert ranks[1] == ranks[2] == ranks[5] == -ranks[3] == -ranks[4]
    assert abs(ranks[6]) < 1e-6


def test_many_values_are_ranked_by_knots():
    values = np.random.default_rng(0).normal(size=5000)
    encoder = TablePreprocessor(ranks=True).fit(pd.DataFrame({"x": values})).encoder_
    (knots,) = encoder.scaler.knots
    assert knots.shape == (2, 256)
    ranks = encoder.transform(pd.DataFrame({"x": np.sort(values)}))[:, 1]
    even = (np.arange(5000) + 0.5) / 5000
    np.testing.assert_allclose(ranks, (even - 0.5) * np.sqrt(12), atol=0.01)
    assert (np.diff(ranks) >= 0).all()


def test_wide_tables_have_no_ranks():
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 201)))
    assert TablePreprocessor(ranks=True).fit(table).n_features_out_ == 201


def test_a_strangers_knots_must_rise():
    table = pd.DataFrame({"x": np.arange(40.0), "y": np.arange(40.0) ** 2})
    encoder = TablePreprocessor(ranks=True).fit(table).encoder_
    again = TableEncoder.from_state(encoder.to_state())
    np.testing.assert_array_equal(again.transform(table), encoder.transform(table))
    state = encoder.to_state()
    state["scaler"]["knots"][0] = state["scaler"]["knots"][0][:, ::-1]
    with pytest.raises(CoCoError, match="do not rise"):
        TableEncoder.from_state(state)
    earlier = TablePreprocessor().fit(table).encoder_
    state = earlier.to_state()
    for name in ("knots", "rank_columns"):  # as files were before there were ranks
        del state["scaler"][name]
    np.testing.assert_array_equal(
        TableEncoder.from_state(state).transform(table), earlier.transform(table)
    )
