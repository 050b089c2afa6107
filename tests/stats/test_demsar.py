"""Numbers printed in Demsar, "Statistical comparisons of classifiers", JMLR 7 (2006)."""

import numpy as np
import pandas as pd
import pytest

from cocoloss.stats import (
    against,
    compare,
    critical_distance,
    friedman,
    holm,
    nemenyi,
    rank_models,
    wilcoxon_paired,
)

MODELS = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]
TABLE = pd.DataFrame(
    {
        "adult (sample)": [0.763, 0.768, 0.771, 0.798],
        "breast cancer": [0.599, 0.591, 0.590, 0.569],
        "breast cancer wisconsin": [0.954, 0.971, 0.968, 0.967],
        "cmc": [0.628, 0.661, 0.654, 0.657],
        "ionosphere": [0.882, 0.888, 0.886, 0.898],
        "iris": [0.936, 0.931, 0.916, 0.931],
        "liver disorders": [0.661, 0.668, 0.609, 0.685],
        "lung cancer": [0.583, 0.583, 0.563, 0.625],
        "lymphography": [0.775, 0.838, 0.866, 0.875],
        "mushroom": [1.000, 1.000, 1.000, 1.000],
        "primary tumor": [0.940, 0.962, 0.965, 0.962],
        "rheum": [0.619, 0.666, 0.614, 0.669],
        # The table has 0.975 twice. The average ranks, 2.893 and 1.964, come out only if these
        # two are ranked 2 and 3; a fourth digit, which is ours, puts them in that order.
        "voting": [0.972, 0.981, 0.9751, 0.9749],
        "wine": [0.957, 0.978, 0.946, 0.970],
    },
    index=MODELS,
).T
Q_05 = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]  # k = 2, ..., 10
Q_10 = [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920]


def test_reproduces_the_printed_average_ranks():
    average = rank_models(TABLE).mean(axis=0)
    assert average.round(3).tolist() == [3.143, 2.000, 2.893, 1.964]


def test_reproduces_the_printed_friedman_statistics():
    result = friedman(rank_models(TABLE), correct_ties=False)
    assert result.chi2 == pytest.approx(9.28, abs=0.005)
    assert result.f == pytest.approx(3.69, abs=0.005)
    assert result.f_df == (3, 39)


def test_reproduces_the_printed_rank_sums_of_the_signed_rank_test():
    result = wilcoxon_paired(TABLE["C4.5+m"], TABLE["C4.5"])
    assert (result.sum_first, result.sum_second) == (93, 12)
    assert result.n_zeros == 2
    assert result.p_value < 0.05  # printed: significant, since 12 is at most 21


@pytest.mark.parametrize(("alpha", "printed"), [(0.05, Q_05), (0.10, Q_10)])
@pytest.mark.parametrize("k", range(2, 11))
def test_reproduces_the_printed_quantiles(alpha, printed, k):
    q = critical_distance(k, 6, alpha) / np.sqrt(k * (k + 1) / 36)
    assert q == pytest.approx(printed[k - 2], abs=0.001)  # some are printed cut, not rounded


def test_reproduces_the_printed_critical_distances():
    # From q rounded to two digits, 2.57 and 2.29.
    assert critical_distance(4, 14) == pytest.approx(1.25, abs=0.005)
    assert critical_distance(4, 14, alpha=0.10) == pytest.approx(1.12, abs=0.005)


def test_reproduces_the_printed_verdicts_of_the_nemenyi_test():
    # At 0.05 nothing differs; at 0.10 C4.5 differs from the two with m, by 1.143 and 1.179.
    assert not compare(TABLE).different.to_numpy().any()
    comparison = compare(TABLE, alpha=0.10)
    found = {frozenset((a, b)) for a in MODELS for b in MODELS if comparison.different.loc[a, b]}
    assert found == {frozenset(("C4.5", "C4.5+m")), frozenset(("C4.5", "C4.5+m+cf"))}


def test_two_models_have_the_p_value_of_a_normal_variable():
    # With two models the studentised range is |z| times the root of 2: here z = 1.179 / 0.488.
    p_value = nemenyi([1.0, 1.0 + 2.416 * np.sqrt(1 / 14)], 14)[0, 1]
    assert p_value == pytest.approx(0.016, abs=0.0005)


def test_reproduces_the_printed_verdicts_of_the_holm_procedure():
    # Printed: 0.016 < 0.017 and 0.019 < 0.025 are rejected, 0.607 is not.
    adjusted = holm([0.607, 0.016, 0.019])
    assert adjusted == pytest.approx([0.607, 0.048, 0.048])


def test_a_control_reproduces_the_printed_tests_by_average_ranks():
    # Demsar's section 3.2.2: z = 2.416 and 2.342 and .512, p = .016, .019 and .607, before Holm.
    found = against(compare(TABLE), "C4.5").table
    raw = {"C4.5+m+cf": 0.016, "C4.5+m": 0.019, "C4.5+cf": 0.607}
    assert found.loc[list(raw), "p_value"].tolist() == pytest.approx(
        holm([*raw.values()]), abs=0.002
    )
    assert found["different"].to_dict() == {"C4.5+m+cf": True, "C4.5+m": True, "C4.5+cf": False}
    assert (found.loc[["C4.5+m+cf", "C4.5+m"], "lead"] < 0).all()
