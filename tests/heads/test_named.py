import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.svm import LinearSVC

from cocoloss.exceptions import CoCoError
from cocoloss.heads import HEADS, CentroidHead, GaussianHead, MatrixHead, make_head

X = np.random.default_rng(0).normal(size=(60, 3)) + 2 * np.eye(3)[np.arange(60) % 3]
Y = np.arange(60) % 3


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("priors", ["uniform", "empirical"])
def test_every_name_classifies_without_random_numbers(name, priors):
    first, second = (make_head(name, priors).fit(X, Y) for _ in range(2))
    assert first.score(X, Y) > 0.6
    np.testing.assert_array_equal(first.decision_function(X), second.decision_function(X))


def test_names_stand_for_what_they_say():
    kinds = {
        "gaussian": GaussianHead,
        "matrix": MatrixHead,
        "centroid": CentroidHead,
        "angular": CentroidHead,
        "ridge": RidgeClassifier,
        "svm": LinearSVC,
    }
    assert {name: type(make_head(name)) for name in HEADS} == kinds
    assert make_head("angular").metric == "angular"
    assert make_head("gaussian", [0.2, 0.8]).priors == [0.2, 0.8]


@pytest.mark.parametrize("name", ["ridge", "svm"])
def test_linear_heads_balance_their_classes_for_uniform_priors(name):
    assert make_head(name, "uniform").class_weight == "balanced"
    assert make_head(name, "empirical").class_weight is None
    for priors, message in [([0.2, 0.8], "linear heads take priors"), ("flat", "must be one of")]:
        with pytest.raises(CoCoError, match=message):
            make_head(name, priors)


def test_an_instance_is_cloned_and_keeps_its_own_priors():
    head = make_head(GaussianHead("diag", priors="empirical").fit(X, Y), "uniform")
    assert not hasattr(head, "classes_")
    assert (head.covariance, head.priors) == ("diag", "empirical")
    assert make_head(LogisticRegression(C=3.0)).C == 3.0


@pytest.mark.parametrize("head", ["gauss", GaussianHead, Ridge(), None, 3])
def test_anything_else_is_refused_with_the_options(head):
    with pytest.raises(
        CoCoError, match="'gaussian', 'matrix', 'centroid', 'angular', 'ridge', 'svm'"
    ):
        make_head(head)
