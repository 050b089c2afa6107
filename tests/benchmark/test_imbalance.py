"""Balanced against plain, over the class ratio."""

import numpy as np
import pytest

from cocoloss.benchmark import imbalance
from cocoloss.benchmark.imbalance import class_ratio
from play import play, spec_of, table_of

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


def test_plain_and_balanced_are_tuned_each_for_itself():
    points = [
        play(imbalance, spec_of("imbalance", [name], **QUICK), skewed())[-1][0].params["point"]
        for name in ("coco-plain", "coco-balanced")
    ]
    assert points[0] != points[1]


def test_the_ratio_is_the_one_of_the_rule():
    assert class_ratio(np.array([0, 0, 0, 1, 1, 2])) == 3.0
    assert class_ratio(["a", "b"]) == 1.0
