"""The run report, opened in a real browser: what it shows is what was measured."""

import dataclasses
import math
import re
import socket

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from browser import CONTRASTS, new_page
from cocoloss import CoCoClassifier
from cocoloss._checks import as_generator
from cocoloss.exceptions import CoCoError
from cocoloss.recording import record_fit
from cocoloss.recording.watch import split_test
from cocoloss.report.document import percent, significant, visible
from cocoloss.report.projection import project
from cocoloss.report.run_report import run_report, write_run_report

RUNS = ("digits", "cancer", "many", "hostile", "kernels", "blind")


# Tables and charts that are wider than their place, in parts that are folded, too.
CUT = """
() => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  return [...document.querySelectorAll(".scroll, figure, .panel")]
    .filter((box) => box.scrollWidth > box.clientWidth + 1)
    .map((box) => [box.scrollWidth, box.clientWidth, box.textContent.trim().slice(0, 60)]);
}
"""


@pytest.fixture(scope="session")
def report(request, tmp_path_factory):
    written = {}

    def write(name):
        if name not in written:
            run = request.getfixturevalue(name)
            written[name] = write_run_report(
                run.record, tmp_path_factory.mktemp("report") / f"{name}.html"
            )
        return written[name]

    return write


@pytest.fixture(scope="module")
def shown(chromium, report):
    """Open a report once, for tests that leave it as it was."""
    pages = {}

    def show(name):
        if name not in pages:
            pages[name] = new_page(chromium, report(name))
        return pages[name]

    yield show
    for page in pages.values():
        assert page.errors == []
        page.context.close()


def kept_apart(run):
    """Return the rows that were kept apart, found without asking the record."""
    labels = np.searchsorted(np.unique(run.y), run.y)
    _, test = split_test(labels, 0.2, as_generator(0))
    return run.X[test], labels[test]


def words(record):
    """Return the text of a report, on one line."""
    text = re.sub("<.*?>", "", re.sub("</(dt|dd)>", " ", run_report(record)))
    return " ".join(text.split())


