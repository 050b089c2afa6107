"""Classifiers and a regressor for tables: scikit-learn outside, kernels and networks inside.

Which columns a table has, what a loss is and how a head learns is for other stages to know. Names
are loaded when they are first used: predicting from a model file does without scikit-learn.
"""

from typing import TYPE_CHECKING

from cocoloss._late import late_names

if TYPE_CHECKING:
    from cocoloss.estimators.classifiers import (
        CoCoClassifier,
        CoCoOrdinalClassifier,
        CrossEntropyClassifier,
        DotRegressionClassifier,
        ObjectiveClassifier,
    )
    from cocoloss.estimators.cross_validate import cross_validate_lockstep
    from cocoloss.estimators.model_file import load, load_model
    from cocoloss.estimators.regressor import CoCoRegressor
    from cocoloss.estimators.row_reduction import reduce_rows

__all__ = [
    "CoCoClassifier",
    "CoCoOrdinalClassifier",
    "CoCoRegressor",
    "CrossEntropyClassifier",
    "DotRegressionClassifier",
    "ObjectiveClassifier",
    "cross_validate_lockstep",
    "load",
    "load_model",
    "reduce_rows",
]

__getattr__, __dir__ = late_names(
    __name__,
    {
        "cocoloss.estimators.classifiers": [
            "CoCoClassifier",
            "CoCoOrdinalClassifier",
            "CrossEntropyClassifier",
            "DotRegressionClassifier",
            "ObjectiveClassifier",
        ],
        "cocoloss.estimators.cross_validate": ["cross_validate_lockstep"],
        "cocoloss.estimators.model_file": ["load", "load_model"],
        "cocoloss.estimators.regressor": ["CoCoRegressor"],
        "cocoloss.estimators.row_reduction": ["reduce_rows"],
    },
)
