"""Make docs/results.md, the pages in docs/results/ and their pictures from the rows in this folder.

    make results                        (or: python results/page.py)
    python results/page.py --check      says whether the pages are what the rows make of them
    python results/page.py --list       names everything that a page can show

The pages are templates in `pages/`. What they show are tables and pictures of `cocoloss bench
report`, and numbers that are read off these tables: no number is written by hand.
"""

import argparse
import json
import os
import statistics
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from cocoloss.benchmark.analysis import Findings, Ranking, read_findings
from cocoloss.benchmark.export import merge_into
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.tasks import FAILED, OK, OPEN, TIMEOUT
from cocoloss.files import write_whole
from cocoloss.report import bench_rankings
from cocoloss.report.bench_report import Chapter, read_chapters
from cocoloss.report.bench_sections import measures_grid
from cocoloss.report.document import Block, Grid, Items, Picture, Text
from cocoloss.report.figures import figure_bytes
from cocoloss.report.markup import block_as_markdown
from comparisons import (
    demo_parts,
    epochs_grid,
    noise_grid,
    optimism_grid,
    tuning_grid,
    untuned_grids,
)
from costs import cost_parts
from defaults import (
    DEFAULT,
    full_size_parts,
    large_parts,
    ordinal_parts,
    parts_of_default,
    parts_of_numbers,
    plain_parts,
)
from measured import few_label_parts, metric_parts
from theory import posterior_parts, solver_parts
from verdicts import (
    EXPLAINED,
    SAID,
    in_words,
    listed,
    p_text,
    ranks_grid,
    reference_grid,
    standing,
)

HERE = Path(__file__).parent
ROOT = HERE.parent
DOCS = ROOT / "docs"
PICTURES = DOCS / "images" / "results"
PAPER = ROOT / "paper"
STORE = ROOT / "build" / "results.sqlite"
OF_THE_PAPER = ("accuracy-lite", "imbalance-lite")  # where its own test of ranks is shown
WRONG = {FAILED: "failed", TIMEOUT: "took too long"}


def parts_of(chapter: Chapter) -> Iterator[tuple[str, Block]]:
    """Yield everything that can be shown of a benchmark, with its name."""
    findings, analysis = chapter.findings, chapter.analysis
    name = findings.name
    yield f"{name}/about", Text(said_of(findings))
    kind: Any = chapter.module
    if findings.kind == "convergence":
        for head in analysis.heads:
            yield f"{name}/{head}/ranks", kind.rank_grid(analysis, head)
            yield f"{name}/{head}/ranks-by-mean", kind.rank_grid(analysis, head, by_mean=True)
            yield f"{name}/{head}/means", kind.mean_grid(analysis, head)
            yield f"{name}/{head}/curves", kind.curves(analysis, head, name)
    elif findings.kind == "evolution":
        for run in analysis.runs:
            where = f"{name}/{run.dataset}/{run.model}"
            yield f"{where}/panels", kind.panels(run, name)
            yield f"{where}/measures", kind.measures_grid(run)
    else:
        yield from parts_of_accuracy(name, analysis)
        yield from parts_of_kind(findings, analysis)
        for gains in getattr(analysis, "gains", ()):
            where = f"{name}/{gains.measure}"
            if gains.paper is not None:
                yield f"{where}/scatter", kind.scatter(gains.paper, name)
                yield f"{where}/trend", kind.trend_grid(gains.paper)
            yield f"{where}/slopes", kind.slopes_grid(gains)
            yield f"{where}/gains", kind.gains_grid(gains)


def parts_of_kind(findings: Findings, analysis: Any) -> Iterator[tuple[str, Block]]:
    """Yield what only some benchmarks have: the default, regression, ordinal regression."""
    name = findings.name
    if DEFAULT in analysis.scores.columns:
        yield from parts_of_default(findings, analysis, spec_of(name))
    if findings.kind == "regression":
        yield from parts_of_numbers(findings, analysis)
    if name == "ordinal":
        yield from ordinal_parts(findings).items()
    optimism = optimism_grid(findings)
    if optimism is not None:
        yield f"{name}/optimism", optimism


