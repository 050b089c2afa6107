"""The folder of a benchmark report: every form says the same, and each file is whole."""

import json
import math
import re
import shutil
import subprocess
import sys

import pandas as pd
import pytest
from click.testing import CliRunner

from cocoloss.benchmark.analysis import read_findings
from cocoloss.benchmark.store import Store
from cocoloss.cli.bench import report as report_command
from cocoloss.cli.compare import as_scores
from cocoloss.exceptions import CoCoError
from cocoloss.report import bench_report
from cocoloss.report.bench_report import write_bench_report
from cocoloss.report.document import MISSING, brief, fixed, p_value, signed, stand_out
from cocoloss.report.markup import as_markdown, escape_latex
from cocoloss.stats import compare
from synthetic_store import (
    PAPER,
    SKILLS,
    analyse,
    begin,
    build_document,
    fill_accuracy,
    fill_convergence,
    fill_evolution,
    infos_of,
    make_spec,
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("store") / "results.sqlite") as opened:
        fill_accuracy(opened, make_spec(), infos_of(8), failed={("table-01", "ce")})
        spec = make_spec("convergence", models=["coco", "dr"])
        fill_convergence(opened, spec, infos_of(3), n_terms=(64, 1024))  # a diagram for each
        names = ["coco-plain", "coco-balanced"]
        fill_accuracy(opened, make_spec("imbalance", models=names), infos_of(5))
        fill_evolution(opened, make_spec("evolution", models=["coco"]), infos_of(1, ["a/b ü"]))
        yield opened


@pytest.fixture
def begun(tmp_path):
    """A store without results, whose report has no pictures and so is quick to write."""
    with Store(tmp_path / "begun.sqlite") as opened:
        begin(opened, make_spec(models=["coco", "dr"]), infos_of(2))
        yield opened


@pytest.fixture(scope="module")
def folder(store, tmp_path_factory):
    target = tmp_path_factory.mktemp("report") / "new" / "folder"
    write_bench_report(store, target, experiments=[PAPER])
    return target


@pytest.fixture(scope="module")
def ranking(store):
    findings = read_findings(store, ("accuracy-made-up",))[0]
    return analyse(findings).rankings[0]


def test_a_page_says_nothing_of_tuning_and_networks_that_nobody_asked_for(tmp_path, begun):
    no_tuning = {"tuning": {"trials_per_hyperparameter": 0}}
    with Store(tmp_path / "trees.sqlite") as opened:
        fill_accuracy(opened, make_spec(models=["rf", "ksvm"], **no_tuning), infos_of(3))
        write_bench_report(opened, tmp_path / "trees")
    text = (tmp_path / "trees" / "report.md").read_text().partition("#### The spec")[0]
    assert "\nModels with their usual settings, judged on outer folds.\n" in text
    assert "10 outer folds; no tuning; seed 0." in text
    for word in ("tuned", "inner", "epochs", "etworks"):
        assert word not in text
    write_bench_report(begun, tmp_path / "begun")
    text = (tmp_path / "begun" / "report.md").read_text()
    assert "Models tuned on inner folds and judged on outer ones." in text
    assert "10 trials per hyperparameter on 3 inner folds" in text


def test_writes_every_form(folder):
    names = {path.name for path in folder.iterdir()}
    assert {"index.html", "report.md", "report.tex", "report.json", "figures"} <= names
    assert "accuracy-made-up-scores.csv" in names
    assert not [path for path in folder.rglob("*") if ".part" in path.name]


def test_drawings_come_as_svg_png_and_pdf(folder):
    marks = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}
    (panels,) = (folder / "figures").glob("evolution-made-up-a-b-*-coco.png")
    for name in (
        "accuracy-made-up-all",
        "convergence-made-up-paper-curves",
        "imbalance-made-up-imbalance-inner-score",
        panels.stem,
    ):
        for suffix, mark in marks.items():
            assert (folder / "figures" / f"{name}{suffix}").read_bytes().startswith(mark)


def test_where_nothing_is_significant_only_ranks_by_means_are_drawn(tmp_path):
    spec = make_spec(models=["ksvm", "hgb"], folds=3)
    with Store(tmp_path / "s.sqlite") as store:
        fill_accuracy(store, spec, infos_of(2), seed=1)
        findings = read_findings(store)
    analysis = analyse(findings[0])
    assert set(analysis.rankings[0].comparison.average_ranks) == {1.0}
    document = build_document(findings, [analysis], ["x"])
    assert [picture.name for picture in document.pictures()] == ["x-all-by-mean"]
    assert "No model is significantly better" in as_markdown(document, "figures")


def test_every_file_that_a_form_names_is_there(folder):
    markdown = (folder / "report.md").read_text()
    latex = (folder / "report.tex").read_text()
    page = (folder / "index.html").read_text()
    named = set(re.findall(r"\]\((figures/[^)]+)\)", markdown))
    named |= set(re.findall(r"\\(?:input|includegraphics\[.*?\])\{(figures/[^}]+)\}", latex))
    named |= set(re.findall(r'href="(figures/[^"]+)"', page))
    assert len(named) > 20
    assert all((folder / name).is_file() for name in named)


