"""Target similarities: what the inner product of two embeddings should be, class by class.

Every kind is a function (n_classes, embedding_dim) -> G in the table ``SIMILARITIES``, with G a
symmetric (C, C) matrix, 1 on its diagonal. A matrix of the user's own is reachable if it is the
Gram matrix of C vectors of R^q, which holds exactly if it is symmetric, positive semi-definite, and
of rank at most q.
"""

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocoloss._checks import (
    as_float_array,
    check_integer,
    check_n_classes,
    check_option,
    check_room_for_simplex,
)
from cocoloss.exceptions import GeometryError, GeometryWarning
from cocoloss.geometry.frames import packing_frame

_CALLER_OF_SIMILARITY = 3  # stack level: this warning, the kind's function, similarity()
TOLERANCE = 1e-6  # relative to the largest entry or eigenvalue: room for matrices in float32
MAX_CLASSES_PRINTED = 6


def similarity(kind: str, n_classes: int, embedding_dim: int | None = None) -> NDArray[np.float64]:
    """Return the matrix G of target similarities between classes.

    Parameters
    ----------
    kind : {"simplex", "welch", "orthoplex", "packing", "ordinal", "ordinal-simplex"}
        - ``"simplex"``: -1/(C-1) between classes, the widest angle that all pairs can share.
          Needs q >= C-1.
        - ``"welch"``: sqrt((C-q) / (q (C-1))) between classes, as the paper prints it for
          q < C-1. No embedding reaches it, hence a warning.
        - ``"orthoplex"``: 0 between classes, whatever their number. Needs q >= C to be reached.
        - ``"packing"``: inner products of C well-spread unit vectors of R^q. Exists for every
          q >= 2, and is the simplex where that fits.
        - ``"ordinal"``: 1 - 2|a-b|/(C-1) between levels a and b of an order: neighbours are
          alike, the ends opposite. Needs q >= C-1.
        - ``"ordinal-simplex"``: the mean of "ordinal" and "simplex". Needs q >= C, which is its
          rank unless C is 2.
    n_classes : int
        Number of classes C, at least 2.
    embedding_dim : int, optional
        Dimension q of the embedding. Required by ``"welch"`` and ``"packing"``; the other kinds
        use it to tell whether G can be reached.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        G, symmetric, with unit diagonal.

    Raises
    ------
    CoCoError
        If the kind is unknown or a number is not a whole one.
    GeometryError
        If the geometry does not exist in R^q.

    Warns
    -----
    GeometryWarning
        If G is defined but no embedding in R^q has it as its Gram matrix.

    Examples
    --------
    >>> similarity("simplex", 3)
    array([[ 1. , -0.5, -0.5],
           [-0.5,  1. , -0.5],
           [-0.5, -0.5,  1. ]])
    >>> round(float(similarity("packing", 12, embedding_dim=3)[0].min()), 6)  # icosahedron
    -1.0
    >>> similarity("ordinal", 3)
    array([[ 1.,  0., -1.],
           [ 0.,  1.,  0.],
           [-1.,  0.,  1.]])
    """
    check_option(kind, "similarity", SIMILARITIES)
    n_classes = check_n_classes(n_classes)
    if embedding_dim is not None:
        embedding_dim = check_integer(embedding_dim, "embedding_dim", minimum=1)
    return SIMILARITIES[kind](n_classes, embedding_dim)


