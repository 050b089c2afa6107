"""A ranking of models in words, tables and a diagram; every number was computed before."""

from collections.abc import Callable, Sequence
from math import comb
from typing import Any

import numpy as np

from cocoloss.benchmark.analysis import ALPHA, BINS, ROPE, Leads, NotRanked, PrintedRanks, Ranking
from cocoloss.report.cd_diagram import cd_diagram, diagram_label, diagram_note
from cocoloss.report.document import (
    MISSING,
    Block,
    Cell,
    Folded,
    Grid,
    Heading,
    Items,
    Picture,
    Side,
    Text,
    brief,
    fixed,
    number_of,
    p_value,
    percent,
    signed,
    significant,
    stand_out,
)
from cocoloss.stats import Comparison
from cocoloss.stats.effects import joined

# Others have three digits.
FOUR_PLACES = frozenset({"balanced_accuracy", "accuracy", "log_loss", "relative_rmse", "r2"})
LONGEST_NARROW = 12  # letters of a name in a diagram for small screens
FOLD_TESTS = {
    "wilcoxon": "by Wilcoxon's test with Holm's correction, as in the paper",
    "corrected_t": "by Nadeau and Bengio's corrected t-test with Holm's correction, in place of "
    "the paper's Wilcoxon test",
}

NEMENYI_OF = (
    "Nemenyi's test is on the ranks by what is significant over folds (“rank” above), not on those "
    "by means."
)
BOTH_NEMENYI = (
    "“p Nemenyi” is on the ranks by what is significant over folds (“rank” above), “p Nemenyi, by "
    "mean” on those by means over folds (“rank by mean”)."
)


def ranking_blocks(ranking: Ranking | NotRanked, prefix: str) -> list[Block]:
    """Return all blocks of a ranking; ``prefix`` begins the names of its files."""
    heading = Heading(ranking.title, 3)
    if isinstance(ranking, NotRanked):
        return [heading, Text(f"No comparison over datasets. {ranking.reason}", "warning")]
    blocks: list[Block] = [heading, Text(in_words(ranking), "about"), *diagrams(ranking, prefix)]
    blocks += [ranks_grid(ranking), reference_grid(ranking)]
    blocks.append(Folded("All pairs", tuple(pair_grids(ranking))))
    return [*blocks, Items(ranking.notes)] if ranking.notes else blocks


def in_words(ranking: Ranking) -> str:
    """Say who is best, whether anything differs, and what cannot be told apart."""
    comparison = ranking.comparison
    if all_tied(comparison):
        return (
            f"No model is significantly better than another on any of the {comparison.n_datasets} "
            f"datasets, so all have the same rank. The diagram below ranks them by means over "
            f"folds."
        )
    ranks = comparison.average_ranks
    first = [model for model in comparison.models if ranks[model] == ranks.iloc[0]]
    peers = {m for clique in comparison.cliques if comparison.models[0] in clique for m in clique}
    others = [model for model in comparison.models if model in peers and model not in first]
    text = f"{joined(first)} {'has' if len(first) == 1 else 'share'} the best average rank, "
    text += (
        f"{ranks.iloc[0]:.2f} of {comparison.n_models} models on {comparison.n_datasets} datasets"
    )
    if not peers:
        text += ", and differs significantly from all others."
    else:
        text += f", and cannot be told apart from {joined(others)}." if others else "."
    test = comparison.friedman
    differ = "differ" if test.f_p_value < comparison.alpha else "do not differ significantly"
    return (
        f"{text} As a whole the models {differ}: Friedman χ² = {test.chi2:.1f}, "
        f"p = {significant(test.p_value)}; Iman-Davenport F = {significant(test.f)}, "
        f"p = {significant(test.f_p_value)}."
    )


def diagrams(ranking: Ranking, prefix: str) -> list[Picture]:
    """Return the diagram of the paper's ranks and that of ranks by means.

    The first is left out where nothing is significant on any dataset: all models would be in one
    place.
    """
    found = [] if all_tied(ranking.comparison) else [diagram(ranking, prefix)]
    if ranking.comparison.ranking == "scores" and found:
        return found
    return [*found, diagram(ranking, prefix, by_mean=True)]


def diagram(ranking: Ranking, prefix: str, *, by_mean: bool = False) -> Picture:
    """Return the diagram of the ranks by what is significant over folds, or by means."""
    comparison = ranking.by_score if by_mean else ranking.comparison
    how = {"folds": "ranks by what is significant over folds", "scores": "ranks by scores"}
    ranks = "ranks by means over folds" if by_mean else how[comparison.ranking]
    return Picture(
        f"{prefix}-{ranking.name}{'-by-mean' if by_mean else ''}",
        f"Critical differences by {ranking.measure.replace('_', ' ')}: {ranks}",
        lambda: cd_diagram(comparison),
        caption=diagram_note(comparison),
        label=diagram_label(comparison),
        draw_narrow=lambda: cd_diagram(
            comparison, axis_width=1.5, caption=False, longest_name=LONGEST_NARROW
        ),
    )


