"""A fitted model as an ONNX graph: from the preprocessed matrix to classes and probabilities.

The graph computes in float64, as predicting here does; its inputs and outputs are float32.
"""

import json
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocoloss.exceptions import CoCoError
from cocoloss.files import write_whole
from cocoloss.fitting.model import TINY_NORM, Ensemble, FittedModel
from cocoloss.heads.fitted import (
    FittedCentroid,
    FittedGaussian,
    FittedHead,
    FittedLinear,
    FittedReadout,
)

OPSET = 18
IR_VERSION = 9  # of opset 18, so that older runtimes read the file too


def write_onnx(model: FittedModel, path: str | os.PathLike[str]) -> None:
    """Write what a fitted model makes of a preprocessed matrix as an ONNX file.

    Its networks must be ours (no torch module), its heads ours or linear ones.
    """
    try:
        import onnx  # noqa: PLC0415 - optional
    except ImportError:
        raise CoCoError("ONNX export needs onnx: pip install 'cocoloss[onnx]'") from None
    networks = model.networks
    if model.machine is not None:
        raise CoCoError(
            "ONNX export is for networks: a kernel compares a row with every training row, which "
            "would all be in the graph; use save and load, or fit with solver='network'"
        )
    if not isinstance(networks, Ensemble):
        raise CoCoError("a torch module is exported by torch.onnx.export, not from here")
    labels = _labels(model.classes)
    heads = [_known_head(head) for head in model.heads]
    graph, kinds = _Graph(onnx), onnx.TensorProto
    X = graph.add("Cast", "X", to=kinds.DOUBLE)
    scores, embeddings = [], []
    for k, head in enumerate(heads):
        hidden, output = _network(graph, networks, k, X)
        embeddings.append(hidden if networks.logits else output)
        scores.append(_scores(graph, head, output if model.reads_outputs else embeddings[-1]))
    mean = graph.mean(scores)
    joined = graph.add("Concat", *embeddings, axis=1)
    embedding = graph.add("Div", joined, graph.constant(np.sqrt(len(embeddings))))
    best = graph.add("ArgMax", mean, axis=1, keepdims=0)
    label = graph.add("Gather", graph.constant(labels, keep=True), best)
    label_kind = {"O": kinds.STRING, "i": kinds.INT64, "f": kinds.DOUBLE}[labels.dtype.kind]
    graph.output("label", label, label_kind)
    name = "probabilities" if isinstance(heads[0], FittedHead) else "scores"
    graph.output(name, graph.add("Cast", mean, to=kinds.FLOAT), kinds.FLOAT, len(labels))
    narrow = graph.add("Cast", embedding, to=kinds.FLOAT)
    graph.output("embedding", narrow, kinds.FLOAT, model.n_outputs)
    proto = graph.build(model.n_inputs)
    about = {"classes": model.classes.tolist(), "inputs": _input_names(model.encoder)}
    texts = {name: json.dumps([str(item) for item in items]) for name, items in about.items()}
    onnx.helper.set_model_props(proto, texts)
    onnx.checker.check_model(proto)
    with write_whole(path) as aside:
        onnx.save(proto, os.fspath(aside))


