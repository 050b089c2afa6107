"""Model files: interim, on the archive of before; safetensors come next."""

import os

import numpy as np

from cocoloss.estimators.answers import HiddenLayerAnswers
from cocoloss.estimators.model import Ensemble, FittedModel
from cocoloss.estimators.saved import load_answers


def load_model(path: str | os.PathLike[str]) -> FittedModel:
    """Read a model file; neither scikit-learn nor torch is imported."""
    old = load_answers(path)
    logits = isinstance(old, HiddenLayerAnswers)
    networks = Ensemble(
        old.layer_sizes_, old.parameters_, old.output, old.normalize_, old.linear_hidden_, logits
    )
    prior = np.full(len(old.classes_), 1 / len(old.classes_))
    return FittedModel(
        old.classes_, prior, old.preprocessor_, networks, tuple(old.heads_), old.reads_outputs_
    )
