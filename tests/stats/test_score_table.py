import numpy as np
import pandas as pd
import polars as pl
import pytest

from cocoloss.exceptions import CoCoError
from cocoloss.stats import compare, complete, read_scores


def long_table(n_folds=None, seed=0):
    rng = np.random.default_rng(seed)
    folds = [None] if n_folds is None else range(n_folds)
    rows = [
        {"dataset": dataset, "model": model, "fold": fold, "score": round(rng.random(), 3)}
        for dataset in ("iris", "wine", "glass")
        for model in ("svm", "coco")
        for fold in folds
    ]
    frame = pd.DataFrame(rows)
    return frame.drop(columns="fold") if n_folds is None else frame


def test_rows_of_a_wide_frame_are_named_by_its_index_or_a_column():
    frame = pd.DataFrame({"a": [0.1, 0.2], "b": [3, 4]}, index=["iris", "wine"])
    for wide in (frame, frame.rename_axis("dataset").reset_index()):
        table = read_scores(wide)
        assert (table.datasets, table.models, table.folds) == (("iris", "wine"), ("a", "b"), None)
        assert table.scores.tolist() == [[0.1, 3], [0.2, 4]]


def test_reads_a_long_frame_in_any_order_of_rows():
    frame = long_table()
    table = read_scores(frame)
    assert (table.datasets, table.models) == (("iris", "wine", "glass"), ("svm", "coco"))
    for row in frame.itertuples():
        at = table.datasets.index(row.dataset), table.models.index(row.model)
        assert table.scores[at] == row.score
    shuffled = read_scores(frame.sample(frac=1, random_state=1))
    order = [shuffled.datasets.index(name) for name in table.datasets]
    columns = [shuffled.models.index(name) for name in table.models]
    assert (shuffled.scores[np.ix_(order, columns)] == table.scores).all()


def test_folds_are_paired_by_their_label_and_averaged():
    frame = long_table(n_folds=4).sample(frac=1, random_state=0)
    table = read_scores(frame)
    for dataset, folds, means in zip(table.datasets, table.folds, table.scores, strict=True):
        rows = frame[frame.dataset == dataset].pivot(index="fold", columns="model", values="score")
        expected = rows[list(table.models)]
        assert {tuple(row) for row in folds} == {tuple(row) for row in expected.to_numpy()}
        assert means == pytest.approx(expected.mean().to_numpy())


def test_datasets_may_have_different_numbers_of_folds():
    frame = long_table(n_folds=5)
    frame = frame[(frame.dataset != "wine") | (frame.fold < 3)]
    assert [len(folds) for folds in read_scores(frame).folds] == [5, 3, 5]


@pytest.mark.parametrize("n_folds", [None, 4])  # a model that lacks one fold has no mean
def test_rows_that_are_not_there_are_missing(n_folds):
    frame = long_table(n_folds)
    lost = (frame.dataset == "wine") & (frame.model == "coco")
    table = read_scores(frame[~(lost if n_folds is None else lost & (frame.fold == 2))])
    assert np.argwhere(np.isnan(table.scores)).tolist() == [[1, 1]]
    assert n_folds is None or np.isnan(table.folds[1]).sum() == 1


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA])
def test_empty_cells_are_missing(gap):
    frame = pd.DataFrame({"a": [0.1, gap], "b": [0.3, 0.4]}, dtype=object)
    assert np.argwhere(np.isnan(read_scores(frame).scores)).tolist() == [[1, 0]]
    assert np.isnan(read_scores(frame.astype("Float64")).scores[1, 0])
    assert read_scores({"a": [np.inf, 0.1], "b": [0.2, 0.3]}).scores[0, 0] == np.inf


def test_reads_mappings_arrays_and_polars():
    rows = [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]
    columns = {"a": [0.1, 0.3, 0.5], "b": [0.2, 0.4, 0.6]}
    for scores in (rows, np.array(rows), columns, pl.DataFrame(columns)):
        assert read_scores(scores).scores.tolist() == rows
    assert read_scores(rows).models == ("model 1", "model 2")
    long = pl.DataFrame(long_table().to_dict("list"))
    assert read_scores(long).scores.tolist() == read_scores(long_table()).scores.tolist()


