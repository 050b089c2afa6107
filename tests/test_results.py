"""The pages of results are what the committed rows make of them, and so are figures elsewhere."""

import importlib
import json
import re
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cocoloss.benchmark.analysis import rank, read_findings
from cocoloss.benchmark.spec import load_spec
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.tasks import Result
from cocoloss.report.document import MISSING
from synthetic_store import analyse, begin, fill_accuracy, infos_of, make_spec, put

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "results"
MODELS = ("coco", "rf")
BENCH = ROOT / "bench" / "results"
OURS = "CoCoClassifier() (coco-default)"
SCALED = ("CoCoClassifier()", "LightGBM", "HistGradientBoosting")
N_FOLDS = 5


@pytest.fixture(scope="module")
def made():
    """Everything that page.py makes of the rows: the module, its parts, pages and pictures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        page = importlib.import_module("page")
        found = page.read_all(FOLDER)
        parts = page.read_parts(found)
        return page, parts, *page.make_pages(found, parts)


def test_the_pages_are_what_the_rows_make_of_them(made):
    page, _, pages, pictures = made
    assert page.differing(pages, pictures) == []
    assert {path.name for path in pages} - {"results.md"} == {
        path.name for path in (ROOT / "docs" / "results").iterdir()
    }
    assert len(pages[ROOT / "docs" / "results.md"].splitlines()) <= 200


@pytest.fixture(scope="module")
def n(made):
    """Numbers that are read off the tables."""
    page, parts, *_ = made
    return page.Numbers(parts)


def test_numbers_of_the_readme_are_those_of_the_rows(n):
    blocks = blocks_of(ROOT / "README.md")
    wrong = [
        (words, numbers)
        for words, numbers in claims(n)
        if not any(says(block, words, numbers) for block in blocks)
    ]
    assert wrong == []  # words that name the place, and the numbers that rows have for it


def test_every_number_of_the_readme_is_claimed_or_a_constant(n):
    """So that no number is added to the README without a row."""
    known = {number for _, numbers in claims(n) for number in numbers} | CONSTANTS
    parts_of_known = {part for number in known for part in NUMBER.findall(number)}
    text = " ".join(blocks_of(ROOT / "README.md"))
    assert sorted(set(NUMBER.findall(text)) - parts_of_known) == []


def test_verdicts_of_the_readme_are_those_of_the_rows(n):
    """Each is checked if it is there; a new row that changes one asks for another wording."""
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    lite, large = "accuracy-lite/default/reference", "accuracy-large/default/reference"
    words = n.parts["accuracy-lite/default/words"].text
    won, lost = (n.value(large, "lightgbm-w", how) for how in ("wins", "losses"))
    ours, trees = "coco-default", ("lightgbm-w", "hgb-raw-w", "catboost-w")
    means = n.tables["accuracy-large/complete"]
    fits = [size for size in n.tables["scaling/fit"] if "rows" in size]
    ratios = [n.value("scaling/ratios", size, f"fit: {t}") for size in fits for t in SCALED[1:]]
    soft = n.tables["few-labels/gains-others"]["soft"]
    verdicts = [soft[f"verdict at {k}"].text for k in (5, 10, 20)]
    said = {
        "significantly ahead of each baseline": set(verdicts_of(n, lite)) == {"ahead"},
        "these models are statistically tied": "does not differ significantly from" in words
        and all(model in words for model in n.tables[lite]),
        "ahead of the SVM, level with boosted trees": n.verdict(large, "ksvm-w") == "ahead"
        and {n.verdict(large, each) for each in trees} == {"level"},
        "LightGBM wins about as often": abs(won - lost) <= 0.2 * (won + lost),
        "boosted trees, which have the better accuracy and log loss": all(
            means[each]["accuracy"].value > means[ours]["accuracy"].value
            and means[each]["log loss"].value < means[ours]["log loss"].value
            for each in trees
        ),
        "labels per class), significant with 10": verdicts == ["level", "ahead", "level"],
        "boosted trees are faster at every number of rows": min(ratios) > 1,
        "CoCoClassifier is the most accurate": all(
            n.score(model) <= n.score(ours) for model in n.tables["accuracy-lite/default/ranks"]
        ),
        "three tables of images, on which CatBoost takes longer than half an hour": "CatBoost took "
        "longer than 30 minutes on Devnagari-Script, Fashion-MNIST and mnist"
        in n.parts["accuracy-large/progress"].text,
    }
    assert [words for words, holds in said.items() if words in text and not holds] == []


def test_figures_of_the_guides_are_those_of_the_rows(n):
    said = {
        "docs/choosing.md": list(how_long_it_takes(n)),
        "docs/index.md": [n.score(each) for each in (DEFAULT, "ksvm-w", "hgb-w", LIGHTGBM)]
        + [
            f"A fit takes {n.value('accuracy-lite/costs', OURS, 'seconds in all'):.1f} s",
        ],
    }
    for path, sentences in said.items():
        text = " ".join((ROOT / path).read_text(encoding="utf-8").split())
        assert [sentence for sentence in sentences if sentence not in text] == [], path


DEFAULT, LIGHTGBM = "coco-default", "lightgbm-default"
NUMBER = re.compile(r"(?<![\w.,-])[+-]?\d+(?:,\d{3})*(?:\.\d+)?(?![\w-])")
CONSTANTS = {
    *("66", "1,000", "ten", "2,000", "50,000", "20", "31", "10", "13", "42"),  # tables and rows
    "1,500",  # training rows of a regression
    *("18", "3"),  # trials, as the specs have them
    *("5", "90 %", "500", "16", "1,800", "32", "64"),  # labels, intervals, noise, limits, the loss
    *("3.11", "6", "1", "2", "60", "0.9", "100"),  # Python, ranks of 6, C - 1, calls
    *("800", "8", "28", "4", "562", "238", "0.709", "0.018", "0.500", "0.583", "0.016"),
    *("0.693", "0.763"),  # what fit prints of customers.csv: tests/test_examples.py
}


def claims(n):
    """Yield words that name a place of the README, and the numbers that the rows have for it."""
    yield from of_66_tables(n)
    yield from of_other_tasks(n)
    yield from of_where_not_to_use_it(n)
    yield from of_what_it_costs(n)


def of_66_tables(n):
    """Numbers on the default and its baselines."""
    lines = {  # words, model, line of the costs
        "`CoCoClassifier()`": (DEFAULT, OURS),
        "kernel SVM": ("ksvm-w", "kernel SVM (ksvm-w)"),
        "boosted trees": ("hgb-w", "HistGradientBoosting (hgb-w)"),
        "cross-entropy network": ("ce-w", "cross-entropy (ce-w)"),
        "random forest": ("rf-w", "random forest (rf-w)"),
        "LightGBM": (LIGHTGBM, "LightGBM (lightgbm-default)"),
    }
    for words, (model, costs) in lines.items():
        seconds = f"{n.value('accuracy-lite/costs', costs, 'seconds in all'):.2g}"
        rank = n.cell("accuracy-lite/default/ranks", model, "rank by mean")
        loss = () if model == "ksvm-w" else (n.score(model, "log loss"),)
        yield (f"| {words}",), (n.score(model), *loss, rank, seconds)
    scores = [n.score(model) for model in (DEFAULT, "ksvm-w", "hgb-w", LIGHTGBM)]
    duel = "accuracy-lite/default/reference"
    counts = [n.cell(duel, "ksvm-w", how) for how in ("wins", "losses")]
    seconds = f"{n.value('accuracy-lite/costs', OURS, 'seconds in all'):.1f}"
    yield ("kernel SVM", "LightGBM", "fit takes"), (*scores, *counts, f"{seconds} s")
    yield ("66 tables", "seconds to tune and fit"), (n_timed(n),)
    yield ("the most accurate",), (f"{seconds} seconds",)
    yield ("paper", "tuned CoCo network", "kernel SVM"), (n.score("coco"), n.score("ksvm"))


def n_timed(n):
    """Return on how many of the tables fits were timed."""
    return re.search(r"geometric means over (\d+)", n.parts["accuracy-lite/costs"].caption)[1]


def of_other_tasks(n):
    """Numbers on other tables and tasks."""
    ranks, mean = "accuracy-{}/default/ranks", "mean balanced accuracy"
    small = [
        f"{n.value(ranks.format('small'), f'{model}-default', mean):.3f}"
        for model in ("coco", "realmlp", "xrfm", "catboost")
    ]
    yield ("RealMLP", "xRFM", "CatBoost"), (str(n.complete("accuracy-small")), *small)
    large = [
        f"{n.value(ranks.format('large'), model, mean):.3f}"
        for model in (DEFAULT, "ksvm-w", "catboost-w", "lightgbm-w")
    ]
    duel = "accuracy-large/default/reference"
    counts = [n.cell(duel, "lightgbm-w", how) for how in ("wins", "losses")]
    yield ("50,000 rows", "CatBoost"), (str(n.complete("accuracy-large")), *large, *counts)
    ratios = [
        f"{n.value('regression/ratios', peer, 'geometric mean'):.2f}"
        for peer in ("lightgbm", "catboost")
    ]
    ratios.append(f"{n.value('regression/full', 'lightgbm, 20,000', 'geometric mean'):.2f}")
    covered = n.percent("regression/measures", "coco", "within intervals of 0.9")
    yield ("| regression", "RMSE"), (*ratios, covered)
    off = [
        n.cell("ordinal/measures", model, "mean absolute error")
        for model in ("coco-median", "catboost", "lightgbm")
    ]
    yield ("| ordinal regression",), tuple(off)
    gains = [
        n.cell("few-labels/gains-others", "soft", f"{k} labels per class") for k in (5, 10, 20)
    ]
    tables = n.cell("few-labels/gains-others", "soft", "better at 5").split()[-1]
    yield ("| semi-supervised", "unlabelled"), (f"[{tables} tables]", *gains)


def of_where_not_to_use_it(n):
    """Numbers on where the default is ahead or behind."""
    noise = [
        f"{n.value('learnt-metric/noise-balanced-accuracy', model, added):.3f}"
        for model in ("closed form", "LightGBM")
        for added in ("0", "500")
    ]
    yield ("noise columns",), tuple(noise)
    plain = "accuracy-lite/plain"
    ours = 'CoCoClassifier(priors="empirical")'
    accuracies = [n.score(model, "accuracy") for model in (DEFAULT, "rf", "ksvm")]
    accuracies += [f"{n.value(plain, model, 'accuracy'):.3f}" for model in (ours, "rf")]
    yield ("accuracy", "priors", "forest"), tuple(accuracies)
    adult = [
        100
        * (n.value("large/tables", "adult", model) - n.value("large/tables", "adult", SCALED[0]))
        for model in ("hgb-w", "lightgbm-w")
    ]
    rows = n.cell("large/tables", "adult", "training rows")
    yield ("adult",), (rows, *(f"{behind:.1f}" for behind in adult))
    madelon = n.tables["accuracy-lite/default/extremes"]["madelon"]
    bands = [f"{n.value('demo/tables', m, 'bands'):.3f}" for m in ("CoCo", "boosted trees")]
    yield ("madelon",), (madelon[DEFAULT].text, madelon["best"].text)
    yield ("make demo", "thresholds"), tuple(bands)
    share = "share of categorical columns: 50% or more"
    won, _, lost = n.cell("accuracy-lite/default/wins", share, "against best").split(" / ")
    n_tables = n.cell("accuracy-lite/default/wins", share, "datasets")
    yield ("columns are categories",), (n_tables, won, lost)


def of_what_it_costs(n):
    """Numbers on seconds and memory."""
    svm = n.value("accuracy-lite/costs", "kernel SVM (ksvm-w)", "seconds of one fit")
    wide = [n.value("scaling/predict", "1,000 columns", f"s: {model}") for model in SCALED[:2]]
    numbers = (f"{svm:.2f} s", f"{wide[0]:.1f} s", f"{wide[1]:.2f} s")
    yield ("kernel SVM", "LightGBM", "columns"), numbers
    sizes = [f"{rows} rows" for rows in ("1,000", "3,000", "10,000", "100,000", "1,000,000")]
    yield ("| rows |",), tuple(size.removesuffix(" rows") for size in sizes)
    for label, column in {
        "processor seconds": f"s: {SCALED[0]}",
        "LightGBM": "s: LightGBM",
        "megabytes": f"MB: {SCALED[0]}",
    }.items():
        yield (f"| {label}",), tuple(n.cell("scaling/fit", size, column) for size in sizes)
    seconds = json.loads((BENCH / "losses.json").read_text(encoding="utf-8"))["seconds"]
    for batch, formats in {
        "64": ("{:.1f}", "{:.1f}", "{:.1f}"),
        "1024": ("{:.1f}", "{:.1f}", "{:.0f}"),
        "4096": ("{:.1f}", "{:.0f}", MISSING),
        "1000000": ("{:.2f}", MISSING, MISSING),
    }.items():
        of = seconds[batch]
        ratios = [of["coco"] / of["cross-entropy"]]
        beside = of.get("coco beside pairs", 1)
        ratios += [of.get(other, 0) / beside for other in ("pairwise", "supcon")]
        cells = [form.format(ratio) for form, ratio in zip(formats, ratios, strict=True)]
        unit = f"{of['coco']:.2g} s" if of["coco"] > 0.1 else f"{1000 * of['coco']:.2g} ms"
        yield (f"| {int(batch):,} |",), (f"{int(batch):,}", unit, *cells)


def blocks_of(path):
    """Return the paragraphs, items and lines of tables of a page, without code and links."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"^    .*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)", "]", text).replace("**", "")
    return [" ".join(b.split()) for b in re.split(r"\n\n|\n(?=[-|] ?)", text) if b.strip()]


