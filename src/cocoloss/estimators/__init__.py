"""Classifiers for tables: scikit-learn outside, networks in lockstep inside.

Names are loaded when they are first used: what only answers does without scikit-learn.
"""

from typing import TYPE_CHECKING

from cocoloss._late import late_names

if TYPE_CHECKING:
    from cocoloss.estimators.classifiers import (
        CoCoClassifier,
        CrossEntropyClassifier,
        DotRegressionClassifier,
    )
    from cocoloss.estimators.cross_validate import cross_validate_lockstep
    from cocoloss.estimators.model_file import load

__all__ = [
    "CoCoClassifier",
    "CrossEntropyClassifier",
    "DotRegressionClassifier",
    "cross_validate_lockstep",
    "load",
]

__getattr__, __dir__ = late_names(
    __name__,
    {
        "cocoloss.estimators.classifiers": [
            "CoCoClassifier",
            "CrossEntropyClassifier",
            "DotRegressionClassifier",
        ],
        "cocoloss.estimators.cross_validate": ["cross_validate_lockstep"],
        "cocoloss.estimators.model_file": ["load"],
    },
)
