"""Classifiers on embeddings: arrays in, classes, probabilities and outlier scores out.

How an embedding came about is not known here. Names are loaded when they are first used: what only
predicts, :mod:`cocoloss.heads.fitted`, does without scikit-learn.
"""

from typing import TYPE_CHECKING

from cocoloss._late import late_names

if TYPE_CHECKING:
    from cocoloss.heads.base import EmbeddingHead, Priors, fit_temperature
    from cocoloss.heads.centroid import CentroidHead
    from cocoloss.heads.gaussian import GaussianHead
    from cocoloss.heads.named import HEADS, make_head
    from cocoloss.heads.readout import MatrixHead, ReadoutHead

__all__ = [
    "HEADS",
    "CentroidHead",
    "EmbeddingHead",
    "GaussianHead",
    "MatrixHead",
    "Priors",
    "ReadoutHead",
    "fit_temperature",
    "make_head",
]

__getattr__, __dir__ = late_names(
    __name__,
    {
        "cocoloss.heads.base": ["EmbeddingHead", "Priors", "fit_temperature"],
        "cocoloss.heads.centroid": ["CentroidHead"],
        "cocoloss.heads.gaussian": ["GaussianHead"],
        "cocoloss.heads.named": ["HEADS", "make_head"],
        "cocoloss.heads.readout": ["MatrixHead", "ReadoutHead"],
    },
)
