"""The paper's main experiment: tune on inner folds, judge on outer ones.

Of each model on each table: balanced accuracy, accuracy, log loss and dispersity in every outer
fold. Hyperparameters are looked for in the training rows of the first outer fold, as the paper
does, or of every one.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from cocoloss.benchmark.evaluation import ModelKind, evaluate_folds, means
from cocoloss.benchmark.models import TEMPERED, find_model
from cocoloss.benchmark.study import Study, TrialSpace, load_optuna
from cocoloss.benchmark.tasks import Result, TableInfo, Task, Unit, seed_of
from cocoloss.exceptions import CoCoError
from cocoloss.json_text import json_value
from cocoloss.tables import Fold, stratified_folds

if TYPE_CHECKING:
    from cocoloss.benchmark.spec import Spec

OWN_MODEL = 0.5  # seconds: anybody's guess


def seconds_of_fit(
    name: str, kind: ModelKind, info: TableInfo, epochs: int, rows: float, *, n_folds: int
) -> float:
    """Return a guess at the seconds of fitting and judging a model on some folds."""
    d = info.n_columns
    if kind.neural:
        epochs_of_all = epochs if kind.takes_epochs else 100 * 6  # of six members
        rate = 8e-6 if kind.takes_epochs else 2e-6
        return 0.2 + rate * (1 + d / 1000) * rows * epochs_of_all * n_folds
    problems = 1 if info.n_classes == 2 else info.n_classes  # that a peer solves
    peers = {
        "ksvm": 0.06 + 3e-8 * rows**2 * (1 + d / 50) * problems,
        "rf": 1.7 + 2.4e-5 * rows * d,
        "hgb": 100 * problems * (1.3e-3 + 2e-5 * d + 2e-9 * rows * d),
    }
    return n_folds * peers.get(name.removesuffix("-w"), OWN_MODEL)


Steps = Generator[list[Task], list[Result], Any]

GIVE_UP_AFTER = 5  # failed trials in a row from the first on: the model fails, not the point


def plan(spec: "Spec", infos: Sequence[TableInfo]) -> list[Unit]:
    """List every model on every table, with the number of its tasks and a guess at their time."""
    with spec.at("tuning.trials"):
        for name in spec.tuning.trials:
            find_model(name, spec.models.own)  # one that is misspelt here would have no effect
    with spec.at("models.names"):
        _refuse_twins(spec.models.names)
    kinds = {name: _kind_of(spec, name) for name in spec.models.names}
    return [_unit(spec, info, name, kind) for info in infos for name, kind in kinds.items()]


def _kind_of(spec: "Spec", name: str) -> ModelKind:
    if name in spec.models.own:  # messages about it say where it is made
        return find_model(name, spec.models.own)
    with spec.at("models.names"):
        return find_model(name)


def _refuse_twins(names: Sequence[str]) -> None:
    """Refuse two spellings of one model, which would be computed twice and ranked apart."""
    found: dict[float, str] = {}
    for name in names:
        match = TEMPERED.fullmatch(name)
        if match is not None:
            other = found.setdefault(float(match[1]), name)
            if other != name:
                raise CoCoError(f"{other!r} and {name!r} are one model; name it once")


def _unit(spec: "Spec", info: TableInfo, name: str, kind: ModelKind) -> Unit:
    outer = spec.folds.outer
    studies = outer if spec.tuning.mode == "each" else 1
    trials = studies * _n_trials(spec, name, kind)
    together = kind.neural and spec.tuning.mode == "first"
    one_fit = partial(seconds_of_fit, name, kind, info, spec.training.epochs)
    rows = info.n_rows * (outer - 1) / outer
    inner = spec.folds.inner
    seconds = trials * one_fit(rows * (inner - 1) / inner, n_folds=inner)
    seconds += one_fit(rows, n_folds=outer) if together else outer * one_fit(rows, n_folds=1)
    tasks = trials + (1 if together else outer)
    return Unit.of(spec, info, name, tasks=tasks, seconds=seconds)


def drive(unit: Unit, spec: "Spec", parallel: int = 1) -> Steps:
    """Yield lists of tasks that may run side by side, and be sent their results.

    With ``tuning.mode = "first"``, ``parallel`` trials of the one study are in flight. With
    "each", the studies of that many folds go side by side, one trial each.
    """
    kind = find_model(unit.model, spec.models.own)
    outer = spec.folds.outer
    if not _n_trials(spec, unit.model, kind):
        found: list[dict[str, Any]] = [{"point": {}}] * outer
    elif spec.tuning.mode == "first":
        # NOTE[PAPER]: the first fold's training rows hold test rows of all other folds, which so
        # have a say in the hyperparameters. mode = "each" tunes every fold by its own rows.
        found = [(yield from _tune(unit, spec, kind, 0, parallel))] * outer
    else:
        found = []
        for start in range(0, outer, parallel):
            some = range(start, min(outer, start + parallel))
            found += yield from _side_by_side([_tune(unit, spec, kind, k, 1) for k in some])
    if kind.neural and all(params == found[0] for params in found):
        yield [unit.task("folds", f"0-{outer - 1}", found[0])]
    else:
        yield [unit.task("fold", k, params) for k, params in enumerate(found)]


def run(task: Task, table: Any, spec: "Spec") -> Result:
    """Compute a trial, one outer fold, or all of them."""
    kind = find_model(task.model, spec.models.own)
    X, y = table.X, np.asarray(table.y)
    outer = outer_folds(task.dataset, y, spec)
    size = _size(spec, len(y), X.shape[1], len(np.unique(y)))
    if task.stage == "trial":
        fold = int(task.part.partition("/")[0])
        train = outer[fold].train  # the test rows of the fold go no further
        params = _params_at(kind, task.params, spec, size)
        X, y = _safe_indexing(X, train), y[train]
        seed = seed_of(task.dataset, "inner", spec.folds.seed)
        inner = dict(enumerate(stratified_folds(y, spec.folds.inner, seed)))
        rows = evaluate_folds(kind, params, X, y, inner, task.seed, briefly=True)
        # NOTE[PAPER]: which validation score the optimiser gets is not said; the balanced accuracy.
        measures = means(rows)
        return Result(measures | {"score": measures["balanced_accuracy"]}, rows, dict(task.params))
    numbers = range(len(outer)) if task.stage == "folds" else [int(task.part)]
    params = _params_at(kind, task.params["point"], spec, size)
    # In lockstep or not, each fold starts from weights of its own: one bad start must not be ten.
    seeds = [replace(task, stage="fold", part=str(k)).seed for k in numbers]
    rows = evaluate_folds(kind, params, X, y, {k: outer[k] for k in numbers}, seeds)
    if "inner_score" in task.params:
        rows = [row | {"inner_score": task.params["inner_score"]} for row in rows]
    return Result(
        means(rows), rows, json_value(params, other=repr), {"point": dict(task.params["point"])}
    )


def outer_folds(dataset: str, y: NDArray[Any], spec: "Spec") -> list[Fold]:
    """Return the folds in which all models of a spec are judged on a table."""
    return stratified_folds(y, spec.folds.outer, seed_of(dataset, "outer", spec.folds.seed))


def _tune(unit: Unit, spec: "Spec", kind: ModelKind, fold: int, parallel: int) -> Steps:
    """Run the study of an outer fold; return its best point and score."""
    info = unit.info
    size = _size(spec, info.n_rows, info.n_columns, info.n_classes)
    name = f"{unit.dataset}/{unit.draws_as or unit.model}/{fold}/{unit.root}"
    study = Study(name, _space(kind, spec, size))
    n_trials = _n_trials(spec, unit.model, kind)
    error = ""
    for start in range(0, n_trials, parallel):
        asked = [study.ask() for _ in range(min(parallel, n_trials - start))]
        tasks = {
            trial.number: unit.task(
                "trial", f"{fold}/{trial.number}", trial.point, params_in_key=False
            )
            for trial in asked
            if study.score_of(trial.point) is None
        }
        results = dict(zip(tasks, (yield list(tasks.values())), strict=True)) if tasks else {}
        for trial in asked:
            result = results.get(trial.number)
            if result is None:  # a point that was tried before has the score that it had
                study.tell(trial.number, trial.point, study.score_of(trial.point))
            elif result.ok:
                study.tell(trial.number, result.params, result.measures["score"])
            else:
                study.tell(trial.number, trial.point, None)
                error = result.error
        if study.n_told >= GIVE_UP_AFTER and not study.n_scored:
            break
    if not study.n_scored:
        raise CoCoError(
            f"all {study.n_told} trials of {unit.model} on {unit.dataset} failed, the last one "
            f"with: {error}"
        )
    return {"point": study.best.point, "inner_score": study.best_score}


def _side_by_side(studies: list[Steps]) -> Steps:
    """Step several studies together; return what each returns."""
    found: list[Any] = [None] * len(studies)
    answers: dict[int, list[Result]] = {k: [] for k in range(len(studies))}
    while answers:
        waiting: dict[int, list[Task]] = {}
        for k, results in answers.items():
            try:  # every step has tasks: no results are of one that has not begun
                waiting[k] = studies[k].send(results) if results else next(studies[k])
            except StopIteration as stop:
                found[k] = stop.value
        if not waiting:
            break
        remaining = iter((yield [task for tasks in waiting.values() for task in tasks]))
        answers = {k: [next(remaining) for _ in tasks] for k, tasks in waiting.items()}
    return found


def _n_trials(spec: "Spec", model: str, kind: ModelKind) -> int:
    if kind.space is None:
        return 0
    usual = spec.tuning.trials_per_hyperparameter * kind.n_hyperparameters
    return spec.tuning.trials.get(model, usual)


def _size(spec: "Spec", n_rows: int, n_columns: int, n_classes: int) -> tuple[int, int, int]:
    """Return what spaces depend on: the rows of an outer fold's training part, columns, classes."""
    return n_rows * (spec.folds.outer - 1) // spec.folds.outer, n_columns, n_classes


def _space(kind: ModelKind, spec: "Spec", size: tuple[int, int, int]) -> TrialSpace:
    """Return the search space of a model on a table; that of our networks may have a cap."""
    assert kind.space is not None
    space: Callable[..., dict[str, Any]] = kind.space
    most = spec.training.max_units
    capped = {"max_units": most} if kind.takes_epochs and most else {}
    return lambda trial: space(trial, *size, **capped)


def _params_at(
    kind: ModelKind, point: Mapping[str, Any], spec: "Spec", size: tuple[int, int, int]
) -> dict[str, Any]:
    """Return the arguments of a model at a point of its space; its defaults for no point."""
    params: dict[str, Any] = {"max_iter": spec.training.epochs} if kind.takes_epochs else {}
    if kind.neural and spec.limits.device != "cpu":
        params["device"] = spec.limits.device
    if point and kind.space is not None:
        params |= _space(kind, spec, size)(load_optuna().trial.FixedTrial(dict(point)))
    return params
