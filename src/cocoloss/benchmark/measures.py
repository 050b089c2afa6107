"""What a fitted classifier is worth on rows that it has not seen."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from cocoloss.metrics import dispersity

LEAST_PROBABILITY = 1e-15  # of a class that a model calls impossible, or has never seen
NAN = float("nan")


def balanced_accuracy(y: NDArray[Any], predicted: NDArray[Any]) -> float:
    """Return the mean recall of the classes that occur in ``y``.

    A class that occurs there and that the model has never seen has a recall of zero.

    Examples
    --------
    >>> balanced_accuracy(np.array(["a", "a", "b"]), np.array(["a", "c", "b"]))
    0.75
    """
    _, labels = np.unique(y, return_inverse=True)
    right = np.asarray(y) == np.asarray(predicted)
    return float(np.mean(np.bincount(labels, weights=right) / np.bincount(labels)))


def balanced_accuracy_of(classifier: Any, X: Any, y: Any) -> float:
    """Return the balanced accuracy of a fitted classifier, in the form of a scikit-learn scorer."""
    return balanced_accuracy(np.asarray(y), np.asarray(classifier.predict(X)))


def log_loss(y: NDArray[Any], probabilities: NDArray[Any], classes: NDArray[Any]) -> float:
    """Return the mean of -log p of the true class.

    Parameters
    ----------
    y : array of shape (n,)
    probabilities : array of shape (n, C)
    classes : array of shape (C,)
        The class of each column, sorted. A class that is not among them has the least
        probability.

    Examples
    --------
    >>> p = np.array([[0.5, 0.5], [0.75, 0.25]])
    >>> round(log_loss(np.array(["a", "a"]), p, np.array(["a", "b"])), 4)
    0.4904
    """
    column = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    own = np.asarray(probabilities)[np.arange(len(y)), column]
    own = np.where(np.asarray(classes)[column] == y, own, 0)
    return float(-np.log(np.clip(own, LEAST_PROBABILITY, 1)).mean())


def measure(
    classifier: Any,
    X: Any,
    y: NDArray[Any],
    test: NDArray[np.int64],
    train: NDArray[np.int64] | None = None,
) -> dict[str, float]:
    """Return the measures of a fitted classifier.

    Parameters
    ----------
    classifier : classifier
        Fitted.
    X, y
        The whole table.
    test, train : integer arrays
        Rows to measure on. Training rows are asked for their dispersity only.

    Returns
    -------
    dict of str to float
        "balanced_accuracy", "accuracy", "log_loss" where there are probabilities,
        "balanced_accuracy_uniform" where they are known to be under a prior and not an average,
        and "dispersity" and "train_dispersity" where there is an embedding.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> measures = measure(SVC().fit(X[::2], y[::2]), X, y, np.arange(1, 150, 2))
    >>> sorted(measures)
    ['accuracy', 'balanced_accuracy']
    """
    rows, labels = _safe_indexing(X, test), y[test]
    predicted = np.asarray(classifier.predict(rows))
    measures = {
        "balanced_accuracy": balanced_accuracy(labels, predicted),
        "accuracy": float(np.mean(labels == predicted)),
    }
    if hasattr(classifier, "predict_proba"):
        probabilities = classifier.predict_proba(rows)
        measures["log_loss"] = log_loss(labels, probabilities, classifier.classes_)
        if hasattr(classifier, "class_prior_") and len(getattr(classifier, "heads_", "1")) == 1:
            # The same network and head, had the classes been equally likely: by Bayes' rule.
            alike = (probabilities / classifier.class_prior_).argmax(axis=1)
            score = balanced_accuracy(labels, classifier.classes_[alike])
            measures["balanced_accuracy_uniform"] = score
    if hasattr(classifier, "transform") and hasattr(classifier, "heads_"):
        measures["dispersity"] = embedding_dispersity(classifier, rows, labels)
        if train is not None:
            seen = _safe_indexing(X, train)
            measures["train_dispersity"] = embedding_dispersity(classifier, seen, y[train])
    return measures


def embedding_dispersity(classifier: Any, X: Any, y: NDArray[Any]) -> float:
    """Return the dispersity of the first member's embedding; NaN if there is one class only.

    NOTE[PAPER]: which rows the dispersity is taken on is not said; the test rows of each fold,
    like the balanced accuracy, and the training rows beside them. The features are those that
    are said: the output of CoCo and DR, the last hidden layer of CE.
    """
    if len(np.unique(y)) < 2:
        return NAN
    first = first_embedding(classifier, X)
    if not np.isfinite(first).all():
        return NAN  # a network that diverged
    return float(dispersity(first, y))


def first_embedding(classifier: Any, X: Any) -> NDArray[np.float64]:
    """Return the embedding of rows by the first member of a classifier of ours, but for its scale.

    An array of shape (n, q). Members stand side by side in ``transform``, all scaled alike.
    """
    joined = np.asarray(classifier.transform(X), dtype=np.float64)
    first: NDArray[np.float64] = joined[:, : joined.shape[1] // len(classifier.heads_)]
    return first
