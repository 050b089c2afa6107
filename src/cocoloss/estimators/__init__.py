"""Classifiers for tables: scikit-learn outside, networks in lockstep inside."""

from cocoloss.estimators.classifiers import (
    CoCoClassifier,
    CrossEntropyClassifier,
    DotRegressionClassifier,
)
from cocoloss.estimators.lockstep import cross_validate_lockstep
from cocoloss.estimators.saving import load

__all__ = [
    "CoCoClassifier",
    "CrossEntropyClassifier",
    "DotRegressionClassifier",
    "cross_validate_lockstep",
    "load",
]
