"""Better hyperparameters for one classifier on one table: what ``cocoloss fit --tune`` does."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _num_features

from cocoloss._checks import RandomState, as_generator, check_integer
from cocoloss.benchmark.folds import stratified_folds
from cocoloss.benchmark.measures import balanced_accuracy_of
from cocoloss.benchmark.spaces import TUNED_BY_DEFAULT, default_point, suggest_default
from cocoloss.benchmark.study import Study
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    from cocoloss.estimators.base import BaseNetworkClassifier


@dataclass(frozen=True)
class Tuned:
    """What tuning found.

    Attributes
    ----------
    best_params : dict
        For ``set_params``.
    best_score : float
        Mean balanced accuracy over the folds.
    trials : list of dict
        Number, score and parameters of each trial, in order; the score of a trial that could not
        be fitted is NaN.
    """

    best_params: dict[str, Any]
    best_score: float
    trials: list[dict[str, Any]]


def tune_classifier(
    estimator: "BaseNetworkClassifier",
    X: Any,
    y: Any,
    *,
    n_trials: int,
    cv: int = 3,
    random_state: RandomState = 0,
    on_trial: Callable[[int, float, float], object] | None = None,
) -> Tuned:
    """Look for better hyperparameters of a classifier by cross-validation.

    The first trial is the classifier as it is, so that the answer is never worse than it on the
    same folds. All folds of a trial train in lockstep.

    Parameters
    ----------
    estimator : classifier of cocoloss
        Not changed.
    X : DataFrame or array of shape (n, d)
    y : array of shape (n,)
    n_trials : int
        How many, with the first one.
    cv : int, default=3
        Folds; the same for all trials. Fewer if the classes have too few rows.
    random_state : int, numpy generator or None, default=0
        Folds, suggestions, and the seed of classifiers that have none.
    on_trial : callable, optional
        Called with the number, the score and the best score so far after every trial.

    Returns
    -------
    Tuned

    Raises
    ------
    CoCoError
        If optuna is not installed, or every class has a single row.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from cocoloss import CoCoClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> classifier = CoCoClassifier(n_members=1, max_iter=5)
    >>> tuned = tune_classifier(classifier, X, y, n_trials=2)
    >>> sorted(tuned.best_params)[:2]
    ['batch_size', 'dropout']
    >>> classifier = classifier.set_params(**tuned.best_params)
    """
    from cocoloss.estimators import cross_validate_lockstep  # noqa: PLC0415 - only to train

    n_trials = check_integer(n_trials, "n_trials", minimum=1)
    cv = check_integer(cv, "cv", minimum=2)
    seed = int(as_generator(random_state).integers(2**31))
    folds = stratified_folds(y, cv, seed)
    embedding = not estimator.make_objective().logits  # for cross-entropy it would add a layer
    size: dict[str, Any] = {
        "n_samples": min(len(fold.train) for fold in folds),
        "n_classes": len(np.unique(np.asarray(y))),
        "embedding": embedding,
    }
    names = TUNED_BY_DEFAULT if embedding else TUNED_BY_DEFAULT[:-1]
    own = {name: value for name, value in estimator.get_params().items() if name in names}
    space = partial(suggest_default, n_features=_num_features(X), **size)
    study = Study(f"tune/{seed}", space, first=default_point(own, **size))
    trials: list[dict[str, Any]] = []
    for number in range(n_trials):
        trial = study.ask()
        params = own if number == 0 else trial.params
        candidate = clone(estimator).set_params(**params)
        if candidate.random_state is None:
            candidate.set_params(random_state=seed)  # so that trials differ by their points alone
        try:
            result = cross_validate_lockstep(
                candidate, X, y, cv=folds, scoring=balanced_accuracy_of, error_score="raise"
            )
            score = float(np.mean(result["test_score"]))
        except CoCoError:
            if number == 0:  # the table is at fault, or the classifier as it is
                raise
            score = float("nan")  # a point at which training diverged, say
        study.tell(number, trial.point, score)
        trials.append({"number": number, "score": score, "params": params})
        if on_trial is not None:
            on_trial(number, score, study.best_score)
    best = trials[study.best.number]
    return Tuned(best["params"], best["score"], trials)
