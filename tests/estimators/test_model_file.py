"""Model files: what comes back, and what a stranger's file cannot do."""

import hashlib
import json
import os
import pickle
import subprocess
import sys
import tracemalloc
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
import torch
from cocoloss.estimators.saved import load_answers
from sklearn import config_context
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from cocoloss import CoCoClassifier, CrossEntropyClassifier, DotRegressionClassifier, load
from cocoloss.columns import TablePreprocessor
from cocoloss.exceptions import CoCoError
from cocoloss.heads import GaussianHead

RNG = np.random.default_rng(0)
N = 120


def mixed_table():
    table = pd.DataFrame(
        {
            "number": RNG.normal(size=N),
            "text": RNG.choice(["x", "y", "z"], N),
            "date": pd.date_range("2020-01-01", periods=N),
            "truth": RNG.integers(0, 2, N) > 0,
            "code": pd.Categorical(RNG.choice([1, 2, 3], N)),
        }
    )
    table.loc[3, "number"] = np.nan
    return table


TABLE = mixed_table()
LABELS = {
    "text": RNG.choice(["u", "v", "w"], N),
    "objects": RNG.choice(["u", "v"], N).astype(object),
    "integers": RNG.choice([3, 5, 9], N),
    "truth": RNG.integers(0, 2, N) > 0,
}


def small(cls=CoCoClassifier, **options):
    options = {"max_iter": 2, "n_members": 2, "hidden_layer_sizes": (8,)} | options
    return cls(random_state=0, **options)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.coco"
    small().fit(TABLE, LABELS["text"]).save(path)
    return path


@pytest.mark.parametrize("cls", [CoCoClassifier, DotRegressionClassifier, CrossEntropyClassifier])
@pytest.mark.parametrize("head", ["auto", "gaussian", "centroid", "angular", "ridge", "svm"])
def test_every_kind_of_model_answers_as_before(tmp_path, cls, head):
    model = small(cls, head=head).fit(TABLE, LABELS["text"])
    model.save(tmp_path / "m.coco")
    loaded = cls.load(tmp_path / "m.coco")
    assert loaded.get_params() == model.get_params()
    for method in ("predict", "decision_function", "transform"):
        ours, theirs = (getattr(m, method)(TABLE) for m in (model, loaded))
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


@pytest.mark.parametrize("labels", LABELS)
def test_classes_of_every_kind_come_back(tmp_path, labels):
    model = small().fit(TABLE, LABELS[labels])
    model.save(tmp_path / "m.coco")
    loaded = CoCoClassifier.load(tmp_path / "m.coco")
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.predict(TABLE), model.predict(TABLE))


def test_arguments_of_every_kind_come_back(tmp_path):
    model = small(
        priors=np.array([0.2, 0.3, 0.5]),
        class_weight={"u": 1.0, "v": 2.0, "w": 1.5},
        similarity=np.eye(3),
        clip_norm=1.0,
        preprocess=None,
        output="tanh",
    ).fit(TABLE[["number"]].fillna(0), LABELS["text"])
    model.save(tmp_path / "m.coco")
    loaded = CoCoClassifier.load(tmp_path / "m.coco")
    for name, value in model.get_params().items():
        np.testing.assert_equal(getattr(loaded, name), value)
    assert loaded.feature_names_in_.tolist() == ["number"]


def test_what_belongs_to_the_process_stays_behind(tmp_path):
    model = small(callbacks=[lambda epoch: None])
    model.set_params(random_state=np.random.default_rng(0)).fit(TABLE, LABELS["text"])
    model.save(tmp_path / "m.coco")
    loaded = CoCoClassifier.load(tmp_path / "m.coco")
    assert loaded.callbacks is None
    assert loaded.random_state is None
    assert model.callbacks is not None


@pytest.mark.parametrize(
    ("options", "plain"),
    [
        ({"priors": pd.Series([0.2, 0.3, 0.5])}, {"priors": np.array([0.2, 0.3, 0.5])}),
        ({"similarity": pd.DataFrame(np.eye(3))}, {"similarity": np.eye(3)}),
        ({"device": torch.device("cpu")}, {"device": "cpu"}),
        (
            {"preprocess": TablePreprocessor(categorical_features=pd.Index(["code"]))},
            {"preprocess__categorical_features": np.array(["code"], dtype=object)},
        ),
        ({"head": GaussianHead(priors=pd.Series([0.2, 0.3, 0.5]))}, {}),
    ],
    ids=["priors", "similarity", "device", "preprocess", "head"],
)
def test_arguments_of_other_libraries_become_plain(tmp_path, options, plain):
    model = small(**options).fit(TABLE, LABELS["text"])
    model.save(tmp_path / "m.coco")
    loaded = CoCoClassifier.load(tmp_path / "m.coco")
    for name, value in plain.items():
        found = loaded.get_params()[name]
        assert type(found) is type(value)
        np.testing.assert_array_equal(found, value)
    np.testing.assert_array_equal(loaded.predict_proba(TABLE), model.predict_proba(TABLE))
    for name, value in options.items():
        assert getattr(model, name) is value  # the model itself is as it was


def test_requests_of_metadata_are_left_out(tmp_path):
    with config_context(enable_metadata_routing=True):
        model = small().set_fit_request(sample_weight=True).fit(TABLE, LABELS["text"])
        model.save(tmp_path / "m.coco")
        loaded = CoCoClassifier.load(tmp_path / "m.coco")
        assert loaded.get_metadata_routing().fit.requests["sample_weight"] is None
        assert model.get_metadata_routing().fit.requests["sample_weight"] is True
    np.testing.assert_array_equal(loaded.predict_proba(TABLE), model.predict_proba(TABLE))


