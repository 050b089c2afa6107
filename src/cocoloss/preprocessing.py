"""The earlier name of :mod:`cocoloss.columns`: all of its names, in their old place."""

from cocoloss import columns
from cocoloss.columns import *  # noqa: F403

__all__ = columns.__all__
