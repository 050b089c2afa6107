"""The nearest class mean, by distance or by angle, with probabilities from the spread around it."""

from cocoloss._checks import check_option
from cocoloss.heads._moments import class_moments
from cocoloss.heads._rows import FLOOR, LabelledRows
from cocoloss.heads._sphere import concentration
from cocoloss.heads.base import EmbeddingHead, Priors
from cocoloss.heads.likelihoods import CentroidAnswers

METRICS = ("euclidean", "angular")


class CentroidHead(CentroidAnswers, EmbeddingHead):
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
    classes_ : ndarray of shape (C,)
        The labels, sorted.
    class_prior_, class_share_ : ndarray of shape (C,)
        The priors in use, and the weighted shares of the training rows.
    means_ : ndarray of shape (C, q)
        Class means.
    concentration_ : float
        :math:`1 / s^2` or :math:`\kappa`.
    temperature_ : float
        1 after ``fit``; see ``calibrate``.

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

    def _learn(self, rows: LabelledRows) -> None:
        metric = check_option(self.metric, "metric", METRICS)
        moments = class_moments(rows, diagonal=True)
        self.means_ = moments.means
        if metric == "angular":
            self.concentration_ = concentration(rows, self.means_)
        else:
            self.concentration_ = 1 / max(float(moments.pooled.mean()), FLOOR * moments.scale)
