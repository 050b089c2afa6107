"""Data flows down the folders, imports flow up: one table says which stage may know which."""

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import cocoloss

PACKAGE = Path(cocoloss.__file__).parent

# Low to high. A stage imports from lower layers; within a layer a stage may use another where that
# saves writing a thing twice, never in a circle.
LAYERS = [
    {"exceptions", "_checks", "_late", "files", "json_text", "number_text", "pace", "threads"},
    {"geometry"},
    {"metrics", "stats"},
    {"losses", "networks", "kernels", "heads"},
    {"tables", "columns", "training"},
    {"fitting"},
    {"estimators"},
    {"recording"},
    {"benchmark"},
    {"report"},
    {"cli"},
    {"__main__", "data", "preprocessing"},
]
LEVEL = {stage: level for level, stages in enumerate(LAYERS) for stage in stages}
MAY_USE_TORCH = {"networks", "losses", "training", "fitting", "estimators", "recording"}


@cache
def parsed(path):
    return ast.parse(path.read_text())


@cache
def names_imported_by(path):
    return list(imported_names(parsed(path)))


def stage_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_names(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield node.module
            if node.module == "cocoloss":
                yield from (f"cocoloss.{alias.name}" for alias in node.names)


def breaches(stage, names):
    """Say which of the imported names a stage may not import."""
    for name in names:
        root, *rest = name.split(".")
        if root == "torch" and stage not in MAY_USE_TORCH:
            yield f"{stage} uses torch"
        if root == "cocoloss" and rest and rest[0] in LEVEL:
            other = rest[0]
            if LEVEL[other] > LEVEL[stage]:
                yield f"{stage} imports {other}"


def test_no_stages_import_each_other_in_a_circle():
    knows = {stage: set() for stage in LEVEL}
    for path in MODULES:
        for name in names_imported_by(path):
            root, *rest = name.split(".")
            if root == "cocoloss" and rest and rest[0] in LEVEL and rest[0] != stage_of(path):
                knows[stage_of(path)].add(rest[0])
    list(TopologicalSorter(knows).static_order())  # raises CycleError


MODULES = sorted(p for p in PACKAGE.rglob("*.py") if p.parent != PACKAGE or p.stem != "__init__")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_knows_only_the_layers_below(path):
    stage = stage_of(path)
    assert stage in LEVEL, f"{stage} has no layer: add it to the table"
    assert not list(breaches(stage, names_imported_by(path)))


@pytest.mark.parametrize(
    ("stage", "source"),
    [
        ("geometry", "import torch"),
        ("metrics", "from cocoloss.losses import CoCoLoss"),
        ("geometry", "import cocoloss.losses.coco"),
        ("exceptions", "from cocoloss import geometry"),
    ],
)
def test_the_rule_notices_a_breach(stage, source):
    assert list(breaches(stage, imported_names(ast.parse(source))))


def used_names(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            yield node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)


def test_no_function_of_the_benchmark_is_left_unused():
    root = PACKAGE.parent.parent
    folders = (PACKAGE, root / "paper", root / "bench", root / "examples")
    sources = (path for folder in folders for path in folder.rglob("*.py"))
    used = {name for path in sources for name in used_names(parsed(path))}
    used |= set(re.findall(r"\w+", "".join(p.read_text() for p in (root / "docs").rglob("*.md"))))
    made = {
        node.name
        for path in (PACKAGE / "benchmark").rglob("*.py")
        for node in parsed(path).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    assert made - used == {"dask_setup"}  # which Dask calls


def test_the_picture_of_the_house_names_what_is_there():
    root = PACKAGE.parent.parent
    text = (root / "CONTRIBUTING.md").read_text()
    picture, rest = text.split("    src/cocoloss/\n")[1].split("Where to change what")
    drawn, folder = set(), PACKAGE
    for line in picture.splitlines():
        indent, name = re.match(r"( *)([\w/.]*)", line).groups()
        if name.endswith("/") and len(indent) <= 6:
            folder = (PACKAGE if len(indent) == 6 else root) / name
            assert folder.is_dir(), name
        elif len(indent) == 6:
            folder = PACKAGE
        if len(indent) == 6:
            drawn.update(re.findall(r"\w+", line[6:].split("  ")[0].removesuffix(".py")))
        assert not [f for f in re.findall(r"\b\w+\.py\b", line) if not (folder / f).exists()]
    assert drawn == set(LEVEL) - {"__main__", "exceptions", "_late", "data", "preprocessing"}
    named = re.findall(r"`(\w+/[\w/.]*)`", rest)
    assert not [
        name for name in named if not any((base / name).exists() for base in (PACKAGE, root))
    ]


def test_no_folder_holds_more_files_than_a_reader_takes_in():
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    counts = {folder.name: len(list(folder.glob("*.py"))) for folder in folders}
    assert max(counts.values()) <= 15, counts
