"""The pages of results are what the committed rows make of them, and so are figures elsewhere."""

import importlib
import json
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cocoloss.benchmark.analysis import read_findings
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.tasks import Result
from cocoloss.report.document import MISSING
from synthetic_store import begin, fill_accuracy, infos_of, make_spec, put

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


def test_figures_of_the_readme_and_the_first_page_are_those_of_the_rows(made):
    page, parts, *_ = made
    n = page.Numbers(parts)
    said = {
        "README.md": [
            *on_66_tables(n),
            *on_other_tasks(n),
            *when_not_to_use_it(n),
            *of_what_it_costs(n),
            f"a tuned CoCo network ({n.score('coco')}) and a kernel SVM ({n.score('ksvm')}) lead",
        ],
        "docs/choosing.md": list(how_long_it_takes(n)),
        "docs/index.md": [
            f"mean balanced accuracy is {n.score('coco-default')}; ",
            (
                f"a tuned kernel SVM has {n.score('ksvm-w')}, tuned boosted trees "
                f"{n.score('hgb-w')}, LightGBM with default settings {n.score('lightgbm-default')}."
            ),
        ],
    }
    for path, sentences in said.items():
        text = " ".join((ROOT / path).read_text(encoding="utf-8").split())
        assert [sentence for sentence in sentences if sentence not in text] == [], path


def on_66_tables(n):
    """What README says of the default beside its baselines, from the rows."""
    lines = {  # label, model, tuned, line of the costs
        "`CoCoClassifier()`": ("coco-default", "no", OURS),
        "kernel SVM": ("ksvm-w", "20 trials", "kernel SVM (ksvm-w)"),
        "boosted trees (scikit-learn)": ("hgb-w", "12 trials", "HistGradientBoosting (hgb-w)"),
        "cross-entropy network": ("ce-w", "18 trials", "cross-entropy (ce-w)"),
        "random forest": ("rf-w", "3 trials", "random forest (rf-w)"),
        "LightGBM": ("lightgbm-default", "no", "LightGBM (lightgbm-default)"),
    }
    for label, (model, tuned, costs) in lines.items():
        cells = [
            n.score(model),
            MISSING if model == "ksvm-w" else n.score(model, "log loss"),
            n.cell("accuracy-lite/default/ranks", model, "rank by mean"),
        ]
        best = [f"**{cell}**" if model == "coco-default" else cell for cell in cells]
        seconds = n.value("accuracy-lite/costs", costs, "seconds in all")
        yield f"| {label} | {tuned} | {' | '.join(best)} | {seconds:.2g} |"
    for model in n.tables["accuracy-lite/default/ranks"]:
        assert n.score(model) <= n.score("coco-default")
    for model in (duels := n.tables["accuracy-lite/default/reference"]):
        assert duels[model]["p Wilcoxon-Holm"].value < 0.05  # significantly ahead of each
        assert duels[model]["p Nemenyi"].value > 0.05  # by the paper's ranking, tied
    yield f"mean balanced accuracy is {n.score('coco-default')}; a tuned kernel SVM has"
    yield (
        f"kernel SVM has {n.score('ksvm-w')}, tuned boosted trees {n.score('hgb-w')}, "
        f"LightGBM with default settings {n.score('lightgbm-default')}."
    )
    yield "Against the SVM it won {} tables and lost {}.".format(
        *(duels["ksvm-w"][column].text for column in ("wins", "losses"))
    )
    seconds = n.value("accuracy-lite/costs", OURS, "seconds in all")
    yield f"A fit takes {seconds:.1f} s on one core"
    yield f"the most accurate, at {seconds:.1f} seconds]"


def on_other_tasks(n):
    """What README says of other tables and targets, from the rows."""
    mean = "mean balanced accuracy"
    small = [
        n.value("accuracy-small/default/ranks", f"{model}-default", mean)
        for model in ("coco", "realmlp", "xrfm", "catboost")
    ]
    yield (
        f"[{n.complete('accuracy-small')} of 20 tables of at most 1,000 rows]"
        "(docs/results/default.md) | balanced accuracy {:.3f}; with default settings RealMLP "
        "{:.3f}, xRFM {:.3f}, CatBoost {:.3f} |".format(*small)
    )
    large = [
        n.value("accuracy-large/default/ranks", model, mean)
        for model in ("coco-default", "ksvm-w", "catboost-w", "lightgbm-w")
    ]
    duels = n.tables["accuracy-large/default/reference"]
    won, lost = (duels["lightgbm-w"][column].text for column in ("wins", "losses"))
    assert min(row["p Wilcoxon-Holm"].value for row in duels.values()) > 0.05  # as README says
    scores = n.tables["accuracy-large/measures"]
    for trees in ("lightgbm-w", "hgb-raw-w", "catboost-w"):
        assert scores[trees]["accuracy"].value > scores["coco-default"]["accuracy"].value
        assert scores[trees]["log loss"].value < scores["coco-default"]["log loss"].value
    yield (
        f"[{n.complete('accuracy-large')} of 31 tables of 2,000 to 50,000 rows]"
        "(docs/results/default.md) | balanced accuracy "
        "{:.3f}; kernel SVM {:.3f}, CatBoost {:.3f}, LightGBM {:.3f} ".format(*large)
        + f"({won} tables won, {lost} lost); no difference is significant."
    )
    coverage = n.value("regression/measures", "coco", "within intervals of 0.9")
    yield (
        f"RMSE {n.value('regression/ratios', 'lightgbm', 'geometric mean'):.2f} of LightGBM's, "
        f"{n.value('regression/ratios', 'catboost', 'geometric mean'):.2f} of CatBoost's "
        f"(geometric means); intervals of 90 % cover {100 * coverage:.1f} %"
    )
    yield "mean absolute error {} levels; CatBoost {}, LightGBM {} |".format(
        *(
            n.cell("ordinal/measures", model, "mean absolute error").strip("*")
            for model in ("coco-median", "catboost", "lightgbm")
        )
    )
    gains = n.tables["few-labels/gains-others"]["soft"]
    yield "labels per class: balanced accuracy {}, {}, {} by unlabelled rows".format(
        *(gains[f"{labels} labels of each class"].text for labels in (5, 10, 20))
    )


