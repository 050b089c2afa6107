"""The earlier name of :mod:`cocoloss.tables`: all of its names, in their old place."""

from cocoloss.tables import *  # noqa: F403
