"""Explanations: Shapley values of the columns of a table, nearest rows, cells out of range."""

from dataclasses import replace
from functools import cache
from itertools import combinations
from math import factorial

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.preprocessing import StandardScaler

from cocoloss import CoCoClassifier, CoCoOrdinalClassifier, CoCoRegressor
from cocoloss.estimators.model_file import load, load_model
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.explain import EXACT, make_references, make_subsets

SMALL = {"max_iter": 3, "n_members": 2, "random_state": 0}


def messy(n=120, seed=0):
    """A table of numbers, gaps, dates, categories and truths, and a class that goes with some."""
    rng = np.random.default_rng(seed)
    size, town = rng.normal(size=n), rng.choice(["Bern", "Oslo", "Rome"], n)
    age = rng.normal(size=n)
    score = 2 * size + 1.5 * (town == "Oslo") + rng.normal(scale=0.3, size=n)
    table = pd.DataFrame(
        {
            "size": size,
            "town": town,
            "age": np.where(rng.random(n) < 0.2, np.nan, age),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D"),
            "same": 1.0,
        }
    )
    return table, np.where(score > 0.7, "high", "low"), score


def shapley(value, p):
    """Return Shapley values of a game of p players, by the printed formula."""
    result = np.zeros(p)
    for j in range(p):
        others = [k for k in range(p) if k != j]
        for size in range(p):
            weight = factorial(size) * factorial(p - size - 1) / factorial(p)
            for subset in combinations(others, size):
                result[j] += weight * (value(frozenset({*subset, j})) - value(frozenset(subset)))
    return result


def oracle(model, inputs, chosen):
    """Return the contributions of the columns in use, one coalition and one reference at a time."""
    origins = model.origins
    names = list(dict.fromkeys(origins))
    held = model.held
    references = model.reference.made_up if held is None else make_references(held.rows, origins)

    @cache
    def value(taken):
        total = 0.0
        for reference in references:
            made = reference.copy()
            for j, name in enumerate(origins):
                if names.index(name) in taken:
                    made[j] = inputs[j]
            total += model.scores(made[None])[0, chosen]
        return total / len(references)

    return dict(zip(names, shapley(value, len(names)), strict=True))


def models():
    X, y, number = messy()
    return {
        "kernels": CoCoClassifier(random_state=0).fit(X, y),
        "networks": CoCoClassifier(solver="network", **SMALL).fit(X, y),
        "both": CoCoClassifier(solver="both", **SMALL).fit(X, y),
        "scores": CoCoClassifier(head="ridge", **SMALL).fit(X, y),
        "levels": CoCoOrdinalClassifier(levels=["low", "high"], random_state=0).fit(X, y),
        "numbers": CoCoRegressor(random_state=0).fit(X, number),
        "skewed numbers": CoCoRegressor(random_state=0).fit(X, np.exp(number)),
        "numbers by networks": CoCoRegressor(solver="network", **SMALL).fit(X, number),
        "numbers by both": CoCoRegressor(solver="both", **SMALL).fit(X, number),
    }


@pytest.fixture(scope="module")
def fitted():
    return models()


