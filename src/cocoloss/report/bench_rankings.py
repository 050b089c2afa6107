"""A ranking of models in words, tables and a diagram; every number was computed before."""

from collections.abc import Sequence
from dataclasses import replace
from math import comb

import numpy as np

from cocoloss.benchmark.printed import PrintedRanks
from cocoloss.benchmark.rankings import ROPE, NotRanked, Ranking
from cocoloss.report.cd_svg import cd_diagram_svg, diagram_note
from cocoloss.report.document import (
    Block,
    Cell,
    Folded,
    Grid,
    Heading,
    Items,
    Picture,
    Side,
    Text,
    fixed,
    p_value,
)
from cocoloss.report.figures import cd_files
from cocoloss.report.page import percent, significant
from cocoloss.stats import Comparison

MEASURES = {
    "balanced_accuracy": "balanced accuracy",
    "dispersity": "dispersity",
}
DIGITS = {"balanced_accuracy": 4}  # decimal places of means; others have three significant digits

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
    """Return all that is said of a ranking; ``prefix`` begins the names of its files."""
    heading = Heading(ranking.title, 3)
    if isinstance(ranking, NotRanked):
        return [heading, Text(f"No comparison over datasets. {ranking.reason}", "warning")]
    blocks: list[Block] = [heading, Text(in_words(ranking), "about"), *diagrams(ranking, prefix)]
    blocks.append(ranks_grid(ranking))
    pairs = reference_grid(ranking)
    if pairs is not None:
        blocks.append(pairs)
    blocks += [Folded("All pairs", tuple(pair_grids(ranking))), Items(ranking.notes)]
    return [block for block in blocks if not (isinstance(block, Items) and not block.items)]


