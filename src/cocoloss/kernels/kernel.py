"""Kernels of a distance in a diagonal metric: one row of a table each, no class tower.

Knows no targets and no solver.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss._checks import check_option

Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class KernelKind:
    """How a kernel follows from distances D: ``value(D, gamma)`` works in place."""

    distance: str  # "squared" (Euclidean) or "city"
    value: Callable[[Matrix, float], Matrix]
    # Of the squared distance: 2 dk/dD, so that the gradient of k(x, z) by x is slope * (x - z).
    slope: Callable[[Matrix, Matrix, float], Matrix] | None = None


def _rbf(D: Matrix, gamma: float) -> Matrix:
    D *= np.float32(-gamma)
    return np.exp(D, out=D)


def _laplace(D: Matrix, gamma: float) -> Matrix:
    D *= np.float32(2 * gamma)
    np.sqrt(D, out=D)
    np.negative(D, out=D)
    return np.exp(D, out=D)


def _laplace_slope(K: Matrix, D: Matrix, gamma: float) -> Matrix:
    # k = exp(-r), r = sqrt(2 gamma D): 2 dk/dD = -2 gamma k / r, and the kink at r = 0 has none.
    r = np.sqrt(np.float32(2 * gamma) * D)
    slope: Matrix = np.divide(np.float32(-2 * gamma) * K, r, out=np.zeros_like(K), where=r > KINK)
    return slope


EQUAL = 1e-12  # a typical distance below this is none
KINK = 1e-3  # of the Laplace kernel's r: nearer rows are one row, but for rounding
KERNELS = {
    # The smooth one: exp(-gamma |x - z|^2).
    "rbf": KernelKind("squared", _rbf, lambda K, _, gamma: np.float32(-2 * gamma) * K),
    # The rough one, for functions with edges: exp(-sqrt(2 gamma) |x - z|).
    "laplace": KernelKind("squared", _laplace, _laplace_slope),
    # A product over the columns, for functions that go by one column at a time, as trees do:
    # exp(-gamma |x - z|_1).
    "laplace-l1": KernelKind("city", _rbf),
}


WORTH_A_PRODUCT = 8  # columns of two values


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel k(x, z) of rows with d columns, 1 where x = z.

    Attributes
    ----------
    kind : {"rbf", "laplace", "laplace-l1"}
        Row of ``KERNELS``.
    gamma : float
        One over the distance, or squared distance, over which it falls.
    metric : array of shape (d,)
        What each column weighs: distances are those of ``sqrt(metric) * x``.

    Examples
    --------
    >>> kernel = Kernel("rbf", 0.5, np.ones(2))
    >>> kernel(np.array([[0.0, 0.0], [1.0, 1.0]])).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]], dtype=float32)
    """

    kind: str
    gamma: float
    metric: NDArray[np.float32]

    def __post_init__(self) -> None:
        check_option(self.kind, "kernel", KERNELS)

    def __call__(self, X: Any, Z: Any = None) -> Matrix:
        """Return k between the rows of X (n, d) and of Z (X if None)."""
        other = None if Z is None else in_metric(Z, self.metric)
        return self.of(distances(KERNELS[self.kind].distance, in_metric(X, self.metric), other))

    def of(self, D: Matrix) -> Matrix:
        """Return the kernel of distances that are its own; D is written over."""
        return KERNELS[self.kind].value(D, self.gamma)


def in_metric(X: Any, metric: NDArray[np.float32]) -> Matrix:
    """Return rows whose plain distances are those of X in the metric."""
    return np.asarray(X, dtype=np.float32) * np.sqrt(metric, dtype=np.float32)


def distances(kind: str, A: Matrix, B: Matrix | None = None) -> Matrix:
    """Return distances between the rows of A and of B (A if None), in float32.

    Squared ones come from one product of matrices, in float64: the Laplace kernel takes their
    root, and the root of float32's rounding would be seen.
    """
    if kind == "city":
        return _city_distances(A, B)
    left = A.astype(np.float64)
    right = left if B is None else B.astype(np.float64)
    D = left @ (-2 * right.T)
    D += np.einsum("ij,ij->i", left, left)[:, None]
    D += np.einsum("ij,ij->i", right, right)
    np.maximum(D, 0, out=D)
    if B is None:
        np.fill_diagonal(D, 0)
    return D.astype(np.float32)


def _city_distances(A: Matrix, B: Matrix | None) -> Matrix:
    """Return sums of absolute differences, of columns of two values in B by a product of matrices.

    If b is one of two values, ``|a - b|`` is ``|a - low|``, and where b is the high one ``|a -
    high| - |a - low|`` more. Columns of categories are such, and may be many.
    """
    from scipy.spatial.distance import cdist, pdist, squareform  # noqa: PLC0415 - not to predict

    def sums(columns: Any) -> NDArray[np.float64]:
        if B is None:  # each pair once
            return np.asarray(squareform(pdist(A[:, columns], "cityblock")))
        return np.asarray(cdist(A[:, columns], B[:, columns], "cityblock"))

    Z = A if B is None else B
    low, high = Z.min(axis=0), Z.max(axis=0)
    two = ((low == Z) | (high == Z)).all(axis=0)
    if two.sum() < WORTH_A_PRODUCT:
        return sums(slice(None)).astype(np.float32)
    D = np.zeros((len(A), len(Z))) if two.all() else sums(~two)
    of_two = A[:, two].astype(np.float64)
    to_low, to_high = np.abs(of_two - low[two]), np.abs(of_two - high[two])
    D += (to_high - to_low) @ (Z[:, two] == high[two]).astype(np.float64).T
    D += to_low.sum(axis=1)[:, None]
    return np.maximum(D, 0).astype(np.float32)


def kernel_values(kernels: Sequence[Kernel], X: Any, Z: Any) -> Iterator[Matrix]:
    """Yield each kernel between the rows of X and of Z, (n, m).

    Kernels in one metric share its distances, which take most of the time.
    """
    seen: dict[tuple[str, bytes], Matrix] = {}
    for kernel in kernels:
        key = KERNELS[kernel.kind].distance, kernel.metric.tobytes()
        if key not in seen:
            seen[key] = distances(key[0], *(in_metric(each, kernel.metric) for each in (X, Z)))
        yield kernel.of(seen[key].copy())


def unit_distance(kind: str, D: Matrix) -> float:
    """Return the typical distance that widths are relative to; 1 where all rows are equal.

    The mean; of squared distances half of it, which is the summed variance of the columns.
    """
    mean = float(D.mean(dtype=np.float64))
    typical = mean if kind == "city" else mean / 2
    return typical if typical > EQUAL else 1.0