def says(block, words, numbers):
    """Tell whether a block has the words and each of the numbers, not as a part of another one."""
    whole = (rf"(?<![\w.,]){re.escape(number)}(?![\w]|[.,]\d)" for number in numbers)
    return all(each.lower() in block.lower() for each in words) and all(
        re.search(number, block) for number in whole
    )


def verdicts_of(n, part):
    return [n.verdict(part, row) for row in n.tables[part]]


def how_long_it_takes(n):
    """What docs/choosing.md says of seconds, from the rows."""
    lines = {
        "1,000 rows, 20 columns": "1,000 rows",
        **{f"{rows} rows": f"{rows} rows" for rows in ("3,000", "10,000", "100,000", "1,000,000")},
        "2,000 rows, 1,000 columns": "1,000 columns",
        "5,000 rows, 20 columns, 100 classes": "100 classes",
    }
    for label, size in lines.items():
        cells = (f"s: {SCALED[0]}", "s: LightGBM", f"MB: {SCALED[0]}")
        yield f"| {label} | {' | '.join(n.cell('scaling/fit', size, cell) for cell in cells)} |"
    seconds = [
        n.cell("scaling/predict", size, f"s: {model}")
        for model in SCALED[:2]
        for size in ("100,000 rows", "1,000 columns")
    ]
    yield (
        "10,000 predictions take {} s with 20 columns (after 100,000 rows) and {} s with 1,000, "
        "with LightGBM {} s and {} s.".format(*seconds)
    )
    fits = [
        n.value("regression/measures", each, "processor seconds") for each in ("coco", "lightgbm")
    ]
    yield "takes {:.1f} s of processor time on average (LightGBM {:.2f} s,".format(*fits)
    yield f'`unlabelled="soft"` {n.value("few-labels/means-others", "soft", "seconds"):.1f} s'


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.parquet")), ids=lambda file: file.name)
def test_rows_hold_no_path_of_a_machine(file):
    text = pd.read_parquet(file).astype(str).to_csv()
    assert not [place for place in ("/work", "/home", "/root", "folder:/") if place in text]