def in_words(ranking: Ranking) -> str:
    """Say who is best, whether anything differs, and what cannot be told apart."""
    comparison = ranking.comparison
    best = comparison.models[0]
    alone = not any(best in clique for clique in comparison.cliques)
    peers = sorted(
        {m for clique in comparison.cliques if best in clique for m in clique if m != best},
        key=comparison.models.index,
    )
    if all_tied(comparison):
        return (
            f"No model is significantly better than another on any of the {comparison.n_datasets} "
            f"datasets, so all have the same rank. The diagram below ranks them by means over "
            f"folds."
        )
    ranks = comparison.average_ranks
    first = [model for model in comparison.models if ranks[model] == ranks.iloc[0]]
    said = f"{_listed(first)} {'has' if len(first) == 1 else 'share'} the best average rank, "
    said += (
        f"{ranks.iloc[0]:.2f} of {comparison.n_models} models on {comparison.n_datasets} datasets"
    )
    others = [model for model in peers if model not in first]
    if alone:
        said += ", and differs significantly from all others."
    else:
        said += f", and cannot be told apart from {_listed(others)}." if others else "."
    test = comparison.friedman
    differ = "differ" if test.f_p_value < comparison.alpha else "do not differ significantly"
    return (
        f"{said} As a whole the models {differ}: Friedman χ² = {test.chi2:.1f}, "
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
    by_mean = _picture(
        ranking, ranking.by_score, f"{prefix}-{ranking.name}-by-mean", "ranks by means over folds"
    )
    return [*found, by_mean]


def diagram(ranking: Ranking, prefix: str) -> Picture:
    """Return the diagram of the ranks by what is significant over folds."""
    how = {"folds": "ranks by what is significant over folds", "scores": "ranks by scores"}
    comparison = ranking.comparison
    return _picture(ranking, comparison, f"{prefix}-{ranking.name}", how[comparison.ranking])


def _picture(ranking: Ranking, comparison: Comparison, name: str, how: str) -> Picture:
    measure = MEASURES.get(ranking.measure, ranking.measure)
    return Picture(
        name,
        f"Critical differences by {measure}: {how}",
        cd_diagram_svg(comparison),
        cd_files(comparison),
        caption=diagram_note(comparison),
        wide=True,
    )


def all_tied(comparison: Comparison) -> bool:
    """Say whether no model is ahead of another on any dataset."""
    return bool((comparison.ranks.nunique(axis=1) == 1).all())


def ranks_grid(ranking: Ranking) -> Grid:
    """Return means and ranks, both ways of ties, and the paper's beside."""
    comparison, averaged, by_score = ranking.comparison, ranking.averaged, ranking.by_score
    measure = MEASURES.get(ranking.measure, ranking.measure)
    columns = ["model", f"mean {measure}", "rank", "± std", "rank, ties averaged", "rank by mean"]
    if ranking.printed:
        columns += ["printed rank", "± std printed"]
    means = [_mean(mean, ranking.measure) for mean in comparison.mean_scores]
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
        said = comparison.describe_means()
        how += f" {said[0].upper()}{said[1:]}."
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
    said = (
        f"Printed: {printed.place}, CD {printed.critical_distance:g}, which is that of "
        f"{printed.n_datasets} datasets"
    )
    if comparison.critical_distance is not None:
        said += f" (here {comparison.critical_distance:.3f} and {comparison.n_datasets})"
    if printed.p_value is not None:
        p = significant(comparison.friedman.p_value)
        said += f"; Friedman p = {significant(printed.p_value)} (here {p})"
    return said + "."


def reference_grid(ranking: Ranking) -> Grid | None:
    """Return the reference against every other model: wins, tests, probabilities."""
    by_score, reference = ranking.by_score, ranking.reference
    bayes = None if ranking.bayes is None else ranking.bayes.set_index("second")
    digits = DIGITS.get(ranking.measure)
    tested = {"p Nemenyi": ranking.comparison}
    if ranking.comparison.ranking == "folds":  # where most models may tie
        tested["p Nemenyi, by mean"] = by_score
    rows = []
    for other in ranking.comparison.models:
        if other == reference:
            continue
        # Over the datasets that both have: a cell that counts as the worst has no score.
        mean = float((by_score.scores[reference] - by_score.scores[other]).mean())
        cells = [
            Cell(other),
            _difference(mean, digits),
            *(
                Cell(str(int(n)), float(n))
                for n in (
                    by_score.wins.loc[reference, other],
                    by_score.ties.loc[reference, other],
                    by_score.losses.loc[reference, other],
                )
            ),
            *(p_value(ranks.p_values.loc[reference, other]) for ranks in tested.values()),
            p_value(
                None if ranking.pairs is None else ranking.pairs.p_values.loc[reference, other]
            ),
        ]
        if bayes is not None and other in bayes.index:
            shares = [bayes.loc[other, n] for n in ("first_better", "equal", "second_better")]
            cells += [Cell(percent(s), float(s), s > 0.95) for s in shares]
        elif bayes is not None:
            cells += [fixed(None, 0)] * 3
        rows.append(tuple(cells))
    columns = ["against", "mean difference", "wins", "ties", "losses", *tested, "p Wilcoxon-Holm"]
    caption = "Wins count datasets on which the mean over folds is better."
    if len(tested) > 1:
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
    blocks: list[Block] = [
        _matrix("p-values by Nemenyi's test on average ranks", ranking.comparison, which)
    ]
    if ranking.pairs is not None:
        blocks.append(_matrix("p-values by Wilcoxon's test over datasets, Holm", ranking.pairs))
    wins = ranking.by_score.wins
    rows = tuple(
        (
            Cell(row),
            *(
                fixed(None, 0) if row == column else Cell(str(wins.loc[row, column]))
                for column in ranking.comparison.models
            ),
        )
        for row in ranking.comparison.models
    )
    columns = ("wins of", *(f"over {m}" for m in ranking.comparison.models))
    blocks.append(Grid("Datasets on which the row has the better mean", columns, rows))
    return [Side(tuple(blocks))] if ranking.comparison.n_models <= 6 else blocks


def _matrix(title: str, comparison: Comparison, caption: str = "") -> Grid:
    rows = tuple(
        (
            Cell(row),
            *(
                fixed(None, 0)
                if row == column
                else p_value(comparison.p_values.loc[row, column], comparison.alpha)
                for column in comparison.models
            ),
        )
        for row in comparison.models
    )
    return Grid(title, ("", *comparison.models), rows, caption=caption)


def _rank(comparison: Comparison, model: str) -> Cell:
    rank = float(comparison.average_ranks[model])
    best = bool(np.isclose(rank, comparison.average_ranks.min()))
    return fixed(rank, 2, best=best and not all_tied(comparison))


def _mean(value: float, measure: str) -> Cell:
    if measure in DIGITS:
        return fixed(value, DIGITS[measure])
    return Cell(significant(value), float(value))


def _difference(value: float, digits: int | None) -> Cell:
    if digits is None or np.isnan(value):
        return fixed(value, 0) if np.isnan(value) else Cell(significant(value), value)
    return Cell(f"{value:+.{digits}f}", value)


def stand_out(cells: Sequence[Cell], *, higher_is_better: bool = True) -> list[Cell]:
    """Return the cells with the best marked, and all that read the same.

    Examples
    --------
    >>> [cell.best for cell in stand_out([fixed(x, 2) for x in (0.801, 0.799, 0.7)])]
    [True, True, False]
    """
    values = [cell.value for cell in cells if cell.value is not None]
    if not values:
        return list(cells)
    best = max(values) if higher_is_better else min(values)
    text = next(cell.text for cell in cells if cell.value == best)
    return [replace(cell, best=cell.text == text) for cell in cells]


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
