"""``cocoloss report``: the model of `fit`, on a page that tells how the file was read."""

import json

import numpy as np
import pytest

from cocoloss import CoCoClassifier
from cocoloss.columns import settle_kinds
from cocoloss.recording import record_fit
from cocoloss.recording.watch import split_test

FAST = ("--epochs", 3, "--members", 2, "--json")


def report(run, path, out, *options):
    result = run("report", path, "--target", "kind", "--out", out, *FAST, *options)
    return json.loads(result.stdout)


@pytest.mark.parametrize("priors", ["uniform", "empirical"])
def test_priors_are_those_of_the_model(run, frame, tmp_path, priors):
    lopsided = frame[(frame["kind"] != "bee") | (frame.index % 4 == 0)].drop(columns="id")
    path = tmp_path / "lopsided.csv"
    lopsided.to_csv(path, index=False)
    facts = report(run, path, tmp_path / "r.html", "--priors", priors)
    estimator = CoCoClassifier(max_iter=3, n_members=2, priors=priors, random_state=0)
    X = settle_kinds(lopsided.drop(columns="kind"))
    record = record_fit(estimator, X, lopsided["kind"])
    assert facts["priors"] == priors
    assert facts["log_loss"] == pytest.approx(record.log_loss, rel=1e-4)
    assert facts["balanced_accuracy"] == pytest.approx(record.balanced_accuracy)


def test_the_page_tells_the_columns_of_the_file(run, frame, tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "r.html"
    named = frame.assign(
        who=[f"person {k}" for k in frame.index],
        price=[f"${k},000.50" for k in range(1, len(frame) + 1)],
        unit="kg",
    )
    named.drop(columns="id").to_csv(path, index=False)
    facts = report(run, path, out)
    assert facts["priors"] == "uniform"
    assert list(facts["dropped_columns"]) == ["who", "unit"]
    assert facts["dropped_columns"]["who"].startswith("text: nearly every value differs")
    page = out.read_text()
    assert "5 of 7 columns are used: 2 numbers, 2 categories, 1 date." in page
    assert "7 columns, 3 classes" in page
    assert "(written as $1,234.5)" in page


def test_a_cell_that_only_the_test_rows_have_is_read_as_fit_would(run, frame, tmp_path):
    labels = np.searchsorted(np.unique(frame["kind"]), frame["kind"])
    _, test = split_test(labels, 0.2, np.random.default_rng(0))
    size = frame["size"].astype(object)
    size[test[0]] = "broken"
    path, out = tmp_path / "t.csv", tmp_path / "r.html"
    frame.assign(size=size).drop(columns="id").to_csv(path, index=False)
    report(run, path, out)
    assert "(other text is a gap, " in out.read_text()


def test_kernels_have_a_page_of_their_own(run, refused, frame, tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "r.html"
    frame.drop(columns="id").to_csv(path, index=False)
    asked = ("report", path, "--target", "kind", "--out", out, "--solver", "kernel")
    assert "--embedding-dim is for networks" in refused(*asked, "--embedding-dim", 2)
    assert not out.exists()
    facts = json.loads(run(*asked, "--json").stdout)
    assert facts["ridge_chosen"] > 0
    assert sum(facts["importances"].values()) == pytest.approx(1)
    estimator = CoCoClassifier(solver="kernel", random_state=0)
    X = settle_kinds(frame.drop(columns=["id", "kind"]))
    record = record_fit(estimator, X, frame["kind"], n_snapshots=0)
    assert facts["log_loss"] == pytest.approx(record.log_loss, rel=1e-4)
    page = out.read_text()
    for title in (
        "The embedding, ridge by ridge",
        "The ridge path",
        "Leave-one-out",
        "Importances",
    ):
        assert title in page
    assert "epoch by epoch" not in page


def test_ctrl_c_leaves_no_page_and_no_part_of_one(run, frame, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    path = tmp_path / "t.csv"
    frame.drop(columns="id").to_csv(path, index=False)
    asked = ("report", path, "--target", "kind", "--solver", "kernel", "--out", tmp_path / "r.html")
    for place in (
        "cocoloss.recording.watch.make_film",
        "cocoloss.report.run_report.run_report",
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, interrupt)
            assert "nothing was left half-written" in run(*asked, code=130).stderr
        assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]
