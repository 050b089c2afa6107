"""Class vectors that somebody else has learnt or fixed, read out as a classifier."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from cocoloss._checks import as_float_array, check_option, check_priors
from cocoloss.exceptions import CoCoError
from cocoloss.heads.base import EmbeddingHead, LabelledRows, Priors, learnt
from cocoloss.heads.centroid import concentration
from cocoloss.heads.fitted import FittedReadout

# Of the matrix readout.
RIDGE_MATRIX = 0.3  # on A: a number of rows says more than this holds back
RIDGE_BIAS = 1.0
USUAL_LOG_SHARPNESS = 1.5  # of T, which is positive
DOUBT = 1.0  # rows of other classes that might have been among the honest ones, but were not
ITERATIONS = 200


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


def matrix_readout(
    scores: NDArray[np.float64],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    points: NDArray[np.float64],
    prior: NDArray[np.float64],
) -> FittedReadout:
    r"""Fit a calibrated readout to honest scores: one temperature up to a matrix.

    Logits are :math:`s T + s A + b` of the scores s, inner products of an embedding with target
    points; ridges hold A and b back. Log class shares are added outside, so that any prior can take
    their place.

    Parameters
    ----------
    scores : array of shape (n, C)
        Of rows that the embedding was not learnt from.
    labels : array of shape (n,)
        Classes, by position.
    weights : array of shape (n,)
        How often each row counts.
    points : array of shape (C, q)
        Target points.
    prior : array of shape (C,)
        Under which to predict.

    Notes
    -----
    No confidence is infinite where all honest rows are right: beside N of them, one is taken to be
    in other classes.
    """
    n, C = scores.shape
    masses = np.bincount(labels, weights=weights, minlength=C)
    log_share = np.log(np.maximum(masses, np.finfo(np.float64).tiny) / masses.sum())
    doubt = DOUBT / (masses.sum() + 2 * DOUBT)
    wanted = np.full((n, C), doubt / (C - 1))
    wanted[np.arange(n), labels] = 1 - doubt
    wanted *= weights[:, None]

    def objective(p: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        sharpness, b, A = np.exp(p[0]), p[1 : C + 1], p[C + 1 :].reshape(C, C)
        log_p = log_softmax(log_share + sharpness * scores + scores @ A + b, axis=1)
        off = np.exp(log_p) * weights[:, None] - wanted  # derivative by the logits
        away = p[0] - USUAL_LOG_SHARPNESS
        penalty = RIDGE_BIAS * (b @ b) + RIDGE_MATRIX * np.square(A).sum() + away**2
        by_A = scores.T @ off + RIDGE_MATRIX * A
        by_sharpness = sharpness * (off * scores).sum() + away
        gradient = np.r_[by_sharpness, off.sum(axis=0) + RIDGE_BIAS * b, by_A.ravel()]
        return float(-(wanted * log_p).sum() + penalty / 2), gradient

    start = np.r_[USUAL_LOG_SHARPNESS, np.zeros(C + C * C)]
    p = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS}).x
    matrix = np.exp(p[0]) * np.eye(C) + p[C + 1 :].reshape(C, C)
    uniform = np.full(C, 1 / C)  # the shares stayed outside
    return FittedReadout(
        prior=prior,
        share=uniform,
        metric="dot",
        prototypes=matrix.T @ points,
        bias=p[1 : C + 1].copy(),
        concentration=1.0,
        learnt_share=np.ones(C),
    )