class _Graph:
    """Nodes and constants, named as they come."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[Any] = []

    def add(self, operation: str, *inputs: str, **attributes: Any) -> str:
        output = f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operation, inputs, [output], **attributes))
        return output

    def constant(self, value: ArrayLike, *, keep: bool = False) -> str:
        name = f"c{len(self.constants)}"
        array = np.asarray(value) if keep else np.asarray(value).astype(np.float64)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def output(self, name: str, value: str, kind: int, *shape: int) -> None:
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))
        self.outputs.append(self.onnx.helper.make_tensor_value_info(name, kind, ["N", *shape]))

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

    def build(self, n_inputs: int) -> Any:
        """Return the graph as a model that takes any number of rows."""
        helper, kind = self.onnx.helper, self.onnx.TensorProto.FLOAT
        inputs = [helper.make_tensor_value_info("X", kind, ["N", n_inputs])]
        graph = helper.make_graph(self.nodes, "cocoloss", inputs, self.outputs, self.constants)
        opset = [helper.make_opsetid("", OPSET)]
        proto = helper.make_model(graph, opset_imports=opset, producer_name="cocoloss")
        proto.ir_version = IR_VERSION
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


def _input_names(encoder: Any) -> list[str]:
    """Return the names of the columns that an encoder makes; none if it does not know."""
    for method in ("feature_names_out", "get_feature_names_out"):  # ours, and scikit-learn's
        if hasattr(encoder, method):
            return list(getattr(encoder, method)())
    return []


def _network(graph: _Graph, ensemble: Ensemble, k: int, value: str) -> tuple[str, str]:
    """Add network ``k``; return its last hidden layer and its output."""
    layers = list(ensemble.layers(k))
    hidden = value
    for i, (weight, bias) in enumerate(layers):
        value = graph.add("MatMul", value, graph.constant(weight))
        value = graph.add("Add", value, graph.constant(bias))
        if ensemble.is_curved(i) and ensemble.activation == "silu":
            value = graph.add("Mul", value, graph.add("Sigmoid", value))
        elif ensemble.is_curved(i):
            value = graph.add("Relu", value)
        if i < len(layers) - 1:
            hidden = value
    if ensemble.output == "tanh":
        value = graph.add("Tanh", value)
    return hidden, graph.unit_rows(value) if ensemble.normalize else value


def _known_head(head: Any) -> FittedHead | FittedLinear:
    if isinstance(head, (FittedGaussian, FittedCentroid, FittedReadout, FittedLinear)):
        return head
    if hasattr(head, "coef_") and not hasattr(head, "predict_proba"):
        return FittedLinear.of(head)
    raise CoCoError(
        f"ONNX export knows our heads and linear ones, not {type(head).__name__}; "
        f"use head='gaussian'"
    )


def _scores(graph: _Graph, head: FittedHead | FittedLinear, h: str) -> str:
    """Return probabilities, or the scores of a linear head: of two classes, minus and plus one."""
    if isinstance(head, FittedLinear):
        coef, intercept = np.atleast_2d(head.coef), np.atleast_1d(head.intercept)
        if len(coef) == 1:
            coef, intercept = np.vstack([-coef, coef]), np.concatenate([-intercept, intercept])
        product = graph.add("MatMul", h, graph.constant(coef.T))
        return graph.add("Add", product, graph.constant(intercept))
    # Priors and temperature: softmax(log prior + evidence / T).
    evidence = _log_likelihood(graph, head, h)
    axes = graph.constant(np.array([1]), keep=True)
    most = graph.add("ReduceMax", evidence, axes, keepdims=1)
    warmed = graph.add("Div", graph.add("Sub", evidence, most), graph.constant(head.temperature))
    joint = graph.add("Add", warmed, graph.constant(head.offset()))
    return graph.add("Softmax", joint, axis=1)


def _log_likelihood(graph: _Graph, head: FittedHead, h: str) -> str:
    """Return the log-likelihood of each class, (N, C), up to a term that the classes share."""
    if isinstance(head, FittedReadout):
        if head.metric == "angular":
            return _cosines(graph, h, head.prototypes, head.concentration)
        logits = graph.add("MatMul", h, graph.constant(head.prototypes.T))
        return graph.add("Add", logits, graph.constant(head.bias - np.log(head.share)))
    if isinstance(head, FittedCentroid):
        if head.metric == "angular":
            return _cosines(graph, h, head.means, head.concentration)
        deviations = graph.add("Sub", h, graph.constant(head.means[:, None]))
        root = graph.constant(np.sqrt(head.concentration))
        return _from_distances(graph, graph.add("Mul", deviations, root))
    assert isinstance(head, FittedGaussian)
    P, diag = head.precisions_cholesky, head.covariance == "diag"
    deviations = graph.add("Sub", h, graph.constant(head.means[:, None]))  # (C, N, q)
    spread = graph.constant(P[:, None] if diag else P)
    whitened = graph.add("Mul" if diag else "MatMul", deviations, spread)
    return _from_distances(graph, whitened, head.log_determinant)


def _from_distances(graph: _Graph, deviations: str, offset: ArrayLike = 0.0) -> str:
    """Return minus half the squared lengths, (N, C), plus an offset."""
    squared = graph.add("Transpose", graph.squares(deviations, 2, keepdims=0), perm=[1, 0])
    return graph.add("Add", graph.add("Mul", squared, graph.constant(-0.5)), graph.constant(offset))


def _cosines(graph: _Graph, h: str, directions: NDArray[np.float64], concentration: float) -> str:
    norms = np.linalg.norm(directions, axis=1, keepdims=True)
    scaled = concentration * directions / np.where(norms > 0, norms, 1.0)
    return graph.add("MatMul", graph.unit_rows(h), graph.constant(scaled.T))
