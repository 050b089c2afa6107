"""Keeps the losses out of the graphs of torch.compile, which then holds the network alone."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")


def out_of_graph(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function as it is written, also when a compiler traces its caller.

    ``torch.compiler.disable`` does it, but imports the compiler, two seconds for everybody who
    imports the losses. So it is asked only once a compiler is there.
    """
    uncompiled: list[Callable[P, R]] = []

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if not torch.compiler.is_compiling():
            return function(*args, **kwargs)
        if not uncompiled:
            uncompiled.append(torch.compiler.disable(function))  # type: ignore[no-untyped-call]
        return uncompiled[0](*args, **kwargs)

    return run
