"""Measures of predictions by name, kept files, and measures that are taken later."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from bench_cli import bench, refusal
from sklearn import metrics
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from cocoloss.benchmark import Spec, Store, fold_table, run_benchmark
from cocoloss.benchmark.predictions import (
    DECISION,
    PROBABILITY,
    Predictions,
    check_measures,
    file_of,
    find_measure,
    keep,
    kept,
    measured,
    predictions_folder,
    predictions_of,
)
from cocoloss.exceptions import CoCoError

SPEC = """
name = "kept"
kind = "accuracy"
measures = ["roc_auc", "f1"]
keep_predictions = true
data = { source = "sklearn", datasets = ["iris", "breast_cancer"], max_rows = 120 }
models = { names = ["ksvm"], own = { bayes = "sklearn.naive_bayes:GaussianNB" } }
folds = { outer = 3, inner = 2 }
tuning = { trials_per_hyperparameter = 1 }
"""


def said_of(y, scores, what=PROBABILITY, n_classes=3):
    scores = np.asarray(scores, dtype=float)
    rows, names = np.arange(len(y)), tuple("abcd"[:n_classes])
    return Predictions(0, rows, np.asarray(y), scores.argmax(axis=1), names, scores, what)


@pytest.fixture
def three():
    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.ones(3), 60)
    return said_of((scores + 0.5 * rng.dirichlet(np.ones(3), 60)).argmax(axis=1), scores)


def test_the_area_of_two_classes_counts_pairs_in_the_right_order():
    y, p = np.array([0, 1, 1, 0, 1]), np.array([0.1, 0.8, 0.4, 0.4, 0.9])
    right = 0.0
    for one, other in itertools.product(range(5), range(5)):
        if y[one] == 1 and y[other] == 0:
            right += (p[one] > p[other]) + 0.5 * (p[one] == p[other])
    said = said_of(y, np.stack([1 - p, p], axis=1), n_classes=2)
    assert find_measure("auc").take(said) == pytest.approx(right / 6)
    assert find_measure("roc_auc").take(said) == find_measure("auc").take(said)


def test_the_area_of_several_classes_is_scikit_learns_where_that_exists(three):
    theirs = metrics.roc_auc_score(three.y, three.scores, multi_class="ovr")
    assert find_measure("roc_auc").take(three) == pytest.approx(theirs)
    some = three.y != 2  # a fold without a row of the last class: theirs is refused
    fewer = said_of(three.y[some], three.scores[some])
    areas = [metrics.roc_auc_score(fewer.y == c, fewer.scores[:, c]) for c in (0, 1)]
    assert find_measure("roc_auc").take(fewer) == pytest.approx(np.mean(areas))
    assert np.isnan(find_measure("roc_auc_ovr").take(fewer))
    one = three.y == 1
    assert np.isnan(find_measure("roc_auc").take(said_of(three.y[one], three.scores[one])))


def test_every_scorer_of_scikit_learn_gives_what_it_gives_a_model():
    X, y = load_iris(return_X_y=True)
    y = y % 2
    model = LogisticRegression().fit(X[::2], y[::2])
    test = np.arange(1, 150, 2)
    said = predictions_of(
        model, X[test], y[test], fold=0, rows=test, task="classes", classes=np.arange(2)
    )
    names = ["f1", "roc_auc", "neg_log_loss", "average_precision", "precision", "neg_brier_score"]
    names += ["balanced_accuracy", "matthews_corrcoef", "d2_log_loss_score"]
    for name in names:
        theirs = metrics.get_scorer(name)(model, X[test], y[test])
        assert find_measure(name).take(said) == pytest.approx(theirs), name
    log_loss = find_measure("log_loss")
    assert log_loss.take(said) == pytest.approx(-find_measure("neg_log_loss").take(said))
    assert not log_loss.higher_is_better


def test_f1_of_several_classes_is_the_mean_of_all(three):
    per_class = []
    for c in range(3):
        hits = np.sum((three.y == c) & (three.predicted == c))
        per_class.append(2 * hits / (np.sum(three.y == c) + np.sum(three.predicted == c)))
    assert find_measure("f1").take(three) == pytest.approx(np.mean(per_class))


def test_what_needs_probabilities_is_left_out_of_a_model_without(three):
    names = ["roc_auc", "neg_log_loss", "log_loss", "accuracy"]
    decisions = said_of(three.y, three.scores, DECISION)
    assert list(measured(decisions, names)) == ["roc_auc", "accuracy"]
    labels = Predictions(0, three.rows, three.y, three.predicted, three.classes)
    assert list(measured(labels, names)) == ["accuracy"]


def test_measures_of_ones_own_are_metrics_or_scorers(three, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("gains.py").write_text(
        "from sklearn.metrics import make_scorer, zero_one_loss\n"
        "def hits(y, predicted): return (y == predicted).mean()\n"
        "def sure(model, X, y): return model.predict_proba(X).max(axis=1).mean()\n"
        "def misses(y, predicted): return 1 - hits(y, predicted)\n"
        "misses.greater_is_better = False\n"
        "made = make_scorer(zero_one_loss, greater_is_better=False)\n"
        "def odd(y): return 0\n"
        "def broken(y, predicted): return 1 / 0\n"
        "number = 3\n"
    )
    hits = np.mean(three.y == three.predicted)
    assert find_measure("gains:hits").take(three) == pytest.approx(hits)
    assert find_measure("gains:sure").take(three) == pytest.approx(three.scores.max(axis=1).mean())
    assert find_measure("gains:misses").take(three) == pytest.approx(1 - hits)
    assert not find_measure("gains:misses").higher_is_better
    assert find_measure("gains:made").take(three) == pytest.approx(hits - 1)
    for name, said in {
        "gains:odd": "needs 1 arguments; a metric takes two",
        "gains:number": "must be a function, not int",
        "gains:none": "has no 'none'; check the spelling",
        "no_such_module:f": "there is no module 'no_such_module'",
        "rocauc": "no measure 'rocauc'; did you mean 'roc_auc'",
    }.items():
        with pytest.raises(CoCoError, match=said):
            find_measure(name)
    with pytest.raises(CoCoError, match="'gains:broken' failed: ZeroDivisionError"):
        find_measure("gains:broken").take(three)
    with pytest.raises(CoCoError, match="'auc' needs probabilities, which numbers have not"):
        check_measures(["auc"], "numbers")
    check_measures(["rmse", "r2", "neg_mean_absolute_error"], "numbers")


def test_measures_that_depend_on_how_classes_are_numbered_are_refused_for_classes():
    of_order = {"rmse", "mae", "kappa", "r2", "explained_variance", "d2_absolute_error_score"}
    of_order |= {name for name in metrics.get_scorer_names() if "_error" in name}
    for name in of_order:
        with pytest.raises(CoCoError, match=f"'{name}' is one of numbers or levels"):
            check_measures([name], "classes")
    for_classes = ["auc", "f1", "log_loss", "accuracy", "balanced_accuracy", "top_k_accuracy"]
    for_classes += ["precision", "recall_macro", "jaccard", "matthews_corrcoef", "rand_score"]
    check_measures([*for_classes, "roc_auc_ovo", "neg_brier_score"], "classes")
    check_measures(["mae", "kappa"], "levels")


@pytest.mark.parametrize("task", ["classes", "levels", "numbers"])
def test_what_is_kept_comes_back_as_it_was(three, tmp_path, task):
    folds = [
        three,
        Predictions(
            4,
            three.rows,
            three.y,
            three.predicted,
            three.classes,
            three.scores[::-1],
            three.scores_are,
        ),
    ]
    if task == "numbers":
        folds = [
            Predictions(k, f.rows, f.y + 0.5, f.predicted * 1.5, task=task)
            for k, f in enumerate(folds)
        ]
    elif task == "levels":
        folds = [
            Predictions(k, f.rows, f.y, f.predicted + 2, f.classes, f.scores, f.scores_are, task)
            for k, f in enumerate(folds)
        ]
    key = "accuracy/a%2Fb c?/ü-model/fold/0/0123456789abcdef"
    keep(tmp_path, key, folds)
    (file,) = tmp_path.iterdir()  # nothing is left aside
    assert file == file_of(tmp_path, key)
    again = kept(tmp_path, key)
    assert [each.fold for each in again] == [each.fold for each in folds]
    for one, other in zip(folds, again, strict=True):
        for name in ("rows", "y", "predicted", "scores"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        for name in ("classes", "scores_are", "task"):
            assert getattr(one, name) == getattr(other, name)
    frame = pd.read_parquet(file)  # anybody can read it
    assert list(frame.columns[:4]) == ["fold", "row", "y", "predicted"]
    if task == "classes":
        assert set(frame["y"]) <= set("abc")
        assert "p(b)" in frame.columns
    assert kept(tmp_path, key + "0") is None
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(CoCoError, match="is damaged"):
        kept(tmp_path, key)


def test_a_server_needs_a_folder_for_predictions():
    store = SimpleNamespace(name="postgresql://h/b", database=SimpleNamespace(is_file=False))
    with pytest.raises(CoCoError, match="say where by --predictions FOLDER"):
        predictions_folder(store)
    assert predictions_folder(store, "here") == Path("here")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished benchmark: its folder, and its scores before anything was added."""
    folder = tmp_path_factory.mktemp("kept")
    (folder / "kept.toml").write_text(SPEC)
    before = Path.cwd()
    os.chdir(folder)
    try:
        bench("run", "kept.toml", "--workers", 0)
    finally:
        os.chdir(before)
    return folder


