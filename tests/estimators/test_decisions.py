"""Priors, costs and thresholds at prediction, thresholds by honest rows, and how good a fit is."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

from cocoloss import (
    CoCoClassifier,
    CoCoOrdinalClassifier,
    CoCoRegressor,
    CrossEntropyClassifier,
    DotRegressionClassifier,
)
from cocoloss.exceptions import CoCoError
from cocoloss.metrics import balanced_accuracy

QUICK = {"max_iter": 60, "n_members": 2, "hidden_layer_sizes": (16,)}
MODELS = {
    "kernel": (CoCoClassifier, {"solver": "kernel"}),
    "network": (CoCoClassifier, QUICK),
    "both": (CoCoClassifier, {"solver": "both"}),
    "gaussian": (CoCoClassifier, {"head": "gaussian", **QUICK}),
    "dr": (DotRegressionClassifier, QUICK),
    "ce": (CrossEntropyClassifier, QUICK),
    "levels": (CoCoOrdinalClassifier, {"solver": "kernel"}),
}


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X.iloc[:, :4]  # so that there is something to decide
    some = np.r_[np.arange(20), np.arange(59, 178)]  # of the first class there are few
    return X.iloc[some], y.iloc[some]


@pytest.fixture(scope="module", params=MODELS)
def fitted(request, wine):
    kind, arguments = MODELS[request.param]
    return kind(random_state=0, **arguments).fit(*wine)


@pytest.fixture(scope="module")
def tumours():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X.iloc[:300, :5], pd.Series(np.where(y[:300] == 0, "sick", "well"))


@pytest.fixture(scope="module")
def doctor(tumours):
    return CoCoClassifier(random_state=0).fit(*tumours)


def test_nothing_asked_is_as_it_was(fitted, wine):
    X, _ = wine
    assert (fitted.predict_proba(X) == fitted.model_.predict_proba(X)).all()
    assert (fitted.predict(X) == fitted.classes_[fitted.predict_proba(X).argmax(axis=1)]).all()
    assert (fitted.predict(X, priors="uniform") == fitted.predict(X)).all()
    assert (fitted.predict_proba(X, priors="uniform") == fitted.predict_proba(X)).all()


@pytest.mark.parametrize("priors", ["empirical", [0.7, 0.2, 0.1]])
def test_priors_of_a_prediction_are_those_of_a_fit(fitted, wine, priors):
    X, y = wine
    other = type(fitted)(**fitted.get_params() | {"priors": priors}).fit(X, y)
    said = fitted.predict_proba(X, priors=priors)
    assert said == pytest.approx(other.predict_proba(X), abs=1e-12)
    assert (fitted.predict(X, priors=priors) == other.predict(X)).all()
    assert not np.allclose(said, fitted.predict_proba(X))


def test_priors_follow_bayes_rule(wine):
    X, y = wine
    classifier = CoCoClassifier(solver="kernel", random_state=0).fit(X, y)
    priors = {0: 0.6, 1: 0.3, 2: 0.1}
    for p, said in zip(
        classifier.predict_proba(X), classifier.predict_proba(X, priors=priors), strict=True
    ):
        likelihoods = [p[c] / (1 / 3) for c in range(3)]
        joint = [priors[c] * likelihoods[c] for c in range(3)]
        assert said == pytest.approx([each / sum(joint) for each in joint])


def test_costs_count_rows_as_often_as_they_occur(fitted, wine):
    X, y = wine
    costs = np.array([[0, 9, 4], [1, 0, 1], [2, 3, 0]])
    shares = np.bincount(y) / len(y)
    for asked, priors in (({}, shares), ({"priors": "uniform"}, np.full(3, 1 / 3))):
        proba = fitted.predict_proba(X, priors=priors)
        expected = [
            min(range(3), key=lambda c, p=p: sum(p[k] * costs[k, c] for k in range(3)))
            for p in proba
        ]
        assert fitted.predict(X, costs=costs, **asked).tolist() == expected
    assert (fitted.predict(X, costs=1 - np.eye(3), priors="uniform") == fitted.predict(X)).all()
    dear = fitted.predict(X, costs={0: 1000, 1: 1, 2: 1})
    assert (dear == 0).sum() > (fitted.predict(X, priors="empirical") == 0).sum()


def test_shares_that_a_fit_was_told_are_those_of_its_costs(wine):
    X, y = wine
    told = CoCoClassifier(solver="kernel", random_state=0, priors=[0.01, 0.01, 0.98]).fit(X, y)
    usual = CoCoClassifier(solver="kernel", random_state=0).fit(X, y)
    costs = {0: 5, 1: 1, 2: 1}
    mine = told.predict(X, costs=costs)
    assert (mine == usual.predict(X, costs=costs, priors=[0.01, 0.01, 0.98])).all()
    assert (mine != usual.predict(X, costs=costs)).any()
    assert (told.predict(X, costs=costs, priors="empirical") == usual.predict(X, costs=costs)).all()


def test_class_weights_do_not_count_where_priors_are_said(wine):
    X, y = wine
    weighted = CoCoClassifier(solver="kernel", class_weight={0: 9.0}, random_state=0).fit(X, y)
    shares = np.bincount(y) / len(y)
    assert (
        weighted.predict_proba(X, priors="empirical") == weighted.predict_proba(X, priors=shares)
    ).all()


def test_a_threshold_is_about_one_of_two_classes(doctor, tumours):
    X, _ = tumours
    sick = doctor.predict_proba(X)[:, 0]
    said = doctor.predict(X, threshold=0.2, positive="sick")
    assert (said == np.where(sick >= 0.2, "sick", "well")).all()
    rare = {"sick": 0.01, "well": 0.99}
    sick = doctor.predict_proba(X, priors=rare)[:, 0]
    said = doctor.predict(X, threshold=0.2, positive="sick", priors=rare)
    assert (said == np.where(sick >= 0.2, "sick", "well")).all()


def test_two_costs_are_a_threshold_on_probabilities_as_rows_come(doctor, tumours):
    X, _ = tumours
    by_costs = doctor.predict(X, costs={"sick": 9, "well": 1})
    at = doctor.predict(X, threshold=1 / (1 + 9), positive="sick", priors="empirical")
    assert (by_costs == at).all()


def test_levels_keep_their_rules(wine):
    X, y = wine
    grades = CoCoOrdinalClassifier(solver="kernel", random_state=0).fit(X, y)
    absolute = np.abs(np.subtract.outer(range(3), range(3)))
    squared = absolute**2
    assert (grades.predict(X, costs=absolute) == grades.predict(X, rule="median")).mean() > 0.97
    assert (grades.predict(X, costs=squared) == grades.predict(X, rule="mean")).mean() > 0.97
    told = grades.predict(X, "median", priors=[0.9, 0.05, 0.05])
    cumulative = grades.predict_proba(X, priors=[0.9, 0.05, 0.05]).cumsum(axis=1)
    assert (told == (cumulative >= 0.5).argmax(axis=1)).all()
    with pytest.raises(CoCoError, match="costs and rule='median' both decide"):
        grades.predict(X, rule="median", costs=absolute)


def test_heads_without_probabilities_or_priors_say_so(wine):
    X, y = wine
    ridge = CoCoClassifier(head="ridge", random_state=0, **QUICK).fit(X, y)
    with pytest.raises(CoCoError, match="need probabilities, which head='ridge' does not have"):
        ridge.predict(X, costs={0: 5, 1: 1, 2: 1})
    own = CoCoClassifier(head=LogisticRegression(), random_state=0, **QUICK).fit(X, y)
    with pytest.raises(CoCoError, match="priors cannot be changed: the head is not one of coco"):
        own.predict_proba(X, priors="uniform")
    costs = np.array([[0, 9, 9], [1, 0, 1], [1, 1, 0]])
    expected = (own.predict_proba(X) @ costs).argmin(axis=1)
    assert (own.predict(X, costs=costs) == expected).all()


# Thresholds, and how good a fit is --------------------------------------------------------------


def test_a_threshold_is_chosen_on_rows_left_out(doctor, tumours):
    X, y = tumours
    sick = doctor.loo_proba_[:, 0]
    chosen = doctor.choose_threshold(positive="sick", recall=0.95)
    assert chosen.positive == "sick"
    found = sick >= chosen.value
    assert chosen.measures["recall"] == pytest.approx(found[y == "sick"].mean())
    assert chosen.measures["recall"] >= 0.95
    assert chosen.measures["precision"] == pytest.approx((y[found] == "sick").mean())
    said = doctor.predict(X, threshold=chosen)
    assert (said == doctor.predict(X, threshold=chosen.value, positive="sick")).all()
    best = doctor.choose_threshold("f1", positive="sick").measures["f1"]
    assert best >= chosen.measures["f1"]


def test_costs_of_a_threshold_are_those_of_a_prediction(doctor, tumours):
    _, y = tumours
    costs = {"sick": 20, "well": 1}
    sick = doctor.loo_proba_[:, 0]
    for positive, score in (("sick", sick), ("well", 1 - sick)):
        chosen = doctor.choose_threshold(costs=costs, positive=positive)
        other = "well" if positive == "sick" else "sick"
        said = np.where(score >= chosen.value, positive, other)
        paid = np.where(said == y, 0, y.map(costs)).mean()
        assert chosen.measures["cost"] == pytest.approx(paid)
    always_sick = np.mean(y == "well")
    assert paid < always_sick


def test_shares_elsewhere_move_the_precision(doctor):
    here = doctor.choose_threshold(positive="sick", recall=0.9)
    rare = doctor.choose_threshold(positive="sick", recall=0.9, priors={"sick": 0.01, "well": 0.99})
    assert rare.measures["recall"] == pytest.approx(here.measures["recall"])
    assert rare.measures["precision"] < here.measures["precision"]
    recall = rare.measures["recall"]
    alarms = recall * (1 - here.measures["precision"]) / here.measures["precision"]
    shares = doctor.history_.class_masses
    alarms *= shares[0] / shares[1]  # of the well
    assert rare.measures["precision"] == pytest.approx(
        0.01 * recall / (0.01 * recall + 0.99 * alarms)
    )


@pytest.mark.parametrize("name", MODELS)
def test_every_solver_says_how_good_it_is(name, wine):
    kind, arguments = MODELS[name]
    fitted = kind(random_state=0, **arguments).fit(*wine)
    quality = fitted.quality_
    left_out = name in ("kernel", "levels")
    assert quality.how == ("left out" if left_out else "held out")
    assert 0.5 < quality["balanced accuracy"].value <= 1
    assert quality["balanced accuracy"].guess == 1 / 3
    rows = "leave-one-out" if left_out else "held-out rows"
    assert str(quality).startswith(f"{rows}: balanced accuracy ")
    if name != "levels":
        assert quality["AUC"].value > 0.7
        assert quality["log loss"].value < quality["log loss"].guess


def test_rows_left_out_are_those_of_the_other_attributes(doctor, tumours):
    _, y = tumours
    quality = doctor.quality_
    labels, said = (y == "well").to_numpy(), doctor.loo_proba_.argmax(axis=1)
    assert quality.n_rows == len(y)
    assert quality["balanced accuracy"].value == pytest.approx(balanced_accuracy(labels, said))
    X, numbers = load_diabetes(return_X_y=True)
    regressor = CoCoRegressor(random_state=0).fit(X, numbers)
    assert regressor.quality_["R2"].value == pytest.approx(regressor.loo_score_)
    off = regressor.loo_prediction_ - numbers
    assert regressor.quality_["RMSE"].value == pytest.approx(np.sqrt(np.mean(off**2)))


def test_rows_held_out_are_predicted_by_members_that_do_not_know_them(wine):
    """Labels that nobody can know: honest predictions are no better than guessing."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 5)), rng.integers(2, size=600)
    quality = CoCoClassifier(random_state=0, n_members=3, max_iter=30).fit(X, y).quality_
    assert quality["AUC"].value == pytest.approx(0.5, abs=0.08)


