"""Numbers below the smallest normal one count as zero while networks train.

When units die or a loss is learnt, Adam's running means shrink by a tenth with every step, and
after some eight hundred steps they are subnormal: processors take up to fifty times as long for
those. Beside weights, and beside the 1e-8 in Adam's denominator, they are nothing: the weights
come out bit for bit the same.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def flushed_subnormals() -> Iterator[None]:
    """Let this thread and torch's take subnormal numbers for zero; afterwards all is as before.

    Examples
    --------
    >>> import torch
    >>> from cocoloss.training.subnormals import flushed_subnormals
    >>> tiny = torch.tensor(1e-39)
    >>> with flushed_subnormals():
    ...     bool(tiny * 1 == 0)
    True
    >>> bool(tiny * 1 == 0)
    False
    """
    before = sys.float_info.min / 2 == 0  # torch can set it, but not tell it
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
