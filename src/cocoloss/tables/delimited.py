"""Delimited text through pandas' C parser, all at once or in chunks.

Left alone, the parser lets one column be numbers in one chunk and text in the next, fills rows that
are cut short, and takes 7.730 beside decimal commas for a fraction.
"""

import csv
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from pandas.api import types

from cocoloss._checks import check_integer, did_you_mean, listed
from cocoloss.exceptions import CoCoError
from cocoloss.number_text import (
    COMMA,
    DOT,
    WITH_COMMA,
    are_codes,
    find_decimal,
    has_decimal,
    is_gap_mark,
    parse_numbers,
)
from cocoloss.tables.dialect import WHITESPACE, Dialect, check_widths, iter_rows
from cocoloss.tables.formats import BLOCK, TextSource

MOST_CELLS = 1 << 22  # in a chunk: 32 MB of numbers, however wide the table
EXACT = 2**53  # below it, float64 has every integer

NUMBER = "number"
BOOLEAN = "boolean"
TEXT = "text"
OTHER = "other"  # dates and categories: formats that have them keep them the same throughout
TRUTHS = {"true": True, "false": False}


class ThousandsWarning(UserWarning):
    """Columns in which points were taken for thousands, because the file has decimal commas.

    Attributes
    ----------
    what : str
        Which columns.
    about : str
        "thousands".
    """

    about = "thousands"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}. Say decimal='.' if they are decimal points")
        self.what = what


