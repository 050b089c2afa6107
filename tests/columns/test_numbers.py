from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from cocoloss.columns import TablePreprocessor
from cocoloss.columns.quantities import Box
from cocoloss.exceptions import CoCoError

NAN, INF, BIG = np.nan, np.inf, np.finfo(float).max


def column(*values, dtype=float):
    return np.array(values, dtype=dtype)[:, np.newaxis]


def smooth_clip(x):
    return x / np.sqrt(1 + (x / 3) ** 2)


def test_scales_by_median_and_interquartile_range():
    x = np.random.default_rng(0).lognormal(size=101)
    quarter, median, three_quarters = np.percentile(x, [25, 50, 75])
    expected = smooth_clip((x - median) * 1.3489795 / (three_quarters - quarter))
    result = TablePreprocessor().fit_transform(x[:, np.newaxis])
    np.testing.assert_allclose(result[:, 0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([*[0] * 18, 5, 10], smooth_clip(np.array([*[0] * 18, 5, 10]) / 2.384848)),  # deviation
        ([5e-324, 0, 0, 0, 0], [smooth_clip(1), 0, 0, 0, 0]),  # which underflows: the span
        ([7, 7, INF, 7, -INF], [0, 0, 3, 0, -3]),  # not constant
        ([-BIG, -BIG, BIG, BIG], smooth_clip(np.array([-1, -1, 1, 1]))),  # the largest number
    ],
)
def test_columns_without_an_interquartile_range_or_beyond_float64_have_a_scale(values, expected):
    result = TablePreprocessor().fit_transform(column(*values))[:, 0]
    np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_outliers_end_within_three_scales_and_keep_their_order():
    x = column(1, 2, 3, 4, 5, 100, 1e300)
    result = TablePreprocessor().fit_transform(x)[:, 0]
    assert np.all(np.diff(result) > 0)
    assert result[-1] == pytest.approx(3)


def test_infinities_are_the_limits_of_the_clip_and_take_no_part_in_median_and_range():
    with_infinities = TablePreprocessor().fit(column(1, 2, 3, 9, INF, -INF, INF))
    without = TablePreprocessor().fit(column(1, 2, 3, 9))
    x = column(0, 4, 7, INF, -INF)
    np.testing.assert_array_equal(with_infinities.transform(x), without.transform(x))
    np.testing.assert_array_equal(without.transform(x)[3:], [[3], [-3]])


def test_a_gap_is_the_median_and_is_marked():
    preprocessor = TablePreprocessor().fit(column(1, NAN, 2, 9))
    assert preprocessor.get_feature_names_out().tolist() == ["x0", "x0_missing"]
    np.testing.assert_array_equal(preprocessor.transform(column(NAN, 2)), [[0, 1], [0, 0]])
    unseen = TablePreprocessor().fit(column(1, 2, 9))  # a gap that training did not have
    np.testing.assert_array_equal(unseen.transform(column(NAN)), [[0]])
    constant = TablePreprocessor().fit(column(7, NAN, 7))
    assert constant.get_feature_names_out().tolist() == ["x0_missing"]
    np.testing.assert_array_equal(constant.transform(column(NAN, 5)), [[1], [0]])


def test_columns_with_the_same_gaps_share_a_mark():
    frame = pd.DataFrame({"a": [1, None, 2], "b": [5, None, 3], "c": [None, 1, 2]})
    names = TablePreprocessor().fit(frame).get_feature_names_out().tolist()
    assert names == ["a", "b", "c", "a_missing", "c_missing"]


def test_a_large_offset_costs_no_digits():
    x = np.random.default_rng(0).normal(size=(50, 1))
    shifted = TablePreprocessor().fit_transform(x + 1e9)
    np.testing.assert_allclose(shifted, TablePreprocessor().fit_transform(x), atol=1e-5)


@pytest.mark.parametrize("factor", [1e-320, 1e-200, 1e200, 1.7e308])
def test_the_range_of_float64_is_no_obstacle(factor):
    x = column(-1, -0.5, 0, 0.25, 1)
    plain = TablePreprocessor().fit_transform(x)
    np.testing.assert_allclose(TablePreprocessor().fit_transform(x * factor), plain, rtol=2e-3)


