"""Model files read for their answers alone: those of the estimator, without scikit-learn."""

import json
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from cocoloss.estimators.archive import read_archive, write_archive
from cocoloss.estimators.saved import load_answers
from sklearn import config_context
from sklearn.base import BaseEstimator

from cocoloss import CoCoClassifier, CrossEntropyClassifier, DotRegressionClassifier, load
from cocoloss.exceptions import CoCoError
from cocoloss.heads import GaussianHead

N = 120
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "number": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)),
        "money": [f"{value:,.2f} EUR" for value in np.exp(RNG.normal(7, 2, N))],
        "text": RNG.choice(["x", "y", None], N),
        "date": pd.date_range("2020-01-01", periods=N, freq="37h"),
        "truth": RNG.integers(0, 2, N) > 0,
        "code": pd.Categorical(RNG.choice([1, 2, 3], N)),
    }
)
THREE = RNG.choice(["u", "v", "w"], N)
TWO = RNG.integers(0, 2, N) > 0
CLASSIFIERS = [CoCoClassifier, DotRegressionClassifier, CrossEntropyClassifier]
OURS = ["auto", "gaussian", "centroid", "angular", GaussianHead("tied"), GaussianHead("diag")]
METHODS = ("predict", "predict_proba", "decision_function", "transform", "outlier_score")


def small(cls=CoCoClassifier, **options):
    options = {"max_iter": 2, "n_members": 2, "hidden_layer_sizes": (8,)} | options
    return cls(random_state=0, **options)


def both(model, folder):
    model.save(folder / "m.coco")
    return load(folder / "m.coco"), load_answers(folder / "m.coco")


def assert_same_answers(full, light, X):
    for method in METHODS:
        if hasattr(full, method):
            ours, theirs = getattr(full, method)(X), getattr(light, method)(X)
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)  # to the last bit


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize("head", [*OURS, "ridge", "svm"], ids=str)
@pytest.mark.parametrize("y", [THREE, TWO], ids=["three classes", "two"])
def test_answers_are_those_of_the_estimator_to_the_last_bit(tmp_path, cls, head, y):
    full, light = both(small(cls, head=head).fit(TABLE, y), tmp_path)
    assert_same_answers(full, light, TABLE)
    assert_same_answers(full, light, TABLE[:1])


@pytest.mark.parametrize("frames", ["pandas", "polars"])
@pytest.mark.parametrize("preprocess", ["auto", None])
def test_models_that_make_frames_are_read(tmp_path, frames, preprocess):
    pytest.importorskip(frames)
    X = pd.DataFrame(RNG.normal(size=(N, 3)), columns=[*"abc"])
    model = small(preprocess=preprocess).set_output(transform=frames).fit(X, THREE)
    full, light = both(model, tmp_path)
    assert type(full.transform(X)) is type(model.transform(X))
    np.testing.assert_array_equal(np.asarray(full.transform(X)), light.transform(X))


@pytest.mark.parametrize("frames", ["pandas", "polars"])
@pytest.mark.parametrize("preprocess", ["auto", None])
def test_models_are_read_where_scikit_learn_makes_frames(tmp_path, frames, preprocess):
    pytest.importorskip(frames)
    X = RNG.normal(size=(N, 3))
    model = small(preprocess=preprocess).fit(X, THREE)
    with config_context(transform_output=frames):
        full, light = both(model, tmp_path)
        made = full.transform(X)
    assert type(made).__module__.startswith(frames)
    np.testing.assert_array_equal(np.asarray(made), light.transform(X))


@pytest.mark.parametrize("preprocess", ["auto", None])
def test_models_of_arrays_answer_arrays_and_frames(tmp_path, preprocess):
    X = RNG.normal(size=(N, 3))
    full, light = both(small(preprocess=preprocess).fit(X, THREE), tmp_path)
    assert_same_answers(full, light, X)
    with pytest.warns(UserWarning, match="CoCoClassifier was fitted without feature names"):
        predicted = light.predict(pd.DataFrame(X, columns=[*"abc"]))
    np.testing.assert_array_equal(predicted, full.predict(X))


def test_no_part_of_ours_is_an_estimator(tmp_path):
    full, light = both(small().fit(TABLE, THREE), tmp_path)
    assert isinstance(full.heads_[0], BaseEstimator)
    for part in (light, light.preprocessor_, *light.heads_):
        assert not isinstance(part, BaseEstimator)


