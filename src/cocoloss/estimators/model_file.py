"""Model files: a fitted estimator as a safetensors file, safe to load whoever wrote it.

Arrays are tensors; everything else is one JSON text in the metadata, behind the SHA-256 of itself
and of all tensors. The digest finds accidents; what a stranger has crafted is held by the format,
which can run nothing and unpack nothing, and by ``from_state`` of each part, which checks what it
gets. Only :func:`load` imports scikit-learn; nothing here imports torch.
"""

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as as_safetensors

from cocoloss._checks import require
from cocoloss._late import LateNames
from cocoloss.exceptions import CoCoError
from cocoloss.files import write_whole
from cocoloss.fitting.model import ENCODERS, NETWORKS, FittedModel, History
from cocoloss.heads.fitted import KINDS as HEAD_KINDS

if TYPE_CHECKING:
    from cocoloss.fitting.regression import FittedRegression
    from cocoloss.heads.decisions import Decider

    Model = FittedModel | FittedRegression

VERSION = 3  # of what a state means; raise it when an older reader would misread a file
KEY = "cocoloss"  # one key of the metadata, since safetensors writes several in any order
MAX_TEXT = 2**25  # bytes; a table of 10,000 columns with 64 categories each takes a third
MAX_HEADER = 3 * MAX_TEXT  # in which quotes are escaped, and tensors listed
# Bytes of all arrays of text together: in an array of text every item is as wide as the longest.
MAX_TEXT_ARRAYS = 2**26
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
SPECIAL = "$"  # the key that marks what JSON lacks; keys of dicts that begin with it are doubled
ZIP_START, ZIP_NAME = b"PK\x03\x04", slice(30, 40)  # of the files before version 2
CLASSIFIERS = (
    "CoCoClassifier",
    "CoCoOrdinalClassifier",
    "DotRegressionClassifier",
    "CrossEntropyClassifier",
)
ESTIMATORS = (*CLASSIFIERS, "CoCoRegressor")
# Classes of arguments: they are made anew from arguments of their own.
PARTS = LateNames(
    {
        "cocoloss.columns": ["TablePreprocessor", "FloatConverter"],
        "cocoloss.heads": ["GaussianHead", "CentroidHead", "MatrixHead", "ReadoutHead"],
        "sklearn.linear_model": ["RidgeClassifier"],
        "sklearn.svm": ["LinearSVC"],
    }
)


def load_model(path: str | os.PathLike[str]) -> "Model":
    """Read a model file for its predictions alone: without scikit-learn, scipy and torch.

    They are those of the estimator that :func:`load` gives, to the last bit; files are refused as
    there, by a :class:`CoCoError`.
    """
    model: Model = _read(path)
    return model


def load_decider(path: str | os.PathLike[str]) -> "Decider":
    """Read what decisions need to know of the fit of a classifier: classes and their shares."""
    from cocoloss.heads.decisions import Decider  # noqa: PLC0415 - if asked for

    def of(model: "Model", state: Mapping[str, Any]) -> Decider:
        require(isinstance(model, FittedModel), "numbers have no classes to decide between")
        assert isinstance(model, FittedModel)
        history = History.from_state(state["history"], len(model.heads), len(model.classes))
        priors = state["arguments"].get("priors", "uniform")
        return Decider.of(model.classes, history.class_masses, priors)

    decider: Decider = _read(path, of)
    return decider


