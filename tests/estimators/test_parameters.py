"""Wrong arguments, wrong tables and faults: one clear sentence, before the work, no trace."""

from datetime import date

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_wine
from torch import nn

from cocoloss import CoCoClassifier, CrossEntropyClassifier
from cocoloss.exceptions import CoCoError

X, Y = load_wine(return_X_y=True)
NAMES = np.array(["red", "white", "rose"])[Y]


def small(cls=CoCoClassifier, **options):
    small_and_seeded = {
        "max_iter": 2,
        "n_members": 1,
        "hidden_layer_sizes": (8,),
        "random_state": 0,
    }
    return cls(**small_and_seeded | options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"learning_rate_init": "0.1"},
            "learning_rate_init must be 'auto' or a number above 0, not '0.1'",
        ),
        ({"learning_rate_init": 0}, "above 0, not 0"),
        ({"learning_rate_init": np.nan}, "above 0, not nan"),
        ({"weight_decay": "x"}, "weight_decay must be a number at least 0"),
        ({"weight_decay": -1}, "at least 0, not -1"),
        ({"dropout": "a"}, "dropout must be a number at least 0 and below 1"),
        ({"dropout": True}, "not True"),
        ({"dropout_layer": 1.5}, "dropout_layer must be a whole number, 0 for .*, not 1.5"),
        ({"dropout_layer": "a"}, "dropout_layer must be a whole number, .* not 'a'"),
        ({"dropout_layer": None}, "dropout_layer must be a whole number, .* not None"),
        ({"dropout_layer": 2}, "dropout_layer must be a layer of the network, 0 to 1"),
        ({"validation_fraction": 1.0}, "above 0 and below 1, not 1.0"),
        ({"clip_norm": 0}, "clip_norm must be a number above 0, or None"),
        ({"early_stopping": "no"}, "early_stopping must be True or False, not 'no'"),
        ({"early_stopping": None}, "early_stopping must be True or False"),
        ({"warm_start": "a"}, "warm_start must be"),
        ({"normalize": "yes"}, "normalize must be True or False, or 'auto', not 'yes'"),
        ({"embedding_dim": "big"}, "embedding_dim must be 'auto' or a whole number"),
        ({"embedding_dim": 0}, "embedding_dim must be at least 1"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"learning_rate": "linear"}, "learning_rate must be one of"),
        ({"output": "relu"}, "output must be one of"),
        ({"loss": "cocos"}, "loss must be one of 'auto', 'coco', 'balanced'"),
        ({"preprocess": 3}, "preprocess must be 'auto', None or a scikit-learn transformer"),
        ({"random_state": "a"}, "random_state"),
        ({"hidden_layer_sizes": ("a",)}, "each of hidden_layer_sizes"),
        ({"n_members": 0}, "n_members must be at least 1"),
        ({"callbacks": print}, "callbacks must be a list of functions"),
        ({"callbacks": [3]}, "callbacks must be a list of functions"),
        ({"callbacks": iter([print])}, "callbacks must be a list of functions"),
        ({"class_weight": "balance"}, "class_weight must be None, 'balanced' or a dict"),
        ({"class_weight": {0: 0.0, 1: 1.0, 2: 1.0}}, "class 0 has 0.0; leave the rows"),
        ({"class_weight": {0: -1, 1: 1, 2: 1}}, "class_weight must be positive"),
        ({"priors": None}, "priors must be a vector with one value per class"),
        ({"priors": "flat"}, "priors must be one of"),
        ({"priors": [0.5, 0.5]}, "2 values for 3 classes"),
        ({"head": "gauss"}, "one of 'auto', 'gaussian', .*'svm' or .*, not 'gauss'"),
        ({"head": None}, "one of 'auto', 'gaussian', .* not None"),
        ({"head": "readout"}, "head='readout' is not for CoCoClassifier"),
        ({"device": "gpu"}, "device 'gpu' cannot be used here"),
        ({"module": nn.Linear, "dropout": 0.2}, "put what you want of it into your module"),
        ({"module": nn.Linear, "output": "tanh"}, "put what you want of it into your module"),
        ({"module": "mlp"}, "module must be a torch.nn.Module, or a function"),
        ({"module": lambda d, q: 3}, "module must make a torch.nn.Module, but made 3"),
        ({"module": nn.Linear(10, 8)}, "cannot take rows of 13 numbers"),
        ({"module": lambda d, q: nn.Linear(d, 3)}, r"but \[2, 8\] is wanted; give it 8 outputs"),
    ],
)
def test_wrong_arguments_are_refused_before_the_training(options, message, monkeypatch):
    def nobody_trains(*args, **kwargs):
        raise AssertionError("trained")

    monkeypatch.setattr("cocoloss.training.trainer._run_epoch", nobody_trains)
    with pytest.raises(CoCoError, match=message):
        small(**options).fit(X, Y)


def test_an_embedding_that_cannot_hold_the_simplex_is_refused():
    with pytest.raises(CoCoError, match="embedding_dim >= n_classes - 1"):
        small(embedding_dim=1).fit(X, Y)


@pytest.mark.parametrize("early_stopping", [True, False])
@pytest.mark.parametrize("cls", [CoCoClassifier, CrossEntropyClassifier])
def test_training_that_diverges_says_so(cls, early_stopping):
    options = {"learning_rate_init": 1e30, "early_stopping": early_stopping, "normalize": False}
    with pytest.raises(CoCoError, match=r"training diverged: the loss is .* in epoch .*lower the"):
        small(cls, **options).fit(X, Y)


def cells(values):
    return np.array(values * 60, dtype=object)[: len(Y)]


