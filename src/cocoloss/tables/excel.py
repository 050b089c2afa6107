"""Workbooks of Excel, through openpyxl: one sheet as a table with typed columns.

What stands above the header is passed over, formulas are what the file says they came to, and all
of that is said. openpyxl is an extra; without it there is one line that says how to get it.
"""

import datetime as dt
import os
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cocoloss._checks import counted, did_you_mean, listed, require
from cocoloss.exceptions import CoCoError
from cocoloss.number_text import without_point
from cocoloss.tables.dialect import check_distinct, check_header, n_title_rows
from cocoloss.tables.parquet_and_arff import TypedFile

WORKBOOK = "xl/workbook.xml"
MOST_UNPACKED = 2**30  # bytes that a workbook may have, unpacked
MOST_CELLS = 2**26  # that a sheet may span
LOOKED_AT = 100  # rows, to find the header
HEAD_BYTES = 2**12  # of a part, in which a declaration of entities would stand
ERRORS = frozenset({"#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!", "#SPILL!"})
# How zipfile fails, beside its own exception.
ZIP_FAILURES = (
    *(zipfile.BadZipFile, zlib.error, struct.error),
    *(OSError, EOFError, ValueError, RuntimeError, IndexError, OverflowError),
)
Row = Sequence[Any]  # its cells


def is_workbook(path: Path) -> bool:
    """Return whether a zip archive is one of Excel's."""
    try:
        with zipfile.ZipFile(path) as archive:
            return WORKBOOK in archive.namelist()
    except ZIP_FAILURES:
        return False


def open_excel(
    path: Path,
    text: tuple[str, ...],
    writer: Callable[[Any, str | os.PathLike[str]], int],
    *,
    sheet: str | int | None,
    header: bool | str,
    missing: Collection[str],
    labels: Collection[str],
    label_gaps: Collection[str],
) -> TypedFile:
    """Return a sheet of a workbook, which is read at once, and written in other formats."""
    frame = _read_sheet(path, sheet, header, dict.fromkeys(labels, label_gaps) | {"": missing})

    def frames(
        rows: int | None,
        columns: list[str] | None = None,
        *,
        exactly: bool = False,  # noqa: ARG001 - integers with gaps are integers already
    ) -> Iterator[Any]:
        wanted = frame if columns is None else frame[columns]
        for start in range(0, len(wanted), rows or len(wanted)):
            stop = start + rows if rows else None
            yield wanted[start:stop].reset_index(drop=True)

    return TypedFile(path, writer, tuple(frame.columns), frames, text)


def _read_sheet(
    path: Path,
    sheet: str | int | None,
    header: bool | str,
    missing: Mapping[str, Collection[str]],
) -> Any:
    """Return a sheet as a data frame, and warn of what may have been meant otherwise.

    ``missing`` has the words that are gaps of some columns, and under "" those of the others.
    """
    has_formulas = _check_archive(path)
    with _opened(path, data_only=True) as workbook:
        name, others = _chosen(path, workbook, sheet)
        rows = _rows_of(path, workbook[name])
    if others:
        warnings.warn(
            f"{path.name}: read the sheet {name!r}; there are also {listed(others)}. Name another "
            f"one by sheet=... (--sheet NAME)",
            stacklevel=5,
        )
    filled = [any(cell is not None for cell in row) for row in rows]
    if not any(filled):
        raise CoCoError(f"{path}: the sheet {name!r} is empty; there is no table in it")
    top = filled.index(True)
    if header == "auto":
        top += n_title_rows(rows[top : top + LOOKED_AT], _is_filled)
    if top:
        first = next((str(c) for row in rows[:top] for c in row if c is not None), "")
        what = f", {first!r:.80}" if first else ", which are empty"
        warnings.warn(
            f"{path.name}: passed over {counted(top, 'row')} above the header{what}; the names are "
            f"in row {top + 1}",
            stacklevel=5,
        )
    names_of = [_name(cell) for cell in rows[top]]
    has_header = check_header(path, header, [cell for cell in names_of if cell])
    body = [(k, row) for k, row in enumerate(rows) if k >= top + has_header and filled[k]]
    if not body:
        raise CoCoError(f"{path}: the sheet {name!r} has a header but no rows")
    n_columns = max(len(row) for _, row in [(top, rows[top]), *body])
    columns: dict[str, Any] = {}
    positions: dict[str, int] = {}
    names: list[str] = []
    for j in range(n_columns):
        called = names_of[j] if has_header and j < len(names_of) else ""
        gaps = {*missing.get(called, missing[""]), *ERRORS}
        cells = [_cell(row[j], gaps) if j < len(row) else None for _, row in body]
        if called or any(cell is not None for cell in cells):
            names.append(called or f"column_{j + 1}")
            columns[names[-1]], positions[names[-1]] = _typed(cells), j
    check_distinct(path, names)
    frame = pd.DataFrame(columns)
    if has_formulas and frame.isna().to_numpy().any():
        _warn_of_formulas(path, name, frame, positions, [k for k, _ in body])
    return frame


