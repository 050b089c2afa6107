"""The whole scikit-learn contract, with no check expected to fail."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from cocoloss import CoCoClassifier, CrossEntropyClassifier, DotRegressionClassifier

QUICK = {"max_iter": 15, "n_members": 2, "hidden_layer_sizes": (32,)}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        CoCoClassifier(**QUICK),
        CoCoClassifier(**QUICK, preprocess=None, normalize=False, early_stopping=False),
        CoCoClassifier(**QUICK, head="ridge"),
        DotRegressionClassifier(max_iter=15, n_members=2),  # narrow ones learn too slowly
        CrossEntropyClassifier(**QUICK),
    ]
)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)
