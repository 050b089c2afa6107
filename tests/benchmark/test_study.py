"""A study depends on what it was told, not on when, nor on how often it was stopped."""

import sys

import pytest

from cocoloss.benchmark.study import Study
from cocoloss.exceptions import CoCoError


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


@pytest.mark.parametrize("stop", [1, 5, 11, 14])
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

    for name in (f"study {n}" for n in range(5)):
        here, there = fail_at({"x": 0.3, "kind": "a"}), fail_at({"x": -0.9, "kind": "b", "y": 5})
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
def test_failed_trials_are_no_best_trials(bad):
    study = Study("a", space)
    trial = study.ask()
    study.tell(trial.number, trial.point, bad)
    assert (study.n_told, study.n_scored) == (1, 0)
    with pytest.raises(CoCoError, match="none of the 1 trials of study 'a' has a score"):
        _ = study.best
    points_of(study, 12)
    assert study.best.number > 0


def test_of_equal_scores_the_first_is_best():
    study = Study("a", space)
    for _ in range(3):
        trial = study.ask()
        study.tell(trial.number, trial.point, 0.5)
    assert study.best.number == 0


def test_the_first_point_can_be_given():
    first = {"x": 0.125, "kind": "a"}
    assert Study("a", space, first=first).ask().point == first


def test_nothing_is_told_twice():
    study = Study("a", space)
    with pytest.raises(CoCoError, match="trial 0 of study 'a' was not asked for, or told twice"):
        study.tell(0, {}, 1.0)


def test_says_how_to_get_optuna(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(CoCoError, match=r"pip install 'cocoloss\[tune\]'"):
        Study("a", space)