def all_tied(comparison: Comparison) -> bool:
    """Say whether no model is ahead of another on any dataset."""
    return bool((comparison.ranks.nunique(axis=1) == 1).all())


def ranks_grid(ranking: Ranking) -> Grid:
    """Return means and ranks, both ways of ties, and the paper's beside."""
    comparison, averaged, by_score = ranking.comparison, ranking.averaged, ranking.by_score
    measure = ranking.measure.replace("_", " ")
    columns = ["model", f"mean {measure}", "rank", "± std", "rank, ties averaged", "rank by mean"]
    if ranking.printed:
        columns += ["printed rank", "± std printed"]
    means = [mean_cell(mean, ranking.measure) for mean in comparison.mean_scores]
    if comparison.common_datasets:  # else they are over different ones
        means = stand_out(means, higher_is_better=comparison.higher_is_better)
    rows = []
    for model, mean in zip(comparison.models, means, strict=True):
        cells = [
            Cell(model),
            mean,
            _rank(comparison, model),
            fixed(comparison.rank_spread[model], 2),
            _rank(averaged, model),
            _rank(by_score, model),
        ]
        if ranking.printed:
            rank, spread = ranking.printed.ranks[model]
            cells += [fixed(rank, 2), fixed(spread, 2)]
        rows.append(tuple(cells))
    how = "Ranks are by mean scores."
    if ranking.fold_test:
        how = (
            f"“rank” is 1 plus the number of models that are significantly better over the folds "
            f"of a dataset {FOLD_TESTS[ranking.fold_test]}; “rank by mean” only looks at means "
            f"over folds."
        )
    if len(comparison.common_datasets) < comparison.n_datasets:
        means_of = comparison.describe_means()
        how += f" {means_of[0].upper()}{means_of[1:]}."
    beside = printed_note(ranking.printed, comparison) if ranking.printed else ""
    return Grid(
        "Means and average ranks",
        tuple(columns),
        tuple(rows),
        caption=f"{how} {beside}".strip(),
        sortable=True,
    )


def printed_note(printed: PrintedRanks, comparison: Comparison) -> str:
    """Say where the printed numbers stand, and their test beside ours."""
    text = (
        f"Printed: {printed.place}, CD {printed.critical_distance:g}, which is that of "
        f"{printed.n_datasets} datasets"
    )
    if comparison.critical_distance is not None:
        text += f" (here {comparison.critical_distance:.3f} and {comparison.n_datasets})"
    if printed.p_value is not None:
        p = significant(comparison.friedman.p_value)
        text += f"; Friedman p = {significant(printed.p_value)} (here {p})"
    return text + "."


def reference_grid(ranking: Ranking) -> Grid:
    """Return the reference against every other model: wins, tests, probabilities."""
    by_score, reference = ranking.by_score, ranking.reference
    bayes = None if ranking.bayes is None else ranking.bayes.set_index("second")
    by_folds = ranking.comparison.ranking == "folds"  # where most models may tie
    tested: dict[str, Comparison | None] = {"p Nemenyi": ranking.comparison}
    tested |= {"p Nemenyi, by mean": by_score} if by_folds else {}
    tested["p Wilcoxon-Holm"] = ranking.pairs
    rows = []
    for other in ranking.comparison.models:
        if other == reference:
            continue
        # Over the datasets that both have: a cell that counts as the worst has no score.
        mean = float((by_score.scores[reference] - by_score.scores[other]).mean())
        cells = [
            Cell(other),
            signed(mean, 4) if ranking.measure in FOUR_PLACES else brief(mean),
            *(
                number_of(int(counts.loc[reference, other]))
                for counts in (by_score.wins, by_score.ties, by_score.losses)
            ),
            *(
                p_value(None if by is None else by.p_values.loc[reference, other])
                for by in tested.values()
            ),
        ]
        if bayes is not None and other in bayes.index:
            shares = [bayes.loc[other, n] for n in ("first_better", "equal", "second_better")]
            cells += [Cell(percent(s), float(s), s > 0.95) for s in shares]
        elif bayes is not None:
            cells += [fixed(None, 0)] * 3
        rows.append(tuple(cells))
    columns = ["against", "mean difference", "wins", "ties", "losses", *tested]
    caption = "Wins count datasets on which the mean over folds is better."
    if by_folds:
        caption += f" {BOTH_NEMENYI}"
    if ranking.pairs is not None:
        n_pairs = comb(ranking.pairs.n_models, 2)
        caption += f" Holm's correction is for all {n_pairs} pairs of models."
    if by_score.filled:
        caption += (
            " A missing result loses. The mean difference is over the datasets that both have."
        )
    if bayes is not None:
        columns += ["P(better)", "P(equal)", "P(worse)"]
        caption += (
            f" The last three by a Bayesian signed-rank test in which differences up to {ROPE:g} "
            f"count as equal."
        )
    return Grid(
        f"{reference} against each other model",
        tuple(columns),
        tuple(rows),
        caption=caption,
        sortable=True,
    )


