"""Balanced against plain CoCo over class imbalance: the protocol of accuracy, and the class ratio.

The models are "coco-plain" and "coco-balanced", each tuned for itself, as the paper has it. Beside
them "coco-s0.25" and the like weigh the rows of a class by its share to the power of -0.25: plain
is 0, balanced is 0.5, and at 1 all classes have the same mass. "coco-balanced-printed" is balanced
without the normalisation of the plain loss.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.benchmark import accuracy
from cocoloss.benchmark.accuracy import Steps
from cocoloss.benchmark.keys import Result, TableInfo, Task, Unit

if TYPE_CHECKING:
    from cocoloss.benchmark.spec import Spec


def plan(spec: "Spec", infos: Sequence[TableInfo]) -> list[Unit]:
    """List every model on every table.

    All models of a table draw the same random numbers: the same points to begin with, the same
    first weights, the same batches. So what differs is the weight of the classes, and where the
    classes of the training rows are equally large, nothing does; the loss as printed excepted,
    which is normalised otherwise.
    """
    return [replace(unit, draws_as="any") for unit in accuracy.plan(spec, infos)]


def drive(unit: Unit, spec: "Spec", parallel: int = 1) -> Steps:
    """Tune and judge as :func:`cocoloss.benchmark.accuracy.drive` does."""
    return accuracy.drive(unit, spec, parallel)


def run(task: Task, table: Any, spec: "Spec") -> Result:
    """Compute a task of the protocol, and say how imbalanced the table is.

    NOTE[PAPER]: the improvement is "the difference in average test score across inner folds".
    The rows have the balanced accuracy on the test rows of the outer folds, and beside it
    "inner_score", the mean over the inner folds at the point that was chosen.
    """
    result = accuracy.run(task, table, spec)
    ratio = {"class_ratio": class_ratio(table.y)}
    return replace(
        result,
        measures={**result.measures, **ratio},
        rows=[row | ratio for row in result.rows],
    )


def class_ratio(y: NDArray[Any]) -> float:
    """Return how many times the rows of the smallest class the largest one has.

    NOTE[PAPER]: the "balanced ratio" of the experiment is not defined; it is the ratio by which
    the paper chooses between the losses.

    Examples
    --------
    >>> class_ratio(["a", "a", "a", "b"])
    3.0
    """
    counts = np.unique(np.asarray(y), return_counts=True)[1]
    return float(counts.max() / counts.min())
