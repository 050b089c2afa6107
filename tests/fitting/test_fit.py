"""What the parts of a fit are given: heads, calibration, schedule, networks."""

import time

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import OneHotEncoder, StandardScaler, TargetEncoder
from threadpoolctl import threadpool_info, threadpool_limits
from torch import nn

from cocoloss import CoCoClassifier, CrossEntropyClassifier, DotRegressionClassifier
from cocoloss.exceptions import CoCoError
from cocoloss.fitting import jobs as module
from cocoloss.fitting.fit import PLAIN, prepare_job, training_settings
from cocoloss.heads import GaussianHead, MatrixHead
from cocoloss.heads.readout import calibrate_together

X, Y = load_wine(return_X_y=True)


def quick(make=CoCoClassifier, **arguments):
    return make(**({"max_iter": 3, "n_members": 2, "random_state": 0} | arguments))


@pytest.fixture
def jobs(monkeypatch):
    """The jobs that are trained."""
    seen = []
    original = module.train_jobs

    def spy(given, callbacks=(), **options):
        seen.extend(given)
        return original(given, callbacks, **options)

    monkeypatch.setattr(module, "train_jobs", spy)
    return seen


def embeddings(classifier):
    return classifier.model_.networks.embeddings(classifier.model_.inputs(X))


class RecordingHead(GaussianHead):
    """Remembers what it was given."""

    def fit(self, X, y, sample_weight=None):
        self.given_ = (X.copy(), y.copy(), sample_weight)
        return super().fit(X, y, sample_weight)

    def calibrate(self, X, y, sample_weight=None):
        self.calibrated_ = (X.copy(), y.copy(), sample_weight)
        return super().calibrate(X, y, sample_weight)


def test_heads_are_fitted_on_training_rows_and_calibrated_on_the_others(jobs):
    classifier = quick(head=RecordingHead()).fit(X, Y)
    (job,) = jobs
    embeddings = classifier.model_.networks.embeddings(job.inputs)
    for k, head in enumerate(classifier.heads_):
        train, held_out = job.train[k], job.held_out[k]
        assert len(held_out) == 26
        np.testing.assert_array_equal(head.given_[0], embeddings[k, train])
        np.testing.assert_array_equal(head.given_[1], job.labels[train])
        assert head.given_[2] is None
        np.testing.assert_array_equal(head.calibrated_[0], embeddings[k, held_out])
        np.testing.assert_array_equal(head.calibrated_[1], job.labels[held_out])
    assert not np.array_equal(job.train[0], job.train[1])


def test_heads_and_the_held_out_loss_get_weights_that_are_no_copies(jobs, monkeypatch):
    given = []
    original = module.HeldOutLoss

    def spy(*args, weights, **options):
        given.append(weights)
        return original(*args, weights=weights, **options)

    monkeypatch.setattr(module, "HeldOutLoss", spy)
    weights = np.random.default_rng(0).uniform(0.1, 2, len(Y))
    head = quick(head=RecordingHead()).fit(X, Y, sample_weight=weights).heads_[1]
    (job,) = jobs
    np.testing.assert_array_equal(head.given_[2], job.row_weights[job.train[1]])
    np.testing.assert_array_equal(head.calibrated_[2], job.row_weights[job.held_out[1]])
    np.testing.assert_allclose(given[0], job.row_weights, rtol=1e-6)
    quick().fit(X, Y)
    assert given[1] is None


class ThreadedHead(GaussianHead):
    """Remembers how many threads numpy's products have."""

    def fit(self, X, y, sample_weight=None):
        pools = threadpool_info()
        self.threads_ = {p["num_threads"] for p in pools if p["user_api"] == "blas"}
        return super().fit(X, y, sample_weight)


def test_heads_are_fitted_on_one_thread():
    with threadpool_limits(2, user_api="blas"):
        assert quick(head=ThreadedHead()).fit(X, Y).heads_[0].threads_ == {1}


def test_the_schedule_is_what_was_asked_for(jobs):
    schedule = {"batch_size": 20, "weight_decay": 0.3, "clip_norm": 2.0}
    network = {"dropout": 0.25, "dropout_layer": 0, "output": "tanh", "normalize": False}
    others = {"learning_rate_init": 0.01, "learning_rate": "constant", "n_iter_no_change": 5}
    quick(max_iter=7, **schedule, **network, **others).fit(X, Y)
    schedule |= {"n_epochs": 7, "learning_rate": 0.01, "decay": "constant", "patience": 5}
    design = jobs[0].design
    fixed = {"validate_every": 1, "pair_rows": True, "seconds": None}
    assert vars(design.schedule) == schedule | fixed
    assert design.network == network | {"linear_hidden": False, "activation": "silu"}


