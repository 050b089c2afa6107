"""The learnt metric: a column weighs the mean squared gradient of the function by it.

The diagonal of the average gradient outer product, as in recursive feature machines (Radhakrishnan
et al., Science 2024).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.exceptions import CoCoError
from cocoloss.kernels.kernel import KERNELS, Kernel, distances, in_metric

LEAST = 1e-8  # of the mean weight: no column is forgotten for good
MOST_ROWS = 1000  # rows at which gradients are taken: a mean over them says enough


def learnt_metric(
    kernel: Kernel, X: Any, alpha: NDArray[Any], D: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Return what each column weighs for ``f(x) = sum_i k(x, x_i) alpha_i``, with a mean of one.

    Parameters
    ----------
    kernel : Kernel
        Of a squared distance.
    X : array of shape (n, d)
        The rows of f.
    alpha : array of shape (n, q)
        Their coefficients.
    D : array of shape (n, n), optional
        Squared distances of the rows in the kernel's metric, if they are known.

    Notes
    -----
    With S the slopes of the kernel, the gradient of component c at row i is
    ``sum_j S_ij alpha_jc (x_i - x_j)``, in the metric.
    """
    slope = KERNELS[kernel.kind].slope
    if slope is None:
        raise CoCoError(f"the kernel {kernel.kind!r} has no gradients to learn a metric from")
    A = in_metric(X, kernel.metric)
    n = len(A)
    at = slice(None, None, -(-n // MOST_ROWS))  # all rows, or every second, or ...
    D = (distances("squared", A) if D is None else D)[at]
    S = slope(kernel.of(D.copy()), D, kernel.gamma)
    squares = np.zeros(A.shape[1])
    for column in alpha.astype(np.float32).T:
        weighted = S * column
        gradient = weighted.sum(axis=1)[:, None] * A[at] - weighted @ A  # (rows, d)
        squares += np.square(gradient).mean(axis=0)
    squares *= kernel.metric  # by the column itself, not by the scaled one
    mean = squares.mean()
    if not mean > 0:  # a constant function
        return kernel.metric
    raised = np.maximum(squares / mean, LEAST)
    return np.asarray(raised / raised.mean(), dtype=np.float32)
