"""Runs the Python blocks of the README and the docs, each page from top to bottom; sets marks."""

import os
import tempfile
from typing import Any

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

# Tests work on tiny arrays, and several run at once: a second thread only costs. Read when numpy,
# scipy and torch are loaded, here and in the processes that tests start.
os.environ.update({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})


def _enter_an_empty_folder(namespace: dict[str, Any]) -> None:
    """Let a page write files where nobody minds."""
    namespace["_before"], namespace["_folder"] = os.getcwd(), tempfile.TemporaryDirectory()  # noqa: PTH109
    os.chdir(namespace["_folder"].name)


def _leave(namespace: dict[str, Any]) -> None:
    os.chdir(namespace["_before"])
    namespace["_folder"].cleanup()


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "docs/*.md", "docs/*/*.md"],
    setup=_enter_an_empty_folder,
    teardown=_leave,
).pytest()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what runs the docs, and what opens a browser (by its fixture)."""
    for item in items:
        if item.path.suffix == ".md":
            item.add_marker("docs")
        if item.path.name == "trainers.md":  # guests warn of themselves
            item.add_marker(pytest.mark.filterwarnings("ignore"))
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
