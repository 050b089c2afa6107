"""ARFF, the format of Weka and OpenML: columns with declared types, dense rows or sparse ones.

scipy's reader knows neither text nor sparse rows, so there is one here. How a row is cut into
cells is the business of ``arff_rows``.
"""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cocoloss._checks import listed
from cocoloss.exceptions import CoCoError
from cocoloss.tables.arff_rows import QUOTED, cut_rows, split_list, unquote
from cocoloss.tables.dialect import check_distinct
from cocoloss.tables.formats import Found
from cocoloss.tables.text import TextSource

NUMERIC = "numeric"
NOMINAL = "nominal"
STRING = "string"
DATE = "date"
TYPES = {
    "numeric": NUMERIC,
    "real": NUMERIC,
    "integer": NUMERIC,
    "string": STRING,
    "date": DATE,
}
ISO_DATE = "yyyy-MM-dd'T'HH:mm:ss"
# Java's letters for dates, and Python's.
DATE_LETTERS = dict(
    zip(
        ["yyyy", "yy", "MM", "dd", "HH", "mm", "ss", "SSS", "''"],
        ["%Y", "%y", "%m", "%d", "%H", "%M", "%S", "%f", "'"],
        strict=True,
    )
)

DATA = re.compile(r"^[ \t]*@data\b[^\n]*(\n|$)", re.IGNORECASE | re.MULTILINE)
ATTRIBUTE = re.compile(rf"@attribute\s+({QUOTED}|[^\s{{]+)\s*(.*)", re.IGNORECASE | re.DOTALL)
COMMENTS = re.compile(r"^[ \t]*%[^\n]*\n?", re.MULTILINE)
QUOTED_GAP = re.compile(r"['\"]\s*\?\s*['\"]")


@dataclass(frozen=True)
class Attribute:
    """A declared column: its name, its type, and the values or the date format it may have."""

    name: str
    type: str
    values: tuple[str, ...] = ()
    date_format: str | None = None


def read_arff(found: Found, encoding: str | None = None) -> Any:
    """Return an ARFF file as a data frame, read whole.

    Numbers become float64, nominal columns unordered categories in the declared order, dates
    datetimes; a bare ``?`` is a gap.

    Raises
    ------
    CoCoError
        If the header cannot be read, or a row does not fit it.
    """
    path = found.path
    with TextSource(found, encoding) as source:
        text = source.read().decode()
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    start = DATA.search(text)
    if start is None:
        raise CoCoError(f"{path} is an ARFF file without @data; it is cut short or has no rows")
    attributes = _attributes(path, text[: start.start()])
    n_lines = text.count("\n", 0, start.end())
    body = text[start.end() :]
    del text
    columns = _quick_columns(body, attributes)
    if columns is None:
        columns = cut_rows(path, body, n_lines, [_default(attribute) for attribute in attributes])
    if not columns or not len(columns[0]):
        raise CoCoError(f"{path} has a header but no rows")
    series = [
        _typed(path, attribute, column)
        for attribute, column in zip(attributes, columns, strict=True)
    ]
    return pd.concat(series, axis=1)


def _attributes(path: object, header: str) -> list[Attribute]:
    attributes = []
    for number, line in enumerate(header.splitlines(), start=1):
        declared = line.strip()
        if not declared or declared.startswith("%"):
            continue
        if declared.lower().startswith("@relation"):
            continue
        match = ATTRIBUTE.match(declared)
        if match is None:
            raise CoCoError(f"{path}, line {number}: expected @attribute, not {declared[:40]!r}")
        attributes.append(_attribute(f"{path}, line {number}", unquote(match[1]), match[2]))
    if not attributes:
        raise CoCoError(f"{path} declares no @attribute; there are no columns")
    check_distinct(path, [attribute.name for attribute in attributes])
    return attributes


def _attribute(place: str, name: str, declared: str) -> Attribute:
    if declared.startswith("{"):
        values, brace, _ = declared[1:].rpartition("}")
        if not brace:
            raise CoCoError(f"{place}: the values of {name!r} have no closing brace")
        return Attribute(name, NOMINAL, tuple(dict.fromkeys(split_list(values))))
    word, _, rest = declared.partition(" ")
    kind = TYPES.get(word.strip().lower())
    if kind is None:
        raise CoCoError(
            f"{place}: {name!r} has the type {word!r}; numeric, real, integer, string, date and "
            f"{{lists}} can be read"
        )
    date_format = unquote(rest.strip()) or ISO_DATE if kind == DATE else None
    return Attribute(name, kind, date_format=date_format)


