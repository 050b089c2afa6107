"""The protocol of a benchmark: tune on inner folds, judge on outer ones.

Of each model on each table: balanced accuracy, accuracy, log loss and dispersity in every outer
fold, or errors where targets are numbers or levels; and whatever a spec asks for besides.
Hyperparameters are looked for in the training rows of the first outer fold, as the paper does, or
of every one.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from cocoloss.benchmark.evaluation import ModelKind, evaluate_folds, means
from cocoloss.benchmark.models import TEMPERED, find_model
from cocoloss.benchmark.numbers_and_levels import (
    TASKS,
    Model,
    find_for_benchmark,
    folds_of,
    judge_folds,
)
from cocoloss.benchmark.predictions import (
    Predictions,
    check_measures,
    find_measure,
    measured,
    predictions_of,
)
from cocoloss.benchmark.study import Study, TrialSpace, load_optuna
from cocoloss.benchmark.tasks import Result, TableInfo, Task, Unit, properties_of, seed_of
from cocoloss.exceptions import CoCoError
from cocoloss.json_text import json_value
from cocoloss.tables import (
    Fold,
    forward_folds,
    given_folds,
    grouped_folds,
    stratified_folds,
    times_of,
)

if TYPE_CHECKING:
    from cocoloss.benchmark.spec import Spec

OWN_MODEL = 0.5  # seconds: a guess
# Seconds of models of numbers and levels, roughly, for each row
SECONDS_A_ROW = {"coco": 2e-3, "coco-median": 2e-3, "coco-classes": 2e-3, "rf": 1e-3}
USUAL_SECONDS = 1e-4
TAKES_ALL_KEYS = True  # measures, optimise, keep_predictions and all kinds of folds
AnyModel = ModelKind | Model


def seconds_of_fit(
    name: str, kind: AnyModel, info: TableInfo, epochs: int, rows: float, *, n_folds: int
) -> float:
    """Return a guess at the seconds of fitting and judging a model on some folds."""
    if isinstance(kind, Model):
        return n_folds * (0.2 + rows * SECONDS_A_ROW.get(name, USUAL_SECONDS))
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
    peers |= {"hgb-raw": peers["hgb"], "lightgbm": peers["hgb"], "catboost": 20 * peers["hgb"]}
    return n_folds * peers.get(name.removesuffix("-w"), OWN_MODEL)


Steps = Generator[list[Task], list[Result], Any]

GIVE_UP_AFTER = 5  # failed trials in a row from the first on: the model fails, not the point


def plan(spec: "Spec", infos: Sequence[TableInfo]) -> list[Unit]:
    """List every model on every table, with the number of its tasks and a guess at their time."""
    task = properties_of(spec.kind).task
    with spec.at("tuning.trials"):
        for name in spec.tuning.trials:
            _find(spec, name, spec.models.own)  # one that is misspelt here would have no effect
    with spec.at("models.names"):
        _refuse_twins(spec.models.names)
    with spec.at("measures"):
        check_measures(spec.measures, task)
    with spec.at("optimise"):
        check_measures([spec.optimise] if spec.optimise else [], task)
    kinds = {name: _kind_of(spec, name) for name in spec.models.names}
    return [_unit(spec, info, name, kind) for info in infos for name, kind in kinds.items()]


def _kind_of(spec: "Spec", name: str) -> AnyModel:
    if name in spec.models.own:  # messages about it say where it is made
        return _find(spec, name, spec.models.own)
    with spec.at("models.names"):
        return _find(spec, name)


def _find(spec: "Spec", name: str, own: Mapping[str, str] | None = None) -> AnyModel:
    task = properties_of(spec.kind).task
    return (
        find_model(name, own) if task == "classes" else find_for_benchmark(TASKS[task], name, own)
    )


def _refuse_twins(names: Sequence[str]) -> None:
    """Refuse two spellings of one model, which would be computed twice and ranked apart."""
    found: dict[float, str] = {}
    for name in names:
        match = TEMPERED.fullmatch(name)
        if match is not None:
            other = found.setdefault(float(match[1]), name)
            if other != name:
                raise CoCoError(f"{other!r} and {name!r} are one model; name it once")


def _unit(spec: "Spec", info: TableInfo, name: str, kind: AnyModel) -> Unit:
    outer = n_outer(spec, info)
    studies = outer if spec.tuning.mode == "each" else 1
    trials = studies * _n_trials(spec, name, kind)
    together = kind.neural and spec.tuning.mode == "first"
    one_fit = partial(seconds_of_fit, name, kind, info, spec.training.epochs)
    rows = info.n_rows * (spec.folds.outer - 1) / spec.folds.outer
    inner = spec.folds.inner
    seconds = trials * one_fit(rows * (inner - 1) / inner, n_folds=inner)
    seconds += one_fit(rows, n_folds=outer) if together else outer * one_fit(rows, n_folds=1)
    tasks = trials + (1 if together else outer)
    return Unit.of(spec, info, name, tasks=tasks, seconds=seconds, version=kind.version)


def n_outer(spec: "Spec", info: TableInfo) -> int:
    """Return how many outer folds are run: given ones are as many as the table says."""
    n_folds = info.n_folds or spec.folds.outer * spec.folds.repeats
    return min(n_folds, spec.folds.judged or n_folds)


def drive(unit: Unit, spec: "Spec", parallel: int = 1) -> Steps:
    """Yield lists of tasks that may run side by side, and be sent their results.

    With ``tuning.mode = "first"``, ``parallel`` trials of the one study are in flight. With
    "each", the studies of that many folds go side by side, one trial each.
    """
    kind = _find(spec, unit.model, spec.models.own)
    outer = n_outer(spec, unit.info)
    if not _n_trials(spec, unit.model, kind):
        # Numbers and levels were never tuned once, and their keys do not know of points.
        untuned: dict[str, Any] = {} if isinstance(kind, Model) else {"point": {}}
        found: list[dict[str, Any]] = [untuned] * outer
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
    kind = _find(spec, task.model, spec.models.own)
    data = Rows.of(task.dataset, table, spec)
    outer = data.outer_folds()
    size = _size(spec, len(data.y), data.X.shape[1], data.n_classes)
    if task.stage == "trial":
        # The test rows of the fold go no further.
        data = data.at(outer[int(task.part.partition("/")[0])].train)
        params = _params_at(kind, task.params, spec, size)
        return _trial(task, data, kind, params)
    numbers = range(len(outer)) if task.stage == "folds" else [int(task.part)]
    point = dict(task.params.get("point", {}))
    params = _params_at(kind, point, spec, size)
    # In lockstep or not, each fold starts from weights of its own: one bad start must not be ten.
    seeds = [replace(task, stage="fold", part=str(k)).seed for k in numbers]
    folds = {k: outer[k] for k in numbers}
    rows, predictions = data.evaluate(kind, params, folds, seeds, spec.measures)
    if "inner_score" in task.params:
        rows = [row | {"inner_score": task.params["inner_score"]} for row in rows]
    if spec.folds.repeats > 1:
        rows = [
            {"fold": row["fold"], "repeat": row["fold"] // spec.folds.outer} | row for row in rows
        ]
    extra = {"point": point} if "point" in task.params else {}
    kept = predictions if spec.keep_predictions else ()
    return Result(means(rows), rows, json_value(params, other=repr), extra, predictions=kept)


def _trial(task: Task, data: "Rows", kind: AnyModel, params: Mapping[str, Any]) -> Result:
    """Judge a point on inner folds, by what the spec optimises."""
    spec = data.spec
    inner = dict(enumerate(data.inner_folds()))
    rows, _ = data.evaluate(kind, params, inner, task.seed, (), briefly=True)
    found = means(rows)
    # NOTE[PAPER]: which validation score the optimiser gets is not said; the balanced accuracy.
    name = spec.optimise or (
        "balanced_accuracy" if data.task == "classes" else TASKS[data.task].optimise
    )
    if name not in found:
        raise CoCoError(
            f"{task.model} cannot be tuned by {name!r}, which needs probabilities; it has none"
        )
    higher = name == "balanced_accuracy" or find_measure(name).higher_is_better
    return Result(
        found | {"score": found[name] if higher else -found[name]}, rows, dict(task.params)
    )


@dataclass(frozen=True, eq=False)
class Rows:
    """A table, or some of its rows, as a spec has it split."""

    dataset: str
    spec: "Spec"
    task: str  # what the targets are
    X: Any  # without the column that splits
    y: NDArray[Any]
    by: NDArray[Any] | None = None  # the values of that column

    @classmethod
    def of(cls, dataset: str, table: Any, spec: "Spec") -> "Rows":
        """Return all rows of a table."""
        task = properties_of(spec.kind).task
        y = np.asarray(table.y) if task == "classes" else TASKS[task].target(table.y)
        how, column = spec.folds.split
        if not how:
            return cls(dataset, spec, task, table.X, y)
        by = table.X[column]
        by = times_of(by) if how == "time" else by.to_numpy()
        return cls(dataset, spec, task, table.X.drop(columns=column), y, by)

    def at(self, rows: NDArray[np.intp]) -> "Rows":
        """Return some of the rows."""
        by = None if self.by is None else self.by[rows]
        return replace(self, X=_safe_indexing(self.X, rows), y=self.y[rows], by=by)

    @property
    def n_classes(self) -> int:
        """How many classes or levels there are; 0 of numbers."""
        return 0 if self.task == "numbers" else len(np.unique(self.y))

    def outer_folds(self) -> list[Fold]:
        """Return the folds in which all models are judged."""
        folds = self.spec.folds
        how, _ = folds.split
        judged = folds.judged or None
        if how == "given":
            return given_folds(self.by)[:judged]
        names = [
            ("outer", folds.seed),
            *(("outer", folds.seed, r) for r in range(1, folds.repeats)),
        ]
        return [fold for name in names for fold in self._split(folds.outer, *name)][:judged]

    def inner_folds(self) -> list[Fold]:
        """Return the folds on which a point is tried; at random where the outer ones are given."""
        return self._split(self.spec.folds.inner, "inner", self.spec.folds.seed)

    def _split(self, n_folds: int, *names: Any) -> list[Fold]:
        how, _ = self.spec.folds.split
        if how == "time":
            return forward_folds(self.by, n_folds)
        seed = seed_of(self.dataset, *names)
        parts = self.y if self.task == "classes" else TASKS[self.task].parts(self.y)
        if how == "group":
            return grouped_folds(parts, self.by, n_folds, seed)
        if self.task == "classes":
            return stratified_folds(parts, n_folds, seed)
        return folds_of(TASKS[self.task], self.y, n_folds, seed)

    def evaluate(
        self,
        kind: AnyModel,
        params: Mapping[str, Any],
        folds: Mapping[int, Fold],
        seeds: int | Sequence[int],
        measures: Sequence[str],
        *,
        briefly: bool = False,
    ) -> tuple[list[dict[str, Any]], list[Predictions]]:
        """Return a row of measures for each fold, and the predictions if they are asked for.

        ``briefly`` is for trials, which have the measure that is optimised.
        """
        spec, predictions = self.spec, []
        classes = np.unique(self.y) if self.task != "numbers" else np.empty(0)
        names = tuple(measures) if not briefly else (spec.optimise,) if spec.optimise else ()

        def on_fold(number: int, test: NDArray[np.int64], fitted: Any) -> dict[str, float]:
            each = predictions_of(
                fitted,
                _safe_indexing(self.X, test),
                self.y[test],
                fold=number,
                rows=test,
                task=self.task,
                classes=classes,
            )
            predictions.append(each)
            return measured(each, names)

        asked = bool(names) or (spec.keep_predictions and not briefly)
        options: dict[str, Any] = {"on_fold": on_fold} if asked else {}
        if isinstance(kind, Model):
            seeds = [seeds] * len(folds) if isinstance(seeds, int) else seeds
            judge, options = TASKS[self.task], options | {"device": spec.limits.device}
            rows = judge_folds(judge, kind, params, self.X, self.y, folds, seeds, **options)
        else:
            options["briefly"] = briefly
            rows = evaluate_folds(kind, params, self.X, self.y, folds, seeds, **options)
        return rows, predictions


def outer_folds(dataset: str, y: NDArray[Any], spec: "Spec") -> list[Fold]:
    """Return the folds in which all models of a spec are judged on a table, split at random."""
    return stratified_folds(y, spec.folds.outer, seed_of(dataset, "outer", spec.folds.seed))


def _tune(unit: Unit, spec: "Spec", kind: AnyModel, fold: int, parallel: int) -> Steps:
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


def _n_trials(spec: "Spec", model: str, kind: AnyModel) -> int:
    if kind.space is None or not spec.tunes:
        return 0
    usual = spec.tuning.trials_per_hyperparameter * kind.n_hyperparameters
    return spec.tuning.trials.get(model, usual)


def _size(spec: "Spec", n_rows: int, n_columns: int, n_classes: int) -> tuple[int, int, int]:
    """Return what spaces depend on: the rows of an outer fold's training part, columns, classes."""
    return n_rows * (spec.folds.outer - 1) // spec.folds.outer, n_columns, n_classes


def _space(kind: AnyModel, spec: "Spec", size: tuple[int, int, int]) -> TrialSpace:
    """Return the search space of a model on a table; that of our networks may have a cap."""
    assert kind.space is not None
    space: Callable[..., dict[str, Any]] = kind.space
    most = spec.training.max_units
    capped = {"max_units": most} if kind.takes_epochs and most else {}
    return lambda trial: space(trial, *size, **capped)


def _params_at(
    kind: AnyModel, point: Mapping[str, Any], spec: "Spec", size: tuple[int, int, int]
) -> dict[str, Any]:
    """Return the arguments of a model at a point of its space; its defaults for no point."""
    params: dict[str, Any] = {"max_iter": spec.training.epochs} if kind.takes_epochs else {}
    if kind.neural and spec.limits.device != "cpu":
        params["device"] = spec.limits.device
    if point and kind.space is not None:
        params |= _space(kind, spec, size)(load_optuna().trial.FixedTrial(dict(point)))
    return params