@pytest.fixture(scope="module")
def some(tmp_path_factory):
    """Findings of a store; tests give them rows and a spec of their own."""
    with Store(tmp_path_factory.mktemp("store") / "results.sqlite") as store:
        fill_accuracy(store, make_spec(models=MODELS, folds=N_FOLDS), infos_of(3))
        return read_findings(store)[0]


def findings_of(some, scores, *, mode="first", epochs=100):
    """Return findings of {(dataset, model): scores by fold}; all models but one are tuned."""
    rows = pd.DataFrame(
        [
            {"dataset": dataset, "model": model, "fold": k, "balanced_accuracy": score}
            | ({} if model == "coco-networks" else {"inner_score": 0.5})
            for (dataset, model), by_fold in scores.items()
            for k, score in enumerate(by_fold)
        ]
    )
    spec = {
        **some.spec,
        "models": {"names": list(dict.fromkeys(model for _, model in scores)), "own": {}},
        "tuning": {**some.spec["tuning"], "mode": mode},
        "training": {**some.spec["training"], "epochs": epochs},
    }
    return replace(some, rows=rows, spec=spec)


def made_up(models, n_datasets=4, seed=0):
    rng = np.random.default_rng(seed)
    return {
        (f"d{d}", model): rng.uniform(0.5, 0.9, size=N_FOLDS).tolist()
        for d in range(n_datasets)
        for model in models
    }


