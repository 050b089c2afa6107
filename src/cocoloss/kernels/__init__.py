"""Regression onto target points in closed form, by kernels with a learnt metric.

Knows points and weights, not classes, tables or files.
"""

from cocoloss.kernels.exact import RidgePath, Solution, solve
from cocoloss.kernels.kernel import KERNELS, Kernel
from cocoloss.kernels.landmarks import LandmarkPath, Landmarks, Sums
from cocoloss.kernels.leaves import fit_leaves
from cocoloss.kernels.machine import KernelMachine
from cocoloss.kernels.metric import learnt_metric
from cocoloss.kernels.search import Recipe, fit_recipe, machine_of, search

__all__ = [
    "KERNELS",
    "Kernel",
    "KernelMachine",
    "LandmarkPath",
    "Landmarks",
    "Recipe",
    "RidgePath",
    "Solution",
    "Sums",
    "fit_leaves",
    "fit_recipe",
    "learnt_metric",
    "machine_of",
    "search",
    "solve",
]
