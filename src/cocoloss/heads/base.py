"""What every head shares in learning: labelled rows, priors, and the temperature that fits them.

What has been learnt, and predicting from it, is the business of :mod:`cocoloss.heads.fitted`.
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from cocoloss._checks import as_array, check_option, check_priors, check_weights
from cocoloss.exceptions import CoCoError
from cocoloss.heads.fitted import FittedHead
from cocoloss.heads.temperature import fit_temperature

Priors = str | ArrayLike
PRIORS = ("uniform", "empirical")
FLOOR = 1e-2  # smallest variance a head believes in, relative to the embedding's own


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
        """Learn the classes from embeddings.

        Parameters
        ----------
        X : array-like or tensor of shape (n, q)
            Embeddings.
        y : array-like of shape (n,)
            Class of each row; at least two classes.
        sample_weight : array-like of shape (n,), optional
            How often each row counts: 2 is the row twice, 0 the row left out.

        Returns
        -------
        EmbeddingHead
            The head itself, with ``temperature_`` back at 1.

        Raises
        ------
        CoCoError
            If there are fewer than two classes, or a class has no row of positive weight.
        """
        X, y = validate_data(self, as_array(X), as_array(y), dtype=[np.float64, np.float32])
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise CoCoError(
                f"{type(self).__name__} needs at least two classes to tell apart, but y has one "
                f"class: {self.classes_.tolist()}"
            )
        rows = self._present(X, codes, check_weights(sample_weight, len(X)))
        share = rows.masses / rows.masses.sum()
        self.fitted_ = self._learn(rows, {"prior": self._resolve_priors(share), "share": share})
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
            Embeddings of held-out rows.
        y : array-like of shape (n,)
            Their classes; not every class need be there.
        sample_weight : array-like of shape (n,), optional
            How often each row counts.

        Returns
        -------
        EmbeddingHead
            The head itself, with a new ``temperature_``.

        Raises
        ------
        CoCoError
            If ``y`` has a class that the head has never seen.
        """
        check_is_fitted(self)
        X, y = validate_data(
            self, as_array(X), as_array(y), reset=False, dtype=[np.float64, np.float32]
        )
        rows = self._present(X, self._encode(y), check_weights(sample_weight, len(X)), partly=True)
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
        rows = self._checked(X)
        labels: NDArray[Any] = self.classes_[self.fitted_.predict(rows)]
        return labels

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

    def _delegate(self, method: str, X: Any) -> NDArray[np.float64]:
        """Return what a method of ``fitted_`` makes of the rows that a user gave."""
        rows = self._checked(X)  # first, in case nothing is fitted
        result: NDArray[np.float64] = getattr(self.fitted_, method)(rows)
        return result

    def _checked(self, X: Any) -> NDArray[Any]:
        """Return the rows that a user gave as an array, or say what is wrong with them."""
        check_is_fitted(self)
        rows: NDArray[Any] = validate_data(
            self, as_array(X), reset=False, dtype=[np.float64, np.float32]
        )
        return rows

    def _present(
        self,
        X: NDArray[Any],
        codes: NDArray[np.intp],
        weights: NDArray[np.float64],
        *,
        partly: bool = False,
    ) -> LabelledRows:
        """Return the rows of positive weight; unless ``partly``, every class must have some."""
        present = weights > 0
        if not present.all():
            X, codes, weights = X[present], codes[present], weights[present]
        masses = np.bincount(codes, weights=weights, minlength=len(self.classes_))
        if not partly and not masses.all():
            absent = self.classes_[masses == 0].tolist()
            raise CoCoError(
                f"every row of class {absent[0]!r} has zero sample_weight; drop the rows of a "
                f"class that is not to be learnt, or give them weight"
            )
        return LabelledRows(X, codes, weights, masses.astype(np.float64, copy=False))

    def _encode(self, y: NDArray[Any]) -> NDArray[np.intp]:
        """Return the position of each label in ``classes_``."""
        position = {label: code for code, label in enumerate(self.classes_.tolist())}
        found, inverse = np.unique(y, return_inverse=True)
        unknown = [label for label in found.tolist() if label not in position]
        if unknown:
            raise CoCoError(
                f"class {unknown[0]!r} was not in the rows the head was fitted on, which have "
                f"{self.classes_.tolist()}; drop its rows, or fit on all classes"
            )
        return np.array([position[label] for label in found.tolist()], dtype=np.intp)[inverse]

    def _resolve_priors(self, share: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the prior of each class, (C,)."""
        n_classes = len(share)
        if not isinstance(self.priors, str):
            return check_priors(self.priors, n_classes)
        if check_option(self.priors, "priors", PRIORS) == "empirical":
            return share.copy()
        return np.full(n_classes, 1 / n_classes)
