"""Losses on embeddings, each exact, each called ``loss(embeddings, labels)``.

What gives the embeddings, and who steps along the gradients, is not known here.
"""

from cocoloss.losses.base import EmbeddingLoss
from cocoloss.losses.chunks import backward_in_chunks
from cocoloss.losses.coco import BalancedCoCoLoss, CoCoLoss
from cocoloss.losses.moments import Components
from cocoloss.losses.samplewise import CrossEntropyLoss, DotRegressionLoss

__all__ = [
    "BalancedCoCoLoss",
    "CoCoLoss",
    "Components",
    "CrossEntropyLoss",
    "DotRegressionLoss",
    "EmbeddingLoss",
    "backward_in_chunks",
]
