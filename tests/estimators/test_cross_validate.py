"""All folds at once give what scikit-learn gives one by one."""

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import FitFailedWarning, UnsetMetadataPassedError
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    StratifiedKFold,
    cross_validate,
)

from cocoloss import CoCoClassifier, CrossEntropyClassifier, DotRegressionClassifier
from cocoloss.estimators import cross_validate as module
from cocoloss.estimators import cross_validate_lockstep
from cocoloss.exceptions import CoCoError

X, Y = load_wine(return_X_y=True)
SMALL = {"max_iter": 1, "n_members": 1, "early_stopping": False, "random_state": 0}
ONE = CoCoClassifier(**SMALL)
FULL = {"max_iter": 8, "n_members": 2, "random_state": 0, "n_iter_no_change": 4}
FOLDS = {
    "cv": StratifiedKFold(4, shuffle=True, random_state=0),
    "scoring": ["balanced_accuracy", "neg_log_loss"],
    "return_train_score": True,
}
WEIGHTS = np.random.default_rng(0).integers(0, 3, len(Y))


def lockstep(estimator=ONE, X=X, y=Y, **options):
    return cross_validate_lockstep(estimator, X, y, **({"cv": 2} | options))


@pytest.mark.parametrize(
    ("estimator", "options", "tolerance"),
    [
        (CoCoClassifier(**FULL), FOLDS, 0.06),
        (DotRegressionClassifier(**FULL), FOLDS, 0.06),
        (CrossEntropyClassifier(**FULL, early_stopping=False), FOLDS, 0.06),
        (ONE, {"params": {"sample_weight": WEIGHTS}, "scoring": "neg_log_loss", "cv": 3}, 2e-3),
        *(
            (CoCoClassifier(**SMALL | {"random_state": make(7)}), {"scoring": "neg_log_loss"}, 2e-3)
            for make in (np.random.RandomState, np.random.default_rng)  # copied for each fold
        ),
    ],
)
def test_agrees_with_scikit_learn(estimator, options, tolerance):
    ours = lockstep(estimator, **options)
    theirs = cross_validate(estimator, X, Y, **({"cv": 2} | options))
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert ours[name].shape == theirs[name].shape
        if "time" not in name:
            np.testing.assert_allclose(ours[name], theirs[name], atol=tolerance)


def test_folds_may_have_seeds_of_their_own():
    seeds = [5, 6, 5]
    asked = {"cv": 3, "return_estimator": True, "return_indices": True}
    result = lockstep(**asked, random_states=seeds)
    trained_on = result["indices"]["train"]
    for seed, fold, train in zip(seeds, result["estimator"], trained_on, strict=True):
        alone = clone(ONE).set_params(random_state=seed).fit(X[train], Y[train])
        assert fold.random_state == seed
        np.testing.assert_allclose(fold.parameters_, alone.parameters_, rtol=1e-3, atol=1e-4)


def test_folds_of_other_seeds_are_read_by_the_vertices_they_were_trained_to():
    estimator = DotRegressionClassifier(max_iter=20, n_members=2, random_state=0)
    found = lockstep(estimator, cv=3, random_states=[1, 2, 3])
    assert found["test_score"].min() > 0.9


def test_no_fold_sees_the_preprocessing_of_another():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.choice(["u", "v"], 60)})
    X.loc[:19, "b"] = "only here"  # a category that the first fold's training rows lack
    y = np.arange(60) % 2
    folds = [(np.arange(20, 60), np.arange(20)), (np.arange(40), np.arange(40, 60))]
    first, second = lockstep(X=X, y=y, cv=folds, return_estimator=True)["estimator"]
    assert first.layer_sizes_[0] < second.layer_sizes_[0]


@pytest.mark.parametrize(
    "folds",
    [
        [(np.arange(50), np.arange(50, 60)), (np.arange(100), np.arange(100, 110))],  # batch size
        [(np.arange(127), np.arange(127, 130)), (np.arange(128), np.arange(128, 130))],  # steps
        [(np.arange(130), np.arange(130, 135)), (np.arange(160), np.arange(150, 160))],  # held out
        [(np.arange(0, 150, 3), np.arange(9)), (np.arange(1, 150, 3), np.arange(9))],  # classes
    ],
    ids=["batches", "steps", "held out", "classes"],
)
def test_folds_that_cannot_be_stacked_are_trained_apart(folds):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 4))
    y = np.arange(160) % 2
    if len(folds[0][0]) == len(folds[1][0]):
        y[1:150:3] = np.arange(50) % 3
    options = {"max_iter": 12, "n_members": 2, "random_state": 0, "n_iter_no_change": 3}
    asked = {"cv": folds, "return_estimator": True, "error_score": "raise"}
    result = lockstep(CoCoClassifier(**options), X, y, **asked)
    for (train, _), fold in zip(folds, result["estimator"], strict=True):
        alone = CoCoClassifier(**options).fit(X[train], y[train])
        np.testing.assert_allclose(fold.loss_curve_[:2], alone.loss_curve_[:2], rtol=1e-3)
        assert fold.best_epochs_.tolist() == alone.best_epochs_.tolist()


