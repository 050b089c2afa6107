"""The nearest class mean, by distance or by angle, with probabilities from the spread around it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss._checks import check_option
from cocoloss.heads.base import FLOOR, EmbeddingHead, LabelledRows, Priors, learnt
from cocoloss.heads.fitted import FittedCentroid, blocks, cosines
from cocoloss.metrics.scatter import class_scatter

MIN_MEAN_COSINE = 1e-3  # rows that point elsewhere still rank the classes by their cosines


class CentroidHead(EmbeddingHead):
    r"""Classify embeddings by the nearest class mean.

    With uniform priors the prediction is the paper's centroid rule. Probabilities come from one
    spread that all classes share:

    - "euclidean": :math:`\ell_c(h) = -|h - \mu_c|^2 / (2 s^2)`, with :math:`s^2` the within-class
      variance per dimension, at least 1e-2 of the variance of the embedding;
    - "angular": :math:`\ell_c(h) = \kappa \cos(h, \mu_c)`, with :math:`\kappa` the concentration
      of the training directions around their class means.

    Parameters
    ----------
    metric : {"euclidean", "angular"}
        What is near: a short distance, or a small angle whatever the norms.
    priors : "uniform", "empirical" or array of shape (C,)
        Class probabilities before the embedding is seen, in the order of ``classes_``.
        "uniform" suits balanced accuracy, "empirical" accuracy and log loss.

    Attributes
    ----------
    classes_, class_prior_, class_share_, temperature_, fitted_
        As of every :class:`EmbeddingHead`.
    means_ : ndarray of shape (C, q)
        Class means.
    concentration_ : float
        :math:`1 / s^2` or :math:`\kappa`.

    Notes
    -----
    ``outlier_score`` is the squared distance to the nearest mean in units of :math:`s^2`;
    for "angular" it is :math:`2 \kappa (1 - \cos)`, the same for unit vectors.

    Examples
    --------
    >>> from cocoloss.heads import CentroidHead
    >>> X, y = [[1.0, 0.1], [1.0, -0.1], [0.1, 1.0], [-0.1, 1.0]], [0, 0, 1, 1]
    >>> CentroidHead().fit(X, y).predict([[5.0, 0.0], [0.2, 0.1]])
    array([0, 0])
    >>> CentroidHead("angular").fit(X, y).predict_proba([[3.0, 3.0]])
    array([[0.5, 0.5]])
    """

    def __init__(self, metric: str = "euclidean", *, priors: Priors = "uniform") -> None:
        self.metric = metric
        self.priors = priors

    means_ = learnt("means")
    concentration_ = learnt("concentration")

    def _learn(self, rows: LabelledRows, priors: dict[str, Any]) -> FittedCentroid:
        metric = check_option(self.metric, "metric", FittedCentroid.OPTIONS["metric"])
        moments = class_scatter(*rows, diagonal=True)
        if metric == "angular":
            kappa = concentration(rows, moments.means)
        else:
            kappa = 1 / max(float(moments.pooled.mean()), FLOOR * moments.scale)
        return FittedCentroid(metric=metric, means=moments.means, concentration=kappa, **priors)


def concentration(rows: LabelledRows, directions: NDArray[np.float64]) -> float:
    r"""Return the concentration :math:`\kappa` of unit rows around the vectors of their classes.

    With :math:`\bar R` the mean cosine between a row and its class vector,
    :math:`\kappa = \bar R (q - \bar R^2) / (1 - \bar R^2)`: nearly the maximum-likelihood estimate
    of von Mises-Fisher distributions with one common concentration (Banerjee et al., 2005).
    Classes that have collapsed count as if the mean squared distance, 2 - 2 R, were ``FLOOR``.
    """
    total = 0.0
    for block in blocks(len(rows.X), len(directions) + rows.X.shape[1]):
        cosine = cosines(rows.X[block].astype(np.float64, copy=False), directions)
        own = np.take_along_axis(cosine, rows.codes[block][:, None], axis=1)[:, 0]
        total += float(rows.weights[block] @ own)
    mean_cosine = np.clip(total / rows.masses.sum(), MIN_MEAN_COSINE, 1 - FLOOR / 2)
    q = max(rows.X.shape[1], 2)  # on a line the estimate would not see the collapse
    return float(mean_cosine * (q - mean_cosine**2) / (1 - mean_cosine**2))
