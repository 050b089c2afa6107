"""The page of a benchmark in a real browser: it sorts, filters, opens, and tells the truth."""

import pytest

from browser import CONTRASTS
from cocoloss.benchmark.analysis import read_findings
from cocoloss.benchmark.store import Store
from cocoloss.report.bench_report import as_page
from cocoloss.report.document import MISSING, significant
from synthetic_store import (
    SKILLS,
    analyse,
    build_document,
    fill_accuracy,
    fill_convergence,
    fill_evolution,
    infos_of,
    make_spec,
)

HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 2'>",
    "a" * 200,
    "שלום",
]
MODELS = [*SKILLS, "hgb", "hgb-w", "rf-w", "coco-default"]
DATASETS = "table[data-drill]"


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("store") / "results.sqlite") as store:
        infos = infos_of(18, HOSTILE)
        fill_accuracy(
            store,
            make_spec(models=MODELS),
            infos,
            failed={("table-05", "ce")},
            timed_out={("table-06", "rf")},
            one_point={("table-08", "dr")},
        )
        fill_convergence(store, make_spec("convergence", models=["coco", "dr"]), infos[:3])
        names = ["coco-plain", "coco-balanced"]
        fill_accuracy(store, make_spec("imbalance", models=names), infos_of(5))
        fill_evolution(store, make_spec("evolution", models=["coco"]), infos[:1])
        found = read_findings(store)
    names = [each.name for each in found]
    document = build_document(found, [analyse(each) for each in found], names)
    path = tmp_path_factory.mktemp("report") / "index.html"
    path.write_text(as_page(document, "figures"), encoding="utf-8")
    return found[0], path


@pytest.fixture(scope="module")
def path(findings):
    return findings[1]


def column(page, selector, number):
    """Return the texts of a column, rows that are shown only."""
    return page.evaluate(
        """([selector, number]) => [...document.querySelector(selector).tBodies[0].rows]
          .filter((row) => !row.hidden && !row.classList.contains("detail"))
          .map((row) => row.cells[number].textContent)""",
        [selector, number],
    )


