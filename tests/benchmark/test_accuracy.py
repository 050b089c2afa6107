"""The paper's protocol: what is tried, in which order, on which rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.naive_bayes import GaussianNB

from cocoloss import CoCoClassifier
from cocoloss.benchmark import accuracy, evaluation
from cocoloss.benchmark.models import ModelKind
from cocoloss.benchmark.tasks import Result, Task
from cocoloss.exceptions import CoCoError
from play import info_of, iris, play, spec_of, table_of, wine

QUICK = {
    "folds": {"outer": 3, "inner": 2},
    "tuning": {"trials_per_hyperparameter": 1},
    "training": {"epochs": 2},
}
NUMBERS = ("balanced_accuracy", "accuracy", "log_loss", "dispersity", "train_dispersity")


def quick_spec(names, **sections):
    return spec_of("accuracy", names, **{**QUICK, **sections})


def stages(done):
    return [task.stage for task, _ in done]


def numbers(done):
    """Everything but times."""
    return [
        (task.key, result.params, [{k: r[k] for k in NUMBERS if k in r} for r in result.rows])
        for task, result in done
    ]


@pytest.fixture
def models(monkeypatch):
    """Names of this test's own models: name -> kind."""
    kinds = {}
    monkeypatch.setattr(accuracy, "find_model", lambda name, own=None: kinds[name])
    return kinds


def bayes_space(trial, n_samples, n_features, n_classes):
    return {"var_smoothing": trial.suggest_float("var_smoothing", 1e-9, 10, log=True)}


def bayes(n_features, params, seed):
    return GaussianNB(**params)


BAYES = ModelKind(bayes, bayes_space, 4)


def test_networks_do_their_outer_folds_in_one_task_and_others_one_by_one():
    done = play(accuracy, quick_spec(["coco"]), iris())
    assert stages(done) == ["trial"] * 7 + ["folds"]
    (_, result) = done[-1]
    assert [row["fold"] for row in result.rows] == [0, 1, 2]
    assert set(NUMBERS) < set(result.rows[0])
    assert result.measures["balanced_accuracy"] == pytest.approx(
        np.mean([row["balanced_accuracy"] for row in result.rows])
    )
    assert result.params["max_iter"] == 2

    done = play(accuracy, quick_spec(["ksvm"], folds={"outer": 3, "inner": 3}), iris())
    assert stages(done) == ["trial"] * 2 + ["fold"] * 3
    assert [result.rows[0]["fold"] for _, result in done[2:]] == [0, 1, 2]
    assert [task.part for task, _ in done[2:]] == ["0", "1", "2"]
    assert "log_loss" not in done[-1][1].measures
    trial = done[0][1]
    inner = [row["balanced_accuracy"] for row in trial.rows]
    assert len(inner) == 3
    assert trial.measures["score"] == pytest.approx(np.mean(inner))


@pytest.mark.parametrize(
    ("name", "mode", "tasks"),
    [
        ("ce", "first", 6 + 1),
        ("ce", "each", 3 * 6 + 3),
        ("ksvm", "first", 2 + 3),
        ("ksvm", "each", 3 * 2 + 3),
        ("coco-default", "first", 1),
    ],
)
def test_the_plan_counts_the_tasks(name, mode, tasks):
    spec = quick_spec([name], tuning={"trials_per_hyperparameter": 1, "mode": mode})
    (unit,) = accuracy.plan(spec, [info_of(iris())])
    assert unit.seconds > 0
    assert unit.tasks == tasks
    if name == "ksvm":
        assert len(play(accuracy, spec, iris())) == tasks


def test_the_best_trial_is_what_the_folds_get(models):
    models["bayes"] = BAYES
    done = play(accuracy, quick_spec(["bayes"]), wine())
    trials = [result for task, result in done if task.stage == "trial"]
    best = max(trials, key=lambda result: result.measures["score"])
    for task, result in done:
        if task.stage == "fold":
            assert task.params["point"] == best.params
            assert result.rows[0]["inner_score"] == best.measures["score"]
            assert result.params["var_smoothing"] == best.params["var_smoothing"]


@pytest.fixture
def evaluated(monkeypatch):
    """What was asked of ``evaluate_folds``: the test rows of each fold, the seed, how briefly."""
    noted = []

    def spied(kind, params, X, y, folds, seed, *, briefly=False):
        noted.append(([fold.test.tolist() for fold in folds.values()], seed, briefly))
        return evaluation.evaluate_folds(kind, params, X, y, folds, seed, briefly=briefly)

    monkeypatch.setattr(accuracy, "evaluate_folds", spied)
    return noted


def test_all_trials_of_all_models_have_the_same_inner_folds(models, evaluated):
    models |= {"bayes": BAYES, "naive": BAYES}
    for name in models:
        play(accuracy, quick_spec([name]), wine())
    inner = [folds for folds, _, briefly in evaluated if briefly]
    assert len(inner) == 2 * BAYES.n_hyperparameters
    assert all(folds == inner[0] for folds in inner)


