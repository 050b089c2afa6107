"""The classifiers as a user meets them."""

import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, get_scorer, log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

from cocoloss import (
    CoCoClassifier,
    CoCoRegressor,
    CrossEntropyClassifier,
    DotRegressionClassifier,
)
from cocoloss.exceptions import CoCoError
from cocoloss.heads import GaussianHead
from spies import note_which_batches_are_pairs

CLASSIFIERS = [CoCoClassifier, DotRegressionClassifier, CrossEntropyClassifier]


X, X_TEST, Y, Y_TEST = train_test_split(*load_wine(return_X_y=True), random_state=0, test_size=0.3)


def quick(make=CoCoClassifier, **arguments):
    return make(**({"max_iter": 15, "n_members": 2, "random_state": 0} | arguments))


@cache
def fitted(make, **arguments):
    """Return a classifier that tests look at and do not change."""
    return quick(make, **({"max_iter": 30} | arguments)).fit(X, Y)


def messy(n=240, seed=0):
    """Make a table that was not made for us."""
    rng = np.random.default_rng(seed)
    y = rng.choice(["no", "yes", "maybe"], n, p=[0.6, 0.3, 0.1])
    codes = pd.Series(y).map({"no": 0, "yes": 1, "maybe": 2}).to_numpy()
    frame = pd.DataFrame(
        {
            "age": 40 + 8 * codes + rng.normal(size=n),
            "income": np.where(rng.random(n) < 0.2, np.nan, rng.lognormal(size=n)),
            "city": rng.choice(["Bonn", "Köln", None], n),
            "member": rng.random(n) < 0.5,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, n), "D"),
            "constant": 1,
        }
    )
    frame.loc[3, "age"] = np.inf
    return frame, y


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_learns(make):
    classifier = fitted(make)
    assert balanced_accuracy_score(Y_TEST, classifier.predict(X_TEST)) > 0.93
    assert log_loss(Y_TEST, classifier.predict_proba(X_TEST)) < 0.25


def test_the_default_learns_the_digits():
    X_train, X_test, y_train, y_test = train_test_split(
        *load_digits(return_X_y=True), random_state=0
    )
    classifier = CoCoClassifier(random_state=0, max_iter=12).fit(X_train, y_train)
    assert balanced_accuracy_score(y_test, classifier.predict(X_test)) > 0.97


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_takes_a_messy_table(make):
    X, y = messy()
    classifier = quick(make, max_iter=3).fit(X, y)
    assert list(classifier.classes_) == ["maybe", "no", "yes"]
    proba = classifier.predict_proba(X.sample(frac=1, axis=1, random_state=0))
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert np.array_equal(classifier.predict(X), classifier.classes_[proba.argmax(axis=1)])
    with pytest.raises(CoCoError, match="income"):
        classifier.predict(X.drop(columns="income"))


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_the_same_seed_gives_the_same_bits(make):
    first, second = (quick(make, max_iter=3).fit(X, Y) for _ in range(2))
    assert np.array_equal(first.parameters_, second.parameters_)
    assert np.array_equal(first.predict_proba(X), second.predict_proba(X))
    other = quick(make, max_iter=3, random_state=1).fit(X, Y)
    assert not np.array_equal(first.parameters_, other.parameters_)


ORDER = np.random.default_rng(0).permutation(len(X))


@pytest.mark.parametrize(
    ("rows", "weight"),
    [(ORDER, None), (slice(None), 7), (slice(None), 0.3)],
    ids=["order", "weight", "fraction"],
)
def test_neither_the_order_of_the_rows_nor_a_constant_weight_matters(rows, weight):
    weights = None if weight is None else np.full(len(Y), weight)
    found = quick(max_iter=3).fit(X[rows], Y[rows], sample_weight=weights)
    plain = fitted(CoCoClassifier, max_iter=3)
    np.testing.assert_array_equal(found.predict_proba(X_TEST), plain.predict_proba(X_TEST))


def test_the_global_seed_is_left_alone():
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    threads = torch.get_num_threads()
    quick(max_iter=1).fit(X, Y)
    assert torch.equal(before, torch.get_rng_state())
    assert np.array_equal(numpy_before, np.random.get_state()[1])  # noqa: NPY002
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_kernel_and_embedding_agree_and_serve_an_svm(make):
    classifier = fitted(make)
    h = classifier.transform(X)
    assert h.shape == (len(X), len(classifier.get_feature_names_out()))
    gram = classifier.kernel(X)
    np.testing.assert_allclose(gram, h @ h.T, rtol=1e-4, atol=1e-5)
    assert np.linalg.eigvalsh(gram).min() > -1e-6
    svm = SVC(kernel="precomputed").fit(gram, Y)
    assert svm.score(classifier.kernel(X_TEST, X), Y_TEST) > 0.9


