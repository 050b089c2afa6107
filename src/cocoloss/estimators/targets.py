"""Classes, weights and priors: what a fit reads off the target."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, column_or_1d

from cocoloss._validation import check_option, check_priors, check_weights
from cocoloss.exceptions import CoCoError

EQUAL = 1e-6  # weights that differ by less than this share of the largest count as equal


class Targets(NamedTuple):
    """The target of a fit."""

    classes: NDArray[Any]  # (C,), those of rows that weigh anything
    labels: NDArray[np.int64]  # (n,), positions in classes
    weights: NDArray[np.float64]  # (n,)


def encode_targets(X: Any, y: Any, sample_weight: Any, reader: str) -> Targets:
    """Return classes, labels 0, ..., C - 1 and weights, or say what is wrong with them.

    Parameters
    ----------
    X, y, sample_weight
        What ``fit`` was given.
    reader : str
        Who reads them, for the message.
    """
    y, weights = read_target(X, y, sample_weight, reader)
    present = weights > 0
    classes = np.unique(y[present])  # rows of weight zero are no rows
    labels = np.where(present, np.searchsorted(classes, y).clip(max=len(classes) - 1), 0)
    if len(classes) < 2:
        raise CoCoError(
            f"{reader} needs at least two classes to tell apart, but y has one class: "
            f"{classes.tolist()}"
        )
    return Targets(classes, labels.astype(np.int64), weights)


def read_target(
    X: Any, y: Any, sample_weight: Any, reader: str
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return a class and a weight for each row of X, or say what is wrong with them."""
    if y is None:
        raise CoCoError(f"{reader} requires y to be passed, but the target y is None")
    try:
        y = column_or_1d(y, warn=True)
        if y.dtype.kind in "fO" and pd.isna(y).any():
            raise CoCoError("y contains NaN: it has gaps; drop the rows whose class is not known")
        if y.dtype.kind == "f":
            assert_all_finite(y, input_name="y")
        if y.dtype == object and len({isinstance(label, str) for label in y}) > 1:
            raise CoCoError("y mixes text with other values; make all its classes text, or none")
        check_classification_targets(y)
    except ValueError as error:
        raise error if isinstance(error, CoCoError) else CoCoError(str(error)) from error
    n = _num_samples(X)
    if n == 0:
        raise CoCoError("X has no rows (0 sample(s)), and a minimum of 1 is required")
    if n != len(y):
        raise CoCoError(f"X has {n} rows, but y has {len(y)}; give one class per row")
    weights = check_weights(sample_weight, n)
    if not weights.any():
        raise CoCoError("every sample_weight is zero; give a positive one to the rows that count")
    return y, weights


def class_weights(
    class_weight: Any, classes: NDArray[Any], masses: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the weight of a row of each class, (C,), given what all its rows weigh."""
    if isinstance(class_weight, str):  # "balanced": every class weighs the same
        return np.asarray(masses.mean() / masses)
    try:
        weights = compute_class_weight(class_weight, classes=classes, y=classes)
    except ValueError as error:
        raise CoCoError(str(error)) from error
    return np.asarray(weights, dtype=np.float64)


def decision_prior(
    priors: str | ArrayLike,
    class_weight: Any,
    classes: NDArray[Any],
    masses: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the prior under which classes are predicted, (C,).

    Class weights of the user's own multiply it: a class that weighs more in training is meant to
    be predicted more. Balanced ones do not, because they only undo the class shares.
    """
    C = len(classes)
    if isinstance(priors, Mapping):
        prior = _priors_by_class(priors, classes)
    elif not isinstance(priors, str):
        if priors is None:
            raise CoCoError("priors must be 'uniform', 'empirical', or one number per class")
        prior = check_priors(priors, C)
    elif check_option(priors, "priors", ("uniform", "empirical")) == "uniform":
        prior = np.full(C, 1 / C)
    else:
        prior = masses / masses.sum()
    if class_weight is not None and not isinstance(class_weight, str):
        prior = prior * class_weights(class_weight, classes, masses)
    return np.asarray(prior / prior.sum())


def _priors_by_class(priors: Mapping[Any, float], classes: NDArray[Any]) -> NDArray[np.float64]:
    """Return priors given by the names of the classes, in the order of the classes."""
    named = classes.tolist()
    if set(priors) != set(named):
        raise CoCoError(f"priors names the classes {list(priors)}, but y has {named}")
    return check_priors([priors[name] for name in named], len(named))


def relative(weights: NDArray[np.float64]) -> NDArray[np.float32] | None:
    """Return weights scaled to a mean of one; None if they are all the same."""
    if np.ptp(weights) <= EQUAL * weights.max():
        return None
    return np.asarray(weights / weights.mean(), dtype=np.float32)