def cells_of(grid):
    return {
        row[0].text: dict(zip(grid.columns[1:], [cell.text for cell in row[1:]], strict=True))
        for row in grid.rows
    }


def error_of(values):
    return statistics.stdev(values) / len(values) ** 0.5


@pytest.mark.parametrize("kind", ["tuning", "epochs"])
def test_two_benchmarks_are_compared_on_the_datasets_that_both_have(script, some, kind):
    before, after = made_up(["coco", "rf", "ce"], seed=1), made_up(["rf", "coco"], 5, seed=2)
    after["d2", "coco"] = after["d2", "coco"][:-1]  # a fold is missing
    del before["d3", "rf"]
    few, many = findings_of(some, before), findings_of(some, after, epochs=500)
    comparisons = script("comparisons")
    grid = {"tuning": comparisons.tuning_grid, "epochs": comparisons.epochs_grid}[kind](few, many)
    names = {"tuning": ("on the first", "on each"), "epochs": ("100 epochs", "500 epochs")}[kind]
    start = {"tuning": 1, "epochs": 0}[kind]  # the first fold is tuned alike
    found = cells_of(grid)
    assert list(found) == ["rf", "coco"]
    for model, datasets in (("rf", ["d0", "d1", "d2"]), ("coco", ["d0", "d1", "d3"])):
        ours = [statistics.mean(before[d, model][start:]) for d in datasets]
        theirs = [statistics.mean(after[d, model][start:]) for d in datasets]
        gains = [b - a for a, b in zip(ours, theirs, strict=True)]
        assert found[model] == {
            "datasets": "3",
            names[0]: f"{statistics.mean(ours):.4f}",
            names[1]: f"{statistics.mean(theirs):.4f}",
            "difference": f"{statistics.mean(gains):+.4f}",
            "standard error": f"{error_of(gains):.4f}",
            "by dataset": f"{min(gains):+.4f} to {max(gains):+.4f}",
        }


