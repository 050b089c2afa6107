import numpy as np
import pandas as pd
import pytest

from cocoloss.exceptions import CoCoError
from cocoloss.stats import compare, complete, read_scores


def gappy(n=8, gaps=((1, "b"), (4, "c"))):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((n, 3)), columns=list("abc"), index=[f"d{i}" for i in range(n)])
    for row, model in gaps:
        frame.loc[f"d{row}", model] = np.nan
    return frame


def test_by_default_the_missing_cells_are_named():
    with pytest.raises(
        CoCoError, match=r"2 results are missing: 'b' on 'd1'; 'c' on 'd4'\. Run what"
    ):
        compare(gappy())


def test_many_missing_cells_are_counted():
    gaps = [(i, "a") for i in range(7)]
    with pytest.raises(CoCoError, match=r"7 result.*'a' on 'd4' and 2 more"):
        compare(gappy(gaps=gaps))


def test_a_complete_table_is_left_alone_by_every_policy():
    table = read_scores(gappy(gaps=()))
    for policy in ("raise", "drop_datasets", "worst"):
        result = complete(table, policy)
        assert result.table is table
        assert (result.dropped, result.filled) == ((), ())


def test_dropping_compares_on_complete_datasets_only():
    comparison = compare(gappy(), missing="drop_datasets")
    assert comparison.dropped == ("d1", "d4")
    expected = compare(gappy().drop(index=["d1", "d4"]))
    assert comparison.datasets == expected.datasets
    pd.testing.assert_frame_equal(comparison.p_values, expected.p_values)
    assert "left out, a result is missing: d1, d4" in str(comparison)


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_the_worst_comes_behind_all_that_have_a_result(higher_is_better):
    frame = gappy(gaps=((1, "b"), (4, "b"), (4, "c")))
    comparison = compare(frame, missing="worst", higher_is_better=higher_is_better)
    assert comparison.ranks.loc["d1", "b"] == 3
    assert comparison.ranks.loc["d4", ["a", "b", "c"]].tolist() == [1, 2.5, 2.5]
    assert comparison.filled == (("d1", "b"), ("d4", "b"), ("d4", "c"))
    assert "missing, counted as the worst: b on d1, b on d4, c on d4" in str(comparison)


def test_scores_of_filled_cells_stay_empty_and_means_are_over_common_datasets():
    comparison = compare(gappy(), missing="worst")
    assert np.isnan(comparison.scores.loc["d1", "b"])
    assert comparison.scores.isna().to_numpy().sum() == len(comparison.filled)
    common = gappy().drop(index=["d1", "d4"])
    assert comparison.common_datasets == tuple(common.index)
    for model in "abc":
        assert comparison.mean_scores[model] == pytest.approx(common[model].mean())
    assert "mean scores are over the 6 of 8 datasets on which every model" in str(comparison)


def test_without_a_common_dataset_means_are_of_what_is_there_and_said_to_be_so():
    frame = gappy(n=3, gaps=((0, "a"), (1, "b"), (2, "c")))
    comparison = compare(frame, missing="worst")
    assert comparison.common_datasets == ()
    assert comparison.mean_scores["b"] == pytest.approx(frame["b"].mean())
    assert "over different datasets, and cannot be compared" in str(comparison)


def test_all_datasets_are_common_where_nothing_is_missing():
    comparison = compare(gappy(gaps=()))
    assert comparison.common_datasets == comparison.datasets
    assert comparison.describe_means() == "mean scores are over all 8 datasets"


def test_a_rope_is_refused_where_a_gap_counts_as_the_worst():
    with pytest.raises(CoCoError, match="rope needs a score in every cell, but 'b' has none on"):
        compare(gappy(), missing="worst", rope=0.01)


