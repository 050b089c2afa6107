"""Target similarities: what the inner product of two embeddings should be, class by class.

Every kind is a function (n_classes, embedding_dim) -> G in the table ``SIMILARITIES``, with G a
symmetric (C, C) matrix, 1 on its diagonal.
"""

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cocoloss._checks import check_n_classes, check_option
from cocoloss.exceptions import GeometryError, GeometryWarning
from cocoloss.geometry.frames import check_embedding_dim, check_room_for_simplex, packing_frame

_CALLER_OF_SIMILARITY = 3  # stack level: this warning, the kind's function, similarity()


def similarity(kind: str, n_classes: int, embedding_dim: int | None = None) -> NDArray[np.float64]:
    """Return the matrix G of target similarities between classes.

    Parameters
    ----------
    kind : {"simplex", "welch", "orthoplex", "packing"}
        - ``"simplex"``: -1/(C-1) between classes, the widest angle that all pairs can share.
          Needs q >= C-1.
        - ``"welch"``: sqrt((C-q) / (q (C-1))) between classes, as the paper prints it for
          q < C-1. No embedding reaches it, hence a warning.
        - ``"orthoplex"``: 0 between classes, whatever their number. Needs q >= C to be reached.
        - ``"packing"``: inner products of C well-spread unit vectors of R^q. Exists for every
          q >= 2, and is the simplex where that fits.
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
    """
    check_option(kind, "similarity", SIMILARITIES)
    n_classes = check_n_classes(n_classes)
    if embedding_dim is not None:
        embedding_dim = check_embedding_dim(embedding_dim)
    return SIMILARITIES[kind](n_classes, embedding_dim)


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


SIMILARITIES: dict[str, Callable[[int, int | None], NDArray[np.float64]]] = {
    "simplex": _simplex,
    "welch": _welch,
    "orthoplex": _orthoplex,
    "packing": _packing,
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
