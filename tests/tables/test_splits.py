"""Folds and row caps."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold, TimeSeriesSplit

from cocoloss.exceptions import CoCoError
from cocoloss.tables import (
    cap_rows,
    forward_folds,
    given_folds,
    grouped_folds,
    make_table,
    named_seed,
    stratified_folds,
    times_of,
)

CLASSES = st.lists(st.sampled_from("abcde"), min_size=2, max_size=60)


@given(CLASSES, st.integers(2, 10), st.integers(0, 1000))
def test_every_fold_has_its_share_of_every_class(y, n_splits, seed):
    n_splits = min(n_splits, len(y))
    folds = stratified_folds(y, n_splits, seed)
    assert len(folds) == n_splits
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(len(y)))
    for fold in folds:
        assert sorted([*fold.train, *fold.test]) == list(range(len(y)))
        assert len(fold.test) > 0
    counts = [Counter(y[i] for i in fold.test) for fold in folds]
    for label in set(y):
        of_label = [count[label] for count in counts]
        assert max(of_label) - min(of_label) <= 1
    sizes = [len(fold.test) for fold in folds]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("seed", [lambda: 1, lambda: np.random.default_rng(3)])
def test_folds_follow_from_the_seed(seed):
    y = list("ab" * 20)
    first, again, other = (stratified_folds(y, 4, s) for s in (seed(), seed(), 2))
    assert all(np.array_equal(a.test, b.test) for a, b in zip(first, again, strict=True))
    assert any(not np.array_equal(a.test, b.test) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize(
    "y", [[1, 2, 1, 2], [True, False, True, False], pd.Series(list("abab"), index=[9, 8, 7, 6])]
)
def test_any_kind_of_class_can_be_dealt(y):
    assert all(len(set(np.asarray(y)[fold.test])) == 2 for fold in stratified_folds(y, 2, 0))


def test_they_are_scikit_learns_where_it_has_any():
    y = np.arange(60) % 3
    splitter = StratifiedKFold(5, shuffle=True, random_state=7)
    for names in (y, np.array(list("cab"))[y]):
        for ours, (train, test) in zip(
            stratified_folds(names, 5, 7), splitter.split(y, y), strict=True
        ):
            np.testing.assert_array_equal(ours.train, train)
            np.testing.assert_array_equal(ours.test, test)


def test_folds_for_a_seed_stay_what_results_were_made_with():
    assert [f.test.tolist() for f in stratified_folds(list("aabbabb"), 3, 5)] == [
        [0, 3, 6],
        [1, 5],
        [2, 4],
    ]
    few = stratified_folds(list("abcde"), 3, 5)  # which scikit-learn refuses
    assert [f.test.tolist() for f in few] == [[2], [1, 4], [0, 3]]


@pytest.mark.parametrize(
    ("y", "n_splits", "said"),
    [("ab", 3, "2 rows"), ("ab", 1, "at least 2"), (["a", None], 2, "gaps")],
)
def test_folds_that_cannot_be_are_refused(y, n_splits, said):
    with pytest.raises(CoCoError, match=said):
        stratified_folds(list(y), n_splits, 0)


def test_seeds_follow_from_names():
    assert named_seed("a", 1) == named_seed("a", 1)
    assert (
        len({named_seed(*parts) for parts in [("a", 1), ("a1",), ("a", "11"), ("a", 1, "")]}) == 4
    )
    assert 0 <= named_seed("x") < 2**32


def table(y):
    return make_table("t", pd.DataFrame({"x": range(len(y)), "y": y}), "y")


@settings(max_examples=40)
@given(
    st.lists(st.integers(1, 200), min_size=2, max_size=6).filter(lambda counts: max(counts) > 1),
    st.integers(0, 300),
)
def test_a_cap_keeps_every_class_and_nearly_its_share(counts, extra):
    full = table([f"c{c}" for c, count in enumerate(counts) for _ in range(count)])
    n_rows = len(counts) + extra
    capped = cap_rows(full, n_rows, seed=0)
    assert capped.n_rows == min(n_rows, full.n_rows)
    assert capped.n_classes == full.n_classes
    if full.n_rows <= n_rows:
        assert capped is full
        return
    kept = capped.X["x"].tolist()
    assert kept == sorted(set(kept))  # no row twice, and in their order
    assert capped.y.tolist() == full.y.iloc[kept].tolist()
    for label, count in full.class_counts.items():
        share = 1 + (count - 1) * (n_rows - len(counts)) / (full.n_rows - len(counts))
        assert abs(capped.class_counts[label] - share) < 1


def test_a_cap_follows_from_its_seed():
    full = table(list("ab") * 100)
    first, again, other = (cap_rows(full, 50, seed) for seed in (1, 1, 2))
    assert first.fingerprint == again.fingerprint != other.fingerprint


def test_a_cap_below_the_number_of_classes_is_refused():
    with pytest.raises(CoCoError, match="t has 3 classes, so 2 rows cannot hold one of each"):
        cap_rows(table(list("abcabc")), 2, seed=0)


@pytest.mark.parametrize("n_splits", [2, 5])
def test_a_group_is_in_one_fold_only_and_every_row_is_tested_once(n_splits):
    rng = np.random.default_rng(0)
    groups, y = rng.integers(0, 12, 100), rng.choice(list("abc"), 100)
    folds = grouped_folds(y, groups, n_splits, 3)
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(100))
    for fold in folds:
        assert not set(groups[fold.test]) & set(groups[fold.train])
        assert len(fold.train) + len(fold.test) == 100
    again = grouped_folds(y, groups, n_splits, 3)
    assert all((a.test == b.test).all() for a, b in zip(folds, again, strict=True))
    all_differ = grouped_folds(np.arange(100), groups, n_splits, 3)  # shares of no class matter
    assert sorted(np.concatenate([fold.test for fold in all_differ])) == list(range(100))


def test_forward_folds_learn_from_the_past_and_tear_no_day_apart():
    times = np.random.default_rng(0).integers(0, 30, 200)
    folds = forward_folds(times, 4)
    assert len(folds) == 4
    for fold, following in zip(folds, [*folds[1:], None], strict=True):
        assert times[fold.train].max() < times[fold.test].min()
        assert 20 < len(fold.test) < 60
        if following is not None:
            assert set(following.train) == set(fold.train) | set(fold.test)
    plain = forward_folds(np.arange(100)[::-1], 4)  # without ties: scikit-learn's, turned round
    for ours, (train, test) in zip(plain, TimeSeriesSplit(4).split(np.arange(100)), strict=True):
        assert sorted(99 - ours.train) == train.tolist()
        assert sorted(99 - ours.test) == test.tolist()


def test_given_folds_are_those_that_are_given():
    values = ["10", "9", None, "-1", "9", "10", ""]
    folds = given_folds(values)
    assert [fold.test.tolist() for fold in folds] == [[1, 4], [0, 5]]  # 9 before 10
    assert folds[0].train.tolist() == [0, 2, 3, 5, 6]
    named = given_folds(["train", "test", "test"])
    assert [fold.test.tolist() for fold in named] == [[1, 2], [0]]


def test_times_are_numbers_and_dates_however_they_are_written():
    days = pd.Series(["31.12.2023", "01.01.2024"], name="day")
    assert np.diff(times_of(days)).tolist() == [1]
    assert times_of(pd.Series(pd.to_datetime(["2024-01-02", "2024-01-01"]))).argsort().tolist() == [
        1,
        0,
    ]
    assert times_of(pd.Series([3, 1.5])).tolist() == [3, 1.5]


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (lambda: grouped_folds([0, 1], ["a", "a"], 2, 0), "1 groups cannot be split into 2 folds"),
        (lambda: grouped_folds([0, 1], ["a", None], 2, 0), "1 of 2 rows have no group, .* row 2"),
        (
            lambda: forward_folds([1, 1, 2, 2], 2),
            "2 different times in 4 rows cannot be cut into 3",
        ),
        (lambda: forward_folds([1, 1], 1), "1 different times"),
        (lambda: forward_folds([1, np.nan, 3], 1), "have no time"),
        (lambda: given_folds([1, 1]), "all 2 rows are in one fold"),
        (lambda: given_folds([-1, None]), "all 2 rows have none"),
        (lambda: times_of(pd.Series(["early", "late"], name="t")), "'t' holds neither numbers nor"),
    ],
)
def test_what_cannot_be_split_is_refused(work, said):
    with pytest.raises(CoCoError, match=said):
        work()
