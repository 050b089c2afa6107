import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from autorank import autorank
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cocoloss.stats import (
    bayesian_signed_rank,
    compare,
    critical_distance,
    nemenyi,
    pairwise_p_values,
    rank_models,
    significance_ranks,
)

LEVELS = {"good": 0.8, "bad": 0.6, "fair": 0.75, "best": 0.9}


def table(n=30, noise=0.05, seed=0, levels=LEVELS):
    rng = np.random.default_rng(seed)
    base = rng.normal(0, 0.1, n)
    return pd.DataFrame({m: base + v + rng.normal(0, noise, n) for m, v in levels.items()})


def fold_table(n_datasets=8, n_folds=10, seed=0, noise=0.08):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        [
            {"dataset": d, "model": m, "fold": f, "score": v + rng.normal() * noise}
            for d in range(n_datasets)
            for m, v in LEVELS.items()
            for f in range(n_folds)
        ]
    )


@pytest.mark.parametrize("test", ["nemenyi", "wilcoxon"])
def test_the_order_of_the_columns_does_not_matter(test):
    one, other = compare(table(), test=test), compare(table()[sorted(LEVELS)], test=test)
    assert one.models == other.models
    pd.testing.assert_frame_equal(one.p_values, other.p_values)
    assert one.cliques == other.cliques


def test_the_best_comes_first_and_equal_ranks_are_ordered_by_score_then_name():
    assert compare(table()).models == ("best", "good", "fair", "bad")
    assert compare(table(), higher_is_better=False).models == ("bad", "fair", "good", "best")
    assert compare({"b": [0.5, 0.4], "a": [0.4, 0.5]}).models == ("a", "b")
    assert compare({"a": [0.4, 0.5], "z": [0.3, 0.9]}).models == ("z", "a")


def test_ranks_are_those_of_the_scores():
    comparison = compare(table())
    expected = pd.DataFrame(rank_models(table()), columns=list(LEVELS))
    for model in LEVELS:
        assert comparison.ranks[model].tolist() == expected[model].tolist()
        assert comparison.average_ranks[model] == pytest.approx(expected[model].mean())
        assert comparison.rank_spread[model] == pytest.approx(expected[model].std())
        assert comparison.mean_scores[model] == pytest.approx(table()[model].mean())


def test_nemenyi_is_told_by_the_distance():
    comparison = compare(table(noise=0.2))
    assert comparison.critical_distance == critical_distance(4, 30)
    ranks = comparison.average_ranks
    for a, b in itertools.combinations(comparison.models, 2):
        far = abs(ranks[a] - ranks[b]) > comparison.critical_distance
        assert comparison.different.loc[a, b] == comparison.different.loc[b, a] == far
    assert comparison.different.to_numpy().any()
    assert not comparison.different.to_numpy().all()
    assert (comparison.p_values.to_numpy() == nemenyi(ranks.to_numpy(), 30)).all()


def test_wilcoxon_is_told_by_the_adjusted_p_values():
    comparison = compare(table(noise=0.1), test="wilcoxon")
    expected = pairwise_p_values(table(noise=0.1)[list(comparison.models)])
    assert comparison.critical_distance is None
    assert (comparison.p_values.to_numpy() == expected).all()
    assert (comparison.different.to_numpy() == (expected < 0.05)).all()


def test_agrees_with_autorank():
    scores = table(n=40, noise=0.15)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = autorank(scores, alpha=0.05, force_mode="nonparametric", order="descending")
    ours = compare(scores)
    assert theirs.omnibus == "friedman"
    assert ours.friedman.p_value == pytest.approx(theirs.pvalue, rel=1e-6)
    assert ours.critical_distance == pytest.approx(theirs.cd, rel=1e-4)  # from a table of quantiles
    expected = theirs.rankdf["meanrank"]
    assert dict(ours.average_ranks) == pytest.approx(dict(expected))


