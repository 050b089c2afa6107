"""Classifiers on embeddings: arrays in, classes, probabilities and outlier scores out."""

from cocoloss.heads.base import EmbeddingHead, Priors
from cocoloss.heads.centroid import CentroidHead
from cocoloss.heads.gaussian import GaussianHead
from cocoloss.heads.named import HEADS, make_head
from cocoloss.heads.readout import ReadoutHead
from cocoloss.heads.temperature import fit_temperature

__all__ = [
    "HEADS",
    "CentroidHead",
    "EmbeddingHead",
    "GaussianHead",
    "Priors",
    "ReadoutHead",
    "fit_temperature",
    "make_head",
]
