"""The earlier name of :mod:`cocoloss.tables`: all of its names, in their old place."""

import os
from typing import Any, NamedTuple

from cocoloss import tables
from cocoloss.tables import *  # noqa: F403

__all__ = [*tables.__all__, "Writing", "find_writing"]  # noqa: PLE0604 - strings


class Writing(NamedTuple):
    """How a file is written: ``decimal`` and ``codes`` of a :class:`cocoloss.tables.TableFile`."""

    decimal: str | None = None
    codes: tuple[str, ...] = ()


def find_writing(path: str | os.PathLike[str], **options: Any) -> Writing:
    """Return the decimal mark and the columns of codes of a file; see ``open_table``."""
    table = tables.open_table(path, **options)
    return Writing(table.decimal, table.codes)