def test_ranking_by_folds_is_the_papers():
    frame = fold_table()
    comparison = compare(frame, ranking="folds")
    for dataset, rows in frame.groupby("dataset"):
        folds = rows.pivot(index="fold", columns="model", values="score")
        expected = dict(zip(folds.columns, significance_ranks(folds), strict=True))
        assert dict(comparison.ranks.loc[str(dataset)]) == expected
    assert comparison.ranking_ties == "competition"
    assert comparison.ranks.sum(axis=1).min() < 10  # there are ties, and they are not averaged
    averaged = compare(frame, ranking="folds", ties="average")
    assert (averaged.ranks.sum(axis=1) == 10).all()
    by_t = compare(fold_table(n_folds=5), ranking="folds", fold_test="corrected_t")
    assert by_t.models[0] == "best"


def test_ranking_by_scores_averages_folds_first():
    frame = fold_table()
    means = frame.pivot_table(index="dataset", columns="model", values="score")
    pd.testing.assert_series_equal(
        compare(frame).average_ranks, compare(means).average_ranks, check_names=False
    )


@settings(deadline=None)
@given(arrays(float, (7, 5), elements=st.integers(0, 4).map(float)), st.booleans())
def test_wins_ties_and_losses_are_counted(scores, higher_is_better):
    comparison = compare(scores, higher_is_better=higher_is_better)
    for a, b in itertools.permutations(comparison.models, 2):
        first = scores[:, int(a.removeprefix("model ")) - 1]
        second = scores[:, int(b.removeprefix("model ")) - 1]
        better = sum(first > second) if higher_is_better else sum(first < second)
        assert comparison.wins.loc[a, b] == comparison.losses.loc[b, a] == better
        assert comparison.ties.loc[a, b] == sum(first == second)
    assert np.trace(comparison.wins) == np.trace(comparison.ties) == 0
    frame = comparison.to_frame()
    assert tuple(frame.index) == comparison.models
    assert ((frame.wins + frame.ties + frame.losses) == 4 * 7).all()


@settings(deadline=None)
@given(
    arrays(float, (12, 6), elements=st.integers(0, 9).map(float)),
    st.sampled_from(["nemenyi", "wilcoxon"]),
)
def test_nothing_is_ever_nan_and_cliques_state_every_pair_as_it_is(scores, test):
    comparison = compare(scores, test=test, alpha=0.2)
    for part in ("ranks", "average_ranks", "rank_spread", "p_values"):
        assert np.isfinite(getattr(comparison, part)).all(axis=None)
    assert np.isfinite([comparison.friedman.p_value, comparison.friedman.f_p_value]).all()
    together = {
        frozenset(pair) for group in comparison.cliques for pair in itertools.combinations(group, 2)
    }
    for a, b in itertools.combinations(comparison.models, 2):
        assert (frozenset((a, b)) in together) == (not comparison.different.loc[a, b])


def test_the_rope_asks_for_probabilities():
    assert compare(table()).bayes is None
    scores = table(n=12, noise=0.1)
    for higher in (True, False):
        bayes = compare(scores, rope=0.02, higher_is_better=higher).bayes
        assert len(bayes) == 6
        for row in bayes.itertuples():
            single = bayesian_signed_rank(
                scores[row.first], scores[row.second], rope=0.02, higher_is_better=higher
            )
            expected = (single.first, single.equal, single.second)
            assert (row.first_better, row.equal, row.second_better) == pytest.approx(expected)


def test_what_a_comparison_prints_says_what_was_done():
    text = str(compare(table()))
    assert "4 models on 30 datasets, higher is better" in text
    assert "ranked by score, ties: average" in text
    assert "Nemenyi, alpha = 0.05, critical distance 0.856" in text
    assert "Friedman chi2 =" in text
    assert "not different: good, fair" in text
    assert repr(compare(table())) == str(compare(table()))
    by_folds = str(compare(fold_table(), ranking="folds", test="wilcoxon"))
    assert "ranked by significance over folds, ties: competition" in by_folds
    assert "Wilcoxon signed-rank with Holm's correction, alpha = 0.05" in by_folds

    comparison = compare(np.arange(9.0) + np.zeros((200, 1)))
    assert comparison.friedman.f_p_value == 0  # but none is printed so
    assert "p < 1e-300" in str(comparison)
    assert comparison.describe_friedman() == "Friedman p < 1e-300"
