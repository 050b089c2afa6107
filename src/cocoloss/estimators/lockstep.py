"""Cross-validation with all folds trained at once."""

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import _check_method_params

from cocoloss.estimators.base import BaseNetworkClassifier
from cocoloss.estimators.jobs import Job
from cocoloss.exceptions import CoCoError


def cross_validate_lockstep(
    estimator: BaseNetworkClassifier,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    scoring: Any = None,
    cv: Any = 10,
    params: dict[str, Any] | None = None,
    return_train_score: bool = False,
    return_estimator: bool = False,
    return_indices: bool = False,
) -> dict[str, Any]:
    """Evaluate a classifier of this package by cross-validation, all folds in one training run.

    Returns what scikit-learn's ``cross_validate`` returns for the same arguments, and the same
    numbers but for rounding: every fold has its own preprocessing, networks, held-out rows and
    heads; only the steps of training are shared.

    Parameters
    ----------
    estimator : classifier of cocoloss
        Cloned for each fold.
    X, y
        The table and its classes.
    groups : array, optional
        For splitters that need groups.
    scoring : str, callable, list or dict, optional
        As for scikit-learn; accuracy if None.
    cv : int, splitter or iterable, default=10
        How to split.
    params : dict, optional
        Arguments of ``fit``, such as ``sample_weight``, split like the rows.
    return_train_score, return_estimator, return_indices : bool
        What else to return.

    Returns
    -------
    dict
        ``fit_time`` (the shared time, divided by the folds), ``score_time``, ``test_score`` or
        ``test_<name>`` for each score, and what was asked for.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from cocoloss import CoCoClassifier
    >>> from cocoloss.estimators import cross_validate_lockstep
    >>> X, y = load_wine(return_X_y=True)
    >>> scores = cross_validate_lockstep(CoCoClassifier(max_iter=20, random_state=0), X, y, cv=5)
    >>> scores["test_score"].mean() > 0.9
    np.True_
    """
    if not isinstance(estimator, BaseNetworkClassifier):
        raise CoCoError(
            f"cross_validate_lockstep trains classifiers of cocoloss, not "
            f"{type(estimator).__name__}; use scikit-learn's cross_validate for others"
        )
    X, y, groups = indexable(X, y, groups)
    splits = list(check_cv(cv, y, classifier=True).split(X, y, groups))
    if estimator.random_state is None:  # folds share the draw, as they would share a seed
        estimator = clone(estimator).set_params(
            random_state=int(np.random.default_rng().integers(2**31))
        )
    scorer = check_scoring(estimator, scoring, raise_exc=True)  # before the work
    started = time.perf_counter()
    fitted = _fit_folds(estimator, X, y, [train for train, _ in splits], params or {})
    fit_time = (time.perf_counter() - started) / len(splits)

    results: dict[str, list[Any]] = {}
    for classifier, (train, test) in zip(fitted, splits, strict=True):
        started = time.perf_counter()
        _add(results, "test", scorer(classifier, _safe_indexing(X, test), _safe_indexing(y, test)))
        results.setdefault("score_time", []).append(time.perf_counter() - started)
        if return_train_score:
            scores = scorer(classifier, _safe_indexing(X, train), _safe_indexing(y, train))
            _add(results, "train", scores)
    answer: dict[str, Any] = {"fit_time": np.full(len(splits), fit_time)}
    answer |= {name: np.asarray(values) for name, values in sorted(results.items())}
    if return_estimator:
        answer["estimator"] = fitted
    if return_indices:
        train, test = zip(*splits, strict=True)
        answer["indices"] = {"train": train, "test": test}
    return answer


def _fit_folds(
    estimator: BaseNetworkClassifier,
    X: Any,
    y: Any,
    folds: Iterable[Any],
    params: dict[str, Any],
) -> list[BaseNetworkClassifier]:
    """Return a fitted clone for each fold; folds whose tables have one shape train together."""
    from cocoloss.estimators.stacking import train_jobs  # noqa: PLC0415 - torch, to train

    classifiers, jobs = [], []
    for train in folds:
        classifier = clone(estimator)
        fit_params = _check_method_params(X, params, indices=train)
        weight = fit_params.get("sample_weight")
        jobs.append(classifier._prepare(_safe_indexing(X, train), _safe_indexing(y, train), weight))  # noqa: SLF001
        classifiers.append(classifier)
    for together in _alike(jobs):
        trained = train_jobs([jobs[i] for i in together], list(estimator.callbacks or []))
        for i, result in zip(together, trained, strict=True):
            classifiers[i]._finish(jobs[i], result)  # noqa: SLF001
    return classifiers


def _alike(jobs: list[Job]) -> list[list[int]]:
    """Group jobs that can be stacked: same shapes, same number of steps in an epoch."""
    groups: dict[Any, list[int]] = {}
    for i, job in enumerate(jobs):
        fewest = min(len(rows) for rows in job.train)
        steps = max(1, fewest // min(job.design.schedule.batch_size, fewest))
        held_out = all(len(rows) for rows in job.held_out)
        key = (job.design.layer_sizes, job.n_classes, steps, held_out)
        groups.setdefault(key, []).append(i)
    return list(groups.values())


def _add(results: dict[str, list[Any]], prefix: str, scores: Any) -> None:
    named = scores if isinstance(scores, dict) else {"score": scores}
    for name, value in named.items():
        results.setdefault(f"{prefix}_{name}", []).append(value)