def test_a_file_holds_weights_and_no_rows(tmp_path):
    X, y = load_digits(return_X_y=True)
    model = small(max_iter=1)
    for part in range(3):
        model.partial_fit(X[part::3], y[part::3])
    model.save(tmp_path / "m.coco")
    assert (tmp_path / "m.coco").stat().st_size < 1.5 * model.parameters_.nbytes + 30_000
    loaded = CoCoClassifier.load(tmp_path / "m.coco")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    loaded.partial_fit(X[::2], y[::2])  # goes on


def test_the_class_that_loads_must_fit(saved):
    assert type(load(saved)) is CoCoClassifier
    with pytest.raises(CoCoError, match=r"holds a CoCoClassifier.*use CoCoClassifier\.load"):
        DotRegressionClassifier.load(saved)


class OfOnesOwn(CoCoClassifier):
    pass


def test_what_only_pickle_could_hold_is_refused_with_a_remedy(tmp_path):
    import torch  # noqa: PLC0415

    X, y = np.asarray(TABLE[["number"]].fillna(0)), LABELS["text"]
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


def test_loading_and_predicting_need_no_torch(saved):
    code = (
        f"import sys, pandas as pd\nfrom cocoloss import CoCoClassifier\n"
        f"model = CoCoClassifier.load({str(saved)!r})\n"
        f"row = pd.DataFrame([[0.0, 'x', None, True, 1]], columns=model.feature_names_in_)\n"
        f"model.predict(row)\nassert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# Crafted files -----------------------------------------------------------------------------------


def reseal(data):
    return data[:-64] + hashlib.sha256(data[:-64]).hexdigest().encode()


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def zipped(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.comment = b"sha256:" + b"0" * 64
        for name, data in members.items():
            archive.writestr(name, data)
    path.write_bytes(reseal(path.read_bytes()))


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
    """Yield altered files: as an accident leaves them, and with their seal made good again."""
    data = path.read_bytes()
    members = members_of(path)
    names = list(members)
    bait = pickle.dumps(Bait(trace))
    for _ in range(400):  # bit flips
        altered = bytearray(data)
        for i in rng.integers(len(data), size=rng.integers(1, 4)):
            altered[i] ^= 1 << rng.integers(8)
        yield "accident", bytes(altered)
        yield "crafted", reseal(bytes(altered))
    for n in rng.integers(len(data), size=100):
        yield "accident", data[:n]
    for _ in range(50):  # the text of the description, changed where it hurts
        document = members["model.json"]
        i, j = sorted(rng.integers(len(document), size=2))
        changed = document[:i] + document[j:] if rng.integers(2) else document[:j] + document[i:]
        yield "members", members | {"model.json": changed}
    for _ in range(30):
        a, b = rng.choice(names, 2, replace=False)
        yield "members", members | {a: members[b], b: members[a]}
    for name in names:
        yield "members", members | {name: bait}
        yield "members", members | {name: b""}
        yield "members", {k: v for k, v in members.items() if k != name}
    yield "members", members | {"arrays/99.bin": bytes(8)}
    yield "bomb", members | {names[-1]: bytes(300 * 2**20)}
    header = json.loads(members["model.json"])
    for entry in header["arrays"]:
        for shape in ([10**9], [2**40, 2**40], [0], [-1], [1, *entry["shape"]]):
            changed = json.dumps(header | {"arrays": [entry | {"shape": shape}]})
            yield "members", members | {"model.json": changed.encode()}
    yield from numbers_changed(header, members, rng)


def numbers_changed(header, members, rng):
    """Yield files in which one number of the description is another."""
    places = []

    def walk(tree):
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
        for key, value in items:
            if type(value) in (int, float, bool):
                places.append((tree, key))
            elif isinstance(value, (list, dict)):
                walk(value)

    walk(header["document"])
    for tree, key in places:
        kept = tree[key]
        for value in rng.choice(np.array([10**15, -1, 0, 2**63, "x", None], dtype=object), 2):
            tree[key] = value
            yield "members", members | {"model.json": json.dumps(header).encode()}
        tree[key] = kept


def opened(read, path):
    """Return what a reader makes of a file, or what it says, in a bounded amount of memory."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        return read(path)
    except CoCoError as error:
        return str(error)
    finally:
        assert tracemalloc.get_traced_memory()[1] - before < 20 * 2**20


def test_a_thousand_mutated_files_run_nothing_and_end_in_one_clear_error(saved, tmp_path):
    rng = np.random.default_rng(1)
    path, trace = tmp_path / "m.coco", tmp_path / "trace"
    tried = dict.fromkeys(["accident", "crafted", "members", "bomb"], 0)
    ran.clear()
    tracemalloc.start()
    try:
        for kind, content in mutations(saved, rng, trace):
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                packed = zipfile.ZIP_DEFLATED if kind == "bomb" else zipfile.ZIP_STORED
                zipped(path, content, packed)
            del content
            tried[kind] += 1
            model, light = opened(CoCoClassifier.load, path), opened(load_answers, path)
            if isinstance(model, str):
                assert light == model  # the same words, whoever reads
                assert "\n" not in model, model
                assert len(model) < 500, model
            else:  # changed, but by somebody who made a model of it
                assert kind not in {"accident", "bomb"}
                with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                    predicted = model.predict(TABLE.iloc[:2])
                    np.testing.assert_array_equal(light.predict(TABLE.iloc[:2]), predicted)
                assert predicted.shape == (2,)
    finally:
        tracemalloc.stop()
    assert sum(tried.values()) > 1000, tried
    assert not ran
    assert not trace.exists()
