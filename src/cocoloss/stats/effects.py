"""How large differences are, one model against all others, and all of it as a paragraph."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtrit
from scipy.stats import rankdata

from cocoloss._checks import RandomState, as_generator, check_share, counted, did_you_mean, listed
from cocoloss.exceptions import CoCoError
from cocoloss.stats.comparison import Comparison
from cocoloss.stats.pairwise import check_enough, holm, signed_rank_tests, spread
from cocoloss.stats.score_table import (
    Floats,
    check_finite,
    check_pair,
    round_off,
    score_differences,
)

RESAMPLES = 2000  # of the bootstrap over datasets
LEAST_SHOWN = 0.001  # p-values below it are all written alike
MOST_PAIRS = 15  # in a sentence
EFFECTS = ("lead", "rank_biserial", "cliffs_delta")


@dataclass(frozen=True)
class Effect:
    """The size of a difference with its confidence interval; positive is in favour of the first."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


def mean_difference(first: Any, second: Any, *, confidence: float = 0.95) -> Effect:
    """Return by how much the first is larger on average, with Student's interval.

    Parameters
    ----------
    first, second : array-like of shape (n,)
        Scores of two models on the same datasets; at least two.
    confidence : float
        Of the interval.

    Examples
    --------
    >>> print(mean_difference([0.9, 0.8, 0.7], [0.8, 0.6, 0.6]))
    0.133 [-0.0101, 0.277]
    """
    differences = _differences(first, second, "a mean difference")
    level = check_share(confidence, "confidence")
    n = len(differences)
    if n < 2:
        raise CoCoError(f"an interval needs two datasets or more, but there is {n}")
    mean = float(differences.mean())
    half = float(stdtrit(n - 1, (1 + level) / 2) * spread(differences) / np.sqrt(n))
    return Effect(mean, mean - half, mean + half)


def rank_biserial(
    first: Any, second: Any, *, confidence: float = 0.95, random_state: RandomState = 0
) -> Effect:
    """Return the rank-biserial correlation of paired scores: what Wilcoxon's test looks at.

    The sum of the ranks of differences in favour of the first, less that of the others, over the
    sum of all: 1 if the first is always ahead, 0 if nobody is. Datasets on which both are equal
    have their rank, and favour nobody. The interval is the middle of 2,000 bootstrap samples of
    the datasets; it has no width where one is ahead on all of them.

    Examples
    --------
    >>> rank_biserial([0.9, 0.8, 0.7, 0.6], [0.8, 0.6, 0.4, 0.7]).value
    0.7
    """
    differences = _differences(first, second, "a rank-biserial correlation")
    return _bootstrapped(
        lambda counts: _rank_biserials(_drawn(differences, counts)),
        len(differences),
        confidence,
        random_state,
    )


def cliffs_delta(
    first: Any, second: Any, *, confidence: float = 0.95, random_state: RandomState = 0
) -> Effect:
    """Return Cliff's delta: how much oftener a score of the first is larger than one of the second.

    Of all pairs of a dataset of the one and a dataset of the other, so that differences between
    datasets count. The interval is as that of :func:`rank_biserial`: datasets are drawn, with the
    scores of both models on them.

    Examples
    --------
    >>> cliffs_delta([3, 4, 5], [1, 2, 4]).value  # 7 larger, 1 smaller, 1 equal, of 9
    0.6666666666666666
    """
    first, second = check_pair(first, second)
    larger = np.sign(score_differences(*np.broadcast_arrays(first[:, None], second[None, :])))

    def deltas(counts: Any) -> Floats:
        totals = ((counts @ larger) * counts).sum(axis=1)
        return np.asarray(totals / len(first) ** 2)

    return _bootstrapped(deltas, len(first), confidence, random_state)


def _differences(first: Any, second: Any, what: str) -> Floats:
    return check_finite(score_differences(*check_pair(first, second)), what)


def _drawn(differences: Floats, counts: Any) -> Floats:
    """Return samples of differences, a row each, from how often each is drawn."""
    return np.stack([np.repeat(differences, row) for row in counts])


def _rank_biserials(differences: Floats) -> Floats:
    ranks = rankdata(np.abs(differences), axis=-1)
    totals = (ranks * np.sign(differences)).sum(axis=-1)
    return np.asarray(totals / ranks.sum(axis=-1))


def _bootstrapped(
    values_of: Callable[[Any], Floats], n: int, confidence: float, random_state: RandomState
) -> Effect:
    """Return a statistic of how often each row counts, and the middle of its bootstrap samples."""
    level = check_share(confidence, "confidence")
    drawn = as_generator(random_state).multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
    value = float(values_of(np.ones((1, n), dtype=drawn.dtype))[0])
    low, high = np.quantile(values_of(drawn), [(1 - level) / 2, (1 + level) / 2])
    return Effect(value, float(low), float(high))


