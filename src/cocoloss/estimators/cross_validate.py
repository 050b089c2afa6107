"""Cross-validation with all folds trained at once."""

import copy
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv, cross_validate
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import _check_method_params

from cocoloss.estimators.classifiers import BaseNetworkClassifier
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.fit import finish_job, prepare_job, solver_of
from cocoloss.fitting.jobs import Job, train_jobs


def cross_validate_lockstep(
    estimator: BaseNetworkClassifier,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    scoring: Any = None,
    cv: Any = 10,
    params: dict[str, Any] | None = None,
    error_score: Any = np.nan,
    return_train_score: bool = False,
    return_estimator: bool = False,
    return_indices: bool = False,
    verbose: bool = False,
    random_states: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Evaluate a classifier of this package by cross-validation, all folds in one training run.

    Returns what scikit-learn's ``cross_validate`` returns for the same arguments, and the same
    numbers but for rounding: every fold has its own preprocessing, networks, held-out rows and
    heads; only the steps of training are shared. That is what ``n_jobs`` and ``pre_dispatch`` are
    for there, so they are not arguments here.

    Parameters
    ----------
    estimator : classifier of cocoloss
        Cloned for each fold. Its ``callbacks`` hear of all folds at once: an epoch has the models
        of the first fold, then those of the second, and so on. Callbacks that were set with
        scikit-learn's ``set_callbacks`` are for single fits, and are not called.
    X, y
        The table and its classes.
    groups : array, optional
        For splitters that need groups. With scikit-learn's metadata routing they go into
        ``params``.
    scoring : str, callable, list or dict, optional
        As for scikit-learn; accuracy if None.
    cv : int, splitter or iterable, default=10
        How to split.
    params : dict, optional
        Arguments of ``fit``, such as ``sample_weight``, split like the rows. With scikit-learn's
        metadata routing, also those of splitter and scorer: each gets what it has requested.
    error_score : "raise" or number, default=nan
        The score of a fold that cannot be fitted or scored, with a warning; or whether to raise.
    return_train_score, return_estimator, return_indices : bool
        What else to return.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal, as ``verbose`` of the estimator does.
    random_states : sequence of int, optional
        A ``random_state`` for each fold. By default all folds have that of the estimator, as in
        scikit-learn: networks of the same shape then start from the same weights in every fold,
        and a bad start is a bad start of all. The random vertices of dot regression are those of
        the first fold in any case; no vertices are better than others.

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
    if hasattr(estimator, "_skl_callbacks"):
        warnings.warn(
            "callbacks that were set with set_callbacks are not called for folds in lockstep; use "
            "the argument callbacks of the estimator",
            UserWarning,
            stacklevel=2,
        )
    X, y, groups = indexable(X, y, groups)
    cv = check_cv(cv, y, classifier=True)
    scorer = check_scoring(estimator, scoring, raise_exc=error_score == "raise")  # before the work
    split_params, fit_params, score_params = _route(estimator, cv, scorer, groups, params or {})
    splits = list(cv.split(X, y, **split_params))
    if random_states is not None and len(random_states) != len(splits):
        raise CoCoError(
            f"random_states has {len(random_states)} seeds for {len(splits)} folds; give one each"
        )
    started = time.perf_counter()
    seeded = clone(estimator)
    if seeded.random_state is None:  # folds share the draw, as they would share a seed
        seeded.random_state = int(np.random.default_rng().integers(2**31))
    seeded.verbose = verbose or seeded.verbose
    folds = [
        (
            _safe_indexing(X, train),
            _safe_indexing(y, train),
            _check_method_params(X, fit_params, indices=train),
        )
        for train, _ in splits
    ]
    fitted = _fit_folds(seeded, folds, error_score, random_states)
    fit_time = (time.perf_counter() - started) / len(splits)

    with _ready_made(estimator, fitted) as ready:
        results: dict[str, Any] = cross_validate(
            ready,
            X,
            y,
            scoring=scoring,
            cv=splits,
            params=score_params,
            error_score=error_score,
            return_train_score=return_train_score,
            return_estimator=return_estimator,
            return_indices=return_indices,
            n_jobs=1,  # whatever joblib is set to: what is lent must come back itself, not a copy
        )
    results["fit_time"] = np.full(len(splits), fit_time)
    return results


def _route(
    estimator: Any, cv: Any, scorer: Any, groups: Any, params: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any] | None]:
    """Return the arguments of the splitter, of ``fit`` and of the scorer."""
    if not get_config()["enable_metadata_routing"]:
        known = list(signature(type(estimator).fit).parameters)[3:]
        unknown = [name for name in params if name not in known]
        if unknown:
            raise CoCoError(
                f"params has {', '.join(map(repr, unknown))}, but fit takes {', '.join(known)}"
            )
        return {"groups": groups}, params, None
    if groups is not None:
        raise CoCoError("with metadata routing, give groups in params: params={'groups': groups}")

    def called(method: str) -> MethodMapping:
        return MethodMapping().add(caller="fit", callee=method)

    router = MetadataRouter(owner="cross_validate_lockstep")
    router.add(splitter=cv, method_mapping=called("split"))
    router.add(estimator=estimator, method_mapping=called("fit"))
    router.add(scorer=scorer, method_mapping=called("score"))
    routed = process_routing(router, "fit", **params)
    scored = {name: params[name] for name in routed.scorer.score}
    return routed.splitter.split, routed.estimator.fit, scored or None


