"""Class vectors that somebody else has learnt or fixed, read out as a classifier."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocoloss._checks import as_float_array, check_option, check_priors
from cocoloss.exceptions import CoCoError
from cocoloss.heads.base import EmbeddingHead, LabelledRows, Priors, learnt
from cocoloss.heads.centroid import concentration
from cocoloss.heads.fitted import FittedReadout


class ReadoutHead(EmbeddingHead):
    r"""Classify embeddings by fixed class vectors.

    - "angular", for dot regression: :math:`\ell_c(h) = \kappa \cos(h, v_c)`. With uniform priors
      the prediction is the class vector at the smallest angle. ``fit`` learns :math:`\kappa`.
      A network that was regressed on the vectors is nearer to those of frequent classes; give
      ``learnt_share``, and the prediction is the smallest angle if these shares are the priors.
    - "dot", for cross-entropy: the logits :math:`z_c = \langle h, v_c\rangle + b_c` are log
      posteriors, so they contain the class shares of the rows they were trained on. ``fit`` takes
      those shares from its own rows: :math:`\ell_c(h) = z_c - \log(N_c / N)`.

    Parameters
    ----------
    prototypes : array-like or tensor of shape (C, q), optional
        The class vectors :math:`v_c`, in the order of the sorted labels. None if the embedding
        has one column per class, which is then the score of that class.
    bias : array-like or tensor of shape (C,), optional
        The :math:`b_c` of "dot"; zero by default.
    metric : {"angular", "dot"}
        How class vectors turn into scores.
    priors : "uniform", "empirical" or array of shape (C,)
        Class probabilities before the embedding is seen, in the order of ``classes_``.
        For "dot", "empirical" gives the softmax of the logits as they are; "uniform" and an array
        divide the training shares out first, as balanced accuracy asks for.
    learnt_share : array of shape (C,), optional
        For "angular": class shares that the angles contain, and that are divided out.

    Attributes
    ----------
    classes_, class_prior_, class_share_, temperature_, fitted_
        As of every :class:`EmbeddingHead`.
    prototypes_ : ndarray of shape (C, q)
        The class vectors.
    bias_ : ndarray of shape (C,)
        What is added to the scores of "dot".
    concentration_ : float
        :math:`\kappa`; 1 for "dot".

    Notes
    -----
    A network trained with class weights has seen other shares than the rows have: give ``fit`` the
    same weights as ``sample_weight``.

    ``outlier_score`` is :math:`2 \kappa (1 - \max_c \cos(h, v_c))` for "angular", and the energy
    :math:`-\log\sum_c \exp z_c` for "dot": a row that excites no class is strange.

    Examples
    --------
    >>> from cocoloss.heads import ReadoutHead
    >>> logits, y = [[2.0, 0.0], [1.0, 0.0], [3.0, 1.0], [0.0, 1.0]], ["a", "a", "a", "b"]
    >>> ReadoutHead(metric="dot", priors="empirical").fit(logits, y).decision_function([[1.0, 0.0]])
    array([-1.])
    >>> ReadoutHead(metric="dot", priors="uniform").fit(logits, y).predict([[1.0, 0.0]])
    array(['b'], dtype='<U1')
    """

    def __init__(
        self,
        prototypes: ArrayLike | None = None,
        bias: ArrayLike | None = None,
        *,
        metric: str = "angular",
        # NOTE[PAPER]: cross-entropy predicts the largest logit there, which is "empirical" here;
        # uniform is the default of every head, since balanced accuracy is what the paper reports.
        priors: Priors = "uniform",
        learnt_share: ArrayLike | None = None,
    ) -> None:
        self.prototypes = prototypes
        self.bias = bias
        self.metric = metric
        self.priors = priors
        self.learnt_share = learnt_share

    prototypes_ = learnt("prototypes")
    bias_ = learnt("bias")
    concentration_ = learnt("concentration")

    def _learn(self, rows: LabelledRows, priors: dict[str, Any]) -> FittedReadout:
        metric = check_option(self.metric, "metric", FittedReadout.OPTIONS["metric"])
        if metric == "angular" and self.bias is not None:
            raise CoCoError('bias has no meaning for metric="angular"; leave it out, or use "dot"')
        if metric == "dot" and self.learnt_share is not None:
            raise CoCoError(
                'learnt_share is for metric="angular"; "dot" takes the shares of the rows of fit'
            )
        n_classes, q = len(self.classes_), rows.X.shape[1]
        prototypes = _given(self.prototypes, np.eye(q), (n_classes, q), "prototypes")
        learnt_share = np.ones(n_classes)
        if self.learnt_share is not None:
            learnt_share = check_priors(self.learnt_share, n_classes, "learnt_share")
        return FittedReadout(
            metric=metric,
            prototypes=prototypes,
            bias=_given(self.bias, np.zeros(n_classes), (n_classes,), "bias"),
            concentration=concentration(rows, prototypes) if metric == "angular" else 1.0,
            learnt_share=learnt_share,
            **priors,
        )


def _given(
    values: Any, default: NDArray[np.float64], shape: tuple[int, ...], name: str
) -> NDArray[np.float64]:
    """Return a copy of what the user gave, or the default, after checking its shape."""
    array = default if values is None else as_float_array(values, name)
    if array.shape != shape:
        raise CoCoError(
            f"{name} must have shape {shape} for the classes in y and the columns of X, but has "
            f"{array.shape}{' by default' if values is None else ''}; give one row per class"
        )
    if not np.isfinite(array).all():
        raise CoCoError(f"{name} must be finite; look for a training run that diverged")
    return array.copy()
