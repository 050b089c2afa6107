r"""A calibrated readout of honest scores: one temperature up to a matrix, held back by priors.

Logits are :math:`s T + s A + b` of the scores s, inner products of an embedding with target points;
log class shares are added outside, so that any prior can take their place. The scores must be those
of rows that were not learnt from.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from cocoloss.heads.fitted import FittedReadout

RIDGE_MATRIX = 0.3  # on A: a number of rows says more than this holds back
RIDGE_BIAS = 1.0
USUAL_LOG_SHARPNESS = 1.5  # of T, which is positive
DOUBT = 1.0  # rows of other classes that might have been among the honest ones, but were not
ITERATIONS = 200


def matrix_readout(
    scores: NDArray[np.float64],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    points: NDArray[np.float64],
    prior: NDArray[np.float64],
) -> FittedReadout:
    """Fit the readout.

    Parameters
    ----------
    scores : array of shape (n, C)
        Inner products of honest embeddings with the target points.
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