def test_what_cannot_be_compared_is_empty_and_one_dataset_has_no_standard_error(script, some):
    comparisons = script("comparisons")
    one, full = findings_of(some, made_up(["coco"], 1)), findings_of(some, made_up(["coco"]))
    assert cells_of(comparisons.tuning_grid(one, one))["coco"]["standard error"] == MISSING
    empty = replace(full, rows=full.rows.iloc[:0][["dataset", "model", "fold"]])
    assert comparisons.tuning_grid(full, empty).rows == ()
    assert comparisons.tuning_grid(empty, full).rows == ()
    assert comparisons.optimism_grid(empty) is None
    nothing = findings_of(some, made_up(["rf"]))
    for row in comparisons.noise_grid(nothing, nothing).rows:
        assert [cell.text for cell in row[1:]] == ["0", MISSING, MISSING, MISSING]


def test_optimism_is_the_lead_over_the_first_fold_beyond_that_of_the_untuned_model(script, some):
    scores = made_up(["rf", "coco-networks", "coco"], 5)
    del scores["d1", "rf"]
    scores["d4", "coco-networks"] = scores["d4", "coco-networks"][:3]
    grid = script("comparisons").optimism_grid(findings_of(some, scores))

    def lead(dataset, model):
        return statistics.mean(scores[dataset, model][1:]) - scores[dataset, model][0]

    def beyond(dataset, model):
        return lead(dataset, model) - lead(dataset, "coco-networks")

    expected = {
        "rf": [beyond(d, "rf") for d in ("d0", "d2", "d3")],
        "coco": [beyond(d, "coco") for d in ("d0", "d1", "d2", "d3")],
        "mean of all": [(beyond(d, "rf") + beyond(d, "coco")) / 2 for d in ("d0", "d2", "d3")],
    }
    assert cells_of(grid) == {
        name: {
            "datasets": str(len(values)),
            "folds 1 to 4 less fold 0": f"{statistics.mean(values):+.4f}",
            "standard error": f"{error_of(values):.4f}",
        }
        for name, values in expected.items()
    }


