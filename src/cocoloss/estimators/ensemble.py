"""A trained stack of networks as plain arrays: predicting needs numpy and nothing else.

In float64, so that a row gets the same answer whatever other rows it comes with: float32 products
round differently in blocks of different sizes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.estimators.threads import threads_for

BLOCK_NUMBERS = 2**17  # activations of one block of rows: 1 MB, so that layers meet in the cache
TINY_NORM = 1e-12  # that of cocoloss.networks, which needs torch


@dataclass
class Ensemble:
    """K multilayer perceptrons with ReLU units.

    Attributes
    ----------
    layer_sizes : tuple of int
    parameters : float32 array of shape (K, P)
        Weights and biases in the order of :class:`cocoloss.networks.LockstepMLP`.
    output : {"identity", "tanh"}
    normalize : bool
    linear_hidden : bool
        Whether the last hidden layer has no ReLU.
    """

    layer_sizes: tuple[int, ...]
    parameters: NDArray[np.float32]
    output: str = "identity"
    normalize: bool = False
    linear_hidden: bool = False

    @property
    def n_models(self) -> int:
        """Number of networks K."""
        return len(self.parameters)

    def layers(self, k: int) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Yield weights (in, out) and biases (out,) of network ``k``."""
        start = 0
        for n_in, n_out in pairwise(self.layer_sizes):
            stop = start + n_in * n_out
            yield (
                self.parameters[k, start:stop].reshape(n_in, n_out).astype(np.float64),
                self.parameters[k, stop : stop + n_out].astype(np.float64),
            )
            start = stop + n_out

    def has_relu(self, layer: int) -> bool:
        """Return whether a layer, from 0, has ReLU units."""
        n_layers = len(self.layer_sizes) - 1
        return layer < (n_layers - 2 if self.linear_hidden else n_layers - 1)

    def embed(self, X: NDArray[np.float32], *, hidden: bool = False) -> NDArray[np.float64]:
        """Return what each network makes of the rows, (K, n, q).

        Parameters
        ----------
        X : float32 array of shape (n, d)
        hidden : bool
            Whether to return the last hidden layer instead of the output.
        """
        width = self.layer_sizes[-2] if hidden else self.layer_sizes[-1]
        result = np.empty((self.n_models, len(X), width))
        step = max(1, BLOCK_NUMBERS // max(self.layer_sizes))
        work = step * max(n_in * n_out for n_in, n_out in pairwise(self.layer_sizes))
        with threads_for(work):
            for k in range(self.n_models):
                layers = list(self.layers(k))
                for start in range(0, len(X), step):
                    rows = X[start : start + step].astype(np.float64)
                    result[k, start : start + step] = self._forward(layers, rows, hidden=hidden)
        return result

    def _forward(
        self, layers: list[tuple[Any, Any]], a: NDArray[np.float64], *, hidden: bool
    ) -> NDArray[np.float64]:
        for layer, (weight, bias) in enumerate(layers[:-1]):
            a = a @ weight
            a += bias
            if self.has_relu(layer):
                np.maximum(a, 0, out=a)
        if hidden:
            return a
        weight, bias = layers[-1]
        a = a @ weight
        a += bias
        if self.output == "tanh":
            np.tanh(a, out=a)
        return normalized(a) if self.normalize else a


def normalized(embeddings: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide embeddings (..., q) by their norms, in place."""
    norms = np.sqrt(np.einsum("...q,...q->...", embeddings, embeddings))[..., None]
    embeddings /= np.maximum(norms, TINY_NORM)
    return embeddings
