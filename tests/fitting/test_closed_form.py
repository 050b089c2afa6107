"""The classifier in closed form: the contract of the others, honest scores, odd tables."""

import time
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info, threadpool_limits

from cocoloss import CoCoClassifier
from cocoloss.columns import TablePreprocessor
from cocoloss.estimators import cross_validate_lockstep
from cocoloss.estimators.model_file import read_state, write_state
from cocoloss.exceptions import CoCoError
from cocoloss.fitting import fit_kernels
from cocoloss.fitting.fit import solver_of
from cocoloss.fitting.model import FittedModel, Together
from cocoloss.kernels import classes, closed_form, landmarks, search


def kernel(**arguments):
    return CoCoClassifier(solver="kernel", random_state=0, **arguments)


@parametrize_with_checks([kernel()])
def test_keeps_scikit_learns_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return kernel().fit(X, y), X, y


def test_embeds_near_the_simplex_and_reads_posteriors(iris):
    classifier, X, y = iris
    h = classifier.transform(X)
    assert h.shape == (150, 2)  # C - 1 dimensions
    means = np.stack([h[y == c].mean(axis=0) for c in range(3)])
    np.testing.assert_allclose(
        means @ means.T, [[1, -0.5, -0.5], [-0.5, 1, -0.5], [-0.5, -0.5, 1]], atol=0.3
    )
    proba = classifier.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert classifier.score(X, y) > 0.95


@pytest.mark.parametrize("n_classes", [20, 100])
def test_noise_of_many_classes_is_no_better_than_guessing(n_classes):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 5)), rng.integers(0, n_classes, 300)
    classifier = kernel().fit(X, y)  # whose matrix has more numbers than there are rows
    measures = classifier.quality_.measures
    assert measures["balanced accuracy"].value < 0.1
    assert measures["AUC"].value < 0.6
    assert measures["log loss"].value > 0.95 * np.log(n_classes)
    assert classifier.loo_score_ < 0.1


def test_scores_itself_honestly(iris):
    classifier, X, y = iris
    assert classifier.loo_proba_.shape == (150, 3)
    loo = (classifier.classes_[classifier.loo_proba_.argmax(axis=1)] == y).mean()
    assert classifier.loo_score_ == pytest.approx(loo)
    crossed = cross_val_predict(kernel(), X, y, cv=StratifiedKFold(5, shuffle=True, random_state=1))
    assert classifier.loo_score_ == pytest.approx((crossed == y).mean(), abs=0.03)


def test_noise_with_labels_at_random_scores_no_better_than_chance():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 8)), np.arange(120) % 2
    classifier = kernel().fit(X, y)
    assert classifier.loo_score_ < 0.65
    assert log_loss(y, classifier.loo_proba_) < 0.8


@pytest.mark.parametrize(
    ("load", "most"), [(load_wine, 0.07), (load_breast_cancer, 0.085)], ids=["wine", "cancer"]
)
def test_is_sure_but_not_too_sure_of_clean_tables(load, most):
    X, y = load(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    proba = cross_val_predict(kernel(priors="empirical"), X, y, cv=folds, method="predict_proba")
    assert log_loss(y, proba) < most


@pytest.mark.parametrize("per_class", [2, 4, 10])
def test_few_rows_are_not_overconfident(per_class):
    X, y = load_wine(return_X_y=True)
    losses = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rows = np.concatenate(
            [rng.choice(np.flatnonzero(y == c), per_class, replace=False) for c in range(3)]
        )
        rest = np.setdiff1d(np.arange(len(y)), rows)
        proba = kernel().fit(X[rows], y[rows]).predict_proba(X[rest])
        losses.append(log_loss(y[rest], proba))
    assert np.mean(losses) < {2: 0.9, 4: 0.6, 10: 0.35}[per_class]


def test_weights_are_copies():
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, size=150)
    weighted = kernel().fit(X, y, sample_weight=weights)
    copied = kernel().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.predict_proba(X), copied.predict_proba(X), atol=1e-6)
    assert weighted.loo_proba_.shape == (150, 3)


