"""A fitted classifier as an ONNX graph: from the preprocessed matrix to classes and probabilities.

The graph computes in float64, as predicting here does; its inputs and outputs are float32.
"""

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from cocoloss.estimators.ensemble import TINY_NORM, Ensemble
from cocoloss.exceptions import CoCoError
from cocoloss.files import write_whole
from cocoloss.heads import CentroidHead, EmbeddingHead, GaussianHead, ReadoutHead

if TYPE_CHECKING:
    from cocoloss.estimators.averages import MemberAverage

OPSET = 18
IR_VERSION = 9  # of opset 18, so that older runtimes read the file too


def write_onnx(model: "MemberAverage", path: str | os.PathLike[str]) -> None:
    """Write what a fitted classifier makes of a preprocessed matrix as an ONNX file.

    Parameters
    ----------
    model : classifier
        Fitted, with networks of its own (no torch module) and one of our heads or a linear one.
    path : path
        Such as ``model.onnx``.

    Raises
    ------
    CoCoError
        If onnx is not installed, or if the classifier has parts that the graph cannot hold.
    """
    check_is_fitted(model)
    try:
        import onnx  # noqa: PLC0415 - optional
    except ImportError:
        raise CoCoError("ONNX export needs onnx: pip install 'cocoloss[onnx]'") from None
    if model.modules_ is not None:
        raise CoCoError("a torch module is exported by torch.onnx.export, not from here")
    labels = _labels(model.classes_)
    graph = _Graph()
    heads = [_likelihood(head) for head in model.heads_]
    probable = isinstance(model.heads_[0], EmbeddingHead)
    X = graph.add("Cast", "X", to=onnx.TensorProto.DOUBLE)
    ensemble = model._ensemble()  # noqa: SLF001 - one of our own kind
    answers, embeddings = [], []
    for k, (head, likelihood) in enumerate(zip(model.heads_, heads, strict=True)):
        hidden, output = _network(graph, ensemble, k, X)
        embedding = hidden if model._logits else output  # noqa: SLF001 - the estimator's own file
        embeddings.append(embedding)
        scores = likelihood(graph, output if model.reads_outputs_ else embedding)
        answers.append(_posterior(graph, head, scores) if probable else scores)
    answer = graph.mean(answers)
    joined = graph.add("Concat", *embeddings, axis=1)
    embedding = graph.add("Div", joined, graph.constant(np.sqrt(len(embeddings))))
    best = graph.add("ArgMax", answer, axis=1, keepdims=0)
    graph.name(graph.add("Gather", graph.constant(labels, keep=True), best), "label")
    graph.name(
        graph.add("Cast", answer, to=onnx.TensorProto.FLOAT),
        "probabilities" if probable else "scores",
    )
    graph.name(graph.add("Cast", embedding, to=onnx.TensorProto.FLOAT), "embedding")
    kinds = onnx.TensorProto
    kind = {"O": kinds.STRING, "i": kinds.INT64, "f": kinds.DOUBLE}[labels.dtype.kind]
    proto = graph.build(onnx, model, kind)
    with write_whole(path) as aside:
        onnx.save(proto, os.fspath(aside))


