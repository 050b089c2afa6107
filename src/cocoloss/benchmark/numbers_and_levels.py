"""Numbers and levels on folds: their models, ours beside peers, and their measures.

What :mod:`cocoloss.benchmark.evaluation` is for classes. Levels are their ranks here, 0 to C - 1.
The experiments "regression" and "ordinal" judge the same models over many tables, and some more.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

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

from cocoloss.benchmark.evaluation import (
    SVM_ROWS,
    Evaluation,
    FoldScores,
    OnFold,
    Space,
    capped,
    gathered,
)
from cocoloss.benchmark.spec import what_there_is
from cocoloss.benchmark.study import (
    suggest_boosting,
    suggest_catboost,
    suggest_forest,
    suggest_lightgbm,
    suggest_svr,
)
from cocoloss.columns import RawFrame, TablePreprocessor
from cocoloss.estimators import CoCoClassifier, CoCoOrdinalClassifier, CoCoRegressor
from cocoloss.exceptions import CoCoError
from cocoloss.metrics import balanced_accuracy
from cocoloss.tables import Fold, stratified_folds

COVERAGE = 0.9  # of the intervals that are judged
PARTS = 10  # of numbers, from small to large, that each fold has as many of
TREES = 500
Maker = Callable[..., Any]  # from a seed, and perhaps arguments, to an estimator, not fitted


@dataclass(frozen=True)
class Model:
    """A model of a task."""

    name: str  # in words
    make: Maker
    space: Space | None = None  # None if it is not tuned
    n_hyperparameters: int = 0
    rule: str = ""  # by which levels are read off, if the estimator knows rules
    whose: str = ""  # what messages call a model of the user's own; empty for ours
    needs: str = ""  # a package that need not be installed
    version: str = ""  # makes other keys of its tasks, where a model of a name has changed
    neural: ClassVar[bool] = False  # as ModelKind has it
    takes_epochs: ClassVar[bool] = False


@dataclass(frozen=True)
class Judge:
    """What can be predicted: by which models, and judged by which measures."""

    models: Mapping[str, Model]
    # Name -> whether larger is better, None if neither is; the first one ranks.
    measures: Mapping[str, bool | None]
    measure: Callable[[Model, Any, Any, NDArray[Any]], dict[str, float]]
    target: Callable[[Any], NDArray[Any]]  # y as models get it
    parts: Callable[[NDArray[Any]], NDArray[Any]]  # of which each fold has its share
    optimise: str  # the measure that is tuned by, if no other is named
    more: Mapping[str, Model] = field(default_factory=dict)  # that only benchmarks have


def _peer(make: Maker) -> Maker:
    return lambda seed, **params: make_pipeline(TablePreprocessor(), make(seed, **params))


def _boosting(seed: int, **params: Any) -> Any:
    return HistGradientBoostingRegressor(random_state=seed, **params)


def _support_vectors(_seed: int, **params: Any) -> Any:
    return TransformedTargetRegressor(SVR(**params), transformer=StandardScaler())


def _forest(make: Maker, seed: int, feature_share: float | None = None, **fixed: Any) -> Any:
    share = {} if feature_share is None else {"max_features": feature_share}
    return make(TREES, random_state=seed, n_jobs=-1, **share, **fixed)


def _lightgbm(seed: int) -> Any:
    guest = import_module("lightgbm")  # which is not among our requirements
    return guest.LGBMRegressor(random_state=seed, n_jobs=-1, verbose=-1)


REGRESSORS = {
    "coco": Model("CoCo", lambda seed: CoCoRegressor(random_state=seed)),
    "hgb": Model("boosted trees", _peer(_boosting), suggest_boosting, 4),
    "rf": Model("random forest", _peer(partial(_forest, RandomForestRegressor)), suggest_forest, 1),
    "svr": Model("support vectors", _peer(_support_vectors), suggest_svr, 2),
    "ridge": Model("ridge", _peer(lambda _: RidgeCV(np.logspace(-3, 4, 15)))),
}
if find_spec("lightgbm") is not None:
    REGRESSORS["lightgbm"] = Model("LightGBM", _peer(_lightgbm))


def _of_levels(seed: int) -> Any:
    return CoCoOrdinalClassifier(random_state=seed)


LEVELS = {
    "coco": Model("CoCo, most probable level", _of_levels, rule="mode"),
    "coco-median": Model("CoCo, middle level", _of_levels, rule="median"),
    "coco-classes": Model("CoCo without order", lambda seed: CoCoClassifier(random_state=seed)),
    "rf": Model(
        "random forest of classes",
        _peer(partial(_forest, RandomForestClassifier, class_weight="balanced")),
        suggest_forest,
        1,
    ),
    "hgb": Model("boosted trees, rounded", _peer(_boosting), suggest_boosting, 4),
}


class Reading:
    """A reader of tables and a model behind it, which need be no estimator of scikit-learn's."""

    def __init__(self, reader: Any, model: Any) -> None:
        self.reader, self.model = reader, model
        for name in ("predict_proba", "predict_interval"):
            if hasattr(model, name):
                setattr(self, name, partial(self._ask, name))

    def fit(self, X: Any, y: NDArray[Any]) -> "Reading":
        """Fit both."""
        self.model.fit(self.reader.fit(X).transform(X), y)
        self.classes_ = getattr(self.model, "classes_", np.unique(y))
        return self

    def predict(self, X: Any) -> Any:
        """Return what the model predicts."""
        return self._ask("predict", X)

    def _ask(self, name: str, X: Any, *more: Any) -> Any:
        return getattr(self.model, name)(self.reader.transform(X), *more)


