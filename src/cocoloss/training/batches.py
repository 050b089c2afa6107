"""Which rows a model sees when: every epoch a new order, drawn at once, from its own generator."""

import numpy as np
from numpy.typing import NDArray

# From this many samples per class on, a batch holds pairs of one class anyway.
ENOUGH_PER_CLASS = 4


class BatchSampler:
    """Orders of the training rows of one model.

    Parameters
    ----------
    rows : array of int
        The rows that the model trains on.
    labels : array of int
        Class of each of these rows.
    generator : numpy generator
        Of this model alone, so that it sees the same batches in a stack as it would alone.
    in_pairs : bool, default=False
        Whether rows travel in pairs of one class: a loss that learns from pairs would find
        hardly any in a small batch of many classes.

    Examples
    --------
    >>> labels = np.arange(100) % 50
    >>> sampler = BatchSampler(np.arange(100), labels, np.random.default_rng(0), in_pairs=True)
    >>> batch = sampler.draw()[:10]
    >>> len(set(labels[batch]))  # ten samples of fifty classes, and still each has a partner
    5
    """

    def __init__(
        self,
        rows: NDArray[np.int64],
        labels: NDArray[np.int64],
        generator: np.random.Generator,
        *,
        in_pairs: bool = False,
    ) -> None:
        self.rows, self.labels, self.generator = rows, labels, generator
        self.in_pairs = in_pairs

    def draw(self) -> NDArray[np.int64]:
        """Return the rows in a new order; each occurs once."""
        order = self.generator.permutation(len(self.rows))
        if self.in_pairs:
            order = self._side_by_side(order)
        return self.rows[order]

    def _side_by_side(self, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """Bring rows of a class together in twos, and shuffle the twos."""
        by_class = order[np.argsort(self.labels[order], kind="stable")]
        labels = self.labels[by_class]
        first = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])  # where a class begins
        rank = np.arange(len(labels)) - np.repeat(first, np.diff(np.r_[first, len(labels)]))
        starts_pair = rank % 2 == 0
        pair = np.cumsum(starts_pair) - 1
        place = self.generator.permutation(pair[-1] + 1)
        return by_class[np.argsort(place[pair], kind="stable")]