def test_embeddings_are_squashed_as_they_were_trained():
    classifier = quick(output="tanh", normalize=False, n_members=1).fit(X, Y)
    assert np.abs(classifier.transform(X)).max() <= 1


@pytest.mark.parametrize(
    "options", [{"max_iter": 2000}, {"n_iter_no_change": 1, "max_iter": 100}, {"max_iter": 1000}]
)
def test_no_fit_leaves_the_weights_it_began_with(options):
    stop = [lambda epoch: epoch.number == 19] if options["max_iter"] == 1000 else None
    classifier = quick(**options, callbacks=stop).fit(X, Y)
    assert (classifier.best_epochs_ > 0).all()
    assert classifier.score(X, Y) > 0.9


def test_a_member_is_what_it_is_without_the_others(jobs):
    for n in (150, 160, 178):
        jobs.clear()
        quick(n_members=6, normalize=False).fit(X[:n], Y[:n] + (np.arange(n) < 40))
        assert len({len(rows) for rows in jobs[0].train}) == 1
    six = quick(n_members=6, normalize=False).fit(X, Y)
    one = quick(n_members=1, normalize=False).fit(X, Y)
    np.testing.assert_allclose(six.parameters_[0], one.parameters_[0], rtol=1e-3, atol=1e-4)
    assert six.transform(X).shape[1] == 6 * one.transform(X).shape[1]


def test_embeddings_that_are_not_normalised_start_at_unit_norm():
    classifier = quick(normalize=False, learning_rate_init=1e-30, weight_decay=0.0).fit(X, Y)
    features = embeddings(classifier)
    np.testing.assert_allclose(np.linalg.norm(features, axis=2).mean(axis=1), 1, rtol=0.1)


def test_the_start_of_a_network_does_not_depend_on_its_neighbours(jobs):
    start = []

    def remember(epoch):
        start.extend(epoch.network.parameters.clone())
        return True

    options = {"normalize": False, "learning_rate_init": 1e-30, "early_stopping": False}
    for rows in (slice(100), slice(None)):
        quick(**options, n_members=1, callbacks=[remember]).fit(X[rows], (X > 13)[rows, 0])
    first, second = jobs
    module.train_jobs([first, second], [remember])
    np.testing.assert_allclose(start[2], start[0], rtol=1e-6, atol=1e-20)
    np.testing.assert_allclose(start[3], start[1], rtol=1e-6, atol=1e-20)


@pytest.mark.parametrize("make", [CoCoClassifier, CrossEntropyClassifier, DotRegressionClassifier])
def test_class_weights_are_counted_once(make):
    X, y = make_classification(2000, weights=[0.9], class_sep=1.0, random_state=0)
    options = {"max_iter": 20, "class_weight": "balanced"}
    predicted = quick(make, **options).fit(X[:1000], y[:1000]).predict(X[1000:])
    recalls = [np.mean(predicted[y[1000:] == c] == c) for c in (0, 1)]
    assert abs(recalls[0] - recalls[1]) < 0.15


def test_the_softmax_divides_out_the_shares_that_it_has_learnt(jobs):
    y = np.minimum(Y, 1)
    classifier = quick(CrossEntropyClassifier, class_weight={0: 5.0, 1: 1.0}).fit(X, y)
    (job,) = jobs
    for head, train in zip(classifier.heads_, job.train, strict=True):
        masses = np.bincount(job.labels[train], weights=job.weights[train])
        np.testing.assert_allclose(head.class_share_, masses / masses.sum(), rtol=1e-6)
        np.testing.assert_allclose(head.class_prior_, [5 / 6, 1 / 6])


@pytest.mark.parametrize("priors", ["uniform", [0.2, 0.8], {0: 0.2, 1: 0.8}])
def test_a_dict_of_class_weights_multiplies_any_prior(priors):
    y = np.minimum(Y, 1)
    prior = np.array([0.5, 0.5] if isinstance(priors, str) else [0.2, 0.8])
    prior *= [3, 1]
    classifier = quick(priors=priors, class_weight={0: 3, 1: 1}, max_iter=1).fit(X, y)
    np.testing.assert_allclose(classifier.class_prior_, prior / prior.sum())