@pytest.mark.parametrize(
    ("models", "mode"),
    [(["coco", "coco-networks"], "each"), (["coco", "rf"], "first"), (["coco-networks"], "first")],
)
def test_without_one_tuning_for_all_or_an_untuned_model_there_is_no_optimism(
    script, some, models, mode
):
    findings = findings_of(some, made_up(models), mode=mode)
    assert script("comparisons").optimism_grid(findings) is None


def test_datasets_count_as_begun_and_as_complete_with_all_models(script, tmp_path):
    lost = {
        "failed": {("table-01", "rf"), ("table-02", "rf")},
        "timed_out": {("table-02", "coco")},
        "left_open": {("table-03", "rf")} | {(f"table-0{k}", m) for k in (4, 5) for m in MODELS},
    }
    spec = make_spec(models=MODELS)
    with Store(tmp_path / "s.sqlite") as store:
        fill_accuracy(store, spec, infos_of(6), **lost)
        (found,) = read_findings(store)
        begun = begin(store, spec, infos_of(6))["table-04", "rf"]
        put(store, spec, begun, "trial", "0/0", Result({"score": 0.5}))
        (later,) = read_findings(store)
    said = script("page").said_of(found)
    # Tables 0 to 3 have a result or a failure; table 0 alone has those of both models.
    assert said.startswith("Datasets: 4 begun, 1 with all models complete. ")
    assert "that went wrong: 2 failed, 1 took too long. " in said
    assert script("page").said_of(later).startswith("Datasets: 5 begun, 1 with")


def test_a_model_that_was_not_planned_on_a_dataset_is_not_complete_there(script, some):
    said = script("page").said_of
    assert said(some).startswith("Datasets: 3 begun, 3 with all models complete. ")
    assert "went wrong" not in said(some)
    unplanned = (some.units["dataset"] == "table-01") & (some.units["model"] == "rf")
    some = replace(some, units=some.units[~unplanned])
    assert said(some).startswith("Datasets: 3 begun, 2 with all models complete. ")