def _default(attribute: Attribute) -> str | None:
    """Return what a sparse row means by leaving a column out."""
    if attribute.type == NUMERIC:
        return "0"
    return attribute.values[0] if attribute.values else None


def _quick_columns(body: str, attributes: Sequence[Attribute]) -> list[Any] | None:
    """Return the columns by way of pandas' C parser, or None where ARFF's rules differ from its.

    They differ on sparse rows, on backslashes, where both quotation marks occur, and where a gap
    is quoted; and whatever it stumbles over is left to the slow way, which can say where.
    """
    if "%" in body:
        body = COMMENTS.sub("", body)
    quotes = [mark for mark in "'\"" if mark in body]
    if body.lstrip()[:1] in {"", "{"} or "\\" in body or len(quotes) > 1:
        return None
    if quotes and QUOTED_GAP.search(body):
        return None
    types = {j: np.float64 if a.type == NUMERIC else str for j, a in enumerate(attributes)}
    try:
        frame = pd.read_csv(
            io.StringIO(body),
            header=None,
            names=list(types),
            dtype=types,
            quotechar=quotes[0] if quotes else '"',
            skipinitialspace=True,
            na_values=["?"],
            keep_default_na=False,
            engine="c",
        )
    except (ValueError, OverflowError):  # a ParserError is a ValueError
        return None
    # A row too long at the start became an index; one too short was filled with empty text.
    if not isinstance(frame.index, pd.RangeIndex) or (frame.iloc[:, -1] == "").any():
        return None
    return [frame[j] for j in types]


def _typed(path: object, attribute: Attribute, column: Any) -> Any:
    column = pd.Series(column, name=attribute.name)
    if attribute.type == NUMERIC:
        return _numbers(path, attribute, column)
    if attribute.type == DATE:
        return _dates(path, attribute, column)
    if attribute.type == NOMINAL:
        return _categories(path, attribute, column)
    return column


def _numbers(path: object, attribute: Attribute, column: Any) -> Any:
    numbers = pd.to_numeric(column, errors="coerce").astype(np.float64)
    _check_all_found(path, attribute, column, numbers, "a number")
    return numbers


def _categories(path: object, attribute: Attribute, column: Any) -> Any:
    # Unordered: the order of the list is that in which somebody wrote it down.
    dtype = pd.CategoricalDtype(list(attribute.values), ordered=False)
    texts = column.map(str.strip, na_action="ignore")
    known = texts.where(texts.isin(attribute.values)).astype(object)
    _check_all_found(path, attribute, column, known, f"one of {listed(attribute.values)}")
    return known.astype(dtype)


def _dates(path: object, attribute: Attribute, column: Any) -> Any:
    pattern = _python_date_format(attribute.date_format or ISO_DATE)
    if pattern is None:
        return column
    dates = pd.to_datetime(column, format=pattern, errors="coerce")
    _check_all_found(path, attribute, column, dates, f"a date like {attribute.date_format}")
    return dates


def _python_date_format(java: str) -> str | None:
    """Return the format as Python has it, or None if it has letters we do not know."""
    parts = []
    pieces = re.findall(r"'[^']+'|''|yyyy|SSS|yy|MM|dd|HH|mm|ss|[A-Za-z]+|[^A-Za-z']", java)
    for piece in pieces:
        if piece in DATE_LETTERS:
            parts.append(DATE_LETTERS[piece])
        elif piece.startswith("'"):
            parts.append(piece[1:-1])
        elif piece.isalpha():
            return None
        else:
            parts.append(piece)
    return "".join(parts)


def _check_all_found(
    path: object, attribute: Attribute, column: Any, found: Any, expected: str
) -> None:
    stray = (found.isna() & column.notna()).to_numpy()
    if stray.any():
        row = int(stray.argmax())
        raise CoCoError(
            f"{path}, row {row + 1} below @data: column {attribute.name!r} holds "
            f"{column.iloc[row]!r}, which is not {expected}"
        )
