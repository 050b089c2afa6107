import datetime as dt

import numpy as np
import pandas as pd
import pytest

from cocoloss.columns import TablePreprocessor, settle_kinds
from cocoloss.exceptions import CoCoError

DAYS = ["2024-01-01", "2024-02-15", "2025-07-04", "2025-12-31"]


def fit(values):
    frame = pd.DataFrame({"a": values})
    preprocessor = TablePreprocessor().fit(frame)
    return preprocessor, preprocessor.transform(frame)


def test_a_date_is_a_number_of_days_and_its_place_in_week_and_year():
    preprocessor, matrix = fit(pd.to_datetime(DAYS))
    names = ["a", "a_weekday_sin", "a_weekday_cos", "a_month_sin", "a_month_cos"]
    assert preprocessor.get_feature_names_out().tolist() == names
    days = (np.array(DAYS, "M8[D]") - np.datetime64("2024-01-01")).astype(float)
    np.testing.assert_allclose(
        matrix[:, 0], TablePreprocessor().fit_transform(days[:, np.newaxis])[:, 0], rtol=1e-5
    )
    weekday = 2 * np.pi * np.array([dt.date.fromisoformat(d).weekday() for d in DAYS]) / 7
    month = 2 * np.pi * np.array([dt.date.fromisoformat(d).month - 1 for d in DAYS]) / 12
    circles = np.column_stack([np.sin(weekday), np.cos(weekday), np.sin(month), np.cos(month)])
    np.testing.assert_allclose(matrix[:, 1:], circles, atol=1e-6)


@pytest.mark.parametrize(
    ("values", "cycle", "circle"),
    [
        (["2024-01-01 06:00", "2024-01-01 12:00"], "hour", [1, 0]),
        (["1969-12-29", "1969-12-30"], "weekday", [0, 1]),  # Monday, before 1970
    ],
)
def test_a_cycle_counts_where_it_varies(values, cycle, circle):
    preprocessor, matrix = fit(pd.to_datetime(values))
    assert preprocessor.cycles_ == {"a": [cycle]}
    np.testing.assert_allclose(matrix[0, 1:], circle, atol=1e-6)


def test_a_gap_is_the_median_the_centre_of_the_circle_and_marked():
    preprocessor, matrix = fit(pd.to_datetime([*DAYS, None]))
    assert preprocessor.get_feature_names_out()[1] == "a_missing"
    np.testing.assert_array_equal(matrix[-1], [0, 1, 0, 0, 0, 0])


@pytest.mark.parametrize(
    "values",
    [
        pd.to_datetime(DAYS).tz_localize("UTC"),
        pd.to_datetime(DAYS).tz_localize("UTC").tz_convert("Asia/Tokyo"),
        pd.to_datetime(DAYS).as_unit("s"),
        pd.PeriodIndex(DAYS, freq="D"),
        [dt.date.fromisoformat(day) for day in DAYS],
        [dt.datetime.fromisoformat(day).replace(tzinfo=dt.UTC) for day in DAYS],
        DAYS,
        [f"{day}T00:00:00Z" for day in DAYS],
    ],
    ids=["utc", "tokyo", "seconds", "period", "date", "datetime", "text", "text with zone"],
)
def test_every_form_of_a_date_gives_the_same(values):
    preprocessor, matrix = fit(pd.to_datetime(DAYS))
    new, result = fit(values)
    assert new.kinds_ == {"a": "date"}
    np.testing.assert_allclose(result, matrix, atol=1e-6)
    np.testing.assert_allclose(preprocessor.transform(pd.DataFrame({"a": values})), matrix)


def test_arrays_of_dates_and_durations_are_read():
    dates = np.array(DAYS, dtype="M8[D]")[:, np.newaxis]
    assert TablePreprocessor().fit(dates).kinds_ == {"x0": "date"}
    assert TablePreprocessor().fit(dates - dates[0]).kinds_ == {"x0": "duration"}


@pytest.mark.parametrize("arriving", [["4th of July"], [20240101], [True]])
def test_what_is_no_date_is_named(arriving):
    preprocessor, _ = fit(pd.to_datetime(DAYS))
    with pytest.raises(CoCoError, match="column 'a' held dates"):
        preprocessor.transform(pd.DataFrame({"a": arriving}))


