"""Heads by name, so that an estimator or a command line can ask for one."""

from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.linear_model import RidgeClassifier
from sklearn.svm import LinearSVC

from cocoloss._checks import check_option
from cocoloss.exceptions import CoCoError
from cocoloss.heads.base import PRIORS, Priors
from cocoloss.heads.centroid import CentroidHead
from cocoloss.heads.gaussian import GaussianHead
from cocoloss.heads.readout import MatrixHead


def _linear(make: Callable[..., Any], *, priors: Priors) -> Any:
    """Return a linear model whose class weights stand in for priors, which it has not."""
    if not isinstance(priors, str):
        raise CoCoError(
            "linear heads take priors 'uniform' or 'empirical' only; pass an instance with its "
            "own class_weight, or use a head with priors, such as 'gaussian'"
        )
    uniform = check_option(priors, "priors", PRIORS) == "uniform"
    return make(class_weight="balanced" if uniform else None)


HEADS: dict[str, Callable[..., Any]] = {
    "gaussian": GaussianHead,
    "matrix": MatrixHead,
    "centroid": CentroidHead,
    "angular": partial(CentroidHead, "angular"),
    "ridge": partial(_linear, RidgeClassifier),
    "svm": partial(_linear, partial(LinearSVC, dual=False)),  # the primal solver draws no numbers
}


def make_head(head: Any, priors: Priors = "uniform") -> Any:
    """Return a fresh, unfitted head.

    Parameters
    ----------
    head : str or classifier
        A name: "gaussian", "matrix" (learnt on rows held out), "centroid", "angular" (nearest
        class mean by angle), "ridge" or "svm" (scikit-learn's ``RidgeClassifier`` and
        ``LinearSVC``, which have no probabilities).
        Or any scikit-learn classifier, which is cloned.
    priors : "uniform", "empirical" or array of shape (C,)
        Priors of a named head; "ridge" and "svm" balance the class weights for "uniform" and take
        no array. A classifier instance keeps what it was made with.

    Examples
    --------
    >>> from cocoloss.heads import make_head
    >>> make_head("gaussian", priors="empirical")
    GaussianHead(priors='empirical')
    >>> make_head("ridge")
    RidgeClassifier(class_weight='balanced')
    """
    if isinstance(head, str) and head in HEADS:
        return HEADS[head](priors=priors)
    if isinstance(head, BaseEstimator) and is_classifier(head):
        return clone(head)
    raise CoCoError(
        f"head must be one of {', '.join(map(repr, HEADS))} or an instance of a scikit-learn "
        f"classifier, not {head!r}"
    )
