"""Classes, weights and priors: what a fit reads off the target."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, column_or_1d

from cocoloss._checks import check_option, check_priors, check_weights
from cocoloss.exceptions import CoCoError

TEXT, TRUTH, WHOLE, REAL = "text", "booleans", "whole numbers", "numbers"
KINDS: dict[str, tuple[type, ...]] = {  # in this order: a bool is an int
    TEXT: (str,),
    TRUTH: (bool, np.bool_),
    WHOLE: (int, np.integer),
    REAL: (float, np.floating),
}
MOST_BITS = 53  # of the largest weight
EQUAL = 1e-6  # weights that differ by less than this share of the largest count as equal


class Targets(NamedTuple):
    """The target of a fit."""

    classes: NDArray[Any]  # (C,), those of rows that weigh anything
    labels: NDArray[np.int64]  # (n,), positions in classes
    weights: NDArray[np.float64]  # (n,)


def encode_targets(X: Any, y: Any, sample_weight: Any, reader: str) -> Targets:
    """Return classes, labels 0, ..., C - 1 and weights, or say what is wrong with them."""
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
        if y.dtype == object:
            y = _of_one_kind(y)
        if y.dtype.kind == "f":
            assert_all_finite(y, input_name="y")
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
    return y, _within_reach(weights)


def _of_one_kind(y: NDArray[Any]) -> NDArray[Any]:
    """Return objects as what they are: text stays, truths and numbers become numpy's."""
    kinds = {
        next(
            (kind for kind, types in KINDS.items() if isinstance(label, types)),
            type(label).__name__,
        )
        for label in y
    }
    if kinds == {TEXT}:
        return y
    if kinds == {TRUTH}:
        return y.astype(np.bool_)
    if kinds == {WHOLE}:
        try:
            return y.astype(np.int64)
        except OverflowError:
            raise CoCoError(
                f"y has whole numbers of more than 64 bits, such as {max(y, key=abs)}; make them "
                f"text"
            ) from None
    if kinds <= {WHOLE, REAL}:
        return y.astype(np.float64)
    if TEXT in kinds:
        raise CoCoError("y mixes text with other values; make all its classes text, or none")
    if len(kinds) > 1:
        raise CoCoError(f"y mixes {' and '.join(sorted(kinds))}; make all its classes of one kind")
    raise CoCoError(
        f"y holds values of type {kinds.pop()}, such as {y[0]!r:.80}; make its classes text, whole "
        f"numbers or booleans"
    )


def _within_reach(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights whose sums and products cannot overflow.

    Up to 2**53, weights that are whole numbers are numbers of rows. Beyond, floats know no more
    than ratios, which a power of two keeps to the last bit.
    """
    exponent = int(np.frexp(weights.max())[1])  # the largest weight is below 2**exponent
    return np.ldexp(weights, MOST_BITS - exponent) if exponent > MOST_BITS else weights


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
        named = classes.tolist()
        if set(priors) != set(named):
            raise CoCoError(f"priors names the classes {list(priors)}, but y has {named}")
        prior = check_priors([priors[name] for name in named], C)
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


def relative(weights: NDArray[np.float64]) -> NDArray[np.float32] | None:
    """Return weights scaled to a mean of one; None if they are all the same."""
    if np.ptp(weights) <= EQUAL * weights.max():
        return None
    return np.asarray(weights / weights.mean(), dtype=np.float32)
