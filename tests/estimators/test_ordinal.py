"""Levels: their order, where it comes from, and the three answers that a posterior can give."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import cocoloss
from cocoloss import CoCoClassifier, CoCoLoss, CoCoOrdinalClassifier, cross_validate_lockstep, load
from cocoloss.estimators import load_model
from cocoloss.exceptions import CoCoError, MissingMethodError, OrderHint
from cocoloss.geometry import similarity

NAMES = np.array(["poor", "fair", "good", "best"], dtype=object)  # not in the order of the alphabet
RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 3))
RANK = np.digitize(X[:, 0] + 0.4 * X[:, 1] + 0.3 * RNG.normal(size=240), [-1, 0, 1])
TEXT = NAMES[RANK]
CATEGORIES = pd.Series(pd.Categorical(TEXT, categories=NAMES, ordered=True))
NETWORK = {"solver": "network", "max_iter": 4, "n_members": 2, "hidden_layer_sizes": (16,)}
SOLVERS = [{"solver": "kernel"}, NETWORK]


def ordinal(**arguments):
    return CoCoOrdinalClassifier(random_state=0, **arguments)


# The contract of scikit-learn --------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        CoCoOrdinalClassifier(solver="kernel"),
        CoCoOrdinalClassifier((32,), max_iter=15, n_members=2),
    ],
    expected_failed_checks=lambda _: {
        "check_classifiers_classes": "labels there are text, in which no order is to be found"
    },
)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)


# Where the order comes from ----------------------------------------------------------------------


@pytest.mark.parametrize("arguments", SOLVERS, ids=["kernel", "network"])
def test_an_order_is_the_same_wherever_it_comes_from(arguments):
    by_rank = ordinal(**arguments).fit(X, RANK)
    for levels, y in [(None, CATEGORIES), (NAMES, TEXT), (list(NAMES), CATEGORIES)]:
        named = ordinal(levels=levels, **arguments).fit(X, y)
        assert named.classes_.tolist() == NAMES.tolist()
        np.testing.assert_array_equal(named.predict(X), NAMES[by_rank.predict(X)])
        np.testing.assert_allclose(named.predict_proba(X), by_rank.predict_proba(X))


def test_levels_may_contradict_numbers_and_categories():
    down = ordinal(solver="kernel", levels=[3, 2, 1, 0]).fit(X, RANK)
    assert down.classes_.tolist() == [3, 2, 1, 0]
    given = ordinal(solver="kernel", levels=NAMES[::-1]).fit(X, CATEGORIES)
    assert given.classes_.tolist() == NAMES[::-1].tolist()
    up = ordinal(solver="kernel").fit(X, RANK)
    assert np.mean(down.predict(X) == up.predict(X)) > 0.95


def test_levels_without_rows_are_no_classes():
    wide = pd.Categorical(TEXT, categories=["awful", *NAMES, "divine"], ordered=True)
    classifier = ordinal(solver="kernel").fit(X, wide)
    assert classifier.classes_.tolist() == NAMES.tolist()
    assert classifier.predict_proba(X).shape == (240, 4)
    some = TEXT != "fair"
    classifier = ordinal(solver="kernel", levels=NAMES).fit(X[some], TEXT[some])
    assert classifier.classes_.tolist() == ["poor", "good", "best"]
    weights = some.astype(float)  # and rows of weight zero are no rows
    weighted = ordinal(solver="kernel", levels=NAMES).fit(X, TEXT, sample_weight=weights)
    assert weighted.classes_.tolist() == ["poor", "good", "best"]


@pytest.mark.parametrize(
    ("levels", "y", "message"),
    [
        (None, TEXT, r"must know the order .*text such as \['best', 'fair', 'good'.*levels="),
        (None, pd.Series(TEXT, dtype="category"), "must know the order"),
        (["poor", "fair", "good"], TEXT, r"y has \['best'\], which .* not find among its levels"),
        ([*NAMES, "fair"], TEXT, "each level once, but has 'fair' more than once"),
        ([*NAMES, None], TEXT, "each level once, but has a gap"),
        ("poor fair good best", TEXT, "levels must be a list"),
        (["0", "1", "2", "3"], RANK, r"y has \[0, 1, 2, 3\], which"),
        (NAMES, np.full(240, "good"), "at least two classes"),
    ],
)
def test_an_order_that_is_not_there_is_asked_for(levels, y, message):
    for arguments in SOLVERS:
        classifier = ordinal(levels=levels, **arguments)
        with pytest.raises(CoCoError, match=message):
            classifier.fit(X, y)
        assert not hasattr(classifier, "model_")


def test_a_table_in_blocks_has_levels_that_are_numbers_or_named():
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(rank=RANK, text=TEXT)
    blocks = [table.iloc[:120].drop(columns="text"), table.iloc[120:].drop(columns="text")]
    classifier = ordinal(solver="kernel").fit(blocks, "rank")
    assert classifier.classes_.tolist() == [0, 1, 2, 3]
    named = [block.drop(columns="rank") for block in (table.iloc[:120], table.iloc[120:])]
    by_name = ordinal(solver="kernel", levels=NAMES).fit(named, "text")
    assert by_name.classes_.tolist() == NAMES.tolist()
    rows = table[["a", "b", "c"]]
    np.testing.assert_array_equal(by_name.predict_proba(rows), classifier.predict_proba(rows))
    with pytest.raises(CoCoError, match="order of the levels"):
        ordinal(solver="kernel").fit(named, "text")


def test_networks_go_on_learning_levels_in_their_order():
    classifier = ordinal(levels=NAMES, **NETWORK)
    for rows in np.array_split(np.arange(240), 3):
        classifier.partial_fit(X[rows], TEXT[rows])
    assert classifier.classes_.tolist() == NAMES.tolist()
    by_rank = ordinal(**NETWORK)
    for rows in np.array_split(np.arange(240), 3):
        by_rank.partial_fit(X[rows], RANK[rows])
    np.testing.assert_allclose(classifier.predict_proba(X), by_rank.predict_proba(X))
    with pytest.raises(MissingMethodError):
        _ = ordinal(solver="kernel").partial_fit


# Answers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("priors", ["uniform", "empirical", [0.4, 0.3, 0.2, 0.1]])
def test_the_rules_are_those_of_one_posterior(priors):
    numbers = np.array([0, 1, 2, 10])  # "mean" goes by them
    classifier = ordinal(solver="kernel", priors=priors).fit(X, numbers[RANK])
    proba = classifier.predict_proba(X)
    cumulative = classifier.predict_cumulative(X)
    np.testing.assert_allclose(cumulative, proba.cumsum(axis=1))
    np.testing.assert_array_equal(cumulative[:, -1], 1)
    for p, mode, median, mean in zip(
        proba,
        *(classifier.predict(X, rule=rule) for rule in ("mode", "median", "mean")),
        strict=True,
    ):
        assert mode == numbers[p.argmax()]
        assert median == next(c for c, s in zip(numbers, p.cumsum(), strict=True) if s >= 0.5)
        assert mean == min(numbers, key=lambda c: abs(c - p @ numbers))
    np.testing.assert_array_equal(classifier.predict(X), classifier.predict(X, rule="mode"))


def test_ranks_stand_for_levels_that_are_no_numbers():
    classifier = ordinal(solver="kernel").fit(X, CATEGORIES)
    by_rank = ordinal(solver="kernel").fit(X, RANK)
    np.testing.assert_array_equal(
        classifier.predict(X, rule="mean"), NAMES[by_rank.predict(X, rule="mean")]
    )


@pytest.mark.parametrize("arguments", SOLVERS, ids=["kernel", "network"])
def test_distances_are_those_of_rows_as_they_come(arguments):
    some = (RANK < 2) | (np.arange(240) % 8 == 0)
    counts = np.bincount(RANK[some])
    assert counts[:2].min() > counts[2:].max()
    auto, uniform, empirical = (
        ordinal(priors=priors, **arguments).fit(X[some], RANK[some])
        for priors in ("auto", "uniform", "empirical")
    )
    np.testing.assert_allclose(auto.predict_proba(X), uniform.predict_proba(X))
    if arguments is not NETWORK:  # whose members are averaged before the shares come in
        np.testing.assert_allclose(auto.predict_cumulative(X), empirical.predict_cumulative(X))
    at_most_1 = [each.predict_cumulative(X)[:, 1] for each in (auto, uniform)]
    assert (at_most_1[0] >= at_most_1[1]).all()  # levels 0 and 1 have more rows than 2 and 3
    reached = auto.classes_[(auto.predict_cumulative(X) >= 0.5).argmax(axis=1)]
    np.testing.assert_array_equal(auto.predict(X, rule="median"), reached)
    weighted = ordinal(class_weight={0: 1, 1: 1, 2: 1, 3: 9}, **arguments).fit(X[some], RANK[some])
    assert weighted.predict(X, rule="median").mean() > auto.predict(X, rule="median").mean()


def test_unknown_rules_and_heads_without_probabilities_are_refused():
    classifier = ordinal(head="ridge", **NETWORK).fit(X, RANK)
    with pytest.raises(CoCoError, match="rule must be one of 'mode', 'median', 'mean', not 'max'"):
        classifier.predict(X, rule="max")
    assert set(classifier.predict(X)) <= {0, 1, 2, 3}
    assert not hasattr(classifier, "predict_cumulative")
    with pytest.raises(AttributeError):
        classifier.predict(X, rule="median")


# What everything else makes of it ----------------------------------------------------------------


@pytest.mark.parametrize("arguments", SOLVERS, ids=["kernel", "network"])
@pytest.mark.parametrize("levels", [list(NAMES), tuple(NAMES), NAMES, pd.Index(NAMES)])
def test_files_keep_the_order(tmp_path, arguments, levels):
    classifier = ordinal(levels=levels, **arguments).fit(X, TEXT)
    classifier.save(tmp_path / "levels.coco")
    loaded = load(tmp_path / "levels.coco")
    assert type(loaded) is CoCoOrdinalClassifier
    assert loaded.classes_.tolist() == NAMES.tolist()
    assert list(loaded.levels) == NAMES.tolist()
    for rule in ("mode", "median", "mean"):
        np.testing.assert_array_equal(loaded.predict(X, rule), classifier.predict(X, rule))
    np.testing.assert_array_equal(loaded.predict_cumulative(X), classifier.predict_cumulative(X))
    np.testing.assert_array_equal(
        load_model(tmp_path / "levels.coco").predict(X), classifier.predict(X)
    )
    assert loaded.fit(X, TEXT).classes_.tolist() == NAMES.tolist()


def test_clones_grids_and_folds():
    copy = clone(ordinal(levels=list(NAMES), solver="kernel"))
    assert copy.get_params()["levels"] == NAMES.tolist()
    assert copy.get_params()["similarity"] == "ordinal"
    grid = GridSearchCV(copy, {"similarity": ["ordinal", "ordinal-simplex"]}, cv=3).fit(X, TEXT)
    assert grid.best_score_ > 0.6
    network = ordinal(levels=NAMES, **NETWORK)
    folds = cross_validate_lockstep(network, X, TEXT, cv=3)["test_score"]
    np.testing.assert_allclose(folds, cross_val_score(network, X, TEXT, cv=3))


def test_weights_are_copies():
    weights = 1 + np.arange(240) % 2
    weighted = ordinal(solver="kernel").fit(X, CATEGORIES, sample_weight=weights)
    copies = ordinal(solver="kernel").fit(
        np.repeat(X, weights, axis=0), CATEGORIES.repeat(weights).reset_index(drop=True)
    )
    np.testing.assert_allclose(
        weighted.predict_cumulative(X), copies.predict_cumulative(X), atol=1e-6
    )


def test_arguments_by_class_are_in_the_order_of_levels():
    priors = [0.1, 0.2, 0.3, 0.4]
    classifier = ordinal(levels=NAMES, solver="kernel", priors=priors).fit(X, TEXT)
    np.testing.assert_allclose(classifier.class_prior_, priors)
    by_name = ordinal(levels=NAMES, solver="kernel", class_weight={"poor": 3, "best": 2})
    np.testing.assert_allclose(by_name.fit(X, TEXT).class_prior_, np.array([3, 1, 1, 2]) / 7)


def test_without_an_argument_of_networks_kernels_are_the_solver():
    assert ordinal(levels=NAMES, priors="empirical").fit(X, TEXT).model_.machine is not None


# The similarity by name, elsewhere ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ordinal", "ordinal-simplex"])
@pytest.mark.parametrize("n_levels", [2, 3, 12])
def test_named_similarities_serve_the_loss_and_both_solvers(kind, n_levels):
    y = np.digitize(X[:, 0], np.quantile(X[:, 0], np.linspace(0, 1, n_levels + 1)[1:-1]))
    for arguments in SOLVERS:
        named = CoCoClassifier(similarity=kind, random_state=0, **arguments).fit(X, y)
        matrix = CoCoClassifier(similarity=similarity(kind, n_levels), random_state=0, **arguments)
        np.testing.assert_allclose(
            named.predict_proba(X), matrix.fit(X, y).predict_proba(X), atol=1e-9
        )
    torch = pytest.importorskip("torch")
    embeddings = torch.randn(20, 14, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(20) % n_levels
    by_name = CoCoLoss(n_levels, similarity=kind)(embeddings, labels)
    assert by_name == CoCoLoss(n_levels, similarity=similarity(kind, n_levels))(embeddings, labels)


def test_levels_vanish_where_they_should_be():
    torch = pytest.importorskip("torch")
    points = torch.tensor(cocoloss.geometry.target_points("ordinal", 5))
    labels = torch.arange(5)
    assert CoCoLoss(5, similarity="ordinal")(points, labels) < 1e-12


# A hint, never a switch --------------------------------------------------------------------------


def test_an_ordered_target_gives_a_hint_and_changes_nothing():
    for arguments in SOLVERS:
        classifier = CoCoClassifier(random_state=0, **arguments)
        with pytest.warns(OrderHint, match="CoCoOrdinalClassifier makes use") as caught:
            hinted = clone(classifier).fit(X, CATEGORIES)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        plain = classifier.fit(X, TEXT)
        np.testing.assert_array_equal(hinted.classes_, plain.classes_)
        np.testing.assert_array_equal(hinted.predict_proba(X), plain.predict_proba(X))


def test_another_order_than_that_of_the_alphabet_gives_a_hint_too():
    with pytest.warns(OrderHint, match="'ordinal' takes its classes as they are sorted"):
        CoCoClassifier(solver="kernel", similarity="ordinal").fit(X, CATEGORIES)


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
def test_the_order_of_a_table_of_one_column_is_seen():
    column = CATEGORIES.to_frame()
    assert ordinal(solver="kernel").fit(X, column).classes_.tolist() == NAMES.tolist()
    with pytest.warns(OrderHint):
        CoCoClassifier(solver="kernel").fit(X, column)


def test_no_hint_where_none_is_needed():
    two = pd.Categorical(np.where(RANK > 1, "hi", "lo"), categories=["lo", "hi"], ordered=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CoCoClassifier(solver="kernel").fit(X, two)
        in_order = CATEGORIES.cat.rename_categories(["1", "2", "3", "4"])
        CoCoClassifier(solver="kernel", similarity="ordinal-simplex").fit(X, in_order)
        CoCoClassifier(solver="kernel", similarity=similarity("ordinal", 4)).fit(X, CATEGORIES)
        CoCoClassifier(solver="kernel").fit(X, CATEGORIES.astype(object))
        ordinal(solver="kernel").fit(X, CATEGORIES)
