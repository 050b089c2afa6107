"""Training in lockstep: batches, the optimiser, the loop, and who listens to it."""

from cocoloss.training.batches import BatchSampler
from cocoloss.training.callbacks import Callback, Epoch, ProgressBar
from cocoloss.training.keeping import Outcome
from cocoloss.training.optimiser import FlatAdamW
from cocoloss.training.trainer import Schedule, TrainingData, train

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