def test_huge_weights_are_ratios():
    X, y = load_iris(return_X_y=True)
    weights = np.where(np.arange(150) % 7 == 0, 3e12, 1e12)
    proba = kernel().fit(X, y, sample_weight=weights).predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert (proba.argmax(axis=1) == y).mean() > 0.95


def test_priors_and_class_weights_move_the_prediction():
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :3]
    plain = kernel().fit(X, y).predict_proba(X)[:, 1].mean()
    by_prior = kernel(priors=[0.1, 0.9]).fit(X, y).predict_proba(X)[:, 1].mean()
    by_weight = kernel(class_weight={0: 1, 1: 9}).fit(X, y).predict_proba(X)[:, 1].mean()
    assert by_prior > plain + 0.05
    assert by_weight > plain + 0.05


def test_balanced_class_weights_ask_for_what_kernels_do_anyway():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [90, 15])
    X = rng.normal(size=(105, 3)) + y[:, None]
    plain, asked = (kernel(class_weight=how).fit(X, y) for how in (None, "balanced"))
    np.testing.assert_array_equal(plain.predict_proba(X), asked.predict_proba(X))


def test_importances_find_the_columns_of_a_table():
    rng = np.random.default_rng(0)
    n = 300
    colour = rng.choice(["red", "green", "blue"], size=n)
    frame = pd.DataFrame(
        {"noise": rng.normal(size=n), "colour": colour, "size": rng.normal(size=n), "flat": 1.0}
    )
    frame.loc[rng.random(n) < 0.1, "noise"] = np.nan
    y = (colour == "red") ^ (frame["size"] > 0)
    classifier = kernel().fit(frame, y)
    importances = dict(zip(frame.columns, classifier.feature_importances_, strict=True))
    assert sum(importances.values()) == pytest.approx(1)
    assert importances["size"] > importances["colour"] > 3 * importances["noise"]
    assert importances["flat"] == 0


def test_the_kernel_goes_into_an_svm(iris):
    classifier, X, y = iris
    K = classifier.kernel(X)
    np.testing.assert_allclose(np.diag(K), 1, atol=1e-6)
    assert np.linalg.eigvalsh(K)[0] > -1e-5
    assert SVC(kernel=classifier.kernel).fit(X, y).score(X, y) > 0.95


def test_far_rows_are_strange(iris):
    classifier, X, _ = iris
    far = X.iloc[:3] + 40
    assert classifier.outlier_score(far).min() > classifier.outlier_score(X).max()


def test_any_similarity_is_a_target():
    X, y = load_iris(return_X_y=True)
    ordered = [[1, 0, -1], [0, 1, 0], [-1, 0, 1]]
    classifier = kernel(similarity=ordered).fit(X, y)
    h = classifier.transform(X)
    assert h[y == 0].mean(axis=0) @ h[y == 2].mean(axis=0) < -0.7
    assert abs(h[y == 0].mean(axis=0) @ h[y == 1].mean(axis=0)) < 0.3
    assert classifier.score(X, y) > 0.93


@pytest.mark.parametrize(("kind", "q"), [("packing", 2), ("simplex", 5)])
def test_the_embedding_has_the_dimensions_that_were_asked_for(kind, q):
    X, y = load_digits(n_class=5, return_X_y=True)
    classifier = kernel(similarity=kind, embedding_dim=q).fit(X[:200], y[:200])
    assert classifier.transform(X[:5]).shape == (5, q)
    assert classifier.score(X[200:400], y[200:400]) > 0.85


