"""An objective of one's own: what it need not say, and what it must."""

import pytest
from sklearn.datasets import load_iris

from cocoloss import CoCoLoss
from cocoloss.estimators import ObjectiveClassifier
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.objective import Objective

X, Y = load_iris(return_X_y=True)
QUICK = {"max_iter": 5, "n_members": 1, "random_state": 0}


class Orthoplex(Objective):
    """Only the loss is said."""

    def make_loss(self, n_classes, embedding_dim, seed):
        return CoCoLoss(n_classes, similarity="orthoplex")


class Promising(Orthoplex):
    head = "readout"


def test_a_loss_is_all_that_an_objective_must_have():
    fitted = ObjectiveClassifier(objective=Orthoplex(), **QUICK).fit(X, Y)
    assert fitted.score(X, Y) > 0.5
    with pytest.raises(CoCoError, match="head='readout' is not for ObjectiveClassifier"):
        ObjectiveClassifier(objective=Orthoplex(), head="readout", **QUICK).fit(X, Y)


def test_a_readout_that_is_promised_must_be_there():
    with pytest.raises(CoCoError, match="Promising has no method readout that makes one"):
        ObjectiveClassifier(objective=Promising(), **QUICK).fit(X, Y)
