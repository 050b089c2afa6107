"""Collapse of classes: dispersity, how wide they are beside how far apart; and neural collapse.

Neural collapse is after Papyan, Han and Donoho (2020), "Prevalence of neural collapse during the
terminal phase of deep learning training": four properties, each measured by how far it is from 0.
The loss that led there is not asked for.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from cocoloss._checks import as_array, as_float_array, check_option
from cocoloss.exceptions import CoCoError
from cocoloss.geometry import etf_distance
from cocoloss.metrics.ranks import Ranks
from cocoloss.metrics.rows import (
    LabelledRows,
    check_finite,
    namespace,
    on_device,
    over_power_of_two,
)
from cocoloss.metrics.scatter import EPSILON, ClassMeans, ClassMoments
from cocoloss.threads import threads_for


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
    rows = LabelledRows.read(embeddings, labels, sample_weight).from_first().at_unit_scale()
    return dispersity_of(ClassMoments().add(rows), norm)


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
    _refuse_one_class(moments.class_means)
    if not np.isfinite(moments.total).all():
        raise CoCoError(
            "the embeddings were so large that their covariances are infinite; divide them by "
            "their largest entry before update, which changes no dispersity"
        )
    if moments.means_coincide:
        return float("inf")
    return NORMS[norm](moments)


def _refuse_one_class(means: ClassMeans) -> None:
    if len(means.classes) == 1:
        raise CoCoError(
            f"all rows are of class {means.classes[0]!r}, and one class has no distance to "
            f"compare with; give rows of at least two classes"
        )


def _norm_ratio(order: int | None, moments: ClassMoments) -> float:
    """Return the ratio of Frobenius norms (None) or of largest eigenvalues (2)."""
    # Over a power of two, so that their squares fit into float64.
    within, between = _at_unit_scale(np.stack([moments.within, moments.between]))
    return float(np.linalg.norm(within, order) / np.linalg.norm(between, order))


def _at_unit_scale(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers over a power of two, the largest about one."""
    _, exponent = np.frexp(np.abs(values).max(initial=0))
    scaled: NDArray[np.float64] = np.ldexp(values, -exponent)
    return scaled


def _pseudo_inverse_trace(moments: ClassMoments) -> float:
    """Return Tr(Sigma_W Sigma_B^+) as a sum over the eigenvectors of Sigma_B."""
    axes, variances = _between_axes(moments.class_means)
    spread = np.sum(axes * (moments.within @ axes), axis=0)  # within-class variance along each
    return float(np.sum(spread / variances))


def _between_axes(means: ClassMeans) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the directions (q, r) in which class means differ, and their variances (r,).

    By singular values, whose squares keep more digits than eigenvalues of Sigma_B.
    """
    centred = means.centred
    n_classes, q = centred.shape
    _, deviations, directions = np.linalg.svd(centred, full_matrices=False)  # descending
    variances = deviations**2 / n_classes
    # The masses weigh the centred means to zero, so at most C - 1 directions are real; of
    # those, a variance that rounding alone can produce would be inverted into nonsense.
    cutoff = max(n_classes, q) * EPSILON * variances[0]
    kept = np.flatnonzero(variances > cutoff)[: n_classes - 1]
    return directions[kept].T, variances[kept]


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
    nc4 : float or None
        Share of rows that the nearest class mean decides differently from the classifier, or,
        without a classifier, differently from their label; ``None`` from moments alone, which
        have seen each row before all means were known.
    """

    nc1: float
    nc2: float
    nc2_norms: float
    nc2_angles: float
    nc3: float | None
    nc4: float | None


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
    rows = LabelledRows.read(embeddings, labels).at_unit_scale()
    if not len(rows):
        ClassMoments().class_means  # noqa: B018 - says that there are no rows
    means = ClassMeans.of(rows)
    _refuse_one_class(means)
    classifier = _as_classifier(weights, bias, rows.shape, means.classes)
    axes, variances = _between_axes(means)
    nearest = _NearestMean.among(means)
    along, squares, n_differ = np.zeros(len(variances)), 0.0, 0
    axes = on_device(axes, means.means)
    with threads_for(rows.step() * math.prod(rows.shape)):
        for block in rows.blocks():
            n_differ += nearest.differs(block.h, block.codes, classifier, rows.exponent)
            d = block.h - means.means[block.codes]
            d -= means.rests[block.codes]
            squares += float((d * d).sum())
            d = d @ axes  # (b, r): of Sigma_W no more is needed than these directions
            along += as_array((d * d).sum(0))
    coincide = means.coincide(squares)
    nc1 = float("inf") if coincide else float(np.sum(along / variances)) / len(rows)
    shape = _shape(means, classifier, coincide=coincide)
    return NeuralCollapse(nc1 / len(means.classes), *shape, n_differ / len(rows))


