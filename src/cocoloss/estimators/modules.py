"""Networks of the user's own: fresh ones, each from its seed, of the right shape."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from cocoloss.exceptions import CoCoError


def module_factory(module: Any, n_features: int, width: int) -> Callable[[int], nn.Module]:
    """Return what makes a new network from a seed.

    Parameters
    ----------
    module : torch.nn.Module or callable
        A network, whose copies are drawn anew by ``reset_parameters`` of their parts; or what
        makes one of the number of inputs and of outputs.
    n_features, width : int
        Those numbers.

    Raises
    ------
    CoCoError
        If it is neither; and, when a network is made, if that is none or of another shape.
    """
    if not callable(module):  # which a network is, too
        raise CoCoError(
            f"module must be a torch.nn.Module, or a function that makes one of the number of "
            f"inputs and of outputs, not {module!r:.80}"
        )

    def make(seed: int) -> nn.Module:
        with torch.random.fork_rng([]):
            torch.manual_seed(seed)
            made = (
                _drawn_anew(module) if isinstance(module, nn.Module) else module(n_features, width)
            )
        _check_shape(made, n_features, width)
        return made

    return make


def _drawn_anew(module: nn.Module) -> nn.Module:
    module = copy.deepcopy(module)
    for part in module.modules():
        reset = getattr(part, "reset_parameters", None)
        if callable(reset):
            reset()
    return module


def _check_shape(module: Any, n_features: int, width: int) -> None:
    """Let two rows through; the state of the module stays."""
    if not isinstance(module, nn.Module):
        raise CoCoError(f"module must make a torch.nn.Module, but made {module!r:.80}")
    training = module.training
    try:
        with torch.no_grad():
            outputs = module.eval()(torch.zeros(2, n_features))
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise CoCoError(
            f"module cannot take rows of {n_features} numbers, which is what the preprocessing "
            f"makes of the table: {reason}"
        ) from error
    finally:
        module.train(training)
    if getattr(outputs, "shape", None) != (2, width):
        raise CoCoError(
            f"module makes {list(getattr(outputs, 'shape', []))} of two rows, but [2, {width}] is "
            f"wanted; give it {width} outputs, or set embedding_dim to what it has"
        )
