"""Models ranked over datasets, in every way that the report shows: computed once, drawn later."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cocoloss._checks import listed
from cocoloss.exceptions import CoCoError
from cocoloss.stats import Comparison, bayesian_signed_rank, compare
from cocoloss.stats.pairwise import check_reach

if TYPE_CHECKING:
    import pandas as pd

ROPE = 0.01  # balanced accuracies this close are the same in practice
REFERENCES = ("coco", "coco-w", "coco-plain")  # whose comparisons are shown, if they are there
ALPHA = 0.05


@dataclass(frozen=True)
class PrintedRanks:
    """Average ranks as a publication prints them, to be set beside ours.

    Attributes
    ----------
    place : str
        Where they stand.
    ranks : dict of str to (float, float)
        Average rank and its standard deviation, by model.
    critical_distance : float
    n_datasets : int
        That the printed critical distance stands for.
    p_value : float or None
        Of the Friedman test; None where none is printed.
    """

    place: str
    ranks: Mapping[str, tuple[float, float]]
    critical_distance: float
    n_datasets: int
    p_value: float | None = None


@dataclass(frozen=True, eq=False)
class Ranking:
    """Some models ranked by one measure.

    Attributes
    ----------
    name, title : str
        A short name for files, and what readers see.
    measure : str
        Column of the rows.
    comparison : Comparison
        Ranks by what is significant over folds, ties as in competitions: the paper's way, and
        what the diagram shows. By scores, if there are no folds to test.
    fold_test : {"wilcoxon", "corrected_t", ""}
        The test over folds: the paper's, or Nadeau and Bengio's where the former could find
        nothing; "" if there are no folds to test.
    averaged : Comparison
        The same with ties averaged.
    by_score : Comparison
        Ranks by mean scores, told apart by Nemenyi's test as well.
    pairs : Comparison or None
        Wilcoxon-Holm between models over datasets; None if no pair could be significant, or if
        it was not asked for.
    bayes : DataFrame or None
        The reference against each other model: probabilities that it is better, that both are
        equal within the rope, that it is worse.
    reference : str
        The model of interest: CoCo, or else the best.
    printed : PrintedRanks or None
        The numbers of a publication, if there are any for these models.
    notes : tuple of str
        What was left out or done otherwise, and why.
    """

    name: str
    title: str
    measure: str
    comparison: Comparison
    fold_test: str
    averaged: Comparison
    by_score: Comparison
    pairs: Comparison | None
    bayes: "pd.DataFrame | None"
    reference: str
    printed: PrintedRanks | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class NotRanked:
    """Why there is no ranking."""

    name: str
    title: str
    measure: str
    reason: str


def rank(
    rows: Any,
    models: Sequence[str],
    *,
    name: str,
    title: str,
    measure: str = "balanced_accuracy",
    higher_is_better: bool = True,
    missing: str = "drop_datasets",
    printed: PrintedRanks | None = None,
    rope: float | None = ROPE,
    by_pairs: bool = True,
) -> Ranking | NotRanked:
    """Rank some models by a measure.

    Parameters
    ----------
    rows : DataFrame
        With the columns dataset, model, fold and the measure.
    models : sequence of str
        Those to rank; of which there is no row, it is left out with a note.
    name, title : str
        Of the ranking.
    measure : str
    higher_is_better : bool
    missing : {"drop_datasets", "worst", "raise"}
        What becomes of datasets that lack a model.
    printed : PrintedRanks, optional
        To set beside.
    rope : float, optional
        Differences that do not matter; without, there is no Bayesian comparison.
    by_pairs : bool
        Whether to test pairs of models over datasets too.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame(
    ...     [(d, m, k, s + 0.01 * k) for d in "abc" for k in range(6) for m, s in
    ...      (("coco", 0.8), ("rf", 0.7 + 0.002 * k))],
    ...     columns=["dataset", "model", "fold", "balanced_accuracy"],
    ... )
    >>> rank(rows, ["coco", "rf"], name="all", title="All models").comparison.average_ranks.tolist()
    [1.0, 2.0]
    """

    def without(reason: str) -> NotRanked:
        return NotRanked(name, title, measure, reason)

    notes: list[str] = []
    scores = rows[rows["model"].isin(models)].dropna(subset=[measure])
    there = [model for model in models if (scores["model"] == model).any()]
    lacking = [model for model in models if model not in there]
    if lacking:
        notes.append(f"Without {', '.join(lacking)}, of which there is no result.")
    if len(there) < 2:
        return without("There are results of fewer than two models.")
    table = scores.rename(columns={measure: "score"})[["dataset", "model", "fold", "score"]]
    table = table.astype({"model": "category"})
    table["model"] = table["model"].cat.set_categories(there)
    table = table.sort_values(["dataset", "model", "fold"], kind="stable")
    table["model"] = table["model"].astype(object)
    if missing == "drop_datasets" and (reason := _too_few(table)):
        return without(reason)
    options: dict[str, Any] = {
        "higher_is_better": higher_is_better,
        "missing": missing,
        "alpha": ALPHA,
    }
    fold_test, note = _fold_test(table, len(there))
    notes += note
    try:
        by_score = compare(table, **options)
        over_folds: dict[str, Any] = (
            {"ranking": "folds", "fold_test": fold_test} if fold_test else {}
        )
        comparison = compare(table, **options, **over_folds)
        averaged = compare(table, **options, **over_folds, ties="average")
    except CoCoError as error:
        return without(str(error))
    pairs = None
    if by_pairs:
        try:
            pairs = compare(table, **options, test="wilcoxon")
        except CoCoError as error:
            notes.append(f"Without Wilcoxon-Holm over datasets: {error}.")
    notes += _about_missing(comparison)
    reference = next((m for m in REFERENCES if m in there), comparison.models[0])
    bayes = None if rope is None else _bayes(comparison, reference, rope)
    return Ranking(
        name,
        title,
        measure,
        comparison,
        fold_test,
        averaged,
        by_score,
        pairs,
        bayes,
        reference,
        printed if printed and set(there) == set(printed.ranks) else None,
        tuple(notes),
    )


def _too_few(table: Any) -> str:
    """Say why dropping datasets leaves too few, in words of the report; "" if it does not."""
    n_folds = table.groupby(["dataset", "model"])["fold"].nunique().unstack()
    whole = n_folds.eq(table.groupby("dataset")["fold"].nunique(), axis=0)
    n_whole = int(whole.all(axis=1).sum())
    if len(whole) < 2 or n_whole > 1:
        return ""
    most, n_most = (~whole).sum().idxmax(), int((~whole).sum().max())
    return (
        f"{len(whole) - n_whole} of {len(whole)} datasets lack the full result of some model, "
        f"which leaves too few to compare on; {most} lacks most ({n_most} missing). With "
        f"`bench report --missing worst` a model comes last where its result is missing."
    )


def _fold_test(table: Any, n_models: int) -> tuple[str, list[str]]:
    """Return the test over folds that can be significant, and why it is not the paper's."""
    n_folds = int(table.groupby("dataset")["fold"].nunique().min())
    if n_folds < 2:
        return "", ["Ranked by scores, since there is one fold only."]
    try:
        check_reach(n_folds, n_models, ALPHA, "folds")
    except CoCoError:
        note = (
            f"Over {n_folds} folds no pair of {n_models} models could be significant by Wilcoxon's "
            f"test with Holm's correction; Nadeau and Bengio's corrected t-test is used instead."
        )
        return "corrected_t", [note]
    return "wilcoxon", []


