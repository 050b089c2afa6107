"""``cocoloss evaluate``: forecasts, what a stop leaves, caps, and where it runs."""

import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_info

from cocoloss.benchmark import evaluation
from cocoloss.benchmark.evaluation import FoldScores
from cocoloss.cli import fold_by_fold
from cocoloss.cli.fold_by_fold import Step, forecast, seconds_left, watch
from cocoloss.threads import VARIABLES

CHEAP = ("--model", "ksvm", "--model", "rf")


@pytest.fixture
def two_classes(tmp_path):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(300) < 0.3, "ill", "well")
    X = rng.normal(size=(300, 3)) + (y == "ill")[:, None]
    path = tmp_path / "patients.csv"
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(state=y).to_csv(path, index=False)
    return path


@pytest.fixture
def small_forest(monkeypatch):
    few = "cocoloss.benchmark.evaluation.RandomForestClassifier"
    monkeypatch.setattr(few, lambda _, **options: RandomForestClassifier(10, **options))


def scores(model, n_folds=10):
    return FoldScores(model, {"auc": 0.5}, 1.0, 90, 0, n_folds)


def test_what_is_left_follows_from_the_folds_that_are_finished():
    steps = [Step(scores("a"), 2.0)]
    assert seconds_left(steps, 2) is None  # nobody knows of the other
    steps.append(Step(scores("b"), 5.0))
    assert seconds_left(steps, 2) == pytest.approx(9 * 2.0 + 9 * 5.0)
    steps += [Step(scores("a"), 4.0), Step(scores("b"), 5.0), Step(scores("a"), 3.0)]
    assert seconds_left(steps, 2) == pytest.approx(7 * 3.0 + 8 * 5.0)


def test_the_forecast_says_how_long_all_of_it_takes(monkeypatch, capsys):
    assert forecast(40.2, 5, 10).startswith("about 40 s for 5 models x 10 folds")
    assert forecast(130, 1, 3).startswith("about 2 min 10 s for 1 model x 3 folds")
    clock = iter(np.arange(0, 100, 0.5))
    monkeypatch.setattr(fold_by_fold.time, "perf_counter", lambda: next(clock))
    order = [scores(model, 10) for _ in range(10) for model in ("a", "b")]
    found, stopped = watch(iter(order), {"a": "A", "b": "B"})
    assert (found, stopped) == (order, False)
    # The clock goes half a second at each look, so every fold takes as much.
    assert capsys.readouterr().err == (
        "about 10 s for 2 models x 10 folds, by the first fold of each\n"
    )
    watch(iter(order), {"a": "A", "b": "B"}, quiet=True)
    watch(iter(order[:6]), {"a": "A", "b": "B", "c": "C"})  # which has none yet
    assert not capsys.readouterr().err


def test_a_stop_keeps_what_is_finished():
    def folds():
        yield scores("a")
        yield scores("b")
        raise KeyboardInterrupt

    found, stopped = watch(folds(), {"a": "A", "b": "B"})
    assert [one.model for one in found] == ["a", "b"]
    assert stopped

    def nothing():
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        watch(nothing(), {"a": "A"})


@pytest.mark.usefixtures("small_forest")
@pytest.mark.parametrize("as_json", [False, True])
def test_a_stopped_command_prints_the_folds_of_each_model(run, two_classes, monkeypatch, as_json):
    measure, calls = evaluation.all_measures, []

    def stop(*args):
        calls.append(args)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return measure(*args)

    monkeypatch.setattr(evaluation, "all_measures", stop)
    asked = ("evaluate", two_classes, "--target", "state", *CHEAP, "--folds", 4)
    result = run(*asked, *(["--json"] if as_json else []), code=130)
    assert "note: stopped after 3 of 8 fits" in result.stderr
    if as_json:
        counts = {one["model"]: len(one["folds"]["auc"]) for one in json.loads(result.stdout)}
        assert counts == {"ksvm": 2, "rf": 1}
    else:
        assert "folds that are finished (kernel SVM 2, random forest 1)" in result.stdout
        lines = {
            line.split("│")[1].strip(): line for line in result.stdout.splitlines() if "│" in line
        }
        assert "±" in lines["kernel SVM"]
        assert "±" not in lines["random forest"]  # one fold has no spread


