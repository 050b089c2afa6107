"""Folds of a benchmark: those of scikit-learn, as others have them, where it has any."""

import warnings
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from cocoloss.exceptions import CoCoError
from cocoloss.tables.splits import Fold
from cocoloss.tables.splits import stratified_folds as deal

__all__ = ["Fold", "stratified_folds"]


def stratified_folds(y: Any, n_folds: int, seed: int) -> list[Fold]:
    """Split rows into folds with the class shares of the whole, shuffled.

    A class of fewer rows than folds is not in every test part; a class of one row is learnt in
    all folds but one, and judged in that one.

    Parameters
    ----------
    y : array of shape (n,)
        Classes.
    n_folds : int
        How many.
    seed : int
        Of the shuffling.

    Raises
    ------
    CoCoError
        If there are fewer rows than folds.

    Examples
    --------
    >>> folds = stratified_folds(["a", "b"] * 6, 3, seed=0)
    >>> [len(fold.test) for fold in folds]
    [4, 4, 4]
    """
    labels = np.unique(np.asarray(y), return_inverse=True)[1]
    if len(labels) < n_folds:
        raise CoCoError(f"{len(labels)} rows cannot be split into {n_folds} folds; ask for fewer")
    if np.bincount(labels).max() < n_folds:  # which scikit-learn refuses
        return deal(labels, n_folds, seed)
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")  # what the docstring says
        return [Fold(train, test) for train, test in splitter.split(labels[:, None], labels)]