@dataclass(frozen=True, eq=False)
class Against:
    """One model beside each of the others; positive is in favour of the one.

    Made by :func:`against`.

    Attributes
    ----------
    model : str
        The one.
    table : DataFrame
        A row per other model, in the order of the comparison: ``p_value`` (Holm's correction for
        as many tests as there are rows), ``different``, ``n_datasets`` on which both have a score,
        and ``lead``, ``rank_biserial`` and ``cliffs_delta``, each with ``_low`` and ``_high``.
    test : str
        "ranks" or "wilcoxon".
    confidence : float
        Of the intervals.
    """

    model: str
    table: Any
    test: str
    confidence: float

    def effect(self, other: str, name: str) -> Effect:
        """Return an effect size: "lead", "rank_biserial" or "cliffs_delta"."""
        row = self.table.loc[other]
        return Effect(row[name], row[f"{name}_low"], row[f"{name}_high"])

    def describe_test(self) -> str:
        """Return the name of the test."""
        named = {"ranks": "z-test on average ranks", "wilcoxon": "Wilcoxon signed-rank test"}
        return f"{named[self.test]} with Holm's correction"


def against(
    comparison: Comparison,
    model: str | None = None,
    *,
    confidence: float = 0.95,
    random_state: RandomState = 0,
) -> Against:
    """Set one model beside each of the others: a control, such as the method that is proposed.

    Tests against a control are fewer than tests of all pairs, and find more (Demsar, 2006, 3.2.2).
    Choose the control before you look: that of the best average rank is chosen by the data.

    Parameters
    ----------
    comparison : Comparison
        Its ``test`` says which test: by average ranks for "nemenyi", Wilcoxon's for "wilcoxon".
    model : str, optional
        The control; that of the best average rank if left out.
    confidence : float
        Of the intervals.
    random_state : int, Generator, RandomState or None
        For the bootstrap over datasets.

    Returns
    -------
    Against

    Examples
    --------
    >>> from cocoloss.stats import compare
    >>> scores = {"ours": [0.9, 0.8, 0.7, 0.9], "theirs": [0.8, 0.6, 0.6, 0.9]}
    >>> print(against(compare(scores), "ours").effect("theirs", "lead"))
    0.1 [-0.0299, 0.23]
    """
    model = comparison.models[0] if model is None else model
    if model not in comparison.models:
        guess = did_you_mean(model, comparison.models)
        guess = guess or f"; there are {listed(comparison.models)}"
        raise CoCoError(f"there is no model {model!r} to compare with{guess}")
    others = [name for name in comparison.models if name != model]
    sign = 1 if comparison.higher_is_better else -1
    options: dict[str, Any] = {"confidence": confidence, "random_state": random_state}
    rows = []
    for other in others:
        pair = comparison.scores[[model, other]].to_numpy(dtype=np.float64)
        both = sign * pair[np.isfinite(pair).all(axis=1)]
        effects = [Effect(*[float("nan")] * 3)] * len(EFFECTS)  # of fewer than two datasets
        if len(both) > 1:
            effects = [
                mean_difference(*both.T, confidence=confidence),
                rank_biserial(*both.T, **options),
                cliffs_delta(*both.T, **options),
            ]
        row: dict[str, Any] = {"n_datasets": len(both)}
        for name, effect in zip(EFFECTS, effects, strict=True):
            row |= {name: effect.value, f"{name}_low": effect.low, f"{name}_high": effect.high}
        rows.append(row)
    test = "ranks" if comparison.test == "nemenyi" else "wilcoxon"
    if test == "ranks":
        raw = [_rank_test(comparison, model, other) for other in others]
    else:
        raw = _signed_rank_tests(comparison, model, others)
    table = pd.DataFrame(rows, index=pd.Index(others, name="model"))
    p_values = holm(raw)
    table.insert(0, "p_value", p_values)
    table.insert(1, "different", p_values < comparison.alpha)
    return Against(model, table, test, confidence)


def _rank_test(comparison: Comparison, model: str, other: str) -> float:
    """Return the p-value of z = (R_i - R_j) / sqrt(k (k + 1) / 6N)."""
    k, n = comparison.n_models, comparison.n_datasets
    ranks = comparison.average_ranks
    z = abs(round_off(np.array(ranks[model] - ranks[other]))) / np.sqrt(k * (k + 1) / (6 * n))
    return float(min(1.0, 2 * ndtr(-z)))


def _signed_rank_tests(comparison: Comparison, model: str, others: Sequence[str]) -> list[float]:
    check_enough(comparison.n_datasets, "datasets")
    worst = -np.inf if comparison.higher_is_better else np.inf  # what a gap counts as
    scores = comparison.scores.fillna(worst)
    differences = [
        score_differences(scores[model].to_numpy(), scores[other].to_numpy()) for other in others
    ]
    return [float(signed_rank_tests(each[None])[2][0]) for each in differences]


