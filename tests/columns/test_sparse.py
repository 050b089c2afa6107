"""Sparse matrices: narrow ones are tables, wide ones a few numbers, and both in any format."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder

from cocoloss import CoCoClassifier, CoCoRegressor, cross_validate_lockstep
from cocoloss.columns import FloatConverter, TablePreprocessor
from cocoloss.columns.frames import MOST_DENSE
from cocoloss.columns.sparse import SparseEncoder
from cocoloss.exceptions import CoCoError

FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]
QUICK = {"max_iter": 5, "n_members": 1, "random_state": 0}


def labelled(n=80, d=30, seed=0):
    """Return a sparse matrix, and classes that some of its columns tell."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 2, n)
    dense = generator.poisson(0.05, (n, d)).astype(float)
    dense[:, :10] += generator.poisson(0.8, (n, 10)) * y[:, None]
    dense[:, 10:20] += generator.poisson(0.8, (n, 10)) * (1 - y)[:, None]
    return sp.csr_array(dense), y


@pytest.mark.parametrize("solver", ["kernel", "network"])
@pytest.mark.parametrize("preprocess", ["auto", None])
def test_a_narrow_matrix_is_the_dense_one(solver, preprocess):
    X, y = labelled()
    arguments = {"preprocess": preprocess, "solver": solver, "random_state": 0}
    arguments |= {"max_iter": 3, "n_members": 1} if solver == "network" else {}
    dense = CoCoClassifier(**arguments).fit(X.toarray(), y)
    sparse = CoCoClassifier(**arguments).fit(X, y)
    expected = dense.predict_proba(X.toarray())
    for form in FORMATS:
        np.testing.assert_array_equal(sparse.predict_proba(X.asformat(form)), expected)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix, sp.csc_matrix, sp.coo_array])
def test_a_wide_matrix_is_learnt_in_any_format(make):
    X, y = labelled(d=2 * MOST_DENSE)
    classifier = CoCoClassifier(random_state=0).fit(make(X[:60]), y[:60])
    assert classifier.n_features_in_ == 2 * MOST_DENSE
    assert classifier.preprocessor_.n_features_out_ <= 200
    expected = classifier.predict_proba(X)
    np.testing.assert_allclose(classifier.predict_proba(make(X)), expected, atol=1e-6)
    np.testing.assert_allclose(classifier.predict_proba(X.toarray()), expected, atol=1e-6)
    assert classifier.score(X[60:], y[60:]) > 0.7


def test_what_explains_a_wide_matrix_is_not_named_like_its_columns():
    X, y = labelled(d=2 * MOST_DENSE)
    classifier = CoCoClassifier(random_state=0).fit(X, y)
    names = classifier.preprocessor_.get_feature_names_out().tolist()
    assert names[0] == "svd0"
    assert list(classifier.explain(X[:2]).contributions) == names
    assert len(classifier.feature_importances_) == len(names)


def test_the_numbers_are_those_of_a_singular_value_decomposition():
    X, _ = labelled(n=40, d=600)
    dense = X.toarray()
    rms = np.sqrt(np.mean(dense**2, axis=0))
    scaled = np.where(rms > 0, dense / np.sqrt(np.where(rms > 0, rms, 1)), 0)
    rows = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    made = TablePreprocessor().fit_transform(X).astype(float)  # of full rank: all is kept
    assert made.var(axis=0).sum() == pytest.approx(made.shape[1], rel=1e-4)
    similar, expected = made @ made.T, rows @ rows.T
    factor = np.trace(similar) / np.trace(expected)
    np.testing.assert_allclose(similar / factor, expected, atol=1e-3)