def test_where_nothing_is_honest_it_is_said_why(wine, tumours, tmp_path):
    X, y = tumours
    blind = CoCoClassifier(early_stopping=False, random_state=0, **QUICK).fit(X, y)
    assert not hasattr(blind, "quality_")
    with pytest.raises(CoCoError, match="no rows were held out; networks hold some out with early"):
        blind.choose_threshold(positive="sick")
    parts = CoCoClassifier(random_state=0, **QUICK).partial_fit(X, y)
    with pytest.raises(AttributeError, match="no rows were held out"):
        parts.quality_  # noqa: B018
    kernels = CoCoClassifier(random_state=0, solver="kernel").fit(X, y)
    kernels.save(tmp_path / "m.coco")
    with pytest.raises(AttributeError, match="a model file holds none; cross-validate instead"):
        CoCoClassifier.load(tmp_path / "m.coco").quality_  # noqa: B018
    again = pickle.loads(pickle.dumps(CoCoClassifier(random_state=0, **QUICK).fit(X, y)))  # noqa: S301
    with pytest.raises(AttributeError, match="a pickle of networks holds none"):
        again.quality_  # noqa: B018
    numbers = CoCoRegressor(random_state=0, max_iter=2, n_members=1).fit(
        *(part[:20] for part in load_diabetes(return_X_y=True))
    )
    with pytest.raises(AttributeError, match="a network alone holds rows out if there are 30"):
        numbers.quality_  # noqa: B018
    with pytest.raises(CoCoError, match="a threshold is for two classes, and there are 3"):
        CoCoClassifier(random_state=0).fit(*wine).choose_threshold()


def test_loaded_models_decide_as_before(doctor, tumours, tmp_path):
    X, _ = tumours
    doctor.save(tmp_path / "m.coco")
    loaded = CoCoClassifier.load(tmp_path / "m.coco")
    costs = {"sick": 9, "well": 1}
    assert (loaded.predict(X, costs=costs) == doctor.predict(X, costs=costs)).all()


def test_tools_of_scikit_learn_work_around_it(tumours):
    X, y = tumours
    quick = CoCoClassifier(random_state=0, **QUICK)
    fixed = FixedThresholdClassifier(quick, threshold=0.2, pos_label="sick").fit(X, y)
    own = fixed.estimator_.predict(X, threshold=0.2, positive="sick")
    assert (fixed.predict(X) == own).all()
    tuned = TunedThresholdClassifierCV(quick, scoring="balanced_accuracy", cv=2).fit(X, y)
    assert 0 < tuned.best_threshold_ < 1