class _Graph:
    """Nodes and constants, named as they come."""

    def __init__(self) -> None:
        self.nodes: list[tuple[str, tuple[str, ...], str, dict[str, Any]]] = []
        self.constants: list[tuple[str, NDArray[Any]]] = []
        self.outputs: list[str] = []

    def add(self, operation: str, *inputs: str, **attributes: Any) -> str:
        output = f"v{len(self.nodes)}"
        self.nodes.append((operation, inputs, output, attributes))
        return output

    def constant(self, value: ArrayLike, *, keep: bool = False) -> str:
        name = f"c{len(self.constants)}"
        array = np.asarray(value)
        self.constants.append((name, array if keep else array.astype(np.float64)))
        return name

    def name(self, value: str, name: str) -> None:
        self.nodes.append(("Identity", (value,), name, {}))
        self.outputs.append(name)

    def mean(self, values: list[str]) -> str:
        total = values[0]
        for value in values[1:]:
            total = self.add("Add", total, value)
        return self.add("Div", total, self.constant(len(values)))

    def squares(self, value: str, axis: int, *, keepdims: int) -> str:
        """Return the sums of squares along an axis."""
        axes = self.constant(np.array([axis]), keep=True)
        return self.add("ReduceSum", self.add("Mul", value, value), axes, keepdims=keepdims)

    def unit_rows(self, value: str) -> str:
        """Return each row divided by its norm; a row of zeros stays."""
        norms = self.add("Sqrt", self.squares(value, 1, keepdims=1))
        return self.add("Div", value, self.add("Max", norms, self.constant(TINY_NORM)))

    def build(self, onnx: Any, model: Any, label_kind: int) -> Any:
        """Return the model: an input of any number of rows, and the named outputs."""
        from onnx import helper, numpy_helper  # noqa: PLC0415

        kinds = {"label": label_kind}
        C, width = len(model.classes_), model._n_features_out  # noqa: SLF001
        shapes: dict[str, list[Any]] = {"label": ["N"], "embedding": ["N", width]}
        n_scores = C if model.heads_[0].__class__ in _OURS or C > 2 else 2
        outputs = [
            helper.make_tensor_value_info(
                name, kinds.get(name, onnx.TensorProto.FLOAT), shapes.get(name, ["N", n_scores])
            )
            for name in self.outputs
        ]
        graph = helper.make_graph(
            [helper.make_node(op, ins, [out], **attrs) for op, ins, out, attrs in self.nodes],
            type(model).__name__,
            [
                helper.make_tensor_value_info(
                    "X", onnx.TensorProto.FLOAT, ["N", model.layer_sizes_[0]]
                )
            ],
            outputs,
            [
                numpy_helper.from_array(np.atleast_1d(c) if c.dtype == object else c, name)
                for name, c in self.constants
            ],
        )
        proto = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="cocoloss"
        )
        proto.ir_version = IR_VERSION
        helper.set_model_props(
            proto,
            {
                "classes": json.dumps([str(c) for c in model.classes_.tolist()]),
                "inputs": json.dumps([str(n) for n in _input_names(model)]),
            },
        )
        onnx.checker.check_model(proto)
        return proto


