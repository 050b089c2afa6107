"""Rows that a member of an ensemble does not train on: to stop in time and to calibrate."""

import numpy as np
from numpy.typing import NDArray

# Fewer held-out rows than this say too little about when to stop, or how sure to be.
FEWEST_HELD_OUT = 20


def split_held_out(
    labels: NDArray[np.int64], fraction: float, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows to train on and rows to hold out, with the class shares of both alike.

    Every class keeps at least two thirds of its rows, and classes of fewer than three rows keep
    all. If too few rows would be held out, none are.
    """
    order = generator.permutation(len(labels))
    held_out = []
    for c in np.unique(labels):
        members = order[labels[order] == c]
        # A random remainder: rare classes are held out now and then instead of never.
        share = len(members) * fraction + generator.random()
        held_out.append(members[: min(int(share), len(members) // 3)])
    chosen = np.sort(np.concatenate(held_out))
    if len(chosen) < FEWEST_HELD_OUT:
        return np.arange(len(labels)), np.empty(0, dtype=np.int64)
    return np.setdiff1d(np.arange(len(labels)), chosen), chosen
