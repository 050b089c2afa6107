"""What every loss is called with and gives back; no formula lives here.

Types and shapes of a batch are known without looking at the numbers. Those are looked at once,
because on a GPU every look waits for all that was asked of it before.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from functools import wraps
from typing import Any, NamedTuple, NoReturn, ParamSpec, TypedDict, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, distributed, nn

from cocoloss._checks import check_n_classes, check_option, check_truth
from cocoloss.exceptions import CoCoError

REDUCTIONS = ("mean", "sum")
HALF = (torch.float16, torch.bfloat16)
FLOATS = (*HALF, torch.float32, torch.float64)
INTEGERS = (
    *(torch.int64, torch.int32, torch.int16, torch.int8),
    *(torch.uint64, torch.uint32, torch.uint16, torch.uint8),
)

LOOKS = (  # what a compiler says who was asked for a whole graph
    "the loss looks at its labels and weights, which breaks the graph; leave fullgraph=True out, "
    "or build the loss with validate=False to have it in the graph"
)
SUM_TOLERANCE = 2.0**-8  # of probabilities: room for a softmax in bfloat16
SHOWN = 6  # numbers of a row that a message shows

Labels = Tensor | ArrayLike | Sequence[int]

P = ParamSpec("P")
R = TypeVar("R")


class Batch(NamedTuple):
    """A checked batch. K is the number of models: 1 if the embeddings came without that axis.

    A loss may ask for such a batch as it came, (n, q), (n,) and (n,).
    """

    embeddings: Tensor  # (K, n, q) in float32 or float64
    labels: Tensor  # (K, n) int64; soft labels (K, n, C) or points (K, n, p), floating-point
    weight: Tensor | None  # (K, n) in the dtype of the embeddings


class LossOptions(TypedDict, total=False):
    """Arguments that every loss takes; see :class:`EmbeddingLoss`."""

    reduction: str
    process_group: Any
    validate: bool


class EmbeddingLoss(nn.Module, ABC):
    """The contract of every loss: embeddings and labels in, a value and a gradient out.

    Parameters
    ----------
    n_classes : int
        Number of classes C; labels are 0, ..., C - 1.
    reduction : {"mean", "sum"}
        Whether the loss is normalised by the size of the batch.
    process_group : torch.distributed.ProcessGroup or "world", optional
        If given, the loss is the loss of the global batch over all ranks of the group, and the
        gradients that ``DistributedDataParallel`` averages are the gradients of that loss.
        "world" is resolved at the first call, so it may be given before
        ``init_process_group``.
    validate : bool
        Whether every batch is looked at: labels from 0 to C - 1, weights finite and not negative.
        On a GPU the look waits for all that was asked of it before, so it is worth switching off
        in a loop whose batches are known to be sound. A wrong label then gives a wrong number or
        an error of the device. Types and shapes are checked in any case.

    Notes
    -----
    Embeddings may carry a leading model axis, (K, n, q): K networks that train in lockstep, each
    with its own batch. Labels and weights are then (K, n), or (n,) if the models share them, and
    values are (K,).
    """

    embedding_dim: int | None = None  # columns that the embeddings must have, if that is fixed

    n_classes: Any  # int; None where targets are no classes

    def __init__(
        self,
        n_classes: int | None,
        *,
        reduction: str = "mean",
        process_group: Any = None,
        validate: bool = True,
    ) -> None:
        super().__init__()
        self.n_classes = None if n_classes is None else check_n_classes(n_classes)
        self.reduction = check_option(reduction, "reduction", REDUCTIONS)
        is_group = distributed.is_available() and isinstance(
            process_group, distributed.ProcessGroup
        )
        if not is_group and process_group not in (None, "world"):
            raise CoCoError(
                f"process_group must be a group of torch.distributed, 'world' or None, not "
                f"{process_group!r}"
            )
        self.process_group = process_group
        self.validate = check_truth(validate, "validate")
        self._constants: dict[Hashable, Tensor] = {}

    @abstractmethod
    def forward(
        self, embeddings: Tensor, labels: Labels, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Return the loss of a batch, ready for ``backward``.

        Parameters
        ----------
        embeddings : Tensor of shape (n, q) or (K, n, q)
            What the network gave.
        labels : integer Tensor of shape (n,) or (K, n)
            Classes, 0 to C - 1.
        sample_weight : Tensor of shape (n,) or (K, n), optional
            Non-negative weights.

        Returns
        -------
        Tensor of shape () or (K,)
        """

    def value_and_grad(
        self, embeddings: Tensor, labels: Labels, sample_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the loss and its gradient with respect to the embeddings, without autograd.

        Parameters are those of :meth:`forward`. With a process group the gradient is the plain
        derivative of the global loss; :meth:`forward` multiplies it by the number of ranks,
        because ``DistributedDataParallel`` divides by it.

        Returns
        -------
        value : Tensor of shape () or (K,)
        gradient : Tensor of the shape and dtype of the embeddings
        """
        with torch.no_grad():
            value, gradient = self.evaluate(self.check_batch(embeddings, labels, sample_weight))
        return drop_model_axis(value, embeddings), gradient.view(embeddings.shape).to(embeddings)

    @abstractmethod
    def evaluate(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return values (K,) and gradients (K, n, q) of a batch that is known to be sound."""

    @abstractmethod
    def n_terms(self, batch_size: int) -> int:
        """Return how many terms the loss sums over a batch: the paper's measure of effort."""

    def __getstate__(self) -> dict[str, Any]:
        # The tensors made of constants are made again: a pickle need not carry them.
        return self.__dict__ | {"_constants": {}}

    def extra_repr(self) -> str:
        """Say what ``print(loss)`` shows."""
        what = "targets='points'" if self.n_classes is None else f"n_classes={self.n_classes}"
        return f"{what}, reduction={self.reduction!r}"

    def resolved_group(self) -> Any:
        """Return the process group, or None if the loss is local."""
        if self.process_group is None:
            return None
        if not (distributed.is_available() and distributed.is_initialized()):
            raise CoCoError(
                "the loss was given a process_group, but torch.distributed is not initialised; "
                "call torch.distributed.init_process_group first, or leave process_group out"
            )
        group = distributed.group.WORLD if self.process_group == "world" else self.process_group
        if distributed.get_rank(group) < 0:
            raise CoCoError(
                "this rank is not in the process_group of the loss; build the loss with the group "
                "that this rank trains in"
            )
        return group

    def constant(
        self,
        name: Hashable,
        make: Callable[[], NDArray[np.float64]],
        dtype: torch.dtype,
        device: torch.device,
    ) -> Tensor:
        """Return a constant of the loss in the dtype and on the device of the embeddings.

        Kept in float64 and turned into a tensor once for each dtype and device, so that float64
        embeddings get all digits and ``loss.to(...)`` has nothing to move.
        """
        key = (name, dtype, device)
        tensor = self._constants.get(key)
        if tensor is None:
            with torch.inference_mode(mode=False):  # it will meet batches that need gradients
                tensor = torch.tensor(make(), dtype=dtype, device=device)
            self._constants[key] = tensor
        return tensor

    def read_targets(self, labels: Labels) -> Tensor:
        """Return what came with the embeddings as a tensor: integers, or soft labels."""
        y = as_tensor(labels, "labels")
        if y.is_floating_point() and y.dim() >= 2:
            return read_soft_labels(y, self.n_classes)
        return read_labels(y, self.n_classes)

    def check_batch(
        self,
        embeddings: Tensor,
        labels: Labels,
        sample_weight: Tensor | None,
        *,
        validate: bool | None = None,
        model_axis: bool = True,
    ) -> Batch:
        """Return the batch in the form that the formulas take, or say what does not fit.

        ``validate`` is whether the values are looked at, by default what the loss was made with.
        With ``model_axis=False`` a batch that came without that axis stays without it.
        """
        h = _check_embeddings(embeddings, self.embedding_dim)
        if model_axis and h.dim() == 2:
            h = h.unsqueeze(0)
        y = self.read_targets(labels)
        w = None if sample_weight is None else read_weight(sample_weight, h.dtype)
        if (self.validate if validate is None else validate) and not is_traced():
            check_values(y, w, self.n_classes, came=sample_weight)
        shape = h.shape[:-1]  # (K, n), or (n,)
        if y.is_floating_point():
            y = _fit_coordinates(y.to(h.device), shape, self.n_classes)
        else:
            y = _fit(y.to(h.device), shape, "labels")
        return Batch(h, y, None if w is None else _fit(w.to(h.device), shape, "sample_weight"))


def drop_model_axis(value: Tensor, embeddings: Tensor) -> Tensor:
    """Return a value per model as the caller expects it: (K,), or () if there was no such axis."""
    return value[0] if embeddings.dim() == 2 and value.dim() else value


def world_size(group: Any) -> int:
    """Return the number of ranks that share a loss: 1 without a group."""
    return 1 if group is None else distributed.get_world_size(group)


def out_of_graph(function: Callable[P, R]) -> Callable[P, R]:
    """Keep a loss that looks at its labels out of the graphs of torch.compile.

    They then hold the network alone. With ``validate=False`` nothing breaks the graph.
    ``torch.compiler.disable`` does it, but imports the compiler, two seconds for everybody who
    imports the losses. So it is asked only once a compiler is there.
    """
    uncompiled: list[Callable[P, R]] = []

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        loss: Any = args[0]
        if not torch.compiler.is_compiling() or not loss.validate:
            return function(*args, **kwargs)
        if torch.__version__ >= "2.7":  # before, a break had no words
            torch._dynamo.graph_break(msg=LOOKS)  # noqa: SLF001
        if not uncompiled:
            uncompiled.append(torch.compiler.disable(function))  # type: ignore[no-untyped-call]
        return uncompiled[0](*args, **kwargs)

    return run


def constant_in_graphs(function: Callable[P, R]) -> Callable[P, R]:
    """Let a compiler call a function when it traces, and keep what it gave.

    What ``torch.compiler.assume_constant_result`` does, without importing the compiler.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]  # noqa: SLF001
    return function


def is_traced() -> bool:
    """Return whether a transform of torch.func or a compiler looks on, which knows no numbers."""
    transformed: bool = torch._C._are_functorch_transforms_active()  # noqa: SLF001 - none is public
    return transformed or torch.compiler.is_compiling()


def _check_embeddings(embeddings: Tensor, embedding_dim: int | None) -> Tensor:
    """Return embeddings in float32 at least: half precision only stores."""
    if not isinstance(embeddings, Tensor):
        raise CoCoError(
            f"embeddings must be a torch tensor, not {type(embeddings).__name__}; "
            f"use torch.as_tensor(embeddings)"
        )
    _refuse_meta(embeddings, "embeddings")
    if embeddings.layout is not torch.strided:
        raise CoCoError(f"embeddings must be dense, not {embeddings.layout}; use .to_dense()")
    if embeddings.dim() not in (2, 3):
        raise CoCoError(
            f"embeddings must have shape (n_samples, embedding_dim), or with a leading model axis "
            f"(n_models, n_samples, embedding_dim), but have shape {tuple(embeddings.shape)}"
        )
    if embeddings.dim() == 3 and embeddings.shape[0] == 0:
        raise CoCoError("embeddings have a model axis of length 0; there must be a model")
    if embeddings.dtype not in FLOATS:  # those of 8 bits only store: nothing is computed in them
        raise CoCoError(
            f"embeddings must be real floating-point numbers, not {embeddings.dtype}; use .float()"
        )
    q = embeddings.shape[-1]
    if q == 0 or (embedding_dim is not None and q != embedding_dim):
        expected = "at least 1" if embedding_dim is None else str(embedding_dim)
        raise CoCoError(f"embedding_dim must be {expected}, but the embeddings have {q} columns")
    return embeddings.float() if embeddings.dtype in HALF else embeddings


def read_labels(labels: Labels, n_classes: int) -> Tensor:
    """Return labels as int64, or say why they are no integers."""
    y = as_tensor(labels, "labels")
    if y.dtype not in INTEGERS and y.numel():
        raise CoCoError(
            f"labels must be integers from 0 to {n_classes - 1}, not {y.dtype}; "
            f"use labels.long() if they are whole numbers, or scikit-learn's LabelEncoder"
        )
    return y.long()


def read_soft_labels(labels: Tensor, n_classes: int) -> Tensor:
    """Return probabilities of classes, (n, C) or (K, n, C), or say why they are none."""
    if labels.requires_grad:
        raise CoCoError("soft labels are constants here, but require a gradient; detach them")
    if labels.shape[-1] != n_classes:
        raise CoCoError(
            f"labels must be integers from 0 to {n_classes - 1}, or soft: probabilities of shape "
            f"(n_samples, {n_classes}), not {labels.dtype} of shape {tuple(labels.shape)}"
        )
    return labels.float() if labels.dtype in HALF else labels


def read_points(points: Labels) -> Tensor:
    """Return target points, (n, p) or (K, n, p), or say why they are none."""
    v = as_tensor(points, "target points")
    if v.requires_grad:
        raise CoCoError("target points are constants here, but require a gradient; detach them")
    if v.is_complex() or v.dtype == torch.bool:
        raise CoCoError(f"target points must be real numbers, not {v.dtype}")
    if v.dim() not in (2, 3) or v.shape[-1] == 0:
        raise CoCoError(
            f"target points must have shape (n_samples, n_coordinates), but have shape "
            f"{tuple(v.shape)}; numbers are points of one coordinate: y[:, None]"
        )
    if v.dtype in (torch.float32, torch.float64):
        return v
    return v.float() if v.device.type == "mps" else v.double()  # which has no float64 there


def read_weight(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """Return sample weights in the dtype of the embeddings, or say why they are no constants."""
    w = as_tensor(weight, "sample_weight")
    if w.requires_grad:
        raise CoCoError("sample_weight is a constant here, but requires a gradient; detach it")
    if w.is_complex():
        raise CoCoError(f"sample_weight must be real numbers, not {w.dtype}")
    return w.to(dtype)


def check_values(y: Tensor, w: Tensor | None, n_classes: int | None, *, came: object) -> None:
    """Refuse labels that are no classes and weights that are negative or not finite.

    One look at the smallest and the largest of both; what exactly is wrong is found out afterwards.
    """
    if not y.numel():
        return
    if y.is_floating_point():
        _check_coordinates(y, w, n_classes, came=came)
        return
    assert n_classes is not None
    extremes = torch.aminmax(y)
    if w is None or not w.numel():
        low, high = _numbers(*extremes)
        lightest = heaviest = 0.0
    else:  # NaN is passed on
        both = [*(extreme.to(w) for extreme in extremes), *torch.aminmax(w)]
        low, high, lightest, heaviest = _numbers(*both)
    if low < 0 or high >= n_classes:
        low, high = (int(bound) for bound in extremes)
        raise CoCoError(
            f"labels must be from 0 to {n_classes - 1} for {n_classes} classes, "
            f"but go from {low} to {high}; encode them as 0, ..., C - 1"
        )
    if not (lightest >= 0 and heaviest < float("inf")):
        assert w is not None
        _refuse_weight(w, came)


def _check_coordinates(y: Tensor, w: Tensor | None, n_classes: int | None, *, came: object) -> None:
    """Do the same for points, which must be finite, and for soft labels: probabilities."""
    totals = y if n_classes is None else y.sum(-1)
    extremes = [*torch.aminmax(y), *torch.aminmax(totals)]
    if w is not None and w.numel():
        extremes += torch.aminmax(w)
    low, high, least, most, *of_weight = _numbers(*(extreme.to(y.dtype) for extreme in extremes))
    if n_classes is None:
        if not (low > -float("inf") and high < float("inf")):
            *model, row, _ = torch.nonzero(~y.isfinite())[0].tolist()
            raise CoCoError(
                f"target points must be finite, but row {row}{_of_model(model)} has "
                f"{y[(*model, row)].tolist()[:SHOWN]}; fill or leave out rows without a target"
            )
    elif not (low >= 0 and abs(least - 1) < SUM_TOLERANCE and abs(most - 1) < SUM_TOLERANCE):
        wrong = ~((y >= 0).all(-1) & ((totals - 1).abs() < SUM_TOLERANCE))  # NaN is wrong, too
        *model, row = torch.nonzero(wrong)[0].tolist()
        place = (*model, row)
        raise CoCoError(
            f"soft labels must be probabilities, not negative and with a sum of 1 in each row, but "
            f"row {row}{_of_model(model)} has {y[place].tolist()[:SHOWN]} with sum "
            f"{totals[place].item():.6g}; divide counts by their sum, use softmax for logits, and "
            f"CoCoLoss(targets='points') for anything else"
        )
    if of_weight and not (of_weight[0] >= 0 and of_weight[1] < float("inf")):
        assert w is not None
        _refuse_weight(w, came)


def _of_model(model: list[int]) -> str:
    return f" of model {model[0]}" if model else ""


def _refuse_weight(w: Tensor, came: object) -> NoReturn:
    place = torch.nonzero(~((w >= 0) & w.isfinite()))[0].tolist()  # (i,), or (k, i) of model k
    value = as_tensor(came, "sample_weight")[tuple(place)].item()
    too_large = f", which is too large for {w.dtype}" if 0 <= value < float("inf") else ""
    raise CoCoError(
        f"sample_weight must be finite and not negative, but row {place[-1]} has {value}"
        + too_large
        + (f" in model {place[0]}" if len(place) > 1 and len(w) > 1 else "")
    )


def _numbers(*scalars: Tensor) -> list[float]:
    """Return the numbers in tensors of one device: from another than the CPU, all at once."""
    if scalars[0].device.type == "cpu":
        return [scalar.item() for scalar in scalars]
    numbers: list[float] = torch.stack(scalars).tolist()
    return numbers


def _refuse_meta(tensor: Tensor, name: str) -> None:
    """Refuse a tensor that has a shape alone, as of a model that was made without memory."""
    if tensor.is_meta:
        raise CoCoError(
            f"{name} are on the device 'meta', which holds no numbers; move the model to a real "
            f"device, by model.to_empty(device='cpu') and its weights"
        )


def as_tensor(values: object, name: str) -> Tensor:
    """Return labels or weights as a tensor, from whatever numpy can read."""
    if isinstance(values, Tensor):
        _refuse_meta(values, name)
        return values
    try:
        array = np.asarray(values)  # of a pandas Series the values, whatever its index
        if array.dtype == object:  # whole numbers in boxes; anything else stays, and is refused
            array = np.asarray(array.tolist())
        # A copy, because torch takes neither negative strides nor foreign bytes, and warns of
        # arrays that are read-only.
        return torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))
    except (TypeError, ValueError, RuntimeError) as error:
        raise CoCoError(
            f"{name} must be numbers in a tensor, an array or a list: {error}"
        ) from error


def check_class_order(values: object, name: str) -> None:
    """Refuse a pandas Series of values per class that has the classes in another order.

    ``value_counts`` sorts by frequency, and its order is lost with the index.
    """
    index = getattr(values, "index", None)
    if index is None or callable(index):  # of a list it is a method
        return
    classes = np.asarray(index)
    if classes.ndim != 1 or classes.dtype.kind not in "biuf":
        return
    in_order = np.arange(len(classes))
    if np.array_equal(np.sort(classes), in_order) and not np.array_equal(classes, in_order):
        raise CoCoError(
            f"{name} is a series with the classes in the order {classes[:5].tolist()}"
            f"{'...' if len(classes) > 5 else ''}, but they are taken in the order 0, ..., C - 1; "
            f"use {name}.sort_index()"
        )


def _fit(values: Tensor, shape: torch.Size, name: str) -> Tensor:
    """Return per-sample values as (K, n), or (n,) if that is the shape of the batch."""
    if values.shape == shape:
        return values
    if values.shape == shape[-1:]:  # which the models share
        return values.expand(shape)
    if values.shape == (1, *shape):
        return values[0]
    raise CoCoError(
        f"{name} must have one value per sample, shape {tuple(shape[-1:])}"
        + (f" or {tuple(shape)}" if shape[:-1].numel() != 1 else "")
        + f", but has shape {tuple(values.shape)}"
    )


def _fit_coordinates(values: Tensor, shape: torch.Size, n_classes: int | None) -> Tensor:
    """Return soft labels or points as (K, n, p), or (n, p) if the batch has no model axis."""
    if values.shape[:-1] == shape:
        return values
    if values.shape[:-1] == shape[-1:]:  # which the models share
        return values.expand(*shape, -1)
    if values.shape[:-1] == (1, *shape):
        return values[0]
    name, last = ("target points", "p") if n_classes is None else ("soft labels", str(n_classes))
    n = shape[-1]
    raise CoCoError(
        f"{name} must have one row per sample, shape ({n}, {last})"
        + (f" or ({shape[0]}, {n}, {last})" if shape[:-1].numel() != 1 else "")
        + f", but have shape {tuple(values.shape)}"
    )