def _chosen(path: Path, workbook: Any, sheet: str | int | None) -> tuple[str, list[str]]:
    """Return the sheet to read, and the others if nobody chose: the first that holds a table."""
    names = [each.title for each in workbook.worksheets]
    if sheet is not None:
        if str(sheet) in names:
            return str(sheet), []
        if str(sheet).isdecimal() and 0 < int(sheet) <= len(names):
            return str(names[int(sheet) - 1]), []
        raise CoCoError(
            f"{path} has no sheet {sheet!r}{did_you_mean(str(sheet), names)}; it has "
            f"{listed(names)}, which can be named by their numbers from 1 as well"
        )
    seen = [each.title for each in workbook.worksheets if each.sheet_state == "visible"] or names
    if not seen:
        raise CoCoError(f"{path} has no sheet with cells")
    first = next((name for name in seen if _has_rows(workbook[name])), seen[0])
    return str(first), [name for name in names if name != first]


def _has_rows(sheet: Any) -> bool:
    """Return whether more than one row of a sheet is filled, which is no title page."""
    sheet.reset_dimensions()
    widths = [sum(map(_is_filled, row)) for row in islice(sheet.iter_rows(values_only=True), 50)]
    return sum(width > 1 for width in widths) > 1 or sum(width > 0 for width in widths) > 2


def _rows_of(path: Path, sheet: Any) -> list[Row]:
    """Return the rows of a sheet up to the last that is filled, without empty cells at their end.

    What the file says of its size is not believed.
    """
    sheet.reset_dimensions()
    rows: list[Row] = []
    n_cells = 0
    for row in sheet.iter_rows(values_only=True):
        width = max((j for j, cell in enumerate(row, start=1) if _is_filled(cell)), default=0)
        cells = row[:width]
        n_cells += width + 1
        if n_cells > MOST_CELLS:
            raise CoCoError(f"{path} has more than {MOST_CELLS:,} cells; save it as CSV or Parquet")
        rows.append([cell if _is_filled(cell) else None for cell in cells])
    while rows and not rows[-1]:
        rows.pop()
    return rows


def _is_filled(cell: Any) -> bool:
    return cell is not None and not (isinstance(cell, str) and not cell.strip())


def _name(cell: Any) -> str:
    return "" if cell is None else str(without_point(cell)).strip()


def _cell(value: Any, gaps: Collection[str]) -> Any:
    return None if isinstance(value, str) and value.strip() in gaps else value


