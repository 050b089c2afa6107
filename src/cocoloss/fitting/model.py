"""A fitted model as one frozen value: all that predicting, saving and exporting need to know.

It knows nothing of how it was trained, of scikit-learn or, unless a network is the user's own, of
torch: numpy and pandas are enough.
"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from cocoloss._checks import check_option, is_sparse, listed, require, state_array, state_part
from cocoloss.columns.encoder import FloatEncoder, TableEncoder
from cocoloss.columns.sparse import SparseEncoder
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.explain import Explanation, Reference, explain
from cocoloss.heads.fitted import head_from_state
from cocoloss.kernels.machine import KernelMachine
from cocoloss.threads import threads_for

BLOCK_NUMBERS = 2**17  # activations of one block of rows: 1 MB, so that layers meet in the cache
MODULE_ROWS = 4096  # rows that a module of the user's own gets at once
MAX_WIDTH = 2**24
OUTPUTS = ("identity", "tanh")
ACTIVATIONS = ("relu", "silu")
ENCODERS: dict[str, Any] = {
    kind.__name__: kind for kind in (TableEncoder, FloatEncoder, SparseEncoder)
}
TINY_NORM = 1e-12  # that of cocoloss.networks, which needs torch


class Networks(Protocol):
    """K networks that embed rows: what a solver leaves behind.

    A kind that model files hold has ``to_state`` and ``from_state``, and is one of NETWORKS.
    """

    @property
    def n_networks(self) -> int:
        """Number of networks, K."""

    @property
    def n_inputs(self) -> int:
        """Columns of the matrix that they take, d."""

    @property
    def width(self) -> int:
        """Dimensions of an embedding, q."""

    def outputs(self, X: NDArray[np.float32]) -> NDArray[Any]:
        """Return what each network gives for the rows of a matrix, (K, n, outputs)."""

    def embeddings(self, X: NDArray[np.float32]) -> NDArray[Any]:
        """Return the embedding of the rows by each network, (K, n, q)."""


@dataclass(frozen=True, eq=False)
class Ensemble:
    """K multilayer perceptrons, as arrays.

    They compute in float64, so that a row gets the same prediction whatever other rows it comes
    with: float32 products round differently in blocks of different sizes.
    """

    layer_sizes: tuple[int, ...]  # inputs, hidden units, outputs
    parameters: NDArray[np.float32]  # (K, P), in the order of cocoloss.networks.LockstepMLP
    output: str = "identity"  # what follows the last layer: one of OUTPUTS
    normalize: bool = False  # whether outputs are divided by their norm
    linear_hidden: bool = False  # whether the last hidden layer is linear
    logits: bool = False  # whether the embedding is the last hidden layer, and outputs are logits
    activation: str = "relu"  # of the other hidden layers: one of ACTIVATIONS

    @property
    def n_networks(self) -> int:
        """Number of networks, K."""
        return len(self.parameters)

    @property
    def n_inputs(self) -> int:
        """Columns of the matrix that they take, d."""
        return self.layer_sizes[0]

    @property
    def n_outputs(self) -> int:
        """Numbers that each gives for a row."""
        return self.layer_sizes[-1]

    @property
    def width(self) -> int:
        """Dimensions of an embedding, q."""
        return self.layer_sizes[-2 if self.logits else -1]

    def layers(self, k: int) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Yield weights (in, out) and biases (out,) of network ``k``."""
        start = 0
        for n_in, n_out in pairwise(self.layer_sizes):
            stop = start + n_in * n_out
            yield (
                self.parameters[k, start:stop].reshape(n_in, n_out).astype(np.float64),
                self.parameters[k, stop : stop + n_out].astype(np.float64),
            )
            start = stop + n_out

    def is_curved(self, layer: int) -> bool:
        """Return whether a layer, from 0, has units that are not linear."""
        n_layers = len(self.layer_sizes) - 1
        return layer < (n_layers - 2 if self.linear_hidden else n_layers - 1)

    def embeddings(self, X: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the embedding of the rows by each network, (K, n, q)."""
        return self.outputs(X, hidden=self.logits)

    def outputs(self, X: NDArray[np.float32], *, hidden: bool = False) -> NDArray[np.float64]:
        """Return the last layer of each network, or the last hidden one, (K, n, outputs)."""
        result = np.empty((self.n_networks, len(X), self.layer_sizes[-2 if hidden else -1]))
        step = max(1, BLOCK_NUMBERS // max(self.layer_sizes))
        work = step * max(n_in * n_out for n_in, n_out in pairwise(self.layer_sizes))
        with threads_for(work):
            for k in range(self.n_networks):
                layers = list(self.layers(k))
                for start in range(0, len(X), step):
                    rows = X[start : start + step].astype(np.float64)
                    result[k, start : start + step] = self._forward(layers, rows, hidden=hidden)
        return result

    def _forward(
        self, layers: list[tuple[Any, Any]], a: NDArray[np.float64], *, hidden: bool
    ) -> NDArray[np.float64]:
        for layer, (weight, bias) in enumerate(layers[:-1] if hidden else layers):
            a = a @ weight
            a += bias
            if self.is_curved(layer):
                a = _activated(a, self.activation)
        if hidden:
            return a
        if self.output == "tanh":
            np.tanh(a, out=a)
        return _normalized(a) if self.normalize else a

    def to_state(self) -> dict[str, Any]:
        """Return the value as a dict of numbers, text and arrays."""
        return dict(vars(self)) | {"layer_sizes": list(self.layer_sizes)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the value that :meth:`to_state` described, or refuse it with a CoCoError."""
        sizes = state_part(state, "layer_sizes", list, of=int)
        possible = len(sizes) > 1 and all(1 <= n <= MAX_WIDTH for n in sizes)
        require(possible, "the layers have no possible sizes")
        n_parameters = sum((n_in + 1) * n_out for n_in, n_out in pairwise(sizes))
        parameters = state_array(state, "parameters", np.float32, (None, n_parameters))
        output = check_option(state_part(state, "output", str), "output", OUTPUTS)
        flags = ("normalize", "linear_hidden", "logits")
        truths = {name: state_part(state, name, bool) for name in flags}
        known = state.get("activation", "relu")  # the only one before files of version 3
        activation = check_option(known, "activation", ACTIVATIONS)
        return cls(tuple(map(int, sizes)), parameters, output, **truths, activation=activation)


@dataclass(frozen=True, eq=False)
class Together:
    """A kernel machine and networks, which embed rows in spaces of one dimension: (K, n, q)."""

    machine: KernelMachine
    ensemble: Ensemble

    @property
    def n_networks(self) -> int:
        """The machine and the networks, K."""
        return 1 + self.ensemble.n_networks

    @property
    def n_inputs(self) -> int:
        """Columns of the matrix that they take, d."""
        return self.machine.n_inputs

    @property
    def width(self) -> int:
        """Dimensions of an embedding, q."""
        return self.machine.width

    n_outputs = width

    def outputs(self, X: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the embedding of the rows by the machine and by each network, (K, n, q)."""
        with _threads_of(self.machine):
            first = self.machine.outputs(X)
        return np.concatenate([first, self.ensemble.embeddings(X)])

    embeddings = outputs

    def to_state(self) -> dict[str, Any]:
        """Return the value as nested dicts."""
        return {"machine": self.machine.to_state(), "ensemble": self.ensemble.to_state()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the value that :meth:`to_state` described, or refuse it with a CoCoError."""
        machine = KernelMachine.from_state(state_part(state, "machine", dict))
        ensemble = Ensemble.from_state(state_part(state, "ensemble", dict))
        sizes = {(each.n_inputs, each.width) for each in (machine, ensemble)}
        require(len(sizes) == 1, "its kernels and its networks are of different sizes")
        return cls(machine, ensemble)


NETWORKS: dict[str, Any] = {kind.__name__: kind for kind in (Ensemble, KernelMachine, Together)}


def machine_in(networks: Networks) -> KernelMachine | None:
    """Return the kernel machine among what embeds rows, if there is one."""
    if isinstance(networks, Together):
        return networks.machine
    return networks if isinstance(networks, KernelMachine) else None


@dataclass(frozen=True, eq=False)
class ModuleNetworks:
    """K torch modules of the user's own, whose output is the embedding."""

    modules: list[Any]  # in evaluation mode
    layer_sizes: tuple[int, ...]  # inputs, what the arguments say of hidden units, outputs
    parameters: NDArray[np.float32]  # (K, P), all of each, to go on training from
    normalize: bool = False  # whether outputs are divided by their norm
    device: str = "cpu"

    @property
    def n_networks(self) -> int:
        """Number of networks, K."""
        return len(self.modules)

    @property
    def n_inputs(self) -> int:
        """Columns of the matrix that they take, d."""
        return self.layer_sizes[0]

    @property
    def width(self) -> int:
        """Dimensions of an embedding, q."""
        return self.layer_sizes[-1]

    def outputs(self, X: NDArray[np.float32]) -> NDArray[Any]:
        """Return what each module gives for the rows of a matrix, (K, n, q), block by block."""
        import torch  # noqa: PLC0415 - the modules are torch's

        blocks = []
        with torch.no_grad():
            for start in range(0, max(1, len(X)), MODULE_ROWS):
                x = torch.from_numpy(X[start : start + MODULE_ROWS]).to(self.device)
                blocks.append(np.stack([module(x).cpu().numpy() for module in self.modules]))
        made = np.concatenate(blocks, axis=1)
        return _normalized(made.astype(np.float64)) if self.normalize else made

    def embeddings(self, X: NDArray[np.float32]) -> NDArray[Any]:
        """Return the same: the hidden layers of a module are its own."""
        return self.outputs(X)


class EmbeddingModel:
    """What a fitted model of any target has: an encoder of tables, and what embeds rows."""

    encoder: Any
    networks: Networks
    reference: Reference | None

    @property
    def machine(self) -> KernelMachine | None:
        """The kernels, if there are any."""
        return machine_in(self.networks)

    @property
    def n_rows_held(self) -> int:
        """Rows that it holds, as a file of it does: training rows, or means of some."""
        return 0 if self.machine is None else self.machine.n_rows

    @property
    def n_inputs(self) -> int:
        """Columns of the matrix that the encoder makes of a table."""
        return self.networks.n_inputs

    @property
    def n_outputs(self) -> int:
        """Columns of :meth:`transform`."""
        return self.networks.width * self.networks.n_networks

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the embedding of each row, those of the members side by side, (n, K q).

        They are scaled so that inner products are the mean of theirs.
        """
        inputs = self.inputs(X)
        with _threads_of(self.networks):
            return self._joined(self.networks.embeddings(inputs))

    def _joined(self, embeddings: NDArray[Any]) -> NDArray[np.float32]:
        K, n, q = embeddings.shape
        joined = embeddings.transpose(1, 0, 2).reshape(n, K * q) / np.sqrt(K)
        return np.asarray(joined, dtype=np.float32)

    def kernel(self, X: Any, Z: Any = None) -> NDArray[np.float64]:
        """Return the learnt kernel between the rows of X and of Z (X if None), (n, m)."""
        if self.machine is not None:
            inputs = self.inputs(X)
            return self.machine.kernel(inputs, inputs if Z is None else self.inputs(Z))
        left = self.transform(X).astype(np.float64)
        right = left if Z is None else self.transform(Z).astype(np.float64)
        return left @ right.T

    def outlier_score(self, X: Any) -> NDArray[np.float64]:
        """Return how strange each row is; larger is stranger.

        Odd combinations are seen by what embeds rows. It hardly sees odd values, which encoders
        clip and a sphere forgets: how far they are out of range is added. A transformer of the
        user's own may say that, too.
        """
        out_of_range = getattr(self.encoder, "out_of_range", None)
        odd = self._odd_combinations(X)
        return odd if out_of_range is None else odd + out_of_range(X)

    def _odd_combinations(self, X: Any) -> NDArray[np.float64]:
        assert self.machine is not None
        inputs = self.inputs(X)
        with _threads_of(self.machine):
            return self.machine.outlier_score(inputs)

    def column_importances(self) -> dict[str, float]:
        """Return what share of the function goes with each column of the table.

        Kernels know it. A transformer of the user's own has no columns but those that it makes.
        """
        assert self.machine is not None
        return self.by_column(self.machine.column_importances)

    @property
    def held(self) -> KernelMachine | None:
        """The kernels whose rows are the training rows that it knows, if there are any."""
        return self.machine

    def explain(
        self, X: Any, of: Any = None, neighbours: int = 3, among: Any = None
    ) -> Explanation:
        """Return why it says what it says; see :func:`cocoloss.fitting.explain.explain`."""
        return explain(self, X, of, neighbours, among)

    def threads(self) -> AbstractContextManager[None]:
        """Keep kernels to one thread, whose products are small; networks know their own."""
        return _threads_of(self.networks)

    @property
    def origins(self) -> list[str]:
        """The column of the table that each input comes from, (d,).

        Those of a wide sparse matrix come from all of its columns, and a transformer of the user's
        own does not tell: inputs are their own.
        """
        if isinstance(self.encoder, SparseEncoder):
            return list(self.encoder.feature_names_out())
        made = [f"x{j}" for j in range(self.n_inputs)]
        return list(getattr(self.encoder, "origins", made))

    @property
    def column_names(self) -> list[str]:
        """The columns of the table, those that are not in use among them."""
        return list(self.encoder.column_names) if hasattr(self.encoder, "origins") else self.origins

    def by_column(self, shares: NDArray[np.float64]) -> dict[str, float]:
        """Add up what belongs to inputs, (d,), by the columns of the table they come from."""
        sums = dict.fromkeys(self.column_names, 0.0)
        for name, share in zip(self.origins, shares, strict=True):
            sums[name] += float(share)
        return sums

    def inputs(self, X: Any) -> NDArray[np.float32]:
        """Return the matrix that the networks get of a table, (n, d)."""
        return as_inputs(self.encoder.transform(X), self.encoder, X)

    def encoder_and_networks(self) -> dict[str, Any]:
        """Return them as states; both must be ours: those of the user's own have none."""
        networks: Any = self.networks
        reference = self.reference
        return {
            **({} if reference is None else {"reference": reference.to_state()}),
            "encoder": {"kind": type(self.encoder).__name__, "state": self.encoder.to_state()},
            "networks": {"kind": type(networks).__name__, **networks.to_state()},
        }


def encoder_and_networks_of(state: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return what a state describes, or refuse it with a CoCoError."""
    described = state_part(state, "networks", dict)
    kind = described.get("kind", Ensemble.__name__)  # the only one when none was written
    networks = NETWORKS[check_option(kind, "the networks", NETWORKS)].from_state(described)
    described = state_part(state, "encoder", dict)
    kind = check_option(described.get("kind"), "the preprocessing", ENCODERS)
    encoder = ENCODERS[kind].from_state(state_part(described, "state", dict))
    fits = encoder.width == networks.n_inputs
    require(fits, "the preprocessing does not fit the first layer")
    return encoder, networks


def reference_of(
    state: Mapping[str, Any], n_inputs: int, held: KernelMachine | None
) -> Reference | None:
    """Return what a state says to explanations; earlier files say nothing."""
    if "reference" not in state:
        return None
    n_held = 0 if held is None else len(held.rows)
    return Reference.from_state(state["reference"], n_inputs, n_held)


@dataclass(frozen=True, eq=False)
class FittedModel(EmbeddingModel):
    """An encoder of tables, networks that embed rows, and a head for each that reads a class off.

    Predictions of the members are averaged, or pooled by weights.

    Attributes
    ----------
    classes : array of shape (C,)
        What is predicted; heads know classes by their positions.
    prior : array of shape (C,)
        Under which classes are predicted.
    encoder : object with ``transform``
        Makes a float32 matrix of a table: a value of :mod:`cocoloss.columns.encoder`, or a
        transformer of the user's own.
    networks : Ensemble, ModuleNetworks, KernelMachine or Together
        Make embeddings of its rows.
    heads : tuple
        One per network: values of :mod:`cocoloss.heads.fitted`, or classifiers of the user's own.
    reads_outputs : bool
        Whether the heads look at the outputs of the networks rather than at the embeddings.
    pool : array of shape (K,), optional
        What the log probabilities of each member, less those of the prior, weigh in a sum that
        takes the place of averaged probabilities: members of different strength are no crowd.
    reference : Reference, optional
        What explanations compare rows with.
    """

    classes: NDArray[Any]
    prior: NDArray[np.float64]
    encoder: Any
    networks: Networks
    heads: tuple[Any, ...]
    reads_outputs: bool = False
    pool: NDArray[np.float64] | None = None
    reference: Reference | None = None

    task = "classes"

    def has(self, method: str) -> bool:
        """Return whether the heads have a method, such as ``"predict_proba"``."""
        return hasattr(self.heads[0], method)

    @property
    def knows_its_prior(self) -> bool:
        """Whether probabilities are meant under a prior that can be changed."""
        return all(hasattr(head, "prior") for head in self.heads)

    def with_prior(self, prior: NDArray[np.float64]) -> Self:
        """Return the model as a fit under another prior would have left it."""
        if not self.knows_its_prior:
            raise CoCoError(
                "priors cannot be changed: the head is not one of cocoloss, and does not say which "
                "its probabilities are meant for; leave priors out, or choose another head"
            )
        heads = tuple(replace(head, prior=prior) for head in self.heads)
        return replace(self, prior=prior, heads=heads)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row: the argmax of :meth:`predict_proba` if there is one.

        Heads without any scores vote.
        """
        features = self.head_inputs(self.inputs(X))
        if self.has("predict_proba"):
            best = self._probabilities(features).argmax(axis=1)
        elif self.has("decision_function"):
            mean = self._mean("decision_function", features)
            best = (mean > 0).astype(int) if mean.ndim == 1 else mean.argmax(axis=1)
        else:
            pairs = zip(self.heads, features, strict=True)
            votes = np.stack([head.predict(h) for head, h in pairs])  # (K, n)
            best = (votes[..., None] == np.arange(len(self.classes))).sum(axis=0).argmax(axis=1)
        return np.asarray(self.classes[best])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, (n, C), averaged over the members."""
        return self._probabilities(self.head_inputs(self.inputs(X)))

    def _probabilities(self, features: NDArray[Any]) -> NDArray[np.float64]:
        if self.pool is None:
            return self._mean("predict_proba", features)
        log_prior, logits = np.log(self.prior), np.log(self.prior)
        for weight, head, each in zip(self.pool, self.heads, features, strict=True):
            log_p = np.log(np.maximum(head.predict_proba(each), np.finfo(np.float64).tiny))
            logits = logits + weight * (log_p - log_prior)
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return a score per class, (n, C); for two classes one score, positive for the second."""
        return self._decisions(self.head_inputs(self.inputs(X)))

    def _decisions(self, features: NDArray[Any]) -> NDArray[np.float64]:
        if self.has("predict_proba"):
            floor = np.finfo(np.float64).tiny
            scores = np.log(np.maximum(self._probabilities(features), floor))
            return scores[:, 1] - scores[:, 0] if len(self.classes) == 2 else scores
        return self._mean("decision_function", features)

    @property
    def scale(self) -> str:
        """What :meth:`scores` are."""
        return "probability" if self.has("predict_proba") else "score"

    def scores(self, inputs: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return what is explained of rows that the encoder has made, (n, C).

        Probabilities: they are what is decided by, and differences of them can be read.
        """
        features = self.head_inputs(inputs)
        if self.has("predict_proba"):
            return self._probabilities(features)
        if not self.has("decision_function"):
            raise CoCoError(
                f"the head {type(self.heads[0]).__name__} only says which class, not how sure it "
                f"is, so that nothing can be explained; use one with predict_proba"
            )
        scores = self._mean("decision_function", features)
        return np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores

    def explained(
        self, scores: NDArray[np.float64], of: Any
    ) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """Return the class of each row that is to be explained, by position, and by name."""
        n, known = len(scores), self.classes
        if of is None:
            chosen = scores.argmax(axis=1)
            return chosen, known[chosen]
        asked = np.asarray(of).astype(object)  # text is no number, and no error
        if asked.ndim > 1 or (asked.ndim == 1 and len(asked) != n):
            raise CoCoError(f"of has shape {asked.shape} for {n} rows; give a class, or one a row")
        asked = np.broadcast_to(asked, n)
        is_class = asked[:, None] == known.astype(object)  # (n, C)
        unknown = ~is_class.any(axis=1)
        if unknown.any():
            odd = str(asked[unknown.argmax()])
            raise CoCoError(f"of={odd!r:.60} is no class; the classes are {listed(known.tolist())}")
        chosen = is_class.argmax(axis=1)
        return chosen, known[chosen]

    def as_targets(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        """Return classes by name."""
        return np.asarray(self.classes[positions])

    def _odd_combinations(self, X: Any) -> NDArray[np.float64]:
        if self.machine is not None:
            return super()._odd_combinations(X)
        return self._mean("outlier_score", self.head_inputs(self.inputs(X)))

    def head_inputs(self, inputs: NDArray[np.float32]) -> NDArray[Any]:
        """Return what the heads look at, (K, n, q)."""
        networks = self.networks
        with _threads_of(networks):
            return networks.outputs(inputs) if self.reads_outputs else networks.embeddings(inputs)

    def try_out(self) -> None:
        """Predict once, on a row of gaps, and refuse a model whose numbers are not finite."""
        with warnings.catch_warnings(), np.errstate(divide="raise", invalid="raise"):
            warnings.simplefilter("ignore")
            inputs = self.inputs(self.encoder.blank_row())
            features = self.head_inputs(inputs)
            if not np.isfinite(features).all():
                raise CoCoError("what the networks make is not finite")
            embedding = self._joined(self.networks.embeddings(inputs))
            if not (np.isfinite(self._decisions(features)).all() and np.isfinite(embedding).all()):
                raise CoCoError("its predictions are not finite")

    def to_state(self) -> dict[str, Any]:
        """Return the model as nested dicts and lists of numbers, text and arrays.

        Networks, encoder and heads must be ours: those of the user's own have no state.
        """
        return {
            "classes": self.classes,
            "prior": self.prior,
            **self.encoder_and_networks(),
            "heads": [head.to_state() for head in self.heads],
            "reads_outputs": self.reads_outputs,
            **({} if self.pool is None else {"pool": self.pool}),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the model that :meth:`to_state` described.

        Raises
        ------
        CoCoError
            If a part is missing or impossible, or parts do not fit together: a stranger may have
            written the state.
        """
        encoder, networks = encoder_and_networks_of(state)
        classes = state_part(state, "classes", np.ndarray)
        C = classes.size
        require(classes.shape == (C,), "the classes are no list")
        prior = state_array(state, "prior", np.float64, (C,), positive=True)
        heads = tuple(map(head_from_state, state_part(state, "heads", list)))
        fits = 0 < len(heads) == networks.n_networks
        require(fits, "there is not one head for each network")
        pool = state_array(state, "pool", np.float64, (len(heads),)) if "pool" in state else None
        alike = len({type(head) for head in heads}) == 1 or pool is not None
        require(alike, "the heads are of different kinds")
        reads_outputs = state_part(state, "reads_outputs", bool)
        width = networks.n_outputs if reads_outputs else networks.width
        fits = all((head.n_features, head.n_classes) == (width, C) for head in heads)
        require(fits, "a head does not fit the embedding, or knows other classes than the model")
        reference = reference_of(state, networks.n_inputs, machine_in(networks))
        if reference is not None and reference.targets is not None:
            codes = state_array(state["reference"], "targets", np.signedinteger, (None,))
            known = ((codes >= 0) & (codes < C)).all()
            require(known, "the classes of the rows that it holds are none")
        return cls(classes, prior, encoder, networks, heads, reads_outputs, pool, reference)

    def _mean(self, method: str, features: NDArray[Any]) -> NDArray[np.float64]:
        """Return the result of a method of the heads, averaged over the members."""
        pairs = zip(self.heads, features, strict=True)
        with threads_for(BLOCK_NUMBERS * features.shape[-1]):  # of a head, in one block of rows
            mean: NDArray[np.float64] = np.mean([getattr(h, method)(f) for h, f in pairs], axis=0)
        return mean


@dataclass(frozen=True, eq=False)
class History:
    """How a model came about, and what ``partial_fit`` goes on from; no rows."""

    loss_curves: list[list[float]]  # training loss of each member, epoch by epoch
    best_epochs: NDArray[np.int64]  # (K,), the epoch that each member keeps
    seed: int  # what everything random followed from
    class_masses: NDArray[np.float64]  # (C,), what the rows of each class weighed
    n_parts: int = 1  # fits and parts so far

    @classmethod
    def from_state(cls, state: Mapping[str, Any], n_members: int, n_classes: int) -> Self:
        """Return the history that a dict of its attributes describes, or refuse it."""
        curves = state_part(state, "loss_curves", list, of=list, n=n_members)
        losses = (loss for curve in curves for loss in curve)
        are_numbers = all(isinstance(loss, float) for loss in losses)
        require(are_numbers, "the loss curves of its history are none")
        epochs = state_array(state, "best_epochs", np.signedinteger, (n_members,))
        masses = state_array(state, "class_masses", np.float64, (n_classes,), positive=True)
        seed, n_parts = state_part(state, "seed", int), state_part(state, "n_parts", int)
        require(seed >= 0 and n_parts >= 1, "the seed or the parts of its history are none")
        return cls(curves, epochs, seed, masses, n_parts)


def _activated(z: NDArray[np.float64], activation: str) -> NDArray[np.float64]:
    """Return what units make of z, in its place."""
    if activation == "relu":
        return np.maximum(z, 0, out=z)
    with np.errstate(over="ignore"):  # z / inf is 0, as it should be
        z /= 1 + np.exp(-z)
    return z


def _normalized(embeddings: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide embeddings (..., q) by their norms, in place."""
    norms = np.sqrt(np.einsum("...q,...q->...", embeddings, embeddings))[..., None]
    embeddings /= np.maximum(norms, TINY_NORM)
    return embeddings


def as_inputs(made: Any, encoder: Any, rows: Any) -> NDArray[np.float32]:
    """Return what an encoder made of some rows as a float32 matrix, or say what is wrong."""
    name = type(encoder).__name__
    made = made.toarray() if is_sparse(made) else made
    try:
        with np.errstate(over="ignore"):  # reported below
            inputs = np.ascontiguousarray(made, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise CoCoError(f"the preprocessing {name} must make numbers: {error}") from error
    n_rows = (rows if hasattr(rows, "shape") else np.asarray(rows, dtype=object)).shape[0]
    if inputs.ndim != 2 or len(inputs) != n_rows or inputs.shape[1] == 0:
        raise CoCoError(
            f"the preprocessing {name} must make a matrix with a row for each of the {n_rows} "
            f"rows, but made one of shape {inputs.shape}"
        )
    if not np.isfinite(inputs).all():
        raise CoCoError(
            f"the preprocessing {name} left gaps or infinite numbers; add an imputer to it, or use "
            f"preprocess='auto'"
        )
    return inputs


def _threads_of(networks: Networks) -> AbstractContextManager[None]:
    """Keep kernels to one thread, whose products are small; networks know their own."""
    return threads_for(0) if isinstance(networks, KernelMachine) else nullcontext()
