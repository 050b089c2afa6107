"""Class vectors that somebody else has learnt or fixed, read out as a classifier."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax
from sklearn.utils.validation import check_is_fitted, validate_data

from cocoloss._checks import as_array, as_float_array, check_option, check_priors
from cocoloss.exceptions import CoCoError
from cocoloss.heads.base import FLOATS, EmbeddingHead, LabelledRows, Priors, learnt
from cocoloss.heads.centroid import concentration
from cocoloss.heads.fitted import FittedMatrix, FittedReadout
from cocoloss.metrics.scatter import class_scatter

# Of the matrix readout.
RIDGE_MATRIX = 0.3  # on A: a number of rows says more than this holds back
RIDGE_BIAS = 1.0
USUAL_LOG_SHARPNESS = 1.5  # of T, which is positive
DOUBT = 1.0  # rows of other classes that might have been among the honest ones, but were not
ITERATIONS = 200
TINY = 1e-30
CALIBRATED = 50_000  # rows that a matrix is fitted to, at most
# Of fewer honest rows than this the matrix is drawn back towards knowing nothing but class shares.
FEW = 300
SHARPEST = 100.0  # log of the inverse temperature
FOLDS = 5  # in which it says how far
DIGITS = 9  # of scores, by which rows are told apart
MODESTY = 300.0  # over N: what trust costs in nats, since the best of many fits is a lucky one


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


class MatrixHead(EmbeddingHead):
    r"""Classify embeddings by their inner products with the class means, through a matrix.

    With the class means :math:`\mu_c` and the scores :math:`s_c = \langle h, \mu_c\rangle`, the
    log-likelihoods are :math:`s M + b`. ``fit`` learns the means, and takes the nearest one, at a
    usual sharpness. ``calibrate`` learns M and b from rows that neither network nor head was
    fitted on, from one sharpness up to a whole matrix, held back by ridges. Networks that collapse
    their classes look surer on the rows they were trained on than they are on others: other heads
    have one temperature to put that right, this one is made of honest rows.

    Scores mean the same for every network that was trained to the same target similarities, so
    that the networks of an ensemble share one matrix: :func:`calibrate_together`.

    Parameters
    ----------
    priors : "uniform", "empirical" or array of shape (C,)
        Class probabilities before the embedding is seen, in the order of ``classes_``.

    Attributes
    ----------
    classes_, class_prior_, temperature_, fitted_
        As of every :class:`EmbeddingHead`; class shares stay outside of the log-likelihoods.
    means_ : ndarray of shape (C, q)
        Class means.
    prototypes_ : ndarray of shape (C, q)
        What the matrix makes of them.
    bias_ : ndarray of shape (C,)
        What is added to the scores.
    matrix_ : ndarray of shape (C, C)
        The transpose of M, for means in units of the longest; missing before ``calibrate``.

    Notes
    -----
    ``outlier_score`` is the squared distance to the nearest class mean.

    Examples
    --------
    >>> from cocoloss.heads import MatrixHead
    >>> X, y = [[1.0, 0.1], [1.0, -0.1], [0.1, 1.0], [-0.1, 1.0]], [0, 0, 1, 1]
    >>> head = MatrixHead().fit(X, y)
    >>> sure = head.predict_proba([[1.0, 0.0]]).max()
    >>> head = head.calibrate([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [0, 1, 1])  # one is wrong
    >>> bool(head.predict_proba([[1.0, 0.0]]).max() < sure)
    True
    """

    def __init__(self, *, priors: Priors = "uniform") -> None:
        self.priors = priors

    means_ = learnt("means")
    prototypes_ = learnt("prototypes")
    bias_ = learnt("bias")

    def _learn(self, rows: LabelledRows, priors: dict[str, Any]) -> FittedMatrix:
        means = class_scatter(*rows, diagonal=True, pooled=True).means
        C, sharpness = len(means), np.exp(USUAL_LOG_SHARPNESS)
        return FittedMatrix(
            prior=priors["prior"],
            share=np.full(C, 1 / C),
            metric="dot",
            prototypes=sharpness * means,
            bias=-0.5 * sharpness * np.square(means).sum(axis=1),
            concentration=1.0,
            learnt_share=np.ones(C),
            means=means,
        )

    def calibrate(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the matrix from rows that neither the head nor the network was fitted on.

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
        calibrate_together([self], [X], [y], [sample_weight])
        return self

    def use_matrix(self, matrix: NDArray[np.float64], bias: NDArray[np.float64]) -> None:
        """Read the embeddings by a matrix (C, C) that was learnt from these or from others."""
        self.matrix_ = matrix
        self.fitted_ = replace(self.fitted_, prototypes=matrix @ self.unit_means, bias=bias)

    @property
    def unit_means(self) -> NDArray[np.float64]:
        """Class means in units of the longest one, whose square is some one on the sphere."""
        longest = np.square(self.means_).sum(axis=1).max()
        return np.asarray(self.means_ / max(longest, TINY))

    def honest_rows(self, X: NDArray[Any], y: NDArray[Any], sample_weight: Any) -> LabelledRows:
        """Return the rows that weigh anything, to learn a matrix from."""
        return self._present(X, self._encode(y), sample_weight)


def calibrate_together(
    heads: Sequence[MatrixHead],
    X: Sequence[NDArray[Any]],
    y: Sequence[NDArray[Any]],
    sample_weight: Sequence[Any],
) -> None:
    """Learn one matrix for several heads, each with rows that its network has not seen."""
    given = zip(heads, X, y, sample_weight, strict=True)
    rows = [head.honest_rows(*part) for head, *part in given]
    pairs = zip(rows, heads, strict=True)
    scores = np.concatenate(
        [each.X.astype(np.float64, copy=False) @ head.unit_means.T for each, head in pairs]
    )
    labels = np.concatenate([each.codes for each in rows])
    weights = np.concatenate([each.weights for each in rows])
    if len(labels) == 0:
        return
    few = np.linspace(0, len(labels) - 1, min(len(labels), CALIBRATED)).astype(np.intp)
    C = scores.shape[1]
    made = matrix_readout(scores[few], labels[few], weights[few], np.eye(C), np.full(C, 1 / C))
    for head in heads:
        head.use_matrix(made.prototypes, made.bias)


def matrix_readout(
    scores: NDArray[np.float64],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    points: NDArray[np.float64],
    prior: NDArray[np.float64],
    *,
    matrix: bool = True,
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
    matrix : bool
        Whether there are A and b, or the temperature alone.

    Notes
    -----
    No confidence is infinite where all honest rows are right: beside N of them, one is taken to be
    in other classes. If there are fewer than 300 rows, the matrix fits them better than others, and
    logits are multiplied by what is best for matrices that were fitted to other rows, at most 1.
    """
    by_class, bias = _matrix_and_bias(scores, labels, weights, matrix=matrix)
    if weights.sum() < FEW:
        trust = _trust(scores, labels, weights, matrix=matrix)
        by_class, bias = trust * by_class, trust * bias
    C = scores.shape[1]
    return FittedReadout(
        prior=prior,
        share=np.full(C, 1 / C),  # the shares stayed outside
        metric="dot",
        prototypes=by_class.T @ points,
        bias=bias,
        concentration=1.0,
        learnt_share=np.ones(C),
    )


def _trust(
    scores: NDArray[np.float64],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    *,
    matrix: bool,
) -> float:
    """Return what logits are multiplied by, 0 to 1: the least log loss of rows out of the fold.

    Rows go to folds in turn, class by class, equals side by side: a weight of two is the row twice,
    and what recurs by nature is in all folds.
    """
    n, C = scores.shape
    order = np.lexsort([*scores.round(DIGITS).T, labels])
    end = np.cumsum(weights[order])
    shares = np.empty((FOLDS, n))  # what each row weighs in each fold
    logits = np.empty((FOLDS, n, C))
    for k in range(FOLDS):
        shares[k, order] = _dealt(end, k) - _dealt(end - weights[order], k)
        rest = np.maximum(weights - shares[k], 0.0)
        if not rest.any():  # all rows are in this fold, and nobody else knows them
            logits[k] = 0.0
            continue
        by_class, bias = _matrix_and_bias(scores, labels, rest, matrix=matrix)
        logits[k] = scores @ by_class + bias
    log_share = _log_shares(labels, weights, C)
    N = float(weights.sum())
    cost = min(N / 4, MODESTY / N)

    def loss(trust: float) -> float:
        log_p = log_softmax(log_share + trust * logits, axis=2)[:, np.arange(n), labels]
        return float(cost * trust**2 - (shares * log_p).sum())

    return float(minimize_scalar(loss, bounds=(0.0, 1.0), method="bounded").x)


def _dealt(mass: NDArray[np.float64], fold: int) -> NDArray[np.float64]:
    """Return how much of a mass is in a fold, if units of it go to the folds in turn."""
    return np.asarray(mass // FOLDS + np.clip(mass % FOLDS - fold, 0, 1))


def _log_shares(
    labels: NDArray[np.int64], weights: NDArray[np.float64], n_classes: int
) -> NDArray[np.float64]:
    masses = np.bincount(labels, weights=weights, minlength=n_classes)
    return np.asarray(np.log(np.maximum(masses, np.finfo(np.float64).tiny) / masses.sum()))


def _matrix_and_bias(
    scores: NDArray[np.float64],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    *,
    matrix: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what makes logits of scores, (C, C) and (C,); a temperature alone unless a matrix."""
    n, C = scores.shape
    log_share = _log_shares(labels, weights, C)
    total = np.bincount(labels, weights=weights, minlength=C).sum()  # in an order of its own
    doubt = DOUBT / (total + 2 * DOUBT)
    wanted = np.full((n, C), doubt / (C - 1))
    wanted[np.arange(n), labels] = 1 - doubt
    wanted *= weights[:, None]

    def objective(p: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        sharpness = np.exp(min(p[0], SHARPEST))  # a line search may try anything
        b, A = p[1 : C + 1], p[C + 1 :].reshape(C, C)
        log_p = log_softmax(log_share + sharpness * scores + scores @ A + b, axis=1)
        off = np.exp(log_p) * weights[:, None] - wanted  # derivative by the logits
        away = p[0] - USUAL_LOG_SHARPNESS
        penalty = RIDGE_BIAS * (b @ b) + RIDGE_MATRIX * np.square(A).sum() + away**2
        by_A = scores.T @ off + RIDGE_MATRIX * A
        by_sharpness = sharpness * (off * scores).sum() + away
        gradient = np.r_[by_sharpness, off.sum(axis=0) + RIDGE_BIAS * b, by_A.ravel()]
        return float(-(wanted * log_p).sum() + penalty / 2), gradient

    start = np.r_[USUAL_LOG_SHARPNESS, np.zeros(C + C * C)]
    how: dict[str, Any] = {"method": "L-BFGS-B", "options": {"maxiter": ITERATIONS}}
    if not matrix:
        how["bounds"] = [(None, None), *[(0.0, 0.0)] * (len(start) - 1)]
    p = minimize(objective, start, jac=True, **how).x
    by_class = np.exp(p[0]) * np.eye(C) + p[C + 1 :].reshape(C, C)
    if matrix and np.trace(by_class) < by_class.mean() * C:
        # It turns classes round: of few rows each that is left out looks like the other classes, of
        # which there are more without it. That tells nothing of other rows.
        return _matrix_and_bias(scores, labels, weights, matrix=False)
    return by_class, p[1 : C + 1].copy()


def pool_weights(
    scores: NDArray[np.float64], labels: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what the scores of each of P models weigh in a sum of them, (P,): none is negative.

    By the log loss of rows that none of them was trained on; a ridge holds them where the first
    model stands alone, as it does if there are few rows.

    Parameters
    ----------
    scores : array of shape (P, n, C)
        Log probabilities under even class shares, but for a constant of each row.
    labels : array of shape (n,)
        Classes, by position.
    weights : array of shape (n,)
        How often each row counts.
    """
    P, n, C = scores.shape
    log_share = _log_shares(labels, weights, C)
    one_hot = np.eye(C)[labels]
    alone = np.eye(P)[0]

    def objective(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        log_p = log_softmax(np.tensordot(w, scores, 1) + log_share, axis=1)
        off = (np.exp(log_p) - one_hot) * weights[:, None]
        loss = -weights @ log_p[np.arange(n), labels] + np.square(w - alone).sum() / 2
        return float(loss), np.einsum("nc,pnc->p", off, scores) + w - alone

    return np.asarray(minimize(objective, alone, jac=True, bounds=[(0, None)] * P).x)
