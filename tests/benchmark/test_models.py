"""Every model by its name, as the paper has it; and the user's own."""

import sys
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.metrics import balanced_accuracy_score
from sklearn.svm import SVC

from cocoloss import CoCoClassifier
from cocoloss.benchmark import models
from cocoloss.benchmark.evaluation import fit_folds
from cocoloss.benchmark.models import MODELS, find_model, own_model
from cocoloss.estimators.classifiers import BaseNetworkClassifier, ObjectiveClassifier
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.objective import CoCo
from cocoloss.tables import stratified_folds
from oracles import printed_balanced_coco, value_and_grad
from spies import note_which_batches_are_pairs

SMALL = {"max_iter": 5, "hidden_layer_sizes": (8,)}


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_learns(name, monkeypatch):
    monkeypatch.setattr(models, "TREES", 20)
    few = partial(models.catboost_model, iterations=100)
    monkeypatch.setattr(models, "catboost_model", few)
    X, y = load_wine(return_X_y=True)
    y = np.array(["2", "10", "1"], dtype=object)[y]  # which weights of scikit-learn stumble over
    kind = MODELS[name]
    params = {"max_iter": 30} if kind.takes_epochs else {}
    folds = stratified_folds(y, 3, 0)[:1]
    ((model, seconds),) = fit_folds(kind, params, X, y, folds, seed=0)
    assert balanced_accuracy_score(y[folds[0].test], model.predict(X[folds[0].test])) > 0.8
    assert seconds > 0
    assert kind.neural == isinstance(model, BaseNetworkClassifier)


@pytest.mark.parametrize("name", ["coco", "coco-plain", "coco-balanced", "dr", "ce"])
def test_networks_train_as_the_paper_says(name):
    params = MODELS[name].make(4, {"max_iter": 500}, 7).get_params()
    expected = {
        "max_iter": 500,
        "n_members": 1,
        "early_stopping": False,
        "output": "identity",
        "normalize": False,
        "learning_rate": "constant",
        "priors": "empirical",  # rules as printed
        "random_state": 7,
    }
    assert {key: params[key] for key in expected} == expected


@pytest.mark.parametrize(("name", "solver"), [("coco-default", "auto"), ("coco-kernel", "kernel")])
def test_the_untuned_models_are_classifiers_as_they_come(name, solver):
    made = MODELS[name].make(4, {}, 7).get_params()
    assert made == CoCoClassifier(solver=solver, random_state=7).get_params()


@pytest.mark.parametrize("name", ["coco", "coco-w", "coco-balanced", "coco-s0.25", "dr", "ce-w"])
def test_batches_are_drawn_alike_for_all_losses(name, monkeypatch):
    in_pairs = note_which_batches_are_pairs(monkeypatch)
    X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 30
    find_model(name).make(4, {"batch_size": 16, "max_iter": 1}, 0).fit(X, y)
    assert in_pairs == [False]


def test_dot_regression_on_the_sphere_knows_three_classes(iris):
    def score(name):
        model = MODELS[name].make(4, {"max_iter": 100}, 0).fit(*iris)
        return balanced_accuracy_score(iris[1], model.predict(iris[0]))

    assert score("dr-sphere") > 0.95 > score("dr")


def test_trials_are_ten_times_the_printed_items():
    # (d) to (i), and q where there is an embedding
    printed = {"coco": 7, "coco-s0.25": 7, "dr": 7, "ce": 6, "ksvm": 2, "rf": 1, "coco-default": 0}
    assert {name: find_model(name).n_hyperparameters for name in printed} == printed


def test_the_svm_takes_the_largest_margin_of_one_against_the_rest(iris):
    X, y = iris
    params = {"C": 3.0, "gamma_times_d": 2.0}
    model = MODELS["ksvm"].make(4, params, 0).fit(X, y)
    margins = [SVC(C=3.0, gamma=0.5).fit(X, y == c).decision_function(X) for c in range(3)]
    np.testing.assert_array_equal(model.predict(X), np.argmax(margins, axis=0))


@pytest.mark.parametrize(("share", "d", "chosen"), [(0.25, 20, 5), (0.05, 8, 1), (1.0, 33, 33)])
def test_the_forest_has_500_trees_that_look_at_so_many_columns(share, d, chosen):
    for name, weights in (("rf", None), ("rf-w", "balanced")):
        forest = MODELS[name].make(d, {"feature_share": share}, 0)
        assert (forest.n_estimators, forest.max_features) == (500, chosen)
        assert forest.class_weight == weights


@pytest.mark.parametrize("name", ["ce", "ksvm", "hgb", "coco", "dr"])
def test_weighted_forms_care_for_the_rare_class(name):
    X, y = make_classification(
        800, 6, n_informative=4, weights=[0.92], flip_y=0, class_sep=0.5, random_state=1
    )
    folds = stratified_folds(y, 2, 0)[:1]
    test, is_rare = folds[0].test, y[folds[0].test] == 1

    def recalls(kind):
        params = SMALL | {"max_iter": 40} if kind.neural else {}
        ((model, _),) = fit_folds(kind, params, X, y, folds, seed=0)
        predicted = model.predict(X[test])
        return (predicted[~is_rare] == 0).mean(), (predicted[is_rare] == 1).mean()

    (_, neglected), (frequent, cared_for) = recalls(MODELS[name]), recalls(MODELS[f"{name}-w"])
    assert cared_for > neglected
    assert min(frequent, cared_for) > 0.2