def parts_of_accuracy(name: str, analysis: Any) -> Iterator[tuple[str, Block]]:
    """Yield what can be shown of the ranks of models."""
    for ranking in (*analysis.rankings, *analysis.dispersity):
        where = f"{name}/{ranking.name}"
        if not isinstance(ranking, Ranking):
            yield f"{where}/ranks", Text(ranking.reason)
            continue
        yield f"{where}/words", Text(in_words(ranking))
        yield f"{where}/ranks", ranks_grid(ranking)
        yield f"{where}/reference", reference_grid(ranking, both_nemenyi=name in OF_THE_PAPER)
        for picture in bench_rankings.diagrams(ranking, name):
            which = picture.name.removeprefix(f"{name}-{ranking.name}").lstrip("-")
            yield f"{where}/{which or 'diagram'}", picture
        if ranking.notes:
            yield f"{where}/notes", Items(ranking.notes)
        if ranking.name == "paper" and analysis.leads is not None:
            leads = analysis.leads.among(ranking.comparison.models, ranking.reference)
            yield f"{where}/wins", bench_rankings.wins_grid(leads)
            yield f"{where}/tendencies", bench_rankings.tendencies_grid(leads)
            for other in leads.others:
                yield f"{where}/extremes/{other}", bench_rankings.extremes_grid(leads, other)
    yield f"{name}/measures", measures_grid(analysis)


def parts_of_several(found: Mapping[str, Findings]) -> dict[str, Block]:
    """Return what can be shown of benchmarks side by side, by name."""
    grids = {
        "accuracy-each/tuning": ("accuracy-lite", "accuracy-each", tuning_grid),
        "accuracy-epochs/epochs": ("accuracy-lite", "accuracy-epochs", epochs_grid),
        "imbalance-lite/noise": ("accuracy-lite", "imbalance-lite", noise_grid),
    }
    return {
        name: grid(found[one], found[other])
        for name, (one, other, grid) in grids.items()
        if one in found and other in found
    }


def spec_of(name: str) -> dict[str, Any]:
    """Return what is planned for a benchmark."""
    return tomllib.loads((PAPER / f"{name}.toml").read_text(encoding="utf-8"))


def said_of(findings: Findings) -> str:
    """Say how much of a benchmark there is, and what it took."""
    units, models = findings.units, set(findings.spec["models"]["names"])
    begun = units[(units["status"] != OPEN) | (units["n_trials"] > 0) | (units["n_folds"] > 0)]
    done = units[units["status"] == OK].groupby("dataset")["model"].agg(set)
    said = (
        f"Datasets: {begun['dataset'].nunique()} begun, {sum(models <= there for there in done)} "
        f"with all models complete. "
    )
    wrong = findings.missing["status"].value_counts()
    lost = [f"{wrong[how]:,} {words}" for how, words in WRONG.items() if how in wrong]
    if lost:
        said += f"Pairs of dataset and model that went wrong: {', '.join(lost)}. "
    versions = {
        f"{name} {place['versions'][name]}"
        for place in findings.places
        for name in ("cocoloss", "torch", "scikit-learn")
        if name in place["versions"]
    }
    return (
        f"{said}{findings.n_tasks:,} tasks, {findings.core_seconds / 3600:.1f} core-hours; "
        f"{', '.join(sorted(versions))}."
    )