def test_json_holds_the_comparison(folder, ranking):
    found = json.loads((folder / "report.json").read_text())
    kinds = {b["kind"]: b for b in found["benchmarks"]}
    assert set(kinds) == {"accuracy", "convergence", "imbalance", "evolution"}
    ours = kinds["accuracy"]["analysis"]["rankings"][0]
    ranks = ranking.comparison.average_ranks
    assert ours["comparison"]["average_ranks"] == ranks.to_dict()
    assert ours["comparison"]["critical_distance"] == ranking.comparison.critical_distance
    assert kinds["accuracy"]["missing"][0]["reason"] == "LinAlgError: <singular> & failed"


def test_markdown_and_latex_hold_the_same_ranks(folder, ranking):
    markdown = (folder / "report.md").read_text()
    latex = (folder / "report.tex").read_text()
    for model, rank in ranking.comparison.average_ranks.items():
        mean = f"{ranking.comparison.mean_scores[model]:.4f}"
        text = f"{rank:.2f}"
        assert re.search(rf"^\| {model} \| \**{mean}\** \| \**{text}\** \|", markdown, re.MULTILINE)
        bold = r"(\\textbf\{)?"
        assert re.search(rf"^{model} & {bold}{mean}\}}? & {bold}{text}\}}? &", latex, re.MULTILINE)
    for said in ("What is missing", "coco against each other model", "Dataset by dataset"):
        assert said in markdown
        assert said in latex
    for block in re.findall(r"(?:^\|.*\n)+", markdown, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1


def test_latex_is_balanced_and_escaped(folder):
    latex = (folder / "report.tex").read_text()
    begun = re.findall(r"\\begin\{(\w+)\}", latex)
    ended = re.findall(r"\\end\{(\w+)\}", latex)
    assert sorted(begun) == sorted(ended)
    assert r"\textless{}singular\textgreater{} \& failed" in latex
    bare = re.sub(r"\\.", "", latex)
    assert bare.count("{") == bare.count("}")
    tables = [part.partition("}\n") for part in latex.split(r"\begin{tabular}{")[1:]]
    assert len(tables) > 5
    for shape, _, rest in tables:
        columns = len(re.sub(r"p\{.*?\}", "l", shape))
        body = rest.partition(r"\end{tabular}")[0]
        rows = [re.sub(r"\\shortstack\[r\]\{.*?\}", "", line) for line in body.splitlines()]
        counts = {len(re.findall(r"(?<!\\)&", row)) for row in rows if row.endswith(r"\\")}
        assert counts == {columns - 1}


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("a_b & 50%", r"a\_b \& 50\%"),
        ("$x$ {a} #", r"\$x\$ \{a\} \#"),
        ("~^\\", r"\textasciitilde{}\textasciicircum{}\textbackslash{}"),
        ("<|>", r"\textless{}\textbar{}\textgreater{}"),
        # A whole run is raised at once: LaTeX refuses one superscript after another.
        ("χ² < 10⁻⁵", r"$\chi$\textsuperscript{2} \textless{} 10\textsuperscript{$-$5}"),
        ("x⁰¹", r"x\textsuperscript{01}"),
    ],
)
def test_latex_escapes_what_it_would_not_print(text, latex):
    assert escape_latex(text) == latex


@pytest.mark.parametrize(
    ("cell", "text", "best"),
    [
        (fixed(0.125, 2), "0.12", False),
        (fixed(math.inf, 2), "∞", False),
        (fixed(None, 2), MISSING, False),
        (p_value(0.0312), "0.0312", True),
        (p_value(0.5), "0.500", False),
        (p_value(1e-301), "<10⁻³⁰⁰", True),
        (signed(0.5, 2), "+0.50", False),
        (signed(None, 2), MISSING, False),
        (brief(3.21e-5), "3.2×10⁻⁵", False),  # noqa: RUF001 - as shown
        *((cell, "0.80", True) for cell in stand_out([fixed(0.801, 2), fixed(0.799, 2)])),
    ],
)
def test_cells_read_as_numbers_do_and_the_best_stands_out(cell, text, best):
    assert (cell.text, cell.best) == (text, best)


def there_is_latex():
    if not (shutil.which("pdflatex") and shutil.which("kpsewhich")):
        return False
    styles = ["longtable.sty", "booktabs.sty"]
    found = subprocess.run(["kpsewhich", *styles], capture_output=True, check=False)  # noqa: S607
    return len(found.stdout.splitlines()) == len(styles)