@pytest.mark.parametrize("dtype", ["int8", "uint64", "int64", "float16", "float32", "longdouble"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_dtype_and_memory_layout_gives_the_same(dtype, order):
    X = np.random.default_rng(0).integers(0, 50, size=(30, 3))
    expected = TablePreprocessor().fit_transform(X.astype(float))
    result = TablePreprocessor().fit_transform(X.astype(dtype, order=order))
    assert result.dtype == np.float32
    assert result.flags.c_contiguous
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_rows_are_encoded_alike_however_many_come_at_once():
    X = np.random.default_rng(0).normal(size=(40_000, 3))
    X[::7, 1] = NAN
    preprocessor = TablePreprocessor().fit(X)
    np.testing.assert_array_equal(preprocessor.transform(X)[-5:], preprocessor.transform(X[-5:]))


def test_the_table_is_left_as_it_was():
    X = np.array([[1.0, NAN], [INF, 2.0], [3.0, 1e200]])
    before = X.copy()
    TablePreprocessor().fit_transform(X)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("gap", [None, NAN, pd.NA, "", "  ", "nan"])
def test_objects_that_all_parse_are_numbers(gap):
    values = ["1.5", 3, gap, Decimal("2.5"), np.float32(9), True]
    frame = pd.DataFrame({"a": pd.Series(values, dtype=object)})
    preprocessor = TablePreprocessor().fit(frame)
    assert preprocessor.kinds_ == {"a": "number"}
    expected = TablePreprocessor().fit_transform(column(1.5, 3, NAN, 2.5, 9, 1))
    np.testing.assert_array_equal(preprocessor.transform(frame), expected)


def test_integers_too_large_for_a_float_are_infinite():
    X = np.array([[1], [2], [10**400], [-(10**400)]], dtype=object)
    result = TablePreprocessor().fit_transform(X)
    np.testing.assert_array_equal(result[2:], [[3], [-3]])


def test_numbers_that_arrive_as_text_are_parsed():
    preprocessor = TablePreprocessor().fit(pd.DataFrame({"a": [1.0, 2.5, 4.0]}))
    expected = preprocessor.transform(pd.DataFrame({"a": [2.0, NAN]}))
    for arriving in (["2.0", None], pd.Categorical(["2", None]), pd.array(["2", ""], "string")):
        result = preprocessor.transform(pd.DataFrame({"a": arriving}))
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    "arriving", [["2.0", "many"], pd.to_datetime(["2020-01-01", "2020-01-02"])]
)
def test_what_does_not_parse_is_named(arriving):
    preprocessor = TablePreprocessor().fit(pd.DataFrame({"age": [1.0, 2.5, 4.0]}))
    with pytest.raises(CoCoError, match=r"column 'age' held numbers in training.*(many|2020)"):
        preprocessor.transform(pd.DataFrame({"age": arriving}))


@pytest.mark.parametrize("values", [[1 + 2j, 3], pd.Series([1 + 2j, "a"], dtype=object)])
def test_complex_numbers_are_refused(values):
    frame = pd.DataFrame({"a": values})
    with pytest.raises(CoCoError, match="Complex data not supported: column 'a'"):
        TablePreprocessor().fit(frame)
    with pytest.raises(CoCoError, match="Complex data not supported: column 'a'"):
        TablePreprocessor().fit(pd.DataFrame({"a": [1, 2]})).transform(frame)


def test_distance_to_the_box_is_that_of_loops():
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(40, 3)) * [1, 10, 0]  # the last one is constant
    box = Box.of(seen)
    rows = rng.normal(size=(200, 3)) * [3, 30, 1]
    rows[0] = np.nan
    expected = []
    for row in rows:
        total = 0.0
        for x, low, high in zip(row, seen.min(axis=0), seen.max(axis=0), strict=True):
            unit = (high - low) / 6 or 1.0
            total += 0.0 if np.isnan(x) else (max(low - x, x - high, 0.0) / unit) ** 2
        expected.append(total**0.5)
    np.testing.assert_allclose(box.distance(rows), expected)
    assert (box.distance(seen) == 0).all()


def test_the_distance_to_a_box_is_finite_whatever_comes():
    largest = np.finfo(float).max
    box = Box.of(np.array([[-largest, 0.0, 1e300], [largest, 1e-300, 1e300]]))
    rows = np.array([[np.inf, np.inf, -np.inf], [largest, largest, -largest], [np.nan] * 3])
    found = box.distance(rows)
    assert np.isfinite(found).all()
    assert found[0] >= found[1] > 1e6 > found[2] == 0
