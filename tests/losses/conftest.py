import pytest

from cocoloss.losses import coco, moments

FORMS = ("gram", "moments", "blocks")


@pytest.fixture
def compute_by(monkeypatch):
    """Compute by the Gram matrix, by moments, or by moments in blocks of a few rows."""

    def choose(form):
        monkeypatch.setattr(coco, "gram_is_cheaper", lambda *_: form == "gram")
        if form == "blocks":
            monkeypatch.setattr(moments, "BLOCK", 5)

    return choose


@pytest.fixture(params=FORMS)
def form(request, compute_by):
    compute_by(request.param)