def test_files_hold_it_and_folds_fit_it(iris, tmp_path):
    classifier, X, y = iris
    classifier.save(tmp_path / "iris.coco")
    loaded = CoCoClassifier.load(tmp_path / "iris.coco")
    np.testing.assert_array_equal(loaded.predict_proba(X), classifier.predict_proba(X))
    np.testing.assert_allclose(loaded.feature_importances_, classifier.feature_importances_)
    assert not hasattr(loaded, "loo_proba_")
    folds = cross_validate_lockstep(kernel(), X, y, cv=3)
    assert folds["test_score"].mean() > 0.9


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("kinds", lambda kinds: ["exec", *kinds[1:]], "kernel must be one of 'rbf'"),
        ("kinds", lambda _: [], "it has no kernels"),
        ("gammas", np.negative, "its gammas must be positive"),
        ("alphas", lambda a: a[:, :-1], "its alphas must be .* shape"),
        ("alphas", lambda a: a * np.float32(np.nan), "its alphas must be finite"),
        ("metrics", lambda m: m[:, :-1], "its metrics must be"),
        ("rows", lambda rows: rows[:, :-1].copy(), "its metrics must be|does not fit"),
        ("trees", lambda _: [{}], "its children must be"),
    ],
)
def test_a_strangers_machine_that_does_not_fit_is_refused(iris, tmp_path, part, value, message):
    classifier, _, _ = iris
    classifier.save(tmp_path / "m.coco")
    state = read_state(tmp_path / "m.coco")
    networks = state["model"]["networks"]
    networks[part] = value(networks[part])
    write_state(tmp_path / "m.coco", state, writer="a test")
    with pytest.raises(CoCoError, match=f"not a usable model file.*({message})"):
        CoCoClassifier.load(tmp_path / "m.coco")


ODD = {
    "one row of a class": ([[0.0], [0.1], [1.0]], [0, 0, 1]),
    "two rows": ([[0.0, 1.0], [1.0, 0.0]], ["a", "b"]),
    "rows that are all equal": (np.ones((30, 2)), np.arange(30) % 2),
    "one column of two values": ((np.arange(40) % 2)[:, None], np.arange(40) % 2),
    "contradictions": (np.repeat([[0.0], [1.0]], 20, axis=0), np.r_[np.zeros(15), np.ones(25)]),
}


@pytest.mark.parametrize("table", ODD.values(), ids=ODD)
def test_odd_tables_have_honest_answers(table):
    X, y = map(np.asarray, table)
    classifier = kernel(preprocess=None).fit(X, y)
    proba = classifier.predict_proba(X)
    assert np.isfinite(proba).all()
    assert proba.max() < 0.995
    if len(np.unique(X, axis=0)) == 1:
        np.testing.assert_allclose(proba, 0.5, atol=0.02)


