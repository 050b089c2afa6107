import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cocoloss


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_importing_the_package_does_not_import_torch():
    assert run("import cocoloss, sys; print('torch' in sys.modules)") == "False"


@pytest.mark.parametrize("stage", ["exceptions", "geometry", "metrics", "benchmark.runner"])
def test_stages_without_networks_do_not_import_torch(stage):
    assert run(f"import cocoloss.{stage}, sys; print('torch' in sys.modules)") == "False"


@pytest.mark.parametrize("name", [n for n in cocoloss.__all__ if n != "__version__"])
def test_every_public_name_loads_on_first_use(name):
    assert getattr(cocoloss, name).__name__ == name
    assert name in dir(cocoloss)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'CocoLoss'"):
        cocoloss.CocoLoss  # noqa: B018


LATE = ["cocoloss.heads", "cocoloss.columns", "cocoloss.estimators"]


def test_packages_of_estimators_import_none_until_it_is_used():
    heavy = "{'sklearn', 'scipy', 'torch'}"
    code = f"import sys, {', '.join(LATE)}\nprint({heavy} & set(sys.modules))"
    assert run(code) == "set()"


@pytest.mark.parametrize("package", LATE)
def test_their_names_are_there_all_the_same(package):
    module = importlib.import_module(package)
    assert sorted(module.__all__) == dir(module)
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Heads'"):
        module.Heads  # noqa: B018


@pytest.mark.parametrize(("earlier", "now"), [("data", "tables"), ("preprocessing", "columns")])
def test_stages_are_found_under_their_earlier_names(earlier, now):
    old, new = (importlib.import_module(f"cocoloss.{name}") for name in (earlier, now))
    assert set(new.__all__) <= set(old.__all__)
    assert all(getattr(old, name) is getattr(new, name) for name in new.__all__)
    assert all(hasattr(old, name) for name in old.__all__)


def test_the_version_is_that_of_the_last_release():
    root = Path(__file__).parents[1]
    released = re.search(
        r"^## ([\d.]+) - ([\d-]+)$", (root / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    citation = (root / "CITATION.cff").read_text()
    cited = re.search(r'^version: (\S+)\ndate-released: "(\S+)"$', citation, re.MULTILINE)
    assert cited.groups() == released.groups()
    assert cocoloss.__version__ == released[1] or ".dev" in cocoloss.__version__
