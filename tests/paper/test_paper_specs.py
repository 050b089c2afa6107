"""The specs of the paper's experiments: they load, and say in words what they leave."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_wine

from cocoloss.benchmark.accuracy import plan as plan_accuracy
from cocoloss.benchmark.analysis import printed_ranks
from cocoloss.benchmark.models import find_model
from cocoloss.benchmark.spec import load_spec
from cocoloss.benchmark.tasks import TableInfo, check_options, experiment_of
from cocoloss.exceptions import CoCoError
from cocoloss.stats import critical_distance
from synthetic_store import PAPER

KINDS = ("accuracy", "convergence", "imbalance", "evolution")
FORMS = ("", "-lite", "-smoke")
NAMES = (*(f"{kind}{form}" for kind in KINDS for form in FORMS), "accuracy-each", "accuracy-epochs")
SPECS = {name: load_spec(PAPER / f"{name}.toml") for name in NAMES}
INFO = TableInfo("credit-g", 1000, 20, 2, "print")


UNTUNED = {name: load_spec(PAPER / f"{name}.toml") for name in ("accuracy-small", "accuracy-large")}
BEYOND = {name: load_spec(PAPER / f"{name}.toml") for name in ("regression", "ordinal")}


def test_there_are_no_others():
    assert sorted(path.stem for path in PAPER.glob("*.toml")) == sorted(
        [*SPECS, *BEYOND, *UNTUNED, "mixture"]
    )


@pytest.mark.parametrize(("name", "folds"), [("accuracy-small", 10), ("accuracy-large", 1)])
def test_specs_of_untuned_models_tune_nobody(name, folds):
    spec = UNTUNED[name]
    assert (spec.name, spec.kind, len(set(spec.data.datasets))) == (
        name,
        "accuracy",
        len(spec.data.datasets),
    )
    units = {unit.model: unit.tasks for unit in plan_accuracy(spec, [INFO])}
    assert list(units) == list(spec.models.names)
    assert units["coco-default"] == 1  # all folds at once
    assert {tasks for model, tasks in units.items() if not model.startswith("coco-")} == {folds}


@pytest.mark.parametrize("name", BEYOND)
def test_specs_of_numbers_and_levels_can_be_planned(name):
    spec = BEYOND[name]
    assert (spec.name, spec.kind) == (name, name)
    assert spec.deviations  # from a paper that has classes only
    units = experiment_of(spec).plan(spec, [replace(INFO, n_classes=0)])
    assert [unit.model for unit in units] == list(spec.models.names)
    assert all(unit.tasks == spec.folds.outer and unit.seconds > 0 for unit in units)


def test_the_mixture_has_half_of_its_networks_from_each_loss(monkeypatch):
    monkeypatch.chdir(PAPER.parent)
    spec = load_spec(PAPER / "mixture.toml")
    assert spec.deviations
    units = experiment_of(spec).plan(spec, [INFO])
    exponents = {}
    X, y = load_wine(return_X_y=True)
    for unit in units:
        model = find_model(unit.model, spec.models.own).make(X.shape[1], {}, 0)
        model.set_params(max_iter=1).fit(X, y)
        exponents[unit.model] = model.exponents
        assert sum(len(half.heads_) for half in model.halves_) == 6
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert exponents.pop("mixture") == (0.0, 0.5)
    assert sorted(exponents.values()) == [(s, s) for s in (0.0, 0.25, 0.5, 1.0)]


@pytest.mark.parametrize("name", SPECS)
def test_every_spec_can_be_planned(name):
    spec = SPECS[name]
    assert (spec.name, spec.kind) == (name, name.partition("-")[0])
    experiment = experiment_of(spec)
    check_options(experiment, spec.kind, spec.options)
    units = experiment.plan(spec, [INFO])
    assert [unit.model for unit in units] == list(spec.models.names)
    assert all(unit.tasks > 0 and unit.seconds > 0 for unit in units)
    if name.endswith("-smoke"):
        assert spec.data.source == "sklearn"  # it needs no network
    if spec.kind == "accuracy":
        assert spec.folds.outer >= 6  # enough for a test
    # Only exact forms have no deviations but that of the balanced loss.
    of_the_loss = [d for d in spec.deviations if d.startswith("the balanced loss has")]
    assert len(of_the_loss) == (spec.kind != "evolution")  # which has the plain loss
    assert bool(set(spec.deviations) - set(of_the_loss)) == ("-" in name)


WRONG = [
    ("convergence", {"n_term": [64]}, "unknown key options.n_term; did you mean 'n_terms'?"),
    ("convergence", {"n_terms": 64}, "options.n_terms must be a list"),
    ("convergence", {"n_terms": []}, "options.n_terms must be a list"),
    ("convergence", {"n_terms": [64, -1]}, "each of options.n_terms must be at least 0"),
    ("convergence", {"batch_size": 0}, "options.batch_size must be at least 1"),
    ("convergence", {"learning_rate": 0}, "options.learning_rate must be a positive number"),
    ("evolution", {"epochs": [0]}, "each of options.epochs must be at least 1"),
    ("evolution", {"hidden_units": "many"}, "options.hidden_units must be a whole number"),
    ("evolution", {"learning_rate": -1}, "options.learning_rate must be a number that is not neg"),
]


@pytest.mark.parametrize(("kind", "options", "message"), WRONG)
def test_wrong_options_are_named(kind, options, message):
    with pytest.raises(CoCoError, match=message):
        check_options(experiment_of(SPECS[kind]), kind, options)


@pytest.mark.parametrize(
    ("kind", "message"),
    [("convergence", "are coco, dr, ce, not 'rf'"), ("evolution", r"are coco, .* not 'rf'")],
)
def test_wrong_models_are_named(kind, message):
    spec = replace(SPECS[kind], models=replace(SPECS[kind].models, names=("rf",)))
    with pytest.raises(CoCoError, match=message):
        experiment_of(spec).plan(spec, [INFO])


@pytest.mark.parametrize("kind", ["accuracy", "imbalance"])
def test_the_protocol_is_the_printed_one(kind):
    spec = SPECS[kind]
    assert spec.data.source == "openml-cc18"
    assert (spec.data.datasets, spec.data.max_rows) == ((), 0)
    assert (spec.folds.outer, spec.folds.inner) == (10, 3)
    assert (spec.tuning.trials_per_hyperparameter, spec.tuning.mode) == (10, "first")
    assert spec.training.epochs == 500


@pytest.mark.parametrize(
    ("name", "tasks"),
    [
        ("accuracy", {"coco": 71, "dr": 71, "ce": 61, "ksvm": 20 + 10, "rf": 10 + 10}),
        (
            "accuracy-lite",
            {"coco": 22, "ce": 19, "ksvm": 30, "rf": 13, "hgb": 22, "coco-default": 1},
        ),
    ],
)
def test_so_many_points_are_tried(name, tasks):
    found = {unit.model: unit.tasks for unit in plan_accuracy(SPECS[name], [INFO])}
    assert tasks.items() <= found.items()


def test_tuning_in_each_fold_is_all_that_is_checked():
    each, lite = SPECS["accuracy-each"], SPECS["accuracy-lite"]
    assert (each.tuning.mode, lite.tuning.mode) == ("each", "first")
    assert each.tuning.trials.items() <= lite.tuning.trials.items()
    assert replace(each.tuning, mode="first", trials=lite.tuning.trials) == lite.tuning
    assert (each.folds, each.training, each.limits) == (lite.folds, lite.training, lite.limits)
    assert each.data.max_rows == lite.data.max_rows


def test_the_number_of_epochs_is_all_that_is_checked():
    epochs, lite, paper = (SPECS[name] for name in ("accuracy-epochs", "accuracy-lite", "accuracy"))
    assert epochs.training == replace(lite.training, epochs=paper.training.epochs)
    assert replace(epochs.tuning, trials=lite.tuning.trials) == lite.tuning
    assert (epochs.folds, epochs.limits) == (lite.folds, lite.limits)
    assert epochs.data == SPECS["accuracy-each"].data


def test_the_convergence_is_the_printed_one():
    spec = SPECS["convergence"]
    assert spec.options == {
        "n_terms": [64, 128, 256, 512, 1024],
        "batch_size": 8,
        "learning_rate": 1e-4,
    }
    assert spec.models.names == ("coco", "dr", "ce")
    assert spec.folds.outer == 10


def test_the_evolution_is_the_printed_one():
    spec = SPECS["evolution"]
    assert spec.data.datasets == ("credit-g",)
    assert spec.options["epochs"] == [50, 150, 250, 500]
    assert (spec.options["hidden_units"], spec.options["embedding_dim"]) == (1024, 2)


def test_printed_critical_distances_are_those_of_the_printed_numbers_of_datasets():
    ranks = printed_ranks([PAPER])
    for measure, digits in (("balanced_accuracy", 2), ("dispersity", 3)):
        theirs = ranks[measure]
        distance = critical_distance(len(theirs.ranks), theirs.n_datasets)
        assert round(distance, digits) == theirs.critical_distance
    printed = [rank for rank, _ in ranks["balanced_accuracy"].ranks.values()]
    assert sum(printed) == pytest.approx(15.0)
