"""The evolution of an embedding: where rows and class centres lie after some epochs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MEASURES = ("cosine", "smallest_norm", "largest_norm", "dispersity", "train_balanced_accuracy")


@dataclass(frozen=True, eq=False)
class Evolution:
    """One model on one dataset.

    Attributes
    ----------
    dataset, model : str
    epochs : tuple of int
    classes : tuple of str
    labels : ndarray of shape (n,)
        Places in ``classes``.
    embeddings : ndarray of shape (n_epochs, n, q)
    centres : ndarray of shape (n_epochs, C, q)
        Of all rows, not only of those that are kept to be shown.
    measures : dict of str to ndarray of shape (n_epochs,)
        "cosine" between class centres (the largest, of more than two classes), their
        "smallest_norm" and "largest_norm", "dispersity", "train_balanced_accuracy".
    """

    dataset: str
    model: str
    epochs: tuple[int, ...]
    classes: tuple[str, ...]
    labels: NDArray[np.int64]
    embeddings: NDArray[np.float64]
    centres: NDArray[np.float64]
    measures: Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class EvolutionAnalysis:
    """The evolution of every model on every dataset."""

    runs: tuple[Evolution, ...]


def analyse_evolution(
    extras: Mapping[tuple[str, str], Mapping[str, Any]], rows: Any
) -> EvolutionAnalysis:
    """Put together what each run kept, and what was measured at its epochs.

    Parameters
    ----------
    extras : dict of (dataset, model) to dict
        With "epochs", "classes", "labels", "embeddings" and "centres".
    rows : DataFrame
        With the columns dataset, model, epoch and measures.
    """
    runs = []
    for (dataset, model), extra in sorted(extras.items()):
        epochs = tuple(int(e) for e in extra["epochs"])
        own = rows[(rows["dataset"] == dataset) & (rows["model"] == model)]
        own = own.set_index("epoch").reindex(index=epochs, columns=list(MEASURES))
        runs.append(
            Evolution(
                dataset,
                model,
                epochs,
                tuple(str(c) for c in extra["classes"]),
                np.asarray(extra["labels"], dtype=np.int64),
                np.asarray(extra["embeddings"], dtype=np.float64),
                np.asarray(extra["centres"], dtype=np.float64),
                {name: own[name].to_numpy(dtype=np.float64) for name in MEASURES},
            )
        )
    return EvolutionAnalysis(tuple(runs))