def _fit_folds(
    estimator: BaseNetworkClassifier,
    folds: Sequence[tuple[Any, Any, Any]],
    error_score: Any,
    random_states: Sequence[int] | None,
) -> list[BaseNetworkClassifier | Exception]:
    """Return a fitted clone for each fold, or why there is none."""
    outcomes: list[Any] = []
    stacks: dict[Any, dict[int, Job]] = {}  # jobs that can be trained at once, by their folds
    for i, (X, y, params) in enumerate(folds):
        one = clone(estimator)  # with a generator of its own, in the state of the estimator's
        outcomes.append(one)
        try:
            if random_states is not None:
                one.set_params(random_state=random_states[i])
            # There are no steps to share.
            if solver_of(one) != "network" or one.unlabelled is not None:
                one.fit(X, y, **params)
                continue
            job = prepare_job(one, X, y, **params)
        except Exception as error:
            if error_score == "raise":
                raise
            outcomes[i] = error
        else:
            stacks.setdefault(_shape(job), {})[i] = job
    for jobs in stacks.values():
        _train(jobs, outcomes, error_score)
    return outcomes


def _shape(job: Job) -> Any:
    """Return what jobs of one stack share: layers, the schedule, sizes of batches, steps."""
    fewest = min(len(rows) for rows in job.train)
    batch_size = min(job.design.schedule.batch_size, fewest)
    steps = batch_size, fewest // batch_size
    return job.design.layer_sizes, job.n_classes, job.design.schedule, *steps, job.can_stop_early


def _train(jobs: Mapping[int, Job], outcomes: list[Any], error_score: Any) -> None:
    """Fit the clones of some folds, or put errors in their place."""
    first = next(iter(jobs))
    loss = jobs[first].design.loss  # one for all: fits of other seeds have drawn other vertices
    stack = [replace(job, design=replace(job.design, loss=loss)) for job in jobs.values()]
    callbacks, verbose = outcomes[first].callbacks or [], outcomes[first].verbose
    try:
        trained = train_jobs(stack, callbacks, verbose=verbose)
        fitted = [finish_job(job, left) for job, left in zip(stack, trained, strict=True)]
    except Exception as error:
        if error_score == "raise":
            raise
        if len(jobs) > 1:  # the others are not to blame
            for i, job in jobs.items():
                _train({i: job}, outcomes, error_score)
        else:
            outcomes[first] = error
        return
    for i, one in zip(jobs, fitted, strict=True):
        outcomes[i].keep(*one)


@contextmanager
def _ready_made(
    estimator: BaseNetworkClassifier, outcomes: Sequence[BaseNetworkClassifier | Exception]
) -> Iterator[BaseNetworkClassifier]:
    """Lend an estimator whose clones are these, one after the other, and fitted already.

    So scikit-learn scores them and deals with the errors, in its own words.
    """
    lent = []
    for outcome in outcomes:
        one = clone(estimator) if isinstance(outcome, Exception) else outcome
        one.fit = partial(_already, outcome)
        lent.append(one)
    clones = iter(lent)
    template: Any = copy.copy(estimator)
    template.__sklearn_clone__ = lambda: next(clones)
    try:
        yield template
    finally:
        for one in lent:
            del one.fit


def _already(outcome: Any, *_: Any, **__: Any) -> Any:
    """Stand in for ``fit`` where it has been done, or has failed."""
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
