"""Balanced against plain, over the class ratio."""

import numpy as np
import pytest

from cocoloss.benchmark.tasks import load_experiment
from play import info_of, play, spec_of, table_of
from synthetic_store import PAPER

imbalance = load_experiment("imbalance", [PAPER])
QUICK = {
    "folds": {"outer": 3, "inner": 2},
    "tuning": {"trials_per_hyperparameter": 1},
    "training": {"epochs": 2},
}


def skewed():
    rng = np.random.default_rng(0)
    y = np.array([0] * 48 + [1] * 12)
    return table_of(rng.normal(size=(60, 3)) + y[:, None], y)


@pytest.mark.parametrize("name", ["coco-plain", "coco-balanced", "coco-s0.75"])
def test_every_row_says_how_imbalanced_the_table_is(name):
    done = play(imbalance, spec_of("imbalance", [name], **QUICK), skewed())
    assert [task.stage for task, _ in done] == ["trial"] * 7 + ["folds"]
    rows = done[-1][1].rows
    assert [row["class_ratio"] for row in rows] == [4.0] * 3
    best = max(result.measures["score"] for task, result in done if task.stage == "trial")
    assert [row["inner_score"] for row in rows] == [best] * 3
    assert done[-1][1].measures["class_ratio"] == 4.0


def tasks_and_scores(name, table):
    done = play(imbalance, spec_of("imbalance", [name], **QUICK), table)
    trials = [(task.params, result.measures["score"]) for task, result in done[:-1]]
    rows = [
        {k: v for k, v in row.items() if not k.endswith("_seconds")} for row in done[-1][1].rows
    ]
    return [point for point, _ in trials], [score for _, score in trials], rows


def test_plain_and_balanced_are_tuned_each_for_itself_beginning_with_the_same_points():
    plain, balanced = (tasks_and_scores(n, skewed()) for n in ("coco-plain", "coco-balanced"))
    assert plain[0] == balanced[0]  # seven trials are all random
    assert plain[1] != balanced[1]


@pytest.mark.parametrize("name", ["coco-s0.25", "coco-balanced", "coco-s1"])
def test_where_classes_are_as_large_as_each_other_weights_change_nothing(name):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    table = table_of(rng.normal(size=(60, 3)) + y[:, None], y)
    assert tasks_and_scores(name, table) == tasks_and_scores("coco-plain", table)


def test_a_key_names_its_model_though_the_random_numbers_do_not():
    spec = spec_of("imbalance", ["coco-plain", "coco-balanced"], **QUICK)
    plain, balanced = imbalance.plan(spec, [info_of(skewed())])
    assert plain.task("fold", 0).seed == balanced.task("fold", 0).seed
    assert plain.task("fold", 0).key != balanced.task("fold", 0).key


def test_the_ratio_is_the_one_of_the_rule():
    assert imbalance.class_ratio(np.array([0, 0, 0, 1, 1, 2])) == 3.0
    assert imbalance.class_ratio(["a", "b"]) == 1.0
