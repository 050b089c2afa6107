"""The objectives of networks, under the name by which estimators are told of them."""

from cocoloss.fitting.objective import CoCo, CrossEntropy, DotRegression, Objective

__all__ = ["CoCo", "CrossEntropy", "DotRegression", "Objective"]
