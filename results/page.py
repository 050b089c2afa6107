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
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from cocoloss.benchmark.convergence_analysis import ConvergenceAnalysis
from cocoloss.benchmark.evolution_analysis import EvolutionAnalysis
from cocoloss.benchmark.imbalance_analysis import Gains
from cocoloss.report.bench_about import missing_blocks
from noise import noise_grid
from shortcuts import epochs_grid, optimism_grid, tuning_grid

from cocoloss.benchmark.analysis import AccuracyAnalysis, Analysis, analyse
from cocoloss.benchmark.export import merge
from cocoloss.benchmark.findings import Findings, read_findings
from cocoloss.benchmark.rankings import Ranking
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.tasks import FAILED, OK, OPEN, TIMEOUT
from cocoloss.files import write_whole
from cocoloss.report import (
    bench_accuracy,
    bench_convergence,
    bench_evolution,
    bench_imbalance,
    bench_leads,
    bench_rankings,
)
from cocoloss.report.document import Block, Items, Picture, Text, flat
from cocoloss.report.markup import block_as_markdown

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "results.md"
PICTURES = PAGE.parent / "images" / "results"
WRONG = {FAILED: "failed", TIMEOUT: "took too long"}
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
        optimism = optimism_grid(findings)
        if optimism is not None:
            yield f"{name}/optimism", optimism


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
        if ranking.notes:
            yield f"{where}/notes", Items(ranking.notes)
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
    yield from parts_of_gains(name, analysis.gains)


def parts_of_gains(name: str, measures: Iterable[Gains]) -> Iterator[tuple[str, Block]]:
    """Yield what weighing the classes gains, measure by measure."""
    for gains in measures:
        where = f"{name}/{gains.measure}"
        if gains.paper is not None:
            yield f"{where}/scatter", bench_imbalance.scatter(gains.paper, name)
            yield f"{where}/trend", bench_imbalance.trend_grid(gains.paper)
        if gains.trends:
            yield f"{where}/slopes", bench_imbalance.slopes_grid(gains)
        yield f"{where}/gains", bench_imbalance.gains_grid(gains)


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
    return parts | parts_of_several({findings.name: findings for findings in found})


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
