"""Keeps autocast out: products in half precision would undo the accumulation in float32."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")


def without_autocast(function: Callable[P, R]) -> Callable[P, R]:
    """Run a formula in full precision, whatever autocast says.

    It wraps the formulas themselves rather than their callers, so that no caller can forget it.
    The first argument tells the device.
    """

    @wraps(function)
    def in_full_precision(*args: P.args, **kwargs: P.kwargs) -> R:
        device = args[0].device.type  # type: ignore[attr-defined]
        if not torch.is_autocast_enabled(device):
            return function(*args, **kwargs)
        with torch.autocast(device, enabled=False):
            return function(*args, **kwargs)

    return in_full_precision
