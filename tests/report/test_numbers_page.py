"""The run page of numbers, opened in a real browser: what it shows is what was measured."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes

from browser import CONTRASTS
from cocoloss import CoCoOrdinalClassifier, CoCoRegressor
from cocoloss._checks import amount
from cocoloss.recording import record_fit, record_numbers
from cocoloss.report.document import percent, significant
from cocoloss.report.numbers_report import numbers_report
from cocoloss.report.run_report import run_report, write_run_report

NAMES = ["</script><script>window.hacked = 1</script>", "b" * 90, "<img src=x>", "שלום"]


@pytest.fixture(scope="module")
def record():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X = X.rename(columns=dict(zip(X.columns, NAMES, strict=False)))
    estimator = CoCoRegressor(random_state=0)
    return record_numbers(estimator, X, 1000 * y, data_name="<b>houses</b>.csv")


@pytest.fixture(scope="module")
def page_file(record, tmp_path_factory):
    return write_run_report(record, tmp_path_factory.mktemp("numbers") / "numbers.html")


def test_opens_at_any_width_without_errors_and_fetches_nothing(open_page, page_file):
    page = open_page(page_file)
    for width in (1280, 820, 390):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_timeout(80)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        charts = page.locator("svg.chart").all()
        assert len(charts) == 5 + 4  # of which four say why
        assert all(chart.bounding_box()["width"] <= width for chart in charts)
    assert page.errors == []
    assert page.requests == [page_file.as_uri()]
    assert page.evaluate("window.hacked") is None
    assert page.locator("h1").inner_text() == "CoCoRegressor on <b>houses</b>.csv"


def test_boxes_are_those_of_the_test_rows(open_page, page_file, record):
    page = open_page(page_file)
    expected = {
        "r2": (record.test.r2, significant),
        "rmse": (record.test.rmse, amount),
        "mae": (record.test.mae, amount),
        "coverage": (record.coverage[0.9][0], percent),
        "width": (record.coverage[0.9][1], amount),
        "left_out_rmse": (record.left_out.rmse, amount),
    }
    for key, (value, write) in expected.items():
        box = page.locator(f'[data-key="{key}"]')
        assert math.isclose(float(box.get_attribute("data-value")), value)
        assert box.inner_text() == write(value)


def test_a_point_for_each_row_at_its_place(open_page, page_file, record):
    page = open_page(page_file)
    dots = "[data-points='test rows'] circle"
    found = page.eval_on_selector_all(
        dots, "(dots) => dots.map((d) => [d.cx.baseVal.value, d.cy.baseVal.value])"
    )
    x, y = np.array(found).T
    assert len(x) == record.n_test
    assert np.corrcoef(x, record.test.true)[0, 1] == pytest.approx(1, abs=1e-6)
    assert np.corrcoef(y, record.test.predicted)[0, 1] == pytest.approx(-1, abs=1e-6)
    outside = page.locator(f"{dots}[fill='var(--c1)']").count()
    held = (record.lower <= record.test.true) & (record.test.true <= record.upper)
    assert outside == int((~held).sum()) > 0
    assert page.locator("[data-residuals='leave-one-out'] circle").count() == record.n_train
    assert page.locator("#chart-coverage circle").count() == len(record.by_width)


def test_a_point_tells_its_numbers(open_page, page_file, record):
    page = open_page(page_file)
    page.locator("[data-points='test rows'] circle").last.hover(force=True)
    said = page.locator(".tip").inner_text().splitlines()
    assert said[0].startswith("true ")
    assert said[1].startswith("predicted ")
    assert said[2].startswith("90 % interval ")
    true = {amount(value) for value in record.test.true}
    assert said[0].removeprefix("true ") in true


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(open_page, page_file, scheme):
    page = open_page(page_file, color_scheme=scheme)
    contrast, where = page.evaluate(CONTRASTS)[0]
    assert contrast >= 4.5, where


def test_columns_and_intervals_are_there_without_scripts(open_page, page_file, record):
    page = open_page(page_file, java_script_enabled=False)
    text = page.locator("main").inner_text()
    for asked, (found, _) in record.coverage.items():
        assert f"{percent(asked)}\t{percent(found)}" in text
    for words in ("Importances", "Kernels tried", "Leave-one-out squared error, relative to"):
        assert words in text
    assert "are used: 10 numbers." in text


def test_what_is_special_is_told_and_only_then(record):
    usual = numbers_report(record)
    for change, said in [
        ({"is_better": False}, "That is not distinguishable from predicting the mean."),
        ({"n_left_out": 3}, "3 rows\nwithout a number were left out"),
        ({"power": 0.25}, "its Yeo-Johnson transform (power 0.25)"),
        ({"is_sample": True}, "hyperparameters were chosen on"),
        ({"n_train": 20_000}, "(1,000 of them are shown)"),
    ]:
        assert said not in usual
        assert said in numbers_report(replace(record, **change))


def test_levels_say_how_many_they_are_off():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    y = pd.Series(pd.cut(y, [0, 100, 200, 400], labels=["mild", "some", "severe"]))
    record = record_fit(CoCoOrdinalClassifier(random_state=0), X, y, n_snapshots=0)
    page = run_report(record)
    assert f'data-key="levels_off" data-value="{record.levels_off}"' in page
    assert f'data-key="kappa" data-value="{record.kappa}"' in page