# Headings that are cut, and heads of tables with room for words that are out of sight.
SQUEEZED = """() => {
  const cut = [...document.querySelectorAll("tbody th .name, thead th, h1, h2, h3")]
    .filter((n) => n.textContent.length < 60 && n.getClientRects().length)
    .filter((n) => n.scrollWidth > n.clientWidth + 1 || n.scrollHeight > n.clientHeight + 1);
  const tall = [...document.querySelectorAll("thead")].filter((head) => {
    const line = parseFloat(getComputedStyle(head.querySelector("th")).lineHeight);
    return head.getBoundingClientRect().height > 2 * line + 12;
  });
  return [...cut, ...tall].map((node) => node.textContent);
}"""
TEXT_BOXES = """(svg) => [...svg.querySelectorAll("text")]
  .filter((text) => text.getClientRects().length)
  .map((text) => text.getBoundingClientRect())
  .map(({ x, y, width, height }) => [x, y, x + width, y + height])"""


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("color_scheme", ["light", "dark"])
def test_opens_everywhere_without_errors_and_fetches_nothing(open_page, path, width, color_scheme):
    page = open_page(path, width=width, color_scheme=color_scheme)
    assert page.errors == []
    assert page.requests == [path.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.evaluate("window.hacked") is None
    contrast, where = page.evaluate(CONTRASTS)[0]
    assert contrast >= 4.5, where
    if width < 400:  # a phone
        assert page.evaluate(SQUEEZED) == []


@pytest.mark.parametrize("width", [1280, 390])
def test_one_diagram_is_seen_at_a_time_and_no_two_names_meet(open_page, path, width):
    page = open_page(path, width=width)
    figure = page.locator("figure", has=page.locator("svg.drawing .drawing-model")).first
    assert figure.locator("svg.drawing").count() == 2
    assert figure.locator("svg.drawing:visible").count() == 1
    for svg in page.locator("svg.drawing:visible").all():
        boxes, whole = svg.evaluate(TEXT_BOXES), svg.bounding_box()
        for k, a in enumerate(boxes):
            assert a[0] >= whole["x"] - 1
            assert a[2] <= whole["x"] + whole["width"] + 1
            for b in boxes[:k]:
                apart = a[2] <= b[0] + 1 or b[2] <= a[0] + 1
                assert apart or a[3] <= b[1] + 4 or b[3] <= a[1] + 4


def test_ranks_shown_are_those_of_the_comparison(open_page, findings):
    ranking = analyse(findings[0]).rankings[0]
    page = open_page(findings[1])
    rows = page.locator("table[aria-label='Means and average ranks']").first.locator("tbody tr")
    shown = {
        row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows.all()
    }
    comparison = ranking.comparison
    assert set(shown) == set(comparison.models)
    for model, cells in shown.items():
        assert cells[0] == f"{comparison.mean_scores[model]:.4f}"
        assert cells[1] == f"{comparison.average_ranks[model]:.2f}"
        assert cells[3] == f"{ranking.averaged.average_ranks[model]:.2f}"
        assert cells[5] == f"{ranking.printed.ranks[model][0]:.2f}"


def test_tables_sort_up_and_down_with_gaps_last(open_page, path):
    page = open_page(path)
    table = page.locator(DATASETS).first
    head = table.locator("thead th").nth(3)  # ce, of which one is missing
    assert head.get_attribute("aria-sort") == "none"
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    values = column(page, DATASETS, 3)
    numbers = [float(v) for v in values[:-1]]
    assert values[-1] == MISSING
    assert numbers == sorted(numbers)
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    values = column(page, DATASETS, 3)
    assert values[-1] == MISSING
    assert [float(v) for v in values[:-1]] == numbers[::-1]
    table.locator("thead th").nth(0).locator("button").press("Space")
    names = [n for n in column(page, DATASETS, 0) if n.startswith("table-")]
    assert names == sorted(names)
    assert head.get_attribute("aria-sort") == "none"


def sorted_column(page, title, heading):
    """Sort a table by a column; return the cells of the column."""
    table = page.locator(f"table[aria-label='{title}']").first
    place = table.locator("thead th").all_inner_texts().index(heading)
    table.locator("thead th").nth(place).locator("button").click()
    return table.locator(f"tbody tr td:nth-child({place + 1})").all()


def test_numbers_sort_by_their_value_infinity_after_them_and_gaps_last(open_page, path):
    page = open_page(path)
    cells = sorted_column(page, "coco against each other model", "p Wilcoxon-Holm")
    values = [float(cell.get_attribute("data-value")) for cell in cells]
    assert values == sorted(values)
    assert [cell.inner_text() for cell in cells] == [significant(v) for v in values]
    cells = sorted_column(page, "Means over folds, then datasets", "dispersity, test")
    texts = [cell.inner_text() for cell in cells]
    numbers = [float(text) for text in texts[: texts.index("∞")]]
    assert numbers == sorted(numbers)
    assert set(texts[len(numbers) + 1 :]) == {MISSING}


def test_rows_are_filtered_by_what_is_typed(open_page, path):
    page = open_page(path)
    figure = page.locator("figure", has=page.locator(DATASETS)).first
    figure.locator("input").fill("TABLE-1")
    assert column(page, DATASETS, 0) == [f"table-1{k}" for k in range(8)]
    assert figure.locator(".count").inner_text() == "8 of 18"
    figure.locator("input").fill("")
    assert len(column(page, DATASETS, 0)) == 18


def test_a_dataset_opens_to_its_folds_arguments_time_and_memory(open_page, findings):
    page = open_page(findings[1])
    row = page.locator(f"{DATASETS} tbody tr", has_text="table-07").first
    button = row.locator(".open")
    button.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    detail = page.locator("tr.detail")
    rows = findings[0].rows
    own = rows[(rows["dataset"] == "table-07") & (rows["model"] == "coco")]
    line = detail.locator("tbody tr", has=page.locator("th", has_text="coco")).first
    assert line.locator("circle").count() == 10
    titles = line.locator("circle title").evaluate_all("(all) => all.map((t) => t.textContent)")
    expected = [f"fold {k}: {v:.4f}" for k, v in enumerate(own["balanced_accuracy"])]
    assert titles == expected
    text = line.inner_text()
    assert "learning_rate_init=0.001235" in text
    assert "2 trials" in text
    assert "50 MB" in text
    assert "20,000 rows" in detail.inner_text() or "1,500 rows" in detail.inner_text()
    button.click()
    assert page.locator("tr.detail").count() == 0
    assert button.get_attribute("aria-expanded") == "false"


def test_what_opens_has_the_width_of_the_page_however_few_the_models(open_page, path):
    page = open_page(path, width=1300)
    table = page.locator(DATASETS).last
    table.locator(".open").first.click()
    room = table.evaluate("(table) => table.parentElement.clientWidth")
    assert table.locator(".within").evaluate("(part) => part.clientWidth") > 0.9 * room


def opened(page, dataset):
    """Open a dataset of the first table; return the titles of its columns, and cells by model."""
    page.locator(f"{DATASETS} tbody tr", has_text=dataset).first.locator(".open").click()
    lines = page.locator("tr.detail tbody tr").all()
    cells = {
        each.locator("th").inner_text(): each.locator("td").all_inner_texts() for each in lines
    }
    return page.locator("tr.detail thead th").all_inner_texts()[1:], cells


def test_a_dataset_with_a_failure_says_why(open_page, path):
    page = open_page(path)
    _, cells = opened(page, "table-05")
    assert "LinAlgError: <singular> & failed" in " ".join(cells["ce"])
    missing = page.locator("table[aria-label='Missing results']").first.inner_text()
    assert "LinAlgError: <singular> & failed" in missing
    assert "took too long" in missing


def test_with_a_fold_that_is_infinitely_dispersed_the_mean_is_infinite(open_page, path):
    page = open_page(path)
    heads, cells = opened(page, "table-08")
    where = heads.index("dispersity, test")
    assert cells["dr"][where] == "∞"
    assert float(cells["coco"][where]) > 0
    assert page.errors == []


def test_names_of_strangers_open_too(open_page, path):
    page = open_page(path)
    for row in page.locator(f"{DATASETS} >> nth=0").locator("tbody tr").all()[2::-1]:
        row.locator(".open").click()
    assert page.locator("tr.detail").count() == 3
    assert page.evaluate("window.hacked") is None
    assert page.errors == []


def test_contents_curves_scatter_and_panels_are_there(open_page, path):
    page = open_page(path)
    links = page.locator(".contents a")
    assert links.count() > 10
    for link in links.all():
        assert page.locator(link.get_attribute("href")).count() == 1
    curves = page.locator("svg.drawing[aria-label^='Mean balanced accuracy'] .drawing-curve")
    assert curves.count() == 6
    assert page.locator("svg.drawing[aria-label^='Improvement'] .drawing-points use").count() == 10
    panels = page.locator("svg.drawing[aria-label^='The embedding']")
    assert panels.locator(".drawing-centre").count() == 8
    assert "-0.9" in panels.get_attribute("aria-label")
