"""A fitted kernel machine: rows, kernels and coefficients; all that predicting needs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.kernels.kernel import Kernel

BLOCK_NUMBERS = 2**22  # kernel values of one block of rows: 16 MB


@dataclass(frozen=True, eq=False)
class KernelMachine:
    """f(x) = sum over kernels k and rows i of k(x, x_i) alpha_ki."""

    rows: NDArray[np.float32]  # (m, d), training rows or landmarks
    kernels: tuple[Kernel, ...]
    alphas: NDArray[np.float32]  # (K, m, q)

    def __call__(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return f at rows, (n, q), block by block."""
        n, q = len(X), self.alphas.shape[2]
        result = np.zeros((n, q))
        step = max(1, BLOCK_NUMBERS // max(1, len(self.rows)))
        for start in range(0, n, step):
            block = X[start : start + step]
            for kernel, alpha in zip(self.kernels, self.alphas, strict=True):
                result[start : start + step] += kernel(block, self.rows) @ alpha
        return result
