"""Models of the user's own answer with the numbers of classes, or are told what they answered."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_iris

from cocoloss.benchmark.evaluation import evaluate_folds
from cocoloss.benchmark.models import ModelKind
from cocoloss.exceptions import CoCoError
from cocoloss.tables import stratified_folds


class Fixed:
    """Answers the same, whatever it is asked."""

    def __init__(self, answer):
        self.answer = answer

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.answer(len(X))


def scores(answer):
    kind = ModelKind(lambda *_: Fixed(answer), whose="model 'm'")
    X, y = load_iris(return_X_y=True)
    folds = dict(enumerate(stratified_folds(y, 3, 0)))
    return evaluate_folds(kind, {}, X, y, folds, 0)


WRONG = {
    "-1": lambda n: np.where(np.arange(n) == 2, -1, 1),
    "3": lambda n: np.full(n, 3),
    "0.97": lambda n: np.full(n, 0.97),
    "nan": lambda n: np.full(n, np.nan),
    "'0'": lambda n: np.array(["0"] * n),
    "None": lambda n: np.array([None] * n),
    "an array of shape (7,) for 50 rows": lambda n: np.zeros(7, dtype=int),
    "an array of shape (50, 1) for 50 rows": lambda n: np.zeros((n, 1), dtype=int),
}


@pytest.mark.parametrize(("said", "answer"), WRONG.items(), ids=WRONG)
def test_what_is_no_number_of_a_class_is_told_and_not_scored(said, answer):
    told = f"model 'm' predicted {said}; classes are numbered 0 to 2"
    with pytest.raises(CoCoError, match=re.escape(told)):
        scores(answer)


@pytest.mark.parametrize("kind", [int, np.uint8, np.float32, bool, object])
def test_numbers_of_classes_are_taken_in_any_type(kind):
    (first, *_) = scores(lambda n: np.ones(n, dtype=kind))
    assert first["balanced_accuracy"] == pytest.approx(1 / 3)