def neural_collapse_of(
    moments: ClassMoments,
    weights: Any = None,
    bias: Any = None,
    *,
    rows: Iterable[tuple[Any, Any]] | None = None,
    process_group: Any = None,
) -> NeuralCollapse:
    """Measure the neural collapse of what an accumulator has seen; see :func:`neural_collapse`.

    Memory is that of the moments, whatever the number of rows.

    Parameters
    ----------
    moments : ClassMoments
        Moments of at least two classes.
    weights, bias : array-like or tensor of shape (C, q) and (C,), optional
        The linear classifier on the embeddings, its rows in the order of ``moments.classes``.
    rows : iterable of (embeddings, labels), optional
        The same rows once more, in chunks: NC4 asks each for its nearest mean, and means are known
        at the end only. Without them ``nc4`` is ``None``.
    process_group : torch.distributed.ProcessGroup or "world", optional
        If given, the collapse of the rows of all its ranks, on each of them; moments and rows are
        those of this rank.

    Returns
    -------
    NeuralCollapse

    Examples
    --------
    >>> from cocoloss.metrics import ClassMoments, neural_collapse_of
    >>> moments, chunks = ClassMoments(), [([[-3.0], [1.0]], [0, 1]), ([[-1.0], [3.0]], [0, 1])]
    >>> for chunk, labels in chunks:
    ...     _ = moments.update(chunk, labels)
    >>> round(neural_collapse_of(moments).nc1, 12)
    0.125
    >>> neural_collapse_of(moments, rows=chunks).nc4
    0.0
    """
    if process_group is not None:
        moments = moments.reduce_over_ranks(process_group)
    means = moments.class_means.in_order
    nc1 = dispersity_of(moments, "pinv") / len(means.classes)  # refuses a single class
    classifier = _as_classifier(weights, bias, means.means.shape, means.classes)
    shape = _shape(means, classifier, coincide=moments.means_coincide)
    if rows is None:
        return NeuralCollapse(nc1, *shape, None)
    nearest = _NearestMean.among(means)
    place = {label: row for row, label in enumerate(means.classes)}
    n_differ = n_rows = 0
    for embeddings, labels in rows:
        chunk = LabelledRows.read(embeddings, labels)
        unknown = [label for label in chunk.classes if label not in place]
        if unknown:
            raise CoCoError(
                f"rows hold class {unknown[0]!r}, which the moments have not seen; give the same "
                f"rows that they were gathered from"
            )
        codes = np.asarray([place[label] for label in chunk.classes], dtype=np.intp)
        for block in chunk.blocks(check=True):
            own = on_device(codes, block.h)[block.codes]
            n_differ += nearest.differs(block.h, own, classifier, 0)
        n_rows += len(chunk)
    counts = np.array([n_differ, n_rows], dtype=np.float64)
    if process_group is not None:
        counts = Ranks.of(process_group).sum(counts)
    if not counts[1]:
        raise CoCoError("rows held none; give those of the moments, and a list, not a generator")
    return NeuralCollapse(nc1, *shape, float(counts[0] / counts[1]))


Classifier = tuple[NDArray[np.float64], NDArray[np.float64]] | None  # weights (C, q), bias (C,)


