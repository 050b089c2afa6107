"""Folds of whatever classes there are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold

from cocoloss.exceptions import CoCoError
from cocoloss.tables import stratified_folds


@given(st.lists(st.integers(0, 4), min_size=5, max_size=60), st.integers(2, 5), st.integers(0, 99))
def test_every_row_is_tested_once_and_trained_on_otherwise(labels, n_folds, seed):
    folds = stratified_folds(labels, n_folds, seed)
    assert len(folds) == n_folds
    everything = list(range(len(labels)))
    assert sorted(np.concatenate([fold.test for fold in folds])) == everything
    for fold in folds:
        assert len(fold.test) > 0
        assert sorted([*fold.train, *fold.test]) == everything


@given(st.lists(st.integers(0, 3), min_size=8, max_size=80), st.integers(2, 4))
def test_classes_are_shared_out_evenly(labels, n_folds):
    labels = np.array(labels)
    for fold in stratified_folds(labels, n_folds, seed=0):
        for c in np.unique(labels):
            expected = (labels == c).sum() / n_folds
            assert abs((labels[fold.test] == c).sum() - expected) <= 1


def test_they_are_scikit_learns_where_it_has_any():
    y = np.arange(60) % 3
    splitter = StratifiedKFold(5, shuffle=True, random_state=7)
    for ours, (train, test) in zip(stratified_folds(y, 5, 7), splitter.split(y, y), strict=True):
        np.testing.assert_array_equal(ours.train, train)
        np.testing.assert_array_equal(ours.test, test)


def test_too_few_rows_are_said_to_be_too_few():
    with pytest.raises(CoCoError, match="3 rows cannot be split into 5 folds"):
        stratified_folds([0, 1, 0], 5, 0)
