"""Model files: what comes back, to the last bit; what is refused; what a stranger cannot do."""

import json
import os
import pickle
import struct
import subprocess
import sys
import tracemalloc
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from cocoloss import CoCoClassifier, CrossEntropyClassifier, DotRegressionClassifier, load
from cocoloss.columns import TablePreprocessor
from cocoloss.estimators import model_file as module
from cocoloss.estimators.model_file import MAX_TEXT, load_model, read_state, write_state
from cocoloss.exceptions import CoCoError
from cocoloss.heads import GaussianHead

N = 120
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "number": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)),
        "money": [f"${value:,.2f}" for value in np.exp(RNG.normal(7, 2, N))],
        "text": RNG.choice(["x", "y", "$z", None], N),
        "date": pd.date_range("2020-01-01", periods=N, freq="37h"),
        "truth": RNG.integers(0, 2, N) > 0,
        "code": pd.Categorical(RNG.choice([1, 2, 3], N)),
    }
)
THREE = RNG.choice(["u", "v", "w"], N)
TWO = RNG.integers(0, 2, N) > 0
HEADS = ["gaussian", "matrix", "centroid", "angular", GaussianHead("tied"), GaussianHead("diag")]
METHODS = ("predict", "predict_proba", "decision_function", "transform", "outlier_score")


def small(cls=CoCoClassifier, **options):
    options = {"max_iter": 2, "n_members": 2, "hidden_layer_sizes": (8,)} | options
    return cls(random_state=0, **options)


@pytest.fixture(autouse=True)
def quick_writes(monkeypatch):
    """Hundreds of files need not outlive a power cut."""
    monkeypatch.setattr("os.fsync", lambda _: None)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.coco"
    small().fit(TABLE, THREE).save(path)
    return path


def both(model, folder):
    model.save(folder / "m.coco")
    return load(folder / "m.coco"), load_model(folder / "m.coco")


def assert_same_predictions(model, other, X):
    for method in METHODS:
        if hasattr(model, method):
            ours, theirs = getattr(model, method)(X), getattr(other, method)(X)
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)  # to the last bit


# What comes back ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cls", "head", "y"),
    [
        *((CoCoClassifier, head, THREE) for head in [*HEADS, "ridge", "svm"]),
        *((CrossEntropyClassifier, head, THREE) for head in ("auto", "gaussian", "svm")),
        (DotRegressionClassifier, "auto", THREE),
        *((CoCoClassifier, head, TWO) for head in ("gaussian", "ridge")),
        (DotRegressionClassifier, "auto", TWO),
        (CrossEntropyClassifier, "auto", TWO),
    ],
)
def test_predictions_are_those_of_before_to_the_last_bit(tmp_path, cls, head, y):
    model = small(cls, head=head).fit(TABLE, y)
    loaded, light = both(model, tmp_path)
    assert str(loaded.get_params()) == str(model.get_params())
    for other in (loaded, light):
        assert_same_predictions(model, other, TABLE)
        assert_same_predictions(model, other, TABLE[:1])


@pytest.mark.parametrize(
    "labels",
    [
        RNG.choice(["u", "v"], N).astype(object),
        RNG.choice([3, 5, 9], N),
        RNG.choice([3, 5, 9], N).astype(np.uint8),
        np.array(["2020-01-01", "2021-05-06"], dtype="M8[D]")[TWO.astype(int)],
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_classes_of_every_kind_come_back(tmp_path, labels):
    model = small().fit(TABLE, labels)
    for other in both(model, tmp_path):
        assert_same_predictions(model, other, TABLE)


PRIORS = np.array([0.2, 0.3, 0.5])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        *(
            ({name: value}, {name: value})
            for name, value in {
                "priors": PRIORS,
                "class_weight": {"u": 1.0, "v": 2.0, "w": 1.5},
                "similarity": np.eye(3),
                "clip_norm": 1.0,
                "output": "tanh",
            }.items()
        ),
        ({"priors": pd.Series(PRIORS)}, {"priors": PRIORS}),
        ({"similarity": pd.DataFrame(np.eye(3))}, {"similarity": np.eye(3)}),
        ({"device": torch.device("cpu")}, {"device": "cpu"}),
        (
            {"preprocess": TablePreprocessor(categorical_features=pd.Index(["code"]))},
            {"preprocess__categorical_features": np.array(["code"], dtype=object)},
        ),
        ({"head": GaussianHead(priors=pd.Series(PRIORS))}, {"head__priors": PRIORS}),
    ],
)
def test_arguments_come_back_and_those_of_other_libraries_become_plain(tmp_path, options, expected):
    model = small(**options).fit(TABLE, THREE)
    loaded, _ = both(model, tmp_path)
    for name, value in expected.items():
        found = loaded.get_params()[name]
        assert type(found) is type(value)
        np.testing.assert_equal(found, value)
    assert all(getattr(model, name) is value for name, value in options.items())