def target_points(
    kind: str | ArrayLike, n_classes: int, embedding_dim: int | None = None
) -> NDArray[np.float64]:
    """Return a point for each class whose inner products are the target similarities.

    Parameters
    ----------
    kind : str or array of shape (C, C)
        A name that :func:`similarity` knows, or a matrix G.
    n_classes : int
        Number of classes C, at least 2.
    embedding_dim : int, optional
        Dimensions q of the points, at least the rank of G, which is the default. What "packing"
        and "welch" depend on; C by default.

    Returns
    -------
    ndarray of shape (n_classes, embedding_dim)
        V with V V^T = G. The simplex has C - 1 dimensions; further ones are zero.

    Raises
    ------
    CoCoError
        If G is not symmetric and positive semi-definite, or not of C classes.

    Examples
    --------
    >>> target_points("simplex", 2).round(4).tolist()
    [[-1.0], [1.0]]
    """
    if isinstance(kind, str):
        G = similarity(kind, n_classes, embedding_dim or n_classes)
    else:
        G = validate_similarity(kind, n_classes)
    values, vectors = np.linalg.eigh(G)
    spans = values > TOLERANCE * values[-1]
    points = vectors[:, spans] * np.sqrt(values[spans])
    spare = 0 if embedding_dim is None else embedding_dim - points.shape[1]
    if spare < 0:
        raise GeometryError(
            f"the target points of {n_classes} classes span {points.shape[1]} dimensions, but "
            f"embedding_dim is {embedding_dim}"
        )
    return np.pad(points, ((0, 0), (0, spare)))


def _simplex(n_classes: int, embedding_dim: int | None) -> NDArray[np.float64]:
    if embedding_dim is not None:
        check_room_for_simplex(n_classes, embedding_dim)
    return _equiangular(n_classes, -1 / (n_classes - 1))


def _welch(n_classes: int, embedding_dim: int | None) -> NDArray[np.float64]:
    embedding_dim = _require_embedding_dim(embedding_dim, "welch")
    if embedding_dim >= n_classes - 1:
        raise GeometryError(
            f'similarity="welch" is for embedding_dim < n_classes - 1 = {n_classes - 1}, but '
            f"embedding_dim is {embedding_dim}: the simplex exists there and spreads the classes "
            f'further; use similarity="simplex"'
        )
    # NOTE[PAPER]: eq. (targets-relation-welch-bound) as printed. Welch bounds the absolute inner
    # product; with the positive sign for every pair, G = (1-g) I + g 11' has full rank C > q.
    product = float(np.sqrt((n_classes - embedding_dim) / (embedding_dim * (n_classes - 1))))
    warnings.warn(
        f'similarity="welch" asks for {product:.3g} between all of {n_classes} classes: that Gram '
        f"matrix has rank {n_classes}, so no embedding in {embedding_dim} dimensions reaches it; "
        f'similarity="packing" gives one that can be reached',
        GeometryWarning,
        stacklevel=_CALLER_OF_SIMILARITY,
    )
    return _equiangular(n_classes, product)


def _orthoplex(n_classes: int, embedding_dim: int | None) -> NDArray[np.float64]:
    # NOTE[PAPER]: the paper asks q >= C - 1 here, eq. (targets-relation-orthoplex). The identity
    # has rank C, so C orthogonal classes need q >= C.
    if embedding_dim is not None and embedding_dim < n_classes:
        warnings.warn(
            f'similarity="orthoplex" asks for {n_classes} orthogonal classes: the identity has '
            f"rank {n_classes}, so no embedding in {embedding_dim} dimensions reaches it; use an "
            f'embedding_dim of at least {n_classes}, or similarity="packing"',
            GeometryWarning,
            stacklevel=_CALLER_OF_SIMILARITY,
        )
    return np.eye(n_classes)


def _packing(n_classes: int, embedding_dim: int | None) -> NDArray[np.float64]:
    frame = packing_frame(n_classes, _require_embedding_dim(embedding_dim, "packing"))
    gram = frame @ frame.T
    gram = (gram + gram.T) / 2
    np.fill_diagonal(gram, 1.0)
    return gram


def _ordinal(n_classes: int, embedding_dim: int | None) -> NDArray[np.float64]:
    # The Gram matrix of thermometers: level a is a signs + and C-1-a signs -, over sqrt(C-1). So it
    # is positive semi-definite for every C, and neighbours differ in one dimension each: rank C-1.
    _check_room_for_levels(n_classes, embedding_dim, n_classes - 1)
    level = np.arange(n_classes)
    return 1 - 2 * np.abs(np.subtract.outer(level, level)) / (n_classes - 1)