def test_equal_rows_say_how_often_they_are_right():
    """Of ninety and ten rows of two classes at one place, nine tenths are of the first."""
    X = np.r_[np.zeros((100, 1)), np.ones((100, 1))]
    y = np.r_[np.zeros(90), np.ones(10), np.zeros(10), np.ones(90)]
    proba = kernel(preprocess=None).fit(X, y).predict_proba([[0.0], [1.0]])
    np.testing.assert_allclose(proba, [[0.9, 0.1], [0.1, 0.9]], atol=0.03)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"warm_start": True}, "warm_start=True is for networks"),
        ({"head": "ridge"}, "head='ridge' is for networks"),
        ({"callbacks": [print]}, "callbacks=.* is for networks"),
    ],
)
def test_arguments_of_networks_are_refused(arguments, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(CoCoError, match=message):
        kernel(**arguments).fit(X, y)


def test_what_it_cannot_do_is_said(iris, tmp_path):
    classifier, X, y = iris
    with pytest.raises(CoCoError, match="one of 'auto', 'kernel', 'network', 'both'"):
        CoCoClassifier(solver="kernels").fit(X, y)
    with pytest.raises(CoCoError, match="need all rows at once"):
        kernel().partial_fit(X, y)
    with pytest.raises(CoCoError, match="kernel"):
        classifier.to_onnx(tmp_path / "iris.onnx")
    network = CoCoClassifier(max_iter=1, n_members=1, random_state=0).fit(X, y)
    assert not hasattr(network, "feature_importances_")
    assert not hasattr(network, "loo_proba_")


def test_many_rows_go_by_landmarks_and_leaves(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(3600, 3))
    y = (np.sin(7 * X[:, 0]) * np.sin(7 * X[:, 1]) > 0).astype(int)
    classifier = kernel().fit(X[:3000], y[:3000])
    machine = classifier.model_.networks
    assert len(machine.rows) == 1000
    assert machine.trees
    score = classifier.score(X[3000:], y[3000:])
    assert score > 0.88
    assert classifier.loo_score_ == pytest.approx(score, abs=0.05)
    assert classifier.loo_proba_.shape == (3000, 2)
    classifier.save(tmp_path / "m.coco")
    loaded = CoCoClassifier.load(tmp_path / "m.coco")
    np.testing.assert_array_equal(loaded.predict_proba(X), classifier.predict_proba(X))


def test_a_part_of_a_thousand_rows_finds_the_recipe_and_all_of_them_follow_it(rings, monkeypatch):
    X, y = rings
    searched = []

    def find_recipe(rows, *arguments, **more):
        searched.append(len(rows))
        return search.find_recipe(rows, *arguments, **more)

    monkeypatch.setattr(closed_form, "find_recipe", find_recipe)
    for n in (900, 1200):
        classifier = kernel().fit(X[:n], y[:n])
        assert len(classifier.model_.networks.rows) == n
        score = classifier.score(X[1500:], y[1500:])
        assert classifier.loo_score_ == pytest.approx(score, abs=0.05)
    assert searched == [900, 700]


def test_of_a_large_table_more_rows_learn_the_metric_than_find_the_kernels(rings, monkeypatch):
    X, y = rings
    fitted = []

    def fit_recipe(recipe, rows, *arguments):
        members = search.fit_recipe(recipe, rows, *arguments)
        fitted.append((len(recipe.members), len(rows), members))
        return members

    monkeypatch.setattr(closed_form, "fit_recipe", fit_recipe)
    monkeypatch.setattr(classes, "USUAL", replace(search.USUAL, large=2000))
    monkeypatch.setattr(closed_form, "MEASURED", 1500)
    machine = kernel().fit(X, y).model_.networks
    ((n_members, n_rows, members),) = fitted
    assert (n_members, n_rows) == (2, 1500)
    for used, learnt in zip(machine.kernels, members, strict=True):
        np.testing.assert_array_equal(used.metric, learnt.kernel.metric)


def test_beats_a_kernel_without_metric_where_columns_are_noise():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 20))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] > 0).astype(int)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    ours = balanced_accuracy_score(y_test, kernel().fit(X, y).predict(X_test))
    plain = balanced_accuracy_score(y_test, SVC(C=1.0).fit(X, y).predict(X_test))
    assert ours > plain + 0.05


# Solvers ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rings():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2600, 4))
    return X, (np.hypot(X[:, 0], X[:, 1]) > 1.2).astype(int) + (X[:, 2] > 1)


@pytest.mark.parametrize(
    ("arguments", "solver"),
    [
        ({}, "auto"),
        ({"priors": "empirical", "verbose": True, "time_limit": 9.0}, "auto"),
        ({"hidden_layer_sizes": (128, 128)}, "auto"),
        ({"max_iter": 5}, "network"),
        ({"head": "ridge"}, "network"),
        ({"loss": "balanced"}, "network"),
        ({"module": np.zeros(3)}, "network"),
        ({"solver": "kernel", "max_iter": 5}, "kernel"),
    ],
)
def test_an_argument_of_networks_asks_for_networks(arguments, solver):
    assert solver_of(CoCoClassifier(**arguments)) == solver


def test_auto_is_kernels_for_few_rows(iris):
    classifier, X, y = iris
    auto = CoCoClassifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(auto.predict_proba(X), classifier.predict_proba(X))
    assert not hasattr(auto, "partial_fit")
    assert hasattr(CoCoClassifier(), "partial_fit")  # nothing is decided yet
    with pytest.raises(CoCoError, match="all rows at once"):
        auto.partial_fit(X, y)