def test_what_belongs_to_the_process_stays_behind(tmp_path):
    model = small(callbacks=[lambda epoch: None])
    with config_context(enable_metadata_routing=True):
        model.set_params(random_state=np.random.default_rng(0)).set_fit_request(sample_weight=True)
        loaded, _ = both(model.fit(TABLE, THREE), tmp_path)
        assert loaded.get_metadata_routing().fit.requests["sample_weight"] is None
    assert loaded.callbacks is None
    assert loaded.random_state is None
    assert model.callbacks is not None


def test_a_file_holds_weights_and_no_rows_and_parts_go_on(tmp_path):
    X, y = load_digits(return_X_y=True)
    model = small(max_iter=1)
    for part in range(3):
        model.partial_fit(X[part::3], y[part::3])
    loaded, _ = both(model, tmp_path)
    size = (tmp_path / "m.coco").stat().st_size
    assert size < 1.5 * model.parameters_.nbytes + 30_000
    assert loaded.recent_rows_ is None
    assert loaded.loss_curves_ == model.loss_curves_
    np.testing.assert_array_equal(loaded.best_epochs_, model.best_epochs_)
    before = loaded.score(X, y)
    loaded.partial_fit(X[:2], y[:2])  # goes on, with the heads that it has
    assert loaded.score(X, y) > before - 0.05
    assert loaded.n_iter_ == model.n_iter_ + 1
    np.testing.assert_array_equal(
        loaded.history_.class_masses, np.bincount(y) + np.bincount(y[:2], minlength=10)
    )


@pytest.mark.parametrize("preprocess", ["auto", None])
def test_models_of_arrays_take_arrays_and_frames(tmp_path, preprocess):
    X = RNG.normal(size=(N, 3))
    full, light = both(small(preprocess=preprocess).fit(X, THREE), tmp_path)
    assert_same_predictions(full, light, X)
    with pytest.warns(UserWarning, match="CoCoClassifier was fitted without feature names"):
        predicted = light.predict(pd.DataFrame(X, columns=[*"abc"]))
    np.testing.assert_array_equal(predicted, full.predict(X))


@pytest.mark.parametrize("frames", ["pandas", "polars"])
def test_models_that_make_frames_are_read_and_read_where_scikit_learn_makes_them(tmp_path, frames):
    pytest.importorskip(frames)
    X = RNG.normal(size=(N, 3))
    model = small().set_output(transform=frames).fit(X, THREE)
    full, light = both(model, tmp_path)
    assert type(full.transform(X)) is type(model.transform(X))
    np.testing.assert_array_equal(np.asarray(full.transform(X)), light.transform(X))
    with config_context(transform_output=frames):
        full, light = both(small().fit(X, THREE), tmp_path)
        made = full.transform(X)
    assert type(made).__module__.startswith(frames)
    np.testing.assert_array_equal(np.asarray(made), light.transform(X))


