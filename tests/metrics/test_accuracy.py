import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score

from cocoloss.metrics import balanced_accuracy

labels = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40)


@given(labels)
def test_is_the_mean_recall_of_the_classes_that_occur(pairs):
    y, predicted = np.array(pairs).T
    recalls = [np.mean(predicted[y == c] == c) for c in set(y.tolist())]
    assert balanced_accuracy(y, predicted) == pytest.approx(np.mean(recalls))
    if set(predicted.tolist()) <= set(y.tolist()) and len(recalls) > 1:
        assert balanced_accuracy(y, predicted) == pytest.approx(
            balanced_accuracy_score(y, predicted)
        )


def test_a_class_of_another_kind_is_a_mistake_and_no_rows_have_none():
    assert balanced_accuracy(["a", "a", "b"], ["a", "new", "b"]) == 0.75
    assert np.isnan(balanced_accuracy([], []))