@pytest.mark.parametrize("lacking", [(), ("accuracy", "coco"), ("imbalance", "coco-balanced")])
def test_noise_is_the_difference_of_two_runs_of_the_same_model(script, some, lacking):
    ratios = {"d0": 1.0, "d1": 2.0, "d2": 3.0, "d3": 5.0, "d4": 2.5, "d5": 9.0}
    again = made_up(["coco"], 6, seed=1)
    first = made_up(["coco-plain", "coco-balanced"], 6, seed=2)
    if lacking:  # a fold on a table of high ratio
        (again if lacking[0] == "accuracy" else first)["d3", lacking[1]].pop()
    imbalance = findings_of(some, first)
    imbalance.rows["class_ratio"] = imbalance.rows["dataset"].map(ratios)

    apart = {}
    for dataset, ratio in ratios.items():
        same = first[dataset, "coco-plain" if ratio < 3 else "coco-balanced"]
        ours = again[dataset, "coco"]
        if len(same) == len(ours) == N_FOLDS:
            apart[dataset] = statistics.mean(ours) - statistics.mean(same)
    assert len(apart) == 6 - bool(lacking)

    def line(values):
        deviation, size = statistics.stdev(values), statistics.mean(map(abs, values))
        mean = statistics.mean(values)
        return [str(len(values)), f"{mean:+.4f}", f"{deviation:.4f}", f"{size:.4f}"]

    grid = script("comparisons").noise_grid(findings_of(some, again), imbalance)
    assert [[cell.text for cell in row] for row in grid.rows] == [
        ["below 3: coco-plain", *line([x for d, x in apart.items() if ratios[d] < 3])],
        ["3 or more: coco-balanced", *line([x for d, x in apart.items() if ratios[d] >= 3])],
        ["all", *line(list(apart.values()))],
    ]


def scores_of(leads, *, n=12, noise=0.001):
    """Return scores of models that are so far below a first one, on a dozen tables."""
    rng = np.random.default_rng(0)
    first = rng.uniform(0.6, 0.9, size=n)
    others = {name: first - lead + noise * rng.normal(size=n) for name, lead in leads.items()}
    return pd.DataFrame({"ours": first} | others)


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_who_is_ahead_follows_from_the_corrected_test_and_its_sign(script, higher_is_better):
    sign = 1 if higher_is_better else -1
    scores = scores_of({"worse": 0.1 * sign, "same": 0.0, "better": -0.1 * sign}, noise=0.01)
    others = ["worse", "same", "better"]
    found = script("verdicts").versus(scores, others, "ours", higher_is_better=higher_is_better)
    assert found["verdict"].to_list() == ["ahead", "level", "behind"]
    assert found["wins"].to_list()[::2] == [12, 0]
    assert found["losses"].to_list()[::2] == [0, 12]
    assert found.loc["worse", "difference"] == pytest.approx(0.1 * sign, abs=0.01)
    assert found.loc["worse", "p"] == pytest.approx(3 * 2 / 2**12)  # Holm: the smallest of three


def test_without_enough_tables_for_significance_there_is_no_verdict(script):
    versus = script("verdicts").versus
    leads = {f"model {k}": 0.1 for k in range(3)}
    assert set(versus(scores_of(leads, n=5), list(leads), "ours")["verdict"]) == {"too few tables"}
    assert set(versus(scores_of(leads, n=6), list(leads), "ours")["verdict"]) == {"too few tables"}
    assert set(versus(scores_of(leads, n=7), list(leads), "ours")["verdict"]) == {"ahead"}


def test_infinite_scores_and_missing_ones_are_no_obstacle(script):
    scores = scores_of({"other": 0.1})
    scores.loc[0, "ours"], scores.loc[1, "other"] = np.nan, -np.inf
    (line,) = script("verdicts").versus(scores, ["other"], "ours").itertuples()
    assert (line.n, line.wins, line.verdict) == (11, 11, "ahead")


def test_verdicts_of_a_ranking_are_those_of_its_corrected_pairs(script, tmp_path):
    models = ("coco-default", "coco", "dr", "ce")
    with Store(tmp_path / "s.sqlite") as store:
        fill_accuracy(store, make_spec(models=models), infos_of(12))
        (found,) = read_findings(store)
    verdicts = script("verdicts")
    ranking = rank(found.rows, models, name="some", title="Some")
    lines = verdicts.of_ranking(ranking)
    p = ranking.pairs.p_values.loc[ranking.reference]
    for other, line in lines.iterrows():
        assert line["p"] == p[other]
        assert line["verdict"] == verdicts.verdict(line["p"], line["difference"])
    grid = verdicts.reference_grid(ranking)
    assert "p Nemenyi" not in grid.columns
    assert {row[0].text: row[-1].text for row in grid.rows} == lines["verdict"].to_dict()
    assert "p Nemenyi" in verdicts.reference_grid(ranking, both_nemenyi=True).columns


