"""Decisions: what is cheapest under posteriors, by enumerating answers; thresholds, by counting."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cocoloss.exceptions import CoCoError
from cocoloss.heads.decisions import (
    Curve,
    Decider,
    Threshold,
    choose_threshold,
    cost_matrix,
    least_cost,
    positive_position,
    read_priors,
)

ANIMALS = np.array(["ant", "bee", "cow"])
PAIR = np.array(["sick", "well"])
HALVES = np.array([0.5, 0.5])


@st.composite
def posteriors(draw, n_classes=None):
    C = draw(st.integers(2, 5)) if n_classes is None else n_classes
    n = draw(st.integers(1, 12))
    raw = draw(arrays(np.float64, (n, C), elements=st.floats(0.001, 1)))
    return raw / raw.sum(axis=1, keepdims=True)


def expected_costs(p, costs):
    """Return what each answer costs on average, by the definition."""
    C = len(p)
    return [sum(p[true] * costs[true][answer] for true in range(C)) for answer in range(C)]


@given(posteriors(), st.data())
def test_the_answer_of_least_expected_cost_is_chosen(proba, data):
    C = proba.shape[1]
    costs = data.draw(arrays(np.float64, (C, C), elements=st.floats(-10, 10)))
    for p, chosen in zip(proba, least_cost(proba, costs), strict=True):
        every = expected_costs(p, costs)
        assert every[chosen] <= min(every) + 1e-12 * (1 + np.abs(costs).max())


@given(posteriors())
def test_equal_costs_choose_the_most_probable_class_exactly(proba):
    C = proba.shape[1]
    assert least_cost(proba, 1 - np.eye(C)).tolist() == proba.argmax(axis=1).tolist()


@given(posteriors(3), st.integers(0, 11))
def test_a_row_is_decided_alike_alone_and_among_others(proba, k):
    costs = np.array([[0, 3.7, 1.1], [0.3, 0, 2.9], [5.3, 0.1, 0]])
    k %= len(proba)
    assert least_cost(proba, costs)[k] == least_cost(proba[k : k + 1], costs)[0]


def test_costs_have_several_forms_and_one_meaning():
    matrix = [[0, 7, 7], [2, 0, 9], [1, 1, 0]]
    frame = pd.DataFrame(matrix, ANIMALS, ANIMALS)
    by_class = {"ant": 7, "bee": 2, "cow": 1, ("bee", "cow"): 9}
    by_pair = {(a, b): frame.loc[a, b] for a in ANIMALS for b in ANIMALS if a != b}
    for form in (matrix, np.array(matrix), frame, frame.iloc[::-1, [2, 0, 1]], by_class, by_pair):
        assert cost_matrix(form, ANIMALS).tolist() == matrix
    numbers = np.array([0, 1])
    assert cost_matrix({0: 1, 1: 5}, numbers).tolist() == [[0, 1], [5, 0]]
    assert cost_matrix({("sick", "sick"): 2, "sick": 9, "well": 1}, PAIR).tolist() == [
        [2, 9],
        [1, 0],
    ]


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ({"sick": 5}, "does not say what it costs to take 'well' for 'sick'"),
        ({"sick": 5, "wel": 1}, "names the class 'wel', but there are 'sick', 'well'"),
        ({("sick", "dead"): 5}, "names the class 'dead'"),
        ({"sick": "much", "well": 1}, "the cost of 'sick' must be a finite number, not 'much'"),
        ({"sick": True, "well": 1}, "must be a finite number, not True"),
        ({"sick": np.inf, "well": 1}, "must be a finite number, not inf"),
        (np.ones((3, 3)), r"a matrix of 2 true by 2 predicted classes.*but has shape \(3, 3\)"),
        (5, "but has shape ()"),
        ([[0, np.nan], [1, 0]], "finite numbers"),
        (np.zeros((2, 2)), "every answer costs the same"),
        (pd.DataFrame(1.0, PAIR, ["sick", "fine"]), "the columns of costs must name the predicted"),
        ("dear", "costs must hold numbers only"),
    ],
)
def test_costs_that_say_nothing_are_refused(costs, said):
    with pytest.raises(CoCoError, match=said):
        cost_matrix(costs, PAIR)


def test_priors_have_several_forms():
    shares = np.array([0.2, 0.5, 0.3])
    assert read_priors("empirical", ANIMALS, shares).tolist() == shares.tolist()
    assert read_priors("uniform", ANIMALS, shares).tolist() == [1 / 3] * 3
    given = pd.Series({"cow": 0.7, "ant": 0.1, "bee": 0.2})
    for form in (given, given.to_dict(), [0.1, 0.2, 0.7]):
        assert read_priors(form, ANIMALS, shares).tolist() == pytest.approx([0.1, 0.2, 0.7])
    for form, said in [
        ("even", "priors must be one of 'uniform', 'empirical', not 'even'"),
        ({"ant": 1.0}, r"priors names the classes \['ant'\], but the model has"),
        ([0.5, 0.5], "priors has 2 values for 3 classes"),
        ([1, 2, 3], "priors must sum to one"),
        ([0, 0.5, 0.5], "priors must be positive, but 'ant' has 0.0"),
    ]:
        with pytest.raises(CoCoError, match=said):
            read_priors(form, ANIMALS, shares)


def test_a_threshold_is_about_the_positive_class():
    decider = Decider(PAIR, HALVES, HALVES)
    proba = np.array([[0.2, 0.8], [0.3, 0.7], [0.9, 0.1]])
    assert decider.decide(proba, threshold=0.3, positive="sick").tolist() == [1, 0, 0]
    assert decider.decide(proba, threshold=0.75, positive="well").tolist() == [1, 0, 0]
    chosen = Threshold(0.3, "sick")
    assert decider.decide(proba, threshold=chosen).tolist() == [1, 0, 0]
    assert decider.decide(proba, threshold=chosen, positive="sick").tolist() == [1, 0, 0]
    with pytest.raises(CoCoError, match="was chosen for 'sick', not for 'well'"):
        decider.decide(proba, threshold=chosen, positive="well")
    assert decider.decide(proba, threshold=0, positive="sick").tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"threshold": 0.3}, "positive must be the class.*'sick' or 'well', but it is left out"),
        ({"threshold": 0.3, "positive": "ill"}, "but it is 'ill'"),
        ({"threshold": 30, "positive": "sick"}, "a probability, from 0 to 1, not 30"),
        ({"threshold": "f1", "positive": "sick"}, "a probability, from 0 to 1, not 'f1'"),
        ({"threshold": True, "positive": "sick"}, "not True"),
        ({"positive": "sick"}, "positive='sick' is for a threshold"),
        ({"threshold": 0.3, "costs": np.eye(2)}, "costs and threshold both decide"),
    ],
)
def test_what_decides_nothing_is_refused(asked, said):
    with pytest.raises(CoCoError, match=said):
        Decider(PAIR, HALVES, HALVES).decide(np.array([HALVES]), **asked)


def test_the_positive_class_is_known_by_names_that_all_use():
    for names, place in [([0, 1], 1), ([-1, 1], 1), ([False, True], 1), (["1", "0"], 0)]:
        assert positive_position(None, np.array(names)) == place
    assert positive_position(None, np.array(["Yes", "no"])) == 0
    with pytest.raises(CoCoError, match="for two classes, and there are 3"):
        positive_position("ant", ANIMALS)


# Choosing ---------------------------------------------------------------------------------------


def counts(scores, is_positive, weights, at):
    """Return what weighs right and wrong alarms, misses and right silence, row by row."""
    found = alarmed = missed = silent = 0.0
    for score, truth, weight in zip(scores, is_positive, weights, strict=True):
        if score >= at:
            found, alarmed = found + weight * truth, alarmed + weight * (not truth)
        else:
            missed, silent = missed + weight * truth, silent + weight * (not truth)
    return found, alarmed, missed, silent


def measured(found, alarmed, missed, silent):
    positive, negative = found + missed, alarmed + silent
    return {
        "balanced accuracy": (found / positive + silent / negative) / 2,
        "accuracy": (found + silent) / (positive + negative),
        "f1": 2 * found / (2 * found + alarmed + missed),
        "precision": found / (found + alarmed) if found + alarmed else np.nan,
        "recall": found / positive,
    }


@st.composite
def scored_rows(draw):
    n = draw(st.integers(2, 14))
    scores = draw(arrays(np.float64, n, elements=st.sampled_from(np.linspace(0, 1, 9))))
    truth = np.array([True, False, *draw(st.lists(st.booleans(), min_size=n - 2, max_size=n - 2))])
    weights = draw(arrays(np.float64, n, elements=st.sampled_from([0.5, 1.0, 2.0])))
    return scores, truth, weights


@given(scored_rows(), st.sampled_from(["balanced accuracy", "accuracy", "f1", "recall"]))
def test_no_threshold_is_better_than_the_chosen_one(rows, measure):
    chosen = choose_threshold(Curve.of(*rows), "sick", measure)
    mine = measured(*counts(*rows, chosen.value))
    assert chosen.measures == pytest.approx(mine, nan_ok=True)
    for at in np.linspace(-0.05, 1.05, 23):
        assert measured(*counts(*rows, at))[measure] <= mine[measure] + 1e-12


@given(scored_rows(), st.sampled_from([0.3, 0.5, 0.9]))
def test_a_recall_that_is_asked_for_is_reached_at_the_best_precision(rows, recall):
    chosen = choose_threshold(Curve.of(*rows), "sick", recall=recall)
    mine = measured(*counts(*rows, chosen.value))
    assert mine["recall"] >= recall
    for at in np.linspace(0, 1.05, 22):
        other = measured(*counts(*rows, at))
        assert other["recall"] < recall or other["precision"] <= mine["precision"] + 1e-12


@given(scored_rows(), arrays(np.float64, (2, 2), elements=st.sampled_from([0.0, 1.0, 4.0])))
def test_no_threshold_is_cheaper_than_the_chosen_one(rows, costs):
    def cost(at):
        found, alarmed, missed, silent = counts(*rows, at)
        total = found * costs[1, 1] + missed * costs[1, 0]
        return (total + alarmed * costs[0, 1] + silent * costs[0, 0]) / rows[2].sum()

    chosen = choose_threshold(Curve.of(*rows), "sick", costs=costs)
    assert chosen.measures["cost"] == pytest.approx(cost(chosen.value))
    assert all(cost(chosen.value) <= cost(at) + 1e-12 for at in np.linspace(-0.05, 1.05, 23))


def test_what_no_threshold_reaches_is_said():
    truth = np.array([True, False, True, False])
    curve = Curve.of(np.array([0.1, 0.9, 0.2, 0.8]), truth, np.ones(4))
    with pytest.raises(CoCoError, match=r"no threshold has a precision of 0\.9.*precision 0\.500"):
        choose_threshold(curve, "sick", precision=0.9)
    with pytest.raises(CoCoError, match="measure must be one of"):
        choose_threshold(curve, "sick", "gmean")
    with pytest.raises(CoCoError, match="recall must be a number between 0 and 1"):
        choose_threshold(curve, "sick", recall=90)
    with pytest.raises(CoCoError, match="costs and measure both say"):
        choose_threshold(curve, "sick", "f1", costs=np.eye(2))
    with pytest.raises(CoCoError, match="all rows have one class"):
        Curve.of(np.array([0.1, 0.9]), np.array([True, True]), np.ones(2))