KINDS = (
    *("kernels", "networks", "both", "scores", "levels"),
    *("numbers", "skewed numbers", "numbers by networks", "numbers by both"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_contributions_of_few_columns_are_shapley_values(fitted, kind):
    X, _, _ = messy(3, seed=1)
    model = fitted[kind].model_
    found = fitted[kind].explain(X)
    inputs, scores = model.inputs(X), model.scores(model.inputs(X))
    for i in range(len(X)):
        chosen = 0 if model.task == "numbers" else int(scores[i].argmax())
        expected = oracle(model, inputs[i], chosen)
        assert len(expected) <= EXACT
        row = found.contributions.iloc[i]
        assert row["same"] == 0  # a column that is not in use adds nothing
        np.testing.assert_allclose(row[list(expected)], list(expected.values()), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_contributions_sum_to_what_is_predicted_less_the_references(fitted, kind):
    X, _, _ = messy(10, seed=2)
    estimator = fitted[kind]
    found = estimator.explain(X)
    assert list(found.contributions) == list(X)
    total = found.base + found.contributions.sum(axis=1)
    np.testing.assert_allclose(total, found.value, atol=1e-9)
    if kind.startswith(("numbers", "skewed")):
        np.testing.assert_allclose(found.value, estimator.predict(X))
    else:
        assert (found.of == estimator.predict(X)).all()
    if hasattr(estimator, "predict_proba") and kind != "scores":
        np.testing.assert_allclose(found.value, estimator.predict_proba(X).max(axis=1))


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_file_explains_as_the_estimator_does(fitted, kind, tmp_path):
    X, _, _ = messy(4, seed=3)
    fitted[kind].save(tmp_path / "m.coco")
    found = fitted[kind].explain(X)
    for other in (load(tmp_path / "m.coco"), load_model(tmp_path / "m.coco")):
        again = other.explain(X)
        pd.testing.assert_frame_equal(again.contributions, found.contributions)
        pd.testing.assert_frame_equal(again.neighbours, found.neighbours)
        assert (again.of == found.of).all()
        assert again.note == found.note


def test_many_columns_sum_exactly_and_come_near_to_shapley_values():
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X.iloc[:, :7]
    classifier = CoCoClassifier(random_state=0).fit(X, y)
    rows = X[::60]
    found = classifier.explain(rows)
    np.testing.assert_allclose(
        found.base + found.contributions.sum(axis=1),
        classifier.predict_proba(rows).max(axis=1),
        atol=1e-12,
    )
    model = classifier.model_
    for i, inputs in enumerate(model.inputs(rows)):
        expected = oracle(model, inputs, int(model.scores(inputs[None]).argmax()))
        error = found.contributions.iloc[i] - pd.Series(expected)
        assert error.abs().max() < 0.25 * max(map(abs, expected.values()))


@pytest.mark.parametrize("p", [2, 3, EXACT, EXACT + 1, 11])
def test_pairs_of_orders_are_exact_for_two_columns_together(p):
    rng = np.random.default_rng(p)
    alone, pairs = rng.normal(size=p), np.triu(rng.normal(size=(p, p)), 1)

    def value(taken):
        z = np.asarray(taken, dtype=float)
        return alone @ z + z @ pairs @ z

    taken, weights = make_subsets(3, p)
    said = np.array([[value(subset) for subset in each] for each in taken])
    found = np.einsum("rps,rs->p", weights, said) / 3
    np.testing.assert_allclose(found, alone + (pairs + pairs.T).sum(axis=1) / 2)


@pytest.mark.parametrize("p", [1, 2, EXACT, EXACT + 1, 9])
def test_the_weights_of_subsets_sum_to_all_less_none(p):
    taken, weights = make_subsets(2, p)
    for subsets, of_columns in zip(taken, weights, strict=True):
        total = of_columns.sum(axis=0)
        size = subsets.sum(axis=1)
        assert np.isclose(total[size == p].sum(), 1)
        assert np.isclose(total[size == 0].sum(), -1)
        np.testing.assert_allclose(total[(size > 0) & (size < p)], 0, atol=1e-12)


def test_references_have_the_values_of_columns_but_no_row():
    rng = np.random.default_rng(0)
    town = np.eye(3, dtype=np.float32)[rng.integers(3, size=500)]
    rows = np.column_stack([rng.normal(size=(500, 3)), town]).astype(np.float32)
    made = make_references(rows, ["a", "b", "c", "town", "town", "town"])
    assert (made[:, 3:].sum(axis=1) == 1).all()  # one category each
    for j in range(3):
        assert np.isin(made[:, j], rows[:, j]).all()
        assert abs(np.median(made[:, j]) - np.median(rows[:, j])) < 0.2
    assert not {row.tobytes() for row in made} & {row.tobytes() for row in rows}


def test_what_is_not_learnt_from_adds_little_and_what_decides_adds_most(fitted):
    X, _, _ = messy(40, seed=4)
    for kind in ("kernels", "numbers", "both"):
        importances = fitted[kind].explain(X).importances
        assert importances.index[0] == "size"
        assert importances["size"] > 4 * importances["age"]


def test_a_class_can_be_chosen_for_all_rows_or_for_each(fitted):
    X, _, _ = messy(6, seed=5)
    classifier = fitted["kernels"]
    of_high = classifier.explain(X, of="high")
    proba = classifier.predict_proba(X)
    np.testing.assert_allclose(of_high.value, proba[:, 0])
    of_low = classifier.explain(X, of=np.repeat("low", 6))
    np.testing.assert_allclose(of_low.contributions, -of_high.contributions, atol=1e-9)


def test_the_nearest_rows_are_those_of_the_learnt_kernel(fitted):
    X, y, number = messy()
    kinds = {"kernels": y, "numbers": number, "numbers by networks": number}
    for kind, targets in kinds.items():
        shuffled = X.set_axis(np.arange(1000, 1120))
        found = fitted[kind].explain(shuffled[:5], neighbours=4)
        near = found.neighbours
        assert near.index.tolist() == np.repeat(shuffled.index[:5], 4).tolist()
        model = fitted[kind].model_  # networks of numbers hold rows that tell residuals
        kernel = model.held.kernel(model.inputs(X[:5]), model.inputs(X))
        for i in range(5):
            of_row = near.loc[1000 + i]
            assert of_row["row"].iloc[0] == i
            order = np.argsort(-kernel[i])[:4]
            np.testing.assert_allclose(of_row["similarity"], kernel[i][order], rtol=1e-5)
            assert of_row["target"].tolist() == [targets[j] for j in of_row["row"]]
        assert found.note == "training rows"


def test_nearest_rows_are_looked_for_in_a_table_that_is_given(fitted):
    X, _, _ = messy()
    X.index = [f"r{i}" for i in range(len(X))]
    classifier = fitted["networks"]
    assert not len(classifier.explain(X[:2]).neighbours)
    assert "hold no training rows" in classifier.explain(X[:2]).note
    near = classifier.explain(X[:2], among=X[:50], neighbours=1).neighbours
    assert near["row"].tolist() == ["r0", "r1"]
    np.testing.assert_allclose(near["similarity"], np.diagonal(classifier.kernel(X[:2])), rtol=1e-5)


def test_it_says_when_the_nearest_rows_are_landmarks_or_means():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=2000) > 0).astype(int)
    classifier = CoCoClassifier(solver="kernel", random_state=0).fit(X, y)
    found = classifier.explain(X[:3])
    assert found.note == "landmarks: 1,000 of the training rows, which the model holds"
    places = found.neighbours["row"].to_numpy()
    similarity = np.diagonal(classifier.kernel(np.repeat(X[:3], 3, axis=0), X[places]))
    np.testing.assert_allclose(found.neighbours["similarity"], similarity, rtol=1e-5)
    assert found.neighbours["target"].tolist() == y[places].tolist()
    means = CoCoClassifier(landmarks="kmeans", random_state=0).fit(X[:500], y[:500])
    found = means.explain(X[:2])
    assert "not known" in found.note
    assert "target" not in found.neighbours
    assert found.contributions.shape == (2, 3)


def test_copies_and_weights_do_not_confuse_places():
    X, y, _ = messy(60)
    weights = np.where(np.arange(60) % 3 == 0, 0, 2)
    classifier = CoCoClassifier(random_state=0).fit(X, y, sample_weight=weights)
    places = classifier.explain(X[weights > 0], neighbours=1).neighbours["row"]
    assert places.tolist() == np.flatnonzero(weights).tolist()


def test_cells_out_of_range_are_named(fitted):
    X, _, _ = messy(2, seed=6)
    X.loc[0, "size"] = 1e9
    X.loc[1, "town"] = "Atlantis"
    X.loc[1, "day"] = pd.Timestamp("2030-01-01")
    found = fitted["kernels"].explain(X)
    far = found.out_of_range
    assert list(far) == list(X)
    assert (far.loc[0] > 0).tolist() == [True, False, False, False, False]
    assert (far.loc[1] > 0).tolist() == [False, True, False, True, False]
    assert far.loc[1, "town"] == np.inf
    assert "not as in training: 'town', 'day'" in str(found)


def test_the_strongest_columns_come_first(fitted):
    X, _, _ = messy(5, seed=7)
    found = fitted["kernels"].explain(X)
    top = found.top(2)
    assert list(top) == ["column_1", "contribution_1", "column_2", "contribution_2"]
    for i in range(5):
        row = found.contributions.loc[i]
        assert row.abs().idxmax() == top.loc[i, "column_1"]
        assert row[top.loc[i, "column_2"]] == top.loc[i, "contribution_2"]
    assert found.top(99).shape == (5, 2 * 5)


def test_it_can_be_read(fitted):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    found = CoCoRegressor(random_state=0).fit(X, y).explain(X[:7])
    text = str(found)
    assert text.startswith("7 rows: what columns add to the number")
    assert "row 0: " in text
    assert "bmi +" in text
    assert "nearest: row 0 (151.0), similarity 1" in text
    assert text.endswith("... and 2 more rows")
    X, _, _ = messy(1)
    assert "probability of the class" in repr(fitted["kernels"].explain(X))
    for kind in ("kernels", "networks"):
        assert "nearest" not in repr(fitted[kind].explain(X, neighbours=0))
    assert str(fitted["networks"].explain(X)).endswith("give them as among= to see the nearest")


def test_arrays_and_transformers_of_ones_own_have_columns_by_number():
    X, y = load_wine(return_X_y=True)
    for preprocess in ("auto", None, StandardScaler()):
        classifier = CoCoClassifier(preprocess=preprocess, random_state=0).fit(X, y)
        found = classifier.explain(X[:2])
        assert list(found.contributions) == [f"x{j}" for j in range(13)]
        total = found.base + found.contributions.sum(axis=1)
        np.testing.assert_allclose(total, found.value, atol=1e-9)


def test_of_several_numbers_one_is_explained():
    X, _, number = messy()
    regressor = CoCoRegressor(random_state=0).fit(X, np.column_stack([number, -number]))
    with pytest.raises(CoCoError, match="2 numbers; say which to explain, such as of=0"):
        regressor.explain(X[:2])
    first, second = (regressor.explain(X[:2], of=k) for k in (0, 1))
    np.testing.assert_allclose(second.value, regressor.predict(X[:2])[:, 1])
    np.testing.assert_allclose(first.contributions, -second.contributions, atol=0.2)
    with pytest.raises(CoCoError, match="beyond the 2 numbers"):
        regressor.explain(X[:2], of=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"of": "middle"}, "of='middle' is no class; the classes are 'high', 'low'"),
        ({"of": ["high"]}, r"of has shape \(1,\) for 3 rows; give a class, or one a row"),
        ({"neighbours": -1}, "neighbours must be at least 0"),
        ({"neighbours": "all"}, "neighbours must be a whole number"),
    ],
)
def test_what_cannot_be_explained_is_refused(fitted, options, message):
    X, _, _ = messy(3)
    with pytest.raises(CoCoError, match=message):
        fitted["kernels"].explain(X, **options)


