"""The benchmark report: a folder with a page, Markdown, LaTeX, JSON, scores and pictures."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from cocoloss.benchmark.analysis import (
    AccuracyAnalysis,
    Findings,
    analyse_accuracy,
    printed_ranks,
    read_findings,
)
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.tasks import EXPERIMENTS, load_experiment
from cocoloss.exceptions import CoCoError
from cocoloss.files import write_whole
from cocoloss.json_text import as_json_text
from cocoloss.report.bench_sections import (
    about_blocks,
    accuracy_blocks,
    fold_data,
    making_blocks,
    missing_blocks,
)
from cocoloss.report.document import Block, Document, Heading, Picture, slug
from cocoloss.report.figures import SUFFIXES, page_svg
from cocoloss.report.markup import as_latex, as_markdown, render

FIGURES = "figures"
PAGE = "index.html"
FORM = 1  # of the JSON
FILE_SUFFIXES = frozenset({".html", ".htm", ".md", ".tex", ".json", ".csv", ".pdf", ".zip"})
SCORES = ("dataset", "model", "fold", "n_terms", "head", "epoch")  # what tells lines apart


def write_bench_report(
    store: Store,
    folder: str | os.PathLike[str],
    *,
    names: tuple[str, ...] = (),
    missing: str = "drop_datasets",
    experiments: Iterable[Path] = (),
    measure: str | None = None,
) -> list[Path]:
    """Write the report of a store, running or finished; return its files, the page last.

    The folder is made if it is not there. Files of an earlier report are replaced one by one, each
    whole; other files are left alone. ``names`` chooses benchmarks, NAME or NAME@HASH; all if
    empty. ``missing`` is "drop_datasets" or "worst": what becomes of datasets that lack the result
    of a model. ``experiments`` are folders with modules that are not built in, and ``printed.py``.
    ``measure`` is another one to rank by than that of the kind.
    """
    target = _check_folder(Path(folder))
    found = read_findings(store, names)
    chapters = read_chapters(found, missing, tuple(experiments), measure)
    document = build_document(chapters)
    files: dict[str, bytes] = {}
    for picture in document.pictures():
        files |= {f"{FIGURES}/{name}": content for name, content in picture.files().items()}
    for each in chapters:
        files[f"{each.prefix}-scores.csv"] = _scores(each.findings.rows)
    files["report.json"] = _json(chapters).encode()
    files["report.md"] = as_markdown(document, FIGURES).encode()
    files["report.tex"] = as_latex(document, FIGURES).encode()
    files[PAGE] = as_page(document, FIGURES).encode()
    return _write(target, files)


@dataclass(frozen=True, eq=False)
class Chapter:
    """One benchmark of a report."""

    findings: Findings
    module: Any  # of its kind; None if that is built in, which says nothing of reports
    analysis: Any
    prefix: str  # begins the names of its files


def read_chapters(
    findings: Sequence[Findings],
    missing: str = "drop_datasets",
    folders: Sequence[Path] = (),
    measure: str | None = None,
) -> list[Chapter]:
    """Analyse benchmarks; the files of two of one name differ by their hash.

    Experiments that are not built in are found in ``folders``. One that has ``analyse`` is asked;
    otherwise models are ranked as in accuracy experiments, beside ranks that a publication prints.
    """
    names = [slug(each.name) for each in findings]
    chapters = []
    for name, each in zip(names, findings, strict=True):
        # What computes loads torch, which no report needs.
        module: Any = None if each.kind in EXPERIMENTS else load_experiment(each.kind, folders)
        if hasattr(module, "analyse"):
            analysis = module.analyse(each, missing)
        else:
            analysis = analyse_accuracy(each, missing, printed_ranks(folders), measure)
        prefix = f"{name}-{each.spec_hash[:6]}" if names.count(name) > 1 else name
        chapters.append(Chapter(each, module, analysis, prefix))
    return chapters


def build_document(chapters: Sequence[Chapter]) -> Document:
    """Return all that the report says."""
    several = len(chapters) > 1
    blocks: list[Block] = []
    data: dict[str, Any] = {}
    for chapter in chapters:
        each, prefix = chapter.findings, chapter.prefix
        kind = "" if each.name.startswith(each.kind) else f" ({each.kind})"
        blocks += [Heading(f"{each.label or each.name}{kind}", 1)] if several else []
        blocks += about_blocks(each, chapter.module)
        blocks += getattr(chapter.module, "blocks", accuracy_blocks)(each, chapter.analysis, prefix)
        if isinstance(chapter.analysis, AccuracyAnalysis):
            data[prefix] = fold_data(each, chapter.analysis)
        blocks += [Heading("What is missing"), *missing_blocks(each)]
        blocks += [Heading("How it was made"), *making_blocks(each)]
    first = chapters[0].findings
    return Document("Benchmarks" if several else first.label or first.name, tuple(blocks), data)


def as_page(document: Document, folder: str) -> str:
    """Return a document as a page that fetches nothing; pictures link to files in a folder."""
    sections = [b for b in document.blocks if isinstance(b, Heading) and b.level < 3]
    anchors = {id(block): f"section-{number + 1}" for number, block in enumerate(sections)}
    return render(
        "bench.html",
        title=document.title,
        styles=("page.css", "bench.css"),
        scripts=("draw.js", "bench.js"),
        data=dict(document.data),
        blocks=document.blocks,
        contents=[(block, anchors[id(block)]) for block in sections],
        anchor_of=lambda block: anchors.get(id(block), ""),
        kind_of=lambda block: type(block).__name__,
        drawings=_drawings,
        folder=folder,
        suffixes=SUFFIXES,
        infinity=math.inf,
    )


def _drawings(picture: Picture) -> list[Markup]:
    """Return the SVG for wide screens, and for narrow ones if there is another."""
    label = picture.label or picture.title
    narrow = [] if picture.draw_narrow is None else [picture.draw_narrow()]
    return [page_svg(figure, label) for figure in (picture.figure, *narrow)]


def _scores(rows: Any) -> bytes:
    """Return every fold as CSV; `cocoloss compare` reads it."""
    keys = [name for name in SCORES if name in rows.columns]
    measures = [name for name in rows.columns if name not in {*keys, "stage", "task_seconds"}]
    table = rows[[*keys, *measures]]
    return str(table.to_csv(index=False, lineterminator="\n")).encode()


def _json(chapters: Sequence[Chapter]) -> str:
    kept = ("name", "kind", "spec_hash", "spec", "state", "started_at", "seen_at", "core_seconds")
    benchmarks = []
    for chapter in chapters:
        each = chapter.findings
        benchmarks.append(
            {
                **{name: getattr(each, name) for name in kept},
                "label": each.label or each.name,
                "files": chapter.prefix,
                "places": each.places,
                "units": each.units.to_dict("records"),
                "missing": each.missing.to_dict("records"),
                "left_out": dict(each.left_out),
                "characters": each.characters,
                "analysis": chapter.analysis,
            }
        )
    return as_json_text({"form": FORM, "benchmarks": benchmarks})


def _check_folder(target: Path) -> Path:
    """Refuse, before the work, what is a file or is called like one."""
    if target.is_dir():
        return target
    if target.exists():
        raise CoCoError(f"cannot write to {target}: it is a file; name a folder")
    if target.suffix.lower() in FILE_SUFFIXES:
        raise CoCoError(
            f"cannot write to {target}: a report is a folder with {PAGE} and more; name a folder, "
            f"such as {target.with_suffix('')}"
        )
    return target


def _write(target: Path, files: Mapping[str, bytes]) -> list[Path]:
    try:
        (target / FIGURES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CoCoError(f"cannot make {target}: {error.strerror or error}") from error
    written = []
    for name, content in files.items():  # the page is the last of them
        path = target / name
        with write_whole(path) as aside:
            aside.write_bytes(content)
        written.append(path)
    return written