SLOW = """
import os, signal, sys
from cocoloss.benchmark import evaluation
measure, calls = evaluation.all_measures, []
def slow(*args):
    found = measure(*args)
    calls.append(args)
    if len(calls) == 5:
        print("now", file=sys.stderr, flush=True)
        signal.pause()
    return found
evaluation.all_measures = slow
from cocoloss.cli import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_in_the_middle_leaves_the_table(two_classes, sent, code):
    asked = ["evaluate", str(two_classes), "--target", "state", "--model", "ksvm", "--model", "ce"]
    options = ["--epochs", "1", "--folds", "5"]
    with subprocess.Popen(
        [sys.executable, "-c", SLOW, *asked, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert "now\n" in iter(process.stderr.readline, "")  # a forecast may come before
        process.send_signal(sent)
        out, err = process.communicate(timeout=300)
        assert process.returncode == code, err
    assert "kernel SVM" in out
    assert "cross-entropy" in out
    assert "AUC" in out
    assert "stopped after 4 of 10 fits" in err
    assert "Traceback" not in err


def test_support_vectors_learn_from_a_part_of_many_rows_and_it_is_said(run, two_classes):
    asked = ("evaluate", two_classes, "--target", "state", "--model", "ksvm", "--folds", 3)
    said = "kernel SVM: learnt from 50 of 200 training rows, as it is slow; --svm-rows N changes"
    assert said in run(*asked, "--svm-rows", 50).stdout
    assert "learnt from" not in run(*asked).stdout
    (found,) = json.loads(run(*asked, "--svm-rows", 50, "--json").stdout)
    assert (found["training_rows"], found["training_rows_left_out"]) == (50, 150)
    other = run("evaluate", two_classes, "--target", "state", "--model", "hgb", "--svm-rows", 50)
    assert "learnt from" not in other.stdout
    numbers = ("evaluate", two_classes, "--target", "a", "--drop", "state", "--model", "svr")
    assert "support vectors: learnt from 60 of" in run(*numbers, "--svm-rows", 60).stdout


def test_rows_of_a_cap_have_their_share_of_every_class():
    y = np.repeat([0, 1, 2], [600, 300, 3])
    fold = evaluation.Fold(np.arange(903), np.arange(0))
    part = evaluation.capped(fold, y, "ksvm", 100, seed=0)
    counts = np.bincount(y[part.train])
    assert counts.sum() == 100
    assert np.abs(counts - [66, 33, 1]).max() <= 1
    assert np.all(np.diff(part.train) > 0)
    assert evaluation.capped(fold, y, "rf", 100, seed=0) is fold
    assert evaluation.capped(fold, y, "ksvm", None, seed=0) is fold


def test_which_class_f1_is_of_is_said(run, two_classes, table):
    asked = ("--model", "ksvm", "--folds", 3)
    given = run("evaluate", two_classes, "--target", "state", *asked)
    assert "F1 is of class ill, the rarer class." in given.stdout
    even = pd.read_csv(two_classes).groupby("state").head(60)
    even.to_csv(two_classes, index=False)
    given = run("evaluate", two_classes, "--target", "state", *asked)
    assert "F1 is of class well, the second of two equally frequent ones." in given.stdout
    given = run("evaluate", table, "--target", "kind", "--drop", "id", *asked)
    assert "rarer" not in given.stdout


def test_a_device_that_is_not_there_is_one_line(refused, two_classes, table, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    commands = [
        ("evaluate", two_classes, "--target", "state"),
        ("fit", two_classes, "--target", "state", "--out", tmp_path / "m.coco"),
        ("report", two_classes, "--target", "state", "--out", tmp_path / "m.html"),
        ("demo", "--out", tmp_path / "demo"),
    ]
    for command in commands:
        line = refused(*command, "--device", "cuda")
        assert "device 'cuda' cannot be used here; it may be 'cpu'" in line
    assert os.listdir(tmp_path) == ["patients.csv"]


def test_a_device_is_where_networks_are_trained(run, two_classes, monkeypatch):
    seen = []
    monkeypatch.setattr("cocoloss.fitting.fit.check_device", seen.append)
    asked = ("evaluate", two_classes, "--target", "state", "--folds", 2, "--device", "cpu")
    run(*asked, "--model", "dr", "--epochs", 1)
    assert set(seen) == {"cpu"}


LOOK = """
import json, os, sys
from threadpoolctl import threadpool_info
import joblib
from cocoloss.benchmark import evaluation
fit = evaluation.fit_folds
def look(*args):
    import torch
    fitted = fit(*args)
    info = {"pools": [one["num_threads"] for one in threadpool_info()]}
    info |= {"torch": torch.get_num_threads(), "joblib": joblib.cpu_count()}
    print(json.dumps(info), file=sys.stderr)
    return fitted
evaluation.fit_folds = look
from cocoloss.cli import main
for n in ("3", "1"):  # first of libraries that are not loaded yet
    try:
        main([*sys.argv[1:], "--threads", n])
    except SystemExit as end:
        assert not end.code
"""


def test_threads_are_bounded_in_every_library(two_classes):
    asked = ["evaluate", str(two_classes), "--target", "state", "--model", "ce", "--epochs", "1"]
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    done = subprocess.run(
        [sys.executable, "-c", LOOK, *asked, "--folds", "2"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    found = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    for n, info in zip((3, 3, 1, 1), found, strict=True):  # two folds each
        assert set(info["pools"]) <= {1, n}  # one where libraries know no more cores
        assert info["torch"] == n
        assert info["joblib"] <= n


def test_threads_are_as_before_when_the_command_has_ended(run, two_classes):
    def numbers():
        pools = [(one["filepath"], one["num_threads"]) for one in threadpool_info()]
        variables = {name: os.environ.get(name) for name in VARIABLES}
        return pools, variables, torch.get_num_threads()

    before = numbers()
    run("evaluate", two_classes, "--target", "state", "--model", "ksvm", "--threads", 2)
    assert numbers() == before


def test_every_command_that_trains_has_device_and_threads_in_the_same_words(run):
    def words(command, option):
        text = " ".join(run(*command, "--help").stdout.split())
        return re.search(rf"{option} [A-Z]+ (.*?)(?= --|$)", text)[1]

    commands = [["fit"], ["evaluate"], ["report"], ["demo"], ["bench", "run"]]
    assert len({words(command, "--device") for command in commands}) == 1
    # Workers have one thread each unless they are told otherwise.
    assert len({words(command, "--threads").partition(";")[0] for command in commands}) == 1