def _on_frames(make: str, *given: Any, **fixed: Any) -> Maker:
    """Return what makes a model of :mod:`cocoloss.benchmark.models` that reads frames."""

    def made(seed: int, **params: Any) -> Any:
        models = import_module("cocoloss.benchmark.models")  # torch, which only benchmarks need
        return Reading(RawFrame(), getattr(models, make)(*given, params, seed, **fixed))

    return made


_BOOSTED = (  # name, what makes it, its space, t, and what it needs
    ("hgb-raw", "boosting_on_frames", HistGradientBoostingRegressor, suggest_boosting, 4, ""),
    ("lightgbm", "lightgbm_model", "Regressor", suggest_lightgbm, 4, "lightgbm"),
    ("catboost", "catboost_model", "Regressor", suggest_catboost, 3, "catboost"),
)
# LightGBM had the matrix that others have, before it had frames.
ON_FRAMES = {
    name: Model(name, _on_frames(make, which), space, t, needs=needs, version="frames")
    for name, make, which, space, t, needs in _BOOSTED
}
LEVELS_ON_FRAMES = ON_FRAMES | {
    f"{name}-w": Model(
        f"{name} of classes", _on_frames(make, "Classifier", **weights), space, t, needs=name
    )
    for name, make, space, t, weights in (
        ("lightgbm", "lightgbm_model", suggest_lightgbm, 4, {"class_weight": "balanced"}),
        ("catboost", "catboost_model", suggest_catboost, 3, {"auto_class_weights": "Balanced"}),
    )
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
    ranks = predicted_ranks(model, fitted, X)
    return {
        "balanced_accuracy": balanced_accuracy(y, ranks),
        "mae": float(np.abs(y - ranks).mean()),
        "kappa": weighted_kappa(y, ranks),
    }


def predicted_ranks(model: Model, fitted: Any, X: Any) -> NDArray[np.int64]:
    """Return the rank of each row's level by the rule of a model; numbers are rounded."""
    rule = {"rule": model.rule} if model.rule else {}
    predicted = np.asarray(fitted.predict(X, **rule))
    return np.asarray(np.clip(np.rint(predicted), 0, None), dtype=np.int64)


def weighted_kappa(y: NDArray[np.int64], ranks: NDArray[np.int64]) -> float:
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
        "rmse",
        ON_FRAMES,
    ),
    "levels": Judge(
        LEVELS,
        {"balanced_accuracy": True, "mae": False, "kappa": True},
        measure_levels,
        _ranks,
        lambda ranks: ranks,
        "mae",
        LEVELS_ON_FRAMES,
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


def fit_fold(
    make: Maker, X: Any, y: NDArray[Any], fold: Fold, seed: int, device: str | None = None
) -> tuple[Any, float]:
    """Return an estimator that is fitted to the training rows of a fold, and the seconds."""
    started = time.perf_counter()
    estimator = make(seed)
    if device is not None and hasattr(estimator, "device"):
        estimator.set_params(device=device)
    fitted = estimator.fit(_safe_indexing(X, fold.train), y[fold.train])
    return fitted, time.perf_counter() - started


def evaluate_task(
    X: Any, y: Any, task: str, models: Sequence[str] = (), **how: Any
) -> list[Evaluation]:
    """Cross-validate models of numbers or levels; arguments as of :func:`score_task_folds`."""
    return gathered(score_task_folds(X, y, task, models, **how))


def score_task_folds(
    X: Any,
    y: Any,
    task: str,
    models: Sequence[str] = (),
    *,
    n_folds: int = 10,
    seed: int = 0,
    svm_rows: int | None = SVM_ROWS,
    device: str | None = None,
) -> Iterator[FoldScores]:
    """Cross-validate models of numbers or levels on one table, all on the same folds.

    Yields the first fold of every model, then the second, and so on. Models that differ by a rule
    share their fits. ``device`` is where networks of ours are trained.
    """
    judge = TASKS[task]
    target = judge.target(y)
    asked = {name: find_model(judge, name) for name in models or judge.models}
    parts = judge.parts(target)
    folds = folds_of(judge, target, n_folds, seed)
    for fold in folds:
        test = _safe_indexing(X, fold.test)
        fits: dict[Maker, tuple[Any, float]] = {}
        for name, model in asked.items():
            mine = capped(fold, parts, name, svm_rows, seed)
            if model.make not in fits:
                fits[model.make] = fit_fold(model.make, X, target, mine, seed, device)
            fitted, seconds = fits[model.make]
            found = judge.measure(model, fitted, test, target[fold.test])
            n_train = len(mine.train)
            left_out = len(fold.train) - n_train
            yield FoldScores(name, found, seconds, n_train, left_out, len(folds))


# What the experiments "regression" and "ordinal" ask for.


def find_for_benchmark(judge: Judge, name: str, own: Mapping[str, str] | None = None) -> Model:
    """Return a model of a benchmark by its name: of the judge, or the user's own."""
    from cocoloss.benchmark.models import find_among, own_model  # noqa: PLC0415 - torch

    def make_own(name: str, place: str) -> Model:
        kind = own_model(name, place)
        first = RawFrame if kind.raw else TablePreprocessor

        def make(seed: int, **params: Any) -> Any:
            return Reading(first(), kind.make(0, params, seed))

        return Model(name, make, kind.space, kind.n_hyperparameters, whose=kind.whose)

    return find_among({**judge.models, **judge.more}, name, own, make_own)


class _Ranked:
    """A fitted model of levels that predicts ranks by its rule."""

    def __init__(self, model: Model, fitted: Any) -> None:
        self.model, self.fitted = model, fitted
        if hasattr(fitted, "predict_proba"):
            self.predict_proba, self.classes_ = fitted.predict_proba, fitted.classes_

    def predict(self, X: Any) -> NDArray[np.int64]:
        return predicted_ranks(self.model, self.fitted, X)


def judge_folds(
    judge: Judge,
    model: Model,
    params: Mapping[str, Any],
    X: Any,
    y: NDArray[Any],
    folds: Mapping[int, Fold],
    seeds: Sequence[int],
    *,
    on_fold: OnFold | None = None,
    device: str | None = None,
) -> list[dict[str, Any]]:
    """Return a row of measures for each fold, with its number as "fold".

    "relative_rmse" is the RMSE over that of the mean of the training rows: tables have many units.
    What ``on_fold`` returns is added.
    """
    rows = []
    for (number, fold), seed in zip(folds.items(), seeds, strict=True):
        started = time.process_time()
        try:
            fitted, seconds = fit_fold(partial(model.make, **params), X, y, fold, seed, device)
            worked = time.process_time() - started
            test = _safe_indexing(X, fold.test)
            if model.whose:
                _check_numbers(fitted.predict(test), len(fold.test), model.whose)
            found = judge.measure(model, fitted, test, y[fold.test])
        except Exception as error:
            if not model.whose or isinstance(error, CoCoError):
                raise
            raise CoCoError(f"{model.whose} failed: {type(error).__name__}: {error}") from error
        if "rmse" in found:
            guess = np.full(len(fold.test), y[fold.train].mean())
            off = root_mean_squared_error(y[fold.test], guess)
            found["relative_rmse"] = float(found["rmse"] / off) if off else float("nan")
        if on_fold is not None:
            says = _Ranked(model, fitted) if "kappa" in judge.measures else fitted
            found = found | on_fold(number, fold.test, says) | found  # ours count
        rows.append({"fold": number, **found, "fit_seconds": seconds, "processor_seconds": worked})
    return rows


def _check_numbers(predicted: Any, n_rows: int, whose: str) -> None:
    """Refuse predictions of a model of the user's own that are no numbers, one each."""
    found = np.asarray(predicted)
    if found.shape != (n_rows,) or found.dtype.kind not in "biuf" or not np.isfinite(found).all():
        raise CoCoError(
            f"{whose} predicted an array of {found.dtype} of shape {found.shape} for {n_rows} "
            f"rows; expected are finite numbers, one per row"
        )