def load(path: str | os.PathLike[str], kind: type | None = None) -> Any:
    """Read an estimator that its ``save`` wrote, of a class that is expected or of any.

    Nothing in the file is run, and predicting needs no torch.

    Raises
    ------
    CoCoError
        If there is no such file, or it is of another kind, altered, cut short or from a later
        version.
    """
    estimator = _read(path, _estimator)
    if kind is not None and not isinstance(estimator, kind):
        found = type(estimator).__name__
        raise CoCoError(f"{path} holds a {found}, not a {kind.__name__}; use {found}.load")
    return estimator


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file, whole or not at all; see its ``save``."""
    import cocoloss  # noqa: PLC0415 - for its version
    from cocoloss import estimators  # noqa: PLC0415 - scikit-learn

    name = type(estimator).__name__
    if name not in ESTIMATORS or getattr(estimators, name) is not type(estimator):
        raise CoCoError(
            f"{name} is a class of your own; a model file holds {', '.join(ESTIMATORS)} only"
        )
    _check_own_parts(estimator.model_)
    state = {
        "classifier": name,
        "arguments": _arguments(estimator),
        "model": estimator.model_.to_state(),
        "history": dict(vars(estimator.history_)),
        "output": getattr(estimator, "_sklearn_output_config", {}).get("transform"),
    }
    write_state(path, state, writer=f"cocoloss {cocoloss.__version__}")


def _check_own_parts(model: "Model") -> None:
    """Refuse what only pickle could hold, and say what to do instead."""
    from cocoloss.heads import HEADS  # noqa: PLC0415 - scikit-learn

    networks, encoder = type(model.networks), type(model.encoder)
    require(
        networks in NETWORKS.values(),
        "a model file cannot hold a torch module; save its weights with torch.save, or describe "
        "the network by hidden_layer_sizes",
    )
    require(
        encoder in ENCODERS.values(),
        f"a model file cannot hold the preprocessing {encoder.__name__}; use preprocess='auto' or "
        f"None and transform the table before",
    )
    if not isinstance(model, FittedModel):  # of numbers
        return
    head = type(model.heads[0])
    require(
        head in HEAD_KINDS.values(),
        f"a model file cannot hold the head {head.__name__}; use one of {', '.join(HEADS)}",
    )


def _arguments(part: Any) -> dict[str, Any]:
    """Return the arguments of an estimator without what belongs to this process."""
    arguments = {name: _plain(value) for name, value in part.get_params(deep=False).items()}
    arguments.pop("callbacks", None)
    if not isinstance(arguments.get("random_state"), int):
        arguments.pop("random_state", None)
    return arguments


def _plain(value: Any) -> Any:
    """Return arrays for series and frames, the name of a device, the arguments of a part."""
    if hasattr(value, "to_numpy"):
        return value.to_numpy()
    if isinstance(value, np.generic):
        return value.item()
    if type(value).__module__ == "torch" and type(value).__name__ == "device":
        return str(value)
    name = type(value).__name__
    if name in PARTS and type(value) is PARTS[name]:
        return {"part": name, "arguments": _arguments(value)}
    return value


def _read(
    path: str | os.PathLike[str],
    make: Callable[[Any, Mapping[str, Any]], Any] = lambda model, _: model,
) -> Any:
    """Return what is made of the model in a file, after it has predicted once."""
    state = read_state(path)
    try:
        model: Model = _kind_of_model(state["model"]).from_state(state["model"])
        model.try_out()
        return make(model, state)
    except (Exception, RecursionError) as error:  # the parts of a crafted file may say anything
        raise CoCoError(f"{path} is not a usable model file: {_brief(error)}") from error


def _kind_of_model(state: Mapping[str, Any]) -> "type[Model]":
    if state.get("task") != "numbers":
        return FittedModel
    from cocoloss.fitting.regression import FittedRegression  # noqa: PLC0415 - if asked for

    return FittedRegression


def _estimator(model: "Model", state: Mapping[str, Any]) -> Any:
    """Return the estimator that a state describes."""
    from cocoloss import estimators  # noqa: PLC0415 - scikit-learn
    from cocoloss.columns import make_preprocessor  # noqa: PLC0415

    name, of_numbers = state["classifier"], not isinstance(model, FittedModel)
    if name not in ESTIMATORS or of_numbers == (name in CLASSIFIERS):
        raise CoCoError(f"an estimator of a class that no file holds: {name!r:.60}")
    arguments = {key: _made(value) for key, value in state["arguments"].items()}
    estimator = getattr(estimators, name)(**arguments)
    preprocessor = make_preprocessor(estimator.preprocess, name)
    preprocessor.encoder_ = model.encoder
    if isinstance(model, FittedModel):
        history = History.from_state(state["history"], len(model.heads), len(model.classes))
        heads = [_as_classifier(head, estimator.head, model.prior) for head in model.heads]
        estimator.keep(model, history, preprocessor, heads)
    else:
        history = History.from_state(state["history"], model.networks.n_networks, 1)
        estimator.keep(model, history, preprocessor)
    if state["output"] is not None:
        estimator.set_output(transform=state["output"])
    return estimator


def _made(value: Any) -> Any:
    """Return an argument as it was: a part is made of its class and its own arguments."""
    if isinstance(value, dict) and value.keys() == {"part", "arguments"}:
        arguments = {name: _made(argument) for name, argument in value["arguments"].items()}
        return PARTS[value["part"]](**arguments)
    return value


def _as_classifier(fitted: Any, asked: Any, prior: NDArray[np.float64]) -> Any:
    """Return the head of scikit-learn's kind that has learnt a value; linear ones stay values."""
    from sklearn.base import clone  # noqa: PLC0415

    from cocoloss import heads  # noqa: PLC0415

    kinds = {
        "gaussian": heads.GaussianHead,
        "centroid": heads.CentroidHead,
        "readout": heads.ReadoutHead,
        "matrix": heads.MatrixHead,
    }
    if fitted.kind not in kinds:
        return fitted
    own = isinstance(asked, heads.EmbeddingHead)
    head: Any = clone(asked) if own else kinds[fitted.kind](priors=prior)
    head.fitted_, head.classes_ = fitted, np.arange(fitted.n_classes)
    head.n_features_in_ = fitted.n_features
    return head


