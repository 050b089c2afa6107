"""Dispersity: how wide the classes are, measured by how far apart they are."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from cocoloss._checks import check_option, check_weights
from cocoloss.exceptions import CoCoError
from cocoloss.metrics.scatter import (
    EPSILON,
    ClassMoments,
    as_embeddings,
    as_labels,
    at_unit_scale,
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