def _typed(cells: list[Any]) -> Any:
    """Return a column of the type that all its cells have, else of text."""
    known = [cell for cell in cells if cell is not None]
    has_gaps = len(known) < len(cells)
    if not known:
        return pd.Series(cells, dtype=np.float64)
    if all(isinstance(cell, bool) for cell in known):
        return pd.Series(cells, dtype="boolean" if has_gaps else bool)
    if all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in known):
        whole = not has_gaps and all(isinstance(cell, int) for cell in known)
        return pd.Series(cells, dtype=None if whole else np.float64)
    if all(isinstance(cell, dt.date) for cell in known):  # a datetime is one
        return pd.Series(pd.to_datetime(pd.Series(cells, dtype=object), errors="coerce"))
    if all(isinstance(cell, dt.time | dt.timedelta) for cell in known):
        return pd.Series(pd.to_timedelta([None if c is None else _span(c) for c in cells]))
    return pd.Series([None if c is None else _written(c) for c in cells], dtype=object)


def _span(cell: dt.time | dt.timedelta) -> dt.timedelta:
    if isinstance(cell, dt.timedelta):
        return cell
    return dt.timedelta(hours=cell.hour, minutes=cell.minute, seconds=cell.second)


def _written(cell: Any) -> str:
    """Return a cell among others of text as it would stand in a CSV."""
    if isinstance(cell, dt.datetime) and cell.time() == dt.time():
        cell = cell.date()
    return str(without_point(cell))


def _warn_of_formulas(
    path: Path, sheet: str, frame: Any, positions: dict[str, int], rows: list[int]
) -> None:
    """Say where a gap is a formula of which the file does not hold the result."""
    with _opened(path, data_only=False) as workbook:
        workbook[sheet].reset_dimensions()
        formulas = list(workbook[sheet].iter_rows(values_only=True))
    counts: dict[str, int] = {}
    for name, j in positions.items():
        for k in np.flatnonzero(frame[name].isna()):
            row = formulas[rows[k]]
            if j < len(row) and str(row[j]).startswith("="):
                counts[name] = counts.get(name, 0) + 1
    if counts:
        where = listed([f"{name} ({n:,})" for name, n in counts.items()], quoted=False)
        warnings.warn(
            f"{path.name}: formulas without a stored result are gaps: {where}. Open the file in "
            f"Excel or LibreOffice and save it, which stores them",
            stacklevel=6,
        )


def _check_archive(path: Path) -> bool:
    """Return whether a workbook has formulas; refuse one that is not what it seems.

    An entry is never unpacked beyond the size that its archive announces.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            unpacked = sum(entry.file_size for entry in entries)
            require(
                unpacked <= MOST_UNPACKED,
                f"{path} unpacks to {unpacked / 2**20:,.0f} MB, and {MOST_UNPACKED >> 20:,} MB are "
                f"the limit; save it as CSV or Parquet",
            )
            has_formulas = False
            for entry in entries:
                if not entry.filename.endswith((".xml", ".rels")):
                    continue
                with archive.open(entry) as part:
                    head = part.read(HEAD_BYTES)
                    plain = b"<!DOCTYPE" not in head and b"<!ENTITY" not in head
                    require(plain, f"{path} declares entities, as no workbook does; refused")
                    if entry.filename.startswith("xl/worksheets/"):
                        while head and not has_formulas:
                            has_formulas = b"<f>" in head or b"<f " in head
                            head = part.read(2**20)
    except CoCoError:
        raise
    except ZIP_FAILURES as error:
        raise _damaged(path, error) from error
    return has_formulas


@contextmanager
def _opened(path: Path, *, data_only: bool) -> Iterator[Any]:
    try:
        import openpyxl  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        raise CoCoError(
            f"{path}: Excel needs openpyxl; run pip install 'cocoloss[excel]'"
        ) from None
    try:
        with path.open("rb") as file, warnings.catch_warnings():
            # Of styles and pictures that are not kept; ours come when the file is closed.
            warnings.simplefilter("ignore")
            # By its content: openpyxl would refuse a file that is called otherwise.
            workbook = openpyxl.load_workbook(file, read_only=True, data_only=data_only)
            yield workbook
    except CoCoError:
        raise
    except Exception as error:  # whatever XML of a stranger makes openpyxl do
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> CoCoError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
    return CoCoError(f"{path} is a damaged Excel file: {reason}; open it there and save it anew")