def _ordinal_simplex(n_classes: int, embedding_dim: int | None) -> NDArray[np.float64]:
    # The ends sum to zero in the one, all classes in the other: rank C, unless these are all.
    _check_room_for_levels(n_classes, embedding_dim, n_classes if n_classes > 2 else 1)
    simplex = _equiangular(n_classes, -1 / (n_classes - 1))
    return (_ordinal(n_classes, None) + simplex) / 2


def _check_room_for_levels(n_classes: int, embedding_dim: int | None, rank: int) -> None:
    if embedding_dim is not None and embedding_dim < rank:
        raise GeometryError(
            f"the target similarity of {n_classes} ordered levels has rank {rank}, but "
            f"embedding_dim is {embedding_dim}; use more dimensions, or a matrix of lower rank "
            f"such as that of points on a half circle"
        )


SIMILARITIES: dict[str, Callable[[int, int | None], NDArray[np.float64]]] = {
    "simplex": _simplex,
    "welch": _welch,
    "orthoplex": _orthoplex,
    "packing": _packing,
    "ordinal": _ordinal,
    "ordinal-simplex": _ordinal_simplex,
}


def _equiangular(n_classes: int, product: float) -> NDArray[np.float64]:
    gram = np.full((n_classes, n_classes), product)
    np.fill_diagonal(gram, 1.0)
    return gram


def _require_embedding_dim(embedding_dim: int | None, kind: str) -> int:
    if embedding_dim is None:
        raise GeometryError(
            f'similarity="{kind}" depends on the embedding space; give embedding_dim'
        )
    return embedding_dim


def validate_similarity(
    matrix: ArrayLike, n_classes: int | None = None, embedding_dim: int | None = None
) -> NDArray[np.float64]:
    """Return a user's own similarity matrix if embeddings can reach it.

    Parameters
    ----------
    matrix : array-like or tensor of shape (C, C)
        Target similarities. The diagonal holds the squared lengths of the embeddings; a class
        whose length is 0 sits at the origin.
    n_classes : int, optional
        How many classes the matrix should be for.
    embedding_dim : int, optional
        Dimension q of the embedding; without it the rank is not checked.

    Returns
    -------
    ndarray of shape (C, C)
        The matrix in float64, exactly symmetric.

    Raises
    ------
    GeometryError
        If the matrix is not square, of the wrong size, not finite, not symmetric, all zero, not
        positive semi-definite, or of rank above q. The message says where, and how far the
        nearest reachable matrix is.

    See Also
    --------
    nearest_reachable : The matrix that the message offers.

    Examples
    --------
    Three ordered classes, the outer ones opposite to each other:

    >>> validate_similarity([[1, 0, -1], [0, 1, 0], [-1, 0, 1]], embedding_dim=2)
    array([[ 1.,  0., -1.],
           [ 0.,  1.,  0.],
           [-1.,  0.,  1.]])
    """
    G = _square(matrix)
    if n_classes is not None and len(G) != check_n_classes(n_classes):
        raise GeometryError(
            f"the similarity matrix is for {len(G)} classes, but n_classes is {n_classes}; give "
            f"one row and one column per class"
        )
    if embedding_dim is not None:
        embedding_dim = check_integer(embedding_dim, "embedding_dim", minimum=1)
    gaps = np.abs(G - G.T)
    if gaps.max() > TOLERANCE * np.abs(G).max():
        row, column = np.unravel_index(np.argmax(gaps), gaps.shape)
        raise GeometryError(
            f"the similarity matrix must be symmetric, but entry ({row}, {column}) is "
            f"{G[row, column]:.6g} and entry ({column}, {row}) is {G[column, row]:.6g}; "
            f"{_offer(G, embedding_dim)}"
        )
    G = (G + G.T) / 2
    if not G.any():
        raise GeometryError(
            "the similarity matrix is zero, which puts all classes at the origin, where nothing "
            "tells them apart; the diagonal holds squared lengths, and 1 is the usual one"
        )
    eigenvalues = np.linalg.eigvalsh(G)  # ascending
    smallest, largest = eigenvalues[0], eigenvalues[-1]
    if smallest < -TOLERANCE * largest:  # also if no eigenvalue is positive
        raise GeometryError(
            f"the similarity matrix is not positive semi-definite, so no embedding has these "
            f"inner products: its smallest eigenvalue is {smallest:.3g}; "
            f"{_offer(G, embedding_dim)}"
        )
    rank = int(np.sum(eigenvalues > TOLERANCE * largest))
    if embedding_dim is not None and rank > embedding_dim:
        raise GeometryError(
            f"the similarity matrix has rank {rank}, but embedding_dim is {embedding_dim}: use an "
            f"embedding_dim of at least {rank}, or another matrix; {_offer(G, embedding_dim)}"
        )
    return G


