"""The page of results has the numbers of the committed rows, and its parts say what they say."""

import re
import statistics
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cocoloss.benchmark.analysis import analyse
from cocoloss.benchmark.findings import read_findings
from cocoloss.benchmark.rankings import rank
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.tasks import Result
from cocoloss.report.document import MISSING, Items
from cocoloss.report.markup import block_as_markdown
from synthetic_store import begin, fill_accuracy, infos_of, make_spec, put

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "results"
MODELS = ("coco", "rf")
N_FOLDS = 5


def test_the_page_has_the_numbers_of_the_rows():
    command = [sys.executable, FOLDER / "page.py", "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_every_picture_of_the_page_is_there():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    named = {part.partition(")")[0] for part in page.split("](images/results/")[1:]}
    assert named
    assert named == {path.name for path in (ROOT / "docs" / "images" / "results").iterdir()}


def test_untuned_models_on_47_tables_are_as_the_command_prints_them():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    section = page.partition("## 47 tables")[2].partition("\n## ")[0]
    command = [sys.executable, ROOT / "bench" / "tables.py", "--summary"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    table = re.findall(r"^\| (?!model)(.*) \|$", section, re.MULTILINE)
    lines = {" ".join(line.replace("*", "").replace(MISSING, "nan").split(" | ")) for line in table}
    cells = {" ".join(line.replace("│", " ").split()) for line in printed.splitlines()}
    assert len(lines) == 9
    assert lines <= cells

    leads = set(re.findall(r"([\w-]+) ([+-]\d+\.\d)", " ".join(section.split())))
    assert len(leads) == 12
    assert leads <= {tuple(line.split()[:2]) for line in cells if line}
    assert "13 won, 4 tied and 30 lost" in section
    assert "13 won, 4 tied, 30 lost" in printed
    assert "median lead is 0.0 points, with 24 won, 3 tied and 20 lost" in " ".join(section.split())
    assert "svc-w 24 3 20 +0.9 +0.0" in cells
    assert {"coco 49 250", "rf 13 175", "svc 3 177"} <= cells  # megabytes


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
            | ({} if model == "coco-default" else {"inner_score": 0.5})
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
    shortcuts = script("shortcuts")
    grid = {"tuning": shortcuts.tuning_grid, "epochs": shortcuts.epochs_grid}[kind](few, many)
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


def test_one_dataset_has_no_standard_error(script, some):
    one = findings_of(some, made_up(["coco"], 1))
    assert cells_of(script("shortcuts").tuning_grid(one, one))["coco"]["standard error"] == MISSING


def test_benchmarks_without_a_common_result_have_an_empty_table(script, some):
    full, empty = findings_of(some, made_up(["coco"])), findings_of(some, made_up(["coco"]))
    empty = replace(empty, rows=empty.rows.iloc[:0][["dataset", "model", "fold"]])
    shortcuts = script("shortcuts")
    assert shortcuts.tuning_grid(full, empty).rows == ()
    assert shortcuts.tuning_grid(empty, full).rows == ()
    assert shortcuts.optimism_grid(empty) is None


def test_parts_of_several_benchmarks_are_there_if_both_are(script, some):
    page, one = script("page"), findings_of(some, made_up(["coco"]))
    names = ("accuracy-lite", "accuracy-each", "accuracy-epochs")
    assert list(page.parts_of_several(dict.fromkeys(names, one))) == [
        "accuracy-each/tuning",
        "accuracy-epochs/epochs",
    ]
    assert not page.parts_of_several(dict.fromkeys(names[1:], one))
    assert not page.parts_of_several({"accuracy-lite": one})


def test_optimism_is_the_lead_over_the_first_fold_beyond_that_of_the_untuned_model(script, some):
    scores = made_up(["rf", "coco-default", "coco"], 5)
    del scores["d1", "rf"]
    scores["d4", "coco-default"] = scores["d4", "coco-default"][:3]
    grid = script("shortcuts").optimism_grid(findings_of(some, scores))

    def lead(dataset, model):
        return statistics.mean(scores[dataset, model][1:]) - scores[dataset, model][0]

    def beyond(dataset, model):
        return lead(dataset, model) - lead(dataset, "coco-default")

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
    [(["coco", "coco-default"], "each"), (["coco", "rf"], "first"), (["coco-default"], "first")],
)
def test_without_one_tuning_for_all_or_an_untuned_model_there_is_no_optimism(
    script, some, models, mode
):
    findings = findings_of(some, made_up(models), mode=mode)
    assert script("shortcuts").optimism_grid(findings) is None
    assert not [n for n, _ in script("page").parts_of(findings, analyse(findings)) if "opt" in n]


def test_optimism_is_a_part_of_its_benchmark(script, some):
    findings = findings_of(some, made_up(["coco", "coco-default"]))
    parts = dict(script("page").parts_of(findings, analyse(findings)))
    assert parts["accuracy-made-up/optimism"].columns[0] == "model"


def test_notes_are_shown_where_there_are_some(script, some):
    page = script("page")
    gappy = findings_of(some, made_up(["coco", "rf"]) | {("d9", "coco"): [0.5] * N_FOLDS})
    parts = dict(page.parts_of(gappy, analyse(gappy)))
    notes = parts["accuracy-made-up/all/notes"]
    assert isinstance(notes, Items)
    assert "- 1 of 5 datasets are left out" in block_as_markdown(notes, "")

    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        [(f"d{d}", m, k, rng.random()) for d in range(8) for m in "ab" for k in range(8)],
        columns=["dataset", "model", "fold", "balanced_accuracy"],
    )
    whole = rank(rows, ["a", "b"], name="all", title="All")
    assert not whole.notes
    analysis = replace(analyse(some), rankings=(whole,), dispersity=())
    quiet = dict(page.parts_of_accuracy("x", analysis))
    assert "x/all/ranks" in quiet
    assert "x/all/notes" not in quiet


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
