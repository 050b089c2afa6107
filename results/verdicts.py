"""Who is ahead, level or behind: one rule for every table and sentence of these pages.

Two models are compared by Wilcoxon's signed-rank test over tables, with p-values corrected by Holm.
At p < 0.05 the one with the larger sum of ranks is ahead; else they are level. Where even the same
sign on every table could not reach 0.05, nothing can be said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import comb, isfinite
from typing import Any

import numpy as np
import pandas as pd

from cocoloss._checks import counted
from cocoloss.benchmark.analysis import ALPHA, DIGITS, Ranking
from cocoloss.report import bench_rankings
from cocoloss.report.document import (
    Cell,
    Grid,
    number_of,
    p_value,
    signed,
    significant,
)
from cocoloss.stats import holm, wilcoxon_paired

AHEAD, LEVEL, BEHIND, OPEN = "ahead", "level", "behind", "too few tables"
FEWEST = 6  # tables that the test needs
EXPLAINED = (
    "**How to read the tables.** Scores are means over folds, then over tables. “rank” counts, for "
    "each table, 1 plus the number of models that are significantly better over its folds, and is "
    "averaged over tables: the paper's way, by Wilcoxon's test or, where ten folds are too few for "
    "so many models, by Nadeau and Bengio's corrected t-test, both with Holm's correction. “rank "
    "by mean” ranks models by their mean scores. “wins” counts tables on which the mean over folds "
    "is better. “p Wilcoxon-Holm” is Wilcoxon's test over tables with Holm's correction for all "
    f"pairs of models. The verdict follows from it: ahead or behind at p < {ALPHA:g}, else level. "
    "P(better), P(equal) and P(worse) come from a Bayesian signed-rank test that takes differences "
    "up to 0.01 as equal. Best values are bold, and so are significant p-values."
)
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
SAID = {  # what sentences call models
    "coco-default": "the default",
    "coco-networks": "six untuned CoCo networks",
    "coco": "CoCo",
    "coco-w": "the tuned CoCo network",
    "ksvm": "the kernel SVM",
    "ksvm-w": "the kernel SVM",
    "rf": "the random forest",
    "rf-w": "the random forest",
    "hgb": "HistGradientBoosting",
    "hgb-w": "HistGradientBoosting",
    "hgb-raw-w": "HistGradientBoosting",
    "ce": "cross-entropy",
    "ce-w": "cross-entropy",
    "dr": "dot regression",
    "dr-w": "dot regression",
    "lightgbm": "LightGBM",
    "lightgbm-w": "LightGBM",
    "lightgbm-default": "LightGBM",
    "catboost": "CatBoost",
    "catboost-w": "CatBoost",
    "catboost-default": "CatBoost",
    "realmlp-default": "RealMLP",
    "xrfm-default": "xRFM",
    "svr": "the support vector machine",
    "ridge": "ridge regression",
}


def verdict(p: float | None, lead: float) -> str:
    """Say who is ahead from a corrected p-value and the sign of a lead.

    >>> verdict(0.01, 3.0), verdict(0.01, -3.0), verdict(0.2, 3.0), verdict(None, 3.0)
    ('ahead', 'behind', 'level', 'too few tables')
    """
    if p is None or not isfinite(p):
        return OPEN
    if p >= ALPHA or lead == 0:
        return LEVEL
    return AHEAD if lead > 0 else BEHIND


def versus(
    scores: pd.DataFrame,
    pairs: Mapping[str, tuple[str, str]] | Sequence[str],
    reference: str = "",
    *,
    higher_is_better: bool = True,
) -> pd.DataFrame:
    """Compare columns of scores over tables, in pairs or a reference with each of the others.

    Returns
    -------
    DataFrame
        A line for each pair: n, mean difference, error (its standard error), wins, ties, losses, p
        (Holm's correction for all of these pairs; NaN where nothing could be significant), lead
        (the difference of the sums of ranks), verdict.
    """
    if not isinstance(pairs, Mapping):
        pairs = {other: (reference, other) for other in pairs}
    lines, leads = {}, {}
    for name, (one, other) in pairs.items():
        both = scores[[one, other]].dropna().astype(float)
        with np.errstate(invalid="ignore"):  # infinite scores
            apart = (both[one] - both[other]).round(DIGITS)
            mean, error = apart.mean(), apart.sem()
        better = apart if higher_is_better else -apart
        p = np.nan
        if len(both) >= FEWEST and len(pairs) * 2.0 ** (1 - len(both)) < ALPHA:
            test = wilcoxon_paired(both[one], both[other])
            sign = 1 if higher_is_better else -1
            p, leads[name] = test.p_value, sign * (test.sum_first - test.sum_second)
        counts = [int(which.sum()) for which in (better > 0, better == 0, better < 0)]
        lines[name] = [len(both), mean, error, *counts, p]
    columns = ["n", "difference", "error", "wins", "ties", "losses", "p"]
    found = pd.DataFrame.from_dict(lines, orient="index", columns=columns)
    tested = found["p"].notna()
    found.loc[tested, "p"] = holm(found.loc[tested, "p"].to_numpy()) if tested.any() else []
    found["lead"] = [leads.get(name, 0.0) for name in found.index]
    found["verdict"] = [verdict(p, lead) for p, lead in zip(found["p"], found["lead"], strict=True)]
    return found


def versus_grid(found: pd.DataFrame, title: str, *, digits: int = 4, caption: str = "") -> Grid:
    """Return the comparisons of :func:`versus` as a table."""
    n = found["p"].notna().sum()
    corrected = f"p-values by Wilcoxon's test over tables, Holm's correction for {n}."
    return Grid(
        title,
        ("against", "tables", "mean difference", "wins", "ties", "losses", "p", "verdict"),
        tuple(
            (
                Cell(str(name)),
                number_of(int(line["n"])),
                signed(line["difference"], digits),
                *(number_of(int(line[how])) for how in ("wins", "ties", "losses")),
                p_value(line["p"]),
                _verdict_cell(line["verdict"]),
            )
            for name, line in found.iterrows()
        ),
        caption=f"{caption} {corrected if n else ''}".strip(),
    )


def of_ranking(ranking: Ranking) -> pd.DataFrame:
    """Return p-values and verdicts of the reference of a ranking against each other model.

    p-values are corrected for all pairs of models; where these are too many for any to be
    significant, for the pairs of the reference alone.
    """
    comparison = ranking.by_score
    higher = comparison.higher_is_better
    others = [model for model in ranking.comparison.models if model != ranking.reference]
    scores = comparison.scores
    found = versus(scores, others, ranking.reference, higher_is_better=higher)
    if ranking.pairs is None:
        return found
    found["p"] = [float(ranking.pairs.p_values.loc[ranking.reference, m]) for m in others]
    found["verdict"] = [verdict(p, lead) for p, lead in zip(found["p"], found["lead"], strict=True)]
    return found


def reference_grid(ranking: Ranking, *, both_nemenyi: bool = False) -> Grid:
    """Return the reference against every other model, with a verdict for each.

    Nemenyi's test on ranks by significance says next to nothing where most models tie on most
    tables, and is left out unless asked for.
    """
    grid, found = bench_rankings.reference_grid(ranking), of_ranking(ranking)
    kept = [
        k
        for k, name in enumerate(grid.columns)
        if both_nemenyi or name != "p Nemenyi" or ranking.comparison.ranking != "folds"
    ]
    p = grid.columns.index("p Wilcoxon-Holm")
    rows = []
    for row in grid.rows:
        line = found.loc[row[0].text]
        cells = [*row[:p], p_value(line["p"]), *row[p + 1 :]]
        rows.append((*(cells[k] for k in kept), _verdict_cell(line["verdict"])))
    n = len(found) if ranking.pairs is None else comb(ranking.pairs.n_models, 2)
    caption = f"{ranking.comparison.n_datasets} tables. Holm's correction is for "
    caption += f"{counted(n, 'pair')}{' (those of this table)' * (ranking.pairs is None)}."
    if both_nemenyi:
        caption += f" {bench_rankings.BOTH_NEMENYI}"
    return replace(
        grid,
        columns=(*(grid.columns[k] for k in kept), "verdict"),
        rows=tuple(rows),
        caption=caption,
    )


def ranks_grid(ranking: Ranking) -> Grid:
    """Return means and average ranks; pages explain ranks once (see ``EXPLAINED``)."""
    grid = bench_rankings.ranks_grid(ranking)
    comparison = ranking.comparison
    tests = {"wilcoxon": "Wilcoxon's test", "corrected_t": "the corrected t-test"}
    caption = f"{comparison.n_datasets} tables; "
    caption += (
        f"significance over folds by {tests[ranking.fold_test]}."
        if ranking.fold_test
        else "one split each, so that all ranks are by scores."
    )
    if ranking.printed:
        caption += f" {bench_rankings.printed_note(ranking.printed, comparison)}"
    kept = range(len(grid.columns))
    if not ranking.fold_test:  # all three are the same
        kept = [k for k, name in enumerate(grid.columns) if name not in IDLE]
    return replace(
        grid,
        columns=tuple(grid.columns[k] for k in kept),
        rows=tuple(tuple(row[k] for k in kept) for row in grid.rows),
        caption=caption,
    )


IDLE = ("rank", "± std", "rank, ties averaged")


def in_words(ranking: Ranking) -> str:
    """Say who has the best average rank, and from which models it does not differ."""
    return bench_rankings.in_words(ranking).replace(
        "and cannot be told apart from", "and does not differ significantly from"
    )


def listed(names: Sequence[str]) -> str:
    """Return names as in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    names = list(names)
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def standing(verdicts: Mapping[str, str], called: Mapping[str, str] = SAID) -> str:
    """Say whom something is ahead of, level with and behind, by name.

    >>> standing({"ksvm": "ahead", "rf": "level", "hgb": "level"})
    'ahead of the kernel SVM, level with the random forest and HistGradientBoosting'
    """
    words = {AHEAD: "ahead of", LEVEL: "level with", BEHIND: "behind", OPEN: "not comparable with"}
    parts = []
    for how, said in words.items():
        some = [called.get(name, name) for name, what in verdicts.items() if what == how]
        if some and len(some) == len(verdicts) > 2:
            return f"{said} all {_number(len(some))} ({listed(some)})"
        parts += [f"{said} {listed(some)}"] if some else []
    return ", ".join(parts)


def p_text(p: float) -> str:
    """Return a p-value as a sentence has it."""
    return f"p = {significant(p)}" if isfinite(p) else "too few tables to test"


def _verdict_cell(what: Any) -> Cell:
    return Cell(what, {AHEAD: 1.0, LEVEL: 0.0, BEHIND: -1.0}.get(what), what == AHEAD)


def _number(n: int) -> str:
    return NUMBERS[n] if n < len(NUMBERS) else str(n)
