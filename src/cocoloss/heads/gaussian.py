"""One Gaussian per class, Bayes' rule on top: the paper's classifier, safe on collapsed classes."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from cocoloss._checks import check_option
from cocoloss.exceptions import CoCoError
from cocoloss.heads.base import FLOOR, EmbeddingHead, LabelledRows, Priors, learnt
from cocoloss.heads.fitted import FittedGaussian
from cocoloss.metrics.scatter import class_scatter

MOST_NUMBERS = 2**24  # of all covariance matrices together: 128 MB


class GaussianHead(EmbeddingHead):
    r"""Classify embeddings by the Gaussian under which they are most probable.

    Each class has a mean and a covariance by maximum likelihood. A network trained with CoCo
    shrinks classes to points, and their covariances with them, so two things are added:

    .. math:: \Sigma_c = \frac{N_c \hat\Sigma_c + k\, \hat\Sigma}{N_c + k} + f s^2 I

    with :math:`\hat\Sigma` the pooled within-class covariance, k the ``shrinkage``, f the
    ``covariance_floor`` and :math:`s^2` the variance of all training embeddings around their
    common mean, averaged over dimensions. With k = f = 0 and ``priors="empirical"`` it is the
    paper's classifier.

    Parameters
    ----------
    covariance : {"auto", "full", "tied", "diag"}
        "full" has one covariance matrix per class, as in the paper, "tied" the pooled one for all
        (linear boundaries), "diag" one variance per class and dimension. "auto" is "full" as long
        as all the matrices fit into 128 MB, and "tied" beyond: from some 250 classes in as many
        dimensions on.
    shrinkage : "auto" or float
        How many rows the pooled covariance counts as in each class: a class of 5 rows is mostly
        pooled, a class of 5000 mostly its own. "auto" is the number of rows that determine a
        covariance, q + 1 for "full" and 2 for "diag"; "tied" has nothing to shrink.
    covariance_floor : float
        Variance added to every direction, relative to that of the embedding.
    priors : "uniform", "empirical" or array of shape (C,)
        Class probabilities before the embedding is seen, in the order of ``classes_``.
        "uniform" suits balanced accuracy, "empirical", the class shares of the training rows,
        suits accuracy and log loss.

    Attributes
    ----------
    classes_, class_prior_, class_share_, temperature_, fitted_
        As of every :class:`EmbeddingHead`.
    means_ : ndarray of shape (C, q)
        Class means.
    covariance_ : {"full", "tied", "diag"}
        What ``covariance`` came to.
    precisions_cholesky_ : ndarray of shape (C, q, q), (q, q) for "tied" or (C, q) for "diag"
        P with :math:`P P^\top = \Sigma_c^{-1}`; for "diag" the inverse standard deviations.

    Notes
    -----
    ``log_likelihood`` is the log density of each class. ``outlier_score`` is the smallest squared
    Mahalanobis distance to any class: of the order of q for a training row.

    Sample weights count as repeated rows in ``shrinkage`` too. To balance classes use ``priors``:
    class weights would make a class of few rows pass for a large one.

    Time is O(n C q^2); memory beyond the result is a few blocks of rows.

    Examples
    --------
    A class that has collapsed to a point, and one of a single row:

    >>> from cocoloss.heads import GaussianHead
    >>> X = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.1, 0.9], [-1.0, 0.0]]
    >>> head = GaussianHead().fit(X, ["cat", "cat", "dog", "dog", "emu"])
    >>> head.predict([[0.9, 0.0], [0.0, 0.8], [-0.8, 0.1]])
    array(['cat', 'dog', 'emu'], dtype='<U3')
    >>> near, far = head.outlier_score([[1.0, 0.0], [5.0, 5.0]])
    >>> bool(near < far)
    True
    """

    def __init__(
        self,
        covariance: str = "auto",
        *,
        shrinkage: str | float = "auto",
        covariance_floor: float = FLOOR,
        # NOTE[PAPER]: pi_c = N_c / N there; uniform here, since balanced accuracy is what the
        # paper reports. priors="empirical" is the printed formula.
        priors: Priors = "uniform",
    ) -> None:
        self.covariance = covariance
        self.shrinkage = shrinkage
        self.covariance_floor = covariance_floor
        self.priors = priors

    means_ = learnt("means")
    covariance_ = learnt("covariance")
    precisions_cholesky_ = learnt("precisions_cholesky")

    @property
    def covariances_(self) -> NDArray[np.float64]:
        """The covariances in use, floor and shrinkage included; shaped like the precisions."""
        P: NDArray[np.float64] = self.precisions_cholesky_
        if self.covariance_ == "diag":
            return P**-2.0
        factor = np.linalg.inv(P)  # L^T
        return np.asarray(np.swapaxes(factor, -1, -2) @ factor)

    def _learn(self, rows: LabelledRows, priors: dict[str, Any]) -> FittedGaussian:
        options = FittedGaussian.OPTIONS["covariance"]
        kind = check_option(self.covariance, "covariance", ("auto", *options))
        n_classes, q = len(rows.masses), rows.X.shape[1]
        if kind == "auto":
            kind = "full" if n_classes * q**2 <= MOST_NUMBERS else "tied"
        if isinstance(self.shrinkage, str):
            check_option(self.shrinkage, "shrinkage", ["auto"])
            shrinkage = 2.0 if kind == "diag" else q + 1.0
        else:
            shrinkage = _non_negative(self.shrinkage, "shrinkage", ', or "auto"')
        floor = _non_negative(self.covariance_floor, "covariance_floor")
        moments = class_scatter(*rows, diagonal=kind == "diag", pooled=kind == "tied")
        covariances = moments.pooled
        if kind != "tied":
            # NOTE[PAPER]: not in the paper, where a class needs more than q rows. shrinkage=0 is.
            masses = moments.masses.reshape(-1, *[1] * (moments.scatter.ndim - 1))
            covariances = (moments.scatter + shrinkage * moments.pooled) / (masses + shrinkage)
        # NOTE[PAPER]: the maximum-likelihood covariance as printed is singular as soon as a
        # class collapses, which is what the loss is for; the floor keeps it invertible.
        ridge = floor * moments.scale
        P = self._factor(covariances + (ridge if kind == "diag" else ridge * np.eye(q)), kind)
        return FittedGaussian(means=moments.means, covariance=kind, precisions_cholesky=P, **priors)

    def _factor(self, covariances: NDArray[np.float64], kind: str) -> NDArray[np.float64]:
        """Return P, upper triangular, with P P^T the inverse of each covariance, or say which."""
        q = covariances.shape[-1]
        if kind == "diag":
            ranks = (covariances > 0).sum(axis=-1)
            if (ranks == q).all():
                return np.asarray(1 / np.sqrt(covariances))
        else:
            try:
                lower = np.linalg.cholesky(covariances)
            except np.linalg.LinAlgError:
                ranks = np.linalg.matrix_rank(covariances, hermitian=True)
            else:
                inverses = [
                    solve_triangular(L, np.eye(q), lower=True) for L in lower.reshape(-1, q, q)
                ]
                return np.swapaxes(np.reshape(inverses, lower.shape), -1, -2).copy()
        who = "the pooled covariance"
        if np.ndim(ranks):
            who = f"the covariance of class {self.classes_[int(np.argmin(ranks))]!r}"
        raise CoCoError(
            f"{who} has rank {int(np.min(ranks))} of {q}; raise covariance_floor, "
            f"now {self.covariance_floor}"
        )


def _non_negative(value: object, name: str, otherwise: str = "") -> float:
    if not isinstance(value, Real) or not 0 <= float(value) < np.inf:
        raise CoCoError(f"{name} must be a number that is not negative{otherwise}, not {value!r}")
    return float(value)
