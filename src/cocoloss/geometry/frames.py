"""Class vectors in R^q: the regular simplex where it fits, the best packing we know elsewhere.

A frame is a (C, q) array of unit vectors, one row per class. Its Gram matrix is a target
similarity that embeddings in R^q can reach, because the frame itself reaches it.

Where no packing is known in closed form it is searched for. The largest inner product is not
smooth, so it is replaced by a log-sum-exp over all pairs,

    E_s(V) = (1/s) log sum_{a != b} exp(s <v_a, v_b>)  ->  max_{a != b} <v_a, v_b>,   s -> inf,

which L-BFGS minimises for an increasing sequence of sharpnesses s, each from the last optimum.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import block_diag, helmert
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from cocoloss._checks import (
    RandomState,
    as_float_array,
    as_generator,
    check_integer,
    check_n_classes,
    check_room_for_simplex,
)
from cocoloss.exceptions import CoCoError, GeometryError

# Sharpness in units of the typical gap 1 - <v_a, v_b> between neighbours. A start that begins
# smooth falls into one of few highly symmetric configurations, whatever its random vectors: all
# miss the 24-cell from 1.0, all find it from 0.1. Where to begin is what makes starts differ.
FIRST_SHARPNESS = (0.3, 3.0, 0.1, 10.0, 1.0, 30.0)
LAST_SHARPNESS = 1e5  # the maximum is then right to about 1e-5 of the gap
N_STAGES_PER_DECADE = 2


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
    embedding_dim = check_integer(embedding_dim, "embedding_dim", minimum=1)
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
    otherwise     numerical, by an annealed search                      often, not proven, best
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
    embedding_dim = check_integer(embedding_dim, "embedding_dim", minimum=1)
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


def spread_vectors(n_classes: int, embedding_dim: int) -> NDArray[np.float64]:
    """Return C unit vectors of R^q with a small largest inner product, by numerical search.

    The best of several deterministic starts: fewer starts, and fewer steps, for larger C.
    """
    # One step costs O(C^2 q): a thousand classes get one start of about a dozen short stages.
    n_starts = int(np.clip(300 // n_classes, 1, 12))
    max_steps = int(np.clip(60_000 // n_classes, 30, 200))
    generator = np.random.default_rng([n_classes, embedding_dim])  # private, always the same
    best = None
    # One thread: the matrices are small, and the result must not depend on the number of cores.
    with threadpool_limits(1, user_api="blas"):
        for start in range(n_starts):
            frame = _unit(generator.standard_normal((n_classes, embedding_dim)))
            frame = _anneal(frame, FIRST_SHARPNESS[start % len(FIRST_SHARPNESS)], max_steps)
            if best is None or largest_product(frame) < largest_product(best):
                best = frame
    assert best is not None
    return best


def largest_product(frame: NDArray[np.float64]) -> float:
    """Return the largest inner product between two different rows: what a packing minimises."""
    gram = frame @ frame.T  # (C, C)
    np.fill_diagonal(gram, -np.inf)
    return float(gram.max())


def energy(
    flat: NDArray[np.float64], n_classes: int, sharpness: float
) -> tuple[float, NDArray[np.float64]]:
    """Return E_s of the directions of C vectors, (C * q,), and its gradient in the vectors."""
    vectors = flat.reshape(n_classes, -1)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    frame = vectors / norms  # (C, q)
    weights = frame @ frame.T  # (C, C), in place from here on: it is the large one
    np.fill_diagonal(weights, -np.inf)
    largest = weights.max()
    weights -= largest  # exp() cannot overflow
    weights *= sharpness
    np.exp(weights, out=weights)
    total = weights.sum()
    weights *= 2 / total  # each unordered pair counts twice
    pull = weights @ frame  # dE/dframe
    pull -= np.einsum("cq,cq->c", pull, frame)[:, None] * frame  # what moves the direction
    return float(largest + np.log(total) / sharpness), (pull / norms).ravel()


def _anneal(
    frame: NDArray[np.float64], first_sharpness: float, max_steps: int
) -> NDArray[np.float64]:
    n_classes, embedding_dim = frame.shape
    # C caps of angle t cover the sphere at about C t^(q-1) = 1, so the gap is 1 - cos t ~ t^2.
    gap = n_classes ** (-2 / (embedding_dim - 1))
    n_stages = 1 + round(N_STAGES_PER_DECADE * np.log10(LAST_SHARPNESS / first_sharpness))
    for sharpness in np.geomspace(first_sharpness, LAST_SHARPNESS, n_stages) / gap:
        found = minimize(
            energy,
            frame.ravel(),
            args=(n_classes, float(sharpness)),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max_steps, "ftol": 1e-14, "gtol": 1e-9, "maxcor": 20},
        )
        frame = _unit(found.x.reshape(n_classes, embedding_dim))
    return frame


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    unit: NDArray[np.float64] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def etf_distance(class_means: ArrayLike, *, center: bool = True) -> float:
    r"""Return the distance of class means from a simplex ETF, whatever its scale and rotation.

    With M the (C, q) matrix of class means, centred at their mean, it is

    .. math:: \left\| \frac{M M^\top}{\|M M^\top\|_F}
              - \frac{1}{\sqrt{C-1}} \left(I - \tfrac{1}{C} 1 1^\top\right) \right\|_F,

    the measure that Zhu et al. (2021, "A geometric analysis of neural collapse with unconstrained
    features") take of a classifier's weights, applied to class means.

    Parameters
    ----------
    class_means : array-like or tensor of shape (n_classes, embedding_dim)
        One mean per class, each class counted once whatever its size.
    center : bool, default=True
        Whether to subtract the mean of the class means first. Without it, a simplex whose centre
        is not the origin counts as distant.

    Returns
    -------
    float
        0 on a simplex of any scale and rotation, below sqrt(2) otherwise. Means that all coincide
        have no shape to compare: their distance is that of the zero matrix, 1. Two means that
        differ are always a simplex, so C = 2 says little.

    Raises
    ------
    CoCoError
        If there are fewer than two means, or they are not a finite (C, q) matrix.

    Examples
    --------
    >>> triangle = [[0.0, 2.0], [np.sqrt(3), -1.0], [-np.sqrt(3), -1.0]]
    >>> round(etf_distance(triangle), 12)
    0.0
    >>> round(etf_distance([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]), 4)  # on one line
    0.7654
    """
    means = as_float_array(class_means, "class_means")
    if means.ndim != 2 or means.shape[1] == 0:
        raise CoCoError(
            f"class_means must have shape (n_classes, embedding_dim), but has shape {means.shape}"
        )
    n_classes = len(means)
    if n_classes < 2:
        raise CoCoError(f"class_means needs at least two classes, but has {n_classes}")
    if not np.all(np.isfinite(means)):
        bad = int(np.argmin(np.isfinite(means).all(axis=1)))
        raise CoCoError(f"class_means must be finite, but the mean of class {bad} is not")
    largest = np.abs(means).max()
    if largest == 0:
        return 1.0
    means = means / largest  # the scale does not matter, and squares shall not under- or overflow
    if center:
        length = np.linalg.norm(means)
        means = means - means.mean(axis=0)
        if np.linalg.norm(means) <= n_classes * np.finfo(np.float64).eps * length:
            return 1.0  # only rounding is left: the means coincide
    gram = means @ means.T  # (C, C)
    gram /= np.linalg.norm(gram)
    simplex = (np.eye(n_classes) - 1 / n_classes) / np.sqrt(n_classes - 1)  # unit norm, too
    return float(np.linalg.norm(gram - simplex))