def test_tables_are_refused_in_the_same_words(tmp_path):
    of_all = small().fit(TABLE, THREE)
    for model, X in [
        (of_all, TABLE[["number", "text"]]),
        (of_all, TABLE.assign(date="soon")),
        (small().fit(TABLE[["number"]], THREE), np.zeros((2, 5))),
        (small(preprocess=None).fit(RNG.normal(size=(N, 2)), THREE), np.full((1, 2), np.nan)),
    ]:
        said = []
        for read in both(model, tmp_path):
            with pytest.raises(CoCoError) as refusal:
                read.predict(X)
            said.append(str(refusal.value))
        assert said[0] == said[1]


def test_a_model_needs_no_scikit_learn_and_a_classifier_no_torch(tmp_path):
    paths = [str(tmp_path / f"{head}.coco") for head in ("auto", "ridge")]
    for path, head in zip(paths, ("auto", "ridge"), strict=True):
        model = small(head=head).fit(TABLE[["number"]], THREE)
        model.save(path)
    pickled = tmp_path / "model.pickle"
    pickled.write_bytes(pickle.dumps(model))
    code = (
        "import sys, pickle, pandas as pd\nfrom pathlib import Path\n"
        "from cocoloss.estimators.model_file import load, load_model\n"
        "row = pd.DataFrame({'number': [0.0]})\n"
        f"for path in {paths}: load_model(path).predict(row)\n"
        "assert not {'sklearn', 'scipy', 'torch'} & set(sys.modules)\n"
        f"for path in {paths}: load(path).predict(row), load(path).transform(row)\n"
        f"pickle.loads(Path({str(pickled)!r}).read_bytes()).predict(row)\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_file_can_be_read_by_whom_the_umask_says(tmp_path):
    before = os.umask(0o022)
    try:
        small().fit(TABLE[["number"]], TWO).save(tmp_path / "m.coco")
    finally:
        os.umask(before)
    assert (tmp_path / "m.coco").stat().st_mode & 0o777 == 0o644


def test_the_class_that_loads_must_fit_and_its_parts_are_scikit_learns(saved):
    full, light = load(saved), load_model(saved)
    assert type(full) is CoCoClassifier
    assert all(isinstance(part, BaseEstimator) for part in (full.preprocessor_, *full.heads_))
    assert not any(isinstance(part, BaseEstimator) for part in (light.encoder, *light.heads))
    with pytest.raises(CoCoError, match=r"holds a CoCoClassifier.*use CoCoClassifier\.load"):
        DotRegressionClassifier.load(saved)


class OfOnesOwn(CoCoClassifier):
    pass


def test_what_only_pickle_could_hold_is_refused_with_a_remedy(tmp_path):
    X, y = np.asarray(TABLE[["number"]].fillna(0)), THREE
    path = tmp_path / "m.coco"
    for model, message in [
        (OfOnesOwn(max_iter=1), "OfOnesOwn is a class of your own"),
        (small(module=torch.nn.Linear), "cannot hold a torch module; save its weights with"),
        (small(preprocess=StandardScaler()), "the preprocessing StandardScaler; use"),
        (small(head=LogisticRegression()), "the head LogisticRegression; use one of"),
    ]:
        model.fit(X, y)
        with pytest.raises(CoCoError, match=message):
            model.save(path)
    with pytest.raises(ValueError, match="not fitted"):
        small().save(path)
    assert os.listdir(tmp_path) == []


# The container ----------------------------------------------------------------------------------

STATE = {
    "name": "ü\ud800",
    "$escaped": {"$$": [1, -2.5, None, True, float("inf")]},
    "tuple": (1, "a"),
    "by number": {1: "x", False: "y"},
    "arrays": [
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.array([True, False]),
        np.zeros((0, 2)),
        np.array(2.5),
        np.array(["a", "longer"]),
        np.array(["a", "b"], dtype=object),
        np.array(["2020-01-01"], dtype="M8[ns]"),
    ],
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.coco"
    write_state(path, STATE, writer="cocoloss 0.1")
    return path


def test_states_come_back(path):
    state = read_state(path)
    assert state.keys() == STATE.keys()
    for name in STATE.keys() - {"arrays"}:
        assert state[name] == STATE[name]
    for back, array in zip(state["arrays"], STATE["arrays"], strict=True):
        assert back.dtype == array.dtype
        np.testing.assert_array_equal(back, array)
    with safe_open(path, framework="numpy") as file:  # any reader of the format finds its way
        assert "model.arrays.0" in file.keys()  # noqa: SIM118


plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9)


def nested(states):
    return st.lists(states, max_size=3) | st.dictionaries(st.text(max_size=3), states, max_size=3)


@given(st.dictionaries(st.text(), st.recursive(plain, nested, max_leaves=6), max_size=4))
@settings(max_examples=60, deadline=None)
def test_any_state_comes_back(tmp_path_factory, state):
    path = tmp_path_factory.getbasetemp() / "any.coco"
    write_state(path, state, writer="w")
    assert read_state(path) == state


def test_the_same_content_gives_the_same_bytes(path, tmp_path):
    write_state(tmp_path / "b.coco", STATE, writer="cocoloss 0.1")
    assert (tmp_path / "b.coco").read_bytes() == path.read_bytes()


def test_every_flipped_bit_every_truncation_and_anything_added_is_noticed(path):
    data = path.read_bytes()
    for i in range(len(data)):
        altered = bytearray(data)
        altered[i] ^= 1 << (i % 8)
        for content in (altered, data[:i]):
            path.write_bytes(content)
            with pytest.raises(CoCoError):
                read_state(path)
    path.write_bytes(data + b"\0")
    with pytest.raises(CoCoError, match="altered or cut short"):
        read_state(path)


def test_a_version_from_the_future_says_so_whatever_its_seal(path, monkeypatch):
    monkeypatch.setattr(module, "VERSION", 7)
    write_state(path, {}, writer="cocoloss 3.0")
    monkeypatch.undo()
    with pytest.raises(CoCoError, match=r"format 7 of 'cocoloss 3.0'.*up to 3; upgrade"):
        read_state(path)
    craft(path, {"version": 7, "writer": "cocoloss 3.0", "state": {}}, {}, seal="0" * 64)
    with pytest.raises(CoCoError, match="upgrade cocoloss"):
        read_state(path)


def test_a_file_of_an_earlier_version_is_told_in_one_line(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.json", "{}")
    for read in (load, load_model):
        with pytest.raises(CoCoError, match=r"earlier version of cocoloss.*fit the model again"):
            read(path)


def other_safetensors(path):
    save_file({"a": np.zeros(3)}, path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps([1, 2]), "not a cocoloss model file; nothing of it was opened"),
        (b"", "not a cocoloss model file"),
        (b"a,b\n1,2\n3,4\n", "not a cocoloss model file"),
        (b"PK\x03\x04" + bytes(60), "not a cocoloss model file"),
        (struct.pack("<Q", 10**9) + b"{" + bytes(60), "its description is too long"),
        (struct.pack("<Q", 50) + b"{" + bytes(10), "altered or cut short"),
        (other_safetensors, "it holds no model of ours"),
    ],
)
def test_other_files_are_told_apart(path, content, message):
    path.write_bytes(content(path) if callable(content) else content)
    with pytest.raises(CoCoError, match=message):
        read_state(path)


