"""Sizes of differences, a control, and the paragraph: against loops and other packages."""

import numpy as np
import pandas as pd
import pytest
import scikit_posthocs
from autorank._util import _cliffs_delta
from scipy import stats
from statsmodels.stats.multitest import multipletests

from cocoloss.exceptions import CoCoError
from cocoloss.stats import (
    against,
    cliffs_delta,
    compare,
    mean_difference,
    prose,
    rank_biserial,
)

TABLE = {
    name: np.random.default_rng(seed).uniform(0.5, 0.9, 14) + lead
    for seed, (name, lead) in enumerate(
        {"best": 0.2, "good": 0.1, "C4.5": 0.0, "bad": -0.3}.items()
    )
}


@pytest.fixture
def pair():
    rng = np.random.default_rng(3)
    second = rng.uniform(0.5, 1, 20)
    first = second + rng.normal(0.02, 0.03, 20)
    first[3] = second[3]  # a tie
    return first, second


def test_the_mean_difference_has_the_interval_of_the_paired_t_test(pair):
    found = mean_difference(*pair, confidence=0.9)
    theirs = stats.ttest_rel(*pair).confidence_interval(0.9)
    assert found.value == pytest.approx(np.mean(pair[0] - pair[1]))
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))
    assert mean_difference([1, 2, 3], [0, 1, 2]).low == 1  # all alike: no width


def test_the_rank_biserial_correlation_is_that_of_loops_over_differences(pair):
    differences = pair[0] - pair[1]
    favour = total = 0.0
    for one in differences:
        rank = 0.5
        for other in differences:
            if abs(other) < abs(one):
                rank += 1
            elif abs(other) == abs(one):
                rank += 0.5
        favour += rank * np.sign(one)
        total += rank
    found = rank_biserial(*pair)
    assert found.value == pytest.approx(favour / total)
    assert found.low < found.value < found.high
    without = np.delete(differences, 3)  # SciPy's sums, where nothing ties
    smaller = stats.wilcoxon(without, alternative="greater").statistic
    n = len(without)
    ours = rank_biserial(without, np.zeros(n)).value
    assert ours == pytest.approx(2 * smaller / (n * (n + 1) / 2) - 1)


def test_cliffs_delta_is_that_of_autorank_and_of_a_double_loop(pair):
    count = 0
    for one in pair[0]:
        for other in pair[1]:
            count += int(one > other) - int(one < other)
    found = cliffs_delta(*pair)
    assert found.value == pytest.approx(count / 400)
    assert found.value == pytest.approx(_cliffs_delta(*map(list, pair)))
    assert -1 <= found.low <= found.value <= found.high <= 1


@pytest.mark.parametrize("effect", [rank_biserial, cliffs_delta])
def test_bootstrap_intervals_are_those_of_resampled_datasets_one_by_one(pair, effect):
    found = effect(*pair, random_state=1, confidence=0.8)
    counts = np.random.default_rng(1).multinomial(20, np.full(20, 1 / 20), size=2000)
    values = []
    for row in counts[:300]:
        drawn = np.repeat(np.arange(20), row)
        values.append(effect(pair[0][drawn], pair[1][drawn]).value)
    assert np.quantile(values, 0.1) == pytest.approx(found.low, abs=0.05)
    assert np.quantile(values, 0.9) == pytest.approx(found.high, abs=0.05)
    assert effect(*pair, random_state=1, confidence=0.8) == found


@pytest.mark.parametrize("effect", [mean_difference, rank_biserial, cliffs_delta])
def test_swapping_the_models_turns_the_sign(pair, effect):
    found, swapped = effect(*pair), effect(*pair[::-1])
    assert swapped.value == pytest.approx(-found.value)
    assert swapped.low == pytest.approx(-found.high, abs=0.02)