def _about_missing(comparison: Comparison) -> list[str]:
    notes = []
    if comparison.dropped:
        notes.append(
            f"{len(comparison.dropped)} of {len(comparison.dropped) + comparison.n_datasets} "
            f"datasets are left out, because a model has no full result there: "
            f"{listed(comparison.dropped, quoted=False)}."
        )
    if comparison.filled:
        cells = [f"{model} on {dataset}" for dataset, model in comparison.filled]
        notes.append(f"A missing result counts as the worst: {listed(cells, quoted=False)}.")
    return notes


def _bayes(comparison: Comparison, reference: str, rope: float) -> Any:
    """Compare the reference with every other model, on the datasets that both have."""
    import pandas as pd  # noqa: PLC0415 - heavy

    lines = []
    ours = comparison.scores[reference].to_numpy()
    for other in comparison.models:
        theirs = comparison.scores[other].to_numpy()
        both = np.isfinite(ours) & np.isfinite(theirs)
        if other == reference or both.sum() < 2:
            continue
        found = bayesian_signed_rank(
            ours[both],
            theirs[both],
            rope=rope,
            higher_is_better=comparison.higher_is_better,
        )
        difference = float(np.mean(ours[both] - theirs[both]))
        lines.append([reference, other, found.first, found.equal, found.second, difference])
    columns = ["first", "second", "first_better", "equal", "second_better", "mean_difference"]
    return pd.DataFrame(lines, columns=columns)