def scores_of(folder):
    with Store(folder / "kept.sqlite", create=False) as store:
        return fold_table(store)


def test_a_run_records_measures_and_keeps_what_was_said_of_outer_folds(finished):
    scores = scores_of(finished)
    assert len(scores) == 2 * 2 * 3
    assert scores[["roc_auc", "f1"]].notna().all(axis=None)
    files = sorted((finished / "kept.predictions").glob("*.parquet"))
    assert len(files) == 12  # a task each; none of the trials
    frames = [pd.read_parquet(file) for file in files]
    assert sum(map(len, frames)) == 2 * (120 + 120)  # every row once for each model
    for frame in frames:
        hits = (frame["y"].astype(str) == frame["predicted"].astype(str)).mean()
        assert hits in scores["accuracy"].to_numpy()


def test_a_measure_that_is_added_later_is_what_the_run_would_have_recorded(finished, monkeypatch):
    monkeypatch.chdir(finished)
    before = scores_of(finished)
    text = bench("measure", "kept.sqlite", "--measure", "balanced_accuracy", "--measure", "roc_auc")
    assert "12 tasks of kept.sqlite have balanced_accuracy, roc_auc now" in text.stdout
    after = scores_of(finished)
    pd.testing.assert_frame_equal(before, after)  # the same numbers, and nothing else
    result = bench("measure", "kept.sqlite", "--measure", "log_loss", "--json")
    found = json.loads(result.stdout)
    assert (found["tasks"], found["folds"], found["lacking"]) == (12, 12, ["ksvm"])
    added = scores_of(finished).set_index(["model", "dataset", "fold"])["log_loss"]
    recorded = before.set_index(["model", "dataset", "fold"])["log_loss"]
    pd.testing.assert_series_equal(added.loc[["bayes"]], recorded.loc[["bayes"]])
    assert added.loc[["ksvm"]].isna().all()
    bench("export", "kept.sqlite", "--out", "scores.csv")
    bench("report", "kept.sqlite", "--out", "report", "--measure", "f1")
    assert "roc\\_auc" in Path("report/report.md").read_text()
    made = json.loads(Path("report/report.json").read_text())
    assert made["benchmarks"][0]["analysis"]["measure"] == "f1"
    assert "has no measure 'f2'" in refusal(
        "report", "kept.sqlite", "--out", "report", "--measure", "f2"
    )