def pair_grids(ranking: Ranking) -> list[Block]:
    """Return p-values and wins of every pair."""
    which = NEMENYI_OF if ranking.comparison.ranking == "folds" else ""
    models = ranking.comparison.models
    tested = [("p-values by Nemenyi's test on average ranks", ranking.comparison, which)]
    if ranking.pairs is not None:
        tested.append(("p-values by Wilcoxon's test over datasets, Holm", ranking.pairs, ""))
    blocks: list[Block] = [
        Grid(
            title,
            ("", *comparison.models),
            _square(comparison.models, comparison.p_values, lambda p: p_value(p, ALPHA)),
            caption=caption,
        )
        for title, comparison, caption in tested
    ]
    wins = _square(models, ranking.by_score.wins, lambda n: Cell(str(n)))
    columns = ("wins of", *(f"over {m}" for m in models))
    blocks.append(Grid("Datasets on which the row has the better mean", columns, wins))
    return [Side(tuple(blocks))] if len(models) <= 6 else blocks


def _square(
    models: Sequence[str], values: Any, write: Callable[[Any], Cell]
) -> tuple[tuple[Cell, ...], ...]:
    """Return the rows of a table of models against models, with dashes on the diagonal."""
    return tuple(
        (
            Cell(row),
            *(
                Cell(MISSING) if row == column else write(values.loc[row, column])
                for column in models
            ),
        )
        for row in models
    )


def _rank(comparison: Comparison, model: str) -> Cell:
    rank = float(comparison.average_ranks[model])
    best = bool(np.isclose(rank, comparison.average_ranks.min()))
    return fixed(rank, 2, best=best and not all_tied(comparison))


def mean_cell(value: float, measure: str) -> Cell:
    """Return the mean of a measure with as many digits as it deserves."""
    return fixed(value, 4) if measure in FOUR_PLACES else brief(value)


def lead_blocks(leads: Leads) -> list[Block]:
    """Return on which tables the reference leads; nothing if nothing is known of them."""
    grids = [grid for grid in (wins_grid(leads), tendencies_grid(leads)) if grid.rows]
    return [Heading("On which tables"), *grids] if grids else []


def wins_grid(leads: Leads) -> Grid:
    """Return wins, ties and losses of the reference by the tables' character."""
    wins, others = leads.wins(), leads.others
    rows = []
    for (character, label), group in wins.groupby(["character", "bin"], sort=False):
        by_other = group.set_index("other")
        cells = [Cell(f"{character}: {label}"), number_of(int(group["n_tables"].max()))]
        for other in others:
            won, tied, lost = by_other.loc[other, ["wins", "ties", "losses"]]
            cells.append(Cell(f"{won} / {tied} / {lost}", float(won - lost), won > lost))
        rows.append(tuple(cells))
    return Grid(
        f"Wins / ties / losses of {leads.reference}",
        ("tables", "datasets", *(f"against {other}" for other in others)),
        tuple(rows),
        caption="By mean balanced accuracy, on those of the datasets on which both have all folds; "
        "bold where it wins more often than it loses.",
    )


def tendencies_grid(leads: Leads) -> Grid:
    """Return how the lead of the reference goes with the tables' character."""
    found, others = leads.tendencies(), leads.others
    rows = []
    for character, group in found.groupby("character", sort=False):
        cells = []
        for other in others:
            line = group[group["other"] == other]
            if not len(line):
                cells.append(fixed(float("nan"), 2))
                continue
            rho, p_value = line[["spearman", "p_holm"]].iloc[0]
            cells.append(Cell(f"{rho:+.2f}", float(rho), bool(p_value < ALPHA)))
        rows.append((Cell(character), *cells))
    return Grid(
        f"Correlation of the lead of {leads.reference} with properties of the tables",
        ("property", *(f"over {other}" for other in others)),
        tuple(rows),
        caption="Spearman's correlation of the lead in mean balanced accuracy with a property "
        f"of the table, over datasets; bold where it is significant at {ALPHA:g} after Holm's "
        "correction for the whole of this table.",
    )


def extremes_grid(leads: Leads, other: str, n: int = 5) -> Grid:
    """Return the tables on which the reference leads and trails another model the most."""
    found = leads.extremes(other, n)
    known = leads.characters.reindex(index=found.index, columns=list(BINS)).astype(float)
    rows = tuple(
        (
            Cell(dataset),
            Cell(f"{line.lead:+.3f}", float(line.lead)),
            *(fixed(value, 3) for value in (line.ours, line.theirs)),
            *(_character(name, known.loc[dataset, name]) for name in BINS),
        )
        for dataset, line in zip(found.index, found.itertuples(), strict=True)
    )
    return Grid(
        f"{leads.reference} against {other}: the largest leads and deficits",
        ("dataset", "lead", leads.reference, other, *(title for title, *_ in BINS.values())),
        rows,
        caption="By mean balanced accuracy over the outer folds.",
    )


def _character(name: str, value: float) -> Cell:
    return Cell(BINS[name][2](value), value) if np.isfinite(value) else fixed(value, 0)
