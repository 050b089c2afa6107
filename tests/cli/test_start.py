"""The command is there at once, and heavy libraries come in only where they are needed."""

import resource
import subprocess
import sys

import pandas as pd
import pytest

from cocoloss import (
    CoCoClassifier,
    CoCoRegressor,
    CrossEntropyClassifier,
    DotRegressionClassifier,
)

HEAVY = ("torch", "pandas", "sklearn", "scipy", "numpy", "rich", "matplotlib", "optuna", "dask")


def modules_after(code):
    code += f"\nimport sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def runs(*commands):
    """Return code that runs some commands one after the other, and minds how each ends."""
    return "from cocoloss.cli import main\n" + "".join(
        f"try: main({[str(arg) for arg in args]})\nexcept SystemExit as end: assert not end.code\n"
        for args in commands
    )


def test_help_imports_nothing_heavy():
    assert modules_after(runs(["--help"], ["fit", "--help"], ["predict", "--help"])) == "[]"


def test_help_is_there_at_once():
    def seconds():  # of the processor: others may keep it busy
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "cocoloss", "--help"]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(5)) < 0.3


def test_predicting_needs_neither_torch_nor_scikit_learn(frame, table, tmp_path):
    X, y = frame.drop(columns=["id", "kind"]), frame["kind"]
    small = {"max_iter": 1, "n_members": 1, "random_state": 0}
    heads = ("gaussian", "centroid", "angular")
    models = [
        *(CoCoClassifier(head=head, **small).fit(X, y) for head in heads),
        DotRegressionClassifier(head="readout", **small).fit(X, y),
        CrossEntropyClassifier(head="readout", **small).fit(X, y),
    ]
    commands = []
    for number, model in enumerate(models):
        file = tmp_path / f"{number}.coco"
        model.save(file)
        commands += [
            ["predict", file, table, "--out", tmp_path / "1.csv"],
            ["predict", file, table, "--proba", "--outliers", "--explain", "2", "--keep", "id"],
            ["embed", file, table, "--keep", "id", "--out", tmp_path / "2.csv"],
        ]
    size = X["size"].fillna(0)
    CoCoRegressor(random_state=0).fit(X, size).save(tmp_path / "regressor.coco")
    asked = ["--interval", "0.9", "--outliers", "--keep", "id", "--out", tmp_path / "3.csv"]
    commands.append(["predict", tmp_path / "regressor.coco", table, *asked])
    numbers = X[["size"]].fillna(0)  # a model of arrays, whose columns have no names
    numbers.to_csv(tmp_path / "numbers.csv", index=False)
    CoCoClassifier(**small).fit(numbers.to_numpy(), y).save(tmp_path / "array.coco")
    commands.append(["predict", tmp_path / "array.coco", tmp_path / "numbers.csv"])
    decided = ["--costs", "ant=5,bee=1,cicada=1", "--priors", "empirical", "--proba"]
    commands.append(["predict", tmp_path / "0.coco", table, *decided])
    assert modules_after(runs(*commands)) == "['pandas', 'numpy']"
    kernels = CoCoClassifier(solver="kernel", random_state=0).fit(X, y)
    kernels.save(tmp_path / "kernels.coco")
    asked = ["--outliers", "--explain", "2"]
    loaded = modules_after(runs(["predict", tmp_path / "kernels.coco", table, *asked]))
    assert loaded in ("['pandas', 'numpy']", "['pandas', 'scipy', 'numpy']")  # an L1 kernel's


@pytest.mark.filterwarnings("ignore::cocoloss.columns.column_kinds.ColumnsWarning")
def test_predicting_from_text_needs_neither(frame, tmp_path):
    words = frame["city"] + " is seen by " + frame["alive"] + " or " + frame["kind"]
    texts = [f"{text} {'abcdefgh'[k % 8] * 3} {'ijklm'[k % 5] * 4}" for k, text in enumerate(words)]
    X = pd.DataFrame({"note": texts, "size": frame["size"]})
    model = CoCoClassifier(max_iter=1, n_members=1, random_state=0).fit(X, frame["kind"])
    assert model.preprocessor_.kinds_ == {"note": "text", "size": "number"}
    model.save(tmp_path / "m.coco")
    X.to_csv(tmp_path / "t.csv", index=False)
    command = ["predict", tmp_path / "m.coco", tmp_path / "t.csv", "--out", tmp_path / "p.csv"]
    assert modules_after(runs(command)) == "['pandas', 'numpy']"
    predicted = pd.read_csv(tmp_path / "p.csv")["prediction"]
    assert predicted.tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("head", ["ridge", "svm"])
def test_a_head_of_scikit_learns_predicts_as_well(frame, table, tmp_path, run, head):
    X, y = frame.drop(columns=["id", "kind"]), frame["kind"]
    model = CoCoClassifier(max_iter=1, n_members=1, head=head, random_state=0).fit(X, y)
    model.save(tmp_path / "m.coco")
    run("predict", tmp_path / "m.coco", table, "--out", tmp_path / "p.csv")
    predicted = pd.read_csv(tmp_path / "p.csv")["prediction"]
    assert predicted.tolist() == model.predict(X).tolist()


# A reader who follows a command through our code passes through so many modules at most.
MODULES_RUN = {"fit": 45, "predict": 25}
NETWORK = ["--epochs", "1", "--members", "1"]
COUNT = """
import sys, threading
for name in HEAVY:  # importing them takes long if every call is noted
    __import__(name)
ran = set()
def note(frame, event, _):
    name = frame.f_globals.get("__name__", "")
    code = frame.f_code  # not the bodies of modules and classes, nor what makes dataclasses of them
    if event == "call" and code.co_flags & 1 and code.co_name != "__create_fn__":
        ran.update([name] if name.startswith("cocoloss") else [])
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


@pytest.mark.parametrize(("command", "options"), [("fit", NETWORK), ("fit", []), ("predict", [])])
def test_a_command_runs_through_few_modules(table, model, tmp_path, command, options):
    given = [model, table] if command == "predict" else [table, "--target", "kind", *options]
    out = tmp_path / ("out.csv" if command == "predict" else "out.coco")
    arguments = [command, *map(str, given), "--out", str(out)]
    heavy = ["pandas"] if command == "predict" else ["torch", "pandas", "sklearn"]
    code = [sys.executable, "-c", f"HEAVY = {heavy}\n{COUNT}", *arguments]
    done = subprocess.run(code, capture_output=True, text=True, check=True)
    assert int(done.stdout.splitlines()[-1]) <= MODULES_RUN[command]
