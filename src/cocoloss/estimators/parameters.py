"""The parameters of a classifier, checked before anything is read or trained."""

from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from cocoloss._checks import check_integer, check_option
from cocoloss.estimators.objective import READOUT, Objective
from cocoloss.exceptions import CoCoError
from cocoloss.heads import HEADS, make_head

DECAYS = ("cosine", "constant")
OUTPUTS = ("identity", "tanh")
DEVICES = "'cpu', 'cuda', 'cuda:1' or 'mps'"


def check_arguments(estimator: Any) -> None:
    """Refuse what no fit could use, and say what was expected.

    Raises
    ------
    CoCoError
        For the first argument that is wrong.
    """
    objective = estimator.make_objective()
    if not isinstance(objective, Objective):
        raise CoCoError(
            f"objective must be a value of cocoloss.estimators.objective, such as CoCo(), not "
            f"{objective!r:.80}"
        )
    for name in ("max_iter", "batch_size", "n_iter_no_change", "n_members"):
        check_integer(getattr(estimator, name), name, minimum=1)
    for size in np.atleast_1d(np.asarray(estimator.hidden_layer_sizes, dtype=object)).tolist():
        check_integer(size, "each of hidden_layer_sizes", minimum=1)
    if not is_auto(estimator.embedding_dim):
        if isinstance(estimator.embedding_dim, str):
            raise CoCoError(
                f"embedding_dim must be 'auto' or a whole number, not {estimator.embedding_dim!r}"
            )
        check_integer(estimator.embedding_dim, "embedding_dim", minimum=1)
    check_option(estimator.learning_rate, "learning_rate", DECAYS)
    check_option(estimator.output, "output", OUTPUTS)
    _check_number(estimator, "learning_rate_init", above=0)
    _check_number(estimator, "weight_decay", least=0)
    _check_number(estimator, "dropout", least=0, below=1)
    _check_dropout_layer(estimator.dropout_layer)
    _check_number(estimator, "validation_fraction", above=0, below=1)
    if estimator.clip_norm is not None:
        _check_number(estimator, "clip_norm", above=0, otherwise=", or None for no clipping")
    if estimator.module is not None:
        _check_module_options(estimator)
    for name in ("early_stopping", "warm_start"):
        _check_truth(estimator, name)
    if not is_auto(estimator.normalize):
        _check_truth(estimator, "normalize", otherwise=", or 'auto'")
        _check_not_on_sphere(estimator, objective)
    _check_callbacks(estimator.callbacks)
    _check_class_weight(estimator.class_weight)
    _check_head(estimator, objective)


def is_named(value: Any, name: str) -> bool:
    """Return whether a value is this very text; arrays and estimators are compared to none."""
    return isinstance(value, str) and value == name


def is_auto(value: Any) -> bool:
    """Return whether a value is left to us."""
    return is_named(value, "auto")


def check_device(device: Any) -> None:
    """Refuse a device that torch does not know or that is not there."""
    import torch  # noqa: PLC0415 - only to train

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise CoCoError(
            f"device {device!r} cannot be used here; it may be {DEVICES} where there is one"
        ) from error


def _check_number(
    estimator: Any,
    name: str,
    *,
    least: float = -np.inf,
    above: float = -np.inf,
    below: float = np.inf,
    otherwise: str = "",
) -> None:
    value = getattr(estimator, name)
    is_number = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
    if not is_number or not (least <= value < below and value > above):
        bounds = [
            f"at least {least:g}" if least > -np.inf else "",
            f"above {above:g}" if above > -np.inf else "",
            f"below {below:g}" if below < np.inf else "",
        ]
        wanted = " and ".join(filter(None, bounds))
        raise CoCoError(f"{name} must be a number {wanted}{otherwise}, not {value!r}")


def _check_truth(estimator: Any, name: str, otherwise: str = "") -> None:
    value = getattr(estimator, name)
    if not isinstance(value, (bool, np.bool_)):
        raise CoCoError(f"{name} must be True or False{otherwise}, not {value!r}")


def _check_dropout_layer(layer: Any) -> None:
    # Whether there is such a layer, the network will say.
    if isinstance(layer, bool) or not isinstance(layer, Integral):
        raise CoCoError(
            f"dropout_layer must be a whole number, 0 for the inputs or -1 for what the output "
            f"layer gets, not {layer!r}"
        )


def _check_not_on_sphere(estimator: Any, objective: Objective) -> None:
    if estimator.normalize and objective.logits:
        raise CoCoError(
            f"normalize=True is not for {type(estimator).__name__}: its outputs are logits, which "
            f"a norm of one would keep from ever being sure; leave it at 'auto'"
        )


def _check_head(estimator: Any, objective: Objective) -> None:
    """Refuse a misspelt head before the training."""
    head, names = estimator.head, ["auto", *HEADS]
    if objective.head == READOUT:
        names.insert(1, READOUT)
    elif is_named(head, READOUT):
        raise CoCoError(
            f"head='readout' is not for {type(estimator).__name__}, which has no prototypes"
        )
    if isinstance(head, str) and head in names:
        return
    try:
        make_head(head)
    except CoCoError as error:
        raise CoCoError(
            f"head must be one of {', '.join(map(repr, names))} or an instance of a scikit-learn "
            f"classifier, not {head!r}"
        ) from error


def _check_module_options(estimator: Any) -> None:
    """Refuse what a network of the user's own would not heed."""
    if estimator.output != "identity" or estimator.dropout:
        raise CoCoError(
            f"output={estimator.output!r} and dropout={estimator.dropout!r} are options of the "
            f"multilayer perceptron; put what you want of them into your module"
        )


def _check_callbacks(callbacks: Any) -> None:
    if callbacks is None:
        return
    readable_again = isinstance(callbacks, Iterable) and not isinstance(callbacks, Iterator)
    if not readable_again or not all(callable(each) for each in callbacks):
        raise CoCoError(
            f"callbacks must be a list of functions that get an Epoch, not {callbacks!r:.80}"
        )


def _check_class_weight(class_weight: Any) -> None:
    if class_weight is None or is_named(class_weight, "balanced"):
        return
    if not isinstance(class_weight, Mapping):
        raise CoCoError(
            f"class_weight must be None, 'balanced' or a dict of class to weight, not "
            f"{class_weight!r:.80}"
        )
    for label, weight in class_weight.items():
        if not isinstance(weight, Real) or not 0 < float(weight) < np.inf:
            raise CoCoError(
                f"class_weight must be positive, but class {label!r} has {weight!r}; leave the "
                f"rows of a class out that is not to be learnt"
            )
