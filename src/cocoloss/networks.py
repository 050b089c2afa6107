"""Many small networks in lockstep: one shape, one flat buffer, gradients written out by hand.

A step of a tabular network is all overhead in eager PyTorch. Here K networks share every call (a
leading model axis), and the backward pass is a fixed list of products into preallocated views of
one flat gradient. This module knows no loss, no data and no optimiser.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import chain, pairwise

import numpy as np
import torch
from torch import Tensor, nn

from cocoloss.exceptions import CoCoError

TINY_NORM = 1e-12  # an embedding of exactly zero has no direction
# What such an embedding is divided by: it stays zero, and has no gradient. Divided by a tiny norm,
# its gradient would be so large that Adam's running square never forgot it.
NO_DIRECTION = math.inf


class LockstepMLP:
    """K multilayer perceptrons, trained side by side.

    Parameters
    ----------
    layer_sizes : sequence of int
        Inputs, hidden units, outputs: (d, 64, 64, q).
    generators : sequence of numpy generators
        One per model: the weights and dropout masks of a model come from its own generator, so
        that it starts from the same weights in a stack as it would alone.
    dropout : float
        Share of units that are dropped.
    dropout_layer : int
        The layer before which units are dropped: 0 drops inputs, -1 drops before the output.
    output : {"identity", "tanh"}
        What is applied to the last layer.
    normalize : bool
        Whether embeddings are divided by their norm: training on the sphere.
    linear_hidden : bool
        Whether the last hidden layer is linear: a narrow one, whose ReLUs die too easily.
    activation : {"relu", "silu"}
        What the units of the other hidden layers do: max(z, 0), or z / (1 + exp(-z)).
    device : str or torch.device
        Where the models live.

    Attributes
    ----------
    parameters : Tensor of shape (K, P)
        All weights and biases; every layer is a view of it.
    gradients : Tensor of shape (K, P)
        What the last :meth:`backward` wrote.
    """

    def __init__(
        self,
        layer_sizes: Sequence[int],
        generators: Sequence[np.random.Generator],
        *,
        dropout: float = 0.0,
        dropout_layer: int = -1,
        output: str = "identity",
        normalize: bool = False,
        linear_hidden: bool = False,
        activation: str = "relu",
        device: str | torch.device = "cpu",
    ) -> None:
        self.layer_sizes = tuple(layer_sizes)
        n_layers = len(self.layer_sizes) - 1
        self._n_curved = n_layers - 2 if linear_hidden else n_layers - 1  # layers not linear
        self.activation = activation
        if not -n_layers <= dropout_layer < n_layers:
            raise CoCoError(
                f"dropout_layer must be a layer of the network, 0 to {n_layers - 1} (or negative "
                f"from the end), but is {dropout_layer}"
            )
        self.dropout, self.dropout_layer = dropout, dropout_layer % n_layers
        self.output, self.normalize = output, normalize
        self.generators = list(generators)
        weights = np.stack([self._draw(generator) for generator in self.generators])
        self._adopt(torch.from_numpy(weights).to(device))

    @property
    def n_models(self) -> int:
        """Number of models K."""
        return self.parameters.shape[0]

    def _draw(self, generator: np.random.Generator) -> np.ndarray:
        """Draw the weights of one model: He's normal initialisation, biases zero."""
        parts = []
        for n_in, n_out in pairwise(self.layer_sizes):
            scale = math.sqrt(2 / n_in)
            parts.append(generator.standard_normal(n_in * n_out, dtype=np.float32) * scale)
            parts.append(np.zeros(n_out, dtype=np.float32))
        return np.concatenate(parts)

    def _adopt(self, parameters: Tensor) -> None:
        """Take a (K, P) buffer as the parameters and make the layers views of it."""
        self.parameters = parameters
        self.gradients = torch.zeros_like(parameters)
        self.buffers = parameters.new_empty(len(parameters), 0)  # nothing else is kept with them
        self.weights, self.biases = self._views(self.parameters)
        self._weight_grads, self._bias_grads = self._views(self.gradients)

    def _views(self, flat: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        weights, biases, start = [], [], 0
        for n_in, n_out in pairwise(self.layer_sizes):
            stop = start + n_in * n_out
            weights.append(flat[:, start:stop].view(-1, n_in, n_out))  # (K, in, out)
            biases.append(flat[:, stop : stop + n_out].unsqueeze(1))  # (K, 1, out)
            start = stop + n_out
        return weights, biases

    def forward(self, x: Tensor, *, training: bool = False) -> Tensor:
        """Return embeddings (K, m, q) of inputs (K, m, d); in training, remember the way."""
        inputs = []
        before = []  # what went into the units of each layer that is not linear
        a = x
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if training and self.dropout and layer == self.dropout_layer:
                self._mask = self._dropout_mask(a)
                a = a * self._mask
            inputs.append(a)
            a = torch.baddbmm(bias, a, weight)
            if layer < self._n_curved:
                before.append(a)
                a = nn.functional.silu(a) if self.activation == "silu" else torch.relu_(a)
        if self.output == "tanh":
            a = torch.tanh_(a)
        embeddings = a
        if self.normalize:
            norms = torch.linalg.vector_norm(a, dim=-1, keepdim=True)
            embeddings = a / torch.threshold_(norms, TINY_NORM, NO_DIRECTION)
            if training:
                self._norms, self._unit = norms, embeddings
        if training:
            self._inputs, self._before, self._raw = inputs, before, a
        return embeddings

    def backward(self, gradient: Tensor) -> None:
        """Write into ``gradients`` what a gradient of the embeddings (K, m, q) means for them."""
        dz = gradient
        if self.normalize:  # d(a/|a|): only what is orthogonal to the embedding counts
            radial = torch.linalg.vecdot(dz, self._unit).unsqueeze(-1)
            dz = torch.addcmul(dz, self._unit, radial, value=-1).div_(self._norms)
        if self.output == "tanh":
            dz = dz * (1 - self._raw.square())
        ones = dz.new_ones(1, 1, 1).expand(dz.shape[0], 1, dz.shape[1])
        for layer in range(len(self.weights) - 1, -1, -1):
            a = self._inputs[layer]
            torch.bmm(a.mT, dz, out=self._weight_grads[layer])
            torch.bmm(ones, dz, out=self._bias_grads[layer])  # a sum over the batch, but faster
            if layer == 0:
                break
            da = torch.bmm(dz, self.weights[layer].mT)
            if self.dropout and layer == self.dropout_layer:
                da.mul_(self._mask)
            if layer > self._n_curved:
                dz = da
            elif self.activation == "silu":
                dz = torch.ops.aten.silu_backward(da, self._before[layer - 1])
            else:
                # A dropped unit has a = 0 and a mask of 0: a > 0 is ReLU's derivative either way.
                dz = torch.ops.aten.threshold_backward(da, a, 0)

    def _dropout_mask(self, a: Tensor) -> Tensor:
        keep = 1 - self.dropout
        draws = np.stack([g.random(tuple(a.shape[1:]), dtype=np.float32) for g in self.generators])
        return torch.from_numpy((draws < keep) / np.float32(keep)).to(a.device)

    @torch.no_grad()
    def start_at_unit_norm(self, x: Tensor) -> None:
        """Scale the last layer so that embeddings of ``x`` (K, n, d) have mean norm one.

        CoCo learns fastest from there: h = 0 is a saddle, and large norms are far away.
        """
        if self.normalize or self.output != "identity":
            return
        norms = torch.linalg.vector_norm(self.forward(x), dim=-1).mean(dim=1)
        scale = norms.clamp_min(TINY_NORM)[:, None, None]
        self.weights[-1].div_(scale)
        self.biases[-1].div_(scale)

    def select(self, models: Sequence[int]) -> None:
        """Keep only these models, in this order."""
        self.generators = [self.generators[k] for k in models]
        self._adopt(self.parameters[list(models)].clone())

    def load(self, parameters: Tensor) -> None:
        """Overwrite the parameters, (K, P)."""
        self.parameters.copy_(parameters)


class ModuleStack:
    """Any ``torch.nn.Module`` behind the same interface: K copies, gradients by autograd.

    Parameters
    ----------
    make : callable
        Gets the seed of a model and returns its module, which maps (m, d) to (m, q).
    seeds : sequence of int
        One per model. What its module draws in training, such as dropout, follows from it alone:
        torch's global generator is neither read nor moved.
    normalize : bool
        Whether embeddings are divided by their norm: training on the sphere.
    device : str or torch.device
        Where the models live.

    Notes
    -----
    Parameters and gradients of a module become views of one row of ``parameters`` and
    ``gradients``, so that the same optimiser serves. Its floating buffers, such as the running
    means of batch normalisation, are views of ``buffers``, which are kept together with the
    parameters; and so are parameters that need no gradient, which no optimiser is to move.
    """

    def __init__(
        self,
        make: Callable[[int], nn.Module],
        seeds: Sequence[int],
        *,
        normalize: bool = False,
        device: str | torch.device = "cpu",
    ) -> None:
        self.normalize = normalize
        self.modules = [make(seed).to(device) for seed in seeds]
        if not any(parameter.numel() for parameter in _trained(self.modules[0])):
            raise CoCoError("the module has no parameters to train")
        self._dice = [_Dice(seed, torch.device(device)) for seed in seeds]
        parameters = [
            nn.utils.parameters_to_vector(_trained(module)).detach() for module in self.modules
        ]
        self._adopt(torch.stack(parameters), torch.stack(list(map(flat_buffers, self.modules))))

    def _adopt(self, parameters: Tensor, buffers: Tensor) -> None:
        self.parameters, self.buffers = parameters, buffers
        self.gradients = torch.zeros_like(parameters)
        for k, module in enumerate(self.modules):
            load_flat(module, self.parameters[k], self.buffers[k])
            for parameter, view in _views(_trained(module), self.gradients[k]):
                parameter.grad = view

    def forward(self, x: Tensor, *, training: bool = False) -> Tensor:
        """Return embeddings (K, m, q) of inputs (K, m, d)."""
        for module in self.modules:
            module.train(training)
        with torch.set_grad_enabled(training):
            outputs = []
            for module, dice, part in zip(self.modules, self._dice, x, strict=True):
                with dice.rolling() if training else nullcontext():
                    outputs.append(module(part))
            if outputs[0].dim() != 2 or len(outputs[0]) != x.shape[1]:
                raise CoCoError(
                    f"the module must map inputs {tuple(x.shape[1:])} to embeddings of shape "
                    f"({x.shape[1]}, embedding_dim), but gave {tuple(outputs[0].shape)}"
                )
            if self.normalize:
                outputs = [_normalized(h) for h in outputs]
        if training:
            self._outputs = outputs
        return torch.stack([output.detach() for output in outputs])

    def backward(self, gradient: Tensor) -> None:
        """Let autograd write the gradients of the parameters."""
        self.gradients.zero_()
        torch.autograd.backward(self._outputs, list(gradient))

    def select(self, models: Sequence[int]) -> None:
        """Keep only these models, in this order."""
        self.modules = [self.modules[k] for k in models]
        self._dice = [self._dice[k] for k in models]
        self._adopt(self.parameters[list(models)].clone(), self.buffers[list(models)].clone())

    def load(self, parameters: Tensor, buffers: Tensor) -> None:
        """Overwrite the parameters, (K, P), and the buffers, (K, B)."""
        self.parameters.copy_(parameters)
        self.buffers.copy_(buffers)


def flat_buffers(module: nn.Module) -> Tensor:
    """Return the floating buffers and untrained parameters of a module as one vector."""
    parts = [buffer.detach().flatten() for buffer in _untrained(module)]
    like = next(_trained(module))
    return torch.cat([like.new_empty(0), *(part.to(like) for part in parts)])


def load_flat(module: nn.Module, parameters: Tensor, buffers: Tensor) -> None:
    """Make parameters of a module, and floating buffers, views of two vectors."""
    for tensors, flat in ((_trained(module), parameters), (_untrained(module), buffers)):
        for tensor, view in _views(tensors, flat):
            tensor.data = view


def _views(tensors: Iterator[Tensor], flat: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Pair tensors with views of a vector that have their shapes, one after the other."""
    start = 0
    for tensor in tensors:
        stop = start + tensor.numel()
        yield tensor, flat[start:stop].view(tensor.shape)
        start = stop


def _trained(module: nn.Module) -> Iterator[nn.Parameter]:
    return (parameter for parameter in module.parameters() if parameter.requires_grad)


def _untrained(module: nn.Module) -> Iterator[Tensor]:
    frozen = (parameter for parameter in module.parameters() if not parameter.requires_grad)
    return (tensor for tensor in chain(module.buffers(), frozen) if tensor.is_floating_point())


def _normalized(h: Tensor) -> Tensor:
    norms = torch.linalg.vector_norm(h, dim=-1, keepdim=True)
    return h / torch.threshold(norms, TINY_NORM, NO_DIRECTION)


class _Dice:
    """The random numbers of one module: torch's generators, lent and put back."""

    def __init__(self, seed: int, device: torch.device) -> None:
        self._devices = [device] if device.type == "cuda" else []
        with torch.random.fork_rng(self._devices):
            # Not the seed itself, whose first numbers the weights are made of.
            torch.manual_seed(int(np.random.SeedSequence([seed, 2]).generate_state(1)[0]))
            self._states = self._read()

    @contextmanager
    def rolling(self) -> Iterator[None]:
        """Draw from here, and go on here the next time."""
        with torch.random.fork_rng(self._devices):
            torch.set_rng_state(self._states[0])
            for device, state in zip(self._devices, self._states[1:], strict=True):
                torch.cuda.set_rng_state(state, device)
            yield
            self._states = self._read()

    def _read(self) -> list[Tensor]:
        cuda = [torch.cuda.get_rng_state(device) for device in self._devices]
        return [torch.get_rng_state(), *cuda]
