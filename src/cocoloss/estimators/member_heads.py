"""A head for each member of an ensemble, fitted on its training rows, calibrated on the others."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import has_fit_parameter

from cocoloss.estimators.ensemble import BLOCK_NUMBERS
from cocoloss.estimators.jobs import Job
from cocoloss.estimators.threads import threads_for
from cocoloss.exceptions import CoCoError
from cocoloss.heads import EmbeddingHead


def fit_heads(
    make: Callable[[], Any],
    features: NDArray[Any],
    job: Job,
    weights: NDArray[Any],
) -> list[Any]:
    """Return a fitted head for each member.

    Parameters
    ----------
    make : callable
        Makes an unfitted head.
    features : array of shape (K, n, q)
        What the heads look at.
    job : Job
        What was trained.
    weights : array of shape (n,)
        What each row weighs; a head gets them only if they differ.

    Raises
    ------
    CoCoError
        If they differ and the head takes none.
    """
    even = bool(np.all(weights == weights[0]))
    heads = []
    with threads_for(BLOCK_NUMBERS * features.shape[-1]):
        for h, train, held_out in zip(features, job.train, job.held_out, strict=True):
            head = make()
            if even:
                head.fit(h[train], job.labels[train])
            else:
                _check_takes_weights(head)
                head.fit(h[train], job.labels[train], sample_weight=weights[train])
            if len(held_out) and isinstance(head, EmbeddingHead):
                head.calibrate(h[held_out], job.labels[held_out], sample_weight=weights[held_out])
            heads.append(head)
    return heads


def _check_takes_weights(head: Any) -> None:
    if not has_fit_parameter(head, "sample_weight"):
        raise CoCoError(
            f"the rows have different weights, but the head {type(head).__name__} takes no "
            f"sample_weight; give whole numbers, which are numbers of copies, or another head"
        )
