"""Collapse of classes: dispersity, how wide they are beside how far apart; and neural collapse.

Neural collapse is after Papyan, Han and Donoho (2020), "Prevalence of neural collapse during the
terminal phase of deep learning training": four properties, each measured by how far it is from 0.
The loss that led there is not asked for.
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from cocoloss._checks import as_float_array, check_option, check_weights
from cocoloss.exceptions import CoCoError
from cocoloss.geometry import etf_distance
from cocoloss.metrics.scatter import (
    EPSILON,
    ClassMoments,
    as_embeddings,
    as_labels,
    at_unit_scale,
    check_finite,
    encode_labels,
)


def dispersity(
    embeddings: Any,
    labels: Any,
    norm: str = "fro",
    *,
    sample_weight: Any = None,
) -> float:
    r"""Return the dispersity of labelled embeddings.

    .. math:: \mathrm{dispersity} = \|\Sigma_W\| / \|\Sigma_B\|

    It is 0 when every class is a single point and grows as classes widen or approach each
    other. Rotating, shifting or scaling the embeddings does not change it.

    Parameters
    ----------
    embeddings : array-like or tensor of shape (n, q)
        One row per sample.
    labels : array-like or tensor of shape (n,)
        The class of each row; at least two classes.
    norm : {"fro", "spectral", "trace", "pinv"}
        How the two covariances are compared:

        - ``"fro"``: the ratio of their Frobenius norms;
        - ``"spectral"``: the ratio of their largest eigenvalues;
        - ``"trace"``: the ratio of their traces, that is of the total variances;
        - ``"pinv"``: :math:`\mathrm{Tr}(\Sigma_W \Sigma_B^+)`, the within-class variance in
          units of the between-class variance, direction by direction.
    sample_weight : array-like or tensor of shape (n,), optional
        Non-negative weights of the rows.

    Returns
    -------
    float
        At least 0; infinity when the class means coincide, even if all rows do: then nothing
        separates the classes.

    See Also
    --------
    dispersity_of : the same from moments gathered chunk by chunk.

    Examples
    --------
    >>> from cocoloss.metrics import dispersity
    >>> embeddings = [[-3.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [3.0, 0.0]]
    >>> dispersity(embeddings, [0, 0, 1, 1])  # means at -2 and 2, deviations of 1
    0.25
    """
    check_option(norm, "norm", NORMS)
    rows = as_embeddings(embeddings)
    labels = as_labels(labels, len(rows))
    weights = check_weights(sample_weight, len(rows))
    present = weights > 0
    rows, labels, weights = rows[present], labels[present], weights[present]
    if len(rows):
        # Seen from a row, because a common offset must not set the scale; halves, because the
        # difference of two large numbers may be larger than float64 holds.
        rows = at_unit_scale(rows / 2 - rows[0] / 2)
    return dispersity_of(ClassMoments().update(rows, labels, weights), norm)


def dispersity_of(moments: ClassMoments, norm: str = "fro") -> float:
    """Return the dispersity of what an accumulator has seen; see :func:`dispersity`.

    Parameters
    ----------
    moments : ClassMoments
        Moments of at least two classes.
    norm : {"fro", "spectral", "trace", "pinv"}
        How the two covariances are compared.

    Returns
    -------
    float

    Examples
    --------
    >>> from cocoloss.metrics import ClassMoments, dispersity_of
    >>> moments = ClassMoments()
    >>> for chunk, labels in [([[-3.0], [1.0]], [0, 1]), ([[-1.0], [3.0]], [0, 1])]:
    ...     _ = moments.update(chunk, labels)
    >>> round(dispersity_of(moments, "trace"), 12)
    0.25
    """
    check_option(norm, "norm", NORMS)
    classes = moments.classes
    if len(classes) == 1:
        raise CoCoError(
            f"all rows are of class {classes.tolist()[0]!r}, and one class has no distance to "
            f"compare with; give rows of at least two classes"
        )
    if not np.isfinite(moments.total).all():
        raise CoCoError(
            "the embeddings were so large that their covariances are infinite; divide them by "
            "their largest entry before update, which changes no dispersity"
        )
    if moments.means_coincide:
        return float("inf")
    return NORMS[norm](moments)


def _norm_ratio(order: int | None, moments: ClassMoments) -> float:
    """Return the ratio of Frobenius norms (None) or of largest eigenvalues (2)."""
    # Over a power of two, so that their squares fit into float64.
    within, between = at_unit_scale(np.stack([moments.within, moments.between]))
    return float(np.linalg.norm(within, order) / np.linalg.norm(between, order))


def _pseudo_inverse_trace(moments: ClassMoments) -> float:
    """Return Tr(Sigma_W Sigma_B^+) as a sum over the eigenvectors of Sigma_B."""
    variances, directions = np.linalg.eigh(moments.between)  # ascending
    # The masses weigh the centred means to zero, so at most C - 1 directions are real; of
    # those, a variance that rounding alone can produce would be inverted into nonsense.
    n_classes, q = moments.means.shape
    cutoff = max(n_classes, q) * EPSILON * variances[-1]
    kept = np.flatnonzero(variances > cutoff)[-(n_classes - 1) :]
    axes = directions[:, kept]  # (q, rank)
    spread = np.sum(axes * (moments.within @ axes), axis=0)  # within-class variance along each
    return float(np.sum(spread / variances[kept]))


# NOTE[PAPER]: the definition prints ||Sigma_W|| / ||Sigma_B|| without saying which norm. We take
# the Frobenius norm by default and offer the others, among them Tr(Sigma_W Sigma_B^+), which the
# text below the definition discusses.
NORMS: Mapping[str, Callable[[ClassMoments], float]] = MappingProxyType(
    {
        "fro": partial(_norm_ratio, None),
        "spectral": partial(_norm_ratio, 2),
        "trace": lambda moments: float(np.trace(moments.within) / np.trace(moments.between)),
        "pinv": _pseudo_inverse_trace,
    }
)


DISTANCES_AT_ONCE = 2**20  # 8 MB of float64, however many rows there are


class NeuralCollapse(NamedTuple):
    """How far an embedding is from neural collapse; 0 everywhere is full collapse.

    Attributes
    ----------
    nc1 : float
        Variability within classes, Tr(Sigma_W Sigma_B^+) / C; infinity when the class means
        coincide.
    nc2 : float
        Frobenius distance of the Gram matrix of the centred class means, scaled to norm one,
        from that of the simplex.
    nc2_norms : float
        Standard deviation of the norms of the centred class means, divided by their mean.
    nc2_angles : float
        Mean over pairs of classes of abs(cos + 1/(C - 1)), with the cosine between the
        centred class means.
    nc3 : float or None
        Squared Frobenius distance between the classifier's weights and the centred class
        means, each scaled to norm one; ``None`` without a classifier.
    nc4 : float
        Share of rows that the nearest class mean decides differently from the classifier, or,
        without a classifier, differently from their label.
    """

    nc1: float
    nc2: float
    nc2_norms: float
    nc2_angles: float
    nc3: float | None
    nc4: float


def neural_collapse(
    embeddings: Any, labels: Any, weights: Any = None, bias: Any = None
) -> NeuralCollapse:
    """Measure neural collapse, NC1 to NC4.

    Parameters
    ----------
    embeddings : array-like or tensor of shape (n, q)
        One row per sample: the last layer before the classifier.
    labels : array-like or tensor of shape (n,)
        The class of each row; at least two classes.
    weights : array-like or tensor of shape (C, q), optional
        Weights of the linear classifier on the embeddings, one row per class among the labels,
        in the order of the sorted classes.
    bias : array-like or tensor of shape (C,), optional
        Its bias; 0 by default.

    Returns
    -------
    NeuralCollapse

    Notes
    -----
    Class means are centred at their own unweighted mean, so that NC2 and NC3 do not depend on
    how many rows a class has. When all class means coincide they form no shape: ``nc2`` is
    then 1, the simplex's distance from the zero matrix, while ``nc2_norms``, ``nc2_angles`` and
    ``nc3`` are NaN. So is ``nc3`` for weights that are all zero. A single class mean at the
    centre has no direction, and counts as orthogonal to the others.
    Rows at equal distances from several class means go to the lowest class, and equal scores
    of the classifier likewise.

    Examples
    --------
    >>> from cocoloss.metrics import neural_collapse
    >>> embeddings = [[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]
    >>> result = neural_collapse(embeddings, ["a", "a", "b"], weights=[[2.0, 0.0], [-2.0, 0.0]])
    >>> result.nc1, round(result.nc2, 12), round(result.nc3, 12), result.nc4
    (0.0, 0.0, 0.0, 0.0)
    """
    rows = as_embeddings(embeddings)  # (n, q)
    labels = as_labels(labels, len(rows))
    scaled = at_unit_scale(rows)
    moments = ClassMoments().update(scaled, labels)
    nc1 = dispersity_of(moments, "pinv") / len(moments.classes)  # refuses a single class
    means = moments.means  # (C, q)
    weights, bias = _as_classifier(weights, bias, means.shape, moments.classes.tolist())

    # NOTE[PAPER]: NC2 and NC3 are printed for means that are not centred. On the simplex, whose
    # vertices sum to zero, both agree; elsewhere Papyan et al. centre, at mu_G. We centre at the
    # mean of the class means, which class imbalance does not move.
    centred = means - means.mean(axis=0)
    nc2_norms = nc2_angles = float("nan")
    nc3 = None if weights is None else float("nan")
    if moments.means_coincide:
        centred[:] = 0  # what is left is rounding, not a shape
    else:
        norms = np.linalg.norm(centred, axis=1)
        nc2_norms = float(norms.std() / norms.mean())
        nc2_angles = _angle_deviation(centred)
        if weights is not None and weights.any():
            nc3 = _misalignment(weights, centred)
    nc4 = _disagreement(rows, scaled, labels, means, weights, bias)
    return NeuralCollapse(nc1, etf_distance(centred), nc2_norms, nc2_angles, nc3, nc4)


def _as_classifier(
    weights: Any,
    bias: Any,
    shape: tuple[int, ...],
    classes: list[Any],
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64]]:
    """Return the classifier's weights, if there are any, and its bias, zero by default."""
    n_classes, embedding_dim = shape
    if weights is None:
        if bias is not None:
            raise CoCoError("bias came without weights; give the weights of the classifier too")
        return None, np.zeros(n_classes)
    weights = as_float_array(weights, "weights")
    if weights.shape != (n_classes, embedding_dim):
        raise CoCoError(
            f"weights must have shape {(n_classes, embedding_dim)}, one row for each of the "
            f"classes {classes[0]!r} to {classes[-1]!r} among the labels, but has shape "
            f"{weights.shape}; keep the rows of these classes, and write a binary classifier "
            f"with the single row w as the two rows -w and w"
        )
    check_finite(weights, "weights")
    if bias is None:
        return weights, np.zeros(n_classes)
    bias = as_float_array(bias, "bias")
    if bias.shape != (n_classes,):
        raise CoCoError(
            f"bias must have shape {(n_classes,)}, but has shape {bias.shape}; give one per class"
        )
    check_finite(bias, "bias")
    return weights, bias


def _angle_deviation(centred: NDArray[np.float64]) -> float:
    n_classes = len(centred)
    norms = np.linalg.norm(centred, axis=1, keepdims=True)
    has_direction = norms > n_classes * EPSILON * norms.max()
    units = np.divide(centred, norms, out=np.zeros_like(centred), where=has_direction)
    deviation = np.abs(units @ units.T + 1 / (n_classes - 1))  # (C, C)
    np.fill_diagonal(deviation, 0)  # a class is no pair with itself
    return float(deviation.sum() / (n_classes * (n_classes - 1)))


def _misalignment(weights: NDArray[np.float64], centred: NDArray[np.float64]) -> float:
    # NOTE[PAPER]: self-duality is printed row by row, w_c/|w_c| = mu_c/|mu_c|. As in Papyan et
    # al. the two matrices are compared as a whole, so that rows of unequal norms count too.
    weights = at_unit_scale(weights)
    gap = weights / np.linalg.norm(weights) - centred / np.linalg.norm(centred)
    return float(np.sum(gap**2))


def _disagreement(
    rows: NDArray[np.float64],
    scaled: NDArray[np.float64],
    labels: NDArray[Any],
    means: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    bias: NDArray[np.float64],
) -> float:
    """Return the share of rows on which the nearest mean and the other rule differ.

    The means are those of the scaled rows; the classifier is made for the rows as they came.
    """
    _, decisions = encode_labels(labels)
    step = max(1, DISTANCES_AT_ONCE // len(means))
    n_differ = 0
    for start in range(0, len(rows), step):
        chunk = slice(start, start + step)
        # Squares of differences, not |h|^2 - 2<h, mu> + |mu|^2, whose rounding breaks ties.
        nearest = cdist(scaled[chunk], means, "sqeuclidean").argmin(axis=1)
        if weights is None:
            decided = decisions[chunk]
        else:
            decided = (rows[chunk] @ weights.T + bias).argmax(axis=1)
        n_differ += int(np.count_nonzero(nearest != decided))
    return n_differ / len(rows)
