"""What becomes of models that have no result on some datasets: never a silent NaN."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from cocoloss._checks import check_option
from cocoloss.exceptions import CoCoError
from cocoloss.stats.tables import ScoreTable

SHOWN = 5  # cells named in a message


@dataclass(frozen=True)
class CompleteTable:
    """A table without gaps, and what was done to make it so.

    Attributes
    ----------
    table : ScoreTable
        Its scores hold no NaN; its folds may, for models that are filled in.
    dropped : tuple of str
        Datasets that were left out.
    filled : tuple of (dataset, model)
        Cells without a result that now hold the worst of all scores, which is infinite.
    """

    table: ScoreTable
    dropped: tuple[str, ...] = ()
    filled: tuple[tuple[str, str], ...] = ()


def complete(
    table: ScoreTable, policy: str = "raise", *, higher_is_better: bool = True
) -> CompleteTable:
    """Apply a policy for missing results.

    Parameters
    ----------
    table : ScoreTable
        With NaN where there is no result.
    policy : {"raise", "drop_datasets", "worst"}
        - "raise": refuse, and name the cells;
        - "drop_datasets": compare on the datasets that every model has a result on;
        - "worst": a model without a result comes last on that dataset, behind all that have one.
    higher_is_better : bool
        Whether a large score is a good one.

    Raises
    ------
    CoCoError
        If results are missing and the policy does not allow it, or leaves too little.

    Examples
    --------
    >>> from cocoloss.stats import complete, read_scores
    >>> table = read_scores({"a": [0.9, 0.8, 0.7], "b": [0.7, None, 0.6]})
    >>> complete(table, "drop_datasets").dropped
    ('1',)
    """
    check_option(policy, "missing", POLICIES)
    missing = np.isnan(table.scores)
    if not missing.any():
        return CompleteTable(table)
    return POLICIES[policy](table, missing, -np.inf if higher_is_better else np.inf)


def _refuse(table: ScoreTable, missing: NDArray[np.bool_], _worst: float) -> CompleteTable:
    cells = _cells(table, missing)
    shown = "; ".join(
        f"{model!r} on {dataset!r}{_folds_missing(table, dataset, model)}"
        for dataset, model in cells[:SHOWN]
    )
    more = f" and {len(cells) - SHOWN} more" if len(cells) > SHOWN else ""
    what = "1 result is" if len(cells) == 1 else f"{len(cells)} results are"
    raise CoCoError(
        f"{what} missing: {shown}{more}. Run what is missing, or choose "
        f"missing='drop_datasets' (compare on complete datasets only) or missing='worst' (a model "
        f"without a result comes last)"
    )


def _folds_missing(table: ScoreTable, dataset: str, model: str) -> str:
    """Say how many folds a result lacks, if it has some."""
    if table.folds is None:
        return ""
    folds = table.folds[table.datasets.index(dataset)][:, table.models.index(model)]
    n_missing = int(np.isnan(folds).sum())
    return f" ({n_missing} of {len(folds)} folds)" if n_missing < len(folds) else ""


def _drop(table: ScoreTable, missing: NDArray[np.bool_], _worst: float) -> CompleteTable:
    incomplete: NDArray[np.bool_] = np.asarray(missing.any(axis=1))
    if np.sum(~incomplete) < 2:
        worst = int(missing.sum(axis=0).argmax())
        raise CoCoError(
            f"{int(incomplete.sum())} of {len(incomplete)} datasets lack the result of some model, "
            f"which leaves too few to compare on; leave out the model that lacks most, "
            f"{table.models[worst]!r} ({int(missing[:, worst].sum())} missing), or choose "
            f"missing='worst' (a model without a result comes last)"
        )
    dropped = tuple(table.datasets[i] for i in np.flatnonzero(incomplete))
    return CompleteTable(table.rows(~incomplete), dropped=dropped)


def _fill(table: ScoreTable, missing: NDArray[np.bool_], worst: float) -> CompleteTable:
    for axis, names, what in ((0, table.models, "model"), (1, table.datasets, "dataset")):
        empty = missing.all(axis=axis)
        if empty.any():
            raise CoCoError(f"{what} {names[int(empty.argmax())]!r} has no result; leave it out")
    filled = replace(table, scores=np.where(missing, worst, table.scores))
    return CompleteTable(filled, filled=tuple(_cells(table, missing)))


def _cells(table: ScoreTable, missing: NDArray[np.bool_]) -> list[tuple[str, str]]:
    return [(table.datasets[i], table.models[j]) for i, j in np.argwhere(missing)]


POLICIES: Mapping[str, Callable[[ScoreTable, NDArray[np.bool_], float], CompleteTable]] = (
    MappingProxyType({"raise": _refuse, "drop_datasets": _drop, "worst": _fill})
)