def test_a_sentence_names_those_that_are_ahead_level_and_behind(script):
    standing = script("verdicts").standing
    assert standing({"rf": "level", "ksvm": "behind", "ce": "level"}) == (
        "level with the random forest and cross-entropy, behind the kernel SVM"
    )
    assert standing(dict.fromkeys(("rf", "ksvm", "x"), "ahead")) == (
        "ahead of all three (the random forest, the kernel SVM and x)"
    )


@pytest.mark.parametrize("state", ["done", "begun", "timed out"])
def test_tables_that_lack_a_model_are_named_until_all_are_there(script, tmp_path, state):
    models = ("coco-default", "rf-w")
    lacking = {("table-02", "rf-w")}
    options = {"begun": {"left_open": lacking}, "timed out": {"timed_out": lacking}}
    with Store(tmp_path / "s.sqlite") as store:
        fill_accuracy(store, make_spec(models=models), infos_of(8), **options.get(state, {}))
        (found,) = read_findings(store)
    found = replace(found, rows=found.rows.eval("log_loss = 1 - balanced_accuracy"))
    planned = [f"table-{k:02}" for k in range(9 if state == "begun" else 8)]
    spec = {"data": {"datasets": planned}, "limits": {"seconds_per_task": "30m"}}
    defaults = script("defaults")
    parts = dict(defaults.parts_of_default(found, analyse(found), spec))
    assert (
        parts[f"{found.name}/progress"].text
        == {
            "done": "All 8 tables have results of all models.",
            "begun": "7 of the 9 tables have results of all models, and only these are compared."
            " Some models have not run yet on 2 tables.",
            "timed out": "7 of the 8 tables have results of all models, and only these are "
            "compared. The random forest took longer than 30 minutes on table-02.",
        }[state]
    )
    whole = found.rows if state == "done" else found.rows[found.rows["dataset"] != "table-02"]
    means = whole.groupby("model")["balanced_accuracy"].mean()
    cells = cells_of(parts[f"{found.name}/complete"])
    assert {m: of["balanced accuracy"] for m, of in cells.items()} == {
        model: f"{means[model]:.4f}" for model in models
    }
    assert {of["peak MB, mean"] for of in cells.values()} == {"50"}
    counts = [int(k) for k in cells["rf-w"]["coco-default won / tied / lost"].split(" / ")]
    assert sum(counts) == whole["dataset"].nunique()


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("regression", "hgb"),
        ("ordinal", "rf"),
        ("accuracy-lite", "ksvm"),
        ("imbalance-lite", "coco-plain"),  # an experiment in a file of its own
    ],
)
def test_a_cell_that_is_computed_again_is_tuned_as_its_rows_were(script, name, model):
    spec = load_spec(ROOT / "paper" / f"{name}.toml")
    alone = script("rerun").one_cell(spec, "some-table", model, "folder:somewhere")
    assert (alone.tunes, alone.tuning.trials.get(model)) == (
        spec.tunes,
        spec.tuning.trials.get(model),
    )


def test_templates_have_no_measured_number_of_their_own():
    """Numbers with decimals come from rows, but for these: settings, levels, the theory's."""
    constants = {"0.1", "0.5", "1.5", "0.05", "0.01", "28.6", ".80", ".93", ".85", ".75"}
    for file in sorted((FOLDER / "pages").glob("*.md")):
        text = re.sub(r"{{.*?}}|{%.*?%}|`[^`]*`|\]\([^)]*\)", "", file.read_text(), flags=re.DOTALL)
        assert set(re.findall(r"\d*\.\d+", text)) <= constants, file.name
        said = ("cannot be told apart", "ahead of every", "significantly ahead")
        assert [words for words in said if words in text] == [], file.name
