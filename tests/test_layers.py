"""Data flows down the folders, imports flow up: one table says which stage may know which."""

import ast
from pathlib import Path

import pytest

import cocoloss

PACKAGE = Path(cocoloss.__file__).parent

# Low to high. A stage imports only from lower layers: never from its own layer, never from above.
LAYERS = [
    {"exceptions", "_validation", "_random", "_late"},
    {"geometry", "files"},
    {"data", "networks", "losses", "heads", "metrics", "stats"},
    {"preprocessing", "training"},
    {"estimators"},
    {"recording"},
    {"benchmark"},
    {"report"},
    {"cli"},
    {"__main__"},
]
LEVEL = {stage: level for level, stages in enumerate(LAYERS) for stage in stages}
FOUNDATION = LAYERS[0]  # these few may know each other
MAY_USE_TORCH = {"networks", "losses", "training", "estimators", "recording"}


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
            within = other == stage or {stage, other} <= FOUNDATION
            if not within and LEVEL[other] >= LEVEL[stage]:
                yield f"{stage} imports {other}"


MODULES = sorted(p for p in PACKAGE.rglob("*.py") if p.parent != PACKAGE or p.stem != "__init__")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_knows_only_the_layers_below(path):
    stage = stage_of(path)
    assert stage in LEVEL, f"{stage} has no layer: add it to the table"
    assert not list(breaches(stage, imported_names(ast.parse(path.read_text()))))


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