def test_both_pools_what_kernels_and_networks_say(rings, tmp_path, monkeypatch):
    monkeypatch.setattr(fit_kernels, "LEAST_SAY", 0.0)
    X, y = rings
    both = CoCoClassifier(solver="both", max_iter=15, random_state=0).fit(X[:700], y[:700])
    model = both.model_
    assert isinstance(model.networks, Together)
    assert (model.pool >= 0).all()
    features = model.head_inputs(model.inputs(X[700:]))
    assert features.shape == (4, 1900, 8)  # kernels and three networks, in one dimension
    parts = [head.predict_proba(h) for head, h in zip(model.heads, features, strict=True)]
    logits = np.zeros((1900, 3))
    for i in range(1900):  # the formula, row by row
        for weight, proba in zip(model.pool, parts, strict=True):
            logits[i] += weight * np.log(proba[i] / (1 / 3))
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(both.predict_proba(X[700:]), expected, rtol=1e-9)
    assert both.transform(X[:5]).shape == (5, 32)
    assert both.loo_proba_.shape == (700, 3)
    both.save(tmp_path / "both.coco")
    loaded = CoCoClassifier.load(tmp_path / "both.coco")
    np.testing.assert_array_equal(loaded.predict_proba(X), both.predict_proba(X))
    with pytest.raises(CoCoError, match="ONNX"):
        both.to_onnx(tmp_path / "both.onnx")
    kernels = kernel().fit(X[:700], y[:700])
    losses = [log_loss(y[700:], each.predict_proba(X[700:])) for each in (both, kernels)]
    assert losses[0] < 1.05 * losses[1]


def test_a_strangers_pool_must_fit(rings, monkeypatch):
    monkeypatch.setattr(fit_kernels, "LEAST_SAY", 0.0)
    X, y = rings
    both = CoCoClassifier(solver="both", max_iter=4, random_state=0).fit(X[:300], y[:300])
    state = both.model_.to_state()
    assert both.model_.pool is not None
    state["networks"]["ensemble"]["layer_sizes"][0] += 1
    with pytest.raises(CoCoError):
        FittedModel.from_state(state)
    state = both.model_.to_state() | {"pool": np.ones(2)}
    with pytest.raises(CoCoError, match="pool"):
        FittedModel.from_state(state)


def test_a_time_limit_is_kept_and_says_what_was_left_out(rings):
    X, y = rings
    started = time.perf_counter()
    with pytest.warns(UserWarning, match="to end within 0.1 s the fit left out kernels"):
        hurried = CoCoClassifier(time_limit=0.1, random_state=0).fit(X[:1500], y[:1500])
    assert time.perf_counter() - started < 20  # machines are busy at times
    assert hurried.score(X[1500:], y[1500:]) > 0.7
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CoCoClassifier(time_limit=600, random_state=0).fit(X[:100], y[:100])
    with pytest.raises(CoCoError, match="time_limit must be a number of seconds above 0"):
        CoCoClassifier(time_limit=0).fit(X[:100], y[:100])


def test_a_recipe_that_would_take_too_long_for_all_rows_is_cut_to_its_best_kernel(monkeypatch):
    """Above 900 rows a sample finds the recipe, and six fits follow, which take far longer."""
    X, y = make_classification(1000, n_informative=8, flip_y=0.1, random_state=0)
    free, limited = (kernel(time_limit=limit).fit(X, y) for limit in (None, 600))
    assert len(free.model_.networks.kernels) > 1
    np.testing.assert_array_equal(free.predict_proba(X), limited.predict_proba(X))
    monkeypatch.setattr(closed_form, "GROWTH", 30)
    with pytest.warns(UserWarning, match="left out all kernels but the best"):
        hurried = kernel(time_limit=600).fit(X, y)
    assert len(hurried.model_.networks.kernels) == 1
    assert hurried.loo_score_ > 0.7


