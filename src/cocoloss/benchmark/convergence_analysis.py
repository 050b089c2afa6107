"""Early convergence: balanced accuracy and ranks after so many terms of the loss."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cocoloss.benchmark import printed
from cocoloss.benchmark.rankings import NotRanked, Ranking, rank

if TYPE_CHECKING:
    import pandas as pd

HEADS: Mapping[str, str] = {  # name -> what it is, in the order of the report
    "paper": "As in the paper: CoCo by Gaussians, the others by what they have learnt",
    "gaussian": "The same Gaussians for every loss",
    "centroid": "The same nearest class means for every loss",
}


@dataclass(frozen=True, eq=False)
class ConvergenceAnalysis:
    """Scores over the number of terms.

    Attributes
    ----------
    heads, models, datasets : tuple of str
    n_terms : tuple of int
    scores : DataFrame
        One line per head, dataset, model and n_terms: mean balanced accuracy over folds.
    means : DataFrame
        One line per head, model and n_terms: the mean over datasets, of which each model has the
        same, and ``n_datasets``.
    rankings : dict of (head, n_terms) to Ranking or NotRanked
    """

    heads: tuple[str, ...]
    models: tuple[str, ...]
    datasets: tuple[str, ...]
    n_terms: tuple[int, ...]
    scores: "pd.DataFrame"
    means: "pd.DataFrame"
    rankings: Mapping[tuple[str, int], Ranking | NotRanked]


def analyse_convergence(rows: Any, missing: str = "drop_datasets") -> ConvergenceAnalysis:
    """Compute curves and ranks.

    Parameters
    ----------
    rows : DataFrame
        With the columns dataset, model, fold, n_terms, head and balanced_accuracy.
    missing : {"drop_datasets", "worst"}
        What becomes of datasets that lack a loss, in the ranks. The means are over datasets that
        have all of them.
    """
    import pandas as pd  # noqa: PLC0415 - heavy

    needed = ["dataset", "model", "fold", "n_terms", "head", "balanced_accuracy"]
    rows = rows.reindex(columns=needed).dropna(subset=needed)
    by = ["head", "dataset", "model", "n_terms"]
    scores = rows.groupby(by, sort=False)["balanced_accuracy"].mean().reset_index()
    scores["n_terms"] = scores["n_terms"].astype(int)
    models = _in_order(rows["model"], printed.PAPER_LOSSES)
    heads = _in_order(rows["head"], tuple(HEADS))
    n_terms = tuple(sorted(int(n) for n in rows["n_terms"].unique()))
    n_cells = scores.groupby("dataset")["model"].size()
    full = n_cells.index[n_cells == len(heads) * len(models) * len(n_terms)]
    complete = scores[scores["dataset"].isin(full)]
    means = complete.groupby(["head", "model", "n_terms"], sort=False)["balanced_accuracy"]
    groups = dict(iter(rows.groupby(["head", "n_terms"], sort=False)))
    empty = pd.DataFrame(columns=needed)
    return ConvergenceAnalysis(
        heads=heads,
        models=models,
        datasets=tuple(sorted(scores["dataset"].unique())),
        n_terms=n_terms,
        scores=scores,
        means=means.agg(balanced_accuracy="mean", n_datasets="size").reset_index(),
        rankings={
            (head, n): rank(
                groups.get((head, n), empty),
                models,
                name=f"{head}-{n}",
                title=f"{n} terms",
                missing=missing,
                printed=printed.CONVERGENCE.get(n) if head == "paper" else None,
                rope=None,
                by_pairs=False,
            )
            for head in heads
            for n in n_terms
        },
    )


def _in_order(names: Any, known: tuple[str, ...]) -> tuple[str, ...]:
    """Return names without repeats: known ones in their order, then the others."""
    found = list(dict.fromkeys(names))
    return (*(n for n in known if n in found), *sorted(n for n in found if n not in known))
