"""Whatever comes in: a finite float32 matrix of one width, or a refusal in words."""

import datetime as dt
import warnings

import numpy as np
import pandas as pd
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cocoloss.columns import TablePreprocessor
from cocoloss.exceptions import CoCoError

GAP = st.sampled_from([None, np.nan, pd.NA, ""])
FLOATS = st.floats(width=64)
INTEGERS = st.integers(-(2**62), 2**62)
WORDS = st.sampled_from([f"word {i}" for i in range(200)])
DATES = st.datetimes(dt.datetime(1800, 1, 1), dt.datetime(2200, 1, 1))  # noqa: DTZ001  naive
DURATIONS = st.timedeltas(dt.timedelta(days=-1000), dt.timedelta(days=1000))
ANYTHING = st.one_of(GAP, FLOATS, st.integers(), st.booleans(), st.text(max_size=12), st.binary())

TYPED = {
    "float64": FLOATS,
    "float32": st.floats(width=32),
    "int64": INTEGERS,
    "bool": st.booleans(),
    "Int64": st.one_of(st.none(), INTEGERS),
    "Float64": st.one_of(st.none(), FLOATS),
    "boolean": st.one_of(st.none(), st.booleans()),
    "string": st.one_of(st.none(), WORDS, st.text(max_size=8)),
    "category": st.one_of(st.none(), WORDS, st.integers(0, 5)),
    "datetime64[ns]": st.one_of(st.none(), DATES),
    "timedelta64[ns]": st.one_of(st.none(), DURATIONS),
}
OBJECTS = [
    st.one_of(GAP, FLOATS),
    st.one_of(GAP, FLOATS.map(str), INTEGERS),
    st.one_of(GAP, st.booleans()),
    st.one_of(GAP, WORDS),
    st.one_of(st.none(), DATES),
    st.one_of(st.none(), DURATIONS),
    st.just(1.5),
    st.none(),
    ANYTHING,
]


@st.composite
def columns(draw, n_rows):
    dtype = draw(st.sampled_from([*TYPED, *["object"] * 4]))
    values = draw(st.sampled_from(OBJECTS)) if dtype == "object" else TYPED[dtype]
    cells = draw(st.lists(values, min_size=n_rows, max_size=n_rows))
    return pd.Series(cells, dtype=object).astype(dtype)


@st.composite
def frames(draw):
    n_rows = draw(st.integers(1, 30))
    n_columns = draw(st.integers(1, 6))
    return pd.DataFrame({f"c{j}": draw(columns(n_rows)) for j in range(n_columns)})


def fit(X):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="dropped|read as numbers|taken as categories")
        try:
            return TablePreprocessor().fit(X)
        except CoCoError as error:
            assert "no column is left" in str(error)  # the only refusal there is
            return None


def assert_sound(matrix, n_rows, preprocessor):
    assert matrix.shape == (n_rows, preprocessor.n_features_out_)
    assert matrix.dtype == np.float32
    assert matrix.flags.c_contiguous
    assert np.isfinite(matrix).all()
    assert np.abs(matrix).max(initial=0) <= 3


@settings(deadline=None, max_examples=60)
@given(frames())
def test_any_frame_becomes_a_finite_matrix_of_one_width(frame):
    preprocessor = fit(frame)
    assume(preprocessor is not None)
    matrix = preprocessor.transform(frame)
    assert_sound(matrix, len(frame), preprocessor)
    assert len(preprocessor.get_feature_names_out()) == preprocessor.n_features_out_
    assert {*preprocessor.kinds_} | {*preprocessor.dropped_columns_} == {*frame.columns}
    first = preprocessor.transform(frame.iloc[:1])
    np.testing.assert_array_equal(first, matrix[:1])


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_new_rows_of_the_same_kinds_fit_the_width(data):
    n_train, n_test = data.draw(st.integers(2, 20)), data.draw(st.integers(1, 5))
    frame = pd.DataFrame(
        {
            "number": data.draw(st.lists(FLOATS, min_size=n_train, max_size=n_train)),
            "word": data.draw(st.lists(st.none() | WORDS, min_size=n_train, max_size=n_train)),
        }
    )
    preprocessor = fit(frame)
    assume(preprocessor is not None)
    new = pd.DataFrame(
        {
            "word": data.draw(st.lists(st.none() | st.text(), min_size=n_test, max_size=n_test)),
            "number": data.draw(st.lists(FLOATS, min_size=n_test, max_size=n_test)),
        }
    )
    assert_sound(preprocessor.transform(new), n_test, preprocessor)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(FLOATS, min_size=3, max_size=3), min_size=2, max_size=30))
def test_shifting_and_stretching_by_powers_of_two_changes_nothing(rows):
    X = np.array(rows)
    X = np.where(np.abs(X) < 1e100, X, np.sign(X))
    X = np.where(np.abs(X) > 1e-100, X, 0.0)
    preprocessor = fit(X)
    assume(preprocessor is not None)
    stretched = TablePreprocessor().fit_transform(X * 1024)
    np.testing.assert_allclose(stretched, preprocessor.transform(X), rtol=1e-6)