@pytest.mark.skipif(not there_is_latex(), reason="no LaTeX here")
def test_pdflatex_sets_the_whole_report_within_its_margins(tmp_path):
    strange = [
        "שלום",
        "a_b",
        "50% & <more>",
        "~^\\{}$#|",
        "n" * 40,
        "ĦŦĸſ é",
        "$−5 $∞",  # noqa: RUF001 - a minus sign
        "a\u0081\u0007b",
    ]
    with Store(tmp_path / "results.sqlite") as store:
        models = [*SKILLS, "hgb", "hgb-w", "rf-w", "ce-w", "ksvm-w", "coco-w", "coco-default"]
        broken = {"failed": {("table-05", "ce")}, "one_point": {("table-06", "dr")}}
        fill_accuracy(store, make_spec(models=models), infos_of(45, strange), **broken)
        names = ["coco-plain", "coco-s0.25", "coco-balanced"]
        fill_accuracy(store, make_spec("imbalance", models=names), infos_of(5))
        fill_convergence(store, make_spec("convergence", models=["coco", "dr"]), infos_of(3))
        fill_evolution(store, make_spec("evolution", models=["coco"]), infos_of(1))
        write_bench_report(store, tmp_path / "report", experiments=[PAPER])
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "report.tex"]
    told = subprocess.run(
        command, cwd=tmp_path / "report", capture_output=True, check=False, stdin=subprocess.DEVNULL
    )
    said = told.stdout.decode(errors="replace")
    assert told.returncode == 0, said[-2000:]
    too_wide = [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt", said)]
    assert max(too_wide, default=0) < 20


def test_the_scores_can_be_compared_again(folder, ranking):
    scores = as_scores(pd.read_csv(folder / "accuracy-made-up-scores.csv"))
    again = compare(scores, ranking="folds", missing="drop_datasets")
    expected = ranking.comparison.average_ranks.to_dict()
    assert again.average_ranks.to_dict() == pytest.approx(expected)


def test_the_same_store_gives_the_same_files(store, folder, begun, tmp_path):
    one = {"names": ("imbalance-made-up",), "experiments": [PAPER]}
    again = write_bench_report(store, tmp_path / "again", **one)[:-4]
    assert len(again) > 3
    for path in again:  # pictures and scores
        same = folder / path.relative_to(tmp_path / "again")
        assert path.read_bytes() == same.read_bytes()
    first, second = (write_bench_report(begun, tmp_path / name) for name in ("first", "second"))
    assert [path.name for path in first] == [path.name for path in second]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_a_failure_leaves_the_earlier_report_as_it_was(begun, tmp_path, monkeypatch):
    target = tmp_path / "report"
    target.mkdir()
    (target / "mine.txt").write_text("mine")
    (target / "index.html").write_text("earlier")

    def broken(*_args):
        raise CoCoError("broken")

    monkeypatch.setattr(bench_report, "as_latex", broken)
    with pytest.raises(CoCoError, match="broken"):
        write_bench_report(begun, target)
    assert sorted(p.name for p in target.iterdir()) == ["index.html", "mine.txt"]
    assert (target / "index.html").read_text() == "earlier"
    monkeypatch.undo()
    write_bench_report(begun, target)
    assert (target / "mine.txt").read_text() == "mine"
    assert (target / "index.html").read_text() != "earlier"


def test_a_place_that_is_no_folder_is_refused(store, tmp_path):
    (tmp_path / "file").write_text("")
    for name, said in (
        ("file", "it is a file; name a folder"),
        ("mine.html", r"a report is a folder with .* such as .*mine$"),
    ):
        with pytest.raises(CoCoError, match=said):
            write_bench_report(store, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_experiment_that_is_not_there_is_named_with_the_remedy(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "evolution", raising=False)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(PAPER)])
    with pytest.raises(CoCoError, match=r"no experiment 'evolution'.*--experiments FOLDER"):
        write_bench_report(store, tmp_path / "out", names=("evolution-made-up",))


def test_two_benchmarks_of_one_name_have_files_of_their_own(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        for epochs in (5, 10):
            spec = make_spec(models=["coco", "rf"], name="same", training={"epochs": epochs})
            begin(store, spec, infos_of(3))
        write_bench_report(store, tmp_path / "out")
    assert len(list((tmp_path / "out").glob("same-*-scores.csv"))) == 2


@pytest.mark.parametrize("kind", ["accuracy", "convergence", "imbalance", "evolution"])
def test_a_benchmark_that_has_just_begun_has_a_report(tmp_path, kind):
    spec = make_spec(kind, models=["coco", "dr"])
    with Store(tmp_path / "s.sqlite") as store:
        begin(store, spec, infos_of(2))
        write_bench_report(store, tmp_path / "out", experiments=[PAPER])
    assert "not finished yet" in (tmp_path / "out" / "report.md").read_text()


def test_the_command_says_where_the_page_is_and_loads_nothing_that_computes(
    begun, tmp_path, monkeypatch
):
    monkeypatch.setattr(bench_report, "load_experiment", lambda *_: 1 / 0)
    args = [begun.name, "--out", str(tmp_path / "out"), "--name", "accuracy-made-up"]
    result = CliRunner().invoke(report_command, args)
    assert result.exit_code == 0
    assert f"wrote {tmp_path / 'out' / 'index.html'}" in result.output
    found = json.loads(CliRunner().invoke(report_command, [*args, "--json"]).output)
    assert found["page"] == str(tmp_path / "out" / "index.html")