def _brief(error: BaseException) -> str:
    """Return our own message; of another's error the name only, for it may quote bytes."""
    return str(error) if isinstance(error, CoCoError) else f"it is broken ({type(error).__name__})"


# States as safetensors --------------------------------------------------------------------------


def write_state(path: str | os.PathLike[str], state: Mapping[str, Any], *, writer: str) -> None:
    """Write a state into one file, whole or not at all; the same state gives the same bytes.

    A state is nested dicts, lists and tuples of None, bool, int, float, str and arrays of numbers,
    truths, times and text; ``writer`` is named by the message of an older reader.
    """
    encoder = _Encoder()
    document = {"version": VERSION, "writer": writer, "state": encoder.encode(dict(state), "model")}
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    if len(text) > MAX_TEXT:
        raise CoCoError(
            f"the description of the model takes {len(text):,} bytes, and a file holds "
            f"{MAX_TEXT:,} at most; leave out columns with very many categories"
        )
    sealed = f"{_digest(text, encoder.tensors)} {text}"
    with write_whole(path) as aside:
        # save_file of safetensors makes files that nobody else may read, whatever the umask.
        aside.write_bytes(as_safetensors(encoder.tensors, metadata={KEY: sealed}))


def read_state(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what :func:`write_state` wrote, and refuse everything else with a CoCoError."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            _check_start(path, file.read(ZIP_NAME.stop))
        with safe_open(path, framework="numpy") as file:
            sealed = (file.metadata() or {}).get(KEY)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise CoCoError(f"there is no file {path}") from None
    except IsADirectoryError:
        raise CoCoError(f"{path} is a folder, not a model file") from None
    except OSError as error:
        raise CoCoError(f"cannot read {path}: {error.strerror or error}") from error
    except SafetensorError as error:
        raise _altered(path) from error
    except CoCoError:
        raise
    except ValueError as error:  # a NUL in the name
        raise CoCoError(f"cannot read {str(path)!r}: {error}") from error
    except Exception as error:  # a tensor of a kind that numpy lacks, for one
        raise _refusal(path, error) from error
    if sealed is None:
        raise _refusal(path, CoCoError("it holds no model of ours"))
    return _unsealed(path, sealed, tensors)


def _check_start(path: Path, start: bytes) -> None:
    """Refuse what is no safetensors file, or has more to say than a model."""
    if start.startswith(ZIP_START) and start[ZIP_NAME] == b"model.json":
        raise CoCoError(
            f"{path} is a model file of an earlier version of cocoloss (format 1), which this one "
            f"does not read; fit the model again and save it"
        )
    if start[8:9] != b"{":
        raise CoCoError(f"{path} is not a cocoloss model file; nothing of it was opened")
    if int.from_bytes(start[:8], "little") > MAX_HEADER:
        raise CoCoError(f"{path} is not a cocoloss model file: its description is too long")


def _unsealed(path: Path, sealed: str, tensors: dict[str, NDArray[Any]]) -> dict[str, Any]:
    digest, _, text = sealed.partition(" ")
    intact = digest == _digest(text, tensors)
    try:
        document = json.loads(text)
        version, writer, tree = document["version"], document["writer"], document["state"]
        if type(version) is not int or version < 1:
            raise CoCoError("its version is no number")  # noqa: TRY301
    except (Exception, RecursionError) as error:  # whatever a crafted text makes json say
        raise (_refusal(path, error) if intact else _altered(path)) from error
    if version > VERSION:
        raise CoCoError(
            f"{path} has format {version} of {writer!r:.60}, and this version of cocoloss "
            f"reads formats up to {VERSION}; upgrade cocoloss"
        )
    if not intact:
        raise _altered(path)
    try:
        return _Decoder(tensors).state(tree)
    except (Exception, RecursionError) as error:
        raise _refusal(path, error) from error


def _altered(path: Path) -> CoCoError:
    return CoCoError(
        f"{path} was altered or cut short: its checksum does not match; get the file again"
    )


def _refusal(path: Path, why: BaseException) -> CoCoError:
    return CoCoError(f"{path} is not a cocoloss model file: {_brief(why)}")


def _digest(text: str, tensors: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(text.encode(errors="surrogatepass"))
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode(errors="surrogatepass"))
        digest.update(array.tobytes())
    return digest.hexdigest()


class _Encoder:
    """Turns a state into what JSON has, and collects its arrays under the names of their places."""

    def __init__(self) -> None:
        self.tensors: dict[str, NDArray[Any]] = {}
        self.text_bytes = 0

    def encode(self, value: Any, where: str) -> Any:  # noqa: PLR0911 - a table of types
        if isinstance(value, np.generic) and value.dtype.kind not in "Mm":
            value = value.item()
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {SPECIAL: "float", "value": str(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, list):
            return [self.encode(item, f"{where}.{i}") for i, item in enumerate(value)]
        if isinstance(value, tuple):
            return {SPECIAL: "tuple", "items": self.encode(list(value), where)}
        if not isinstance(value, Mapping):
            raise CoCoError(
                f"{where} is a {type(value).__name__}, which a model file cannot hold without "
                f"pickle"
            )
        if all(isinstance(key, str) for key in value):
            return {_escaped(k): self.encode(item, f"{where}.{k}") for k, item in value.items()}
        pairs = [list(pair) for pair in value.items()]  # by classes, as in class_weight
        return {SPECIAL: "dict", "items": self.encode(pairs, where)}

    def _array(self, array: NDArray[Any], where: str) -> Any:
        kind = array.dtype.kind
        if kind in "OU":
            if array.ndim != 1:
                raise CoCoError(f"{where} is a table of text, which a model file cannot hold")
            items = array.tolist()
            self.text_bytes += _text_bytes(items)
            if self.text_bytes > MAX_TEXT_ARRAYS:
                raise CoCoError(f"{where} has too much text for a model file")
            dtype = "object" if kind == "O" else "str"
            return {SPECIAL: "text", "dtype": dtype, "items": self.encode(items, where)}
        if kind not in "fiubMm" or array.dtype.itemsize > 8:
            raise CoCoError(f"{where} is an array of {array.dtype}; a model file has none")
        name = where if where not in self.tensors else f"{where}#{len(self.tensors)}"
        plain = array.view("<i8") if kind in "Mm" else array.astype(array.dtype.newbyteorder("<"))
        self.tensors[name] = np.asarray(plain, order="C")
        times = {"dtype": array.dtype.str} if kind in "Mm" else {}
        return {SPECIAL: "array", "name": name, **times}


class _Decoder:
    """Turns it back; every array is taken once, and what is made besides is not much larger."""

    def __init__(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        self.tensors = dict(tensors)
        self.text_bytes = 0
        self.specials: dict[Any, Callable[[dict[str, Any]], Any]] = {
            "float": lambda tree: NOT_FINITE[tree["value"]],
            "tuple": lambda tree: tuple(self.decode(item) for item in tree["items"]),
            "dict": lambda tree: {self.decode(k): self.decode(v) for k, v in tree["items"]},
            "array": self._array,
            "text": self._text,
        }

    def state(self, tree: Any) -> dict[str, Any]:
        """Return a whole state, of which every array is a part."""
        state = self.decode(tree)
        complete = isinstance(state, dict) and not self.tensors
        require(complete, "its arrays are not those of its description")
        return dict(state)

    def decode(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return [self.decode(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        if SPECIAL in tree:
            return self.specials[tree[SPECIAL]](tree)
        return {key.removeprefix(SPECIAL): self.decode(item) for key, item in tree.items()}

    def _array(self, tree: dict[str, Any]) -> NDArray[Any]:
        require(tree["name"] in self.tensors, "an array is not there, or was taken before")
        array = self.tensors.pop(tree["name"])
        truths = array.dtype != bool or (array.view(np.uint8) <= 1).all()
        require(truths, "an array holds bytes that are neither true nor false")
        dtype = tree.get("dtype")
        if dtype is None:
            return array
        times = np.dtype(dtype).kind in "Mm" and array.dtype == np.int64
        require(times, "an array of times is none")
        return array.view(dtype)

    def _text(self, tree: dict[str, Any]) -> NDArray[Any]:
        items = self.decode(tree["items"])
        require(isinstance(items, list), "an array of text is no list")
        self.text_bytes += _text_bytes(items)
        require(self.text_bytes <= MAX_TEXT_ARRAYS, "it unpacks to more than a model needs")
        if tree["dtype"] == "object":
            array = np.empty(len(items), dtype=object)
            array[:] = items
            return array
        texts = all(isinstance(item, str) for item in items)
        require(texts, "an array of text holds something else")
        return np.array(items, dtype=str)


def _escaped(key: str) -> str:
    return SPECIAL + key if key.startswith(SPECIAL) else key


def _text_bytes(items: list[Any]) -> int:
    """Return how much memory an array of these takes: every item is as wide as the longest."""
    widest = max((len(item) for item in items if isinstance(item, str)), default=1)
    return 4 * len(items) * max(widest, 2)
