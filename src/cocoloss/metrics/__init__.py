"""How far an embedding has contracted its classes and contrasted them: arrays in, numbers out.

Neither the network that made the embedding nor its loss is known here.
"""

from cocoloss.metrics.accuracy import balanced_accuracy
from cocoloss.metrics.collapse import (
    NORMS,
    NeuralCollapse,
    dispersity,
    dispersity_of,
    neural_collapse,
)
from cocoloss.metrics.scatter import ClassMoments

__all__ = [
    "NORMS",
    "ClassMoments",
    "NeuralCollapse",
    "balanced_accuracy",
    "dispersity",
    "dispersity_of",
    "neural_collapse",
]
