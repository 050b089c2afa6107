"""How long a fit takes, roughly: what a plan says before anything has run.

Fitted to what the tables of results/accuracy-lite.parquet have taken on one core, over the search
spaces. For one model and one table right within a factor of a few: the largest network of a space
takes hundreds of times as long as the smallest.
"""

from collections.abc import Callable

from cocoloss.benchmark.keys import TableInfo
from cocoloss.benchmark.model_kind import ModelKind

OWN_MODEL = 0.5  # seconds: anybody's guess


def _problems(info: TableInfo) -> int:
    """Return the binary problems that a peer solves: one for two classes, else one per class."""
    return 1 if info.n_classes == 2 else info.n_classes


def _svm(rows: float, info: TableInfo) -> float:
    return 0.06 + 3e-8 * rows**2 * (1 + info.n_columns / 50) * _problems(info)


def _forest(rows: float, info: TableInfo) -> float:
    return 1.7 + 2.4e-5 * rows * info.n_columns


def _boosting(rows: float, info: TableInfo) -> float:
    tree = 1.3e-3 + 2e-5 * info.n_columns + 2e-9 * rows * info.n_columns
    return 100 * _problems(info) * tree


PEERS: dict[str, Callable[[float, TableInfo], float]] = {
    "ksvm": _svm,
    "rf": _forest,
    "hgb": _boosting,
}


def seconds_of_fit(
    name: str, kind: ModelKind, info: TableInfo, epochs: int, rows: float, *, n_folds: int
) -> float:
    """Return the seconds of fitting and judging a model on some folds.

    Parameters
    ----------
    name : str
        Of the model.
    kind : ModelKind
    info : TableInfo
        Of the table.
    epochs : int
        Of the networks.
    rows : float
        Training rows of a fold.
    n_folds : int
        How many folds.

    Examples
    --------
    >>> from cocoloss.benchmark.models import MODELS
    >>> credit = TableInfo("credit", 1000, 20, 2, "")
    >>> 0.5 < seconds_of_fit("rf", MODELS["rf"], credit, 500, 900, n_folds=1) < 5
    True
    """
    if kind.neural:
        epochs_of_all = epochs if kind.takes_epochs else 100 * 6  # of six members
        rate = 8e-6 if kind.takes_epochs else 2e-6
        return 0.2 + rate * (1 + info.n_columns / 1000) * rows * epochs_of_all * n_folds
    estimate = PEERS.get(name.removesuffix("-w"))
    return n_folds * (OWN_MODEL if estimate is None else estimate(rows, info))