def test_a_duration_is_a_number_of_seconds_and_may_arrive_as_object_or_text():
    hours = [1.0, 2.0, 4.0, None]
    preprocessor, matrix = fit(pd.to_timedelta(hours, unit="h"))
    assert preprocessor.kinds_ == {"a": "duration"}
    assert preprocessor.scaler_.center == pytest.approx(7200)
    np.testing.assert_allclose(matrix, fit(hours)[1], rtol=1e-6)
    for arriving in ([dt.timedelta(hours=4)], ["4h"], ["04:00:00"]):
        result = preprocessor.transform(pd.DataFrame({"a": arriving}))
        np.testing.assert_array_equal(result, matrix[2:3])
    with pytest.raises(CoCoError, match="column 'a' held durations"):
        preprocessor.transform(pd.DataFrame({"a": [14400]}))


@pytest.mark.parametrize(
    ("form", "kept"),
    [
        ("%d.%m.%Y", {}),
        ("%d.%m.%Y %H:%M", {}),
        ("%Y/%m/%d", {}),
        ("%d/%m/%Y", {"a": "%d/%m/%Y"}),
        ("%m/%d/%Y", {"a": "%m/%d/%Y"}),
        ("%m-%d-%Y %H:%M:%S", {"a": "%m/%d/%Y"}),
    ],
)
def test_written_dates_are_read_and_so_at_prediction(form, kept):
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(0, 900, 3), "D")
    text = pd.DataFrame({"a": days.strftime(form)})
    preprocessor = TablePreprocessor().fit(text)
    assert (preprocessor.kinds_, preprocessor.forms_) == ({"a": "date"}, kept)
    expected = TablePreprocessor().fit_transform(pd.DataFrame({"a": days}))
    np.testing.assert_array_equal(preprocessor.transform(text), expected)
    for first in (text[:2], pd.DataFrame({"a": days[:2]})):  # 01/01 and 04/01
        np.testing.assert_array_equal(preprocessor.transform(first), expected[:2])


def test_days_and_months_of_one_digit_and_hours_too_are_read():
    _, matrix = fit(["1.2.2024 9:30", "13.11.2024 10:00", "2.2.2024"])
    _, expected = fit(pd.to_datetime(["2024-02-01 09:30", "2024-11-13 10:00", "2024-02-02 00:00"]))
    np.testing.assert_array_equal(matrix, expected)


@pytest.mark.parametrize("values", [[*DAYS, "n/a"], [*map(dt.date.fromisoformat, DAYS), "?"]])
def test_marks_of_a_gap_are_gaps_among_dates(values):
    _, matrix = fit(pd.Series(values, dtype=object))
    np.testing.assert_array_equal(matrix, fit(pd.to_datetime([*DAYS, None]))[1])


@pytest.mark.parametrize(
    ("values", "day_first"),
    [
        (["13/01/2024", "01/13/2024"], None),
        (["31.02.2024", "01.03.2024"], None),
        *((["31.12.24", "30.11.24"], day_first) for day_first in (None, True, False)),
    ],
)
def test_dates_that_cannot_be_read_are_categories_and_warned_of(values, day_first):
    frame = pd.DataFrame({"a": values})
    with pytest.warns(UserWarning, match=rf"look like dates.*such as '{values[0]}'.*to_datetime"):
        assert TablePreprocessor(day_first=day_first).fit(frame).kinds_ == {"a": "category"}


@pytest.mark.parametrize(
    ("day_first", "expected"),
    [(True, ["2024-02-01", "2024-12-03"]), (False, ["2024-01-02", "2024-03-12"])],
)
@pytest.mark.parametrize("separator", ["/", "-"])
def test_the_user_decides_where_no_value_tells_day_from_month(day_first, expected, separator):
    text = pd.DataFrame({"a": ["01/02/2024", "03/12/2024"], "b": ["13/01/2024", "02/03/2024"]})
    text = text.replace("/", separator, regex=True)
    settled = settle_kinds(text, TablePreprocessor(day_first=day_first))
    assert settled["a"].tolist() == [*map(pd.Timestamp, expected)]
    assert settled["b"].tolist() == [pd.Timestamp("2024-01-13"), pd.Timestamp("2024-03-02")]


@pytest.mark.parametrize(
    ("values", "example"), [(DAYS, "2024-01-31"), (["12/31/2024", "01/02/2024"], "01/31/2024")]
)
def test_the_order_of_day_and_month_is_not_guessed_at_prediction(values, example):
    preprocessor, _ = fit(values)
    with pytest.raises(CoCoError, match=rf"held dates.*'{example}'.*'31/12/2024'"):
        preprocessor.transform(pd.DataFrame({"a": ["31/12/2024"]}))
