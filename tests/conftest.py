import importlib
from pathlib import Path

import pytest
from hypothesis import settings

RESULTS = Path(__file__).parents[1] / "results"

settings.register_profile("patient", deadline=None)  # a busy machine is no failure
settings.load_profile("patient")


@pytest.fixture
def script(monkeypatch):
    """Import one of the scripts in results/, which lie in no package."""
    monkeypatch.syspath_prepend(RESULTS)
    return importlib.import_module
