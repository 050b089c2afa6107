"""Delimited text, read through pandas' C parser and written, all at once or in chunks.

Left alone, the parser lets one column be numbers in one chunk and text in the next, fills rows that
are cut short, and takes 7.730 beside decimal commas for a fraction.
"""

import codecs
import csv
import gzip
import os
import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from pandas.api import types

from cocoloss._checks import check_integer, check_option, did_you_mean, listed
from cocoloss.columns.frames import is_plain_number
from cocoloss.exceptions import CoCoError
from cocoloss.files import write_whole
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
from cocoloss.tables.dialect import (
    BLOCK,
    DELIMITED,
    SUFFIXES,
    WHITESPACE,
    Dialect,
    TextSource,
    check_widths,
    iter_rows,
    suffix_of,
)

MOST_CELLS = 1 << 22  # in a chunk: 32 MB of numbers, however wide the table
REPEATED = 50  # a value must stand in so many rows, on average, for its line to be made once
EXACT = 2**53  # below it, float64 has every integer

NUMBER = "number"
BOOLEAN = "boolean"
TEXT = "text"
OTHER = "other"  # dates and categories: formats that have them keep them the same throughout
TRUTHS = {"true": True, "false": False}


class ThousandsWarning(UserWarning):
    """Columns in which points were taken for thousands, as the file has decimal commas."""

    about = "thousands"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}. Say decimal='.' if they are decimal points")
        self.what = what  # which columns, for those who have another remedy at hand


