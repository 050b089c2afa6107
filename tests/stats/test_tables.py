import numpy as np
import pandas as pd
import polars as pl
import pytest

from cocoloss.exceptions import CoCoError
from cocoloss.stats import read_scores


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


def test_reads_a_wide_frame():
    frame = pd.DataFrame({"a": [0.1, 0.2], "b": [3, 4]}, index=["iris", "wine"])
    table = read_scores(frame)
    assert (table.datasets, table.models, table.folds) == (("iris", "wine"), ("a", "b"), None)
    assert table.scores.tolist() == [[0.1, 3], [0.2, 4]]


def test_a_column_called_dataset_names_the_rows_of_a_wide_frame():
    frame = pd.DataFrame({"dataset": ["iris", "wine"], "a": [0.1, 0.2], "b": [0.3, 0.4]})
    table = read_scores(frame)
    assert table.datasets == ("iris", "wine")
    assert table.models == ("a", "b")


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


def test_folds_are_kept_and_averaged():
    frame = long_table(n_folds=4).sample(frac=1, random_state=0)
    table = read_scores(frame)
    for dataset, folds, means in zip(table.datasets, table.folds, table.scores, strict=True):
        for place, model in enumerate(table.models):
            chosen = frame[(frame.dataset == dataset) & (frame.model == model)]
            assert sorted(folds[:, place]) == sorted(chosen.score)
            assert means[place] == pytest.approx(chosen.score.mean())


def test_folds_are_paired_by_their_label():
    frame = long_table(n_folds=3).sample(frac=1, random_state=2)
    table = read_scores(frame)
    wine = frame[frame.dataset == "wine"].pivot(index="fold", columns="model", values="score")
    folds = table.folds[table.datasets.index("wine")]
    expected = {tuple(row) for row in wine[list(table.models)].to_numpy()}
    assert {tuple(row) for row in folds} == expected


def test_datasets_may_have_different_numbers_of_folds():
    frame = long_table(n_folds=5)
    frame = frame[(frame.dataset != "wine") | (frame.fold < 3)]
    assert [len(folds) for folds in read_scores(frame).folds] == [5, 3, 5]


def test_rows_that_are_not_there_are_missing():
    frame = long_table()
    table = read_scores(frame[~((frame.dataset == "wine") & (frame.model == "coco"))])
    assert np.argwhere(np.isnan(table.scores)).tolist() == [[1, 1]]


def test_a_model_that_lacks_one_fold_has_no_mean():
    frame = long_table(n_folds=4)
    lost = (frame.dataset == "wine") & (frame.model == "coco") & (frame.fold == 2)
    table = read_scores(frame[~lost])
    assert np.argwhere(np.isnan(table.scores)).tolist() == [[1, 1]]
    assert np.isnan(table.folds[1]).sum() == 1


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA])
def test_empty_cells_are_missing(gap):
    frame = pd.DataFrame({"a": [0.1, gap], "b": [0.3, 0.4]}, dtype=object)
    assert np.argwhere(np.isnan(read_scores(frame).scores)).tolist() == [[1, 0]]
    assert np.isnan(read_scores(frame.astype("Float64")).scores[1, 0])


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


def test_infinite_scores_are_kept():
    table = read_scores({"a": [np.inf, 0.1], "b": [0.2, 0.3]})
    assert table.scores[0, 0] == np.inf


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({"a": [0.1, 0.2]}, "scores has one model, 'a'; a comparison needs two"),
        ({"a": [0.1], "b": [0.2]}, r"one dataset, '0'.*significance_ranks"),
        ({"a": [0.1], "b": [0.2, 0.3]}, "one list per model"),
        ({"a": ["0.5", "failed"], "b": [0.2, 0.3]}, r"model 'a' has 'failed' at 1; leave a failed"),
        (np.zeros((2, 3, 4)), r"shape \(2, 3, 4\); for folds"),
        ([["a", "b"]], "must hold numbers only"),
        (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), "model names must differ.*'a'"),
        (pd.DataFrame([[1, 2], [3, 4]], columns=["1", 1]), "model names must differ.*'1'"),
        (
            pd.DataFrame([[1, 2], [3, 4]], index=["x", "x"]),
            "dataset names must differ.*'x'; for several",
        ),
        (long_table().drop(columns="score"), r"'score' is missing; the columns are 'dataset'"),
        (long_table().drop(columns="dataset"), r"'dataset' is missing"),
        (long_table().iloc[:0], "scores has no model"),
    ],
)
def test_refuses_what_is_no_table(scores, message):
    with pytest.raises(CoCoError, match=message):
        read_scores(scores)


def test_refuses_a_score_that_comes_twice():
    frame = long_table(n_folds=2)
    twice = pd.concat([frame, frame.iloc[[3]]])
    with pytest.raises(CoCoError, match=r"1 score.*'iris', fold '1', model 'coco'; number all"):
        read_scores(twice)
    with pytest.raises(CoCoError, match="add a column 'fold'"):
        read_scores(twice.drop(columns="fold"))


@pytest.mark.parametrize("key", ["dataset", "model", "fold"])
def test_refuses_a_row_without_a_name(key):
    frame = long_table(n_folds=2).astype({key: object})
    frame.loc[2, key] = None
    with pytest.raises(CoCoError, match=rf"row 2 .* has no {key}"):
        read_scores(frame)


def test_refuses_text_among_the_scores_of_a_long_table():
    frame = long_table().astype({"score": object})
    frame.loc[4, "score"] = "timeout"
    with pytest.raises(CoCoError, match="column 'score' has 'timeout' at row 4"):
        read_scores(frame)


def test_refuses_a_column_that_comes_twice():
    frame = pd.concat([long_table(), long_table()[["score"]]], axis=1)
    with pytest.raises(CoCoError, match="column 'score' comes twice"):
        read_scores(frame)
