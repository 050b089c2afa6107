import sys

import numpy as np
import pandas as pd
import pytest
from optuna.trial import FixedTrial
from sklearn.datasets import load_wine

from cocoloss import CoCoClassifier, CrossEntropyClassifier
from cocoloss.benchmark import accuracy, study
from cocoloss.benchmark.evaluation import balanced_accuracy_of
from cocoloss.benchmark.study import Study, tune_classifier
from cocoloss.estimators import cross_validate_lockstep
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.fit import training_settings
from cocoloss.tables import stratified_folds
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
    ("n_samples", "n_classes", "batch", "embedding"),
    [
        (2, 2, (0, 0), (2, 64)),
        (3, 3, (0, 0), (2, 64)),
        (31, 10, (3, 3), (9, 64)),  # at most half the rows
        (32, 46, (4, 4), (45, 92)),  # room for the simplex
        (1023, 3, (4, 8), (2, 64)),
        (1024, 3, (4, 9), (2, 64)),
        (90_000, 3, (4, 9), (2, 64)),
    ],
)
def test_the_space_follows_from_rows_and_classes(n_samples, n_classes, batch, embedding):
    _, asked = ask(study.suggest_network, n_samples, 20, n_classes)
    assert asked["log2_batch_size"] == (*batch, False)
    assert asked["embedding_dim"] == (*embedding, True)


def test_without_dropout_or_embedding_they_are_not_chosen():
    point = {"hidden_layers": 1, "log2_units": 2, "log2_batch_size": 4, "use_dropout": False}
    point |= {"learning_rate": 1e-3, "weight_decay": 1e-3}
    params = study.suggest_network(FixedTrial(point), 900, 20, 3, embedding=False)
    assert not {"dropout", "embedding_dim"} & set(params)
    CrossEntropyClassifier(**params)


def test_the_spaces_of_svm_and_forest_are_the_printed_ones():
    _, asked = ask(study.suggest_svm, 900, 20, 3)
    assert asked == {"C": (1e-3, 1e5, True), "gamma_times_d": (1 / 256, 4096, True)}
    params, asked = ask(study.suggest_forest, 900, 20, 3)
    assert asked == {"max_features": (1, 20, False)}
    assert params == {"feature_share": 1.0}
    five = study.suggest_forest(FixedTrial({"max_features": 5}), 900, 20, 3)
    assert five == {"feature_share": 0.25}


@pytest.mark.parametrize("n_samples", [40, 500, 100_000])
@pytest.mark.parametrize("n_classes", [2, 3, 100])
def test_the_default_is_a_point_of_the_default_space(n_samples, n_classes):
    point = study.default_point({}, n_samples=n_samples, n_classes=n_classes)
    params = study.suggest_default(FixedTrial(point), n_samples, 7, n_classes)
    default = CoCoClassifier().get_params()
    own = training_settings(CoCoClassifier(), 1000) | {"embedding_dim": max(8, n_classes)}
    own["batch_size"] = min(own["batch_size"], 2 ** study.largest_batch(n_samples, 8))
    assert params == {name: own.get(name, default[name]) for name in params}


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
    sections = {"tuning": {"trials": {"coco": 2}}, "training": {"max_units": 4, "epochs": 2}}
    capped = spec_of("accuracy", ["coco"], folds={"outer": 2, "inner": 2}, **sections)
    *trials, (_, result) = play(accuracy, capped, iris())
    assert {task.params["log2_units"] for task, _ in trials} == {2}
    assert set(result.params["hidden_layer_sizes"]) == {4}


def space(trial):
    x = trial.suggest_float("x", -1.0, 1.0)
    params = {"x": x, "kind": trial.suggest_categorical("kind", ["a", "b"])}
    if params["kind"] == "b":
        params["y"] = trial.suggest_int("y", 1, 100, log=True)
    return params


def score(params):
    return -((params["x"] - 0.3) ** 2) + (params["kind"] == "b") * 0.1


def points_of(study, n_trials):
    points = []
    for _ in range(n_trials):
        trial = study.ask()
        study.tell(trial.number, trial.point, score(trial.params))
        points.append(trial.point)
    return points


def test_learns():
    study = Study("learns", space)
    points = points_of(study, 40)
    assert study.best_score > 0.09
    assert study.best.params["kind"] == "b"
    first, last = ([score(point) for point in part] for part in (points[:10], points[-10:]))
    assert sum(last) > sum(first) + 1


def test_the_name_seeds_the_suggestions():
    assert points_of(Study("a", space), 15) == points_of(Study("a", space), 15)
    assert points_of(Study("a", space), 15) != points_of(Study("b", space), 15)


@pytest.mark.parametrize("stop", [1, 11])
def test_goes_on_after_a_stop_as_if_there_had_been_none(stop):
    undisturbed = points_of(Study("a", space), 16)
    again = Study("a", space)
    for point in undisturbed[:stop]:  # told from a store
        trial = again.ask()
        again.tell(trial.number, point, score(point))
    assert points_of(again, 16 - stop) == undisturbed[stop:]


def test_the_order_of_answers_does_not_matter():
    def ask_after(order):
        study = Study("a", space)
        trials = [study.ask() for _ in range(12)]
        for number in order:
            study.tell(number, trials[number].point, score(trials[number].params))
        return study.ask().point

    assert ask_after(range(12)) == ask_after(reversed(range(12)))