def test_what_cannot_be_measured_is_said(finished, monkeypatch, tmp_path):
    monkeypatch.chdir(finished)
    assert "did you mean 'roc_auc'" in refusal("measure", "kept.sqlite", "--measure", "rocauc")
    assert "one of numbers or levels" in refusal("measure", "kept.sqlite", "--measure", "r2")
    said = refusal("measure", "kept.sqlite", "--measure", "zzz")
    assert said.count(" f1,") == said.count(" roc_auc,") == 1
    assert "holds no predictions" in refusal(
        "measure", "kept.sqlite", "--measure", "f1", "--predictions", tmp_path
    )
    assert "there is no store" in refusal("measure", "none.sqlite", "--measure", "f1")
    assert not Path("none.sqlite").exists()


def test_an_option_keeps_predictions_where_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("few.toml").write_text(
        SPEC.replace("keep_predictions = true", "")
        .replace('"ksvm"', "")
        .replace('"iris", "breast_cancer"', '"iris"')
    )
    bench("run", "few.toml", "--workers", 0)
    assert not list(tmp_path.glob("**/*.parquet"))
    assert "holds no predictions" in refusal("measure", "kept.sqlite", "--measure", "auc")
    # What is done is not done again; what was kept is what was run.
    Path("kept.sqlite").unlink()
    bench("run", "few.toml", "--workers", 1, "--predictions", "elsewhere/deep")
    assert len(list(Path("elsewhere/deep").iterdir())) == 3
    bench("measure", "kept.sqlite", "--measure", "auc", "--predictions", "elsewhere/deep")