def test_embeddings_are_on_the_sphere_unless_one_wants_the_papers_form():
    norms = np.linalg.norm(fitted(CoCoClassifier).transform(X), axis=1)
    np.testing.assert_allclose(norms, 1, rtol=1e-5)
    plain = fitted(CoCoClassifier, normalize=False, max_iter=60)
    norms = np.linalg.norm(plain.transform(X), axis=1)
    assert 0.5 < norms.mean() < 1.2
    assert norms.std() > 1e-3


def test_the_papers_form_is_there_argument_by_argument():
    paper = CoCoClassifier(
        (64,),
        embedding_dim=4,
        normalize=False,
        max_iter=50,
        learning_rate="constant",
        n_members=1,
        early_stopping=False,
        head=GaussianHead(shrinkage=0.0, covariance_floor=1e-6, priors="empirical"),
        random_state=0,
    ).fit(X, Y)
    assert paper.heads_[0].temperature_ == 1
    assert len(paper.loss_curve_) == 50
    assert paper.score(X_TEST, Y_TEST) > 0.9


def test_balance_is_the_exponent_of_the_loss():
    X = np.random.default_rng(0).normal(size=(120, 3))
    y = np.repeat([0, 1], [100, 20])
    plain, balanced, between = (
        quick(**said, max_iter=1).fit(X, y).parameters_
        for said in ({"balance": 0}, {"balance": 0.5}, {"balance": 0.25})
    )
    assert np.array_equal(plain, quick(loss="coco", max_iter=1).fit(X, y).parameters_)
    assert np.array_equal(balanced, quick(loss="balanced", max_iter=1).fit(X, y).parameters_)
    assert not np.array_equal(between, plain)
    assert not np.array_equal(between, balanced)
    with pytest.raises(CoCoError, match="both say how classes are weighed"):
        quick(loss="coco", balance=0.5).fit(X, y)
    with pytest.raises(CoCoError, match="balance must be a number at least 0"):
        quick(balance=-1).fit(X, y)


@pytest.mark.parametrize(("ratio", "balanced"), [(2, False), (3, True), (10, True)])
def test_auto_is_the_papers_rule(ratio, balanced):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [20 * ratio, 20])
    X = rng.normal(size=(len(y), 3)) + y[:, None]
    auto, plain, other = (
        quick(loss=loss, max_iter=1).fit(X, y).parameters_ for loss in ("auto", "coco", "balanced")
    )
    assert np.array_equal(auto, other) == balanced
    assert np.array_equal(auto, plain) != balanced


def test_priors_say_under_which_prior_probabilities_are_meant():
    X, y = make_classification(
        800, n_classes=2, weights=[0.9], class_sep=0.6, flip_y=0.05, random_state=0
    )
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    uniform = quick().fit(X_train, y_train)
    empirical = quick(priors="empirical").fit(X_train, y_train)
    assert (uniform.predict(X_test) == 1).mean() > (empirical.predict(X_test) == 1).mean()
    assert log_loss(y_test, empirical.predict_proba(X_test)) < log_loss(
        y_test, uniform.predict_proba(X_test)
    )
    given_ = quick(priors=empirical.class_prior_).fit(X_train, y_train)
    np.testing.assert_array_equal(given_.predict_proba(X_test), empirical.predict_proba(X_test))


def test_dot_regression_has_learnt_the_class_shares():
    X, y = make_classification(1500, weights=[0.85], class_sep=0.7, flip_y=0.1, random_state=0)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    uniform, empirical = (
        quick(DotRegressionClassifier, max_iter=30, priors=priors).fit(X_train, y_train)
        for priors in ("uniform", "empirical")
    )
    scores = [
        balanced_accuracy_score(y_test, model.predict(X_test)) for model in (uniform, empirical)
    ]
    assert scores[0] > scores[1] + 0.03 > 0.6
    one = quick(DotRegressionClassifier, max_iter=2, n_members=1, priors="empirical")
    h = one.fit(X_train, y_train).transform(X_test)
    nearest = (h @ one.heads_[0].prototypes_.T).argmax(axis=1)
    np.testing.assert_array_equal(one.predict(X_test), nearest)


def test_probabilities_are_honest():
    X, y = make_classification(2000, flip_y=0.3, class_sep=0.7, random_state=0)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    proba = quick().fit(X_train, y_train).predict_proba(X_test)
    simple = LogisticRegression().fit(X_train, y_train).predict_proba(X_test)
    assert log_loss(y_test, proba) < log_loss(y_test, simple) + 0.05
    assert abs(proba.max(axis=1).mean() - (proba.argmax(axis=1) == y_test).mean()) < 0.06


