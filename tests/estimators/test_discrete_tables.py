"""Tables in which rows repeat: every copy counts, everywhere."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from cocoloss import CoCoClassifier, CrossEntropyClassifier


def quick(make=CoCoClassifier, **arguments):
    return make(**({"max_iter": 20, "n_members": 2, "random_state": 0} | arguments))


@pytest.fixture(scope="module")
def cities():
    """Sixty cities and a flag; nine rows of ten follow the city."""
    rng = np.random.default_rng(0)
    city = rng.integers(0, 60, 3000)
    likely = np.where(rng.random(60)[city] > 0.5, 0.9, 0.1)
    y = (rng.random(3000) < likely).astype(int)
    names = np.array([f"city {i}" for i in range(60)])[city]
    return pd.DataFrame({"city": names, "flag": rng.integers(0, 2, 3000)}), y


@pytest.mark.parametrize("make", [CoCoClassifier, CrossEntropyClassifier])
def test_a_column_of_noise_is_no_gain(make, cities):
    X, y = cities
    noisy = X.assign(noise=np.random.default_rng(1).normal(size=len(X)))
    dummies = pd.get_dummies(X)
    train = np.arange(len(X)) < 2000
    linear = LogisticRegression().fit(dummies[train], y[train])
    losses = {"linear": log_loss(y[~train], linear.predict_proba(dummies[~train]))}
    for name, table in (("plain", X), ("noisy", noisy)):
        classifier = quick(make, priors="empirical").fit(table[train], y[train])
        losses[name] = log_loss(y[~train], classifier.predict_proba(table[~train]))
    assert losses["plain"] < losses["noisy"] + 0.02
    assert losses["plain"] < losses["linear"] + 0.02


def test_values_of_many_copies_are_frequent():
    z = np.random.default_rng(0).integers(0, 40, 2000)
    X = pd.DataFrame({"zip": pd.Series(z).astype("category")})
    assert quick().fit(X, z % 2).score(X, z % 2) == 1


def test_the_preprocessing_counts_copies():
    X = np.r_[np.zeros(900), 1 + np.arange(100)][:, None]
    y = np.arange(1000) % 2
    for classifier in (
        quick(max_iter=1).fit(X, y),
        quick(max_iter=1).fit(X[898:], y[898:], sample_weight=[450, 450] + [1] * 100),
    ):
        assert classifier.preprocessor_.scaler_.center.tolist() == [0]


def test_balanced_class_weights_count_copies():
    X = np.r_[np.repeat(np.arange(4.0), 250), np.linspace(0, 1, 8)][:, None]
    y = np.repeat([0, 1], [1000, 8])
    job = quick(class_weight="balanced", loss="coco")._prepare(X, y, None)  # noqa: SLF001
    masses = np.bincount(job.labels, weights=job.weights)
    assert masses[0] == pytest.approx(masses[1], rel=1e-5)
    halves = quick(class_weight="balanced", loss="coco")._prepare(X, y, np.full(len(y), 0.5))  # noqa: SLF001
    np.testing.assert_array_equal(halves.weights, job.weights)


def test_an_epoch_passes_over_every_copy():
    X = np.repeat(np.arange(4.0), 100)[:, None]
    y = np.arange(400) % 2
    job = quick()._prepare(X, y, None)  # noqa: SLF001
    assert [len(rows) for rows in job.train] == [340, 340]
    assert [len(rows) for rows in job.held_out] == [60, 60]


@pytest.mark.parametrize("make", [CoCoClassifier, CrossEntropyClassifier])
def test_a_contingency_table_is_its_rows(make):
    cells = pd.DataFrame({"sex": ["m", "m", "f", "f"], "class": ["1", "2", "1", "2"]})
    died, survived = np.array([118, 154, 4, 13]), np.array([62, 25, 141, 93])
    X = pd.concat([cells, cells], ignore_index=True)
    y, weights = np.repeat([0, 1], 4), np.r_[died, survived]
    weighted = quick(make, priors="empirical").fit(X, y, sample_weight=weights)
    rows = X.loc[np.repeat(np.arange(8), weights)]
    repeated = quick(make, priors="empirical").fit(rows, np.repeat(y, weights))
    np.testing.assert_array_equal(weighted.predict_proba(X), repeated.predict_proba(X))
    share = survived / (died + survived)
    np.testing.assert_allclose(weighted.predict_proba(cells)[:, 1], share, atol=0.2)


def test_only_the_ratios_of_fractions_matter():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(200, 3)), rng.uniform(0.5, 2, 200)
    y = (X[:, 0] > 0).astype(int)
    large = quick(max_iter=3).fit(X, y, sample_weight=weights)
    small = quick(max_iter=3).fit(X, y, sample_weight=weights * 1e-9)
    plain = quick(max_iter=3).fit(X, y)
    np.testing.assert_allclose(small.predict_proba(X), large.predict_proba(X), atol=1e-5)
    assert not np.allclose(large.predict_proba(X), plain.predict_proba(X), atol=1e-5)
    tenths = quick(max_iter=3).fit(X, y, sample_weight=np.full(200, 0.1))
    np.testing.assert_array_equal(tenths.predict_proba(X), plain.predict_proba(X))
