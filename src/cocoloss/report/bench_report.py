"""The benchmark report: a folder with a page, Markdown, LaTeX, JSON, scores and pictures."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cocoloss.benchmark.analysis import Analysis, analyse
from cocoloss.benchmark.convergence_analysis import ConvergenceAnalysis
from cocoloss.benchmark.evolution_analysis import EvolutionAnalysis
from cocoloss.benchmark.findings import Findings, read_findings
from cocoloss.benchmark.store import Store
from cocoloss.exceptions import CoCoError
from cocoloss.files import write_whole
from cocoloss.report.bench_about import about_blocks, making_blocks, missing_blocks
from cocoloss.report.bench_accuracy import accuracy_blocks, fold_data
from cocoloss.report.bench_convergence import convergence_blocks
from cocoloss.report.bench_evolution import evolution_blocks
from cocoloss.report.bench_page import as_page
from cocoloss.report.document import Block, Document, Heading, slug
from cocoloss.report.latex import as_latex
from cocoloss.report.markdown import as_markdown
from cocoloss.report.plain import as_json_text

FIGURES = "figures"
PAGE = "index.html"
FORM = 1  # of the JSON
SCORES = ("dataset", "model", "fold", "n_terms", "head", "epoch")  # what tells lines apart


def write_bench_report(
    store: Store,
    folder: str | os.PathLike[str],
    *,
    names: tuple[str, ...] = (),
    missing: str = "drop_datasets",
) -> list[Path]:
    """Write the report of a store.

    Parameters
    ----------
    store : Store
        Running or finished.
    folder : path
        Made if it is not there. Files of an earlier report are replaced one by one, each whole;
        the page comes last. Other files are left alone.
    names : tuple of str
        Only benchmarks of these names, NAME or NAME@HASH; all if empty.
    missing : {"drop_datasets", "worst"}
        What becomes of datasets that lack the result of a model.

    Returns
    -------
    list of Path
        What was written; the page is the last.

    Raises
    ------
    CoCoError
        If the store is empty, or the folder cannot be written to.
    """
    target = _folder(folder)
    findings = read_findings(store, names)
    analyses = [analyse(each, missing) for each in findings]
    prefixes = _prefixes(findings)
    document = build_document(findings, analyses, prefixes)
    files: dict[str, bytes] = {}
    for picture in document.pictures():
        for suffix, draw in picture.files.items():
            files[f"{FIGURES}/{picture.name}{suffix}"] = draw()
    for each, prefix in zip(findings, prefixes, strict=True):
        files[f"{prefix}-scores.csv"] = _scores(each.rows)
    files["report.json"] = _json(findings, analyses, prefixes).encode()
    files["report.md"] = as_markdown(document, FIGURES).encode()
    files["report.tex"] = as_latex(document, FIGURES).encode()
    files[PAGE] = as_page(document, FIGURES).encode()
    return _write(target, files)


def build_document(
    findings: Sequence[Findings], analyses: Sequence[Analysis], prefixes: Sequence[str]
) -> Document:
    """Return all that the report says."""
    several = len(findings) > 1
    blocks: list[Block] = []
    data: dict[str, Any] = {}
    for each, analysis, prefix in zip(findings, analyses, prefixes, strict=True):
        kind = "" if each.name.startswith(each.kind) else f" ({each.kind})"
        blocks += [Heading(f"{each.label or each.name}{kind}", 1)] if several else []
        blocks += about_blocks(each)
        if isinstance(analysis, ConvergenceAnalysis):
            blocks += convergence_blocks(analysis, prefix)
        elif isinstance(analysis, EvolutionAnalysis):
            blocks += evolution_blocks(analysis, prefix)
        else:
            blocks += accuracy_blocks(each, analysis, prefix)
            data[prefix] = fold_data(each, analysis)
        blocks += [Heading("What is missing"), *missing_blocks(each)]
        blocks += [Heading("How it was made"), *making_blocks(each)]
    title = "Benchmarks" if several else findings[0].label or findings[0].name
    return Document(title, tuple(blocks), data)


def _prefixes(findings: Sequence[Findings]) -> list[str]:
    """Return a name for the files of each benchmark; two of one name differ by their hash."""
    names = [slug(each.name) for each in findings]
    return [
        f"{name}-{each.spec_hash[:6]}" if names.count(name) > 1 else name
        for name, each in zip(names, findings, strict=True)
    ]


def _scores(rows: Any) -> bytes:
    """Return every fold as CSV; `cocoloss compare` reads it."""
    keys = [name for name in SCORES if name in rows.columns]
    measures = [name for name in rows.columns if name not in {*keys, "stage", "task_seconds"}]
    table = rows[[*keys, *measures]]
    return str(table.to_csv(index=False, lineterminator="\n")).encode()


def _json(
    findings: Sequence[Findings], analyses: Sequence[Analysis], prefixes: Sequence[str]
) -> str:
    benchmarks = [
        {
            "name": each.name,
            "label": each.label or each.name,
            "kind": each.kind,
            "files": prefix,
            "spec_hash": each.spec_hash,
            "spec": each.spec,
            "state": each.state,
            "started_at": each.started_at,
            "seen_at": each.seen_at,
            "core_seconds": each.core_seconds,
            "places": each.places,
            "units": each.units.to_dict("records"),
            "missing": each.missing.to_dict("records"),
            "left_out": dict(each.left_out),
            "characters": each.characters,
            "analysis": analysis,
        }
        for each, analysis, prefix in zip(findings, analyses, prefixes, strict=True)
    ]
    return as_json_text({"form": FORM, "benchmarks": benchmarks})


def _folder(folder: str | os.PathLike[str]) -> Path:
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise CoCoError(f"cannot write to {target}: it is a file; name a folder")
    return target


def _write(target: Path, files: dict[str, bytes]) -> list[Path]:
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