def nearest_reachable(matrix: ArrayLike, embedding_dim: int | None = None) -> NDArray[np.float64]:
    """Return the Gram matrix of C vectors of R^q that is nearest in Frobenius norm.

    The symmetric part keeps its q largest eigenvalues, those below zero set to zero (Higham 1988
    for the cone, Eckart and Young 1936 for the rank). If the q-th and the next eigenvalue are
    equal, several matrices are equally near, and one of them is returned.

    Parameters
    ----------
    matrix : array-like or tensor of shape (C, C)
        Any finite square matrix, symmetric or not.
    embedding_dim : int, optional
        Dimension q; without it the rank is free.

    Returns
    -------
    ndarray of shape (C, C)
        Symmetric, positive semi-definite, of rank at most q. Its diagonal may differ from that
        of ``matrix``.

    Raises
    ------
    GeometryError
        If the matrix is not square or not finite.

    Examples
    --------
    >>> nearest_reachable([[1.0, -2.0], [-2.0, 1.0]], embedding_dim=1)
    array([[ 1.5, -1.5],
           [-1.5,  1.5]])
    """
    G = _square(matrix)
    kept = len(G)
    if embedding_dim is not None:
        kept = min(check_integer(embedding_dim, "embedding_dim", minimum=1), kept)
    eigenvalues, eigenvectors = np.linalg.eigh((G + G.T) / 2)  # ascending
    # Factor X = F F' with F (C, q): exactly symmetric, and an embedding of the classes besides.
    factor = eigenvectors[:, -kept:] * np.sqrt(np.clip(eigenvalues[-kept:], 0, None))
    nearest: NDArray[np.float64] = factor @ factor.T
    return (nearest + nearest.T) / 2


def _square(matrix: ArrayLike) -> NDArray[np.float64]:
    G = as_float_array(matrix, "the similarity matrix")
    if G.ndim != 2 or G.shape[0] != G.shape[1] or len(G) < 2:
        raise GeometryError(
            f"the similarity matrix must be square, with one row and one column for each of at "
            f"least two classes, but has shape {G.shape}"
        )
    if not np.all(np.isfinite(G)):
        row, column = np.argwhere(~np.isfinite(G))[0]
        raise GeometryError(
            f"the similarity matrix must be finite, but entry ({row}, {column}) is {G[row, column]}"
        )
    return G


def _offer(G: NDArray[np.float64], embedding_dim: int | None) -> str:
    """Describe the nearest reachable matrix for an error message."""
    nearest = nearest_reachable(G, embedding_dim)
    if not nearest.any():
        return "the nearest reachable one is zero, which tells no classes apart"
    distance = np.linalg.norm(G - nearest) / np.linalg.norm(G)
    dimension = "" if embedding_dim is None else f", {embedding_dim}"
    offer = (
        f"nearest_reachable(matrix{dimension}) returns the nearest reachable one, at relative "
        f"distance {distance:.3g}"
    )
    lengths = np.diag(nearest)
    lost = int(np.argmin(lengths))
    if lengths[lost] <= TOLERANCE * lengths.max():
        offer += (
            f", but it puts class {lost} at the origin, which makes a poor target: "
            f'similarity="packing" gives every class its own direction'
        )
    if len(G) <= MAX_CLASSES_PRINTED:
        offer += f":\n{np.array2string(nearest, precision=3, suppress_small=True)}"
    return offer
