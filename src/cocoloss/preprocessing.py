"""The earlier name of :mod:`cocoloss.columns`: all of its names, in their old place."""

from cocoloss.columns import *  # noqa: F403