@pytest.mark.parametrize(
    ("table", "target", "message"),
    [
        (X, np.where(Y == 0, np.nan, Y), "it has gaps; drop the rows"),
        (X, np.where(Y == 0, None, NAMES), "it has gaps; drop the rows"),
        (X, cells(["a", 1, 2]), "y mixes int and str; make all its classes"),
        (X, ["a", float("nan"), "b"] * 59 + ["a"], "it has gaps; drop the rows"),
        (X, ["a", 1, "b"] * 59 + ["a"], "y mixes int and str; make all its classes"),
        (X, cells([True, 1, 2]), "y mixes bool and int; make"),
        (X, [b"a", b"b", b"b"], "Convert the labels to a string"),
        (
            X,
            np.where(Y == 0, 2**70, Y.astype(object)),
            r"more than 64 bits, such as 11805\d+; make",
        ),
        (X, np.array([date(2024, 1, 1 + y) for y in Y]), "of type date, such as .* make its"),
        (X, np.where(Y == 0, 0.5, Y).astype(object), "continuous"),
        (X, np.linspace(0, 1, 178), "continuous.*whole numbers or text.*CoCoRegressor as numbers"),
        (X, np.ones((178, 2)), "1d array"),
        (X, None, "requires y"),
        (X, Y[:2], "X has 178 rows, but y has 2"),
        (X[:0], Y[:0], "0 sample"),
        (pd.DataFrame(np.ones((4, 2)), columns=["a", "a"]), [0, 1, 0, 1], "a"),
        (np.ones((4, 2, 2)), [0, 1, 0, 1], "dim"),
        (np.ones(4), [0, 1, 0, 1], "Reshape"),
    ],
)
def test_unusable_tables_and_targets_are_told(table, target, message):
    for learn in (small().fit, small().partial_fit):
        with pytest.raises(CoCoError, match=message):
            learn(table, target)


@pytest.mark.parametrize("kind", [bool, int, float, str, np.int8])
def test_classes_may_be_objects_of_one_kind(kind):
    y = (Y > 0).astype(kind)
    plain = small().fit(X, y)
    objects = small().fit(X, y.astype(object))
    assert objects.classes_.tolist() == plain.classes_.tolist()
    np.testing.assert_array_equal(objects.predict_proba(X), plain.predict_proba(X))
    assert objects.score(X, y) == plain.score(X, y)
    assert small().fit(X, cells([1, 2.0, 3])).classes_.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("largest", [1e20, 1e300, 2.0**1023])
def test_of_huge_weights_only_the_ratios_matter(largest):
    weights = np.random.default_rng(0).integers(1, 5, len(Y)) / 4
    options = {"max_iter": 10, "early_stopping": False}
    huge = small(**options).fit(X, Y, sample_weight=weights * largest)
    large = small(**options).fit(X, Y, sample_weight=weights * 2.0**53)
    np.testing.assert_allclose(huge.predict_proba(X), large.predict_proba(X), atol=1e-3)


def test_huge_weights_go_with_held_out_rows_and_with_priors():
    weights = np.where(Y == 0, 1e300, 3e299)
    model = small(priors="empirical", max_iter=20).fit(X, Y, sample_weight=weights)
    assert model.class_prior_[0] == pytest.approx(590 / (590 + 0.3 * 1190), rel=1e-3)
    assert np.isfinite(model.predict_proba(X)).all()


def test_cross_entropy_has_a_head_of_its_own_and_no_sphere():
    for options, message in [
        ({"head": "read"}, r"one of 'auto', 'readout', 'gaussian', .* not 'read'"),
        ({"normalize": True}, "normalize=True is not for CrossEntropyClassifier"),
    ]:
        with pytest.raises(CoCoError, match=message):
            small(CrossEntropyClassifier, **options).fit(X, Y)
    model = small(CrossEntropyClassifier, head="readout", normalize=False).fit(X, Y).model_
    assert model.reads_outputs
    assert not model.networks.normalize


def stop(epoch):
    raise KeyboardInterrupt


def test_a_fit_that_is_stopped_leaves_the_old_model_or_none():
    model = small().fit(X, NAMES)
    before = model.predict_proba(X)
    model.set_params(callbacks=[stop])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :5], Y)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert model.classes_.tolist() == ["red", "rose", "white"]
    assert model.n_features_in_ == 13
    model = small(callbacks=[stop])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    with pytest.raises(ValueError, match="not fitted"):
        model.predict(X)


def test_a_refit_or_a_part_that_fails_leaves_the_old_model():
    model = small().fit(X, NAMES)
    before = model.predict_proba(X)
    with pytest.raises(CoCoError):
        model.fit(X, np.zeros(len(X)))
    model.set_params(head=_Failing())
    with pytest.raises(ZeroDivisionError):
        model.fit(X, Y)
    with pytest.raises(ZeroDivisionError):
        model.partial_fit(X, NAMES)
    np.testing.assert_array_equal(model.predict_proba(X), before)


class _Failing(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        return 1 / 0


def test_a_warm_start_in_another_shape_is_refused():
    model = small(warm_start=True).fit(X, Y)
    with pytest.raises(CoCoError, match="goes on with the classes"):
        model.fit(X[Y > 0], Y[Y > 0])
    with pytest.raises(CoCoError, match="goes on with 1 members"):
        model.set_params(n_members=3).fit(X, Y)
    with pytest.raises(CoCoError, match=r"layers of \(13, 8, 8\), but .* \(13, 9, 8\)"):
        model.set_params(n_members=1, hidden_layer_sizes=(9,)).fit(X, Y)