def test_names_that_are_numbers_and_categories_become_text():
    frame = long_table(n_folds=2).astype({"dataset": "category", "model": "category"})
    assert read_scores(frame).models == ("svm", "coco")
    wide = pd.DataFrame([[0.1, 0.2], [0.3, 0.4]], index=[31, 37])
    assert (read_scores(wide).datasets, read_scores(wide).models) == (("31", "37"), ("0", "1"))


def gappy(n=8, gaps=((1, "b"), (4, "c"))):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((n, 3)), columns=list("abc"), index=[f"d{i}" for i in range(n)])
    for row, model in gaps:
        frame.loc[f"d{row}", model] = np.nan
    return frame


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


def test_the_worst_loses_in_the_signed_rank_test_too():
    frame = pd.DataFrame({"a": np.linspace(0.5, 0.6, 8), "b": np.linspace(0.51, 0.61, 8)})
    frame.loc[:6, "b"] = np.nan
    comparison = compare(frame, missing="worst", test="wilcoxon")
    assert comparison.models == ("a", "b")
    assert comparison.wins.loc["a", "b"] == 7
    assert comparison.p_values.loc["a", "b"] == pytest.approx(2 * 2 / 2**8)  # ranks 1 and 2 to 8


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


@pytest.mark.parametrize("ties", ["competition", "average"])
def test_a_lost_fold_makes_a_model_the_worst_in_the_ranking_by_folds(ties):
    frame = fold_rows()
    lost = (frame.dataset == "d1") & (frame.model == "b") & (frame.fold == 3)
    comparison = compare(frame[~lost], ranking="folds", missing="worst", ties=ties)
    assert comparison.ranks.loc["d1", ["a", "b", "c"]].tolist() == [1, 3, 2]
    assert comparison.ranks.loc["d0", ["a", "b", "c"]].tolist() == [1, 2, 3]


def test_a_model_alone_on_a_dataset_is_first_there():
    frame = fold_rows()
    frame = frame[(frame.dataset != "d1") | (frame.model == "c")]
    comparison = compare(frame, ranking="folds", missing="worst")
    assert comparison.ranks.loc["d1", ["a", "b", "c"]].tolist() == [2, 2, 1]


def test_dropping_drops_the_folds_as_well():
    frame = fold_rows()
    kept = frame[(frame.dataset != "d1") | (frame.model != "b")]
    comparison = compare(kept, ranking="folds", missing="drop_datasets")
    assert (comparison.datasets, comparison.dropped) == (("d0", "d2"), ("d1",))


REFUSED = [
    (gappy(), {}, r"2 results are missing: 'b' on 'd1'; 'c' on 'd4'\. Run what"),
    (gappy(10, [(i, "a") for i in range(9)]), {}, r"9 results are.*'a' on 'd7' and 1 more"),
    (gappy(), {"missing": "worst", "rope": 0.01}, "rope needs a score in .*but 'b' has none on"),
    (
        gappy(3, ((0, "a"), (1, "a"), (2, "b"))),
        {"missing": "drop_datasets"},
        r"3 of 3 datasets.*lacks most, 'a' \(2 missing\), or set `missing` to worst",
    ),
    (gappy(3, [(i, "b") for i in range(3)]), {"missing": "worst"}, "model 'b' has no result; leav"),
    (gappy(3, [(1, m) for m in "abc"]), {"missing": "worst"}, "dataset 'd1' has no result"),
    (
        fold_rows().drop(index=[*range(40, 43), *range(80, 90)]),
        {"ranking": "folds"},
        r"'b' on 'd1' \(3 of 10 folds\); 'c' on 'd2'\. Run",
    ),
]


@pytest.mark.parametrize(("scores", "options", "message"), REFUSED)
def test_refuses_gaps_that_the_policy_does_not_allow(scores, options, message):
    with pytest.raises(CoCoError, match=message):
        compare(scores, **options)
