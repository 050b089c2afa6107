"""The part of a run page that says why single rows get their predictions."""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from cocoloss import CoCoClassifier, CoCoRegressor
from cocoloss.recording import record_fit, record_numbers
from cocoloss.report.run_report import run_report, write_run_report


def table(n=300):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "<i>town</i>": rng.choice(["Bern", "<b>Oslo</b>"], n),
            "noise": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        },
        index=[f"r{i}" for i in range(n)],
    )
    score = X["size"] + (X["<i>town</i>"] == "Bern") + 0.3 * rng.normal(size=n)
    return X, score


@pytest.fixture(scope="module")
def fitted():
    X, score = table()
    classifier = CoCoClassifier(random_state=0)
    return classifier, record_fit(classifier, X, np.where(score > 0.5, "yes", "no"), n_snapshots=0)


@pytest.fixture(scope="module")
def of_numbers():
    X, score = table()
    regressor = CoCoRegressor(random_state=0)
    return regressor, record_numbers(regressor, X, score)


@pytest.mark.parametrize("kind", ["fitted", "of_numbers"])
def test_rows_are_the_sums_that_explain_gives(request, kind):
    estimator, record = request.getfixturevalue(kind)
    X, score = table()
    for row in record.why.rows:
        explained = estimator.explain(X.loc[[row.row]])
        assert row.base == pytest.approx(explained.base[0])
        assert row.value == pytest.approx(explained.value[0])
        assert row.base + sum(p.added for p in row.parts) + row.rest == pytest.approx(row.value)
        for part in row.parts:
            assert part.added == pytest.approx(explained.contributions[part.column].iloc[0])
        near, target, similarity = row.nearest[0]
        assert similarity == pytest.approx(explained.neighbours["similarity"].iloc[0])
        if kind == "fitted":
            assert row.true == ("yes" if score[row.row] > 0.5 else "no")
            assert row.predicted == estimator.predict(X.loc[[row.row]])[0]
            assert target == ("yes" if score[near] > 0.5 else "no")
        else:
            assert float(row.true) == pytest.approx(score[row.row], rel=1e-3)
            assert float(target) == pytest.approx(score[near], rel=1e-3)


def test_the_surest_and_the_least_sure_row_are_there(fitted):
    classifier, record = fitted
    X, _ = table()
    rows = {row.title: row for row in record.why.rows}
    assert rows["Most certain prediction"].value == max(row.value for row in record.why.rows)
    assert rows["Least certain prediction"].value == min(row.value for row in record.why.rows)
    assert {"Typical for yes", "Typical for no"} <= set(rows)
    for row in record.why.rows:
        assert row.value == pytest.approx(classifier.predict_proba(X.loc[[row.row]]).max())
    assert list(record.why.sizes)[-1] == "noise"


def test_cells_are_written_and_gaps_said(fitted):
    X, _ = table()
    for row in fitted[1].why.rows:
        cells = {part.column: part.cell for part in row.parts}
        assert cells["<i>town</i>"] == X.loc[row.row, "<i>town</i>"]
        gap = np.isnan(X.loc[row.row, "noise"])
        assert (cells["noise"] == "gap") == gap


@pytest.mark.parametrize("kind", ["fitted", "of_numbers"])
def test_bars_are_drawn_at_any_width(request, open_page, tmp_path, kind):
    record = request.getfixturevalue(kind)[1]
    page = open_page(write_run_report(record, tmp_path / "page.html"))
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_timeout(80)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        hosts = page.locator("[data-why]").all()
        assert len(hosts) == len(record.why.rows)
        for host, row in zip(hosts, record.why.rows, strict=True):
            bars = host.locator("rect").all()
            sizes = np.array([float(bar.get_attribute("width")) for bar in bars])
            added = np.abs([part.added for part in row.parts])
            seen = added > added.max() / 20  # thinner ones are drawn as thick as can be seen
            ratios = sizes[: len(added)][seen] / added[seen]
            np.testing.assert_allclose(ratios, ratios[0], rtol=1e-3)
    assert page.errors == []
    bar = page.locator("[data-why] rect").first
    bar.hover()
    first = record.why.rows[0].parts[0]
    assert page.locator(".tip").inner_text().startswith(f"{first.column} = {first.cell}\n")


def test_numbers_are_there_without_scripts(open_page, tmp_path, fitted):
    record = fitted[1]
    file = write_run_report(record, tmp_path / "page.html")
    page = open_page(file, java_script_enabled=False)
    figures = page.locator("h2:has-text('Explanations') + p + .grid > figure").all()
    assert len(figures) == 1 + len(record.why.rows)
    assert "base value" in figures[1].locator("table").text_content()
    names = figures[0].locator("tbody th").all_inner_texts()
    assert names == list(record.why.sizes)


def test_heads_that_only_vote_have_no_why():
    class Voter(DecisionTreeClassifier):
        predict_proba = property()

    X, score = table(60)
    classifier = CoCoClassifier(head=Voter(), max_iter=2, n_members=1, random_state=0)
    record = record_fit(classifier, X, score > 0.5, n_snapshots=0)
    assert record.why is None
    assert "Explanations" not in run_report(record)