def when_not_to_use_it(n):
    """What README says of where the default is ahead or behind, from the rows."""
    noise = [
        n.value("learnt-metric/noise-balanced-accuracy", model, added)
        for model in ("closed form", "LightGBM")
        for added in ("0", "500")
    ]
    yield "goes from {:.3f} to {:.3f}, that of LightGBM from {:.3f} to {:.3f} (".format(*noise)
    accuracies = [n.score(model, "accuracy") for model in ("coco-default", "rf", "ksvm")]
    yield "default**: {}, where a forest has {} and a kernel SVM {}.".format(*accuracies)
    ours = 'CoCoClassifier(priors="empirical")'
    plain = [n.value("accuracy-lite/plain", model, "accuracy") for model in (ours, "rf")]
    yield "on the first two folds it has {:.3f}, a forest {:.3f}.".format(*plain)
    adult = rows_of("large.jsonl").query("table == 'adult'").set_index("model")
    behind = 100 * (adult["balanced accuracy"] - adult["balanced accuracy"]["CoCoClassifier()"])
    yield (
        f"On adult, with {adult['rows'].iloc[0]:,} rows, boosted trees are {behind['hgb-w']:.1f} "
        f"to {behind['lightgbm-w']:.1f} percentage points better."
    )
    madelon = n.tables["accuracy-lite/default/extremes"]["madelon"]
    yield f"(madelon: {madelon['coco-default'].text}, the best baseline {madelon['best'].text})"
    yield "of `make demo`: {:.3f}, boosted trees {:.3f})".format(
        *(n.value("demo/tables", model, "bands") for model in ("CoCo", "boosted trees"))
    )
    won, _, lost = n.cell(
        "accuracy-lite/default/wins", "share of categorical columns: 50% or more", "against best"
    ).split(" / ")
    yield f"ahead of the best baseline on {won}, behind on {lost}."


def of_what_it_costs(n):
    """What README says of seconds and memory, from the rows."""
    svm = n.value("accuracy-lite/costs", "kernel SVM (ksvm-w)", "seconds of one fit")
    yield f"An untuned kernel SVM fits small tables in {svm:.2f} s"
    columns = [
        n.value("scaling/predict", "1,000 columns", f"s: {model}")
        for model in ("CoCoClassifier()", "LightGBM")
    ]
    yield "10,000 rows of 1,000 columns take {:.1f} s, with LightGBM {:.2f} s.".format(*columns)
    sizes = [f"{rows} rows" for rows in ("1,000", "3,000", "10,000", "100,000", "1,000,000")]
    for label, column in {
        "processor seconds": "s: CoCoClassifier()",
        "LightGBM": "s: LightGBM",
        "megabytes": "MB: CoCoClassifier()",
    }.items():
        yield f"| {label} | {' | '.join(n.cell('scaling/fit', size, column) for size in sizes)} |"
    for size in (size for size in n.tables["scaling/fit"] if "rows" in size):
        ours, *trees = (n.value("scaling/fit", size, f"s: {model}") for model in SCALED)
        assert ours > max(trees)  # faster at every number of rows
    seconds = json.loads((BENCH / "losses.json").read_text(encoding="utf-8"))["seconds"]
    for batch, formats in {
        "64": ("{:.1f}", "{:.1f}", "{:.1f}"),
        "1024": ("{:.1f}", "{:.1f}", "{:.0f}"),
        "4096": ("{:.1f}", "{:.0f}", MISSING),
        "1000000": ("{:.2f}", MISSING, MISSING),
    }.items():
        of = seconds[batch]
        ratios = [of["coco"] / of["cross-entropy"]]
        ratios += [of.get(other, 0) / of["coco"] for other in ("pairwise", "supcon")]
        cells = [form.format(ratio) for form, ratio in zip(formats, ratios, strict=True)]
        unit = f"{of['coco']:.2g} s" if of["coco"] > 0.1 else f"{1000 * of['coco']:.2g} ms"
        yield f"| {int(batch):,} | {unit} | {' | '.join(cells)} |"


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


def rows_of(name):
    return pd.read_json(BENCH / name, lines=True)


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