@dataclass(frozen=True)
class Numbers:
    """What sentences say: numbers that are read off the tables."""

    parts: Mapping[str, Block]

    @cached_property
    def tables(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Every table as {part: {first cell: {heading: cell}}}."""
        return {
            name: {
                row[0].text: dict(zip(grid.columns[1:], row[1:], strict=True)) for row in grid.rows
            }
            for name, grid in self.parts.items()
            if isinstance(grid, Grid)
        }

    def cell(self, part: str, row: str, column: str) -> str:
        """Return a cell as it reads."""
        return str(self.tables[part][row][column].text)

    def value(self, part: str, row: str, column: str) -> float:
        """Return the number of a cell."""
        return float(self.tables[part][row][column].value)

    def complete(self, benchmark: str) -> int:
        """Return how many tables have all models of a benchmark."""
        counts = next(iter(self.tables[f"{benchmark}/default/reference"].values()))
        return int(sum(counts[name].value for name in ("wins", "ties", "losses")))

    def verdict(self, part: str, row: str, column: str = "verdict") -> str:
        """Return "ahead", "level" or "behind"."""
        return self.cell(part, row, column)

    def standing(self, part: str, column: str = "verdict") -> str:
        """Say whom the reference of a table is ahead of, level with and behind."""
        return standing({row: cells[column].text for row, cells in self.tables[part].items()})

    def standing_as(self, part: str, called: Sequence[tuple[str, str]]) -> str:
        """Say the same with other names for some of the models."""
        verdicts = {row: cells["verdict"].text for row, cells in self.tables[part].items()}
        return standing(verdicts, SAID | dict(called))

    def reference(self, part: str) -> str:
        """Return the model that a table compares with each of the others."""
        block = self.parts[part]
        assert isinstance(block, Grid)
        return block.title.split(" against each other model")[0]

    def gain_span(self, part: str, column: str) -> str:
        """Return the least and the largest mean of cells "mean ± error", in percentage points."""
        means = [self.with_error(part, row, column)[0] for row in self.tables[part]]
        return f"{100 * min(means):+.1f} to {100 * max(means):+.1f}"

    def which(self, part: str, what: str, column: str = "verdict") -> list[str]:
        """Return the lines that have this verdict, or whatever else their cell says."""
        return [row for row, cells in self.tables[part].items() if cells[column].text == what]

    def pp(self, part: str, row: str, column: str = "mean difference", digits: int = 1) -> str:
        """Return a share or a difference of shares in percentage points, with its sign."""
        return f"{100 * self.value(part, row, column):+.{digits}f}"

    def percent(self, part: str, row: str, column: str, digits: int = 1) -> str:
        """Return a share in per cent."""
        return f"{100 * self.value(part, row, column):.{digits}f} %"

    def counts(self, part: str, row: str) -> str:
        """Return the tables that are won, tied and lost."""
        won, tied, lost = (self.cell(part, row, name) for name in ("wins", "ties", "losses"))
        return f"{won} tables won, " + (f"{tied} tied, " if tied != "0" else "") + f"{lost} lost"

    def p(self, part: str, row: str) -> str:
        """Return the p-value of a verdict as text."""
        heads = self.tables[part][row]
        return p_text(heads["p" if "p" in heads else "p Wilcoxon-Holm"].value)

    def against(self, part: str, row: str) -> str:
        """Return the mean difference to a model in percentage points, the counts and p."""
        return (
            f"{self.pp(part, row)} percentage points; {self.counts(part, row)}; {self.p(part, row)}"
        )

    def with_error(self, part: str, row: str, column: str) -> tuple[float, float]:
        """Return the numbers of a cell "mean ± error"."""
        mean, error = self.cell(part, row, column).split(" (")[0].split(" ± ")
        return float(mean), float(error)

    def beyond(self, part: str, column: str, errors: str = "") -> list[str]:
        """Return the lines whose mean is more than two standard errors from zero."""
        found = []
        for row, cells in self.tables[part].items():
            if errors:
                mean, error = cells[column].value, cells[errors].value
            else:
                mean, error = self.with_error(part, row, column)
            found += [row] if abs(mean) > 2 * error else []
        return found

    def span(self, part: str, column: str, rows: Sequence[str] = (), digits: int = 0) -> str:
        """Return the least and the largest number of a column, of some lines or of all."""
        cells = self.tables[part]
        values = [cells[row][column].value for row in rows or cells]
        ends = [f"{end:.{digits}f}" for end in (min(values), max(values))]
        return ends[0] if ends[0] == ends[1] else " to ".join(ends)

    def order(self, part: str, column: str, names: Sequence[str] = ()) -> str:
        """Return lines, or all of them, from the largest number of a column to the smallest."""
        rows = self.tables[part]
        names = sorted(names or rows, key=lambda row: -rows[row][column].value)
        return listed([SAID.get(name, name) for name in names])

    def significant(self, part: str, column: str) -> list[str]:
        """Return the lines whose number in a column is bold, that is significant."""
        return [row for row, cells in self.tables[part].items() if cells[column].best]

    def grouped(self, part: str, column: str, by: str, *, below: float = 0) -> str:
        """Return the lines with a number below another, grouped by a name, as a sentence has it."""
        groups: dict[str, list[str]] = {}
        for row, cells in self.tables[part].items():
            if cells[column].value < below:
                groups.setdefault(cells[by].text, []).append(f"{row} ({cells[column].text})")
        return "; ".join(f"{SAID.get(k, k)} on {listed(rows)}" for k, rows in groups.items())

    def score(self, model: str, measure: str = "balanced accuracy") -> str:
        """Return the mean of a measure over the 66 tables."""
        return f"{self.value('accuracy-lite/measures', model, measure):.3f}"

    def lead(self, model: str, other: str, digits: int = 1) -> str:
        """Return by how many points the mean of a model is better than that of another."""
        ours, theirs = (
            self.value("accuracy-lite/measures", name, "balanced accuracy")
            for name in (model, other)
        )
        return f"{100 * (round(ours, 4) - round(theirs, 4)):.{digits}f}"

    def points(self, group: str, model: str) -> str:
        """Return the mean difference to a model in points, without its sign."""
        part = f"accuracy-lite/{group}/reference"
        return f"{abs(100 * self.value(part, model, 'mean difference')):.1f}"

    def against_svm(self, ratio: str) -> str:
        """Return the wins against the kernel SVM, of how many tables of a class ratio."""
        row = f"largest class / smallest: {ratio}"
        wins = self.cell("accuracy-lite/paper/wins", row, "against ksvm").split(" / ")[0]
        n = self.cell("accuracy-lite/paper/wins", row, "datasets")
        return f"{'none' if wins == '0' else wins} of {n}"

    def ends(self, part: str, column: str, n: int, *, largest: bool = False) -> str:
        """Return the lines with the smallest numbers of a table, or the largest, with these."""
        rows = sorted(self.tables[part].items(), key=lambda row: row[1][column].value)
        chosen = rows[::-1][:n] if largest else rows[:n]
        return ", ".join(f"{name} {cells[column].text}" for name, cells in chosen)

    def losses(self, terms: str) -> str:
        """Return what the three losses have after so many terms, under the same head."""
        means = [self.cell("convergence/gaussian/means", m, terms) for m in ("coco", "dr", "ce")]
        return "{}, {} and {}".format(*means)

    @cached_property
    def realmlp(self) -> dict[str, float]:
        """How CoCo does beside RealMLP: speedup, seconds and balanced accuracy of both."""
        file = ROOT / "bench" / "results" / "realmlp.json"
        measured = json.loads(file.read_text(encoding="utf-8"))
        splits = list(zip(*measured["balanced accuracy"].values(), strict=True))
        ours, theirs = map(statistics.mean, zip(*splits, strict=True))
        seconds = [statistics.median(times) for times in measured["seconds"].values()]
        return {
            "speedup": measured["speedup"],
            "ours": ours,
            "theirs": theirs,
            "lead": 100 * (ours - theirs),
            "splits": len(splits),
            "won": sum(one > other for one, other in splits),
            "lost": sum(one < other for one, other in splits),
            "our_seconds": seconds[0],
            "their_seconds": seconds[1],
        }


def read_all(folder: Path) -> list[Findings]:
    """Return the benchmarks of the rows in a folder; the store that they are merged to is kept."""
    files = sorted(folder.glob("*.parquet"))
    if STORE.exists() and STORE.stat().st_mtime < max(file.stat().st_mtime for file in files):
        STORE.unlink()
    STORE.parent.mkdir(exist_ok=True)
    if not STORE.exists():
        merge_into(STORE, files)
    with Store(STORE, create=False) as store:
        return read_findings(store)


def read_parts(found: list[Findings]) -> dict[str, Block]:
    """Return everything that can be shown, by name."""
    parts = {
        name: block
        for chapter in read_chapters(found, folders=[PAPER])
        for name, block in parts_of(chapter)
    }
    measured = ROOT / "bench" / "results"
    of_bench = {
        "untuned": untuned_grids(measured / "tables.jsonl"),
        "demo": demo_parts(measured / "demo.json"),
        "posteriors": posterior_parts(measured / "posteriors.jsonl"),
        "two-solvers": solver_parts(measured / "two_solvers.jsonl"),
    }
    parts |= {f"{of}/{name}": part for of, some in of_bench.items() for name, part in some.items()}
    lite = next(findings for findings in found if findings.name == "accuracy-lite")
    parts |= plain_parts(lite, measured / "empirical.jsonl")
    parts |= large_parts(measured / "large.jsonl")
    parts |= full_size_parts(measured / "regression.jsonl")
    parts |= few_label_parts(measured / "few_labels.jsonl")
    parts |= metric_parts(measured / "learnt_metric.jsonl")
    by_name = {findings.name: findings for findings in found}
    return parts | cost_parts(by_name, measured) | parts_of_several(by_name)


def scores_of(found: list[Findings]) -> Any:
    """Return what gives the mean balanced accuracy of a model on a dataset, as text."""

    def score_on(benchmark: str, dataset: str, model: str) -> str:
        rows = next(each.rows for each in found if each.name == benchmark)
        chosen = rows[(rows["dataset"] == dataset) & (rows["model"] == model)]
        return f"{chosen['balanced_accuracy'].mean():.3f}"

    return score_on


def make_pages(
    found: list[Findings], parts: Mapping[str, Block]
) -> tuple[dict[Path, str], dict[str, Picture]]:
    """Return the text of every page, and the pictures that they show by name."""
    shown: dict[str, Picture] = {}
    pages = {}
    templates = Environment(  # Markdown, nothing to escape for
        loader=FileSystemLoader(HERE / "pages"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701
    )
    for name in sorted(templates.list_templates()):
        place = DOCS / name if name == "results.md" else DOCS / "results" / name
        folder = Path(os.path.relpath(PICTURES, place.parent)).as_posix()

        def part(asked: str, folder: str = folder) -> str:
            if asked not in parts:
                raise SystemExit(f"there is no part {asked}; there are {', '.join(parts)}")
            block = parts[asked]
            if isinstance(block, Picture):
                shown[block.name] = block
            return block_as_markdown(block, folder)

        context = {
            "part": part,
            "n": Numbers(parts),
            "score_on": scores_of(found),
            "explained": EXPLAINED,
            "listed": listed,
            "called": SAID,
        }
        note = "<!-- made by results/page.py of the rows in results/; edit results/pages/ -->\n\n"
        pages[place] = note + templates.get_template(name).render(context)
    return pages, shown


def differing(pages: Mapping[Path, str], pictures: Mapping[str, Picture]) -> list[str]:
    """Return the pages that are not as they should be, and pictures that are missing or idle."""
    there = {path: path.read_text(encoding="utf-8") if path.exists() else "" for path in pages}
    wrong = [path.name for path, text in pages.items() if there[path] != text]
    return wrong + sorted({f"{n}.svg" for n in pictures} ^ {p.name for p in PICTURES.iterdir()})


def main() -> None:
    """Write the pages, or say whether they are what they should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    found = read_all(HERE)
    parts = read_parts(found)
    if options.list:
        print("\n".join(parts))
        return
    pages, pictures = make_pages(found, parts)
    if options.check:
        wrong = differing(pages, pictures)
        sys.exit(f"{', '.join(wrong)}: not as the rows have it; run `make results`" if wrong else 0)
    for name, picture in pictures.items():
        with write_whole(PICTURES / f"{name}.svg") as aside:
            aside.write_bytes(figure_bytes(picture.figure, ".svg"))
    for path, text in pages.items():
        with write_whole(path) as aside:
            aside.write_text(text, encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: {len(text.splitlines())} lines")


if __name__ == "__main__":
    main()
