"""From the rows of a benchmark to what its report shows: every number, none of the layout."""

import runpy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cocoloss.benchmark.findings import Findings
from cocoloss.benchmark.leads import Leads
from cocoloss.benchmark.rankings import NotRanked, PrintedRanks, Ranking, rank

if TYPE_CHECKING:
    import pandas as pd

PAPER_MODELS = ("coco", "dr", "ce", "ksvm", "rf")
PAPER_LOSSES = ("coco", "dr", "ce")
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
    """

    rankings: tuple[Ranking | NotRanked, ...]
    dispersity: tuple[Ranking | NotRanked, ...]
    scores: "pd.DataFrame"
    spreads: "pd.DataFrame"
    partial: "pd.DataFrame"
    measures: "pd.DataFrame"
    leads: Leads | None


def analyse_accuracy(
    findings: Findings,
    missing: str = "drop_datasets",
    printed: Mapping[str, PrintedRanks] | None = None,
) -> AccuracyAnalysis:
    """Rank models by balanced accuracy and dispersity.

    Parameters
    ----------
    findings : Findings
        From :func:`cocoloss.benchmark.findings.read_findings`.
    missing : {"drop_datasets", "worst"}
        What becomes of datasets that lack the result of a model.
    printed : dict of str to PrintedRanks, optional
        By measure, to set beside rankings of the same models.
    """
    rows = _measured(findings.rows)
    models = models_of(findings)
    cells = rows.groupby(["dataset", "model"], sort=False)["balanced_accuracy"]
    with_results = [model for model in models if (rows["model"] == model).any()]
    scores = cells.mean().unstack().reindex(columns=with_results).sort_index()
    partial = _partial(cells, scores)
    options: dict[str, Any] = {"missing": missing, "printed": printed or {}}
    rankings = _rank_groups(rows, models, _accuracy_groups(models), **options)
    reference = next((r.reference for r in rankings if isinstance(r, Ranking)), None)
    complete = scores.mask(partial)
    return AccuracyAnalysis(
        rankings=rankings,
        dispersity=_dispersity(rows, models, **options),
        scores=scores,
        spreads=cells.std().unstack().reindex(index=scores.index, columns=scores.columns),
        partial=partial,
        measures=_measures(rows, scores.notna() & ~partial),
        leads=None if reference is None else Leads(reference, complete, findings.characters),
    )


def printed_ranks(folders: Iterable[Path]) -> Mapping[str, PrintedRanks]:
    """Return ranks that a publication prints, by measure; none if nobody wrote them down.

    They are ``RANKS`` of the first file ``printed.py`` in these folders or the current one.
    """
    files = (Path(folder) / "printed.py" for folder in (*folders, Path.cwd()))
    file = next((file for file in files if file.is_file()), None)
    ranks: Mapping[str, PrintedRanks] = {} if file is None else runpy.run_path(str(file))["RANKS"]
    return ranks


def models_of(findings: Findings) -> list[str]:
    """Return the models of a benchmark: those of the spec in its order, then any others."""
    return list(dict.fromkeys([*findings.spec["models"]["names"], *findings.rows["model"]]))


def _measured(rows: Any) -> Any:
    """Return the rows with every measure that the report asks for; NaN if there is none."""
    lacking = [n for n in ("balanced_accuracy", "dispersity") if n not in rows.columns]
    return rows.assign(**dict.fromkeys(lacking, float("nan")))


def _accuracy_groups(models: Sequence[str]) -> dict[str, tuple[str, list[str]]]:
    return {
        "paper": ("The paper's models", [m for m in PAPER_MODELS if m in models]),
        "sphere": (f"The paper's models, {ON_THE_SPHERE}", _on_the_sphere(PAPER_MODELS, models)),
        "weighted": ("Models that count classes alike", [m for m in WEIGHTED if m in models]),
        "all": ("All models", list(models)),
    }


def _dispersity(rows: Any, models: list[str], **options: Any) -> tuple[Ranking | NotRanked, ...]:
    embedded = set(rows.loc[rows["dispersity"].notna(), "model"])
    there = [model for model in models if model in embedded]
    if len(there) < 2:
        return ()
    sphere = _on_the_sphere(PAPER_LOSSES, there)
    groups = {
        "dispersity-paper": ("The paper's losses", [m for m in PAPER_LOSSES if m in there]),
        "dispersity-sphere": (f"The paper's losses, {ON_THE_SPHERE}", sphere),
        "dispersity-all": ("All models with an embedding", there),
    }
    options |= {"measure": "dispersity", "higher_is_better": False, "rope": None}
    return _rank_groups(rows, there, groups, **options)


def _rank_groups(
    rows: Any,
    models: Sequence[str],
    groups: Mapping[str, tuple[str, list[str]]],
    *,
    printed: Mapping[str, PrintedRanks],
    measure: str = "balanced_accuracy",
    **options: Any,
) -> tuple[Ranking | NotRanked, ...]:
    """Rank the models of each group, the last of which has all; others only if they are fewer."""
    *_, everything = groups
    theirs = printed.get(measure)
    return tuple(
        rank(rows, members, name=name, title=title, measure=measure, printed=theirs, **options)
        for name, (title, members) in groups.items()
        if name == everything or (len(members) > 1 and set(members) != set(models))
    )


def _on_the_sphere(names: Sequence[str], there: Sequence[str]) -> list[str]:
    """Return those that there are, with normalised dot regression in place of the printed one.

    As printed, dot regression is at a loss with three classes or more (benchmark/models.py).
    """
    fairer = ["dr-sphere" if name == "dr" else name for name in names]
    return [name for name in fairer if name in there] if "dr-sphere" in there else []


def _partial(cells: Any, scores: Any) -> Any:
    """Return where a model has fewer folds than there are of the dataset, but some."""
    n_folds = cells.count().unstack().reindex(index=scores.index, columns=scores.columns)
    return (n_folds > 0) & n_folds.lt(n_folds.max(axis=1), axis=0)


def _measures(rows: Any, complete: Any) -> Any:
    """Return means over folds, then over the datasets that a model has all folds of."""
    kept = rows.select_dtypes("number").columns.difference(["fold", "task_seconds", "class_ratio"])
    per_dataset = rows.groupby(["model", "dataset"], sort=False)[list(kept)].mean()
    there = [(m, d) for m in complete.columns for d in complete.index[complete[m]]]
    per_dataset = per_dataset[per_dataset.index.isin(there)]
    means = per_dataset.groupby("model", sort=False).mean().reindex(complete.columns)
    return means.assign(n_datasets=complete.sum())
