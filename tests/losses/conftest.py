import pytest

from cocoloss.losses import coco, moments


@pytest.fixture(params=["gram", "moments", "blocks"])
def form(request, monkeypatch):
    """Compute by the Gram matrix, by moments, or by moments in blocks of a few rows."""
    monkeypatch.setattr(coco, "gram_is_cheaper", lambda *_: request.param == "gram")
    if request.param == "blocks":
        monkeypatch.setattr(moments, "BLOCK", 5)
