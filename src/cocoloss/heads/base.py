"""What every head shares in learning: labelled rows, priors, and the temperature that fits them.

What has been learnt, and predicting from it, is the business of :mod:`cocoloss.heads.fitted`.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from cocoloss._checks import as_array, as_float_array, check_option, check_priors, check_weights
from cocoloss.exceptions import CoCoError
from cocoloss.heads.fitted import FittedHead

Priors = str | ArrayLike
PRIORS = ("uniform", "empirical")
FLOATS = [np.float64, np.float32]  # kinds of embeddings
FLOOR = 1e-2  # smallest variance a head believes in, relative to the embedding's own
MIN_TEMPERATURE = 1e-2
MAX_TEMPERATURE = 1e6  # Gaussians of collapsed classes have asked for 2e5


class LabelledRows(NamedTuple):
    """Training rows of positive weight."""

    X: NDArray[Any]  # (n, q), float32 or float64
    codes: NDArray[np.intp]  # (n,), positions in classes_
    weights: NDArray[np.float64]  # (n,)
    masses: NDArray[np.float64]  # (C,), summed weights per class, all positive


def learnt(name: str) -> Any:
    """Return a property that is a part of ``fitted_``; setting it makes another value of that."""

    def change(head: "EmbeddingHead", value: Any) -> None:
        head.fitted_ = replace(head.fitted_, **{name: value})

    return property(lambda head: getattr(head.fitted_, name), change)


class EmbeddingHead(ClassifierMixin, BaseEstimator, ABC):
    r"""A classifier on embeddings that predicts by Bayes' rule.

    A head gives each class a log-likelihood :math:`\ell_c(h)`, up to a term that the classes share.
    With the class priors :math:`\pi_c` and the temperature T, the posterior is

    .. math:: \log p(c \mid h) = \log \pi_c + \ell_c(h) / T + \text{const}.

    The temperature scales the log-likelihoods and leaves the prior alone: however doubtful the
    embedding, the posterior falls back to the prior, and priors keep their meaning.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The labels, sorted.
    class_prior_, class_share_ : ndarray of shape (C,)
        The priors in use, and the weighted shares of the rows given to ``fit``.
    temperature_ : float
        1 after ``fit``; see ``calibrate``.
    fitted_ : FittedHead
        What the head has learnt: a frozen value of numpy arrays, which predicts without
        scikit-learn and knows the classes by their position in ``classes_``.
    """

    priors: Priors
    n_features_in_: int
    classes_: NDArray[Any]
    fitted_: Any  # a FittedHead of the kind that _learn returns

    class_prior_ = learnt("prior")
    class_share_ = learnt("share")
    temperature_ = learnt("temperature")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the classes from embeddings; ``temperature_`` is back at 1.

        Parameters
        ----------
        X : array-like or tensor of shape (n, q)
        y : array-like of shape (n,)
            Class of each row; at least two classes.
        sample_weight : array-like of shape (n,), optional
            How often each row counts: 2 is the row twice, 0 the row left out.

        Raises
        ------
        CoCoError
            If there are fewer than two classes, or a class has no row of positive weight.
        """
        X, y = validate_data(self, as_array(X), as_array(y), dtype=FLOATS)
        with warnings.catch_warnings():  # a head may get what is left of two rows a class
            warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
            check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise CoCoError(
                f"{type(self).__name__} needs at least two classes to tell apart, but y has one "
                f"class: {self.classes_.tolist()}"
            )
        rows = self._present(X, codes, sample_weight)
        if not rows.masses.all():
            absent = self.classes_[rows.masses == 0].tolist()
            raise CoCoError(
                f"every row of class {absent[0]!r} has zero sample_weight; drop the rows of a "
                f"class that is not to be learnt, or give them weight"
            )
        share = rows.masses / rows.masses.sum()
        self.fitted_ = self._learn(rows, {"prior": as_prior(self.priors, share), "share": share})
        return self

    def calibrate(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the temperature on rows that neither the head nor the network was fitted on.

        The temperature is the one that minimises the log loss of these rows with the class shares
        of the training data as the prior, since that is where held-out rows come from. So it does
        not depend on ``priors``, and changing them later needs no new calibration.
        See :func:`fit_temperature` for rows that determine no temperature.

        Parameters
        ----------
        X : array-like or tensor of shape (n, q)
        y : array-like of shape (n,)
            Not every class need be there, but none that the head has never seen.
        sample_weight : array-like of shape (n,), optional
            How often each row counts.
        """
        check_is_fitted(self)
        X, y = validate_data(self, as_array(X), as_array(y), reset=False, dtype=FLOATS)
        rows = self._present(X, self._encode(y), sample_weight)
        self.temperature_ = fit_temperature(
            self.fitted_.log_likelihood(rows.X),
            rows.codes,
            rows.weights,
            offset=self.fitted_.offset(self.class_share_),
        )
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row, the first one of equals.

        It is the argmax of :meth:`predict_proba`: under the same priors and temperature.
        """
        codes = self._delegate("predict", X)
        return np.asarray(self.classes_[codes])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the posterior probability of each class, of shape (n, C)."""
        return self._delegate("predict_proba", X)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the log of the posterior probability of each class, of shape (n, C); finite."""
        return self._delegate("predict_log_proba", X)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the log posterior of shape (n, C); for two classes the log odds of the second."""
        return self._delegate("decision_function", X)

    def log_likelihood(self, X: Any) -> NDArray[np.float64]:
        """Return the log-likelihood of each class, before priors and temperature, (n, C)."""
        return self._delegate("log_likelihood", X)

    def outlier_score(self, X: Any) -> NDArray[np.float64]:
        """Return how strange each row is, of shape (n,): larger is stranger.

        The scores of one fitted head are comparable from row to row; its class has their formula.
        Neither priors nor temperature matter.
        """
        return self._delegate("outlier_score", X)

    @abstractmethod
    def _learn(self, rows: LabelledRows, priors: dict[str, Any]) -> FittedHead:
        """Return what there is to learn; ``priors`` has the prior and the share of each class."""

    def _delegate(self, method: str, X: Any) -> NDArray[Any]:
        """Return what a method of ``fitted_`` makes of the rows that a user gave."""
        check_is_fitted(self)
        rows = validate_data(self, as_array(X), reset=False, dtype=FLOATS)
        return np.asarray(getattr(self.fitted_, method)(rows))

    def _present(
        self, X: NDArray[Any], codes: NDArray[np.intp], sample_weight: Any
    ) -> LabelledRows:
        """Return the rows of positive weight."""
        weights = check_weights(sample_weight, len(X))
        present = weights > 0
        if not present.all():
            X, codes, weights = X[present], codes[present], weights[present]
        masses = np.bincount(codes, weights=weights, minlength=len(self.classes_))
        return LabelledRows(X, codes, weights, masses.astype(np.float64, copy=False))

    def _encode(self, y: NDArray[Any]) -> NDArray[np.intp]:
        """Return the position of each label in ``classes_``."""
        position = {label: code for code, label in enumerate(self.classes_.tolist())}
        unknown = [label for label in np.unique(y).tolist() if label not in position]
        if unknown:
            raise CoCoError(
                f"class {unknown[0]!r} was not in the rows the head was fitted on, which have "
                f"{self.classes_.tolist()}; drop its rows, or fit on all classes"
            )
        return np.array([position[label] for label in y.tolist()], dtype=np.intp)


def share_temperature(
    heads: Sequence[EmbeddingHead],
    X: Sequence[NDArray[Any]],
    y: Sequence[NDArray[Any]],
    sample_weight: Sequence[Any],
) -> None:
    """Calibrate several heads by one temperature: each brings few rows that it has not seen.

    Beside N of them, one is taken to be in other classes, as nothing else holds back those that are
    right about all.
    """
    parts = []
    for head, *given in zip(heads, X, y, sample_weight, strict=True):
        rows = head._present(given[0], head._encode(given[1]), given[2])  # noqa: SLF001 - its own
        parts.append((head.fitted_.log_likelihood(rows.X), rows.codes, rows.weights))
    scores, codes, weights = map(np.concatenate, zip(*parts, strict=True))
    offset = heads[0].fitted_.offset(heads[0].class_share_)
    C, doubt = scores.shape[1], 1 / (weights.sum() + 2)
    wanted = np.full(scores.shape, doubt / (C - 1))
    wanted[np.arange(len(codes)), codes] = 1 - doubt
    wanted *= weights[:, None]
    every = np.tile(np.arange(C), len(codes))  # each row once in each class
    temperature = fit_temperature(scores.repeat(C, axis=0), every, wanted.ravel(), offset=offset)
    for head in heads:
        head.temperature_ = temperature


def as_prior(priors: Priors, share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the prior of each class, (C,), that the user names or gives."""
    if not isinstance(priors, str):
        return check_priors(priors, len(share))
    if check_option(priors, "priors", PRIORS) == "empirical":
        return share.copy()
    return np.full(len(share), 1 / len(share))


def fit_temperature(
    scores: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    offset: ArrayLike | None = None,
) -> float:
    r"""Return the temperature that minimises the log loss of held-out rows.

    .. math:: T = \arg\min_{T > 0}\;
        -\sum_i w_i \log \mathrm{softmax}(\mathrm{offset} + \mathrm{scores}_i / T)_{y_i}

    The sum is convex in 1/T, so the root of its derivative is the minimum.

    Parameters
    ----------
    scores : array-like of shape (n, C)
        Log probabilities, or any scores that a softmax turns into probabilities.
    y : array-like of int of shape (n,)
        Column of each row's own class.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights; 1 each by default.
    offset : array-like of shape (C,), optional
        What is added after the division, such as log priors; nothing by default.

    Returns
    -------
    float
        Between 0.01 and 1,000,000. Exactly 1.0 if no row has another class scored above its own:
        on such rows, none at all included, the log loss falls for ever as T goes to 0, so they say
        nothing about how often the scores are wrong. The upper bound, which leaves the offset
        alone, if the scores are worse than none.

    Raises
    ------
    CoCoError
        If the shapes do not match, a score is not finite, or a label is not a column.

    Examples
    --------
    Scores that claim 95 % and are right in two rows of three:

    >>> T = fit_temperature([[3.0, 0.0], [3.0, 0.0], [3.0, 0.0]], [0, 0, 1])
    >>> round(T, 3)
    4.328
    >>> round(float(1 / (1 + np.exp(-3.0 / T))), 3)
    0.667
    """
    scores = as_float_array(scores, "scores")
    own = np.asarray(y)
    if scores.ndim != 2 or own.shape != scores.shape[:1]:
        raise CoCoError(
            f"scores must be (n_samples, n_classes) with one label per row, but have shapes "
            f"{scores.shape} and {own.shape}"
        )
    if not np.isfinite(scores).all():
        raise CoCoError("scores must be finite; use log probabilities that are bounded below")
    if own.size and not (own.dtype.kind in "iu" and own.min() >= 0 and own.max() < scores.shape[1]):
        raise CoCoError(
            f"y must hold column numbers from 0 to {scores.shape[1] - 1}; "
            f"encode labels by their position in classes_"
        )
    weights = check_weights(sample_weight, len(own))
    present = weights > 0
    scores, own, weights = scores[present], own[present].astype(np.intp), weights[present]
    # By how much each class leads a row's own: in scores, and in offset, (n, C).
    lead = scores - np.take_along_axis(scores, own[:, None], axis=1)
    if not (lead > 0).any():
        return 1.0
    shift = np.zeros(scores.shape[1]) if offset is None else as_float_array(offset, "offset")
    shift = shift - shift[own][:, None]

    def slope(log_inverse_temperature: float) -> float:
        p = softmax(shift + np.exp(log_inverse_temperature) * lead, axis=1)
        return float(weights @ (p * lead).sum(axis=1))

    low, high = -np.log(MAX_TEMPERATURE), -np.log(MIN_TEMPERATURE)
    if slope(low) >= 0:
        return MAX_TEMPERATURE
    if slope(high) <= 0:
        return MIN_TEMPERATURE
    return float(np.exp(-brentq(slope, low, high, xtol=1e-10)))