def test_equal_rows_stand_for_each_other():
    X, y = labelled(d=600)
    twice = sp.vstack([X, X]).tocsr()
    one = CoCoClassifier(random_state=0).fit(X, y)
    two = CoCoClassifier(random_state=0).fit(twice, np.r_[y, y])
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-6)
    explicit = X.tocoo()  # a zero that is stored, and an entry in two parts
    explicit = sp.coo_array(
        (
            np.r_[explicit.data / 2, explicit.data / 2, 0.0],
            (np.r_[explicit.row, explicit.row, 0], np.r_[explicit.col, explicit.col, 599]),
        ),
        shape=X.shape,
    )
    three = CoCoClassifier(random_state=0).fit(explicit, y)
    np.testing.assert_allclose(one.predict_proba(X), three.predict_proba(X), atol=1e-6)


def test_memory_stays_that_of_what_is_not_zero():
    X = sp.random_array((20_000, 20_000), density=5e-4, rng=0, format="csr", dtype=np.float32)
    tracemalloc.start()
    made = TablePreprocessor().fit_transform(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert made.shape == (20_000, 200)
    assert peak < 20_000 * 20_000 * 4 / 4  # a quarter of the dense matrix in float32


def test_a_wide_model_is_saved(tmp_path):
    X, y = labelled(d=600)
    for estimator in (CoCoClassifier(random_state=0), CoCoClassifier(**QUICK)):
        estimator.fit(X, y).save(tmp_path / "m.coco")
        loaded = CoCoClassifier.load(tmp_path / "m.coco")
        np.testing.assert_array_equal(loaded.predict_proba(X), estimator.predict_proba(X))
    state = estimator.model_.encoder.to_state()
    for name, value in {"scale": -state["scale"], "n_columns": 7, "reader": 1}.items():
        with pytest.raises(CoCoError):
            SparseEncoder.from_state(state | {name: value})


def test_pipelines_give_them():
    words = np.array([["good", "fine", "great"], ["bad", "poor", "awful"]])
    generator = np.random.default_rng(0)
    y = generator.integers(0, 2, 80)
    texts = [" ".join(generator.choice(words[k], 3)) for k in y]
    for reader in (TfidfVectorizer(), CountVectorizer(), TfidfVectorizer(analyzer="char_wb")):
        pipeline = make_pipeline(reader, CoCoClassifier(random_state=0)).fit(texts[:60], y[:60])
        assert pipeline.score(texts[60:], y[60:]) > 0.9
    columns = generator.integers(0, 30, (80, 2)).astype(str)
    encoded = OneHotEncoder(handle_unknown="ignore")
    pipeline = make_pipeline(encoded, CoCoClassifier(**QUICK)).fit(columns[:60], y[:60])
    assert pipeline.predict(columns[60:]).shape == (20,)
    assert pipeline.transform(columns).shape[0] == 80


def test_other_estimators_and_folds_take_them():
    X, y = labelled(d=600)
    assert CoCoRegressor(random_state=0).fit(X, y * 1.0).predict(X).shape == (80,)
    result = cross_validate_lockstep(CoCoClassifier(**QUICK), X, y, cv=2)
    assert len(result["test_score"]) == 2
    own = CoCoClassifier(preprocess=MaxAbsScaler(), **QUICK).fit(X, y)
    assert own.predict(X.tocoo()).shape == (80,)


def test_what_cannot_be_read_is_told_in_one_line():
    X, y = labelled(d=600)
    bad = X.copy()
    bad.data[3] = np.nan
    with pytest.raises(CoCoError, match="CoCoClassifier cannot read in a sparse matrix of more"):
        CoCoClassifier(**QUICK).fit(bad, y)
    with pytest.raises(CoCoError, match="X has 599 features, but CoCoClassifier is expecting 600"):
        CoCoClassifier(**QUICK).fit(X, y).predict(X[:, 1:])
    with pytest.raises(CoCoError, match="do not differ"):
        TablePreprocessor().fit(sp.csr_array((5, 600)))
    huge = sp.csr_array((10**6, 10**5))
    with pytest.raises(CoCoError, match=r"1,000,000 x 100,000.*preprocess='auto'"):
        FloatConverter().fit(huge)
