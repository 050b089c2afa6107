"""Training in lockstep: the loop, the optimiser, early stopping, and who listens.

No loss, network or head is known here by name.
"""

from cocoloss.training.trainer import (
    BatchSampler,
    Callback,
    Epoch,
    FlatAdamW,
    Outcome,
    ProgressBar,
    Schedule,
    TrainingData,
    train,
)

__all__ = [
    "BatchSampler",
    "Callback",
    "Epoch",
    "FlatAdamW",
    "Outcome",
    "ProgressBar",
    "Schedule",
    "TrainingData",
    "train",
]
