"""Delimited text through pandas' C parser, whole or in chunks.

Left alone, the parser lets one column be numbers in one chunk and text in the next.
"""

import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any

import pandas as pd

from cocoloss.tables.commas import POINT, with_comma_numbers
from cocoloss.tables.delimited import (
    Delimited,
    check_has_rows,
    check_short_rows,
    explained,
    has_gaps_at_end,
)
from cocoloss.tables.steady import TEXT, kinds_of, steady, without_objects


def read_delimited(table: Delimited) -> Any:
    """Return a delimited file as a data frame."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.DtypeWarning)
            frame = _read(table, low_memory=True)
    except pd.errors.DtypeWarning:
        # A column changed its type on the way; judge each as a whole, for more memory and time.
        frame = _read(table, low_memory=False)
    check_has_rows(table, frame)
    check_short_rows(table, len(frame), gaps_at_end=has_gaps_at_end(frame))
    return without_objects(_with_thousands(table, frame))


def iter_delimited(
    table: Delimited,
    rows: int,
    *,
    columns: Collection[str] | None = None,
    lenient: Collection[str] = (),
) -> Iterator[Any]:
    """Give a delimited file in chunks of so many rows, with one type per column throughout.

    With ``columns`` no others are given, whatever they hold. A chunk in which a lenient column
    holds text among numbers has it as text.
    """
    wanted = list(dict.fromkeys(columns or ()))
    # The last column is always read: a gap in it tells of rows that are cut short.
    others = {} if columns is None else {"usecols": [*wanted, table.dialect.names[-1]]}
    chunks = _chunks(table, rows, others)
    first = next(chunks)
    check_has_rows(table, first)
    kinds = kinds_of(_with_thousands(table, first if columns is None else first[wanted]))
    goes_on = len(first) == rows
    # A column that is empty so far may hold anything later: text holds anything.
    empty = first.columns[first.isna().all()] if goes_on else []
    kinds |= dict.fromkeys((name for name in empty if name in kinds), TEXT)
    texts = [name for name, kind in kinds.items() if kind == TEXT]
    if goes_on and not set(texts) <= set(table.text):
        # What was text is to stay text, so the file is opened again and told so.
        chunks = _chunks(replace(table, text=texts), rows, others)
    else:
        chunks = chain([first], chunks)
    del first
    n_read = 0
    gaps_at_end = False
    for chunk in chunks:
        gaps_at_end = gaps_at_end or has_gaps_at_end(chunk)
        given = chunk if columns is None else chunk[wanted]
        yield steady(given, kinds, n_read, table.found.path, table.dialect.decimal, lenient)
        n_read += len(chunk)
    check_short_rows(table, n_read, gaps_at_end=gaps_at_end)


def iter_verbatim(table: Delimited, columns: Collection[str], rows: int) -> Iterator[Any]:
    """Give some columns of a delimited file in chunks, as text to the letter: no cell is a gap."""
    options = {"usecols": list(columns), "dtype": str, "na_values": []}
    for chunk in _chunks(table, rows, options):
        yield chunk[list(columns)]


def _with_thousands(table: Delimited, frame: Any) -> Any:
    if table.dialect.decimal == POINT:
        return frame
    return with_comma_numbers(frame, table.text, warn=table.doubt_decimal)


def _read(table: Delimited, *, low_memory: bool) -> Any:
    with table.open() as source, explained(table):
        return pd.read_csv(source, low_memory=low_memory, **table.options())


def _chunks(
    table: Delimited, rows: int, others: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[Any]:
    options = {**table.options(), **others}
    with (
        table.open() as source,
        explained(table),
        # Not in pieces of a chunk, which would have types of their own.
        pd.read_csv(source, chunksize=rows, low_memory=False, **options) as reader,
    ):
        yield from reader