def test_a_fold_that_fails_is_nan_as_in_scikit_learn():
    one_class = (np.flatnonzero(Y == 0), np.arange(5))
    cv = [(np.arange(0, 178, 2), np.arange(1, 178, 2)), one_class]
    with pytest.warns(FitFailedWarning, match="needs at least two classes"):
        ours = lockstep(cv=cv)
    assert np.isnan(ours["test_score"]).tolist() == [False, True]
    with pytest.raises(CoCoError, match="at least two classes"):
        lockstep(cv=cv, error_score="raise")


def test_a_fold_that_diverges_does_not_take_the_others_with_it(monkeypatch):
    original = module.train_jobs

    def fails(jobs, callbacks=(), **options):
        if any(len(job.inputs) == 170 for job in jobs):
            raise CoCoError("training diverged")
        return original(jobs, callbacks, **options)

    monkeypatch.setattr(module, "train_jobs", fails)
    cv = [(np.arange(8 - n, 178), np.arange(8)) for n in (0, 1, 2)]
    with pytest.warns(FitFailedWarning, match="training diverged"):
        ours = lockstep(cv=cv, error_score=-1)
    assert (ours["test_score"] == -1).tolist() == [True, False, False]


def test_a_scorer_that_fails_is_nan_as_in_scikit_learn():
    def broken(estimator, X, y):
        raise RuntimeError("no score")

    with pytest.warns(UserWarning, match="Scoring failed"):
        ours = lockstep(scoring=broken)
    assert np.isnan(ours["test_score"]).all()
    with pytest.raises(RuntimeError, match="no score"):
        lockstep(scoring=broken, error_score="raise")


def test_scorers_get_the_fitted_classifiers_which_can_be_fitted_again_whatever_joblib_is_told():
    seen = []

    def score(estimator, X, y):
        seen.append(estimator)
        return estimator.score(X, y)

    with parallel_config(backend="loky", n_jobs=2):
        result = lockstep(scoring=score, return_estimator=True)
    assert [type(each) for each in seen] == [CoCoClassifier] * 2
    for each, returned in zip(seen, result["estimator"], strict=True):
        assert each is returned
        before = each.parameters_
        assert not np.array_equal(each.set_params(random_state=1).fit(X, Y).parameters_, before)
    assert not hasattr(ONE, "model_")


def test_metadata_is_routed_as_in_scikit_learn():
    groups = np.arange(len(Y)) % 6
    with config_context(enable_metadata_routing=True):
        estimator = CoCoClassifier(max_iter=3, n_members=1, random_state=0)
        scorer = make_scorer(accuracy_score)
        params = {"sample_weight": WEIGHTS + 1, "groups": groups}
        options = {"cv": GroupKFold(3), "params": params, "scoring": scorer}
        with pytest.raises(UnsetMetadataPassedError):
            lockstep(estimator, **options)
        estimator.set_fit_request(sample_weight=True)
        scorer.set_score_request(sample_weight=True)
        ours = lockstep(estimator, **options, return_indices=True)
        theirs = cross_validate(estimator, X, Y, **options)
        with pytest.raises(CoCoError, match="give groups in params"):
            lockstep(estimator, groups=groups)
    np.testing.assert_allclose(ours["test_score"], theirs["test_score"], atol=0.02)
    for train, test in zip(*ours["indices"].values(), strict=True):
        assert not set(groups[train]) & set(groups[test])


def test_groups_reach_the_splitter():
    groups = np.arange(len(Y)) % 4
    result = lockstep(groups=groups, cv=LeaveOneGroupOut(), return_indices=True)
    assert [set(groups[test]) for test in result["indices"]["test"]] == [{0}, {1}, {2}, {3}]


def test_callbacks_are_called_for_all_folds_and_a_warning_names_scikit_learns():
    heard = []
    estimator = CoCoClassifier(
        max_iter=2, n_members=2, callbacks=[lambda epoch: heard.append(len(epoch.models))]
    )
    lockstep(estimator, cv=[*KFold(3, shuffle=True).split(X)])
    assert sum(heard) == 2 * 3 * 2  # epochs, folds, members
    callback = pytest.importorskip("sklearn.callback")
    estimator.set_callbacks(callback.ScoringMonitor(scoring="accuracy"))
    with pytest.warns(UserWarning, match="not called for folds in lockstep"):
        lockstep(estimator)


@pytest.mark.parametrize("verbose", [True, False])
def test_verbose_shows_one_bar_for_all_folds(verbose, monkeypatch):
    bars = []

    class Bar:
        def __init__(self, n_epochs, measure):
            bars.append(n_epochs)

        def __enter__(self):
            return lambda epoch: None

        def __exit__(self, *_):
            pass

    monkeypatch.setattr("cocoloss.fitting.jobs.ProgressBar", Bar)
    cv = [(np.arange(100), np.arange(100, 178)), (np.arange(78, 178), np.arange(78))]
    lockstep(cv=cv, verbose=verbose)
    assert bars == ([1] if verbose else [])


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (RandomForestClassifier(), {}, "RandomForestClassifier; use scikit-learn"),
        (ONE, {"cv": 3, "random_states": [1, 2]}, "2 seeds for 3 folds"),
        (ONE, {"params": {"sample_weigth": 1}}, "'sample_weigth', but fit takes"),
        (ONE, {"scoring": "acc"}, "acc"),
    ],
)
def test_what_cannot_be_done_is_refused_before_the_work(estimator, options, message, monkeypatch):
    monkeypatch.setattr(module, "_fit_folds", lambda *_: 1 / 0)
    with pytest.raises(ValueError, match=message):
        lockstep(estimator, **options)
