"""The command is there at once, and heavy libraries come in only where they are needed."""

import subprocess
import sys
import time

import pandas as pd
import pytest

from cocoloss import CoCoClassifier, CrossEntropyClassifier, DotRegressionClassifier

HEAVY = ("torch", "pandas", "sklearn", "scipy", "numpy", "rich", "matplotlib", "optuna", "dask")


def modules_after(code):
    code += f"\nimport sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("args", [["--help"], ["fit", "--help"], ["predict", "--help"]])
def test_help_imports_nothing_heavy(args):
    code = f"import sys\nfrom cocoloss.cli import main\ntry: main({args})\nexcept SystemExit: pass"
    assert modules_after(code) == "[]"


def test_help_is_there_at_once():
    def seconds():
        started = time.perf_counter()
        command = [sys.executable, "-m", "cocoloss", "--help"]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - started

    assert min(seconds() for _ in range(5)) < 0.3


def runs(*commands):
    """Return code that runs some commands one after the other, and minds how each ends."""
    return "from cocoloss.cli import main\n" + "".join(
        f"try: main({[str(arg) for arg in args]})\nexcept SystemExit as end: assert not end.code\n"
        for args in commands
    )


@pytest.mark.parametrize(
    ("cls", "head"),
    [
        *((CoCoClassifier, "gaussian"), (CoCoClassifier, "centroid"), (CoCoClassifier, "angular")),
        *((DotRegressionClassifier, "readout"), (CrossEntropyClassifier, "readout")),
    ],
)
def test_predicting_needs_neither_torch_nor_scikit_learn(frame, table, tmp_path, cls, head):
    model = tmp_path / "m.coco"
    X, y = frame.drop(columns=["id", "kind"]), frame["kind"]
    cls(max_iter=1, n_members=1, head=head, random_state=0).fit(X, y).save(model)
    code = runs(
        ["predict", model, table, "--out", tmp_path / "1.csv"],
        ["predict", model, table, "--proba", "--outliers", "--keep", "id"],
        ["embed", model, table, "--keep", "id", "--out", tmp_path / "2.csv"],
    )
    assert modules_after(code) == "['pandas', 'numpy']"


def test_predicting_by_a_model_of_arrays_needs_no_scikit_learn_either(frame, tmp_path):
    model, table = tmp_path / "m.coco", tmp_path / "t.csv"
    X = frame[["size"]].fillna(0)
    X.to_csv(table, index=False)
    CoCoClassifier(max_iter=1, n_members=1).fit(X.to_numpy(), frame["kind"]).save(model)
    assert modules_after(runs(["predict", model, table])) == "['pandas', 'numpy']"


@pytest.mark.parametrize("head", ["ridge", "svm"])
def test_a_head_of_scikit_learns_predicts_as_well(frame, table, tmp_path, run, head):
    X, y = frame.drop(columns=["id", "kind"]), frame["kind"]
    model = CoCoClassifier(max_iter=1, n_members=1, head=head, random_state=0).fit(X, y)
    model.save(tmp_path / "m.coco")
    run("predict", tmp_path / "m.coco", table, "--out", tmp_path / "p.csv")
    predicted = pd.read_csv(tmp_path / "p.csv")["prediction"]
    assert predicted.tolist() == model.predict(X).tolist()


# A reader who follows a command through our code passes through so many modules at most.
MODULES_RUN = {"fit": 51, "predict": 25}
COUNT = """
import sys, threading
ran = set()
def note(frame, event, _):
    name = frame.f_globals.get("__name__", "")
    if event == "call" and frame.f_code.co_flags & 1 and name.startswith("cocoloss"):
        ran.add(name)  # not the bodies of modules and classes
sys.setprofile(note)
threading.setprofile(note)
from cocoloss.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert not end.code
sys.setprofile(None)
print(len(ran))
"""


@pytest.mark.parametrize("command", MODULES_RUN)
def test_a_command_runs_through_few_modules(table, model, tmp_path, command):
    options = ["--target", "kind", "--epochs", "1", "--members", "1"]
    given = [model, table] if command == "predict" else [table, *options]
    out = tmp_path / ("out.csv" if command == "predict" else "out.coco")
    arguments = [command, *map(str, given), "--out", str(out)]
    code = [sys.executable, "-c", COUNT, *arguments]
    done = subprocess.run(code, capture_output=True, text=True, check=True)
    assert int(done.stdout.splitlines()[-1]) <= MODULES_RUN[command]
