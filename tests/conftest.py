import importlib
from pathlib import Path

import pytest
import torch
from hypothesis import settings

RESULTS = Path(__file__).parents[1] / "results"

# Tests work on tiny tensors: a second thread only costs (a trial suite went from 47 s to 6 s).
torch.set_num_threads(1)
settings.register_profile("patient", deadline=None)  # a busy machine is no failure
settings.load_profile("patient")


@pytest.fixture
def script(monkeypatch):
    """Import one of the scripts in results/, which lie in no package."""
    monkeypatch.syspath_prepend(RESULTS)
    return importlib.import_module