@pytest.mark.parametrize("head", ["gaussian", "centroid", "angular", "ridge", "svm", SVC()])
@pytest.mark.parametrize("make", CLASSIFIERS)
def test_any_head_serves_any_loss(make, head):
    classifier = fitted(make, head=head, n_members=1)
    assert classifier.score(X_TEST, Y_TEST) > 0.85
    assert hasattr(classifier, "predict_proba") == (head in ("gaussian", "centroid", "angular"))


@pytest.mark.parametrize("priors", ["empirical", [0.2, 0.3, 0.5]])
def test_a_head_without_priors_of_its_own_gets_those_of_the_classifier(priors):
    options = {"max_iter": 2, "early_stopping": False}  # heads and classifier see the same shares
    named = quick(priors=priors, head="gaussian", **options).fit(X, Y).predict_proba(X_TEST)
    given_ = quick(head=GaussianHead(), priors=priors, **options).fit(X, Y)
    np.testing.assert_array_equal(given_.predict_proba(X_TEST), named)
    assert given_.head.priors == "uniform"  # what the user made stays as it is
    own = quick(head=GaussianHead(priors=priors), **options).fit(X, Y)
    np.testing.assert_array_equal(own.predict_proba(X_TEST), named)


def test_cross_entropy_learns_through_two_dimensions():
    for seed in range(3):
        narrow = CrossEntropyClassifier(n_members=1, embedding_dim=2, random_state=seed)
        narrow.set_params(max_iter=40).fit(X, Y)
        assert narrow.score(X_TEST, Y_TEST) > 0.9
        embedding = narrow.transform(X_TEST)
        assert embedding.shape[1] == 2
        assert (embedding < 0).any()
        last, bias = list(narrow.model_.networks.layers(0))[-1]
        logits = embedding @ last + bias - np.log(narrow.heads_[0].class_share_)
        np.testing.assert_array_equal(narrow.predict(X_TEST), logits.argmax(axis=1))


def test_outliers_score_higher():
    classifier = fitted(CoCoClassifier)
    strange = X_TEST * np.random.default_rng(0).choice([-3, 4], X_TEST.shape)
    known = np.median(classifier.outlier_score(X_TEST))
    assert np.median(classifier.outlier_score(strange)) > 2 * known


@pytest.mark.parametrize("n_rows", [4, 10, 30, 100])
@pytest.mark.parametrize(
    "make",
    [
        CoCoClassifier,
        lambda **given: CoCoClassifier(solver="network", **given),
        lambda **given: CoCoClassifier(head="gaussian", **given),
        CrossEntropyClassifier,
        DotRegressionClassifier,
    ],
)
def test_few_rows_of_noise_are_no_reason_to_be_sure(make, n_rows):
    # Below some 130 rows nothing was held out: the log loss of networks was 1.5 to 6.
    losses = []
    for seed in range(3):
        rng = np.random.default_rng([seed, n_rows])
        X, y = rng.normal(size=(n_rows + 400, 8)), rng.permutation(np.arange(n_rows + 400) % 2)
        y[:n_rows] = np.arange(n_rows) % 2
        fitted = make(priors="empirical", random_state=seed).fit(X[:n_rows], y[:n_rows])
        losses.append(log_loss(y[n_rows:], fitted.predict_proba(X[n_rows:])))
    assert np.mean(losses) < np.log(2) + (0.05 if n_rows >= 30 else 0.5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: CoCoClassifier(random_state=0),
        quick,
        lambda: quick(head="gaussian"),
        lambda: quick(preprocess=None),
        lambda: CoCoRegressor(random_state=0),
    ],
)
def test_odd_values_count_in_all_columns_and_in_one(make):
    # Inputs are clipped and the sphere forgets the norm: networks had an AUROC of .24 here.
    X, y = load_breast_cancer(return_X_y=True)
    train, test, y_train, _ = train_test_split(X, y, random_state=0, stratify=y)
    model = make().fit(train, y_train)
    one = test.copy()
    one[:, 0] = 1e9
    known = model.outlier_score(test)
    for odd in (test + 20 * train.std(axis=0), 10 * test, one):
        both = np.concatenate([known, model.outlier_score(odd)])
        assert roc_auc_score(np.repeat([0, 1], len(test)), both) > 0.95