def _shape(
    means: ClassMeans, classifier: Classifier, *, coincide: bool
) -> tuple[float, float, float, float | None]:
    """Return NC2, its norms and angles, and NC3, of means in the order of their labels."""
    # NOTE[PAPER]: NC2 and NC3 are printed for means that are not centred. On the simplex, whose
    # vertices sum to zero, both agree; elsewhere Papyan et al. centre, at mu_G. We centre at the
    # mean of the class means, which class imbalance does not move.
    centred = means.relative - means.relative.mean(axis=0)
    nc2_norms = nc2_angles = float("nan")
    nc3 = None if classifier is None else float("nan")
    if coincide:
        centred[:] = 0  # what is left is rounding, not a shape
    else:
        norms = np.linalg.norm(centred, axis=1)
        nc2_norms = float(norms.std() / norms.mean())
        nc2_angles = _angle_deviation(centred)
        if classifier is not None and classifier[0].any():
            nc3 = _misalignment(classifier[0], centred)
    return etf_distance(centred), nc2_norms, nc2_angles, nc3


def _as_classifier(
    weights: Any,
    bias: Any,
    shape: tuple[int, ...],
    classes: list[Any],
) -> Classifier:
    """Return the classifier's weights and its bias, zero by default, if there is one."""
    n_classes, embedding_dim = shape
    if weights is None:
        if bias is not None:
            raise CoCoError("bias came without weights; give the weights of the classifier too")
        return None
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
    weights = _at_unit_scale(weights)
    gap = weights / np.linalg.norm(weights) - centred / np.linalg.norm(centred)
    return float(np.sum(gap**2))


@dataclass(frozen=True)
class _NearestMean:
    """The class means, ready for the question which one is nearest."""

    means: NDArray[np.float64]  # (C, q)
    centre: Any  # (q,), their mean
    away: Any  # (C, q), from the centre
    half_squares: Any  # (C,)
    longest: float
    distance: float  # of the centre from zero

    @classmethod
    def among(cls, means: ClassMeans) -> "_NearestMean":
        relative = means.relative
        middle = relative.mean(axis=0)
        centre = means.means[0] + on_device(middle, means.means)
        away = relative - middle
        squares = np.sum(away**2, axis=1)
        longest, distance = np.sqrt(squares.max()), np.linalg.norm(as_array(centre))
        full = as_array(means.means + means.rests)
        seen, halves = (on_device(x, means.means) for x in (away, squares / 2))
        return cls(full, centre, seen, halves, float(longest), float(distance))

    def of(self, h: Any) -> Any:
        """Return the position of the nearest mean for rows (b, q); of several the first.

        By one product, |h - mu|^2 = |h|^2 - 2 (<h, mu> - |mu|^2 / 2), as seen from the centre.
        Rows that its rounding could decide are asked again, by squares of differences.
        """
        xp = namespace(h)
        x = h - self.centre
        scores = x @ self.away.T
        scores -= self.half_squares
        found = scores.argmax(1)
        best = scores[xp.arange(len(scores), **_beside(h)), found]
        lengths = xp.sqrt((x * x).sum(1)) + self.distance + self.longest
        rounding = 8 * h.shape[1] * EPSILON * self.longest * lengths
        doubtful = (scores >= (best - rounding)[:, None]).sum(1) > 1
        if doubtful.any():
            again = cdist(as_array(h[doubtful]), self.means, "sqeuclidean").argmin(axis=1)
            found[doubtful] = on_device(again, h)
        return found

    def differs(self, h: Any, codes: Any, classifier: Classifier, exponent: int) -> int:
        """Count rows that another rule decides differently: their label, or the classifier.

        The rows were divided by a power of two; the classifier is made for them as they came.
        """
        decided = codes
        if classifier is not None:
            weights, bias = (on_device(x, h) for x in classifier)
            decided = (over_power_of_two(h, -exponent) @ weights.T + bias).argmax(1)
        return int((self.of(h) != decided).sum())


def _beside(like: Any) -> dict[str, Any]:
    """Return the argument that makes a tensor on the device of another; arrays need none."""
    return {"device": like.device} if hasattr(like, "detach") else {}