def ask_after_four(name, end):
    """Ask for a point after twelve that were told and four that ``end`` decides on."""
    study = Study(name, space)
    points_of(study, 12)
    flying = [study.ask() for _ in range(4)]
    assert len({trial.point["x"] for trial in flying}) == 4
    for trial in flying:
        end(study, trial)
    return study.ask().point


def test_trials_in_flight_are_kept_away_from():
    def fly(study, trial):
        pass

    def fail(study, trial):
        study.tell(trial.number, trial.point, None)

    names = [f"study {n}" for n in range(5)]
    assert any(ask_after_four(name, fly) != ask_after_four(name, fail) for name in names)


def test_where_a_trial_failed_says_nothing_of_where_to_go():
    def fail_at(point):
        return lambda study, trial: study.tell(trial.number, point, None)

    here, there = fail_at({"x": 0.3, "kind": "a"}), fail_at({"x": -0.9, "kind": "b", "y": 5})
    for name in (f"study {n}" for n in range(3)):
        assert ask_after_four(name, here) == ask_after_four(name, there)


def test_a_stored_point_counts_instead_of_the_one_that_was_asked_for():
    study = Study("a", space)
    trial = study.ask()
    study.tell(trial.number, {"x": 0.25, "kind": "a"}, 1.0)
    assert study.best.params == {"x": 0.25, "kind": "a"}
    assert study.score_of({"x": 0.25, "kind": "a"}) == 1.0
    assert study.score_of(trial.point) is None
    study.ask()


@pytest.mark.parametrize("bad", [None, float("nan"), float("inf")])
def test_failed_trials_are_no_best_trials_and_of_equal_scores_the_first_is_best(bad):
    study = Study("a", space)
    trial = study.ask()
    study.tell(trial.number, trial.point, bad)
    assert (study.n_told, study.n_scored) == (1, 0)
    for _ in range(3):
        trial = study.ask()
        study.tell(trial.number, trial.point, 0.5)
    assert study.best.number == 1


def test_says_how_to_get_optuna(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(CoCoError, match=r"pip install 'cocoloss\[tune\]'"):
        Study("a", space)


QUICK = {"max_iter": 3, "n_members": 1}


@pytest.fixture(scope="module")
def table():
    X, y = load_wine(return_X_y=True, as_frame=True)
    return X[::2], y[::2]


def test_the_first_trial_is_the_classifier_as_it_is(table):
    classifier = CoCoClassifier((24,), weight_decay=0.0, random_state=3, **QUICK)
    tuned = tune_classifier(classifier, *table, n_trials=1)
    assert tuned.best_params["hidden_layer_sizes"] == (24,)
    assert tuned.best_params["weight_decay"] == 0.0
    assert tuned.best_params["embedding_dim"] == "auto"

    seed = int(np.random.default_rng(0).integers(2**31))
    folds = stratified_folds(table[1], 3, seed)
    scores = cross_validate_lockstep(classifier, *table, cv=folds, scoring=balanced_accuracy_of)
    assert tuned.best_score == scores["test_score"].mean()


def test_the_same_seed_gives_the_same_trials(table):
    first, again, other = (
        tune_classifier(CoCoClassifier(**QUICK), *table, n_trials=2, random_state=seed)
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first.trials[1]["params"] != other.trials[1]["params"]


def test_rare_classes_and_texts_are_no_obstacle_and_cross_entropy_keeps_its_layers():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=40), "b": rng.choice(["u", "v"], 40)})
    y = ["rare"] + ["x", "y", "y"] * 13
    tuned = tune_classifier(CrossEntropyClassifier(**QUICK), X, y, n_trials=2, cv=3)
    assert 0 < tuned.best_score < 1
    assert "embedding_dim" not in tuned.trials[1]["params"]


def test_refuses_what_cannot_be(table):
    for options in ({"n_trials": 0}, {"n_trials": 2, "cv": 1}):
        with pytest.raises(CoCoError, match="must be at least"):
            tune_classifier(CoCoClassifier(**QUICK), *table, **options)


class Touchy(CoCoClassifier):
    """Fails unless it has the batches it likes."""

    likes: set = set()  # noqa: RUF012 - of all copies

    def make_objective(self):
        if self.batch_size not in self.likes:
            raise CoCoError("diverged")
        return super().make_objective()


def test_the_best_trial_wins_everyone_is_told_and_one_that_fails_is_not_the_end(table, monkeypatch):
    monkeypatch.setattr(Touchy, "likes", {"auto", 64})
    told = []
    tuned = tune_classifier(
        Touchy(**QUICK), *table, n_trials=4, on_trial=lambda *args: told.append(args)
    )
    scores = [trial["score"] for trial in tuned.trials]
    assert np.isnan(scores).any()
    assert tuned.best_score == np.nanmax(scores)
    assert tuned.best_params == tuned.trials[int(np.nanargmax(scores))]["params"]
    assert [number for number, *_ in told] == [0, 1, 2, 3]
    assert [best for *_, best in told] == np.fmax.accumulate(scores).tolist()
    CoCoClassifier(**QUICK).set_params(**tuned.best_params)


def test_a_first_trial_that_fails_is_the_end(table):
    with pytest.raises(CoCoError, match="diverged"):
        tune_classifier(Touchy(**QUICK), *table, n_trials=4)
