"""All folds at once give what scikit-learn gives one by one."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_validate

from cocoloss import CoCoClassifier, CrossEntropyClassifier, DotRegressionClassifier
from cocoloss.estimators import cross_validate_lockstep
from cocoloss.exceptions import CoCoError

SCORING = ["balanced_accuracy", "neg_log_loss"]


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("make", [CoCoClassifier, DotRegressionClassifier, CrossEntropyClassifier])
def test_agrees_with_scikit_learn(make, early_stopping, wine):
    X, y = wine
    estimator = make(
        max_iter=10, n_members=2, random_state=0, early_stopping=early_stopping, n_iter_no_change=4
    )
    cv = StratifiedKFold(4, shuffle=True, random_state=0)
    options = {"cv": cv, "scoring": SCORING, "return_train_score": True}
    ours = cross_validate_lockstep(estimator, X, y, **options)
    theirs = cross_validate(estimator, X, y, **options)
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert ours[name].shape == (4,)
        if "time" not in name:
            np.testing.assert_allclose(ours[name], theirs[name], atol=0.06)


def test_a_fold_is_the_fit_it_would_be_alone(wine):
    X, y = wine
    estimator = CoCoClassifier(max_iter=1, n_members=1, random_state=0, early_stopping=False)
    result = cross_validate_lockstep(
        estimator, X, y, cv=3, return_estimator=True, return_indices=True
    )
    for fold, train in zip(result["estimator"], result["indices"]["train"], strict=True):
        alone = CoCoClassifier(max_iter=1, n_members=1, random_state=0, early_stopping=False)
        alone.fit(X[train], y[train])
        np.testing.assert_allclose(fold.parameters_, alone.parameters_, rtol=1e-3, atol=1e-4)


def test_no_fold_sees_the_preprocessing_of_another():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.choice(["u", "v"], 60)})
    X.loc[:19, "b"] = "only here"  # a category that the first fold's training rows lack
    y = np.arange(60) % 2
    folds = [(np.arange(20, 60), np.arange(20)), (np.arange(40), np.arange(40, 60))]
    result = cross_validate_lockstep(
        CoCoClassifier(max_iter=2, random_state=0), X, y, cv=folds, return_estimator=True
    )
    first, second = result["estimator"]
    assert first.layer_sizes_[0] < second.layer_sizes_[0]


def test_takes_weights_and_a_single_score(wine):
    X, y = wine
    result = cross_validate_lockstep(
        CoCoClassifier(max_iter=3, n_members=1),
        X,
        y,
        cv=3,
        scoring="accuracy",
        params={"sample_weight": np.ones(len(y))},
    )
    assert sorted(result) == ["fit_time", "score_time", "test_score"]


def test_other_estimators_are_sent_to_scikit_learn(wine):
    with pytest.raises(CoCoError, match="RandomForestClassifier; use scikit-learn"):
        cross_validate_lockstep(RandomForestClassifier(), *wine)