@pytest.mark.parametrize("solver", ["kernel", "network"])
def test_a_new_category_is_an_outlier(solver):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"city": rng.choice(["Bern", "Oslo", "Rome"], 120), "x": rng.random(120)})
    model = CoCoClassifier(solver=solver, random_state=0).fit(table, table["city"] == "Rome")
    assert model.outlier_score(table.assign(city="Ulm")).min() > model.outlier_score(table).max()


def test_a_transformer_of_ones_own_may_say_what_is_out_of_range():
    class Loud(FunctionTransformer):
        def out_of_range(self, X):
            return np.arange(len(X))

    quiet, loud = (quick(preprocess=make()).fit(X, Y) for make in (FunctionTransformer, Loud))
    more = loud.outlier_score(X_TEST) - quiet.outlier_score(X_TEST)
    np.testing.assert_allclose(more, np.arange(len(X_TEST)))


def test_warm_start_goes_on():
    warm = quick(warm_start=True, early_stopping=False, random_state=np.random.default_rng(0))
    first, seed = warm.fit(X, Y).loss_curve_[-1], warm.history_.seed
    assert warm.fit(X, Y).loss_curve_[0] < 2 * first
    assert warm.history_.seed == seed
    cold = quick(early_stopping=False).fit(X, Y)
    assert cold.fit(X, Y).loss_curve_[0] > 5 * first


def test_each_member_stops_for_itself():
    X, y = load_breast_cancer(return_X_y=True)
    classifier = quick(max_iter=200, n_iter_no_change=5, n_members=4)
    classifier.fit(X, y)
    lengths = [len(curve) for curve in classifier.loss_curves_]
    assert max(lengths) < 200
    assert len(set(lengths)) > 1
    assert classifier.n_iter_ == max(lengths)


def test_callbacks_hear_every_epoch():
    heard = []
    classifier = quick(callbacks=[lambda e: heard.append(e.number) or e.number == 3]).fit(X, Y)
    assert heard == [1, 2, 3]
    assert classifier.n_iter_ == 3


def test_scikit_learns_callbacks_hear_every_epoch_and_can_stop():
    pytest.importorskip("sklearn.callback")
    heard = []

    class Listener:
        def setup(self, estimator, context):
            heard.append("setup")

        def on_fit_task_begin(self, estimator, context, **_):
            pass

        def on_fit_task_end(self, estimator, context, **_):
            heard.append(context.task_name)
            return heard.count("epoch") == 3

        def teardown(self, estimator, context):
            heard.append("teardown")

    classifier = quick().set_callbacks(Listener()).fit(X, Y)
    assert heard == ["setup", "epoch", "epoch", "epoch", "fit", "teardown"]
    assert classifier.n_iter_ == 3


@pytest.mark.parametrize("cls", [CoCoClassifier, CrossEntropyClassifier])
def test_scikit_learns_monitor_scores_the_model_of_every_epoch(cls):
    callback = pytest.importorskip("sklearn.callback")
    scoring = "neg_log_loss"
    monitor = callback.ScoringMonitor(scoring=scoring)
    options = {"random_state": 0, "n_members": 2, "early_stopping": False}
    classifier = cls(max_iter=4, learning_rate="constant", **options).set_callbacks(monitor)
    classifier.fit(X, Y, sample_weight=np.ones(len(Y)))
    log = monitor.get_logs().data_as_pandas.set_index("task_name")[scoring]
    scorer = get_scorer(scoring)
    assert log["fit"] == pytest.approx(scorer(classifier, X, Y))
    for epoch, score in enumerate(log["epoch"], start=1):
        stopped = cls(max_iter=epoch, learning_rate="constant", **options).fit(X, Y)
        assert score == pytest.approx(scorer(stopped, X, Y), rel=1e-4)


def test_verbose_is_silent_where_there_is_no_terminal(capfd):
    quick(verbose=True, max_iter=2).fit(X, Y)
    assert capfd.readouterr() == ("", "")


def test_weights_are_routed_through_a_pipeline():
    weights = np.random.default_rng(0).integers(0, 3, len(Y))
    with config_context(enable_metadata_routing=True):
        inner = quick(preprocess=None, max_iter=2).set_fit_request(sample_weight=True)
        routed = make_pipeline(FunctionTransformer(), inner).fit(X / 100, Y, sample_weight=weights)
    direct = quick(preprocess=None, max_iter=2).fit(X / 100, Y, sample_weight=weights)
    assert np.array_equal(routed[-1].parameters_, direct.parameters_)


def test_polars_and_pandas_are_the_same_table():
    polars = pytest.importorskip("polars")
    X, y = messy()
    X = X[["age", "income", "member"]]
    ours = quick(max_iter=2).fit(X, y).predict_proba(X)
    frame = polars.DataFrame({name: X[name].to_numpy() for name in X})
    found = quick(max_iter=2).fit(frame, y).predict_proba(frame)
    np.testing.assert_array_equal(found, ours)


