"""Can embeddings in R^q have these inner products? Checks for a user's own similarity matrix.

A matrix G is reachable if it is the Gram matrix of C vectors of R^q, which holds exactly if it
is symmetric, positive semi-definite, and of rank at most q.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocoloss._checks import as_float_array, check_n_classes
from cocoloss.exceptions import GeometryError
from cocoloss.geometry.frames import check_embedding_dim

TOLERANCE = 1e-6  # relative to the largest entry or eigenvalue: room for matrices in float32
MAX_CLASSES_PRINTED = 6


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
    G = _square(matrix, n_classes)
    if embedding_dim is not None:
        embedding_dim = check_embedding_dim(embedding_dim)
    _check_symmetric(G, embedding_dim)
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
    G = _square(matrix, None)
    kept = len(G) if embedding_dim is None else min(check_embedding_dim(embedding_dim), len(G))
    eigenvalues, eigenvectors = np.linalg.eigh((G + G.T) / 2)  # ascending
    # Factor X = F F' with F (C, q): exactly symmetric, and an embedding of the classes besides.
    factor = eigenvectors[:, -kept:] * np.sqrt(np.clip(eigenvalues[-kept:], 0, None))
    nearest: NDArray[np.float64] = factor @ factor.T
    return (nearest + nearest.T) / 2


def _square(matrix: ArrayLike, n_classes: int | None) -> NDArray[np.float64]:
    G = as_float_array(matrix, "the similarity matrix")
    if G.ndim != 2 or G.shape[0] != G.shape[1] or len(G) < 2:
        raise GeometryError(
            f"the similarity matrix must be square, with one row and one column for each of at "
            f"least two classes, but has shape {G.shape}"
        )
    if n_classes is not None and len(G) != check_n_classes(n_classes):
        raise GeometryError(
            f"the similarity matrix is for {len(G)} classes, but n_classes is {n_classes}; give "
            f"one row and one column per class"
        )
    if not np.all(np.isfinite(G)):
        row, column = np.argwhere(~np.isfinite(G))[0]
        raise GeometryError(
            f"the similarity matrix must be finite, but entry ({row}, {column}) is {G[row, column]}"
        )
    return G


def _check_symmetric(G: NDArray[np.float64], embedding_dim: int | None) -> None:
    gaps = np.abs(G - G.T)
    if gaps.max() > TOLERANCE * np.abs(G).max():
        row, column = np.unravel_index(np.argmax(gaps), gaps.shape)
        raise GeometryError(
            f"the similarity matrix must be symmetric, but entry ({row}, {column}) is "
            f"{G[row, column]:.6g} and entry ({column}, {row}) is {G[column, row]:.6g}; "
            f"{_offer(G, embedding_dim)}"
        )


def _offer(G: NDArray[np.float64], embedding_dim: int | None) -> str:
    """Describe the nearest reachable matrix for an error message."""
    nearest = nearest_reachable(G, embedding_dim)
    if not nearest.any():
        return "the nearest reachable one is zero, which tells no classes apart"
    distance = np.linalg.norm(G - nearest) / np.linalg.norm(G)
    call = "nearest_reachable(matrix)"
    if embedding_dim is not None:
        call = f"nearest_reachable(matrix, {embedding_dim})"
    offer = f"{call} returns the nearest reachable one, at relative distance {distance:.3g}"
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
