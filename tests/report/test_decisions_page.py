"""Decisions on the run page, in a real browser: every number is that of the rows, counted anew."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import average_precision_score, roc_auc_score

from browser import CONTRASTS
from cocoloss import CoCoClassifier, CoCoRegressor
from cocoloss._checks import as_generator
from cocoloss.exceptions import CoCoError
from cocoloss.recording import record_fit, record_numbers
from cocoloss.recording.decisions import THRESHOLDS
from cocoloss.recording.watch import split_test
from cocoloss.report.document import percent, significant
from cocoloss.report.run_report import run_report, write_run_report

COSTS = {"sick": 10, "well": 1}


@pytest.fixture(scope="module")
def rows():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, :8].assign(text=["<b>" + "wide " * 20] * len(X))
    return X, pd.Series(np.where(y == 0, "sick", "well"))


@pytest.fixture(scope="module")
def doctor(rows):
    estimator = CoCoClassifier(solver="kernel", random_state=0)
    return estimator, record_fit(estimator, *rows, n_snapshots=0, costs=COSTS)


@pytest.fixture(scope="module")
def file(doctor, tmp_path_factory):
    return write_run_report(doctor[1], tmp_path_factory.mktemp("decide") / "page.html")


@pytest.fixture(scope="module")
def tested(doctor, rows):
    """Return which test rows are sick, their probability of it, and where they are."""
    X, y = rows
    _, test = split_test((y == "well").to_numpy().astype(int), 0.2, as_generator(0))
    sick = doctor[0].predict_proba(X.iloc[test])[:, 0]
    return (y.iloc[test] == "sick").to_numpy(), sick, test


def counted(is_sick, score, threshold):
    """Return what a threshold makes of rows, one by one."""
    cells = {"00": 0, "01": 0, "10": 0, "11": 0}
    for truth, p in zip(is_sick, score, strict=True):
        cells[f"{int(not truth)}{int(p < threshold)}"] += 1
    found, missed, alarmed, silent = cells.values()
    n = len(score)
    return cells, {
        "recall": found / (found + missed),
        "precision": found / (found + alarmed) if found + alarmed else math.nan,
        "alarms": alarmed / (alarmed + silent),
        "f1": 2 * found / (2 * found + alarmed + missed),
        "balanced_accuracy": (found / (found + missed) + silent / (alarmed + silent)) / 2,
        "accuracy": (found + silent) / n,
        "cost": (10 * missed + alarmed) / n,
    }


def shown_at(page, rows):
    found = page.eval_on_selector_all(
        f'[data-at][data-rows="{rows}"]',
        "(cells) => cells.map((c) => [c.dataset.at, c.textContent, c.dataset.value])",
    )
    return {name: (text, value) for name, text, value in found}


def written(name, value):
    return significant(value) if name == "cost" else percent(value)


def test_the_record_has_both_areas_and_every_count(doctor, tested):
    is_sick, score, _ = tested
    part = doctor[1].decisions.against["test rows"][0]
    assert part.auc == pytest.approx(roc_auc_score(is_sick, score))
    assert part.average_precision == pytest.approx(average_precision_score(is_sick, score))
    for k in (0, 3, 53, len(THRESHOLDS) - 1):
        cells, _ = counted(is_sick, score, THRESHOLDS[k])
        assert (part.found[k], part.alarmed[k]) == (cells["00"], cells["10"])
    assert doctor[1].decisions.positive == 0  # the rarer of two whose names say nothing


def test_costs_are_those_of_the_three_ways_to_decide(doctor, rows, tested):
    _, score, test = tested
    X, y = rows
    truth = y.iloc[test].to_numpy()
    said = {
        "least expected cost": doctor[0].predict(X.iloc[test], costs=COSTS),
        "most probable class": np.where(score > 0.5, "sick", "well"),
        "always sick": np.full(len(test), "sick"),
    }
    paid = {
        name: np.mean([COSTS[t] * (t != a) for t, a in zip(truth, answers, strict=True)])
        for name, answers in said.items()
    }
    assert doctor[1].decisions.paid == pytest.approx(paid)
    with pytest.raises(CoCoError, match="costs does not say what it costs to take 'well'"):
        record_fit(CoCoClassifier(), X, y, costs={"sick": 1})


def test_the_slider_moves_every_number(open_page, file, doctor, tested):
    page, (is_sick, score, _) = open_page(file), tested
    slider = page.locator("#threshold")
    left_out = doctor[0].loo_proba_[:, 0]
    for key, times in ((None, 0), ("ArrowLeft", 12), ("Home", 1), ("End", 1), ("PageDown", 3)):
        for _ in range(times):
            slider.press(key)
        k = int(slider.input_value())
        cells, measures = counted(is_sick, score, THRESHOLDS[k])
        found = shown_at(page, "test rows")
        assert list(found) == list(measures)
        for name, (text, value) in found.items():
            assert text == written(name, measures[name])
            assert value == "" or math.isclose(float(value), measures[name], rel_tol=1e-9)
        for place, count in cells.items():
            assert page.locator(f'[data-cell="{place}"]').inner_text() == str(count)
        threshold = f"{THRESHOLDS[k]:g}"
        assert page.locator("#threshold-now").inner_text().startswith(f"Threshold {threshold} ")
        assert slider.get_attribute("aria-valuetext").startswith(f"{threshold}, recall ")
    share = np.mean(left_out >= THRESHOLDS[k])
    part = doctor[1].decisions.against["leave-one-out"][0]
    assert (part.found[k] + part.alarmed[k]) / part.n == pytest.approx(share)
    assert page.errors == []


def test_guessing_takes_as_many_rows_at_random(open_page, file, tested):
    page, (is_sick, score, _) = open_page(file), tested
    taken, share = np.mean(score >= 0.5), is_sick.mean()
    found = {name: text for name, (text, _) in shown_at(page, "guess").items()}
    expected = {
        "recall": taken,
        "precision": share,
        "alarms": taken,
        "f1": 2 * taken * share / (taken + share),
        "balanced_accuracy": 0.5,
        "accuracy": taken * share + (1 - taken) * (1 - share),
        "cost": 10 * share * (1 - taken) + (1 - share) * taken,
    }
    assert found == {name: written(name, value) for name, value in expected.items()}


def test_the_mark_is_where_the_threshold_is(open_page, file, tested):
    page, (is_sick, score, _) = open_page(file), tested
    page.locator("#threshold").press("ArrowRight")
    _, measures = counted(is_sick, score, 0.51)
    box = page.evaluate(
        """() => {
          const root = document.querySelector('[data-curve="roc"] svg.chart');
          const mark = root.querySelector('[data-mark="test rows"]');
          const line = root.querySelector("line.kept");
          const at = (n) => Number(mark.getAttribute(n));
          const end = (n) => Number(line.getAttribute(n));
          return [(at("cx") - end("x1")) / (end("x2") - end("x1")),
                  (at("cy") - end("y1")) / (end("y2") - end("y1"))];
        }"""
    )
    assert box == pytest.approx([measures["alarms"], measures["recall"]], abs=1e-6)


@pytest.mark.parametrize("best", ["f1", "balanced_accuracy", "cost"])
def test_the_best_threshold_is_that_of_rows_left_out(open_page, file, doctor, rows, best):
    page = open_page(file)
    page.locator(f'[data-best="{best}"]').click()
    k = int(page.locator("#threshold").input_value())
    _, y = rows
    train, _ = split_test((y == "well").to_numpy().astype(int), 0.2, as_generator(0))
    is_sick, score = (y.iloc[train] == "sick").to_numpy(), doctor[0].loo_proba_[:, 0]
    values = [counted(is_sick, score, t)[1][best] for t in THRESHOLDS]
    wanted = min(values) if best == "cost" else max(values)
    assert values[k] == pytest.approx(wanted)


def test_the_other_class_can_be_the_positive_one(open_page, file, tested):
    page, (is_sick, score, _) = open_page(file), tested
    page.select_option("#positive", label="well")
    cells, measures = counted(~is_sick, 1 - score, 0.5)
    assert page.locator('[data-cell="00"]').inner_text() == str(cells["00"])
    assert shown_at(page, "test rows")["recall"][0] == percent(measures["recall"])
    names = page.locator("table.at tbody th").all_inner_texts()
    assert names == ["well", "sick"]
    cost = (10 * cells["10"] + cells["01"]) / len(score)  # sick is what is dear to miss
    assert shown_at(page, "test rows")["cost"][0] == significant(cost)


def test_the_worst_rows_are_those_of_least_probability(open_page, file, rows, tested):
    page, (is_sick, score, test) = open_page(file), tested
    of_truth = np.where(is_sick, score, 1 - score)
    order = np.argsort(of_truth, kind="stable")[:10]
    found = page.locator("table.worst tbody tr").all()
    assert len(found) == 10
    for row, i in zip(found, order, strict=True):
        assert row.locator("th").inner_text() == str(test[i])
        true, predicted, p = (cell.inner_text() for cell in row.locator("td").all()[:3])
        assert true == ("sick" if is_sick[i] else "well")
        assert predicted == ("sick" if score[i] > 0.5 else "well")
        assert p == percent(of_truth[i])
    assert page.locator("table.worst thead th").count() == 4 + 6
    assert "Of 9 columns the most important ones are shown" in page.locator("main").inner_text()


def test_all_is_there_without_scripts_but_what_moves(open_page, file, doctor, tested):
    page = open_page(file, java_script_enabled=False)
    assert page.locator("#decide").is_hidden()
    _, measures = counted(*tested[:2], 0.5)
    text = page.locator("main").inner_text()
    assert f"F1\t{percent(measures['f1'])}" in text
    assert (
        "least expected cost\t" + significant(doctor[1].decisions.paid["least expected cost"])
        in text
    )
    page.locator("details:has(.listed)").evaluate("(node) => { node.open = true; }")
    _, low = counted(*tested[:2], 0.2)
    assert (
        f"0.2\t{percent(low['recall'])}\t{percent(low['precision'])}"
        in page.locator(".listed").inner_text()
    )


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_can_be_read(open_page, file, width, scheme):
    page = open_page(file, width=width, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    contrast, where = page.evaluate(CONTRASTS)[0]
    assert contrast >= 4.5, where
    assert page.locator("#threshold").bounding_box()["width"] > 150
    page.locator("#threshold").focus()
    assert page.evaluate("document.activeElement.id") == "threshold"


def test_two_classes_without_costs_and_heads_without_probabilities(rows):
    X, y = rows
    quick = {"max_iter": 3, "n_members": 1, "hidden_layer_sizes": (8,), "random_state": 0}
    plain = record_fit(CoCoClassifier(**quick), X, y, n_snapshots=0)
    page = run_report(plain)
    assert 'data-at="cost"' not in page
    assert "Costs of errors" not in page
    assert list(plain.decisions.against) == ["test rows"]  # networks leave no row out
    ridge = record_fit(CoCoClassifier(head="ridge", **quick), X, y, n_snapshots=0)
    assert ridge.decisions is None
    assert 'id="threshold"' not in run_report(ridge)
    assert json.dumps(plain.to_dict())


def test_numbers_have_their_worst_rows(open_page, tmp_path):
    X, y = load_diabetes(return_X_y=True)
    estimator = CoCoRegressor(random_state=0)
    record = record_numbers(estimator, X, y)
    off = np.sort(np.abs(record.test.true - record.test.predicted))[::-1]
    assert [abs(row.measure) for row in record.worst.rows] == pytest.approx(off[:10])
    worst = int(record.worst.rows[0].row)
    assert y[worst] == float(record.worst.rows[0].true)
    page = open_page(write_run_report(record, tmp_path / "numbers.html"))
    assert page.locator("table.worst tbody tr").count() == 10
    assert "predicting the mean 0" in page.locator(".cards").inner_text()
