"""Rows without a label: which they are, left out or learnt from, in both solvers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.semi_supervised import SelfTrainingClassifier

from cocoloss import CoCoClassifier, CoCoOrdinalClassifier, cross_validate_lockstep, load
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.unlabelled import read_known

X, Y = load_wine(return_X_y=True, as_frame=True)
X_DIGITS, Y_DIGITS = (part[:900] for part in load_digits(return_X_y=True))


def few(y, n, seed=0):
    """Return y with -1 for all but n rows of each class."""
    generator = np.random.default_rng(seed)
    given = np.full(len(y), -1)
    for c in np.unique(y):
        given[generator.permutation(np.flatnonzero(y == c))[:n]] = c
    return given


FEW = few(Y.to_numpy(), 6)
KNOWN = FEW >= 0
NAMES = np.array(["red", "rosé", "white"], dtype=object)
SETTINGS = {
    "kernels": {},
    "networks": {"solver": "network", "max_iter": 10, "n_members": 3},
}


@pytest.mark.parametrize(
    "y",
    [
        FEW,
        FEW.astype(float),
        pd.Series(FEW, index=X.index[::-1]),
        np.where(KNOWN, FEW, np.nan),
        np.where(KNOWN, NAMES[FEW], None),
        pd.Series(np.where(KNOWN, NAMES[FEW], None), dtype="string"),
        pd.Categorical(np.where(KNOWN, NAMES[FEW], None)),
        pd.array(np.where(KNOWN, FEW, None), dtype="Int64"),
        pd.Series(np.where(KNOWN, FEW, None), dtype=object),
    ],
    ids=["-1", "-1.0", "a series", "floats", "None", "strings", "categorical", "Int64", "objects"],
)
def test_gaps_and_minus_one_are_rows_without_a_label(y):
    filled, weights, known = read_known(X, y, None)
    np.testing.assert_array_equal(known, KNOWN)
    assert (weights == 1).all()
    assert pd.Series(filled).notna().all()
    assert set(filled) == set(pd.Series(y)[KNOWN])


def test_minus_one_is_a_class_among_text_and_among_floats_with_a_gap_or_fractions():
    assert read_known(X, np.where(KNOWN, "1", "-1"), None)[2].all()
    assert read_known(X, np.where(KNOWN, 0.5, -1.0), None)[2].all()
    signs = np.where(KNOWN, FEW % 2 * 2.0 - 1, np.nan)
    np.testing.assert_array_equal(read_known(X, signs, None)[2], KNOWN)
    assert -1 in signs


def test_without_the_argument_minus_one_is_a_class_and_gaps_are_refused():
    assert -1 in CoCoClassifier(random_state=0).fit(X, FEW).classes_
    with pytest.raises(CoCoError, match="y contains NaN"):
        CoCoClassifier().fit(X, np.where(KNOWN, FEW, np.nan))


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_ignoring_rows_is_leaving_them_out(setting):
    ignoring = CoCoClassifier(unlabelled="ignore", random_state=0, **setting).fit(X, FEW)
    without = CoCoClassifier(random_state=0, **setting).fit(X[KNOWN], FEW[KNOWN])
    np.testing.assert_array_equal(ignoring.predict_proba(X), without.predict_proba(X))
    if not setting:
        np.testing.assert_array_equal(ignoring.loo_proba_[KNOWN], without.loo_proba_)
        said = ignoring.predict_proba(X[~KNOWN])
        np.testing.assert_allclose(ignoring.loo_proba_[~KNOWN], said)


def test_where_all_rows_have_a_label_nothing_changes():
    soft = CoCoClassifier(unlabelled="soft", random_state=0).fit(X, Y)
    plain = CoCoClassifier(random_state=0).fit(X, Y)
    np.testing.assert_array_equal(soft.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_soft_learns_from_rows_without_a_label(setting, tmp_path):
    names = pd.Series(np.where(KNOWN, NAMES[FEW], None))
    soft = CoCoClassifier(unlabelled="soft", random_state=0, **setting).fit(X, names)
    assert soft.classes_.tolist() == NAMES.tolist()
    assert soft.score(X, NAMES[Y]) > 0.9
    soft.save(tmp_path / "model.coco")
    again = load(tmp_path / "model.coco")
    np.testing.assert_array_equal(again.predict_proba(X), soft.predict_proba(X))
    ignoring = CoCoClassifier(unlabelled="ignore", random_state=0, **setting).fit(X, names)
    assert not np.allclose(soft.predict_proba(X), ignoring.predict_proba(X))
    if not setting:
        assert soft.model_.machine.n_rows > KNOWN.sum()  # all rows are landmarks
        assert soft.loo_proba_.shape == (len(X), 3)
        np.testing.assert_allclose(soft.loo_proba_[~KNOWN], soft.predict_proba(X[~KNOWN]))
        right = soft.loo_proba_[KNOWN].argmax(axis=1) == FEW[KNOWN]
        assert soft.loo_score_ == pytest.approx(right.mean())
    else:
        assert len(soft.heads_) == 6  # three teachers, three students


def test_priors_and_calibration_are_those_of_labelled_rows():
    y = np.where(np.arange(len(Y)) % 3 == 0, Y, -1)
    soft = CoCoClassifier(unlabelled="soft", priors="empirical", random_state=0).fit(X, y)
    np.testing.assert_allclose(soft.class_prior_, np.bincount(y[y >= 0]) / (y >= 0).sum())
    networks = CoCoClassifier(
        unlabelled="soft", priors="empirical", random_state=0, **SETTINGS["networks"]
    ).fit(X, y)
    np.testing.assert_allclose(networks.class_prior_, soft.class_prior_)


def test_rows_that_weigh_nothing_are_no_rows_labelled_or_not():
    weights = np.where(np.arange(len(Y)) % 2, 1.0, 0.0)
    with_zeros = CoCoClassifier(unlabelled="soft", random_state=0).fit(X, FEW, weights)
    odd = weights > 0
    without = CoCoClassifier(unlabelled="soft", random_state=0).fit(X[odd], FEW[odd])
    np.testing.assert_allclose(with_zeros.predict_proba(X), without.predict_proba(X), atol=1e-5)


def test_levels_keep_their_order():
    levels = ["white", "rosé", "red"]
    y = pd.Series(pd.Categorical(np.where(KNOWN, NAMES[FEW], None), levels, ordered=True))
    for how in ("soft", "ignore"):
        classifier = CoCoOrdinalClassifier(unlabelled=how, random_state=0).fit(X, y)
        assert classifier.classes_.tolist() == levels
        assert classifier.predict_cumulative(X).shape == (len(X), 3)


def test_folds_may_have_rows_without_a_label():
    classifier = CoCoClassifier(unlabelled="soft", random_state=0, **SETTINGS["networks"])
    found = cross_validate_lockstep(classifier, X, FEW, cv=3, scoring=lambda *_: 1.0)
    assert found["test_score"].tolist() == [1.0] * 3


@pytest.mark.parametrize("how", [None, "soft"])
def test_self_training_of_scikit_learn_works_around_ours(how):
    self_training = SelfTrainingClassifier(CoCoClassifier(unlabelled=how, random_state=0))
    assert self_training.fit(X, FEW).score(X, Y) > 0.9


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"unlabelled": "hard"}, FEW, "unlabelled must be one of 'soft', 'ignore'"),
        ({"unlabelled": "soft"}, np.full(len(Y), -1), "y has no label at all"),
        ({"unlabelled": "soft"}, FEW[:-1], "X has 178 rows, but y has 177"),
        ({"unlabelled": "soft"}, np.c_[FEW, FEW], "y must be one column"),
        ({"unlabelled": "ignore"}, np.where(FEW == 1, 1, -1), "at least two classes"),
        ({"unlabelled": "soft", "solver": "both"}, FEW, "does not go with solver='both'"),
        ({"unlabelled": "soft", "landmarks": "kmeans"}, FEW, "does not go with landmarks='kmeans'"),
        ({"unlabelled": "soft", "head": "svm"}, FEW, "needs probabilities"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, y, message):
    with pytest.raises(CoCoError, match=message):
        CoCoClassifier(**options).fit(X, y)


def test_tables_in_blocks_and_partial_fit_know_no_rows_without_a_label():
    with pytest.raises(CoCoError, match="unlabelled is for tables in memory"):
        CoCoClassifier(unlabelled="soft").fit([(X, FEW)], None)
    with pytest.raises(CoCoError, match="is for fit, not for partial_fit"):
        CoCoClassifier(unlabelled="soft", max_iter=5).partial_fit(X, Y)


def test_networks_are_left_out_where_there_is_no_time_to_train_them():
    """Barely trained ones would have a third of the say."""
    limited = CoCoClassifier(unlabelled="soft", time_limit=1e-3, random_state=0)
    with pytest.warns(UserWarning, match="networks beside the kernels"):
        limited.fit(X, FEW)
    assert limited.model_.pool is None
    assert CoCoClassifier(unlabelled="soft", random_state=0).fit(X, FEW).model_.pool[0] >= 2 / 3
