"""Class vectors in R^q: the regular simplex where it fits, the best packing we know elsewhere.

A frame is a (C, q) array of unit vectors, one row per class. Its Gram matrix is a target
similarity that embeddings in R^q can reach, because the frame itself reaches it.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, helmert

from cocoloss._checks import RandomState, as_generator, check_integer, check_n_classes
from cocoloss.exceptions import GeometryError
from cocoloss.geometry.packing import spread_vectors


def check_embedding_dim(embedding_dim: object) -> int:
    """Return the dimension q of the embedding space."""
    return check_integer(embedding_dim, "embedding_dim", minimum=1)


def check_room_for_simplex(n_classes: int, embedding_dim: int) -> None:
    """Refuse an embedding space that is too small for C equidistant unit vectors.

    Raises
    ------
    GeometryError
        If q < C - 1.
    """
    # NOTE[PAPER]: the paper asks C <= q - 1. The simplex spans C - 1 dimensions (its vertices
    # sum to zero), so q >= C - 1 suffices.
    if embedding_dim < n_classes - 1:
        raise GeometryError(
            f"a simplex of {n_classes} classes needs embedding_dim >= n_classes - 1 = "
            f"{n_classes - 1}, but embedding_dim is {embedding_dim}; use a larger embedding_dim, "
            f'or, where a similarity is asked for, "packing": vectors spread as well as possible'
        )


def simplex_frame(
    n_classes: int, embedding_dim: int, random_state: RandomState = None
) -> NDArray[np.float64]:
    """Return C unit vectors with inner products -1/(C-1), turned at random.

    The rotation is Haar-distributed: every orientation in R^q is equally likely.

    Parameters
    ----------
    n_classes : int
        Number of classes C, at least 2.
    embedding_dim : int
        Dimension q, at least C - 1.
    random_state : int, Generator, RandomState or None, default=None
        Where the rotation comes from. The global numpy seed is never used.

    Returns
    -------
    ndarray of shape (n_classes, embedding_dim)
        One vertex per row.

    Raises
    ------
    GeometryError
        If q < C - 1.

    Examples
    --------
    >>> frame = simplex_frame(3, 2, random_state=0)
    >>> bool(np.allclose(frame @ frame.T, [[1, -0.5, -0.5], [-0.5, 1, -0.5], [-0.5, -0.5, 1]]))
    True
    """
    n_classes = check_n_classes(n_classes)
    embedding_dim = check_embedding_dim(embedding_dim)
    check_room_for_simplex(n_classes, embedding_dim)
    generator = as_generator(random_state)
    # Only the C - 1 directions that the simplex occupies are drawn: no q x q matrix.
    axes, triangular = np.linalg.qr(generator.standard_normal((embedding_dim, n_classes - 1)))
    # QR leaves the signs of the columns to LAPACK; a positive diagonal makes the law Haar's.
    axes *= np.where(np.diag(triangular) < 0, -1.0, 1.0)  # (q, C-1), orthonormal columns
    frame: NDArray[np.float64] = _simplex_vertices(n_classes) @ axes.T
    return frame


def packing_frame(n_classes: int, embedding_dim: int) -> NDArray[np.float64]:
    r"""Return C unit vectors of R^q whose largest inner product is as small as we can make it.

    No chance is involved. The result is the exact optimum where one is known in closed form, and
    otherwise the best of several numerical searches from fixed starts; there, another processor
    or BLAS may round its way to another packing, about as good. Store the frame if it must last.

    ============  ====================================================  ====================
    case          vectors                                               largest product
    ============  ====================================================  ====================
    q >= C-1      regular simplex                                       -1/(C-1)
    C <= 2q       simplices in C-q orthogonal subspaces                 0, Rankin's bound
    q = 2         regular polygon                                       cos(2 pi / C)
    otherwise     numerical, see :mod:`cocoloss.geometry.packing`       often, not proven, best
    ============  ====================================================  ====================

    Parameters
    ----------
    n_classes : int
        Number of classes C, at least 2.
    embedding_dim : int
        Dimension q, at least 1; the line (q = 1) has room for two classes only.

    Returns
    -------
    ndarray of shape (n_classes, embedding_dim)
        One unit vector per row; the caller's own copy.

    Raises
    ------
    GeometryError
        If q = 1 and C > 2.

    Examples
    --------
    >>> frame = packing_frame(4, 2)  # a square: two orthogonal pairs of opposite vectors
    >>> np.round(frame @ frame.T, 12) + 0.0
    array([[ 1., -1.,  0.,  0.],
           [-1.,  1.,  0.,  0.],
           [ 0.,  0.,  1., -1.],
           [ 0.,  0., -1.,  1.]])
    """
    n_classes = check_n_classes(n_classes)
    embedding_dim = check_embedding_dim(embedding_dim)
    if embedding_dim == 1 and n_classes > 2:
        raise GeometryError(
            f"only two unit vectors exist on the line, but n_classes is {n_classes} and "
            f"embedding_dim is 1; use an embedding_dim of at least 2"
        )
    return _packing_frame(n_classes, embedding_dim).copy()  # the cache stays ours


@lru_cache(maxsize=64)
def _packing_frame(n_classes: int, embedding_dim: int) -> NDArray[np.float64]:
    if embedding_dim >= n_classes - 1:
        unused = embedding_dim - (n_classes - 1)
        return np.pad(_simplex_vertices(n_classes), ((0, 0), (0, unused)))
    if n_classes <= 2 * embedding_dim:
        return _orthogonal_simplices(n_classes, embedding_dim)
    if embedding_dim == 2:
        angles = 2 * np.pi * np.arange(n_classes) / n_classes
        return np.column_stack([np.cos(angles), np.sin(angles)])
    return spread_vectors(n_classes, embedding_dim)


def _simplex_vertices(n_classes: int) -> NDArray[np.float64]:
    """Vertices of the regular simplex in R^(C-1), shape (C, C-1)."""
    # Helmert's contrasts H are an orthonormal basis of the vectors that sum to zero, so
    # H'H = I - 11'/C, which is the simplex but for its scale.
    contrasts: NDArray[np.float64] = helmert(n_classes)  # (C-1, C)
    vertices: NDArray[np.float64] = np.sqrt(n_classes / (n_classes - 1)) * contrasts.T
    return vertices


def _orthogonal_simplices(n_classes: int, embedding_dim: int) -> NDArray[np.float64]:
    """Split R^q into C-q orthogonal subspaces, as equal as possible, with a simplex in each."""
    # d dimensions hold d + 1 vertices: C - q subspaces add up to q + (C - q) = C vectors.
    n_parts = n_classes - embedding_dim
    smaller, n_larger = divmod(embedding_dim, n_parts)
    dims = [smaller + 1] * n_larger + [smaller] * (n_parts - n_larger)
    frame: NDArray[np.float64] = block_diag(*(_simplex_vertices(dim + 1) for dim in dims))
    return frame