def test_the_mixture_has_plain_and_balanced_at_its_marks_and_is_neither_between(iris):
    X, y = iris[0][:120], iris[1][:120]  # 50, 50, 20
    options = SMALL | {"n_members": 1, "random_state": 0, "early_stopping": False}
    plain, mixed, balanced = (
        ObjectiveClassifier(objective=CoCo(balance=exponent), **options).fit(X, y).parameters_
        for exponent in (0.0, 0.25, 0.5)
    )
    for found, loss in ((plain, "coco"), (balanced, "balanced")):
        known = CoCoClassifier(loss=loss, **options).fit(X, y)
        np.testing.assert_array_equal(found, known.parameters_)
    assert not np.array_equal(mixed, plain)
    assert not np.array_equal(mixed, balanced)


def test_the_printed_balanced_loss_is_the_formula_as_printed():
    rng = np.random.default_rng(0)
    y = rng.permutation([0] * 8 + [1] * 3 + [2])
    h = torch.tensor(rng.normal(size=(12, 4)), requires_grad=True)
    priors = np.bincount(y) / 12
    g = [[1 if i == j else -1 / 2 for j in range(3)] for i in range(3)]
    expected, gradient = value_and_grad(printed_balanced_coco, h, y, g, priors)
    objective = MODELS["coco-balanced-printed"].make(4, {}, 0).make_objective()
    loss = objective.make_loss(3, 4, 0)
    weights = torch.tensor(objective.loss_weights(y, np.ones(12)))
    value = loss(h, torch.tensor(y), sample_weight=weights)
    (found,) = torch.autograd.grad(value, h)
    # Weights are (3 pi)^-1/2, of which Adam notices nothing: a third of the printed loss.
    assert value.item() == pytest.approx(float(expected) / 3)
    np.testing.assert_allclose(found, gradient / 3)


@pytest.mark.parametrize("name", ["cocoo", "svm", "coco-s", "coco-sx"])
def test_unknown_models_are_refused_with_a_hint(name):
    with pytest.raises(CoCoError, match=f"there is no model '{name}'; (did you mean|there are)"):
        find_model(name)


OWN = """
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from cocoloss import CoCoClassifier

def linear(alpha=1e-4):
    return make_pipeline(StandardScaler(), SGDClassifier(alpha=alpha))

def linear_space(trial, n_samples, n_features, n_classes):
    return {"alpha": trial.suggest_float("alpha", 1e-6, 1, log=True)}

linear.search_space = linear_space

def network():
    return CoCoClassifier(max_iter=2)

class Sometimes(LogisticRegression):
    pass

def some_space(trial, n_samples, n_features, n_classes):
    params = {"C": trial.suggest_float("C", 0.1, 10)}
    if trial.suggest_categorical("free", [True, False]):
        params["fit_intercept"] = False
        params["tol"] = trial.suggest_float("tol", 1e-4, 1e-2)
    return params

Sometimes.search_space = some_space

def broken():
    raise OSError("no licence")

def seven():
    return 7

def ill_made():
    return LogisticRegression(C=-1)

def ill_spaced():
    return SGDClassifier()

ill_spaced.search_space = lambda trial, n, d, c: [trial.suggest_float("alpha", 0, 1)]

def ill_named():
    return SGDClassifier()

ill_named.search_space = lambda trial, n, d, c: {"alpha": trial.suggest_real("alpha", 0, 1)}
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "my_models.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in ("my_models", "my_beside"):
        sys.modules.pop(name, None)


def test_an_own_model_is_found_in_the_current_folder(own_module, tmp_path):
    kind = own_model("mine", "my_models:linear")
    assert kind.n_hyperparameters == 1
    assert not kind.neural
    made = kind.make(4, {"alpha": 0.5}, 11)
    assert made.get_params()["sgdclassifier__alpha"] == 0.5
    assert made.get_params()["sgdclassifier__random_state"] == 11
    assert own_model("mine", "my_models:Sometimes").n_hyperparameters == 3  # some drawn sometimes
    beside = OWN.replace("linear.search_space", "search_space")
    (tmp_path / "my_beside.py").write_text(beside)
    assert own_model("mine", "my_beside:network").n_hyperparameters == 1


def test_an_own_variant_of_our_classifiers_trains_in_lockstep(own_module, iris):
    kind = find_model("mine", {"mine": "my_models:network"})
    assert kind.neural
    assert kind.space is None
    fitted = fit_folds(kind, {}, *iris, stratified_folds(iris[1], 3, 0), seed=5)
    assert [model.random_state for model, _ in fitted] == [5, 5, 5]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("my_models", "'mine' .my_models. must have the form package.module:name"),
        ("nowhere.at_all:f", "'mine' .* there is no module 'nowhere'; install it"),
        ("my_models:linaer", "'mine' .* my_models has no 'linaer'"),
        ("my_models:broken", "'mine' .* could not be made: OSError: no licence"),
        ("my_models:ill_spaced", "search_space failed: TypeError: it must return a dict"),
        ("my_models:ill_named", "'mine' .* search_space failed: AttributeError: .*suggest_real"),
        ("my_models:seven", "'mine' .* with fit and predict, but gave int"),
    ],
)
def test_an_own_model_that_cannot_be_is_named(own_module, place, message):
    with pytest.raises(CoCoError, match=message):
        own_model("mine", place)


def test_a_failure_inside_an_own_model_names_it(own_module, iris):
    kind = own_model("mine", "my_models:ill_made")
    with pytest.raises(CoCoError, match=r"model 'mine' \(my_models:ill_made\) failed: Inval.*'C'"):
        fit_folds(kind, {}, *iris, stratified_folds(iris[1], 3, 0), seed=5)


@pytest.mark.parametrize("name", ["rf", "coco-s0.25"])
def test_an_own_model_may_not_take_the_name_of_one_of_ours(name):
    with pytest.raises(
        CoCoError, match=rf"model '{name}' \(sklearn.* another, such as 'my-{name}'"
    ):
        find_model(name, {name: "sklearn.tree:DecisionTreeClassifier"})
