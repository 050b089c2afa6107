import sys

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.naive_bayes import GaussianNB

from cocoloss import CoCoClassifier, CrossEntropyClassifier, DotRegressionClassifier
from cocoloss.exceptions import CoCoError
from cocoloss.heads import GaussianHead

runtime = pytest.importorskip("onnxruntime")
TABLES = {"wine": load_wine(return_X_y=True), "cancer": load_breast_cancer(return_X_y=True)}
CASES = [
    *((CoCoClassifier, {"head": head}) for head in ("auto", "centroid", "angular", "ridge", "svm")),
    (DotRegressionClassifier, {}),
    (CrossEntropyClassifier, {}),
    (CrossEntropyClassifier, {"head": "gaussian"}),
    (CrossEntropyClassifier, {"embedding_dim": 2}),
    (CoCoClassifier, {"head": GaussianHead(covariance="tied")}),
    (CoCoClassifier, {"head": GaussianHead(covariance="diag", priors="empirical")}),
    (CoCoClassifier, {"output": "tanh", "normalize": False, "early_stopping": False}),
]


def fitted(cls, table="wine", classes=("one", "two", "three"), **options):
    X, y = TABLES[table]
    X = ((X - X.mean(0)) / X.std(0)).astype(np.float32)
    quick = {"max_iter": 3, "n_members": 2, "random_state": 0, "preprocess": None}
    return cls((16, 16), **quick, **options).fit(X, np.array(classes)[y]), X


def run(path, X):
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X}), strict=True))


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(("cls", "options"), CASES)
def test_another_runtime_gives_the_same_predictions(tmp_path, cls, options, table):
    model, X = fitted(cls, table, **options)
    model.to_onnx(tmp_path / "m.onnx")
    found = run(tmp_path / "m.onnx", X)
    assert found["label"].tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(found["embedding"], model.transform(X), atol=1e-5)
    if not hasattr(model, "predict_proba"):
        scores = model.decision_function(X)
        given = found["scores"] if scores.ndim == 2 else found["scores"][:, 1]
        np.testing.assert_allclose(given, scores, atol=1e-5)
    else:
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize(
    ("classes", "kind"),
    [
        ([1.0, 2.0, 3.0], np.float64),
        ([np.float32(2), np.float32(1), np.float32(4)], np.float64),
        ([-5, 2**60 + 1, 7], np.int64),
        (np.array([7, 200, 9], dtype=np.uint8), np.int64),
        (np.array([3, 1, 2], dtype=object), np.int64),
        ([True, False, True], np.int64),
        (["b", "a", "c"], object),
    ],
)
def test_labels_are_the_classes_themselves(tmp_path, classes, kind):
    model, X = fitted(CoCoClassifier, classes=classes)
    model.to_onnx(tmp_path / "m.onnx")
    label = run(tmp_path / "m.onnx", X)["label"]
    assert label.dtype == kind
    assert label.tolist() == model.predict(X).tolist()


@pytest.mark.parametrize(
    "classes",
    [
        np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="M8[D]"),
        np.array([2**63, 2**63 + 1, 5], dtype=np.uint64),
    ],
    ids=["dates", "too large"],
)
def test_classes_that_a_graph_cannot_hold_are_refused(tmp_path, classes):
    model, _ = fitted(CoCoClassifier, classes=classes)
    with pytest.raises(CoCoError, match=r"encode them.*astype\(str\)"):
        model.to_onnx(tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


def test_a_table_is_preprocessed_here(tmp_path):
    X, y = TABLES["wine"]
    model = CoCoClassifier((8,), max_iter=3, n_members=1, random_state=0).fit(X, y)
    model.to_onnx(tmp_path / "m.onnx")
    found = run(tmp_path / "m.onnx", model.preprocessor_.transform(X))
    assert found["label"].dtype == np.int64
    np.testing.assert_array_equal(found["label"], model.predict(X))


def test_strange_rows_and_no_rows_have_predictions(tmp_path):
    model, X = fitted(CoCoClassifier)
    model.to_onnx(tmp_path / "m.onnx")
    far = np.vstack([X[:3] * 1e4, np.zeros_like(X[:1])])
    given = run(tmp_path / "m.onnx", far)["probabilities"]
    np.testing.assert_allclose(given, model.predict_proba(far), atol=1e-5)
    assert run(tmp_path / "m.onnx", X[:0])["probabilities"].shape == (0, 3)


def test_what_has_no_graph_is_refused(tmp_path, monkeypatch):
    model, _ = fitted(CoCoClassifier, head=GaussianNB())
    with pytest.raises(CoCoError, match="not GaussianNB; use head='gaussian'"):
        model.to_onnx(tmp_path / "m.onnx")
    with pytest.raises(ValueError, match="not fitted"):
        CoCoClassifier().to_onnx(tmp_path / "m.onnx")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(CoCoError, match="pip install"):
        model.to_onnx(tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())
