"""Classification and regression for tables without tuning, and the CoCo loss for PyTorch.

Names are loaded when they are first used, so that ``import cocoloss`` does not import torch.
"""

from typing import TYPE_CHECKING

from cocoloss._late import late_names

__version__ = "0.2.0"

if TYPE_CHECKING:
    from cocoloss.estimators import CoCoClassifier as CoCoClassifier
    from cocoloss.estimators import CoCoOrdinalClassifier as CoCoOrdinalClassifier
    from cocoloss.estimators import CoCoRegressor as CoCoRegressor
    from cocoloss.estimators import CrossEntropyClassifier as CrossEntropyClassifier
    from cocoloss.estimators import DotRegressionClassifier as DotRegressionClassifier
    from cocoloss.estimators import cross_validate_lockstep as cross_validate_lockstep
    from cocoloss.estimators import load as load
    from cocoloss.estimators import reduce_rows as reduce_rows
    from cocoloss.losses import BalancedCoCoLoss as BalancedCoCoLoss
    from cocoloss.losses import CoCoLoss as CoCoLoss
    from cocoloss.losses import CrossEntropyLoss as CrossEntropyLoss
    from cocoloss.losses import DotRegressionLoss as DotRegressionLoss
    from cocoloss.losses import backward_in_chunks as backward_in_chunks

_NAMES = {
    "cocoloss.estimators": (
        "CoCoClassifier",
        "CoCoOrdinalClassifier",
        "CoCoRegressor",
        "CrossEntropyClassifier",
        "DotRegressionClassifier",
        "cross_validate_lockstep",
        "load",
        "reduce_rows",
    ),
    "cocoloss.losses": (
        "BalancedCoCoLoss",
        "CoCoLoss",
        "CrossEntropyLoss",
        "DotRegressionLoss",
        "backward_in_chunks",
    ),
}
_STAGES = (
    *(
        "exceptions",
        "files",
        "geometry",
        "tables",
        "heads",
        "losses",
        "metrics",
        "networks",
        "stats",
    ),
    *("columns", "training", "fitting", "estimators", "recording", "benchmark", "report"),
)

__all__ = ["__version__", *(name for names in _NAMES.values() for name in names)]  # noqa: PLE0604 - a list of names, told once

__getattr__, _names = late_names(__name__, _NAMES, stages=_STAGES)


def __dir__() -> list[str]:
    return sorted(["__version__", *_names()])
