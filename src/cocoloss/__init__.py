"""Geometric classification: collapse each class to a point, contrast the classes to a simplex.

Names are loaded when they are first used, so that ``import cocoloss`` does not import torch.
"""

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from cocoloss.losses import (
        BalancedCoCoLoss,
        CoCoLoss,
        CrossEntropyLoss,
        DotRegressionLoss,
        backward_in_chunks,
    )

_HOME = {
    "BalancedCoCoLoss": "cocoloss.losses",
    "CoCoLoss": "cocoloss.losses",
    "CrossEntropyLoss": "cocoloss.losses",
    "DotRegressionLoss": "cocoloss.losses",
    "backward_in_chunks": "cocoloss.losses",
}
_STAGES = ("exceptions", "geometry", "losses", "metrics")

__all__ = [
    "BalancedCoCoLoss",
    "CoCoLoss",
    "CrossEntropyLoss",
    "DotRegressionLoss",
    "__version__",
    "backward_in_chunks",
]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _STAGES:
        return importlib.import_module(f"cocoloss.{name}")
    raise AttributeError(f"module 'cocoloss' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_STAGES])
