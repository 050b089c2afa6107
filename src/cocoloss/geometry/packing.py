"""Spread points on a sphere by numerical search, for the cases without a closed form.

The largest inner product is not smooth, so it is replaced by a log-sum-exp over all pairs,

    E_s(V) = (1/s) log sum_{a != b} exp(s <v_a, v_b>)  ->  max_{a != b} <v_a, v_b>,   s -> inf,

which L-BFGS minimises for an increasing sequence of sharpnesses s, each from the last optimum.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

# Sharpness in units of the typical gap 1 - <v_a, v_b> between neighbours. A start that begins
# smooth falls into one of few highly symmetric configurations, whatever its random vectors: all
# miss the 24-cell from 1.0, all find it from 0.1. Where to begin is what makes starts differ.
FIRST_SHARPNESS = (0.3, 3.0, 0.1, 10.0, 1.0, 30.0)
LAST_SHARPNESS = 1e5  # the maximum is then right to about 1e-5 of the gap
N_STAGES_PER_DECADE = 2


def spread_vectors(n_classes: int, embedding_dim: int) -> NDArray[np.float64]:
    """Return C unit vectors of R^q with a small largest inner product, by numerical search.

    Parameters
    ----------
    n_classes : int
        Number of vectors C.
    embedding_dim : int
        Dimension q, at least 2.

    Returns
    -------
    ndarray of shape (n_classes, embedding_dim)
        The best of several deterministic starts: fewer starts, and fewer steps, for larger C.

    Examples
    --------
    >>> frame = spread_vectors(12, 3)  # the icosahedron, whose neighbours have 1 / sqrt(5)
    >>> round(largest_product(frame), 6)
    0.447214
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
    """Return E_s of the normalised vectors and its gradient in the vectors as they are.

    Parameters
    ----------
    flat : ndarray of shape (n_classes * embedding_dim,)
        The vectors, of any length but zero: E_s depends on their directions only.
    n_classes : int
        Number of vectors C.
    sharpness : float
        The s of E_s.

    Returns
    -------
    value : float
        E_s.
    gradient : ndarray of shape (n_classes * embedding_dim,)
        dE_s / dflat.
    """
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
