"""Regression onto target points in closed form, by kernels with a learnt metric.

Knows points and weights, not classes, tables or files. Names are loaded when they are first used:
what only predicts, :mod:`cocoloss.kernels.machine`, does without scipy's solvers.
"""

from typing import TYPE_CHECKING

from cocoloss._late import late_names

if TYPE_CHECKING:
    from cocoloss.kernels.exact import RidgePath, Solution, solve
    from cocoloss.kernels.kernel import KERNELS, Kernel
    from cocoloss.kernels.landmarks import LandmarkPath, Landmarks, Sums, sums_of
    from cocoloss.kernels.leaves import find_leaf_setting, fit_leaves, grow
    from cocoloss.kernels.machine import KernelMachine
    from cocoloss.kernels.metric import learnt_metric
    from cocoloss.kernels.search import Recipe, find_recipe, fit_recipe, machine_of

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
    "find_leaf_setting",
    "find_recipe",
    "fit_leaves",
    "fit_recipe",
    "grow",
    "learnt_metric",
    "machine_of",
    "solve",
    "sums_of",
]

__getattr__, __dir__ = late_names(
    __name__,
    {
        "cocoloss.kernels.exact": ["RidgePath", "Solution", "solve"],
        "cocoloss.kernels.kernel": ["KERNELS", "Kernel"],
        "cocoloss.kernels.landmarks": ["LandmarkPath", "Landmarks", "Sums", "sums_of"],
        "cocoloss.kernels.leaves": ["find_leaf_setting", "fit_leaves", "grow"],
        "cocoloss.kernels.machine": ["KernelMachine"],
        "cocoloss.kernels.metric": ["learnt_metric"],
        "cocoloss.kernels.search": ["Recipe", "find_recipe", "fit_recipe", "machine_of"],
    },
)