def test_optimising_another_measure_scores_trials_by_it():
    content = {
        "name": "x",
        "kind": "accuracy",
        "data": {"source": "sklearn", "datasets": ["iris"]},
        "models": {"names": ["hgb"]},
        "folds": {"outer": 2, "inner": 2},
        "tuning": {"trials": {"hgb": 2}},
    }
    spec = Spec.from_dict(content | {"optimise": "log_loss"})
    tasks = run_and_read(spec)
    trials = [row for row in tasks if row["stage"] == "trial"]
    assert len(trials) == 2
    for trial in trials:
        assert trial["measures"]["score"] == -trial["measures"]["log_loss"]
        inner = [row["log_loss"] for row in trial["rows"]]
        assert trial["measures"]["log_loss"] == pytest.approx(np.mean(inner))
    best = max(trials, key=lambda trial: trial["measures"]["score"])
    fold = next(row for row in tasks if row["stage"] == "fold")
    assert fold["extra"]["point"] == best["params"]


def run_and_read(spec):
    with TemporaryDirectory() as folder:
        store = Path(folder) / "x.sqlite"
        run_benchmark(spec, store, workers=0)
        with Store(store, create=False) as opened:
            return list(opened.rows())


def test_a_model_without_probabilities_cannot_be_tuned_by_them():
    content = {
        "name": "x",
        "kind": "accuracy",
        "optimise": "neg_log_loss",
        "data": {"source": "sklearn", "datasets": ["iris"]},
        "models": {"names": ["ksvm"]},
        "folds": {"outer": 2, "inner": 2},
        "tuning": {"trials": {"ksvm": 6}},
    }
    rows = run_and_read(Spec.from_dict(content))
    assert len(rows) == 5  # and then it is given up
    assert "ksvm cannot be tuned by 'neg_log_loss', which needs probabilities" in rows[0]["error"]


# Drivers that are forked when all is imported; of those of the second store each is killed but one.
DRIVERS = """
import os, random, signal, sys, time
from cocoloss.benchmark import evaluation, load_spec, models, predictions, run_benchmark
from cocoloss.benchmark.store import Store
from cocoloss.exceptions import CoCoError

spec, whole, killed = sys.argv[1:]

def start(path):
    driver = os.fork()
    if driver:
        return driver
    run_benchmark(load_spec(spec), path, workers=0)
    os._exit(0)

def n_results():
    try:
        with Store(killed, create=False) as store:
            return len(list(store.rows(columns=["key"])))
    except CoCoError:
        return 0

assert os.waitpid(start(whole), 0)[1] == 0
moments, kills = random.Random(0), 0
while True:
    driver, ended, status = start(killed), 0, 0
    while not ended and n_results() < 2 + 2 * kills:
        time.sleep(0.005)
        ended, status = os.waitpid(driver, os.WNOHANG)
    if not ended:
        time.sleep(moments.uniform(0, 0.03))
        ended, status = os.waitpid(driver, os.WNOHANG)
    if ended:
        sys.exit(os.waitstatus_to_exitcode(status))
    os.kill(driver, signal.SIGKILL)
    os.waitpid(driver, 0)
    kills += 1
    print("killed", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.cluster
def test_killed_at_any_moment_every_result_has_its_predictions(tmp_path):
    (tmp_path / "kept.toml").write_text(SPEC)
    whole, killed = tmp_path / "whole.sqlite", tmp_path / "killed.sqlite"
    command = [sys.executable, "-c", DRIVERS, str(tmp_path / "kept.toml"), str(whole), str(killed)]
    kills = 0
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as drivers:
        while drivers.stdout.readline() == "killed\n":
            kills += 1
            check_kept(killed)
            drivers.stdin.write("\n")
            drivers.stdin.flush()
    assert drivers.returncode == 0
    assert kills >= 2
    assert check_kept(killed) == check_kept(whole)


def check_kept(path):
    """Return what was said, by key, of all that is in a store: it lacks nothing."""
    found = {}
    folder = path.with_suffix(".predictions")
    with Store(path, create=False) as store:
        for row in store.rows(columns=["key", "stage", "status", "rows"]):
            if row["stage"] == "fold" and row["status"] == "ok":
                (said,) = kept(folder, row["key"])
                assert find_measure("accuracy").take(said) == row["rows"][0]["accuracy"]
                found[row["key"]] = said.predicted.tolist()
    return found