@pytest.mark.parametrize("head", ["ridge", "svm"])
def test_linear_heads_heed_priors(head):
    X, y = make_classification(500, weights=[0.8], flip_y=0.2, random_state=0)
    low, high = (
        (quick(head=head, priors=[1 - p, p]).fit(X, y).predict(X) == 1).mean() for p in (0.1, 0.9)
    )
    assert high - low > 0.1


def test_outlier_scores_are_those_of_all_members():
    classifier = quick().fit(X, Y)
    features = embeddings(classifier)
    each = [h.outlier_score(f) for h, f in zip(classifier.heads_, features, strict=True)]
    assert (classifier.model_.encoder.out_of_range(X) == 0).all()  # it was fitted to these rows
    np.testing.assert_allclose(classifier.outlier_score(X), np.mean(each, axis=0))
    assert not np.allclose(each[0], each[1])


class Stubborn(ClassifierMixin, BaseEstimator):
    """A head that has nothing but predict: the class of the nearest mean."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.means_ = np.stack([X[y == c].mean(axis=0) for c in self.classes_])
        return self

    def predict(self, X):
        return self.classes_[((X[:, None] - self.means_) ** 2).sum(-1).argmin(1)]


def test_heads_without_scores_vote():
    names = np.array(["b", "c", "a"])[Y]
    classifier = quick(head=Stubborn(), n_members=3, max_iter=10).fit(X, names)
    features = embeddings(classifier)
    votes = [h.predict(f) for h, f in zip(classifier.heads_, features, strict=True)]
    wanted = [max(range(3), key=lambda c: sum(v == c for v in row)) for row in zip(*votes)]  # noqa: B905
    assert (classifier.predict(X) == classifier.classes_[wanted]).all()
    assert classifier.score(X, names) > 0.9
    assert not hasattr(classifier, "predict_proba")
    assert not hasattr(classifier, "decision_function")


def test_a_head_without_weights_takes_copies_but_no_fractions():
    iris = load_iris(return_X_y=True)  # in which a row repeats
    classifier = quick(head=KNeighborsClassifier(), max_iter=10).fit(*iris)
    assert classifier.score(*iris) > 0.9
    classifier.fit(*iris, sample_weight=np.arange(150) % 3)
    weights = np.linspace(0.5, 1.2, 150)
    with pytest.raises(CoCoError, match=r"KNeighborsClassifier takes no sample_weight; give whole"):
        classifier.fit(*iris, sample_weight=weights)


def frame(n=120):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    return pd.DataFrame({"a": rng.normal(size=n) + y, "b": rng.choice(["u", "v"], n)}), y


@pytest.mark.parametrize(
    "transformer",
    [
        OneHotEncoder(handle_unknown="ignore"),
        make_column_transformer((OneHotEncoder(), ["b"]), (StandardScaler(), ["a"])),
        TargetEncoder(cv=KFold(3)),
    ],
    ids=["sparse", "columns", "target"],
)
def test_any_transformer_serves(transformer):
    table, y = frame()
    classifier = quick(preprocess=transformer).fit(table, y)
    assert classifier.predict_proba(table).shape == (120, 2)
    again = quick(preprocess=transformer).fit(table, y)
    np.testing.assert_array_equal(classifier.predict_proba(table), again.predict_proba(table))


def test_texts_serve_if_the_transformer_reads_them():
    texts = ["good film", "bad film", "a good one", "a bad one"] * 30
    y = np.arange(120) % 2
    classifier = quick(preprocess=TfidfVectorizer(), max_iter=10).fit(texts, y)
    assert classifier.score(texts, y) == 1


def test_gaps_that_a_transformer_leaves_are_told():
    table = X.copy()
    table[3, 2] = np.nan
    with pytest.raises(CoCoError, match="preprocessing StandardScaler left gaps"):
        quick(preprocess=StandardScaler()).fit(table, Y)
    classifier = quick(preprocess=StandardScaler()).fit(X, Y)
    with pytest.raises(CoCoError, match="preprocessing StandardScaler left gaps"):
        classifier.predict(table)


def test_the_kind_of_float_does_not_matter():
    exact = X.astype(np.float32)
    single = quick().fit(exact, Y).predict_proba(exact)
    double = quick().fit(exact.astype(np.float64), Y).predict_proba(exact.astype(np.float64))
    np.testing.assert_allclose(single, double, atol=1e-5)


def test_arrow_tables_keep_their_names():
    pyarrow = pytest.importorskip("pyarrow")
    data, y = load_breast_cancer(return_X_y=True, as_frame=True)
    table = pyarrow.Table.from_pandas(data, preserve_index=False)
    classifier = quick(max_iter=2).fit(table, y)
    assert list(classifier.feature_names_in_) == list(data)
    np.testing.assert_array_equal(classifier.predict_proba(table), classifier.predict_proba(data))


@pytest.mark.parametrize(
    ("n_rows", "expected"),
    [
        (500, (100, 64, 5e-3)),
        (4_000, (100, 64, 5e-3)),
        (4_001, (100, 128, 5e-3)),
        (20_000, (60, 256, 8e-3)),
        (10**6, (6, 256, 8e-3)),
    ],
)
def test_auto_goes_by_the_number_of_rows(n_rows, expected):
    settings = training_settings(CoCoClassifier(), n_rows)
    names = ("max_iter", "batch_size", "learning_rate_init")
    assert tuple(settings[name] for name in names) == expected
    rest = {"learning_rate": "averaged", "activation": "silu", "n_iter_no_change": 10}
    assert rest.items() <= settings.items()


@pytest.mark.parametrize("options", [{"early_stopping": False}, {"module": nn.Linear}])
def test_auto_is_plain_where_nothing_is_held_out_or_a_module_is_trained(options):
    plain = PLAIN | {"n_iter_no_change": 30}
    for n_rows in (10, 10**6):
        assert training_settings(CoCoClassifier(**options), n_rows) == plain


def test_what_is_said_is_taken():
    given = {
        "max_iter": 3,
        "batch_size": 7,
        "learning_rate_init": 0.1,
        "learning_rate": "cosine",
        "activation": "relu",
        "n_iter_no_change": 4,
    }
    assert training_settings(CoCoClassifier(**given), 10**6) == given
    partly = training_settings(CoCoClassifier(batch_size=7, learning_rate="cosine"), 10**6)
    assert partly["learning_rate_init"] == 5e-3  # that of large batches is not for these
    assert partly["n_iter_no_change"] == 30


@pytest.mark.parametrize(
    ("cls", "options", "kind"),
    [
        (CoCoClassifier, {}, "matrix"),
        (CoCoClassifier, {"early_stopping": False}, "gaussian"),
        (CoCoClassifier, {"head": "gaussian"}, "gaussian"),
        (DotRegressionClassifier, {}, "readout"),
        (CrossEntropyClassifier, {}, "readout"),
    ],
)
def test_the_head_of_auto(cls, options, kind):
    model = cls(max_iter=2, n_members=2, random_state=0, **options).fit(X, Y)
    assert {head.kind for head in model.model_.heads} == {kind}


def test_members_share_a_matrix_that_their_held_out_rows_have_made(jobs):
    classifier = quick(n_members=3).fit(X, Y)
    (job,) = jobs
    embeddings = classifier.model_.networks.embeddings(job.inputs)
    pairs = zip(embeddings, job.train, strict=True)
    heads = [MatrixHead().fit(h[rows], job.labels[rows]) for h, rows in pairs]
    pairs = zip(embeddings, job.held_out, strict=True)
    honest = [(h[rows], job.labels[rows], None) for h, rows in pairs]
    calibrate_together(heads, *zip(*honest, strict=True))
    for head, found in zip(heads, classifier.heads_, strict=True):
        np.testing.assert_array_equal(head.prototypes_, found.prototypes_)
        np.testing.assert_array_equal(head.bias_, found.bias_)
    assert len({head.bias_.tobytes() for head in classifier.heads_}) == 1


def test_a_fit_takes_the_seconds_it_is_given(jobs):
    job = prepare_job(quick(max_iter=10**6, n_iter_no_change=10**6, time_limit=0.2), X, Y)
    assert job.design.schedule.seconds == 0.2
    start = time.process_time()
    (trained,) = module.train_jobs([job])
    assert time.process_time() - start < 1
    assert 1 <= trained.best_epochs.min() < 10**6
