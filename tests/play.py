"""An experiment without runner, workers and store: each task is run as it comes."""

from types import SimpleNamespace

import numpy as np
from sklearn.datasets import load_iris, load_wine

from cocoloss.benchmark.spec import Spec
from cocoloss.benchmark.tasks import FAILED, Result, TableInfo


def table_of(X, y, name="table"):
    return SimpleNamespace(X=X, y=np.asarray(y), name=name)


def wine():
    return table_of(*load_wine(return_X_y=True, as_frame=True), name="wine")


def iris():
    return table_of(*load_iris(return_X_y=True), name="iris")


def info_of(table):
    return TableInfo(table.name, len(table.y), table.X.shape[1], len(np.unique(table.y)), "print")


def spec_of(kind, names, **sections):
    content = {"name": "test", "kind": kind, "data": {"source": "sklearn"}}
    return Spec.from_dict(content | {"models": {"names": list(names)}} | sections)


def play(experiment, spec, table, *, parallel=1, store=None, most_tasks=None):
    """Run the first unit of a spec; return (task, result) in order.

    ``store`` keeps results by key, as the runner does; after ``most_tasks`` new tasks all stops.
    """
    store = {} if store is None else store
    unit = experiment.plan(spec, [info_of(table)])[0]
    done, n_new, results = [], 0, None
    steps = experiment.drive(unit, spec, parallel)
    while True:
        try:
            tasks = next(steps) if results is None else steps.send(results)
        except StopIteration:
            return done
        results = []
        for task in tasks:
            if task.key not in store:
                if n_new == most_tasks:
                    return done
                store[task.key] = run_safely(experiment, task, table, spec)
                n_new += 1
            results.append(store[task.key])
            done.append((task, store[task.key]))


def run_safely(experiment, task, table, spec):
    try:
        return experiment.run(task, table, spec)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is recorded
        return Result(status=FAILED, error=f"{type(error).__name__}: {error}")
