"""From the rows of a benchmark to what its report shows: every number, none of the layout."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cocoloss.benchmark import printed
from cocoloss.benchmark.convergence_analysis import ConvergenceAnalysis, analyse_convergence
from cocoloss.benchmark.evolution_analysis import EvolutionAnalysis, analyse_evolution
from cocoloss.benchmark.findings import Findings
from cocoloss.benchmark.imbalance_analysis import Gains, analyse_gains
from cocoloss.benchmark.leads import Leads
from cocoloss.benchmark.rankings import NotRanked, Ranking, rank

if TYPE_CHECKING:
    import pandas as pd

# Models that count all classes alike; comparing these with the others compares the weights.
WEIGHTED = ("coco-default", "coco-w", "dr-w", "ce-w", "ksvm-w", "rf-w", "hgb-w")
ON_THE_SPHERE = "dot regression on the sphere"


@dataclass(frozen=True, eq=False)
class AccuracyAnalysis:
    """Models judged over folds and datasets.

    Attributes
    ----------
    rankings : tuple of Ranking or NotRanked
        By balanced accuracy: the paper's models, the class-weighted ones, and all.
    dispersity : tuple of Ranking or NotRanked
        By dispersity on test rows, of models that have an embedding.
    scores, spreads : DataFrame, datasets x models
        Mean and standard deviation of the balanced accuracy over the folds that there are.
    partial : DataFrame, datasets x models
        Where a model lacks some of the folds; there it is not compared with others.
    measures : DataFrame
        One line per model: means of all measures over the datasets that it has all folds of, and
        ``n_datasets``, how many these are.
    leads : Leads or None
        On which tables the reference of the first ranking is better than each other model; None
        if there is no ranking.
    gains : tuple of Gains
        Of the models over plain CoCo, by the class ratio; of imbalance experiments only.
    """

    rankings: tuple[Ranking | NotRanked, ...]
    dispersity: tuple[Ranking | NotRanked, ...]
    scores: "pd.DataFrame"
    spreads: "pd.DataFrame"
    partial: "pd.DataFrame"
    measures: "pd.DataFrame"
    leads: Leads | None
    gains: tuple[Gains, ...] = ()


Analysis = AccuracyAnalysis | ConvergenceAnalysis | EvolutionAnalysis


def analyse(findings: Findings, missing: str = "drop_datasets") -> Analysis:
    """Compute what the report of a benchmark shows.

    Parameters
    ----------
    findings : Findings
        From :func:`cocoloss.benchmark.findings.read_findings`.
    missing : {"drop_datasets", "worst"}
        What becomes of datasets that lack the result of a model.
    """
    return ANALYSES.get(findings.kind, analyse_accuracy)(findings, missing)


def analyse_accuracy(findings: Findings, missing: str = "drop_datasets") -> AccuracyAnalysis:
    """Rank models by balanced accuracy and dispersity."""
    rows = _measured(findings.rows)
    names = list(findings.spec["models"]["names"])
    models = [*names, *(m for m in dict.fromkeys(rows["model"]) if m not in names)]
    cells = rows.groupby(["dataset", "model"], sort=False)["balanced_accuracy"]
    with_results = [model for model in models if (rows["model"] == model).any()]
    scores = cells.mean().unstack().reindex(columns=with_results).sort_index()
    partial = _partial(cells, scores)
    rankings = _rankings(rows, models, missing)
    reference = next((r.reference for r in rankings if isinstance(r, Ranking)), None)
    whole = scores.mask(partial)
    return AccuracyAnalysis(
        rankings=rankings,
        dispersity=_dispersity(rows, models, missing),
        scores=scores,
        spreads=cells.std().unstack().reindex(index=scores.index, columns=scores.columns),
        partial=partial,
        measures=_measures(rows, scores.notna() & ~partial),
        leads=None if reference is None else Leads(reference, whole, findings.characters),
        gains=analyse_gains(rows, models) if findings.kind == "imbalance" else (),
    )


def _measured(rows: Any) -> Any:
    """Return the rows with every measure that the report asks for; NaN if there is none."""
    lacking = [n for n in ("balanced_accuracy", "dispersity") if n not in rows.columns]
    return rows.assign(**dict.fromkeys(lacking, float("nan")))


def _rankings(rows: Any, models: list[str], missing: str) -> tuple[Ranking | NotRanked, ...]:
    paper = printed.PAPER_MODELS
    groups = {
        "paper": ("The paper's models", [m for m in paper if m in models]),
        "sphere": (f"The paper's models, {ON_THE_SPHERE}", _on_the_sphere(paper, models)),
        "weighted": ("Models that count classes alike", [m for m in WEIGHTED if m in models]),
        "all": ("All models", models),
    }
    found = []
    for name, (title, members) in groups.items():
        if name == "all" or (len(members) > 1 and set(members) != set(models)):
            theirs = printed.BALANCED_ACCURACY
            found.append(
                rank(rows, members, name=name, title=title, missing=missing, printed=theirs)
            )
    return tuple(found)


def _on_the_sphere(names: Sequence[str], there: Sequence[str]) -> list[str]:
    """Return those that there are, with normalised dot regression in place of the printed one.

    As printed, dot regression is at a loss with three classes or more (benchmark/models.py).
    """
    fairer = ["dr-sphere" if name == "dr" else name for name in names]
    return [name for name in fairer if name in there] if "dr-sphere" in there else []


def _dispersity(rows: Any, models: list[str], missing: str) -> tuple[Ranking | NotRanked, ...]:
    embedded = set(rows.loc[rows["dispersity"].notna(), "model"])
    there = [model for model in models if model in embedded]
    if len(there) < 2:
        return ()
    paper = printed.PAPER_LOSSES
    groups = {
        "dispersity-paper": ("The paper's losses", [m for m in paper if m in there]),
        "dispersity-sphere": (f"The paper's losses, {ON_THE_SPHERE}", _on_the_sphere(paper, there)),
        "dispersity-all": ("All models with an embedding", there),
    }
    return tuple(
        rank(
            rows,
            members,
            name=name,
            title=title,
            measure="dispersity",
            higher_is_better=False,
            missing=missing,
            printed=printed.DISPERSITY,
            rope=None,
        )
        for name, (title, members) in groups.items()
        if name == "dispersity-all" or (len(members) > 1 and set(members) != set(there))
    )


def _partial(cells: Any, scores: Any) -> Any:
    """Return where a model has fewer folds than there are of the dataset, but some."""
    n_folds = cells.count().unstack().reindex(index=scores.index, columns=scores.columns)
    return (n_folds > 0) & n_folds.lt(n_folds.max(axis=1), axis=0)


def _measures(rows: Any, whole: Any) -> Any:
    """Return means over folds, then over the datasets that a model has as a whole."""
    kept = rows.select_dtypes("number").columns.difference(["fold", "task_seconds", "class_ratio"])
    per_dataset = rows.groupby(["model", "dataset"], sort=False)[list(kept)].mean()
    there = [(m, d) for m in whole.columns for d in whole.index[whole[m]]]
    per_dataset = per_dataset[per_dataset.index.isin(there)]
    means = per_dataset.groupby("model", sort=False).mean().reindex(whole.columns)
    return means.assign(n_datasets=whole.sum())


ANALYSES: Mapping[str, Callable[[Findings, str], Analysis]] = {
    "accuracy": analyse_accuracy,
    "imbalance": analyse_accuracy,
    "convergence": lambda findings, missing: analyse_convergence(findings.rows, missing),
    "evolution": lambda findings, _: analyse_evolution(findings.extras, findings.rows),
}