def _labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Return the classes as the graph can hold them: text, int64 or float64."""
    items = classes.tolist()
    if all(isinstance(item, str) for item in items):
        return classes.astype(object)
    if classes.dtype.kind == "f" and classes.dtype.itemsize <= 8:
        return classes.astype(np.float64)
    largest = np.iinfo(np.int64).max
    if all(isinstance(item, int) and abs(item) <= largest for item in items):  # booleans are
        return classes.astype(np.int64)
    raise CoCoError(
        f"an ONNX graph holds classes that are text, whole numbers or floats, not "
        f"{type(items[0]).__name__} ({classes.dtype}) such as {items[0]!s:.40}; encode them, such "
        f"as by y.astype(str), and fit again"
    )


def _input_names(model: Any) -> list[str]:
    names = getattr(model.preprocessor_, "get_feature_names_out", None)
    return [] if names is None else list(names())


def _network(graph: _Graph, ensemble: Ensemble, k: int, value: str) -> tuple[str, str]:
    """Add network ``k``; return its last hidden layer and its output."""
    layers = list(ensemble.layers(k))
    hidden = value
    for i, (weight, bias) in enumerate(layers):
        value = graph.add("MatMul", value, graph.constant(weight))
        value = graph.add("Add", value, graph.constant(bias))
        if ensemble.has_relu(i):
            value = graph.add("Relu", value)
        if i < len(layers) - 1:
            hidden = value
    if ensemble.output == "tanh":
        value = graph.add("Tanh", value)
    return hidden, graph.unit_rows(value) if ensemble.normalize else value


def _posterior(graph: _Graph, head: Any, evidence: str) -> str:
    """Add priors and temperature: softmax(log prior + evidence / T)."""
    axes = graph.constant(np.array([1]), keep=True)
    most = graph.add("ReduceMax", evidence, axes, keepdims=1)
    warmed = graph.add("Div", graph.add("Sub", evidence, most), graph.constant(head.temperature_))
    offset = head.fitted_.offset()
    joint = graph.add("Add", warmed, graph.constant(offset))
    return graph.add("Softmax", joint, axis=1)


Likelihood = Callable[[_Graph, str], str]


def _gaussian(head: Any) -> Likelihood:
    P = head.precisions_cholesky_
    diag = head.covariance_ == "diag"
    log_det = np.log(P if diag else np.diagonal(P, axis1=-2, axis2=-1)).sum(axis=-1)

    def add(graph: _Graph, h: str) -> str:
        deviations = graph.add("Sub", h, graph.constant(head.means_[:, None]))  # (C, N, q)
        spread = graph.constant(P[:, None] if diag else P)
        whitened = graph.add("Mul" if diag else "MatMul", deviations, spread)
        return _from_distances(graph, whitened, log_det)

    return add


def _from_distances(graph: _Graph, deviations: str, offset: ArrayLike = 0.0) -> str:
    """Return minus half the squared lengths, (N, C), plus an offset."""
    squared = graph.add("Transpose", graph.squares(deviations, 2, keepdims=0), perm=[1, 0])
    return graph.add("Add", graph.add("Mul", squared, graph.constant(-0.5)), graph.constant(offset))


def _cosines(graph: _Graph, h: str, directions: NDArray[np.float64], concentration: float) -> str:
    norms = np.linalg.norm(directions, axis=1, keepdims=True)
    scaled = concentration * directions / np.where(norms > 0, norms, 1.0)
    return graph.add("MatMul", graph.unit_rows(h), graph.constant(scaled.T))


def _centroid(head: Any) -> Likelihood:
    def add(graph: _Graph, h: str) -> str:
        if head.fitted_.metric == "angular":
            return _cosines(graph, h, head.means_, head.concentration_)
        deviations = graph.add("Sub", h, graph.constant(head.means_[:, None]))
        root = graph.constant(np.sqrt(head.concentration_))
        return _from_distances(graph, graph.add("Mul", deviations, root))

    return add


def _readout(head: Any) -> Likelihood:
    def add(graph: _Graph, h: str) -> str:
        if head.metric == "angular":
            return _cosines(graph, h, head.prototypes_, head.concentration_)
        logits = graph.add("MatMul", h, graph.constant(head.prototypes_.T))
        return graph.add("Add", logits, graph.constant(head.bias_ - np.log(head.class_share_)))

    return add


def _linear(head: Any) -> Likelihood:
    """Return the scores of a linear model; of two classes, minus and plus the one score."""
    coef, intercept = np.atleast_2d(head.coef_), np.atleast_1d(head.intercept_)
    if len(coef) == 1:
        coef, intercept = np.vstack([-coef, coef]), np.concatenate([-intercept, intercept])

    def add(graph: _Graph, h: str) -> str:
        product = graph.add("MatMul", h, graph.constant(coef.T))
        return graph.add("Add", product, graph.constant(intercept))

    return add


_OURS: dict[type, Callable[[Any], Likelihood]] = {
    GaussianHead: _gaussian,
    CentroidHead: _centroid,
    ReadoutHead: _readout,
}


def _likelihood(head: Any) -> Likelihood:
    if type(head) in _OURS:
        return _OURS[type(head)](head)
    if hasattr(head, "coef_"):
        return _linear(head)
    raise CoCoError(
        f"ONNX export knows our heads and linear ones, not {type(head).__name__}; "
        f"use head='gaussian'"
    )
