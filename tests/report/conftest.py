import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from browser import chromium, open_page  # noqa: F401 - fixtures
from cocoloss import CoCoClassifier, CrossEntropyClassifier
from cocoloss.recording import record_fit

SMALL = {"hidden_layer_sizes": (32,), "n_members": 2, "random_state": 0}
HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 2'>",
    "<!--<script>",
    "\"quotes\" & 'ticks' `back`",
    "🦉 owl",
    "שלום",
    "\u202eturned",
    "a" * 200,
    "",
    "nul\x00 and a lone \ud800",
]


class Run:
    """A record with the estimator and the rows it came from."""

    def __init__(self, estimator, X, y, **options):
        self.estimator, self.X, self.y = estimator, X, y
        self.record = record_fit(estimator, X, y, **options)


@pytest.fixture(scope="session")
def digits():
    X, y = load_digits(return_X_y=True)
    estimator = CoCoClassifier(max_iter=12, embedding_dim=10, **SMALL)
    return Run(estimator, X[:900], y[:900], n_snapshots=8, max_points=400, data_name="digits")


@pytest.fixture(scope="session")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    estimator = CoCoClassifier(max_iter=10, embedding_dim=2, normalize=False, **SMALL)
    names = ["malignant", "benign"]
    return Run(estimator, X, y, n_snapshots=6, data_name="breast cancer", class_names=names)


@pytest.fixture(scope="session")
def single():
    X, y = load_wine(return_X_y=True)
    estimator = CrossEntropyClassifier(max_iter=4, **(SMALL | {"n_members": 1}))
    return Run(estimator, X, y, n_snapshots=3, data_name="wine")


@pytest.fixture(scope="session")
def kernels():
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X.rename(columns=dict(zip(X.columns, [*HOSTILE[:4], "b" * 90], strict=False)))
    estimator = CoCoClassifier(solver="kernel", random_state=0)
    return Run(estimator, X, y, n_snapshots=7, data_name="wine")


@pytest.fixture(scope="session")
def blind(kernels):
    estimator = CoCoClassifier(solver="kernel", random_state=0)
    return Run(estimator, kernels.X, kernels.y, n_snapshots=0)


@pytest.fixture(scope="session")
def many():
    rng = np.random.default_rng(0)
    y = np.arange(600) % 40
    X = rng.normal(size=(40, 8))[y] + 0.6 * rng.normal(size=(600, 8))
    return Run(CoCoClassifier(max_iter=4, **SMALL), X, y, n_snapshots=3, data_name="forty")


@pytest.fixture(scope="session")
def hostile():
    rng = np.random.default_rng(0)
    y = np.arange(200) % len(HOSTILE)
    X = rng.normal(size=(len(HOSTILE), 6))[y] + 0.3 * rng.normal(size=(200, 6))
    estimator = CoCoClassifier(max_iter=3, **SMALL)
    return Run(estimator, X, y, n_snapshots=3, data_name=HOSTILE[0], class_names=HOSTILE)