def test_missing_folds_are_counted():
    frame = fold_rows()
    lost = (frame.dataset == "d1") & (frame.model == "b") & (frame.fold < 3)
    whole = (frame.dataset == "d2") & (frame.model == "c")
    with pytest.raises(CoCoError, match=r"'b' on 'd1' \(3 of 10 folds\); 'c' on 'd2'\. Run"):
        compare(frame[~lost & ~whole], ranking="folds")


def test_the_worst_loses_in_the_signed_rank_test_too():
    frame = pd.DataFrame({"a": np.linspace(0.5, 0.6, 8), "b": np.linspace(0.51, 0.61, 8)})
    frame.loc[:6, "b"] = np.nan
    comparison = compare(frame, missing="worst", test="wilcoxon")
    assert comparison.models == ("a", "b")
    assert comparison.wins.loc["a", "b"] == 7
    assert comparison.p_values.loc["a", "b"] == pytest.approx(2 * 2 / 2**8)  # ranks 1 and 2 to 8


def test_nothing_in_a_result_is_nan_by_accident():
    comparison = compare(gappy(), missing="worst", test="wilcoxon")
    for part in ("ranks", "average_ranks", "rank_spread", "mean_scores", "p_values"):
        assert np.isfinite(getattr(comparison, part)).all(axis=None)


def fold_rows(n_folds=10):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        [
            {"dataset": d, "model": m, "fold": f, "score": level + rng.normal() * 0.01}
            for d in ("d0", "d1", "d2")
            for m, level in (("a", 0.9), ("b", 0.8), ("c", 0.7))
            for f in range(n_folds)
        ]
    )


@pytest.mark.parametrize(("ties", "expected"), [("competition", [1, 3, 2]), ("average", [1, 3, 2])])
def test_a_lost_fold_makes_a_model_the_worst_in_the_ranking_by_folds(ties, expected):
    frame = fold_rows()
    lost = (frame.dataset == "d1") & (frame.model == "b") & (frame.fold == 3)
    with pytest.raises(CoCoError, match="'b' on 'd1'"):
        compare(frame[~lost], ranking="folds")
    comparison = compare(frame[~lost], ranking="folds", missing="worst", ties=ties)
    assert comparison.ranks.loc["d1", ["a", "b", "c"]].tolist() == expected
    assert comparison.ranks.loc["d0", ["a", "b", "c"]].tolist() == [1, 2, 3]


def test_a_model_alone_on_a_dataset_is_first_there():
    frame = fold_rows()
    frame = frame[(frame.dataset != "d1") | (frame.model == "c")]
    comparison = compare(frame, ranking="folds", missing="worst")
    assert comparison.ranks.loc["d1", ["a", "b", "c"]].tolist() == [2, 2, 1]


def test_dropping_drops_the_folds_as_well():
    frame = fold_rows()
    comparison = compare(
        frame[(frame.dataset != "d1") | (frame.model != "b")],
        ranking="folds",
        missing="drop_datasets",
    )
    assert comparison.datasets == ("d0", "d2")
    assert comparison.dropped == ("d1",)


def test_refuses_when_too_little_is_left():
    frame = gappy(n=3, gaps=((0, "a"), (1, "a"), (2, "b")))
    said = r"3 of 3 datasets.*lacks most, 'a' \(2 missing\), or choose missing='worst'"
    with pytest.raises(CoCoError, match=said):
        compare(frame, missing="drop_datasets")


def test_refuses_a_model_or_a_dataset_without_any_result():
    with pytest.raises(CoCoError, match="model 'b' has no result; leave it out"):
        compare(gappy(n=3, gaps=[(i, "b") for i in range(3)]), missing="worst")
    with pytest.raises(CoCoError, match="dataset 'd1' has no result"):
        compare(gappy(n=3, gaps=[(1, m) for m in "abc"]), missing="worst")


def test_refuses_an_unknown_policy():
    with pytest.raises(CoCoError, match="missing must be one of 'raise', 'drop_datasets', 'worst'"):
        compare(gappy(), missing="ignore")
