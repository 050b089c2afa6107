"""Fill docs/results.md with the numbers of the rows in this folder, and draw its pictures.

    make results                        (or: python results/page.py)
    python results/page.py --check      says whether the page has the numbers of the rows
    python results/page.py --list       names everything that a page can show

What stands in the page between `<!-- NAME -->` and `<!-- end -->` is written by this command; all
else is written by hand. The tables and pictures are those of `cocoloss bench report`.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from cocoloss.benchmark.analysis import AccuracyAnalysis, Analysis, analyse
from cocoloss.benchmark.convergence_analysis import ConvergenceAnalysis
from cocoloss.benchmark.evolution_analysis import EvolutionAnalysis
from cocoloss.benchmark.findings import Findings, read_findings
from cocoloss.benchmark.merge import merge
from cocoloss.benchmark.rankings import Ranking
from cocoloss.benchmark.store import Store
from cocoloss.files import write_whole
from cocoloss.report import (
    bench_accuracy,
    bench_convergence,
    bench_evolution,
    bench_leads,
    bench_rankings,
)
from cocoloss.report.bench_about import missing_blocks
from cocoloss.report.document import Block, Cell, Grid, Picture, Text, fixed, flat
from cocoloss.report.markdown import block_as_markdown

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "results.md"
PICTURES = PAGE.parent / "images" / "results"
PLACE = re.compile(r"<!-- (?!end)(\S+) -->\n(.*?)<!-- end -->", re.DOTALL)


def parts_of(findings: Findings, analysis: Analysis) -> Iterator[tuple[str, Block]]:
    """Yield everything that can be shown of a benchmark, with its name."""
    name = findings.name
    yield f"{name}/about", Text(said_of(findings))
    for number, block in enumerate(flat(tuple(missing_blocks(findings)))):
        yield f"{name}/missing/{number}", block
    if isinstance(analysis, ConvergenceAnalysis):
        for head in analysis.heads:
            yield f"{name}/{head}/ranks", bench_convergence.rank_grid(analysis, head)
            by_mean = bench_convergence.rank_grid(analysis, head, by_mean=True)
            yield f"{name}/{head}/ranks-by-mean", by_mean
            yield f"{name}/{head}/means", bench_convergence.mean_grid(analysis, head)
            yield f"{name}/{head}/curves", bench_convergence.curves(analysis, head, name)
    elif isinstance(analysis, EvolutionAnalysis):
        for run in analysis.runs:
            where = f"{name}/{run.dataset}/{run.model}"
            yield f"{where}/panels", bench_evolution.panels(run, name)
            yield f"{where}/measures", bench_evolution.measures_grid(run)
    else:
        yield from parts_of_accuracy(name, analysis)


def parts_of_accuracy(name: str, analysis: AccuracyAnalysis) -> Iterator[tuple[str, Block]]:
    """Yield what can be shown of an accuracy or an imbalance experiment."""
    for ranking in (*analysis.rankings, *analysis.dispersity):
        where = f"{name}/{ranking.name}"
        if not isinstance(ranking, Ranking):
            yield f"{where}/ranks", Text(ranking.reason)
            continue
        yield f"{where}/words", Text(bench_rankings.in_words(ranking))
        yield f"{where}/ranks", bench_rankings.ranks_grid(ranking)
        reference = bench_rankings.reference_grid(ranking)
        if reference is not None:
            yield f"{where}/reference", reference
        for picture in bench_rankings.diagrams(ranking, name):
            which = picture.name.removeprefix(f"{name}-{ranking.name}").lstrip("-")
            yield f"{where}/{which or 'diagram'}", picture
    for ranking in analysis.rankings:
        if isinstance(ranking, Ranking) and analysis.leads is not None:
            models = list(ranking.comparison.average_ranks.index)
            leads = analysis.leads.among(models, ranking.reference)
            where = f"{name}/{ranking.name}"
            yield f"{where}/wins", bench_leads.wins_grid(leads)
            yield f"{where}/tendencies", bench_leads.tendencies_grid(leads)
            for other in leads.others:
                yield f"{where}/extremes/{other}", bench_leads.extremes_grid(leads, other)
    yield f"{name}/measures", bench_accuracy.measures_grid(analysis)
    for trend in analysis.trends:
        _, scatter, numbers = bench_accuracy.trend_blocks(trend, name)
        yield f"{name}/{trend.measure}/scatter", scatter
        yield f"{name}/{trend.measure}/trend", numbers


def tuning_grid(first: AccuracyAnalysis, each: AccuracyAnalysis) -> Grid:
    """Return what tuning in every outer fold gives beside tuning in the first."""
    both = [m for m in each.scores.columns if m in first.scores.columns]
    tuned_once = first.scores.mask(first.partial).reindex(each.scores.index)
    tuned_each = each.scores.mask(each.partial)
    rows = []
    for model in both:
        pair = pd.DataFrame({"once": tuned_once[model], "each": tuned_each[model]}).dropna()
        gain = pair["each"] - pair["once"]
        rows.append(
            (
                Cell(model),
                Cell(f"{len(pair)}"),
                fixed(pair["once"].mean(), 4),
                fixed(pair["each"].mean(), 4),
                Cell(f"{gain.mean():+.4f}"),
                Cell(f"{gain.min():+.4f} to {gain.max():+.4f}"),
            )
        )
    return Grid(
        "Tuned on the first outer fold, and on each",
        ("model", "datasets", "on the first", "on each", "difference", "by dataset"),
        tuple(rows),
        caption="Mean balanced accuracy over the ten outer folds, then over datasets.",
    )


def said_of(findings: Findings) -> str:
    """Say how much of a benchmark there is, and what it took."""
    complete = findings.units.groupby("dataset")["status"].agg(lambda s: (s == "ok").all())
    versions = {
        f"{name} {place['versions'][name]}"
        for place in findings.places
        for name in ("cocoloss", "torch", "scikit-learn")
        if name in place["versions"]
    }
    return (
        f"{int(complete.sum())} of {len(complete)} datasets are complete; {findings.n_tasks:,} "
        f"tasks, {findings.core_seconds / 3600:.1f} core-hours; {', '.join(sorted(versions))}."
    )


def filled(page: str, parts: dict[str, Block]) -> tuple[str, list[Picture]]:
    """Return the page with every place filled, and the pictures that it shows."""
    pictures: list[Picture] = []

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        if name not in parts:
            raise SystemExit(f"{PAGE.name} asks for {name}; there are {', '.join(parts)}")
        block = parts[name]
        if isinstance(block, Picture):
            pictures.append(block)
        text = block_as_markdown(block, PICTURES.relative_to(PAGE.parent).as_posix())
        return f"<!-- {name} -->\n{text}\n<!-- end -->"

    return PLACE.sub(fill, page), pictures


def read_parts(folder: Path) -> dict[str, Block]:
    """Return what can be shown of the rows in a folder."""
    with (
        tempfile.TemporaryDirectory() as aside,
        Store(Path(aside) / "results.sqlite") as store,
    ):
        for file in sorted(folder.glob("*.parquet")):
            merge(store, file)
        found = read_findings(store)
    analyses = {findings.name: analyse(findings) for findings in found}
    parts = {
        name: block
        for findings in found
        for name, block in parts_of(findings, analyses[findings.name])
    }
    first, each = (analyses.get(f"accuracy-{name}") for name in ("lite", "each"))
    if isinstance(first, AccuracyAnalysis) and isinstance(each, AccuracyAnalysis):
        parts["accuracy-each/tuning"] = tuning_grid(first, each)
    return parts


def main() -> None:
    """Fill the page, or say whether it is full."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    parts = read_parts(HERE)
    if options.list:
        print("\n".join(parts))
        return
    before = PAGE.read_text(encoding="utf-8")
    after, pictures = filled(before, parts)
    if options.check:
        sys.exit(0 if before == after else f"{PAGE.name} has other numbers; run `make results`")
    for picture in pictures:
        PICTURES.mkdir(parents=True, exist_ok=True)
        with write_whole(PICTURES / f"{picture.name}.svg") as aside:
            aside.write_bytes(picture.files[".svg"]())
    with write_whole(PAGE) as aside:
        aside.write_text(after, encoding="utf-8")
    print(f"{PAGE.name}: {len(PLACE.findall(after))} parts, {len(pictures)} of them pictures")


if __name__ == "__main__":
    main()