def test_a_missing_file_a_folder_and_a_locked_file_are_told(tmp_path, monkeypatch):
    for path, message in [
        (tmp_path / "nothing.coco", "there is no file"),
        (tmp_path, "is a folder"),
        ("a\0b", r"cannot read .*null"),
    ]:
        with pytest.raises(CoCoError, match=message):
            read_state(path)

    def locked(*args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", locked)
    with pytest.raises(CoCoError, match=r"cannot read .*: Permission denied"):
        read_state(tmp_path / "a.coco")


# Crafted files ----------------------------------------------------------------------------------


def craft(path, document, tensors, *, seal=None):
    """Write a file with the seal that belongs to it, whatever it says."""
    text = document if isinstance(document, str) else json.dumps(document)
    seal = module._digest(text, tensors) if seal is None else seal  # noqa: SLF001
    save_file(tensors, path, metadata={module.KEY: f"{seal} {text}"})


def opened_up(path):
    """Return the document and the tensors of a file."""
    with safe_open(path, framework="numpy") as file:
        text = file.metadata()[module.KEY].partition(" ")[2]
        return json.loads(text), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def document(state, **changes):
    return {"version": 2, "writer": "w", "state": state} | changes


ARRAY = {"$": "array", "name": "a"}


@pytest.mark.parametrize(
    ("head", "tensors"),
    [
        (document({"a": ARRAY}), {}),  # an array that is not there
        (document({}), {"a": np.zeros(2)}),  # one that is not described
        (document({"a": ARRAY, "b": ARRAY}), {"a": np.zeros(2)}),  # taken twice
        (document({"a": ARRAY | {"dtype": "O"}}), {"a": np.zeros(2, dtype=np.int64)}),
        (document({"a": ARRAY | {"dtype": "<M8[ns]"}}), {"a": np.zeros(2)}),
        (document({"a": ARRAY | {"dtype": ["a"]}}), {"a": np.zeros(2, dtype=np.int64)}),
        (document({"a": ARRAY}), {"a": np.array([2, 0], dtype=np.uint8).view(bool)}),
        (document({"a": {"$": "pickle"}}), {}),
        (document({"a": {"$": ["array"]}}), {}),
        (document({"a": {"$": "float", "value": "1e999"}}), {}),
        (document({"a": {"$": "tuple", "items": 3}}), {}),
        (document({"a": {"$": "dict", "items": [[[1], 2]]}}), {}),
        (document({"a": {"$": "text", "dtype": "str", "items": [1]}}), {}),
        (document({"a": {"$": "text", "dtype": "str", "items": "ab"}}), {}),
        (document([]), {}),
        (document(None), {}),
        ({"version": 2}, {}),
        ("[" * 100_000, {}),
        ("{", {}),
        ("1" * 10_000, {}),
        ("", {}),
        *[(document({}, version=v), {}) for v in ("2", None, -1, 0, 1.5, True, [1])],
    ],
)
def test_crafted_files_are_refused(path, head, tensors):
    craft(path, head, tensors)
    with pytest.raises(CoCoError, match="is not a cocoloss model file"):
        read_state(path)


def test_text_that_is_too_long_is_refused_before_it_is_written(tmp_path):
    for state, message in [
        ({"a": "x" * MAX_TEXT}, "at most; leave out columns"),
        ({"a": np.array(["x" * 60] * 300_000)}, "too much text"),
        ({"a": np.array([["x"]])}, "a table of text"),
        ({"a": object()}, "model.a is a object, which a model file cannot hold without pickle"),
    ]:
        with pytest.raises(CoCoError, match=message):
            write_state(tmp_path / "b.coco", state, writer="w")
    assert os.listdir(tmp_path) == []


def peak_of(read, path):
    """Return what a reader makes of a file, or what it says, in a bounded amount of memory."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        return read(path)
    except CoCoError as error:
        return str(error)
    finally:
        assert tracemalloc.get_traced_memory()[1] - before < 20 * 2**20


@pytest.fixture
def traced():
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("traced")
def test_short_texts_and_short_arrays_cannot_make_huge_ones(path, tmp_path):
    wide = {"$": "text", "dtype": "str", "items": ["b" * 10**4, *["a"] * 9999]}
    craft(path, document({"a": wide}), {})
    assert "more than a model needs" in peak_of(read_state, path)

    other = tmp_path / "m.coco"
    small(preprocess=None, n_members=1, head="gaussian").fit(RNG.normal(size=(N, 3)), THREE).save(
        other
    )
    C = q = 3000
    state = read_state(other)
    head, networks = state["model"]["heads"][0], state["model"]["networks"]
    networks |= {"layer_sizes": [3, q], "parameters": np.full((1, 4 * q), 0.01, np.float32)}
    state["model"] |= {"classes": np.arange(C), "prior": np.ones(C) / C}
    head |= {"prior": np.ones(C) / C, "share": np.ones(C) / C, "means": np.zeros((C, 1))}
    head |= {"covariance": "diag", "precisions_cholesky": np.ones((1, q))}
    write_state(other, state, writer="a test")
    for read in (load, load_model):
        assert "not a usable model file" in peak_of(read, other)  # 72 MB if numpy had its way


def changed(state, where, value):
    *parents, last = where
    for key in parents:
        state = state[key]
    if value is None:
        del state[last]
    else:
        state[last] = value(state[last])


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        (["model", "heads", 0, "kind"], lambda _: "CoCoClassifier", "kind of a head"),
        (["model", "heads", 0, "means"], None, "head"),
        (["model", "heads", 0, "means"], lambda m: m[:, :3], "its means must be"),
        (["model", "heads", 0, "prototypes"], lambda p: p * np.nan, "must be finite"),
        (["model", "heads", 1], None, "not one head for each network"),
        (["model", "heads"], lambda heads: [heads[0], heads[0] | {"kind": "linear"}], "head"),
        (["model", "encoder", "kind"], lambda _: "FloatEncoder", "ranges"),
        (["model", "encoder", "state", "scaler", "box"], None, "earlier versions do; fit it again"),
        (["model", "encoder", "state", "scaler", "box", "low"], lambda x: x[1:], "its low must"),
        (["model", "encoder", "state", "scaler", "box", "low"], lambda x: x + 1e9, "ends before"),
        (["model", "encoder", "kind"], lambda _: "Popen", "the preprocessing must be one of"),
        (
            ["model", "encoder", "state", "scaler", "center"],
            lambda c: c[:, None],
            "its center must",
        ),
        (["model", "encoder", "state", "scaler", "scale"], lambda c: c * np.nan, "scale must"),
        (["model", "networks", "parameters"], lambda p: p * np.nan, "parameters must be finite"),
        (["model", "networks", "parameters"], lambda p: p[:, :-1], "parameters must be .* shape"),
        (["model", "networks", "layer_sizes"], lambda _: [2**40, 2**40], "no possible sizes"),
        (["model", "networks", "layer_sizes"], lambda s: [s[0] - 1, *s[1:]], "parameters must be"),
        (["model", "networks", "output"], lambda _: "exec", "output must be one of"),
        (["model", "classes"], lambda _: np.ones((3, 1)), "the classes are no list"),
        (["model", "classes"], lambda c: c[:-1], "its prior must be .* shape"),
        (["model", "prior"], lambda p: -p, "its prior must be positive"),
        (
            ["model", "networks", "kind"],
            lambda _: "Popen",
            "the networks must be one of 'Ensemble'",
        ),
        (["model"], None, "broken"),
    ],
)
def test_parts_that_do_not_fit_are_refused_by_either_reader(saved, path, where, value, message):
    state = read_state(saved)
    changed(state, where, value)
    write_state(path, state, writer="a test")
    for read in (load, load_model):
        with pytest.raises(CoCoError, match=f"not a usable model file.*({message})"):
            read(path)


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        (["classifier"], lambda _: "Popen", "no file holds"),
        (["arguments", "args"], None, "broken"),
        (["arguments", "head"], lambda _: {"part": "Popen", "arguments": {}}, "broken"),
        (["history", "seed"], lambda _: -1, "seed"),
        (["history", "best_epochs"], lambda e: e[:1], "best_epochs must be"),
        (["history", "class_masses"], lambda m: m[:1], "class_masses must be"),
        (["history", "loss_curves"], lambda _: [[1, "x"], []], "loss curves"),
    ],
)
def test_what_only_a_classifier_needs_is_checked_for_it(saved, path, where, value, message):
    state = read_state(saved)
    state["arguments"] |= {"args": 1} if "args" in where else {}
    if value is not None:
        changed(state, where, value)
    write_state(path, state, writer="a test")
    assert load_model(path).predict(TABLE[:2]).shape == (2,)
    with pytest.raises(CoCoError, match=f"not a usable model file.*{message}"):
        load(path)


def test_numbers_that_overflow_on_the_way_are_refused(path):
    small(hidden_layer_sizes=(8,) * 9, normalize=False).fit(TABLE, THREE).save(path)
    state = read_state(path)
    state["model"]["networks"]["parameters"][:] = 3e38
    write_state(path, state, writer="a test")
    for read in (load, load_model):
        with pytest.raises(CoCoError, match="what the networks make is not finite"):
            read(path)


class Bait:
    """A pickle that leaves a trace when it is opened."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return open, (str(self.trace), "w")


ran = []
sys.addaudithook(
    lambda event, args: (
        ran.append((event, args))
        if event in {"pickle.find_class", "os.system", "subprocess.Popen", "os.exec"}
        else None
    )
)


def mutations(path, rng, trace):
    """Yield altered files: as an accident leaves them, and sealed again by who crafted them."""
    data = path.read_bytes()
    head, tensors = opened_up(path)
    text, names = json.dumps(head), list(tensors)
    bait = np.frombuffer(pickle.dumps(Bait(trace)), dtype=np.uint8)
    for _ in range(500):  # bit flips
        altered = bytearray(data)
        for i in rng.integers(len(data), size=rng.integers(1, 4)):
            altered[i] ^= 1 << rng.integers(8)
        yield bytes(altered)
    for n in rng.integers(len(data), size=100):
        yield data[:n]
    for _ in range(200):  # the text, changed where it hurts
        i, j = sorted(rng.integers(len(text), size=2))
        yield (text[:i] + text[j:] if rng.integers(2) else text[:j] + text[i:]), tensors
    for _ in range(60):
        a, b = rng.choice(names, 2, replace=False)
        yield text, tensors | {a: tensors[b], b: tensors[a]}
    for name in names:
        array = tensors[name]
        with np.errstate(over="ignore"):
            half = array.astype("f2")
        for other in (bait, array[:0], array.ravel()[:1], array[None], half, -array):
            yield text, tensors | {name: other.copy()}
        yield text, {key: value for key, value in tensors.items() if key != name}
    yield text, tensors | {"more": np.zeros(8)}
    yield from numbers_changed(head, tensors, rng)


def numbers_changed(head, tensors, rng):
    """Yield files in which one number of the text is another."""
    places = []

    def walk(tree):
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
        for key, value in items:
            if type(value) in (int, float, bool):
                places.append((tree, key))
            elif isinstance(value, (list, dict)):
                walk(value)

    walk(head["state"])
    for tree, key in places:
        kept = tree[key]
        tree[key] = rng.choice(np.array([10**15, -1, 0, 2**63, "x", None], dtype=object))
        yield json.dumps(head), tensors
        tree[key] = kept


@pytest.mark.usefixtures("traced")
def test_a_thousand_mutated_files_run_nothing_and_end_in_one_clear_error(saved, tmp_path):
    rng = np.random.default_rng(1)
    path, trace = tmp_path / "m.coco", tmp_path / "trace"
    load(saved)  # so that what is imported once is not counted
    ran.clear()
    n_tried = 0
    for content in mutations(saved, rng, trace):
        accident = isinstance(content, bytes)
        if accident:
            path.write_bytes(content)
        else:
            craft(path, *content)
        n_tried += 1
        light = peak_of(load_model, path)
        model = light if accident else peak_of(CoCoClassifier.load, path)
        if isinstance(light, str):
            assert light == model  # the same words, whoever reads
        if isinstance(model, str):
            assert "\n" not in model, model
            assert len(model) < 500, model
            continue
        assert not accident  # changed, but by somebody who made a model of it
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            predicted = model.predict(TABLE.iloc[:2])
            np.testing.assert_array_equal(light.predict(TABLE.iloc[:2]), predicted)
        assert predicted.shape == (2,)
    assert n_tried > 1000
    assert not ran
    assert not trace.exists()