@pytest.mark.parametrize("limit", [None, 600])
def test_a_fit_that_must_end_in_time_and_every_search_keep_to_one_thread(rings, monkeypatch, limit):
    X, y = rings
    monkeypatch.setattr(fit_kernels, "THREADED", 2000)
    seen = []

    def find_recipe(*arguments, **more):
        seen.append(("search", blas_threads()))
        return search.find_recipe(*arguments, **more)

    def sums_of(*arguments):
        if seen:  # else it is timed
            seen.append(("sums", blas_threads()))
            raise KeyboardInterrupt  # enough was seen
        return landmarks.sums_of(*arguments)

    monkeypatch.setattr(closed_form, "find_recipe", find_recipe)
    monkeypatch.setattr(closed_form, "sums_of", sums_of)
    with threadpool_limits(2, user_api="blas"), pytest.raises(KeyboardInterrupt):
        kernel(time_limit=limit).fit(X, y)
    assert seen == [("search", 1), ("sums", 1 if limit else 2)]


def blas_threads():
    return max(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas")


@pytest.mark.parametrize("solver", ["kernel", "network"])
def test_what_comes_before_the_fit_takes_its_time_too(rings, monkeypatch, solver):
    """The first fit of a process imports torch, for seconds."""
    X, y = rings
    monkeypatch.setattr(CoCoClassifier, "hint_at_order", lambda *_: time.sleep(0.6))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        hurried = CoCoClassifier(time_limit=0.5, solver=solver, random_state=0)
        hurried.fit(X[:200], y[:200])
    if solver == "kernel":
        assert "left out kernels" in str(said[0].message)
    else:
        assert hurried.n_iter_ < 20  # of a hundred


def test_rows_that_there_is_no_time_for_are_judged_honestly(rings, monkeypatch):
    X, y = rings
    monkeypatch.setattr(closed_form, "_affordable", lambda *_: 1900)
    with pytest.warns(UserWarning, match="700 of 2,600 rows"):
        some = kernel(time_limit=600).fit(X, y)
    assert some.loo_proba_.shape == (2600, 3)
    right = some.loo_proba_.argmax(axis=1) == y
    assert right.mean() == pytest.approx(some.loo_score_)


def test_verbose_says_what_is_tried(rings, capsys):
    X, y = rings
    kernel(verbose=True).fit(X[:200], y[:200])
    said = capsys.readouterr().err
    assert "200 rows of 3 classes" in said
    assert "kernel 5 of 12: laplace-l1 of width 0.7 in metric 0" in said
    assert "each left out" in said


def test_kernels_see_ranks_and_importances_add_them_up():
    rng = np.random.default_rng(0)
    skewed = np.exp(9 * rng.normal(size=400))  # in its own units nearly all values are one
    X = pd.DataFrame({"skewed": skewed, "noise": rng.normal(size=400)})
    y = (rng.permutation(400) < 40) ^ (np.argsort(np.argsort(skewed)) // 50 % 2).astype(bool)
    classifier = kernel().fit(X, y)
    assert classifier.preprocessor_.get_feature_names_out().tolist() == [
        *X.columns,
        "skewed_rank",
        "noise_rank",
    ]
    assert len(classifier.feature_importances_) == 2
    assert classifier.feature_importances_[0] > 0.6
    plain = kernel(preprocess=TablePreprocessor(ranks=False)).fit(X, y)
    assert classifier.loo_score_ > plain.loo_score_ + 0.05


def test_classes_of_three_rows_are_as_good_out_of_sample_as_on_new_rows():
    rng = np.random.default_rng(0)
    centers = np.repeat(rng.normal(size=(100, 6)), 13, axis=0)
    X, y = centers + 0.3 * rng.normal(size=centers.shape), np.repeat(np.arange(100), 13)
    few = np.arange(len(y)) % 13 < 3
    classifier = CoCoClassifier(solver="kernel", random_state=0).fit(X[few], y[few])
    assert abs(classifier.loo_score_ - classifier.score(X[~few], y[~few])) < 0.08
