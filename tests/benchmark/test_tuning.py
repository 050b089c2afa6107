"""Tuning one classifier on one table."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

from cocoloss import CoCoClassifier, CrossEntropyClassifier, DotRegressionClassifier
from cocoloss.benchmark.evaluation import balanced_accuracy_of
from cocoloss.benchmark.study import tune_classifier
from cocoloss.estimators import cross_validate_lockstep
from cocoloss.exceptions import CoCoError
from cocoloss.tables import stratified_folds

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


def test_the_best_trial_wins_and_everyone_is_told(table):
    told = []
    tuned = tune_classifier(
        CoCoClassifier(**QUICK), *table, n_trials=4, on_trial=lambda *args: told.append(args)
    )
    scores = [trial["score"] for trial in tuned.trials]
    assert [(number, score) for number, score, _ in told] == list(enumerate(scores))
    assert [best for *_, best in told] == np.maximum.accumulate(scores).tolist()
    assert tuned.best_score == max(scores)
    assert tuned.best_params == tuned.trials[int(np.argmax(scores))]["params"]
    CoCoClassifier(**QUICK).set_params(**tuned.best_params)


def test_the_same_seed_gives_the_same_trials(table):
    first, again, other = (
        tune_classifier(CoCoClassifier(**QUICK), *table, n_trials=3, random_state=seed)
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first.trials[1]["params"] != other.trials[1]["params"]


def test_cross_entropy_keeps_its_layers(table):
    tuned = tune_classifier(CrossEntropyClassifier(**QUICK), *table, n_trials=2)
    assert "embedding_dim" not in tuned.trials[1]["params"]


def test_rare_classes_and_texts_are_no_obstacle():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=40), "b": rng.choice(["u", "v"], 40)})
    y = ["rare"] + ["x", "y", "y"] * 13
    tuned = tune_classifier(DotRegressionClassifier(**QUICK), X, y, n_trials=2, cv=3)
    assert 0 < tuned.best_score < 1


@pytest.mark.parametrize(("n_trials", "cv", "name"), [(0, 3, "n_trials"), (2, 1, "cv")])
def test_refuses_what_cannot_be(table, n_trials, cv, name):
    with pytest.raises(CoCoError, match=name):
        tune_classifier(CoCoClassifier(**QUICK), *table, n_trials=n_trials, cv=cv)


class Touchy(CoCoClassifier):
    """Fails unless it has the batches it likes."""

    likes: set = set()  # noqa: RUF012 - of all copies

    def _make_loss(self, n_classes, embedding_dim, seed):
        if self.batch_size not in self.likes:
            raise CoCoError("diverged")
        return super()._make_loss(n_classes, embedding_dim, seed)


def test_a_trial_that_fails_is_not_the_end(table, monkeypatch):
    monkeypatch.setattr(Touchy, "likes", {64})
    told = []
    tuned = tune_classifier(
        Touchy(**QUICK), *table, n_trials=4, on_trial=lambda *args: told.append(args)
    )
    scores = [trial["score"] for trial in tuned.trials]
    assert np.isnan(scores).any()
    assert tuned.best_score == np.nanmax(scores)
    assert [best for *_, best in told] == np.fmax.accumulate(scores).tolist()


def test_a_first_trial_that_fails_is_the_end(table, monkeypatch):
    monkeypatch.setattr(Touchy, "likes", {16, 32})
    with pytest.raises(CoCoError, match="diverged"):
        tune_classifier(Touchy(**QUICK), *table, n_trials=4)


def test_an_interruption_passes_through(table):
    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune_classifier(CoCoClassifier(**QUICK), *table, n_trials=2, on_trial=interrupt)