def test_a_table_without_a_column_and_an_unfitted_model_are_refused(fitted):
    X, _, _ = messy(3)
    with pytest.raises(CoCoError, match="lacks columns that were there in fit: 'size'"):
        fitted["kernels"].explain(X.drop(columns="size"))
    with pytest.raises(ValueError, match="not fitted"):
        CoCoClassifier().explain(X)
    with pytest.raises(CoCoError, match="k must be at least 1"):
        fitted["kernels"].explain(X).top(0)


def test_importances_are_of_kernels_and_networks_say_what_to_do_instead(fitted):
    for kind in ("kernels", "both", "levels", "numbers", "numbers by both"):
        importances = fitted[kind].feature_importances_
        assert importances.shape == (5,)
        assert np.isclose(importances.sum(), 1)
    for kind in ("networks", "numbers by networks"):
        with pytest.raises(AttributeError, match=r"explain\(X\).importances"):
            _ = fitted[kind].feature_importances_


def test_files_of_earlier_versions_compare_with_a_row_without_values(fitted):
    X, _, _ = messy(2, seed=8)
    model = replace(fitted["networks"].model_, reference=None)
    found = model.explain(X)
    total = found.base + found.contributions.sum(axis=1)
    np.testing.assert_allclose(total, found.value, atol=1e-9)
    kernels = replace(fitted["kernels"].model_, reference=None).explain(X)
    assert "not known" in kernels.note
    known = fitted["kernels"].explain(X)
    pd.testing.assert_frame_equal(kernels.contributions, known.contributions)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("kernels", {"places": np.arange(3)}, "places"),
        ("kernels", {"targets": np.zeros(3, np.int64)}, "one target for each row"),
        ("kernels", {"targets": np.full(120, 7)}, "classes of the rows that it holds are none"),
        ("numbers", {"targets": np.zeros((120, 2))}, "targets"),
        ("networks", {"made_up": np.zeros((4, 2), np.float32)}, "made_up"),
        ("networks", {"made_up": np.zeros((0, 12), np.float32)}, "no references|made_up"),
        ("networks", {"are_all": "yes"}, "are_all"),
    ],
)
def test_a_file_whose_parts_do_not_fit_is_refused(fitted, kind, change, message):
    model = fitted[kind].model_
    state = model.to_state()
    state["reference"] = state["reference"] | change
    with pytest.raises(CoCoError, match=message):
        type(model).from_state(state)
    with pytest.raises(CoCoError, match="reference must be of type dict"):
        type(model).from_state(state | {"reference": []})
