"""Numbers and levels on folds: their models, ours beside peers, and their measures.

What :mod:`cocoloss.benchmark.evaluation` is for classes. Levels are their ranks here, 0 to C - 1.
The experiments "regression" and "ordinal" judge the same models over many tables, untuned.
"""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import RidgeCV
from sklearn.metrics import (
    cohen_kappa_score,
    mean_absolute_error,
    r2_score,
    root_mean_squared_error,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.utils import _safe_indexing

from cocoloss.benchmark.evaluation import Evaluation
from cocoloss.benchmark.spec import what_there_is
from cocoloss.benchmark.tasks import Result, TableInfo, Unit, seed_of, task_of
from cocoloss.benchmark.tasks import Task as FoldTask
from cocoloss.columns import TablePreprocessor
from cocoloss.estimators import CoCoClassifier, CoCoOrdinalClassifier, CoCoRegressor
from cocoloss.exceptions import CoCoError
from cocoloss.metrics import balanced_accuracy
from cocoloss.tables import Fold, stratified_folds

if TYPE_CHECKING:
    from cocoloss.benchmark.spec import Spec

COVERAGE = 0.9  # of the intervals that are judged
PARTS = 10  # of numbers, from small to large, that each fold has as many of
TREES = 500
Maker = Callable[[int], Any]  # from a seed to an estimator that is not fitted


@dataclass(frozen=True)
class Model:
    """A model of a task."""

    name: str  # in words
    make: Maker
    rule: str = ""  # by which levels are read off, if the estimator knows rules


@dataclass(frozen=True)
class Judge:
    """What can be predicted: by which models, and judged by which measures."""

    models: Mapping[str, Model]
    # Name -> whether larger is better, None if neither is; the first one ranks.
    measures: Mapping[str, bool | None]
    measure: Callable[[Model, Any, Any, NDArray[Any]], dict[str, float]]
    target: Callable[[Any], NDArray[Any]]  # y as models get it
    parts: Callable[[NDArray[Any]], NDArray[Any]]  # of which each fold has its share


def _peer(make: Maker) -> Maker:
    return lambda seed: make_pipeline(TablePreprocessor(), make(seed))


def _boosting(seed: int) -> Any:
    return HistGradientBoostingRegressor(random_state=seed)


def _support_vectors(_seed: int) -> Any:
    return TransformedTargetRegressor(SVR(), transformer=StandardScaler())


def _lightgbm(seed: int) -> Any:
    guest = import_module("lightgbm")  # which is not among our requirements
    return guest.LGBMRegressor(random_state=seed, n_jobs=-1, verbose=-1)


REGRESSORS = {
    "coco": Model("CoCo", lambda seed: CoCoRegressor(random_state=seed)),
    "hgb": Model("boosted trees", _peer(_boosting)),
    "rf": Model(
        "random forest",
        _peer(lambda seed: RandomForestRegressor(TREES, random_state=seed, n_jobs=-1)),
    ),
    "svr": Model("support vectors", _peer(_support_vectors)),
    "ridge": Model("ridge", _peer(lambda _: RidgeCV(np.logspace(-3, 4, 15)))),
}
if find_spec("lightgbm") is not None:
    REGRESSORS["lightgbm"] = Model("LightGBM", _peer(_lightgbm))


def _of_levels(seed: int) -> Any:
    return CoCoOrdinalClassifier(random_state=seed)


LEVELS = {
    "coco": Model("CoCo, most probable level", _of_levels, "mode"),
    "coco-median": Model("CoCo, middle level", _of_levels, "median"),
    "coco-classes": Model("CoCo without order", lambda seed: CoCoClassifier(random_state=seed)),
    "rf": Model(
        "random forest of classes",
        _peer(
            lambda seed: RandomForestClassifier(
                TREES, class_weight="balanced", random_state=seed, n_jobs=-1
            )
        ),
    ),
    "hgb": Model("boosted trees, rounded", _peer(_boosting)),
}


def measure_numbers(model: Model, fitted: Any, X: Any, y: NDArray[Any]) -> dict[str, float]:  # noqa: ARG001
    """Return how far predictions of rows are off, and how often intervals of 90 % hold the truth.

    Only models that have ``predict_interval`` have a coverage.
    """
    predicted = np.asarray(fitted.predict(X))
    covered = np.nan
    if hasattr(fitted, "predict_interval"):
        low, high = fitted.predict_interval(X, COVERAGE).T
        covered = float(np.mean((low <= y) & (y <= high)))
    return {
        "rmse": float(root_mean_squared_error(y, predicted)),
        "mae": float(mean_absolute_error(y, predicted)),
        "r2": float(r2_score(y, predicted)) if len(y) > 1 else np.nan,
        "coverage": covered,
    }


def measure_levels(model: Model, fitted: Any, X: Any, y: NDArray[Any]) -> dict[str, float]:
    """Return how good predicted ranks of levels are; those of a regressor are rounded."""
    rule = {"rule": model.rule} if model.rule else {}
    predicted = np.asarray(fitted.predict(X, **rule))
    ranks = np.clip(np.rint(predicted), 0, None).astype(np.int64)
    return {
        "balanced_accuracy": balanced_accuracy(y, ranks),
        "mae": float(np.abs(y - ranks).mean()),
        "kappa": _kappa(y, ranks),
    }


def _kappa(y: NDArray[np.int64], ranks: NDArray[np.int64]) -> float:
    """Return Cohen's kappa with quadratic weights; by chance it is 0."""
    every = np.arange(max(y.max(), ranks.max()) + 1)
    if len(every) < 2:
        return np.nan
    return float(cohen_kappa_score(y, ranks, labels=every, weights="quadratic"))


def _ranks(y: Any) -> NDArray[Any]:
    """Return ranks of an ordered categorical, or of numbers."""
    if isinstance(getattr(y, "dtype", None), pd.CategoricalDtype):
        return np.asarray(y.cat.codes, dtype=np.int64)
    return np.unique(np.asarray(y), return_inverse=True)[1].astype(np.int64)


def _tenths(y: NDArray[Any]) -> NDArray[Any]:
    return np.argsort(np.argsort(y, kind="stable"), kind="stable") * PARTS // len(y)


TASKS = {
    "numbers": Judge(
        REGRESSORS,
        {"rmse": False, "mae": False, "r2": True, "coverage": None},
        measure_numbers,
        lambda y: np.asarray(y, dtype=np.float64),
        _tenths,
    ),
    "levels": Judge(
        LEVELS,
        {"balanced_accuracy": True, "mae": False, "kappa": True},
        measure_levels,
        _ranks,
        lambda ranks: ranks,
    ),
}


def find_model(judge: Judge, name: str) -> Model:
    """Return a model by its name."""
    if name not in judge.models:
        raise CoCoError(f"there is no model {name!r}{what_there_is(name, judge.models)}")
    return judge.models[name]


def folds_of(judge: Judge, y: NDArray[Any], n_folds: int, seed: int) -> list[Fold]:
    """Return shuffled folds, each with its share of every level, or of small and large numbers."""
    if len(y) < 2 * n_folds:
        raise CoCoError(
            f"{len(y)} rows are too few for {n_folds} folds; ask for {max(2, len(y) // 2)} at most"
        )
    return stratified_folds(judge.parts(y), n_folds, seed)


def fit_fold(make: Maker, X: Any, y: NDArray[Any], fold: Fold, seed: int) -> tuple[Any, float]:
    """Return an estimator that is fitted to the training rows of a fold, and the seconds."""
    started = time.perf_counter()
    fitted = make(seed).fit(_safe_indexing(X, fold.train), y[fold.train])
    return fitted, time.perf_counter() - started


def evaluate_task(
    X: Any,
    y: Any,
    task: str,
    models: Sequence[str] = (),
    *,
    n_folds: int = 10,
    seed: int = 0,
    on_model: Callable[[str], object] | None = None,
) -> list[Evaluation]:
    """Cross-validate models of numbers or levels on one table, all on the same folds.

    ``on_model`` is told each name before its turn; models that differ by a rule share their fits.
    """
    judge = TASKS[task]
    target = judge.target(y)
    folds = folds_of(judge, target, n_folds, seed)
    evaluations: list[Evaluation] = []
    fits_of: dict[Maker, list[tuple[Any, float]]] = {}
    for name in models or judge.models:
        if on_model is not None:
            on_model(name)
        model = find_model(judge, name)
        if model.make not in fits_of:
            fits_of[model.make] = [fit_fold(model.make, X, target, fold, seed) for fold in folds]
        fits = fits_of[model.make]
        rows = [
            judge.measure(model, fitted, _safe_indexing(X, fold.test), target[fold.test])
            for (fitted, _), fold in zip(fits, folds, strict=True)
        ]
        values = {measure: np.array([row[measure] for row in rows]) for measure in judge.measures}
        seconds = float(np.mean([seconds for _, seconds in fits]))
        evaluations.append(Evaluation(name, values, seconds))
    return evaluations


# The experiments "regression" and "ordinal".

USES_FOLDS = ("outer",)
SECONDS = {"coco": 2e-3, "coco-median": 2e-3, "coco-classes": 2e-3, "rf": 1e-3}  # roughly, a row
USUAL_SECONDS = 1e-4


def plan(spec: "Spec", infos: Sequence[TableInfo]) -> list[Unit]:
    """List every model on every table: a task for each outer fold."""
    judge = TASKS[task_of(spec.kind)]
    with spec.at("models.names"):
        for name in (*spec.models.own, *spec.models.names):
            find_model(judge, name)
    outer = spec.folds.outer
    return [
        Unit.of(
            spec,
            info,
            name,
            tasks=outer,
            seconds=outer * (0.2 + info.n_rows * SECONDS.get(name, USUAL_SECONDS)),
        )
        for info in infos
        for name in spec.models.names
    ]


def drive(
    unit: Unit,
    spec: "Spec",
    parallel: int = 1,  # noqa: ARG001 - nothing is tuned
) -> Generator[list[FoldTask], list[Result], None]:
    """Yield the outer folds, which may run side by side."""
    yield [unit.task("fold", k) for k in range(spec.folds.outer)]


def run(task: FoldTask, table: Any, spec: "Spec") -> Result:
    """Fit a model to the training rows of an outer fold, and judge it by the others.

    "relative_rmse" is the RMSE over that of the mean of the training rows: tables have many units.
    """
    judge = TASKS[task_of(spec.kind)]
    model, y = find_model(judge, task.model), judge.target(table.y)
    seed = seed_of(task.dataset, "outer", spec.folds.seed)
    fold = folds_of(judge, y, spec.folds.outer, seed)[int(task.part)]
    fitted, seconds = fit_fold(model.make, table.X, y, fold, task.seed)
    found = judge.measure(model, fitted, _safe_indexing(table.X, fold.test), y[fold.test])
    if "rmse" in found:
        guess = np.full(len(fold.test), y[fold.train].mean())
        error = root_mean_squared_error(y[fold.test], guess)
        found["relative_rmse"] = float(found["rmse"] / error) if error else float("nan")
    return Result(found, [{"fold": int(task.part), **found, "fit_seconds": seconds}])