def test_folds_in_lockstep_start_as_they_would_one_by_one(models, evaluated):
    """A fold has its own first weights, whether it is trained with the others or not."""
    models["spy"] = ModelKind(
        lambda _, params, seed: CoCoClassifier((4,), max_iter=2, random_state=seed), neural=True
    )
    spec = quick_spec(["spy"])
    ((task, _),) = play(accuracy, spec, iris())
    assert task.stage == "folds"
    for k in range(3):
        accuracy.run(replace(task, stage="fold", part=str(k)), iris(), spec)
    (_, together, _), *alone = evaluated
    assert [together] == [[seed for _, (seed,), _ in alone]]
    assert len(set(together)) == 3


def test_spaces_are_told_the_rows_of_an_outer_training_part(models):
    sizes = set()

    def space(trial, *size):
        sizes.add(size)
        return bayes_space(trial, *size)

    models["bayes"] = replace(BAYES, space=space)
    play(accuracy, quick_spec(["bayes"], folds={"outer": 10}), iris())
    assert sizes == {(135, 4, 3)}


@pytest.mark.parametrize("name", ["coco-plain", "ksvm"])
def test_the_same_spec_gives_the_same_numbers(name):
    spec = quick_spec([name], tuning={"trials": {name: 2}})
    first, again = (numbers(play(accuracy, spec, iris())) for _ in range(2))
    assert first == again
    other = replace(spec, folds=replace(spec.folds, seed=1))
    assert numbers(play(accuracy, other, iris())) != first


@pytest.mark.parametrize(("parallel", "stop"), [(1, 0), (1, 6), (1, 16), (4, 14)])
def test_a_stopped_study_goes_on_as_if_it_had_not(models, parallel, stop):
    models["bayes"] = BAYES
    spec = quick_spec(["bayes"], tuning={"trials_per_hyperparameter": 4})
    store = {}
    first = play(accuracy, spec, wine(), store=store, parallel=parallel, most_tasks=stop)
    assert [task.part for task, _ in first[:5]] == [f"0/{n}" for n in range(5)][:stop]
    stored = {key: result.params for key, result in store.items()}
    done = play(accuracy, spec, wine(), store=store)
    assert len(stored) == stop < len(store) == len(done) == 16 + 3
    assert all(stored.get(task.key, result.params) == result.params for task, result in done)
    if parallel == 1:  # with others there are other points
        assert numbers(done) == numbers(play(accuracy, spec, wine()))


def test_what_a_stored_trial_was_tried_with_is_what_counts(models):
    models["bayes"] = BAYES
    store = {}
    spec = quick_spec(["bayes"])
    done = play(accuracy, spec, wine(), store=store)
    third = done[2][0].key
    store[third] = replace(store[third], params={"var_smoothing": 0.5}, measures={"score": 2.0})
    task, result = play(accuracy, spec, wine(), store=store)[-1]
    assert task.params == {"point": {"var_smoothing": 0.5}, "inner_score": 2.0}
    assert result.params == {"var_smoothing": 0.5}


def test_tuning_in_each_fold_does_not_depend_on_the_number_of_workers(models):
    models["bayes"] = BAYES
    spec = quick_spec(["bayes"], tuning={"trials_per_hyperparameter": 3, "mode": "each"})
    alone = play(accuracy, spec, wine())
    for parallel in (2, 5):
        together = play(accuracy, spec, wine(), parallel=parallel)
        assert sorted(numbers(together), key=str) == sorted(numbers(alone), key=str)
    points = {task.part: task.params["point"] for task, _ in alone if task.stage == "fold"}
    assert len({point["var_smoothing"] for point in points.values()}) == 3


def test_no_point_is_tried_twice(models):
    def narrow(trial, n_samples, n_features, n_classes):
        return {"var_smoothing": trial.suggest_categorical("var_smoothing", [0.1, 1.0])}

    models["bayes"] = ModelKind(bayes, narrow, 10)
    done = play(accuracy, quick_spec(["bayes"]), iris())
    assert stages(done).count("trial") == 2


class Watcher(TransformerMixin, BaseEstimator):
    """A preprocessor that remembers which rows it was shown."""

    shown: list = []  # noqa: RUF012 - of all copies

    def fit(self, X, y=None):
        self.shown.append(set(X.index))
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        self.shown.append(set(X.index))
        return X.to_numpy(dtype=np.float32)


