"""Columns as they stand in a file, to be copied; what they mean is not this file's business."""

import os
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
from pandas.api import types

from cocoloss._checks import check_integer
from cocoloss.tables.arff import read_arff
from cocoloss.tables.delimited import check_text_columns, open_delimited
from cocoloss.tables.formats import ARFF, PARQUET, find_format
from cocoloss.tables.parquet import iter_parquet, n_parquet_columns
from cocoloss.tables.parsing import iter_verbatim
from cocoloss.tables.reading import bounded

EXACT = 2**53  # below it, float64 has every whole number


def iter_columns(
    path: str | os.PathLike[str],
    columns: Collection[str],
    *,
    rows: int = 50_000,
    separator: str | None = None,
    encoding: str | None = None,
    header: bool | str = "auto",
    decimal: str | None = None,
) -> Iterator[Any]:
    r"""Give some columns as they stand in a file, to be copied, in chunks of the same rows.

    In a delimited file every cell is text to the letter: ``007`` and ``NA`` and ``43`` stay what
    they are. Parquet keeps its types; in ARFF, whole numbers have no point.

    Parameters
    ----------
    path : path
        The file.
    columns : collection of str
        Which columns, in the order wanted.
    rows : int
        Most rows in a chunk, as in :func:`iter_tables`.
    separator, encoding, header, decimal
        As in :func:`read_table`.

    Yields
    ------
    pandas.DataFrame
        At least one row each.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from cocoloss.tables import iter_columns
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "table.csv"
    ...     _ = path.write_text("id,size\n007,1\nNA,2\n")
    ...     [chunk["id"].tolist() for chunk in iter_columns(path, ["id"])]
    [['007', 'NA']]
    """
    rows = check_integer(rows, "rows", minimum=1)
    found = find_format(path, encoding)
    if found.format == PARQUET:
        chunks = iter_parquet(found, bounded(rows, n_parquet_columns(found)), steadily=False)
        return (chunk[check_text_columns(path, columns, chunk.columns)] for chunk in chunks)
    if found.format == ARFF:
        frame = read_arff(found, encoding)
        frame = frame[check_text_columns(path, columns, frame.columns)].apply(_without_points)
        return (frame[start : start + rows] for start in range(0, len(frame), rows))
    table = open_delimited(
        found,
        separator=separator,
        encoding=encoding,
        header=header,
        decimal=decimal,
        text=columns,
        missing=(),
    )
    return iter_verbatim(table, columns, bounded(rows, len(table.dialect.names)))


def _without_points(column: Any) -> Any:
    """Return a column of whole numbers as such, and any other as it is."""
    if not types.is_float_dtype(column.dtype):
        return column
    present = column.dropna()
    is_whole = np.isfinite(present).all() and (present == present.round()).all()
    return column.astype("Int64") if is_whole and (present.abs() < EXACT).all() else column