@pytest.mark.parametrize("head", ["auto", "ridge"])
def test_only_a_head_of_scikit_learns_needs_scikit_learn(tmp_path, head):
    small(head=head).fit(TABLE[["number"]], THREE).save(tmp_path / "m.coco")
    code = (
        f"import sys\nfrom cocoloss.estimators.saved import load_answers\n"
        f"load_answers({str(tmp_path / 'm.coco')!r})\nprint('sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == str(head == "ridge")


def test_tables_are_refused_in_the_same_words(tmp_path):
    for model, X in [
        (small().fit(TABLE, THREE), TABLE[["number", "text"]]),
        (small().fit(TABLE, THREE), TABLE.assign(date="soon")),
        (small().fit(TABLE[["number"]], THREE), np.zeros((2, 5))),
        (small(preprocess=None).fit(RNG.normal(size=(N, 2)), THREE), np.full((1, 2), np.nan)),
    ]:
        said = []
        for read in both(model, tmp_path):
            with pytest.raises(CoCoError) as refusal:
                read.predict(X)
            said.append(str(refusal.value))
        assert said[0] == said[1]


@pytest.mark.parametrize(
    ("alter", "message"),
    [
        (lambda model: model["heads_"][1][2].pop("classes_"), "a head is none"),
        (lambda model: model["heads_"][1][2].update(n_features_in_=3), "a head does not fit"),
        (lambda model: model["heads_"][1].__setitem__(1, "OneHot"), "a head is none"),
        (lambda model: model["heads_"][1].__setitem__(1, "CoCoClassifier"), "a head is none"),
        (lambda model: model["heads_"].pop(), "not one head for each network"),
        (lambda model: model.update(modules_=["list"]), "claims to hold torch modules"),
        (lambda model: model["preprocessor_"].__setitem__(1, "FloatConverter"), "does not fit"),
    ],
)
def test_parts_that_do_not_fit_are_refused_by_either_reader(tmp_path, alter, message):
    path = tmp_path / "m.coco"
    small().fit(TABLE, THREE).save(path)
    archive = read_archive(path, version=1)
    document = json.loads(json.dumps(archive.document))
    alter(document[2])
    write_archive(path, document, archive.arrays, version=1, writer="a test")
    for read in (load, load_answers):
        with pytest.raises(CoCoError, match=f"not a usable model file.*{message}"):
            read(path)


def crafted(path, alter):
    """Write a model with other arrays in some places."""
    archive = read_archive(path, version=1)
    document, stored = json.loads(json.dumps(archive.document)), list(archive.arrays)

    def array(value):
        stored.append(np.ascontiguousarray(value))
        return ["array", len(stored) - 1]

    alter(document[2], array)
    write_archive(path, document, stored, version=1, writer="a test")


def short_arrays_that_broadcast(model, array):
    C = q = 3000
    model["layer_sizes_"] = ["tuple", 3, q]
    model["parameters_"] = array(np.full((1, 4 * q), 0.01, np.float32))
    model |= {"classes_": array(np.arange(C)), "_n_features_out": q}
    head = model["heads_"][1][2]
    head |= {"classes_": array(np.arange(C)), "means_": array(np.zeros((C, 1)))}
    head |= {"covariance_": "diag", "precisions_cholesky_": array(np.ones((1, q)))}
    head |= {"class_prior_": array(np.ones(C) / C), "n_features_in_": q}
    head |= {"class_share_": array(np.ones(C) / C)}


@pytest.mark.parametrize("read", [load, load_answers])
def test_short_arrays_cannot_make_a_huge_one(tmp_path, read):
    path = tmp_path / "m.coco"
    X = RNG.normal(size=(N, 3))
    small(preprocess=None, n_members=1).fit(X, THREE).save(path)
    crafted(path, short_arrays_that_broadcast)
    tracemalloc.start()
    with pytest.raises(CoCoError, match="a head does not fit the embedding"):
        read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6  # 72 MB if numpy had its way


@pytest.mark.parametrize("name", ["center", "scale"])
def test_scales_that_are_not_those_of_the_columns_are_refused(tmp_path, name):
    path = tmp_path / "m.coco"
    small().fit(RNG.normal(size=(N, 3)), THREE).save(path)

    def tall(model, array):
        model["preprocessor_"][2]["scaler_"][2][name] = array(np.ones((3, 1)))

    crafted(path, tall)
    with pytest.raises(CoCoError, match="the scales are not those of the columns"):
        load(path)


@pytest.mark.parametrize(
    "junk",
    [
        ["list", *[["items", "<U10000", ["list", "b" * 10**4, *["a"] * 999]]] * 60],
        ["list", *[["cast", "<f16", ["array", 0]]] * 200],
    ],
    ids=["text", "casts"],
)
def test_small_files_do_not_take_much_memory(tmp_path, junk):
    path = tmp_path / "m.coco"
    small().fit(RNG.normal(size=(N, 3)), THREE).save(path)
    crafted(path, lambda model, _: model.update(junk=junk))
    with pytest.raises(CoCoError, match=r"more than a model needs|taken before"):
        load(path)


@pytest.mark.parametrize("read", [load, load_answers])
def test_numbers_that_overflow_on_the_way_are_refused(tmp_path, read):
    path = tmp_path / "m.coco"
    model = small(hidden_layer_sizes=(8,) * 9, normalize=False).fit(TABLE, THREE)
    model.parameters_ = np.full_like(model.parameters_, 3e38)
    model.save(path)
    with pytest.raises(CoCoError, match="what the networks make is not finite"):
        read(path)


def test_an_embedding_that_is_not_finite_has_no_answer(tmp_path):
    small().fit(TABLE, THREE).save(tmp_path / "m.coco")
    head = load_answers(tmp_path / "m.coco").heads_[0]
    with pytest.raises(CoCoError, match="the embedding of a row is not finite"):
        head.predict_proba(np.full((1, 8), np.inf))
