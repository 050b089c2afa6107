"""Leads go with what they go with, and the largest are named."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from cocoloss.benchmark.analysis import Leads
from cocoloss.stats import holm


@pytest.fixture
def tables():
    rng = np.random.default_rng(0)
    names = [f"d{k}" for k in range(30)]
    scores = pd.DataFrame(rng.random((30, 3)), names, ["coco", "a", "b"])
    known = pd.DataFrame(
        {"n_classes": rng.integers(2, 9, 30).astype(float), "n_rows": 500.0}, names[::-1]
    )
    scores.loc["d3", "a"] = np.nan
    known.loc["d5", "n_classes"] = np.nan
    return scores, known


def test_a_tendency_is_the_correlation_of_ranks(tables):
    scores, known = tables
    found = Leads("coco", scores, known).tendencies().set_index("other")
    for other, n in (("a", 28), ("b", 29)):
        pairs = [
            (known.loc[d, "n_classes"], scores.loc[d, "coco"] - scores.loc[d, other])
            for d in scores.index
        ]
        x, y = np.array([pair for pair in pairs if not np.isnan(pair).any()]).T
        assert found.loc[other, "n_datasets"] == len(x) == n
        expected = np.corrcoef(rankdata(x), rankdata(y))[0, 1]
        assert found.loc[other, "spearman"] == pytest.approx(expected)
    assert found["p_holm"].tolist() == holm(found["p_value"]).tolist()


def test_what_is_the_same_for_all_tables_or_known_of_few_goes_with_nothing(tables):
    scores, known = tables
    assert set(Leads("coco", scores, known).tendencies()["character"]) == {"classes"}
    assert Leads("unknown", scores, known).tendencies().empty
    assert Leads("coco", scores[:4], known).tendencies().empty


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20), st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_no_lead_that_is_left_out_is_larger(pairs, n):
    scores = pd.DataFrame(pairs, columns=["coco", "rf"], dtype=float) / 5
    found = Leads("coco", scores, pd.DataFrame()).extremes("rf", n)
    leads = pd.Series([(ours - theirs) / 5 for ours, theirs in pairs], dtype=float)
    assert found["lead"].is_monotonic_decreasing
    assert sorted(found["lead"][found["lead"] > 0]) == sorted(leads[leads > 0])[-n:]
    assert sorted(found["lead"][found["lead"] < 0]) == sorted(leads[leads < 0])[:n]
    assert found.index.is_unique


TIED = [0.1 + 0.2, 0.3]  # equal but for the last digit, either way


def test_scores_that_tie_are_no_lead_and_share_their_rank():
    scores = pd.DataFrame({"coco": [*TIED, 0.3, 0.5, 0.6], "rf": [*TIED[::-1], 0.3, 0.4, 0.4]})
    known = pd.DataFrame({"n_classes": [2.0, 3, 4, 5, 6]})
    leads = Leads("coco", scores, known)
    assert leads.extremes("rf")["lead"].tolist() == pytest.approx([0.2, 0.1])
    (found,) = leads.tendencies()["spearman"]
    expected = np.corrcoef([1, 2, 3, 4, 5], [2, 2, 2, 4, 5])[0, 1]
    assert found == pytest.approx(expected)