@dataclass(frozen=True)
class DelimitedFile:
    """A delimited file and how to read it; the contract is :class:`cocoloss.tables.TableFile`."""

    path: Path
    encoding: str | None
    dialect: Dialect
    missing: tuple[str, ...]
    text: tuple[str, ...] = ()
    given_decimal: str | None = None

    def __post_init__(self) -> None:
        check_columns(self.path, self.text, self.column_names)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns."""
        return self.dialect.names

    @cached_property
    def decimal(self) -> str | None:
        """The decimal mark that was given, or on which the columns that are not text agree."""
        if self.given_decimal is not None:
            return self.given_decimal
        columns = (cells for _, cells in self._columns())
        return find_decimal(columns, has_commas=self.dialect.may_have_commas)

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """Columns of digits of which some begin with 0."""
        return tuple(name for name, cells in self._columns() if are_codes(cells))

    def with_options(
        self, *, text: Collection[str] | None = None, decimal: str | None = None
    ) -> Self:
        """Return the same file, to be read otherwise."""
        return replace(
            self,
            text=self.text if text is None else tuple(text),
            given_decimal=self.given_decimal if decimal is None else check_decimal(decimal),
        )

    def read(self) -> Any:
        """Return all rows."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.DtypeWarning)
                frame = self._parse(low_memory=True)
        except pd.errors.DtypeWarning:
            # A column changed its type on the way: read again, a column at once, for more memory.
            frame = self._parse(low_memory=False)
        self._check_has_rows(frame)
        self._check_short_rows(len(frame), gaps_at_end=_has_gaps_at_end(frame))
        return _with_booleans(self._with_thousands(frame))

    def chunks(
        self,
        rows: int,
        *,
        columns: Collection[str] | None = None,
        lenient: Collection[str] = (),
    ) -> Iterator[Any]:
        """Return chunks of so many rows, with one type per column throughout."""
        rows = bounded(rows, len(self.column_names))
        if columns is not None:
            columns = check_columns(self.path, columns, self.column_names)
        return self._typed_chunks(rows, columns, lenient)

    def verbatim(self, columns: Collection[str], rows: int) -> Iterator[Any]:
        """Return some columns in chunks, as the text that the file has: no cell is a gap."""
        rows = bounded(rows, len(self.column_names))
        names = check_columns(self.path, columns, self.column_names)
        chunks = self._parsed_chunks(rows, usecols=names, dtype=str, na_values=[])
        return (chunk[names].reset_index(drop=True) for chunk in chunks)

    def _columns(self) -> Iterator[tuple[str, list[str]]]:
        for name, cells in self.dialect.columns(self.missing):
            if name not in self.text:
                yield name, cells

    def _open(self) -> TextSource:
        return TextSource(self.path, self.encoding, returns=self.dialect.returns)

    def _options(self) -> dict[str, Any]:
        """Return the arguments of ``pandas.read_csv``."""
        return {
            "sep": self.dialect.separator,
            "names": list(self.column_names),
            "header": 0 if self.dialect.header else None,
            "decimal": self.decimal or DOT,
            "skipinitialspace": self.dialect.skip_spaces,
            "na_values": list(self.missing),
            "keep_default_na": False,
            "dtype": dict.fromkeys(self.text, str),
            "engine": "c",
        }

    def _parse(self, *, low_memory: bool) -> Any:
        with self._open() as source, self._explained():
            return pd.read_csv(source, low_memory=low_memory, **self._options())

    def _parsed_chunks(self, rows: int, **others: Any) -> Iterator[Any]:
        options = {**self._options(), **others}
        with (
            self._open() as source,
            self._explained(),
            # Not in pieces of a chunk, which would have types of their own.
            pd.read_csv(source, chunksize=rows, low_memory=False, **options) as reader,
        ):
            yield from reader

    def _typed_chunks(
        self, rows: int, columns: list[str] | None, lenient: Collection[str]
    ) -> Iterator[Any]:
        wanted = list(self.column_names if columns is None else dict.fromkeys(columns))
        # The last column is always read: a gap in it is a sign of rows that are cut short.
        others: dict[str, Any] = {}
        if columns is not None:
            others["usecols"] = [*wanted, self.column_names[-1]]
        chunks = self._parsed_chunks(rows, **others)
        first = next(chunks)
        self._check_has_rows(first)
        kinds = kinds_of(self._with_thousands(first[wanted]))
        goes_on = len(first) == rows
        if goes_on:
            # A column that is empty so far may hold anything later: text holds anything.
            empty = first.columns[first.isna().all()]
            kinds |= dict.fromkeys((name for name in empty if name in kinds), TEXT)
        texts = [name for name, kind in kinds.items() if kind == TEXT]
        if goes_on and not set(texts) <= set(self.text):
            # What was text is to stay text, so the file is opened again with that type.
            others["dtype"] = dict.fromkeys(texts, str)
            chunks = self._parsed_chunks(rows, **others)
        else:
            chunks = chain([first], chunks)
        del first
        n_read = 0
        gaps_at_end = False
        for chunk in chunks:
            gaps_at_end = gaps_at_end or _has_gaps_at_end(chunk)
            typed = with_kinds(chunk[wanted], kinds, n_read, self.path, self.decimal, lenient)
            yield typed.reset_index(drop=True)
            n_read += len(chunk)
        self._check_short_rows(n_read, gaps_at_end=gaps_at_end)

    def _with_thousands(self, frame: Any) -> Any:
        """Return a frame in which text that is numbers with decimal commas is numbers."""
        if self.decimal == COMMA:
            changed, doubtful = _comma_numbers(frame, self.text)
            if doubtful and self.given_decimal is None:
                what = (
                    f"read with points between thousands, as decimal marks are commas: "
                    f"{listed(doubtful, quoted=False)}"
                )
                warnings.warn(ThousandsWarning(what), stacklevel=4)
            return frame.assign(**changed) if changed else frame
        if self.decimal is None and self.dialect.separator == ";":
            doubtful = _comma_thousands(frame, self.text)
            if doubtful:
                warnings.warn(
                    f"read with commas between thousands: {listed(doubtful, quoted=False)}. "
                    f"Say decimal=',' (--decimal ,) if they are decimal commas",
                    stacklevel=4,
                )
        return frame

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what pandas says of a file into one line that a user can act on."""
        try:
            yield
        except (CoCoError, Warning):
            raise
        except (ValueError, OverflowError) as error:  # a ParserError is a ValueError
            reason = str(error).strip().splitlines()[-1].rpartition("C error: ")[2]
            if "EOF inside string" in reason:
                row = reason.rpartition(" ")[2]
                raise CoCoError(
                    f"{self.path}: a quotation mark opens near row {row} and never closes; close "
                    f"it, or double the quotation marks inside quoted cells"
                ) from error
            if isinstance(error, pd.errors.ParserError):
                self._refuse_uneven_row()
            raise CoCoError(f"{self.path} cannot be read as a table: {reason}") from error

    def _check_has_rows(self, frame: Any) -> None:
        if frame.empty:
            raise CoCoError(f"{self.path} has a header but no rows")

    def _check_short_rows(self, n_rows: int, *, gaps_at_end: bool) -> None:
        """Look for rows that are cut short, which pandas fills with gaps.

        Such a row has a gap in the last column. Only then, and only beyond the sample, which was
        looked at already, are the separators counted; and the rows only if that is not enough.
        """
        n_columns = len(self.column_names)
        if not gaps_at_end or self.dialect.sample_is_complete or n_columns == 1:
            return
        expected = (n_rows + self.dialect.header) * (n_columns - 1)
        if self.dialect.separator == WHITESPACE or self._count_separators() != expected:
            self._refuse_uneven_row()

    def _count_separators(self) -> int | None:
        """Return how many separators a file has, or None if some may stand in quotes."""
        separator = self.dialect.separator.encode()
        count = 0
        with self._open() as source:
            while block := source.read(BLOCK):
                if b'"' in block:
                    return None
                count += block.count(separator)
        return count

    def _refuse_uneven_row(self) -> None:
        """Raise an error that names the first row with more or fewer cells, if there is one."""
        with self._open() as source:
            rows = iter_rows(
                source.lines(), self.dialect.separator, skip_spaces=self.dialect.skip_spaces
            )
            try:
                check_widths(self.path, rows, len(self.column_names))
            except csv.Error as error:  # it has a limit to the length of a cell
                raise CoCoError(
                    f"{self.path} cannot be read as a table: {error}; "
                    f"a quotation mark may be left open"
                ) from error


def bounded(rows: int, n_columns: int) -> int:
    """Return how many rows a chunk of a table of so many columns has."""
    return max(1, min(check_integer(rows, "rows", minimum=1), MOST_CELLS // n_columns))


def check_columns(path: object, columns: Collection[str], names: Collection[str]) -> list[str]:
    """Return columns as a list, or say which of them the table lacks."""
    if isinstance(columns, str):
        raise CoCoError(
            f"columns must be a list of names, not the text {columns!r}; say [{columns!r}]"
        )
    known = set(names)
    for name in columns:
        if name not in known:
            raise CoCoError(f"{path} has no column {name!r}{did_you_mean(str(name), names)}")
    return list(columns)


def check_decimal(decimal: str | None) -> str | None:
    """Return a decimal mark, or None if it is to be found."""
    if decimal not in {None, DOT, COMMA}:
        raise CoCoError(f"decimal must be '.' or ',', not {decimal!r}")
    return decimal


def kinds_of(frame: Any) -> dict[str, str]:
    """Return the kind of each column of a chunk.

    Examples
    --------
    >>> kinds_of(pd.DataFrame({"a": [1], "b": [None], "c": [True], "d": ["x"]}))
    {'a': 'number', 'b': 'text', 'c': 'boolean', 'd': 'text'}
    """
    return {name: _kind_of(frame, name, dtype) for name, dtype in frame.dtypes.items()}


def with_kinds(
    frame: Any,
    kinds: dict[str, str],
    n_before: int,
    path: object,
    decimal: str | None = None,
    lenient: Collection[str] = (),
) -> Any:
    """Return a chunk with the types of its kinds: float64, boolean, or as it is.

    Whole numbers become float64 too, since a later chunk may have gaps or fractions in them.

    Parameters
    ----------
    frame : pandas.DataFrame
        The chunk.
    kinds : dict
        What :func:`kinds_of` found in the first chunk. Other columns are left alone.
    n_before : int
        Number of rows before this chunk, for the message.
    path : object
        Name of the file, for the message.
    decimal : {".", ","}, optional
        The decimal mark of numbers among text, a point by default.
    lenient : collection of str
        Columns of numbers that are left as they are where other text is among them.

    Raises
    ------
    CoCoError
        If another column of numbers, or one of true and false, holds something else from here on.

    Examples
    --------
    >>> chunk = pd.DataFrame({"a": [1, 2]})
    >>> with_kinds(chunk, {"a": "number"}, 0, "a.csv")["a"].tolist()
    [1.0, 2.0]
    """
    if set(kinds.values()) == {NUMBER} and all(map(_is_numpy_number, set(frame.dtypes))):
        return frame.astype(np.float64)  # in one go: a table may be wide
    changed = {}
    for name, dtype in frame.dtypes.items():
        if kinds.get(name) == NUMBER and dtype != np.float64:
            try:
                changed[name] = _numbers(frame[name], n_before, path, decimal)
            except CoCoError:
                if name not in lenient:
                    raise
        elif kinds.get(name) == BOOLEAN and dtype != "boolean":
            changed[name] = _booleans(frame[name], n_before, path)
    return frame.assign(**changed) if changed else frame


def _has_gaps_at_end(frame: Any) -> bool:
    return bool(frame.iloc[:, -1].isna().any())


def _with_booleans(frame: Any) -> Any:
    """Return a frame whose columns of true, false and gaps have pandas' boolean type."""
    changed = {
        name: frame[name].astype("boolean")
        for name, dtype in frame.dtypes.items()
        if types.is_object_dtype(dtype) and types.infer_dtype(frame[name], skipna=True) == "boolean"
    }
    return frame.assign(**changed) if changed else frame


