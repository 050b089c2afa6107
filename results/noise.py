"""How far two runs of the very same model lie apart."""

import pandas as pd
from cocoloss.benchmark.imbalance_analysis import BALANCED, PLAIN
from shortcuts import fold_scores

from cocoloss.benchmark.findings import Findings
from cocoloss.estimators.classifiers import BALANCED_FROM
from cocoloss.report.document import Cell, Grid, counted, fixed

AGAIN = "coco"  # plain below this class ratio, balanced from it on


def noise_grid(accuracy: Findings, imbalance: Findings) -> Grid:
    """Return how much the scores of CoCo differ between two experiments that run it alike.

    The folds are the same; the points of the tuning, the first weights and the batches are drawn
    anew.
    """
    again, first = (
        fold_scores(findings).mean(axis=1).unstack("model") for findings in (accuracy, imbalance)
    )
    first = first.reindex(columns=[PLAIN, BALANCED])
    rows = imbalance.rows.reindex(columns=["dataset", "class_ratio"])
    ratios = rows.groupby("dataset")["class_ratio"].first().reindex(first.index)
    same = first[PLAIN].where(ratios < BALANCED_FROM, first[BALANCED])
    apart = again.reindex(index=first.index, columns=[AGAIN])[AGAIN] - same
    groups = {
        f"below {BALANCED_FROM}: {PLAIN}": apart[ratios < BALANCED_FROM],
        f"{BALANCED_FROM} or more: {BALANCED}": apart[ratios >= BALANCED_FROM],
        "all": apart[ratios.notna()],
    }
    return Grid(
        "Two runs of the same model",
        (
            "class ratio",
            "datasets",
            "mean difference",
            "standard deviation",
            "mean absolute difference",
        ),
        tuple((Cell(label), *_cells(group.dropna())) for label, group in groups.items()),
        caption=f"{AGAIN} of {accuracy.name} minus the model of {imbalance.name} that it is the "
        f"same as: balanced accuracy, mean over the same outer folds, with random numbers of its "
        f"own for tuning and training. Means and the standard deviation are over datasets.",
    )


def _cells(apart: pd.Series) -> tuple[Cell, ...]:
    """Return the number of differences, their mean, standard deviation and mean absolute value."""
    mean = Cell(f"{apart.mean():+.4f}", float(apart.mean())) if len(apart) else fixed(None, 4)
    return (
        counted(len(apart)),
        mean,
        fixed(float(apart.std(ddof=1)), 4),
        fixed(float(apart.abs().mean()), 4),
    )
