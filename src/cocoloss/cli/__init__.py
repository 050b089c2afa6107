"""The command ``cocoloss``: files in, files out, one clear line when something is wrong."""

from cocoloss.cli.root import main

__all__ = ["main"]