def test_serves_in_a_pipeline_and_a_grid():
    pipeline = make_pipeline(quick(), LogisticRegression()).fit(X, Y)
    assert pipeline.score(X_TEST, Y_TEST) > 0.9
    frame = pipeline[0].set_output(transform="pandas").transform(X)
    assert frame.columns[0] == "cococlassifier0"
    grid = GridSearchCV(quick(n_members=1), {"embedding_dim": [2, 8]}, cv=2).fit(X, Y)
    assert grid.best_score_ > 0.8


def test_a_pickle_is_small_and_holds_no_row():
    X = np.random.default_rng(0).normal(size=(50 * len(Y), 13)).astype(np.float32)  # all differ
    classifier = quick(hidden_layer_sizes=(8,), preprocess=None, max_iter=1).fit(X, np.tile(Y, 50))
    pickled = pickle.dumps(classifier)
    assert len(pickled) < 30_000
    assert not any(row.tobytes() in pickled for row in X)
    assert clone(classifier).get_params() == classifier.get_params()
    classifier.partial_fit(X[:200], np.tile(Y, 50)[:200])  # which does keep rows, and only its own
    pickled = pickle.dumps(classifier)
    kept = [row.tobytes() in pickled for row in X[:400]]
    assert all(kept[:200])
    assert not any(kept[200:])


KINDS = ["number", "gaps", "text", "flag", "constant"]


@pytest.mark.filterwarnings("ignore:no column is left")
@given(
    n=st.integers(1, 40),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=4),
    n_classes=st.integers(1, 6),
    seed=st.integers(0, 1000),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_table_gives_a_result_or_a_clear_error(n, kinds, n_classes, seed):
    rng = np.random.default_rng(seed)
    columns = {
        "number": lambda: rng.normal(size=n),
        "gaps": lambda: np.where(rng.random(n) < 0.5, np.nan, rng.normal(size=n)),
        "text": lambda: rng.choice(["a", "b", "c"], n),
        "flag": lambda: rng.random(n) < 0.5,
        "constant": lambda: np.ones(n),
    }
    X = pd.DataFrame({f"{kind}{i}": columns[kind]() for i, kind in enumerate(kinds)})
    y = rng.integers(0, n_classes, n)
    try:
        classifier = quick(max_iter=2).fit(X, y)
    except CoCoError:
        return
    proba = classifier.predict_proba(X)
    assert np.isfinite(proba).all()
    assert set(classifier.predict(X)) <= set(y)


@pytest.mark.parametrize("n", [20, 3000])
@pytest.mark.parametrize("solver", ["kernel", "network", "auto"])
def test_of_rows_that_are_all_equal_it_learns_class_shares(tmp_path, solver, n):
    X = pd.DataFrame({"a": np.ones(n), "b": "u"})
    y = np.where(np.arange(n) % 5 < 2, "few", "many")
    classifier = CoCoClassifier(solver=solver, priors="empirical", random_state=0)
    with pytest.warns(UserWarning, match="no column is left.*all rows are predicted alike"):
        classifier.fit(X, y)
    np.testing.assert_allclose(classifier.predict_proba(X), [[0.4, 0.6]] * n, atol=0.01)
    assert (classifier.predict(X.assign(b="new")) == "many").all()
    assert not classifier.preprocessor_.kinds_
    assert not np.any(classifier.explain(X[:2]).contributions)
    classifier.save(tmp_path / "m.coco")
    loaded = CoCoClassifier.load(tmp_path / "m.coco")
    np.testing.assert_array_equal(loaded.predict_proba(X[:2]), classifier.predict_proba(X[:2]))


def test_a_hundred_classes():
    rng = np.random.default_rng(0)
    centres = 5 * rng.normal(size=(100, 20))
    y = np.repeat(np.arange(100), 6)
    X = centres[y] + rng.normal(size=(600, 20))
    classifier = quick(max_iter=10, n_members=1).fit(X, y)
    assert classifier.score(centres, np.arange(100)) > 0.9


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_only_the_loss_that_learns_from_pairs_draws_them(classifier, monkeypatch):
    in_pairs = note_which_batches_are_pairs(monkeypatch)
    X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 30
    options = {"n_members": 1, "max_iter": 1, "early_stopping": False}
    classifier(batch_size=16, **options).fit(X, y)
    classifier(batch_size=16, **options).fit(X, y % 2)  # a batch has enough of each class
    assert in_pairs == [classifier is CoCoClassifier, False]