@pytest.mark.parametrize("neural", [False, True])
def test_neither_the_tuner_nor_a_fit_sees_a_test_row_of_its_fold(models, monkeypatch, neural):
    def network(n_features, params, seed):
        return CoCoClassifier(
            max_iter=1, n_members=1, preprocess=Watcher(), random_state=seed, weight_decay=0.1
        )

    models["spy"] = ModelKind(network if neural else bayes, bayes_space, 2, neural=neural)
    monkeypatch.setattr(evaluation, "TablePreprocessor", Watcher)
    table = wine()
    spec = quick_spec(["spy"], tuning={"trials_per_hyperparameter": 1, "mode": "each"})
    outer = accuracy.outer_folds(table.name, table.y, spec)
    for k in range(3):
        Watcher.shown = []
        task = Task("accuracy", table.name, "spy", "trial", f"{k}/0", {"var_smoothing": 1.0})
        accuracy.run(task, table, spec)
        assert set().union(*Watcher.shown) == set(outer[k].train)
    Watcher.shown = []
    accuracy.run(Task("accuracy", table.name, "spy", "fold", "1", {"point": {}}), table, spec)
    fitted, transformed, *others = Watcher.shown
    assert fitted == transformed == set(outer[1].train)
    assert set(outer[1].test) in others


def test_a_failing_model_is_given_up_soon(models):
    def broken(*_):
        raise RuntimeError("out of cheese")

    models["broken"] = ModelKind(broken, bayes_space, 30)
    message = "all 5 trials of broken on iris failed, .* RuntimeError: out of cheese"
    with pytest.raises(CoCoError, match=message):
        play(accuracy, quick_spec(["broken"]), iris())


def test_a_point_that_fails_is_not_the_end(models):
    def touchy(n_features, params, seed):
        if params["var_smoothing"] < 1e-4:
            raise FloatingPointError("diverged")
        return bayes(n_features, params, seed)

    models["touchy"] = ModelKind(touchy, bayes_space, 8)
    done = play(accuracy, quick_spec(["touchy"]), iris())
    failed = [result for task, result in done if not result.ok]
    assert failed
    assert all(
        result.params["var_smoothing"] >= 1e-4 for task, result in done if task.stage == "fold"
    )


@pytest.mark.parametrize("name", ["coco", "dr", "ce", "ksvm", "hgb", "coco-default"])
def test_a_class_of_one_row_is_survived(name):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=41), "b": rng.choice(list("uvw"), 41)})
    y = np.array(["rare"] + ["x", "y"] * 20)
    spec = quick_spec([name], tuning={"trials_per_hyperparameter": 0})
    rows = [row for _, result in play(accuracy, spec, table_of(X, y)) for row in result.rows]
    assert [row["fold"] for row in rows] == [0, 1, 2]
    outer = accuracy.outer_folds("table", y, spec)
    lacking = next(k for k, fold in enumerate(outer) if 0 in fold.test)
    assert rows[lacking]["balanced_accuracy"] <= 2 / 3  # of three classes one was never learnt
    assert all(0 <= row["balanced_accuracy"] <= 1 for row in rows)


@pytest.mark.parametrize("name", ["coco", "ksvm", "rf"])
def test_a_tiny_table_is_survived(name, monkeypatch):
    monkeypatch.setattr("cocoloss.benchmark.models.TREES", 20)
    table = table_of(np.arange(12.0)[:, None] % 5, ["a", "b"] * 6)
    done = play(accuracy, quick_spec([name]), table)
    assert all(result.ok for _, result in done), [result.error for _, result in done]
    assert sum(len(result.rows) for task, result in done if task.stage != "trial") == 3


def test_without_tuning_there_are_defaults_and_wide_tables_are_stacked_few_folds_at_a_time(
    monkeypatch,
):
    spec = quick_spec(["ce"], tuning={"trials_per_hyperparameter": 0})
    ((task, together),) = play(accuracy, spec, wine())
    assert (task.params, together.params) == ({"point": {}}, {"max_iter": 2})
    monkeypatch.setattr(evaluation, "MOST_NUMBERS", 1)
    ((_, one_by_one),) = play(accuracy, spec, wine())
    for a, b in zip(together.rows, one_by_one.rows, strict=True):
        assert a["log_loss"] == pytest.approx(b["log_loss"], rel=1e-3)


def test_a_model_may_have_trials_of_its_own():
    tuning = {"trials_per_hyperparameter": 2, "trials": {"ksvm": 7}}
    spec = spec_of("accuracy", ["ksvm", "rf"], tuning=tuning)
    ksvm, rf = accuracy.plan(spec, [info_of(iris())])
    assert (ksvm.tasks, rf.tasks) == (7 + 10, 2 + 10)
    steps = accuracy.drive(ksvm, spec)
    tasks, n_trials = next(steps), 0
    while tasks[0].stage == "trial":
        n_trials += len(tasks)
        tasks = steps.send([Result({"score": 0.5}, params=task.params) for task in tasks])
    assert n_trials == 7
    misspelt = spec_of("accuracy", ["ksvm"], tuning={"trials": {"kvsm": 7}})
    with pytest.raises(CoCoError, match="there is no model 'kvsm'; did you mean 'ksvm'"):
        accuracy.plan(misspelt, [info_of(iris())])