@dataclass(frozen=True)
class DelimitedFile:
    """A delimited file and how to read it; the contract is :class:`cocoloss.tables.TableFile`."""

    path: Path
    encoding: str | None
    dialect: Dialect
    missing: tuple[str, ...]
    text: tuple[str, ...] = ()
    given_decimal: str | None = None
    labels: tuple[str, ...] = ()  # text to the letter, in which only the words of ``label_gaps``
    label_gaps: tuple[str, ...] = ("",)  # are gaps

    def __post_init__(self) -> None:
        check_columns(self.path, self._all_text, self.column_names)
        if self.given_decimal is not None:
            check_option(self.given_decimal, "decimal", [DOT, COMMA])

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns."""
        return self.dialect.names

    @property
    def _all_text(self) -> tuple[str, ...]:
        return (*self.text, *self.labels)

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
        text = self.text if text is None else tuple(text)
        return replace(self, text=text, given_decimal=decimal or self.given_decimal)

    def read(self) -> Any:
        """Return all rows."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.DtypeWarning)
                frame = self._parse(low_memory=True)
        except pd.errors.DtypeWarning:
            # A column changed its type on the way: read again, a column at once, for more memory.
            frame = self._parse(low_memory=False)
        self._check_rows(len(frame), gaps_at_end=_has_gaps_at_end(frame))
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

    def write(self, frames: Any, path: str | os.PathLike[str]) -> int:
        """Write a table as this file is written; gaps are the first mark of one, if not empty."""
        with self._open() as source:
            encoding = source.find_encoding()
        return write_delimited(
            frames,
            path,
            " " if self.dialect.separator == WHITESPACE else self.dialect.separator,
            encoding=encoding,
            header=self.dialect.header,
            decimal=self.decimal or DOT,
            na_rep="" if "" in self.missing else next(iter(self.missing), ""),
        )

    def _columns(self) -> Iterator[tuple[str, list[str]]]:
        """Give each column that is not text, with those cells of the sample that are no gaps."""
        for j, name in enumerate(self.column_names):
            if name not in self._all_text:
                cells = (row[j].strip() for row in self.dialect.sample)
                yield name, [cell for cell in cells if cell not in self.missing]

    def _open(self) -> TextSource:
        dialect = self.dialect
        return TextSource(self.path, self.encoding, returns=dialect.returns, titles=dialect.titles)

    def _options(self) -> dict[str, Any]:
        """Return the arguments of ``pandas.read_csv``."""
        return {
            "sep": self.dialect.separator,
            "names": list(self.column_names),
            "header": 0 if self.dialect.header else None,
            "decimal": self.decimal or DOT,
            "skipinitialspace": self.dialect.skip_spaces,
            "na_values": self._gaps(),
            "keep_default_na": False,
            "dtype": dict.fromkeys(self._all_text, str),
            "engine": "c",
        }

    def _gaps(self) -> list[str] | dict[str, list[str]]:
        """Return the words that are gaps, for all columns or for each."""
        if not self.labels or self.missing == self.label_gaps:
            return list(self.missing)
        return {
            name: list(self.label_gaps if name in self.labels else self.missing)
            for name in self.column_names
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
        if first.empty:
            self._check_rows(0, gaps_at_end=False)
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
        self._check_rows(n_read, gaps_at_end=gaps_at_end)

    def _with_thousands(self, frame: Any) -> Any:
        """Return a frame in which text that is numbers with decimal commas is numbers."""
        if self.decimal == COMMA:
            changed, doubtful = _comma_numbers(frame, self._all_text)
            if doubtful and self.given_decimal is None:
                what = (
                    f"read with points between thousands, as decimal marks are commas: "
                    f"{listed(doubtful, quoted=False)}"
                )
                warnings.warn(ThousandsWarning(what), stacklevel=4)
            return frame.assign(**changed) if changed else frame
        if self.decimal is None and self.dialect.separator != COMMA:
            doubtful = _comma_thousands(frame, self._all_text)
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

    def _check_rows(self, n_rows: int, *, gaps_at_end: bool) -> None:
        """Look for rows that are cut short, which pandas fills with gaps, or no rows at all.

        Such a row has a gap in the last column. Only then, and only beyond the sample, which was
        looked at already, are the separators counted; and the rows only if that is not enough.
        """
        if n_rows == 0:
            raise CoCoError(f"{self.path} has a header but no rows")
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


def kinds_of(frame: Any) -> dict[str, str]:
    """Return the kind of each column of a chunk."""
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

    Whole numbers become float64 too, since a later chunk may have gaps or fractions in them. What
    is no number, or neither true nor false, is an error that names the row; but among numbers of
    ``lenient`` columns, which then stay as they are.
    """
    if set(kinds.values()) == {NUMBER} and all(map(is_plain_number, set(frame.dtypes))):
        return frame.astype(np.float64)  # in one go: a table may be wide
    changed = {}
    for name, dtype in frame.dtypes.items():
        column, kind = frame[name], kinds.get(name)
        if kind == NUMBER and dtype != np.float64:
            found, known = _numbers(column, decimal)
        elif kind == BOOLEAN and dtype != "boolean":
            truths = column.map(lambda v: TRUTHS.get(str(v).lower()), na_action="ignore")
            found, known = truths, column.notna()
        else:
            continue
        stray = (found.isna() & known).to_numpy()
        if not stray.any():
            changed[name] = found.astype("float64" if kind == NUMBER else "boolean")
        elif kind == BOOLEAN or name not in lenient:
            position = int(stray.argmax())
            before = "numbers" if kind == NUMBER else "true and false"
            raise CoCoError(
                f"{path}, row {n_before + position + 1} below the header: column {name!r} holds "
                f"{str(column.iloc[position])!r}, but {before} up to there; mend the cell or "
                f"empty it"
            )
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


def _kind_of(frame: Any, name: str, dtype: Any) -> str:
    if is_plain_number(dtype):
        return NUMBER
    if types.is_bool_dtype(dtype):
        return BOOLEAN
    if types.is_numeric_dtype(dtype):
        return NUMBER
    if types.is_object_dtype(dtype):
        found = types.infer_dtype(frame[name], skipna=True)
        return {"boolean": BOOLEAN, "integer": NUMBER, "decimal": NUMBER}.get(found, TEXT)
    return TEXT if types.is_string_dtype(dtype) else OTHER


def _numbers(column: Any, decimal: str | None) -> tuple[Any, Any]:
    """Return a column as numbers, NaN where it holds none, and which cells are no gaps."""
    if types.is_bool_dtype(column.dtype):
        return pd.Series(np.nan, column.index), column.notna()
    if types.is_numeric_dtype(column.dtype):
        return column, column.notna()
    if decimal == COMMA:
        codes, values = pd.factorize(column)
        numbers = _at(parse_numbers(values, WITH_COMMA), codes)
        return pd.Series(numbers, column.index), ~(column.isna() | column.map(_is_gap))
    return pd.to_numeric(column.astype(str).where(column.notna()), errors="coerce"), column.notna()


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


def write_delimited(
    frames: Any,
    path: str | os.PathLike[str],
    separator: str,
    *,
    encoding: str = "utf-8",
    header: bool = True,
    **options: Any,
) -> int:
    """Write delimited text; further options are those of ``DataFrame.to_csv``."""
    path = check_format(path, DELIMITED)
    options = {"sep": separator, "index": False, "lineterminator": "\n", **options}
    if separator == " ":  # a gap must not vanish between two spaces
        options["quoting"] = csv.QUOTE_NONNUMERIC
    encoder = codecs.getincrementalencoder(encoding)()  # one byte order mark for all chunks
    n_rows = 0
    with write_whole(path) as aside, aside.open("wb") as raw, _packed(raw, path) as file:
        for i, chunk in enumerate(same_columns(frames)):
            names = chunk[:0].to_csv(**options) if header and i == 0 else ""
            lines = _repeated_lines(chunk, options) or chunk.to_csv(header=False, **options)
            try:
                file.write(encoder.encode(names + lines))
            except UnicodeEncodeError as error:
                stray = error.object[error.start]
                raise CoCoError(
                    f"cannot write {path}: {encoding} has no {stray!r}; write UTF-8 instead"
                ) from error
            n_rows += len(chunk)
    return n_rows


def check_format(path: str | os.PathLike[str], kind: str) -> Path:
    """Return the path of a file that is to be of a kind, unless its suffix says another."""
    if SUFFIXES.get(suffix_of(path)[0], kind) != kind:
        raise CoCoError(
            f"{path} would not be what its name says, but {kind}; choose another suffix"
        )
    return Path(path)


def same_columns(frames: Any) -> Iterator[Any]:
    """Give the chunks of a table, or the one there is, as long as they have the same columns."""
    chunks: Iterable[Any] = [frames] if isinstance(frames, pd.DataFrame) else frames
    names: list[Any] | None = None
    for chunk in chunks:
        if names is None:
            names = list(chunk.columns)
        elif list(chunk.columns) != names:
            raise CoCoError("the chunks of a table must have the same columns in the same order")
        yield chunk
    if names is None:
        raise CoCoError("there is no table to write: not one chunk came")


def _packed(raw: Any, path: Path) -> Any:
    if not suffix_of(path)[1]:
        return nullcontext(raw)
    # No name and no time inside: the same table gives the same bytes.
    return gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6)


def _repeated_lines(chunk: Any, options: dict[str, Any]) -> str | None:
    """Return the lines of one column of few values, such as classes: ten times as fast.

    None where there are other columns, many values, or values that equal each other and are yet
    written differently: 0.0 and -0.0, 1 and True, dates with and without a time beside them.
    """
    if len(chunk.columns) != 1:
        return None
    codes, values = pd.factorize(chunk.iloc[:, 0], use_na_sentinel=False)
    if len(values) > len(chunk) // REPEATED or not _equal_is_the_same(values):
        return None
    singles = (pd.DataFrame({"": values[i : i + 1]}) for i in range(len(values)))
    lines = [single.to_csv(header=False, **options) for single in singles]
    return "".join(np.array(lines, dtype=object)[codes])


def _equal_is_the_same(values: Any) -> bool:
    """Tell whether distinct values are all integers, all booleans, or all text."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.categories
    if types.is_integer_dtype(values.dtype) or types.is_bool_dtype(values.dtype):
        return True
    return bool(types.infer_dtype(values, skipna=True) == "string")