def test_a_control_by_wilcoxon_is_corrected_for_as_many_tests_as_there_are_others():
    rng = np.random.default_rng(0)
    base = rng.uniform(0.6, 0.9, (30, 1))
    scores = base + rng.normal([0.03, 0.02, 0.0, -0.01], 0.02, (30, 4))
    table = dict(zip("abcd", scores.T, strict=True))
    found = against(compare(table, test="wilcoxon"), "c").table
    found = found.loc[["a", "b", "d"]]
    raw = [stats.wilcoxon(table["c"], table[m], method="exact").pvalue for m in "abd"]
    assert found["p_value"].tolist() == pytest.approx(multipletests(raw, method="holm")[1].tolist())
    # Of all pairs Holm's correction is for six tests: against a control more is found.
    pairs = scikit_posthocs.posthoc_wilcoxon(scores.T.tolist(), p_adjust="holm")
    assert (found["p_value"].to_numpy() <= pairs.loc[3, [1, 2, 4]].to_numpy() + 1e-12).all()


def test_leads_are_in_favour_of_whoever_has_less_of_an_error():
    errors = {"ours": [1.0, 2.0, 3.0], "theirs": [2.0, 3.5, 4.0]}
    found = against(compare(errors, higher_is_better=False), "ours")
    assert found.effect("theirs", "lead").value == pytest.approx(3.5 / 3)
    assert found.effect("theirs", "rank_biserial").value == 1


def test_gaps_that_count_as_the_worst_have_no_part_in_sizes():
    scores = {"a": [0.9, 0.8, None, 0.7], "b": [0.8, 0.8, 0.9, 0.6], "c": [0.5, 0.6, 0.4, 0.3]}
    found = against(compare(scores, missing="worst"), "b").table
    assert found.loc["a", "n_datasets"] == 3
    assert found.loc["a", "lead"] == pytest.approx(-0.2 / 3)
    few = {"a": [0.9, None, None], "b": [0.8, 0.8, 0.9], "c": [None, 0.6, 0.4]}
    assert np.isnan(against(compare(few, missing="worst"), "a").table.loc["c", "lead"])


def test_an_unknown_control_is_refused_with_the_one_that_was_meant():
    with pytest.raises(CoCoError, match=r"no model 'C45' to compare with; did you mean 'C4\.5'"):
        against(compare(TABLE), "C45")
    with pytest.raises(CoCoError, match="two datasets or more, but there is 1"):
        mean_difference([1.0], [2.0])


def test_the_paragraph_says_what_the_tables_say():
    comparison = compare(TABLE, alpha=0.1)
    beside = against(comparison, "C4.5")
    text = prose(comparison, beside, measure="AUC", is_control=True)
    assert "\n" not in text
    assert text.startswith("We compared 4 models on 14 datasets by AUC (higher is better).")
    spread = comparison.rank_spread["best"]
    assert f"best ({comparison.average_ranks['best']:.2f} ± {spread:.2f})" in text
    assert f"F(3, 39) = {comparison.friedman.f:.2f}" in text
    first, last = comparison.models[0], comparison.models[-1]
    assert comparison.p_values.loc[first, last] < 0.001
    assert f"{first} from {last} (p < 0.001)" in text
    for other in beside.table.index:
        lead, p_value = beside.effect(other, "lead"), beside.table.loc[other, "p_value"]
        assert f"over {other} by {lead.value:.3g} ({lead.low:.3g} to {lead.high:.3g})" in text
        assert (f"p = {p_value:.3f}" if p_value >= 0.001 else "p < 0.001") in text
    assert "The control, C4.5," in text
    without = prose(compare(TABLE, alpha=0.1), measure="AUC")
    assert f"The model of the best average rank, {comparison.models[0]}," in without
    assert "Tests:" not in without


def test_prose_counts_pairs_that_are_too_many_to_name():
    scores = {f"model {k}": [k + 0.01 * d for d in range(40)] for k in range(8)}
    assert "of 28 pairs differ significantly; the table" in prose(compare(scores))


def test_prose_counts_what_is_missing():
    frame = pd.DataFrame(TABLE)
    for n, left_out, filled in [
        (1, "1 further dataset was left out", "1 missing result counts as the worst"),
        (2, "2 further datasets were left out", "2 missing results count as the worst"),
    ]:
        gaps = frame.mask((frame.index.to_numpy()[:, None] < n) & (frame.columns == "good"))
        assert left_out in prose(compare(gaps, missing="drop_datasets"))
        assert filled in prose(compare(gaps, missing="worst"))