def _is_numpy_number(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "iuf"


def _kind_of(frame: Any, name: str, dtype: Any) -> str:
    if _is_numpy_number(dtype):
        return NUMBER
    if types.is_bool_dtype(dtype):
        return BOOLEAN
    if types.is_numeric_dtype(dtype):
        return NUMBER
    if types.is_object_dtype(dtype):
        found = types.infer_dtype(frame[name], skipna=True)
        return {"boolean": BOOLEAN, "integer": NUMBER, "decimal": NUMBER}.get(found, TEXT)
    return TEXT if types.is_string_dtype(dtype) else OTHER


def _numbers(column: Any, n_before: int, path: object, decimal: str | None) -> Any:
    if types.is_bool_dtype(column.dtype):
        raise _surprise(column, 0, "numbers", n_before, path)
    if types.is_numeric_dtype(column.dtype):
        return column.astype("float64")
    if decimal == COMMA:
        codes, values = pd.factorize(column)
        numbers = pd.Series(_at(parse_numbers(values, WITH_COMMA), codes), column.index)
        column = column.mask(column.map(_is_gap))
    else:
        numbers = pd.to_numeric(column.astype(str).where(column.notna()), errors="coerce")
    _check_all_found(numbers, column, "numbers", n_before, path)
    return numbers.astype("float64")


def _booleans(column: Any, n_before: int, path: object) -> Any:
    found = column.map(lambda value: TRUTHS.get(str(value).lower()), na_action="ignore")
    _check_all_found(found, column, "true and false", n_before, path)
    return found.astype("boolean")


def _check_all_found(found: Any, column: Any, before: str, n_before: int, path: object) -> None:
    stray = (found.isna() & column.notna()).to_numpy()
    if stray.any():
        raise _surprise(column, int(stray.argmax()), before, n_before, path)


def _surprise(column: Any, position: int, before: str, n_before: int, path: object) -> CoCoError:
    row = n_before + position + 1
    return CoCoError(
        f"{path}, row {row} below the header: column {column.name!r} holds "
        f"{str(column.iloc[position])!r}, but {before} up to there; mend the cell or empty it"
    )


def _comma_numbers(frame: Any, text: Collection[str]) -> tuple[dict[str, Any], list[str]]:
    """Return columns of numbers with decimal commas that pandas left text.

    Beside them those columns that have points but no commas, so that another reading is possible,
    each with an example.
    """
    changed, doubtful = {}, []
    for name, codes, values in _number_like_columns(frame, text):
        numbers = parse_numbers(values, WITH_COMMA)
        is_number = ~np.isnan(numbers)
        points = [value for value in values[is_number] if "." in value]
        commas = [value for value in values[is_number] if "," in value]
        if not (points or commas) or not all(map(_is_gap, values[~is_number])):
            continue  # digits alone may be codes
        integers = not commas and is_number.all() and (codes >= 0).all()
        integers = integers and bool((np.abs(numbers) < EXACT).all())
        filled = _at(numbers, codes)
        changed[name] = pd.Series(filled.astype(np.int64) if integers else filled, frame.index)
        if not commas:
            doubtful.append(f"{name!r} (such as {points[0]})")
    return changed, doubtful


def _comma_thousands(frame: Any, text: Collection[str]) -> list[str]:
    """Return the columns of text whose commas may be decimal or stand between thousands."""
    doubtful = []
    for name, _, values in _number_like_columns(frame, text):
        known = [value.strip() for value in values if not _is_gap(value)]
        with_comma = [value for value in known if "," in value]
        if with_comma and all(has_decimal(v, COMMA) and has_decimal(v, DOT) for v in known):
            doubtful.append(f"{name!r} (such as {with_comma[0]})")
    return doubtful


def _number_like_columns(frame: Any, text: Collection[str]) -> Iterator[tuple[str, Any, Any]]:
    """Give the columns of text whose first value may be a number: name, codes, distinct values."""
    for name, dtype in frame.dtypes.items():
        if name in text or types.is_numeric_dtype(dtype) or not types.is_string_dtype(dtype):
            continue
        column = frame[name]
        first = column.first_valid_index()
        # As most text is none, one value spares the look at all.
        if first is not None and (
            _is_gap(column[first]) or has_decimal(str(column[first]).strip(), COMMA)
        ):
            codes, values = pd.factorize(column)
            yield name, codes, values


def _is_gap(value: object) -> bool:
    """Tell whether a cell of a column of numbers is blank, or a mark of a gap such as a dash."""
    return not str(value).strip() or is_gap_mark(value)


def _at(numbers: Any, codes: Any) -> Any:
    """Return the number of each row, NaN where the code is -1."""
    return np.append(numbers, np.nan)[codes]
