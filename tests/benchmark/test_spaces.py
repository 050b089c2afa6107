"""The printed search space, number by number."""

import math

import pytest
from optuna.trial import FixedTrial

from cocoloss import CoCoClassifier, CrossEntropyClassifier
from cocoloss.benchmark import accuracy, study
from play import iris, play, spec_of


class Recorder:
    """A trial that takes the upper bound of everything, and remembers what it was asked."""

    def __init__(self):
        self.asked = {}

    def suggest_int(self, name, low, high, *, log=False):
        self.asked[name] = (low, high, log)
        return high

    def suggest_float(self, name, low, high, *, log=False, step=None):
        self.asked[name] = (low, high, log)
        return high

    def suggest_categorical(self, name, choices):
        self.asked[name] = tuple(choices)
        return choices[-1]


def ask(space, *size, **options):
    trial = Recorder()
    return space(trial, *size, **options), trial.asked


def test_the_network_space_is_the_printed_one():
    params, asked = ask(study.suggest_network, 900, 20, 3)
    assert asked == {
        "hidden_layers": (1, 4, False),
        "log2_units": (2, 10, False),
        "log2_batch_size": (4, 8, False),  # floor(log2(450)) = 8
        "learning_rate": (1e-5, 1e-2, True),
        "weight_decay": (1e-5, 1e-1, True),
        "use_dropout": (False, True),
        "dropout_layer": (0, 4, False),
        "dropout_rate": (0.01, 0.6, False),
        "embedding_dim": (2, 64, True),
    }
    assert params == {
        "hidden_layer_sizes": (1024,) * 4,
        "batch_size": 256,
        "learning_rate_init": 1e-2,
        "weight_decay": 1e-1,
        "dropout_layer": 4,
        "dropout": 0.6,
        "embedding_dim": 64,
    }
    CoCoClassifier(**params)


@pytest.mark.parametrize(
    ("n_classes", "bounds"), [(2, (2, 64)), (3, (2, 64)), (10, (9, 64)), (46, (45, 92))]
)
def test_the_embedding_has_room_for_the_simplex(n_classes, bounds):
    _, asked = ask(study.suggest_network, 900, 20, n_classes)
    assert asked["embedding_dim"] == (*bounds, True)


@pytest.mark.parametrize("n_samples", [2, 3, 31, 32, 63, 64, 450, 1023, 1024, 1025, 90_000])
def test_the_largest_batch_is_at_most_half_the_rows(n_samples):
    exponent = min(math.floor(math.log2(n_samples / 2)), 9)
    assert study.largest_batch(n_samples, 9) == exponent
    _, asked = ask(study.suggest_network, n_samples, 20, 3)
    assert asked["log2_batch_size"] == (min(4, exponent), exponent, False)


def test_the_units_are_four_to_1024_whatever_the_table():
    assert {study.unit_exponents(d) for d in range(1, 3000)} == {(2, 10)}


def test_cross_entropy_has_no_embedding_to_choose():
    params, asked = ask(study.suggest_network, 900, 20, 3, embedding=False)
    assert "embedding_dim" not in params
    assert "embedding_dim" not in asked
    CrossEntropyClassifier(**params)


def test_no_dropout_is_no_dropout():
    point = {
        "hidden_layers": 1,
        "log2_units": 2,
        "log2_batch_size": 4,
        "learning_rate": 1e-3,
        "weight_decay": 1e-3,
        "use_dropout": False,
        "embedding_dim": 4,
    }
    assert "dropout" not in study.suggest_network(FixedTrial(point), 900, 20, 3)


def test_the_svm_space_is_the_printed_one():
    _, asked = ask(study.suggest_svm, 900, 20, 3)
    assert asked == {"C": (1e-3, 1e5, True), "gamma_times_d": (1 / 256, 4096, True)}


def test_the_forest_looks_at_one_to_all_columns():
    params, asked = ask(study.suggest_forest, 900, 20, 3)
    assert asked == {"max_features": (1, 20, False)}
    assert params == {"feature_share": 1.0}
    assert study.suggest_forest(FixedTrial({"max_features": 5}), 900, 20, 3) == {
        "feature_share": 0.25
    }


@pytest.mark.parametrize("n_samples", [40, 500, 100_000])
@pytest.mark.parametrize("n_classes", [2, 3, 100])
def test_the_default_is_a_point_of_the_default_space(n_samples, n_classes):
    point = study.default_point({}, n_samples=n_samples, n_classes=n_classes)
    params = study.suggest_default(FixedTrial(point), n_samples, 7, n_classes)
    default = CoCoClassifier().get_params()
    assert params["hidden_layer_sizes"] == default["hidden_layer_sizes"]
    assert params["batch_size"] == min(
        default["batch_size"], 2 ** study.largest_batch(n_samples, 8)
    )
    assert params["learning_rate_init"] == default["learning_rate_init"]
    assert params["weight_decay"] == default["weight_decay"]
    assert params["dropout"] == default["dropout"]
    assert params["embedding_dim"] == max(8, n_classes)


def test_a_classifier_outside_the_default_space_is_brought_to_its_edge():
    params = {"hidden_layer_sizes": (2000,) * 5, "batch_size": 4, "weight_decay": 0.0}
    point = study.default_point(params, n_samples=500, n_classes=2)
    assert (point["hidden_layers"], point["log2_units"], point["log2_batch_size"]) == (3, 9, 4)
    assert point["weight_decay"] == 1e-4
    study.suggest_default(FixedTrial(point), 500, 7, 2)


@pytest.mark.parametrize(("most", "high"), [(0, 10), (256, 8), (300, 8), (2048, 10), (1, 2)])
def test_hidden_layers_may_be_capped(most, high):
    trial = Recorder()
    params = study.suggest_network(trial, 900, 20, 3, max_units=most)
    assert trial.asked["log2_units"][:2] == (2, high)
    assert params["hidden_layer_sizes"] == (2**high,) * 4


def test_the_cap_of_a_spec_is_that_of_its_networks():
    sections = {"tuning": {"trials_per_hyperparameter": 1}, "training": {"max_units": 4}}
    capped = spec_of("accuracy", ["coco"], folds={"outer": 2, "inner": 2}, **sections)
    *trials, (_, result) = play(accuracy, capped, iris())
    assert {task.params["log2_units"] for task, _ in trials} == {2}
    assert set(result.params["hidden_layer_sizes"]) == {4}