def settle(page):
    """Wait until what was asked for is drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 30)))")


def seen_box(page, selector):
    """Scroll to an element, and return where it is."""
    page.locator(selector).scroll_into_view_if_needed()
    settle(page)
    return page.locator(selector).bounding_box()


def texts(page, selector):
    """Return the text of each cell, row by row."""
    return page.eval_on_selector_all(
        selector,
        "(rows) => rows.map((row) => [...row.querySelectorAll('td')].map((td) => td.textContent))",
    )


def check_epoch(page, record, index):
    """Every number of the epoch, or the ridge, is that of the record."""
    path = record.ridge_path
    name = f"Ridge {significant(path.ridges[index])}" if path else f"Epoch {record.epochs[index]} "
    assert page.locator("#now").inner_text().startswith(name)
    cells = page.eval_on_selector_all(
        "[data-measure]", "(cells) => cells.map((c) => [{ ...c.dataset }, c.textContent])"
    )
    names = {about["measure"] for about, _ in cells}
    own = {"left_out_error", "error"} if path else {"loss", "nc1_part", "nc2_part"}
    assert {"test_balanced_accuracy", "dispersity"} | own <= names
    for about, text in cells:
        raw, name = float(about["value"]), about["measure"]
        assert math.isclose(raw, record.measures[name][index], rel_tol=1e-5, abs_tol=1e-12)
        assert text == (percent if name.endswith("accuracy") else significant)(raw)


def places(page):
    """Return where each class mean is drawn, in units of the embedding."""
    return page.evaluate(
        """() => {
          const overlay = document.querySelector("#stage svg");
          const { width, height } = overlay.viewBox.baseVal;
          const unit = Math.min(width, height) / 2 / Number(overlay.dataset.extent);
          return [...overlay.querySelectorAll(".mean")].map((mean) => {
            const { e, f } = mean.transform.baseVal[0].matrix;
            return [(e - width / 2) / unit, (height / 2 - f) / unit];
          });
        }"""
    )


@pytest.mark.parametrize("name", RUNS)
def test_opens_at_any_width_without_errors_and_fetches_nothing(open_page, report, name):
    path = report(name)
    page = open_page(path)
    for width in (1280, 820, 390):
        page.set_viewport_size({"width": width, "height": 800})
        settle(page)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        charts = page.locator("svg.chart").all()
        assert len(charts) >= (2 if name == "blind" else 5)
        assert all(chart.bounding_box()["width"] <= width for chart in charts)
        assert page.evaluate(CUT) == []
    assert page.errors == []
    assert page.requests == [path.as_uri()]


def test_can_fetch_nothing(open_page, report):
    page = open_page(report("cancer"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        blocked = page.evaluate(
            """(host) => new Promise((done) => {
              const found = [];
              const note = (event) => found.push(event.effectiveDirective);
              document.addEventListener("securitypolicyviolation", note);
              const add = (node, more) => document.body.append(Object.assign(node, more));
              add(new Image(), { src: `${host}/a.png` });
              add(document.createElement("script"), { textContent: "window.hacked = 3" });
              fetch(`${host}/b`).catch(() => setTimeout(() => done(found), 50));
            })""",
            f"http://127.0.0.1:{server.getsockname()[1]}",
        )
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):  # nobody has called
            server.accept()
    assert {"img-src", "script-src-elem", "connect-src"} <= set(blocked)
    assert page.evaluate("window.hacked") is None


def at_class_shares(estimator, probabilities):
    """Return probabilities as if the classes were as likely as among the training rows."""
    masses = estimator.history_.class_masses
    if np.abs(masses / masses.sum() - estimator.class_prior_).max() < 0.02:  # as they are
        return probabilities
    brought = []
    for p in probabilities:
        odds = [q * m / a for q, m, a in zip(p, masses, estimator.class_prior_, strict=True)]
        brought.append(np.array(odds) / sum(odds))
    return np.array(brought)


@pytest.mark.parametrize("name", ["digits", "cancer"])
def test_boxes_matrix_and_reliability_are_those_of_the_rows_kept_apart(shown, request, name):
    run, page = request.getfixturevalue(name), shown(name)
    X, labels = kept_apart(run)
    predicted = np.searchsorted(run.estimator.classes_, run.estimator.predict(X))
    right = predicted == labels
    score = np.mean([right[labels == c].mean() for c in np.unique(labels)])
    probabilities = run.estimator.predict_proba(X)
    boxes = page.eval_on_selector_all(
        "[data-key][data-value].value",
        "(all) => Object.fromEntries(all.map((e) => [e.dataset.key, Number(e.dataset.value)]))",
    )
    p = probabilities[np.arange(len(X)), labels]
    expected = {"accuracy": right.mean(), "balanced_accuracy": score, "log_loss": -np.log(p).mean()}
    assert {key: boxes[key] for key in expected} == pytest.approx(expected, rel=1e-4)
    assert page.locator("[data-key=balanced_accuracy]").inner_text() == percent(float(score))
    assert percent(float(score)) in page.locator(".lead").inner_text()

    counts = texts(page, "table.confusion:not(.at) tbody tr")
    assert np.array_equal(np.array(counts, dtype=int), confusion_matrix(labels, predicted))

    bins = {}
    for p, label in zip(at_class_shares(run.estimator, probabilities), labels, strict=True):
        where = min(9, max(0, math.ceil(10 * p.max()) - 1))
        bins.setdefault(where, []).append((p.max(), p.argmax() == label))
    assert texts(page, "table.bins tbody tr") == [
        [str(len(b)), percent(np.mean([s for s, _ in b])), percent(np.mean([r for _, r in b]))]
        for _, b in sorted(bins.items())
    ]
    assert page.locator("[data-reliability='test rows'] circle[data-bin]").count() >= len(bins)


@pytest.mark.parametrize("name", ["digits", "cancer", "kernels"])
def test_the_slider_moves_by_keyboard(open_page, report, request, name):
    record = request.getfixturevalue(name).record
    view = project(record)
    page = open_page(report(name))
    slider = page.locator("#frame")
    settle(page)
    check_epoch(page, record, record.kept)
    slider.focus()
    seen = []
    presses = {"Home": 0, "ArrowRight": 1, "ArrowUp": 2, "End": len(view.points) - 1}
    for key, index in presses.items():
        slider.press(key)
        settle(page)
        check_epoch(page, record, index)
        np.testing.assert_allclose(places(page), view.means[index, :, :2], atol=0.005 * view.extent)
        if record.ridge_path is None:
            said = f"epoch {record.epochs[index]} of"
        else:
            said = f"ridge {significant(record.ridge_path.ridges[index])} "
        assert said in slider.get_attribute("aria-valuetext")
        seen.append(page.evaluate("document.querySelector('#stage canvas').toDataURL()"))
    assert len(set(seen)) == len(seen)  # the points have moved, too


def test_the_epoch_is_chosen_by_mouse_on_the_slider_and_on_a_curve(shown, digits):
    page = shown("digits")
    box = seen_box(page, "#frame")
    middle = box["y"] + box["height"] / 2
    last = len(digits.record.epochs) - 1
    page.mouse.move(box["x"] + 8, middle)
    page.mouse.down()
    check_epoch(page, digits.record, 0)
    page.mouse.move(box["x"] + box["width"] * 0.5, middle)
    index = int(page.locator("#frame").input_value())
    assert 0 < index < last
    check_epoch(page, digits.record, index)
    page.mouse.move(box["x"] + box["width"] - 2, middle)
    page.mouse.up()
    check_epoch(page, digits.record, last)
    box = seen_box(page, "#chart-dispersity svg.chart")
    page.mouse.click(box["x"] + 47, box["y"] + 60)  # where the axis begins
    check_epoch(page, digits.record, 0)
    text = page.locator("#chart-dispersity [data-key=test_dispersity]").inner_text()
    assert text == significant(digits.record.measures["test_dispersity"][0])


def test_plays_and_pauses(open_page, report, digits):
    page = open_page(report("digits"))
    page.clock.install(time=0)
    page.clock.pause_at(1000)  # a busy machine would be at the end before it is asked to pause
    play, slider = page.locator("#play"), page.locator("#frame")
    last = len(digits.record.epochs) - 1
    slider.press("Home")
    play.click()
    assert play.get_attribute("aria-pressed") == "true"
    page.clock.run_for(500)
    play.click()
    index = int(slider.input_value())
    assert 0 < index < last
    check_epoch(page, digits.record, index)
    page.clock.run_for(500)
    assert int(slider.input_value()) == index
    play.click()
    page.clock.run_for(3000)
    assert int(slider.input_value()) == last
    assert play.get_attribute("aria-pressed") == "false"


def test_the_legend_hides_classes(shown):
    page = shown("digits")
    for button, left in (
        ("#legend button[data-class='3']", [0, 1, 2, 4, 5, 6, 7, 8, 9]),
        ("#hide-all", []),
        ("#show-all", range(10)),
    ):
        page.locator(button).click()
        settle(page)
        means = page.locator(".mean").evaluate_all("(all) => all.map((m) => m.dataset.class)")
        assert sorted(map(int, means)) == list(left)
        assert page.locator(".vertex[data-class='3']").count() == (3 in left)


def test_a_point_tells_what_it_is(shown, cancer):
    page = shown("cancer")
    page.locator("#frame").fill(str(cancer.record.kept))
    box = seen_box(page, "#stage")
    view = project(cancer.record)
    row = int(np.flatnonzero(cancer.record.is_test)[0])
    x, y = view.points[cancer.record.kept, row] / view.extent
    half = min(box["width"], box["height"]) / 2
    page.mouse.move(box["x"] + box["width"] / 2 + x * half, box["y"] + box["height"] / 2 - y * half)
    text = page.locator(".tip").inner_text()
    assert "class" in text
    assert any(name in text for name in cancer.record.class_names)
    page.mouse.move(box["x"] + 2, box["y"] + 2)
    assert page.locator(".tip").is_hidden()


def test_the_third_dimension_is_turned_by_mouse_and_keyboard(shown):
    page = shown("digits")
    settle(page)
    flat = places(page)
    page.locator("[data-solid=true]").click()
    settle(page)
    solid = places(page)
    assert not np.allclose(flat, solid, atol=1e-3)
    box = seen_box(page, "#stage")
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 130)
    page.mouse.up()
    settle(page)
    turned = places(page)
    assert not np.allclose(solid, turned, atol=1e-3)
    page.locator("#stage canvas").press("ArrowLeft")
    settle(page)
    assert not np.allclose(turned, places(page), atol=1e-3)
    page.locator("[data-solid=false]").click()
    settle(page)
    np.testing.assert_allclose(places(page), flat, atol=1e-3)


def test_a_large_confusion_matrix_is_a_picture_that_tells(open_page, report, many):
    X, labels = kept_apart(many)
    expected = confusion_matrix(labels, many.estimator.predict(X), labels=np.arange(40))
    page = open_page(report("many"), height=5000)
    matrix = page.locator("[data-matrix]")
    box = matrix.bounding_box()
    cell = box["width"] / 40
    for true, predicted in [(0, 0), (17, 17), *np.argwhere(expected)[:3].tolist()]:
        page.mouse.move(box["x"] + (predicted + 0.5) * cell, box["y"] + (true + 0.5) * cell)
        said = page.locator(".tip").inner_text()
        assert f"{expected[true, predicted]} of {expected[true].sum()} test rows" in said
    assert page.locator("table.confusion:not(.at)").count() == 0


def test_the_angles_are_those_of_the_class_means(shown, digits):
    means = digits.record.class_means[digits.record.kept]
    cosine = means[2] @ means[5] / np.linalg.norm(means[2]) / np.linalg.norm(means[5])
    page = shown("digits")
    page.locator("#frame").fill(str(digits.record.kept))
    page.locator("[data-pair='2,5']").dispatch_event("pointermove", {"clientX": 9, "clientY": 9})
    said = page.locator(".tip").inner_text()
    assert f"{math.degrees(math.acos(cosine)):.1f}°" in said
    assert f"target {math.degrees(math.acos(-1 / 9)):.1f}°" in said
    assert page.locator("[data-pair]").count() == 90


@pytest.mark.parametrize("name", ["digits", "cancer", "kernels"])
def test_every_text_can_be_read_in_light_and_dark(open_page, report, name):
    page = open_page(report(name))
    painted = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        settle(page)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        level = np.mean([int(v) for v in ground.removeprefix("rgb(").removesuffix(")").split(",")])
        assert level > 230 if scheme == "light" else level < 40
        found = page.evaluate(CONTRASTS)
        assert len(found) > 60
        assert found[0][0] >= 4.5, found[:3]
        painted.add(page.evaluate("document.querySelector('#stage canvas').toDataURL()"))
    assert len(painted) == 2  # the points have followed


def test_strangers_names_are_text_and_nothing_runs(shown, hostile):
    names = hostile.record.class_names
    page = shown("hostile")
    shown = page.locator("#legend .name").all_text_contents()
    assert shown == [visible(name) or "(empty)" for name in names]
    in_table = page.locator("table.classes tbody th .name").all_text_contents()
    assert in_table == shown
    assert names[0] in page.locator("h1").inner_text()
    assert names[0] in page.title()
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.images.length") == 0
    assert page.errors == []


def test_prints_on_white_paper_without_controls(open_page, report):
    page = open_page(report("digits"), color_scheme="dark")
    settle(page)
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator("#frame").is_hidden()
    ink = page.evaluate("getComputedStyle(document.body).color")
    assert max(int(v) for v in ink.removeprefix("rgb(").removesuffix(")").split(",")) < 60


def test_scripts_write_numbers_as_python_does(shown):
    page = shown("cancer")
    values = [0, 1, 12, 0.1, 0.02216, 0.001, 0.00099949, 3.21e-5, 999.4, 999.6, 1234.5, 99999.4]
    values += [1e5, 1.5e7, -0.25, 2.5e-300]
    found = page.evaluate("(values) => values.map(Draw.significant)", values)
    assert found == [significant(v) for v in values]
    shares = [0, 0.5, 0.97222, 1]
    assert page.evaluate("(v) => v.map(Draw.percent)", shares) == [percent(v) for v in shares]


def test_every_number_says_whether_it_is_the_models_or_one_networks(shown, digits):
    page = shown("digits")
    marks = page.eval_on_selector_all(
        ".card:has([data-key]):has(.scope)",
        """(cards) => Object.fromEntries(cards.map((card) =>
          ["[data-key]", ".scope"].map((part) => card.querySelector(part))
        ).map(([number, mark]) => [number.dataset.key, mark.textContent]))""",
    )
    model, first = "all 2 networks", "network 1 of 2"
    scores = ("balanced_accuracy", "accuracy", "log_loss", "calibration_error")
    assert marks == dict.fromkeys(scores, model) | {"test_dispersity": first, "epoch": first}
    assert set(page.locator("h2:has(.scope), h3:has(.scope)").all_inner_texts()) == {
        f"The embedding, epoch by epoch {first}",
        f"Training {first}",
        f"Balanced accuracy {first}",
        f"Test rows {model}",
        f"Explanations {model}",
        f"Decisions {model}",
        f"Worst-predicted rows {model}",
        f"Rows of each class {model}",
        f"Angles between class means {first}",
    }
    assert page.locator(".numbers thead .scope").inner_text() == "network 1 of 2"
    foot = page.locator(".numbers tfoot tr")
    assert foot.locator(".scope").inner_text() == "all 2 networks"
    scores = (digits.record.balanced_accuracy, digits.record.train_balanced_accuracy)
    assert foot.locator("td").all_inner_texts() == [percent(score) for score in scores]
    # Beside the curves of one network, the accuracy of all is a level line.
    chart = page.locator("#chart-accuracy")
    for press, index in (("Home", 0), ("End", len(digits.record.epochs) - 1)):
        page.locator("#frame").press(press)
        settle(page)
        together = percent(digits.record.balanced_accuracy)
        assert chart.locator("[data-key=together]").inner_text() == together
        curve = chart.locator("[data-key=test_balanced_accuracy]").inner_text()
        assert curve == percent(digits.record.measures["test_balanced_accuracy"][index])


def test_a_single_network_needs_no_marks(single):
    page = run_report(single.record)
    assert '<span class="scope' not in page
    assert '"model":{"name":"",' in page  # no level line, either
    assert "One network was trained." in words(single.record)


@pytest.mark.parametrize(
    ("name", "measures", "said"),
    [
        ("digits", ["NC1", "NC2", "NC4"], "mean of another class"),
        ("cancer", ["NC1", "NC2", "NC4"], "Not shown"),
        ("single", ["NC1", "NC2", "NC3", "NC4"], "linear classifier and the nearest class mean"),
    ],
)
def test_each_measure_of_collapse_has_a_sentence(request, name, measures, said):
    html = run_report(request.getfixturevalue(name).record)
    found = dict(re.findall(r"<dt>(NC\d)</dt><dd>(.*?)</dd>", html))
    assert list(found) == measures
    assert said in " ".join(found.values())


def few_rows(record):
    confusion = record.confusion.copy()
    confusion[3] = np.eye(10, dtype=int)[3]
    return {"confusion": confusion, "test_counts": confusion.sum(axis=1)}


def guesses(record):
    wrong = np.full_like(record.confusion, 2)
    return {"confusion": wrong, "test_counts": wrong.sum(axis=1), "balanced_accuracy": 0.1}


def columns(record):
    return {
        "column_kinds": {"age": "number", "<b>": "category", "day": "date", "size": "number"},
        "column_notes": {"<b>": "3 values", "day": "day first"},
        "column_gaps": {"age": 1, "day": 1199},
        "dropped_columns": {"id": "text", "unit": "constant"}
        | {f"x{k}": "no value" for k in range(4)},
        "n_train": 2000,
        "n_test": 1000,
    }


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("digits", few_rows, "Class 3 has only one test row, so results for it are uncertain."),
        ("digits", guesses, "That is not distinguishable from guessing."),
        ("digits", lambda _: {"train_balanced_accuracy": 1.5}, "the model overfits"),
        (
            "digits",
            lambda _: {"prior": np.arange(1, 11) / 55},
            "probabilities assume other class frequencies",
        ),
        (
            "cancer",
            lambda _: {"reliability": None},
            "classification head of this model gives no prob",
        ),
        ("cancer", lambda _: {"n_left_out": 12}, "12 rows without a class were left out."),
        ("cancer", columns, "4 of 10 columns are used: 2 numbers, 1 category, 1 date."),
        ("cancer", columns, "2 of them have missing values: 1,200 cells, 10.0 %."),
        ("cancer", columns, "id text unit constant 4 columns no value: x0, x1, x2, x3"),
        ("cancer", columns, "2 numbers age (1 gap), size 1 category &lt;b&gt; (3 values)"),
        ("cancer", columns, "1 date day (day first, 1,199 gaps)"),
        ("cancer", lambda _: {"column_kinds": {}}, "were transformed by your own transformer"),
    ],
)
def test_what_is_special_is_told_and_only_then(request, name, change, said):
    record = request.getfixturevalue(name).record
    assert said in words(dataclasses.replace(record, **change(record)))
    assert said not in words(record)


def test_other_models_stand_beside_the_heading_the_best_first(open_page, cancer, tmp_path):
    beside = {"CoCo": [0.9, 0.96], "trees": [0.95, 0.97], "<i>": [0.5, 0.7]}
    said = "CoCo is behind trees."
    path = write_run_report(cancer.record, tmp_path / "b.html", beside=beside, verdict=said)
    for width in (1280, 390):
        page = open_page(path, width=width)
        rows = page.locator(".beside tr")
        assert [" ".join(text.split()) for text in rows.all_inner_texts()] == [
            "trees 96.0 % ± 1.0",
            "CoCo 93.0 % ± 3.0",
            "<i> 60.0 % ± 10.0",
        ]
        assert page.locator(".beside .ours").inner_text().startswith("CoCo")
        assert page.locator("header").get_by_text(said).count() == 1
        assert "2 folds" in page.locator(".beside .note").inner_text()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        # The embedding is seen without scrolling.
        assert page.locator("#stage").bounding_box()["y"] < (500 if width == 1280 else 900)
        assert page.errors == []
    assert 'class="panel beside"' not in run_report(cancer.record)


def test_a_long_list_of_columns_is_folded(shown):
    panel = shown("cancer").locator(".columns")  # thirty numbers
    assert panel.locator("dl").is_hidden()
    panel.locator("summary").click()
    assert panel.locator("dd").inner_text().count("x") == 30


def test_guessing_is_by_the_prior(digits):
    share = digits.record.test_counts / digits.record.test_counts.sum()
    prior = np.arange(1, 11) / 55
    other = dataclasses.replace(digits.record, prior=prior)
    assert f"guessing {significant(-sum(share * np.log(prior)))}" in run_report(other)
    assert f"guessing {significant(math.log(10))}" in run_report(digits.record)


def test_the_same_record_gives_the_same_bytes_and_no_folder_is_made(cancer, tmp_path):
    assert run_report(cancer.record) == run_report(cancer.record)
    with pytest.raises(CoCoError, match="there is no folder"):
        write_run_report(cancer.record, tmp_path / "missing" / "run.html")


# Pages of kernels.


def test_columns_are_ranked_by_importance_with_bars_and_without_scripts(open_page, report, kernels):
    page = open_page(report("kernels"), java_script_enabled=False)
    ranked = sorted(kernels.record.importances.items(), key=lambda item: -item[1])
    importances, metrics = page.locator(".grid:has(.ranking) > figure").all()[:2]
    expected = [[visible(name) or "(empty)", percent(share)] for name, share in ranked]
    rows = [
        [row.locator(part).inner_text() for part in ("th .name", "td.number")]
        for row in importances.locator("table >> nth=0").locator("tbody tr").all()
    ]
    assert rows == expected[:12]
    assert "1 more column" in importances.locator("summary").inner_text()
    longest, second = (
        float(importances.locator("rect").nth(k).get_attribute("width")) for k in (0, 1)
    )
    assert longest == 100
    assert second == pytest.approx(100 * ranked[1][1] / ranked[0][1], abs=0.01)
    first = metrics.locator("tbody tr").first.locator("td").all_inner_texts()
    shares = kernels.record.ridge_path.metrics[ranked[0][0]]
    assert [text.strip() for text in first] == [percent(share) for share in shares]
    chosen = page.locator(".tried .chosen").all_inner_texts()
    losses = [setting.loss for setting in kernels.record.ridge_path.chosen]
    assert sorted(chosen) == sorted(significant(loss) for loss in losses)


def test_rows_left_out_have_a_matrix_and_a_reliability_curve_of_their_own(shown, kernels):
    page, record = shown("kernels"), kernels.record
    labels = np.searchsorted(np.unique(kernels.y), kernels.y)
    train, _ = split_test(labels, 0.2, as_generator(0))
    p = kernels.estimator.loo_proba_
    matrices = page.locator("table.confusion:not(.at)").all()
    assert len(matrices) == 2
    counts = matrices[1].locator("td[data-true]").all_text_contents()
    expected = confusion_matrix(labels[train], p.argmax(axis=1))
    assert np.array_equal(np.array(counts, dtype=int).reshape(3, 3), expected)
    bins = {}
    for row, label in zip(at_class_shares(kernels.estimator, p), labels[train], strict=True):
        where = min(9, max(0, math.ceil(10 * row.max()) - 1))
        bins.setdefault(where, []).append((row.max(), row.argmax() == label))
    table = page.locator("figure:has([data-reliability='leave-one-out']) table.bins tbody tr")
    found = [row.locator("td").all_text_contents() for row in table.all()]
    assert found == [
        [str(len(b)), percent(np.mean([s for s, _ in b])), percent(np.mean([r for _, r in b]))]
        for _, b in sorted(bins.items())
    ]
    drawn = page.locator("[data-reliability='leave-one-out'] circle[data-bin]").count()
    assert drawn >= len(bins)
    said = words(record)
    assert f"log loss {significant(record.left_out.log_loss)}" in said
    error = percent(record.left_out.reliability_at_shares.error).replace("\u202f", " ")
    assert f"Expected calibration error {error}" in said


def test_calibration_is_that_of_the_classes_as_they_come_whatever_the_model_answers_for():
    rng = np.random.default_rng(0)
    y = rng.choice(3, 900, p=[0.1, 0.8, 0.1])
    X = rng.normal(size=(900, 2)) + y[:, None]  # most rows are between the others
    record = record_fit(CoCoClassifier(random_state=0), X, y, random_state=0)
    assert record.reliability.error > 0.1  # as if the classes were equally likely
    assert record.reliability_at_shares.error < 0.06
    said = words(record)
    led, answered = (
        percent(curve.error).replace("\u202f", " ")
        for curve in (record.reliability_at_shares, record.reliability)
    )
    assert f"Calibration error {led} test, at the class frequencies" in said
    assert f"Expected calibration error {led} after conversion to the class freq" in said
    assert f"without it {answered}, since" in said
    honest = record_fit(CoCoClassifier(priors="empirical", random_state=0), X, y, random_state=0)
    assert honest.reliability.error == pytest.approx(honest.reliability_at_shares.error)
    assert "at the class frequencies of the" not in words(honest)


def test_axes_say_that_they_are_logarithmic(shown):
    for name, charts in (
        ("digits", {"accuracy": "", "loss": "v", "dispersity": "v", "collapse": "v"}),
        ("kernels", {"accuracy": "r", "left-out": "vr", "error": "vr", "dispersity": "vr"}),
    ):
        for chart, axes in charts.items():
            said = shown(name).locator(f"#chart-{chart} svg.chart").text_content()
            assert ("vertical: log scale" in said) == ("v" in axes)
            assert ("ridge (log scale)" in said) == ("r" in axes)
            assert said.count("log scale") == len(axes)


def test_a_ridge_is_chosen_on_a_curve(shown, kernels):
    page, path = shown("kernels"), kernels.record.ridge_path
    box = seen_box(page, "#chart-error svg.chart")
    page.mouse.click(box["x"] + 47, box["y"] + 60)  # where the axis begins: the largest ridge
    check_epoch(page, kernels.record, 0)
    assert page.locator("#now").inner_text().endswith("largest")
    page.mouse.click(box["x"] + box["width"] - 10, box["y"] + 60)
    check_epoch(page, kernels.record, len(path.ridges) - 1)
    page.locator("#frame").fill(str(kernels.record.kept))
    assert page.locator("#now").inner_text().endswith("chosen")


def test_the_corners_of_kernels_are_where_they_are(kernels):
    view, path = project(kernels.record), kernels.record.ridge_path
    assert view.kind == "plane"
    np.testing.assert_allclose(view.target, path.corners)


def test_a_page_without_a_movie_has_all_else(shown, blind):
    page = shown("blind")
    assert page.locator("#stage, #frame, #chart-angles, #chart-accuracy").count() == 0
    assert page.locator("table.confusion:not(.at)").count() == 2
    # Of reliability, of thresholds, and of rows that are explained.
    assert page.locator("svg.chart").count() == 4 + len(blind.record.why.rows)
    assert page.locator(".ranking").count() >= 1
    assert page.locator("[data-swatch] svg").count() == 3
    titles = page.locator("h2").all_inner_texts()
    assert titles[:4] == ["Test rows", "Leave-one-out", "Decisions", "Column importances"]
    assert titles[4:6] == ["Explanations", "Worst-predicted rows"]
    said = words(blind.record)
    assert "The model is" in said
    assert "kernel 1 of" not in said
    bare = dataclasses.replace(blind.record, left_out=None, importances={}, reliability=None)
    assert "Column importances" not in words(bare)


def test_of_many_rows_the_page_says_which_are_shown(kernels):
    path = dataclasses.replace(kernels.record.ridge_path, is_sample=True, n_rows=1200)
    said = words(dataclasses.replace(kernels.record, ridge_path=path))
    assert "on the 1,200 rows from which hyperparameters were chosen" in said
    assert "at its best ridge, on 1,200 rows." in said
    assert "kernels and leaves" in said
    assert "1,200 rows" not in words(kernels.record)


def test_networks_beside_kernels_are_told_apart_from_them(kernels, blind):
    said = words(dataclasses.replace(kernels.record, n_networks=3))
    n = kernels.record.n_members
    assert f"{n} kernels and 3 networks is the model: the mean of {n} kernels" in said
    assert "by leave-one-out of the kernels alone, it is" in said
    assert "Predictions of the kernels for the 142 training rows" in said
    assert f"Predictions of {n} kernels and 3 networks for the 36 test rows" in said
    said = words(dataclasses.replace(blind.record, n_networks=1))
    assert f"The model is {n} kernels and 1 network together." in said
