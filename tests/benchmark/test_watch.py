"""When the clock of a task runs, and where a limit may strike."""

import importlib
import json
import subprocess
import sys
import textwrap

import pytest

from cocoloss.benchmark.watch import TooLongError, Watch


def endlessly():
    while True:
        pass


def test_a_limit_waits_for_the_end_of_an_import(tmp_path, monkeypatch):
    (tmp_path / "slow_to_import.py").write_text(
        "import time\n\nfor _ in range(50):\n    time.sleep(0.01)\ncomplete = True\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    imported = []

    def work():
        imported.append(importlib.import_module("slow_to_import"))
        endlessly()

    with pytest.raises(TooLongError):
        Watch(seconds=0.1).call(work)
    assert imported[0].complete


def test_all_is_imported_when_the_clock_of_the_first_task_starts(tmp_path):
    (tmp_path / "own_slow.py").write_text(
        "from sklearn.tree import DecisionTreeClassifier as make\n"
    )
    script = """
        import json, sys
        from types import SimpleNamespace
        from cocoloss.benchmark import worker
        from cocoloss.benchmark.keys import TableInfo, Unit
        from cocoloss.benchmark.spec import Spec
        from sklearn.datasets import load_iris

        spec = Spec.from_dict({
            "name": "cold",
            "kind": "accuracy",
            "data": {"source": "sklearn"},
            "models": {"names": ["coco-default"], "own": {"mine": "own_slow:make"}},
            "folds": {"outer": 2},
        })
        X, y = load_iris(return_X_y=True)
        table = SimpleNamespace(X=X[::5], y=y[::5])
        info = TableInfo("iris", 30, 4, 3, "")
        at_start = []
        call = worker.Watch.call

        def noting(watch, work):
            at_start.append(set(sys.modules))
            return call(watch, work)

        worker.Watch.call = noting
        for model, stage in (("coco-default", "folds"), ("mine", "fold")):
            unit = Unit.of(spec, info, model, tasks=1, seconds=1.0)
            task = unit.task(stage, "0", {"point": {}})
            done = worker.run_task(task, table, spec)
            assert done.result.ok, done.traceback
        late = {name.partition(".")[0] for name in set(sys.modules) - at_start[0]}
        print(json.dumps(sorted(late)))
    """
    answer = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        check=True,
    )
    heavy = {"torch", "sklearn", "scipy", "optuna", "pandas", "cocoloss", "own_slow"}
    assert heavy & set(json.loads(answer.stdout)) == set()