def prose(
    comparison: Comparison,
    beside: Against | None = None,
    *,
    measure: str = "score",
    is_control: bool = False,
) -> str:
    """Return a paragraph about a comparison that can be pasted into a paper.

    Parameters
    ----------
    comparison : Comparison
    beside : Against, optional
        Sizes of differences from one model; from the best one if left out.
    measure : str
        What the scores are.
    is_control : bool
        Whether that model was chosen beforehand; only then its tests are reported.

    Examples
    --------
    >>> from cocoloss.stats import compare
    >>> scores = {"ours": [0.9, 0.8, 0.7, 0.9], "theirs": [0.8, 0.6, 0.6, 0.9]}
    >>> prose(compare(scores), measure="accuracy")[:66]
    'We compared 2 models on 4 datasets by accuracy (higher is better).'
    """
    beside = against(comparison) if beside is None else beside
    better = "higher" if comparison.higher_is_better else "lower"
    how = {
        "scores": "by their scores",
        "folds": "by how many others were significantly better over its folds",
    }[comparison.ranking]
    opening = (
        f"We compared {comparison.n_models} models on {comparison.n_datasets} datasets by "
        f"{measure} ({better} is better). Models were ranked on each dataset {how}, with "
        f"{'mean' if comparison.ranking_ties == 'average' else 'competition'} ranks for ties."
    )
    sentences = [opening]
    if comparison.dropped:
        n = len(comparison.dropped)
        sentences.append(
            f"{counted(n, 'further dataset')} {'was' if n == 1 else 'were'} left out because a "
            f"result is missing."
        )
    if comparison.filled:
        n = len(comparison.filled)
        sentences.append(
            f"{counted(n, 'missing result')} {'counts' if n == 1 else 'count'} as the worst."
        )
    friedman = comparison.friedman
    found = "rejects" if friedman.f_p_value < comparison.alpha else "does not reject"
    df = ", ".join(f"{each:g}" for each in friedman.f_df)
    sentences.append(
        f"The Friedman test {found} the hypothesis that all models perform equally "
        f"(chi2({friedman.df}) = {friedman.chi2:.2f}, {p_text(friedman.p_value)}; Iman and "
        f"Davenport's F({df}) = {friedman.f:.2f}, {p_text(friedman.f_p_value)})."
    )
    ranks = zip(comparison.average_ranks, comparison.rank_spread, strict=True)
    places = [
        f"{model} ({rank:.2f} ± {deviation:.2f})"
        for model, (rank, deviation) in zip(comparison.models, ranks, strict=True)
    ]
    sentences.append(f"Average ranks and their standard deviations are {joined(places)}.")
    sentences.append(_about_pairs(comparison))
    sentences.append(_about_one(comparison, beside, is_control=is_control))
    return " ".join(sentences)


def _about_pairs(comparison: Comparison) -> str:
    pairs = [
        f"{first} from {second} ({p_text(comparison.p_values.loc[first, second])})"
        for i, first in enumerate(comparison.models)
        for second in comparison.models[i + 1 :]
        if comparison.different.loc[first, second]
    ]
    test = comparison.describe_test()
    if not pairs:
        return f"Between models ({test}) no pair differs significantly."
    if len(pairs) > MOST_PAIRS:
        total = comparison.n_models * (comparison.n_models - 1) // 2
        return (
            f"Between models ({test}) {len(pairs)} of {total} pairs differ significantly; the "
            f"table of p-values lists them."
        )
    if not comparison.cliques:
        return f"Between models ({test}) every pair differs significantly: {joined(pairs)}."
    return f"Between models ({test}) these differ significantly, and no others: {joined(pairs)}."


def _about_one(comparison: Comparison, beside: Against, *, is_control: bool) -> str:
    level = f"{beside.confidence:.0%}".replace("%", " %")
    intervals = "by Student's t for means, else bootstrapped over datasets"
    sizes = []
    for other in beside.table.index:
        lead, rank, delta = (beside.effect(other, name) for name in EFFECTS)
        p_value = f", {p_text(beside.table.loc[other, 'p_value'])}" if is_control else ""
        sizes.append(
            f"{other} by {_sized(lead)}, rank-biserial correlation {_sized(rank)}, Cliff's delta "
            f"{_sized(delta)}{p_value}"
        )
    role = "The control" if is_control else "The model of the best average rank"
    tests = f" Tests: {beside.describe_test()}, alpha = {comparison.alpha:g}." if is_control else ""
    return (
        f"{role}, {beside.model}, leads on average over {'; over '.join(sizes)}. Intervals are "
        f"{level} confidence intervals, {intervals}; negative values favour the other model.{tests}"
    )


def _sized(effect: Effect) -> str:
    return f"{effect.value:.3g} ({effect.low:.3g} to {effect.high:.3g})"


def p_text(p_value: float) -> str:
    """Write a p-value as papers do."""
    return f"p = {p_value:.3f}" if p_value >= LEAST_SHOWN else f"p < {LEAST_SHOWN:g}"


def joined(parts: Sequence[str]) -> str:
    """Write a list with "and" before the last item."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
